// Channels-last Winograd: the table of kernels, the plan and the tile driver. See winograd.h.
#include "kernels/channels_last/winograd.h"

#include <algorithm>
#include <cstring>

#include "base/checked_math.h"
#include "base/cpu_isa.h"
#include "kernels/conv/conv.h"
#include "kernels/winograd/winograd.h"

namespace npurt::kernels {

const WinogradLastKernel kWinogradLastKernels[] = {
#define NPURT_WINOGRAD_LAST(isa_set, name) {#name, name##_input, name##_output, isa_set},
#include "kernels/channels_last/winograd.inc"
#undef NPURT_WINOGRAD_LAST
};
const int kWinogradLastKernelCount =
    static_cast<int>(sizeof kWinogradLastKernels / sizeof kWinogradLastKernels[0]);

const WinogradLastKernel* SelectWinogradLastKernel(std::uint32_t allowed) {
  const WinogradLastKernel* kernel = kWinogradLastKernels;
  while (!HasAll(allowed, kernel->needs)) ++kernel;  // the last one needs nothing
  return kernel;
}

std::int64_t PackedWinogradLastSize(const GemmKernel& gemm, const ConvProblem& p) {
  std::int64_t size = PackedBSize(gemm, p.in_channels, p.out_channels);
  return CheckedMul(size, std::int64_t{kWinogradPlaces}, &size) ? size : 0;
}

void PackWinogradLastWeights(const GemmKernel& gemm, const ConvProblem& p, const float* weights,
                             float* plain, float* packed) {
  for (int place = 0; place < kWinogradPlaces; ++place) {
    TransformWinogradWeights(place, p.out_channels * p.in_channels, weights, plain);
    PackB(gemm, p.in_channels, p.out_channels, plain, 1, p.in_channels, 1.0f, packed);
    packed += PackedBSize(gemm, p.in_channels, p.out_channels);
  }
}

WinogradLastTiling PlanWinogradLast(const ConvProblem& p, const WinogradLastKernel& kernel,
                                    const GemmKernel& gemm) {
  WinogradLastTiling t;
  t.kernel = &kernel;
  t.gemm = &gemm;
  if (!ConvSizesFit(p)) {
    t.tiles = -1;
    return t;
  }
  if (p.batch * p.out_channels * p.out[1] * p.out[2] == 0) return t;
  t.across = CeilDiv<std::int64_t>(p.out[2], 2);
  t.down = CeilDiv<std::int64_t>(p.out[1], 2);
  // As in PlanWinograd: weights of a block are read once for all tiles of a block.
  constexpr std::int64_t kMostCols = 128, kMostFloats = 256 << 10, kLeastRows = 96, kMostRows = 256;
  t.col_blocks = CeilDiv(p.out_channels, kMostCols);
  t.block_cols = CeilDiv(CeilDiv(p.out_channels, t.col_blocks), gemm.tile_n) * gemm.tile_n;
  t.col_blocks = CeilDiv(p.out_channels, t.block_cols);
  const std::int64_t rows =
      std::clamp(kMostFloats / (kWinogradPlaces * (p.in_channels + t.block_cols)), kLeastRows, kMostRows);
  t.band = std::clamp<std::int64_t>(rows / t.across, 1, t.down);
  t.bands = CeilDiv(t.down, t.band);
  t.band = CeilDiv(t.down, t.bands);
  t.bands = CeilDiv(t.down, t.band);
  const std::int64_t tiles = t.band * t.across;
  t.product_offset = kWinogradPlaces * tiles * p.in_channels;
  t.zeros_offset = t.product_offset + kWinogradPlaces * tiles * std::min(t.block_cols, p.out_channels);
  t.tiles = p.batch * t.bands * t.col_blocks;
  t.flops_per_tile = 2.0 * kWinogradPlaces * static_cast<double>(p.in_channels) *
                     static_cast<double>(t.block_cols) * static_cast<double>(tiles);
  t.scratch_bytes = static_cast<std::size_t>(t.zeros_offset + p.in_channels) * sizeof(float);
  return t;
}

void RunWinogradLastTile(const WinogradLastCall& call, std::int64_t tile, void* scratch) {
  const ConvProblem& p = *call.problem;
  const WinogradLastTiling& t = *call.tiling;
  const GemmKernel& gemm = *t.gemm;
  const std::int64_t channels = p.in_channels, nr = gemm.tile_n;

  const std::int64_t col = tile % t.col_blocks * t.block_cols;
  const std::int64_t cols = std::min(t.block_cols, p.out_channels - col);
  const std::int64_t first_row = tile / t.col_blocks % t.bands * t.band;
  const std::int64_t n = tile / (t.col_blocks * t.bands);
  const std::int64_t rows = std::min(t.band, t.down - first_row), count = rows * t.across;

  float* const inputs = static_cast<float*>(scratch);
  float* const products = inputs + t.product_offset;
  float* const zeros = inputs + t.zeros_offset;
  std::memset(zeros, 0, static_cast<std::size_t>(channels) * sizeof(float));
  const float* const image = call.image + n * p.in[1] * p.in[2] * channels;
  WinogradLastInputArgs in;
  in.channels = channels;
  in.out = inputs;
  in.place_stride = count * channels;
  for (std::int64_t r = first_row; r < first_row + rows; ++r)
    for (std::int64_t x = 0; x < t.across; ++x, in.out += channels) {
      for (int i = 0; i < 16; ++i) {
        const std::int64_t py = 2 * r - p.pad[1] + i / 4, px = 2 * x - p.pad[2] + i % 4;
        const bool inside = py >= 0 && py < p.in[1] && px >= 0 && px < p.in[2];
        in.pixels[i] = inside ? image + (py * p.in[2] + px) * channels : zeros;
      }
      t.kernel->input(in);
    }

  const std::int64_t weights_place = PackedBSize(gemm, channels, p.out_channels);
  const Epilogue none;
  GemmArgs args;
  args.a_row_stride = channels;
  args.a_k_stride = 1;
  args.b_stride = nr;
  args.b_is_panel = true;
  args.c_stride = cols;
  args.epilogue = &none;
  const std::int64_t pieces = CeilDiv<std::int64_t>(count, gemm.tile_m);
  const std::int64_t piece = CeilDiv(count, pieces);  // even shares
  for (int i = 0; i < kWinogradPlaces; ++i)
    for (std::int64_t k = 0; k < channels; k += gemm.kc) {
      args.k = std::min<std::int64_t>(gemm.kc, channels - k);
      args.first = k == 0;
      args.last = k + args.k == channels;
      for (std::int64_t panel = 0; panel < cols; panel += nr) {
        args.cols = static_cast<int>(std::min(nr, cols - panel));
        args.b = call.weights + i * weights_place + (col + panel) * channels + k * nr;
        for (std::int64_t r = 0; r < count; r += piece) {
          args.rows = static_cast<int>(std::min(piece, count - r));
          args.a = inputs + (i * count + r) * channels + k;
          const bool more = panel + nr < cols;
          args.prefetch =
              PartToPrefetch(gemm, more ? args.b + channels * nr : nullptr, args.k, r / piece);
          args.c = products + (i * count + r) * cols + panel;
          gemm.run(args);
        }
      }
    }

  WinogradLastOutputArgs out;
  out.in = products;
  out.place_stride = count * cols;
  out.channels = cols;
  out.bias = call.epilogue.column_bias == nullptr ? nullptr : call.epilogue.column_bias + col;
  out.epilogue = &call.epilogue;
  for (std::int64_t r = first_row; r < first_row + rows; ++r)
    for (std::int64_t x = 0; x < t.across; ++x, out.in += cols) {
      for (int i = 0; i < 4; ++i) {
        const std::int64_t y = 2 * r + i / 2, px = 2 * x + i % 2;
        const bool inside = y < p.out[1] && px < p.out[2];
        const std::int64_t place = ((n * p.out[1] + y) * p.out[2] + px) * p.out_channels + col;
        out.out[i] = inside ? call.out + place : nullptr;
        out.residual[i] =
            inside && call.epilogue.residual != nullptr ? call.epilogue.residual + place : nullptr;
      }
      t.kernel->output(out);
    }
}

}  // namespace npurt::kernels
