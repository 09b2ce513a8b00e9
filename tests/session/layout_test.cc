// Regions of a graph whose images have their channels last give what the reference device gives.
#include <gtest/gtest.h>

#include <cmath>

#include "compile/compile.h"
#include "session/run.h"
#include "session/session.h"
#include "support/graphs.h"

namespace npurt::session {
namespace {

using graph::ValueId;
using npurt::testing::GraphBuilder;
using npurt::testing::RandomTensor;
using D = std::vector<std::int64_t>;

Attributes With(std::initializer_list<Attribute> list) {
  Attributes attributes;
  for (const Attribute& a : list) attributes.Set(a.name, a.value);
  return attributes;
}
Attributes Padded(std::int64_t pad, std::int64_t stride = 1, std::int64_t group = 1) {
  return With({{"pads", D{pad, pad, pad, pad}}, {"strides", D{stride, stride}}, {"group", group}});
}

struct Net : GraphBuilder {
  unsigned seed = 1;
  ValueId Conv(ValueId x, const D& w, const std::string& name, Attributes attributes) {
    const std::string n = std::to_string(seed);
    const ValueId weights = Random("w" + n, w, seed++), bias = Random("b" + n, {w[0]}, seed++);
    return Node("Conv", {x, weights, bias}, name, std::move(attributes));
  }
};

std::vector<Tensor> RunOn(const std::shared_ptr<graph::Graph>& graph, const std::string& device,
                          const std::vector<Tensor>& inputs, const std::string& isa,
                          const std::string& folding) {
  std::vector<Tensor> outputs;
  options::Options options;
  EXPECT_TRUE(options.Set("device", device).ok());
  EXPECT_TRUE(options.Set("max_isa", isa).ok());
  EXPECT_TRUE(options.Set("constant_folding", folding).ok());
  const auto session = Session::Create(options, {});
  EXPECT_TRUE(session.ok()) << session.status();
  EXPECT_TRUE((*session)->AddGraph(graph, "", {}).ok());
  const auto run = (*session)->NewRun(0);
  EXPECT_TRUE(run.ok()) << run.status();
  for (std::size_t i = 0; i < inputs.size(); ++i)
    EXPECT_TRUE((*run)->BindInput(static_cast<int>(i), Value(inputs[i])).ok());
  EXPECT_TRUE((*run)->Execute({}).ok());
  for (std::size_t i = 0; i < graph->output_count(); ++i) {
    const auto value = (*run)->Output(static_cast<int>(i));
    EXPECT_TRUE(value.ok()) << value.status();
    if (value.ok()) outputs.push_back(value->tensor());
  }
  return outputs;
}

void ExpectSame(const std::shared_ptr<graph::Graph>& graph, const std::vector<Tensor>& inputs) {
  const std::vector<Tensor> want = RunOn(graph, "reference", inputs, "best", "true");
  const char* const settings[][2] = {
      {"generic", "true"}, {"avx2", "true"}, {"best", "true"}, {"best", "false"}};
  for (const auto& [isa, folding] : settings) {
    const std::vector<Tensor> got = RunOn(graph, "cpu", inputs, isa, folding);
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t i = 0; i < want.size(); ++i) {
      const Tensor &a = got[i], &b = want[i];
      ASSERT_EQ(a.dims(), b.dims());
      double largest = 0;
      for (std::int64_t k = 0; k < b.element_count(); ++k)
        largest = std::max(largest, std::abs(static_cast<double>(b.at<float>(k))));
      for (std::int64_t k = 0; k < b.element_count(); ++k)
        ASSERT_NEAR(a.at<float>(k), b.at<float>(k), 5e-4 * largest)
            << isa << ", folding " << folding << ", output " << i << ", element " << k;
    }
  }
}

// How many nodes of each operator the pass left, by name.
int Count(const graph::Graph& graph, absl::string_view op) {
  int count = 0;
  for (int id = 0; id < graph.node_count(); ++id)
    count += !graph.node(id).removed && op == graph.node(id).op->name;
  return count;
}

std::unique_ptr<graph::Graph> Laid(const graph::Graph& graph, HashSet<std::string> keep = {}) {
  compile::CompileOptions options;
  options.keep = std::move(keep);
  auto clone = graph.Clone();
  compile::PassContext context{*clone, options};
  EXPECT_TRUE(compile::ChooseLayouts(context).ok());
  EXPECT_TRUE(compile::RemoveUnused(context).ok());
  return clone;
}

// A net with all that a region may hold.
std::shared_ptr<graph::Graph> WholeNet(Net& net, D input) {
  const ValueId x = net.Input("x", DType::kF32, std::move(input));
  ValueId y = net.Node("Relu", {net.Conv(x, {24, 3, 3, 3}, "stem", Padded(1, 2))}, "stem_relu");
  y = net.Node("MaxPool", {y}, "pool",
               With({{"kernel_shape", D{3, 3}}, {"pads", D{1, 1, 1, 1}}, {"strides", D{1, 1}}}));
  const ValueId skip = y;
  y = net.Conv(y, {24, 1, 3, 3}, "depthwise", Padded(1, 1, 24));
  // Squeeze and excitation: an image of one pixel, broadcast.
  ValueId gate = net.Node("GlobalAveragePool", {y}, "squeezed");
  gate = net.Node("Sigmoid", {net.Conv(gate, {24, 24, 1, 1}, "excite", {})}, "gate");
  y = net.Node("Mul", {y, gate}, "gated");
  y = net.Node("Add", {y, skip}, "sum");
  y = net.Node("PRelu", {y, net.Random("slope", {24, 1, 1}, 77)}, "prelu");
  y = net.Node("Mul", {y, net.Floats("two", {}, {2})}, "doubled");
  const ValueId parts[] = {net.Conv(y, {40, 24, 3, 3}, "left", Padded(1)),
                           net.Conv(y, {16, 24, 1, 1}, "right", {})};
  y = net.Node("Concat", {parts[0], parts[1]}, "joined", With({{"axis", std::int64_t{1}}}));
  y = net.Node("Resize", {y, graph::kNone, net.Floats("scales", {4}, {1, 1, 2, 2})}, "resized",
               With({{"mode", std::string("linear")}}));
  y = net.Node("Pad", {y, net.Constant("pads", Tensor::Int64s({0, 0, 1, 2, 0, 0, 0, 1}))}, "padded");
  y = net.Node("AveragePool", {y}, "average",
               With({{"kernel_shape", D{2, 2}}, {"strides", D{2, 2}}, {"ceil_mode", std::int64_t{1}}}));
  y = net.Conv(y, {48, 56, 3, 3}, "last", Padded(2));
  y = net.Node("Softmax", {y}, "shares", With({{"axis", std::int64_t{1}}}));
  net.Output(y);
  net.Output(net.Node("ReduceMean", {y, net.Constant("axes", Tensor::Int64s({-2, -1}))}, "mean"));
  return net.Take();
}

TEST(LayoutTest, AWholeNetHasTransposesAtItsEdgesOnly) {
  Net net;
  const auto graph = WholeNet(net, {1, 3, 64, 48});
  const auto laid = Laid(*graph);
  // In, out, and the mean of one pixel, which moves nothing.
  EXPECT_EQ(Count(*laid, "Transpose"), 3);
  EXPECT_EQ(Count(*laid, "GlobalAveragePool"), 0);
  for (int id = 0; id < laid->node_count(); ++id) {
    const graph::Node& node = laid->node(id);
    if (node.removed || absl::string_view(node.op->name) != "Conv") continue;
    EXPECT_EQ(node.attributes.String("data_format", ""), "NHWC") << node.name;
  }
  ExpectSame(graph, {RandomTensor({1, 3, 64, 48}, 5)});
}

TEST(LayoutTest, ShufflesSlicesAndNormalisationsFollow) {
  Net net;
  ValueId y = net.Input("x", DType::kF32, {2, 32, 20, 24});
  y = net.Conv(y, {48, 32, 3, 3}, "first", Padded(1));
  net.Output(net.Node("BatchNormalization",
                      {y, net.Random("scale", {48}, 21), net.Random("bias", {48}, 22),
                       net.Random("mean", {48}, 23),
                       net.Floats("variance", {48}, std::vector<float>(48, 1.5f))},
                      "normal"));
  y = net.Node("Reshape", {y, net.Constant("s5", Tensor::Int64s({2, 3, 16, 20, 24}))}, "split");
  y = net.Node("Transpose", {y}, "swap", With({{"perm", D{0, 2, 1, 3, 4}}}));
  y = net.Node("Reshape", {y, net.Constant("s4", Tensor::Int64s({2, 48, 20, 24}))}, "shuffled");
  y = net.Node("Slice",
               {y, net.Constant("from", Tensor::Int64s({5})),
                net.Constant("to", Tensor::Int64s({45})), net.Constant("axis", Tensor::Int64s({1}))},
               "sliced");
  net.Output(net.Conv(y, {40, 40, 3, 3}, "last", Padded(1)));
  const auto graph = net.Take();
  const auto laid = Laid(*graph);
  EXPECT_EQ(Count(*laid, "BatchNormalization"), 0);
  EXPECT_EQ(Count(*laid, "Transpose"), 4);  // in, two out, and the shuffle's own
  ExpectSame(graph, {RandomTensor({2, 32, 20, 24}, 9)});
}

TEST(LayoutTest, UnknownSizesAndBatchesGoWithIt) {
  Net net;
  const auto graph = WholeNet(net, {-1, 3, -2, -3});
  EXPECT_EQ(Count(*Laid(*graph), "GlobalAveragePool"), 0);
  ExpectSame(graph, {RandomTensor({2, 3, 37, 41}, 6)});
  ExpectSame(graph, {RandomTensor({1, 3, 16, 20}, 7)});
}

TEST(LayoutTest, ValuesThatMustStayAreGivenInTheirOwnOrder) {
  Net net;
  const auto graph = WholeNet(net, {1, 3, 64, 48});
  const auto laid = Laid(*graph, {"sum"});
  EXPECT_EQ(Count(*laid, "Transpose"), 4);
  const ValueId sum = laid->Find("sum");
  EXPECT_STREQ(laid->node(laid->value(sum).producer).op->name, "Transpose");
  EXPECT_TRUE(laid->value(sum).type.dims[1].Is(24));
}

TEST(LayoutTest, AConstantImageIsTurnedToo) {
  Net net;
  const ValueId image = net.Random("image", {1, 32, 30, 30}, 31);
  const ValueId x = net.Input("x", DType::kF32, {1, 40, 30, 30});
  net.Output(net.Node("Add", {net.Conv(image, {40, 32, 3, 3}, "y", Padded(1)), x}, "sum"));
  ExpectSame(net.Take(), {RandomTensor({1, 40, 30, 30}, 10)});
}

TEST(LayoutTest, SignalsFollowToo) {
  Net net;
  const auto padded = [](std::int64_t pad, std::int64_t stride, std::int64_t group) {
    return With({{"pads", D{pad, pad}}, {"strides", D{stride}}, {"group", group}});
  };
  // A bank of filters over a signal, then layers of a small net.
  const ValueId x = net.Input("x", DType::kF32, {-1, 1, -2});
  ValueId y = net.Node("Relu", {net.Conv(x, {40, 1, 64}, "filters", padded(0, 16, 1))}, "relu");
  const ValueId skip = y;
  y = net.Conv(y, {40, 1, 5}, "depthwise", padded(2, 1, 40));
  y = net.Node("Add", {y, skip}, "sum");
  y = net.Node("MaxPool", {y}, "pool", With({{"kernel_shape", D{2}}, {"strides", D{2}}}));
  y = net.Conv(y, {24, 40, 3}, "last", padded(1, 1, 1));
  net.Output(y);
  net.Output(net.Node("GlobalAveragePool", {y}, "mean"));
  const auto graph = net.Take();
  // In, out, and the mean of one place, which moves nothing.
  EXPECT_EQ(Count(*Laid(*graph), "Transpose"), 3);
  ExpectSame(graph, {RandomTensor({1, 1, 1000}, 5)});
  ExpectSame(graph, {RandomTensor({3, 1, 333}, 6)});
}

TEST(LayoutTest, WhoCostsMoreThanHeSavesLeavesTheRegion) {
  Net net;
  ValueId y = net.Input("x", DType::kF32, {1, 32, 40, 40});
  y = net.Node("Relu", {net.Conv(y, {64, 32, 3, 3}, "a", Padded(1))}, "relu");
  y = net.Node("MaxPool", {y}, "pool",
               With({{"kernel_shape", D{8, 8}}, {"strides", D{8, 8}}}));
  // Most of it comes from elsewhere and goes elsewhere.
  y = net.Node("Concat", {y, net.Input("z", DType::kF32, {1, 900, 5, 5})}, "joined",
               With({{"axis", std::int64_t{1}}}));
  net.Output(y);
  const auto graph = net.Take();
  const auto laid = Laid(*graph);
  EXPECT_EQ(Count(*laid, "Transpose"), 2);
  EXPECT_EQ(laid->node(laid->value(laid->Find("joined")).producer).attributes.Int("axis"), 1);
  ExpectSame(graph, {RandomTensor({1, 32, 40, 40}, 8), RandomTensor({1, 900, 5, 5}, 9)});
}

TEST(LayoutTest, ALoneSmallConvolutionIsNotWorthTwoTransposes) {
  Net net;
  const ValueId x = net.Input("x", DType::kF32, {1, 4, 64, 64});
  net.Output(net.Conv(x, {8, 4, 1, 1}, "y", {}));
  const auto graph = net.Take();
  EXPECT_EQ(Count(*Laid(*graph), "Transpose"), 0);
}

TEST(LayoutTest, WhatCannotFollowKeepsItsOrder) {
  Net net;
  ValueId y = net.Input("x", DType::kF32, {1, 32, 28, 28});
  y = net.Conv(y, {64, 32, 3, 3}, "a", Padded(1));
  y = net.Node("Mul", {y, net.Random("per_column", {28}, 3)}, "m");
  y = net.Conv(y, {64, 16, 3, 3}, "grouped", Padded(1, 1, 4));
  y = net.Conv(y, {64, 64, 3, 3}, "b", Padded(1));
  net.Output(y);
  const auto graph = net.Take();
  ExpectSame(graph, {RandomTensor({1, 32, 28, 28}, 8)});
  const auto laid = Laid(*graph);
  const graph::Node& m = laid->node(laid->value(laid->Find("m")).producer);
  EXPECT_STREQ(m.op->name, "Mul");
  EXPECT_STREQ(laid->node(laid->value(m.inputs[0]).producer).op->name, "Transpose");
}

}  // namespace
}  // namespace npurt::session
