// Reductions for AVX-512.
#include "kernels/simd/avx512.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/reduce/reduce.h"

namespace npurt::kernels {
namespace {

using simd::avx512::F32;

}  // namespace

#include "kernels/reduce/reduce.inl"

NPURT_REDUCE_SET(avx512)

}  // namespace npurt::kernels
