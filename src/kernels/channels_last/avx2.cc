// The channels-last depthwise kernel and Winograd transforms for AVX2 and FMA.
#include "kernels/simd/avx2.h"
#include "kernels/channels_last/depthwise.h"
#include "kernels/channels_last/winograd.h"

namespace npurt::kernels {
namespace {

using simd::avx2::F32;

#include "kernels/channels_last/depthwise.inl"
#include "kernels/channels_last/winograd.inl"

}  // namespace

void depthwise_last_f32_avx2(const DepthwiseLastArgs& args) { DepthwiseLastLine(args); }
void winograd_last_f32_avx2_input(const WinogradLastInputArgs& args) { WinogradLastInput(args); }
void winograd_last_f32_avx2_output(const WinogradLastOutputArgs& args) { WinogradLastOutput(args); }

}  // namespace npurt::kernels
