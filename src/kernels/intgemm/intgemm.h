// Intgemm: products of matrices of bytes with exact int32 sums, C = finish(A * B), for any mix of
// signed and unsigned operands.
//
// The idea: k goes in words of 32 bits. With VNNI a word is four bytes, one operand unsigned and the
// other signed; elsewhere it is two int16 with the zero points already taken away, which pmaddwd
// multiplies without saturation. Either way a kernel adds up words, and all kernels have the same sums
// (modulo 2^32, as int32 wraps). What zero points add to sums of bytes is a row or a column of
// corrections, applied with the scales while the sums are in registers.
//
// Weights are packed once: columns of B in panels, or rows of A in panels (convolutions). The other
// operand is brought into words tile by tile.
//
// Memory: nothing is allocated here. No byte outside the operands is read or written.
// Thread safety: pure functions on what they are given.
#ifndef NPURT_KERNELS_INTGEMM_INTGEMM_H_
#define NPURT_KERNELS_INTGEMM_INTGEMM_H_

#include <cstddef>
#include <cstdint>

namespace npurt::kernels {

using Word = std::uint32_t;

// What becomes of the sums. First row_add[r] + column_add[n] - row_factor[r] * column_factor[n] is
// added (both factors or none). The int32 is the result, or goes on as a double:
//   y = (((sum + row_bias[r]) + column_bias[n]) * row_scale[r or 0]) * column_scale[n]
// rounded to the nearest whole number, ties to even, plus `zero`, between `low` and `high`. A NaN
// becomes 0. Absent arrays are null, row_scale is not.
struct IntEpilogue {
  const std::int32_t* row_add = nullptr;
  const std::int32_t* column_add = nullptr;
  const std::int32_t* row_factor = nullptr;
  const std::int32_t* column_factor = nullptr;
  bool to_bytes = false;  // else int32
  const double* row_bias = nullptr;
  const double* column_bias = nullptr;
  const double* row_scale = nullptr;
  bool one_row_scale = false;
  const double* column_scale = nullptr;
  std::int32_t zero = 0, low = -128, high = 127;
};

struct IntGemmArgs {
  const void* a;  // words, of any alignment: row r, word w at r * a_row_stride + w * a_word_stride
  std::int64_t a_row_stride, a_word_stride;
  const Word* b;  // a panel: [words][tile_n]
  void* c;        // bytes or int32
  std::int64_t c_stride;
  std::int64_t words;
  int rows, cols;       // of C; at most tile_m and tile_n
  bool a_is_unsigned;   // words of bytes: A has the unsigned bytes and B the signed ones, or vice versa
  const IntEpilogue* epilogue;  // its pointers are those of this tile's first element
};

struct IntGemmKernel {
  const char* name;
  void (*run)(const IntGemmArgs& args);
  std::uint32_t needs;  // an IsaSet
  int tile_m, tile_n;
  bool bytes;
  int per_word() const { return bytes ? 4 : 2; }
};

#define NPURT_INTGEMM(isa_set, name, tile_m, tile_n, bytes) void name(const IntGemmArgs& args);
#include "kernels/intgemm/intgemm.inc"
#undef NPURT_INTGEMM

extern const IntGemmKernel kIntGemmKernels[];
extern const int kIntGemmKernelCount;

// The best kernel that `allowed` (an IsaSet) admits; without words of bytes if `no_bytes`.
const IntGemmKernel* SelectIntGemmKernel(std::uint32_t allowed, bool no_bytes = false);

// How bytes become parts of words. For kernels of bytes a value x is stored as the byte x ^ flip, and
// zero points move with it; for the others as the int16 x - zero.
struct IntForm {
  bool bytes;
  bool is_signed;  // the source
  std::uint8_t flip = 0;
};
// The form that brings operands of such sign to what the kernel wants.
IntForm IntFormOf(const IntGemmKernel& kernel, bool is_signed, bool want_signed);
// The zero point in that form: what has to be corrected for, 0 where it has been taken away.
inline std::int32_t ZeroOf(const IntForm& form, std::int32_t zero) {
  return !form.bytes ? 0 : form.flip == 0 ? zero : form.is_signed ? zero + 128 : zero - 128;
}
// The byte of a zero point, for padding: what such an element looks like in its form.
std::int32_t PartOf(const IntForm& form, std::int32_t value, std::int32_t zero);

// A row of k source bytes (`step` apart) to the parts of CeilDiv(k, per_word) words. Parts beyond k are
// `rest` (a part, see PartOf).
void FillWords(const IntForm& form, const void* from, std::int64_t step, std::int64_t k,
               std::int32_t zero, std::int32_t rest, void* words);
// The sum of the parts of `k` values, as the formulas of corrections want it.
std::int32_t SumOfParts(bool bytes, bool parts_are_signed, const void* words, std::int64_t k);

// One row of words for `count` columns: part i of a word comes from rows[i], or is `rest` where that is
// null.
void InterleaveRows(const IntForm& form, const void* const rows[4], std::int32_t zero,
                    std::int32_t rest, std::int64_t count, Word* to);

// --- products with row-major operands ----------------------------------------------------------------

struct IntGemmProblem {
  std::int64_t m = 0, n = 0, k = 0;
  bool a_signed = false, b_signed = true;
  bool packed_b = false;
};

// Bytes of packed B: panels, then per column int32 the sum of (b - b_zero) in its form. 0 if that does
// not fit an int64.
std::int64_t PackedIntBSize(const IntGemmKernel& kernel, std::int64_t k, std::int64_t n);
// `b_zero` has one number per column (b_zero_step 1), or one (0).
void PackIntB(const IntGemmKernel& kernel, const IntGemmProblem& problem, const void* b,
              const std::int32_t* b_zero, int b_zero_step, void* packed);

struct IntGemmTiling {
  const IntGemmKernel* kernel = nullptr;
  std::int64_t tiles = 0, tiles_m = 0, tile_rows = 0, tile_cols = 0, words = 0;
  bool rows_in_place = false;  // A has the right form already
  std::int64_t a_offset = 0, row_offset = 0, column_offset = 0;  // of the scratch, in bytes
  std::size_t scratch_bytes = 0;
  double flops_per_tile = 0, bytes_per_tile = 0;
};
// tiles = -1 if a size does not fit an int64.
IntGemmTiling PlanIntGemm(const IntGemmProblem& problem, const IntGemmKernel& kernel);

struct IntGemmCall {
  const IntGemmProblem* problem;
  const IntGemmTiling* tiling;
  const void* a;  // bytes [m, k]
  const void* b;  // bytes [k, n], or packed
  // Bytes like those of A: null for 0; one, or (unless the kernel's words are of bytes) one per row, over
  // and over: that of row r is number (first_row + r) mod a_zero_count.
  const void* a_zero;
  std::int64_t a_zero_count, first_row;
  const std::int32_t* b_zero;  // one per column or one; null: 0
  int b_zero_step;
  void* c;               // [m, n]
  IntEpilogue epilogue;  // the arrays of scales and biases; those of corrections are made here
};
void RunIntGemmTile(const IntGemmCall& call, std::int64_t tile, void* scratch);

}  // namespace npurt::kernels

#endif  // NPURT_KERNELS_INTGEMM_INTGEMM_H_
