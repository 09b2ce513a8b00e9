// Attention for any CPU.
#include "kernels/simd/generic.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/attention/attention.h"

namespace npurt::kernels {
namespace {

using simd::generic::F32;

}  // namespace

#include "kernels/attention/attention.inl"

NPURT_ATTENTION_SET(generic)

}  // namespace npurt::kernels
