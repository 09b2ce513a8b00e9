// Typed rows for float32 and float64.
#include <cmath>
#include <cstring>
#include <type_traits>

#include "kernels/elementwise/scalar.h"
#include "kernels/elementwise/typed.h"
#include "kernels/elementwise/typed.inl"

namespace npurt::kernels {
namespace {

// x^y for the exponents that models use: they are a product or a root, and libm's pow is slow.
// Elsewhere pow itself, so that every path rounds correctly or nearly so.
template <typename T>
void PowRow(const RowArgs& a) {
  if ((a.scalars & 3) == 2 && a.count > 0) {
    const T y = LoadAt<T>(a.in[1], 0);
    if (y == T(2)) {
      for (std::size_t i = 0; i < a.count; ++i) {
        const T x = LoadAt<T>(a.in[0], i);
        StoreAt<T>(a.out, i, x * x);
      }
      return;
    }
    if (y == T(1)) {
      for (std::size_t i = 0; i < a.count; ++i) StoreAt<T>(a.out, i, LoadAt<T>(a.in[0], i));
      return;
    }
  }
  Rows<PowScalar, T>::Run2(a);
}

}  // namespace

RowFn TypedFloatRow(ElementwiseOp op, DType type) {
  if (op == ElementwiseOp::kPow) {
    if (type == DType::kF32) return &PowRow<float>;
    if (type == DType::kF64) return &PowRow<double>;
  }
  if (type == DType::kF32) return RowOf<float>(op);
  if (type == DType::kF64) return RowOf<double>(op);
  return nullptr;
}

}  // namespace npurt::kernels
