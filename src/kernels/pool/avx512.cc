// Pooling for AVX-512.
#include "kernels/simd/avx512.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/pool/pool.h"

namespace npurt::kernels {
namespace {

using simd::avx512::EvenOf;
using simd::avx512::F32;

}  // namespace

#include "kernels/pool/pool.inl"

NPURT_POOL_SET(avx512)

}  // namespace npurt::kernels
