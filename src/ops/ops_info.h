// Operator information: the element types of each operator and whether mixed precision may lower
// it, in the form of the JSON files that NPU users know.
//
// Thread safety: pure functions.
#ifndef NPURT_OPS_OPS_INFO_H_
#define NPURT_OPS_OPS_INFO_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace npurt::ops {

enum class PrecisionReduce : std::uint8_t { kGray, kWhite, kBlack };
// kGray too for names that are no operators.
PrecisionReduce PrecisionReduceOf(absl::string_view op);

// {"Add": {"engine": "AiCore", "precision_reduce": {"flag": "true"}, "input0": {"name": "A",
// "paramType": "required", "type": "T", "dtype": "float32,..."}, "output0": ...}}. Operands with
// the same `type` have the same element type in a node. Grey operators have no precision_reduce.
std::string OpsInfoJson();

}  // namespace npurt::ops

#endif  // NPURT_OPS_OPS_INFO_H_
