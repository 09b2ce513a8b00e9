// Depthwise: float32 convolution for groups of few output channels (1-D and 2-D): above all one
// input and one output channel each, but any that are too few for a matrix product to pay.
//
// The idea: a band of the input channels of a group is put into scratch with its padding, split by
// x modulo the stride (see ConvStage), where every tap of every channel is a plain vector load;
// eight sums at a time stay in registers over all taps.
//
// Thread safety: pure functions on what they are given; tiles are independent.
#ifndef NPURT_KERNELS_DEPTHWISE_DEPTHWISE_H_
#define NPURT_KERNELS_DEPTHWISE_DEPTHWISE_H_

#include <cstddef>
#include <cstdint>

#include "kernels/activation.h"

namespace npurt::kernels {

struct ConvProblem;

// rows x cols outputs of one channel. Reads of a row may run over its end by up to 16 floats.
struct DepthwiseArgs {
  const float* in;
  std::int64_t in_stride;           // floats between what two output rows see
  const std::int64_t* tap_offsets;  // in floats, from an output's place in `in`
  const float* weights;
  std::int64_t taps;  // of all input channels
  float* out;
  std::int64_t out_stride;
  std::int64_t rows, cols;
  float bias;
  const Epilogue* epilogue;  // residual, activation; the rest is not read
};

using DepthwiseFn = void (*)(const DepthwiseArgs& args);

struct DepthwiseKernel {
  const char* name;
  DepthwiseFn run;
  std::uint32_t needs;  // an IsaSet
  int lanes;
};

#define NPURT_DEPTHWISE(isa_set, name, lanes) void name(const DepthwiseArgs& args);
#include "kernels/depthwise/depthwise.inc"
#undef NPURT_DEPTHWISE

extern const DepthwiseKernel kDepthwiseKernels[];
extern const int kDepthwiseKernelCount;

// The best kernel that `allowed` (an IsaSet) admits; never null.
const DepthwiseKernel* SelectDepthwiseKernel(std::uint32_t allowed);

struct DepthwiseTiling {
  const DepthwiseKernel* kernel = nullptr;
  std::int64_t tiles = 0;
  double flops_per_tile = 0;
  std::size_t scratch_bytes = 0;  // per participant, 64-byte aligned
  // For RunDepthwiseTile.
  std::int64_t tile_planes = 0, tile_rows = 0, bands = 0;
};

// tiles is -1 if this formulation does not suit (transposed, three dimensions, sizes that overflow,
// taps too far apart or too many): use PlanConv.
DepthwiseTiling PlanDepthwise(const ConvProblem& problem, const DepthwiseKernel& kernel);

struct DepthwiseCall {
  const ConvProblem* problem;
  const DepthwiseTiling* tiling;
  const float* image;
  const float* weights;  // as ONNX has them
  float* out;
  Epilogue epilogue;  // row_bias: per output channel; residual: of the output's shape; activation
};

// Computes tile `tile` of 0 … tiles-1.
void RunDepthwiseTile(const DepthwiseCall& call, std::int64_t tile, void* scratch);

}  // namespace npurt::kernels

#endif  // NPURT_KERNELS_DEPTHWISE_DEPTHWISE_H_
