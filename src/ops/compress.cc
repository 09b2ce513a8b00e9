// Compress: the slices along `axis` (without one: the elements) whose condition is true. A condition
// may be shorter than the axis: what lies beyond it is left out.
#include "absl/strings/str_cat.h"
#include "ops/move.h"

namespace npurt::ops::compress {
namespace {

absl::Status Infer(InferContext& context) {
  NPURT_RETURN_IF_ERROR(WantRank(context, 1, 1));
  SymDims out = {context.RunDim()};
  if (context.attributes().Has("axis")) {
    NPURT_ASSIGN_OR_RETURN(const int axis,
                           NormalizeAxis(context.attributes().Int("axis"), context.rank(0)));
    const Dim count = out[0];
    out = context.shape(0);
    out[axis] = count;
  }
  context.set_output(0, context.dtype(0), std::move(out));
  return absl::OkStatus();
}

absl::Status Reference(const RunContext& run, std::int64_t, void*) {
  const auto in = run.dims(0);
  const bool whole = !run.attributes().Has("axis");
  int axis = 0;
  if (!whole) {
    NPURT_ASSIGN_OR_RETURN(axis, NormalizeAxis(run.attributes().Int("axis"), run.input(0).rank));
  }
  const std::int64_t dim = whole ? run.count(0) : in[static_cast<std::size_t>(axis)];
  const std::int64_t outer = whole ? 1 : ProductOf(in, 0, axis);
  const std::int64_t inner = whole ? 1 : ProductOf(in, axis + 1, run.input(0).rank);
  if (run.count(1) > dim)
    return absl::InvalidArgumentError(
        absl::StrCat("the condition has ", run.count(1), " elements, the axis ", dim));
  const auto taken = [&](std::int64_t i) { return run.Load<std::uint8_t>(1, i) != 0; };
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < run.count(1); ++i) count += taken(i);
  Dims dims = {count};
  if (!whole) {
    dims.assign(in.begin(), in.end());
    dims[axis] = count;
  }
  NPURT_RETURN_IF_ERROR(run.AllocateOutput(0, dims));
  std::int64_t to = 0;
  for (std::int64_t o = 0; o < outer; ++o)
    for (std::int64_t i = 0; i < run.count(1); ++i) {
      if (!taken(i)) continue;
      CopyElements(run.dtype(0), run.output(0).data, to, run.input(0).data, (o * dim + i) * inner,
                   inner);
      to += inner;
    }
  return absl::OkStatus();
}

}  // namespace

extern constexpr OpDef kOp = {
    .name = "Compress",
    .inputs = {{"input", "T"}, {"condition", "bool"}},
    .outputs = {{"output", "T"}},
    .types = {{"T", kAnyType}},
    .attributes = {{"axis", AttrKind::kInt}},
    .engine = Engine::kAiCpu,
    .infer = Infer,
    .reference = Reference,
};

}  // namespace npurt::ops::compress
