// Weights of few bits for any CPU.
#include "kernels/simd/generic.h"

#include <cstddef>
#include <cstdint>

#include "kernels/nbits/nbits.h"

namespace npurt::kernels {
namespace {

using simd::generic::F32;
using simd::generic::I32;

}  // namespace

#include "kernels/nbits/nbits.inl"

NPURT_NBITS_SET(generic)

}  // namespace npurt::kernels
