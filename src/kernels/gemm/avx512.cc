// The float32 micro-kernel for AVX-512: 24 sums, 2 vectors of B and 1 of A of the 32 registers.
#include "kernels/simd/avx512.h"
#include "kernels/gemm/gemm.h"

namespace npurt::kernels {
namespace {

using simd::avx512::F32;

#include "kernels/gemm/micro_kernel.inl"

}  // namespace

void gemm_f32_12x32_avx512(const GemmArgs& args) { MultiplyUpTo<12, 12>(args); }

}  // namespace npurt::kernels
