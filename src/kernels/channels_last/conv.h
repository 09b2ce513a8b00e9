// Channels-last convolution: float32, 1-D and 2-D, as matrix products without a gather.
//
// The idea: where a pixel's channels lie side by side, the image itself is the left operand of the
// matrix kernels: pixels are rows, taps are segments of k (side by side they are one), the packed
// weights are the right operand. What lies outside the image is dealt with in one of two ways. Few
// channels: lines are copied with their padding, a band at a time. Many channels: each tap adds to
// the outputs that it reaches, so nothing is copied. One tap of stride 1 is a plain matrix product of
// all pixels.
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
  std::int64_t band = 0, bands = 0;    // output lines of a tile
  std::int64_t cols = 0, tiles_n = 0;  // output channels of a tile, of one group
  bool staged = false;                 // lines are copied with their padding
  bool by_tap = false;                 // each tap on its own
  std::int64_t line = 0;               // floats from one line to the next, as they are read
  // k is segments x run; a block of k has whole runs or a part of one.
  std::int64_t segments = 0, run = 0, segment_block = 0, run_block = 0;
};

// Most taps of a window.
inline constexpr std::int64_t kMostChannelsLastTaps = 1024;

// Sizes whose products overflow an int64, more taps, and three dimensions give a tiling with tiles = -1.
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
