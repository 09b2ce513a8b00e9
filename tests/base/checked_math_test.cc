#include "base/checked_math.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace npurt {
namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
constexpr std::size_t kSizeMax = std::numeric_limits<std::size_t>::max();

TEST(CheckedMathTest, ComputesWhatFits) {
  std::int64_t n = 0;
  EXPECT_TRUE(CheckedAdd(kMax - 1, 1, &n));
  EXPECT_EQ(n, kMax);
  EXPECT_TRUE(CheckedSub(std::int64_t{-1}, kMax, &n));
  EXPECT_EQ(n, kMin);
  EXPECT_TRUE(CheckedMul(std::int64_t{-3}, 5, &n));
  EXPECT_EQ(n, -15);
}

TEST(CheckedMathTest, ReportsOverflow) {
  std::int64_t n = 0;
  EXPECT_FALSE(CheckedAdd(kMax, 1, &n));
  EXPECT_FALSE(CheckedSub(kMin, 1, &n));
  EXPECT_FALSE(CheckedMul(kMax, 2, &n));
  std::size_t size = 0;
  EXPECT_FALSE(CheckedAdd(kSizeMax, 1, &size));
  EXPECT_FALSE(CheckedSub(std::size_t{0}, 1, &size));
  EXPECT_FALSE(CheckedMul(kSizeMax / 2 + 1, 2, &size));
}

TEST(CheckedMathTest, CastsOnlyWhatFits) {
  std::size_t size = 0;
  EXPECT_TRUE(CheckedCast(std::int64_t{5}, &size));
  EXPECT_EQ(size, 5u);
  EXPECT_FALSE(CheckedCast(std::int64_t{-1}, &size));
  std::int32_t narrow = 0;
  EXPECT_FALSE(CheckedCast(std::int64_t{1} << 31, &narrow));
  EXPECT_TRUE(CheckedCast(std::int64_t{std::numeric_limits<std::int32_t>::min()}, &narrow));
}

TEST(CheckedMathTest, AlignsUp) {
  EXPECT_EQ(AlignUp(std::size_t{0}, 64), 0u);
  EXPECT_EQ(AlignUp(std::size_t{1}, 64), 64u);
  EXPECT_EQ(AlignUp(std::int64_t{64}, 64), 64);
  std::size_t size = 0;
  EXPECT_TRUE(CheckedAlignUp(kSizeMax - 63, 64, &size));
  EXPECT_EQ(size, kSizeMax - 63);
  EXPECT_FALSE(CheckedAlignUp(kSizeMax - 62, 64, &size));
}

TEST(CheckedMathTest, DividesRoundingUpWithoutOverflow) {
  EXPECT_EQ(CeilDiv(std::int64_t{7}, 4), 2);
  EXPECT_EQ(CeilDiv(std::int64_t{8}, 4), 2);
  EXPECT_EQ(CeilDiv(kMax, 2), kMax / 2 + 1);
  EXPECT_TRUE(IsPowerOfTwo(64));
  EXPECT_FALSE(IsPowerOfTwo(0));
  EXPECT_FALSE(IsPowerOfTwo(48));
}

}  // namespace
}  // namespace npurt
