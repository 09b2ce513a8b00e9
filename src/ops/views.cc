// Squeeze, Unsqueeze, Flatten, Identity: the same elements under other dimensions.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ops/move.h"

namespace npurt::ops::views {
namespace {

absl::Status SetView(InferContext& context, SymDims out) {
  const bool small = out.size() <= 1;
  context.set_output(0, context.dtype(0), std::move(out));
  if (small) {
    if (auto values = context.integers(0)) context.set_output_integers(0, *values);
  }
  return absl::OkStatus();
}

// Which of `rank` axes are named; each at most once.
absl::StatusOr<std::vector<bool>> AxisSet(const std::vector<std::int64_t>& axes, int rank) {
  std::vector<bool> named(static_cast<std::size_t>(rank));
  for (std::int64_t a : axes) {
    NPURT_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(a, rank));
    if (named[axis]) return absl::InvalidArgumentError(absl::StrCat("axis ", a, " comes twice"));
    named[axis] = true;
  }
  return named;
}

absl::Status InferSqueeze(InferContext& context) {
  NPURT_RETURN_IF_ERROR(WantRank(context, 1, 1));
  const SymDims& in = context.shape(0);
  SymDims out;
  if (!context.has_input(1)) {
    for (Dim d : in) {
      if (!d.is_constant()) {  // 1 or not: only a number says how many are left
        context.set_output_unknown(0, context.dtype(0));
        return absl::OkStatus();
      }
      if (!d.Is(1)) out.push_back(d);
    }
    return SetView(context, std::move(out));
  }
  const auto axes = ConstantIntegers(context, 1);
  if (!axes) {
    context.set_output_unknown(0, context.dtype(0));
    return absl::OkStatus();
  }
  NPURT_ASSIGN_OR_RETURN(const std::vector<bool> named, AxisSet(*axes, context.rank(0)));
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (!named[i]) {
      out.push_back(in[i]);
    } else if (in[i].is_constant() && !in[i].Is(1)) {
      return absl::InvalidArgumentError(absl::StrCat("axis ", i, " of shape ", ShapeString(in),
                                                     " is ", in[i].value(), ", want 1"));
    }
  }
  return SetView(context, std::move(out));
}

absl::Status InferUnsqueeze(InferContext& context) {
  NPURT_RETURN_IF_ERROR(WantRank(context, 1, 1));
  const SymDims& in = context.shape(0);
  const auto axes = ConstantIntegers(context, 1);
  if (!axes) {
    context.set_output_unknown(0, context.dtype(0));
    return absl::OkStatus();
  }
  const int rank = context.rank(0) + static_cast<int>(axes->size());
  NPURT_ASSIGN_OR_RETURN(const std::vector<bool> named, AxisSet(*axes, rank));
  SymDims out;
  std::size_t next = 0;
  for (int i = 0; i < rank; ++i) out.push_back(named[i] ? Dim(1) : in[next++]);
  return SetView(context, std::move(out));
}

absl::Status InferFlatten(InferContext& context) {
  const SymDims& in = context.shape(0);
  const int rank = context.rank(0);
  std::int64_t axis = context.attributes().Int("axis", 1);
  if (axis < -rank || axis > rank)
    return absl::InvalidArgumentError(absl::StrCat("axis ", axis, " of a tensor of rank ", rank,
                                                   ", want one from ", -rank, " to ", rank));
  if (axis < 0) axis += rank;
  const auto all = absl::MakeConstSpan(in);
  const std::size_t split = static_cast<std::size_t>(axis);
  return SetView(context, {Product(all.subspan(0, split)), Product(all.subspan(split))});
}

absl::Status InferIdentity(InferContext& context) {
  context.set_output_type(0, context.type(0));
  if (context.type(0).kind == ValueKind::kTensor) {
    if (auto values = context.integers(0)) context.set_output_integers(0, *values);
  }
  return absl::OkStatus();
}

absl::Status BindIdentity(BindContext& bind) {
  return bind.inputs_[0]->kind == ValueKind::kTensor ? BindCopy(bind) : absl::OkStatus();
}

absl::Status RunIdentity(const RunContext& run, std::int64_t tile, void* scratch) {
  if (run.input(0).kind == ValueKind::kTensor) return RunCopy(run, tile, scratch);
  run.set_output_value(0, run.input_value(0));
  return absl::OkStatus();
}

absl::Status ReferenceIdentity(const RunContext& run, std::int64_t tile, void* scratch) {
  if (run.input(0).kind == ValueKind::kTensor) return ReferenceCopy(run, tile, scratch);
  run.set_output_value(0, run.input_value(0));
  return absl::OkStatus();
}

}  // namespace

extern constexpr OpDef kOps[] = {
    {
        .name = "Squeeze",
        .inputs = {{"data", "T"}, {"?axes", "int64"}},
        .outputs = {{"squeezed", "T"}},
        .types = {{"T", kAnyType}},
        .infer = InferSqueeze,
        .reference = ReferenceCopy,
        .bind = BindCopy,
        .run = RunCopy,
    },
    {
        .name = "Unsqueeze",
        .inputs = {{"data", "T"}, {"axes", "int64"}},
        .outputs = {{"expanded", "T"}},
        .types = {{"T", kAnyType}},
        .infer = InferUnsqueeze,
        .reference = ReferenceCopy,
        .bind = BindCopy,
        .run = RunCopy,
    },
    {
        .name = "Flatten",
        .inputs = {{"input", "T"}},
        .outputs = {{"output", "T"}},
        .types = {{"T", kAnyType}},
        .attributes = {{"axis", AttrKind::kInt}},
        .infer = InferFlatten,
        .reference = ReferenceCopy,
        .bind = BindCopy,
        .run = RunCopy,
    },
    {
        .name = "Identity",
        .inputs = {{"input", "any"}},
        .outputs = {{"output", "any"}},
        .any_rank = true,
        .infer = InferIdentity,
        .reference = ReferenceIdentity,
        .bind = BindIdentity,
        .run = RunIdentity,
    },
};
extern constexpr int kOpCount = static_cast<int>(sizeof kOps / sizeof kOps[0]);

}  // namespace npurt::ops::views
