// Vectors of four floats or int32 for any CPU: see avx2.h for the idea.
//
// Compiler vectors rather than intrinsics, so that the same text serves every architecture.
// fma rounds twice here.
#ifndef NPURT_KERNELS_SIMD_GENERIC_H_
#define NPURT_KERNELS_SIMD_GENERIC_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace npurt::kernels::simd::generic {
namespace {

typedef float FloatVector __attribute__((vector_size(16)));
typedef std::int32_t IntVector __attribute__((vector_size(16)));

inline IntVector BitsOf(FloatVector a) {
  IntVector b;
  std::memcpy(&b, &a, sizeof b);
  return b;
}
inline FloatVector FloatOf(IntVector a) {
  FloatVector b;
  std::memcpy(&b, &a, sizeof b);
  return b;
}

struct Mask {
  IntVector v;  // all ones or all zeros in each lane
  static Mask and_(Mask a, Mask b) { return {a.v & b.v}; }
  static Mask or_(Mask a, Mask b) { return {a.v | b.v}; }
  static Mask not_(Mask a) { return {~a.v}; }
  // Bit i is lane i.
  unsigned bits() const {
    unsigned set = 0;
    for (int i = 0; i < 4; ++i) set |= (v[i] & 1u) << i;
    return set;
  }
};

inline float F16ToF32(std::uint16_t half) {
  const std::uint32_t sign = (half & 0x8000u) << 16;
  const std::uint32_t rest = half & 0x7fffu;
  // Moved to the place of a float's bits; the exponent bias is corrected by an exact product.
  std::uint32_t bits = rest << 13;
  float value;
  if (rest >= 0x7c00u) {
    bits |= 0x7f800000u;
    if (rest > 0x7c00u) bits |= 0x400000u;
    std::memcpy(&value, &bits, 4);
  } else if (rest < 0x400u) {
    value = static_cast<float>(rest) * 5.9604644775390625e-8f;  // 2^-24; no subnormal float appears
  } else {
    bits += 112u << 23;
    std::memcpy(&value, &bits, 4);
  }
  std::memcpy(&bits, &value, 4);
  bits |= sign;
  std::memcpy(&value, &bits, 4);
  return value;
}

// Rounds to nearest even; a NaN stays a NaN (made quiet).
inline std::uint16_t F32ToF16(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, 4);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  bits &= 0x7fffffffu;
  std::uint32_t half;
  if (bits > 0x7f800000u) {
    half = 0x7e00u | ((bits >> 13) & 0x3ffu);
  } else if (bits >= 0x477ff000u) {  // 65520 and above round to infinity
    half = 0x7c00u;
  } else if (bits < 0x38800000u) {  // below 2^-14: a subnormal half, in units of 2^-24
    float magnitude;
    std::memcpy(&magnitude, &bits, 4);
    // Adding 1/2 leaves units of 2^-24 in the last place, rounded by the addition.
    const float shifted = magnitude + 0.5f;
    std::memcpy(&half, &shifted, 4);
    half -= 0x3f000000u;
  } else {
    bits += 0xfffu + ((bits >> 13) & 1u);
    half = (bits - (112u << 23)) >> 13;
  }
  return static_cast<std::uint16_t>(half | sign);
}

inline float LoadScalar(const float* p) {
  float x;
  std::memcpy(&x, p, sizeof x);
  return x;
}

struct F32 {
  static constexpr int kWidth = 4;
  FloatVector v;

  static F32 zero() { return {FloatVector{0, 0, 0, 0}}; }
  static F32 broadcast(float x) { return {FloatVector{x, x, x, x}}; }
  // All lanes *p, which may have any alignment.
  static F32 load_broadcast(const float* p) { return broadcast(LoadScalar(p)); }
  static F32 load(const float* p) {
    F32 a;
    std::memcpy(&a.v, p, sizeof a.v);
    return a;
  }
  // Lanes from n on are zero.
  static F32 load_partial(const float* p, int n) {
    F32 a = zero();
    for (int i = 0; i < n; ++i) a.v[i] = LoadScalar(p + i);
    return a;
  }
  void store(float* p) const { std::memcpy(p, &v, sizeof v); }
  void store_partial(float* p, int n) const {
    std::memcpy(p, &v, static_cast<std::size_t>(n) * sizeof(float));
  }

  static F32 load_f16(const std::uint16_t* p) { return load_f16_partial(p, kWidth); }
  static F32 load_f16_partial(const std::uint16_t* p, int n) {
    F32 a = zero();
    for (int i = 0; i < n; ++i) a.v[i] = F16ToF32(p[i]);
    return a;
  }
  void store_f16(std::uint16_t* p) const { store_f16_partial(p, kWidth); }
  void store_f16_partial(std::uint16_t* p, int n) const {
    for (int i = 0; i < n; ++i) p[i] = F32ToF16(v[i]);
  }
  static F32 load_bf16(const std::uint16_t* p) { return load_bf16_partial(p, kWidth); }
  static F32 load_bf16_partial(const std::uint16_t* p, int n) {
    IntVector bits = {0, 0, 0, 0};
    for (int i = 0; i < n; ++i) bits[i] = static_cast<std::int32_t>(std::uint32_t{p[i]} << 16);
    return {FloatOf(bits)};
  }
  // Rounds to nearest even; a NaN stays a NaN (made quiet).
  void store_bf16(std::uint16_t* p) const { store_bf16_partial(p, kWidth); }
  void store_bf16_partial(std::uint16_t* p, int n) const {
    for (int i = 0; i < n; ++i) {
      const float value = v[i];
      std::uint32_t bits;
      std::memcpy(&bits, &value, 4);
      bits = value != value ? bits | 0x400000u : bits + 0x7fffu + ((bits >> 16) & 1u);
      p[i] = static_cast<std::uint16_t>(bits >> 16);
    }
  }

  static F32 add(F32 a, F32 b) { return {a.v + b.v}; }
  static F32 sub(F32 a, F32 b) { return {a.v - b.v}; }
  static F32 mul(F32 a, F32 b) { return {a.v * b.v}; }
  static F32 div(F32 a, F32 b) { return {a.v / b.v}; }
  // a * b + c, and c - a * b.
  static F32 fma(F32 a, F32 b, F32 c) { return {a.v * b.v + c.v}; }
  static F32 fnma(F32 a, F32 b, F32 c) { return {c.v - a.v * b.v}; }
  static F32 sqrt(F32 a) {
    for (int i = 0; i < kWidth; ++i) a.v[i] = __builtin_sqrtf(a.v[i]);
    return a;
  }
  static F32 abs(F32 a) { return {FloatOf(BitsOf(a.v) & 0x7fffffff)}; }
  static F32 neg(F32 a) { return {FloatOf(BitsOf(a.v) ^ kSign)}; }
  static F32 copysign(F32 magnitude, F32 sign) {
    return {FloatOf((BitsOf(magnitude.v) & ~kSign) | (BitsOf(sign.v) & kSign))};
  }

  // NaN if either is NaN.
  static F32 max(F32 a, F32 b) { return select(is_nan(a), a, max_or_second(a, b)); }
  static F32 min(F32 a, F32 b) { return select(is_nan(a), a, min_or_second(a, b)); }
  // b if either is NaN.
  static F32 max_or_second(F32 a, F32 b) { return select(gt(a, b), a, b); }
  static F32 min_or_second(F32 a, F32 b) { return select(lt(a, b), a, b); }
  // min(high, max(low, x)); a NaN in x stays, the limits are no NaN.
  static F32 clamp(F32 x, F32 low, F32 high) { return min_or_second(high, max_or_second(low, x)); }

  static F32 floor(F32 a) {
    const F32 r = round(a);
    return copysign(sub(r, select(gt(r, a), broadcast(1.0f), zero())), a);
  }
  static F32 ceil(F32 a) {
    const F32 r = round(a);
    return copysign(add(r, select(lt(r, a), broadcast(1.0f), zero())), a);
  }
  static F32 trunc(F32 a) { return copysign(floor(abs(a)), a); }
  // Halves go to the even neighbour.
  static F32 round(F32 a) {
    // From 2^23 on every float is whole; below, adding 2^23 pushes the fraction out.
    const F32 magnitude = abs(a);
    const F32 big = broadcast(8388608.0f);
    const F32 whole = sub(add(magnitude, big), big);
    return select(lt(magnitude, big), copysign(whole, a), a);
  }

  // Comparisons with NaN are false, except ne.
  static Mask eq(F32 a, F32 b) { return {a.v == b.v}; }
  static Mask ne(F32 a, F32 b) { return {a.v != b.v}; }
  static Mask lt(F32 a, F32 b) { return {a.v < b.v}; }
  static Mask le(F32 a, F32 b) { return {a.v <= b.v}; }
  static Mask gt(F32 a, F32 b) { return {a.v > b.v}; }
  static Mask ge(F32 a, F32 b) { return {a.v >= b.v}; }
  static Mask is_nan(F32 a) { return {a.v != a.v}; }
  static F32 select(Mask m, F32 yes, F32 no) {
    return {FloatOf((BitsOf(yes.v) & m.v) | (BitsOf(no.v) & ~m.v))};
  }

  // a * 2^n for whole n in [-252, 254]; rounds once.
  static F32 scale_by_power_of_two(F32 a, F32 n) {
    // Two factors, because 2^n alone may not be a float. A NaN must not reach the conversion.
    const IntVector whole = __builtin_convertvector(select(is_nan(n), zero(), n).v, IntVector);
    const IntVector half = whole >> 1;
    const IntVector rest = whole - half;
    return {a.v * FloatOf((half + 127) << 23) * FloatOf((rest + 127) << 23)};
  }

  // Always the same tree: halves, then pairs.
  static float reduce_add(F32 a) { return (a.v[0] + a.v[2]) + (a.v[1] + a.v[3]); }
  // NaN if any lane is NaN.
  static float reduce_max(F32 a) {
    a = max(a, {FloatVector{a.v[2], a.v[3], a.v[0], a.v[1]}});
    a = max(a, {FloatVector{a.v[1], a.v[0], a.v[3], a.v[2]}});
    return a.v[0];
  }
  static float reduce_min(F32 a) {
    a = min(a, {FloatVector{a.v[2], a.v[3], a.v[0], a.v[1]}});
    a = min(a, {FloatVector{a.v[1], a.v[0], a.v[3], a.v[2]}});
    return a.v[0];
  }

  // See math.inl.
  static F32 exp(F32 x);
  static F32 log(F32 x);
  static F32 tanh(F32 x);
  static F32 erf(F32 x);
  static F32 sigmoid(F32 x);

 private:
  static constexpr std::int32_t kSign = INT32_MIN;
};

struct I32 {
  static constexpr int kWidth = 4;
  IntVector v;

  static I32 zero() { return {IntVector{0, 0, 0, 0}}; }
  static I32 broadcast(std::int32_t x) { return {IntVector{x, x, x, x}}; }
  static I32 load(const std::int32_t* p) {
    I32 a;
    std::memcpy(&a.v, p, sizeof a.v);
    return a;
  }
  static I32 load_partial(const std::int32_t* p, int n) {
    I32 a = zero();
    for (int i = 0; i < n; ++i) a.v[i] = p[i];
    return a;
  }
  void store(std::int32_t* p) const { std::memcpy(p, &v, sizeof v); }
  void store_partial(std::int32_t* p, int n) const {
    for (int i = 0; i < n; ++i) p[i] = v[i];
  }

  // Sums and products wrap around, as they do in the vector units.
  static I32 add(I32 a, I32 b) { return Wrap(Unsigned(a) + Unsigned(b)); }
  static I32 sub(I32 a, I32 b) { return Wrap(Unsigned(a) - Unsigned(b)); }
  static I32 mul(I32 a, I32 b) { return Wrap(Unsigned(a) * Unsigned(b)); }
  static I32 min(I32 a, I32 b) { return select(gt(a, b), b, a); }
  static I32 max(I32 a, I32 b) { return select(gt(a, b), a, b); }
  static I32 and_(I32 a, I32 b) { return {a.v & b.v}; }
  static I32 or_(I32 a, I32 b) { return {a.v | b.v}; }
  static I32 xor_(I32 a, I32 b) { return {a.v ^ b.v}; }
  template <int kBits>
  static I32 shift_left(I32 a) {
    return Wrap(Unsigned(a) << kBits);
  }
  // Arithmetic: the sign is copied in.
  template <int kBits>
  static I32 shift_right(I32 a) {
    return {a.v >> kBits};
  }
  static Mask eq(I32 a, I32 b) { return {a.v == b.v}; }
  static Mask gt(I32 a, I32 b) { return {a.v > b.v}; }
  static I32 select(Mask m, I32 yes, I32 no) { return {(yes.v & m.v) | (no.v & ~m.v)}; }

  // What does not fit becomes the smallest int32.
  static I32 from_f32_trunc(F32 a) {
    const Mask fits = Mask::and_(F32::ge(a, F32::broadcast(-2147483648.0f)),
                                 F32::lt(a, F32::broadcast(2147483648.0f)));
    const F32 safe = F32::select(fits, a, F32::zero());
    return select(fits, {__builtin_convertvector(safe.v, IntVector)}, broadcast(INT32_MIN));
  }
  static I32 from_f32_round(F32 a) { return from_f32_trunc(F32::round(a)); }
  static F32 to_f32(I32 a) { return {__builtin_convertvector(a.v, FloatVector)}; }
  static I32 bits_of(F32 a) { return {BitsOf(a.v)}; }
  F32 as_f32() const { return {FloatOf(v)}; }

 private:
  typedef std::uint32_t UnsignedVector __attribute__((vector_size(16)));
  static UnsignedVector Unsigned(I32 a) {
    UnsignedVector b;
    std::memcpy(&b, &a.v, sizeof b);
    return b;
  }
  static I32 Wrap(UnsignedVector a) {
    I32 b;
    std::memcpy(&b.v, &a, sizeof b);
    return b;
  }
};

#include "kernels/simd/math.inl"

// Elements 0, 2, 4 … of `low` followed by `high`.
inline F32 EvenOf(F32 low, F32 high) {
  return {FloatVector{low.v[0], low.v[2], high.v[0], high.v[2]}};
}
// Elements of a and b by turns: the first half of both, and the second.
inline F32 ZipLow(F32 a, F32 b) { return {FloatVector{a.v[0], b.v[0], a.v[1], b.v[1]}}; }
inline F32 ZipHigh(F32 a, F32 b) { return {FloatVector{a.v[2], b.v[2], a.v[3], b.v[3]}}; }
// base[index[i]] per lane.
inline F32 Gather(const float* base, I32 index) {
  float lanes[F32::kWidth];
  for (int i = 0; i < F32::kWidth; ++i) std::memcpy(lanes + i, base + index.v[i], sizeof(float));
  return F32::load(lanes);
}
// Bytes as int32.
inline I32 LoadU8(const std::uint8_t* p) { return {IntVector{p[0], p[1], p[2], p[3]}}; }

}  // namespace
}  // namespace npurt::kernels::simd::generic

#endif  // NPURT_KERNELS_SIMD_GENERIC_H_
