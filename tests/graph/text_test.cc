#include "graph/text.h"

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace npurt::graph {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

ValueId Must(absl::StatusOr<ValueId> id) {
  EXPECT_TRUE(id.ok()) << id.status();
  return id.ok() ? *id : kNone;
}

// Prints, parses and prints again: both texts must be the same.
std::unique_ptr<Graph> RoundTrip(const Graph& graph) {
  const std::string text = ToText(graph);
  auto parsed = FromText(text);
  EXPECT_TRUE(parsed.ok()) << parsed.status() << "\n" << text;
  if (!parsed.ok()) return nullptr;
  EXPECT_EQ(ToText(**parsed), text);
  return *std::move(parsed);
}

std::unique_ptr<Graph> SmallGraph() {
  auto graph = std::make_unique<Graph>();
  graph->name = "small \"graph\"";
  const ValueId x = Must(
      graph->AddInput("x", ValueType::OfTensor(DType::kF32, {graph->NamedDim("batch", ""), 4})));
  const ValueId w = Must(graph->AddConstant("w", *Tensor::FromSpan<float>({4}, {1, -2, 0.1f, 4})));
  const auto add = graph->AddNode({.op = "Add",
                                   .name = "add",
                                   .original_op = "",
                                   .inputs = {x, w},
                                   .outputs = {"a b"},
                                   .attributes = {},
                                   .control = {}});
  EXPECT_TRUE(add.ok()) << add.status();
  NodeSpec spec;
  spec.op = "Softmax";
  spec.original_op = "SoftmaxV2";
  spec.inputs = {graph->node(*add).outputs[0]};
  spec.outputs = {"y"};
  spec.attributes.Set("axis", std::int64_t{-1});
  spec.control = {*add};
  const auto softmax = graph->AddNode(std::move(spec));
  EXPECT_TRUE(softmax.ok()) << softmax.status();
  graph->mutable_node(*softmax).origins = {"softmax", "and\nmore"};
  EXPECT_TRUE(graph->AddOutput(graph->Find("y"), "the output").ok());
  return graph;
}

TEST(GraphTextTest, ReadsLikeAProgram) {
  EXPECT_EQ(ToText(*SmallGraph()),
            "graph \"small \\\"graph\\\"\" {\n"
            "  input %x : float32[batch, 4]\n"
            "  const %w = float32[4] {1.0, -2.0, 0.1, 4.0}\n"
            "  @0 %\"a b\" = Add(%x, %w) name \"add\"  # float32[batch, 4]\n"
            "  %y = Softmax(%\"a b\") [axis = -1] from \"SoftmaxV2\" origins [\"softmax\", "
            "\"and\\nmore\"] after @0  # float32[batch, 4]\n"
            "  output %y \"the output\"\n"
            "}\n");
}

TEST(GraphTextTest, RoundTripKeepsEverything) {
  const auto graph = RoundTrip(*SmallGraph());
  ASSERT_NE(graph, nullptr);
  EXPECT_EQ(graph->node(1).control, std::vector<NodeId>{0});
  EXPECT_EQ(graph->node(1).original_op, "SoftmaxV2");
  EXPECT_EQ(graph->node(1).attributes.Int("axis"), -1);
  EXPECT_EQ(graph->output_names()[0], "the output");
}

TEST(GraphTextTest, LargeConstantsStandAtTheEndOrAreLeftOut) {
  Graph graph;
  std::vector<float> values(100);
  for (int i = 0; i < 100; ++i) values[i] = 0.5f * i;
  Must(graph.AddConstant("c", *Tensor::FromSpan<float>({10, 10}, values)));
  EXPECT_THAT(ToText(graph), HasSubstr("\nblob #"));
  const auto parsed = RoundTrip(graph);
  ASSERT_NE(parsed, nullptr);
  EXPECT_EQ(parsed->value(parsed->Find("c")).constant.at<float>(99), 49.5f);
  const std::string dump = ToText(graph, {.blobs = false});
  EXPECT_THAT(dump, Not(HasSubstr("blob")));
  EXPECT_THAT(std::string(FromText(dump).status().message()),
              HasSubstr("value is not in the text"));
}

TEST(GraphTextTest, ElementsOfEveryTypeSurvive) {
  Graph graph;
  Must(graph.AddConstant(
      "f", *Tensor::FromSpan<float>({7}, {0.1f, 1e30f, -0.0f, INFINITY, -INFINITY, NAN,
                                          std::numeric_limits<float>::denorm_min()})));
  Must(graph.AddConstant("d", *Tensor::FromSpan<double>({2}, {0.1, 1e-300})));
  Must(graph.AddConstant("h", *Tensor::FromSpan<Half>({2}, {Half(0.1f), Half(65504.0f)})));
  Must(graph.AddConstant("b", *Tensor::FromSpan<BFloat16>({1}, {BFloat16(3.14f)})));
  Must(graph.AddConstant("i", *Tensor::FromSpan<std::int64_t>({2}, {INT64_MIN, INT64_MAX})));
  Must(graph.AddConstant("u", *Tensor::FromSpan<std::uint64_t>({1}, {UINT64_MAX})));
  Must(graph.AddConstant("i8", *Tensor::FromSpan<std::int8_t>({2}, {-128, 127})));
  Must(graph.AddConstant("flag", *Tensor::FromSpan<bool>({2}, {true, false})));
  Must(graph.AddConstant("s", *Tensor::FromSpan<std::string>({2}, {"\"\n\xff", "häuser"})));
  Must(graph.AddConstant("scalar", *Tensor::FromSpan<float>({}, {3})));
  Must(graph.AddConstant("empty", *Tensor::FromSpan<float>({0, 3}, {})));
  Must(graph.AddConstant("int4", *Tensor::Create(DType::kI4, {3})));
  const auto parsed = RoundTrip(graph);
  ASSERT_NE(parsed, nullptr);
  const Tensor& f = parsed->value(parsed->Find("f")).constant;
  EXPECT_EQ(f.at<float>(0), 0.1f);
  EXPECT_TRUE(std::signbit(f.at<float>(2)));
  EXPECT_TRUE(std::isnan(f.at<float>(5)));
  EXPECT_EQ(parsed->value(parsed->Find("s")).constant.at<std::string>(0), "\"\n\xff");
}

TEST(GraphTextTest, AttributesKeepTheirTypes) {
  // Types of attributes are checked against the operator, so each is parsed alone.
  const auto attribute = [](const char* text) {
    return FromText(absl::StrCat("graph \"\" {\n input %x : float32[2]\n %y = Relu(%x) [a = ", text,
                                 "]\n}\n"))
        .status();
  };
  for (const char* text :
       {"1", "-1", "1.0", "1e5", "nan", "-inf", "\"s\"", "[1, 2]", "ints[]", "[1.0]", "floats[]",
        "[\"a\"]", "strings[]", "tensor float32[1] {1}", "tensors[float32[] {1.5}]",
        "type sequence(float32[?])", "graph \"g\" {\n}"})
    EXPECT_THAT(std::string(attribute(text).message()), HasSubstr("has no attribute 'a'")) << text;
  for (const char* text : {"", "]", "[1, \"a\"]", "tensor float32[2] {1}", "type float", "graph"})
    EXPECT_THAT(std::string(attribute(text).message()), HasSubstr("line ")) << text;
}

TEST(GraphTextTest, VariablesAndTypesOfEveryKind) {
  Graph graph;
  Must(graph.AddVariable("v", ValueType::OfTensor(DType::kF32, {2}),
                         *Tensor::FromSpan<float>({2}, {1, 2})));
  Must(graph.AddVariable("unset", ValueType::OfTensor(DType::kI64), {}));
  Must(graph.AddInput(
      "seq", ValueType::SequenceOf(ValueType::OptionalOf(ValueType::OfTensor(DType::kString)))));
  const Dim n = graph.NamedDim("n", "");
  Must(graph.AddInput("dims", ValueType::OfTensor(DType::kF32, {n + 1, FloorDiv(n * n, 2),
                                                                graph.dims()->RunSymbol("r"),
                                                                graph.NamedDim("a b", "")})));
  const auto parsed = RoundTrip(graph);
  ASSERT_NE(parsed, nullptr);
  ASSERT_EQ(parsed->variables().size(), 2u);
  EXPECT_EQ(parsed->variables()[0].initial.at<float>(1), 2);
  EXPECT_FALSE(parsed->variables()[1].initial.defined());
}

TEST(GraphTextTest, SubgraphsInheritTheTypesOfWhatTheyCapture) {
  // No operator here has subgraphs, so the parser is asked alone.
  const auto graph = FromText(
      "graph \"body\" {\n"
      "  input %i : int64[]\n"
      "  capture %x : float32[batch, 2]\n"
      "  %y = Relu(%x)\n"
      "  output %y \"y\"\n"
      "}\n");
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ((*graph)->captures().size(), 1u);
  RoundTrip(**graph);
}

TEST(GraphTextTest, ErrorsHaveLineAndColumn) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "line 1, column 1: got the end"},
      {"graph \"g\" {\n  inputs %x : float32[2]\n}", "line 2, column 10: got '%', want '('"},
      {"graph \"g\" {\n  input %x : float33[2]\n}", "line 2, column 14: got 'float33'"},
      {"graph \"g\" {\n  %y = Relu(%x)\n}", "line 2, column 14: value 'x' is not defined before"},
      {"graph \"g\" {\n  input %x : float32[2]\n  %y = Relux(%x)\n}", "line 3, column 3: "},
      {"graph \"g\" {\n  const %c = float32[3] {1, 2}\n}", "fewer elements than the shape has"},
      {"graph \"g\" {\n  const %c = float32[1] {1, 2}\n}", "more elements than the shape has"},
      {"graph \"g\" {\n  const %c = int8[1] {300}\n}", "want a number of type int8"},
      {"graph \"g\" {\n  const %c = float32[n] {}\n}", "numbers for dimensions"},
      {"graph \"g\" {\n  const %c = float32[1] #0\n}\nblob #0 00\n", "not the size"},
      {"graph \"g\" {\n  input %x : float32[2]  output %x \"x\"\n}", "want the end of the line"},
      {"graph \"g\" {\n  input %x : float32[2]\n  input %x : float32[2]\n}", "line 3, column 3: "},
      {"graph \"g\" {\n  input %x : float32[2]\n  %y = Relu(%x) after @3\n}",
       "no node before is @3"},
      {"graph \"g\" {\n  input %x : float32[2]\n  %y = FusedElementwise(%x)\n}",
       "operator FusedElementwise is made by passes only"},
      {"graph \"g\" {\n}\nmore", "want the end"},
      {"graph \"open", "open string"},
  };
  for (const auto& [text, want] : cases) {
    const auto graph = FromText(text);
    ASSERT_FALSE(graph.ok()) << text;
    EXPECT_THAT(std::string(graph.status().message()), HasSubstr(want)) << text;
  }
}

TEST(GraphTextTest, HostileTextEndsAtALimit) {
  std::string types = "graph \"g\" {\n input %x : ";
  for (int i = 0; i < 100'000; ++i) types += "sequence(";
  EXPECT_EQ(FromText(types).status().code(), absl::StatusCode::kResourceExhausted);
  std::string dims = "graph \"g\" {\n input %x : float32[";
  for (int i = 0; i < 100'000; ++i) dims += "add(n, ";
  EXPECT_EQ(FromText(dims).status().code(), absl::StatusCode::kResourceExhausted);
  std::string graphs = "graph \"g\" {\n input %x : float32[2]\n";
  for (int i = 0; i < 100'000; ++i) graphs += " %y = Relu() [a = graph \"\" {\n";
  EXPECT_EQ(FromText(graphs).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_FALSE(FromText("graph \"g\" {\n const %c = float32[4611686018427387904] {}\n}").ok());
  EXPECT_FALSE(FromText("graph \"g\" {\n const %c = float32[1000000000000] {}\n}").ok());
  EXPECT_EQ(FromText(std::string(100, ' '), {.max_bytes = 10}).status().code(),
            absl::StatusCode::kResourceExhausted);
}

// Dimensions that share their parts grow exponentially when written out.
TEST(GraphTextTest, DeepDimensionsStayShort) {
  Graph graph;
  Dim dim = graph.NamedDim("n", "");
  for (int i = 0; i < 200; ++i) dim = Max(dim + i, dim * dim);
  Must(graph.AddInput("x", ValueType::OfTensor(DType::kF32, {dim})));
  EXPECT_LT(ToText(graph).size(), 2'000u);
  RoundTrip(graph);
}

TEST(GraphTextTest, UnnamedValuesGetNames) {
  Graph graph;
  const ValueId x = Must(graph.AddInput("x", ValueType::OfTensor(DType::kF32, {2})));
  const ValueId hidden = graph.AddRawValue("", ValueType::OfTensor(DType::kF32, {2}));
  const ValueId twin = graph.AddRawValue("x", ValueType::OfTensor(DType::kF32, {2}));
  graph.AddRawNode(ops::FindOp("Relu"), "", {x}, {hidden}, {});
  graph.AddRawNode(ops::FindOp("Relu"), "", {hidden}, {twin}, {});
  EXPECT_TRUE(graph.AddOutput(twin, "y").ok());
  const std::string text = ToText(graph);
  EXPECT_TRUE(FromText(text).ok()) << text;
}

}  // namespace
}  // namespace npurt::graph
