#include "exec/frame.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace npurt::exec {

ContextFrame::ContextFrame(std::shared_ptr<const Callee> callee, Context* around)
    : callee_(std::move(callee)),
      around_(around),
      context_(callee_->program),
      inputs_(callee_->program->inputs.size()),
      input_dims_(callee_->program->inputs.size()) {
  const std::size_t outputs = callee_->program->outputs.size();
  for (OutputSet& set : sets_) {
    set.buffers.resize(outputs);
    set.values.resize(outputs);
    set.results.resize(outputs);
  }
}

absl::Status ContextFrame::SetInput(int i, const Slot& slot) {
  if (i < 0 || i >= static_cast<int>(inputs_.size()))
    return absl::InternalError(absl::StrCat("a subgraph has no input ", i));
  const ProgramPort& port = callee_->program->inputs[i];
  const ProgramValue& value = callee_->program->values[port.value];
  const bool optional = value.kind == ValueKind::kOptional && slot.kind == ValueKind::kSequence;
  if ((slot.kind != value.kind && !optional) ||
      (slot.kind == ValueKind::kTensor && slot.dtype != value.dtype))
    return absl::InvalidArgumentError(absl::StrCat(
        "input '", port.name, "' of '", callee_->name, "': got ",
        slot.kind == ValueKind::kTensor ? DTypeName(slot.dtype) : "another kind of value",
        ", want ",
        value.kind == ValueKind::kTensor ? DTypeName(value.dtype) : "that of the graph"));
  inputs_[i] = slot;
  return absl::OkStatus();
}

absl::Status ContextFrame::Prepare() {
  bool same = plan_ != nullptr;
  const std::int64_t* known = same ? plan_->input_dims.data() : nullptr;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const Slot& slot = inputs_[i];
    if (slot.kind == ValueKind::kNone)
      return absl::InternalError(absl::StrCat("input '", callee_->program->inputs[i].name, "' of '",
                                              callee_->name, "' is not set"));
    input_dims_[i] = slot.kind == ValueKind::kTensor
                         ? absl::MakeConstSpan(slot.dims, static_cast<std::size_t>(slot.rank))
                         : absl::Span<const std::int64_t>();
    if (!same) continue;
    const PlannedValue& planned = plan_->values[callee_->program->inputs[i].value];
    same = static_cast<std::size_t>(planned.rank) == input_dims_[i].size() &&
           std::equal(input_dims_[i].begin(), input_dims_[i].end(), known);
    known += input_dims_[i].size();
  }
  if (same) return absl::OkStatus();
  NPURT_ASSIGN_OR_RETURN(plan_, callee_->planner->Find(input_dims_));
  if (plan_->arena_bytes <= arena_.bytes()) return absl::OkStatus();
  arena_.Reset();
  NPURT_ASSIGN_OR_RETURN(arena_,
                         memory::Buffer::Allocate(*callee_->program->allocator, plan_->arena_bytes,
                                                  memory::kAlignment, memory::Kind::kArena));
  return absl::OkStatus();
}

absl::Status ContextFrame::ProvideOutputs(OutputSet* set) {
  const Program& program = *callee_->program;
  for (std::size_t o = 0; o < program.outputs.size(); ++o) {
    const int value = program.outputs[o].value;
    const PlannedValue& planned = plan_->values[value];
    if (planned.base != Base::kOutput) continue;
    Tensor& buffer = set->buffers[o];
    const auto dims = absl::MakeConstSpan(planned.dims, static_cast<std::size_t>(planned.rank));
    if (!buffer.defined() || buffer.bytes() < planned.bytes) {
      NPURT_ASSIGN_OR_RETURN(buffer, Tensor::Create(program.values[value].dtype, dims));
    }
    context_.SetOutput(static_cast<int>(o), buffer.mutable_data());
  }
  return absl::OkStatus();
}

void ContextFrame::Collect(OutputSet* set) {
  const Program& program = *callee_->program;
  set->plan = plan_;
  for (std::size_t o = 0; o < program.outputs.size(); ++o) {
    const int value = program.outputs[o].value;
    Slot& result = set->results[o];
    result = context_.output(static_cast<int>(o));
    if (result.kind != ValueKind::kTensor) {
      set->values[o] = context_.TakeValue(value);
    } else if (plan_->values[value].base == Base::kPool) {
      set->values[o] = Value(context_.TakePoolTensor(value));
      const Tensor& tensor = set->values[o].tensor();
      result.dims = tensor.dims().data();
      result.data = const_cast<void*>(tensor.data());
    }
    result.value = &set->values[o];
  }
}

absl::Status ContextFrame::Run() {
  NPURT_RETURN_IF_ERROR(Prepare());
  OutputSet& set = sets_[turn_ ^ 1];
  context_.Attach(plan_, arena_.data(), around_->participants_);
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i].kind == ValueKind::kTensor || inputs_[i].kind == ValueKind::kResource)
      context_.SetInput(static_cast<int>(i), inputs_[i].data);
    else
      context_.SetInputValue(static_cast<int>(i), *inputs_[i].value);
  }
  NPURT_RETURN_IF_ERROR(ProvideOutputs(&set));
  NPURT_RETURN_IF_ERROR(context_.Run(around_->team_, *around_->control_));
  Collect(&set);
  turn_ ^= 1;
  return absl::OkStatus();
}

Value ContextFrame::Take(int i) {
  OutputSet& set = sets_[turn_];
  const PlannedValue& planned = set.plan->values[callee_->program->outputs[i].value];
  if (set.results[i].kind != ValueKind::kTensor || planned.base == Base::kPool)
    return std::exchange(set.values[i], {});
  const Tensor buffer = std::exchange(set.buffers[i], {});
  return Value(Tensor::Borrow(buffer.dtype(),
                              {set.results[i].dims, static_cast<std::size_t>(set.results[i].rank)},
                              buffer.data(), buffer.owner()));
}

}  // namespace npurt::exec
