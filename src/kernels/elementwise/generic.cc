// Elementwise rows for any CPU: vectors of four that the compiler lowers.
#include "kernels/simd/generic.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/elementwise/row.h"

namespace npurt::kernels::rows_generic {

using simd::generic::F32;
using simd::generic::I32;
using simd::generic::LoadU8;
using simd::generic::Mask;

#include "kernels/elementwise/elementwise.inl"

}  // namespace npurt::kernels::rows_generic
