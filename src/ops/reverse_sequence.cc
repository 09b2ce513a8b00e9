// ReverseSequence: the first lens[b] elements along the time axis of each batch entry b, backwards.
#include "absl/strings/str_cat.h"
#include "ops/move.h"

namespace npurt::ops::reverse_sequence {
namespace {

absl::Status Infer(InferContext& context) {
  const SymDims& in = context.shape(0);
  const std::int64_t batch = context.attributes().Int("batch_axis", 1);
  const std::int64_t time = context.attributes().Int("time_axis", 0);
  if (in.size() < 2 || !((batch == 0 && time == 1) || (batch == 1 && time == 0)))
    return absl::InvalidArgumentError(absl::StrCat("the input has shape ", ShapeString(in),
                                                   ", batch axis ", batch, ", time axis ", time));
  NPURT_RETURN_IF_ERROR(WantRank(context, 1, 1));
  context.set_output(0, context.dtype(0), in);
  return absl::OkStatus();
}

absl::Status Reference(const RunContext& run, std::int64_t, void*) {
  const auto dims = run.dims(0);
  const bool batch_first = run.attributes().Int("batch_axis", 1) == 0;
  const std::int64_t batches = batch_first ? dims[0] : dims[1];
  const std::int64_t times = batch_first ? dims[1] : dims[0];
  const std::int64_t inner = ProductOf(dims, 2, run.input(0).rank);
  if (run.count(1) != batches)
    return absl::InvalidArgumentError(
        absl::StrCat(run.count(1), " lengths for ", batches, " sequences"));
  const auto place = [&](std::int64_t b, std::int64_t t) {
    return (batch_first ? b * times + t : t * batches + b) * inner;
  };
  for (std::int64_t b = 0; b < batches; ++b) {
    const std::int64_t length = IndexAt(run, 1, b);
    if (length < 0 || length > times)
      return absl::OutOfRangeError(
          absl::StrCat("sequence ", b, " has length ", length, ", want 0 to ", times));
    for (std::int64_t t = 0; t < times; ++t) {
      if (t % 64 == 0) NPURT_RETURN_IF_ERROR(run.Poll());
      CopyElements(run.dtype(0), run.output(0).data, place(b, t), run.input(0).data,
                   place(b, t < length ? length - 1 - t : t), inner);
    }
  }
  return absl::OkStatus();
}

}  // namespace

extern constexpr OpDef kOp = {
    .name = "ReverseSequence",
    .inputs = {{"input", "T"}, {"sequence_lens", "int64"}},
    .outputs = {{"output", "T"}},
    .types = {{"T", kAnyType}},
    .attributes = {{"batch_axis", AttrKind::kInt}, {"time_axis", AttrKind::kInt}},
    .infer = Infer,
    .reference = Reference,
};

}  // namespace npurt::ops::reverse_sequence
