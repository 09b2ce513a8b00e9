// LayerNormalization, RMSNormalization: y = (x - mean) / sqrt(variance + epsilon) * scale + bias over the
// axes from `axis` on; RMS leaves the mean and the bias out.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "kernels/norm/norm.h"
#include "ops/around_axis.h"
#include "ops/move.h"
#include "ops/poller.h"

namespace npurt::ops::layer_norm {
namespace {

struct Sizes {
  std::int64_t rows = 1, n = 1;
};

Sizes SizesOf(absl::Span<const std::int64_t> dims, const Attributes& attributes) {
  std::int64_t axis = attributes.Int("axis", -1);
  if (axis < 0) axis += static_cast<std::int64_t>(dims.size());
  Sizes sizes;
  for (std::size_t i = 0; i < dims.size(); ++i)
    (static_cast<std::int64_t>(i) < axis ? sizes.rows : sizes.n) *= dims[i];
  return sizes;
}

// The output has the type of the scale, which LayerNormalization wants to be that of the data.
absl::Status Infer(InferContext& context) {
  const SymDims& in = context.shape(0);
  NPURT_ASSIGN_OR_RETURN(const int axis,
                         NormalizeAxis(context.attributes().Int("axis", -1), context.rank(0)));
  for (int i = 1; i < context.input_count(); ++i) {
    if (!context.has_input(i)) continue;
    const SymDims& dims = context.shape(i);
    bool fits = dims.size() <= in.size();
    for (std::size_t d = 0; fits && d < dims.size(); ++d) {
      const Dim& mine = dims[dims.size() - 1 - d];
      const Dim& theirs = in[in.size() - 1 - d];
      fits = mine == theirs || mine.Is(1) || !mine.is_constant() || !theirs.is_constant();
    }
    if (!fits)
      return absl::InvalidArgumentError(absl::StrCat(i == 1 ? "scale" : "bias", " has shape ",
                                                     ShapeString(dims),
                                                     ", which does not broadcast to ",
                                                     ShapeString(in)));
  }
  context.set_output(0, context.dtype(1), in);
  SymDims stats(in.begin(), in.begin() + axis);
  stats.resize(in.size(), 1);
  for (int i = 1; i < context.output_count(); ++i) context.set_output(i, DType::kF32, stats);
  return absl::OkStatus();
}

// Where element (row, i) of the data finds its scale or bias.
std::int64_t OperandIndex(const RunContext& run, int input, std::int64_t index) {
  const absl::Span<const std::int64_t> dims = run.dims(input), out = run.dims(0);
  std::int64_t at = 0, stride = 1;
  for (std::size_t a = 0; a < dims.size(); ++a) {
    const std::int64_t extent = dims[dims.size() - 1 - a];
    if (extent != 1) at += index % out[out.size() - 1 - a] * stride;
    index /= out[out.size() - 1 - a];
    stride *= extent;
  }
  return at;
}

// The statistics are float32 whatever the data; on a device of doubles they are doubles.
template <bool kRms>
absl::Status Reference(const RunContext& run, std::int64_t, void*) {
  const Sizes s = SizesOf(run.dims(0), run.attributes());
  const double epsilon = static_cast<double>(run.attributes().Float("epsilon", 1e-5f));
  for (std::int64_t r = 0; r < s.rows; ++r) {
    double mean = 0, variance = 0;
    for (std::int64_t i = 0; i < s.n && !kRms; ++i) mean += RealAt(run, 0, r * s.n + i);
    mean /= static_cast<double>(s.n);
    for (std::int64_t i = 0; i < s.n; ++i) {
      const double d = RealAt(run, 0, r * s.n + i) - mean;
      variance += d * d;
    }
    variance /= static_cast<double>(s.n);
    const double inv_std = 1 / std::sqrt(variance + epsilon);
    for (std::int64_t i = 0; i < s.n; ++i) {
      const std::int64_t at = r * s.n + i;
      double y = (RealAt(run, 0, at) - mean) * inv_std;
      if (run.has_input(1)) y *= RealAt(run, 1, OperandIndex(run, 1, at));
      if (run.has_input(2)) y += RealAt(run, 2, OperandIndex(run, 2, at));
      StoreReal(run, 0, at, y);
    }
    if (run.has_output(1)) StoreReal(run, 1, r, mean);
    if (run.has_output(2)) StoreReal(run, 2, r, inv_std);
  }
  return absl::OkStatus();
}

struct State final : Prepared {
  const kernels::NormKernel* rows = nullptr;
};

absl::StatusOr<std::unique_ptr<Prepared>> Prepare(PrepareContext& context) {
  const ValueType& in = context.type(0);
  if (in.dtype != DType::kF32 || !in.has_rank) return nullptr;
  auto axis = NormalizeAxis(context.attributes().Int("axis", -1), static_cast<int>(in.dims.size()));
  if (!axis.ok()) return nullptr;
  // The kernel reads a scale per element of a row: nothing else broadcasts there.
  for (int i = 1; i < context.input_count(); ++i) {
    if (!context.has_input(i)) continue;
    const ValueType& operand = context.type(i);
    if (!operand.has_rank || operand.dtype != DType::kF32) return nullptr;
    const std::size_t inner = in.dims.size() - static_cast<std::size_t>(*axis);
    if (operand.dims.size() < inner) return nullptr;
    for (std::size_t d = 0; d < operand.dims.size(); ++d) {
      const Dim& mine = operand.dims[operand.dims.size() - 1 - d];
      if (d < inner ? mine != in.dims[in.dims.size() - 1 - d] : !mine.Is(1)) return nullptr;
    }
  }
  auto state = std::make_unique<State>();
  state->rows = &kernels::SelectNorm(KernelIsa(context));
  state->kernel = state->rows->name;
  return state;
}

absl::Status Bind(BindContext& context) {
  const Sizes s = SizesOf(context.dims(0), context.attributes());
  auto* plan = context.New<kernels::NormPlan>();
  *plan = kernels::PlanNorm(s.rows, s.n);
  context.SetTiles(plan->tiles, static_cast<double>(plan->tile_cost) * 3 * kNsPerElement);
  context.MayOverwrite(0, 0);
  return absl::OkStatus();
}

template <bool kRms>
absl::Status Run(const RunContext& run, std::int64_t tile, void*) {
  kernels::LayerNormArgs args = {};
  args.in = run.in<float>(0);
  args.gamma = run.has_input(1) ? run.in<float>(1) : nullptr;
  args.beta = run.has_input(2) ? run.in<float>(2) : nullptr;
  args.out = run.out<float>(0);
  args.mean = run.has_output(1) ? run.out<float>(1) : nullptr;
  args.inv_std = run.has_output(2) ? run.out<float>(2) : nullptr;
  args.epsilon = run.attributes().Float("epsilon", 1e-5f);
  args.rms = kRms;
  kernels::RunLayerNormTile(*run.prepared<State>()->rows, *run.bound<kernels::NormPlan>(), args,
                            tile, StopCheckOf(run));
  return absl::OkStatus();
}

}  // namespace

extern constexpr OpDef kOps[] = {
    {
        .name = "LayerNormalization",
        .inputs = {{"x", "T"}, {"scale", "T"}, {"?b", "T"}},
        .outputs = {{"y", "T"}, {"?mean", "float32"}, {"?inv_std_dev", "float32"}},
        .types = {{"T", kFloats}},
        .attributes = {{"axis", AttrKind::kInt},
                       {"epsilon", AttrKind::kFloat},
                       {"stash_type", AttrKind::kInt}},
        .infer = Infer,
        .reference = Reference<false>,
        .prepare = Prepare,
        .bind = Bind,
        .run = Run<false>,
    },
    {
        .name = "RMSNormalization",
        .inputs = {{"x", "T"}, {"scale", "V"}},
        .outputs = {{"y", "V"}},
        .types = {{"T", kFloats}, {"V", kFloats}},
        .attributes = {{"axis", AttrKind::kInt},
                       {"epsilon", AttrKind::kFloat},
                       {"stash_type", AttrKind::kInt}},
        .infer = Infer,
        .reference = Reference<true>,
        .prepare = Prepare,
        .bind = Bind,
        .run = Run<true>,
    },
};
extern constexpr int kOpCount = static_cast<int>(sizeof kOps / sizeof kOps[0]);

}  // namespace npurt::ops::layer_norm
