// Softmax kernels against plain loops in double, on all tails and odd rows.
#include "kernels/softmax/softmax.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "support/guarded_buffer.h"

namespace npurt::kernels {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

void Want(const float* in, double* out, std::size_t n, std::size_t stride, bool log) {
  double max = -std::numeric_limits<double>::infinity(), sum = 0;
  for (std::size_t i = 0; i < n; ++i) max = std::fmax(max, static_cast<double>(in[i * stride]));
  for (std::size_t i = 0; i < n; ++i) sum += std::exp(static_cast<double>(in[i * stride]) - max);
  for (std::size_t i = 0; i < n; ++i) {
    const double x = static_cast<double>(in[i * stride]) - max;
    out[i] = log ? x - std::log(sum) : std::exp(x) / sum;
  }
}

class SoftmaxCheck : public ::testing::TestWithParam<SoftmaxKernel> {};

TEST_P(SoftmaxCheck, MatchesPlainLoopsOnAllTails) {
  const SoftmaxKernel& kernel = GetParam();
  NPURT_SKIP_UNLESS_ISA(kernel.needs, kernel.name);
  std::mt19937 random(5);
  std::uniform_real_distribution<float> uniform(-20, 20);
  for (bool log : {false, true})
    for (std::size_t n = 1; n <= 70; ++n)
      for (std::size_t columns : {std::size_t{0}, n}) {
        // Rows, then as many columns as the row was long.
        const std::size_t count = columns == 0 ? 2 : columns, length = columns == 0 ? n : 5;
        GuardedBuffer<float> in(count * length), out(count * length);
        for (float& x : in) x = uniform(random);
        in[0] = -kInf;
        SoftmaxArgs args = {in.data(), out.data(), count, length, length, 1, log};
        if (columns != 0) {
          args.line_stride = 1;
          args.stride = count;
        }
        (columns == 0 ? kernel.rows : kernel.columns)(args);
        std::vector<double> want(length);
        for (std::size_t l = 0; l < count; ++l) {
          Want(in.data() + l * args.line_stride, want.data(), length, args.stride, log);
          for (std::size_t i = 0; i < length; ++i) {
            const float got = out[l * args.line_stride + i * args.stride];
            if (std::isinf(want[i]) || std::isnan(want[i])) {
              if (length > 1) {
                ASSERT_EQ(got, static_cast<float>(want[i])) << kernel.name << " " << i;
              }
              continue;
            }
            ASSERT_NEAR(got, want[i], 1e-6 + 4e-6 * std::fabs(want[i]))
                << kernel.name << " n=" << length << " line " << l << " at " << i;
          }
        }
      }
}

TEST_P(SoftmaxCheck, StaysFiniteForTheLargestNumbers) {
  const SoftmaxKernel& kernel = GetParam();
  NPURT_SKIP_UNLESS_ISA(kernel.needs, kernel.name);
  GuardedBuffer<float> row(19);
  std::fill(row.begin(), row.end(), std::numeric_limits<float>::max());
  row[3] = std::numeric_limits<float>::lowest();
  kernel.rows({row.data(), row.data(), 1, 19, 19, 1, false});
  EXPECT_EQ(row[3], 0.0f);
  EXPECT_NEAR(row[0], 1.0 / 18, 1e-7);
}

INSTANTIATE_TEST_SUITE_P(Softmax, SoftmaxCheck,
                         ::testing::ValuesIn(kSoftmaxKernels, kSoftmaxKernels + kSoftmaxKernelCount),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(SoftmaxPlanTest, TilesCoverEveryLineOnce) {
  for (auto [outer, n, inner] : {std::tuple<int, int, int>{100, 300, 1}, {3, 50, 700}, {1, 1, 1}}) {
    const SoftmaxPlan plan = PlanSoftmax(outer, n, inner);
    std::vector<float> in(static_cast<std::size_t>(outer * n * inner), 1.0f), out(in.size(), -1.0f);
    for (std::int64_t t = plan.tiles - 1; t >= 0; --t)
      RunSoftmaxTile(SelectSoftmax(DetectedIsa()), SelectReduce(DetectedIsa()), plan, in.data(), out.data(), false, t);
    for (float x : out) ASSERT_NEAR(x, 1.0 / n, 1e-6);
  }
  EXPECT_EQ(PlanSoftmax(0, 5, 1).tiles, 0);
}

// Lines that are walked in pieces, to be stopped between them.
TEST(SoftmaxPlanTest, LongLinesAreRightAndAskWhetherToStop) {
  const IsaSet all = DetectedIsa();
  for (const IsaSet allowed : {isa::kGeneric, all & isa::kAvx2, all})
    for (auto [n, inner] : {std::pair<int, int>{530001, 1}, {66000, 19}})
      for (bool log : {false, true}) {
        const SoftmaxPlan plan = PlanSoftmax(1, n, inner);
        std::vector<float> in(static_cast<std::size_t>(n * inner)), out(in.size());
        std::mt19937 random(5);
        std::uniform_real_distribution<float> uniform(-9, 9);
        for (float& x : in) x = uniform(random);
        int asked = 0;
        const auto ask = [](const void* count) { ++*static_cast<int*>(const_cast<void*>(count)); };
        for (std::int64_t t = 0; t < plan.tiles; ++t)
          RunSoftmaxTile(SelectSoftmax(allowed), SelectReduce(allowed), plan, in.data(),
                         out.data(), log, t, {ask, &asked});
        EXPECT_GE(asked, 6);
        std::vector<double> want(static_cast<std::size_t>(n));
        for (int c = 0; c < inner; ++c) {
          Want(in.data() + c, want.data(), want.size(), static_cast<std::size_t>(inner), log);
          for (int i = 0; i < n; i += 61) {
            const double right = want[static_cast<std::size_t>(i)];
            ASSERT_NEAR(out[static_cast<std::size_t>(i * inner + c)], right,
                        1e-5 * std::fabs(right))
                << i << " of column " << c;
          }
        }
      }
}

}  // namespace
}  // namespace npurt::kernels
