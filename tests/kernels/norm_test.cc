// Normalisation kernels against plain loops in double, on all tails.
#include "kernels/norm/norm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "support/guarded_buffer.h"

namespace npurt::kernels {
namespace {

class NormCheck : public ::testing::TestWithParam<NormKernel> {
 protected:
  void Fill(GuardedBuffer<float>* buffer, float low = -2, float high = 2) {
    std::uniform_real_distribution<float> uniform(low, high);
    for (float& x : *buffer) x = uniform(random_);
  }
  std::mt19937 random_{11};
};

TEST_P(NormCheck, LayerAndRmsNormMatchPlainLoopsOnAllTails) {
  const NormKernel& kernel = GetParam();
  NPURT_SKIP_UNLESS_ISA(kernel.needs, kernel.name);
  for (std::size_t n = 1; n <= 75; ++n)
    for (int way = 0; way < 8; ++way) {
      GuardedBuffer<float> in(2 * n), out(2 * n), gamma(n), beta(n), mean(2), inv_std(2);
      Fill(&in);
      Fill(&gamma);
      Fill(&beta);
      const bool rms = (way & 1) != 0;
      LayerNormArgs args = {in.data(),    (way & 2) != 0 ? gamma.data() : nullptr,
                            (way & 4) != 0 ? beta.data() : nullptr,
                            out.data(),   mean.data(),
                            inv_std.data(), 2, n, 1e-5f, rms};
      kernel.layer(args);
      for (std::size_t r = 0; r < 2; ++r) {
        double m = 0, v = 0;
        for (std::size_t i = 0; i < n && !rms; ++i) m += static_cast<double>(in[r * n + i]);
        m /= static_cast<double>(n);
        for (std::size_t i = 0; i < n; ++i) {
          const double d = static_cast<double>(in[r * n + i]) - m;
          v += d * d;
        }
        const double inv = 1 / std::sqrt(v / static_cast<double>(n) + 1e-5);
        EXPECT_NEAR(mean[r], m, 1e-6);
        EXPECT_NEAR(inv_std[r], inv, 1e-5 * inv + 1e-3 * (n == 1));
        for (std::size_t i = 0; i < n; ++i) {
          double want = (static_cast<double>(in[r * n + i]) - m) * inv;
          if (args.gamma != nullptr) want *= static_cast<double>(gamma[i]);
          if (args.beta != nullptr) want += static_cast<double>(beta[i]);
          ASSERT_NEAR(out[r * n + i], want, 1e-5 * (1 + std::fabs(want)))
              << kernel.name << " n=" << n << " way " << way << " at " << i;
        }
      }
    }
}

TEST_P(NormCheck, MomentsSurviveALargeMean) {
  const NormKernel& kernel = GetParam();
  NPURT_SKIP_UNLESS_ISA(kernel.needs, kernel.name);
  GuardedBuffer<float> in(5001);
  Fill(&in, 9999, 10001);
  double mean, variance, m = 0, v = 0;
  kernel.moments(in.data(), in.size(), &mean, &variance);
  for (float x : in) m += static_cast<double>(x);
  m /= 5001;
  for (float x : in) v += (static_cast<double>(x) - m) * (static_cast<double>(x) - m);
  EXPECT_NEAR(mean, m, 1e-2);
  EXPECT_NEAR(variance, v / 5001, 1e-3 * v / 5001);
}

TEST_P(NormCheck, AffineMapsMatchPlainLoopsOnAllTails) {
  const NormKernel& kernel = GetParam();
  NPURT_SKIP_UNLESS_ISA(kernel.needs, kernel.name);
  for (std::size_t n = 0; n <= 75; ++n) {
    GuardedBuffer<float> in(n), out(n), scale(n), shift(n);
    Fill(&in);
    Fill(&scale);
    Fill(&shift);
    kernel.affine(in.data(), out.data(), n, 0.5f, 3.0f, -1.0f);
    for (std::size_t i = 0; i < n; ++i) ASSERT_NEAR(out[i], (in[i] - 0.5f) * 3.0f - 1.0f, 1e-5);
    kernel.affine_rows(in.data(), out.data(), n, scale.data(), shift.data());
    for (std::size_t i = 0; i < n; ++i) ASSERT_NEAR(out[i], in[i] * scale[i] + shift[i], 1e-5);
  }
}

TEST_P(NormCheck, LocalResponseMatchesPlainLoops) {
  const NormKernel& kernel = GetParam();
  NPURT_SKIP_UNLESS_ISA(kernel.needs, kernel.name);
  for (std::size_t cols : {1u, 5u, 16u, 33u})
    for (std::size_t size : {1u, 2u, 5u}) {
      constexpr std::size_t kChannels = 6;
      GuardedBuffer<float> in(kChannels * cols), out(kChannels * cols);
      Fill(&in);
      kernel.lrn({in.data(), out.data(), kChannels, cols, cols, size, 0.5f, 0.75f, 1.5f});
      for (std::size_t c = 0; c < kChannels; ++c)
        for (std::size_t i = 0; i < cols; ++i) {
          double sum = 0;
          const std::size_t before = (size - 1) / 2, after = size - 1 - before;
          for (std::size_t k = c < before ? 0 : c - before; k <= c + after && k < kChannels; ++k)
            sum += static_cast<double>(in[k * cols + i]) * static_cast<double>(in[k * cols + i]);
          const double want = static_cast<double>(in[c * cols + i]) /
                              std::pow(1.5 + 0.5 / static_cast<double>(size) * sum, 0.75);
          ASSERT_NEAR(out[c * cols + i], want, 1e-5) << kernel.name;
        }
    }
}

TEST_P(NormCheck, GroupNormMatchesPlainLoops) {
  const NormKernel& kernel = GetParam();
  NPURT_SKIP_UNLESS_ISA(kernel.needs, kernel.name);
  constexpr std::int64_t kBatch = 2, kChannels = 6, kGroups = 3, kSpatial = 35;
  GuardedBuffer<float> in(kBatch * kChannels * kSpatial), out(in.size());
  GuardedBuffer<float> gamma(kChannels), beta(kChannels);
  Fill(&in, 90, 110);
  Fill(&gamma);
  Fill(&beta);
  const NormPlan plan = PlanNorm(kBatch * kGroups, kChannels / kGroups * kSpatial);
  const GroupNormArgs args = {in.data(), gamma.data(), beta.data(), out.data(),
                              kChannels, kGroups,      kSpatial,    1e-5f};
  for (std::int64_t t = plan.tiles - 1; t >= 0; --t) RunGroupNormTile(kernel, plan, args, t);
  const std::size_t n = static_cast<std::size_t>(plan.n);
  for (std::size_t g = 0; g < kBatch * kGroups; ++g) {
    double m = 0, v = 0;
    for (std::size_t i = 0; i < n; ++i) m += static_cast<double>(in[g * n + i]);
    m /= static_cast<double>(n);
    for (std::size_t i = 0; i < n; ++i) {
      const double d = static_cast<double>(in[g * n + i]) - m;
      v += d * d;
    }
    v /= static_cast<double>(n);
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t c = g % kGroups * 2 + i / kSpatial;
      const double want = (static_cast<double>(in[g * n + i]) - m) / std::sqrt(v + 1e-5) *
                              static_cast<double>(gamma[c]) +
                          static_cast<double>(beta[c]);
      ASSERT_NEAR(out[g * n + i], want, 1e-4) << kernel.name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Norm, NormCheck,
                         ::testing::ValuesIn(kNormKernels, kNormKernels + kNormKernelCount),
                         [](const auto& info) { return std::string(info.param.name); });

// Rows that are walked in pieces, to be stopped between them, against one piece of two rows.
TEST(NormPlanTest, ALongRowIsTheSameAsInOnePiece) {
  const NormKernel& kernel = SelectNorm(DetectedIsa());
  constexpr std::int64_t kN = 700001;
  std::vector<float> in(kN), gamma(kN), beta(kN), out(kN), want(kN);
  std::mt19937 random(5);
  std::uniform_real_distribution<float> uniform(-2, 3);
  for (auto* all : {&in, &gamma, &beta})
    for (float& x : *all) x = uniform(random);
  for (bool rms : {false, true}) {
    float mean = 0, inv_std = 0, want_mean = 0, want_inv_std = 0;
    LayerNormArgs args = {in.data(), gamma.data(), beta.data(), want.data(), &want_mean,
                          &want_inv_std, 1, kN, 1e-5f, rms};
    kernel.layer(args);
    args.out = out.data();
    args.mean = &mean;
    args.inv_std = &inv_std;
    int asked = 0;
    const auto ask = [](const void* count) { ++*static_cast<int*>(const_cast<void*>(count)); };
    RunLayerNormTile(kernel, PlanNorm(1, kN), args, 0, {ask, &asked});
    EXPECT_GE(asked, 4);
    EXPECT_NEAR(mean, want_mean, 1e-6);
    EXPECT_NEAR(inv_std, want_inv_std, 1e-6);
    for (std::size_t i = 0; i < out.size(); ++i) ASSERT_NEAR(out[i], want[i], 1e-5) << i;
  }
}

TEST(NormPlanTest, MomentsOfALongRowAreThoseOfOnePiece) {
  const NormKernel& kernel = SelectNorm(DetectedIsa());
  std::vector<float> in(700001);
  std::mt19937 random(5);
  std::uniform_real_distribution<float> uniform(99, 101);
  for (float& x : in) x = uniform(random);
  double mean, variance, want_mean, want_variance;
  Moments(kernel, in.data(), static_cast<std::int64_t>(in.size()), &mean, &variance);
  kernel.moments(in.data(), in.size(), &want_mean, &want_variance);
  EXPECT_NEAR(mean, want_mean, 1e-9);
  EXPECT_NEAR(variance, want_variance, 1e-9);
}

}  // namespace
}  // namespace npurt::kernels
