#include "base/dtype.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace npurt {
namespace {

TEST(HalfTest, EveryHalfSurvivesTheWayThroughFloat) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = HalfBitsToFloat(static_cast<std::uint16_t>(bits));
    const std::uint16_t back = FloatToHalfBits(value);
    if (std::isnan(value))
      EXPECT_TRUE(std::isnan(HalfBitsToFloat(back)));
    else
      EXPECT_EQ(back, bits);
  }
}

TEST(HalfTest, RoundsToNearestEven) {
  EXPECT_EQ(float(Half(2049.0f)), 2048.0f);
  EXPECT_EQ(float(Half(2051.0f)), 2052.0f);
  EXPECT_EQ(float(Half(65519.0f)), 65504.0f);
  EXPECT_TRUE(std::isinf(float(Half(65520.0f))));
  EXPECT_EQ(Half(std::ldexp(1.0f, -25)).bits(), 0);
  EXPECT_EQ(Half(std::ldexp(1.5f, -25)).bits(), 1);
}

TEST(HalfTest, ADoubleIsRoundedOnce) {
  // 1 + 2^-11 + 2^-40 rounds up; through float it would become a tie and round down.
  EXPECT_EQ(float(Half(1.0 + std::ldexp(1.0, -11) + std::ldexp(1.0, -40))),
            1.0f + std::ldexp(1.0f, -10));
  EXPECT_EQ(float(BFloat16(1.0 + std::ldexp(1.0, -8) + std::ldexp(1.0, -40))),
            1.0f + std::ldexp(1.0f, -7));
}

TEST(BFloat16Test, KeepsInfinityAndNaN) {
  EXPECT_TRUE(std::isinf(float(BFloat16(std::numeric_limits<float>::infinity()))));
  EXPECT_TRUE(std::isnan(float(BFloat16(std::numeric_limits<float>::quiet_NaN()))));
  EXPECT_TRUE(std::isinf(float(BFloat16(std::numeric_limits<float>::max()))));
}

TEST(DTypeTest, NamesGoBothWays) {
  for (int i = 1; i < kDTypeCount; ++i) {
    const DType dtype = static_cast<DType>(i);
    EXPECT_EQ(DTypeFromName(DTypeName(dtype)), dtype) << i;
  }
  EXPECT_EQ(DTypeFromName("float"), DType::kF32);
  EXPECT_EQ(DTypeFromName("quux"), DType::kUndefined);
}

TEST(DTypeTest, PackedTypesRoundUpToBytes) {
  std::size_t bytes;
  ASSERT_TRUE(BytesOf(DType::kI4, 3, &bytes));
  EXPECT_EQ(bytes, 2u);
  ASSERT_TRUE(BytesOf(DType::kU2, 5, &bytes));
  EXPECT_EQ(bytes, 2u);
  EXPECT_FALSE(BytesOf(DType::kF64, std::int64_t{1} << 61, &bytes));
  EXPECT_FALSE(BytesOf(DType::kF32, -1, &bytes));
}

}  // namespace
}  // namespace npurt
