// Old forms of operators, as graph text in the newest form.
#include "formats/onnx/adapters.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "formats/onnx/reader.h"
#include "gmock/gmock.h"
#include "graph/text.h"
#include "gtest/gtest.h"
#include "support/onnx_builder.h"

namespace npurt::formats::onnx {
namespace {

namespace build = tests::onnx;
using ::testing::HasSubstr;
using ::testing::Not;

// The text of a graph with this one node of version `opset`; inputs are float32 of the given
// shapes.
std::string Lower(int opset, const char* op,
                  const std::vector<std::vector<build::Dimension>>& inputs, int outputs,
                  const std::vector<std::string>& attributes,
                  const std::vector<std::string>& initializers = {}) {
  build::Graph graph;
  std::vector<std::string> names;
  for (const auto& dims : inputs) {
    names.push_back(absl::StrCat("x", names.size()));
    graph.Input(names.back(), build::kFloat, dims);
  }
  for (const std::string& tensor : initializers) {
    names.push_back(absl::StrCat("x", names.size()));
    graph.Initializer(tensor);
  }
  std::vector<std::string> out;
  for (int i = 0; i < outputs; ++i) out.push_back(absl::StrCat("y", i));
  graph.Node(op, names, out, {.name = "n", .attributes = attributes});
  const auto model =
      ReadModelFromMemory(build::Model(graph.Output("y0"), {.opset = opset}), "", nullptr);
  if (!model.ok()) return model.status().ToString();
  for (int i = 0; i < model->graph->node_count(); ++i) {  // helpers stand for the caller's node too
    EXPECT_EQ(model->graph->node(i).origins, std::vector<std::string>{"n"});
    EXPECT_EQ(model->graph->node(i).original_op, op);
  }
  return graph::ToText(*model->graph);
}

TEST(AdaptersTest, AlignsTheSecondOperandAtItsAxis) {
  const std::string text =
      Lower(6, "Add", {{2, 3, 4, 5}, {3}}, 1,
            {build::IntAttribute("broadcast", 1), build::IntAttribute("axis", 1)});
  EXPECT_THAT(text, HasSubstr("const %y0/axes = int64[2] {1, 2}"));
  EXPECT_THAT(text, HasSubstr("%y0 = Add(%x0, %y0/Unsqueeze)"));
  EXPECT_THAT(text, HasSubstr("# float32[2, 3, 4, 5]"));
  EXPECT_THAT(Lower(6, "Add", {{2, 3}, {3}}, 1, {build::IntAttribute("broadcast", 1)}),
              HasSubstr("%y0 = Add(%x0, %x1) name"));
  EXPECT_THAT(Lower(7, "Add", {{2, 3}, {3}}, 1, {build::IntAttribute("broadcast", 1)}),
              HasSubstr("attribute 'broadcast' is not supported"));
}

TEST(AdaptersTest, NumbersThatAreNoneAreRefusedOrZero) {
  const float nan = std::nanf("");
  EXPECT_THAT(Lower(1, "LpPool", {{1, 1, 4, 4}}, 1, {build::FloatAttribute("p", nan)}),
              HasSubstr("want an integer"));
  EXPECT_THAT(Lower(1, "LpPool", {{1, 1, 4, 4}}, 1, {build::FloatAttribute("p", 1e30f)}),
              HasSubstr("want an integer"));
}

TEST(AdaptersTest, SoftmaxFlattensBeforeVersion13) {
  const std::string text = Lower(11, "Softmax", {{2, 3, 4}}, 1, {});
  EXPECT_THAT(text, HasSubstr("Flatten(%x0) [axis = 1]"));
  EXPECT_THAT(text, HasSubstr("Softmax(%y0/Flatten) [axis = -1]"));
  EXPECT_THAT(text, HasSubstr("%y0 = Reshape(%y0/Softmax, %y0/Shape) [allowzero = 1]"));
  EXPECT_THAT(text, HasSubstr("# float32[2, 3, 4]"));
  EXPECT_THAT(Lower(11, "Softmax", {{2, 3}}, 1, {}), HasSubstr("%y0 = Softmax(%x0) [axis = -1]"));
  EXPECT_THAT(Lower(13, "Softmax", {{2, 3, 4}}, 1, {}), HasSubstr("%y0 = Softmax(%x0) name"));
}

TEST(AdaptersTest, AttributesBecomeInputs) {
  EXPECT_THAT(Lower(11, "Squeeze", {{2, 1, 3}}, 1, {build::IntsAttribute("axes", {1})}),
              HasSubstr("%y0 = Squeeze(%x0, %y0/axes) name"));
  EXPECT_THAT(Lower(11, "ReduceMean", {{2, 3}}, 1, {build::IntsAttribute("axes", {1})}),
              HasSubstr("ReduceMean(%x0, %y0/axes)"));
  EXPECT_THAT(Lower(6, "Clip", {{2}}, 1, {build::FloatAttribute("max", 6)}),
              HasSubstr("Clip(%x0, %y0/min, %y0/max)"));
  EXPECT_THAT(Lower(1, "Clip", {{2}}, 1, {build::FloatAttribute("max", 6)}),
              HasSubstr("Clip(%x0, _, %y0/max)"));
  EXPECT_THAT(
      Lower(2, "Pad", {{2, 2}}, 1,
            {build::IntsAttribute("pads", {0, 1, 0, 1}), build::FloatAttribute("value", 2)}),
      HasSubstr("Pad(%x0, %y0/pads, %y0/value)"));
  EXPECT_THAT(Lower(9, "Slice", {{5, 5}}, 1,
                    {build::IntsAttribute("starts", {1}), build::IntsAttribute("ends", {3}),
                     build::IntsAttribute("axes", {1})}),
              HasSubstr("# float32[5, 2]"));
  EXPECT_THAT(Lower(9, "TopK", {{5}}, 2, {build::IntAttribute("k", 3)}),
              HasSubstr("# float32[3], int64[3]"));
  EXPECT_THAT(Lower(2, "Split", {{6}}, 2, {build::IntsAttribute("split", {2, 4})}),
              HasSubstr("# float32[2], float32[4]"));
  EXPECT_THAT(Lower(2, "Split", {{6}}, 3, {}), HasSubstr("num_outputs = 3"));
  EXPECT_THAT(Lower(1, "Reshape", {{6}}, 1, {build::IntsAttribute("shape", {2, 3})}),
              HasSubstr("# float32[2, 3]"));
}

TEST(AdaptersTest, UpsampleAndOldResizeAreAsymmetric) {
  const std::string text =
      Lower(7, "Upsample", {{1, 1, 2, 3}}, 1, {build::FloatsAttribute("scales", {1, 1, 2, 2})});
  EXPECT_THAT(text, HasSubstr("Resize(%x0, _, %y0/scales)"));
  EXPECT_THAT(text, HasSubstr("coordinate_transformation_mode = \"asymmetric\""));
  EXPECT_THAT(text, HasSubstr("from \"Upsample\""));
  EXPECT_THAT(text, HasSubstr("# float32[1, 1, 4, 6]"));
  EXPECT_THAT(
      Lower(10, "Resize", {{1, 1, 2, 3}}, 1, {}, {build::FloatTensor("x1", {4}, {1, 1, 2, 2})}),
      HasSubstr("# float32[1, 1, 4, 6]"));
  EXPECT_THAT(
      Lower(1, "Upsample", {{1, 1, 2, 3}}, 1,
            {build::FloatAttribute("height_scale", 2), build::FloatAttribute("width_scale", 1),
             build::StringAttribute("mode", "bilinear")}),
      HasSubstr("mode = \"linear\""));
}

TEST(AdaptersTest, NormalisationKeepsOnlyInference) {
  const std::vector<std::vector<build::Dimension>> inputs = {{2, 3, 4}, {3}, {3}, {3}, {3}};
  const std::string text =
      Lower(7, "BatchNormalization", inputs, 5, {build::IntAttribute("spatial", 1)});
  EXPECT_THAT(text, HasSubstr("%y0 = BatchNormalization("));
  EXPECT_THAT(text, Not(HasSubstr("%y1")));
  const std::vector<std::vector<build::Dimension>> per_element = {
      {2, 3, 4}, {3, 4}, {3, 4}, {3, 4}, {3, 4}};
  EXPECT_THAT(Lower(7, "BatchNormalization", per_element, 1, {build::IntAttribute("spatial", 0)}),
              HasSubstr("%y0 = Add(%y0/Mul, %x2)"));
  EXPECT_THAT(Lower(6, "Dropout", {{2}}, 2,
                    {build::FloatAttribute("ratio", 0.5), build::IntAttribute("is_test", 1)}),
              HasSubstr("%y0 = Dropout(%x0) name"));
}

TEST(AdaptersTest, NewerDefaultsAreWrittenOut) {
  EXPECT_THAT(Lower(3, "Concat", {{2, 3}, {2, 3}}, 1, {}), HasSubstr("# float32[2, 6]"));
  EXPECT_THAT(Lower(5, "Cast", {{2}}, 1, {build::StringAttribute("to", "INT64")}),
              HasSubstr("# int64[2]"));
  EXPECT_THAT(Lower(5, "Selu", {{2}}, 1, {}), HasSubstr("alpha = 1.6732, gamma = 1.0507"));
  EXPECT_THAT(Lower(6, "PRelu", {{2, 3, 4}, {3}}, 1, {}), HasSubstr("PRelu(%x0, %y0/Unsqueeze)"));
}

TEST(AdaptersTest, TakesFusionsApart) {
  graph::Graph graph;
  const auto x = graph.AddInput("x", ValueType::OfTensor(DType::kF32, {2, 4}));
  const auto w = graph.AddInput("w", ValueType::OfTensor(DType::kF32, {4}));
  OnnxNode node;
  node.domain = "com.microsoft";
  node.type = "SkipLayerNormalization";
  node.name = "n";
  node.inputs = {*x, *x, *w};
  node.outputs = {"y", "", "", "sum"};
  const auto lowered = AddOnnxNode(&graph, std::move(node));
  ASSERT_TRUE(lowered.ok()) << lowered.status();
  EXPECT_EQ(lowered->outputs[3], graph.Find("sum"));
  EXPECT_EQ(lowered->outputs[0], graph.Find("y"));
  EXPECT_EQ(lowered->outputs[1], graph::kNone);
}

// The text of a com.microsoft node; an input without dimensions is absent.
std::string LowerMicrosoft(const char* op, const std::vector<SymDims>& inputs, Attributes attributes,
                           int outputs = 1) {
  graph::Graph graph;
  OnnxNode node;
  node.domain = "com.microsoft";
  node.type = op;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    node.inputs.push_back(
        inputs[i].empty() ? graph::kNone
                          : *graph.AddInput(absl::StrCat("x", i),
                                            ValueType::OfTensor(i == 5 || i == 6 ? DType::kI32
                                                                                 : DType::kF32,
                                                                inputs[i])));
  for (int i = 0; i < outputs; ++i) node.outputs.push_back(absl::StrCat("y", i));
  node.attributes = std::move(attributes);
  const auto lowered = AddOnnxNode(&graph, std::move(node));
  return lowered.ok() ? graph::ToText(graph) : lowered.status().ToString();
}

TEST(AdaptersTest, UnpacksQueriesKeysAndValues) {
  const Attributes heads = MakeAttributes({{"num_heads", std::int64_t{3}}});
  const std::string text = LowerMicrosoft("MultiHeadAttention", {{2, 5, 3, 3, 8}}, heads);
  EXPECT_THAT(text, HasSubstr("Split(%x0) [axis = 3, num_outputs = 3]"));
  EXPECT_THAT(text, HasSubstr("Attention(%y0/Reshape, "));
  EXPECT_THAT(text, HasSubstr("# float32[2, 5, 24]"));
  EXPECT_THAT(LowerMicrosoft("MultiHeadAttention", {{2, 5, 24}, {2, 7, 3, 2, 8}}, heads),
              HasSubstr("Split(%x1) [axis = 3, num_outputs = 2]"));
  EXPECT_THAT(LowerMicrosoft("MultiHeadAttention", {{2, 5, 24}}, heads),
              HasSubstr("packed operands of this rank"));
}

TEST(AdaptersTest, RotatesBeforeKeysAreKept) {
  Attributes attributes = MakeAttributes({{"num_heads", std::int64_t{4}},
                                          {"kv_num_heads", std::int64_t{2}},
                                          {"do_rotary", std::int64_t{1}}});
  const std::vector<SymDims> inputs = {{1, 3, 128}, {}, {}, {1, 2, 7, 16}, {1, 2, 7, 16}, {1},
                                       {1},         {32, 4}, {32, 4}};
  const std::string text = LowerMicrosoft("GroupQueryAttention", inputs, attributes, 3);
  EXPECT_THAT(text, HasSubstr("int64[3] {64, 32, 32}"));
  EXPECT_THAT(text, HasSubstr("num_heads = 4, rotary_embedding_dim = 8"));
  EXPECT_THAT(text, HasSubstr("num_heads = 2, rotary_embedding_dim = 8"));
  EXPECT_THAT(text, HasSubstr("GroupQueryAttention(%y0/RotaryEmbedding, "));
  attributes.Set("sliding_window_cache", std::int64_t{1});
  EXPECT_THAT(LowerMicrosoft("GroupQueryAttention", inputs, attributes, 3),
              HasSubstr("attribute 'sliding_window_cache'"));
}

// FlexAttention with `body` as its score_mod, over q of the given heads.
std::string LowerFlex(const build::Graph& body, int heads,
                      std::vector<std::string> attributes = {}) {
  attributes.push_back(build::GraphAttribute("score_mod", body.bytes()));
  build::Graph graph;
  graph.Input("q", build::kFloat, {2, heads, "rows", 16})
      .Input("k", build::kFloat, {2, 2, "keys", 16})
      .Input("v", build::kFloat, {2, 2, "keys", 8})
      .Input("bias", build::kFloat, {"keys"})
      .Node("FlexAttention", {"q", "k", "v"}, {"y"},
            {.name = "n", .domain = "ai.onnx.preview", .attributes = std::move(attributes)})
      .Output("y");
  const auto model = ReadModelFromMemory(
      build::Model(graph, {.opset = 26, .more_opsets = {{"ai.onnx.preview", 1}}}), "", nullptr);
  return model.ok() ? graph::ToText(*model->graph) : model.status().ToString();
}

TEST(AdaptersTest, WhatFlexAttentionDoesToScoresStandsInTheGraph) {
  build::Graph body;
  body.Input("s", build::kFloat, {"b", "h", "r", "k"}).Node("Add", {"s", "bias"}, {"t"}).Output("t");
  const std::string text = LowerFlex(body, 4);
  EXPECT_THAT(text, HasSubstr("const %y/scale = float32[] {0.25}"));
  EXPECT_THAT(text, HasSubstr("%y/Add = Add(%y/MatMul, %bias)"));
  EXPECT_THAT(text, HasSubstr("Softmax(%y/Add) [axis = -1]"));
  EXPECT_THAT(text, HasSubstr("int64[5] {1, 1, 2, 1, 1}"));
  EXPECT_THAT(text, HasSubstr("# float32[2, 4, rows, 8]"));
  EXPECT_THAT(LowerFlex(body, 2), Not(HasSubstr("Expand")));
  EXPECT_THAT(LowerFlex(body, 3), HasSubstr("3 heads of Q cannot share 2 heads of K"));
  EXPECT_THAT(LowerFlex(body, 4, {build::IntAttribute("softmax_precision", 7)}),
              HasSubstr("is int64[2, 4, rows, keys], the file declares float32"));
}

TEST(AdaptersTest, FlexAttentionRefusesScoresOfAnotherShape) {
  build::Graph body;
  body.Input("s", build::kFloat, {"b", "h", "r", "k"})
      .Node("ReduceMax", {"s"}, {"t"}, {.attributes = {build::IntAttribute("keepdims", 0)}})
      .Output("t");
  EXPECT_THAT(LowerFlex(body, 4), HasSubstr("'score_mod' makes"));
}

// Every adapter must look before it reads: files leave out what they like.
TEST(AdaptersTest, NoAdapterTrustsItsOperands) {
  static constexpr int kAny = 1'000;
  struct Row {
    const char* domain;
    const char* name;
    int since;
  };
  static constexpr Row kRows[] = {
#define NPURT_ALIAS(domain, name, since, until, type, adapter) {domain, name, since + 0 * (until)},
#include "formats/onnx/aliases.inc"
#undef NPURT_ALIAS
  };
  const std::vector<std::vector<build::Dimension>> shapes = {{}, {1}, {3}, {2, 3}, {"n", 3, "m"}};
  int refused = 0;
  for (const Row& row : kRows)
    for (std::size_t inputs = 0; inputs < 10; ++inputs)
      for (std::size_t first = 0; first < shapes.size(); ++first) {
        build::Graph graph;
        std::vector<std::string> names;
        for (std::size_t i = 0; i < inputs; ++i) {
          names.push_back((i + first) % 3 == 0 ? "" : absl::StrCat("x", i));
          graph.Input(absl::StrCat("x", i), build::kFloat, shapes[(first + i) % shapes.size()]);
        }
        graph.Node(
            row.name, names, {"y"},
            {.domain = row.domain,
             .attributes = {build::IntAttribute("axis", 7), build::IntAttribute("broadcast", 1),
                            build::IntsAttribute("border", {1, 2}),
                            build::IntAttribute("num_scan_inputs", 9),
                            build::IntAttribute("num_heads", 1),
                            build::IntAttribute("do_rotary", row.name[0] == 'G')}});
        refused += !ReadModelFromMemory(
                        build::Model(
                            graph, {.opset = row.since, .more_opsets = {{row.domain, row.since}}}),
                        "", nullptr)
                        .ok();
      }
  EXPECT_GT(refused, 0);
}

TEST(AdaptersTest, TheNewestVersionNeedsNone) {
  graph::Graph graph;
  const auto x = graph.AddInput("x", ValueType::OfTensor(DType::kF32, {2, 4}));
  OnnxNode node;
  node.type = "Softmax";  // version 0: the newest
  node.inputs = {*x};
  node.outputs = {"y"};
  ASSERT_TRUE(AddOnnxNode(&graph, std::move(node)).ok());
  EXPECT_EQ(graph.node_count(), 1);
}

}  // namespace
}  // namespace npurt::formats::onnx
