// Channels-last depthwise convolution of bytes: the table of kernels, the plan and the tile driver. See
// depthwise_last.h.
#include "kernels/intconv/depthwise_last.h"

#include <algorithm>
#include <cstring>

#include "base/checked_math.h"
#include "base/cpu_isa.h"
#include "kernels/intconv/intconv.h"

namespace npurt::kernels {

const IntDepthwiseKernel kIntDepthwiseKernels[] = {
#define NPURT_INT_DEPTHWISE_LAST(isa_set, name) {#name, name, isa_set},
#include "kernels/intconv/depthwise_last.inc"
#undef NPURT_INT_DEPTHWISE_LAST
};
const int kIntDepthwiseKernelCount =
    static_cast<int>(sizeof kIntDepthwiseKernels / sizeof kIntDepthwiseKernels[0]);

const IntDepthwiseKernel* SelectIntDepthwiseKernel(std::uint32_t allowed) {
  const IntDepthwiseKernel* kernel = kIntDepthwiseKernels;
  while (!HasAll(allowed, kernel->needs)) ++kernel;  // the last one needs nothing
  return kernel;
}

std::int64_t PackedIntDepthwiseSize(std::int64_t channels, std::int64_t taps) {
  return (taps + 1) * channels * std::int64_t{sizeof(Word)};
}

void PackIntDepthwise(std::int64_t channels, std::int64_t taps, bool is_signed, const void* weights,
                      const std::int32_t* zero, void* packed) {
  Word* const words = static_cast<Word*>(packed);
  std::int32_t* const sums = static_cast<std::int32_t*>(packed) + taps * channels;
  for (std::int64_t c = 0; c < channels; ++c) {
    sums[c] = 0;
    for (std::int64_t tap = 0; tap < taps; ++tap) {
      const unsigned char byte = static_cast<const unsigned char*>(weights)[c * taps + tap];
      const std::int32_t w = (is_signed ? std::int32_t{static_cast<std::int8_t>(byte)} : byte) - zero[c];
      words[tap * channels + c] = static_cast<Word>(w) & 0xffff;
      sums[c] += w;
    }
  }
}

IntDepthwiseTiling PlanIntDepthwise(const IntConvProblem& problem, const IntDepthwiseKernel& kernel) {
  const ConvProblem& p = problem.shape;
  IntDepthwiseTiling t;
  t.kernel = &kernel;
  t.tiles = -1;
  const std::int64_t taps = p.kernel[1] * p.kernel[2];
  if (!ConvSizesFit(p) || p.transposed || p.kernel[0] != 1 || p.in[0] != 1 || p.out[0] != 1 ||
      p.in_channels != 1 || p.out_channels != 1 || taps > kMostIntDepthwiseTaps)
    return t;
  t.tiles = 0;
  if (p.batch * p.groups * p.out[1] * p.out[2] == 0) return t;
  const double line = 2.0 * static_cast<double>((taps + 4) * p.groups * p.out[2]);
  const double lines = std::clamp(2e6 / std::max(line, 1.0), 1.0, static_cast<double>(p.out[1]));
  t.bands = CeilDiv(p.out[1], static_cast<std::int64_t>(lines));
  t.tile_lines = CeilDiv(p.out[1], t.bands);
  t.bands = CeilDiv(p.out[1], t.tile_lines);
  t.tiles = p.batch * t.bands;
  t.flops_per_tile = line * static_cast<double>(t.tile_lines);
  // The corrections, then the row of zero points.
  t.scratch_bytes = static_cast<std::size_t>(p.groups * 5);
  return t;
}

namespace {

// The first output of a line that sees no column outside the image, and the first after it that does.
struct Interior {
  std::int64_t first, end;
};
Interior InteriorOf(const ConvProblem& p) {
  const std::int64_t first = p.pad[2] <= 0 ? 0 : CeilDiv(p.pad[2], p.stride[2]);
  const std::int64_t room = p.in[2] - 1 - (p.kernel[2] - 1) * p.dilation[2] + p.pad[2];
  const std::int64_t end = room < 0 ? 0 : room / p.stride[2] + 1;
  return {std::min(first, p.out[2]), std::clamp(end, std::min(first, p.out[2]), p.out[2])};
}

}  // namespace

void RunIntDepthwiseTile(const IntDepthwiseCall& call, std::int64_t tile, void* scratch) {
  const ConvProblem& p = call.problem->shape;
  const IntDepthwiseTiling& t = *call.tiling;
  const std::int64_t c = p.groups, taps = p.kernel[1] * p.kernel[2];
  const std::int64_t n = tile / t.bands, y_first = tile % t.bands * t.tile_lines;
  const std::int64_t y_end = std::min(p.out[1], y_first + t.tile_lines);
  const auto* const image = static_cast<const unsigned char*>(call.image) + n * p.in[1] * p.in[2] * c;

  auto* const first = static_cast<std::int32_t*>(scratch);
  auto* const outside = reinterpret_cast<unsigned char*>(first + c);
  const std::int32_t* const sums = static_cast<const std::int32_t*>(call.weights) + taps * c;
  for (std::int64_t i = 0; i < c; ++i)
    first[i] = static_cast<std::int32_t>(
        static_cast<std::uint32_t>(call.epilogue.column_add == nullptr ? 0 : call.epilogue.column_add[i]) -
        static_cast<std::uint32_t>(call.x_zero) * static_cast<std::uint32_t>(sums[i]));
  std::memset(outside, call.x_zero, static_cast<std::size_t>(c));

  const unsigned char* in[kMostIntDepthwiseTaps];
  std::int64_t steps[kMostIntDepthwiseTaps];
  IntDepthwiseArgs args;
  args.in = in;
  args.in_steps = steps;
  args.taps = taps;
  args.is_signed = call.problem->x_signed;
  args.weights = static_cast<const Word*>(call.weights);
  args.first = first;
  args.column_bias = call.epilogue.column_bias;
  args.column_scale = call.epilogue.column_scale;
  args.zero = call.epilogue.zero;
  args.low = call.epilogue.low;
  args.high = call.epilogue.high;
  args.channels = c;
  const Interior interior = InteriorOf(p);
  for (std::int64_t y = y_first; y < y_end; ++y) {
    const std::int64_t top = y * p.stride[1] - p.pad[1];
    for (std::int64_t x = 0; x < p.out[2]; x += args.pixels) {
      args.pixels = x == interior.first && interior.end > x ? interior.end - x : 1;
      const std::int64_t left = x * p.stride[2] - p.pad[2];
      for (std::int64_t i = 0; i < p.kernel[1]; ++i)
        for (std::int64_t j = 0; j < p.kernel[2]; ++j) {
          const std::int64_t at_y = top + i * p.dilation[1], at_x = left + j * p.dilation[2];
          const bool inside = at_y >= 0 && at_y < p.in[1] && at_x >= 0 && at_x < p.in[2];
          in[i * p.kernel[2] + j] = inside ? image + (at_y * p.in[2] + at_x) * c : outside;
          steps[i * p.kernel[2] + j] = inside ? p.stride[2] * c : 0;
        }
      args.out = static_cast<unsigned char*>(call.out) + ((n * p.out[1] + y) * p.out[2] + x) * c;
      t.kernel->run(args);
    }
  }
}

}  // namespace npurt::kernels
