// CumSum, CumProd: y[i] = the sum (product) of x[0 … i] along an axis that is an input; `exclusive` leaves
// x[i] out, `reverse` starts at the other end.
#include "absl/strings/str_cat.h"
#include "kernels/elementwise/scalar.h"
#include "ops/around_axis.h"
#include "ops/move.h"

namespace npurt::ops::cumsum {
namespace {

absl::Status Infer(InferContext& context) {
  if (const auto axis = ConstantIntegers(context, 1)) {
    if (axis->size() != 1)
      return absl::InvalidArgumentError(absl::StrCat("axis has ", axis->size(), " elements"));
    NPURT_RETURN_IF_ERROR(NormalizeAxis((*axis)[0], context.rank(0)).status());
  }
  context.set_output(0, context.dtype(0), context.shape(0));
  return absl::OkStatus();
}

template <typename T, bool kProduct>
void Loop(const RunContext& run, const AroundAxis& a, bool exclusive, bool reverse) {
  using Acc = std::conditional_t<(Contains(kFloats, kDTypeOf<T>)), double, T>;
  for (std::int64_t o = 0; o < a.outer; ++o)
    for (std::int64_t k = 0; k < a.inner; ++k) {
      Acc acc = static_cast<Acc>(kProduct ? 1 : 0);
      for (std::int64_t s = 0; s < a.n; ++s) {
        const std::int64_t i = (o * a.n + (reverse ? a.n - 1 - s : s)) * a.inner + k;
        const Acc x = static_cast<Acc>(run.Load<T>(0, i));
        const Acc next = kProduct ? kernels::scalar::Mul(acc, x) : kernels::scalar::Add(acc, x);
        run.Store<T>(0, i, static_cast<T>(exclusive ? acc : next));
        acc = next;
      }
    }
}

template <bool kProduct>
absl::Status Reference(const RunContext& run, std::int64_t, void*) {
  if (run.count(1) != 1) return absl::InvalidArgumentError("axis must be one number");
  NPURT_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(IndexAt(run, 1, 0), run.input(0).rank));
  const AroundAxis a = Around(run.dims(0), axis);
  const bool exclusive = run.attributes().Int("exclusive") != 0;
  const bool reverse = run.attributes().Int("reverse") != 0;
  DispatchDType<kNumbers>(run.dtype(0), [&](auto type) {
    Loop<decltype(type), kProduct>(run, a, exclusive, reverse);
  });
  return absl::OkStatus();
}

template <bool kProduct>
constexpr OpDef Def(const char* name) {
  OpDef op;
  op.name = name;
  op.inputs[0] = {"x", "T"};
  op.inputs[1] = {"axis", "T2"};
  op.outputs[0] = {"y", "T"};
  op.types[0] = {"T", kNumbers};
  op.types[1] = {"T2", DTypes(DType::kI32, DType::kI64)};
  op.attributes[0] = {"exclusive", AttrKind::kInt};
  op.attributes[1] = {"reverse", AttrKind::kInt};
  op.infer = Infer;
  op.reference = Reference<kProduct>;
  return op;
}

}  // namespace

extern constexpr OpDef kOps[] = {Def<false>("CumSum"), Def<true>("CumProd")};
extern constexpr int kOpCount = static_cast<int>(sizeof kOps / sizeof kOps[0]);

}  // namespace npurt::ops::cumsum
