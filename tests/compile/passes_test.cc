// What the passes leave of a graph, and that it computes the same.
#include <gtest/gtest.h>

#include <algorithm>

#include "compile/compile.h"
#include "support/graphs.h"

namespace npurt::compile {
namespace {

using npurt::testing::GraphBuilder;

Compiled CompileFor(const graph::Graph& graph, bool fusion = true,
                    HashSet<std::string> keep = {}) {
  CompileOptions options;
  options.device = *device::FindDevice("cpu");
  options.allocator = &memory::DefaultAllocator();
  options.isa = DetectedIsa();
  options.fusion = fusion;
  options.keep = std::move(keep);
  auto compiled = Compile(graph, options);
  EXPECT_TRUE(compiled.ok()) << compiled.status();
  return compiled.ok() ? *std::move(compiled) : Compiled{};
}

std::vector<std::string> Ops(const Compiled& compiled) {
  std::vector<std::string> ops;
  for (const exec::Step& step : compiled.program->steps) ops.push_back(step.op);
  return ops;
}

TEST(PassesTest, ConstantsAreComputedOnce) {
  GraphBuilder b;
  const auto x = b.Input("x", DType::kF32, {2, 2});
  const auto c = b.Node("Add", {b.Floats("a", {2}, {1, 2}), b.Floats("b", {2}, {3, 4})}, "c");
  b.Output(b.Node("Add", {x, c}, "y"));
  EXPECT_EQ(Ops(CompileFor(b.graph())), std::vector<std::string>{"Add"});
}

TEST(PassesTest, BatchNormalizationGoesIntoTheConvolution) {
  GraphBuilder b;
  const auto x = b.Input("x", DType::kF32, {1, 3, 8, 8});
  const auto conv = b.Node("Conv", {x, b.Random("w", {4, 3, 3, 3}, 1)}, "conv");
  const auto norm = b.Node("BatchNormalization",
                           {conv, b.Floats("scale", {4}, {1, 2, 3, 4}),
                            b.Floats("bias", {4}, {0, 1, 0, 1}), b.Floats("mean", {4}, {0, 0, 1, 1}),
                            b.Floats("var", {4}, {1, 1, 2, 2})},
                           "norm");
  b.Output(b.Node("Relu", {norm}, "y"));
  const Compiled compiled = CompileFor(b.graph());
  EXPECT_EQ(Ops(compiled), std::vector<std::string>{"Conv"});
  const std::vector<std::string>& origins = compiled.program->steps[0].origins;
  for (const char* name : {"conv_node", "norm_node", "y_node"})
    EXPECT_NE(std::find(origins.begin(), origins.end(), name), origins.end()) << name;
}

TEST(PassesTest, TransposesInARowAreOneOrNone) {
  const auto perm = [](std::vector<std::int64_t> axes) {
    Attributes attributes;
    attributes.Set("perm", std::move(axes));
    return attributes;
  };
  GraphBuilder b;
  const auto x = b.Input("x", DType::kF32, {2, 3, 4});
  const auto first = b.Node("Transpose", {x}, "first", perm({2, 0, 1}));
  const auto second = b.Node("Transpose", {first}, "second", perm({0, 2, 1}));
  const auto back = b.Node("Transpose", {first}, "back", perm({1, 2, 0}));
  b.Output(b.Node("Relu", {second}, "y"));  // without perm below: all axes reversed
  b.Output(b.Node("Relu", {back}, "z"));
  b.Output(b.Node("Relu", {b.Node("Transpose", {second}, "third")}, "w"));
  const Compiled compiled = CompileFor(b.graph());
  auto ops = Ops(compiled);
  std::sort(ops.begin(), ops.end());
  EXPECT_EQ(ops, (std::vector<std::string>{"Relu", "Relu", "Relu", "Transpose"}));
}

TEST(PassesTest, ElementwiseNodesInARowAreOneStep) {
  GraphBuilder b;
  const auto x = b.Input("x", DType::kF32, {-1, 16});
  const auto s = b.Node("Sigmoid", {x}, "s");
  const auto m = b.Node("Mul", {x, s}, "m");
  b.Output(b.Node("Tanh", {m}, "y"));
  EXPECT_EQ(Ops(CompileFor(b.graph())), std::vector<std::string>{"FusedElementwise"});
  EXPECT_EQ(CompileFor(b.graph(), false).program->steps.size(), 3u);
  EXPECT_EQ(Ops(CompileFor(b.graph(), true, {"m"})).size(), 2u);
}

TEST(PassesTest, EveryPassOfFusionCanBeLeftOutByName) {
  GraphBuilder b;
  b.Output(b.Node("Tanh", {b.Node("Exp", {b.Input("x", DType::kF32, {4})}, "e")}, "y"));
  CompileOptions options;
  options.device = *device::FindDevice("cpu");
  options.allocator = &memory::DefaultAllocator();
  options.isa = DetectedIsa();
  const auto names = [&] {
    HashSet<std::string> all;
    const auto compiled = Compile(b.graph(), options);
    EXPECT_TRUE(compiled.ok()) << compiled.status();
    if (!compiled.ok()) return all;
    for (const PassReport& pass : compiled->report.passes) all.insert(pass.name);
    return all;
  };
  const auto with = names();
  for (const char* rule : {
#define NPURT_FUSION_RULE(name) #name,
#include "options/fusion_rules.inc"
#undef NPURT_FUSION_RULE
       }) {
    EXPECT_TRUE(with.contains(rule)) << rule;
    options.passes_off.insert(rule);
  }
  const auto without = names();
  options.passes_off.clear();
  options.fusion = false;
  EXPECT_EQ(without, names()) << "a pass of fusion that fusion_rules.inc does not name";
}

TEST(PassesTest, UnusedNodesVanish) {
  GraphBuilder b;
  const auto x = b.Input("x", DType::kF32, {4});
  b.Node("Exp", {x}, "unused");
  b.Output(b.Node("Relu", {x}, "y"));
  EXPECT_EQ(Ops(CompileFor(b.graph())), std::vector<std::string>{"Relu"});
}

TEST(BindTest, ViewsAndConcatNeedNoCopy) {
  GraphBuilder b;
  const auto x = b.Input("x", DType::kF32, {2, 64});
  const auto left = b.Node("Softmax", {x}, "left"), right = b.Node("LogSoftmax", {x}, "right");
  Attributes axis;
  axis.Set("axis", std::int64_t{0});
  const auto both = b.Node("Concat", {left, right}, "both", axis);
  const auto flat = b.Node("Reshape", {both, b.Constant("s", Tensor::Int64s({-1}))}, "flat");
  b.Output(b.Node("Softmax", {flat}, "y"));
  const Compiled compiled = CompileFor(b.graph());
  const Dims dims = {2, 64};
  const absl::Span<const std::int64_t> shapes[] = {dims};
  const auto plan = compiled.binder->MakePlan(shapes, 1, true);
  ASSERT_TRUE(plan.ok()) << plan.status();
  int skipped = 0;
  for (const exec::PlannedStep& step : (*plan)->steps) skipped += step.skip;
  EXPECT_EQ(skipped, 2);
  EXPECT_EQ((*plan)->values_bytes, 4u * 64 * 4);
}

TEST(BindTest, DimensionsThatContradictEachOtherAreNamed) {
  GraphBuilder b;
  const auto x = b.Input("x", DType::kF32, {-1}), y = b.Input("y", DType::kF32, {-1});
  b.Output(b.Node("Add", {x, y}, "z"));
  const Compiled compiled = CompileFor(b.graph());
  const Dims three = {3}, four = {4};
  const absl::Span<const std::int64_t> shapes[] = {three, four};
  const auto plan = compiled.binder->MakePlan(shapes, 1, true);
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(plan.status().message(),
            "input 'y': dimension 'n1' is 4 here and 3 in another input");
}

TEST(BindTest, FiveThousandNodesHaveAPlan) {
  GraphBuilder b;
  auto x = b.Input("x", DType::kF32, {-1});
  for (int i = 0; i < 5000; ++i) x = b.Node("Softmax", {x}, "v" + std::to_string(i));
  b.Output(x);
  const Compiled compiled = CompileFor(b.graph());
  const Dims dims = {100};
  const absl::Span<const std::int64_t> shapes[] = {dims};
  const auto plan = compiled.binder->MakePlan(shapes, 1, true);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_LE((*plan)->values_bytes, 2u * 448);
}

}  // namespace
}  // namespace npurt::compile
