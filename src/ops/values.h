// Between the memory of a step and Values: what sequence, optional and map operators do with their
// operands.
//
// Thread safety: free functions on what they are given.
#ifndef NPURT_OPS_VALUES_H_
#define NPURT_OPS_VALUES_H_

#include "ops/op_def.h"

namespace npurt::ops {

// Input `i` as a Value that may outlive the run: tensors are copied, other values shared.
absl::StatusOr<Value> CopyOfInput(const RunContext& run, int i);
// Writes `value` to output `i`: tensors are copied into the output's memory, allocated here if their
// size was not known. Numbers are converted if the output stores another type of number.
absl::Status StoreValue(const RunContext& run, int i, const Value& value);
// Writes the elements of `tensor` to `out` from element `to` on.
absl::Status StoreElements(const Slot& out, std::int64_t to, const Tensor& tensor);

}  // namespace npurt::ops

#endif  // NPURT_OPS_VALUES_H_
