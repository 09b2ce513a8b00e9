// GatherElements: out[i, j, k] = data[i, indices[i, j, k], k], here for axis 1.
#include "absl/strings/str_cat.h"
#include "ops/move.h"

namespace npurt::ops::gather_elements {
namespace {

absl::Status Infer(InferContext& context) {
  NPURT_ASSIGN_OR_RETURN(const int axis,
                         NormalizeAxis(context.attributes().Int("axis", 0), context.rank(0)));
  const SymDims &data = context.shape(0), &indices = context.shape(1);
  if (data.size() != indices.size())
    return absl::InvalidArgumentError(absl::StrCat("data has shape ", ShapeString(data),
                                                   ", indices ", ShapeString(indices),
                                                   ", want the same rank"));
  for (std::size_t d = 0; d < data.size(); ++d)
    if (static_cast<int>(d) != axis && data[d].is_constant() && indices[d].is_constant() &&
        indices[d].value() > data[d].value())
      return absl::InvalidArgumentError(absl::StrCat("indices of shape ", ShapeString(indices),
                                                     " reach beyond data of ", ShapeString(data)));
  context.set_output(0, context.dtype(0), indices);
  return absl::OkStatus();
}

absl::Status Reference(const RunContext& run, std::int64_t, void*) {
  const auto data = run.dims(0), dims = run.dims(1);
  std::int64_t a = run.attributes().Int("axis", 0);
  if (a < 0) a += run.input(0).rank;
  const std::size_t axis = static_cast<std::size_t>(a);
  if (run.count(1) == 0) return absl::OkStatus();
  for (std::size_t d = 0; d < dims.size(); ++d)
    if (d != axis && dims[d] > data[d])
      return absl::InvalidArgumentError(absl::StrCat("indices of shape ", ShapeString(dims),
                                                     " reach beyond data of ", ShapeString(data)));
  const Dims strides = StridesOf(data);
  Dims index(dims.size());
  std::int64_t to = 0;
  do {
    NPURT_RETURN_IF_ERROR(PollAt(run, to));
    std::int64_t at = IndexAt(run, 1, to);
    if (!WrapIndex(&at, data[axis])) return IndexError(at, data[axis]);
    std::int64_t from = at * strides[axis];
    for (std::size_t d = 0; d < dims.size(); ++d)
      if (d != axis) from += index[d] * strides[d];
    CopyElements(run.dtype(0), run.output(0).data, to++, run.input(0).data, from, 1);
  } while (NextIndex(dims, absl::MakeSpan(index)));
  return absl::OkStatus();
}

}  // namespace

extern constexpr OpDef kOp = {
    .name = "GatherElements",
    .inputs = {{"data", "T"}, {"indices", "I"}},
    .outputs = {{"output", "T"}},
    .types = {{"T", kAnyType}, {"I", DTypes(DType::kI32, DType::kI64)}},
    .attributes = {{"axis", AttrKind::kInt}},
    .infer = Infer,
    .reference = Reference,
};

}  // namespace npurt::ops::gather_elements
