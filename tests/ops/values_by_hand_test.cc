// Values worked out by hand, and errors, of operators whose references have no second opinion.
#include <gtest/gtest.h>

#include <cmath>

#include "ops/op_test_harness.h"

namespace npurt::ops {
namespace {

std::vector<Value> Outputs(const char* op, const std::vector<Value>& inputs,
                           std::vector<Attribute> attributes = {}, int outputs = 1) {
  auto result = RunOp(op, inputs, Attrs(std::move(attributes)), outputs);
  EXPECT_TRUE(result.ok()) << op << ": " << result.status();
  return result.ok() ? *std::move(result) : std::vector<Value>(static_cast<std::size_t>(outputs));
}

std::string ErrorOf(const char* op, const std::vector<Value>& inputs,
                    std::vector<Attribute> attributes = {}) {
  return std::string(RunOp(op, inputs, Attrs(std::move(attributes))).status().message());
}

Tensor F(const std::vector<std::int64_t>& dims, const std::vector<float>& values) {
  return MakeTensor<float>(dims, values);
}
Tensor I(const std::vector<std::int64_t>& dims, const std::vector<std::int64_t>& values) {
  return MakeTensor<std::int64_t>(dims, values);
}

TEST(LossTest, TheMeanIsWeighted) {
  const auto y = Outputs("NegativeLogLikelihoodLoss",
                         {F({2, 2}, {-1, -2, -3, -4}), I({2}, {0, 1}), F({2}, {1, 3})});
  EXPECT_EQ(Difference(y[0], F({}, {(1 * 1 + 3 * 4) / 4.0f})), "");
}

TEST(LossTest, IgnoredLabelsWeighNothingAndMayBeAnyNumber) {
  const auto y = Outputs("SoftmaxCrossEntropyLoss", {F({2, 2}, {0, 0, 5, 7}), I({2}, {1, -100})},
                         {{"ignore_index", std::int64_t{-100}}}, 2);
  EXPECT_EQ(Difference(y[0], F({}, {std::log(2.0f)}), 0, 1e-6), "");
  const float low = -std::log1p(std::exp(2.0f)), high = -std::log1p(std::exp(-2.0f));
  EXPECT_EQ(Difference(y[1], F({2, 2}, {-std::log(2.0f), -std::log(2.0f), low, high}), 0, 1e-6),
            "");
}

TEST(LossTest, RefusesLabelsThatAreNoClass) {
  const std::vector<Value> inputs = {F({2, 2}, {0, 0, 5, 7}), I({2}, {1, 2})};
  EXPECT_EQ(ErrorOf("SoftmaxCrossEntropyLoss", inputs),
            "label 2 of element 1 is no class, there are 2");
  EXPECT_EQ(ErrorOf("NegativeLogLikelihoodLoss", inputs, {{"reduction", std::string("max")}}),
            "reduction is 'max', want none, sum or mean");
  EXPECT_EQ(ErrorOf("NegativeLogLikelihoodLoss", {F({2, 2}, {0, 0, 5, 7}), I({3}, {1, 0, 1})}),
            "the input has shape [2, 2], the labels [3]");
}

TEST(AffineGridTest, TheUnitMatrixGivesThePlacesThemselves) {
  const Tensor unit = F({1, 2, 3}, {1, 0, 0, 0, 1, 0});
  const auto corners =
      Outputs("AffineGrid", {unit, I({4}, {1, 1, 2, 3})}, {{"align_corners", std::int64_t{1}}});
  EXPECT_EQ(Difference(corners[0], F({1, 2, 3, 2}, {-1, -1, 0, -1, 1, -1, -1, 1, 0, 1, 1, 1})), "");
  const auto middles = Outputs("AffineGrid", {unit, I({4}, {1, 1, 1, 2})});
  EXPECT_EQ(Difference(middles[0], F({1, 1, 2, 2}, {-0.5, 0, 0.5, 0})), "");
  EXPECT_EQ(ErrorOf("AffineGrid", {unit, I({5}, {1, 1, 1, 2, 2})}),
            "theta has shape [1, 2, 3], size is [1, 1, 1, 2, 2]");
}

TEST(DeformConvTest, WithoutOffsetsItIsAConvolution) {
  const Tensor x = RandomTensor(DType::kF32, {2, 4, 6, 5}, 1),
               w = RandomTensor(DType::kF32, {6, 2, 3, 3}, 2);
  const Tensor none = MakeTensorOf(DType::kF32, {2, 18, 3, 3}, std::vector<double>(2 * 18 * 9, 0));
  const std::vector<Attribute> attributes = {{"group", std::int64_t{2}},
                                             {"strides", std::vector<std::int64_t>{2, 1}},
                                             {"pads", std::vector<std::int64_t>{1, 0, 0, 0}}};
  EXPECT_EQ(Difference(Outputs("DeformConv", {x, w, none}, attributes)[0],
                       Outputs("Conv", {x, w}, attributes)[0], 1e-5, 1e-5),
            "");
}

TEST(DeformConvTest, OffsetsOfHalfAnElementTakeTheMean) {
  const auto y = Outputs("DeformConv",
                         {F({1, 1, 4}, {1, 3, 5, 9}), F({1, 1, 1}, {2}),
                          F({1, 1, 4}, {0.5, 0.5, -9, 0.5}), Value(), F({1, 1, 4}, {1, 3, 1, 1})});
  EXPECT_EQ(Difference(y[0], F({1, 1, 4}, {4, 24, 0, 9})), "");
  EXPECT_EQ(ErrorOf("DeformConv", {F({1, 1, 4}, {1, 3, 5, 9}), F({1, 1, 1}, {2}),
                                   F({1, 2, 4}, std::vector<float>(8))}),
            "the offset has shape [1, 2, 4], want [1, 1, 4]");
}

TEST(BitCastTest, KeepsTheBitsOfPackedTypes) {
  const Tensor nibbles = MakeTensorOf(DType::kI4, {3}, {-1, 7, -8});
  const auto y = Outputs("BitCast", {nibbles}, {{"to", std::int64_t{21}}});
  EXPECT_EQ(Difference(y[0], MakeTensorOf(DType::kU4, {3}, {15, 7, 8})), "");
  const auto pairs = Outputs("BitCast", {MakeTensorOf(DType::kU2, {5}, {0, 1, 2, 3, 2})},
                             {{"to", std::int64_t{26}}});
  EXPECT_EQ(Difference(pairs[0], MakeTensorOf(DType::kI2, {5}, {0, 1, -2, -1, -2})), "");
}

TEST(BitCastTest, RefusesOtherSizesAndBytesThatAreNoBool) {
  const Tensor bytes = MakeTensorOf(DType::kU8, {2}, {1, 2});
  EXPECT_EQ(ErrorOf("BitCast", {bytes}, {{"to", std::int64_t{1}}}),
            "to is 1, which is no type with the 8 bits of uint8");
  EXPECT_EQ(ErrorOf("BitCast", {bytes}, {{"to", std::int64_t{9}}}),
            "element 1 has the bits 2, which are no bool");
}

std::vector<Attribute> Grams(std::vector<std::int64_t> counts, std::vector<std::int64_t> columns,
                             std::vector<std::int64_t> pool) {
  return {{"min_gram_length", std::int64_t{1}}, {"max_gram_length", std::int64_t{2}},
          {"max_skip_count", std::int64_t{1}},  {"mode", std::string("TF")},
          {"ngram_counts", std::move(counts)},  {"ngram_indexes", std::move(columns)},
          {"pool_int64s", std::move(pool)}};
}

TEST(TfIdfTest, SkipsCountForPairsAndNotForSingleItems) {
  // 7 stands there twice; (7, 8) once side by side and once with one between them.
  const auto y =
      Outputs("TfIdfVectorizer", {I({4}, {7, 7, 8, 9})}, Grams({0, 1}, {2, 0}, {7, 7, 8}));
  EXPECT_EQ(Difference(y[0], F({3}, {2, 0, 2})), "");
}

TEST(TfIdfTest, RefusesPoolsThatDoNotFit) {
  const Tensor x = I({1}, {7});
  EXPECT_EQ(ErrorOf("TfIdfVectorizer", {x}, Grams({0, 1}, {0, 1}, {7, 7})),
            "ngram_counts puts n-grams of 2 items at 1 to 2 of a pool of 2");
  EXPECT_EQ(ErrorOf("TfIdfVectorizer", {x}, Grams({0, 2}, {0, 1}, {7, 7})),
            "n-gram 1 is in the pool twice");
  EXPECT_EQ(ErrorOf("TfIdfVectorizer", {x}, Grams({0, 1}, {0, 1, 2}, {7, 7, 8})),
            "ngram_indexes has 3 columns for 2 n-grams");
}

TEST(SplitTest, NobodyNeedsToReadTheShortLastPart) {
  for (const bool reference : {false, true}) {
    OpOptions options;
    options.reference = reference;
    options.absent_outputs = {false, true, true};
    const auto y = RunOp("Split", {I({5}, {1, 2, 3, 4, 5})},
                         Attrs({{"num_outputs", std::int64_t{3}}}), 3, options);
    ASSERT_TRUE(y.ok()) << y.status();
    EXPECT_EQ(Difference((*y)[0], I({2}, {1, 2})), "");
  }
}

TEST(PowTest, AScalarBaseStaysWhereTheResultGoes) {
  // Both operands become float64: the result takes the place of the first.
  const auto y = Outputs("Pow", {I({}, {3}), F({4}, {0, 1, 2, 0.5})});
  EXPECT_EQ(Difference(y[0], I({4}, {1, 3, 9, 1})), "");
}

TEST(OptimizerTest, MomentumTakesTheWholeGradientInTheFirstUpdate) {
  const auto step = [](std::int64_t t) {
    return Outputs("Momentum", {F({}, {0.1f}), I({}, {t}), F({1}, {1}), F({1}, {2}), F({1}, {3})},
                   {{"alpha", 0.5f},
                    {"beta", 0.25f},
                    {"norm_coefficient", 0.0f},
                    {"mode", std::string("standard")}},
                   2);
  };
  const auto first = step(0), second = step(1);
  EXPECT_EQ(Difference(first[0], F({1}, {0.65f}), 1e-6) + Difference(first[1], F({1}, {3.5})), "");
  EXPECT_EQ(Difference(second[0], F({1}, {0.8f}), 1e-6) + Difference(second[1], F({1}, {2})), "");
}

TEST(OptimizerTest, RefusesListsThatDoNotFit) {
  EXPECT_EQ(ErrorOf("Adagrad", {F({}, {0.1f}), I({}, {0}), F({1}, {1}), F({1}, {2})}),
            "got 4 inputs and 1 outputs, want 2 inputs and then 3 for each 2 outputs");
  EXPECT_EQ(
      ErrorOf("Adagrad", {F({}, {0.1f}), I({}, {0}), F({1}, {1}), F({1}, {2}), F({2}, {2, 3})}),
      "input 4 has shape [2], input 2 [1]");
}

}  // namespace
}  // namespace npurt::ops
