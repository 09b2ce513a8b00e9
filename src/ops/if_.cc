// If: outputs = condition ? then_branch() : else_branch().
#include "absl/strings/str_cat.h"
#include "ops/control_flow.h"

namespace npurt::ops::if_ {
namespace {

constexpr int kElse = 0, kThen = 1;  // subgraphs in the order of their names

absl::Status Infer(InferContext& context) {
  const ValueType& condition = context.type(0);
  if (condition.has_rank && AllConstant(condition.dims)) {
    NPURT_ASSIGN_OR_RETURN(const std::int64_t count, ElementCount(ToDims(condition.dims)));
    if (count != 1)
      return absl::InvalidArgumentError(
          absl::StrCat("the condition has ", count, " elements, want 1"));
  }
  if (OwnInputs(context) != 1)
    return absl::InvalidArgumentError(
        absl::StrCat("got ", OwnInputs(context), " inputs beside the captures, want 1"));
  NPURT_ASSIGN_OR_RETURN(const Subgraph* then_branch,
                         CheckedSubgraph(context, "then_branch", 0, context.output_count()));
  NPURT_ASSIGN_OR_RETURN(const Subgraph* else_branch,
                         CheckedSubgraph(context, "else_branch", 0, context.output_count()));
  for (int i = 0; i < context.output_count(); ++i) {
    const ValueType &a = then_branch->output_type(i), &b = else_branch->output_type(i);
    if (!SameKind(a, b))
      return absl::InvalidArgumentError(absl::StrCat("output ", i, " is ", a.ToString(),
                                                     " in then_branch and ", b.ToString(),
                                                     " in else_branch"));
    context.set_output_type(i, EitherType(context, a, b));
  }
  return absl::OkStatus();
}

absl::Status Run(const RunContext& run, std::int64_t, void*) {
  if (run.count(0) != 1)
    return absl::InvalidArgumentError(
        absl::StrCat("the condition has ", run.count(0), " elements, want 1"));
  NPURT_ASSIGN_OR_RETURN(Frame* const frame, run.OpenFrame(run.Load<bool>(0, 0) ? kThen : kElse));
  NPURT_RETURN_IF_ERROR(SetCaptures(run, *frame, 0));
  NPURT_RETURN_IF_ERROR(frame->Run());
  for (int i = 0; i < run.output_count(); ++i)
    if (run.has_output(i)) NPURT_RETURN_IF_ERROR(run.MoveOutput(i, *frame, i));
  return absl::OkStatus();
}

}  // namespace

extern constexpr OpDef kOp = {
    .name = "If",
    .inputs = {{"cond", "bool"}, {"*?captured", "any"}},
    .outputs = {{"*outputs", "any"}},
    .attributes = {{"then_branch", AttrKind::kGraph, true},
                   {"else_branch", AttrKind::kGraph, true},
                   {"captures", AttrKind::kInt}},
    .engine = Engine::kAiCpu,
    .any_rank = true,
    .infer = Infer,
    .reference = Run,
};

}  // namespace npurt::ops::if_
