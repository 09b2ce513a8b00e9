// LpNormalization: y = x / (sum of |x|^p along `axis`)^(1/p), 0 where that norm is 0.
// MeanVarianceNormalization: y = (x - mean) / (deviation + 1e-9) over `axes`.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "kernels/norm/norm.h"
#include "kernels/reduce/reduce.h"
#include "ops/around_axis.h"
#include "ops/move.h"
#include "ops/poller.h"

namespace npurt::ops::lp_norm {
namespace {

absl::Status Infer(InferContext& context) {
  NPURT_RETURN_IF_ERROR(
      NormalizeAxis(context.attributes().Int("axis", -1), context.rank(0)).status());
  const std::int64_t p = context.attributes().Int("p", 2);
  if (p != 1 && p != 2) return absl::InvalidArgumentError(absl::StrCat("p is ", p, ", want 1 or 2"));
  context.set_output(0, context.dtype(0), context.shape(0));
  return absl::OkStatus();
}

absl::Status Reference(const RunContext& run, std::int64_t, void*) {
  const AroundAxis a = Around(run.dims(0), run.attributes().Int("axis", -1));
  const bool squares = run.attributes().Int("p", 2) == 2;
  for (std::int64_t o = 0; o < a.outer; ++o)
    for (std::int64_t k = 0; k < a.inner; ++k) {
      const std::int64_t base = o * a.n * a.inner + k;
      double norm = 0;
      for (std::int64_t i = 0; i < a.n; ++i) {
        const double x = RealAt(run, 0, base + i * a.inner);
        norm += squares ? x * x : std::fabs(x);
      }
      if (squares) norm = std::sqrt(norm);
      for (std::int64_t i = 0; i < a.n; ++i)
        StoreReal(run, 0, base + i * a.inner,
                  norm == 0 ? 0 : RealAt(run, 0, base + i * a.inner) / norm);
    }
  return absl::OkStatus();
}

struct State final : Prepared {
  const kernels::ReduceKernel* folds = nullptr;
  const kernels::NormKernel* rows = nullptr;
};

absl::StatusOr<std::unique_ptr<Prepared>> Prepare(PrepareContext& context) {
  const ValueType& in = context.type(0);
  if (in.dtype != DType::kF32 || !in.has_rank) return nullptr;
  // Rows only; other axes are rare and go the reference's way.
  const int rank = static_cast<int>(in.dims.size());
  const auto axis = NormalizeAxis(context.attributes().Int("axis", -1), rank);
  if (!axis.ok() || *axis != rank - 1) return nullptr;
  auto state = std::make_unique<State>();
  state->folds = &kernels::SelectReduce(KernelIsa(context));
  state->rows = &kernels::SelectNorm(KernelIsa(context));
  state->kernel = state->rows->name;
  return state;
}

absl::Status Bind(BindContext& context) {
  const AroundAxis a = Around(context.dims(0), -1);
  auto* plan = context.New<kernels::NormPlan>();
  *plan = kernels::PlanNorm(a.outer, a.n);
  context.SetTiles(plan->tiles, static_cast<double>(plan->tile_cost) * 2 * kNsPerElement);
  context.MayOverwrite(0, 0);
  return absl::OkStatus();
}

absl::Status Run(const RunContext& run, std::int64_t tile, void*) {
  const State& state = *run.prepared<State>();
  const auto& plan = *run.bound<kernels::NormPlan>();
  const bool squares = run.attributes().Int("p", 2) == 2;
  const kernels::Fold fold = squares ? kernels::Fold::kSumSquares : kernels::Fold::kSumAbs;
  const std::int64_t first = tile * plan.lines_per_tile;
  const std::int64_t last = std::min(plan.lines, first + plan.lines_per_tile);
  for (std::int64_t line = first; line < last; ++line) {
    const float* in = run.in<float>(0) + line * plan.n;
    double norm = 0;
    kernels::FoldRow(*state.folds, fold, in, plan.n, nullptr, &norm, StopCheckOf(run));
    if (squares) norm = std::sqrt(norm);
    kernels::Affine(*state.rows, in, run.out<float>(0) + line * plan.n, plan.n, 0,
                    norm == 0 ? 0.0f : static_cast<float>(1 / norm), 0, StopCheckOf(run));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::uint32_t> MvnAxes(const Attributes& attributes, int rank) {
  std::uint32_t bits = 0;
  static constexpr std::int64_t kDefault[] = {0, 2, 3};
  const auto given = attributes.Ints("axes");
  if (rank > 31) return absl::UnimplementedError(absl::StrCat("rank ", rank));
  for (std::int64_t a : attributes.Has("axes") ? given : absl::MakeConstSpan(kDefault)) {
    NPURT_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(a, rank));
    bits |= 1u << axis;
  }
  return bits;
}

absl::Status InferMvn(InferContext& context) {
  NPURT_RETURN_IF_ERROR(MvnAxes(context.attributes(), context.rank(0)).status());
  context.set_output(0, context.dtype(0), context.shape(0));
  return absl::OkStatus();
}

absl::Status ReferenceMvn(const RunContext& run, std::int64_t, void*) {
  NPURT_ASSIGN_OR_RETURN(const std::uint32_t bits, MvnAxes(run.attributes(), run.input(0).rank));
  const absl::Span<const std::int64_t> dims = run.dims(0);
  const Dims strides = StridesOf(dims);
  Dims kept, kept_strides, reduced, reduced_strides;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const bool is_reduced = (bits >> i & 1) != 0;
    (is_reduced ? reduced : kept).push_back(dims[i]);
    (is_reduced ? reduced_strides : kept_strides).push_back(strides[i]);
  }
  if (run.count(0) == 0) return absl::OkStatus();
  const auto offset = [](const Dims& at, const Dims& by) {
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < at.size(); ++i) sum += at[i] * by[i];
    return sum;
  };
  Dims outer(kept.size(), 0);
  do {
    const std::int64_t base = offset(outer, kept_strides);
    double mean = 0, variance = 0, count = 0;
    Dims at(reduced.size(), 0);
    do {
      mean += RealAt(run, 0, base + offset(at, reduced_strides));
      ++count;
    } while (NextIndex(reduced, absl::MakeSpan(at)));
    mean /= count;
    do {
      const double d = RealAt(run, 0, base + offset(at, reduced_strides)) - mean;
      variance += d * d;
    } while (NextIndex(reduced, absl::MakeSpan(at)));
    // The definition adds its constant to the deviation and not to the variance.
    const double deviation = std::sqrt(variance / count) + 1e-9;
    do {
      const std::int64_t i = base + offset(at, reduced_strides);
      StoreReal(run, 0, i, (RealAt(run, 0, i) - mean) / deviation);
    } while (NextIndex(reduced, absl::MakeSpan(at)));
  } while (NextIndex(kept, absl::MakeSpan(outer)));
  return absl::OkStatus();
}

}  // namespace

extern constexpr OpDef kOps[] = {
    {
        .name = "LpNormalization",
        .inputs = {{"input", "T"}},
        .outputs = {{"output", "T"}},
        .types = {{"T", kFloats}},
        .attributes = {{"axis", AttrKind::kInt}, {"p", AttrKind::kInt}},
        .infer = Infer,
        .reference = Reference,
        .prepare = Prepare,
        .bind = Bind,
        .run = Run,
    },
    {
        .name = "MeanVarianceNormalization",
        .inputs = {{"x", "T"}},
        .outputs = {{"y", "T"}},
        .types = {{"T", kFloats}},
        .attributes = {{"axes", AttrKind::kInts}},
        .infer = InferMvn,
        .reference = ReferenceMvn,
    },
};
extern constexpr int kOpCount = static_cast<int>(sizeof kOps / sizeof kOps[0]);

}  // namespace npurt::ops::lp_norm
