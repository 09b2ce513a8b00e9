// The float32 depthwise kernel for AVX-512.
#include "kernels/simd/avx512.h"
#include "kernels/depthwise/depthwise.h"

namespace npurt::kernels {
namespace {

using simd::avx512::F32;

#include "kernels/depthwise/row_kernel.inl"

}  // namespace

void depthwise_f32_avx512(const DepthwiseArgs& args) { DepthwiseRows(args); }

}  // namespace npurt::kernels
