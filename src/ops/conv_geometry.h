// ConvGeometry: the sizes of a convolution, from shapes and attributes, symbolic and concrete.
//
// The idea: Conv and ConvTranspose describe the same relation, out * stride - pad + tap * dilation
// = in, read in opposite directions. "Wide" is the side that is padded: the input of Conv, the
// output of ConvTranspose.
//
// Thread safety: pure functions.
#ifndef NPURT_OPS_CONV_GEOMETRY_H_
#define NPURT_OPS_CONV_GEOMETRY_H_

#include <algorithm>
#include <cstdint>

#include "kernels/conv/conv.h"
#include "ops/epilogue.h"
#include "ops/op_def.h"

namespace npurt::ops {

struct ConvGeometry {
  std::int64_t batch, groups, in_channels, out_channels;  // channels of one group
  Dims in, out, kernel;                                   // spatial
  Dims stride, dilation, pad;                             // pad at the beginning
};

// Whether the node's images have their channels last: attribute data_format, "NCHW" or "NHWC" for any
// number of spatial dimensions. Weights keep their order. Set by the layout pass.
bool ChannelsLast(const Attributes& attributes);
// The dimensions of an image in the order NC..., and back.
template <typename T>
T ChannelsFirstOf(T dims, bool channels_last) {
  if (channels_last) std::rotate(dims.begin() + 1, dims.end() - 1, dims.end());
  return dims;
}
template <typename T>
T ChannelsLastOf(T dims, bool channels_last) {
  if (channels_last) std::rotate(dims.begin() + 1, dims.begin() + 2, dims.end());
  return dims;
}

// Checks attributes and shapes and sets the output. `bias` is the input with the bias.
absl::Status InferConv(InferContext& context, bool transposed, int bias = 2);

// Sizes for concrete dimensions, checked again: symbols are numbers now. The output's dimensions
// are what inference said.
absl::StatusOr<ConvGeometry> ConvGeometryOf(const Attributes& attributes, bool transposed,
                                            absl::Span<const std::int64_t> x,
                                            absl::Span<const std::int64_t> w,
                                            absl::Span<const std::int64_t> out);

// What weights and attributes tell without an image: of one batch, one pixel and no padding. Packing needs
// no more. REQUIRES: the groups divide the output channels.
ConvGeometry WeightsGeometry(const Attributes& attributes, absl::Span<const std::int64_t> w);

// The kernel's form of it. False if there are more than three spatial dimensions.
bool ToConvProblem(const ConvGeometry& geometry, bool transposed, kernels::ConvProblem* problem);

// Errors unless a bias (-1: absent) has one element per output channel.
absl::Status CheckConvBias(const ConvGeometry& geometry, std::int64_t bias);

}  // namespace npurt::ops

#endif  // NPURT_OPS_CONV_GEOMETRY_H_
