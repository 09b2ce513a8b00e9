// Intconv: convolutions of bytes with exact int32 sums, 1-D to 3-D, in groups, as products of words.
//
// The idea: output channels are the rows of a product, pixels its columns, and k runs in words. A
// word's parts are either channels of one pixel or, where a group has few channels, neighbouring taps
// of a line; either way the image becomes an image of words (with its padding, a tile's part at a
// time), and the rows of the right operand are copies of runs of words, as those of floats are in the
// float32 convolution. Sizes and phases are its, with words for floats.
//
// Memory: nothing is allocated here. Thread safety: pure functions on what they are given; tiles are
// independent.
#ifndef NPURT_KERNELS_INTCONV_INTCONV_H_
#define NPURT_KERNELS_INTCONV_INTCONV_H_

#include <cstddef>
#include <cstdint>

#include "kernels/conv/conv.h"
#include "kernels/intgemm/intgemm.h"

namespace npurt::kernels {

struct IntConvProblem {
  ConvProblem shape;  // not transposed
  bool x_signed = false, w_signed = true;
};

// Bytes of packed weights of all groups and, per output channel, int32 the sum of (w - zero). 0 if a
// size does not fit an int64. Sizes of image and batch play no part.
std::int64_t PackedIntConvWeightsSize(const IntGemmKernel& kernel, const IntConvProblem& problem);
// `zero`: one per output channel of all groups (step 1), or one (step 0), or null. `row` is a buffer of
// IntConvRowSize bytes.
std::int64_t IntConvRowSize(const IntGemmKernel& kernel, const IntConvProblem& problem);
void PackIntConvWeights(const IntGemmKernel& kernel, const IntConvProblem& problem,
                        const void* weights, const std::int32_t* zero, int zero_step, void* row,
                        void* packed);

struct IntConvTiling {
  const IntGemmKernel* kernel = nullptr;
  std::int64_t tiles = 0;  // -1: sizes overflow, or taps lie too far apart
  double flops_per_tile = 0;
  std::size_t scratch_bytes = 0;
  // For RunIntConvTile.
  ConvProblem words;  // the problem with words for floats
  bool along_line = false;
  std::int64_t tile_rows = 0, tiles_m = 0, tile_pixels = 0, tiles_n = 0;
  std::int64_t channels_at_once = 0;
  std::int64_t line_offset = 0, stage_offset = 0, strip_offset = 0, array_offset = 0;  // in words
};
IntConvTiling PlanIntConv(const IntConvProblem& problem, const IntGemmKernel& kernel);

struct IntConvCall {
  const IntConvProblem* problem;
  const IntConvTiling* tiling;
  const void* image;
  const void* weights;  // packed
  std::int32_t x_zero;
  const std::int32_t* w_zero;  // one per output channel of all groups, or one, or null
  int w_zero_step;
  void* out;             // bytes or int32
  IntEpilogue epilogue;  // row arrays have an element per output channel of all groups; no columns
};
void RunIntConvTile(const IntConvCall& call, std::int64_t tile, void* scratch);

}  // namespace npurt::kernels

#endif  // NPURT_KERNELS_INTCONV_INTCONV_H_
