// Channels-last Winograd: float32 3x3 convolution of stride 1 with 2.25 times fewer multiplications.
//
// The same mathematics as kernels/winograd, F(2x2, 3x3), with channels as lanes: a tile's 4x4 pixels
// are transformed a vector of channels at a time, 16 matrix products of (tiles x channels) by
// (channels x output channels) follow, and output pixels are written where they belong. No line is
// staged: a pixel outside the image is a row of zeros.
//
// Image and output are [batch, height, width, channels], dense, one group. Thread safety: pure
// functions on what they are given; tiles are independent.
#ifndef NPURT_KERNELS_CHANNELS_LAST_WINOGRAD_H_
#define NPURT_KERNELS_CHANNELS_LAST_WINOGRAD_H_

#include <cstddef>
#include <cstdint>

#include "kernels/activation.h"

namespace npurt::kernels {

struct ConvProblem;
struct GemmKernel;

// One tile, all channels.
struct WinogradLastInputArgs {
  const float* pixels[16];  // row by row
  std::int64_t channels;
  float* out;  // place p at out + p * place_stride
  std::int64_t place_stride;
};

// One tile, `channels` output channels.
struct WinogradLastOutputArgs {
  const float* in;  // place p at in + p * place_stride
  std::int64_t place_stride;
  std::int64_t channels;
  float* out[4];            // pixels row by row; null: outside
  const float* residual[4];  // null, or as `out`
  const float* bias;         // null, or one per channel
  const Epilogue* epilogue;  // bias_scale, residual_scale and activation; the rest is not read
};

struct WinogradLastKernel {
  const char* name;
  void (*input)(const WinogradLastInputArgs& args);
  void (*output)(const WinogradLastOutputArgs& args);
  std::uint32_t needs;  // an IsaSet
};

#define NPURT_WINOGRAD_LAST(isa_set, name)              \
  void name##_input(const WinogradLastInputArgs& args); \
  void name##_output(const WinogradLastOutputArgs& args);
#include "kernels/channels_last/winograd.inc"
#undef NPURT_WINOGRAD_LAST

extern const WinogradLastKernel kWinogradLastKernels[];
extern const int kWinogradLastKernelCount;

// The best kernel that `allowed` (an IsaSet) admits; never null.
const WinogradLastKernel* SelectWinogradLastKernel(std::uint32_t allowed);

// Floats of the packed weights; 0 if that does not fit an int64. `plain` of the packing has room for
// out_channels * in_channels floats.
std::int64_t PackedWinogradLastSize(const GemmKernel& gemm, const ConvProblem& problem);
void PackWinogradLastWeights(const GemmKernel& gemm, const ConvProblem& problem,
                             const float* weights, float* plain, float* packed);

struct WinogradLastTiling {
  const WinogradLastKernel* kernel = nullptr;
  const GemmKernel* gemm = nullptr;
  std::int64_t tiles = 0;
  double flops_per_tile = 0;
  std::size_t scratch_bytes = 0;  // per participant, 64-byte aligned
  // For RunWinogradLastTile.
  std::int64_t across = 0, down = 0;         // 2x2 tiles of an image
  std::int64_t band = 0, bands = 0;          // rows of them that one block has
  std::int64_t block_cols = 0, col_blocks = 0;         // output channels
  std::int64_t product_offset = 0, zeros_offset = 0;  // in the scratch, in floats
};

// REQUIRES: WinogradSuits(problem), one group. tiles = -1 if sizes overflow.
WinogradLastTiling PlanWinogradLast(const ConvProblem& problem, const WinogradLastKernel& kernel,
                                    const GemmKernel& gemm);

struct WinogradLastCall {
  const ConvProblem* problem;
  const WinogradLastTiling* tiling;
  const float* image;
  const float* weights;  // packed
  float* out;
  Epilogue epilogue;  // column_bias: one per output channel; residual: of the output's shape
};

// Computes tile `tile` of 0 … tiles-1.
void RunWinogradLastTile(const WinogradLastCall& call, std::int64_t tile, void* scratch);

}  // namespace npurt::kernels

#endif  // NPURT_KERNELS_CHANNELS_LAST_WINOGRAD_H_
