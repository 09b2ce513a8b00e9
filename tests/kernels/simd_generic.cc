// SimdFunctions of simd/generic.h.
#include "kernels/simd_functions.h"

#include "kernels/simd/generic.h"

namespace npurt::kernels {
namespace {

using simd::generic::F32;
using simd::generic::I32;

#include "kernels/simd_functions.inl"

}  // namespace

extern const SimdFunctions kSimdGeneric = {
    "generic", isa::kGeneric, F32::kWidth,   ApplyUnary,     ApplyBinary, ApplyReduce,
    Less,      F16ToF32Lanes, F32ToF16Lanes, F32ToBf16Lanes, Integers};

}  // namespace npurt::kernels
