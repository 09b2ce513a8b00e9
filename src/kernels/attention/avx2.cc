// Attention for AVX2.
#include "kernels/simd/avx2.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/attention/attention.h"

namespace npurt::kernels {
namespace {

using simd::avx2::F32;

}  // namespace

#include "kernels/attention/attention.inl"

NPURT_ATTENTION_SET(avx2)

}  // namespace npurt::kernels
