// Random graphs of all operators, with inputs and the answer, for tests that compare devices.
//
// Nodes are made of the samples of the operator laws: the first operand is a value that is there,
// the others take the shapes and types that go with it. Each node is computed by its reference as
// it is added, so only nodes that can be computed stay, and everybody knows the answer and how exact
// it must be (see noise.h); a node that turns rounding into another answer (the floor of a sum, the
// order of nearly equal numbers) is refused.
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
  std::vector<double> noise;  // by graph::ValueId: an element may be off by this much
};

// A graph of at most `nodes` nodes, besides those of branches and loops.
Case MakeCase(Choices& choices, int nodes);

// A graph with so many nodes of one operator, or fewer if it takes too many tries, and some others.
Case MakeCaseOf(const std::string& op, Choices& choices, int nodes);

ValueType TypeOf(const Value& value);

}  // namespace npurt::fuzz

#endif  // NPURT_TESTS_FUZZ_RANDOM_GRAPH_H_
