// Reductions for AVX2.
#include "kernels/simd/avx2.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/reduce/reduce.h"

namespace npurt::kernels {
namespace {

using simd::avx2::F32;

}  // namespace

#include "kernels/reduce/reduce.inl"

NPURT_REDUCE_SET(avx2)

}  // namespace npurt::kernels
