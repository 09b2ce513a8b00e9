// Scan: for each slice of the scan inputs, (state..., outputs...) = body(state..., slices...);
// outputs are the last state and each output's slices put together along its axis.
#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ops/control_flow.h"
#include "ops/move.h"

namespace npurt::ops::scan {
namespace {

// Entry `i` of a list that may be left out.
std::int64_t Entry(absl::Span<const std::int64_t> list, int i) {
  return i < static_cast<int>(list.size()) ? list[i] : 0;
}

struct Counts {
  int states, inputs, outputs;  // of scans the last two
};

template <typename Context>
Counts CountsOf(const Context& context) {
  const auto inputs = static_cast<int>(
      std::clamp<std::int64_t>(context.attributes().Int("num_scan_inputs"), 0, 1 << 20));
  const int states = OwnInputs(context) - inputs;
  return {states, inputs, context.output_count() - states};
}

absl::Status CheckLists(const Attributes& attributes, const Counts& counts) {
  const auto check = [&](const char* name, int want) -> absl::Status {
    const auto list = attributes.Ints(name);
    if (!list.empty() && static_cast<int>(list.size()) != want)
      return absl::InvalidArgumentError(
          absl::StrCat(name, " has ", list.size(), " entries, want ", want));
    return absl::OkStatus();
  };
  NPURT_RETURN_IF_ERROR(check("scan_input_axes", counts.inputs));
  NPURT_RETURN_IF_ERROR(check("scan_input_directions", counts.inputs));
  NPURT_RETURN_IF_ERROR(check("scan_output_axes", counts.outputs));
  NPURT_RETURN_IF_ERROR(check("scan_output_directions", counts.outputs));
  for (const char* name : {"scan_input_directions", "scan_output_directions"})
    for (std::int64_t direction : attributes.Ints(name))
      if (direction != 0 && direction != 1)
        return absl::InvalidArgumentError(
            absl::StrCat(name, " holds ", direction, ", want 0 or 1"));
  return absl::OkStatus();
}

absl::Status Infer(InferContext& context) {
  const Counts counts = CountsOf(context);
  const Attributes& attributes = context.attributes();
  if (counts.inputs < 1 || counts.states < 0 || counts.outputs < 0)
    return absl::InvalidArgumentError(
        absl::StrCat("num_scan_inputs is ", attributes.Int("num_scan_inputs"), ", got ",
                     OwnInputs(context), " inputs and ", context.output_count(), " outputs"));
  NPURT_RETURN_IF_ERROR(CheckLists(attributes, counts));
  NPURT_ASSIGN_OR_RETURN(const Subgraph* body,
                         CheckedSubgraph(context, "body", counts.states + counts.inputs,
                                         counts.states + counts.outputs));
  for (int i = 0; i < counts.states + counts.inputs; ++i)
    if (!context.has_input(i))
      return absl::InvalidArgumentError(absl::StrCat("input ", i, " is missing"));
  for (int i = 0; i < counts.states; ++i) {
    const ValueType &first = context.type(i), &in = body->input_type(i),
                    &out = body->output_type(i);
    if (!SameKind(first, out) || !SameKind(first, in))
      return absl::InvalidArgumentError(absl::StrCat("state ", i, " is ", first.ToString(),
                                                     " at first, the body takes ", in.ToString(),
                                                     " and yields ", out.ToString()));
    context.set_output_type(i, EitherType(context, first, out));
  }
  Dim length = kInvalidDim;
  for (int i = 0; i < counts.inputs; ++i) {
    const ValueType& type = context.type(counts.states + i);
    if (!SameKind(type, body->input_type(counts.states + i)))
      return absl::InvalidArgumentError(
          absl::StrCat("scan input ", i, " is ", type.ToString(), ", the body takes slices of ",
                       body->input_type(counts.states + i).ToString()));
    if (!type.has_rank) continue;
    NPURT_ASSIGN_OR_RETURN(const int axis,
                           NormalizeAxis(Entry(attributes.Ints("scan_input_axes"), i),
                                         static_cast<int>(type.dims.size())));
    const Dim found = type.dims[axis];
    if (length.is_constant() && found.is_constant() && !length.Is(kInvalidDim) && length != found)
      return absl::InvalidArgumentError(absl::StrCat("scan input ", i, " has ", found.ToString(),
                                                     " slices, others ", length.ToString()));
    if (!length.is_constant() || length.Is(kInvalidDim)) length = found;
  }
  for (int i = 0; i < counts.outputs; ++i) {
    const ValueType& slice = body->output_type(counts.states + i);
    if (slice.kind != ValueKind::kTensor)
      return absl::InvalidArgumentError(
          absl::StrCat("output ", counts.states + i, " of the body is no tensor"));
    ValueType all = WithNumbersOnly(context, slice);
    if (all.has_rank) {
      NPURT_ASSIGN_OR_RETURN(const int axis,
                             NormalizeAxis(Entry(attributes.Ints("scan_output_axes"), i),
                                           static_cast<int>(all.dims.size()) + 1));
      all.dims.insert(all.dims.begin() + axis, length.Is(kInvalidDim) ? context.RunDim() : length);
    }
    context.set_output_type(counts.states + i, std::move(all));
  }
  return absl::OkStatus();
}

// One scan input: where its slices are.
struct Source {
  SliceLayout layout;
  bool backwards = false;
  Dims dims;    // of a slice
  Tensor copy;  // of the slice, where slices are not in one piece
  Slot slot;
};

absl::Status Run(const RunContext& run, std::int64_t, void*) {
  const Counts counts = CountsOf(run);
  const Attributes& attributes = run.attributes();
  NPURT_ASSIGN_OR_RETURN(Frame* const frame, run.OpenFrame(0));
  NPURT_RETURN_IF_ERROR(SetCaptures(run, *frame, counts.states + counts.inputs));
  for (int i = 0; i < counts.states; ++i) NPURT_RETURN_IF_ERROR(frame->SetInput(i, run.input(i)));

  std::vector<Source> sources(counts.inputs);
  std::int64_t length = 0;
  for (int i = 0; i < counts.inputs; ++i) {
    const int input = counts.states + i;
    Source& source = sources[i];
    NPURT_ASSIGN_OR_RETURN(
        const int axis,
        NormalizeAxis(Entry(attributes.Ints("scan_input_axes"), i), run.input(input).rank));
    source.layout = LayoutAround(run.dims(input), axis);
    source.backwards = Entry(attributes.Ints("scan_input_directions"), i) == 1;
    source.dims.assign(run.dims(input).begin(), run.dims(input).end());
    source.dims.erase(source.dims.begin() + axis);
    if (i == 0) length = source.layout.length;
    if (length != source.layout.length)
      return absl::InvalidArgumentError(absl::StrCat(
          "scan input ", i, " has ", source.layout.length, " slices, others ", length));
    NPURT_ASSIGN_OR_RETURN(source.copy, Tensor::Create(run.dtype(input), source.dims));
    source.slot = SlotOf(source.copy);
  }

  const Subgraph& body = *attributes.FindGraph("body");
  std::vector<SliceLayout> targets(counts.outputs);
  // Allocates scan output `i` once its slices' shape is known.
  const auto allocate = [&](int i, absl::Span<const std::int64_t> slice) -> absl::Status {
    NPURT_ASSIGN_OR_RETURN(const int axis,
                           NormalizeAxis(Entry(attributes.Ints("scan_output_axes"), i),
                                         static_cast<int>(slice.size()) + 1));
    Dims dims(slice.begin(), slice.end());
    dims.insert(dims.begin() + axis, length);
    targets[i] = LayoutAround(dims, axis);
    return run.AllocateOutput(counts.states + i, dims);
  };
  for (std::int64_t turn = 0; turn < length; ++turn) {
    NPURT_RETURN_IF_ERROR(run.Poll());
    for (int i = 0; i < counts.inputs; ++i) {
      Source& source = sources[i];
      const int input = counts.states + i;
      ReadSlice(run.dtype(input), source.layout, run.input(input).data,
                source.backwards ? length - 1 - turn : turn, source.copy.mutable_data());
      NPURT_RETURN_IF_ERROR(frame->SetInput(input, source.slot));
    }
    NPURT_RETURN_IF_ERROR(frame->Run());
    for (int i = 0; i < counts.states; ++i)
      NPURT_RETURN_IF_ERROR(frame->SetInput(i, frame->output(i)));
    for (int i = 0; i < counts.outputs; ++i) {
      const int output = counts.states + i;
      if (!run.has_output(output)) continue;
      const Slot& slice = frame->output(output);
      if (turn == 0)
        NPURT_RETURN_IF_ERROR(
            allocate(i, absl::MakeConstSpan(slice.dims, static_cast<std::size_t>(slice.rank))));
      const SliceLayout& target = targets[i];
      if (slice.count != target.outer * target.inner || slice.dtype != run.output(output).dtype)
        return absl::InvalidArgumentError(
            absl::StrCat("scan output ", i, " changes its shape or type in turn ", turn));
      const bool backwards = Entry(attributes.Ints("scan_output_directions"), i) == 1;
      WriteSlice(slice.dtype, target, run.output(output).data, backwards ? length - 1 - turn : turn,
                 slice.data);
    }
  }
  for (int i = 0; i < counts.states; ++i)
    if (run.has_output(i))
      NPURT_RETURN_IF_ERROR(length > 0 ? run.MoveOutput(i, *frame, i)
                                       : CopyToOutput(run, i, run.input(i)));
  if (length > 0) return absl::OkStatus();
  for (int i = 0; i < counts.outputs; ++i) {
    if (!run.has_output(counts.states + i)) continue;
    Dims slice;
    for (Dim d : body.output_type(counts.states + i).dims)
      slice.push_back(d.is_constant() && d.value() >= 0 ? d.value() : 0);
    NPURT_RETURN_IF_ERROR(allocate(i, slice));
  }
  return absl::OkStatus();
}

}  // namespace

extern constexpr OpDef kOp = {
    .name = "Scan",
    .inputs = {{"*initial_state_and_scan_inputs", "any"}},
    .outputs = {{"*final_state_and_scan_outputs", "any"}},
    .attributes = {{"body", AttrKind::kGraph, true},
                   {"num_scan_inputs", AttrKind::kInt, true},
                   {"scan_input_axes", AttrKind::kInts},
                   {"scan_input_directions", AttrKind::kInts},
                   {"scan_output_axes", AttrKind::kInts},
                   {"scan_output_directions", AttrKind::kInts},
                   {"captures", AttrKind::kInt}},
    .engine = Engine::kAiCpu,
    .any_rank = true,
    .infer = Infer,
    .reference = Run,
};

}  // namespace npurt::ops::scan
