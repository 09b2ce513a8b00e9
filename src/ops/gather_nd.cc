// GatherND: out[batch, i..., :] = data[batch, indices[batch, i..., 0], indices[batch, i..., 1], …, :].
#include "absl/strings/str_cat.h"
#include "ops/move.h"

namespace npurt::ops::gather_nd {
namespace {

absl::Status Infer(InferContext& context) {
  const SymDims &data = context.shape(0), &indices = context.shape(1);
  const std::int64_t batch = context.attributes().Int("batch_dims", 0);
  const std::int64_t r = context.rank(0), q = context.rank(1);
  if (r < 1 || q < 1 || batch < 0 || batch >= std::min(r, q))
    return absl::InvalidArgumentError(absl::StrCat("data has shape ", ShapeString(data),
                                                   ", indices ", ShapeString(indices),
                                                   ", batch_dims is ", batch));
  const Dim depth = indices.back();
  if (!depth.is_constant()) {
    context.set_output_unknown(0, context.dtype(0));
    return absl::OkStatus();
  }
  if (depth.value() < 0 || depth.value() > r - batch)
    return absl::InvalidArgumentError(absl::StrCat("indices of shape ", ShapeString(indices),
                                                   " have ", depth.value(), " places, data ",
                                                   ShapeString(data), " has ", r - batch));
  SymDims out(indices.begin(), indices.end() - 1);
  for (std::int64_t d = 0; d < batch; ++d) {
    const Dim a = data[d], b = indices[d];
    if (a.is_constant() && b.is_constant() && a != b)
      return absl::InvalidArgumentError(absl::StrCat("data has shape ", ShapeString(data),
                                                     ", indices ", ShapeString(indices),
                                                     ", want equal batch dimensions"));
  }
  out.insert(out.end(), data.begin() + batch + depth.value(), data.end());
  context.set_output(0, context.dtype(0), std::move(out));
  return absl::OkStatus();
}

absl::Status Reference(const RunContext& run, std::int64_t, void*) {
  const auto data = run.dims(0), dims = run.dims(1);
  const int batch = static_cast<int>(run.attributes().Int("batch_dims", 0));
  const int depth = static_cast<int>(dims[dims.size() - 1]);
  for (int d = 0; d < batch; ++d)
    if (data[static_cast<std::size_t>(d)] != dims[static_cast<std::size_t>(d)])
      return absl::InvalidArgumentError("data and indices differ in their batch dimensions");
  const std::int64_t batches = ProductOf(dims, 0, batch);
  const std::int64_t rows = ProductOf(dims, batch, run.input(1).rank - 1);
  const std::int64_t block = ProductOf(data, batch + depth, run.input(0).rank);
  const std::int64_t batch_size = ProductOf(data, batch, run.input(0).rank);
  std::int64_t next = 0, to = 0;
  for (std::int64_t b = 0; b < batches; ++b)
    for (std::int64_t i = 0; i < rows; ++i, to += block) {
      NPURT_RETURN_IF_ERROR(PollAt(run, i));
      std::int64_t from = 0;
      for (int d = 0; d < depth; ++d) {
        const std::int64_t limit = data[static_cast<std::size_t>(batch + d)];
        std::int64_t at = IndexAt(run, 1, next++);
        if (!WrapIndex(&at, limit)) return IndexError(at, limit);
        from = from * limit + at;
      }
      CopyElements(run.dtype(0), run.output(0).data, to, run.input(0).data,
                   b * batch_size + from * block, block);
    }
  return absl::OkStatus();
}

}  // namespace

extern constexpr OpDef kOp = {
    .name = "GatherND",
    .inputs = {{"data", "T"}, {"indices", "int64"}},
    .outputs = {{"output", "T"}},
    .types = {{"T", kAnyType}},
    .attributes = {{"batch_dims", AttrKind::kInt}},
    .infer = Infer,
    .reference = Reference,
};

}  // namespace npurt::ops::gather_nd
