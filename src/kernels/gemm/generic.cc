// The float32 micro-kernel for any CPU, four lanes wide.
#include "kernels/simd/generic.h"
#include "kernels/gemm/gemm.h"

namespace npurt::kernels {
namespace {

using simd::generic::F32;

#include "kernels/gemm/micro_kernel.inl"

}  // namespace

void gemm_f32_4x8_generic(const GemmArgs& args) { MultiplyUpTo<4, 4>(args); }

}  // namespace npurt::kernels
