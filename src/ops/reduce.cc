// The reductions: ReduceSum, ReduceMean, ReduceMax, ReduceMin, ReduceProd, ReduceSumSquare, ReduceL1,
// ReduceL2, ReduceLogSum, ReduceLogSumExp over any axes.
#include "kernels/reduce/reduce.h"

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "kernels/elementwise/scalar.h"
#include "ops/around_axis.h"
#include "ops/move.h"
#include "ops/poller.h"

namespace npurt::ops::reduce {
namespace {

using kernels::Reduction;

// The set of reduced axes. Without axes all are, or none with `noop_with_empty_axes`.
absl::StatusOr<std::uint32_t> AxisBits(absl::Span<const std::int64_t> axes,
                                       const Attributes& attributes, int rank) {
  if (rank > kernels::kReduceMaxRank)
    return absl::UnimplementedError(absl::StrCat("a reduction of rank ", rank));
  if (axes.empty()) {
    if (attributes.Int("noop_with_empty_axes") != 0) return 0u;
    return (1u << rank) - 1u;
  }
  std::uint32_t bits = 0;
  for (std::int64_t a : axes) {
    NPURT_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(a, rank));
    bits |= 1u << axis;
  }
  return bits;
}

// The axes of a node: input 1 if there is one.
absl::StatusOr<std::uint32_t> AxisBits(const RunContext& run) {
  std::vector<std::int64_t> axes;
  if (run.has_input(1)) axes = run.Integers(1);
  return AxisBits(axes, run.attributes(), run.input(0).rank);
}

absl::Status Infer(InferContext& context) {
  const SymDims& in = context.shape(0);
  const bool keep = context.attributes().Int("keepdims", 1) != 0;
  std::vector<std::int64_t> axes;
  if (context.has_input(1)) {
    if (context.rank(1) != 1)
      return absl::InvalidArgumentError(
          absl::StrCat("the axes have rank ", context.rank(1), ", want 1"));
    const auto known = ConstantIntegers(context, 1);
    if (!known) {
      if (!keep) {
        context.set_output_unknown(0, context.dtype(0));
        return absl::OkStatus();
      }
      SymDims out;
      for (std::size_t i = 0; i < in.size(); ++i) out.push_back(context.RunDim());
      context.set_output(0, context.dtype(0), std::move(out));
      return absl::OkStatus();
    }
    axes = *known;
  }
  NPURT_ASSIGN_OR_RETURN(const std::uint32_t bits,
                         AxisBits(axes, context.attributes(), context.rank(0)));
  SymDims out;
  for (std::size_t i = 0; i < in.size(); ++i) {
    if ((bits >> i & 1) == 0) out.push_back(in[i]);
    else if (keep) out.push_back(1);
  }
  context.set_output(0, context.dtype(0), std::move(out));
  return absl::OkStatus();
}

// The number of elements of a shape, its largest dimension …: known where the dimensions are.
template <Reduction kOp>
absl::Status InferWithIntegers(InferContext& context) {
  NPURT_RETURN_IF_ERROR(Infer(context));
  constexpr bool kProduct = kOp == Reduction::kProd, kSum = kOp == Reduction::kSum;
  const bool no_axes = !context.has_input(1) || (context.constant(1) != nullptr &&
                                                 context.constant(1)->element_count() == 0);
  if (context.rank(0) != 1 || !Contains(kIntegers, context.dtype(0)) ||
      (no_axes && context.attributes().Int("noop_with_empty_axes") != 0) ||
      (context.has_input(1) && context.constant(1) == nullptr))
    return absl::OkStatus();
  const auto values = context.integers(0);
  if (!values.has_value() || (values->empty() && !kProduct && !kSum)) return absl::OkStatus();
  Dim result = values->empty() ? Dim(kProduct ? 1 : 0) : (*values)[0];
  for (std::size_t i = 1; i < values->size(); ++i) {
    const Dim next = (*values)[i];
    if (kProduct) result = result * next;
    if (kSum) result = result + next;
    if (kOp == Reduction::kMax) result = Max(result, next);
    if (kOp == Reduction::kMin) result = Min(result, next);
  }
  context.set_output_integers(0, {result});
  return absl::OkStatus();
}

// Calls f(index in the input) for every element of one result, whose place is `out_index`.
struct Walk {
  Dims kept_dims, kept_strides, reduced_dims, reduced_strides;
  std::int64_t outputs = 1, reduced = 1;

  Walk(absl::Span<const std::int64_t> dims, std::uint32_t bits) {
    const Dims strides = StridesOf(dims);
    for (std::size_t i = 0; i < dims.size(); ++i) {
      const bool is_reduced = (bits >> i & 1) != 0;
      (is_reduced ? reduced_dims : kept_dims).push_back(dims[i]);
      (is_reduced ? reduced_strides : kept_strides).push_back(strides[i]);
      (is_reduced ? reduced : outputs) *= dims[i];
    }
  }
  static std::int64_t Offset(const Dims& dims, const Dims& strides, std::int64_t index) {
    std::int64_t offset = 0;
    for (std::size_t i = dims.size(); i-- > 0; index /= dims[i])
      offset += index % dims[i] * strides[i];
    return offset;
  }
  template <typename F>
  void ForEach(std::int64_t out_index, F f) const {
    const std::int64_t base = Offset(kept_dims, kept_strides, out_index);
    for (std::int64_t i = 0; i < reduced; ++i)
      f(base + Offset(reduced_dims, reduced_strides, i));
  }
};

// Floats sum in double, integers in wrapping int64 or uint64.
template <typename T>
using AccOf = std::conditional_t<(Contains(kFloats, kDTypeOf<T>)), double,
                                 std::conditional_t<std::is_unsigned_v<T>, std::uint64_t,
                                                    std::int64_t>>;

template <typename T>
T LowestOf() {
  if constexpr (Contains(kFloats, kDTypeOf<T>))
    return static_cast<T>(-std::numeric_limits<double>::infinity());
  else
    return std::numeric_limits<T>::lowest();
}
template <typename T>
T HighestOf() {
  if constexpr (Contains(kFloats, kDTypeOf<T>))
    return static_cast<T>(std::numeric_limits<double>::infinity());
  else
    return std::numeric_limits<T>::max();
}

// Back to the element type; logarithms and roots of integers drop the fraction.
template <typename T>
T FromReal(double x) {
  if constexpr (Contains(kFloats, kDTypeOf<T>)) return static_cast<T>(x);
  else if constexpr (std::is_same_v<T, bool>) return x != 0;
  else {
    if (!(x == x)) return T(0);
    if (x <= static_cast<double>(std::numeric_limits<T>::lowest()))
      return std::numeric_limits<T>::lowest();
    if (x >= static_cast<double>(std::numeric_limits<T>::max()))
      return std::numeric_limits<T>::max();
    return static_cast<T>(x);
  }
}

template <Reduction kOp, typename T>
T Reduce(const RunContext& run, const Walk& walk, std::int64_t o) {
  using Acc = AccOf<T>;
  namespace scalar = kernels::scalar;
  const auto value = [&run](std::int64_t i) { return static_cast<Acc>(run.Load<T>(0, i)); };
  if constexpr (kOp == Reduction::kMax || kOp == Reduction::kMin) {
    Acc acc = static_cast<Acc>(kOp == Reduction::kMax ? LowestOf<T>() : HighestOf<T>());
    walk.ForEach(o, [&](std::int64_t i) {
      acc = kOp == Reduction::kMax ? scalar::Max(acc, value(i)) : scalar::Min(acc, value(i));
    });
    return static_cast<T>(acc);
  } else if constexpr (kOp == Reduction::kProd) {
    Acc acc = 1;
    walk.ForEach(o, [&](std::int64_t i) { acc = scalar::Mul(acc, value(i)); });
    return static_cast<T>(acc);
  } else if constexpr (kOp == Reduction::kLogSumExp) {
    double max = -std::numeric_limits<double>::infinity();
    walk.ForEach(o, [&](std::int64_t i) {
      max = scalar::Max(max, static_cast<double>(value(i)));
    });
    const double shift = std::isfinite(max) ? max : 0;
    double sum = 0;
    walk.ForEach(o, [&](std::int64_t i) {
      sum += std::exp(static_cast<double>(value(i)) - shift);
    });
    return FromReal<T>(std::log(sum) + shift);
  } else {
    Acc acc = 0;
    walk.ForEach(o, [&](std::int64_t i) {
      Acc x = value(i);
      if constexpr (kOp == Reduction::kSumSquares || kOp == Reduction::kL2)
        x = scalar::Mul(x, x);
      if constexpr (kOp == Reduction::kL1) x = scalar::Abs(x);
      acc = scalar::Add(acc, x);
    });
    if constexpr (kOp == Reduction::kMean) {
      if constexpr (std::is_floating_point_v<Acc>)
        return static_cast<T>(acc / static_cast<double>(walk.reduced));
      else
        return static_cast<T>(scalar::Div(acc, static_cast<Acc>(walk.reduced)));
    }
    if constexpr (kOp == Reduction::kL2)
      return FromReal<T>(std::sqrt(static_cast<double>(acc)));
    if constexpr (kOp == Reduction::kLogSum)
      return FromReal<T>(std::log(static_cast<double>(acc)));
    return static_cast<T>(acc);
  }
}

template <Reduction kOp, DTypeSet kTypes>
absl::Status Reference(const RunContext& run, std::int64_t, void*) {
  NPURT_ASSIGN_OR_RETURN(const std::uint32_t bits, AxisBits(run));
  const Walk walk(run.dims(0), bits);
  // A list of axes too long to be known before the run leaves the output to it.
  if (run.output(0).data == nullptr) {
    const bool keep = run.attributes().Int("keepdims", 1) != 0;
    Dims out;
    for (std::size_t i = 0; i < run.dims(0).size(); ++i) {
      if ((bits >> i & 1) == 0) out.push_back(run.dims(0)[i]);
      else if (keep) out.push_back(1);
    }
    NPURT_RETURN_IF_ERROR(run.AllocateOutput(0, out));
  }
  if (run.output_count_of(0) != walk.outputs)
    return absl::InvalidArgumentError(absl::StrCat("the result has ", walk.outputs,
                                                   " elements, the output ",
                                                   run.output_count_of(0)));
  DispatchDType<kTypes>(run.dtype(0), [&](auto type) {
    using T = decltype(type);
    for (std::int64_t o = 0; o < walk.outputs; ++o)
      run.Store<T>(0, o, Reduce<kOp, T>(run, walk, o));
  });
  return absl::OkStatus();
}

struct State final : Prepared {
  const kernels::ReduceKernel* rows = nullptr;
};

absl::StatusOr<std::unique_ptr<Prepared>> Prepare(PrepareContext& context) {
  // Axes that only the run tells leave the work to the reference.
  if (context.type(0).dtype != DType::kF32 ||
      (context.has_input(1) && context.constant(1) == nullptr))
    return nullptr;
  auto state = std::make_unique<State>();
  state->rows = &kernels::SelectReduce(KernelIsa(context));
  state->kernel = state->rows->name;
  return state;
}

template <Reduction kOp>
absl::Status Bind(BindContext& context) {
  std::vector<std::int64_t> axes;
  if (context.has_input(1)) {
    if (context.constant(1) == nullptr) return absl::InternalError("axes are not constant");
    NPURT_ASSIGN_OR_RETURN(axes, Integers(*context.constant(1)));
  }
  const absl::Span<const std::int64_t> dims = context.dims(0);
  const int rank = static_cast<int>(dims.size());
  NPURT_ASSIGN_OR_RETURN(const std::uint32_t bits, AxisBits(axes, context.attributes(), rank));
  auto* plan = context.New<kernels::ReducePlan>();
  kernels::PlanReduce(kOp, dims.data(), rank, bits, plan);
  context.SetTiles(plan->tiles, static_cast<double>(plan->tile_cost) * kNsPerElement);
  return absl::OkStatus();
}

absl::Status Run(const RunContext& run, std::int64_t tile, void*) {
  kernels::RunReduceTile(*run.prepared<State>()->rows, *run.bound<kernels::ReducePlan>(),
                         run.in<float>(0), run.out<float>(0), tile, StopCheckOf(run));
  return absl::OkStatus();
}

template <Reduction kOp, DTypeSet kTypes = kNumbers>
constexpr OpDef Def(const char* name) {
  OpDef op;
  op.name = name;
  op.inputs[0] = {"data", "T"};
  op.inputs[1] = {"?axes", "int64"};
  op.outputs[0] = {"reduced", "T"};
  op.types[0] = {"T", kTypes};
  op.attributes[0] = {"keepdims", AttrKind::kInt};
  op.attributes[1] = {"noop_with_empty_axes", AttrKind::kInt};
  constexpr bool kOfShapes = kOp == Reduction::kProd || kOp == Reduction::kSum ||
                             kOp == Reduction::kMax || kOp == Reduction::kMin;
  op.infer = kOfShapes ? InferWithIntegers<kOp> : Infer;
  op.reference = Reference<kOp, kTypes>;
  op.prepare = Prepare;
  op.bind = Bind<kOp>;
  op.run = Run;
  return op;
}

}  // namespace

extern constexpr OpDef kOps[] = {
    Def<Reduction::kL1>("ReduceL1"),
    Def<Reduction::kL2>("ReduceL2"),
    Def<Reduction::kLogSum>("ReduceLogSum"),
    Def<Reduction::kLogSumExp>("ReduceLogSumExp"),
    Def<Reduction::kMax, kPlainTypes>("ReduceMax"),
    Def<Reduction::kMean>("ReduceMean"),
    Def<Reduction::kMin, kPlainTypes>("ReduceMin"),
    Def<Reduction::kProd>("ReduceProd"),
    Def<Reduction::kSum>("ReduceSum"),
    Def<Reduction::kSumSquares>("ReduceSumSquare"),
};
extern constexpr int kOpCount = static_cast<int>(sizeof kOps / sizeof kOps[0]);

}  // namespace npurt::ops::reduce
