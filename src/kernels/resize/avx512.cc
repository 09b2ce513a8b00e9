// Resize for AVX-512.
#include "kernels/simd/avx512.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/resize/resize.h"

namespace npurt::kernels {
namespace {

using simd::avx512::F32;
using simd::avx512::Gather;
using simd::avx512::I32;

}  // namespace

#include "kernels/resize/resize.inl"

NPURT_RESIZE_SET(avx512)

}  // namespace npurt::kernels
