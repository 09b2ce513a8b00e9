// Concat: the inputs one after the other along `axis`.
#include "absl/strings/str_cat.h"
#include "ops/move.h"

namespace npurt::ops::concat {
namespace {

absl::Status Infer(InferContext& context) {
  if (context.input_count() == 0) return absl::InvalidArgumentError("got no inputs");
  NPURT_ASSIGN_OR_RETURN(const int axis,
                         NormalizeAxis(context.attributes().Int("axis", 0), context.rank(0)));
  SymDims out = context.shape(0);
  std::optional<SymDims> values;
  if (out.size() == 1) values.emplace();
  Dim length = 0;
  for (int i = 0; i < context.input_count(); ++i) {
    const SymDims& in = context.shape(i);
    if (in.size() != out.size())
      return absl::InvalidArgumentError(absl::StrCat("input 0 has shape ", ShapeString(out),
                                                     ", input ", i, " ", ShapeString(in),
                                                     ", want the same rank"));
    for (std::size_t d = 0; d < in.size(); ++d) {
      if (static_cast<int>(d) == axis) continue;
      if (in[d].is_constant() && out[d].is_constant() && in[d] != out[d])
        return absl::InvalidArgumentError(absl::StrCat("input 0 has shape ", ShapeString(out),
                                                       ", input ", i, " ", ShapeString(in),
                                                       ", want equal but along axis ", axis));
      if (in[d].is_constant()) out[d] = in[d];
    }
    length = length + in[axis];
    if (!values) continue;
    if (auto more = context.integers(i))
      values->insert(values->end(), more->begin(), more->end());
    else
      values.reset();
  }
  out[axis] = length;
  context.set_output(0, context.dtype(0), std::move(out));
  if (values && values->size() <= 1024) context.set_output_integers(0, *std::move(values));
  return absl::OkStatus();
}

struct Around {
  int axis;
  std::int64_t outer, dim, inner;
};

template <typename Context>
Around AroundOf(const Context& context, const Attributes& attributes) {
  const auto dims = context.output_dims(0);
  const int rank = static_cast<int>(dims.size());
  std::int64_t axis = attributes.Int("axis", 0);
  if (axis < 0) axis += rank;
  const int a = static_cast<int>(axis);
  return {a, ProductOf(dims, 0, a), dims[static_cast<std::size_t>(a)],
          ProductOf(dims, a + 1, rank)};
}

// Symbols that inference let pass are numbers now.
template <typename Context>
absl::Status CheckShapes(const Context& context, const Around& a) {
  const auto out = context.output_dims(0);
  std::int64_t length = 0;
  for (int i = 0; i < context.input_count(); ++i) {
    const auto in = context.dims(i);
    for (std::size_t d = 0; d < in.size(); ++d)
      if (static_cast<int>(d) != a.axis && in[d] != out[d])
        return absl::InvalidArgumentError(absl::StrCat("input ", i, " has shape ",
                                                       ShapeString(in), ", the output ",
                                                       ShapeString(out)));
    length += in[static_cast<std::size_t>(a.axis)];
  }
  if (length == a.dim) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the inputs have ", length, " along axis ", a.axis,
                                                 ", the output has ", a.dim));
}

absl::Status Reference(const RunContext& run, std::int64_t, void*) {
  const Around a = AroundOf(run, run.attributes());
  NPURT_RETURN_IF_ERROR(CheckShapes(run, a));
  std::int64_t start = 0;
  for (int i = 0; i < run.input_count(); ++i) {
    const std::int64_t size = run.dims(i)[static_cast<std::size_t>(a.axis)];
    for (std::int64_t o = 0; o < a.outer; ++o)
      for (std::int64_t k = 0; k < size * a.inner; ++k) {
        NPURT_RETURN_IF_ERROR(PollAt(run, o * size * a.inner + k));
        CopyElements(run.dtype(0), run.output(0).data, (o * a.dim + start) * a.inner + k,
                     run.input(i).data, o * size * a.inner + k, 1);
      }
    start += size;
  }
  return absl::OkStatus();
}

absl::Status Bind(BindContext& bind) {
  const DType dtype = bind.dtype(0);
  const Around a = AroundOf(bind, bind.attributes());
  NPURT_RETURN_IF_ERROR(CheckShapes(bind, a));
  // Two inputs of a packed type may share a byte of the output.
  if (DTypeBits(dtype) >= 8) SetCopyTiles(bind, dtype, bind.output_count_of(0));
  if (a.outer != 1 || DTypeBits(dtype) < 8 || dtype == DType::kString) return absl::OkStatus();
  std::int64_t start = 0;
  for (int i = 0; i < bind.input_count(); ++i) {
    bind.MayPlaceInside(i, 0, static_cast<std::size_t>(start * (DTypeBits(dtype) / 8)));
    start += bind.count(i);
  }
  return absl::OkStatus();
}

// Each tile takes its share of every input.
absl::Status Run(const RunContext& run, std::int64_t tile, void*) {
  const DType dtype = run.dtype(0);
  const Around a = AroundOf(run, run.attributes());
  const std::int64_t tiles =
      DTypeBits(dtype) < 8 ? 1 : CopyTiles(dtype, run.output_count_of(0));
  std::int64_t start = 0;
  for (int i = 0; i < run.input_count(); ++i) {
    const std::int64_t size = run.dims(i)[static_cast<std::size_t>(a.axis)];
    StridedCopy copy;
    copy.out_offset = start * a.inner;
    copy.Add(a.outer, size * a.inner, a.dim * a.inner);
    copy.Add(size * a.inner, 1, 1);
    const TileRange range = TileOf(tile, tiles, copy.count);
    NPURT_RETURN_IF_ERROR(
        copy.Run(dtype, run.output(0).data, run.input(i).data, range.first, range.last));
    start += size;
  }
  return absl::OkStatus();
}

}  // namespace

extern constexpr OpDef kOp = {
    .name = "Concat",
    .inputs = {{"*inputs", "T"}},
    .outputs = {{"concat_result", "T"}},
    .types = {{"T", kAnyType}},
    .attributes = {{"axis", AttrKind::kInt, true}},
    .infer = Infer,
    .reference = Reference,
    .bind = Bind,
    .run = Run,
};

}  // namespace npurt::ops::concat
