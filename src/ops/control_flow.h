// What operators with subgraphs share. Inputs of such a node end with the values that its subgraphs
// capture; the attribute `captures` says how many, and every subgraph has that many captures.
//
// Thread safety: free functions on what they are given.
#ifndef NPURT_OPS_CONTROL_FLOW_H_
#define NPURT_OPS_CONTROL_FLOW_H_

#include "ops/op_def.h"

namespace npurt::ops {

// Inputs without the captures.
int OwnInputs(const InferContext& context);
int OwnInputs(const RunContext& run);

// The subgraph in attribute `name`: an error if its counts are not these (-1: any) or its captures
// have other types than the last inputs of the node.
absl::StatusOr<const Subgraph*> CheckedSubgraph(const InferContext& context, const char* name,
                                                int inputs, int outputs);

// True if a value of one type may be one of the other, shapes aside.
bool SameKind(const ValueType& a, const ValueType& b);

// SameKind, or an optional sequence is wanted and a sequence given.
bool Takes(const ValueType& wanted, const ValueType& given);

// What is known of a value that is of type `a` or of type `b`. REQUIRES: SameKind(a, b).
// Dimensions that are not the same number are RunDim's.
ValueType EitherType(InferContext& context, const ValueType& a, const ValueType& b);
// Numbers stay, other dimensions (which may be the subgraph's own) are RunDim's.
ValueType WithNumbersOnly(InferContext& context, const ValueType& type);

// Hands the captured values of the node to the frame, whose own inputs are `inputs`.
absl::Status SetCaptures(const RunContext& run, Frame& frame, int inputs);

// `slot` as output `i`: copied if it is a tensor.
absl::Status CopyToOutput(const RunContext& run, int i, const Slot& slot);

// A tensor as a slot that must not outlive it.
Slot SlotOf(const Tensor& tensor);

// Slices of whole elements, as if each tensor had the shape [outer, length, inner].
struct SliceLayout {
  std::int64_t outer = 1, length = 1, inner = 1;
};
// REQUIRES: 0 <= axis < dims.size().
SliceLayout LayoutAround(absl::Span<const std::int64_t> dims, int axis);
// Copies slice `index` of `whole` to `part` (of shape [outer, inner]) and back.
void ReadSlice(DType dtype, const SliceLayout& layout, const void* whole, std::int64_t index,
               void* part);
void WriteSlice(DType dtype, const SliceLayout& layout, void* whole, std::int64_t index,
                const void* part);

}  // namespace npurt::ops

#endif  // NPURT_OPS_CONTROL_FLOW_H_
