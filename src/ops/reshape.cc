// Reshape: the same elements in the order they have, under the dimensions in `shape` (0: as in the
// input, -1: what is left).
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ops/move.h"

namespace npurt::ops::reshape {
namespace {

bool HasZero(const SymDims& dims) {
  return std::any_of(dims.begin(), dims.end(), [](Dim d) { return d.Is(0); });
}

absl::StatusOr<SymDims> OutputDims(const SymDims& in, const SymDims& wanted, bool allow_zero) {
  SymDims out(wanted.size());
  int rest = -1;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const Dim d = wanted[i];
    if (d.Is(-1)) {
      if (rest >= 0)
        return absl::InvalidArgumentError(
            absl::StrCat("shape ", ShapeString(wanted), " has more than one -1"));
      rest = static_cast<int>(i);
    } else if (d.Is(0) && !allow_zero) {
      if (i >= in.size())
        return absl::InvalidArgumentError(absl::StrCat("shape ", ShapeString(wanted),
                                                       " copies dimension ", i,
                                                       ", the input has shape ", ShapeString(in)));
      out[i] = in[i];
    } else if (d.is_constant() && d.value() < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("shape ", ShapeString(wanted), " has a negative dimension"));
    } else {
      out[i] = d;
    }
  }
  const auto mismatch = [&] {
    return absl::InvalidArgumentError(absl::StrCat("the input has shape ", ShapeString(in),
                                                   ", which cannot become ",
                                                   ShapeString(wanted)));
  };
  if (rest < 0) {
    if (AllConstant(in) && AllConstant(out)) {
      NPURT_ASSIGN_OR_RETURN(const std::int64_t count, ElementCount(ToDims(in)));
      NPURT_ASSIGN_OR_RETURN(const std::int64_t wanted_count, ElementCount(ToDims(out)));
      if (count != wanted_count) return mismatch();
    }
    return out;
  }
  SymDims others;
  for (std::size_t i = 0; i < out.size(); ++i)
    if (static_cast<int>(i) != rest) others.push_back(out[i]);
  if (AllConstant(in) && AllConstant(others)) {
    NPURT_ASSIGN_OR_RETURN(const std::int64_t count, ElementCount(ToDims(in)));
    NPURT_ASSIGN_OR_RETURN(const std::int64_t each, ElementCount(ToDims(others)));
    // -1 beside a zero could be anything; zero is what keeps the counts equal.
    if (each == 0 ? count != 0 : count % each != 0) return mismatch();
    out[rest] = each == 0 ? 0 : count / each;
  } else if (HasZero(in) && HasZero(others)) {
    out[rest] = 0;  // as above
  } else {
    out[rest] = ProductQuotient(in, others);
  }
  return out;
}

absl::Status Infer(InferContext& context) {
  const bool allow_zero = context.attributes().Int("allowzero") != 0;
  NPURT_RETURN_IF_ERROR(WantRank(context, 1, 1));
  std::optional<SymDims> wanted = context.integers(1);
  if (!wanted) {
    if (auto numbers = ConstantIntegers(context, 1)) wanted = ToSymDims(*numbers);
  }
  if (!wanted) {
    context.set_output_unknown(0, context.dtype(0));
    return absl::OkStatus();
  }
  NPURT_ASSIGN_OR_RETURN(const SymDims out, OutputDims(context.shape(0), *wanted, allow_zero));
  context.set_output(0, context.dtype(0), out);
  if (out.size() <= 1) {
    if (auto values = context.integers(0)) context.set_output_integers(0, *values);
  }
  return absl::OkStatus();
}

}  // namespace

extern constexpr OpDef kOp = {
    .name = "Reshape",
    .inputs = {{"data", "T"}, {"shape", "int64"}},
    .outputs = {{"reshaped", "T"}},
    .types = {{"T", kAnyType}},
    .attributes = {{"allowzero", AttrKind::kInt}},
    .infer = Infer,
    .reference = ReferenceCopy,
    .bind = BindCopy,
    .run = RunCopy,
};

}  // namespace npurt::ops::reshape
