// Pooling for any CPU.
#include "kernels/simd/generic.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/pool/pool.h"

namespace npurt::kernels {
namespace {

using simd::generic::EvenOf;
using simd::generic::F32;

}  // namespace

#include "kernels/pool/pool.inl"

NPURT_POOL_SET(generic)

}  // namespace npurt::kernels
