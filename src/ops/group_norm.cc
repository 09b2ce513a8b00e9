// GroupNormalization, InstanceNormalization: y = (x - mean) / sqrt(variance + epsilon) * scale + bias, mean
// and variance over the channels of a group (of one channel) and all spatial axes.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "kernels/norm/norm.h"
#include "ops/around_axis.h"
#include "ops/move.h"
#include "ops/poller.h"

namespace npurt::ops::group_norm {
namespace {

struct Sizes {
  std::int64_t batch = 1, channels = 1, spatial = 1, groups = 1;
};

absl::StatusOr<Sizes> SizesOf(absl::Span<const std::int64_t> dims, const Attributes& attributes) {
  Sizes s;
  for (std::size_t i = 0; i < dims.size(); ++i)
    (i == 0 ? s.batch : i == 1 ? s.channels : s.spatial) *= dims[i];
  s.groups = attributes.Int("num_groups", s.channels);
  if (s.groups <= 0 || s.channels % s.groups != 0)
    return absl::InvalidArgumentError(
        absl::StrCat(s.channels, " channels do not divide into ", s.groups, " groups"));
  return s;
}

absl::Status Infer(InferContext& context) {
  const SymDims& in = context.shape(0);
  if (in.size() < 2)
    return absl::InvalidArgumentError(
        absl::StrCat("input has shape ", ShapeString(in), ", want a batch and channels"));
  for (int i = 1; i < 3; ++i) {
    const SymDims& dims = context.shape(i);
    if (dims.size() != 1 || (dims[0].is_constant() && in[1].is_constant() && dims[0] != in[1]))
      return absl::InvalidArgumentError(absl::StrCat(i == 1 ? "scale" : "bias", " has shape ",
                                                     ShapeString(dims),
                                                     ", want one number per channel of ",
                                                     ShapeString(in)));
  }
  context.set_output(0, context.dtype(0), in);
  return absl::OkStatus();
}

absl::Status CheckOperands(std::int64_t scales, std::int64_t biases, const Sizes& s) {
  if (scales == s.channels && biases == s.channels) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("scale and bias have ", scales, " and ", biases,
                                                 " numbers, want ", s.channels));
}

absl::Status Reference(const RunContext& run, std::int64_t, void*) {
  NPURT_ASSIGN_OR_RETURN(const Sizes s, SizesOf(run.dims(0), run.attributes()));
  NPURT_RETURN_IF_ERROR(CheckOperands(run.count(1), run.count(2), s));
  const double epsilon = static_cast<double>(run.attributes().Float("epsilon", 1e-5f));
  const std::int64_t per_group = s.channels / s.groups, n = per_group * s.spatial;
  for (std::int64_t g = 0; g < s.batch * s.groups; ++g) {
    double mean = 0, variance = 0;
    for (std::int64_t i = 0; i < n; ++i) mean += RealAt(run, 0, g * n + i);
    mean /= static_cast<double>(n);
    for (std::int64_t i = 0; i < n; ++i) {
      const double d = RealAt(run, 0, g * n + i) - mean;
      variance += d * d;
    }
    variance /= static_cast<double>(n);
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t c = g % s.groups * per_group + i / s.spatial;
      const double x = (RealAt(run, 0, g * n + i) - mean) / std::sqrt(variance + epsilon);
      StoreReal(run, 0, g * n + i, x * RealAt(run, 1, c) + RealAt(run, 2, c));
    }
  }
  return absl::OkStatus();
}

struct State final : Prepared {
  const kernels::NormKernel* rows = nullptr;
};

absl::StatusOr<std::unique_ptr<Prepared>> Prepare(PrepareContext& context) {
  if (context.type(0).dtype != DType::kF32) return nullptr;
  auto state = std::make_unique<State>();
  state->rows = &kernels::SelectNorm(KernelIsa(context));
  state->kernel = state->rows->name;
  return state;
}

absl::Status Bind(BindContext& context) {
  NPURT_ASSIGN_OR_RETURN(const Sizes s, SizesOf(context.dims(0), context.attributes()));
  NPURT_RETURN_IF_ERROR(CheckOperands(context.count(1), context.count(2), s));
  auto* plan = context.New<kernels::NormPlan>();
  *plan = kernels::PlanNorm(s.batch * s.groups, s.channels / s.groups * s.spatial);
  context.SetTiles(plan->tiles, static_cast<double>(plan->tile_cost) * 3 * kNsPerElement);
  context.MayOverwrite(0, 0);
  return absl::OkStatus();
}

absl::Status Run(const RunContext& run, std::int64_t tile, void*) {
  NPURT_ASSIGN_OR_RETURN(const Sizes s, SizesOf(run.dims(0), run.attributes()));
  const kernels::GroupNormArgs args = {
      run.in<float>(0), run.in<float>(1), run.in<float>(2), run.out<float>(0), s.channels,
      s.groups,         s.spatial,        run.attributes().Float("epsilon", 1e-5f)};
  kernels::RunGroupNormTile(*run.prepared<State>()->rows, *run.bound<kernels::NormPlan>(), args,
                            tile, StopCheckOf(run));
  return absl::OkStatus();
}

}  // namespace

extern constexpr OpDef kOps[] = {
    {
        .name = "GroupNormalization",
        .inputs = {{"x", "T"}, {"scale", "T"}, {"bias", "T"}},
        .outputs = {{"y", "T"}},
        .types = {{"T", kFloats}},
        .attributes = {{"epsilon", AttrKind::kFloat},
                       {"num_groups", AttrKind::kInt, true},
                       {"stash_type", AttrKind::kInt}},
        .infer = Infer,
        .reference = Reference,
        .prepare = Prepare,
        .bind = Bind,
        .run = Run,
    },
    {
        .name = "InstanceNormalization",
        .inputs = {{"input", "T"}, {"scale", "T"}, {"b", "T"}},
        .outputs = {{"output", "T"}},
        .types = {{"T", kFloats}},
        .attributes = {{"epsilon", AttrKind::kFloat}},
        .infer = Infer,
        .reference = Reference,
        .prepare = Prepare,
        .bind = Bind,
        .run = Run,
    },
};
extern constexpr int kOpCount = static_cast<int>(sizeof kOps / sizeof kOps[0]);

}  // namespace npurt::ops::group_norm
