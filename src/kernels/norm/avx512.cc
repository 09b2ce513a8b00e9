// Normalisations for AVX-512.
#include "kernels/simd/avx512.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/norm/norm.h"

namespace npurt::kernels {
namespace {

using simd::avx512::F32;

}  // namespace

#include "kernels/norm/norm.inl"

NPURT_NORM_SET(avx512)

}  // namespace npurt::kernels
