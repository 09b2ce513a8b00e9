// Attention for AVX-512.
#include "kernels/simd/avx512.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/attention/attention.h"

namespace npurt::kernels {
namespace {

using simd::avx512::F32;

}  // namespace

#include "kernels/attention/attention.inl"

NPURT_ATTENTION_SET(avx512)

}  // namespace npurt::kernels
