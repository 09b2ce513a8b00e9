// Elementwise rows for AVX2.
#include "kernels/simd/avx2.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/elementwise/row.h"

namespace npurt::kernels::rows_avx2 {

using simd::avx2::F32;
using simd::avx2::I32;
using simd::avx2::LoadU8;
using simd::avx2::Mask;

#include "kernels/elementwise/elementwise.inl"

}  // namespace npurt::kernels::rows_avx2
