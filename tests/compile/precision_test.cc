// What each mode decides, written by hand from the documents: a graph with white, black and gray
// operators, several producers, constants, casts and branches.
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "compile/precision/precision.h"
#include "graph/text.h"

namespace npurt::compile::precision {
namespace {

using Lines = std::vector<std::string>;

std::unique_ptr<graph::Graph> Read(const std::string& text) {
  auto graph = graph::FromText(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  return graph.ok() ? *std::move(graph) : std::make_unique<graph::Graph>();
}

std::string Short(DType dtype) {
  switch (dtype) {
    case DType::kUndefined:
      return "-";
    case DType::kF16:
      return "f16";
    case DType::kBF16:
      return "bf16";
    case DType::kF32:
      return "f32";
    default:
      return std::string(DTypeName(dtype));
  }
}

std::string Line(const graph::Graph& graph, const NodePlan& plan) {
  static constexpr const char* kLists[] = {"gray", "white", "black"};
  const auto types = [](const std::vector<OperandPlan>& operands) {
    return absl::StrJoin(operands, " ", [](std::string* out, const OperandPlan& operand) {
      *out += Short(operand.chosen);
    });
  };
  return absl::StrCat(NodeName(graph, graph.node(plan.node)), " ",
                      kLists[static_cast<int>(plan.list)], " ", types(plan.inputs), " -> ",
                      types(plan.outputs), plan.engine == ops::Engine::kAiCpu ? " cpu" : "");
}

// "node list inputs -> outputs" in topological order, or the error.
Lines Decided(const std::string& text, const Settings& settings) {
  const auto graph = Read(text);
  const auto plan = Decide(*graph, settings);
  if (!plan.ok()) return {std::string(plan.status().message())};
  Lines lines;
  for (const NodePlan& node : plan->nodes) lines.push_back(Line(*graph, node));
  return lines;
}

Settings In(Mode mode, bool older = false) {
  Settings settings;
  settings.mode = mode;
  settings.older = older;
  return settings;
}

// T is the type of everything.
std::string Branches(const char* type) {
  return absl::StrReplaceAll(R"(graph "g" {
  input %x : T[1, 2, 1, 1]
  const %w = T[2, 2, 1, 1] {1.0, 0.0, 0.0, 1.0}
  const %one = T[1] {1.0}
  %c = Conv(%x, %w) name "conv"
  %r = Relu(%c) name "relu"
  %b = Add(%one, %r) name "bias"
  %e = Exp(%b) name "exp"
  %s = Add(%e, %r) name "exp_first"
  %t = Add(%r, %e) name "relu_first"
  %q = Mul(%x, %r) name "input_first"
  output %s "s"
  output %t "t"
  output %q "q"
})",
                             {{"T", type}});
}

constexpr const char* kNames[] = {"conv white",      "relu gray",      "bias gray",
                                  "exp black",       "exp_first gray", "relu_first gray",
                                  "input_first gray"};

// The plan in which node i has type `types[i]` throughout.
Lines Uniform(std::vector<std::string> types) {
  Lines lines;
  for (std::size_t i = 0; i < 7; ++i) {
    const std::string& t = types[i];
    const bool one = i == 1 || i == 3;
    lines.push_back(absl::StrCat(kNames[i], " ", t, one ? "" : " " + t, " -> ", t));
  }
  return lines;
}
Lines All(const std::string& type) { return Uniform(std::vector<std::string>(7, type)); }

TEST(PrecisionTest, MixedFloat16) {
  EXPECT_EQ(Decided(Branches("float32"), In(Mode::kMixFp16)),
            Uniform({"f16", "f16", "f16", "f32", "f32", "f16", "f32"}));
  // bfloat16 is lowered too; black keeps what it has.
  EXPECT_EQ(Decided(Branches("bfloat16"), In(Mode::kMixFp16)),
            Uniform({"f16", "f16", "f16", "bf16", "bf16", "f16", "bf16"}));
  EXPECT_EQ(Decided(Branches("float16"), In(Mode::kMixFp16)), All("f16"));
}

TEST(PrecisionTest, MixedBfloat16) {
  EXPECT_EQ(Decided(Branches("float32"), In(Mode::kMixBf16)),
            Uniform({"bf16", "bf16", "bf16", "f32", "f32", "bf16", "f32"}));
  EXPECT_EQ(Decided(Branches("bfloat16"), In(Mode::kMixBf16)), All("bf16"));
  EXPECT_EQ(Decided(Branches("float16"), In(Mode::kMixBf16)),
            Uniform({"bf16", "bf16", "bf16", "f16", "f16", "bf16", "f16"}));
}

TEST(PrecisionTest, TheOlderDocumentLowersFloat32Only) {
  EXPECT_EQ(Decided(Branches("float32"), In(Mode::kMixFp16, true)),
            Decided(Branches("float32"), In(Mode::kMixFp16)));
  EXPECT_EQ(Decided(Branches("bfloat16"), In(Mode::kMixFp16, true)), All("bf16"));
}

TEST(PrecisionTest, ForceFp16) {
  for (const char* type : {"float32", "float16", "bfloat16"})
    EXPECT_EQ(Decided(Branches(type), In(Mode::kForceFp16)), All("f16"));
}

TEST(PrecisionTest, CubeFp16InFp32Out) {
  for (const char* type : {"float32", "float16", "bfloat16"}) {
    Lines want = All("f32");
    want[0] = "conv white f16 f16 -> f32";
    EXPECT_EQ(Decided(Branches(type), In(Mode::kCubeFp32)), want);
  }
}

TEST(PrecisionTest, ForceFp32OfTheOlderDocument) {
  for (const char* type : {"float32", "float16", "bfloat16"})
    EXPECT_EQ(Decided(Branches(type), In(Mode::kForceFp32, true)), All("f32"));
}

TEST(PrecisionTest, AllowFp32ToFp16LowersMatrixOperators) {
  EXPECT_EQ(Decided(Branches("float32"), In(Mode::kAllowFp32ToFp16)),
            Uniform({"f16", "f32", "f32", "f32", "f32", "f32", "f32"}));
  EXPECT_EQ(Decided(Branches("bfloat16"), In(Mode::kAllowFp32ToFp16)), All("bf16"));
  EXPECT_EQ(Decided(Branches("float16"), In(Mode::kAllowFp32ToFp16)), All("f16"));
  EXPECT_EQ(Decided(Branches("float32"), In(Mode::kAllowFp32ToFp16, true)), All("f32"));
}

TEST(PrecisionTest, AllowFp32ToBf16AndOriginKeepWhatKernelsHave) {
  for (const Mode mode : {Mode::kAllowFp32ToBf16, Mode::kKeepOrigin}) {
    EXPECT_EQ(Decided(Branches("float32"), In(mode)), All("f32"));
    EXPECT_EQ(Decided(Branches("bfloat16"), In(mode)), All("bf16"));
    EXPECT_EQ(Decided(Branches("float16"), In(mode)), All("f16"));
  }
}

// --- the gray rule
// ---------------------------------------------------------------------------------

TEST(PrecisionTest, GrayIsDecidedByTheFirstProducerAndConstantsComeLast) {
  const auto graph = Read(Branches("float32"));
  const auto plan = Decide(*graph, In(Mode::kMixFp16));
  ASSERT_TRUE(plan.ok()) << plan.status();
  const auto rule = [&](std::size_t i) { return plan->nodes[i].rule; };
  EXPECT_EQ(rule(0), "white: float16 first");
  EXPECT_EQ(rule(1), "gray: follows 'conv': float16");
  EXPECT_EQ(rule(2), "gray: follows 'relu': float16");
  EXPECT_EQ(plan->nodes[2].inputs[0].why, "constant: asked last, float32 first");
  EXPECT_EQ(rule(3), "black: its own type or a wider one");
  EXPECT_EQ(rule(4), "gray: follows 'exp': float32");
  EXPECT_EQ(plan->nodes[4].producer, "exp");
  EXPECT_EQ(plan->nodes[4].inputs[1].why, "follows 'relu': float16");
  EXPECT_EQ(rule(6), "gray: no producer: its own type first");
}

// In float16 a model's own cast to float32 does not stop what is gray, unless Cast is black.
TEST(PrecisionTest, GrayLooksThroughCasts) {
  const std::string text = R"(graph "g" {
  input %x : float16[2, 2]
  const %w = float16[2, 2] {1.0, 0.0, 0.0, 1.0}
  %m = MatMul(%x, %w) name "matmul"
  %c = Cast(%m) [to = 1] name "cast"
  %y = Sqrt(%c) name "sqrt"
  output %y "y"
})";
  EXPECT_EQ(Decided(text, In(Mode::kMixFp16)),
            (Lines{"matmul white f16 f16 -> f16", "cast gray f16 -> f32", "sqrt gray f16 -> f16"}));
  Settings black = In(Mode::kMixFp16);
  black.lists["Cast"] = ops::PrecisionReduce::kBlack;
  EXPECT_EQ(Decided(text, black), (Lines{"matmul white f16 f16 -> f16", "cast black f16 -> f32",
                                         "sqrt gray f32 -> f32"}));
  // bfloat16 looks through casts of bfloat16.
  EXPECT_EQ(
      Decided(text, In(Mode::kMixBf16)),
      (Lines{"matmul white bf16 bf16 -> bf16", "cast gray bf16 -> f32", "sqrt gray f32 -> f32"}));
  const std::string brain = absl::StrReplaceAll(text, {{"float16", "bfloat16"}});
  EXPECT_EQ(Decided(brain, In(Mode::kMixBf16))[2], "sqrt gray bf16 -> bf16");
  EXPECT_EQ(Decided(brain, In(Mode::kMixFp16))[2], "sqrt gray f32 -> f32");
}

TEST(PrecisionTest, OtherTypesStay) {
  const std::string text = R"(graph "g" {
  input %x : float64[2, 2]
  input %i : int64[2]
  input %t : float32[4, 2]
  %m = MatMul(%x, %x) name "matmul"
  %g = Gather(%t, %i) name "gather"
  %s = Shape(%m) name "shape"
  output %m "m"
  output %g "g"
  output %s "s"
})";
  EXPECT_EQ(Decided(text, In(Mode::kForceFp16)),
            (Lines{"matmul white float64 float64 -> float64", "gather gray f16 int64 -> f16",
                   "shape gray float64 -> int64"}));
}

TEST(PrecisionTest, OnlyConstantsInFrontMeansTheirType) {
  const std::string text = R"(graph "g" {
  const %a = float32[1] {1.0}
  %b = Add(%a, %a) name "sum"
  %c = Mul(%b, %a) name "product"
  output %c "c"
})";
  EXPECT_EQ(Decided(text, In(Mode::kMixFp16)),
            (Lines{"sum gray f32 f32 -> f32", "product gray f32 f32 -> f32"}));
}

TEST(PrecisionTest, AiCpuOperatorsKeepTheirTypes) {
  const std::string text = R"(graph "g" {
  input %x : float32[4]
  const %k = int64[1] {2}
  %r = Relu(%x) name "relu"
  %v, %i = TopK(%r, %k) name "top"
  output %v "v"
  output %i "i"
})";
  EXPECT_EQ(Decided(text, In(Mode::kForceFp16)),
            (Lines{"relu gray f16 -> f16", "top gray f32 int64 -> f32 int64 cpu"}));
}

// --- lists
// -----------------------------------------------------------------------------------------

TEST(PrecisionTest, MovedOperatorsFollowTheirNewList) {
  Settings settings = In(Mode::kMixFp16);
  settings.lists = {{"Exp", ops::PrecisionReduce::kGray}, {"Conv", ops::PrecisionReduce::kBlack}};
  EXPECT_EQ(Decided(Branches("float32"), settings)[0], "conv black f32 f32 -> f32");
  settings.lists = {{"Exp", ops::PrecisionReduce::kGray}};
  EXPECT_EQ(Decided(Branches("float32"), settings)[3], "exp gray f16 -> f16");
  settings.lists = {{"Exp", ops::PrecisionReduce::kWhite}};
  EXPECT_EQ(Decided(Branches("float32"), settings)[3], "exp white f16 -> f16");
}

// --- engines and their kernels
// ---------------------------------------------------------------------

using Column = options::OpsInfo::Column;

Settings WithKernels(Mode mode, const char* op, std::vector<Column> ai_core,
                     std::optional<std::vector<Column>> ai_cpu = std::nullopt) {
  Settings settings = In(mode);
  auto info = std::make_shared<options::OpsInfo>();
  info->rows[op].ai_core = std::move(ai_core);
  info->rows[op].ai_cpu = std::move(ai_cpu);
  settings.info = std::move(info);
  return settings;
}
Column Of(DType in, DType out) { return {{in}, {out}}; }
Column Of(DType type) { return Of(type, type); }

std::string OneRelu(const char* type) {
  return absl::StrCat("graph \"g\" {\n  input %x : ", type,
                      "[2]\n  %y = Relu(%x) name \"relu\"\n  output %y \"y\"\n}");
}
std::string OneMatMul(const char* type) {
  return absl::StrCat("graph \"g\" {\n  input %x : ", type,
                      "[2, 2]\n  %y = MatMul(%x, %x) name \"m\"\n  output %y \"y\"\n}");
}
constexpr DType kF32 = DType::kF32, kF16 = DType::kF16, kBF16 = DType::kBF16;

TEST(PrecisionTest, OriginTakesFloat32ForFloat16OrGoesToTheAiCpu) {
  // No float16, but float32 and bfloat16.
  EXPECT_EQ(
      Decided(OneRelu("float16"), WithKernels(Mode::kKeepOrigin, "Relu", {Of(kF32), Of(kBF16)})),
      (Lines{"relu gray f32 -> f32"}));
  EXPECT_EQ(Decided(OneRelu("float16"), WithKernels(Mode::kKeepOrigin, "Relu", {Of(kBF16)})),
            (Lines{"relu gray f16 -> f16 cpu"}));
  EXPECT_EQ(Decided(OneRelu("float32"), WithKernels(Mode::kKeepOrigin, "Relu", {Of(kF16)})),
            (Lines{"relu gray f32 -> f32 cpu"}));
  EXPECT_EQ(Decided(OneRelu("float32"),
                    WithKernels(Mode::kKeepOrigin, "Relu", {Of(kF16)}, std::vector<Column>{})),
            (Lines{"Relu node 'relu': must_keep_origin_dtype finds no kernel: AI Core has "
                   "(float16) -> (float16), AI CPU has none"}));
}

TEST(PrecisionTest, AllowFp32ToFp16GoesDownItsChain) {
  const auto matrix = [](const char* type, std::vector<Column> columns) {
    return Decided(OneMatMul(type), WithKernels(Mode::kAllowFp32ToFp16, "MatMul", columns))[0];
  };
  EXPECT_EQ(matrix("float32", {Of(kF32), Of(kF16)}), "m white f16 f16 -> f16");
  EXPECT_EQ(matrix("float32", {Of(kF32)}), "m white f32 f32 -> f32");
  EXPECT_EQ(matrix("float32", {Of(kBF16)}), "m white f32 f32 -> f32 cpu");
  EXPECT_EQ(matrix("bfloat16", {Of(kF16), Of(kF32)}), "m white f32 f32 -> f32");
  EXPECT_EQ(matrix("bfloat16", {Of(kF16)}), "m white f16 f16 -> f16");
  const auto vector = [](const char* type, std::vector<Column> columns) {
    return Decided(OneRelu(type), WithKernels(Mode::kAllowFp32ToFp16, "Relu", columns))[0];
  };
  EXPECT_EQ(vector("float32", {Of(kF16), Of(kF32)}), "relu gray f32 -> f32");
  EXPECT_EQ(vector("float32", {Of(kF16)}), "relu gray f16 -> f16");
  EXPECT_EQ(vector("bfloat16", {Of(kF16)}), "relu gray f16 -> f16");
}

TEST(PrecisionTest, AllowFp32ToBf16GoesDownItsChain) {
  const auto decided = [](const char* type, std::vector<Column> columns) {
    return Decided(OneRelu(type), WithKernels(Mode::kAllowFp32ToBf16, "Relu", columns))[0];
  };
  EXPECT_EQ(decided("float32", {Of(kBF16), Of(kF32)}), "relu gray f32 -> f32");
  EXPECT_EQ(decided("float32", {Of(kBF16), Of(kF16)}), "relu gray bf16 -> bf16");
  EXPECT_EQ(decided("float32", {Of(kF16)}), "relu gray f32 -> f32 cpu");
  EXPECT_EQ(decided("bfloat16", {Of(kF32)}), "relu gray f32 -> f32");
}

TEST(PrecisionTest, CubeModeTriesThreePairs) {
  const auto decided = [](std::vector<Column> columns) {
    return Decided(OneMatMul("float32"),
                   WithKernels(Mode::kCubeFp32, "MatMul", columns, std::vector<Column>{}))[0];
  };
  EXPECT_EQ(decided({Of(kF16), Of(kF32), Of(kF16, kF32)}), "m white f16 f16 -> f32");
  EXPECT_EQ(decided({Of(kF16), Of(kF32)}), "m white f32 f32 -> f32");
  EXPECT_EQ(decided({Of(kF16)}), "m white f16 f16 -> f16");
  EXPECT_EQ(decided({Of(kBF16)}),
            "MatMul node 'm': cube_fp16in_fp32out finds no kernel: AI Core has (bfloat16, "
            "bfloat16) -> (bfloat16), AI CPU has none");
}

TEST(PrecisionTest, CubeModeLeavesVectorOperatorsInFloat16WhereThereIsNothingElse) {
  EXPECT_EQ(Decided(OneRelu("float16"), WithKernels(Mode::kCubeFp32, "Relu", {Of(kF16)})),
            (Lines{"relu gray f16 -> f16"}));
  Settings black = WithKernels(Mode::kCubeFp32, "Relu", {Of(kF16)}, std::vector<Column>{Of(kF32)});
  black.lists["Relu"] = ops::PrecisionReduce::kBlack;
  EXPECT_EQ(Decided(OneRelu("float16"), black), (Lines{"relu black f32 -> f32 cpu"}));
}

TEST(PrecisionTest, WhiteWithoutTheTypeIsAWarning) {
  const auto graph = Read(OneMatMul("float32"));
  const auto plan = Decide(*graph, WithKernels(Mode::kMixFp16, "MatMul", {Of(kF32)}));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(Line(*graph, plan->nodes[0]), "m white f32 f32 -> f32");
  EXPECT_EQ(plan->nodes[0].warning,
            "white, but it does not compute float16 in 'x': that stays float32");
}

TEST(PrecisionTest, BlackWithoutItsTypeIsAnError) {
  Settings settings = WithKernels(Mode::kMixFp16, "Relu", {Of(kF16)}, std::vector<Column>{});
  settings.lists["Relu"] = ops::PrecisionReduce::kBlack;
  EXPECT_EQ(Decided(OneRelu("float32"), settings),
            (Lines{"Relu node 'relu': allow_mix_precision_fp16 finds no kernel: AI Core has "
                   "(float16) -> (float16), AI CPU has none; Relu should not be on the black "
                   "list"}));
}

TEST(PrecisionTest, MixedBfloat16GoesToTheAiCpuWithoutBfloat16AndFloat32) {
  EXPECT_EQ(Decided(OneRelu("float32"), WithKernels(Mode::kMixBf16, "Relu", {Of(kF16)})),
            (Lines{"relu gray f32 -> f32 cpu"}));
}

// What --ops-info prints says the same as what is built in.
TEST(PrecisionTest, TheExportedInformationChangesNothing) {
  auto info = options::ParseOpsInfo(ops::OpsInfoJson(), "");
  ASSERT_TRUE(info.ok()) << info.status();
  for (const Mode mode : {Mode::kForceFp16, Mode::kCubeFp32, Mode::kAllowFp32ToFp16,
                          Mode::kAllowFp32ToBf16, Mode::kMixFp16, Mode::kMixBf16}) {
    Settings exported = In(mode);
    exported.info = std::make_shared<options::OpsInfo>(*info);
    for (const char* type : {"float32", "float16", "bfloat16"})
      EXPECT_EQ(Decided(Branches(type), exported), Decided(Branches(type), In(mode)));
  }
}

// --- single nodes
// ----------------------------------------------------------------------------------

options::CustomDtypes::Entry Entry(const char* name, bool by_type, std::vector<DType> inputs,
                                   std::vector<DType> outputs) {
  return {by_type, name, std::move(inputs), std::move(outputs)};
}

TEST(PrecisionTest, CustomizeDtypesComesBeforeTheMode) {
  Settings settings = In(Mode::kForceFp16);
  settings.custom = {Entry("Relu", true, {kF32}, {kF32})};
  EXPECT_EQ(Decided(Branches("float32"), settings)[1], "relu gray f32 -> f32");
  // Names stand above types.
  settings.custom.push_back(Entry("relu", false, {kBF16}, {DType::kUndefined}));
  EXPECT_EQ(Decided(Branches("float32"), settings)[1], "relu gray bf16 -> bf16");
  // Lists too.
  settings = In(Mode::kMixFp16);
  settings.custom = {Entry("exp", false, {kF16}, {})};
  EXPECT_EQ(Decided(Branches("float32"), settings)[3], "exp black f16 -> f16");
  // What nobody says follows.
  settings.custom = {Entry("Conv", true, {DType::kUndefined}, {kF32})};
  EXPECT_EQ(Decided(Branches("float32"), settings)[0], "conv white f16 f16 -> f32");
  // With origin nothing happens.
  settings.mode = Mode::kKeepOrigin;
  EXPECT_EQ(Decided(Branches("float32"), settings), All("f32"));
}

TEST(PrecisionTest, CustomizeDtypesThatCannotBeIsAnError) {
  Settings settings = In(Mode::kMixFp16);
  settings.custom = {Entry("Relu", true, {DType::kI8}, {DType::kI8})};
  EXPECT_EQ(Decided(Branches("float32"), settings),
            (Lines{"Relu node 'relu': customize_dtypes: OpType::Relu wants input 0 in int8, which "
                   "the operator does not compute; it has (float32) -> (float32); (float16) -> "
                   "(float16); (bfloat16) -> (bfloat16)"}));
  // The documents' sample line has two inputs, where Relu has one.
  settings.custom = {Entry("Relu", true, {kF16, DType::kI8}, {kF16, DType::kI8})};
  EXPECT_EQ(Decided(Branches("float32"), settings),
            (Lines{"Relu node 'relu': customize_dtypes: OpType::Relu wants input 1 in int8, and "
                   "the node has no such tensor"}));
}

TEST(PrecisionTest, KeepDtypeKeepsANode) {
  const std::string text = R"(graph "g" {
  input %x : float32[2, 2]
  %m = MatMul(%x, %x) [_keep_dtype = 1] name "kept"
  %r = Relu(%m) name "relu"
  output %r "r"
})";
  for (const Mode mode :
       {Mode::kForceFp16, Mode::kCubeFp32, Mode::kAllowFp32ToFp16, Mode::kMixFp16})
    EXPECT_EQ(Decided(text, In(mode))[0], "kept white f32 f32 -> f32");
  EXPECT_EQ(Decided(text, In(Mode::kMixFp16))[1], "relu gray f32 -> f32");
}

TEST(PrecisionTest, SubgraphsKeepTheTypesAtTheirBoundary) {
  const std::string text = R"(graph "g" {
  input %x : float32[2, 2]
  input %c : bool[]
  %m = MatMul(%x, %x) name "m"
  %y = If(%c, %m) [captures = 1, else_branch = graph "e" {
    capture %m : float32[2, 2]
    %b = MatMul(%m, %m) name "inner"
    output %b "b"
  }, then_branch = graph "t" {
    capture %m : float32[2, 2]
    %a = Relu(%m)
    output %a "a"
  }] name "if"
  output %y "y"
})";
  EXPECT_EQ(Decided(text, In(Mode::kForceFp16)),
            (Lines{"m white f16 f16 -> f16", "if gray bool f32 -> f32 cpu"}));
}

}  // namespace
}  // namespace npurt::compile::precision
