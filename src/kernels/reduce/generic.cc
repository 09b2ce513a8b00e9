// Reductions for any CPU.
#include "kernels/simd/generic.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/reduce/reduce.h"

namespace npurt::kernels {
namespace {

using simd::generic::F32;

}  // namespace

#include "kernels/reduce/reduce.inl"

NPURT_REDUCE_SET(generic)

}  // namespace npurt::kernels
