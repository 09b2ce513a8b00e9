// Weights of few bits for AVX2.
#include "kernels/simd/avx2.h"

#include <cstddef>
#include <cstdint>

#include "kernels/nbits/nbits.h"

namespace npurt::kernels {
namespace {

using simd::avx2::F32;
using simd::avx2::I32;

}  // namespace

#include "kernels/nbits/nbits.inl"

NPURT_NBITS_SET(avx2)

}  // namespace npurt::kernels
