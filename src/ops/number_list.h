// NumberList: the numbers of a small operand (scales, zero points), whether it is a constant or only
// known in the run. A list of one number is the same everywhere.
//
// Lifetime: not beyond the operand. Thread safety: a value.
#ifndef NPURT_OPS_NUMBER_LIST_H_
#define NPURT_OPS_NUMBER_LIST_H_

#include <cstdint>

#include "ops/numbers.h"
#include "ops/op_def.h"

namespace npurt::ops {

struct NumberList {
  DType dtype = DType::kUndefined;
  const void* data = nullptr;
  std::int64_t count = 0;  // 0: absent

  double At(std::int64_t i) const { return LoadNumber(dtype, data, count == 1 ? 0 : i); }
  double Or(double absent, std::int64_t i = 0) const { return count == 0 ? absent : At(i); }
  std::int32_t ZeroPoint(std::int64_t i = 0) const { return static_cast<std::int32_t>(Or(0, i)); }
};

inline NumberList NumbersOf(const RunContext& run, int input) {
  if (!run.has_input(input)) return {};
  return {run.dtype(input), run.input(input).data, run.count(input)};
}

// Of a constant: null if `input` is absent or no constant.
inline NumberList NumbersOf(const PrepareContext& context, int input) {
  const Tensor* tensor = context.has_input(input) ? context.constant(input) : nullptr;
  if (tensor == nullptr) return {};
  return {tensor->dtype(), tensor->data(), tensor->element_count()};
}

// True if input `i` is absent or has a number of elements that is known to be 1 or `each`.
inline bool IsOneOrEach(const PrepareContext& context, int i, std::int64_t each) {
  if (!context.has_input(i)) return true;
  const ValueType& type = context.type(i);
  if (!type.has_rank || !AllConstant(type.dims)) return false;
  std::int64_t count = 1;
  for (const Dim& dim : type.dims) count *= dim.value();
  return count == 1 || count == each;
}

}  // namespace npurt::ops

#endif  // NPURT_OPS_NUMBER_LIST_H_
