// Depthwise: the table of kernels, the plan and the tile driver. See depthwise.h.
#include "kernels/depthwise/depthwise.h"

#include <algorithm>
#include <cstring>

#include "base/checked_math.h"
#include "base/cpu_isa.h"
#include "kernels/conv/conv.h"
#include "kernels/conv/gather.h"

namespace npurt::kernels {

const DepthwiseKernel kDepthwiseKernels[] = {
#define NPURT_DEPTHWISE(isa_set, name, lanes) {#name, name, isa_set, lanes},
#include "kernels/depthwise/depthwise.inc"
#undef NPURT_DEPTHWISE
};
const int kDepthwiseKernelCount =
    static_cast<int>(sizeof kDepthwiseKernels / sizeof kDepthwiseKernels[0]);

const DepthwiseKernel* SelectDepthwiseKernel(std::uint32_t allowed) {
  const DepthwiseKernel* kernel = kDepthwiseKernels;
  while (!HasAll(allowed, kernel->needs)) ++kernel;  // the last one needs nothing
  return kernel;
}

namespace {

// A band that fits half of a second-level cache with its outputs.
constexpr std::int64_t kMostBand = 64 << 10;  // floats
// Beyond, the weights alone would not stay in the first-level cache beside the stage.
constexpr std::int64_t kMostTaps = 4096;

// What output rows [row, row + rows) see of one channel.
ConvStage BandStage(const ConvPhase& f, std::int64_t row, std::int64_t rows) {
  const std::int64_t from[kConvRank] = {0, row, 0};
  const std::int64_t until[kConvRank] = {1, row + rows, f.lattice[2]};
  return StageOf(f, from, until);
}

std::size_t StageBytes(const ConvStage& s, std::int64_t channels) {
  // Vectors of a last row's last block are read whole: four of at most 16 floats.
  return static_cast<std::size_t>(
             AlignUp<std::int64_t>(s.channel * channels + 4 * 16 + kGatherSlack, 16)) *
         sizeof(float);
}

}  // namespace

DepthwiseTiling PlanDepthwise(const ConvProblem& p, const DepthwiseKernel& kernel) {
  DepthwiseTiling t;
  t.kernel = &kernel;
  t.tiles = -1;
  if (p.transposed || p.kernel[0] != 1 || p.in[0] != 1 || p.out[0] != 1 || p.pad[0] != 0 ||
      !ConvSizesFit(p))
    return t;
  const std::int64_t planes = p.batch * p.groups;
  const ConvPhase f = ConvPhaseOf(p, 0);
  if (planes * p.out_channels * f.pixels == 0) {
    t.tiles = 0;
    return t;
  }
  // Floats of the stage for the first output row, and for each further one.
  const double line = static_cast<double>(f.lattice[2] + TapSpan(f, 2)) *
                      static_cast<double>(f.in_step[2]) * static_cast<double>(p.in_channels);
  const double first_row = line * static_cast<double>(TapSpan(f, 1) + 1);
  const double more_row = line * static_cast<double>(f.in_step[1]);
  if (first_row > 4.0 * kMostBand || f.k > kMostTaps) return t;

  // About 0.4 million operations: with few taps memory sets the pace. Whole blocks of eight rows
  // are what the kernel does best.
  constexpr double kTileFlops = 4e5;
  const double flops_per_row =
      2.0 * static_cast<double>(f.k * p.out_channels) * static_cast<double>(f.lattice[2]);
  const double fair_rows = std::max(kTileFlops / flops_per_row, 1.0);
  const double held_rows = std::max((kMostBand - first_row) / more_row, 0.0) + 1;
  std::int64_t rows = f.lattice[1];
  if (fair_rows < static_cast<double>(rows))
    rows = std::min(rows, AlignUp<std::int64_t>(static_cast<std::int64_t>(fair_rows), 8));
  if (held_rows < static_cast<double>(rows)) rows = static_cast<std::int64_t>(held_rows);
  t.bands = CeilDiv(f.lattice[1], rows);
  t.tile_rows = CeilDiv(f.lattice[1], t.bands);
  t.bands = CeilDiv(f.lattice[1], t.tile_rows);
  const double per_plane = flops_per_row * static_cast<double>(t.tile_rows);
  t.tile_planes =
      t.bands > 1
          ? 1
          : std::clamp<std::int64_t>(
                static_cast<std::int64_t>(std::min(kTileFlops / per_plane, 1e6)), 1, planes);
  t.tiles = CeilDiv(planes, t.tile_planes) * t.bands;
  t.flops_per_tile = per_plane * static_cast<double>(t.tile_planes);
  t.scratch_bytes = StageBytes(BandStage(f, 0, t.tile_rows), p.in_channels) +
                    static_cast<std::size_t>(f.k) * sizeof(std::int64_t);
  return t;
}

void RunDepthwiseTile(const DepthwiseCall& call, std::int64_t tile, void* scratch) {
  const ConvProblem& p = *call.problem;
  const DepthwiseTiling& t = *call.tiling;
  const ConvPhase f = ConvPhaseOf(p, 0);
  const std::int64_t band = tile % t.bands;
  const std::int64_t first_plane = tile / t.bands * t.tile_planes;
  const std::int64_t end_plane = std::min(first_plane + t.tile_planes, p.batch * p.groups);
  const std::int64_t row = band * t.tile_rows;
  const std::int64_t rows = std::min(t.tile_rows, f.lattice[1] - row);
  const ConvStage stage = BandStage(f, row, rows);

  float* const staged = static_cast<float*>(scratch);
  auto* const offsets = reinterpret_cast<std::int64_t*>(
      static_cast<char*>(scratch) + StageBytes(BandStage(f, 0, t.tile_rows), p.in_channels));
  std::int64_t* offset = offsets;
  for (std::int64_t c = 0; c < p.in_channels; ++c)
    for (std::int64_t y = 0; y < f.taps[1]; ++y)
      for (std::int64_t x = 0; x < f.taps[2]; ++x) {
        const std::int64_t distance = x * f.tap_step[2];
        *offset++ = c * stage.channel + y * f.tap_step[1] * stage.line +
                    distance % stage.residues * stage.count[2] + distance / stage.residues;
      }

  Epilogue epilogue = call.epilogue;
  DepthwiseArgs args;
  args.in = staged;
  args.in_stride = f.in_step[1] * stage.line;
  args.tap_offsets = offsets;
  args.taps = f.k;
  args.out_stride = f.lattice[2];
  args.rows = rows;
  args.cols = f.lattice[2];
  args.epilogue = &epilogue;
  epilogue.residual_stride = f.lattice[2];
  const std::int64_t in_size = p.in_channels * p.in[1] * p.in[2];
  for (std::int64_t plane = first_plane; plane < end_plane; ++plane) {
    FillStage(f, stage, call.image + plane * in_size, p.in_channels, staged);
    for (std::int64_t o = 0; o < p.out_channels; ++o) {
      const std::int64_t channel = plane % p.groups * p.out_channels + o;
      const std::int64_t first = (plane * p.out_channels + o) * f.pixels + row * f.lattice[2];
      args.weights = call.weights + channel * f.k;
      args.out = call.out + first;
      args.bias = 0;
      if (call.epilogue.row_bias != nullptr)
        std::memcpy(&args.bias, call.epilogue.row_bias + channel, sizeof(float));
      if (call.epilogue.residual != nullptr) epilogue.residual = call.epilogue.residual + first;
      t.kernel->run(args);
    }
  }
}

}  // namespace npurt::kernels
