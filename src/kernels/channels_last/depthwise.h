// Channels-last depthwise convolution: float32, 1-D and 2-D, one input and one output channel per
// group.
//
// The idea: channels are the lanes of the vectors, so that every tap is a load of pixels times a
// load of weights, whatever stride and dilation are. Pixels whose window is inside the image share
// one list of taps; those at the edge have each their own, shorter one: nothing is padded.
//
// Image and output are [batch, height, width, channels], dense; weights are packed as [taps,
// channels]. Thread safety: pure functions on what they are given; tiles are independent.
#ifndef NPURT_KERNELS_CHANNELS_LAST_DEPTHWISE_H_
#define NPURT_KERNELS_CHANNELS_LAST_DEPTHWISE_H_

#include <cstddef>
#include <cstdint>

#include "kernels/activation.h"

namespace npurt::kernels {

struct ConvProblem;

// `pixels` outputs side by side, all channels.
struct DepthwiseLastArgs {
  const float* in;
  std::int64_t in_step;                // floats between what two outputs see
  const std::int64_t* in_offsets;      // per tap, in floats
  const std::int64_t* weight_offsets;  // per tap, in floats
  std::int64_t taps;
  const float* weights;
  std::int64_t channels;
  float* out;
  std::int64_t pixels;
  const Epilogue* epilogue;  // column_bias, residual (as `out`), activation; the rest is not read
};

using DepthwiseLastFn = void (*)(const DepthwiseLastArgs& args);

struct DepthwiseLastKernel {
  const char* name;
  DepthwiseLastFn run;
  std::uint32_t needs;  // an IsaSet
};

#define NPURT_DEPTHWISE_LAST(isa_set, name) void name(const DepthwiseLastArgs& args);
#include "kernels/channels_last/depthwise.inc"
#undef NPURT_DEPTHWISE_LAST

extern const DepthwiseLastKernel kDepthwiseLastKernels[];
extern const int kDepthwiseLastKernelCount;

// The best kernel that `allowed` (an IsaSet) admits; never null.
const DepthwiseLastKernel* SelectDepthwiseLastKernel(std::uint32_t allowed);

// Most taps of a window.
inline constexpr std::int64_t kMostDepthwiseLastTaps = 256;

struct DepthwiseLastTiling {
  const DepthwiseLastKernel* kernel = nullptr;
  std::int64_t tiles = 0;
  double flops_per_tile = 0;
  std::int64_t tile_lines = 0, bands = 0;  // output lines of a tile; tiles of an image
};

// tiles is -1 if this formulation does not suit: several channels in a group, three dimensions, too
// many taps, sizes that overflow.
DepthwiseLastTiling PlanDepthwiseLast(const ConvProblem& problem,
                                      const DepthwiseLastKernel& kernel);

// [groups, 1, taps] to [taps, groups].
void PackDepthwiseLast(std::int64_t channels, std::int64_t taps, const float* weights,
                       float* packed);

struct DepthwiseLastCall {
  const ConvProblem* problem;
  const DepthwiseLastTiling* tiling;
  const float* image;
  const float* weights;  // packed
  float* out;
  Epilogue epilogue;  // column_bias: per channel; residual: of the output's shape; activation
};

// Computes tile `tile` of 0 … tiles-1.
void RunDepthwiseLastTile(const DepthwiseLastCall& call, std::int64_t tile);

}  // namespace npurt::kernels

#endif  // NPURT_KERNELS_CHANNELS_LAST_DEPTHWISE_H_
