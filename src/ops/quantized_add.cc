// QLinearAdd: y = (a - a_zero) * a_scale + (b - b_zero) * b_scale, quantised, on bytes; one scale each, no
// broadcasting. Made by the fuse pass from DequantizeLinear, Add and QuantizeLinear, whose bits it has:
// each step is one of float32. `low` and `high` bound the bytes of y.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "kernels/quantize/quantize.h"
#include "ops/move.h"
#include "ops/number_list.h"

namespace npurt::ops::quantized_add {
namespace {

constexpr DTypeSet kBytes = DTypes(DType::kI8, DType::kU8);
constexpr int kA = 0, kB = 3, kY = 6;  // b and the scale of y; what follows each is its scale or zero

absl::Status Infer(InferContext& context) {
  const SymDims &a = context.shape(kA), &b = context.shape(kB);
  const bool fits = a.size() == b.size() &&
                    std::equal(a.begin(), a.end(), b.begin(), [](const Dim& x, const Dim& y) {
                      return !x.is_constant() || !y.is_constant() || x == y;
                    });
  if (!fits)
    return absl::InvalidArgumentError(
        absl::StrCat("a has shape ", ShapeString(a), ", b ", ShapeString(b)));
  context.set_output(0, context.dtype(kY + 1), a);
  return absl::OkStatus();
}

template <typename Context>
absl::Status Check(const Context& context) {
  if (context.dims(kA) != context.dims(kB))
    return absl::InvalidArgumentError(absl::StrCat("a has shape ", ShapeString(context.dims(kA)),
                                                   ", b ", ShapeString(context.dims(kB))));
  for (int i : {1, 2, 4, 5, 6, 7})
    if (context.count(i) != 1)
      return absl::InvalidArgumentError(
          absl::StrCat("input ", i, " has ", context.count(i), " elements, want 1"));
  return absl::OkStatus();
}

absl::Status Reference(const RunContext& run, std::int64_t, void*) {
  NPURT_RETURN_IF_ERROR(Check(run));
  const auto scale = [&](int i) { return static_cast<float>(RealAt(run, i, 0)); };
  const auto real = [&](int x, std::int64_t i) {
    return static_cast<float>(IndexAt(run, x, i) - IndexAt(run, x + 2, 0)) * scale(x + 1);
  };
  const Slot& out = run.output(0);
  const ByteBounds bounds = BoundsOf(run.attributes(), out.dtype);
  const auto zero = static_cast<double>(IndexAt(run, kY + 1, 0));
  for (std::int64_t i = 0; i < run.count(kA); ++i) {
    NPURT_RETURN_IF_ERROR(PollAt(run, i));
    const float quotient = (real(kA, i) + real(kB, i)) / scale(kY);
    StoreNumber(out.dtype, out.data, i,
                bounds.Bounded(std::nearbyint(static_cast<double>(quotient)) + zero));
  }
  return absl::OkStatus();
}

struct PreparedAdd : Prepared {
  const kernels::QuantizeKernel* rows = nullptr;
};
absl::StatusOr<std::unique_ptr<Prepared>> Prepare(PrepareContext& context) {
  for (int i : {1, 4, 6})
    if (context.type(i).dtype != DType::kF32) return nullptr;
  auto prepared = std::make_unique<PreparedAdd>();
  prepared->rows = kernels::SelectQuantize(context.isa());
  prepared->kernel = prepared->rows->name;
  return prepared;
}

absl::Status Bind(BindContext& bind) {
  NPURT_RETURN_IF_ERROR(Check(bind));
  SetCopyTiles(bind, DType::kU8, bind.count(kA));
  for (int i : {kA, kB}) bind.MayOverwrite(0, i);
  return absl::OkStatus();
}

absl::Status Run(const RunContext& run, std::int64_t tile, void*) {
  const TileRange range = TileOf(tile, CopyTiles(DType::kU8, run.count(kA)), run.count(kA));
  const ByteBounds bounds = BoundsOf(run.attributes(), run.output(0).dtype);
  const auto zero = [&](int i) { return NumbersOf(run, i).ZeroPoint(); };
  run.prepared<PreparedAdd>()->rows->byte_sum(
      {run.in<char>(kA) + range.first, run.in<char>(kB) + range.first,
       run.out<char>(0) + range.first, static_cast<std::size_t>(range.last - range.first),
       run.Load<float>(kA + 1, 0), run.Load<float>(kB + 1, 0), run.Load<float>(kY, 0), zero(kA + 2),
       zero(kB + 2), zero(kY + 1), bounds.low, bounds.high, run.dtype(kA) == DType::kI8,
       run.dtype(kB) == DType::kI8});
  return absl::OkStatus();
}

}  // namespace

extern constexpr OpDef kOp = {
    .name = "QLinearAdd",
    .inputs = {{"a", "T1"},
               {"a_scale", "F"},
               {"a_zero_point", "T1"},
               {"b", "T2"},
               {"b_scale", "F"},
               {"b_zero_point", "T2"},
               {"y_scale", "F"},
               {"y_zero_point", "T3"}},
    .outputs = {{"y", "T3"}},
    .types = {{"T1", kBytes}, {"T2", kBytes}, {"T3", kBytes},
              {"F", DTypes(DType::kF32, DType::kF64)}},  // float64 on the reference device
    .attributes = {{"low", AttrKind::kInt}, {"high", AttrKind::kInt}},
    .internal = true,
    .infer = Infer,
    .reference = Reference,
    .prepare = Prepare,
    .bind = Bind,
    .run = Run,
};

}  // namespace npurt::ops::quantized_add
