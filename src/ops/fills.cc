// ConstantOfShape, Range, EyeLike: tensors whose elements follow from a few numbers.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/checked_math.h"
#include "ops/move.h"

namespace npurt::ops::fills {
namespace {

absl::Status InferConstantOfShape(InferContext& context) {
  const Tensor* value = context.attributes().FindTensor("value");
  const DType dtype = value == nullptr ? DType::kF32 : value->dtype();
  if (value != nullptr && value->element_count() != 1)
    return absl::InvalidArgumentError(
        absl::StrCat("'value' has ", value->element_count(), " elements, want 1"));
  if (!RanksKnown(context)) {
    context.set_output_unknown(0, dtype);
    return absl::OkStatus();
  }
  NPURT_RETURN_IF_ERROR(WantRank(context, 0, 1));
  auto dims = context.integers(0);
  if (!dims) {
    const Dim length = context.shape(0)[0];
    if (!length.is_constant()) {
      context.set_output_unknown(0, dtype);
      return absl::OkStatus();
    }
    dims.emplace(static_cast<std::size_t>(length.value()));
    for (Dim& d : *dims) d = context.RunDim();
    context.set_output(0, dtype, *dims);
    return absl::OkStatus();
  }
  for (Dim d : *dims)
    if (d.is_constant() && d.value() < 0)
      return absl::InvalidArgumentError(
          absl::StrCat("shape ", ShapeString(*dims), " has a negative dimension"));
  context.set_output(0, dtype, *dims);
  const bool small = dims->empty() || (dims->size() == 1 && (*dims)[0].is_constant() &&
                                       (*dims)[0].value() <= 1024);
  if (small && value != nullptr && Contains(kIntegers, dtype)) {
    NPURT_ASSIGN_OR_RETURN(const std::vector<std::int64_t> number, Integers(*value));
    context.set_output_integers(
        0, SymDims(dims->empty() ? 1 : static_cast<std::size_t>((*dims)[0].value()), number[0]));
  }
  return absl::OkStatus();
}

// Fills output 0, from element `first` on, with the first element of `from`, or with zeros.
absl::Status Fill(const RunContext& run, std::int64_t first, const void* from) {
  constexpr std::int64_t kPart = 1 << 20;  // between two polls; packed types need whole bytes
  const Slot& out = run.output(0);
  for (std::int64_t last; first < out.count; first = last) {
    last = std::min(out.count, AlignUp(first + 1, kPart));
    if (from == nullptr)
      ZeroElements(out.dtype, out.data, first, last - first);
    else
      FillElements(out.dtype, out.data, first, from, 0, last - first);
    NPURT_RETURN_IF_ERROR(run.Poll());
  }
  return absl::OkStatus();
}

absl::Status ReferenceConstantOfShape(const RunContext& run, std::int64_t, void*) {
  const Slot& out = run.output(0);
  const Tensor* value = run.attributes().FindTensor("value");
  if (value == nullptr) return Fill(run, 0, nullptr);
  if (value->dtype() == out.dtype) return Fill(run, 0, value->data());
  if (out.count > 0) {  // the reference device stores floats as float64
    NPURT_ASSIGN_OR_RETURN(const std::vector<double> number, Reals(*value));
    StoreReal(run, 0, 0, number[0]);
    return Fill(run, 1, out.data);
  }
  return absl::OkStatus();
}

// ceil((limit - start) / delta), at least 0.
absl::StatusOr<std::int64_t> RangeCount(DType dtype, const Tensor& start, const Tensor& limit,
                                        const Tensor& delta) {
  if (IsFloat(dtype)) {
    NPURT_ASSIGN_OR_RETURN(const auto a, Reals(start));
    NPURT_ASSIGN_OR_RETURN(const auto b, Reals(limit));
    NPURT_ASSIGN_OR_RETURN(const auto d, Reals(delta));
    const double count = std::ceil((b[0] - a[0]) / d[0]);
    if (d[0] == 0 || !(count < 4e18))
      return absl::InvalidArgumentError(
          absl::StrCat("a range from ", a[0], " to ", b[0], " in steps of ", d[0]));
    return count > 0 ? static_cast<std::int64_t>(count) : 0;
  }
  NPURT_ASSIGN_OR_RETURN(const auto a, Integers(start));
  NPURT_ASSIGN_OR_RETURN(const auto b, Integers(limit));
  NPURT_ASSIGN_OR_RETURN(const auto d, Integers(delta));
  std::int64_t span, count;
  if (!ApplyDimOp(DimOp::kSub, b[0], a[0], &span) ||
      !ApplyDimOp(DimOp::kCeilDiv, span, d[0], &count))
    return absl::InvalidArgumentError(
        absl::StrCat("a range from ", a[0], " to ", b[0], " in steps of ", d[0]));
  return std::max<std::int64_t>(count, 0);
}

absl::Status InferRange(InferContext& context) {
  const DType dtype = context.dtype(0);
  for (int i = 0; i < 3; ++i)
    if (context.rank(i) > 1 || (context.rank(i) == 1 && context.shape(i)[0].is_constant() &&
                                !context.shape(i)[0].Is(1)))
      return absl::InvalidArgumentError("start, limit and delta must be scalars");
  const Tensor *start = context.constant(0), *limit = context.constant(1),
               *delta = context.constant(2);
  if (start != nullptr && limit != nullptr && delta != nullptr) {
    NPURT_ASSIGN_OR_RETURN(const std::int64_t count, RangeCount(dtype, *start, *limit, *delta));
    context.set_output(0, dtype, {count});
    if (!IsFloat(dtype) && count <= 1024) {
      NPURT_ASSIGN_OR_RETURN(const auto a, Integers(*start));
      NPURT_ASSIGN_OR_RETURN(const auto d, Integers(*delta));
      SymDims values;
      for (std::int64_t i = 0; i < count; ++i) values.push_back(a[0] + i * d[0]);
      context.set_output_integers(0, std::move(values));
    }
    return absl::OkStatus();
  }
  const auto a = context.integers(0), b = context.integers(1), d = context.integers(2);
  if (a && b && d && a->size() == 1 && b->size() == 1 && d->size() == 1) {
    const Dim step = (*d)[0];
    if (step.Is(0)) return absl::InvalidArgumentError("the step is 0");
    const Dim span = (*b)[0] - (*a)[0];
    // Steps of 1 from 0 to a dimension count that dimension.
    const bool plain = (*a)[0].Is(0) && step.Is(1) && !span.is_constant() &&
                       (span.node()->op == DimOp::kInput || span.node()->op == DimOp::kRun);
    context.set_output(0, dtype, {plain ? span : Max(CeilDiv(span, step), 0)});
    return absl::OkStatus();
  }
  context.set_output(0, dtype, {context.RunDim()});
  return absl::OkStatus();
}

// The size may have been unknown until now.
absl::Status ReferenceRange(const RunContext& run, std::int64_t, void*) {
  const DType dtype = run.output(0).dtype;
  for (int i = 0; i < 3; ++i)
    if (run.count(i) != 1) return absl::InvalidArgumentError("start, limit and delta must be scalars");
  NPURT_ASSIGN_OR_RETURN(
      const std::int64_t count,
      RangeCount(run.dtype(0), run.InputTensor(0), run.InputTensor(1), run.InputTensor(2)));
  if (run.output(0).data == nullptr) NPURT_RETURN_IF_ERROR(run.AllocateOutput(0, {count}));
  if (run.output_count_of(0) != count)
    return absl::InvalidArgumentError(absl::StrCat("the range has ", count,
                                                   " elements, the output ",
                                                   run.output_count_of(0)));
  DispatchDType<kNumbers>(dtype, [&](auto type) {
    using T = decltype(type);
    if constexpr (Contains(kFloats, kDTypeOf<T>)) {
      const double start = RealAt(run, 0, 0), delta = RealAt(run, 2, 0);
      for (std::int64_t i = 0; i < count; ++i)
        run.Store<T>(0, i, static_cast<T>(start + static_cast<double>(i) * delta));
    } else {
      using U = std::uint64_t;  // wraps rather than overflows
      const U start = static_cast<U>(run.Load<T>(0, 0)), delta = static_cast<U>(run.Load<T>(2, 0));
      for (std::int64_t i = 0; i < count; ++i)
        run.Store<T>(0, i, static_cast<T>(start + static_cast<U>(i) * delta));
    }
  });
  return absl::OkStatus();
}

absl::Status InferEyeLike(InferContext& context) {
  const std::int64_t number =
      context.attributes().Int("dtype", static_cast<std::int64_t>(context.dtype(0)));
  const DType dtype = number > 0 && number < kDTypeCount ? static_cast<DType>(number)
                                                         : DType::kUndefined;
  if (!Contains(kPlainTypes, dtype))
    return absl::InvalidArgumentError(absl::StrCat("dtype is ", number, ", want a numeric type"));
  if (!RanksKnown(context)) {
    context.set_output_unknown(0, dtype);
    return absl::OkStatus();
  }
  NPURT_RETURN_IF_ERROR(WantRank(context, 0, 2));
  context.set_output(0, dtype, context.shape(0));
  return absl::OkStatus();
}

absl::Status ReferenceEyeLike(const RunContext& run, std::int64_t, void*) {
  NPURT_RETURN_IF_ERROR(Fill(run, 0, nullptr));
  const std::int64_t k = run.attributes().Int("k", 0);
  const std::int64_t rows = run.dims(0)[0], columns = run.dims(0)[1];
  if (k >= columns || k <= -rows) return absl::OkStatus();
  for (std::int64_t i = 0; i < rows; ++i)
    if (i + k >= 0 && i + k < columns) StoreReal(run, 0, i * columns + i + k, 1);
  return absl::OkStatus();
}

}  // namespace

extern constexpr OpDef kOps[] = {
    {
        .name = "ConstantOfShape",
        .inputs = {{"input", "int64"}},
        .outputs = {{"output", "T"}},
        .types = {{"T", kAnyType}},
        .attributes = {{"value", AttrKind::kTensor}},
        .any_rank = true,
        .infer = InferConstantOfShape,
        .reference = ReferenceConstantOfShape,
    },
    {
        .name = "Range",
        .inputs = {{"start", "T"}, {"limit", "T"}, {"delta", "T"}},
        .outputs = {{"output", "T"}},
        .types = {{"T", kNumbers}},
        .infer = InferRange,
        .reference = ReferenceRange,
    },
    {
        .name = "EyeLike",
        .inputs = {{"input", "T1"}},
        .outputs = {{"output", "T2"}},
        .types = {{"T1", kPlainTypes}, {"T2", kPlainTypes}},
        .attributes = {{"dtype", AttrKind::kInt}, {"k", AttrKind::kInt}},
        .any_rank = true,
        .infer = InferEyeLike,
        .reference = ReferenceEyeLike,
    },
};
extern constexpr int kOpCount = static_cast<int>(sizeof kOps / sizeof kOps[0]);

}  // namespace npurt::ops::fills
