// Expand: the input, broadcast together with `shape`.
#include "absl/strings/str_cat.h"
#include "ops/move.h"

namespace npurt::ops::expand {
namespace {

absl::Status Infer(InferContext& context) {
  NPURT_RETURN_IF_ERROR(WantRank(context, 1, 1));
  const SymDims& in = context.shape(0);
  const auto wanted = context.integers(1);
  if (!wanted) {
    const Dim length = context.shape(1)[0];
    if (!length.is_constant()) {
      context.set_output_unknown(0, context.dtype(0));
      return absl::OkStatus();
    }
    SymDims out(std::max(in.size(), static_cast<std::size_t>(length.value())));
    for (Dim& d : out) d = context.RunDim();
    context.set_output(0, context.dtype(0), std::move(out));
    return absl::OkStatus();
  }
  for (Dim d : *wanted)
    if (d.is_constant() && d.value() < 0)
      return absl::InvalidArgumentError(
          absl::StrCat("shape ", ShapeString(*wanted), " has a negative dimension"));
  NPURT_ASSIGN_OR_RETURN(const SymDims out, BroadcastShapes(in, *wanted));
  context.set_output(0, context.dtype(0), out);
  if (const auto values = context.integers(0)) {
    if (out.size() == 1 && out[0].is_constant() && out[0].value() <= 1024 &&
        (values->size() == 1 || out[0].Is(static_cast<std::int64_t>(values->size()))))
      context.set_output_integers(0, values->size() == 1
                                         ? SymDims(static_cast<std::size_t>(out[0].value()),
                                                   (*values)[0])
                                         : *values);
    else if (out.empty())
      context.set_output_integers(0, *values);
  }
  return absl::OkStatus();
}

template <typename Context>
absl::Status CheckShapes(const Context& context) {
  const auto in = context.dims(0), out = context.output_dims(0);
  bool fits = in.size() <= out.size();
  for (std::size_t d = 0; fits && d < in.size(); ++d) {
    const std::int64_t wanted = out[out.size() - in.size() + d];
    fits = in[d] == wanted || in[d] == 1;
  }
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the input has shape ", ShapeString(in),
                                                 ", which does not expand to ", ShapeString(out)));
}

absl::Status Reference(const RunContext& run, std::int64_t, void*) {
  NPURT_RETURN_IF_ERROR(CheckShapes(run));
  const auto in = run.dims(0), out = run.output_dims(0);
  if (run.output_count_of(0) == 0) return absl::OkStatus();
  const Dims strides = StridesOf(in);
  const std::size_t lead = out.size() - in.size();
  Dims index(out.size());
  std::int64_t to = 0;
  do {
    NPURT_RETURN_IF_ERROR(PollAt(run, to));
    std::int64_t from = 0;
    for (std::size_t d = 0; d < in.size(); ++d)
      if (in[d] != 1) from += index[lead + d] * strides[d];
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
    const std::size_t lead = out.size() - in.size();
    const std::int64_t dim = d < lead ? 1 : in[d - lead];
    in_stride /= dim;
    out_stride /= out[d];
    copy.Add(out[d], dim == 1 ? 0 : in_stride, out_stride);
  }
  const TileRange range = TileOf(tile, CopyTiles(dtype, count), count);
  return copy.Run(dtype, run.output(0).data, run.input(0).data, range.first, range.last);
}

}  // namespace

extern constexpr OpDef kOp = {
    .name = "Expand",
    .inputs = {{"input", "T"}, {"shape", "int64"}},
    .outputs = {{"output", "T"}},
    .types = {{"T", kAnyType}},
    .infer = Infer,
    .reference = Reference,
    .bind = Bind,
    .run = Run,
};

}  // namespace npurt::ops::expand
