// Vectors of sixteen floats or int32 for AVX-512 (F, BW, DQ, VL): see avx2.h for the idea.
#ifndef NPURT_KERNELS_SIMD_AVX512_H_
#define NPURT_KERNELS_SIMD_AVX512_H_

#if defined(__GNUC__) && !defined(__clang__)
// GCC 12's own header reads a deliberately undefined register; the warning is about that.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace npurt::kernels::simd::avx512 {
namespace {

struct Mask {
  __mmask16 v;
  static Mask and_(Mask a, Mask b) { return {static_cast<__mmask16>(a.v & b.v)}; }
  static Mask or_(Mask a, Mask b) { return {static_cast<__mmask16>(a.v | b.v)}; }
  static Mask not_(Mask a) { return {static_cast<__mmask16>(~a.v)}; }
  // Bit i is lane i.
  unsigned bits() const { return v; }
};

// Lanes 0 to n-1.
inline __mmask16 FirstLanes(int n) { return static_cast<__mmask16>((1u << n) - 1u); }

struct F32 {
  static constexpr int kWidth = 16;
  __m512 v;

  static F32 zero() { return {_mm512_setzero_ps()}; }
  static F32 broadcast(float x) { return {_mm512_set1_ps(x)}; }
  // All lanes *p, which may have any alignment.
  static F32 load_broadcast(const float* p) {
    float x;
    std::memcpy(&x, p, sizeof x);
    return broadcast(x);
  }
  static F32 load(const float* p) { return {_mm512_loadu_ps(p)}; }
  // Lanes from n on are zero.
  static F32 load_partial(const float* p, int n) {
    return {_mm512_maskz_loadu_ps(FirstLanes(n), p)};
  }
  void store(float* p) const { _mm512_storeu_ps(p, v); }
  void store_partial(float* p, int n) const { _mm512_mask_storeu_ps(p, FirstLanes(n), v); }

  static F32 load_f16(const std::uint16_t* p) {
    return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
  }
  static F32 load_f16_partial(const std::uint16_t* p, int n) {
    return {_mm512_cvtph_ps(_mm256_maskz_loadu_epi16(FirstLanes(n), p))};
  }
  void store_f16(std::uint16_t* p) const {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), ToF16());
  }
  void store_f16_partial(std::uint16_t* p, int n) const {
    _mm256_mask_storeu_epi16(p, FirstLanes(n), ToF16());
  }
  static F32 load_bf16(const std::uint16_t* p) {
    return FromBf16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static F32 load_bf16_partial(const std::uint16_t* p, int n) {
    return FromBf16(_mm256_maskz_loadu_epi16(FirstLanes(n), p));
  }
  // Rounds to nearest even; a NaN stays a NaN (made quiet).
  void store_bf16(std::uint16_t* p) const {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), ToBf16());
  }
  void store_bf16_partial(std::uint16_t* p, int n) const {
    _mm256_mask_storeu_epi16(p, FirstLanes(n), ToBf16());
  }

  static F32 add(F32 a, F32 b) { return {_mm512_add_ps(a.v, b.v)}; }
  static F32 sub(F32 a, F32 b) { return {_mm512_sub_ps(a.v, b.v)}; }
  static F32 mul(F32 a, F32 b) { return {_mm512_mul_ps(a.v, b.v)}; }
  static F32 div(F32 a, F32 b) { return {_mm512_div_ps(a.v, b.v)}; }
  // a * b + c, and c - a * b: rounded once where the set can.
  static F32 fma(F32 a, F32 b, F32 c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
  static F32 fnma(F32 a, F32 b, F32 c) { return {_mm512_fnmadd_ps(a.v, b.v, c.v)}; }
  static F32 sqrt(F32 a) { return {_mm512_sqrt_ps(a.v)}; }
  static F32 abs(F32 a) { return {_mm512_andnot_ps(_mm512_set1_ps(-0.0f), a.v)}; }
  static F32 neg(F32 a) { return {_mm512_xor_ps(_mm512_set1_ps(-0.0f), a.v)}; }
  static F32 copysign(F32 magnitude, F32 sign) {
    const __m512 bit = _mm512_set1_ps(-0.0f);
    return {_mm512_or_ps(_mm512_andnot_ps(bit, magnitude.v), _mm512_and_ps(bit, sign.v))};
  }

  // NaN if either is NaN.
  static F32 max(F32 a, F32 b) {
    return {_mm512_mask_mov_ps(_mm512_max_ps(a.v, b.v), is_nan(a).v, a.v)};
  }
  static F32 min(F32 a, F32 b) {
    return {_mm512_mask_mov_ps(_mm512_min_ps(a.v, b.v), is_nan(a).v, a.v)};
  }
  // One instruction each: b if either is NaN.
  static F32 max_or_second(F32 a, F32 b) { return {_mm512_max_ps(a.v, b.v)}; }
  static F32 min_or_second(F32 a, F32 b) { return {_mm512_min_ps(a.v, b.v)}; }
  // min(high, max(low, x)); a NaN in x stays, the limits are no NaN.
  static F32 clamp(F32 x, F32 low, F32 high) { return min_or_second(high, max_or_second(low, x)); }

  static F32 floor(F32 a) {
    return {_mm512_roundscale_ps(a.v, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC)};
  }
  static F32 ceil(F32 a) {
    return {_mm512_roundscale_ps(a.v, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC)};
  }
  static F32 trunc(F32 a) {
    return {_mm512_roundscale_ps(a.v, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC)};
  }
  // Halves go to the even neighbour.
  static F32 round(F32 a) {
    return {_mm512_roundscale_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
  }

  // Comparisons with NaN are false, except ne.
  static Mask eq(F32 a, F32 b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_EQ_OQ)}; }
  static Mask ne(F32 a, F32 b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_NEQ_UQ)}; }
  static Mask lt(F32 a, F32 b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ)}; }
  static Mask le(F32 a, F32 b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LE_OQ)}; }
  static Mask gt(F32 a, F32 b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_GT_OQ)}; }
  static Mask ge(F32 a, F32 b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_GE_OQ)}; }
  static Mask is_nan(F32 a) { return {_mm512_cmp_ps_mask(a.v, a.v, _CMP_UNORD_Q)}; }
  static F32 select(Mask m, F32 yes, F32 no) { return {_mm512_mask_mov_ps(no.v, m.v, yes.v)}; }

  // a * 2^n for whole n in [-252, 254]; rounds once.
  static F32 scale_by_power_of_two(F32 a, F32 n) { return {_mm512_scalef_ps(a.v, n.v)}; }

  // Always the same tree: halves, then quarters, eighths and pairs.
  static float reduce_add(F32 a) {
    const __m256 h = _mm256_add_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1));
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
  }
  // NaN if any lane is NaN.
  static float reduce_max(F32 a) {
    a = max(a, {_mm512_shuffle_f32x4(a.v, a.v, 0x4e)});
    a = max(a, {_mm512_shuffle_f32x4(a.v, a.v, 0xb1)});
    a = max(a, {_mm512_permute_ps(a.v, 0x4e)});
    a = max(a, {_mm512_permute_ps(a.v, 0xb1)});
    return _mm512_cvtss_f32(a.v);
  }
  static float reduce_min(F32 a) {
    a = min(a, {_mm512_shuffle_f32x4(a.v, a.v, 0x4e)});
    a = min(a, {_mm512_shuffle_f32x4(a.v, a.v, 0xb1)});
    a = min(a, {_mm512_permute_ps(a.v, 0x4e)});
    a = min(a, {_mm512_permute_ps(a.v, 0xb1)});
    return _mm512_cvtss_f32(a.v);
  }

  // See math.inl.
  static F32 exp(F32 x);
  static F32 log(F32 x);
  static F32 tanh(F32 x);
  static F32 erf(F32 x);
  static F32 sigmoid(F32 x);

 private:
  __m256i ToF16() const {
    return _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
  static F32 FromBf16(__m256i half) {
    return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16))};
  }
  __m256i ToBf16() const {
    const __m512i bits = _mm512_castps_si512(v);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i rounded =
        _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    const __m512i quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x400000));
    const __mmask16 nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(_mm512_mask_mov_epi32(rounded, nan, quiet), 16));
  }
};

struct I32 {
  static constexpr int kWidth = 16;
  __m512i v;

  static I32 zero() { return {_mm512_setzero_si512()}; }
  static I32 broadcast(std::int32_t x) { return {_mm512_set1_epi32(x)}; }
  static I32 load(const std::int32_t* p) { return {_mm512_loadu_si512(p)}; }
  static I32 load_partial(const std::int32_t* p, int n) {
    return {_mm512_maskz_loadu_epi32(FirstLanes(n), p)};
  }
  void store(std::int32_t* p) const { _mm512_storeu_si512(p, v); }
  void store_partial(std::int32_t* p, int n) const {
    _mm512_mask_storeu_epi32(p, FirstLanes(n), v);
  }

  static I32 add(I32 a, I32 b) { return {_mm512_add_epi32(a.v, b.v)}; }
  static I32 sub(I32 a, I32 b) { return {_mm512_sub_epi32(a.v, b.v)}; }
  static I32 mul(I32 a, I32 b) { return {_mm512_mullo_epi32(a.v, b.v)}; }
  static I32 min(I32 a, I32 b) { return {_mm512_min_epi32(a.v, b.v)}; }
  static I32 max(I32 a, I32 b) { return {_mm512_max_epi32(a.v, b.v)}; }
  static I32 and_(I32 a, I32 b) { return {_mm512_and_si512(a.v, b.v)}; }
  static I32 or_(I32 a, I32 b) { return {_mm512_or_si512(a.v, b.v)}; }
  static I32 xor_(I32 a, I32 b) { return {_mm512_xor_si512(a.v, b.v)}; }
  template <int kBits>
  static I32 shift_left(I32 a) {
    return {_mm512_slli_epi32(a.v, kBits)};
  }
  // Arithmetic: the sign is copied in.
  template <int kBits>
  static I32 shift_right(I32 a) {
    return {_mm512_srai_epi32(a.v, kBits)};
  }
  static Mask eq(I32 a, I32 b) { return {_mm512_cmpeq_epi32_mask(a.v, b.v)}; }
  static Mask gt(I32 a, I32 b) { return {_mm512_cmpgt_epi32_mask(a.v, b.v)}; }
  static I32 select(Mask m, I32 yes, I32 no) { return {_mm512_mask_mov_epi32(no.v, m.v, yes.v)}; }

  // What does not fit becomes the smallest int32.
  static I32 from_f32_trunc(F32 a) { return {_mm512_cvttps_epi32(a.v)}; }
  static I32 from_f32_round(F32 a) { return {_mm512_cvtps_epi32(a.v)}; }
  static F32 to_f32(I32 a) { return {_mm512_cvtepi32_ps(a.v)}; }
  static I32 bits_of(F32 a) { return {_mm512_castps_si512(a.v)}; }
  F32 as_f32() const { return {_mm512_castsi512_ps(v)}; }
};

#include "kernels/simd/math.inl"

// Elements 0, 2, 4 … of `low` followed by `high`.
inline F32 EvenOf(F32 low, F32 high) {
  const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  return {_mm512_permutex2var_ps(low.v, even, high.v)};
}
// Elements of a and b by turns: the first half of both, and the second.
inline F32 ZipLow(F32 a, F32 b) {
  const __m512i turns = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  return {_mm512_permutex2var_ps(a.v, turns, b.v)};
}
inline F32 ZipHigh(F32 a, F32 b) {
  const __m512i turns =
      _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  return {_mm512_permutex2var_ps(a.v, turns, b.v)};
}
// base[index[i]] per lane.
inline F32 Gather(const float* base, I32 index) { return {_mm512_i32gather_ps(index.v, base, 4)}; }
// Bytes as int32.
inline I32 LoadU8(const std::uint8_t* p) {
  return {_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))};
}

}  // namespace
}  // namespace npurt::kernels::simd::avx512

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
#endif  // NPURT_KERNELS_SIMD_AVX512_H_
