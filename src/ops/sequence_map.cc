// SequenceMap: outputs[k][i] = body(input_sequence[i], others...)[k]; of the others, sequences are
// taken item by item and tensors whole.
#include <vector>

#include "absl/strings/str_cat.h"
#include "ops/control_flow.h"

namespace npurt::ops::sequence_map {
namespace {

absl::Status Infer(InferContext& context) {
  NPURT_ASSIGN_OR_RETURN(const Subgraph* body, CheckedSubgraph(context, "body", OwnInputs(context),
                                                               context.output_count()));
  for (int i = 0; i < OwnInputs(context); ++i) {
    if (!context.has_input(i))
      return absl::InvalidArgumentError(absl::StrCat("input ", i, " is missing"));
    const ValueType& type = context.type(i);
    const bool items = type.kind == ValueKind::kSequence;
    if (items && type.element == nullptr) continue;
    if (!SameKind(items ? *type.element : type, body->input_type(i)))
      return absl::InvalidArgumentError(absl::StrCat("input ", i, " is ", type.ToString(),
                                                     ", the body takes ",
                                                     body->input_type(i).ToString()));
  }
  for (int i = 0; i < context.output_count(); ++i) {
    const ValueType& item = body->output_type(i);
    if (item.kind != ValueKind::kTensor)
      return absl::InvalidArgumentError(
          absl::StrCat("output ", i, " of the body is ", item.ToString(), ", want a tensor"));
    context.set_output_type(i, ValueType::SequenceOf(ValueType::OfTensor(item.dtype)));
  }
  return absl::OkStatus();
}

absl::Status Run(const RunContext& run, std::int64_t, void*) {
  const int inputs = OwnInputs(run);
  NPURT_ASSIGN_OR_RETURN(Frame* const frame, run.OpenFrame(0));
  NPURT_RETURN_IF_ERROR(SetCaptures(run, *frame, inputs));
  const std::size_t length = run.input_value(0).items().size();
  for (int i = 0; i < inputs; ++i) {
    if (run.input(i).kind != ValueKind::kSequence) {
      NPURT_RETURN_IF_ERROR(frame->SetInput(i, run.input(i)));
    } else if (run.input_value(i).items().size() != length) {
      return absl::InvalidArgumentError(absl::StrCat("sequence ", i, " has ",
                                                     run.input_value(i).items().size(),
                                                     " items, the first has ", length));
    }
  }
  std::vector<ValueList> results(run.output_count());
  for (std::size_t k = 0; k < length; ++k) {
    NPURT_RETURN_IF_ERROR(run.Poll());
    for (int i = 0; i < inputs; ++i) {
      if (run.input(i).kind != ValueKind::kSequence) continue;
      const Value& item = run.input_value(i).items()[k];
      if (!item.is_tensor())
        return absl::InvalidArgumentError(absl::StrCat("an item of sequence ", i, " is no tensor"));
      NPURT_RETURN_IF_ERROR(frame->SetInput(i, SlotOf(item.tensor())));
    }
    NPURT_RETURN_IF_ERROR(frame->Run());
    for (int i = 0; i < run.output_count(); ++i)
      if (run.has_output(i)) results[i].push_back(frame->Take(i));
  }
  for (int i = 0; i < run.output_count(); ++i)
    if (run.has_output(i)) run.set_output_value(i, Value::Sequence(std::move(results[i])));
  return absl::OkStatus();
}

}  // namespace

extern constexpr OpDef kOp = {
    .name = "SequenceMap",
    .inputs = {{"input_sequence", "sequence"}, {"*?additional_inputs", "any"}},
    .outputs = {{"*out_sequence", "any"}},
    .attributes = {{"body", AttrKind::kGraph, true}, {"captures", AttrKind::kInt}},
    .engine = Engine::kAiCpu,
    .any_rank = true,
    .infer = Infer,
    .reference = Run,
};

}  // namespace npurt::ops::sequence_map
