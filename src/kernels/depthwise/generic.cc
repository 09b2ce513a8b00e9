// The float32 depthwise kernel for any CPU.
#include "kernels/simd/generic.h"
#include "kernels/depthwise/depthwise.h"

namespace npurt::kernels {
namespace {

using simd::generic::F32;

#include "kernels/depthwise/row_kernel.inl"

}  // namespace

void depthwise_f32_generic(const DepthwiseArgs& args) { DepthwiseRows(args); }

}  // namespace npurt::kernels
