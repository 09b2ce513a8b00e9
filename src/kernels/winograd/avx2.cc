// The transforms of Winograd's convolution for AVX2.
#include "kernels/simd/avx2.h"
#include "kernels/winograd/winograd.h"

namespace npurt::kernels {
namespace {

using namespace simd::avx2;

#include "kernels/winograd/transform.inl"

}  // namespace

void winograd_f32_avx2_input(const WinogradInputArgs& args) { TransformInput(args); }
void winograd_f32_avx2_output(const WinogradOutputArgs& args) { TransformOutput(args); }

}  // namespace npurt::kernels
