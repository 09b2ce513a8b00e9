// Softmax and log-softmax of float32 along one axis.
//
// out = e^(x - max) / sum, or (x - max) - log(sum): subtracting the largest element first keeps every
// exponential at most 1, so that nothing overflows; elements of -Inf beside a finite one give 0. A
// tensor is seen as outer x n x inner. For inner = 1 a row is walked with vectors; else the vectors lie
// across `inner`. Lines so long that a run must be able to stop within one are walked in pieces: the
// folds of kernels/reduce for maximum and sum, then `finish`.
//
// Thread safety: pure functions; the bits depend on the shape and the instruction set only.
#ifndef NPURT_KERNELS_SOFTMAX_SOFTMAX_H_
#define NPURT_KERNELS_SOFTMAX_SOFTMAX_H_

#include <cstddef>
#include <cstdint>

#include "kernels/reduce/reduce.h"
#include "kernels/stop_check.h"

namespace npurt {
using IsaSet = std::uint32_t;  // base/cpu_isa.h, which files of one instruction set do not include
}

namespace npurt::kernels {

// `count` lines of `n` elements. Line i starts at element i * line_stride; its elements are
// `stride` apart. Rows kernels want stride 1, columns kernels line_stride 1. `out` may be `in`.
struct SoftmaxArgs {
  const float* in;
  float* out;
  std::size_t count, n, line_stride, stride;
  bool log;
};

// Elements of lines whose maximum and sum are known: e^(x - max[c]) * by[c], or x - max[c] - by[c].
// Row i and column c of the piece stand at i * stride + c; a piece of a row has one row and one max.
struct SoftmaxPieceArgs {
  const float* in;
  float* out;
  const float* max;
  const float* by;
  std::size_t rows, columns, stride;
  bool log, one_line;
};

struct SoftmaxKernel {
  const char* name;
  void (*rows)(const SoftmaxArgs& args);
  void (*columns)(const SoftmaxArgs& args);
  void (*finish)(const SoftmaxPieceArgs& args);
  IsaSet needs;
};

#define NPURT_SOFTMAX(isa_set, set)                 \
  void softmax_rows_f32_##set(const SoftmaxArgs& args); \
  void softmax_columns_f32_##set(const SoftmaxArgs& args); \
  void softmax_finish_f32_##set(const SoftmaxPieceArgs& args);
#include "kernels/softmax/softmax.inc"
#undef NPURT_SOFTMAX

extern const SoftmaxKernel kSoftmaxKernels[];
extern const std::size_t kSoftmaxKernelCount;
// The best kernel that `allowed` offers.
const SoftmaxKernel& SelectSoftmax(IsaSet allowed);

struct SoftmaxPlan {
  std::int64_t outer = 0, n = 0, inner = 0;
  std::int64_t tiles = 0;
  std::int64_t lines_per_tile = 0;  // inner = 1: rows; else columns of one outer index
  std::int64_t blocks = 1;          // inner > 1: tiles of one outer index
  std::int64_t tile_cost = 0;       // elements times about ten
};

SoftmaxPlan PlanSoftmax(std::int64_t outer, std::int64_t n, std::int64_t inner);
void RunSoftmaxTile(const SoftmaxKernel& kernel, const ReduceKernel& folds,
                    const SoftmaxPlan& plan, const float* in, float* out, bool log,
                    std::int64_t tile, const StopCheck& check = {});

}  // namespace npurt::kernels

#endif  // NPURT_KERNELS_SOFTMAX_SOFTMAX_H_
