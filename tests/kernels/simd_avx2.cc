// SimdFunctions of simd/avx2.h.
#include "kernels/simd_functions.h"

// What the header includes comes first, so that only the code of this file is compiled for the set.
#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c")
#endif
#include "kernels/simd/avx2.h"

namespace npurt::kernels {
namespace {

using simd::avx2::F32;
using simd::avx2::I32;

#include "kernels/simd_functions.inl"

}  // namespace
}  // namespace npurt::kernels

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

namespace npurt::kernels {

extern const SimdFunctions kSimdAvx2 = {"avx2",        isa::kAvx2,     F32::kWidth, ApplyUnary,
                                        ApplyBinary,   ApplyReduce,    Less,        F16ToF32Lanes,
                                        F32ToF16Lanes, F32ToBf16Lanes, Integers};

}  // namespace npurt::kernels
