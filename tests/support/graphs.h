// Small graphs for tests of compile, exec and session.
#ifndef NPURT_TESTS_SUPPORT_GRAPHS_H_
#define NPURT_TESTS_SUPPORT_GRAPHS_H_

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace npurt::testing {

// Adds nodes and fails the test where the graph refuses them.
class GraphBuilder {
 public:
  graph::Graph& graph() { return *graph_; }
  std::shared_ptr<graph::Graph> Take() { return std::move(graph_); }

  // Dimensions below 0 are symbols named by their position: -1 is "n1", -2 "n2" …
  graph::ValueId Input(const std::string& name, DType dtype, std::vector<std::int64_t> dims) {
    SymDims shape;
    for (std::int64_t d : dims)
      shape.push_back(d >= 0 ? Dim(d)
                             : graph_->dims()->Symbol(std::string("n") + std::to_string(-d)));
    return Checked(graph_->AddInput(name, ValueType::OfTensor(dtype, shape)));
  }
  graph::ValueId Constant(const std::string& name, Tensor tensor) {
    return Checked(graph_->AddConstant(name, std::move(tensor)));
  }
  graph::ValueId Floats(const std::string& name, std::vector<std::int64_t> dims,
                        std::vector<float> values) {
    return Constant(name, *Tensor::FromSpan<float>(dims, values));
  }
  graph::ValueId Random(const std::string& name, std::vector<std::int64_t> dims, unsigned seed) {
    Tensor tensor = *Tensor::Create(DType::kF32, dims);
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (std::int64_t i = 0; i < tensor.element_count(); ++i) tensor.set(i, uniform(random));
    return Constant(name, std::move(tensor));
  }
  graph::ValueId Node(const std::string& op, std::vector<graph::ValueId> inputs,
                      const std::string& output, Attributes attributes = {}) {
    graph::NodeSpec spec;
    spec.op = op;
    spec.name = output + "_node";
    spec.inputs = std::move(inputs);
    spec.outputs = {output};
    spec.attributes = std::move(attributes);
    const graph::NodeId node = Checked(graph_->AddNode(std::move(spec)));
    return node < 0 ? graph::kNone : graph_->node(node).outputs[0];
  }
  void Output(graph::ValueId value) {
    const absl::Status status = graph_->AddOutput(value, graph_->value(value).name);
    EXPECT_TRUE(status.ok()) << status;
  }

 private:
  std::int32_t Checked(absl::StatusOr<std::int32_t> result) {
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? *result : graph::kNone;
  }
  std::shared_ptr<graph::Graph> graph_ = std::make_shared<graph::Graph>();
};

inline Tensor RandomTensor(std::vector<std::int64_t> dims, unsigned seed) {
  Tensor tensor = *Tensor::Create(DType::kF32, dims);
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) tensor.set(i, uniform(random));
  return tensor;
}

}  // namespace npurt::testing

#endif  // NPURT_TESTS_SUPPORT_GRAPHS_H_
