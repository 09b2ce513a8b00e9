// Channels-last convolution: weight packing, plan and tile driver. See conv.h.
#include "kernels/channels_last/conv.h"

#include <algorithm>
#include <cstring>

#include "base/checked_math.h"

namespace npurt::kernels {
namespace {

std::int64_t RoundUp(std::int64_t n, std::int64_t to) { return CeilDiv(n, to) * to; }

std::int64_t KernelVolume(const ConvProblem& p) { return p.kernel[1] * p.kernel[2]; }

// Columns of an image line that some output reads, the padding included.
std::int64_t ReadWidth(const ConvProblem& p) {
  return (p.out[2] - 1) * p.stride[2] + (p.kernel[2] - 1) * p.dilation[2] + 1;
}
// Lines that `rows` output lines read.
std::int64_t ReadLines(const ConvProblem& p, std::int64_t rows) {
  return (rows - 1) * p.stride[1] + (p.kernel[1] - 1) * p.dilation[1] + 1;
}

}  // namespace

std::int64_t PackedChannelsLastSize(const GemmKernel& kernel, const ConvProblem& p) {
  if (!ConvSizesFit(p)) return 0;
  return PackedBSize(kernel, p.in_channels * KernelVolume(p), p.out_channels);
}

void PackChannelsLastWeights(const GemmKernel& kernel, const ConvProblem& p, const float* weights,
                             float* row, float* packed) {
  const std::int64_t taps = KernelVolume(p), k = taps * p.in_channels;
  float* to = row;
  for (std::int64_t o = 0; o < p.out_channels; ++o)
    for (std::int64_t tap = 0; tap < taps; ++tap)
      for (std::int64_t c = 0; c < p.in_channels; ++c)
        std::memcpy(to++, weights + (o * p.in_channels + c) * taps + tap, sizeof(float));  // any alignment
  PackB(kernel, k, p.out_channels, row, 1, k, 1.0f, packed);
}

ChannelsLastTiling PlanChannelsLast(const ConvProblem& p, const GemmKernel& kernel) {
  ChannelsLastTiling t;
  t.kernel = &kernel;
  if (!ConvSizesFit(p) || p.groups != 1 || p.transposed || p.in[0] != 1 || p.out[0] != 1 ||
      p.kernel[0] != 1) {
    t.tiles = -1;
    return t;
  }
  const std::int64_t pixels = p.out[1] * p.out[2];
  if (p.batch * p.out_channels * pixels == 0) return t;
  const std::int64_t k = p.in_channels * KernelVolume(p);
  t.flat = KernelVolume(p) == 1 && p.stride[1] == 1 && p.stride[2] == 1 && p.pad[1] == 0 &&
           p.pad[2] == 0 && p.in[1] == p.out[1] && p.in[2] == p.out[2];
  if (t.flat) {
    t.product.m = p.batch * pixels;
    t.product.n = p.out_channels;
    t.product.k = k;
    t.product.a_row_stride = k;
    t.product.packed_b = true;
    t.product_tiling = PlanGemm(t.product, kernel);
    t.tiles = t.product_tiling.tiles;
    t.flops_per_tile = t.product_tiling.flops_per_tile;
    t.scratch_bytes = t.product_tiling.scratch_bytes;
    return t;
  }

  // Taps of a line that lie side by side are one run with their channels.
  const bool joined = p.dilation[2] == 1 || p.kernel[2] == 1;
  t.run = joined ? p.kernel[2] * p.in_channels : p.in_channels;
  t.segments = joined ? p.kernel[1] : p.kernel[2];
  t.outer = joined ? 1 : p.kernel[1];
  t.segment_block = std::max<std::int64_t>(kernel.kc / std::max<std::int64_t>(t.run, 1), 1);
  t.run_block = std::max<std::int64_t>(t.run, 1);
  if (t.run > kernel.kc)
    t.run_block = RoundUp(CeilDiv(t.run, CeilDiv(t.run, kernel.kc)), 4);

  const std::int64_t first = -p.pad[2], end = first + ReadWidth(p);
  t.staged = first < 0 || end > p.in[2];
  t.line = (t.staged ? ReadWidth(p) : p.in[2]) * p.in_channels;

  // As in PlanGemm: about 32 tiles of at most a millisecond, whose lines stay in the second-level
  // cache.
  const double flops_per_element = 2.0 * static_cast<double>(std::max<std::int64_t>(k, 1));
  const double flops = flops_per_element * static_cast<double>(p.out_channels) *
                       static_cast<double>(pixels) * static_cast<double>(p.batch);
  const double most = std::clamp(flops / 32, 2e6, 4e7) * 1.5;
  constexpr std::int64_t kMostStaged = 96 << 10;  // floats
  std::int64_t band = std::clamp<std::int64_t>(kernel.mc / p.out[2], 1, p.out[1]);
  std::int64_t cols = std::min<std::int64_t>(p.out_channels, kernel.nc);
  const auto tile_flops = [&] {
    return flops_per_element * static_cast<double>(cols) * static_cast<double>(band * p.out[2]);
  };
  while (band > 1 && t.staged && ReadLines(p, band) * t.line > kMostStaged) band = (band + 1) / 2;
  while (band > 1 && tile_flops() > most && band * p.out[2] > 96) band = (band + 1) / 2;
  while (tile_flops() > most && cols > 4 * kernel.tile_n)
    cols = RoundUp(cols / 2, kernel.tile_n);
  t.bands = CeilDiv(p.out[1], band);
  t.band = CeilDiv(p.out[1], t.bands);
  t.bands = CeilDiv(p.out[1], t.band);
  t.tiles_n = CeilDiv(p.out_channels, cols);
  t.cols = RoundUp(CeilDiv(p.out_channels, t.tiles_n), kernel.tile_n);
  t.tiles_n = CeilDiv(p.out_channels, t.cols);
  t.tiles = p.batch * t.bands * t.tiles_n;
  t.flops_per_tile = flops_per_element * static_cast<double>(std::min(t.cols, p.out_channels)) *
                     static_cast<double>(t.band * p.out[2]);
  std::int64_t staged_floats = 0;
  if (t.staged && (!CheckedMul(ReadLines(p, t.band), t.line, &staged_floats) ||
                   !CheckedMul(staged_floats, std::int64_t{sizeof(float)}, &staged_floats))) {
    t.tiles = -1;
    return t;
  }
  t.scratch_bytes = static_cast<std::size_t>(staged_floats);
  return t;
}

namespace {

// The lines [first, end) of an image with their padding, of which each output reads ReadWidth pixels.
void Stage(const ConvProblem& p, const float* image, std::int64_t first, std::int64_t end,
           float* to) {
  const std::int64_t width = ReadWidth(p), c = p.in_channels;
  const std::int64_t left = std::clamp<std::int64_t>(p.pad[2], 0, width);
  const std::int64_t from = std::max<std::int64_t>(-p.pad[2], 0);
  const std::int64_t count = std::clamp<std::int64_t>(p.in[2] - from, 0, width - left);
  const auto zeros = [&](std::int64_t pixels) {
    std::memset(to, 0, static_cast<std::size_t>(pixels * c) * sizeof(float));
    to += pixels * c;
  };
  for (std::int64_t y = first; y < end; ++y) {
    zeros(left);
    if (count > 0)
      std::memcpy(to, image + (y * p.in[2] + from) * c,
                  static_cast<std::size_t>(count * c) * sizeof(float));
    to += count * c;
    zeros(width - left - count);
  }
}

// The taps [lo, hi) of output line `y` that lie inside the image.
void TapsInside(const ConvProblem& p, std::int64_t y, std::int64_t* lo, std::int64_t* hi) {
  const std::int64_t top = y * p.stride[1] - p.pad[1], d = p.dilation[1];
  *lo = top >= 0 ? 0 : std::min(p.kernel[1], CeilDiv(-top, d));
  *hi = top >= p.in[1] ? 0 : std::min(p.kernel[1], CeilDiv(p.in[1] - top, d));
}

}  // namespace

void RunChannelsLastTile(const ChannelsLastCall& call, std::int64_t tile, void* scratch) {
  const ConvProblem& p = *call.problem;
  const ChannelsLastTiling& t = *call.tiling;
  const GemmKernel& kernel = *t.kernel;
  Epilogue whole = call.epilogue;
  whole.residual_stride = p.out_channels;
  if (t.flat) {
    RunGemmTile({&t.product, &t.product_tiling, call.image, call.weights, call.out, whole}, tile,
                scratch);
    return;
  }
  const std::int64_t col = tile % t.tiles_n * t.cols;
  const std::int64_t cols = std::min(t.cols, p.out_channels - col);
  const std::int64_t y_first = tile / t.tiles_n % t.bands * t.band;
  const std::int64_t y_end = std::min(p.out[1], y_first + t.band);
  const std::int64_t n = tile / (t.tiles_n * t.bands);
  const std::int64_t c = p.in_channels, k = t.outer * t.segments * t.run;

  // Column -pad of line 0 would be `origin` floats after `lines`.
  const float* lines = call.image + n * p.in[1] * p.in[2] * c;
  std::int64_t origin = -p.pad[2] * c;
  if (t.staged) {
    const std::int64_t top = y_first * p.stride[1] - p.pad[1];
    const std::int64_t first = std::clamp<std::int64_t>(top, 0, p.in[1]);
    const std::int64_t end =
        std::clamp(top + ReadLines(p, y_end - y_first), first, p.in[1]);
    auto* const staged = static_cast<float*>(scratch);
    Stage(p, lines, first, end, staged);
    lines = staged;
    origin = -first * t.line;
  }

  const std::int64_t per_line = CeilDiv(p.out[2], kernel.tile_m);
  const std::int64_t pixels = CeilDiv(p.out[2], per_line);  // even shares
  const bool joined = t.outer == 1 && t.segments == p.kernel[1];
  Epilogue epilogue;
  GemmArgs args;
  args.a_row_stride = p.stride[2] * c;
  args.a_k_stride = 1;
  args.a_segment_stride = joined ? p.dilation[1] * t.line : p.dilation[2] * c;
  args.b_stride = kernel.tile_n;
  args.b_is_panel = true;
  args.c_stride = p.out_channels;
  args.epilogue = &epilogue;

  // All pixels of the tile times block [segment, segment_end) x [r, r + r_count) of one panel.
  const auto multiply = [&](std::int64_t outer, std::int64_t segment, std::int64_t segment_end,
                            std::int64_t r, std::int64_t r_count, std::int64_t panel) {
    args.cols = static_cast<int>(std::min<std::int64_t>(kernel.tile_n, cols - panel));
    for (std::int64_t y = y_first; y < y_end; ++y) {
      std::int64_t lo, hi;
      TapsInside(p, y, &lo, &hi);
      std::int64_t s = segment, s_end = segment_end;
      const bool starts = r == 0, ends = r + r_count == t.run;
      if (lo >= hi || t.run == 0) {  // nothing but padding: a sum of nothing, made once
        if (outer != 0 || segment != 0 || r != 0) continue;
        s = s_end = 0;
        args.first = args.last = true;
      } else if (joined) {
        s = std::max(s, lo);
        s_end = std::min(s_end, hi);
        if (s >= s_end) continue;
        args.first = starts && s == lo;
        args.last = ends && s_end == hi;
      } else {
        if (outer < lo || outer >= hi) continue;
        args.first = starts && s == 0 && outer == lo;
        args.last = ends && s_end == t.segments && outer == hi - 1;
      }
      args.segments = static_cast<int>(std::max<std::int64_t>(s_end - s, 1));
      args.k = s_end > s ? r_count : 0;
      args.b = call.weights + (col + panel) * k + ((outer * t.segments + s) * t.run + r) * kernel.tile_n;
      const std::int64_t line = y * p.stride[1] - p.pad[1] + (joined ? s : outer) * p.dilation[1];
      const float* a = lines;
      if (args.k > 0) a += origin + line * t.line + (joined ? 0 : s * p.dilation[2] * c) + r;
      const std::int64_t place = (n * p.out[1] + y) * p.out[2];
      for (std::int64_t x = 0; x < p.out[2]; x += pixels) {
        args.rows = static_cast<int>(std::min(pixels, p.out[2] - x));
        args.a = args.k > 0 ? a + x * args.a_row_stride : a;
        const std::int64_t at = (place + x) * p.out_channels + col + panel;
        args.c = call.out + at;
        if (args.last) {
          epilogue = whole;
          if (whole.column_bias != nullptr) epilogue.column_bias += col + panel;
          if (whole.residual != nullptr) epilogue.residual += at;
        }
        kernel.run(args);
      }
    }
  };
  for (std::int64_t outer = 0; outer < std::max<std::int64_t>(t.outer, 1); ++outer)
    for (std::int64_t s = 0; s < std::max<std::int64_t>(t.segments, 1); s += t.segment_block)
      for (std::int64_t r = 0; r < std::max<std::int64_t>(t.run, 1); r += t.run_block)
        for (std::int64_t panel = 0; panel < cols; panel += kernel.tile_n)
          multiply(outer, s, std::min(s + t.segment_block, t.segments), r,
                   std::min(t.run_block, t.run - r), panel);
}

}  // namespace npurt::kernels
