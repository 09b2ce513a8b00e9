// Split: cuts the input along `axis` into its outputs, one after the other.
#include "absl/strings/str_cat.h"
#include "base/checked_math.h"
#include "ops/move.h"

namespace npurt::ops::split {
namespace {

absl::Status Infer(InferContext& context) {
  NPURT_RETURN_IF_ERROR(WantRank(context, 1, 1));
  NPURT_ASSIGN_OR_RETURN(const int axis,
                         NormalizeAxis(context.attributes().Int("axis", 0), context.rank(0)));
  const SymDims& in = context.shape(0);
  const Dim dim = in[axis];
  const int parts = context.output_count();
  SymDims sizes(static_cast<std::size_t>(parts));
  if (context.has_input(1)) {
    if (context.attributes().Has("num_outputs"))
      return absl::InvalidArgumentError("both 'split' and 'num_outputs' are given");
    if (auto given = context.integers(1)) {
      if (static_cast<int>(given->size()) != parts)
        return absl::InvalidArgumentError(
            absl::StrCat("'split' has ", given->size(), " sizes for ", parts, " outputs"));
      sizes = *given;
      Dim sum = 0;
      for (Dim d : sizes) {
        if (d.is_constant() && d.value() < 0)
          return absl::InvalidArgumentError(absl::StrCat("a size of ", d.value()));
        sum = sum + d;
      }
      if (sum.is_constant() && dim.is_constant() && sum != dim)
        return absl::InvalidArgumentError(absl::StrCat("the sizes add up to ", sum.value(),
                                                       ", axis ", axis, " has ", dim.value()));
    } else {
      for (Dim& d : sizes) d = context.RunDim();
    }
  } else {
    const std::int64_t wanted = context.attributes().Int("num_outputs", parts);
    if (wanted != parts)
      return absl::InvalidArgumentError(
          absl::StrCat("num_outputs is ", wanted, ", the node has ", parts, " outputs"));
    if (parts == 0) return absl::InvalidArgumentError("the node has no outputs");
    const Dim each = CeilDiv(dim, parts);
    for (Dim& d : sizes) d = each;
    sizes.back() = dim - each * (parts - 1);
    if (sizes.back().is_constant() && sizes.back().value() < 0)
      return absl::InvalidArgumentError(
          absl::StrCat("axis ", axis, " of ", dim.value(), " is too short for ", parts, " parts"));
  }
  const auto values = in.size() == 1 ? context.integers(0) : std::nullopt;
  std::size_t at = 0;
  for (int i = 0; i < parts; ++i) {
    SymDims out = in;
    out[axis] = sizes[i];
    context.set_output(i, context.dtype(0), std::move(out));
    if (!values || !AllConstant(sizes)) continue;
    const std::size_t count = static_cast<std::size_t>(sizes[i].value());
    if (at + count > values->size()) continue;
    context.set_output_integers(
        i, SymDims(values->begin() + static_cast<std::ptrdiff_t>(at),
                   values->begin() + static_cast<std::ptrdiff_t>(at + count)));
    at += count;
  }
  return absl::OkStatus();
}

// The dimensions around the axis of the split.
struct Around {
  int axis;
  std::int64_t outer, dim, inner;
};

template <typename Context>
Around AroundOf(const Context& context, const Attributes& attributes) {
  const auto dims = context.dims(0);
  const int rank = static_cast<int>(dims.size());
  std::int64_t axis = attributes.Int("axis", 0);
  if (axis < 0) axis += rank;
  const int a = static_cast<int>(axis);
  return {a, ProductOf(dims, 0, a), dims[static_cast<std::size_t>(a)],
          ProductOf(dims, a + 1, rank)};
}

// Outputs that nobody names have no dimensions: then `split` tells where the others start.
template <typename Context>
absl::StatusOr<std::int64_t> PartSize(const Context& context, const Around& a, int i) {
  if (context.has_output(i)) return context.output_dims(i)[static_cast<std::size_t>(a.axis)];
  if (context.has_input(1)) return kInvalidDim;  // read by the caller
  const int parts = context.output_count();
  const auto each = npurt::CeilDiv<std::int64_t>(a.dim, parts);
  return i + 1 < parts ? each : a.dim - each * (parts - 1);
}

absl::Status Sum(std::int64_t start, const Around& a) {
  if (start <= a.dim) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the sizes add up to ", start, ", axis ", a.axis, " has ", a.dim));
}

absl::Status Reference(const RunContext& run, std::int64_t, void*) {
  const Around a = AroundOf(run, run.attributes());
  std::int64_t start = 0;
  for (int i = 0; i < run.output_count(); ++i) {
    NPURT_ASSIGN_OR_RETURN(std::int64_t size, PartSize(run, a, i));
    if (size == kInvalidDim) size = IndexAt(run, 1, i);
    NPURT_RETURN_IF_ERROR(Sum(start + size, a));
    if (run.has_output(i))
      for (std::int64_t o = 0; o < a.outer; ++o)
        for (std::int64_t k = 0; k < size * a.inner; ++k) {
          NPURT_RETURN_IF_ERROR(PollAt(run, o * size * a.inner + k));
          CopyElements(run.dtype(0), run.output(i).data, o * size * a.inner + k, run.input(0).data,
                       (o * a.dim + start) * a.inner + k, 1);
        }
    start += size;
  }
  return absl::OkStatus();
}

absl::Status Bind(BindContext& bind) {
  const DType dtype = bind.dtype(0);
  SetCopyTiles(bind, dtype, bind.count(0));
  const Around a = AroundOf(bind, bind.attributes());
  if (a.outer != 1 || DTypeBits(dtype) < 8 || dtype == DType::kString) return absl::OkStatus();
  std::int64_t start = 0;
  for (int i = 0; i < bind.output_count(); ++i) {
    NPURT_ASSIGN_OR_RETURN(const std::int64_t size, PartSize(bind, a, i));
    if (size == kInvalidDim) break;
    NPURT_RETURN_IF_ERROR(Sum(start + size, a));
    if (bind.has_output(i))
      bind.MayView(i, 0, static_cast<std::size_t>(start * a.inner * (DTypeBits(dtype) / 8)));
    start += size;
  }
  return absl::OkStatus();
}

// Each tile takes its share of every output.
absl::Status Run(const RunContext& run, std::int64_t tile, void*) {
  const DType dtype = run.dtype(0);
  const Around a = AroundOf(run, run.attributes());
  const std::int64_t tiles = CopyTiles(dtype, run.count(0));
  std::int64_t start = 0;
  for (int i = 0; i < run.output_count(); ++i) {
    NPURT_ASSIGN_OR_RETURN(std::int64_t size, PartSize(run, a, i));
    if (size == kInvalidDim) size = IndexAt(run, 1, i);
    NPURT_RETURN_IF_ERROR(Sum(start + size, a));
    if (run.has_output(i)) {
      StridedCopy copy;
      copy.in_offset = start * a.inner;
      copy.Add(a.outer, a.dim * a.inner, size * a.inner);
      copy.Add(size * a.inner, 1, 1);
      const TileRange range = TileOf(tile, tiles, copy.count);
      NPURT_RETURN_IF_ERROR(
          copy.Run(dtype, run.output(i).data, run.input(0).data, range.first, range.last));
    }
    start += size;
  }
  return absl::OkStatus();
}

}  // namespace

extern constexpr OpDef kOp = {
    .name = "Split",
    .inputs = {{"input", "T"}, {"?split", "int64"}},
    .outputs = {{"*outputs", "T"}},
    .types = {{"T", kAnyType}},
    .attributes = {{"axis", AttrKind::kInt}, {"num_outputs", AttrKind::kInt}},
    .infer = Infer,
    .reference = Reference,
    .bind = Bind,
    .run = Run,
};

}  // namespace npurt::ops::split
