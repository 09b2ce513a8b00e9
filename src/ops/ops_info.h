// Operator information: the element types of each operator and whether mixed precision may lower
// it, in the form of the JSON files that NPU users know.
//
// Thread safety: pure functions.
#ifndef NPURT_OPS_OPS_INFO_H_
#define NPURT_OPS_OPS_INFO_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/dtype.h"
#include "ops/op_def.h"

namespace npurt::ops {

// The types that precision modes exchange for each other.
inline constexpr DTypeSet kExchangeable = DTypes(DType::kF32, DType::kF16, DType::kBF16);

// The type variable of operand `i` of a node, given a schema's inputs or outputs; null if its type is
// fixed.
const TypeVar* VariableOf(const OpDef& op, absl::Span<const Param> params, std::size_t i);

enum class PrecisionReduce : std::uint8_t { kGray, kWhite, kBlack };
// kGray too for names that are no operators.
PrecisionReduce PrecisionReduceOf(absl::string_view op);
// The documents' matrix (cube) operators; all others are vector operators. They are what is white
// without anybody's list.
inline bool IsMatrix(absl::string_view op) {
  return PrecisionReduceOf(op) == PrecisionReduce::kWhite;
}

// How many leading inputs of an operator may have 16 bits while all else is float32.
std::size_t NarrowInputs(absl::string_view op);

// {"Add": {"engine": "AiCore", "input0": {"name": "A", "paramType": "required", "type": "T", "dtype":
// "float32,..."}, "output0": ...}}: the n-th types of all operands are one combination; "any" where an
// operand is no tensor. Gray operators have no precision_reduce. Operands of AI CPU operators are
// members of "AiCpu". Option ops_info reads such a file.
std::string OpsInfoJson();

}  // namespace npurt::ops

#endif  // NPURT_OPS_OPS_INFO_H_
