// The float32 depthwise kernel for AVX2 with FMA.
#include "kernels/simd/avx2.h"
#include "kernels/depthwise/depthwise.h"

namespace npurt::kernels {
namespace {

using simd::avx2::F32;

#include "kernels/depthwise/row_kernel.inl"

}  // namespace

void depthwise_f32_avx2(const DepthwiseArgs& args) { DepthwiseRows(args); }

}  // namespace npurt::kernels
