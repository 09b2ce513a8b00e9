// Pooling for AVX2.
#include "kernels/simd/avx2.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/pool/pool.h"

namespace npurt::kernels {
namespace {

using simd::avx2::EvenOf;
using simd::avx2::F32;

}  // namespace

#include "kernels/pool/pool.inl"

NPURT_POOL_SET(avx2)

}  // namespace npurt::kernels
