// exp, log, tanh, erf and sigmoid for the F32 of the including header: at most about 2 ulp.
//
// The idea: one text, compiled once per instruction set inside that set's own namespace. It is
// included by <isa>.h only, after F32 and I32 are complete. Range reduction uses a short high part
// of ln 2, so that it is exact with and without fused multiply-add. The polynomials interpolate the
// functions at Chebyshev points (computed with 40 digits; their relative error is below 2^-26).
// NaN gives NaN; infinities give the limits. Results below 2^-126 may be zero.

inline constexpr float kLog2E = 1.44269504089f;
inline constexpr float kLn2High = 0.693359375f;  // 9 bits: exact times any exponent
inline constexpr float kLn2Low = -2.12194440055e-4f;

// e^x for finite x already clamped to [-104, 89].
inline F32 ExpInRange(F32 x) {
  const F32 n = F32::round(F32::mul(x, F32::broadcast(kLog2E)));
  F32 r = F32::fnma(n, F32::broadcast(kLn2High), x);
  r = F32::fnma(n, F32::broadcast(kLn2Low), r);
  F32 p = F32::broadcast(0.001392675796f);
  p = F32::fma(p, r, F32::broadcast(0.008363776761f));
  p = F32::fma(p, r, F32::broadcast(0.04166655167f));
  p = F32::fma(p, r, F32::broadcast(0.1666657336f));
  p = F32::fma(p, r, F32::broadcast(0.5f));
  p = F32::fma(F32::mul(p, r), r, r);
  return F32::scale_by_power_of_two(F32::add(p, F32::broadcast(1.0f)), n);
}

inline F32 F32::exp(F32 x) { return ExpInRange(clamp(x, broadcast(-104.0f), broadcast(89.0f))); }

inline F32 F32::log(F32 x) {
  // Subnormal numbers are scaled up; where the CPU flushes them they count as zero.
  const Mask tiny = lt(x, broadcast(1.17549435e-38f));
  const F32 scaled = select(tiny, mul(x, broadcast(8388608.0f)), x);
  const I32 bits = I32::bits_of(scaled);
  // x = 2^e * m with m in [sqrt(1/2), sqrt(2)): subtracting sqrt(1/2) first moves the split there.
  const I32 e = I32::shift_right<23>(I32::sub(bits, I32::broadcast(0x3f3504f3)));
  const F32 f = sub(I32::sub(bits, I32::shift_left<23>(e)).as_f32(), broadcast(1.0f));
  const F32 exponent = sub(I32::to_f32(e), select(tiny, broadcast(23.0f), zero()));
  F32 p = broadcast(0.06971611471f);
  p = fma(p, f, broadcast(-0.1147973385f));
  p = fma(p, f, broadcast(0.1168541992f));
  p = fma(p, f, broadcast(-0.1242568733f));
  p = fma(p, f, broadcast(0.1424905765f));
  p = fma(p, f, broadcast(-0.1666780232f));
  p = fma(p, f, broadcast(0.2000071575f));
  p = fma(p, f, broadcast(-0.2499999696f));
  p = fma(p, f, broadcast(0.3333333118f));
  const F32 f2 = mul(f, f);
  F32 y = mul(mul(p, f), f2);
  y = fma(exponent, broadcast(kLn2Low), y);
  y = fnma(broadcast(0.5f), f2, y);
  y = fma(exponent, broadcast(kLn2High), add(f, y));
  const F32 infinity = broadcast(__builtin_inff());
  y = select(lt(x, infinity), y, x);  // +Inf and NaN pass
  y = select(eq(x, zero()), neg(infinity), y);
  return select(lt(x, zero()), broadcast(__builtin_nanf("")), y);
}

inline F32 F32::tanh(F32 x) {
  const F32 z = abs(x);
  const F32 t = mul(x, x);
  F32 p = broadcast(0.002292744813f);
  p = fma(p, t, broadcast(-0.008343945513f));
  p = fma(p, t, broadcast(0.02176891865f));
  p = fma(p, t, broadcast(-0.05395925958f));
  p = fma(p, t, broadcast(0.1333330356f));
  p = fma(p, t, broadcast(-0.3333333317f));
  const F32 small = fma(mul(p, t), x, x);
  // 1 - 2 / (e^2z + 1); from 10 on it rounds to 1.
  const F32 e = ExpInRange(clamp(add(z, z), zero(), broadcast(20.0f)));
  const F32 one = broadcast(1.0f);
  const F32 large = sub(one, div(broadcast(2.0f), add(e, one)));
  return select(lt(z, broadcast(0.625f)), small, copysign(large, x));
}

inline F32 F32::erf(F32 x) {
  const F32 z = abs(x);
  const F32 t = mul(x, x);
  F32 p = broadcast(7.875875059e-5f);
  p = fma(p, t, broadcast(-0.0008016864286f));
  p = fma(p, t, broadcast(0.005189087423f));
  p = fma(p, t, broadcast(-0.02685421201f));
  p = fma(p, t, broadcast(0.1128359472f));
  p = fma(p, t, broadcast(-0.3761262667f));
  p = fma(p, t, broadcast(0.1283791658f));
  const F32 small = fma(p, x, x);
  // 1 - e^q with q = log(erfc(z)); from 3.93 on it rounds to 1.
  const F32 c = clamp(z, zero(), broadcast(3.93f));
  F32 q = broadcast(1.666447656e-6f);
  q = fma(q, c, broadcast(-4.661299549e-5f));
  q = fma(q, c, broadcast(0.0006012837688f));
  q = fma(q, c, broadcast(-0.004779665798f));
  q = fma(q, c, broadcast(0.02647567968f));
  q = fma(q, c, broadcast(-0.1101719933f));
  q = fma(q, c, broadcast(-0.6317323837f));
  q = fma(q, c, broadcast(-1.130286183f));
  q = fma(q, c, broadcast(0.0003327039045f));
  const F32 large = sub(broadcast(1.0f), ExpInRange(q));
  return select(lt(z, broadcast(1.0f)), small, copysign(large, x));
}

inline F32 F32::sigmoid(F32 x) {
  const F32 one = broadcast(1.0f);
  return div(one, add(one, exp(neg(x))));
}
