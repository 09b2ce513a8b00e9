// CenterCropPad: each named axis is cut or filled with zeros on both sides to the given length; the odd
// element goes to the end (pad) or stays at the start (crop).
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ops/move.h"

namespace npurt::ops::center_crop_pad {
namespace {

absl::StatusOr<std::vector<int>> AxesOf(const Attributes& attributes, int rank) {
  std::vector<int> axes;
  if (!attributes.Has("axes"))
    for (int i = 0; i < rank; ++i) axes.push_back(i);
  for (std::int64_t a : attributes.Ints("axes")) {
    NPURT_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(a, rank));
    if (std::find(axes.begin(), axes.end(), axis) != axes.end())
      return absl::InvalidArgumentError(absl::StrCat("axis ", a, " comes twice"));
    axes.push_back(axis);
  }
  return axes;
}

absl::Status Infer(InferContext& context) {
  NPURT_RETURN_IF_ERROR(WantRank(context, 1, 1));
  NPURT_ASSIGN_OR_RETURN(const std::vector<int> axes,
                         AxesOf(context.attributes(), context.rank(0)));
  const auto wanted = context.integers(1);
  SymDims out = context.shape(0);
  if (wanted && wanted->size() != axes.size())
    return absl::InvalidArgumentError(
        absl::StrCat("shape has ", wanted->size(), " numbers for ", axes.size(), " axes"));
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (wanted && (*wanted)[i].is_constant() && (*wanted)[i].value() < 0)
      return absl::InvalidArgumentError(absl::StrCat("a length of ", (*wanted)[i].value()));
    out[axes[i]] = wanted ? (*wanted)[i] : context.RunDim();
  }
  context.set_output(0, context.dtype(0), std::move(out));
  return absl::OkStatus();
}

absl::Status Reference(const RunContext& run, std::int64_t, void*) {
  const auto in = run.dims(0), out = run.output_dims(0);
  const Slot& target = run.output(0);
  ZeroElements(target.dtype, target.data, 0, target.count);
  if (run.count(0) == 0 || target.count == 0) return absl::OkStatus();
  const Dims in_strides = StridesOf(in), out_strides = StridesOf(out);
  StridedCopy copy;
  for (std::size_t d = 0; d < in.size(); ++d) {
    if (in[d] > out[d])
      copy.in_offset += (in[d] - out[d]) / 2 * in_strides[d];
    else
      copy.out_offset += (out[d] - in[d]) / 2 * out_strides[d];
    copy.Add(std::min(in[d], out[d]), in_strides[d], out_strides[d]);
  }
  return copy.Run(target.dtype, target.data, run.input(0).data, 0, copy.count);
}

}  // namespace

extern constexpr OpDef kOp = {
    .name = "CenterCropPad",
    .inputs = {{"input_data", "T"}, {"shape", "I"}},
    .outputs = {{"output_data", "T"}},
    .types = {{"T", kAnyType}, {"I", DTypes(DType::kI32, DType::kI64)}},
    .attributes = {{"axes", AttrKind::kInts}},
    .infer = Infer,
    .reference = Reference,
};

}  // namespace npurt::ops::center_crop_pad
