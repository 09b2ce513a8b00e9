// Channels-last convolution: float32, 1-D and 2-D, one group, as matrix products without a gather.
//
// The idea: where a pixel's channels lie side by side, a row of taps is one run of memory, so the
// image itself is the left operand of the matrix kernels: pixels are rows, a window's lines are
// segments of k, the packed weights are the right operand. Only images with padding are copied, a
// band of lines at a time, so that no pixel has to ask whether it is at the edge. One tap of stride
// 1 is a plain matrix product of all pixels.
//
// Tensors are dense: image and output [batch, height, width, channels], weights as ONNX has them,
// [out, in, kernel...]. Sums are split alike on every instruction set. Thread safety: pure
// functions on what they are given; tiles are independent.
#ifndef NPURT_KERNELS_CHANNELS_LAST_CONV_H_
#define NPURT_KERNELS_CHANNELS_LAST_CONV_H_

#include "kernels/conv/conv.h"

namespace npurt::kernels {

// Floats of the packed weights; 0 if that does not fit an int64. `row` of the packing holds
// ConvWeightsScratchSize floats.
std::int64_t PackedChannelsLastSize(const GemmKernel& kernel, const ConvProblem& problem);
void PackChannelsLastWeights(const GemmKernel& kernel, const ConvProblem& problem,
                             const float* weights, float* row, float* packed);

struct ChannelsLastTiling {
  const GemmKernel* kernel = nullptr;
  std::int64_t tiles = 0;
  double flops_per_tile = 0;
  std::size_t scratch_bytes = 0;  // per participant, 64-byte aligned
  // For RunChannelsLastTile.
  bool flat = false;  // a matrix product of all pixels
  GemmProblem product;
  GemmTiling product_tiling;
  std::int64_t band = 0, bands = 0;       // output lines of a tile
  std::int64_t cols = 0, tiles_n = 0;     // output channels of a tile
  bool staged = false;                    // lines are copied with their padding
  std::int64_t line = 0;                  // floats from one line to the next, as they are read
  // k is outer x segments x run; a block of k has whole runs or a part of one.
  std::int64_t outer = 0, segments = 0, run = 0, segment_block = 0, run_block = 0;
};

// Sizes whose products overflow an int64, groups, and three dimensions give a tiling with tiles = -1.
ChannelsLastTiling PlanChannelsLast(const ConvProblem& problem, const GemmKernel& kernel);

struct ChannelsLastCall {
  const ConvProblem* problem;
  const ChannelsLastTiling* tiling;
  const float* image;
  const float* weights;  // packed
  float* out;
  // column_bias has one value per output channel, residual the shape of the output (its stride is not
  // read). No row_bias.
  Epilogue epilogue;
};

// Computes tile `tile` of 0 … tiles-1.
void RunChannelsLastTile(const ChannelsLastCall& call, std::int64_t tile, void* scratch);

}  // namespace npurt::kernels

#endif  // NPURT_KERNELS_CHANNELS_LAST_CONV_H_
