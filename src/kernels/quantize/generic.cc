// The quantising kernels for any CPU.
#include "kernels/simd/generic.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/quantize/quantize.h"

namespace npurt::kernels {
namespace {

using simd::generic::F32;
using simd::generic::I32;

template <typename T>
inline I32 LoadNarrow(const T* p) {
  std::int32_t lanes[I32::kWidth];
  for (int i = 0; i < I32::kWidth; ++i) {
    T x;
    std::memcpy(&x, p + i, sizeof x);
    lanes[i] = x;
  }
  return I32::load(lanes);
}
template <typename T>
inline void StoreNarrow(I32 x, T* p) {
  for (int i = 0; i < I32::kWidth; ++i) {
    const T y = static_cast<T>(x.v[i]);
    std::memcpy(p + i, &y, sizeof y);
  }
}

#include "kernels/quantize/quantize.inl"

}  // namespace

NPURT_QUANTIZE_SET(generic)

}  // namespace npurt::kernels
