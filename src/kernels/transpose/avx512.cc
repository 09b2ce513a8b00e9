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

}  // namespace

void transpose_4b_16x16_avx512(const void* in, std::size_t in_stride, void* out,
                               std::size_t out_stride, std::size_t rows, std::size_t cols) {
  const std::int32_t* from = static_cast<const std::int32_t*>(in);
  std::int32_t* to = static_cast<std::int32_t*>(out);
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
