// Resize for any CPU.
#include "kernels/simd/generic.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/resize/resize.h"

namespace npurt::kernels {
namespace {

using simd::generic::F32;
using simd::generic::Gather;
using simd::generic::I32;

}  // namespace

#include "kernels/resize/resize.inl"

NPURT_RESIZE_SET(generic)

}  // namespace npurt::kernels
