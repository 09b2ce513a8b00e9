// The transforms of Winograd's convolution for AVX-512.
#include "kernels/simd/avx512.h"
#include "kernels/winograd/winograd.h"

namespace npurt::kernels {
namespace {

using namespace simd::avx512;

#include "kernels/winograd/transform.inl"

}  // namespace

void winograd_f32_avx512_input(const WinogradInputArgs& args) { TransformInput(args); }
void winograd_f32_avx512_output(const WinogradOutputArgs& args) { TransformOutput(args); }

}  // namespace npurt::kernels
