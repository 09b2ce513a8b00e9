// The distributions of random operators, for fixed seeds: bounds that a sound generator misses once
// in some thousand seeds.
#include <gtest/gtest.h>

#include <cmath>

#include "ops/op_test_harness.h"

namespace npurt::ops {
namespace {

constexpr std::int64_t kCount = 100000;

Tensor Draw(const char* op, std::vector<Attribute> more, std::vector<Value> inputs = {},
            const OpOptions& options = {}) {
  more.push_back({"seed", 1.0f});
  if (inputs.empty()) more.push_back({"shape", std::vector<std::int64_t>{kCount}});
  auto result = RunOp(op, inputs, Attrs(std::move(more)), 1, options);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? (*result)[0].tensor() : Tensor();
}

std::vector<double> Numbers(const Tensor& t) {
  auto numbers = Reals(t);
  EXPECT_TRUE(numbers.ok()) << numbers.status();
  return numbers.ok() ? *std::move(numbers) : std::vector<double>();
}

double Mean(const Tensor& t, int power, double around) {
  double sum = 0;
  for (double v : Numbers(t)) sum += std::pow(v - around, power);
  return sum / static_cast<double>(t.element_count());
}

// Sum of (seen - expected)^2 / expected; about as large as there are cells.
double ChiSquare(const std::vector<double>& seen, const std::vector<double>& shares, double count) {
  double sum = 0;
  for (std::size_t i = 0; i < seen.size(); ++i)
    sum += (seen[i] - shares[i] * count) * (seen[i] - shares[i] * count) / (shares[i] * count);
  return sum;
}

TEST(RandomTest, NormalHasItsMomentsAndShape) {
  const Tensor t =
      Draw("RandomNormal", {{"mean", 0.5f}, {"scale", 2.0f}, {"dtype", std::int64_t{11}}});
  EXPECT_NEAR(Mean(t, 1, 0), 0.5, 0.02);
  EXPECT_NEAR(Mean(t, 2, 0.5), 4, 0.06);
  EXPECT_NEAR(Mean(t, 3, 0.5), 0, 0.25);
  EXPECT_NEAR(Mean(t, 4, 0.5), 48, 2);
  // Quarters of the distribution.
  std::vector<double> seen(4);
  for (double v : Numbers(t)) {
    const double z = (v - 0.5) / 2, cut = 0.6744897501960817;
    ++seen[z < -cut ? 0 : z < 0 ? 1 : z < cut ? 2 : 3];
  }
  EXPECT_LT(ChiSquare(seen, {0.25, 0.25, 0.25, 0.25}, kCount), 16.3);
}

TEST(RandomTest, UniformFillsItsRangeEvenly) {
  const Tensor t = Draw("RandomUniform", {{"low", -1.0f}, {"high", 3.0f}});
  EXPECT_NEAR(Mean(t, 1, 0), 1, 0.015);
  EXPECT_NEAR(Mean(t, 2, 1), 16.0 / 12, 0.015);
  std::vector<double> seen(16), pairs(16);
  const std::vector<double> values = Numbers(t);
  for (std::size_t i = 0; i < values.size(); ++i) {
    ASSERT_GE(values[i], -1);
    ASSERT_LE(values[i], 3);
    const auto cell = [](double v) { return std::min(3, static_cast<int>(v + 1)); };
    ++seen[static_cast<std::size_t>(std::min(15, static_cast<int>((values[i] + 1) * 4)))];
    if (i % 2 == 1) ++pairs[static_cast<std::size_t>(4 * cell(values[i - 1]) + cell(values[i]))];
  }
  const std::vector<double> even(16, 1.0 / 16);
  EXPECT_LT(ChiSquare(seen, even, kCount), 37.7);       // 15 degrees of freedom, 0.1 %
  EXPECT_LT(ChiSquare(pairs, even, kCount / 2), 37.7);  // neighbours do not depend on each other
}

TEST(RandomTest, BernoulliAndMultinomialDrawAsOftenAsTheyShould) {
  const Tensor p = MakeTensorOf(DType::kF32, {kCount}, std::vector<double>(kCount, 0.3));
  EXPECT_NEAR(Mean(Draw("Bernoulli", {{"dtype", std::int64_t{7}}}, {p}), 1, 0), 0.3, 0.005);
  // Logarithms of 1, 2, 5 and of nothing.
  const Tensor logs =
      MakeTensorOf(DType::kF32, {1, 4}, {0, std::log(2.0), std::log(5.0), -INFINITY});
  const Tensor drawn = Draw("Multinomial", {{"sample_size", kCount}}, {logs});
  std::vector<double> seen(4);
  for (double v : Numbers(drawn)) ++seen[static_cast<std::size_t>(v)];
  EXPECT_EQ(seen[3], 0);
  seen.pop_back();
  EXPECT_LT(ChiSquare(seen, {1.0 / 8, 2.0 / 8, 5.0 / 8}, kCount), 13.8);
}

TEST(RandomTest, RefusesWhatIsNoProbability) {
  const auto message = [](const char* op, const Tensor& in, Attributes a = {}) {
    return std::string(RunOp(op, {in}, a).status().message());
  };
  EXPECT_EQ(message("Bernoulli", MakeTensor<float>({2}, {0.5f, 1.5f})),
            "element 1 is 1.5, which is no probability");
  EXPECT_EQ(message("Multinomial", MakeTensor<float>({1, 2}, {-INFINITY, -INFINITY})),
            "row 0 has no class that could be drawn");
  EXPECT_EQ(message("RandomNormalLike", MakeTensor<std::int32_t>({2}, {1, 2})),
            "the output type is int32, as the input; set dtype");
}

}  // namespace
}  // namespace npurt::ops
