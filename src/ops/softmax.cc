// Softmax, LogSoftmax, Hardmax: y = e^x / sum of e^x along `axis`, its logarithm, and 1 at the largest.
#include <cmath>
#include <limits>

#include "kernels/softmax/softmax.h"
#include "ops/around_axis.h"
#include "ops/move.h"
#include "ops/poller.h"

namespace npurt::ops::softmax {
namespace {

absl::Status Infer(InferContext& context) {
  const int rank = context.rank(0);
  if (rank > 0)
    NPURT_RETURN_IF_ERROR(NormalizeAxis(context.attributes().Int("axis", -1), rank).status());
  context.set_output(0, context.dtype(0), context.shape(0));
  return absl::OkStatus();
}

template <typename T, bool kLog>
void Line(const RunContext& run, const AroundAxis& a, std::int64_t base) {
  double max = -std::numeric_limits<double>::infinity();
  for (std::int64_t i = 0; i < a.n; ++i) {
    const double x = static_cast<double>(run.Load<T>(0, base + i * a.inner));
    if (!(x <= max)) max = x;  // a NaN stays: nothing is larger
    if (std::isnan(x)) break;
  }
  double sum = 0;
  for (std::int64_t i = 0; i < a.n; ++i)
    sum += std::exp(static_cast<double>(run.Load<T>(0, base + i * a.inner)) - max);
  for (std::int64_t i = 0; i < a.n; ++i) {
    const double x = static_cast<double>(run.Load<T>(0, base + i * a.inner)) - max;
    run.Store<T>(0, base + i * a.inner,
                 static_cast<T>(kLog ? x - std::log(sum) : std::exp(x) / sum));
  }
}

template <bool kLog>
absl::Status Reference(const RunContext& run, std::int64_t, void*) {
  const AroundAxis a = Around(run.dims(0), run.attributes().Int("axis", -1));
  DispatchDType<kFloats>(run.dtype(0), [&](auto type) {
    for (std::int64_t o = 0; o < a.outer; ++o)
      for (std::int64_t k = 0; k < a.inner; ++k)
        Line<decltype(type), kLog>(run, a, o * a.n * a.inner + k);
  });
  return absl::OkStatus();
}

absl::Status ReferenceHardmax(const RunContext& run, std::int64_t, void*) {
  const AroundAxis a = Around(run.dims(0), run.attributes().Int("axis", -1));
  for (std::int64_t o = 0; o < a.outer; ++o)
    for (std::int64_t k = 0; k < a.inner; ++k) {
      const std::int64_t base = o * a.n * a.inner + k;
      std::int64_t best = 0;
      for (std::int64_t i = 1; i < a.n; ++i)
        if (RealAt(run, 0, base + i * a.inner) > RealAt(run, 0, base + best * a.inner)) best = i;
      for (std::int64_t i = 0; i < a.n; ++i)
        StoreReal(run, 0, base + i * a.inner, i == best ? 1 : 0);
    }
  return absl::OkStatus();
}

struct State final : Prepared {
  const kernels::SoftmaxKernel* rows = nullptr;
  const kernels::ReduceKernel* folds = nullptr;
};

absl::StatusOr<std::unique_ptr<Prepared>> Prepare(PrepareContext& context) {
  if (context.type(0).dtype != DType::kF32) return nullptr;
  auto state = std::make_unique<State>();
  state->rows = &kernels::SelectSoftmax(KernelIsa(context));
  state->folds = &kernels::SelectReduce(KernelIsa(context));
  state->kernel = state->rows->name;
  return state;
}

absl::Status Bind(BindContext& context) {
  const AroundAxis a = Around(context.dims(0), context.attributes().Int("axis", -1));
  auto* plan = context.New<kernels::SoftmaxPlan>();
  *plan = kernels::PlanSoftmax(a.outer, a.n, a.inner);
  context.SetTiles(plan->tiles, static_cast<double>(plan->tile_cost) * kNsPerElement);
  context.MayOverwrite(0, 0);
  return absl::OkStatus();
}

template <bool kLog>
absl::Status Run(const RunContext& run, std::int64_t tile, void*) {
  const State& state = *run.prepared<State>();
  kernels::RunSoftmaxTile(*state.rows, *state.folds, *run.bound<kernels::SoftmaxPlan>(),
                          run.in<float>(0), run.out<float>(0), kLog, tile, StopCheckOf(run));
  return absl::OkStatus();
}

}  // namespace

extern constexpr OpDef kOps[] = {
    {
        .name = "Softmax",
        .inputs = {{"input", "T"}},
        .outputs = {{"output", "T"}},
        .types = {{"T", kFloats}},
        .attributes = {{"axis", AttrKind::kInt}},
        .infer = Infer,
        .reference = Reference<false>,
        .prepare = Prepare,
        .bind = Bind,
        .run = Run<false>,
    },
    {
        .name = "LogSoftmax",
        .inputs = {{"input", "T"}},
        .outputs = {{"output", "T"}},
        .types = {{"T", kFloats}},
        .attributes = {{"axis", AttrKind::kInt}},
        .infer = Infer,
        .reference = Reference<true>,
        .prepare = Prepare,
        .bind = Bind,
        .run = Run<true>,
    },
    {
        .name = "Hardmax",
        .inputs = {{"input", "T"}},
        .outputs = {{"output", "T"}},
        .types = {{"T", kFloats}},
        .attributes = {{"axis", AttrKind::kInt}},
        .infer = Infer,
        .reference = ReferenceHardmax,
    },
};
extern constexpr int kOpCount = static_cast<int>(sizeof kOps / sizeof kOps[0]);

}  // namespace npurt::ops::softmax
