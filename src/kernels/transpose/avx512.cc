// 2-D transposes of 4-byte elements with 512-bit shuffles: 16 rows by 16 columns, tails by mask.
#include "kernels/simd/avx512.h"

#include <cstddef>
#include <cstdint>

#include "kernels/transpose/transpose.h"

namespace npurt::kernels {
namespace {

inline __mmask16 FirstLanes(std::size_t n) { return static_cast<__mmask16>((1u << n) - 1u); }

// Four rounds: pairs of 32 bits, pairs of 64 bits, then 128-bit quarters twice.
inline void Transpose16x16(__m512i v[16]) {
  __m512i a[16];
  for (int i = 0; i < 8; ++i) {
    a[2 * i] = _mm512_unpacklo_epi32(v[2 * i], v[2 * i + 1]);
    a[2 * i + 1] = _mm512_unpackhi_epi32(v[2 * i], v[2 * i + 1]);
  }
  // v[4q + j] = column j of each 128-bit lane, rows 4q … 4q+3.
  for (int q = 0; q < 4; ++q) {
    v[4 * q] = _mm512_unpacklo_epi64(a[4 * q], a[4 * q + 2]);
    v[4 * q + 1] = _mm512_unpackhi_epi64(a[4 * q], a[4 * q + 2]);
    v[4 * q + 2] = _mm512_unpacklo_epi64(a[4 * q + 1], a[4 * q + 3]);
    v[4 * q + 3] = _mm512_unpackhi_epi64(a[4 * q + 1], a[4 * q + 3]);
  }
  __m512i t[16];
  for (int j = 0; j < 4; ++j) {
    const __m512i low01 = _mm512_shuffle_i32x4(v[j], v[4 + j], 0x44);
    const __m512i high01 = _mm512_shuffle_i32x4(v[j], v[4 + j], 0xee);
    const __m512i low23 = _mm512_shuffle_i32x4(v[8 + j], v[12 + j], 0x44);
    const __m512i high23 = _mm512_shuffle_i32x4(v[8 + j], v[12 + j], 0xee);
    t[j] = _mm512_shuffle_i32x4(low01, low23, 0x88);
    t[4 + j] = _mm512_shuffle_i32x4(low01, low23, 0xdd);
    t[8 + j] = _mm512_shuffle_i32x4(high01, high23, 0x88);
    t[12 + j] = _mm512_shuffle_i32x4(high01, high23, 0xdd);
  }
  for (int i = 0; i < 16; ++i) v[i] = t[i];
}

// Lanes of a result from up to four vectors: source[i] says which of the 64 elements, taken one vector
// after the other, lane i is.
struct Pick {
  __m512i index[3];  // of the first two vectors, then of what there is and the third, the fourth

  explicit Pick(const std::int32_t source[16]) {
    std::int32_t lanes[3][16];
    for (int i = 0; i < 16; ++i) {
      const std::int32_t s = source[i];
      lanes[0][i] = s & 31;
      for (int v = 1; v < 3; ++v) lanes[v][i] = s / 16 == v + 1 ? 16 + s % 16 : i;
    }
    for (int v = 0; v < 3; ++v) index[v] = _mm512_loadu_si512(lanes[v]);
  }
  template <int kVectors>
  __m512i From(const __m512i v[4]) const {
    __m512i x = _mm512_permutex2var_epi32(v[0], index[0], v[1]);
    if (kVectors > 2) x = _mm512_permutex2var_epi32(x, index[1], v[2]);
    if (kVectors > 3) x = _mm512_permutex2var_epi32(x, index[2], v[3]);
    return x;
  }
};

// kRows long rows to dense columns of kRows elements.
template <int kRows>
void Interleave(const std::int32_t* in, std::size_t in_stride, std::int32_t* out, std::size_t cols) {
  std::int32_t source[kRows][16];
  for (int i = 0; i < 16 * kRows; ++i) source[i / 16][i % 16] = i % kRows * 16 + i / kRows;
  const Pick pick[4] = {Pick(source[0]), Pick(source[1]), Pick(source[kRows > 2 ? 2 : 0]),
                        Pick(source[kRows > 3 ? 3 : 0])};
  for (std::size_t c = 0; c < cols; c += 16, in += 16, out += 16 * kRows) {
    const std::size_t n = cols - c < 16 ? cols - c : 16;
    __m512i v[4];
    for (int r = 0; r < kRows; ++r) v[r] = _mm512_maskz_loadu_epi32(FirstLanes(n), in + r * in_stride);
    for (int j = 0; j < kRows; ++j) {
      const std::size_t first = static_cast<std::size_t>(j) * 16, end = n * kRows;
      const std::size_t count = end <= first ? 0 : end - first < 16 ? end - first : 16;
      _mm512_mask_storeu_epi32(out + first, FirstLanes(count), pick[j].From<kRows>(v));
    }
  }
}

// The way back: dense rows of kCols elements to kCols long columns.
template <int kCols>
void Separate(const std::int32_t* in, std::int32_t* out, std::size_t out_stride, std::size_t rows) {
  std::int32_t source[kCols][16];
  for (int i = 0; i < 16 * kCols; ++i) source[i % kCols][i / kCols] = i;
  const Pick pick[4] = {Pick(source[0]), Pick(source[1]), Pick(source[kCols > 2 ? 2 : 0]),
                        Pick(source[kCols > 3 ? 3 : 0])};
  for (std::size_t r = 0; r < rows; r += 16, in += 16 * kCols, out += 16) {
    const std::size_t n = rows - r < 16 ? rows - r : 16;
    __m512i v[4];
    for (int j = 0; j < kCols; ++j) {
      const std::size_t first = static_cast<std::size_t>(j) * 16, end = n * kCols;
      const std::size_t count = end <= first ? 0 : end - first < 16 ? end - first : 16;
      v[j] = _mm512_maskz_loadu_epi32(FirstLanes(count), in + first);
    }
    for (int c = 0; c < kCols; ++c)
      _mm512_mask_storeu_epi32(out + c * out_stride, FirstLanes(n), pick[c].From<kCols>(v));
  }
}

}  // namespace

void transpose_4b_16x16_avx512(const void* in, std::size_t in_stride, void* out,
                               std::size_t out_stride, std::size_t rows, std::size_t cols) {
  const std::int32_t* from = static_cast<const std::int32_t*>(in);
  std::int32_t* to = static_cast<std::int32_t*>(out);
  // Images of few channels.
  if (out_stride == rows && cols >= 16) {
    if (rows == 2) return Interleave<2>(from, in_stride, to, cols);
    if (rows == 3) return Interleave<3>(from, in_stride, to, cols);
    if (rows == 4) return Interleave<4>(from, in_stride, to, cols);
  }
  if (in_stride == cols && rows >= 16) {
    if (cols == 2) return Separate<2>(from, to, out_stride, rows);
    if (cols == 3) return Separate<3>(from, to, out_stride, rows);
    if (cols == 4) return Separate<4>(from, to, out_stride, rows);
  }
  for (std::size_t r = 0; r < rows; r += 16) {
    const std::size_t nr = rows - r < 16 ? rows - r : 16;
    const __mmask16 store = FirstLanes(nr);
    for (std::size_t c = 0; c < cols; c += 16) {
      const std::size_t nc = cols - c < 16 ? cols - c : 16;
      const __mmask16 load = FirstLanes(nc);
      const std::int32_t* src = from + r * in_stride + c;
      std::int32_t* dst = to + c * out_stride + r;
      __m512i v[16];
      for (std::size_t i = 0; i < 16; ++i)
        v[i] = i < nr ? _mm512_maskz_loadu_epi32(load, src + i * in_stride) : _mm512_setzero_si512();
      Transpose16x16(v);
      for (std::size_t i = 0; i < nc; ++i) _mm512_mask_storeu_epi32(dst + i * out_stride, store, v[i]);
    }
  }
}

}  // namespace npurt::kernels
