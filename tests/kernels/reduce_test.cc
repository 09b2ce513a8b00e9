// Folds on all tails, reductions over every set of axes, and positions of extremes.
#include "kernels/reduce/reduce.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "support/guarded_buffer.h"

namespace npurt::kernels {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

double StartOf(Fold fold) {
  return fold == Fold::kMax ? -kInf : fold == Fold::kMin ? kInf : fold == Fold::kProd ? 1 : 0;
}

double Add(Fold fold, double acc, double x, double shift) {
  switch (fold) {
    case Fold::kSum: return acc + x;
    case Fold::kSumAbs: return acc + std::fabs(x);
    case Fold::kSumSquares: return acc + x * x;
    case Fold::kSumExp: return acc + std::exp(x - shift);
    case Fold::kMax: return std::isnan(acc) || std::isnan(x) ? NAN : std::fmax(acc, x);
    case Fold::kMin: return std::isnan(acc) || std::isnan(x) ? NAN : std::fmin(acc, x);
    case Fold::kProd: return acc * x;
  }
  return 0;
}

class FoldCheck : public ::testing::TestWithParam<ReduceKernel> {};

TEST_P(FoldCheck, RowsMatchPlainLoopsOnAllTails) {
  const ReduceKernel& kernel = GetParam();
  NPURT_SKIP_UNLESS_ISA(kernel.needs, kernel.name);
  std::mt19937 random(2);
  std::uniform_real_distribution<float> uniform(0.5f, 1.5f);
  std::vector<std::size_t> lengths;
  for (std::size_t n = 0; n < 140; ++n) lengths.push_back(n);
  lengths.insert(lengths.end(), {1023, 1024, 1025, 5000});
  for (int f = 0; f < kFoldCount; ++f)
    for (std::size_t n : lengths) {
      GuardedBuffer<float> in(n);
      for (float& x : in) x = uniform(random) * (random() % 2 ? 1.0f : -1.0f);
      const Fold fold = static_cast<Fold>(f);
      const float shift = 0.25f;
      double got = StartOf(fold), want = got, magnitude = 0;
      kernel.row[f](in.data(), n, &shift, &got);
      for (float x : in) {
        want = Add(fold, want, static_cast<double>(x), 0.25);
        magnitude += std::fabs(static_cast<double>(x));
      }
      if (std::isinf(want)) {
        ASSERT_EQ(got, want);
        continue;
      }
      ASSERT_NEAR(got, want, 1e-6 * (1 + magnitude) + 1e-4 * std::fabs(want) * (f == 6))
          << kernel.name << " fold " << f << " n=" << n;
    }
}

TEST_P(FoldCheck, ColumnsMatchPlainLoopsOnAllTails) {
  const ReduceKernel& kernel = GetParam();
  NPURT_SKIP_UNLESS_ISA(kernel.needs, kernel.name);
  std::mt19937 random(2);
  std::uniform_real_distribution<float> uniform(0.5f, 1.5f);
  for (int f = 0; f < kFoldCount; ++f)
    for (std::size_t rows : {1u, 3u, 130u})
      for (std::size_t cols = 1; cols <= 70; ++cols) {
        const std::size_t stride = cols + 2;
        GuardedBuffer<float> in((rows - 1) * stride + cols), acc(cols), shift(cols);
        for (float& x : in) x = uniform(random);
        for (float& x : shift) x = 0.5f;
        const Fold fold = static_cast<Fold>(f);
        for (float& x : acc) x = static_cast<float>(StartOf(fold));
        kernel.columns[f](in.data(), stride, rows, cols, shift.data(), acc.data());
        for (std::size_t c = 0; c < cols; ++c) {
          double want = StartOf(fold);
          for (std::size_t r = 0; r < rows; ++r)
            want = Add(fold, want, static_cast<double>(in[r * stride + c]), 0.5);
          ASSERT_NEAR(acc[c], want, 2e-5 * (1 + std::fabs(want)))
              << kernel.name << " fold " << f << " " << rows << " x " << cols;
        }
      }
}

TEST_P(FoldCheck, ExtremesPassNanOn) {
  const ReduceKernel& kernel = GetParam();
  NPURT_SKIP_UNLESS_ISA(kernel.needs, kernel.name);
  for (Fold fold : {Fold::kMax, Fold::kMin})
    for (std::size_t at = 0; at < 41; ++at) {
      GuardedBuffer<float> in(41);
      std::fill(in.begin(), in.end(), 1.0f);
      in[at] = std::numeric_limits<float>::quiet_NaN();
      double acc = StartOf(fold);
      kernel.row[static_cast<int>(fold)](in.data(), 41, nullptr, &acc);
      EXPECT_TRUE(std::isnan(acc)) << kernel.name << " at " << at;
    }
}

INSTANTIATE_TEST_SUITE_P(Reduce, FoldCheck,
                         ::testing::ValuesIn(kReduceKernels, kReduceKernels + kReduceKernelCount),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(ReducePlanTest, MatchesPlainLoopsForEverySetOfAxes) {
  const std::int64_t dims[] = {3, 4, 1, 5, 37};
  constexpr std::size_t kCount = 3 * 4 * 5 * 37;
  std::vector<float> in(kCount);
  std::mt19937 random(9);
  std::uniform_real_distribution<float> uniform(0.5f, 1.2f);
  for (float& x : in) x = uniform(random);
  const ReduceKernel& kernel = SelectReduce(DetectedIsa());
  for (std::uint32_t axes = 0; axes < 32; ++axes)
    for (Reduction op : {Reduction::kSum, Reduction::kMean, Reduction::kMax, Reduction::kL2,
                         Reduction::kLogSumExp, Reduction::kLogSum}) {
      ReducePlan plan;
      ASSERT_TRUE(PlanReduce(op, dims, 5, axes, &plan));
      std::vector<float> out(static_cast<std::size_t>(plan.outputs), -7.0f);
      for (std::int64_t t = plan.tiles - 1; t >= 0; --t)
        RunReduceTile(kernel, plan, in.data(), out.data(), t);
      std::vector<double> want(out.size(), op == Reduction::kMax ? -kInf : 0);
      for (std::size_t i = 0; i < kCount; ++i) {
        std::size_t rest = i, at = 0, stride = 1;
        for (std::size_t a = 5; a-- > 0;) {
          const std::size_t d = static_cast<std::size_t>(dims[a]);
          if ((axes >> a & 1) == 0) {
            at += rest % d * stride;
            stride *= d;
          }
          rest /= d;
        }
        const double x = static_cast<double>(in[i]);
        if (op == Reduction::kMax) want[at] = std::fmax(want[at], x);
        else if (op == Reduction::kL2) want[at] += x * x;
        else if (op == Reduction::kLogSumExp) want[at] += std::exp(x);
        else want[at] += x;
      }
      for (std::size_t o = 0; o < out.size(); ++o) {
        double w = want[o];
        if (op == Reduction::kMean) w /= static_cast<double>(plan.reduced);
        if (op == Reduction::kL2) w = std::sqrt(w);
        if (op == Reduction::kLogSumExp || op == Reduction::kLogSum) w = std::log(w);
        ASSERT_NEAR(out[o], w, 1e-6 + 1e-5 * std::fabs(w)) << "axes " << axes << " at " << o;
      }
    }
}

TEST(ReducePlanTest, ResultsInsideTheRangeDoNotLeaveItOnTheWay) {
  constexpr int kN = 64;
  struct Case {
    Reduction op;
    float large, small;  // the first half, the second
    double want;
  };
  const Case cases[] = {{Reduction::kProd, 1e3f, 1e-3f, 1},
                        {Reduction::kProd, 1e3f, 0, 0},
                        {Reduction::kL2, 1e20f, 0, 1e20 * std::sqrt(kN / 2)},
                        {Reduction::kMean, 3e38f, 1e38f, 2e38},
                        {Reduction::kSum, 3e38f, -3e38f, 0},
                        {Reduction::kLogSum, 3e38f, 3e38f, std::log(64 * 3e38)}};
  for (std::size_t k = 0; k < kReduceKernelCount; ++k) {
    const ReduceKernel& kernel = kReduceKernels[k];
    if (!HasAll(DetectedIsa(), kernel.needs)) continue;
    for (const Case& c : cases)
      for (const std::uint32_t axis : {0u, 1u}) {  // as columns, as a row
        std::vector<float> in(3 * kN);
        for (int i = 0; i < kN; ++i)
          for (int o = 0; o < 3; ++o)
            in[axis == 0 ? i * 3 + o : o * kN + i] = i < kN / 2 ? c.large : c.small;
        const std::int64_t dims[] = {axis == 0 ? kN : 3, axis == 0 ? 3 : kN};
        ReducePlan plan;
        float out[3];
        ASSERT_TRUE(PlanReduce(c.op, dims, 2, 1u << axis, &plan));
        for (std::int64_t t = 0; t < plan.tiles; ++t)
          RunReduceTile(kernel, plan, in.data(), out, t);
        for (float y : out)
          EXPECT_NEAR(y, c.want, 1e-5 * std::fabs(c.want))
              << kernel.name << " " << static_cast<int>(c.op) << " axis " << axis;
      }
  }
}

TEST(ReducePlanTest, OverNothingGivesTheNeutralElement) {
  const std::int64_t dims[] = {2, 0};
  ReducePlan plan;
  float out[2];
  ASSERT_TRUE(PlanReduce(Reduction::kProd, dims, 2, 2, &plan));
  for (std::int64_t t = 0; t < plan.tiles; ++t)
    RunReduceTile(SelectReduce(DetectedIsa()), plan, nullptr, out, t);
  EXPECT_EQ(out[0], 1.0f);
  EXPECT_EQ(out[1], 1.0f);
}

TEST(ArgExtremeTest, FindsTheFirstOrLastPositionAlongEveryAxis) {
  const ReduceKernel& kernel = SelectReduce(DetectedIsa());
  std::mt19937 random(4);
  for (auto [outer, n, inner] : {std::tuple<int, int, int>{3, 50, 1}, {2, 9, 37}, {4, 1, 3}}) {
    std::vector<float> in(static_cast<std::size_t>(outer * n * inner));
    for (float& x : in) x = static_cast<float>(random() % 5);  // ties
    for (bool largest : {true, false})
      for (bool last : {true, false}) {
        const ArgExtremePlan plan = PlanArgExtreme(outer, n, inner);
        std::vector<std::int64_t> out(static_cast<std::size_t>(outer * inner), -1);
        for (std::int64_t t = 0; t < plan.tiles; ++t)
          RunArgExtremeTile(kernel, plan, largest, last, in.data(), out.data(), t);
        for (int o = 0; o < outer; ++o)
          for (int k = 0; k < inner; ++k) {
            int best = 0;
            for (int i = 1; i < n; ++i) {
              const float x = in[static_cast<std::size_t>((o * n + i) * inner + k)];
              const float y = in[static_cast<std::size_t>((o * n + best) * inner + k)];
              if (largest ? x > y : x < y) best = i;
              else if (last && x == y) best = i;
            }
            ASSERT_EQ(out[static_cast<std::size_t>(o * inner + k)], best);
          }
      }
  }
}

TEST(ArgExtremeTest, NanIsTheLargestAndTheSmallest) {
  const float in[] = {1, NAN, 3, NAN};
  for (bool largest : {true, false})
    for (bool last : {true, false}) {
      std::int64_t out;
      RunArgExtremeTile(SelectReduce(DetectedIsa()), PlanArgExtreme(1, 4, 1), largest, last, in,
                        &out, 0);
      EXPECT_EQ(out, last ? 3 : 1);
    }
}

// Rows and columns that are walked in pieces, to be stopped between them.
TEST(LongRowsTest, AreReducedAsShortOnesAreAndAskWhetherToStop) {
  const ReduceKernel& kernel = SelectReduce(DetectedIsa());
  std::vector<float> in(600001);
  std::mt19937 random(4);
  std::uniform_real_distribution<float> uniform(0.5f, 1.5f);
  for (float& x : in) x = uniform(random);
  int asked = 0;
  const auto ask = [](const void* count) { ++*static_cast<int*>(const_cast<void*>(count)); };
  const StopCheck check = {ask, &asked};
  for (auto [rows, columns] : {std::pair<int, int>{600001, 1}, {15000, 40}}) {
    const std::int64_t dims[] = {rows, columns};
    ReducePlan plan;
    ASSERT_TRUE(PlanReduce(Reduction::kMean, dims, 2, 1, &plan));
    std::vector<float> out(static_cast<std::size_t>(columns));
    asked = 0;
    for (std::int64_t t = 0; t < plan.tiles; ++t)
      RunReduceTile(kernel, plan, in.data(), out.data(), t, check);
    EXPECT_GE(asked, 1);
    for (int c = 0; c < columns; ++c) {
      double sum = 0;
      for (int r = 0; r < rows; ++r) sum += static_cast<double>(in[std::size_t(r * columns + c)]);
      EXPECT_NEAR(out[std::size_t(c)], sum / rows, 1e-6);
    }
  }
  // The largest, twice, in the first piece and in the last.
  in[77] = in[590000] = 9;
  for (bool last : {false, true}) {
    std::int64_t at = -1;
    asked = 0;
    RunArgExtremeTile(kernel, PlanArgExtreme(1, 600001, 1), true, last, in.data(), &at, 0, check);
    EXPECT_EQ(at, last ? 590000 : 77);
    EXPECT_GE(asked, 2);
    std::vector<std::int64_t> columns(40);
    RunArgExtremeTile(kernel, PlanArgExtreme(1, 15000, 40), true, last, in.data(), columns.data(),
                      0, check);
    EXPECT_EQ(columns[590000 % 40], 590000 / 40);
    EXPECT_EQ(columns[77 % 40], 77 / 40);
  }
}

}  // namespace
}  // namespace npurt::kernels
