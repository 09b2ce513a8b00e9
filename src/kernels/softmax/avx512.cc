// Softmax for AVX-512.
#include "kernels/simd/avx512.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/softmax/softmax.h"

namespace npurt::kernels {
namespace {

using simd::avx512::F32;

}  // namespace

#include "kernels/softmax/softmax.inl"

NPURT_SOFTMAX_SET(avx512)

}  // namespace npurt::kernels
