// Nbits: products of a float32 matrix with weights of 2, 4 or 8 bits, C = A * W + bias, where
// W[k, n] = (q - zero) * scale with a zero and a scale per block of k and column.
//
// The idea: weights are read once per product and there are few rows of A when a model speaks word
// by word, so that reading them is all that counts: they stay packed and become floats in
// registers. With more rows a block of them is unpacked into the panels that the gemm kernels take.
//
// A panel is tile_n columns. Its words are int32, each with as many consecutive k of one column as
// fit, the first in the lowest bits; the tile_n words of these k lie side by side. What lies beyond
// the matrix is 0, as are its scales.
//
// Memory: nothing is allocated here; no byte outside the operands is read or written.
// Thread safety: pure functions on what they are given.
#ifndef NPURT_KERNELS_NBITS_NBITS_H_
#define NPURT_KERNELS_NBITS_NBITS_H_

#include <cstddef>
#include <cstdint>

#include "kernels/elementwise/row.h"

namespace npurt::kernels {

struct GemmKernel;

// Some k of one panel. `first_k` is a multiple of the k in a word.
struct NbitsPanel {
  const std::int32_t* words;  // those of k = 0
  const float* scales;        // [blocks][tile_n]
  const float* zeros;
  std::int64_t first_k, k;
  std::int64_t block;  // k that share a scale: a multiple of the k in a word
  int bits;
};

// At most kNbitsRows rows of A times the panel.
inline constexpr int kNbitsRows = 4;
struct NbitsDotArgs {
  NbitsPanel panel;
  const float* a;
  std::int64_t a_row_stride;
  const float* bias;  // `cols` numbers or null
  float* c;
  std::int64_t c_stride;
  int rows, cols;
};

struct NbitsKernel {
  const char* name;
  std::uint32_t needs;  // an IsaSet
  int tile_n;
  void (*dot)(const NbitsDotArgs& args);
  // Writes the panel as floats, [k][tile_n].
  void (*unpack)(const NbitsPanel& panel, float* out);
};

#define NPURT_NBITS(isa_set, set, tile_n)         \
  void nbits_dot_##set(const NbitsDotArgs& args); \
  void nbits_unpack_##set(const NbitsPanel& panel, float* out);
#include "kernels/nbits/nbits.inc"
#undef NPURT_NBITS

extern const NbitsKernel kNbitsKernels[];
extern const int kNbitsKernelCount;

// The best that `allowed` (an IsaSet) admits. Its panels are as wide as those of the gemm kernel
// for the same sets.
const NbitsKernel& SelectNbits(std::uint32_t allowed);

struct NbitsProblem {
  std::int64_t m, n, k;
  std::int64_t block;
  int bits;
  bool half;  // A, bias and C have elements of 16 bits
};

// How packed weights lie: all words, then all scales, then all zeros. Sizes in bytes.
struct NbitsLayout {
  std::int64_t panels, panel_words, panel_scales;  // the last two: numbers in one panel
  std::int64_t scales_offset, zeros_offset, bytes;
};
// False if it does not fit an int64.
[[nodiscard]] bool LayOutNbits(const NbitsKernel& kernel, const NbitsProblem& problem,
                               NbitsLayout* layout);

struct NbitsTiling {
  std::int64_t tiles = 0, panels_per_tile = 0;
  std::int64_t tile_n = 0;  // columns of a tile
  // Of the scratch, in floats: unpacked weights, rows of A, the bias and C, in this order.
  std::int64_t a_offset = 0, bias_offset = 0, c_offset = 0;
  std::size_t scratch_bytes = 0;
  double flops_per_tile = 0, bytes_per_tile = 0;
};
NbitsTiling PlanNbits(const NbitsKernel& kernel, const GemmKernel& gemm,
                      const NbitsProblem& problem);

struct NbitsCall {
  const NbitsKernel* kernel;
  const GemmKernel* gemm;
  const NbitsProblem* problem;
  const NbitsLayout* layout;
  const NbitsTiling* tiling;
  const void* a;       // [m, k]
  const void* packed;  // aligned to 4 bytes
  const void* bias;    // n numbers or null
  void* c;             // [m, n]
  RowFn load, store;   // `half`: from its elements to floats, and back
};
void RunNbitsTile(const NbitsCall& call, std::int64_t tile, void* scratch);

}  // namespace npurt::kernels

#endif  // NPURT_KERNELS_NBITS_NBITS_H_
