// Graphs: order, names, functions, subgraphs, what is refused.
#include "formats/onnx/import.h"

#include <chrono>

#include "absl/strings/str_cat.h"
#include "formats/onnx/lower.h"
#include "formats/onnx/reader.h"
#include "gmock/gmock.h"
#include "graph/text.h"
#include "gtest/gtest.h"
#include "support/onnx_builder.h"

namespace npurt::formats::onnx {
namespace {

namespace build = tests::onnx;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

absl::StatusOr<Model> Read(const build::Graph& graph, const build::ModelOptions& options = {},
                           const ReadOptions& read = {}) {
  return ReadModelFromMemory(build::Model(graph, options), "", nullptr, read);
}

void ExpectError(const absl::StatusOr<Model>& model, absl::StatusCode code, const char* text) {
  EXPECT_EQ(model.status().code(), code) << model.status();
  EXPECT_THAT(std::string(model.status().message()), HasSubstr(text));
}

std::vector<std::string> NodeNames(const graph::Graph& graph) {
  std::vector<std::string> names;
  for (int i = 0; i < graph.node_count(); ++i) names.push_back(graph.node(i).name);
  return names;
}

build::Graph OneInput() { return build::Graph().Input("x", build::kFloat, {2, 3}); }

TEST(ImportTest, SortsNodesThatAreNotInOrder) {
  const auto model = Read(OneInput()
                              .Node("Relu", {"b"}, {"c"}, {.name = "third"})
                              .Node("Relu", {"x"}, {"a"}, {.name = "first"})
                              .Node("Relu", {"a"}, {"b"}, {.name = "second"})
                              .Output("c"));
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_THAT(NodeNames(*model->graph), ElementsAre("first", "second", "third"));
}

TEST(ImportTest, RefusesCyclesAndNamesANodeInThem) {
  ExpectError(Read(OneInput()
                       .Node("Relu", {"b"}, {"out"}, {.name = "behind"})
                       .Node("Add", {"x", "b"}, {"a"}, {.name = "one"})
                       .Node("Relu", {"a"}, {"b"}, {.name = "two"})
                       .Output("out")),
              absl::StatusCode::kInvalidArgument, "is part of a cycle");
  ExpectError(Read(OneInput().Node("Add", {"x", "a"}, {"a"}, {.name = "self"})),
              absl::StatusCode::kInvalidArgument, "'self': is part of a cycle");
}

TEST(ImportTest, RefusesNamesThatAreDefinedTwiceOrNowhere) {
  ExpectError(Read(OneInput().Node("Relu", {"x"}, {"a"}).Node("Relu", {"x"}, {"a"})),
              absl::StatusCode::kInvalidArgument, "'a' is also defined by");
  ExpectError(Read(OneInput().Node("Relu", {"x"}, {"x"})), absl::StatusCode::kInvalidArgument,
              "'x'");
  ExpectError(Read(OneInput().Input("x", build::kFloat, {1})), absl::StatusCode::kAlreadyExists,
              "'x'");
  ExpectError(Read(OneInput().Node("Relu", {"nothing"}, {"a"}, {.name = "n"})),
              absl::StatusCode::kInvalidArgument, "Relu node 'n': input 'nothing'");
  ExpectError(Read(OneInput().Output("y")), absl::StatusCode::kInvalidArgument,
              "output 'y': no node makes it");
}

TEST(ImportTest, TheLastOfTwoConstantsOfOneNameCounts) {
  const auto constant = [](std::int64_t value) {
    return build::NodeOptions{.attributes = {build::IntAttribute("value_int", value)}};
  };
  const auto model = Read(build::Graph()
                              .Node("Constant", {}, {"c"}, constant(1))
                              .Node("Identity", {"c"}, {"y"})
                              .Node("Constant", {}, {"c"}, constant(2))
                              .Output("y"));
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->graph->value(model->graph->Find("c")).constant.at<std::int64_t>(0), 2);
}

TEST(ImportTest, ComparesDeclaredTypesOfOutputs) {
  ExpectError(Read(OneInput().Node("Relu", {"x"}, {"y"}).Output("y", build::kInt64)),
              absl::StatusCode::kInvalidArgument,
              "output 'y': is float32[2, 3], the file declares int64");
}

TEST(ImportTest, DimensionsWithoutANumberAreSymbols) {
  const auto model = Read(build::Graph()
                              .Input("x", build::kFloat, {"batch", "?", -1, 0, 7})
                              .Node("Relu", {"x"}, {"y"})
                              .Output("y"));
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->graph->value(model->graph->Find("y")).type.ToString(),
            "float32[batch, x_dim_1, x_dim_2, x_dim_3, 7]");
}

TEST(ImportTest, InitializersThatAreInputsTooAreConstants) {
  for (int ir : {3, 10}) {
    const auto model = Read(OneInput()
                                .Input("w", build::kFloat, {3})
                                .Initializer(build::FloatTensor("w", {3}, {1, 2, 3}))
                                .Node("Add", {"x", "w"}, {"y"})
                                .Output("y"),
                            {.ir_version = ir});
    ASSERT_TRUE(model.ok()) << model.status();
    EXPECT_EQ(model->graph->inputs().size(), 1u);
    EXPECT_TRUE(model->graph->value(model->graph->Find("w")).is_constant());
  }
}

TEST(ImportTest, ConstantsOfEveryFormAreValuesOfTheGraph) {
  const std::pair<std::string, const char*> forms[] = {
      {build::TensorAttribute("value", build::FloatTensor("", {2}, {1, 2})), "float32[2]"},
      {build::FloatAttribute("value_float", 1), "float32[]"},
      {build::FloatsAttribute("value_floats", {1, 2}), "float32[2]"},
      {build::IntAttribute("value_int", 1), "int64[]"},
      {build::IntsAttribute("value_ints", {1, 2, 3}), "int64[3]"},
      {build::StringAttribute("value_string", "s"), "string[]"},
  };
  for (const auto& [attribute, type] : forms) {
    const auto model =
        Read(build::Graph()
                 .Node("Constant", {}, {"c"}, {.name = "n", .attributes = {attribute}})
                 .Output("c"));
    ASSERT_TRUE(model.ok()) << model.status();
    const graph::ValueInfo& info = model->graph->value(model->graph->Find("c"));
    EXPECT_EQ(info.type.ToString(), type);
    EXPECT_EQ(model->graph->node_count(), 0);
    EXPECT_THAT(info.origins, ElementsAre("c", "n"));
  }
}

TEST(ImportTest, TellsEverythingThatIsNotSupportedInOneError) {
  build::Graph graph = OneInput();
  for (int i = 0; i < 60; ++i)
    graph.Node("NoSuchOp", {"x"}, {absl::StrCat("a", i)}, {.name = absl::StrCat("n", i)});
  graph.Node("Relu", {"a0"}, {"b"}).Node("AlsoNone", {"b"}, {"c"}).Output("c");
  const auto model = Read(graph);
  ExpectError(model, absl::StatusCode::kUnimplemented, "61 nodes are not supported:");
  ExpectError(model, absl::StatusCode::kUnimplemented,
              "NoSuchOp node 'n49': there is no operator 'NoSuchOp'");
  ExpectError(model, absl::StatusCode::kUnimplemented, "and 11 more");
  EXPECT_THAT(std::string(model.status().message()), Not(HasSubstr("'n50'")));
}

TEST(ImportTest, AnAttributeNobodyKnowsIsNotSupported) {
  ExpectError(Read(OneInput().Node("Relu", {"x"}, {"y"},
                                   {.attributes = {build::IntAttribute("sparkle", 1)}})),
              absl::StatusCode::kUnimplemented, "attribute 'sparkle'");
}

TEST(ImportTest, NamesTheNodeWhoseShapesDoNotFit) {
  ExpectError(Read(OneInput()
                       .Initializer(build::FloatTensor("w", {4}, {1, 2, 3, 4}))
                       .Node("Add", {"x", "w"}, {"y"}, {.name = "sum"})),
              absl::StatusCode::kInvalidArgument, "Add node 'sum'");
}

TEST(ImportTest, VersionsFromTheFirstToTheNewestAreRead) {
  for (int opset : {0, 1, 7, 13, kNewestOpset}) {
    const auto model = Read(OneInput().Node("Relu", {"x"}, {"y"}).Output("y"), {.opset = opset});
    EXPECT_TRUE(model.ok()) << opset << ": " << model.status();
  }
  ExpectError(Read(OneInput(), {.opset = kNewestOpset + 1}), absl::StatusCode::kUnimplemented,
              "the newest known is");
}

// --- Functions
// ------------------------------------------------------------------------------------

TEST(FunctionTest, IsInlinedWithItsAttributes) {
  // f(a; axis) = Softmax(Relu(a), axis); g(b) = f(b; axis = 0)
  const std::string f = build::Function(
      "local", "f", {"a"}, {"out"},
      {build::Node("Relu", {"a"}, {"r"}, {.name = "relu"}),
       build::Node(
           "Softmax", {"r"}, {"out"},
           {.name = "softmax", .attributes = {build::ReferenceAttribute("axis", "axis", 2)}})},
      {.attributes = {"axis"}});
  const std::string g = build::Function(
      "local", "g", {"b"}, {"out"},
      {build::Node(
          "f", {"b"}, {"out"},
          {.name = "inner", .domain = "local", .attributes = {build::IntAttribute("axis", 0)}})});
  const auto model =
      Read(OneInput().Node("g", {"x"}, {"y"}, {.name = "call", .domain = "local"}).Output("y"),
           {.functions = {f, g}, .more_opsets = {{"local", 1}}});
  ASSERT_TRUE(model.ok()) << model.status();
  const graph::Graph& graph = *model->graph;
  EXPECT_THAT(NodeNames(graph), ElementsAre("call/inner/relu", "call/inner/softmax"));
  EXPECT_EQ(graph.node(1).attributes.Int("axis", 5), 0);
  EXPECT_THAT(graph.node(0).origins, ElementsAre("call/inner/relu", "call"));
  EXPECT_NE(graph.Find("y"), graph::kNone);
  EXPECT_NE(graph.Find("call/inner/r"), graph::kNone);
}

TEST(FunctionTest, DefaultsAndAbsentAttributes) {
  const std::string f =
      build::Function("local", "f", {"a"}, {"out"},
                      {build::Node("Softmax", {"a"}, {"out"},
                                   {.attributes = {build::ReferenceAttribute("axis", "axis", 2)}})},
                      {.attribute_defaults = {build::IntAttribute("axis", 1)}});
  const std::string g =
      build::Function("local", "g", {"a"}, {"out"},
                      {build::Node("Softmax", {"a"}, {"out"},
                                   {.attributes = {build::ReferenceAttribute("axis", "axis", 2)}})},
                      {.attributes = {"axis"}});
  const auto model = Read(OneInput()
                              .Node("f", {"x"}, {"a"}, {.domain = "local"})
                              .Node("g", {"a"}, {"y"}, {.domain = "local"})
                              .Output("y"),
                          {.functions = {f, g}});
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->graph->node(0).attributes.Int("axis", 5), 1);
  EXPECT_FALSE(model->graph->node(1).attributes.Has("axis"));
}

TEST(FunctionTest, NeverCallsItself) {
  const std::string f = build::Function("local", "f", {"a"}, {"b"},
                                        {build::Node("g", {"a"}, {"b"}, {.domain = "local"})});
  const std::string g = build::Function("local", "g", {"a"}, {"b"},
                                        {build::Node("f", {"a"}, {"b"}, {.domain = "local"})});
  ExpectError(Read(OneInput().Node("f", {"x"}, {"y"}, {.domain = "local"}), {.functions = {f, g}}),
              absl::StatusCode::kInvalidArgument, "function 'f' calls itself");
}

// Each function calls the next one twice: 2^40 nodes from a file of two kilobytes.
TEST(FunctionTest, BombsEndAtTheLimit) {
  std::vector<std::string> functions;
  for (int i = 0; i < 40; ++i) {
    const std::string next = absl::StrCat("f", i + 1);
    functions.push_back(build::Function("local", absl::StrCat("f", i), {"a"}, {"c"},
                                        {build::Node(next, {"a"}, {"b"}, {.domain = "local"}),
                                         build::Node(next, {"b"}, {"c"}, {.domain = "local"})}));
  }
  functions.push_back(
      build::Function("local", "f40", {"a"}, {"b"}, {build::Node("Relu", {"a"}, {"b"})}));
  ReadOptions options;
  options.limits.max_nodes = 10'000;
  ExpectError(Read(OneInput().Node("f0", {"x"}, {"y"}, {.domain = "local"}),
                   {.functions = functions}, options),
              absl::StatusCode::kResourceExhausted, "more than 10000 nodes");
}

TEST(FunctionTest, AbsentInputsStayAbsent) {
  const std::string f = build::Function("local", "f", {"a", "low", "high"}, {"b"},
                                        {build::Node("Clip", {"a", "low", "high"}, {"b"})});
  const auto model = Read(OneInput()
                              .Initializer(build::FloatTensor("six", {}, {6}))
                              .Node("f", {"x", "", "six"}, {"y"}, {.domain = "local"})
                              .Output("y"),
                          {.functions = {f}});
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->graph->node(0).inputs[1], graph::kNone);
}

// --- Subgraphs
// ------------------------------------------------------------------------------------

// Knows every operator of the domain "test" and keeps what it was given.
class Recorder final : public ops::HostOperators {
 public:
  bool Has(absl::string_view domain, absl::string_view) const override { return domain == "test"; }
  absl::StatusOr<Made> Make(absl::string_view, absl::string_view, const std::string&,
                            const Attributes& attributes, std::size_t inputs,
                            std::size_t) const override {
    given = attributes;
    input_count = inputs;
    return absl::UnimplementedError("recorded");
  }
  mutable Attributes given;
  mutable std::size_t input_count = 0;
};

TEST(SubgraphTest, CapturesAreInputsOfTheNodeInTheOrderOfEveryBranch) {
  const auto recorder = std::make_shared<Recorder>();
  ReadOptions options;
  options.host = recorder;
  const build::Graph then_branch = build::Graph("then")
                                       .Node("Add", {"b", "a"}, {"t"})
                                       .Node("Add", {"t", "w"}, {"t2"})
                                       .Output("t2");
  const build::Graph else_branch = build::Graph("else").Node("Relu", {"a"}, {"e"}).Output("e");
  const auto model =
      Read(OneInput()
               .Input("c", build::kBool, {})
               .Initializer(build::FloatTensor("w", {3}, {1, 2, 3}))
               .Node("Relu", {"x"}, {"a"})
               .Node("Relu", {"a"}, {"b"})
               .Node("Choose", {"c"}, {"y"},
                     {.domain = "test",
                      .attributes = {build::GraphAttribute("then_branch", then_branch.bytes()),
                                     build::GraphAttribute("else_branch", else_branch.bytes())}})
               .Output("y"),
           {}, options);
  EXPECT_EQ(model.status().code(), absl::StatusCode::kUnimplemented) << model.status();
  EXPECT_EQ(recorder->given.Int("captures"), 2);
  EXPECT_EQ(recorder->input_count, 3u);
  const auto* then_graph =
      dynamic_cast<const graph::Graph*>(recorder->given.FindGraph("then_branch"));
  const auto* else_graph =
      dynamic_cast<const graph::Graph*>(recorder->given.FindGraph("else_branch"));
  ASSERT_NE(then_graph, nullptr);
  ASSERT_NE(else_graph, nullptr);
  ASSERT_EQ(then_graph->captures().size(), 2u);
  ASSERT_EQ(else_graph->captures().size(), 2u);
  EXPECT_EQ(then_graph->value(then_graph->captures()[0]).name, "b");
  EXPECT_EQ(else_graph->value(else_graph->captures()[0]).name, "");  // not read there
  EXPECT_EQ(else_graph->value(else_graph->captures()[1]).name, "a");
  EXPECT_EQ(else_graph->value(else_graph->captures()[1]).type.ToString(), "float32[2, 3]");
  // A constant is shared, not captured.
  EXPECT_TRUE(then_graph->value(then_graph->Find("w")).is_constant());
}

TEST(SubgraphTest, CapturesPassThroughTheGraphsBetween) {
  const auto recorder = std::make_shared<Recorder>();
  ReadOptions options;
  options.host = recorder;
  const build::Graph inner = build::Graph("inner").Node("Relu", {"a"}, {"i"}).Output("i");
  const build::Graph outer =
      build::Graph("outer")
          .Node("Inner", {}, {"o"},
                {.domain = "test", .attributes = {build::GraphAttribute("body", inner.bytes())}})
          .Output("o");
  (void)Read(
      OneInput()
          .Node("Relu", {"x"}, {"a"})
          .Node("Outer", {}, {"y"},
                {.domain = "test", .attributes = {build::GraphAttribute("body", outer.bytes())}})
          .Output("y"),
      {}, options);
  const auto* body = dynamic_cast<const graph::Graph*>(recorder->given.FindGraph("body"));
  ASSERT_NE(body, nullptr);
  EXPECT_EQ(body->name, "outer");
  ASSERT_EQ(body->captures().size(), 1u);
  EXPECT_EQ(body->value(body->captures()[0]).name, "a");
}

TEST(SubgraphTest, NestingIsLimited) {
  build::Graph graph = build::Graph().Node("Relu", {"x"}, {"y"}).Output("y");
  for (int i = 0; i < 30; ++i)
    graph =
        build::Graph()
            .Node("If", {"x"}, {"y"}, {.attributes = {build::GraphAttribute("g", graph.bytes())}})
            .Output("y");
  ExpectError(Read(OneInput().Node("If", {"x"}, {"y"},
                                   {.attributes = {build::GraphAttribute("g", graph.bytes())}})),
              absl::StatusCode::kResourceExhausted, "nested more than");
}

TEST(SubgraphTest, MissingNamesAreErrorsOfTheNode) {
  const build::Graph branch = build::Graph().Node("Relu", {"nothing"}, {"y"}).Output("y");
  ExpectError(Read(OneInput().Node(
                  "If", {"x"}, {"y"},
                  {.name = "if", .attributes = {build::GraphAttribute("g", branch.bytes())}})),
              absl::StatusCode::kInvalidArgument, "If node 'if': 'g' reads 'nothing'");
}

// --- Size
// -----------------------------------------------------------------------------------------

TEST(ImportTest, LargeGraphsTakeLinearTime) {
  const auto seconds_for = [](int count) {
    build::Graph graph = OneInput();
    std::string last = "x";
    for (int i = 0; i < count; ++i) {
      const std::string next = absl::StrCat("t", i);
      graph.Node("Add", {last, "x"}, {next});
      last = next;
    }
    const std::string bytes = build::Model(graph.Output(last));
    const auto start = std::chrono::steady_clock::now();
    const auto model = ReadModelFromMemory(bytes, "", nullptr);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    EXPECT_TRUE(model.ok()) << model.status();
    ::testing::Test::RecordProperty(absl::StrCat("ms_for_", count).c_str(),
                                    static_cast<int>(seconds.count() * 1000));
    return seconds.count();
  };
  seconds_for(5'000);  // recorded, never judged: other work runs on the machine
  seconds_for(20'000);
}

}  // namespace
}  // namespace npurt::formats::onnx
