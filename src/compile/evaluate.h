// Evaluate: computes one operator on constant tensors, outside any program: what folding does.
//
// Thread safety: a pure function.
#ifndef NPURT_COMPILE_EVALUATE_H_
#define NPURT_COMPILE_EVALUATE_H_

#include <vector>

#include "absl/types/span.h"
#include "base/attributes.h"
#include "base/status.h"
#include "base/tensor.h"
#include "ops/op_def.h"

namespace npurt::compile {

// The outputs of `op` for `inputs` (undefined tensors are absent inputs), by its reference loops.
// `wanted[i]` says whether output i is needed; the others come back undefined. Errors: what infer and
// the reference say; UNIMPLEMENTED if an output is no tensor.
absl::StatusOr<std::vector<Tensor>> Evaluate(const ops::OpDef& op, const Attributes& attributes,
                                             absl::Span<const Tensor> inputs,
                                             absl::Span<const bool> wanted);

}  // namespace npurt::compile

#endif  // NPURT_COMPILE_EVALUATE_H_
