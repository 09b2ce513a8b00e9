// How far rounding may move what a node computes, found by moving its inputs.
//
// Each value carries a bound: no device may be off by more. A node's inputs are moved by their
// bounds, and by the rounding inside the node, in ways that reach every jump of functions of single
// elements (all up, all down, operands against each other) and every exchange of nearly equal
// numbers (sorts, maxima, equality); what moves the answer by more than a smooth function would is
// refused. The output's bound is the furthest it went, and the rounding of its type. So bounds hold
// by induction as far as the tries see: they are tries, not interval arithmetic, which would widen
// them without use.
#ifndef NPURT_TESTS_FUZZ_NOISE_H_
#define NPURT_TESTS_FUZZ_NOISE_H_

#include <utility>
#include <vector>

#include "graph/graph.h"

namespace npurt::fuzz {

struct NoisyValue {
  Value value;
  double noise = 0;  // an element may be off by this much
};

// The outputs of a node without subgraphs. INVALID_ARGUMENT: it cannot be computed, overflows, or
// small moves of its inputs make large ones of its outputs.
absl::StatusOr<std::vector<NoisyValue>> EvaluateWithNoise(const graph::NodeSpec& spec,
                                                          const std::vector<NoisyValue>& inputs);

// The same for any node: Loop turn by turn, with the bounds of its state, and the branch that If
// takes.
absl::StatusOr<std::vector<NoisyValue>> Evaluate(const graph::NodeSpec& spec,
                                                 const std::vector<NoisyValue>& inputs);

// What a device may be off by in computing a number around 1: half a unit in the last place times
// what fast versions were seen to lose. 0 for types that do not round.
double RoundingOf(DType dtype);

// The largest move of an element between two values; infinite where they differ in more than that.
double Distance(const Value& a, const Value& b);

double LargestOf(const Value& value);

// The least and the largest element; 0, 0 for tensors that have none or no numbers.
std::pair<double, double> Range(const Tensor& tensor);

}  // namespace npurt::fuzz

#endif  // NPURT_TESTS_FUZZ_NOISE_H_
