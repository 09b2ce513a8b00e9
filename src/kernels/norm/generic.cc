// Normalisations for any CPU.
#include "kernels/simd/generic.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/norm/norm.h"

namespace npurt::kernels {
namespace {

using simd::generic::F32;

}  // namespace

#include "kernels/norm/norm.inl"

NPURT_NORM_SET(generic)

}  // namespace npurt::kernels
