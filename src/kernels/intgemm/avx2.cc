// The integer micro-kernel for AVX2: words of two int16.
#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/intgemm/finish.h"
#include "kernels/intgemm/intgemm.h"

namespace npurt::kernels {
namespace {

struct Sums {
  static constexpr int kWidth = 8;
  __m256i v;

  static __m256i First(int n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
  static __m256i FirstDoubles(int n) {
    return _mm256_cmpgt_epi64(_mm256_set1_epi64x(n), _mm256_setr_epi64x(0, 1, 2, 3));
  }
  static Sums zero() { return {_mm256_setzero_si256()}; }
  static Sums broadcast(std::int32_t x) { return {_mm256_set1_epi32(x)}; }
  static Sums load(const std::int32_t* p, int n) { return {_mm256_maskload_epi32(p, First(n))}; }
  static Sums load_words(const Word* p) {
    return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))};
  }
  static Sums broadcast_word(const char* p) {
    std::int32_t x;
    std::memcpy(&x, p, sizeof x);
    return {_mm256_set1_epi32(x)};
  }
  static Sums add(Sums a, Sums b) { return {_mm256_add_epi32(a.v, b.v)}; }
  static Sums sub(Sums a, Sums b) { return {_mm256_sub_epi32(a.v, b.v)}; }
  static Sums mul(Sums a, Sums b) { return {_mm256_mullo_epi32(a.v, b.v)}; }
  template <bool kAUnsigned>
  static Sums dot(Sums acc, Sums a, Sums b) {
    return {_mm256_add_epi32(acc.v, _mm256_madd_epi16(a.v, b.v))};
  }

  // Four of them. A NaN passes both limits and becomes the smallest int32.
  static __m128i Rounded(__m128i sums, const Finish& f, int first, int n) {
    const __m256i lanes = FirstDoubles(n);
    __m256d y = _mm256_add_pd(_mm256_cvtepi32_pd(sums), _mm256_set1_pd(f.row_bias));
    if (f.column_bias != nullptr)
      y = _mm256_add_pd(y, _mm256_maskload_pd(f.column_bias + first, lanes));
    y = _mm256_mul_pd(y, _mm256_set1_pd(f.row_scale));
    if (f.column_scale != nullptr)
      y = _mm256_mul_pd(y, _mm256_maskload_pd(f.column_scale + first, lanes));
    y = _mm256_min_pd(_mm256_set1_pd(f.high), _mm256_max_pd(_mm256_set1_pd(f.low), y));
    const __m128i whole = _mm256_cvtpd_epi32(y);
    const __m128i result = _mm_add_epi32(whole, _mm_set1_epi32(f.zero));
    const __m128i lowest = _mm_set1_epi32(static_cast<std::int32_t>(0x80000000u));
    return _mm_andnot_si128(_mm_cmpeq_epi32(whole, lowest), result);
  }
  static Sums finish(Sums x, const Finish& f, int n) {
    const __m128i low = Rounded(_mm256_castsi256_si128(x.v), f, 0, n);
    const __m128i high = Rounded(_mm256_extracti128_si256(x.v, 1), f, 4, n - 4);
    return {_mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1)};
  }
  void store(std::int32_t* p, int n) const { _mm256_maskstore_epi32(p, First(n), v); }
  void store_bytes(unsigned char* p, int n) const {
    const __m256i low = _mm256_setr_epi8(0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
                                         0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1);
    const __m256i bytes = _mm256_permutevar8x32_epi32(_mm256_shuffle_epi8(v, low),
                                                      _mm256_setr_epi32(0, 4, 1, 1, 1, 1, 1, 1));
    const std::int64_t eight = _mm_cvtsi128_si64(_mm256_castsi256_si128(bytes));
    if (n == kWidth) {
      std::memcpy(p, &eight, 8);
    } else {
      for (int i = 0; i < n; ++i) p[i] = static_cast<unsigned char>(eight >> (8 * i));
    }
  }
};

#include "kernels/intgemm/intgemm.inl"

}  // namespace

void intgemm_6x16_avx2(const IntGemmArgs& args) { MultiplyUpTo<6, false>(args); }

}  // namespace npurt::kernels
