// OneHot: out[..., d, ...] = values[1] where d is the index, values[0] elsewhere; d runs along a new
// axis. An index outside [-depth, depth) gives no one.
#include "absl/strings/str_cat.h"
#include "ops/move.h"

namespace npurt::ops::one_hot {
namespace {

absl::StatusOr<std::int64_t> Depth(const std::vector<double>& values) {
  if (values.size() != 1)
    return absl::InvalidArgumentError(absl::StrCat("depth has ", values.size(), " elements, want 1"));
  if (!(values[0] >= 0 && values[0] < 4e18))
    return absl::InvalidArgumentError(absl::StrCat("depth is ", values[0]));
  return static_cast<std::int64_t>(values[0]);
}

absl::Status Infer(InferContext& context) {
  const SymDims& in = context.shape(0);
  NPURT_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(context.attributes().Int("axis", -1),
                                                       context.rank(0) + 1));
  if (context.rank(2) != 1 || (context.shape(2)[0].is_constant() && !context.shape(2)[0].Is(2)))
    return absl::InvalidArgumentError(
        absl::StrCat("values have shape ", ShapeString(context.shape(2)), ", want [2]"));
  Dim depth;
  if (const Tensor* known = context.constant(1)) {
    NPURT_ASSIGN_OR_RETURN(const std::vector<double> number, Reals(*known));
    NPURT_ASSIGN_OR_RETURN(depth, Depth(number));
  } else if (const auto symbolic = context.integers(1); symbolic && symbolic->size() == 1) {
    depth = (*symbolic)[0];
  } else {
    depth = context.RunDim();
  }
  SymDims out = in;
  out.insert(out.begin() + axis, depth);
  context.set_output(0, context.dtype(2), std::move(out));
  return absl::OkStatus();
}

absl::Status Reference(const RunContext& run, std::int64_t, void*) {
  if (run.count(1) != 1) return absl::InvalidArgumentError("depth must be a scalar");
  if (run.count(2) != 2) return absl::InvalidArgumentError("values must be two elements");
  NPURT_ASSIGN_OR_RETURN(const std::int64_t depth, Depth({RealAt(run, 1, 0)}));
  const int rank = run.input(0).rank;
  std::int64_t a = run.attributes().Int("axis", -1);
  if (a < 0) a += rank + 1;
  const int axis = static_cast<int>(a);
  if (run.output(0).data == nullptr) {
    Dims dims(run.dims(0).begin(), run.dims(0).end());
    dims.insert(dims.begin() + axis, depth);
    NPURT_RETURN_IF_ERROR(run.AllocateOutput(0, dims));
  }
  const Slot& out = run.output(0);
  if (run.output_dims(0)[static_cast<std::size_t>(axis)] != depth)
    return absl::InvalidArgumentError(absl::StrCat("depth is ", depth, ", the output has ",
                                                   run.output_dims(0)[axis]));
  const std::int64_t inner = ProductOf(run.dims(0), axis, rank);
  FillElements(out.dtype, out.data, 0, run.input(2).data, 0, out.count);
  for (std::int64_t i = 0; i < run.count(0); ++i) {
    const double real = IsFloat(run.dtype(0)) ? RealAt(run, 0, i) : 0;
    if (!(real > -9e18 && real < 9e18)) continue;
    std::int64_t index =
        IsFloat(run.dtype(0)) ? static_cast<std::int64_t>(real) : IndexAt(run, 0, i);
    if (!WrapIndex(&index, depth)) continue;
    CopyElements(out.dtype, out.data, (i / inner * depth + index) * inner + i % inner,
                 run.input(2).data, 1, 1);
  }
  return absl::OkStatus();
}

}  // namespace

extern constexpr OpDef kOp = {
    .name = "OneHot",
    .inputs = {{"indices", "T1"}, {"depth", "T2"}, {"values", "T3"}},
    .outputs = {{"output", "T3"}},
    .types = {{"T1", kNumbers}, {"T2", kNumbers}, {"T3", kAnyType}},
    .attributes = {{"axis", AttrKind::kInt}},
    .infer = Infer,
    .reference = Reference,
};

}  // namespace npurt::ops::one_hot
