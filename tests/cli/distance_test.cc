// How far tensors lie apart, by values worked out by hand.
#include "cli/distance.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace npurt::cli {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

Array Numbers(npurt_dtype dtype, const std::vector<double>& numbers) {
  Array array;
  array.dtype = dtype;
  array.dims = {static_cast<std::int64_t>(numbers.size())};
  array.bytes.resize(BytesOf(dtype, numbers.size()));
  for (std::size_t i = 0; i < numbers.size(); ++i)
    StoreElement(dtype, array.bytes.data(), i, numbers[i]);
  return array;
}

Distance Floats(const std::vector<double>& a, const std::vector<double>& b) {
  return Measure(Numbers(NPURT_FLOAT32, a), Numbers(NPURT_FLOAT32, b));
}

TEST(DistanceTest, MeasuresWhatItSays) {
  const Distance d = Floats({3, 0, -4, 0}, {4, 0, -3, 0});
  EXPECT_EQ(d.count, 4u);
  EXPECT_EQ(d.differing, 2u);
  EXPECT_EQ(d.range, 4);
  EXPECT_EQ(d.max_abs, 1);
  EXPECT_EQ(d.max_rel, 0.25);
  EXPECT_EQ(d.part_of_range(), 0.25);
  EXPECT_NEAR(d.cosine, 24.0 / 25, 1e-12);
  EXPECT_FALSE(d.exact);
}

TEST(DistanceTest, EqualTensorsHaveNone) {
  const Distance d = Floats({1, kNaN, kInf, -kInf, 0}, {1, kNaN, kInf, -kInf, -0.0});
  EXPECT_EQ(d.differing, 0u);
  EXPECT_EQ(d.max_abs, 0);
  EXPECT_EQ(d.cosine, 1);
  EXPECT_EQ(d.a.nan, 1u);
  EXPECT_EQ(d.b.inf, 2u);
  EXPECT_EQ(d.a.overflow + d.b.overflow, 0u);
  EXPECT_EQ(Excess(d, DefaultLimits(1)), 0);
  EXPECT_EQ(Floats({0, 0}, {0, 0}).cosine, 1);
  EXPECT_EQ(Floats({0, 0}, {0, 1}).cosine, 0);
  EXPECT_EQ(Floats({}, {}).count, 0u);
}

TEST(DistanceTest, CountsTheStepsOfTheNarrowerType) {
  const auto ulp = [](npurt_dtype a, npurt_dtype b, double x, double y) {
    return Measure(Numbers(a, {x}), Numbers(b, {y})).ulp;
  };
  EXPECT_EQ(ulp(NPURT_FLOAT32, NPURT_FLOAT32, 1, 1 + 0x1p-23), 1);
  EXPECT_EQ(ulp(NPURT_FLOAT64, NPURT_FLOAT64, 1, 1 + 0x3p-52), 3);
  EXPECT_EQ(ulp(NPURT_FLOAT32, NPURT_FLOAT16, 1.0001, 1), 0) << "1 is the nearest float16";
  EXPECT_EQ(ulp(NPURT_FLOAT16, NPURT_FLOAT32, 1, 1 + 0x3p-10), 3);
  EXPECT_EQ(ulp(NPURT_FLOAT32, NPURT_BFLOAT16, 2, 2 + 0x1p-5), 2);
  EXPECT_EQ(ulp(NPURT_FLOAT16, NPURT_FLOAT16, 0x1p-24, -0x1p-24), 2) << "across zero";
  EXPECT_EQ(ulp(NPURT_FLOAT16, NPURT_FLOAT16, 0x1p-14, 0x1p-14 - 0x1p-24), 1) << "to subnormals";
  EXPECT_EQ(ulp(NPURT_FLOAT32, NPURT_FLOAT16, 1e6, 65504), 1) << "what is infinite there";
  EXPECT_EQ(ulp(NPURT_FLOAT32, NPURT_FLOAT8E4M3FN, 1, 1.25), 2);
}

TEST(DistanceTest, OverflowIsTheEndOfOneTypeWhereTheOtherSideIsFinite) {
  const Distance d = Measure(Numbers(NPURT_FLOAT32, {70000, 70000, 5, kInf, 65504}),
                             Numbers(NPURT_FLOAT16, {kInf, 65504, 5, kInf, 65504}));
  EXPECT_EQ(d.a.overflow, 0u);
  EXPECT_EQ(d.b.overflow, 2u);
  EXPECT_EQ(d.b.inf, 2u);
  EXPECT_EQ(d.not_finite, 1u);
  EXPECT_EQ(Excess(d, DefaultLimits(2)), kInf);
}

TEST(DistanceTest, WhatIsNotFloatingIsComparedExactly) {
  const Distance d = Measure(Numbers(NPURT_INT32, {1, 2, 9}), Numbers(NPURT_INT32, {1, 2, 6}));
  EXPECT_TRUE(d.exact);
  EXPECT_EQ(d.differing, 1u);
  EXPECT_EQ(d.max_abs, 3);
  EXPECT_EQ(Excess(d, DefaultLimits(1)), kInf);
  Array a, b;
  a.dtype = b.dtype = NPURT_STRING;
  a.dims = b.dims = {2};
  a.strings = {"x", "y"};
  b.strings = {"x", "z"};
  EXPECT_EQ(Measure(a, b).differing, 1u);
}

TEST(DistanceTest, OtherShapesAndTypesAreProblems) {
  Array column = Numbers(NPURT_FLOAT32, {1, 2});
  column.dims = {2, 1};
  EXPECT_EQ(Measure(Numbers(NPURT_FLOAT32, {1, 2}), column).problem,
            "A has float32 [2], B has float32 [2, 1]");
  const Distance types = Measure(Numbers(NPURT_FLOAT32, {1}), Numbers(NPURT_INT8, {1}));
  EXPECT_EQ(types.problem, "A has float32 [1], B has int8 [1]");
  EXPECT_EQ(Excess(types, DefaultLimits(1)), kInf);
}

TEST(DistanceTest, LimitsScaleWithTheLargestNumber) {
  Limits limits;
  ASSERT_TRUE(ParseLimits("rel=0.1", &limits).ok());
  EXPECT_LE(Excess(Floats({100, 1}, {100, 2}), limits), 1) << "1 of 100 is little";
  EXPECT_GT(Excess(Floats({1, 1}, {1, 2}), limits), 1);
  ASSERT_TRUE(ParseLimits("abs=1,cosine=0.5", &limits).ok());
  EXPECT_LE(Excess(Floats({1, 0}, {0, 0}), limits), 1) << "within abs no direction is checked";
  EXPECT_EQ(Excess(Floats({0, 0}, {0, 2}), limits), 2);
  ASSERT_TRUE(ParseLimits("cosine=0.5", &limits).ok());
  EXPECT_LE(Excess(Floats({1, 0}, {100, 1}), limits), 1) << "only the direction is checked";
  EXPECT_EQ(Excess(Floats({1, 0}, {0, 1}), limits), 2);
}

TEST(DistanceTest, LimitsThatAreNoneAreRefused) {
  Limits limits;
  for (const char* text :
       {"", "1e-3", "abs", "abs=", "abs=-1", "cosine=2", "relative=1", "rel=nan"})
    EXPECT_EQ(ParseLimits(text, &limits).exit_code(), kExitUsage) << text;
  EXPECT_EQ(ParseLimits("rel=x", &limits).message(),
            "--tolerance: got 'rel=x', want abs=X, rel=X or cosine=X");
}

TEST(DistanceTest, CoarserTypesMayDifferMore) {
  EXPECT_EQ(Coarseness(NPURT_INT8), -1);
  EXPECT_EQ(Coarseness(NPURT_COMPLEX64), Coarseness(NPURT_FLOAT32));
  int before = -1;
  for (const npurt_dtype dtype : {NPURT_FLOAT64, NPURT_FLOAT32, NPURT_FLOAT16, NPURT_BFLOAT16,
                                  NPURT_FLOAT8E4M3FN, NPURT_FLOAT8E5M2, NPURT_FLOAT4E2M1}) {
    const int now = Coarseness(dtype);
    EXPECT_GT(now, before);
    if (before >= 0) {
      EXPECT_GT(DefaultLimits(now).relative, DefaultLimits(before).relative);
      EXPECT_LT(DefaultLimits(now).cosine, DefaultLimits(before).cosine);
    }
    before = now;
  }
}

TEST(DistanceTest, ManyElementsAtATimeAreTheSameNumbers) {
  for (npurt_dtype dtype = NPURT_FLOAT32; dtype <= NPURT_INT2; ++dtype) {
    if (dtype == NPURT_STRING || PartOf(dtype) != dtype) continue;
    SCOPED_TRACE(npurt_dtype_name(dtype));
    const std::size_t bytes = 8192;
    std::vector<std::uint8_t> data(bytes);
    for (std::size_t i = 0; i < bytes; ++i) data[i] = static_cast<std::uint8_t>(i * 37 + i / 256);
    const std::size_t count = bytes * 8 / npurt_dtype_bits(dtype);
    std::vector<double> numbers(count - 3);
    LoadElements(dtype, data.data(), 3, numbers.size(), numbers.data());
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const auto want = static_cast<double>(LoadElement(dtype, data.data(), i + 3));
      if (std::isnan(want))
        ASSERT_TRUE(std::isnan(numbers[i])) << i;
      else
        ASSERT_EQ(numbers[i], want) << i;
    }
  }
}

}  // namespace
}  // namespace npurt::cli
