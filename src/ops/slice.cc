// Slice: out[..., i, ...] = data[..., start + i * step, ...] along each named axis.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ops/move.h"

namespace npurt::ops::slice {
namespace {

struct Range {
  std::int64_t start, step, count;
};

// `start` and `end` may count from the end and lie anywhere; they are clamped.
Range Clamp(std::int64_t dim, std::int64_t start, std::int64_t end, std::int64_t step) {
  if (start < 0) start += dim;
  if (end < 0) end += dim;
  if (step > 0) {
    start = std::clamp<std::int64_t>(start, 0, dim);
    end = std::clamp<std::int64_t>(end, 0, dim);
    return {start, step, end > start ? 1 + (end - start - 1) / step : 0};
  }
  step = std::max(step, -INT64_MAX);
  start = std::clamp<std::int64_t>(start, -1, dim - 1);
  end = std::clamp<std::int64_t>(end, -1, dim - 1);
  return {start, step, start > end ? 1 + (start - end - 1) / -step : 0};
}

// A dimension, or arithmetic on dimensions that cannot go below zero.
bool NonNegative(Dim d) {
  if (d.is_constant()) return d.value() >= 0;
  const DimNode& n = *d.node();
  if (n.op == DimOp::kInput || n.op == DimOp::kRun) return true;
  if (n.op == DimOp::kSub) return false;
  if (n.op == DimOp::kMax) return NonNegative(n.a) || NonNegative(n.b);
  return NonNegative(n.a) && NonNegative(n.b);
}

// The place `at`, which may count from the end, within [0, dim].
Dim Place(Dim at, Dim dim) {
  // Exporters write the largest int32 or int64 for "to the end".
  if (at.is_constant() && at.value() >= INT32_MAX && !dim.is_constant()) return dim;
  if (at.Is(0)) return 0;
  if (at.is_constant() && at.value() < 0) return Max(at.value() < -INT32_MAX ? 0 : dim + at, 0);
  if (!NonNegative(at)) at = at + dim * Min(1, Max(0, Dim(std::int64_t{0}) - at));
  return Max(Min(at, dim), 0);
}

// The number of elements taken, or nothing if there is no expression for it.
std::optional<Dim> CountOf(Dim dim, Dim start, Dim end, std::int64_t step) {
  if (dim.is_constant() && start.is_constant() && end.is_constant())
    return Clamp(dim.value(), start.value(), end.value(), step).count;
  if (step < 0) {
    // All of it, backwards.
    if (start.is_constant() && end.is_constant() &&
        (start.Is(-1) || start.value() >= INT32_MAX) && end.value() <= -INT32_MAX)
      return CeilDiv(dim, step == INT64_MIN ? INT64_MAX : -step);
    return std::nullopt;
  }
  // The last few: min(-start, dim) rather than dim - max(dim + start, 0).
  if (start.is_constant() && start.value() < 0 && start.value() > -INT32_MAX &&
      end.is_constant() && end.value() >= INT32_MAX)
    return CeilDiv(Min(-start.value(), dim), step);
  const Dim first = Place(start, dim), last = Place(end, dim);
  const Dim span = last - first;
  return CeilDiv(NonNegative(span) ? span : Max(span, 0), step);
}

absl::Status Infer(InferContext& context) {
  const SymDims& in = context.shape(0);
  const int rank = context.rank(0);
  for (int i = 1; i <= 4; ++i) NPURT_RETURN_IF_ERROR(WantRank(context, i, 1));
  const auto starts = context.integers(1), ends = context.integers(2);
  const auto steps = ConstantIntegers(context, 4);
  std::optional<std::vector<std::int64_t>> axes;
  if (context.has_input(3)) {
    axes = ConstantIntegers(context, 3);
  } else if (context.shape(1)[0].is_constant()) {
    axes.emplace();
    for (std::int64_t i = 0; i < context.shape(1)[0].value(); ++i) axes->push_back(i);
  }
  SymDims out = in;
  if (!axes) {  // any axis may be cut
    for (Dim& d : out) d = context.RunDim();
    context.set_output(0, context.dtype(0), std::move(out));
    return absl::OkStatus();
  }
  const std::size_t n = axes->size();
  if ((starts && starts->size() != n) || (ends && ends->size() != n) ||
      (steps && steps->size() != n))
    return absl::InvalidArgumentError(
        "starts, ends, axes and steps differ in their number of elements");
  const bool known = starts && ends && (steps || !context.has_input(4));
  std::vector<bool> named(static_cast<std::size_t>(rank));
  for (std::size_t i = 0; i < n; ++i) {
    NPURT_ASSIGN_OR_RETURN(const int axis, NormalizeAxis((*axes)[i], rank));
    if (named[axis])
      return absl::InvalidArgumentError(absl::StrCat("axis ", (*axes)[i], " comes twice"));
    named[axis] = true;
    const std::int64_t step = steps ? (*steps)[i] : 1;
    if (step == 0) return absl::InvalidArgumentError("a step is 0");
    std::optional<Dim> count;
    if (known) count = CountOf(in[axis], (*starts)[i], (*ends)[i], step);
    out[axis] = count ? *count : context.RunDim();
  }
  context.set_output(0, context.dtype(0), std::move(out));
  if (!known || rank != 1) return absl::OkStatus();
  const auto values = context.integers(0);
  if (!values || (n == 1 && !((*starts)[0].is_constant() && (*ends)[0].is_constant())))
    return absl::OkStatus();
  SymDims picked = *values;
  if (n == 1) {
    const Range r = Clamp(static_cast<std::int64_t>(values->size()), (*starts)[0].value(),
                          (*ends)[0].value(), steps ? (*steps)[0] : 1);
    picked.clear();
    for (std::int64_t i = 0; i < r.count; ++i)
      picked.push_back((*values)[static_cast<std::size_t>(r.start + i * r.step)]);
  }
  context.set_output_integers(0, std::move(picked));
  return absl::OkStatus();
}

constexpr int kMaxAxes = 64;

// Reads the ranges for all axes of `dims`; `at(input, k)` reads element k of an integer input.
template <typename At>
absl::Status ReadRanges(absl::Span<const std::int64_t> dims, absl::Span<const std::int64_t> out,
                        std::int64_t count, bool has_axes, bool has_steps, At at,
                        Range (&ranges)[kMaxAxes]) {
  const int rank = static_cast<int>(dims.size());
  if (rank > kMaxAxes) return absl::UnimplementedError("a slice of more than 64 dimensions");
  for (int d = 0; d < rank; ++d) ranges[d] = {0, 1, dims[static_cast<std::size_t>(d)]};
  for (std::int64_t k = 0; k < count; ++k) {
    NPURT_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(has_axes ? at(3, k) : k, rank));
    const std::int64_t step = has_steps ? at(4, k) : 1;
    if (step == 0) return absl::InvalidArgumentError("a step is 0");
    ranges[axis] = Clamp(dims[static_cast<std::size_t>(axis)], at(1, k), at(2, k), step);
  }
  for (int d = 0; d < rank; ++d)
    if (ranges[d].count != out[static_cast<std::size_t>(d)])
      return absl::InvalidArgumentError(
          absl::StrCat("the slice takes ", ranges[d].count, " along axis ", d, ", the output has ",
                       out[static_cast<std::size_t>(d)]));
  return absl::OkStatus();
}

absl::Status ReadRanges(const RunContext& run, Range (&ranges)[kMaxAxes]) {
  return ReadRanges(run.dims(0), run.output_dims(0), run.count(1), run.has_input(3),
                    run.has_input(4),
                    [&](int input, std::int64_t k) { return IndexAt(run, input, k); }, ranges);
}

StridedCopy CopyOf(absl::Span<const std::int64_t> dims, const Range (&ranges)[kMaxAxes]) {
  StridedCopy copy;
  std::int64_t in_stride = ProductOf(dims, 0, static_cast<int>(dims.size())), out_stride = 1;
  for (std::size_t d = 0; d < dims.size(); ++d) out_stride *= ranges[d].count;
  if (in_stride == 0 || out_stride == 0) {
    copy.count = 0;
    return copy;
  }
  for (std::size_t d = 0; d < dims.size(); ++d) {
    in_stride /= dims[d];
    out_stride /= ranges[d].count;
    copy.in_offset += ranges[d].start * in_stride;
    // A step that is never taken may be huge.
    copy.Add(ranges[d].count, ranges[d].count > 1 ? ranges[d].step * in_stride : in_stride,
             out_stride);
  }
  return copy;
}

absl::Status Reference(const RunContext& run, std::int64_t, void*) {
  Range ranges[kMaxAxes];
  NPURT_RETURN_IF_ERROR(ReadRanges(run, ranges));
  if (run.output_count_of(0) == 0) return absl::OkStatus();
  const Dims strides = StridesOf(run.dims(0));
  Dims index(run.dims(0).size());
  std::int64_t to = 0;
  do {
    NPURT_RETURN_IF_ERROR(PollAt(run, to));
    std::int64_t from = 0;
    for (std::size_t d = 0; d < index.size(); ++d)
      from += (ranges[d].start + index[d] * ranges[d].step) * strides[d];
    CopyElements(run.dtype(0), run.output(0).data, to++, run.input(0).data, from, 1);
  } while (NextIndex(run.output_dims(0), absl::MakeSpan(index)));
  return absl::OkStatus();
}

absl::Status Bind(BindContext& bind) {
  const DType dtype = bind.dtype(0);
  SetCopyTiles(bind, dtype, bind.output_count_of(0));
  for (int i = 1; i <= 4; ++i)
    if (bind.has_input(i) && bind.constant(i) == nullptr) return absl::OkStatus();
  std::optional<std::vector<std::int64_t>> values[5];
  for (int i = 1; i <= 4; ++i)
    if (bind.has_input(i)) {
      NPURT_ASSIGN_OR_RETURN(values[i], Integers(*bind.constant(i)));
    }
  Range ranges[kMaxAxes];
  NPURT_RETURN_IF_ERROR(ReadRanges(
      bind.dims(0), bind.output_dims(0), bind.count(1), bind.has_input(3), bind.has_input(4),
      [&](int input, std::int64_t k) { return (*values[input])[static_cast<std::size_t>(k)]; },
      ranges));
  const StridedCopy copy = CopyOf(bind.dims(0), ranges);
  const bool one_run =
      copy.rank == 0 || (copy.rank == 1 && copy.in_strides[0] == 1 && copy.out_strides[0] == 1);
  if (one_run && copy.count > 0 && DTypeBits(dtype) >= 8 && dtype != DType::kString)
    bind.MayView(0, 0, static_cast<std::size_t>(copy.in_offset * (DTypeBits(dtype) / 8)));
  return absl::OkStatus();
}

absl::Status Run(const RunContext& run, std::int64_t tile, void*) {
  Range ranges[kMaxAxes];
  NPURT_RETURN_IF_ERROR(ReadRanges(run, ranges));
  const DType dtype = run.dtype(0);
  const StridedCopy copy = CopyOf(run.dims(0), ranges);
  const TileRange range = TileOf(tile, CopyTiles(dtype, copy.count), copy.count);
  return copy.Run(dtype, run.output(0).data, run.input(0).data, range.first, range.last);
}

}  // namespace

extern constexpr OpDef kOp = {
    .name = "Slice",
    .inputs = {{"data", "T"}, {"starts", "I"}, {"ends", "I"}, {"?axes", "I"}, {"?steps", "I"}},
    .outputs = {{"output", "T"}},
    .types = {{"T", kAnyType}, {"I", DTypes(DType::kI32, DType::kI64)}},
    .infer = Infer,
    .reference = Reference,
    .bind = Bind,
    .run = Run,
};

}  // namespace npurt::ops::slice
