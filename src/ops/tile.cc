// Tile: the input repeated repeats[d] times along each axis d.
#include "absl/strings/str_cat.h"
#include "ops/move.h"

namespace npurt::ops::tile {
namespace {

absl::Status Infer(InferContext& context) {
  NPURT_RETURN_IF_ERROR(WantRank(context, 1, 1));
  SymDims out = context.shape(0);
  const auto repeats = context.integers(1);
  if (repeats && repeats->size() != out.size())
    return absl::InvalidArgumentError(absl::StrCat("got ", repeats->size(),
                                                   " repeats for an input of rank ", out.size()));
  for (std::size_t d = 0; d < out.size(); ++d) {
    if (repeats && (*repeats)[d].is_constant() && (*repeats)[d].value() < 0)
      return absl::InvalidArgumentError(
          absl::StrCat("axis ", d, " is repeated ", (*repeats)[d].value(), " times"));
    out[d] = repeats ? out[d] * (*repeats)[d] : context.RunDim();
  }
  context.set_output(0, context.dtype(0), out);
  const auto values = context.integers(0);
  if (values && repeats && out.size() == 1 && out[0].is_constant() && out[0].value() <= 1024) {
    SymDims repeated;
    while (!values->empty() && static_cast<std::int64_t>(repeated.size()) < out[0].value())
      repeated.insert(repeated.end(), values->begin(), values->end());
    context.set_output_integers(0, std::move(repeated));
  }
  return absl::OkStatus();
}

template <typename Context>
absl::Status CheckShapes(const Context& context) {
  const auto in = context.dims(0), out = context.output_dims(0);
  bool fits = in.size() == out.size();
  for (std::size_t d = 0; fits && d < in.size(); ++d)
    fits = in[d] == 0 ? out[d] == 0 : out[d] % in[d] == 0;
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the input has shape ", ShapeString(in),
                                                 ", which does not tile ", ShapeString(out)));
}

absl::Status Reference(const RunContext& run, std::int64_t, void*) {
  NPURT_RETURN_IF_ERROR(CheckShapes(run));
  const auto in = run.dims(0), out = run.output_dims(0);
  if (run.output_count_of(0) == 0) return absl::OkStatus();
  const Dims strides = StridesOf(in);
  Dims index(out.size());
  std::int64_t to = 0;
  do {
    NPURT_RETURN_IF_ERROR(PollAt(run, to));
    std::int64_t from = 0;
    for (std::size_t d = 0; d < in.size(); ++d) from += index[d] % in[d] * strides[d];
    CopyElements(run.dtype(0), run.output(0).data, to++, run.input(0).data, from, 1);
  } while (NextIndex(out, absl::MakeSpan(index)));
  return absl::OkStatus();
}

absl::Status Bind(BindContext& bind) {
  NPURT_RETURN_IF_ERROR(CheckShapes(bind));
  SetCopyTiles(bind, bind.dtype(0), bind.output_count_of(0));
  if (bind.count(0) == bind.output_count_of(0) && bind.dtype(0) != DType::kString)
    bind.MayView(0, 0, 0);
  return absl::OkStatus();
}

absl::Status Run(const RunContext& run, std::int64_t tile, void*) {
  const auto in = run.dims(0), out = run.output_dims(0);
  const DType dtype = run.dtype(0);
  const std::int64_t count = run.output_count_of(0);
  if (count == 0 || run.input(0).data == run.output(0).data) return absl::OkStatus();
  StridedCopy copy;
  std::int64_t in_stride = run.count(0), out_stride = count;
  for (std::size_t d = 0; d < out.size(); ++d) {
    in_stride /= in[d];
    out_stride /= out[d];
    copy.Add(out[d] / in[d], 0, in[d] * out_stride);
    copy.Add(in[d], in_stride, out_stride);
  }
  const TileRange range = TileOf(tile, CopyTiles(dtype, count), count);
  return copy.Run(dtype, run.output(0).data, run.input(0).data, range.first, range.last);
}

}  // namespace

extern constexpr OpDef kOp = {
    .name = "Tile",
    .inputs = {{"input", "T"}, {"repeats", "int64"}},
    .outputs = {{"output", "T"}},
    .types = {{"T", kAnyType}},
    .infer = Infer,
    .reference = Reference,
    .bind = Bind,
    .run = Run,
};

}  // namespace npurt::ops::tile
