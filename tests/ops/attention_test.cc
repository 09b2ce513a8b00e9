// What the laws of operators cannot know of attention: values worked out by hand, and errors.
#include <gtest/gtest.h>

#include <cmath>

#include "ops/op_test_harness.h"

namespace npurt::ops {
namespace {

using I = std::int64_t;

// One head of size 1: scores are q * k, so that the weights of keys 0 and ln 3 are 1/4 and 3/4.
const float kLog3 = std::log(3.0f);
Value Floats(const std::vector<std::int64_t>& dims, const std::vector<float>& v) {
  return MakeTensor<float>(dims, v);
}
const Value kQuery = Floats({1, 1, 2, 1}, {1, 1});
const Value kKeys = Floats({1, 1, 2, 1}, {0, kLog3});
const Value kValues = Floats({1, 1, 2, 1}, {4, 8});

std::vector<float> Attend(const std::vector<Value>& inputs, std::vector<Attribute> attributes = {},
                       int output = 0) {
  const auto got = RunOp("Attention", inputs, Attrs(std::move(attributes)), 4);
  if (!got.ok()) return {static_cast<float>(NAN)};
  const Tensor& t = (*got)[static_cast<std::size_t>(output)].tensor();
  std::vector<float> all;
  for (I i = 0; i < t.element_count(); ++i) all.push_back(static_cast<const float*>(t.data())[i]);
  return all;
}

void Expect(const std::vector<float>& got, const std::vector<float>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-5) << i;
}

TEST(AttentionTest, WeighsValuesByTheSoftmaxOfScores) {
  Expect(Attend({kQuery, kKeys, kValues}), {7, 7});
  Expect(Attend({kQuery, kKeys, kValues}, {{"qk_matmul_output_mode", I{3}}}, 3),
         {0.25, 0.75, 0.25, 0.75});
}

TEST(AttentionTest, CausalQueriesSeeWhatStandsBeforeThem) {
  Expect(Attend({kQuery, kKeys, kValues}, {{"is_causal", I{1}}}), {4, 7});
  // One key of the past is seen by both.
  const Value past = Floats({1, 1, 1, 1}, {0}), value = Floats({1, 1, 1, 1}, {-1});
  Expect(Attend({kQuery, kKeys, kValues, Value(), past, value}, {{"is_causal", I{1}}}),
         {1.5, (-1 + 4 + 24) / 5.0f});
  Expect(Attend({kQuery, kKeys, kValues, Value(), past, value}, {}, 1), {0, 0, kLog3});
}

TEST(AttentionTest, AQueryThatSeesNothingGetsZeros) {
  const Value mask = MakeTensorOf(DType::kBool, {2, 2}, {0, 0, 1, 0});
  Expect(Attend({kQuery, kKeys, kValues, mask}), {0, 4});
  const Value none = MakeTensor<I>({1}, {0});
  Expect(Attend({kQuery, kKeys, kValues, Value(), Value(), Value(), none}), {0, 0});
}

TEST(AttentionTest, KeysBeyondTheMaskOrTheCountAreNotRead) {
  const float nan = static_cast<float>(NAN);
  const Value keys = Floats({1, 1, 2, 1}, {0, nan}), values = Floats({1, 1, 2, 1}, {4, nan});
  const Value one = MakeTensor<I>({1}, {1});
  Expect(Attend({kQuery, keys, values, Value(), Value(), Value(), one}), {4, 4});
  Expect(Attend({kQuery, kKeys, kValues, Floats({2, 1}, {0, 0})}), {4, 4});
}

TEST(AttentionTest, EntriesOfABatchHaveTheirOwnPast) {
  // Entry 0 has had one key, entry 1 two; each adds its own behind them.
  const Value q = Floats({2, 1, 1}, {0, 0}), k = Floats({2, 1, 1}, {5, 6}), v = k;
  const Value past = Floats({2, 1, 3, 1}, {1, -9, -9, 2, 3, -9});
  const Attributes one = Attrs({{"q_num_heads", I{1}}, {"kv_num_heads", I{1}}});
  for (bool accept : {false, true}) {
    OpOptions options;
    options.accept_offers = accept;
    const auto got = RunOp("GroupQueryAttention",
                           {q, k, v, Value(), past, past, MakeTensor<std::int32_t>({2}, {1, 2}),
                            MakeTensor<std::int32_t>({}, {3})},
                           one, 3, options);
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_EQ(Difference((*got)[0], Floats({2, 1, 1}, {3, 11 / 3.0f}), 1e-6), "");
    EXPECT_EQ(Difference((*got)[1], Floats({2, 1, 3, 1}, {1, 5, -9, 2, 3, 6})), "");
  }
}

TEST(AttentionTest, NamesTheOperandThatDoesNotFit) {
  const auto refusal = [](const std::vector<Value>& inputs, std::vector<Attribute> attributes = {}) {
    return std::string(
        RunOp("Attention", inputs, Attrs(std::move(attributes))).status().message());
  };
  EXPECT_EQ(refusal({kQuery, Floats({1, 1, 2, 3}, {0, 0, 0, 0, 0, 0}), kValues}),
            "k has shape [1, 1, 2, 3], want [1, 1, 2, 1]");
  EXPECT_EQ(refusal({kQuery, kKeys, kValues, Floats({3, 2}, {0, 0, 0, 0, 0, 0})}),
            "attn_mask has shape [3, 2], want [1, 1, 2, 2]");
  EXPECT_EQ(refusal({kQuery, kKeys, kValues, Value(), kKeys}),
            "want past_key and past_value, or neither");
  EXPECT_EQ(refusal({kQuery, kKeys, kValues, Value(), Value(), Value(), MakeTensor<I>({1}, {3})}),
            "nonpad_kv_seqlen of batch entry 0 is 3, want 0 to 2");
  EXPECT_EQ(refusal({kQuery, kKeys, kValues}, {{"qk_matmul_output_mode", I{4}}}),
            "qk_matmul_output_mode is 4, want 0, 1, 2 or 3");
  const Value flat = Floats({1, 2, 1}, {1, 1});
  EXPECT_EQ(refusal({flat, flat, flat}, {{"q_num_heads", I{3}}, {"kv_num_heads", I{1}}}),
            "q has shape [1, 2, 1], which does not divide into 3 heads (q_num_heads)");
}

TEST(RotaryEmbeddingTest, CountsPositionsFromTheFirstRowOfEachBatchEntry) {
  // The angle of position p is p quarter turns.
  const Value cos = Floats({4, 1}, {1, 0, -1, 0}), sin = Floats({4, 1}, {0, 1, 0, -1});
  const Value x = Floats({2, 2, 3}, {1, 2, 9, 1, 2, 9, 1, 2, 9, 1, 2, 9});
  const Attributes two = Attrs({{"num_heads", I{1}}, {"rotary_embedding_dim", I{2}}});
  const auto got = RunOp("RotaryEmbedding", {x, cos, sin, MakeTensor<I>({2}, {0, 2})}, two);
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(Difference((*got)[0], Floats({2, 2, 3}, {1, 2, 9, -2, 1, 9, -1, -2, 9, 2, -1, 9})), "");
  EXPECT_EQ(RunOp("RotaryEmbedding", {x, cos, sin, MakeTensor<I>({2}, {0, 3})}, two)
                .status()
                .message(),
            "position 4, want one from 0 to 3");
  EXPECT_EQ(RunOp("RotaryEmbedding", {x, cos, sin, MakeTensor<I>({1}, {0})},
                  Attrs({{"num_heads", I{1}}}))
                .status()
                .message(),
            "cannot rotate 3 elements of heads of 3 with caches of 1 columns");
}

}  // namespace
}  // namespace npurt::ops
