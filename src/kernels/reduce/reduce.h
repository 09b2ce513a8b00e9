// Reductions of float32 over any set of axes: sums, means, extremes, products, norms, log-sum-exp,
// and the position of an extreme.
//
// Neighbouring axes that are all kept or all reduced merge. What remains innermost decides the
// kernel: a reduced axis is walked in rows with vectors and one result per row; a kept axis gives
// columns, vectors of results that walk along the reduced axes together. Sums go block by block, the
// blocks in float, their sums in double (rows) or in a second float (columns): a tree that depends
// on the shape and the instruction set only. Work divides over results, so a reduction to one
// number is one tile.
//
// Thread safety: plans are plain data; tiles may run in any order.
#ifndef NPURT_KERNELS_REDUCE_REDUCE_H_
#define NPURT_KERNELS_REDUCE_REDUCE_H_

#include <cstddef>
#include <cstdint>

#include "kernels/stop_check.h"

namespace npurt {
using IsaSet = std::uint32_t;  // base/cpu_isa.h, which files of one instruction set do not include
}

namespace npurt::kernels {

// What the kernels accumulate; the reductions below are made of these.
enum class Fold : std::uint8_t { kSum, kSumAbs, kSumSquares, kSumExp, kMax, kMin, kProd };
inline constexpr int kFoldCount = 7;

// Folds `n` elements at `in` into *acc. kSumExp sums e^(x - *shift). Max and min pass NaN on.
using FoldRowFn = void (*)(const float* in, std::size_t n, const float* shift, double* acc);
// Folds `rows` rows of `cols` elements, `stride` elements apart, into acc[0 … cols-1]; kSumExp
// takes shift[c] of each column.
using FoldColumnsFn = void (*)(const float* in, std::size_t stride, std::size_t rows,
                               std::size_t cols, const float* shift, float* acc);

struct ReduceKernel {
  const char* name;
  IsaSet needs;
  const FoldRowFn* row;          // by Fold
  const FoldColumnsFn* columns;  // by Fold
};

#define NPURT_REDUCE(isa_set, set)                        \
  extern const FoldRowFn kFoldRows_##set[kFoldCount];     \
  extern const FoldColumnsFn kFoldColumns_##set[kFoldCount];
#include "kernels/reduce/reduce.inc"
#undef NPURT_REDUCE

extern const ReduceKernel kReduceKernels[];
extern const std::size_t kReduceKernelCount;
// The best kernel that `allowed` offers.
const ReduceKernel& SelectReduce(IsaSet allowed);

// A row of any length.
void FoldRow(const ReduceKernel& kernel, Fold fold, const float* in, std::int64_t n,
             const float* shift, double* acc, const StopCheck& check = {});

enum class Reduction : std::uint8_t {
  kSum, kMean, kMax, kMin, kProd, kSumSquares, kL1, kL2, kLogSum, kLogSumExp,
};

inline constexpr int kReduceMaxRank = 16;

struct ReducePlan {
  Reduction op = Reduction::kSum;
  bool rows = true;         // the innermost axis is reduced
  std::int64_t inner = 1;   // its size
  std::int64_t outputs = 0;
  std::int64_t reduced = 1;  // elements that make one result
  // Kept and reduced axes outside the innermost, outermost first, strides in elements.
  int kept_rank = 0, reduced_rank = 0;
  std::int64_t kept_dims[kReduceMaxRank], kept_strides[kReduceMaxRank];
  std::int64_t reduced_dims[kReduceMaxRank], reduced_strides[kReduceMaxRank];
  std::int64_t tiles = 0;
  std::int64_t outputs_per_tile = 1;
  std::int64_t column_blocks = 1;  // !rows: tiles of one outer index
  std::int64_t tile_cost = 0;      // elements read
};

// Plans the reduction of the axes whose bit is set in `axes`. False if rank > kReduceMaxRank.
bool PlanReduce(Reduction op, const std::int64_t* dims, int rank, std::uint32_t axes,
                ReducePlan* plan);
void RunReduceTile(const ReduceKernel& kernel, const ReducePlan& plan, const float* in, float* out,
                   std::int64_t tile, const StopCheck& check = {});

// The first (or last) position of the largest (smallest) of `n` elements; a NaN counts as both.
// Sees the tensor as outer x n x inner, n > 0, and writes outer x inner positions.
struct ArgExtremePlan {
  std::int64_t outer = 0, n = 0, inner = 0;
  std::int64_t tiles = 0, outer_per_tile = 1;
  std::int64_t tile_cost = 0;  // elements read
};
ArgExtremePlan PlanArgExtreme(std::int64_t outer, std::int64_t n, std::int64_t inner);
void RunArgExtremeTile(const ReduceKernel& kernel, const ArgExtremePlan& plan, bool largest,
                       bool last, const float* in, std::int64_t* out, std::int64_t tile,
                       const StopCheck& check = {});

}  // namespace npurt::kernels

#endif  // NPURT_KERNELS_REDUCE_REDUCE_H_
