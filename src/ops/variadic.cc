// Sum, Mean, Max, Min of any number of tensors that broadcast together.
#include <algorithm>

#include "kernels/elementwise/scalar.h"
#include "ops/elementwise.h"

namespace npurt::ops::variadic {
namespace {

using kernels::ElementwiseOp;
using kernels::ElementwiseProgram;
using Types = absl::Span<const DType>;

// x0 op x1 op x2 …, then divided by their number if it is a mean. None for more inputs than the
// engine takes: the reference runs then.
template <ElementwiseOp kOp, bool kMean>
bool Fold(const Attributes&, Types types, ElementwiseProgram* program) {
  if (types.empty() || types.size() > kernels::kMaxElementwiseInputs) return false;
  const DType type = types[0];
  const bool narrow = type == DType::kF16 || type == DType::kBF16;
  const DType compute = narrow ? DType::kF32 : type;
  if (!Contains(kernels::InfoOf(kOp).types, compute)) return false;
  program->inputs.assign(types.begin(), types.end());
  std::uint8_t acc = narrow ? program->AddCast(type, compute, 0) : 0;
  for (std::size_t k = 1; k < types.size(); ++k) {
    std::uint8_t x = static_cast<std::uint8_t>(k);
    if (narrow) x = program->AddCast(type, compute, x);
    acc = program->Add(kOp, compute, acc, x);
  }
  if (kMean && types.size() > 1)
    acc = program->Add(ElementwiseOp::kDivideBy, compute, acc, 0, 0,
                       static_cast<float>(types.size()));
  if (narrow) acc = program->AddCast(compute, type, acc);
  if (program->code.empty()) acc = program->Add(ElementwiseOp::kIdentity, type, 0);
  program->outputs.push_back(acc);
  return program->code.size() <= kernels::kMaxElementwiseCode;
}

struct SumOf {
  template <typename T>
  static T Join(T a, T b) {
    return kernels::scalar::Add(a, b);
  }
};
struct MaxOf {
  template <typename T>
  static T Join(T a, T b) {
    return kernels::scalar::Max(a, b);
  }
};
struct MinOf {
  template <typename T>
  static T Join(T a, T b) {
    return kernels::scalar::Min(a, b);
  }
};

template <typename T, typename Op, bool kMean>
void Loop(const RunContext& run) {
  using Acc = std::conditional_t<(Contains(kFloats, kDTypeOf<T>)), double, T>;
  const absl::Span<const std::int64_t> dims = run.output_dims(0);
  for (std::int64_t i = 0; i < run.output_count_of(0); ++i) {
    Acc acc{};
    for (int k = 0; k < run.input_count(); ++k) {
      const absl::Span<const std::int64_t> in = run.dims(k);
      std::int64_t rest = i, stride = 1, index = 0;
      for (std::size_t a = 0; a < in.size(); ++a) {
        const std::int64_t extent = in[in.size() - 1 - a];
        if (extent != 1) index += rest % extent * stride;
        rest /= dims[dims.size() - 1 - a];
        stride *= extent;
      }
      const Acc x = static_cast<Acc>(run.Load<T>(k, index));
      acc = k == 0 ? x : Op::Join(acc, x);
    }
    if (kMean) acc = static_cast<Acc>(acc / static_cast<Acc>(run.input_count()));
    run.Store<T>(0, i, static_cast<T>(acc));
  }
}

template <typename Op, bool kMean>
absl::Status Reference(const RunContext& run, std::int64_t, void*) {
  for (int k = 0; k < run.input_count(); ++k) {
    const absl::Span<const std::int64_t> in = run.dims(k), out = run.output_dims(0);
    bool fits = in.size() <= out.size();
    for (std::size_t a = 0; fits && a < in.size(); ++a)
      fits = in[in.size() - 1 - a] == 1 || in[in.size() - 1 - a] == out[out.size() - 1 - a];
    if (!fits) return absl::InvalidArgumentError("shapes of the operands do not broadcast");
  }
  DispatchDType<kNumbers>(run.output(0).dtype,
                          [&](auto type) { Loop<decltype(type), Op, kMean>(run); });
  return absl::OkStatus();
}

absl::Status Infer(InferContext& context) {
  if (context.input_count() == 0) return absl::InvalidArgumentError("got no inputs");
  return InferElementwise(context);
}

template <ElementwiseOp kOp, typename Op, bool kMean = false>
constexpr OpDef Variadic(const char* name, DTypeSet types) {
  OpDef op = ElementwiseOpDef<Fold<kOp, kMean>>(name, 1, types);
  op.inputs[0] = {"*data", "T"};
  op.infer = Infer;
  op.reference = Reference<Op, kMean>;
  return op;
}

}  // namespace

extern constexpr OpDef kOps[] = {
    Variadic<ElementwiseOp::kMax, MaxOf>("Max", kNumbers),
    Variadic<ElementwiseOp::kAdd, SumOf, true>("Mean", kFloats),
    Variadic<ElementwiseOp::kMin, MinOf>("Min", kNumbers),
    Variadic<ElementwiseOp::kAdd, SumOf>("Sum", kFloats),
};
extern constexpr int kOpCount = static_cast<int>(sizeof kOps / sizeof kOps[0]);

}  // namespace npurt::ops::variadic
