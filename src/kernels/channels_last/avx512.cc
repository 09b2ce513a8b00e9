// The channels-last depthwise kernel and Winograd transforms for AVX-512.
#include "kernels/simd/avx512.h"
#include "kernels/channels_last/depthwise.h"
#include "kernels/channels_last/winograd.h"

namespace npurt::kernels {
namespace {

using simd::avx512::F32;

#include "kernels/channels_last/depthwise.inl"
#include "kernels/channels_last/winograd.inl"

}  // namespace

void depthwise_last_f32_avx512(const DepthwiseLastArgs& args) { DepthwiseLastLine(args); }
void winograd_last_f32_avx512_input(const WinogradLastInputArgs& args) { WinogradLastInput(args); }
void winograd_last_f32_avx512_output(const WinogradLastOutputArgs& args) { WinogradLastOutput(args); }

}  // namespace npurt::kernels
