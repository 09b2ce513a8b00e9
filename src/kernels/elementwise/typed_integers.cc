// Typed rows for the integers and bool.
#include <cmath>
#include <cstring>
#include <type_traits>

#include "kernels/elementwise/scalar.h"
#include "kernels/elementwise/typed.h"
#include "kernels/elementwise/typed.inl"

namespace npurt::kernels {

RowFn TypedIntegerRow(ElementwiseOp op, DType type) {
  RowFn row = nullptr;
  DispatchDType<kIntegers | kBools>(type, [&](auto zero) { row = RowOf<decltype(zero)>(op); });
  return row;
}

}  // namespace npurt::kernels
