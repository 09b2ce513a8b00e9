// 2-D transposes with 256-bit shuffles. Whole blocks only inside; 4-byte tails go through masked loads
// and stores because NHWC <-> NCHW with three channels is nothing but tail.
#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/transpose/transpose.h"

namespace npurt::kernels {
namespace {

// Sliding window: the mask of the first n of 8 lanes starts at entry 8 - n.
alignas(64) const std::int32_t kLanes[16] = {-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0};

inline __m256i FirstLanes(std::size_t n) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kLanes + 8 - n));
}

inline void Transpose8x8(__m256 r[8]) {
  const __m256 a0 = _mm256_unpacklo_ps(r[0], r[1]), a1 = _mm256_unpackhi_ps(r[0], r[1]);
  const __m256 a2 = _mm256_unpacklo_ps(r[2], r[3]), a3 = _mm256_unpackhi_ps(r[2], r[3]);
  const __m256 a4 = _mm256_unpacklo_ps(r[4], r[5]), a5 = _mm256_unpackhi_ps(r[4], r[5]);
  const __m256 a6 = _mm256_unpacklo_ps(r[6], r[7]), a7 = _mm256_unpackhi_ps(r[6], r[7]);
  const __m256 b0 = _mm256_shuffle_ps(a0, a2, 0x44), b1 = _mm256_shuffle_ps(a0, a2, 0xee);
  const __m256 b2 = _mm256_shuffle_ps(a1, a3, 0x44), b3 = _mm256_shuffle_ps(a1, a3, 0xee);
  const __m256 b4 = _mm256_shuffle_ps(a4, a6, 0x44), b5 = _mm256_shuffle_ps(a4, a6, 0xee);
  const __m256 b6 = _mm256_shuffle_ps(a5, a7, 0x44), b7 = _mm256_shuffle_ps(a5, a7, 0xee);
  r[0] = _mm256_permute2f128_ps(b0, b4, 0x20);
  r[1] = _mm256_permute2f128_ps(b1, b5, 0x20);
  r[2] = _mm256_permute2f128_ps(b2, b6, 0x20);
  r[3] = _mm256_permute2f128_ps(b3, b7, 0x20);
  r[4] = _mm256_permute2f128_ps(b0, b4, 0x31);
  r[5] = _mm256_permute2f128_ps(b1, b5, 0x31);
  r[6] = _mm256_permute2f128_ps(b2, b6, 0x31);
  r[7] = _mm256_permute2f128_ps(b3, b7, 0x31);
}

// What does not fill a block of the smaller element sizes.
template <std::size_t kBytes>
inline void Rest(const char* in, std::size_t in_stride, char* out, std::size_t out_stride,
                 std::size_t rows, std::size_t cols) {
  for (std::size_t c = 0; c < cols; ++c)
    for (std::size_t r = 0; r < rows; ++r)
      std::memcpy(out + (c * out_stride + r) * kBytes, in + (r * in_stride + c) * kBytes, kBytes);
}

}  // namespace

void transpose_4b_8x8_avx2(const void* in, std::size_t in_stride, void* out, std::size_t out_stride,
                           std::size_t rows, std::size_t cols) {
  const float* from = static_cast<const float*>(in);
  float* to = static_cast<float*>(out);
  for (std::size_t r = 0; r < rows; r += 8) {
    const std::size_t nr = rows - r < 8 ? rows - r : 8;
    for (std::size_t c = 0; c < cols; c += 8) {
      const std::size_t nc = cols - c < 8 ? cols - c : 8;
      const float* src = from + r * in_stride + c;
      float* dst = to + c * out_stride + r;
      __m256 v[8];
      if (nr == 8 && nc == 8) {
        for (std::size_t i = 0; i < 8; ++i) v[i] = _mm256_loadu_ps(src + i * in_stride);
        Transpose8x8(v);
        for (std::size_t i = 0; i < 8; ++i) _mm256_storeu_ps(dst + i * out_stride, v[i]);
        continue;
      }
      const __m256i load = FirstLanes(nc), store = FirstLanes(nr);
      for (std::size_t i = 0; i < 8; ++i)
        v[i] = i < nr ? _mm256_maskload_ps(src + i * in_stride, load) : _mm256_setzero_ps();
      Transpose8x8(v);
      for (std::size_t i = 0; i < nc; ++i) _mm256_maskstore_ps(dst + i * out_stride, store, v[i]);
    }
  }
}

void transpose_8b_4x4_avx2(const void* in, std::size_t in_stride, void* out, std::size_t out_stride,
                           std::size_t rows, std::size_t cols) {
  const double* from = static_cast<const double*>(in);
  double* to = static_cast<double*>(out);
  const std::size_t rows4 = rows & ~std::size_t{3}, cols4 = cols & ~std::size_t{3};
  for (std::size_t r = 0; r < rows4; r += 4)
    for (std::size_t c = 0; c < cols4; c += 4) {
      const double* src = from + r * in_stride + c;
      double* dst = to + c * out_stride + r;
      const __m256d r0 = _mm256_loadu_pd(src), r1 = _mm256_loadu_pd(src + in_stride);
      const __m256d r2 = _mm256_loadu_pd(src + 2 * in_stride);
      const __m256d r3 = _mm256_loadu_pd(src + 3 * in_stride);
      const __m256d a0 = _mm256_unpacklo_pd(r0, r1), a1 = _mm256_unpackhi_pd(r0, r1);
      const __m256d a2 = _mm256_unpacklo_pd(r2, r3), a3 = _mm256_unpackhi_pd(r2, r3);
      _mm256_storeu_pd(dst, _mm256_permute2f128_pd(a0, a2, 0x20));
      _mm256_storeu_pd(dst + out_stride, _mm256_permute2f128_pd(a1, a3, 0x20));
      _mm256_storeu_pd(dst + 2 * out_stride, _mm256_permute2f128_pd(a0, a2, 0x31));
      _mm256_storeu_pd(dst + 3 * out_stride, _mm256_permute2f128_pd(a1, a3, 0x31));
    }
  const char* inb = static_cast<const char*>(in);
  char* outb = static_cast<char*>(out);
  Rest<8>(inb + rows4 * in_stride * 8, in_stride, outb + rows4 * 8, out_stride, rows - rows4, cols);
  Rest<8>(inb + cols4 * 8, in_stride, outb + cols4 * out_stride * 8, out_stride, rows4,
          cols - cols4);
}

void transpose_2b_8x8_avx2(const void* in, std::size_t in_stride, void* out, std::size_t out_stride,
                           std::size_t rows, std::size_t cols) {
  const char* from = static_cast<const char*>(in);
  char* to = static_cast<char*>(out);
  const std::size_t rows8 = rows & ~std::size_t{7}, cols8 = cols & ~std::size_t{7};
  for (std::size_t r = 0; r < rows8; r += 8)
    for (std::size_t c = 0; c < cols8; c += 8) {
      const char* src = from + (r * in_stride + c) * 2;
      char* dst = to + (c * out_stride + r) * 2;
      __m128i v[8], a[8], b[8];
      for (std::size_t i = 0; i < 8; ++i)
        v[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(src + i * in_stride * 2));
      for (int i = 0; i < 4; ++i) {
        a[2 * i] = _mm_unpacklo_epi16(v[2 * i], v[2 * i + 1]);
        a[2 * i + 1] = _mm_unpackhi_epi16(v[2 * i], v[2 * i + 1]);
      }
      for (int h = 0; h < 2; ++h) {
        b[4 * h] = _mm_unpacklo_epi32(a[4 * h], a[4 * h + 2]);
        b[4 * h + 1] = _mm_unpackhi_epi32(a[4 * h], a[4 * h + 2]);
        b[4 * h + 2] = _mm_unpacklo_epi32(a[4 * h + 1], a[4 * h + 3]);
        b[4 * h + 3] = _mm_unpackhi_epi32(a[4 * h + 1], a[4 * h + 3]);
      }
      for (std::size_t i = 0; i < 4; ++i) {
        _mm_storeu_si128(reinterpret_cast<__m128i*>(dst + 2 * i * out_stride * 2),
                         _mm_unpacklo_epi64(b[i], b[i + 4]));
        _mm_storeu_si128(reinterpret_cast<__m128i*>(dst + (2 * i + 1) * out_stride * 2),
                         _mm_unpackhi_epi64(b[i], b[i + 4]));
      }
    }
  Rest<2>(from + rows8 * in_stride * 2, in_stride, to + rows8 * 2, out_stride, rows - rows8, cols);
  Rest<2>(from + cols8 * 2, in_stride, to + cols8 * out_stride * 2, out_stride, rows8,
          cols - cols8);
}

void transpose_1b_8x16_avx2(const void* in, std::size_t in_stride, void* out,
                            std::size_t out_stride, std::size_t rows, std::size_t cols) {
  const char* from = static_cast<const char*>(in);
  char* to = static_cast<char*>(out);
  const std::size_t rows8 = rows & ~std::size_t{7}, cols16 = cols & ~std::size_t{15};
  for (std::size_t r = 0; r < rows8; r += 8)
    for (std::size_t c = 0; c < cols16; c += 16) {
      const char* src = from + r * in_stride + c;
      char* dst = to + c * out_stride + r;
      __m128i v[8], a[8], b[8];
      for (std::size_t i = 0; i < 8; ++i)
        v[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(src + i * in_stride));
      for (int i = 0; i < 4; ++i) {
        a[2 * i] = _mm_unpacklo_epi8(v[2 * i], v[2 * i + 1]);
        a[2 * i + 1] = _mm_unpackhi_epi8(v[2 * i], v[2 * i + 1]);
      }
      // b: four rows of four columns; low and high half of the 16 columns are independent.
      for (int h = 0; h < 2; ++h)
        for (int k = 0; k < 2; ++k) {
          b[4 * h + 2 * k] = _mm_unpacklo_epi16(a[4 * h + k], a[4 * h + 2 + k]);
          b[4 * h + 2 * k + 1] = _mm_unpackhi_epi16(a[4 * h + k], a[4 * h + 2 + k]);
        }
      for (std::size_t i = 0; i < 4; ++i) {
        const __m128i low = _mm_unpacklo_epi32(b[i], b[i + 4]);
        const __m128i high = _mm_unpackhi_epi32(b[i], b[i + 4]);
        char* at = dst + 4 * i * out_stride;
        _mm_storel_epi64(reinterpret_cast<__m128i*>(at), low);
        _mm_storel_epi64(reinterpret_cast<__m128i*>(at + out_stride), _mm_srli_si128(low, 8));
        _mm_storel_epi64(reinterpret_cast<__m128i*>(at + 2 * out_stride), high);
        _mm_storel_epi64(reinterpret_cast<__m128i*>(at + 3 * out_stride), _mm_srli_si128(high, 8));
      }
    }
  Rest<1>(from + rows8 * in_stride, in_stride, to + rows8, out_stride, rows - rows8, cols);
  Rest<1>(from + cols16, in_stride, to + cols16 * out_stride, out_stride, rows8, cols - cols16);
}

}  // namespace npurt::kernels
