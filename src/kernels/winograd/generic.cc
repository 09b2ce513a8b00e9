// The transforms of Winograd's convolution for any CPU.
#include "kernels/simd/generic.h"
#include "kernels/winograd/winograd.h"

namespace npurt::kernels {
namespace {

using namespace simd::generic;

#include "kernels/winograd/transform.inl"

}  // namespace

void winograd_f32_generic_input(const WinogradInputArgs& args) { TransformInput(args); }
void winograd_f32_generic_output(const WinogradOutputArgs& args) { TransformOutput(args); }

}  // namespace npurt::kernels
