// The float types of 8 and 4 bits: their values and the rounding to them.
//
// All of their values are floats. Rounding is to nearest, ties to even, but for E8M0, a power of two
// whose rounding is chosen. The types that have no infinity saturate or turn into NaN.
//
// Thread safety: pure functions.
#ifndef NPURT_KERNELS_ELEMENTWISE_NARROW_H_
#define NPURT_KERNELS_ELEMENTWISE_NARROW_H_

#include <cstdint>

#include "base/dtype.h"

namespace npurt::kernels {

inline constexpr DTypeSet kNarrowFloats =
    DTypes(DType::kF8E4M3FN, DType::kF8E4M3FNUZ, DType::kF8E5M2, DType::kF8E5M2FNUZ,
           DType::kF4E2M1, DType::kF8E8M0);
inline constexpr DTypeSet kNarrowIntegers =
    DTypes(DType::kU4, DType::kI4, DType::kU2, DType::kI2);

enum class PowerRounding : std::uint8_t { kUp, kDown, kNearest };  // of E8M0

// The value of `bits` (the low ones count) of a narrow float type.
float NarrowToFloat(DType type, unsigned bits);
// The bits of the value of `type` that is nearest to `value`. What is too large becomes the
// largest value with `saturate`, else infinity or NaN. float4 always saturates; its NaN is -0.
unsigned FloatToNarrow(DType type, float value, bool saturate,
                       PowerRounding rounding = PowerRounding::kUp);

// Element `index` of packed 2- or 4-bit elements, low bits first; bytes of the 8-bit types.
unsigned LoadBits(DType type, const void* data, std::int64_t index);
void StoreBits(DType type, void* data, std::int64_t index, unsigned bits);
// The value of the bits of an integer of 2 or 4 bits.
int NarrowToInteger(DType type, unsigned bits);

}  // namespace npurt::kernels

#endif  // NPURT_KERNELS_ELEMENTWISE_NARROW_H_
