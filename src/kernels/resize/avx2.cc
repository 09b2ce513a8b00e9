// Resize for AVX2.
#include "kernels/simd/avx2.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/resize/resize.h"

namespace npurt::kernels {
namespace {

using simd::avx2::F32;
using simd::avx2::Gather;
using simd::avx2::I32;

}  // namespace

#include "kernels/resize/resize.inl"

NPURT_RESIZE_SET(avx2)

}  // namespace npurt::kernels
