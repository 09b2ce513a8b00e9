// One step of the running softmax against plain loops in double.
#include "kernels/attention/attention.h"

#include <gtest/gtest.h>

#include <cfloat>
#include <cmath>
#include <limits>
#include <memory>
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

// Queries, keys, values, mask and output of one batch entry, each at the edge of readable memory.
struct Problem {
  std::int64_t kv_heads, group, rows, past, fresh, head_size, value_size;
  std::int64_t offset, window;  // see AttentionArgs
  AttentionMask mask;
  float softcap = 0;
};

double Visible(const Problem& p, const AttentionArgs& a, std::int64_t h, std::int64_t row,
               std::int64_t j, double score) {
  const std::int64_t last = std::min(a.valid, row + p.offset + 1);
  const std::int64_t first = std::max<std::int64_t>(0, row + p.offset + 1 - p.window);
  const std::int64_t at = h * a.mask_strides.head + row * a.mask_strides.row + j;
  if (j < first || j >= last || (p.mask != AttentionMask::kNone && j >= a.mask_keys)) return -HUGE_VAL;
  if (p.mask == AttentionMask::kAdded)
    return score + static_cast<double>(static_cast<const float*>(a.mask)[at]);
  if (p.mask == AttentionMask::kBool && static_cast<const char*>(a.mask)[at] == 0) return -HUGE_VAL;
  return score;
}

TEST_P(AttentionCheck, TilesMatchPlainLoops) {
  NPURT_SKIP_UNLESS_ISA(GetParam().needs, GetParam().name);
  const AttentionKernels kernels = SelectAttention(GetParam().needs);
  ASSERT_STREQ(kernels.attention->name, GetParam().name);
  constexpr std::int64_t kFar = std::int64_t{1} << 60;
  const Problem problems[] = {
      {1, 1, 1, 0, 1, 1, 1, kFar, 2 * kFar, AttentionMask::kNone},
      {2, 3, 5, 7, 6, 9, 17, kFar, 2 * kFar, AttentionMask::kBool},
      {2, 1, 150, 0, 300, 16, 33, 150, 2 * kFar, AttentionMask::kAdded},
      {1, 4, 3, 130, 3, 20, 40, 130, 50, AttentionMask::kNone, 2},
      {1, 2, 70, 0, 129, 5, 3, 59, 2 * kFar, AttentionMask::kBool, 1.5},
  };
  std::mt19937 random(3);
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (const Problem& p : problems) {
    const std::int64_t heads = p.kv_heads * p.group, keys = p.past + p.fresh;
    const auto size = [](std::int64_t n) { return static_cast<std::size_t>(n); };
    GuardedBuffer<float> q(size(heads * p.rows * p.head_size)),
        past_k(size(p.kv_heads * p.past * p.head_size)), k(size(p.kv_heads * p.fresh * p.head_size)),
        past_v(size(p.kv_heads * p.past * p.value_size)),
        v(size(p.kv_heads * p.fresh * p.value_size)), out(size(heads * p.rows * p.value_size)),
        scores(size(heads * p.rows * keys));
    for (auto* buffer : {&q, &past_k, &k, &past_v, &v})
      for (float& x : *buffer) x = uniform(random);
    const std::int64_t mask_keys = std::max<std::int64_t>(keys - 2, 1);
    GuardedBuffer<float> floats(size(p.rows * mask_keys));
    GuardedBuffer<char> bytes(size(p.rows * mask_keys));
    for (std::size_t i = 0; i < floats.size(); ++i) {
      floats[i] = uniform(random);
      bytes[i] = i % 3 != 0;
    }
    AttentionArgs a = {};
    a.q = q.data();
    a.q_strides = {0, p.rows * p.head_size, p.head_size};
    a.k[0] = past_k.data();
    a.k[1] = k.data();
    a.v[0] = past_v.data();
    a.v[1] = v.data();
    a.k_strides[0] = {0, p.past * p.head_size, p.head_size};
    a.k_strides[1] = {0, p.head_size, p.kv_heads * p.head_size};  // heads side by side
    a.v_strides[0] = {0, p.past * p.value_size, p.value_size};
    a.v_strides[1] = {0, p.value_size, p.kv_heads * p.value_size};
    a.out = out.data();
    a.out_strides = {0, p.rows * p.value_size, p.value_size};
    a.keys[0] = p.past;
    a.keys[1] = p.fresh;
    a.scale = 0.5f;
    a.softcap = p.softcap;
    a.valid = keys;
    a.offset = p.offset;
    a.window = p.window;
    a.mask_kind = p.mask;
    a.mask = p.mask == AttentionMask::kBool ? static_cast<const void*>(bytes.data()) : floats.data();
    a.mask_strides = {0, 0, mask_keys};
    a.mask_keys = mask_keys;
    a.scores_mode = 3;
    const AttentionPlan plan = PlanAttention(kernels, 1, p.kv_heads, p.group, p.rows, keys,
                                             p.head_size, p.value_size);
    std::vector<float> scratch(plan.scratch_bytes / sizeof(float) + 16, NAN);
    void* aligned = scratch.data();
    std::size_t space = scratch.size() * sizeof(float);
    ASSERT_NE(std::align(64, plan.scratch_bytes, aligned, space), nullptr);
    for (float* wanted : {static_cast<float*>(nullptr), scores.data()}) {
      a.scores = wanted;
      for (float& x : out) x = NAN;
      for (std::int64_t tile = plan.tiles - 1; tile >= 0; --tile)
        RunAttention(kernels, plan, a, AttentionPartOf(plan, tile), aligned);
      for (std::int64_t h = 0; h < heads; ++h)
        for (std::int64_t row = 0; row < p.rows; ++row) {
          const std::int64_t kv = h / p.group;
          const auto element = [&](const GuardedBuffer<float>& past, const GuardedBuffer<float>& now,
                                   std::int64_t j, std::int64_t n, std::int64_t e) {
            return static_cast<double>(
                j < p.past ? past[size((kv * p.past + j) * n + e)]
                           : now[size(((j - p.past) * p.kv_heads + kv) * n + e)]);
          };
          std::vector<double> weights(size(keys));
          double sum = 0;
          for (std::int64_t j = 0; j < keys; ++j) {
            double score = 0;
            for (std::int64_t e = 0; e < p.head_size; ++e)
              score += 0.5 * static_cast<double>(q[size((h * p.rows + row) * p.head_size + e)]) *
                       element(past_k, k, j, p.head_size, e);
            const double cap = static_cast<double>(p.softcap);
            if (cap != 0) score = cap * std::tanh(score / cap);
            sum += weights[size(j)] = std::exp(Visible(p, a, h, row, j, score));
          }
          for (std::int64_t j = 0; j < keys && wanted != nullptr; ++j) {
            ASSERT_NEAR(scores[size((h * p.rows + row) * keys + j)],
                        sum == 0 ? 0 : weights[size(j)] / sum, 1e-5);
          }
          for (std::int64_t e = 0; e < p.value_size; ++e) {
            double want = 0;
            for (std::int64_t j = 0; j < keys; ++j)
              if (sum != 0) want += weights[size(j)] / sum * element(past_v, v, j, p.value_size, e);
            ASSERT_NEAR(out[size((h * p.rows + row) * p.value_size + e)], want, 1e-5)
                << kernels.attention->name << " head " << h << " row " << row << " element " << e;
          }
        }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Attention, AttentionCheck,
                         ::testing::ValuesIn(kAttentionKernels,
                                             kAttentionKernels + kAttentionKernelCount),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace npurt::kernels
