// Optional, OptionalHasElement, OptionalGetElement: values that may be absent.
#include "ops/values.h"

namespace npurt::ops::optionals {
namespace {

absl::Status InferOptional(InferContext& context) {
  if (context.has_input(0)) {
    context.set_output_type(0, ValueType::OptionalOf(context.type(0)));
    return absl::OkStatus();
  }
  const AttributeValue* attribute = context.attributes().Find("type");
  const auto* type = attribute == nullptr
                         ? nullptr
                         : std::get_if<std::shared_ptr<const ValueType>>(attribute);
  if (type == nullptr || *type == nullptr)
    return absl::InvalidArgumentError("an optional without input needs the attribute 'type'");
  context.set_output_type(0, ValueType::OptionalOf(**type));
  return absl::OkStatus();
}

absl::Status ReferenceOptional(const RunContext& run, std::int64_t, void*) {
  if (!run.has_input(0)) {
    run.set_output_value(0, Value::Empty());
    return absl::OkStatus();
  }
  NPURT_ASSIGN_OR_RETURN(Value item, CopyOfInput(run, 0));
  run.set_output_value(0, Value::Some(std::move(item)));
  return absl::OkStatus();
}

absl::Status InferHasElement(InferContext& context) {
  context.set_output(0, DType::kBool, {});
  return absl::OkStatus();
}

absl::Status ReferenceHasElement(const RunContext& run, std::int64_t, void*) {
  bool has = run.has_input(0);
  if (has && run.input(0).kind == ValueKind::kOptional) has = !run.input_value(0).items().empty();
  run.Store<bool>(0, 0, has);
  return absl::OkStatus();
}

absl::Status InferGetElement(InferContext& context) {
  const ValueType& type = context.type(0);
  if (type.kind != ValueKind::kOptional) {
    context.set_output_type(0, type);
  } else if (type.element == nullptr) {
    context.set_output_unknown(0, DType::kUndefined);
  } else if (type.element->kind == ValueKind::kTensor) {
    // The tensor inside may have another shape than the one the optional was declared with.
    context.set_output_unknown(0, type.element->dtype);
  } else {
    context.set_output_type(0, *type.element);
  }
  return absl::OkStatus();
}

absl::Status ReferenceGetElement(const RunContext& run, std::int64_t, void*) {
  if (run.input(0).kind == ValueKind::kTensor)
    return StoreValue(run, 0, Value(run.InputTensor(0)));
  if (run.input(0).kind != ValueKind::kOptional) {
    run.set_output_value(0, run.input_value(0));
    return absl::OkStatus();
  }
  const ValueList& items = run.input_value(0).items();
  if (items.empty()) return absl::InvalidArgumentError("the optional is empty");
  return StoreValue(run, 0, items[0]);
}

}  // namespace

extern constexpr OpDef kOps[] = {
    {
        .name = "Optional",
        .inputs = {{"?input", "any"}},
        .outputs = {{"output", "optional"}},
        .attributes = {{"type", AttrKind::kType}},
        .engine = Engine::kAiCpu,
        .any_rank = true,
        .infer = InferOptional,
        .reference = ReferenceOptional,
    },
    {
        .name = "OptionalHasElement",
        .inputs = {{"?input", "any"}},
        .outputs = {{"output", "bool"}},
        .engine = Engine::kAiCpu,
        .any_rank = true,
        .infer = InferHasElement,
        .reference = ReferenceHasElement,
    },
    {
        .name = "OptionalGetElement",
        .inputs = {{"input", "any"}},
        .outputs = {{"output", "any"}},
        .engine = Engine::kAiCpu,
        .any_rank = true,
        .infer = InferGetElement,
        .reference = ReferenceGetElement,
    },
};
extern constexpr int kOpCount = static_cast<int>(sizeof kOps / sizeof kOps[0]);

}  // namespace npurt::ops::optionals
