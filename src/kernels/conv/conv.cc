// Conv: phases, weight packing, plan and tile driver. See conv.h.
#include "kernels/conv/conv.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/checked_math.h"
#include "kernels/conv/gather.h"
#include "kernels/long_rows.h"

namespace npurt::kernels {
namespace {

// Results of a tile lie in rows of an odd number of cache lines, so that the lines of one column of
// rows spread over all sets of a cache.
std::int64_t BlockStride(std::int64_t pixels) {
  const std::int64_t lines = CeilDiv(pixels, 16);
  return (lines | 1) * 16;
}

}  // namespace

bool ConvSizesFit(const ConvProblem& p) {
  std::int64_t in = 4, out = 4, weights = 4;
  const auto times = [](std::int64_t* total, std::int64_t n) {
    return CheckedMul(*total, std::max<std::int64_t>(n, 1), total);
  };
  if (!times(&in, p.batch) || !times(&in, p.groups) || !times(&in, p.in_channels) ||
      !times(&out, p.batch) || !times(&out, p.groups) || !times(&out, p.out_channels) ||
      !times(&weights, p.groups) || !times(&weights, p.in_channels) ||
      !times(&weights, p.out_channels + 64))
    return false;
  for (int d = 0; d < kConvRank; ++d) {
    std::int64_t reach, end;
    if (!times(&in, p.in[d]) || !times(&out, p.out[d]) || !times(&weights, p.kernel[d]))
      return false;
    // Every coordinate that is formed fits too.
    if (!CheckedMul(p.kernel[d], p.dilation[d], &reach) ||
        !CheckedMul(std::max(p.out[d], p.in[d]), p.stride[d], &end) ||
        !CheckedAdd(end, reach, &end) || !CheckedAdd(end, p.pad[d], &end))
      return false;
  }
  return true;
}

std::int64_t PackedConvWeightsSize(const GemmKernel& kernel, const ConvProblem& p) {
  if (!ConvSizesFit(p)) return 0;
  // The taps of all phases together are the taps of the kernel.
  return PackedASize(kernel, p.out_channels,
                     p.in_channels * p.kernel[0] * p.kernel[1] * p.kernel[2]) *
         p.groups;
}

std::int64_t ConvWeightsScratchSize(const ConvProblem& p) {
  return p.out_channels * p.in_channels * p.kernel[0] * p.kernel[1] * p.kernel[2];
}

void PackConvWeights(const GemmKernel& kernel, const ConvProblem& p, const float* weights,
                     float* row, float* packed) {
  const std::int64_t volume = p.kernel[0] * p.kernel[1] * p.kernel[2];
  const std::int64_t out_stride = p.transposed ? volume : p.in_channels * volume;
  const std::int64_t in_stride = p.transposed ? p.out_channels * volume : volume;
  for (std::int64_t g = 0; g < p.groups; ++g) {
    const float* group = weights + g * p.out_channels * p.in_channels * volume;
    for (std::int64_t index = 0; index < ConvPhaseCount(p); ++index) {
      const ConvPhase f = ConvPhaseOf(p, index);
      if (f.k == 0) continue;
      float* to = row;
      for (std::int64_t o = 0; o < p.out_channels; ++o)
        for (std::int64_t i = 0; i < p.in_channels; ++i)
          for (std::int64_t z = 0; z < f.taps[0]; ++z)
            for (std::int64_t y = 0; y < f.taps[1]; ++y)
              for (std::int64_t x = 0; x < f.taps[2]; ++x) {
                const std::int64_t kz = f.first_tap[0] + z * f.every_tap[0];
                const std::int64_t ky = f.first_tap[1] + y * f.every_tap[1];
                const std::int64_t kx = f.first_tap[2] + x * f.every_tap[2];
                // Any alignment.
                std::memcpy(to++,
                            group + o * out_stride + i * in_stride +
                                (kz * p.kernel[1] + ky) * p.kernel[2] + kx,
                            sizeof(float));
              }
      PackA(kernel, p.out_channels, f.k, row, f.k, 1, 1.0f, packed);
      packed += PackedASize(kernel, p.out_channels, f.k);
    }
  }
}

namespace {

// Pixels of tile `index`: [first, first + count). Tiles shorter than a line do not cross lines.
void PixelsOf(const ConvTiling& t, const ConvPhase& f, std::int64_t index, std::int64_t* first,
              std::int64_t* count) {
  const std::int64_t per_line = CeilDiv(f.lattice[2], t.tile_pixels);
  if (per_line > 1) {
    const std::int64_t x = index % per_line * t.tile_pixels;
    *first = index / per_line * f.lattice[2] + x;
    *count = std::min(t.tile_pixels, f.lattice[2] - x);
  } else {
    *first = index * t.tile_pixels;
    *count = t.tile_pixels;
  }
  *count = std::min(*count, f.pixels - *first);
}

std::int64_t PixelTiles(const ConvPhase& f, std::int64_t tile_pixels) {
  const std::int64_t per_line = CeilDiv(f.lattice[2], tile_pixels);
  return per_line > 1 ? per_line * f.lattice[0] * f.lattice[1] : CeilDiv(f.pixels, tile_pixels);
}

// Most floats of scratch for a stage: more only if the taps lie far apart.
constexpr std::int64_t kMostStage = 256 << 10;

// Floats of the largest stage that a tile of this phase needs, or nothing if that is too much.
std::optional<std::int64_t> StageFloats(const ConvTiling& t, const ConvProblem& p,
                                        const ConvPhase& f) {
  if (f.k == 0 || f.pixels == 0 || ReadsImageDirectly(f)) return 0;
  // A tile touches a part of one line, or some whole lines, or some whole planes.
  const bool part = t.tile_pixels < f.lattice[2];
  const std::int64_t lines = part ? 1 : t.tile_pixels / f.lattice[2] + 2;
  const bool planes = lines > 1 && f.lattice[0] > 1;
  const std::int64_t from[kConvRank] = {0, 0, 0};
  const std::int64_t until[kConvRank] = {
      planes ? std::min(f.lattice[0], lines / f.lattice[1] + 2) : 1,
      planes ? f.lattice[1] : std::min(f.lattice[1], lines), part ? t.tile_pixels : f.lattice[2]};
  // A block of k begins inside a channel unless it holds whole ones.
  const std::int64_t channels =
      std::min(p.in_channels, CeilDiv(t.k_block, f.tap_count) + (t.k_block % f.tap_count != 0));
  double size = static_cast<double>(channels);
  for (int d = 0; d < kConvRank; ++d)
    size *= static_cast<double>(until[d]) * static_cast<double>(f.in_step[d]) +
            static_cast<double>(TapSpan(f, d));
  if (size > static_cast<double>(kMostStage)) return std::nullopt;
  return channels * StageOf(f, from, until).channel;
}

}  // namespace

ConvTiling PlanConv(const ConvProblem& p, const GemmKernel& kernel) {
  ConvTiling t;
  t.kernel = &kernel;
  if (!ConvSizesFit(p)) {
    t.tiles = -1;
    return t;
  }
  if (p.batch * p.groups * p.out_channels * p.out[0] * p.out[1] * p.out[2] == 0) return t;
  t.phases = ConvPhaseCount(p);
  // Sizes are chosen for the first phase, which has the most pixels, and the most taps of any.
  const ConvPhase whole = ConvPhaseOf(p, 0);
  ConvPhase f = whole;
  for (std::int64_t i = 1; i < t.phases; ++i)
    f.tap_count = std::max(f.tap_count, ConvPhaseOf(p, i).tap_count);
  f.k = p.in_channels * f.tap_count;
  if (ReadsImageDirectly(f)) Flatten(&f);

  const std::int64_t mr = kernel.tile_m, nr = kernel.tile_n;
  const double flops_per_pixel_row = 2.0 * static_cast<double>(std::max<std::int64_t>(f.k, 1));
  const double flops = flops_per_pixel_row * static_cast<double>(p.out_channels) *
                       static_cast<double>(f.pixels) * static_cast<double>(t.phases) *
                       static_cast<double>(p.batch * p.groups);
  // As in PlanGemm. All output channels share one gathered block if they can.
  const double target = std::clamp(flops / 32, 2e6, 4e7);
  std::int64_t rows = std::min<std::int64_t>(p.out_channels, 512);
  std::int64_t pixels = std::min<std::int64_t>(f.pixels, 512);
  const auto too_big = [&] {
    return flops_per_pixel_row * static_cast<double>(rows) * static_cast<double>(pixels) >
           target * 1.5;
  };
  const std::int64_t least_pixels = std::max<std::int64_t>(96, nr);
  while (too_big() && pixels > least_pixels) pixels = std::max(least_pixels, pixels / 2);
  while (too_big() && rows > 96) rows = std::max<std::int64_t>(96, rows / 2);
  t.tiles_m = CeilDiv(p.out_channels, rows);
  t.tile_rows = RoundUp(CeilDiv(p.out_channels, t.tiles_m), mr);
  t.tiles_m = CeilDiv(p.out_channels, t.tile_rows);
  // Even shares of a line or, if that is short, of all pixels.
  const std::int64_t extent = f.lattice[2] > pixels ? f.lattice[2] : f.pixels;
  t.tile_pixels = RoundUp(CeilDiv(extent, CeilDiv(extent, pixels)), nr);
  t.flops_per_tile = flops_per_pixel_row * static_cast<double>(t.tile_rows) *
                     static_cast<double>(std::min(t.tile_pixels, f.pixels));

  // Whole channels in a block, where a channel has fewer taps.
  t.k_block = std::min<std::int64_t>(kernel.kc, std::max<std::int64_t>(f.k, 1));
  if (f.tap_count > 1 && f.tap_count <= t.k_block) t.k_block -= t.k_block % f.tap_count;
  t.block_stride = BlockStride(t.tile_pixels);
  // Copies may run over a line's end by up to a vector; the next line mends that.
  t.line_offset = t.k_block * t.tile_pixels;
  std::int64_t floats = t.line_offset + RoundUp(t.tile_pixels + kGatherSlack, 16);
  if (p.transposed) {
    t.result_offset = floats;
    floats += RoundUp(std::min(t.tile_rows, p.out_channels) * t.block_stride, 16);
  }
  t.stage_offset = floats;
  t.staged = true;
  std::int64_t stage = 0;
  t.tiles_n = PixelTiles(f, t.tile_pixels);
  for (std::int64_t i = 0; i < t.phases; ++i) {
    const ConvPhase phase = i == 0 ? whole : ConvPhaseOf(p, i);
    if (phase.pixels > 0) t.tiles_n = std::max(t.tiles_n, PixelTiles(phase, t.tile_pixels));
    const std::optional<std::int64_t> needs = StageFloats(t, p, phase);
    t.staged = t.staged && needs.has_value();
    stage = std::max(stage, needs.value_or(0));
  }
  if (t.staged && stage > 0) floats += stage + 16;
  t.tiles = t.phases * p.batch * p.groups * t.tiles_m * t.tiles_n;
  t.scratch_bytes = static_cast<std::size_t>(floats) * sizeof(float);
  return t;
}

namespace {

// Floats before the weights of phase `index` of a group.
std::int64_t PhaseOffset(const GemmKernel& kernel, const ConvProblem& p, std::int64_t index) {
  std::int64_t offset = 0;
  for (std::int64_t i = 0; i < index; ++i)
    offset += PackedASize(kernel, p.out_channels, ConvPhaseOf(p, i).k);
  return offset;
}

}  // namespace

void RunConvTile(const ConvCall& call, std::int64_t tile, void* scratch) {
  const ConvProblem& p = *call.problem;
  const ConvTiling& t = *call.tiling;
  const GemmKernel& kernel = *t.kernel;
  const std::int64_t mr = kernel.tile_m, nr = kernel.tile_n;

  const std::int64_t tile_m = tile % t.tiles_m;
  const std::int64_t tile_n = tile / t.tiles_m % t.tiles_n;
  std::int64_t rest = tile / (t.tiles_m * t.tiles_n);
  const std::int64_t index = rest % t.phases;
  rest /= t.phases;
  const std::int64_t group = rest % p.groups, n = rest / p.groups;

  const ConvPhase f = ConvPhaseOf(p, index);
  const bool direct = ReadsImageDirectly(f);
  ConvPhase seen = f;
  if (direct) Flatten(&seen);
  std::int64_t first, pixels;
  PixelsOf(t, seen, tile_n, &first, &pixels);
  if (pixels <= 0) return;  // a smaller phase of a transposed convolution
  const std::int64_t row = tile_m * t.tile_rows;
  const std::int64_t rows = std::min(t.tile_rows, p.out_channels - row);

  const std::int64_t in_plane = p.in[0] * p.in[1] * p.in[2];
  const std::int64_t out_plane = p.out[0] * p.out[1] * p.out[2];
  const float* image = call.image + (n * p.groups + group) * p.in_channels * in_plane;
  const std::int64_t channel = group * p.out_channels + row;  // of all output channels
  float* out = call.out + (n * p.groups * p.out_channels + channel) * out_plane;

  // Reading the image in place pays while few rows use what a copy would put side by side.
  const bool gather = !direct || rows >= 3 * mr;
  const std::int64_t width = RoundUp(pixels, nr);
  float* const block = static_cast<float*>(scratch);
  float* const result = p.transposed ? block + t.result_offset : out + first;
  const std::int64_t result_stride = p.transposed ? t.block_stride : out_plane;

  ConvStage stage;
  const bool staged = t.staged && !direct && f.k > 0;
  if (staged) {
    std::int64_t from[kConvRank], until[kConvRank];
    BoxOf(f, first, pixels, from, until);
    stage = StageOf(f, from, until);
  }

  GemmArgs args;
  if (call.packed) {
    args.a = call.weights + PhaseOffset(kernel, p, index) + row * f.k;
    if (group > 0) args.a += group * PhaseOffset(kernel, p, t.phases);
    args.a_row_stride = 1;
    args.a_k_stride = mr;
  } else {
    args.a = call.weights + channel * f.k;
    args.a_row_stride = f.k;
    args.a_k_stride = 1;
  }
  const float* const weights = args.a;
  args.c_stride = result_stride;
  Epilogue epilogue = call.epilogue;
  args.epilogue = &epilogue;
  const float* const residual = call.epilogue.residual == nullptr
                                    ? nullptr
                                    : call.epilogue.residual + (out - call.out) + first;
  epilogue.residual_stride = out_plane;

  StopMeter meter(call.stop, kProducts);
  const std::int64_t blocks = std::max<std::int64_t>(CeilDiv(f.k, t.k_block), 1);
  for (std::int64_t k = 0; k < blocks; ++k) {  // a phase without taps still has its epilogue
    const std::int64_t k0 = k * t.k_block;
    args.k = std::min(t.k_block, f.k - k0);
    args.first = k == 0;
    args.last = k + 1 == blocks;
    if (gather && args.k > 0)
      GatherBlock(seen, staged ? &stage : nullptr, block + t.stage_offset, image, k0, args.k, first,
                  pixels, width, {block, nr, t.k_block * nr, block + t.line_offset});
    for (std::int64_t col = 0; col < pixels; col += nr) {
      args.cols = static_cast<int>(std::min(nr, pixels - col));
      args.b = gather ? block + col * t.k_block : image + k0 * in_plane + first + col;
      args.b_stride = gather ? nr : in_plane;
      args.b_is_panel = gather;
      for (std::int64_t r = 0; r < rows; r += mr) {
        args.rows = static_cast<int>(std::min(mr, rows - r));
        args.a = call.packed ? weights + r * f.k + k0 * mr : weights + r * f.k + k0;
        args.c = result + r * result_stride + col;
        if (args.last) {
          if (call.epilogue.row_bias != nullptr)
            epilogue.row_bias = call.epilogue.row_bias + channel + r;
          if (residual != nullptr) epilogue.residual = residual + r * out_plane + col;
        }
        kernel.run(args);
      }
      meter.Count(args.k * rows * nr);
    }
  }
  if (p.transposed) ScatterPhase(p, f, result, result_stride, rows, first, pixels, out);
}

}  // namespace npurt::kernels
