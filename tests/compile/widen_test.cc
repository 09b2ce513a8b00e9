// Where half precision is computed in float32, and where the narrow type stays.
#include <gtest/gtest.h>

#include <algorithm>

#include "compile/compile.h"
#include "support/graphs.h"

namespace npurt::compile {
namespace {

using npurt::testing::GraphBuilder;

// "Op:type of output 0" of each node that is left, in order; run until nothing changes any more.
std::vector<std::string> Widened(graph::Graph& graph, HashSet<std::string> keep = {}) {
  CompileOptions options;
  options.device = *device::FindDevice("cpu");
  options.keep = std::move(keep);
  PassContext context{graph, options};
  EXPECT_TRUE(WidenHalf(context).ok());
  EXPECT_TRUE(RemoveNoOps(context).ok());
  EXPECT_TRUE(RemoveUnused(context).ok());
  std::vector<std::string> nodes;
  const auto order = graph.Order();
  EXPECT_TRUE(order.ok()) << order.status();
  for (graph::NodeId id : *order) {
    const graph::Node& node = graph.node(id);
    nodes.push_back(std::string(node.op->name) + ":" +
                    std::string(DTypeName(graph.value(node.outputs[0]).type.dtype)));
  }
  return nodes;
}

using Nodes = std::vector<std::string>;

Attributes To(DType dtype) {
  Attributes attributes;
  attributes.Set("to", static_cast<std::int64_t>(dtype));
  return attributes;
}

TEST(WidenTest, OnlyTheEndsAreNarrow) {
  GraphBuilder b;
  const auto x = b.Input("x", DType::kF16, {-1, 2});
  const auto w = b.Constant("w", *Tensor::Create(DType::kF16, {2, 3}));
  const auto m = b.Node("MatMul", {x, w}, "m");
  const auto t = b.Node("Transpose", {m}, "t");
  b.Output(b.Node("Relu", {t}, "y"));
  EXPECT_EQ(Widened(b.graph()), (Nodes{"Cast:float32", "MatMul:float32", "Transpose:float32",
                                       "Relu:float32", "Cast:float16"}));
}

TEST(WidenTest, ConstantsKeepTheirValues) {
  GraphBuilder b;
  const auto x = b.Input("x", DType::kBF16, {1});
  Tensor c = *Tensor::Create(DType::kBF16, {1});
  c.set(0, BFloat16(1.5f));
  b.Output(b.Node("Add", {x, b.Constant("c", c)}, "y"));
  EXPECT_EQ(Widened(b.graph()), (Nodes{"Cast:float32", "Add:float32", "Cast:bfloat16"}));
  for (graph::NodeId id = 0; id < b.graph().node_count(); ++id)
    if (std::string(b.graph().node(id).op->name) == "Add") {
      const graph::ValueInfo& wide = b.graph().value(b.graph().node(id).inputs[1]);
      EXPECT_EQ(wide.constant.at<float>(0), 1.5f);
    }
}

TEST(WidenTest, WhatOnlyMovesStaysNarrow) {
  GraphBuilder b;
  const auto table = b.Constant("table", *Tensor::Create(DType::kF16, {100, 4}));
  const auto rows = b.Node("Gather", {table, b.Input("i", DType::kI64, {-1})}, "rows");
  b.Output(b.Node("Transpose", {rows}, "columns"));
  b.Output(b.Node("Exp", {rows}, "y"));
  EXPECT_EQ(Widened(b.graph()), (Nodes{"Gather:float16", "Transpose:float16", "Cast:float32",
                                       "Exp:float32", "Cast:float16"}));
}

TEST(WidenTest, ACastRoundsAndReadsUnrounded) {
  GraphBuilder b;
  const auto x = b.Input("x", DType::kF32, {4});
  const auto narrow = b.Node("Cast", {x}, "narrow", To(DType::kF16));
  const auto e = b.Node("Exp", {narrow}, "e");
  b.Output(b.Node("Cast", {e}, "y", To(DType::kF64)));
  EXPECT_EQ(Widened(b.graph()),
            (Nodes{"Cast:float16", "Cast:float32", "Exp:float32", "Cast:float64"}));
}

TEST(WidenTest, TypesWithAMeaningStay) {
  GraphBuilder b;
  const auto x = b.Input("x", DType::kF16, {4});
  const auto e = b.Node("Exp", {x}, "e");
  b.Output(b.Node("BitCast", {e}, "bits", To(DType::kI16)));
  b.Output(b.Node("CastLike", {b.Input("f", DType::kF32, {4}), e}, "like"));
  b.Output(b.Node("SequenceConstruct", {e}, "sequence"));
  const Nodes nodes = Widened(b.graph());
  EXPECT_EQ(std::count(nodes.begin(), nodes.end(), "Cast:float16"), 1);
  EXPECT_EQ(std::count(nodes.begin(), nodes.end(), "CastLike:float16"), 1);
}

TEST(WidenTest, KeptValuesHaveTheirDeclaredType) {
  GraphBuilder b;
  const auto x = b.Input("x", DType::kF16, {4});
  const auto e = b.Node("Exp", {x}, "e");
  b.Output(b.Node("Relu", {e}, "y"));
  EXPECT_EQ(Widened(b.graph(), {"e"}), (Nodes{"Cast:float32", "Exp:float32", "Relu:float32",
                                              "Cast:float16", "Cast:float16"}));
  int found = 0;
  for (graph::ValueId id = 0; id < b.graph().value_count(); ++id)
    if (b.graph().value(id).name == "e") {
      EXPECT_EQ(b.graph().value(id).type.dtype, DType::kF16);
      ++found;
    }
  EXPECT_EQ(found, 1);
}

TEST(WidenTest, TheReferenceDeviceComputesWhatTheGraphSays) {
  EXPECT_TRUE((*device::FindDevice("reference"))->capabilities().half_arithmetic);
  EXPECT_FALSE((*device::FindDevice("cpu"))->capabilities().half_arithmetic);
}

}  // namespace
}  // namespace npurt::compile
