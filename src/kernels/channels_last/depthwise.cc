// Channels-last depthwise: the table of kernels, the plan and the tile driver. See depthwise.h.
#include "kernels/channels_last/depthwise.h"

#include <algorithm>
#include <cstring>

#include "base/checked_math.h"
#include "base/cpu_isa.h"
#include "kernels/channels_last/window.h"
#include "kernels/conv/conv.h"

namespace npurt::kernels {

const DepthwiseLastKernel kDepthwiseLastKernels[] = {
#define NPURT_DEPTHWISE_LAST(isa_set, name) {#name, name, isa_set},
#include "kernels/channels_last/depthwise.inc"
#undef NPURT_DEPTHWISE_LAST
};
const int kDepthwiseLastKernelCount =
    static_cast<int>(sizeof kDepthwiseLastKernels / sizeof kDepthwiseLastKernels[0]);

const DepthwiseLastKernel* SelectDepthwiseLastKernel(std::uint32_t allowed) {
  const DepthwiseLastKernel* kernel = kDepthwiseLastKernels;
  while (!HasAll(allowed, kernel->needs)) ++kernel;  // the last one needs nothing
  return kernel;
}

DepthwiseLastTiling PlanDepthwiseLast(const ConvProblem& p, const DepthwiseLastKernel& kernel) {
  DepthwiseLastTiling t;
  t.kernel = &kernel;
  t.tiles = -1;
  const std::int64_t taps = p.kernel[1] * p.kernel[2];
  if (p.transposed || p.kernel[0] != 1 || p.in[0] != 1 || p.out[0] != 1 || p.pad[0] != 0 ||
      p.in_channels != 1 || p.out_channels != 1 || !ConvSizesFit(p) ||
      taps > kMostDepthwiseLastTaps)
    return t;
  t.tiles = 0;
  if (p.batch * p.groups * p.out[1] * p.out[2] == 0) return t;
  const double line = 2.0 * static_cast<double>(taps * p.groups * p.out[2]);
  const double lines = std::clamp(2e6 / std::max(line, 1.0), 1.0, static_cast<double>(p.out[1]));
  t.bands = CeilDiv(p.out[1], static_cast<std::int64_t>(lines));
  t.tile_lines = CeilDiv(p.out[1], t.bands);
  t.bands = CeilDiv(p.out[1], t.tile_lines);
  t.tiles = p.batch * t.bands;
  t.flops_per_tile = line * static_cast<double>(t.tile_lines);
  return t;
}

void PackDepthwiseLast(std::int64_t channels, std::int64_t taps, const float* weights,
                       float* packed) {
  for (std::int64_t t = 0; t < taps; ++t)
    for (std::int64_t c = 0; c < channels; ++c)
      std::memcpy(packed + t * channels + c, weights + c * taps + t, sizeof(float));  // any alignment
}

void RunDepthwiseLastTile(const DepthwiseLastCall& call, std::int64_t tile) {
  const ConvProblem& p = *call.problem;
  const DepthwiseLastTiling& t = *call.tiling;
  const std::int64_t c = p.groups, line = p.in[2] * c;
  const std::int64_t n = tile / t.bands, y_first = tile % t.bands * t.tile_lines;
  const std::int64_t y_end = std::min(p.out[1], y_first + t.tile_lines);
  const float* const image = call.image + n * p.in[1] * line;

  std::int64_t in_offsets[kMostDepthwiseLastTaps], weight_offsets[kMostDepthwiseLastTaps];
  Epilogue epilogue;
  DepthwiseLastArgs args;
  args.in_step = p.stride[2] * c;
  args.in_offsets = in_offsets;
  args.weight_offsets = weight_offsets;
  args.weights = call.weights;
  args.channels = c;
  args.epilogue = &epilogue;
  for (std::int64_t y = y_first; y < y_end; ++y) {
    const Range down = TapsInside(p, 1, y);
    // Runs of outputs with the same taps: one per pixel at the edges, one for all between.
    for (std::int64_t x = 0; x < p.out[2];) {
      const Range across = TapsInside(p, 2, x);
      std::int64_t end = x + 1;
      if (across.first == 0 && across.end == p.kernel[2]) {
        // The last output whose last tap is inside.
        const std::int64_t room = p.in[2] - 1 - (p.kernel[2] - 1) * p.dilation[2] + p.pad[2];
        end = std::clamp(room / p.stride[2] + 1, x + 1, p.out[2]);
      }
      args.taps = 0;
      const std::int64_t top = y * p.stride[1] - p.pad[1], left = x * p.stride[2] - p.pad[2];
      // Offsets count from the first tap inside.
      const std::int64_t first =
          (top + down.first * p.dilation[1]) * line + (left + across.first * p.dilation[2]) * c;
      for (std::int64_t i = down.first; i < down.end; ++i)
        for (std::int64_t j = across.first; j < across.end; ++j, ++args.taps) {
          in_offsets[args.taps] = (i - down.first) * p.dilation[1] * line +
                                  (j - across.first) * p.dilation[2] * c;
          weight_offsets[args.taps] = (i * p.kernel[2] + j) * c;
        }
      args.in = args.taps > 0 ? image + first : image;
      const std::int64_t place = ((n * p.out[1] + y) * p.out[2] + x) * c;
      args.out = call.out + place;
      args.pixels = end - x;
      epilogue = call.epilogue;
      if (epilogue.residual != nullptr) epilogue.residual += place;
      call.tiling->kernel->run(args);
      x = end;
    }
  }
}

}  // namespace npurt::kernels
