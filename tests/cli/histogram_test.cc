#include "cli/histogram.h"

#include <gtest/gtest.h>

namespace npurt::cli {
namespace {

TEST(HistogramTest, QuantilesAreRightToWithinHalfAPercent) {
  Histogram histogram;
  for (std::int64_t i = 1; i <= 100000; ++i) histogram.Add(i * 1000);
  for (const double q : {0.01, 0.5, 0.9, 0.99})
    EXPECT_NEAR(histogram.Quantile(q), q * 1e8, q * 1e8 * 0.005) << q;
  EXPECT_EQ(histogram.min(), 1000);
  EXPECT_EQ(histogram.max(), 100000000);
  EXPECT_EQ(histogram.Quantile(1), 1e8);
}

TEST(HistogramTest, MergesAndTakesEveryNumber) {
  Histogram a, b;
  for (const std::int64_t ns : {std::int64_t{-5}, std::int64_t{0}, std::int64_t{255}}) a.Add(ns);
  for (const std::int64_t ns : {std::int64_t{256}, INT64_MAX}) b.Add(ns);
  a.Merge(b);
  EXPECT_EQ(a.count(), 5u);
  EXPECT_EQ(a.Quantile(0), 0);
  EXPECT_EQ(a.Quantile(0.5), 255);
  EXPECT_EQ(a.max(), INT64_MAX);
}

TEST(HistogramTest, IsZeroWhenEmpty) {
  const Histogram histogram;
  EXPECT_EQ(histogram.Quantile(0.5), 0);
  EXPECT_EQ(histogram.mean(), 0);
}

}  // namespace
}  // namespace npurt::cli
