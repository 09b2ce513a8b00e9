#include "compile/compile.h"

#include <chrono>

#include "compile/precision/precision.h"

namespace npurt::compile {
namespace {

// kPrecision: where options choose what nodes compute in.
enum class Switch { kFolding, kFusion, kNoHalf, kPrecision, kPrecisionFolding };

struct Pass {
  absl::string_view name;
  PassFn run;
  Switch by;
};

// In this order; one may stand here more than once.
constexpr Pass kPasses[] = {
    {"fuse_quantized", FuseQuantized, Switch::kFusion},
    {"remove_unused", RemoveUnused, Switch::kFolding},  // weights as floats that nobody reads any more
    {"fold_constants", FoldConstants, Switch::kFolding},
    {"remove_no_ops", RemoveNoOps, Switch::kFolding},
    {"widen_half", WidenHalf, Switch::kNoHalf},
    {"remove_no_ops", RemoveNoOps, Switch::kFolding},
    {"merge_equal_nodes", MergeEqualNodes, Switch::kFolding},
    {"remove_unused", RemoveUnused, Switch::kFolding},
    {"fold_channel_scale", FoldChannelScale, Switch::kFusion},
    {"fuse_attention", FuseAttention, Switch::kFusion},
    {"fuse_norms", FuseNorms, Switch::kFusion},
    {"fuse_gelu", FuseGelu, Switch::kFusion},
    {"choose_precision", ChoosePrecision, Switch::kPrecision},
    {"fold_constants", FoldConstants, Switch::kPrecisionFolding},
    {"round_half", RoundHalf, Switch::kPrecision},
    {"remove_no_ops", RemoveNoOps, Switch::kPrecisionFolding},
    {"merge_equal_nodes", MergeEqualNodes, Switch::kPrecisionFolding},
    {"remove_unused", RemoveUnused, Switch::kPrecisionFolding},
    {"fuse_epilogues", FuseEpilogues, Switch::kFusion},
    {"choose_layouts", ChooseLayouts, Switch::kFusion},
    {"merge_transposes", MergeTransposes, Switch::kFolding},
    {"remove_no_ops", RemoveNoOps, Switch::kFolding},
    {"remove_unused", RemoveUnused, Switch::kFolding},
    {"fuse_elementwise_chains", FuseElementwiseChains, Switch::kFusion},
    {"remove_unused", RemoveUnused, Switch::kFolding},
};

bool ChoosesPrecision(const CompileOptions& options) {
  return options.precision != nullptr && !options.precision->keeps_all();
}

bool Enabled(const Pass& pass, const CompileOptions& options) {
  switch (pass.by) {
    case Switch::kFolding:
      return options.constant_folding;
    case Switch::kFusion:
      // The reference device computes node by node what the graph says.
      return options.fusion && options.device->capabilities().fast_kernels &&
             !options.passes_off.contains(std::string(pass.name));
    case Switch::kNoHalf:
      return !options.device->capabilities().half_arithmetic && !ChoosesPrecision(options);
    case Switch::kPrecision:
      return ChoosesPrecision(options);
    case Switch::kPrecisionFolding:
      return ChoosesPrecision(options) && options.constant_folding;
  }
  return false;
}

}  // namespace

absl::StatusOr<Compiled> Compile(const graph::Graph& source, const CompileOptions& given) {
  CompileOptions options = given;
  auto precision = std::make_shared<std::vector<precision::Report>>();
  if (options.precision_reports == nullptr) options.precision_reports = precision.get();
  using Clock = std::chrono::steady_clock;
  const std::unique_ptr<graph::Graph> graph = source.Clone();
  PassContext context{*graph, options};
  CompileReport report;
  report.nodes_before = source.node_count();
  const auto timed = [&](absl::string_view name, Clock::time_point start, int changes) {
    const double ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
    report.passes.push_back({std::string(name), changes, ms});
  };
  for (const Pass& pass : kPasses) {
    if (!Enabled(pass, options)) continue;
    if (options.cancel != nullptr && options.cancel->load(std::memory_order_relaxed))
      return absl::CancelledError("compiling was cancelled");
    const Clock::time_point start = Clock::now();
    NPURT_ASSIGN_OR_RETURN(const int changes, pass.run(context));
    timed(pass.name, start, changes);
  }
  const Clock::time_point start = Clock::now();
  NPURT_ASSIGN_OR_RETURN(Compiled compiled, Lower(*graph, options));
  report.precision = std::move(precision);
  report.steps_after = static_cast<int>(compiled.program->steps.size());
  timed("lower", start, report.steps_after);
  compiled.report = std::move(report);
  return compiled;
}

}  // namespace npurt::compile
