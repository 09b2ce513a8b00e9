// ArgMax, ArgMin: the position of the largest or smallest element along `axis`; a NaN counts as both.
#include "kernels/reduce/reduce.h"
#include "ops/around_axis.h"
#include "ops/move.h"
#include "ops/poller.h"

namespace npurt::ops::arg_max {
namespace {

absl::Status Infer(InferContext& context) {
  const Attributes& attributes = context.attributes();
  SymDims out = context.shape(0);
  if (!out.empty()) {
    NPURT_ASSIGN_OR_RETURN(const int axis,
                           NormalizeAxis(attributes.Int("axis", 0), context.rank(0)));
    if (out[static_cast<std::size_t>(axis)].Is(0))
      return absl::InvalidArgumentError("the axis is empty: nothing to choose from");
    if (attributes.Int("keepdims", 1) != 0) out[static_cast<std::size_t>(axis)] = 1;
    else out.erase(out.begin() + axis);
  }
  context.set_output(0, DType::kI64, std::move(out));
  return absl::OkStatus();
}

template <typename T, bool kLargest>
void Loop(const RunContext& run, const AroundAxis& a, bool last) {
  for (std::int64_t o = 0; o < a.outer; ++o)
    for (std::int64_t k = 0; k < a.inner; ++k) {
      const auto value = [&](std::int64_t i) { return run.Load<T>(0, (o * a.n + i) * a.inner + k); };
      std::int64_t best = 0;
      for (std::int64_t i = 1; i < a.n; ++i) {
        const T x = value(i), y = value(best);
        const bool x_nan = x != x, y_nan = y != y;
        const bool better = x_nan ? !y_nan : !y_nan && (kLargest ? x > y : x < y);
        const bool tie = x_nan ? y_nan : x == y;
        if (better || (last && tie)) best = i;
      }
      run.Store<std::int64_t>(0, o * a.inner + k, best);
    }
}

template <bool kLargest>
absl::Status Reference(const RunContext& run, std::int64_t, void*) {
  const AroundAxis a = Around(run.dims(0), run.attributes().Int("axis", 0));
  const bool last = run.attributes().Int("select_last_index") != 0;
  if (a.n == 0 && run.output_count_of(0) > 0)
    return absl::InvalidArgumentError("the axis is empty: nothing to choose from");
  DispatchDType<kNumbers>(run.dtype(0),
                          [&](auto type) { Loop<decltype(type), kLargest>(run, a, last); });
  return absl::OkStatus();
}

struct State final : Prepared {
  const kernels::ReduceKernel* rows = nullptr;
};

absl::StatusOr<std::unique_ptr<Prepared>> Prepare(PrepareContext& context) {
  if (context.type(0).dtype != DType::kF32) return nullptr;
  auto state = std::make_unique<State>();
  state->rows = &kernels::SelectReduce(KernelIsa(context));
  state->kernel = state->rows->name;
  return state;
}

absl::Status Bind(BindContext& context) {
  const AroundAxis a = Around(context.dims(0), context.attributes().Int("axis", 0));
  if (a.n == 0 && a.outer * a.inner > 0)
    return absl::InvalidArgumentError("the axis is empty: nothing to choose from");
  auto* plan = context.New<kernels::ArgExtremePlan>();
  *plan = kernels::PlanArgExtreme(a.outer, a.n, a.inner);
  context.SetTiles(plan->tiles, static_cast<double>(plan->tile_cost) * kNsPerElement);
  return absl::OkStatus();
}

template <bool kLargest>
absl::Status Run(const RunContext& run, std::int64_t tile, void*) {
  const bool last = run.attributes().Int("select_last_index") != 0;
  kernels::RunArgExtremeTile(*run.prepared<State>()->rows, *run.bound<kernels::ArgExtremePlan>(),
                             kLargest, last, run.in<float>(0), run.out<std::int64_t>(0), tile,
                             StopCheckOf(run));
  return absl::OkStatus();
}

template <bool kLargest>
constexpr OpDef Def(const char* name) {
  OpDef op;
  op.name = name;
  op.inputs[0] = {"data", "T"};
  op.outputs[0] = {"reduced", "int64"};
  op.types[0] = {"T", kNumbers};
  op.attributes[0] = {"axis", AttrKind::kInt};
  op.attributes[1] = {"keepdims", AttrKind::kInt};
  op.attributes[2] = {"select_last_index", AttrKind::kInt};
  op.infer = Infer;
  op.reference = Reference<kLargest>;
  op.prepare = Prepare;
  op.bind = Bind;
  op.run = Run<kLargest>;
  return op;
}

}  // namespace

extern constexpr OpDef kOps[] = {Def<true>("ArgMax"), Def<false>("ArgMin")};
extern constexpr int kOpCount = static_cast<int>(sizeof kOps / sizeof kOps[0]);

}  // namespace npurt::ops::arg_max
