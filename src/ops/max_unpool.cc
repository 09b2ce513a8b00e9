// MaxUnpool: zeros, but for the places that `indices` (of a MaxPool) names, which get the elements of x.
#include "absl/strings/str_cat.h"
#include "ops/move.h"

namespace npurt::ops::max_unpool {
namespace {

std::int64_t At(absl::Span<const std::int64_t> values, std::size_t i, std::int64_t fallback) {
  return i < values.size() ? values[i] : fallback;
}

// The plane that the pool would have come from: (in - 1) * stride - pads + kernel.
absl::StatusOr<SymDims> DefaultDims(const SymDims& x, const Attributes& attributes) {
  const auto kernel = attributes.Ints("kernel_shape"), strides = attributes.Ints("strides"),
             pads = attributes.Ints("pads");
  const std::size_t spatial = x.size() < 2 ? 0 : x.size() - 2;
  if (spatial == 0 || kernel.size() != spatial ||
      (!strides.empty() && strides.size() != spatial) ||
      (!pads.empty() && pads.size() != 2 * spatial))
    return absl::InvalidArgumentError(
        absl::StrCat("x has shape ", ShapeString(x), ", kernel_shape ", ShapeString(kernel),
                     ", strides ", ShapeString(strides), ", pads ", ShapeString(pads)));
  SymDims out = x;
  for (std::size_t i = 0; i < spatial; ++i) {
    out[2 + i] = (x[2 + i] - 1) * At(strides, i, 1) + kernel[i] - At(pads, i, 0) -
                 At(pads, spatial + i, 0);
    if (out[2 + i].is_constant() && out[2 + i].value() < 0)
      return absl::InvalidArgumentError(absl::StrCat("axis ", 2 + i, " of shape ", ShapeString(x),
                                                     " becomes ", out[2 + i].value(), " long"));
  }
  return out;
}

absl::Status Infer(InferContext& context) {
  const SymDims& x = context.shape(0);
  NPURT_RETURN_IF_ERROR(WantRank(context, 1, context.rank(0)));
  NPURT_RETURN_IF_ERROR(WantRank(context, 2, 1));
  NPURT_ASSIGN_OR_RETURN(SymDims out, DefaultDims(x, context.attributes()));
  if (context.has_input(2)) {
    const auto wanted = context.integers(2);
    if (wanted && wanted->size() != x.size())
      return absl::InvalidArgumentError(absl::StrCat("output_shape has ", wanted->size(),
                                                     " numbers, x has rank ", x.size()));
    if (wanted) out = *wanted;
    else
      for (Dim& d : out) d = context.RunDim();
    for (Dim d : out)
      if (d.is_constant() && d.value() < 0)
        return absl::InvalidArgumentError("output_shape has a negative dimension");
  }
  context.set_output(0, context.dtype(0), std::move(out));
  return absl::OkStatus();
}

absl::Status Reference(const RunContext& run, std::int64_t, void*) {
  if (run.dims(0) != run.dims(1))
    return absl::InvalidArgumentError(absl::StrCat("x has shape ", ShapeString(run.dims(0)),
                                                   ", indices ", ShapeString(run.dims(1))));
  // Indices count in the tensor that the attributes imply, which lies at the start of a larger one.
  NPURT_ASSIGN_OR_RETURN(const SymDims implied,
                         DefaultDims(ToSymDims(run.dims(0)), run.attributes()));
  const Dims dims = ToDims(implied);
  NPURT_ASSIGN_OR_RETURN(const std::int64_t limit, ElementCount(dims));
  const Slot& out = run.output(0);
  const Dims strides = StridesOf(run.output_dims(0));
  ZeroElements(out.dtype, out.data, 0, out.count);
  for (std::int64_t i = 0; i < run.count(0); ++i) {
    const std::int64_t at = run.Load<std::int64_t>(1, i);
    if (at < 0 || at >= limit) return IndexError(at, limit);
    std::int64_t rest = at, to = 0;
    for (std::size_t d = dims.size(); d-- > 0;) {
      const std::int64_t index = rest % dims[d];
      if (index >= run.output_dims(0)[d])
        return absl::OutOfRangeError(absl::StrCat("index ", at, " lies outside of the output ",
                                                  ShapeString(run.output_dims(0))));
      to += index * strides[d];
      rest /= dims[d];
    }
    CopyElements(out.dtype, out.data, to, run.input(0).data, i, 1);
  }
  return absl::OkStatus();
}

}  // namespace

extern constexpr OpDef kOp = {
    .name = "MaxUnpool",
    .inputs = {{"x", "T"}, {"indices", "int64"}, {"?output_shape", "int64"}},
    .outputs = {{"output", "T"}},
    .types = {{"T", kFloats}},
    .attributes = {{"kernel_shape", AttrKind::kInts, true},
                   {"pads", AttrKind::kInts},
                   {"strides", AttrKind::kInts}},
    .infer = Infer,
    .reference = Reference,
};

}  // namespace npurt::ops::max_unpool
