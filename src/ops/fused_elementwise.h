// How a chain of elementwise operations is written in the attributes of a FusedElementwise node:
// `code` (op, type, to and three registers per instruction), `params` (two floats per instruction) and
// `input_types`. The last instruction makes the output.
//
// Thread safety: pure functions.
#ifndef NPURT_OPS_FUSED_ELEMENTWISE_H_
#define NPURT_OPS_FUSED_ELEMENTWISE_H_

#include "base/attributes.h"
#include "base/status.h"
#include "kernels/elementwise/elementwise.h"

namespace npurt::ops {

void EncodeChain(const kernels::ElementwiseProgram& program, Attributes* attributes);

// INVALID_ARGUMENT if the attributes are no chain; registers are checked by kernels::PrepareChain.
absl::StatusOr<kernels::ElementwiseProgram> DecodeChain(const Attributes& attributes);

}  // namespace npurt::ops

#endif  // NPURT_OPS_FUSED_ELEMENTWISE_H_
