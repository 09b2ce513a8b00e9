// Random graphs of all operators, with inputs and the answer, for tests that compare devices.
//
// Nodes are made of the samples of the operator laws: the first operand is a value that is there,
// the others take the shapes and types that go with it. Each node is computed by its reference as
// it is added, so only nodes that can be computed stay, and everybody knows the answer. The node is
// computed again from inputs that are moved by as much as rounding may have moved them: how far its
// outputs move says how exact an answer can be asked for, and a node that turns rounding into
// another answer (the floor of a sum, the order of nearly equal numbers) is refused.
//
// Thread safety: values; the samples are made once.
#ifndef NPURT_TESTS_FUZZ_RANDOM_GRAPH_H_
#define NPURT_TESTS_FUZZ_RANDOM_GRAPH_H_

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace npurt::fuzz {

// A stream of decisions; the same seed gives the same ones.
class Choices {
 public:
  explicit Choices(std::uint64_t seed) : random_(seed) {}
  // In [0, n).
  int Below(std::size_t n) { return static_cast<int>(random_() % n); }
  bool Percent(int n) { return Below(100) < n; }
  template <typename T>
  const T& Of(const std::vector<T>& list) {
    return list[static_cast<std::size_t>(Below(list.size()))];
  }

 private:
  std::mt19937_64 random_;
};

struct Case {
  std::shared_ptr<graph::Graph> graph;
  std::vector<Value> inputs;
  std::vector<Value> values;  // by graph::ValueId; kNone: a value of a refused node
  std::vector<double> noise;  // by graph::ValueId: what rounding may have moved an element by
};

// A graph of at most `nodes` nodes, besides those of branches and loops.
Case MakeCase(Choices& choices, int nodes);

// Computes a node by its reference; If and Loop turn by turn. `inputs` has kNone for absent ones.
absl::StatusOr<std::vector<Value>> Evaluate(const graph::NodeSpec& spec,
                                            const std::vector<Value>& inputs);

ValueType TypeOf(const Value& value);

}  // namespace npurt::fuzz

#endif  // NPURT_TESTS_FUZZ_RANDOM_GRAPH_H_
