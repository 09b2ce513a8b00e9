// Operators of the host: their callbacks in the shape of ops::HostCall, and what they may ask.
//
// A context lives during one callback. What it hands out as pointers it keeps in lists whose
// elements stay where they are.
#include "operator.h"

#include <deque>

#include "base/mutex.h"
#include "submitter.h"

namespace npurt::capi {
namespace {

// A call that finishes later: the thread of the run waits, whoever finishes it tells.
struct Pending {
  Mutex mutex;
  CondVar changed;
  bool done NPURT_GUARDED_BY(mutex) = false;
  absl::Status status NPURT_GUARDED_BY(mutex);

  void Finish(absl::Status result) {
    MutexLock lock(mutex);
    status = std::move(result);
    done = true;
    changed.SignalAll();
  }
  absl::Status Wait() {
    MutexLock lock(mutex);
    while (!done) changed.Wait(mutex);
    return status;
  }
};

}  // namespace
}  // namespace npurt::capi

struct npurt_op_pending {
  std::shared_ptr<npurt::capi::Pending> pending;
};

struct npurt_op_context {
  const npurt::Attributes& attributes;
  const std::string& node;
  npurt::ops::InferContext* infer;  // one of the two
  const npurt::RunContext* run;
  std::vector<bool> said;  // infer: outputs that have their info
  std::string message;
  std::shared_ptr<npurt::capi::Pending> pending;
  std::deque<npurt::capi::InfoStorage> infos;
  std::deque<npurt::capi::Ref<npurt_value>> values;
  std::vector<npurt_value*> inputs;
  std::deque<std::vector<npurt_string>> strings;
  std::deque<npurt_value*> tensors;

  // A handle that lives as long as the context.
  npurt_value* Keep(npurt_value* made) {
    npurt::capi::Ref<npurt_value> ref(made);
    npurt::capi::Release(made);
    return values.emplace_back(std::move(ref)).get();
  }
};

namespace npurt::capi {
namespace {

class HostNode final : public ops::HostCall {
 public:
  HostNode(std::shared_ptr<const npurt_operator> callbacks, Attributes attributes, std::string name)
      : callbacks_(std::move(callbacks)),
        attributes_(std::move(attributes)),
        name_(std::move(name)) {}

  absl::Status Infer(ops::InferContext& infer) const override {
    if (callbacks_->infer == nullptr) return InferNothing(infer);
    npurt_op_context context{attributes_, name_, &infer, nullptr, {}, {}, {}, {}, {}, {}, {}, {}};
    context.said.resize(infer.output_count());
    context.inputs.resize(infer.input_count());
    const npurt_status status = callbacks_->infer(callbacks_->user_data, &context);
    NPURT_RETURN_IF_ERROR(Answer(status, context, "infer"));
    for (int i = 0; i < infer.output_count(); ++i)
      if (infer.has_output(i) && !context.said[i])
        return absl::InvalidArgumentError(
            absl::StrCat("the operator's infer said nothing of output ", i));
    return absl::OkStatus();
  }

  absl::Status Run(const RunContext& run) const override {
    npurt_op_context context{attributes_, name_, nullptr, &run, {}, {}, {}, {}, {}, {}, {}, {}};
    context.inputs.resize(run.input_count());
    npurt_status status;
    if ((callbacks_->flags & NPURT_OPERATOR_SERIAL) == 0) {
      status = Compute(context);
    } else {
      MutexLock lock(serial_);
      status = Compute(context);
    }
    NPURT_RETURN_IF_ERROR(Answer(status, context, "compute"));
    if (context.pending == nullptr) return absl::OkStatus();
    const Submitter::Waiting waiting;  // another thread takes over the other submitted runs
    return context.pending->Wait();
  }

 private:
  static absl::Status InferNothing(ops::InferContext& infer) {
    const bool tensor = infer.has_input(0) && infer.type(0).kind == ValueKind::kTensor;
    for (int i = 0; i < infer.output_count(); ++i)
      infer.set_output_unknown(i, tensor ? infer.dtype(0) : DType::kF32);
    return absl::OkStatus();
  }

  npurt_status Compute(npurt_op_context& context) const {
    const HostFloatMode host_mode;
    return callbacks_->compute(callbacks_->user_data, &context);
  }

  static absl::Status Answer(npurt_status status, const npurt_op_context& context,
                             const char* what) {
    if (!context.message.empty()) return FromC(status, context.message);
    return FromC(status, absl::StrCat("the operator's ", what, " returned ", status));
  }

  std::shared_ptr<const npurt_operator> callbacks_;
  Attributes attributes_;
  std::string name_;
  mutable Mutex serial_;
};

class Operators final : public ops::HostOperators {
 public:
  explicit Operators(npurt_host* host) : host_(host) {}

  bool Has(absl::string_view domain, absl::string_view type) const override {
    return Find(domain, type) != nullptr;
  }

  absl::StatusOr<Made> Make(absl::string_view domain, absl::string_view type,
                            const std::string& node, const Attributes& attributes,
                            std::size_t inputs, std::size_t outputs) const override {
    const npurt_host::Operator* op = Find(domain, type);
    if (op == nullptr) return absl::InternalError("no such operator of the host");
    const npurt_operator& c = *op->callbacks;
    NPURT_RETURN_IF_ERROR(WantCount("inputs", inputs, c.min_inputs, c.max_inputs));
    NPURT_RETURN_IF_ERROR(WantCount("outputs", outputs, c.min_outputs, c.max_outputs));
    const char* made = ops::kHostCallReadsState;  // may not be folded unless it says so
    if ((c.flags & NPURT_OPERATOR_PURE) != 0) made = ops::kHostCallPure;
    if ((c.flags & NPURT_OPERATOR_WRITES_STATE) != 0) made = ops::kHostCallWritesState;
    return Made{made, ops::HostCallAttributes(
                          std::make_shared<const HostNode>(op->callbacks, attributes, node))};
  }

 private:
  const npurt_host::Operator* Find(absl::string_view domain, absl::string_view type) const {
    for (const npurt_host::Operator& op : host_->operators)
      if (op.type == type && op.domain == domain) return &op;
    return nullptr;
  }

  static absl::Status WantCount(const char* what, std::size_t count, std::uint32_t min,
                                std::uint32_t max) {
    if (count > ops::kMaxHostCallOperands)
      return absl::UnimplementedError(
          absl::StrCat("got ", count, " ", what, ", want at most ", ops::kMaxHostCallOperands));
    if (count >= min && count <= max) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("got ", count, " ", what, ", want ", min, " to ", max));
  }

  Ref<npurt_host> host_;
};

absl::Status WantOperand(std::size_t index, int count, const char* what) {
  if (index < static_cast<std::size_t>(count)) return absl::OkStatus();
  return absl::OutOfRangeError(
      absl::StrCat(what, ": got index ", index, ", want less than ", count));
}

// An attribute with its data in place, or kept by the context.
absl::StatusOr<npurt_attribute> ToC(npurt_op_context& context, const Attribute& attribute) {
  npurt_attribute out = {attribute.name.c_str(), 0, 0, nullptr, 1};
  const auto point = [&out](npurt_attribute_kind kind, const void* data, std::size_t count) {
    out.kind = kind;
    out.data = data;
    out.count = count;
    return out;
  };
  const AttributeValue& value = attribute.value;
  if (const auto* i = std::get_if<std::int64_t>(&value)) return point(NPURT_ATTRIBUTE_INT, i, 1);
  if (const auto* f = std::get_if<float>(&value)) return point(NPURT_ATTRIBUTE_FLOAT, f, 1);
  if (const auto* ints = std::get_if<std::vector<std::int64_t>>(&value))
    return point(NPURT_ATTRIBUTE_INTS, ints->data(), ints->size());
  if (const auto* floats = std::get_if<std::vector<float>>(&value))
    return point(NPURT_ATTRIBUTE_FLOATS, floats->data(), floats->size());
  if (const auto* text = std::get_if<std::string>(&value)) {
    const auto& kept =
        context.strings.emplace_back(std::vector<npurt_string>{{text->data(), text->size()}});
    return point(NPURT_ATTRIBUTE_STRING, kept.data(), 1);
  }
  if (const auto* texts = std::get_if<std::vector<std::string>>(&value)) {
    std::vector<npurt_string>& kept = context.strings.emplace_back();
    for (const std::string& text : *texts) kept.push_back({text.data(), text.size()});
    return point(NPURT_ATTRIBUTE_STRINGS, kept.data(), kept.size());
  }
  if (const auto* tensor = std::get_if<Tensor>(&value))
    return point(NPURT_ATTRIBUTE_TENSOR,
                 &context.tensors.emplace_back(context.Keep(NewValue(Value(*tensor)))), 1);
  return absl::UnimplementedError(
      absl::StrCat("attribute '", attribute.name, "' is of a kind that C does not see"));
}

// The dimension of this name among those of the inputs, or one that only the run tells.
Dim NamedDim(ops::InferContext& infer, absl::string_view name) {
  for (int i = 0; !name.empty() && i < infer.input_count(); ++i) {
    if (!infer.has_input(i) || !infer.type(i).has_rank) continue;
    for (const Dim& dim : infer.shape(i))
      if (!dim.is_constant() && dim.ToString() == name) return dim;
  }
  return infer.RunDim();
}

}  // namespace

std::shared_ptr<const ops::HostOperators> HostOperatorsOf(npurt_host* host) {
  if (host == nullptr || host->operators.empty()) return nullptr;
  return std::make_shared<const Operators>(host);
}

}  // namespace npurt::capi

using namespace npurt;        // NOLINT: the C functions below are the outside of this file
using namespace npurt::capi;  // NOLINT

size_t npurt_op_input_count(const npurt_op_context* context) {
  return context == nullptr ? 0 : context->inputs.size();
}

size_t npurt_op_output_count(const npurt_op_context* context) {
  if (context == nullptr) return 0;
  return static_cast<size_t>(context->infer != nullptr ? context->infer->output_count()
                                                       : context->run->output_count());
}

const char* npurt_op_node(const npurt_op_context* context) {
  return context == nullptr ? "" : context->node.c_str();
}

npurt_status npurt_op_input_info(npurt_op_context* context, size_t index,
                                 npurt_value_info* out_info, npurt_error** error) {
  return Guard(error, [&]() -> absl::Status {
    NPURT_RETURN_IF_ERROR(WantAll("context", context));
    NPURT_RETURN_IF_ERROR(WantOut(out_info, "out_info"));
    const int i = static_cast<int>(index);
    NPURT_RETURN_IF_ERROR(WantOperand(index, static_cast<int>(context->inputs.size()), "input"));
    const bool there =
        context->infer != nullptr ? context->infer->has_input(i) : context->run->has_input(i);
    if (!there) return absl::NotFoundError(absl::StrCat("input ", index, " is absent"));
    if (context->infer != nullptr) {
      const ValueType& type = context->infer->type(i);
      context->infos.emplace_back("", type, static_cast<npurt_kind>(type.kind));
    } else {
      const Slot& slot = context->run->input(i);
      const ValueType type = slot.kind == ValueKind::kTensor
                                 ? ValueType::OfTensor(slot.dtype, ToSymDims(context->run->dims(i)))
                                 : TypeOf(*slot.value);
      context->infos.emplace_back("", type, static_cast<npurt_kind>(slot.kind));
    }
    CopyOut(context->infos.back().View(), out_info);
    return absl::OkStatus();
  });
}

npurt_status npurt_op_attribute(npurt_op_context* context, const char* name,
                                npurt_attribute* out_attribute, npurt_error** error) {
  return Guard(error, [&]() -> absl::Status {
    NPURT_RETURN_IF_ERROR(
        WantAll("context", context, "name", name, "out_attribute", out_attribute));
    for (const Attribute& attribute : context->attributes.all())
      if (attribute.name == name) {
        NPURT_ASSIGN_OR_RETURN(*out_attribute, ToC(*context, attribute));
        return absl::OkStatus();
      }
    return absl::NotFoundError(absl::StrCat("the node has no attribute '", name, "'"));
  });
}

npurt_status npurt_op_set_output_info(npurt_op_context* context, size_t index,
                                      const npurt_value_info* info, npurt_error** error) {
  return Guard(error, [&]() -> absl::Status {
    NPURT_RETURN_IF_ERROR(WantAll("context", context));
    NPURT_ASSIGN_OR_RETURN(const npurt_value_info said, CopyIn(info, "info"));
    if (context->infer == nullptr) return absl::FailedPreconditionError("only inside infer");
    ops::InferContext& infer = *context->infer;
    NPURT_RETURN_IF_ERROR(WantOperand(index, infer.output_count(), "output"));
    NPURT_ASSIGN_OR_RETURN(ValueType type, TypeFromInfo(said, [&](absl::string_view name, int) {
                             return NamedDim(infer, name);
                           }));
    const int i = static_cast<int>(index);
    if (type.kind == ValueKind::kTensor && !type.has_rank)
      infer.set_output_unknown(i, type.dtype);
    else
      infer.set_output_type(i, std::move(type));
    context->said[index] = true;
    return absl::OkStatus();
  });
}

npurt_value* npurt_op_input(npurt_op_context* context, size_t index) {
  if (context == nullptr || index >= context->inputs.size()) return nullptr;
  return Quietly<npurt_value*>(nullptr, [&]() -> npurt_value* {
    npurt_value*& input = context->inputs[index];
    const int i = static_cast<int>(index);
    if (input != nullptr) return input;
    if (context->infer != nullptr) {
      const Tensor* constant = context->infer->has_input(i) ? context->infer->constant(i) : nullptr;
      return constant == nullptr ? nullptr : input = context->Keep(NewValue(Value(*constant)));
    }
    if (!context->run->has_input(i)) return nullptr;
    Value value = context->run->input(i).kind == ValueKind::kTensor
                      ? Value(context->run->InputTensor(i))
                      : context->run->input_value(i);
    input = context->Keep(NewValue(std::move(value)));
    input->read_only = true;
    return input;
  });
}

npurt_status npurt_op_output(npurt_op_context* context, size_t index, npurt_dtype dtype,
                             const int64_t* dims, size_t rank, npurt_tensor* out_tensor,
                             npurt_error** error) {
  return Guard(error, [&]() -> absl::Status {
    NPURT_RETURN_IF_ERROR(WantAll("context", context));
    if (rank > 0) NPURT_RETURN_IF_ERROR(WantAll("dims", dims));
    NPURT_RETURN_IF_ERROR(WantOut(out_tensor, "out_tensor"));
    if (context->run == nullptr) return absl::FailedPreconditionError("only inside compute");
    const RunContext& run = *context->run;
    NPURT_RETURN_IF_ERROR(WantOperand(index, run.output_count(), "output"));
    const int i = static_cast<int>(index);
    const Slot& slot = run.output(i);
    if (!run.has_output(i) || slot.kind != ValueKind::kTensor || dtype == NPURT_STRING ||
        static_cast<npurt_dtype>(slot.dtype) != dtype)
      return absl::InvalidArgumentError(absl::StrCat(
          "output ", index, ": got a tensor of type ", dtype, ", want what infer said: ",
          std::string(DTypeName(slot.dtype)), " (strings go through npurt_op_set_output)"));
    const absl::Status allocated = run.AllocateOutput(i, {dims, rank});
    if (!allocated.ok())
      return absl::IsInternal(allocated) ? absl::InvalidArgumentError(allocated.message())
                                         : allocated;
    NPURT_RETURN_IF_ERROR(ElementCount({dims, rank}));
    npurt_value* view = context->Keep(
        NewValue(Value(Tensor::Borrow(slot.dtype, {dims, rank}, run.output(i).data, nullptr))));
    CopyOut(ViewOf(*view), out_tensor);
    return absl::OkStatus();
  });
}

npurt_status npurt_op_set_output(npurt_op_context* context, size_t index, npurt_value* value,
                                 npurt_error** error) {
  return Guard(error, [&]() -> absl::Status {
    NPURT_RETURN_IF_ERROR(WantAll("context", context, "value", value));
    if (context->run == nullptr) return absl::FailedPreconditionError("only inside compute");
    const RunContext& run = *context->run;
    NPURT_RETURN_IF_ERROR(WantOperand(index, run.output_count(), "output"));
    const int i = static_cast<int>(index);
    const Slot& slot = run.output(i);
    NPURT_ASSIGN_OR_RETURN(const Value plain, RowMajor(*value));
    if (slot.kind != plain.kind() || (plain.is_tensor() && plain.tensor().dtype() != slot.dtype))
      return absl::InvalidArgumentError(
          absl::StrCat("output ", index, ": got a ", value->type, ", not what infer said"));
    if (!plain.is_tensor()) {
      run.set_output_value(i, plain);
      return absl::OkStatus();
    }
    const Tensor& from = plain.tensor();
    NPURT_RETURN_IF_ERROR(run.AllocateOutput(i, from.dims()));
    npurt_value to;
    to.value = Value(Tensor::Borrow(slot.dtype, from.dims(), run.output(i).data, nullptr));
    return Scatter(from, &to);
  });
}

void npurt_op_fail(npurt_op_context* context, const char* message) {
  if (context == nullptr || message == nullptr) return;
  Quietly<int>(0, [&] {
    context->message = message;
    return 0;
  });
}

npurt_status npurt_op_defer(npurt_op_context* context, npurt_op_pending** out_pending,
                            npurt_error** error) {
  return Guard(error, [&]() -> absl::Status {
    NPURT_RETURN_IF_ERROR(WantAll("context", context, "out_pending", out_pending));
    if (context->run == nullptr) return absl::FailedPreconditionError("only inside compute");
    if (context->pending != nullptr) return absl::AlreadyExistsError("deferred before");
    auto pending = std::make_shared<Pending>();
    *out_pending = new npurt_op_pending{pending};
    context->pending = std::move(pending);
    return absl::OkStatus();
  });
}

void npurt_op_finish(npurt_op_pending* pending, npurt_status status, const char* message) {
  if (pending == nullptr) return;
  const std::shared_ptr<Pending> waited = std::move(pending->pending);
  delete pending;
  // Building the status may fail for lack of memory; the run must end all the same.
  const bool told = Quietly<bool>(false, [&] {
    waited->Finish(FromC(status, message == nullptr ? "the operator failed later" : message));
    return true;
  });
  if (!told) waited->Finish(absl::Status(absl::StatusCode::kResourceExhausted, ""));
}
