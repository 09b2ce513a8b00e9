// What a plan makes of a graph: the casts, and what is rounded; and how options become settings.
#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compile/compile.h"
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

Settings In(Mode mode) {
  Settings settings;
  settings.mode = mode;
  return settings;
}

// "Op:type of output 0" of each node, in order.
Lines Nodes(const graph::Graph& graph) {
  Lines lines;
  const auto order = graph.Order();
  for (graph::NodeId id : *order) {
    const graph::Node& node = graph.node(id);
    lines.push_back(
        absl::StrCat(node.op->name, ":", DTypeName(graph.value(node.outputs[0]).type.dtype)));
  }
  return lines;
}

struct Applied {
  std::unique_ptr<graph::Graph> graph;
  Lines casts;  // "value from>to of producer for consumers"
};
Applied ApplyTo(const std::string& text, const Settings& settings) {
  Applied result{Read(text), {}};
  const auto plan = Decide(*result.graph, settings);
  EXPECT_TRUE(plan.ok()) << plan.status();
  for (const InsertedCast& cast : Apply(*plan, settings, result.graph.get()))
    result.casts.push_back(absl::StrCat(
        cast.value, " ", DTypeName(cast.from), ">", DTypeName(cast.to), " of ",
        cast.constant ? "constant" : cast.producer, " for ", absl::StrJoin(cast.consumers, ",")));
  // Every node is one that its operator knows.
  const auto order = result.graph->Order();
  for (graph::NodeId id : *order) {
    const graph::Node& node = result.graph->node(id);
    std::vector<const ValueType*> types;
    for (graph::ValueId in : node.inputs)
      types.push_back(in == graph::kNone ? nullptr : &result.graph->value(in).type);
    const absl::Status status =
        ops::CheckSchema(*node.op, types, static_cast<int>(node.outputs.size()), node.attributes);
    EXPECT_TRUE(status.ok()) << node.Where(*result.graph) << ": " << status;
  }
  return result;
}

TEST(PrecisionApplyTest, OneCastServesAllWhoReadAndOutputsKeepTheirType) {
  const Applied applied = ApplyTo(R"(graph "g" {
  input %x : float32[2, 2]
  const %w = float32[2, 2] {1.0, 0.0, 0.0, 1.0}
  %a = MatMul(%x, %w) name "a"
  %b = MatMul(%x, %w) name "b"
  %e = Exp(%a) name "e"
  %f = Exp(%a) name "f"
  %g = Add(%e, %f) name "g"
  output %a "a"
  output %b "b"
  output %g "g"
})",
                                  In(Mode::kMixFp16));
  EXPECT_EQ(applied.casts,
            (Lines{"x float32>float16 of  for a,b", "w float32>float16 of constant for a,b",
                   "a float16>float32 of a for e,f,", "b float16>float32 of b for "}));
  for (const char* name : {"a", "b", "g"})
    EXPECT_EQ(applied.graph->value(applied.graph->Find(name)).type.dtype, DType::kF32) << name;
}

TEST(PrecisionApplyTest, ValuesInsideHaveTheirNewType) {
  const Applied applied = ApplyTo(R"(graph "g" {
  input %x : float32[2, 2]
  %a = MatMul(%x, %x) name "a"
  %b = Relu(%a) name "b"
  output %b "b"
})",
                                  In(Mode::kMixBf16));
  EXPECT_EQ(applied.graph->value(applied.graph->Find("a")).type.dtype, DType::kBF16);
  EXPECT_EQ(Nodes(*applied.graph),
            (Lines{"Cast:bfloat16", "MatMul:bfloat16", "Relu:bfloat16", "Cast:float32"}));
}

TEST(PrecisionApplyTest, CastsThatUndoEachOtherGo) {
  const std::string text = R"(graph "g" {
  input %x : float16[2, 2]
  %m = MatMul(%x, %x) name "m"
  %c = Cast(%m) [to = 1] name "cast"
  %y = Sqrt(%c) name "y"
  output %y "y"
})";
  // Sqrt looks through the cast, and reads what it reads.
  Applied applied = ApplyTo(text, In(Mode::kMixFp16));
  EXPECT_EQ(applied.casts, (Lines{"y float16>float32 of y for "}));
  EXPECT_EQ(Nodes(*applied.graph),
            (Lines{"MatMul:float16", "Cast:float32", "Sqrt:float16", "Cast:float32"}));
  // A black Cast is left alone.
  Settings settings = In(Mode::kForceFp16);
  settings.lists["Cast"] = ops::PrecisionReduce::kBlack;
  applied = ApplyTo(text, settings);
  EXPECT_EQ(applied.casts,
            (Lines{"c float32>float16 of cast for y", "y float16>float32 of y for "}));
}

TEST(PrecisionApplyTest, FloatingCastsMerge) {
  const Applied applied = ApplyTo(R"(graph "g" {
  input %x : float32[2, 2]
  %c = Cast(%x) [to = 10] name "cast"
  %y = Exp(%c) name "y"
  output %y "y"
})",
                                  In(Mode::kCubeFp32));
  EXPECT_EQ(applied.casts, (Lines{"y float32>float16 of y for "}));
  EXPECT_EQ(Nodes(*applied.graph), (Lines{"Cast:float16", "Exp:float32", "Cast:float16"}));
}

TEST(PrecisionApplyTest, CubeReadsRoundedAndGivesFloat32) {
  const Applied applied = ApplyTo(R"(graph "g" {
  input %x : float32[2, 2]
  input %w : float16[2, 2]
  %v = Cast(%w) [to = 1] name "v"
  %m = MatMul(%x, %v) name "m"
  output %m "m"
})",
                                  In(Mode::kCubeFp32));
  EXPECT_EQ(applied.casts, (Lines{"w float16>float32 of  for v,m",
                                  "x float32>float16 of  for x", "x float16>float32 of x for m"}));
}

// --- rounding
// --------------------------------------------------------------------------------------

// After RoundHalf and what removes the superfluous.
Lines Rounded(const std::string& text, HashSet<std::string> keep = {}) {
  const auto graph = Read(text);
  CompileOptions options;
  options.device = *device::FindDevice("cpu");
  options.keep = std::move(keep);
  PassContext context{*graph, options};
  EXPECT_TRUE(RoundHalf(context).ok());
  EXPECT_TRUE(RemoveNoOps(context).ok());
  EXPECT_TRUE(RemoveUnused(context).ok());
  return Nodes(*graph);
}

TEST(RoundHalfTest, WhatANodeMakesIsRoundedOnce) {
  EXPECT_EQ(Rounded(R"(graph "g" {
  input %x : float16[2]
  %a = Exp(%x)
  %b = Sqrt(%a)
  output %b "b"
})"),
            (Lines{"Cast:float32", "Exp:float32", "Cast:float16", "Cast:float32", "Sqrt:float32",
                   "Cast:float16"}));
}

TEST(RoundHalfTest, WhatIsRepresentableAnywayIsNotRounded) {
  EXPECT_EQ(Rounded(R"(graph "g" {
  input %x : float16[2]
  %a = Neg(%x)
  %b = Max(%a, %x)
  output %b "b"
})"),
            (Lines{"Cast:float32", "Neg:float32", "Max:float32", "Cast:float16"}));
}

TEST(RoundHalfTest, RoundingWaitsForAReluUnlessSomebodyLooks) {
  const std::string text = R"(graph "g" {
  input %x : float16[2]
  %a = Exp(%x)
  %b = Relu(%a)
  %c = Sqrt(%b)
  output %c "c"
})";
  EXPECT_EQ(Rounded(text), (Lines{"Cast:float32", "Exp:float32", "Relu:float32", "Cast:float16",
                                  "Cast:float32", "Sqrt:float32", "Cast:float16"}));
  EXPECT_EQ(Rounded(text, {"a"}),
            (Lines{"Cast:float32", "Exp:float32", "Cast:float16", "Cast:float32", "Relu:float32",
                   "Sqrt:float32", "Cast:float16"}));
}

TEST(RoundHalfTest, MovesBehindARoundedValueStayWide) {
  EXPECT_EQ(Rounded(R"(graph "g" {
  input %x : float16[2, 3]
  %a = Exp(%x)
  %b = Transpose(%a)
  %c = Sqrt(%b)
  output %c "c"
})"),
            (Lines{"Cast:float32", "Exp:float32", "Cast:float16", "Cast:float32",
                   "Transpose:float32", "Sqrt:float32", "Cast:float16"}));
}

// --- options
// ---------------------------------------------------------------------------------------

// A file that is gone at the end.
class TempFile {
 public:
  explicit TempFile(const std::string& text) {
    std::string name = ::testing::TempDir() + "precision_XXXXXX";
    close(mkstemp(name.data()));
    path_ = name;
    std::ofstream(path_) << text;
  }
  ~TempFile() { std::remove(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

using Settled = absl::StatusOr<Settings>;
Settled ReadFrom(const std::string& text, options::Profile profile = options::Profile::kNative) {
  options::Options options(profile);
  EXPECT_TRUE(options.SetText(text).ok()) << text;
  return ReadSettings(options.Resolve({}).options);
}

TEST(PrecisionSettingsTest, EverySpelling) {
  const std::pair<const char*, Mode> cases[] = {
      {"precision_mode_v2=fp16", Mode::kForceFp16},
      {"precision_mode_v2=origin", Mode::kKeepOrigin},
      {"precision_mode_v2=cube_fp16in_fp32out", Mode::kCubeFp32},
      {"precision_mode_v2=mixed_float16", Mode::kMixFp16},
      {"precision_mode_v2=mixed_bfloat16", Mode::kMixBf16},
      {"precision_mode=allow_fp32_to_fp16", Mode::kAllowFp32ToFp16},
      {"precision_mode=allow_fp32_to_bf16", Mode::kAllowFp32ToBf16},
      {"precision_mode=force_fp16", Mode::kForceFp16},
      {"precision_mode=force_fp32", Mode::kCubeFp32},
      {"precision_mode=cube_fp16in_fp32out", Mode::kCubeFp32},
      {"precision_mode=must_keep_origin_dtype", Mode::kKeepOrigin},
      {"precision_mode=allow_mix_precision", Mode::kMixFp16},
      {"precision_mode=allow_mix_precision_fp16", Mode::kMixFp16},
      {"precision_mode=allow_mix_precision_bf16", Mode::kMixBf16},
  };
  for (const auto& [text, mode] : cases) {
    const Settled settings = ReadFrom(text);
    ASSERT_TRUE(settings.ok()) << settings.status();
    EXPECT_EQ(settings->mode, mode) << text;
    EXPECT_EQ(settings->option, text);
  }
}

TEST(PrecisionSettingsTest, DefaultsOfTheProfiles) {
  using options::Profile;
  EXPECT_EQ(ReadFrom("")->mode, Mode::kKeepOrigin);
  EXPECT_EQ(ReadFrom("", Profile::kSession)->mode, Mode::kKeepOrigin);
  EXPECT_EQ(ReadFrom("graph_run_mode=0", Profile::kSession)->mode, Mode::kForceFp16);
  EXPECT_EQ(ReadFrom("product=training", Profile::kSession)->mode, Mode::kAllowFp32ToFp16);
  EXPECT_EQ(ReadFrom("", Profile::kRunConfig)->mode, Mode::kAllowFp32ToFp16);
  EXPECT_TRUE(ReadFrom("", Profile::kRunConfig)->older);
  EXPECT_EQ(ReadFrom("precision_mode=force_fp32", Profile::kRunConfig)->mode, Mode::kForceFp32);
  EXPECT_EQ(ReadFrom("precision_mode_v2=mixed_float16", Profile::kRunConfig)->mode, Mode::kMixFp16);
}

Settled WithLists(const std::string& json) {
  const TempFile file(json);
  return ReadFrom(absl::StrCat("precision_mode_v2=mixed_float16\nmodify_mixlist=", file.path()));
}

TEST(PrecisionSettingsTest, MixListsMove) {
  using ops::PrecisionReduce;
  // The documents' right example: to-add alone moves, and so does removing and adding.
  Settled moved = WithLists(R"({
    "black-list": {"to-remove": ["Exp"], "to-add": ["MatMul", "Relu"]},
    "white-list": {"to-remove": ["MatMul", "Conv"], "to-add": ["Log"]},
    "gray-list": {"to-add": ["Pow"]}})");
  ASSERT_TRUE(moved.ok()) << moved.status();
  EXPECT_EQ(moved->lists.at("Exp"), PrecisionReduce::kGray);
  EXPECT_EQ(moved->lists.at("MatMul"), PrecisionReduce::kBlack);
  EXPECT_EQ(moved->lists.at("Relu"), PrecisionReduce::kBlack);
  // Removed from white is gray, not black.
  EXPECT_EQ(moved->lists.at("Conv"), PrecisionReduce::kGray);
  EXPECT_EQ(moved->lists.at("Log"), PrecisionReduce::kWhite);
  EXPECT_EQ(moved->lists.at("Pow"), PrecisionReduce::kGray);
  EXPECT_TRUE(moved->warnings.empty());
}

TEST(PrecisionSettingsTest, WhatDoesNothingIsAWarning) {
  const Settled moved =
      WithLists(R"({"black-list": {"to-remove": ["Conv"]}, "white-list": {"to-add": ["Matmul"]}})");
  ASSERT_TRUE(moved.ok()) << moved.status();
  EXPECT_EQ(moved->lists.at("Conv"), ops::PrecisionReduce::kWhite);
  EXPECT_EQ(moved->warnings,
            (Lines{"modify_mixlist: Conv is not on the black-list, and stays where it is",
                   "modify_mixlist: there is no operator Matmul here"}));
}

TEST(PrecisionSettingsTest, ContradictionsAreErrors) {
  for (const char* json :
       {R"({"black-list": {"to-remove": ["Exp"]}, "white-list": {"to-remove": ["Exp"]}})",
        R"({"gray-list": {"to-remove": ["Relu"]}})"}) {
    const Settled moved = WithLists(json);
    EXPECT_EQ(moved.status().code(), absl::StatusCode::kInvalidArgument) << json;
    EXPECT_NE(moved.status().message().find("is moved in more than one way"),
              absl::string_view::npos)
        << moved.status();
  }
}

// --- implementation modes --------------------------------------------------------------------------

// "Op:kernel" of each step.
Lines Kernels(const std::string& options_text) {
  const auto graph = Read(R"(graph "g" {
  input %x : float32[2, 8]
  %t = Tanh(%x) name "first"
  %r = Relu(%t) name "relu"
  %u = Tanh(%r) name "second"
  %s = Softmax(%u) name "softmax"
  output %s "s"
})");
  Settled settings = ReadFrom(options_text);
  EXPECT_TRUE(settings.ok()) << settings.status();
  CompileOptions options;
  options.device = *device::FindDevice("cpu");
  options.allocator = &memory::DefaultAllocator();
  options.precision = std::make_shared<const Settings>(*std::move(settings));
  const auto compiled = Compile(*graph, options);
  EXPECT_TRUE(compiled.ok()) << compiled.status();
  Lines lines;
  if (compiled.ok())
    for (const exec::Step& step : compiled->program->steps)
      lines.push_back(absl::StrCat(step.op, step.kernel == "reference" ? ":double" : ""));
  return lines;
}

TEST(ImplementationModesTest, HighPrecisionComputesInDouble) {
  EXPECT_EQ(Kernels(""), (Lines{"FusedElementwise", "Softmax"}));
  const TempFile by_type("Tanh=high_precision\nRelu=high_precision\n");
  EXPECT_EQ(Kernels("op_precision_mode=" + by_type.path()),
            (Lines{"Tanh:double", "Relu", "Tanh:double", "Softmax"}));
  // Names stand above types.
  const TempFile by_name(
      "[ByOpType]\nTanh=high_precision\n[ByNodeName]\nfirst=high_performance\n");
  EXPECT_EQ(Kernels("op_precision_mode=" + by_name.path()),
            (Lines{"FusedElementwise", "Tanh:double", "Softmax"}));
}

TEST(ImplementationModesTest, TheOlderOptionsTakeTheDocumentsNames) {
  EXPECT_EQ(Kernels("op_select_implmode=high_precision\noptypelist_for_implmode=SoftmaxV2"),
            (Lines{"FusedElementwise", "Softmax:double"}));
  EXPECT_EQ(Kernels("op_select_implmode=high_precision_for_all"),
            (Lines{"Tanh:double", "Relu", "Tanh:double", "Softmax:double"}));
  EXPECT_EQ(Kernels("op_select_implmode=high_performance"), Kernels(""));
}

TEST(ImplementationModesTest, ModesWithoutAnEffectAreRefusedOrNoted) {
  const auto resolved = [](const char* mode) {
    const TempFile file(absl::StrCat("Exp=", mode));
    options::Options options;
    EXPECT_TRUE(options.SetText("op_precision_mode=" + file.path()).ok());
    return options.Resolve({});
  };
  for (const char* mode : {"keep_fp16", "super_performance", "enable_hi_float_32_execution"}) {
    const absl::Status status = resolved(mode).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << mode;
    EXPECT_NE(status.message().find(absl::StrCat(mode, " for Exp: ")), absl::string_view::npos)
        << status;
  }
  for (const char* mode : {"enable_float_32_execution", "support_out_of_bound_index"}) {
    const options::Resolution result = resolved(mode);
    EXPECT_TRUE(result.status().ok()) << result.status();
    EXPECT_EQ(result.options.notes().size(), 1u) << mode;
  }
}

TEST(PrecisionSettingsTest, FilesAreRead) {
  const TempFile custom(
      "# the documents' lines\n"
      "resnet_v1_50/block1/Relu::InputDtype:float16,int8,OutputDtype:float16,int8\n"
      "OpType::Relu:InputDtype:float16,int8,OutputDtype:float16,int8\n");
  const TempFile info(R"({"Relu": {"precision_reduce": {"flag": "false"},
    "input0": {"name": "x", "dtype": "float16,float32"}, "output0": {"dtype": "float16, float32"},
    "AiCpu": {}}})");
  const Settled settings =
      ReadFrom(absl::StrCat("precision_mode_v2=mixed_bfloat16\ncustomize_dtypes=", custom.path(),
                            "\nops_info=", info.path()));
  ASSERT_TRUE(settings.ok()) << settings.status();
  ASSERT_EQ(settings->custom.size(), 2u);
  EXPECT_EQ(settings->custom[1].name, "Relu");
  EXPECT_EQ(settings->custom[1].inputs, (std::vector<DType>{DType::kF16, DType::kI8}));
  const options::OpsInfo::Row* row = settings->info->Find("Relu");
  ASSERT_NE(row, nullptr);
  EXPECT_EQ(row->lowered, false);
  ASSERT_EQ(row->ai_core->size(), 2u);
  EXPECT_EQ((*row->ai_core)[1].outputs, std::vector<DType>{DType::kF32});
  EXPECT_TRUE(row->ai_cpu->empty());
}

}  // namespace
}  // namespace npurt::compile::precision
