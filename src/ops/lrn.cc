// LRN: y = x / (bias + alpha / size * sum of squares over `size` channels around)^beta.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "kernels/norm/norm.h"
#include "ops/around_axis.h"
#include "ops/move.h"

namespace npurt::ops::lrn {
namespace {

struct Options {
  std::int64_t size;
  float alpha, beta, bias;
};

Options OptionsOf(const Attributes& attributes) {
  return {attributes.Int("size", 1), attributes.Float("alpha", 1e-4f),
          attributes.Float("beta", 0.75f), attributes.Float("bias", 1)};
}

absl::Status Infer(InferContext& context) {
  if (context.rank(0) < 2)
    return absl::InvalidArgumentError(absl::StrCat("input has shape ",
                                                   ShapeString(context.shape(0)),
                                                   ", want a batch and channels"));
  if (OptionsOf(context.attributes()).size < 1)
    return absl::InvalidArgumentError("size must be at least 1");
  context.set_output(0, context.dtype(0), context.shape(0));
  return absl::OkStatus();
}

absl::Status Reference(const RunContext& run, std::int64_t, void*) {
  const AroundAxis a = Around(run.dims(0), 1);
  const Options o = OptionsOf(run.attributes());
  const std::int64_t before = (o.size - 1) / 2, after = o.size - 1 - before;
  for (std::int64_t b = 0; b < a.outer; ++b)
    for (std::int64_t c = 0; c < a.n; ++c)
      for (std::int64_t i = 0; i < a.inner; ++i) {
        double sum = 0;
        for (std::int64_t k = std::max<std::int64_t>(c - before, 0);
             k <= std::min(a.n - 1, c + after); ++k) {
          const double x = RealAt(run, 0, (b * a.n + k) * a.inner + i);
          sum += x * x;
        }
        const double base = static_cast<double>(o.bias) +
                            static_cast<double>(o.alpha) / static_cast<double>(o.size) * sum;
        const std::int64_t at = (b * a.n + c) * a.inner + i;
        StoreReal(run, 0, at, RealAt(run, 0, at) / std::pow(base, static_cast<double>(o.beta)));
      }
  return absl::OkStatus();
}

struct State final : Prepared {
  const kernels::NormKernel* rows = nullptr;
};

// All channels of a block of columns.
struct Bound {
  std::int64_t blocks, columns;
};

absl::StatusOr<std::unique_ptr<Prepared>> Prepare(PrepareContext& context) {
  if (context.type(0).dtype != DType::kF32) return nullptr;
  auto state = std::make_unique<State>();
  state->rows = &kernels::SelectNorm(KernelIsa(context));
  state->kernel = state->rows->name;
  return state;
}

absl::Status Bind(BindContext& context) {
  const AroundAxis a = Around(context.dims(0), 1);
  auto* bound = context.New<Bound>();
  constexpr std::int64_t kTileElements = 16384;
  bound->columns = std::clamp<std::int64_t>(kTileElements / std::max<std::int64_t>(a.n, 1) / 16 * 16,
                                            16, std::max<std::int64_t>(a.inner, 16));
  bound->blocks = (a.inner + bound->columns - 1) / bound->columns;
  const double window = static_cast<double>(OptionsOf(context.attributes()).size);
  context.SetTiles(a.outer * bound->blocks, static_cast<double>(a.n * bound->columns) *
                                                (2 + window / 4) * kNsPerElement * 10);
  return absl::OkStatus();
}

absl::Status Run(const RunContext& run, std::int64_t tile, void*) {
  const AroundAxis a = Around(run.dims(0), 1);
  const Options o = OptionsOf(run.attributes());
  const Bound& bound = *run.bound<Bound>();
  const std::int64_t column = tile % bound.blocks * bound.columns;
  const std::int64_t base = tile / bound.blocks * a.n * a.inner + column;
  const kernels::LrnArgs args = {run.in<float>(0) + base,
                                 run.out<float>(0) + base,
                                 static_cast<std::size_t>(a.n),
                                 static_cast<std::size_t>(a.inner),
                                 static_cast<std::size_t>(std::min(bound.columns, a.inner - column)),
                                 static_cast<std::size_t>(o.size),
                                 o.alpha,
                                 o.beta,
                                 o.bias};
  run.prepared<State>()->rows->lrn(args);
  return absl::OkStatus();
}

}  // namespace

extern constexpr OpDef kOp = {
    .name = "LRN",
    .inputs = {{"x", "T"}},
    .outputs = {{"y", "T"}},
    .types = {{"T", kFloats}},
    .attributes = {{"size", AttrKind::kInt, true},
                   {"alpha", AttrKind::kFloat},
                   {"beta", AttrKind::kFloat},
                   {"bias", AttrKind::kFloat}},
    .infer = Infer,
    .reference = Reference,
    .prepare = Prepare,
    .bind = Bind,
    .run = Run,
};

}  // namespace npurt::ops::lrn
