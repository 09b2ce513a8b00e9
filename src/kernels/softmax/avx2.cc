// Softmax for AVX2.
#include "kernels/simd/avx2.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/softmax/softmax.h"

namespace npurt::kernels {
namespace {

using simd::avx2::F32;

}  // namespace

#include "kernels/softmax/softmax.inl"

NPURT_SOFTMAX_SET(avx2)

}  // namespace npurt::kernels
