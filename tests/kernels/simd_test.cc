// simd/<isa>.h: every instruction set computes the same functions, on every number of lanes.
#include <gtest/gtest.h>

#include <cfloat>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "base/dtype.h"
#include "kernels/simd_functions.h"
#include "support/guarded_buffer.h"

namespace npurt::kernels {
namespace {

constexpr float kInf = INFINITY;

float FromBits(std::uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}
std::uint32_t BitsOf(float x) {
  std::uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}

// The distance in units of the last place of `want` as a float.
double UlpError(double want, float got) {
  if (std::isnan(want)) return std::isnan(got) ? 0 : INFINITY;
  if (std::isinf(static_cast<float>(want))) return static_cast<float>(want) == got ? 0 : INFINITY;
  // Results below the smallest normal number may be zero.
  if (std::fabs(want) < 1.2e-38) return std::fabs(got) < 1.3e-38 ? 0 : INFINITY;
  int exponent;
  std::frexp(want, &exponent);
  return std::fabs(got - want) / std::ldexp(1.0, exponent - 24);
}

class SimdCheck : public ::testing::TestWithParam<const SimdFunctions*> {
 protected:
  const SimdFunctions& simd() const { return *GetParam(); }
};
#define SKIP_UNLESS_RUNNABLE() NPURT_SKIP_UNLESS_ISA(simd().needs, simd().name)

std::vector<float> OddValues() {
  return {0.0f,     -0.0f,    1.0f,        -1.0f,      0.5f,        -0.5f,         1.5f,
          2.5f,     -2.5f,    0.49999997f, 8388607.5f, -8388609.0f, 2147483520.0f, -2147483648.0f,
          3e9f,     -3e9f,    FLT_MAX,     -FLT_MAX,   FLT_MIN,     -FLT_MIN,      1e-40f,
          kInf,     -kInf,    NAN,         88.8f,      -88.8f,      103.0f,        -104.5f,
          65504.0f, 65519.9f, 65520.0f,    6e-8f,      2.9e-8f,     3.05e-5f};
}

TEST_P(SimdCheck, StaysWithinTwoUnitsInTheLastPlaceOfTheTrueValue) {
  SKIP_UNLESS_RUNNABLE();
  struct Row {
    Unary f;
    double (*want)(double);
    double most;
  };
  const Row rows[] = {
      {Unary::kExp, [](double x) { return std::exp(x); }, 2},
      {Unary::kLog, [](double x) { return std::log(x); }, 2},
      {Unary::kTanh, [](double x) { return std::tanh(x); }, 2},
      {Unary::kErf, [](double x) { return std::erf(x); }, 2},
      {Unary::kSigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }, 3},
      {Unary::kSqrt, [](double x) { return std::sqrt(x); }, 0.5},
  };
  for (const Row& row : rows) {
    std::vector<float> x = OddValues();
    // A comb over all floats, and a finer one where the functions bend.
    for (std::uint64_t bits = 0; bits < (std::uint64_t{1} << 32); bits += 65537)
      x.push_back(FromBits(static_cast<std::uint32_t>(bits)));
    for (float v = -20; v < 20; v += 0.00137f) x.push_back(v);
    while (x.size() % 16 != 0) x.push_back(1);
    std::vector<float> y(x.size());
    for (std::size_t i = 0; i < x.size(); i += static_cast<std::size_t>(simd().width))
      simd().unary(row.f, &x[i], &y[i], simd().width);
    for (std::size_t i = 0; i < x.size(); ++i)
      ASSERT_LE(UlpError(row.want(x[i]), y[i]), row.most)
          << simd().name << " function " << static_cast<int>(row.f) << " of " << x[i] << " is "
          << y[i];
  }
}

TEST_P(SimdCheck, RoundsLikeTheStandardLibrary) {
  SKIP_UNLESS_RUNNABLE();
  struct Row {
    Unary f;
    float (*want)(float);
  };
  const Row rows[] = {
      {Unary::kCopy, [](float x) { return x; }},
      {Unary::kAbs, [](float x) { return std::fabs(x); }},
      {Unary::kNeg, [](float x) { return -x; }},
      {Unary::kFloor, [](float x) { return std::floor(x); }},
      {Unary::kCeil, [](float x) { return std::ceil(x); }},
      {Unary::kTrunc, [](float x) { return std::trunc(x); }},
      {Unary::kRound, [](float x) { return std::nearbyint(x); }},
      {Unary::kThroughInt,
       [](float x) {
         return std::fabs(x) < 2147483648.0f ? std::trunc(x) + 0.0f : -2147483648.0f;
       }},
      {Unary::kThroughRoundedInt,
       [](float x) {
         return std::fabs(x) < 2147483648.0f ? std::nearbyint(x) + 0.0f : -2147483648.0f;
       }},
      {Unary::kThroughF16, [](float x) { return static_cast<float>(Half(x)); }},
      {Unary::kThroughBf16, [](float x) { return static_cast<float>(BFloat16(x)); }},
  };
  const std::vector<float> x = OddValues();
  for (const Row& row : rows)
    for (float value : x) {
      const std::vector<float> in(static_cast<std::size_t>(simd().width), value);
      std::vector<float> out(in.size());
      simd().unary(row.f, in.data(), out.data(), simd().width);
      const float want = row.want(value);
      for (float got : out) {
        if (std::isnan(want)) {
          ASSERT_TRUE(std::isnan(got)) << simd().name << " " << static_cast<int>(row.f);
        } else {
          ASSERT_EQ(got, want) << simd().name << " " << static_cast<int>(row.f) << " of " << value;
          // The sign of zero too, but an integer has none.
          if (row.f != Unary::kThroughInt && row.f != Unary::kThroughRoundedInt) {
            ASSERT_EQ(std::signbit(got), std::signbit(want))
                << simd().name << " " << static_cast<int>(row.f) << " of " << value;
          }
        }
      }
    }
}

TEST_P(SimdCheck, PropagatesNanThroughMaxMinAndClamp) {
  SKIP_UNLESS_RUNNABLE();
  const std::vector<float> values = {NAN, -kInf, -2, -0.0f, 0.5f, 3, kInf};
  const auto nan_or = [](float a, float b, float other) {
    return std::isnan(a) || std::isnan(b) ? NAN : other;
  };
  for (float a : values)
    for (float b : values) {
      const auto check = [&](Binary f, float want) {
        float got;
        simd().binary(f, &a, &b, &got, 1);
        if (std::isnan(want)) {
          EXPECT_TRUE(std::isnan(got)) << static_cast<int>(f) << " of " << a << ", " << b;
        } else {
          EXPECT_EQ(got, want) << static_cast<int>(f) << " of " << a << ", " << b;
        }
      };
      check(Binary::kMax, nan_or(a, b, a > b ? a : b));
      check(Binary::kMin, nan_or(a, b, a < b ? a : b));
      check(Binary::kClampToOne, std::isnan(a) ? NAN : a < -1 ? -1 : a > 1 ? 1 : a);
      check(Binary::kSelectLess, a < b ? a : b);
      check(Binary::kAdd, a + b);
      check(Binary::kSub, a - b);
      check(Binary::kMul, a * b);
      check(Binary::kDiv, a / b);
    }
}

TEST_P(SimdCheck, PartialLoadsAndStoresTouchOnlyTheirElements) {
  SKIP_UNLESS_RUNNABLE();
  for (int n = 0; n <= simd().width; ++n) {
    const std::size_t count = static_cast<std::size_t>(n);
    GuardedBuffer<float> x(count), y(count);
    GuardedBuffer<std::uint16_t> half(count), bf(count);
    for (std::size_t i = 0; i < count; ++i) x[i] = static_cast<float>(i) - 2.5f;
    simd().unary(Unary::kCopy, x.data(), y.data(), n);
    simd().f32_to_f16(x.data(), half.data(), n);
    simd().f32_to_bf16(x.data(), bf.data(), n);
    for (std::size_t i = 0; i < count; ++i) {
      EXPECT_EQ(y[i], x[i]);
      EXPECT_EQ(half[i], Half(x[i]).bits());
      EXPECT_EQ(bf[i], BFloat16(x[i]).bits());
    }
    simd().f16_to_f32(half.data(), y.data(), n);
    for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(y[i], x[i]);
    // What lies after the elements stays.
    std::vector<float> tail(32, 7.0f);
    simd().unary(Unary::kCopy, x.data(), tail.data(), n);
    for (std::size_t i = count; i < tail.size(); ++i) ASSERT_EQ(tail[i], 7.0f);
  }
}

TEST_P(SimdCheck, ConvertsEveryHalf) {
  SKIP_UNLESS_RUNNABLE();
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const std::uint16_t half = static_cast<std::uint16_t>(bits);
    float wide;
    simd().f16_to_f32(&half, &wide, 1);
    const float want = HalfBitsToFloat(half);
    if (std::isnan(want)) {
      ASSERT_TRUE(std::isnan(wide)) << bits;
      continue;
    }
    ASSERT_EQ(BitsOf(wide), BitsOf(want)) << bits;
    // And the floats around the middle between this half and the next.
    for (int delta = -1; delta <= 1; ++delta) {
      const float near = FromBits(BitsOf(want) + 0x1000u + static_cast<std::uint32_t>(delta));
      if (std::isnan(near)) continue;
      std::uint16_t back;
      simd().f32_to_f16(&near, &back, 1);
      ASSERT_EQ(back, FloatToHalfBits(near)) << near;
    }
  }
}

TEST_P(SimdCheck, ReducesAndComparesAllLanes) {
  SKIP_UNLESS_RUNNABLE();
  const std::size_t width = static_cast<std::size_t>(simd().width);
  std::mt19937 random(1);
  for (std::size_t place = 0; place < width; ++place) {
    std::vector<float> x(width), y(width, 0.0f);
    for (float& v : x) v = static_cast<float>(static_cast<int>(random() % 100) - 50);
    x[place] = 1000;
    double sum = 0;
    unsigned less = 0;
    for (std::size_t i = 0; i < width; ++i) {
      sum += x[i];
      if (x[i] < y[i]) less |= 1u << i;
    }
    EXPECT_EQ(simd().reduce(Reduce::kAdd, x.data()), sum);
    EXPECT_EQ(simd().reduce(Reduce::kMax, x.data()), 1000);
    EXPECT_EQ(simd().less(x.data(), y.data()), less);
    x[place] = -1000;
    EXPECT_EQ(simd().reduce(Reduce::kMin, x.data()), -1000);
    x[place] = NAN;
    EXPECT_TRUE(std::isnan(simd().reduce(Reduce::kMax, x.data())));
    EXPECT_TRUE(std::isnan(simd().reduce(Reduce::kMin, x.data())));
  }
}

TEST_P(SimdCheck, IntegersWrapAround) {
  SKIP_UNLESS_RUNNABLE();
  std::mt19937 random(2);
  for (int n = 1; n <= simd().width; ++n) {
    std::vector<std::int32_t> a(16), b(16), y(16);
    for (int i = 0; i < 16; ++i) {
      a[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(random());
      b[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(random());
    }
    simd().integers(a.data(), b.data(), y.data(), n);
    for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
      const std::uint32_t ua = static_cast<std::uint32_t>(a[i]);
      const std::uint32_t ub = static_cast<std::uint32_t>(b[i]);
      const std::uint32_t want = (ua + ub) * ub - (ua << 3) + static_cast<std::uint32_t>(b[i] >> 2);
      ASSERT_EQ(static_cast<std::uint32_t>(y[i]), want);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Simd, SimdCheck,
                         ::testing::Values(
#if defined(__x86_64__)
                             &kSimdAvx2, &kSimdAvx512,
#endif
                             &kSimdGeneric),
                         [](const auto& info) { return std::string(info.param->name); });

}  // namespace
}  // namespace npurt::kernels
