// Normalisations for AVX2.
#include "kernels/simd/avx2.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/norm/norm.h"

namespace npurt::kernels {
namespace {

using simd::avx2::F32;

}  // namespace

#include "kernels/norm/norm.inl"

NPURT_NORM_SET(avx2)

}  // namespace npurt::kernels
