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

// Between kParts vectors of 16 elements each and as many dense ones, in which elements of all parts take
// turns. index[j] makes result j: lanes of the first two vectors, then of what there is and the third, then
// the fourth.
template <int kParts, bool kApart>
struct Turns {
  std::int32_t index[kParts][3][16] = {};
  constexpr Turns() {
    for (int i = 0; i < 16 * kParts; ++i) {
      // Element `from` of all the source vectors becomes element `to` of the results.
      const int from = kApart ? i : i % kParts * 16 + i / kParts;
      const int to = kApart ? i % kParts * 16 + i / kParts : i;
      const int lane = to % 16;
      index[to / 16][0][lane] = from % 32;
      for (int v = 1; v < 3; ++v)
        index[to / 16][v][lane] = from / 16 == v + 1 ? 16 + from % 16 : lane;
    }
  }
};

template <int kParts, bool kApart>
inline __m512i ResultOf(const __m512i v[kParts], int j) {
  static constexpr Turns<kParts, kApart> kTurns;
  const auto index = [j](int step) { return _mm512_loadu_si512(kTurns.index[j][step]); };
  __m512i x = _mm512_permutex2var_epi32(v[0], index(0), v[1]);
  if constexpr (kParts > 2) x = _mm512_permutex2var_epi32(x, index(1), v[2]);
  if constexpr (kParts > 3) x = _mm512_permutex2var_epi32(x, index(2), v[3]);
  return x;
}

// Lanes of dense vector j that n elements of each part reach.
template <int kParts>
inline __mmask16 DenseLanes(std::size_t n, int j) {
  const std::size_t first = static_cast<std::size_t>(j) * 16, end = n * kParts;
  return FirstLanes(end <= first ? 0 : end - first < 16 ? end - first : 16);
}

// kRows long rows to dense columns of kRows elements.
template <int kRows>
void Interleave(const std::int32_t* in, std::size_t in_stride, std::int32_t* out, std::size_t cols) {
  for (std::size_t c = 0; c < cols; c += 16, in += 16, out += 16 * kRows) {
    const std::size_t n = cols - c < 16 ? cols - c : 16;
    __m512i v[kRows];
    for (int r = 0; r < kRows; ++r) v[r] = _mm512_maskz_loadu_epi32(FirstLanes(n), in + r * in_stride);
    for (int j = 0; j < kRows; ++j)
      _mm512_mask_storeu_epi32(out + j * 16, DenseLanes<kRows>(n, j), ResultOf<kRows, false>(v, j));
  }
}

// The way back: dense rows of kCols elements to kCols long columns.
template <int kCols>
void Separate(const std::int32_t* in, std::int32_t* out, std::size_t out_stride, std::size_t rows) {
  for (std::size_t r = 0; r < rows; r += 16, in += 16 * kCols, out += 16) {
    const std::size_t n = rows - r < 16 ? rows - r : 16;
    __m512i v[kCols];
    for (int j = 0; j < kCols; ++j)
      v[j] = _mm512_maskz_loadu_epi32(DenseLanes<kCols>(n, j), in + j * 16);
    for (int c = 0; c < kCols; ++c)
      _mm512_mask_storeu_epi32(out + c * out_stride, FirstLanes(n), ResultOf<kCols, true>(v, c));
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
