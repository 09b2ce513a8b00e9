// The typed rows of the elementwise engine, behind SelectRow and SelectCastRow.
#ifndef NPURT_KERNELS_ELEMENTWISE_TYPED_H_
#define NPURT_KERNELS_ELEMENTWISE_TYPED_H_

#include "kernels/elementwise/elementwise.h"

namespace npurt::kernels {

// Null if the operation has no row for `type`.
RowFn TypedFloatRow(ElementwiseOp op, DType type);
RowFn TypedIntegerRow(ElementwiseOp op, DType type);  // bool too
RowFn TypedCastRow(DType from, DType to);

}  // namespace npurt::kernels

#endif  // NPURT_KERNELS_ELEMENTWISE_TYPED_H_
