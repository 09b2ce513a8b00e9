// Vectors of eight floats or int32 for AVX2 with FMA and F16C.
//
// The idea: every <isa>.h defines the same F32, I32 and Mask, so a kernel is written once as a
// template over them and instantiated per instruction set. Everything has internal linkage: a copy
// compiled for this set can never be the one that the linker keeps for other files. Values only, no
// state. Loads and stores need no alignment; the partial forms touch the first n elements only.
#ifndef NPURT_KERNELS_SIMD_AVX2_H_
#define NPURT_KERNELS_SIMD_AVX2_H_

#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace npurt::kernels::simd::avx2 {
namespace {

struct Mask {
  __m256 v;
  static Mask and_(Mask a, Mask b) { return {_mm256_and_ps(a.v, b.v)}; }
  static Mask or_(Mask a, Mask b) { return {_mm256_or_ps(a.v, b.v)}; }
  static Mask not_(Mask a) {
    return {_mm256_xor_ps(a.v, _mm256_castsi256_ps(_mm256_set1_epi32(-1)))};
  }
  // Bit i is lane i.
  unsigned bits() const { return static_cast<unsigned>(_mm256_movemask_ps(v)); }
};

// Lanes 0 to n-1, as AVX2 mask loads and stores want them.
inline __m256i FirstLanes(int n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

struct F32 {
  static constexpr int kWidth = 8;
  __m256 v;

  static F32 zero() { return {_mm256_setzero_ps()}; }
  static F32 broadcast(float x) { return {_mm256_set1_ps(x)}; }
  // All lanes *p, which may have any alignment.
  static F32 load_broadcast(const float* p) {
    float x;
    std::memcpy(&x, p, sizeof x);
    return broadcast(x);
  }
  static F32 load(const float* p) { return {_mm256_loadu_ps(p)}; }
  // Lanes from n on are zero.
  static F32 load_partial(const float* p, int n) { return {_mm256_maskload_ps(p, FirstLanes(n))}; }
  void store(float* p) const { _mm256_storeu_ps(p, v); }
  void store_partial(float* p, int n) const { _mm256_maskstore_ps(p, FirstLanes(n), v); }

  static F32 load_f16(const std::uint16_t* p) {
    return {_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))};
  }
  static F32 load_f16_partial(const std::uint16_t* p, int n) {
    std::uint16_t part[kWidth] = {};
    std::memcpy(part, p, static_cast<std::size_t>(n) * 2);
    return load_f16(part);
  }
  void store_f16(std::uint16_t* p) const {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                     _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }
  void store_f16_partial(std::uint16_t* p, int n) const {
    std::uint16_t part[kWidth];
    store_f16(part);
    std::memcpy(p, part, static_cast<std::size_t>(n) * 2);
  }
  static F32 load_bf16(const std::uint16_t* p) {
    const __m256i wide =
        _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
    return {_mm256_castsi256_ps(_mm256_slli_epi32(wide, 16))};
  }
  static F32 load_bf16_partial(const std::uint16_t* p, int n) {
    std::uint16_t part[kWidth] = {};
    std::memcpy(part, p, static_cast<std::size_t>(n) * 2);
    return load_bf16(part);
  }
  // Rounds to nearest even; a NaN stays a NaN (made quiet).
  void store_bf16(std::uint16_t* p) const {
    const __m256i bits = _mm256_castps_si256(v);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i rounded =
        _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
    const __m256i high = _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, nan), 16);
    _mm_storeu_si128(
        reinterpret_cast<__m128i*>(p),
        _mm_packus_epi32(_mm256_castsi256_si128(high), _mm256_extracti128_si256(high, 1)));
  }
  void store_bf16_partial(std::uint16_t* p, int n) const {
    std::uint16_t part[kWidth];
    store_bf16(part);
    std::memcpy(p, part, static_cast<std::size_t>(n) * 2);
  }

  static F32 add(F32 a, F32 b) { return {_mm256_add_ps(a.v, b.v)}; }
  static F32 sub(F32 a, F32 b) { return {_mm256_sub_ps(a.v, b.v)}; }
  static F32 mul(F32 a, F32 b) { return {_mm256_mul_ps(a.v, b.v)}; }
  static F32 div(F32 a, F32 b) { return {_mm256_div_ps(a.v, b.v)}; }
  // a * b + c, and c - a * b: rounded once where the set can.
  static F32 fma(F32 a, F32 b, F32 c) { return {_mm256_fmadd_ps(a.v, b.v, c.v)}; }
  static F32 fnma(F32 a, F32 b, F32 c) { return {_mm256_fnmadd_ps(a.v, b.v, c.v)}; }
  static F32 sqrt(F32 a) { return {_mm256_sqrt_ps(a.v)}; }
  static F32 abs(F32 a) { return {_mm256_andnot_ps(_mm256_set1_ps(-0.0f), a.v)}; }
  static F32 neg(F32 a) { return {_mm256_xor_ps(_mm256_set1_ps(-0.0f), a.v)}; }
  static F32 copysign(F32 magnitude, F32 sign) {
    const __m256 bit = _mm256_set1_ps(-0.0f);
    return {_mm256_or_ps(_mm256_andnot_ps(bit, magnitude.v), _mm256_and_ps(bit, sign.v))};
  }

  // NaN if either is NaN.
  static F32 max(F32 a, F32 b) {
    return {_mm256_blendv_ps(_mm256_max_ps(a.v, b.v), a.v, _mm256_cmp_ps(a.v, a.v, _CMP_UNORD_Q))};
  }
  static F32 min(F32 a, F32 b) {
    return {_mm256_blendv_ps(_mm256_min_ps(a.v, b.v), a.v, _mm256_cmp_ps(a.v, a.v, _CMP_UNORD_Q))};
  }
  // One instruction each: b if either is NaN.
  static F32 max_or_second(F32 a, F32 b) { return {_mm256_max_ps(a.v, b.v)}; }
  static F32 min_or_second(F32 a, F32 b) { return {_mm256_min_ps(a.v, b.v)}; }
  // min(high, max(low, x)); a NaN in x stays, the limits are no NaN.
  static F32 clamp(F32 x, F32 low, F32 high) { return min_or_second(high, max_or_second(low, x)); }

  static F32 floor(F32 a) { return {_mm256_floor_ps(a.v)}; }
  static F32 ceil(F32 a) { return {_mm256_ceil_ps(a.v)}; }
  static F32 trunc(F32 a) { return {_mm256_round_ps(a.v, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC)}; }
  // Halves go to the even neighbour.
  static F32 round(F32 a) {
    return {_mm256_round_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
  }

  // Comparisons with NaN are false, except ne.
  static Mask eq(F32 a, F32 b) { return {_mm256_cmp_ps(a.v, b.v, _CMP_EQ_OQ)}; }
  static Mask ne(F32 a, F32 b) { return {_mm256_cmp_ps(a.v, b.v, _CMP_NEQ_UQ)}; }
  static Mask lt(F32 a, F32 b) { return {_mm256_cmp_ps(a.v, b.v, _CMP_LT_OQ)}; }
  static Mask le(F32 a, F32 b) { return {_mm256_cmp_ps(a.v, b.v, _CMP_LE_OQ)}; }
  static Mask gt(F32 a, F32 b) { return {_mm256_cmp_ps(a.v, b.v, _CMP_GT_OQ)}; }
  static Mask ge(F32 a, F32 b) { return {_mm256_cmp_ps(a.v, b.v, _CMP_GE_OQ)}; }
  static Mask is_nan(F32 a) { return {_mm256_cmp_ps(a.v, a.v, _CMP_UNORD_Q)}; }
  static F32 select(Mask m, F32 yes, F32 no) { return {_mm256_blendv_ps(no.v, yes.v, m.v)}; }

  // a * 2^n for whole n in [-252, 254]; rounds once.
  static F32 scale_by_power_of_two(F32 a, F32 n) {
    // Two factors, because 2^n alone may not be a float.
    const __m256i whole = _mm256_cvtps_epi32(n.v);
    const __m256i half = _mm256_srai_epi32(whole, 1);
    const __m256i rest = _mm256_sub_epi32(whole, half);
    const __m256i bias = _mm256_set1_epi32(127);
    const __m256 x = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(half, bias), 23));
    const __m256 y = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(rest, bias), 23));
    return {_mm256_mul_ps(_mm256_mul_ps(a.v, x), y)};
  }

  // Always the same tree: halves, then quarters, then pairs.
  static float reduce_add(F32 a) {
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(a.v), _mm256_extractf128_ps(a.v, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
  }
  // NaN if any lane is NaN.
  static float reduce_max(F32 a) {
    a = max(a, {_mm256_permute2f128_ps(a.v, a.v, 1)});
    a = max(a, {_mm256_permute_ps(a.v, 0x4e)});
    a = max(a, {_mm256_permute_ps(a.v, 0xb1)});
    return _mm256_cvtss_f32(a.v);
  }
  static float reduce_min(F32 a) {
    a = min(a, {_mm256_permute2f128_ps(a.v, a.v, 1)});
    a = min(a, {_mm256_permute_ps(a.v, 0x4e)});
    a = min(a, {_mm256_permute_ps(a.v, 0xb1)});
    return _mm256_cvtss_f32(a.v);
  }

  // See math.inl.
  static F32 exp(F32 x);
  static F32 log(F32 x);
  static F32 tanh(F32 x);
  static F32 erf(F32 x);
  static F32 sigmoid(F32 x);
};

struct I32 {
  static constexpr int kWidth = 8;
  __m256i v;

  static I32 zero() { return {_mm256_setzero_si256()}; }
  static I32 broadcast(std::int32_t x) { return {_mm256_set1_epi32(x)}; }
  static I32 load(const std::int32_t* p) {
    return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))};
  }
  static I32 load_partial(const std::int32_t* p, int n) {
    return {_mm256_maskload_epi32(p, FirstLanes(n))};
  }
  void store(std::int32_t* p) const { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), v); }
  void store_partial(std::int32_t* p, int n) const { _mm256_maskstore_epi32(p, FirstLanes(n), v); }

  static I32 add(I32 a, I32 b) { return {_mm256_add_epi32(a.v, b.v)}; }
  static I32 sub(I32 a, I32 b) { return {_mm256_sub_epi32(a.v, b.v)}; }
  static I32 mul(I32 a, I32 b) { return {_mm256_mullo_epi32(a.v, b.v)}; }
  static I32 min(I32 a, I32 b) { return {_mm256_min_epi32(a.v, b.v)}; }
  static I32 max(I32 a, I32 b) { return {_mm256_max_epi32(a.v, b.v)}; }
  static I32 and_(I32 a, I32 b) { return {_mm256_and_si256(a.v, b.v)}; }
  static I32 or_(I32 a, I32 b) { return {_mm256_or_si256(a.v, b.v)}; }
  static I32 xor_(I32 a, I32 b) { return {_mm256_xor_si256(a.v, b.v)}; }
  template <int kBits>
  static I32 shift_left(I32 a) {
    return {_mm256_slli_epi32(a.v, kBits)};
  }
  // Arithmetic: the sign is copied in.
  template <int kBits>
  static I32 shift_right(I32 a) {
    return {_mm256_srai_epi32(a.v, kBits)};
  }
  static Mask eq(I32 a, I32 b) { return {_mm256_castsi256_ps(_mm256_cmpeq_epi32(a.v, b.v))}; }
  static Mask gt(I32 a, I32 b) { return {_mm256_castsi256_ps(_mm256_cmpgt_epi32(a.v, b.v))}; }
  static I32 select(Mask m, I32 yes, I32 no) {
    return {_mm256_blendv_epi8(no.v, yes.v, _mm256_castps_si256(m.v))};
  }

  // What does not fit becomes the smallest int32.
  static I32 from_f32_trunc(F32 a) { return {_mm256_cvttps_epi32(a.v)}; }
  static I32 from_f32_round(F32 a) { return {_mm256_cvtps_epi32(a.v)}; }
  static F32 to_f32(I32 a) { return {_mm256_cvtepi32_ps(a.v)}; }
  static I32 bits_of(F32 a) { return {_mm256_castps_si256(a.v)}; }
  F32 as_f32() const { return {_mm256_castsi256_ps(v)}; }
};

#include "kernels/simd/math.inl"

// Elements 0, 2, 4 … of `low` followed by `high`.
inline F32 EvenOf(F32 low, F32 high) {
  const __m256 pairs = _mm256_shuffle_ps(low.v, high.v, 0x88);
  return {_mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(pairs), 0xd8))};
}
// Elements of a and b by turns: the first half of both, and the second.
inline F32 ZipLow(F32 a, F32 b) {
  return {_mm256_permute2f128_ps(_mm256_unpacklo_ps(a.v, b.v), _mm256_unpackhi_ps(a.v, b.v), 0x20)};
}
inline F32 ZipHigh(F32 a, F32 b) {
  return {_mm256_permute2f128_ps(_mm256_unpacklo_ps(a.v, b.v), _mm256_unpackhi_ps(a.v, b.v), 0x31)};
}
// base[index[i]] per lane.
inline F32 Gather(const float* base, I32 index) { return {_mm256_i32gather_ps(base, index.v, 4)}; }
// Bytes as int32.
inline I32 LoadU8(const std::uint8_t* p) {
  return {_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)))};
}

}  // namespace
}  // namespace npurt::kernels::simd::avx2

#endif  // NPURT_KERNELS_SIMD_AVX2_H_
