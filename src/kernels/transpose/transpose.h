// Transpose: copies a tensor so that output axis i is input axis perm[i], for elements of 1, 2, 4, 8 or
// 16 bytes.
//
// Planning drops axes of size 1 and merges axes that stay neighbours, so that what remains is one of
// three shapes: one copy, runs of bytes copied one after the other, or small 2-D transposes (the axis
// that is innermost in the input against the one that is innermost in the output), done in blocks that
// fit a cache line on both sides.
//
// Thread safety: plans are plain data; tiles write disjoint output and may run in any order.
#ifndef NPURT_KERNELS_TRANSPOSE_TRANSPOSE_H_
#define NPURT_KERNELS_TRANSPOSE_TRANSPOSE_H_

#include <cstddef>
#include <cstdint>

namespace npurt {
using IsaSet = std::uint32_t;  // base/cpu_isa.h, which files of one instruction set do not include
}

namespace npurt::kernels {

// out[c * out_stride + r] = in[r * in_stride + c] for r < rows and c < cols; strides in elements.
using TransposeBlockFn = void (*)(const void* in, std::size_t in_stride, void* out,
                                  std::size_t out_stride, std::size_t rows, std::size_t cols);

struct TransposeKernel {
  const char* name;
  TransposeBlockFn run;
  IsaSet needs;
  std::size_t element_bytes;
};

#define NPURT_TRANSPOSE(isa_set, name, bytes)                                                   \
  void name(const void* in, std::size_t in_stride, void* out, std::size_t out_stride,            \
            std::size_t rows, std::size_t cols);
#include "kernels/transpose/transpose.inc"
#undef NPURT_TRANSPOSE

extern const TransposeKernel kTransposeKernels[];
extern const std::size_t kTransposeKernelCount;

inline constexpr int kTransposeMaxRank = 16;

struct TransposePlan {
  enum class Kind { kEmpty, kCopy, kRuns, kPlanes };
  Kind kind = Kind::kEmpty;
  TransposeBlockFn block = nullptr;  // kPlanes
  const char* kernel_name = "copy";
  std::size_t element_bytes = 0;  // after merging; may be larger than the caller's
  std::int64_t run = 1;           // kCopy, kRuns: bytes of one contiguous piece
  std::int64_t rows = 1, cols = 1;            // kPlanes: extents of the plane
  std::int64_t in_row_stride = 0;             // elements between rows in the input
  std::int64_t out_col_stride = 0;            // elements between columns in the output
  int outer_rank = 0;                         // what is left, in output order
  std::int64_t outer_dims[kTransposeMaxRank] = {};
  std::int64_t outer_in_strides[kTransposeMaxRank] = {};   // elements
  std::int64_t outer_out_strides[kTransposeMaxRank] = {};  // elements
  std::int64_t units = 0;           // kCopy: bytes, kRuns: runs, kPlanes: planes x strips x cuts
  std::int64_t strips = 1;          // kPlanes: pieces of one plane
  std::int64_t strip_rows = 0;      // kPlanes: rows of one piece
  std::int64_t cuts = 1;            // kPlanes: parts of one strip ...
  std::int64_t unit_cols = 0;       // ... and their columns
  std::int64_t units_per_tile = 1;
  std::int64_t tiles = 0;
  std::int64_t tile_bytes = 0;  // copied by one tile, the measure of its cost
};

// Plans the copy of a tensor of `dims` (input order). `perm` is a permutation of 0 … rank-1 and
// `element_bytes` is 1, 2, 4, 8 or 16. False if `rank` > kTransposeMaxRank or the size is unknown.
bool PlanTranspose(const std::int64_t* dims, const std::int64_t* perm, int rank,
                   std::size_t element_bytes, IsaSet allowed, TransposePlan* plan);

// Copies tile `tile` of 0 … plan.tiles-1. `in` and `out` must not overlap.
void RunTransposeTile(const TransposePlan& plan, const void* in, void* out, std::int64_t tile);

}  // namespace npurt::kernels

#endif  // NPURT_KERNELS_TRANSPOSE_TRANSPOSE_H_
