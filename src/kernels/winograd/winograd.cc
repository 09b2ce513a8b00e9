#include "kernels/winograd/winograd.h"

#include <algorithm>
#include <cstring>

#include "base/checked_math.h"
#include "base/cpu_isa.h"
#include "kernels/conv/conv.h"
#include "kernels/conv/gather.h"

namespace npurt::kernels {

#define NPURT_WINOGRAD(isa_set, name) {#name, name##_input, name##_output, isa_set},
extern const WinogradKernel kWinogradKernels[] = {
#include "kernels/winograd/winograd.inc"
};
#undef NPURT_WINOGRAD
const int kWinogradKernelCount = static_cast<int>(std::size(kWinogradKernels));

const WinogradKernel* SelectWinogradKernel(std::uint32_t allowed) {
  const WinogradKernel* kernel = kWinogradKernels;
  while ((kernel->needs & ~allowed) != 0) ++kernel;
  return kernel;
}

bool WinogradSuits(const ConvProblem& p) {
  // With few channels the transforms cost what the products save.
  constexpr std::int64_t kLeastChannels = 32;
  return !p.transposed && p.kernel[0] == 1 && p.kernel[1] == 3 && p.kernel[2] == 3 &&
         p.stride[0] == 1 && p.stride[1] == 1 && p.stride[2] == 1 && p.dilation[1] == 1 &&
         p.dilation[2] == 1 && p.pad[0] == 0 && p.in_channels >= kLeastChannels &&
         p.out_channels >= kLeastChannels;
}

std::int64_t PackedWinogradSize(const GemmKernel& gemm, const ConvProblem& p) {
  std::int64_t size = PackedASize(gemm, p.out_channels, p.in_channels);
  if (!CheckedMul(size, std::int64_t{kWinogradPlaces}, &size) || !CheckedMul(size, p.groups, &size))
    return 0;
  return size;
}

void TransformWinogradWeights(int place, std::int64_t pairs, const float* weights, float* plain) {
  constexpr double kG[4][3] = {{1, 0, 0}, {0.5, 0.5, 0.5}, {0.5, -0.5, 0.5}, {0, 0, 1}};
  double factors[9];
  for (int t = 0; t < 9; ++t) factors[t] = kG[place / 4][t / 3] * kG[place % 4][t % 3];
  for (std::int64_t i = 0; i < pairs; ++i) {
    float w[9];
    std::memcpy(w, weights + i * 9, sizeof w);  // any alignment
    double sum = 0;
    for (int t = 0; t < 9; ++t) sum += factors[t] * static_cast<double>(w[t]);
    plain[i] = static_cast<float>(sum);
  }
}

void PackWinogradWeights(const GemmKernel& gemm, const ConvProblem& p, const float* weights,
                         float* plain, float* packed) {
  const std::int64_t pairs = p.out_channels * p.in_channels;
  const std::int64_t panel = PackedASize(gemm, p.out_channels, p.in_channels);
  for (std::int64_t group = 0; group < p.groups; ++group, weights += pairs * 9)
    for (int place = 0; place < kWinogradPlaces; ++place, packed += panel) {
      TransformWinogradWeights(place, pairs, weights, plain);
      PackA(gemm, p.out_channels, p.in_channels, plain, p.in_channels, 1, 1.0f, packed);
    }
}

WinogradTiling PlanWinograd(const ConvProblem& p, const WinogradKernel& kernel,
                            const GemmKernel& gemm) {
  WinogradTiling t;
  t.kernel = &kernel;
  t.gemm = &gemm;
  if (!ConvSizesFit(p)) {
    t.tiles = -1;
    return t;
  }
  if (p.batch * p.groups * p.out_channels * p.out[1] * p.out[2] == 0) return t;
  t.across = CeilDiv<std::int64_t>(p.out[2], 2);
  t.down = CeilDiv<std::int64_t>(p.out[1], 2);
  const std::int64_t nr = gemm.tile_n, mr = gemm.tile_m;
  // The weights of a block of output channels are read once for all columns of a block, so columns must
  // be many, whether the transformed inputs then fit the second-level cache or not: one place of them
  // does.
  constexpr std::int64_t kMostRows = 128, kMostFloats = 256 << 10, kLeastColumns = 112,
                         kMostColumns = 256;
  const std::int64_t images = p.batch * p.groups;
  t.row_blocks = CeilDiv(p.out_channels, kMostRows);
  t.block_rows = CeilDiv(CeilDiv(p.out_channels, t.row_blocks), mr) * mr;
  t.row_blocks = CeilDiv(p.out_channels, t.block_rows);
  const std::int64_t columns =
      std::clamp(kMostFloats / (kWinogradPlaces * (p.in_channels + t.block_rows)), kLeastColumns,
                 kMostColumns);
  t.band = std::clamp<std::int64_t>(columns / t.across, 1, t.down);
  t.bands = CeilDiv(t.down, t.band);
  t.band = CeilDiv(t.down, t.bands);
  t.bands = CeilDiv(t.down, t.band);
  t.width = CeilDiv(t.band * t.across, nr) * nr;
  t.line = CeilDiv<std::int64_t>(t.across + 1 + 16 + kGatherSlack, 16) * 16;
  t.product_offset = kWinogradPlaces * p.in_channels * t.width;
  t.stage_offset =
      t.product_offset + kWinogradPlaces * std::min(t.block_rows, p.out_channels) * t.width;
  const std::int64_t floats = t.stage_offset + (2 * t.band + 2) * 2 * t.line;
  t.tiles = images * t.bands * t.row_blocks;
  t.flops_per_tile = 2.0 * kWinogradPlaces * static_cast<double>(p.in_channels) *
                     static_cast<double>(t.block_rows) * static_cast<double>(t.width);
  t.scratch_bytes = static_cast<std::size_t>(floats) * sizeof(float);
  return t;
}

namespace {

// The lines that a band of tiles sees of one channel, split into even and odd columns.
void Stage(const ConvProblem& p, const WinogradTiling& t, const float* plane, std::int64_t band_row,
           std::int64_t tile_rows, float* stage) {
  for (std::int64_t r = 0; r < 2 * tile_rows + 2; ++r) {
    const std::int64_t y = 2 * band_row - p.pad[1] + r;
    for (int odd = 0; odd < 2; ++odd, stage += t.line) {
      if (y < 0 || y >= p.in[1]) {
        std::memset(stage, 0, static_cast<std::size_t>(t.across + 1) * sizeof(float));
      } else {
        CopyLine(plane + y * p.in[2], p.in[2], odd - p.pad[2], 2, t.across + 1, stage);
      }
    }
  }
}

}  // namespace

void RunWinogradTile(const WinogradCall& call, std::int64_t tile, void* scratch) {
  const ConvProblem& p = *call.problem;
  const WinogradTiling& t = *call.tiling;
  const GemmKernel& gemm = *t.gemm;
  const std::int64_t mr = gemm.tile_m, nr = gemm.tile_n, channels = p.in_channels;

  const std::int64_t row_block = tile % t.row_blocks;
  const std::int64_t band = tile / t.row_blocks % t.bands;
  const std::int64_t image = tile / t.row_blocks / t.bands;  // of batch and groups
  const std::int64_t group = image % p.groups;
  const std::int64_t band_row = band * t.band, tile_rows = std::min(t.band, t.down - band_row);
  const std::int64_t row = row_block * t.block_rows;
  const std::int64_t rows = std::min(t.block_rows, p.out_channels - row);
  const std::int64_t used = tile_rows * t.across;  // columns

  // Transformed inputs, as panels of tile_n columns for each place.
  float* const inputs = static_cast<float*>(scratch);
  float* const stage = inputs + t.stage_offset;
  const std::int64_t panel = channels * nr, place = t.width * channels;
  if (used % nr != 0)
    for (int i = 0; i < kWinogradPlaces; ++i)
      std::memset(inputs + i * place + used / nr * panel, 0,
                  static_cast<std::size_t>(panel) * sizeof(float));
  const std::int64_t plane = p.in[1] * p.in[2];
  for (std::int64_t c = 0; c < channels; ++c) {
    Stage(p, t, call.image + (image * channels + c) * plane, band_row, tile_rows, stage);
    for (std::int64_t y = 0; y < tile_rows; ++y) {
      for (std::int64_t x = 0; x < t.across;) {
        const std::int64_t column = y * t.across + x;
        WinogradInputArgs args;
        args.count = std::min(t.across - x, nr - column % nr);  // to the end of the panel
        for (int r = 0; r < 4; ++r) {
          args.even[r] = stage + (2 * (2 * y + r)) * t.line + x;
          args.odd[r] = args.even[r] + t.line;
        }
        args.out = inputs + column / nr * panel + c * nr + column % nr;
        args.place_stride = place;
        t.kernel->input(args);
        x += args.count;
      }
    }
  }

  // One matrix product for each place.
  float* const products = inputs + t.product_offset;
  const std::int64_t weights_place = PackedASize(gemm, p.out_channels, channels);
  const std::int64_t product_place = std::min(t.block_rows, p.out_channels) * t.width;
  const float* weights = call.weights + group * kWinogradPlaces * weights_place;
  const Epilogue none;
  GemmArgs args;
  args.a_row_stride = 1;
  args.a_k_stride = mr;
  args.b_stride = nr;
  args.b_is_panel = true;
  args.c_stride = t.width;
  args.epilogue = &none;
  for (int i = 0; i < kWinogradPlaces; ++i)
    for (std::int64_t k = 0; k < channels; k += gemm.kc) {
      args.k = std::min<std::int64_t>(gemm.kc, channels - k);
      args.first = k == 0;
      args.last = k + args.k == channels;
      for (std::int64_t column = 0; column < used; column += nr) {
        args.cols = static_cast<int>(std::min(nr, used - column));
        args.b = inputs + i * place + column / nr * panel + k * nr;
        for (std::int64_t r = 0; r < rows; r += mr) {
          args.rows = static_cast<int>(std::min(mr, rows - r));
          args.a = weights + i * weights_place + (row + r) * channels + k * mr;
          args.c = products + i * product_place + r * t.width + column;
          gemm.run(args);
        }
      }
    }

  const std::int64_t out_plane = p.out[1] * p.out[2];
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t channel = group * p.out_channels + row + r;
    float* const out = call.out + (image * p.out_channels + row + r) * out_plane;
    WinogradOutputArgs o;
    o.place_stride = product_place;
    o.count = t.across;
    o.out_stride = p.out[2];
    o.columns = p.out[2];
    o.bias = 0;
    if (call.epilogue.row_bias != nullptr) {
      std::memcpy(&o.bias, call.epilogue.row_bias + channel, sizeof o.bias);  // any alignment
      o.bias *= call.epilogue.bias_scale;
    }
    o.epilogue = &call.epilogue;
    for (std::int64_t y = 0; y < tile_rows; ++y) {
      const std::int64_t line = 2 * (band_row + y);
      o.in = products + r * t.width + y * t.across;
      o.out = out + line * p.out[2];
      o.rows = std::min<std::int64_t>(2, p.out[1] - line);
      o.residual =
          call.epilogue.residual == nullptr ? nullptr : call.epilogue.residual + (o.out - call.out);
      t.kernel->output(o);
    }
  }
}

}  // namespace npurt::kernels
