// Softmax for any CPU.
#include "kernels/simd/generic.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/softmax/softmax.h"

namespace npurt::kernels {
namespace {

using simd::generic::F32;

}  // namespace

#include "kernels/softmax/softmax.inl"

NPURT_SOFTMAX_SET(generic)

}  // namespace npurt::kernels
