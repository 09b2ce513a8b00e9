// The channels-last depthwise kernel and Winograd transforms for any CPU.
#include "kernels/simd/generic.h"
#include "kernels/channels_last/depthwise.h"
#include "kernels/channels_last/winograd.h"

namespace npurt::kernels {
namespace {

using simd::generic::F32;

#include "kernels/channels_last/depthwise.inl"
#include "kernels/channels_last/winograd.inl"

}  // namespace

void depthwise_last_f32_generic(const DepthwiseLastArgs& args) { DepthwiseLastLine(args); }
void winograd_last_f32_generic_input(const WinogradLastInputArgs& args) { WinogradLastInput(args); }
void winograd_last_f32_generic_output(const WinogradLastOutputArgs& args) { WinogradLastOutput(args); }

}  // namespace npurt::kernels
