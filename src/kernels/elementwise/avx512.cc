// Elementwise rows for AVX-512.
#include "kernels/simd/avx512.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/elementwise/row.h"

namespace npurt::kernels::rows_avx512 {

using simd::avx512::F32;
using simd::avx512::I32;
using simd::avx512::LoadU8;
using simd::avx512::Mask;

#include "kernels/elementwise/elementwise.inl"

}  // namespace npurt::kernels::rows_avx512
