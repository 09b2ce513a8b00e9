// One step of the running softmax against plain loops in double.
#include "kernels/attention/attention.h"

#include <gtest/gtest.h>

#include <cfloat>
#include <cmath>
#include <random>
#include <vector>

#include "support/guarded_buffer.h"

namespace npurt::kernels {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

class AttentionCheck : public ::testing::TestWithParam<AttentionKernel> {};

TEST_P(AttentionCheck, StepsSumToTheSoftmaxOfAllKeys) {
  const AttentionKernel& kernel = GetParam();
  NPURT_SKIP_UNLESS_ISA(kernel.needs, kernel.name);
  std::mt19937 random(5);
  std::uniform_real_distribution<float> uniform(-20, 20);
  const std::size_t columns = static_cast<std::size_t>(kernel.width) * 2;
  for (std::size_t keys = 1; keys <= 9; ++keys) {
    GuardedBuffer<float> scores(keys * columns), max(columns), sum(columns), factor(columns);
    std::fill(max.begin(), max.end(), -FLT_MAX);
    std::fill(sum.begin(), sum.end(), 0.0f);
    std::vector<std::vector<double>> all(columns);
    std::vector<double> weight(columns, 0);  // of the very first key, corrected by each step
    for (int step = 0; step < 3; ++step) {
      for (std::size_t i = 0; i < scores.size(); ++i) {
        scores[i] = i % columns == 1 || (i + keys) % 5 == 0 ? -kInf : uniform(random);
        all[i % columns].push_back(static_cast<double>(scores[i]));
      }
      kernel.step({scores.data(), keys, columns, max.data(), sum.data(), factor.data()});
      for (std::size_t c = 0; c < columns; ++c)
        weight[c] = step == 0 ? static_cast<double>(scores[c])
                              : weight[c] * static_cast<double>(factor[c]);
    }
    for (std::size_t c = 0; c < columns; ++c) {
      double want_max = static_cast<double>(-FLT_MAX), want_sum = 0;
      for (double x : all[c]) want_max = std::fmax(want_max, x);
      for (double x : all[c]) want_sum += std::exp(x - want_max);
      ASSERT_EQ(static_cast<double>(max[c]), want_max) << kernel.name << " " << keys;
      ASSERT_NEAR(static_cast<double>(sum[c]), want_sum, 1e-5 * want_sum) << kernel.name;
      ASSERT_NEAR(weight[c], std::exp(all[c][0] - want_max), 1e-5) << kernel.name << " " << keys;
    }
    EXPECT_EQ(sum[1], 0.0f);  // saw nothing
  }
}

TEST_P(AttentionCheck, CapsSmoothly) {
  const AttentionKernel& kernel = GetParam();
  NPURT_SKIP_UNLESS_ISA(kernel.needs, kernel.name);
  GuardedBuffer<float> x(static_cast<std::size_t>(kernel.width) * 3);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i) * 7 - 40;
  kernel.cap(x.data(), x.size(), 30);
  for (std::size_t i = 0; i < x.size(); ++i)
    EXPECT_NEAR(x[i], 30 * std::tanh((static_cast<double>(i) * 7 - 40) / 30), 1e-5);
}

INSTANTIATE_TEST_SUITE_P(Attention, AttentionCheck,
                         ::testing::ValuesIn(kAttentionKernels,
                                             kAttentionKernels + kAttentionKernelCount),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace npurt::kernels
