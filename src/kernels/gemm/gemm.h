// Gemm: C = activation(scale * A * B + biases + residual) for float32 matrices, many at once.
//
// The idea: a micro-kernel multiplies a few rows of A by one panel of B and keeps the sums in
// registers; the driver here feeds it block by block so that what is used again lies in a cache. A
// and B may be packed into panels beforehand (constant weights), or be read where they lie, or are
// packed block by block into scratch, whichever pays. The output is cut into tiles that anyone may
// compute in any order: the cut, and with it every bit of the result, depends on sizes and kernel
// only, never on how many threads take part.
//
// Memory: nothing is allocated here. No byte outside the operands is read or written, whatever the
// sizes; padding inside packed operands never reaches a result.
// Thread safety: pure functions on what they are given.
#ifndef NPURT_KERNELS_GEMM_GEMM_H_
#define NPURT_KERNELS_GEMM_GEMM_H_

#include <cstddef>
#include <cstdint>

#include "kernels/activation.h"
#include "kernels/stop_check.h"

namespace npurt::kernels {

// One call of a micro-kernel: `rows` x `cols` of C over one block of k. Strides in floats.
struct GemmArgs {
  const float* a;  // a[r * a_row_stride + k * a_k_stride]
  std::int64_t a_row_stride, a_k_stride;
  const float* b;  // b[k * b_stride + column]
  std::int64_t b_stride;
  float* c;
  std::int64_t c_stride;
  std::int64_t k;  // may be 0: the sum is 0
  int rows, cols;  // at most tile_m and tile_n: not even an address beyond these is formed for C or A
  bool b_is_panel;           // all tile_n columns of B may be read
  bool first;                // the first block of k: C is not read
  bool last;                 // the last block of k: the epilogue is applied
  const Epilogue* epilogue;  // read if last; its pointers are those of this tile's first element
  // The sum has this many runs of `k`: that of A begins at a + a_offsets[segment], that of B where
  // the one before ends. Without a_offsets there is one run, at a.
  int segments = 1;
  const std::int64_t* a_offsets = nullptr;
  // What will be read next: a cache line of it is fetched with each k, if b_is_panel. Null: nothing.
  const float* prefetch = nullptr;
};

using GemmFn = void (*)(const GemmArgs& args);

struct GemmKernel {
  const char* name;
  GemmFn run;
  std::uint32_t needs;  // an IsaSet
  int tile_m, tile_n;
  int kc, mc, nc;  // largest block of k, rows and columns
};

#define NPURT_GEMM(isa_set, name, tile_m, tile_n, kc, mc, nc) void name(const GemmArgs& args);
#include "kernels/gemm/gemm.inc"
#undef NPURT_GEMM

// For GemmArgs::prefetch. Several calls use a block of `k` rows of one panel one after the other, and each
// fetches a part of the next block: what the call of this number, from 0 on, fetches. Null if `next` is,
// or all of it has been fetched.
inline const float* PartToPrefetch(const GemmKernel& kernel, const float* next, std::int64_t k,
                                   std::int64_t call) {
  constexpr std::int64_t kLineFloats = 16;
  const std::int64_t done = call * k * kLineFloats;
  return next != nullptr && done < k * kernel.tile_n ? next + done : nullptr;
}

extern const GemmKernel kGemmKernels[];
extern const int kGemmKernelCount;

// The best kernel that `allowed` (an IsaSet) admits. Never null: the generic one needs nothing.
const GemmKernel* SelectGemmKernel(std::uint32_t allowed);

// Packing. A panel is tile_n columns of B (or tile_m rows of A): for each k, its elements side by
// side, zeros where the matrix has ended. `row_stride` and `k_stride` (`k_stride` and
// `column_stride`) say where an element lies, so a transposed matrix is no special case. `scale`
// multiplies each element. Sizes in floats; 0 if the size does not fit an int64.
std::int64_t PackedASize(const GemmKernel& kernel, std::int64_t m, std::int64_t k);
std::int64_t PackedBSize(const GemmKernel& kernel, std::int64_t k, std::int64_t n);
void PackA(const GemmKernel& kernel, std::int64_t m, std::int64_t k, const float* a,
           std::int64_t row_stride, std::int64_t k_stride, float scale, float* packed);
void PackB(const GemmKernel& kernel, std::int64_t k, std::int64_t n, const float* b,
           std::int64_t k_stride, std::int64_t column_stride, float scale, float* packed);

inline constexpr int kGemmMaxBatchRank = 8;

// What to multiply. C is [batch dims..., m, n], dense. Element strides; a batch stride of 0 uses
// the same matrix again.
struct GemmProblem {
  std::int64_t m = 0, n = 0, k = 0;
  bool packed_a = false;  // by PackA; a_batch_stride still applies (PackedASize apart)
  bool packed_b = false;
  std::int64_t a_row_stride = 0, a_k_stride = 1;     // unless packed
  std::int64_t b_k_stride = 0, b_column_stride = 1;  // unless packed
  int batch_rank = 0;
  std::int64_t batch_dims[kGemmMaxBatchRank] = {};
  std::int64_t a_batch_strides[kGemmMaxBatchRank] = {};
  std::int64_t b_batch_strides[kGemmMaxBatchRank] = {};
  std::int64_t bias_batch_strides[kGemmMaxBatchRank] = {};  // of the epilogue's bias vectors
};

// How the work divides.
struct GemmTiling {
  const GemmKernel* kernel = nullptr;
  std::int64_t tiles = 0;
  double flops_per_tile = 0;
  double bytes_per_tile = 0;      // read and written, if nothing was in a cache
  std::size_t scratch_bytes = 0;  // per participant, 64-byte aligned
  // For RunGemmTile.
  std::int64_t tile_rows = 0, tile_cols = 0, tiles_m = 0, tiles_n = 0, k_block = 0;
  bool pack_a = false, pack_b = false;  // into scratch
  bool panel_outermost = false;
};

// Empty outputs have 0 tiles; k = 0 gives the epilogue of zero sums.
GemmTiling PlanGemm(const GemmProblem& problem, const GemmKernel& kernel);

struct GemmCall {
  const GemmProblem* problem;
  const GemmTiling* tiling;
  const float* a;
  const float* b;
  float* c;
  Epilogue epilogue;  // pointers to the first row and column of the whole problem
  std::int64_t residual_batch_stride = 0;  // floats between the residuals of two matrices of C
  StopCheck stop = {};
};

// Computes tile `tile` of 0 … tiles-1.
void RunGemmTile(const GemmCall& call, std::int64_t tile, void* scratch);

}  // namespace npurt::kernels

#endif  // NPURT_KERNELS_GEMM_GEMM_H_
