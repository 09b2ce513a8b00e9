// Weights of few bits for AVX-512.
#include "kernels/simd/avx512.h"

#include <cstddef>
#include <cstdint>

#include "kernels/nbits/nbits.h"

namespace npurt::kernels {
namespace {

using simd::avx512::F32;
using simd::avx512::I32;

}  // namespace

#include "kernels/nbits/nbits.inl"

NPURT_NBITS_SET(avx512)

}  // namespace npurt::kernels
