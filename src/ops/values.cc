#include "ops/values.h"

#include "absl/strings/str_cat.h"
#include "ops/move.h"
#include "ops/numbers.h"

namespace npurt::ops {

absl::StatusOr<Value> CopyOfInput(const RunContext& run, int i) {
  const Slot& slot = run.input(i);
  if (slot.kind != ValueKind::kTensor) return run.input_value(i);
  NPURT_ASSIGN_OR_RETURN(Tensor copy, Tensor::Create(slot.dtype, run.dims(i)));
  CopyElements(slot.dtype, copy.mutable_data(), 0, slot.data, 0, slot.count);
  return Value(std::move(copy));
}

absl::Status StoreElements(const Slot& out, std::int64_t to, const Tensor& tensor) {
  if (tensor.dtype() == out.dtype) {
    CopyElements(out.dtype, out.data, to, tensor.data(), 0, tensor.element_count());
    return absl::OkStatus();
  }
  constexpr DTypeSet kConvertible = kPlainTypes | kNarrowFloats | kNarrowIntegers;
  if (!Contains(kConvertible, tensor.dtype()) || !Contains(kConvertible, out.dtype))
    return absl::InvalidArgumentError(absl::StrCat("a tensor of ", DTypeName(tensor.dtype()),
                                                   ", want ", DTypeName(out.dtype)));
  for (std::int64_t k = 0; k < tensor.element_count(); ++k)
    StoreNumber(out.dtype, out.data, to + k, LoadNumber(tensor.dtype(), tensor.data(), k));
  return absl::OkStatus();
}

absl::Status StoreValue(const RunContext& run, int i, const Value& value) {
  if (!value.is_tensor()) {
    run.set_output_value(i, value);
    return absl::OkStatus();
  }
  const Tensor& tensor = value.tensor();
  if (run.output(i).data == nullptr) NPURT_RETURN_IF_ERROR(run.AllocateOutput(i, tensor.dims()));
  if (run.output_dims(i) != absl::MakeConstSpan(tensor.dims()))
    return absl::InvalidArgumentError(
        absl::StrCat("a tensor of shape ", ShapeString(absl::MakeConstSpan(tensor.dims())),
                     ", want ", ShapeString(run.output_dims(i))));
  return StoreElements(run.output(i), 0, tensor);
}

}  // namespace npurt::ops
