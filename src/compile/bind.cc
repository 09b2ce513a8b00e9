#include "compile/bind.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/checked_math.h"
#include "graph/graph.h"

namespace npurt::compile {
namespace {

using exec::Base;
using exec::kNone;
using exec::Plan;
using exec::PlannedStep;
using exec::PlannedValue;
using exec::Program;
using exec::ProgramValue;
using exec::Step;

// Hands out zeroed bytes in blocks; the plan keeps them.
struct Storage {
  std::vector<std::unique_ptr<std::byte[]>>* blocks;
  std::size_t used = 0, capacity = 0, total = 0;
  std::byte* block = nullptr;

  std::byte* New(std::size_t bytes, std::size_t alignment) {
    constexpr std::size_t kBlockBytes = 16384;
    std::size_t start = AlignUp(used, alignment);
    if (block == nullptr || start + bytes > capacity) {
      capacity = std::max(kBlockBytes, bytes);
      blocks->push_back(std::make_unique<std::byte[]>(capacity));  // zeroed, aligned for max_align_t
      block = blocks->back().get();
      total += capacity;
      start = 0;
    }
    used = start + bytes;
    return block + start;
  }
  static void* NewBytes(void* self, std::size_t bytes, std::size_t alignment) {
    return static_cast<Storage*>(self)->New(bytes, alignment);
  }
};

absl::Status WrongShape(const Program& program, int input, absl::Span<const std::int64_t> got) {
  const ProgramValue& value = program.values[program.inputs[input].value];
  return absl::InvalidArgumentError(
      absl::StrCat("input '", program.inputs[input].name, "': got shape ", ShapeString(got),
                   ", want ", ShapeString(absl::MakeConstSpan(value.dims))));
}

// Gives the symbols of the inputs their values.
absl::Status BindSymbols(const Program& program,
                         absl::Span<const absl::Span<const std::int64_t>> dims,
                         absl::Span<std::int64_t> symbols) {
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const ProgramValue& value = program.values[program.inputs[i].value];
    if (value.kind != ValueKind::kTensor || !value.has_rank) continue;
    if (value.dims.size() != dims[i].size())
      return WrongShape(program, static_cast<int>(i), dims[i]);
    for (std::size_t d = 0; d < dims[i].size(); ++d) {
      const Dim dim = value.dims[d];
      const std::int64_t got = dims[i][d];
      if (got < 0) return WrongShape(program, static_cast<int>(i), dims[i]);
      if (dim.is_constant()) {
        if (dim.value() != got) return WrongShape(program, static_cast<int>(i), dims[i]);
        continue;
      }
      std::int64_t& symbol = symbols[dim.node()->index];
      if (symbol != kInvalidDim && symbol != got)
        return absl::InvalidArgumentError(absl::StrCat(
            "input '", program.inputs[i].name, "': dimension '", dim.ToString(), "' is ", got,
            " here and ", symbol, " in another input"));
      symbol = got;
    }
  }
  return absl::OkStatus();
}

absl::Status ComputeShapes(const Program& program,
                           absl::Span<const absl::Span<const std::int64_t>> inputs,
                           absl::Span<const std::int64_t> symbols, Plan* plan) {
  std::size_t total = 0;
  for (const ProgramValue& value : program.values)
    if (value.home != Base::kPool) total += value.dims.size();
  for (const auto& dims : inputs) total += dims.size();
  plan->dims.reserve(total);  // pointers into it are kept
  plan->values.resize(program.values.size());
  for (std::size_t v = 0; v < program.values.size(); ++v) {
    const ProgramValue& value = program.values[v];
    PlannedValue& planned = plan->values[v];
    planned.base = value.home;
    planned.index = value.index;
    if (value.home == Base::kPool || value.kind != ValueKind::kTensor) continue;
    planned.dims = plan->dims.data() + plan->dims.size();
    if (value.home == Base::kInput)  // its rank may be unknown to the program
      plan->dims.insert(plan->dims.end(), inputs[value.index].begin(), inputs[value.index].end());
    else
      for (Dim dim : value.dims) plan->dims.push_back(ValueOf(dim, symbols));
    planned.rank =
        static_cast<std::int32_t>(plan->dims.data() + plan->dims.size() - planned.dims);
    const auto count = ElementCount(absl::MakeConstSpan(planned.dims, planned.rank));
    planned.count = count.value_or(0);
    if (!count.ok() || !BytesOf(value.dtype, planned.count, &planned.bytes))
      return absl::InvalidArgumentError(absl::StrCat(
          "'", value.name, "': these input shapes give it no valid shape (",
          ShapeString(absl::MakeConstSpan(value.dims)), " = ",
          ShapeString(absl::MakeConstSpan(planned.dims, planned.rank)), ")"));
  }
  return absl::OkStatus();
}

// Writes shapes that are tensors, known now.
absl::Status FillPlanValues(const Program& program, absl::Span<const std::int64_t> symbols,
                            Plan* plan) {
  for (std::size_t v = 0; v < program.values.size(); ++v) {
    const ProgramValue& value = program.values[v];
    if (value.home != Base::kPlan) continue;
    PlannedValue& planned = plan->values[v];
    planned.index = static_cast<std::int32_t>(plan->storage.size());
    plan->storage.push_back(std::make_unique<std::byte[]>(std::max<std::size_t>(planned.bytes, 1)));
    plan->own_bytes += planned.bytes;
    std::byte* out = plan->storage.back().get();
    if (static_cast<std::int64_t>(value.integers.size()) != planned.count)
      return absl::InternalError(absl::StrCat("'", value.name, "': number of integers"));
    for (Dim dim : value.integers) {
      const std::int64_t number = ValueOf(dim, symbols);
      if (number == kInvalidDim)
        return absl::InvalidArgumentError(absl::StrCat("'", value.name, "': ", dim.ToString(),
                                                       " cannot be computed for these shapes"));
      DispatchDType<kIntegers | kBools>(value.dtype, [&](auto type) {
        const auto element = static_cast<decltype(type)>(number);
        std::memcpy(out, &element, sizeof element);
        out += sizeof element;
      });
    }
  }
  return absl::OkStatus();
}

}  // namespace

Binder::Binder(const exec::Program* program, std::vector<BindStep> steps)
    : program_(program), steps_(std::move(steps)) {}

absl::StatusOr<std::shared_ptr<const Plan>> Binder::MakePlan(
    absl::Span<const absl::Span<const std::int64_t>> dims, int participants, bool exact,
    absl::Span<const int> donated) const {
  const Program& program = *program_;
  auto plan = std::make_shared<Plan>();
  for (const auto& shape : dims)
    plan->input_dims.insert(plan->input_dims.end(), shape.begin(), shape.end());
  std::vector<std::int64_t> symbols(program.dims->size(), kInvalidDim);
  NPURT_RETURN_IF_ERROR(BindSymbols(program, dims, absl::MakeSpan(symbols)));
  program.dims->Evaluate(absl::MakeSpan(symbols));
  NPURT_RETURN_IF_ERROR(ComputeShapes(program, dims, symbols, plan.get()));
  NPURT_RETURN_IF_ERROR(FillPlanValues(program, symbols, plan.get()));

  std::vector<Slot> slots(program.values.size() + 1);
  for (std::size_t v = 0; v < program.values.size(); ++v) {
    const PlannedValue& planned = plan->values[v];
    slots[v].dtype = program.values[v].dtype;
    slots[v].kind = program.values[v].kind;
    slots[v].dims = planned.dims;
    slots[v].rank = planned.rank;
    slots[v].count = planned.count;
  }

  Storage storage{&plan->storage};
  plan->donated.assign(donated.begin(), donated.end());
  Placement placement(program, participants);
  placement.Donate(donated);
  plan->steps.resize(program.steps.size());
  std::vector<ops::BindContext::Offer> offers;
  std::vector<Slot*> operands;
  std::vector<const Tensor*> constants;
  for (std::size_t s = 0; s < program.steps.size(); ++s) {
    const Step& step = program.steps[s];
    const BindStep& bind_step = steps_[s];
    if (step.late) {
      plan->exact = false;
      continue;
    }
    if (bind_step.bind == nullptr) continue;
    operands.clear();
    constants.clear();
    for (const std::vector<int>* list : {&step.inputs, &step.outputs})
      for (int v : *list) operands.push_back(v == kNone ? &slots.back() : &slots[v]);
    // Shapes that this plan computed are constants to operators.
    std::vector<Tensor> plan_constants;
    plan_constants.reserve(step.inputs.size());
    for (std::size_t i = 0; i < step.inputs.size(); ++i) {
      const int v = step.inputs[i];
      const Tensor* constant = bind_step.constants[i];
      if (constant == nullptr && v != kNone && program.values[v].home == Base::kPlan) {
        const PlannedValue& planned = plan->values[v];
        plan_constants.push_back(
            Tensor::Borrow(program.values[v].dtype,
                           absl::MakeConstSpan(planned.dims, planned.rank),
                           plan->storage[planned.index].get(), nullptr));
        constant = &plan_constants.back();
      }
      constants.push_back(constant);
    }
    offers.clear();
    ops::BindContext context;
    context.inputs_ = operands.data();
    context.outputs_ = operands.data() + step.inputs.size();
    context.input_count_ = static_cast<std::int32_t>(step.inputs.size());
    context.output_count_ = static_cast<std::int32_t>(step.outputs.size());
    context.constants_ = constants.data();
    context.attributes_ = step.attributes;
    context.prepared_ = step.prepared;
    context.storage_ = &storage;
    context.new_ = &Storage::NewBytes;
    context.offers_ = &offers;
    NPURT_RETURN_IF_ERROR(Annotate(bind_step.bind(context), step.where));
    PlannedStep& planned = plan->steps[s];
    planned.bound = context.made_;
    planned.tiles = context.tiles_;
    planned.cost_per_tile = context.cost_per_tile_;
    plan->scratch_bytes =
        std::max(plan->scratch_bytes, AlignUp(context.scratch_bytes_, std::size_t{64}));
    for (const auto& offer : offers) placement.AddOffer(static_cast<int>(s), offer);
  }
  NPURT_RETURN_IF_ERROR(placement.Place(plan.get(), exact ? nullptr : &layouts_));
  plan->own_bytes += sizeof(Plan) + storage.total + plan->dims.size() * sizeof(std::int64_t) +
                     plan->values.size() * sizeof(PlannedValue) +
                     plan->steps.size() * sizeof(PlannedStep);
  return std::shared_ptr<const Plan>(std::move(plan));
}

absl::Status Binder::BindLate(int index, exec::Context& context) const {
  const Step& step = program_->steps[index];
  const BindStep& bind_step = steps_[index];
  PlannedStep& planned = context.late_step(index);
  planned = {};
  absl::InlinedVector<ValueType, 4> types(step.inputs.size());
  absl::InlinedVector<Tensor, 4> tensors(step.inputs.size());
  absl::InlinedVector<graph::InferInput, 4> inputs(step.inputs.size());
  absl::InlinedVector<const Tensor*, 4> constants(step.inputs.size(), nullptr);
  absl::InlinedVector<Slot*, 8> operands;
  Slot absent;
  for (std::size_t i = 0; i < step.inputs.size(); ++i) {
    const int v = step.inputs[i];
    if (v == kNone) {
      operands.push_back(&absent);
      continue;
    }
    Slot& slot = context.slot(v);
    operands.push_back(&slot);
    const ProgramValue& value = program_->values[v];
    if (slot.kind == ValueKind::kTensor) {
      const auto dims = absl::MakeConstSpan(slot.dims, slot.rank);
      types[i] = ValueType::OfTensor(value.declared, ToSymDims(dims));
      tensors[i] = Tensor::Borrow(slot.dtype, dims, slot.data, nullptr);
      // A weight that was packed and dropped has a shape but no bytes.
      if (slot.data != nullptr || slot.count == 0) constants[i] = &tensors[i];
    } else {
      types[i].kind = slot.kind;
      types[i].dtype = value.declared;
      types[i].element = value.element;
      // A loop may have turned an optional into what it held.
      if (value.kind == ValueKind::kOptional && slot.kind != value.kind && value.element != nullptr)
        types[i] = *value.element;
    }
    inputs[i] = {&types[i], constants[i], nullptr};
  }
  absl::InlinedVector<bool, 4> wanted;
  for (int v : step.outputs) wanted.push_back(v != kNone);

  bool placed = true;
  if (bind_step.op == nullptr) {  // a boundary copy
    const Slot& in = *operands[0];
    if (in.kind == ValueKind::kTensor)
      NPURT_RETURN_IF_ERROR(context.Reserve(step.outputs[0], {in.dims, std::size_t(in.rank)}));
  } else {
    NPURT_ASSIGN_OR_RETURN(const graph::InferResult inferred,
                           graph::InferNode(*bind_step.op, *step.attributes, inputs, wanted,
                                            nullptr, std::string()));
    for (std::size_t i = 0; i < step.outputs.size(); ++i) {
      const int v = step.outputs[i];
      if (v == kNone) continue;
      const ValueType& type = inferred.outputs[i].type;
      context.slot(v).kind = type.kind;
      if (type.kind != ValueKind::kTensor || program_->values[v].home != Base::kPool) continue;
      Dims dims(type.dims.size());
      bool known = type.has_rank;
      for (std::size_t d = 0; d < dims.size() && known; ++d) {
        dims[d] = type.dims[d].value();
        known = type.dims[d].is_constant() && dims[d] >= 0;
      }
      if (known)
        NPURT_RETURN_IF_ERROR(context.Reserve(v, dims));
      else
        placed = false;
    }
  }
  if (bind_step.bind == nullptr) return absl::OkStatus();  // it may allocate outputs itself
  if (!placed)
    return absl::InvalidArgumentError("the shape of the result cannot be computed from the inputs");

  for (int v : step.outputs) operands.push_back(v == kNone ? &absent : &context.slot(v));
  ops::BindContext bind;
  bind.inputs_ = operands.data();
  bind.outputs_ = operands.data() + step.inputs.size();
  bind.input_count_ = static_cast<std::int32_t>(step.inputs.size());
  bind.output_count_ = static_cast<std::int32_t>(step.outputs.size());
  bind.constants_ = constants.data();
  bind.attributes_ = step.attributes;
  bind.prepared_ = step.prepared;
  bind.storage_ = &context;
  bind.new_ = [](void* self, std::size_t bytes, std::size_t alignment) {
    void* data = static_cast<exec::Context*>(self)->LateStorage(bytes, alignment);
    std::memset(data, 0, bytes);
    return data;
  };
  NPURT_RETURN_IF_ERROR(bind_step.bind(bind));
  planned.tiles = bind.tiles_;
  planned.cost_per_tile = bind.cost_per_tile_;
  context.run_context(index).bound_ = bind.made_;
  context.BookLateScratch(bind.scratch_bytes_);
  return absl::OkStatus();
}

}  // namespace npurt::compile
