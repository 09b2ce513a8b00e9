// Trilu: the upper (or lower) triangle of matrices from the k-th diagonal on, zero elsewhere.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ops/move.h"

namespace npurt::ops::trilu {
namespace {

absl::Status Infer(InferContext& context) {
  if (context.rank(0) < 2)
    return absl::InvalidArgumentError(
        absl::StrCat("the input has rank ", context.rank(0), ", want at least 2"));
  context.set_output(0, context.dtype(0), context.shape(0));
  return absl::OkStatus();
}

absl::Status Reference(const RunContext& run, std::int64_t, void*) {
  const bool upper = run.attributes().Int("upper", 1) != 0;
  if (run.has_input(1) && run.count(1) != 1)
    return absl::InvalidArgumentError(absl::StrCat("k has ", run.count(1), " elements, want 1"));
  const auto dims = run.dims(0);
  const std::int64_t columns = dims[dims.size() - 1], rows = dims[dims.size() - 2];
  if (run.count(0) == 0) return absl::OkStatus();
  const std::int64_t k =
      run.has_input(1) ? std::clamp(IndexAt(run, 1, 0), -rows - 1, columns + 1) : 0;
  const Slot &in = run.input(0), &out = run.output(0);
  const std::int64_t all_rows = run.count(0) / columns;
  for (std::int64_t r = 0; r < all_rows; ++r) {
    if (r % 64 == 0) NPURT_RETURN_IF_ERROR(run.Poll());
    const std::int64_t at = r * columns;
    // Upper keeps [i + k, columns), lower keeps [0, i + k].
    const std::int64_t edge = std::clamp<std::int64_t>(r % rows + k + (upper ? 0 : 1), 0, columns);
    const std::int64_t first = upper ? edge : 0, last = upper ? columns : edge;
    ZeroElements(out.dtype, out.data, at, first);
    CopyElements(out.dtype, out.data, at + first, in.data, at + first, last - first);
    ZeroElements(out.dtype, out.data, at + last, columns - last);
  }
  return absl::OkStatus();
}

absl::Status Bind(BindContext& bind) {
  if (bind.dtype(0) != DType::kString) bind.MayOverwrite(0, 0);
  return absl::OkStatus();
}

}  // namespace

extern constexpr OpDef kOp = {
    .name = "Trilu",
    .inputs = {{"input", "T"}, {"?k", "int64"}},
    .outputs = {{"output", "T"}},
    .types = {{"T", kAnyType}},
    .attributes = {{"upper", AttrKind::kInt}},
    .infer = Infer,
    .reference = Reference,
    .bind = Bind,
};

}  // namespace npurt::ops::trilu
