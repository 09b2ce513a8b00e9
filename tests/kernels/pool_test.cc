// Pooling kernels against a plain window loop, over random geometries of one to three axes.
#include "kernels/pool/pool.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "support/guarded_buffer.h"

namespace npurt::kernels {
namespace {

class PoolCheck : public ::testing::TestWithParam<PoolKernel> {};

// One output of one plane, by the definition.
double Window(const PoolShape& s, PoolKind kind, bool include_pad, const float* plane,
              std::int64_t out_index) {
  std::int64_t o[kPoolMaxRank], window = 1;
  for (int a = s.rank - 1; a >= 0; --a) {
    o[a] = out_index % s.out[a];
    out_index /= s.out[a];
    window *= s.window[a];
  }
  double acc = kind == PoolKind::kMax ? -std::numeric_limits<double>::infinity() : 0;
  std::int64_t count = 0;
  for (std::int64_t k = 0; k < window; ++k) {
    std::int64_t rest = k, offset = 0, stride = 1;
    bool inside = true, padded = true;
    for (int a = s.rank - 1; a >= 0; --a) {
      const std::int64_t at =
          o[a] * s.stride[a] - s.pad_begin[a] + rest % s.window[a] * s.dilation[a];
      rest /= s.window[a];
      inside = inside && at >= 0 && at < s.in[a];
      padded = padded && at < s.in[a] + s.pad_end[a];
      offset += at * stride;
      stride *= s.in[a];
    }
    if (include_pad ? padded : inside) ++count;
    if (!inside) continue;
    const double x = static_cast<double>(plane[offset]);
    if (kind == PoolKind::kMax) acc = std::fmax(acc, x);
    if (kind == PoolKind::kAverage) acc += x;
    if (kind == PoolKind::kLp1) acc += std::fabs(x);
    if (kind == PoolKind::kLp2) acc += x * x;
  }
  if (kind == PoolKind::kAverage) acc /= static_cast<double>(count > 0 ? count : 1);
  if (kind == PoolKind::kLp2) acc = std::sqrt(acc);
  return acc;
}

TEST_P(PoolCheck, MatchesPlainWindows) {
  const PoolKernel& kernel = GetParam();
  NPURT_SKIP_UNLESS_ISA(kernel.needs, kernel.name);
  std::mt19937 random(6);
  const auto pick = [&](int low, int high) {
    return low + static_cast<std::int64_t>(random() % static_cast<unsigned>(high - low + 1));
  };
  std::uniform_real_distribution<float> uniform(-2, 2);
  for (int round = 0; round < 300; ++round) {
    PoolShape s;
    s.rank = static_cast<int>(pick(1, 3));
    s.planes = pick(1, 3);
    for (int a = 0; a < s.rank; ++a) {
      s.window[a] = pick(1, 4);
      s.stride[a] = pick(1, 3);
      s.dilation[a] = pick(1, 2);
      s.pad_begin[a] = pick(0, 2);
      s.pad_end[a] = pick(0, 2);
      const std::int64_t reach = (s.window[a] - 1) * s.dilation[a] + 1;
      s.in[a] = pick(1, a == s.rank - 1 ? 60 : 7) + reach;
      // Sometimes one more, as rounding up makes it.
      s.out[a] = (s.in[a] + s.pad_begin[a] + s.pad_end[a] - reach) / s.stride[a] + 1 + pick(0, 1);
    }
    if (round % 3 == 0) {  // channels in the last place
      const int a = s.rank - 1;
      s.window[a] = s.stride[a] = 1;
      s.pad_begin[a] = s.pad_end[a] = 0;
      s.in[a] = s.out[a] = pick(1, 70);
    }
    const PoolKind kind = static_cast<PoolKind>(pick(0, 3));
    const bool include_pad = pick(0, 1) != 0;
    PoolPlan plan;
    ASSERT_TRUE(PlanPool(s, kind, include_pad, &plan));
    GuardedBuffer<float> in(static_cast<std::size_t>(s.planes * plan.in_plane));
    GuardedBuffer<float> out(static_cast<std::size_t>(s.planes * plan.out_plane));
    GuardedBuffer<char> scratch(plan.scratch_bytes);
    for (float& x : in) x = uniform(random);
    for (std::int64_t t = plan.tiles - 1; t >= 0; --t)
      RunPoolTile(kernel, plan, in.data(), out.data(), t, scratch.data());
    for (std::int64_t p = 0; p < s.planes; ++p)
      for (std::int64_t i = 0; i < plan.out_plane; ++i) {
        const double want = Window(s, kind, include_pad, in.data() + p * plan.in_plane, i);
        const float got = out[static_cast<std::size_t>(p * plan.out_plane + i)];
        if (std::isinf(want)) {
          ASSERT_EQ(got, static_cast<float>(want));
          continue;
        }
        ASSERT_NEAR(got, want, 1e-5) << kernel.name << " round " << round << " plane " << p
                                     << " at " << i;
      }
  }
}

INSTANTIATE_TEST_SUITE_P(Pool, PoolCheck,
                         ::testing::ValuesIn(kPoolKernels, kPoolKernels + kPoolKernelCount),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace npurt::kernels
