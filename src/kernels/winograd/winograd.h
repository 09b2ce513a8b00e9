// Winograd: float32 3x3 convolution of stride 1 with 2.25 times fewer multiplications.
//
// The idea: outputs are cut into tiles of 2x2, each of which sees 4x4 inputs. Transformed, the
// convolution of a tile is 16 products, one per place, summed over channels: 16 matrix products of
// (output channels x channels) by (channels x tiles), for which the matrix kernels serve. Weights
// are transformed and packed once. Source: Lavin and Gray, "Fast algorithms for convolutional
// neural networks", 2015, F(2x2, 3x3); its transforms add and halve only, so that it rounds little
// more than a plain sum does.
//
// Thread safety: pure functions on what they are given; tiles are independent.
#ifndef NPURT_KERNELS_WINOGRAD_WINOGRAD_H_
#define NPURT_KERNELS_WINOGRAD_WINOGRAD_H_

#include <cstddef>
#include <cstdint>

#include "kernels/activation.h"

namespace npurt::kernels {

struct ConvProblem;
struct GemmKernel;

inline constexpr int kWinogradPlaces = 16;  // of a transformed 4x4 tile, row by row

// `count` tiles of a row, one channel. Line r of the tile's inputs lies split into even and odd
// columns; up to 16 floats beyond count + 1 may be read.
struct WinogradInputArgs {
  const float* even[4];
  const float* odd[4];
  std::int64_t count;
  float* out;  // place p at out + p * place_stride
  std::int64_t place_stride;
};

// `count` tiles of a row, one output channel: 2 rows of `columns` outputs (at most 2 * count).
struct WinogradOutputArgs {
  const float* in;  // place p at in + p * place_stride
  std::int64_t place_stride;
  std::int64_t count;
  float* out;
  std::int64_t out_stride;
  std::int64_t rows, columns;  // rows: 1 or 2
  float bias;
  const float* residual;     // null, or laid out as `out`
  const Epilogue* epilogue;  // residual_scale and activation; the rest is not read
};

struct WinogradKernel {
  const char* name;
  void (*input)(const WinogradInputArgs& args);
  void (*output)(const WinogradOutputArgs& args);
  std::uint32_t needs;  // an IsaSet
};

#define NPURT_WINOGRAD(isa_set, name)               \
  void name##_input(const WinogradInputArgs& args); \
  void name##_output(const WinogradOutputArgs& args);
#include "kernels/winograd/winograd.inc"
#undef NPURT_WINOGRAD

extern const WinogradKernel kWinogradKernels[];
extern const int kWinogradKernelCount;

// The best kernel that `allowed` (an IsaSet) admits; never null.
const WinogradKernel* SelectWinogradKernel(std::uint32_t allowed);

// Whether these weights are worth it: a function of channels, kernel, stride and dilation, not of
// the image.
bool WinogradSuits(const ConvProblem& problem);

// One place of `pairs` transformed 3x3 kernels.
void TransformWinogradWeights(int place, std::int64_t pairs, const float* weights, float* plain);

// Floats of the packed weights; 0 if that does not fit an int64.
std::int64_t PackedWinogradSize(const GemmKernel& gemm, const ConvProblem& problem);
// `plain` has room for out_channels * in_channels floats.
void PackWinogradWeights(const GemmKernel& gemm, const ConvProblem& problem, const float* weights,
                         float* plain, float* packed);

struct WinogradTiling {
  const WinogradKernel* kernel = nullptr;
  const GemmKernel* gemm = nullptr;
  std::int64_t tiles = 0;
  double flops_per_tile = 0;
  std::size_t scratch_bytes = 0;  // per participant, 64-byte aligned
  // For RunWinogradTile.
  std::int64_t across = 0, down = 0;  // 2x2 tiles of an image
  std::int64_t band = 0, bands = 0;   // rows of them that one block has
  std::int64_t width = 0;             // columns of a block, a multiple of the gemm's tile_n
  std::int64_t block_rows = 0, row_blocks = 0;        // output channels
  std::int64_t line = 0;                              // floats of a staged half line
  std::int64_t product_offset = 0, stage_offset = 0;  // in the scratch, in floats
};

// REQUIRES: WinogradSuits(problem). tiles = -1 if sizes overflow.
WinogradTiling PlanWinograd(const ConvProblem& problem, const WinogradKernel& kernel,
                            const GemmKernel& gemm);

struct WinogradCall {
  const ConvProblem* problem;
  const WinogradTiling* tiling;
  const float* image;
  const float* weights;  // packed
  float* out;
  Epilogue
      epilogue;  // row_bias: one per output channel of all groups; residual: of the output's shape
};

// Computes tile `tile` of 0 … tiles-1.
void RunWinogradTile(const WinogradCall& call, std::int64_t tile, void* scratch);

}  // namespace npurt::kernels

#endif  // NPURT_KERNELS_WINOGRAD_WINOGRAD_H_
