// How far rounding moves what a node computes, found by moving its inputs.
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

// The outputs of the node. INVALID_ARGUMENT: it cannot be computed, overflows, or small moves of
// its inputs make large ones of its outputs. `body_noise` is that of the values of its subgraphs.
absl::StatusOr<std::vector<NoisyValue>> EvaluateWithNoise(const graph::NodeSpec& spec,
                                                          const std::vector<NoisyValue>& inputs,
                                                          double body_noise);

// Half the distance from 1 to the next number of this type; 0 for types that do not round.
double RoundoffOf(DType dtype);

// The least and the largest element; 0, 0 for tensors that have none or no numbers.
std::pair<double, double> Range(const Tensor& tensor);

}  // namespace npurt::fuzz

#endif  // NPURT_TESTS_FUZZ_NOISE_H_
