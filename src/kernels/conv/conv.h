// Conv: float32 convolution and transposed convolution, 1-D to 3-D, as matrix products.
//
// The idea: output channels are the rows of a matrix product, pixels its columns, and k runs over
// (input channel, tap). The weights are packed once as the left operand; the right one is gathered
// from the image a block at a time, into scratch that stays in the second-level cache, so no column
// matrix of the whole image ever exists. A transposed convolution of stride s is s (per dimension)
// ordinary ones of stride 1, each with every s-th tap, whose results interleave: these are called
// phases here; an ordinary convolution has one.
//
// Tensors are dense: image [batch, channels, spatial...], weights as ONNX has them, [out, in /
// groups, kernel...] or, transposed, [in, out / groups, kernel...]. Thread safety: pure functions
// on what they are given; tiles are independent.
#ifndef NPURT_KERNELS_CONV_CONV_H_
#define NPURT_KERNELS_CONV_CONV_H_

#include <cstddef>
#include <cstdint>

#include "kernels/gemm/gemm.h"

namespace npurt::kernels {

inline constexpr int kConvRank = 3;

// Lower ranks have leading dimensions of 1 (kernel 1, stride 1, dilation 1, pad 0).
struct ConvProblem {
  bool transposed = false;
  std::int64_t batch = 1, groups = 1;
  std::int64_t in_channels = 1, out_channels = 1;  // of one group
  std::int64_t in[kConvRank] = {1, 1, 1};
  std::int64_t out[kConvRank] = {1, 1, 1};
  std::int64_t kernel[kConvRank] = {1, 1, 1};
  std::int64_t stride[kConvRank] = {1, 1, 1};
  std::int64_t dilation[kConvRank] = {1, 1, 1};
  std::int64_t pad[kConvRank] = {0, 0, 0};  // at the beginning; the end follows from `out`
};

// Whether every size and coordinate fits an int64. The other functions check or rely on it.
bool ConvSizesFit(const ConvProblem& problem);

// Floats of the packed weights; 0 if that does not fit an int64. Sizes of image and batch play no
// part, so weights are packed once whatever the shapes.
std::int64_t PackedConvWeightsSize(const GemmKernel& kernel, const ConvProblem& problem);
// `row` holds a copy of one phase's weights of one group in row-major order: see the size below.
void PackConvWeights(const GemmKernel& kernel, const ConvProblem& problem, const float* weights,
                     float* row, float* packed);
// Floats that `row` needs: out_channels * in_channels * taps.
std::int64_t ConvWeightsScratchSize(const ConvProblem& problem);

struct ConvTiling {
  const GemmKernel* kernel = nullptr;
  std::int64_t tiles = 0;
  double flops_per_tile = 0;
  std::size_t scratch_bytes = 0;  // per participant, 64-byte aligned
  // For RunConvTile.
  std::int64_t phases = 0, tile_rows = 0, tiles_m = 0, tile_pixels = 0, tiles_n = 0;
  std::int64_t k_block = 0;                          // most of k at a time
  std::int64_t block_stride = 0;                     // floats between rows of a transposed result
  std::int64_t line_offset = 0;                      // in the scratch, in floats
  std::int64_t result_offset = 0, stage_offset = 0;  // in the scratch, in floats
  bool staged = false;
};

// Sizes whose products overflow an int64 give a tiling with tiles = -1.
ConvTiling PlanConv(const ConvProblem& problem, const GemmKernel& kernel);

struct ConvCall {
  const ConvProblem* problem;
  const ConvTiling* tiling;
  const float* image;
  const float* weights;  // packed, or plain if !packed (not for transposed ones)
  bool packed;
  float* out;
  // row_bias has one value per output channel of all groups. residual has the shape of the output
  // (its stride is not read; not for transposed ones). No column_bias.
  Epilogue epilogue;
  StopCheck stop = {};
};

// Computes tile `tile` of 0 … tiles-1.
void RunConvTile(const ConvCall& call, std::int64_t tile, void* scratch);

}  // namespace npurt::kernels

#endif  // NPURT_KERNELS_CONV_CONV_H_
