// The float32 micro-kernel for AVX2 with FMA: 12 sums, 2 vectors of B and 1 of A fill the 16
// registers.
#include "kernels/simd/avx2.h"
#include "kernels/gemm/gemm.h"

namespace npurt::kernels {
namespace {

using simd::avx2::F32;

#include "kernels/gemm/micro_kernel.inl"

}  // namespace

void gemm_f32_6x16_avx2(const GemmArgs& args) { MultiplyUpTo<6, 6>(args); }

}  // namespace npurt::kernels
