// Channels-last depthwise convolution of bytes: 1-D and 2-D, one input and one output channel per group.
//
// The idea: as in channels_last/depthwise.h channels are the lanes; bytes are widened as they are loaded.
// Taps outside the image read a row of zero points, so that one correction per channel, made of the sum
// of its weights, takes the zero point away for all pixels.
//
// Memory: nothing is allocated here, no byte outside the operands is read or written. Thread safety: pure
// functions on what they are given; tiles are independent.
#ifndef NPURT_KERNELS_INTCONV_DEPTHWISE_LAST_H_
#define NPURT_KERNELS_INTCONV_DEPTHWISE_LAST_H_

#include <cstddef>
#include <cstdint>

#include "kernels/intgemm/intgemm.h"

namespace npurt::kernels {

struct IntConvProblem;

// `pixels` outputs side by side, all channels.
struct IntDepthwiseArgs {
  const unsigned char* const* in;  // per tap: channel 0 of what output 0 sees
  const std::int64_t* in_steps;    // per tap: bytes from there to what output 1 sees
  std::int64_t taps;
  bool is_signed;               // the bytes of the image
  const Word* weights;          // [taps][channels]: int16 weights less their zero points
  const std::int32_t* first;    // per channel: added to the sum
  const double* column_bias;    // per channel: see IntEpilogue
  const double* column_scale;
  std::int32_t zero, low, high;
  std::int64_t channels, pixels;
  unsigned char* out;
};

struct IntDepthwiseKernel {
  const char* name;
  void (*run)(const IntDepthwiseArgs& args);
  std::uint32_t needs;  // an IsaSet
};

#define NPURT_INT_DEPTHWISE_LAST(isa_set, name) void name(const IntDepthwiseArgs& args);
#include "kernels/intconv/depthwise_last.inc"
#undef NPURT_INT_DEPTHWISE_LAST

extern const IntDepthwiseKernel kIntDepthwiseKernels[];
extern const int kIntDepthwiseKernelCount;
// The best that `allowed` (an IsaSet) admits; never null.
const IntDepthwiseKernel* SelectIntDepthwiseKernel(std::uint32_t allowed);

inline constexpr std::int64_t kMostIntDepthwiseTaps = 256;

// Words, then the sum of the weights of each channel. `taps` is at most kMostIntDepthwiseTaps.
std::int64_t PackedIntDepthwiseSize(std::int64_t channels, std::int64_t taps);
// [channels, 1, taps]; `zero`: one per channel.
void PackIntDepthwise(std::int64_t channels, std::int64_t taps, bool is_signed, const void* weights,
                      const std::int32_t* zero, void* packed);

struct IntDepthwiseTiling {
  const IntDepthwiseKernel* kernel = nullptr;
  std::int64_t tiles = 0;
  double flops_per_tile = 0;
  std::size_t scratch_bytes = 0;
  std::int64_t tile_lines = 0, bands = 0;  // output lines of a tile; tiles of an image
};
// tiles is -1 if this formulation does not suit: several channels in a group, three dimensions, too
// many taps, sizes that overflow.
IntDepthwiseTiling PlanIntDepthwise(const IntConvProblem& problem, const IntDepthwiseKernel& kernel);

struct IntDepthwiseCall {
  const IntConvProblem* problem;
  const IntDepthwiseTiling* tiling;
  const void* image;
  const void* weights;  // packed
  std::int32_t x_zero;
  void* out;
  IntEpilogue epilogue;  // to_bytes, column_add, column_bias, column_scale, zero, low, high
};
void RunIntDepthwiseTile(const IntDepthwiseCall& call, std::int64_t tile, void* scratch);

}  // namespace npurt::kernels

#endif  // NPURT_KERNELS_INTCONV_DEPTHWISE_LAST_H_
