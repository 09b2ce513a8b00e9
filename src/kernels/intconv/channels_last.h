// Channels-last convolution of bytes with exact int32 sums, 1-D and 2-D.
//
// The idea: pixels are the rows of a matrix product, output channels its columns, and k runs over (tap,
// channel). Where a pixel's channels lie side by side, a row is a few runs of the image: one tap of stride
// 1 is a product with the image itself, otherwise a tile's rows are copied together, with zero points for
// what lies outside. One row serves all output channels, so the copies cost little.
//
// Tensors are dense: image and output [batch, height, width, channels], weights as ONNX has them. One
// group. Memory: nothing is allocated here, no byte outside the operands is read or written. Thread
// safety: pure functions on what they are given; tiles are independent.
#ifndef NPURT_KERNELS_INTCONV_CHANNELS_LAST_H_
#define NPURT_KERNELS_INTCONV_CHANNELS_LAST_H_

#include "kernels/intconv/intconv.h"

namespace npurt::kernels {

// Bytes of the packed weights; 0 if that does not fit an int64. Sizes of image and batch play no part.
std::int64_t PackedIntChannelsLastSize(const IntGemmKernel& kernel, const IntConvProblem& problem);
// `turned` has room for all weights. `zero`: one per output channel.
void PackIntChannelsLast(const IntGemmKernel& kernel, const IntConvProblem& problem,
                         const void* weights, const std::int32_t* zero, std::uint8_t* turned,
                         void* packed);

struct IntChannelsLastTiling {
  IntGemmProblem product;
  IntGemmTiling tiling;
};
// tiling.tiles = -1 if sizes overflow, or for more than one group or two dimensions.
IntChannelsLastTiling PlanIntChannelsLast(const IntConvProblem& problem, const IntGemmKernel& kernel);

struct IntChannelsLastCall {
  const IntConvProblem* problem;
  const IntChannelsLastTiling* tiling;
  const void* image;
  const void* weights;         // packed
  const void* x_zero;          // a byte like those of the image, or null
  const std::int32_t* w_zero;  // one per output channel
  void* out;                   // bytes or int32
  IntEpilogue epilogue;        // columns are output channels; one_row_scale
};
void RunIntChannelsLastTile(const IntChannelsLastCall& call, std::int64_t tile, void* scratch);

}  // namespace npurt::kernels

#endif  // NPURT_KERNELS_INTCONV_CHANNELS_LAST_H_
