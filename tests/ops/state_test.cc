// Operators that carry a state or a cache from one run to the next, by hand, and their errors.
#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ops/op_test_harness.h"

namespace npurt::ops {
namespace {

using ::testing::HasSubstr;

Value F(const std::vector<std::int64_t>& dims, const std::vector<double>& values) {
  return MakeTensorOf(DType::kF32, dims, values);
}
Value I(const std::vector<double>& values) {
  return MakeTensorOf(DType::kI64, {static_cast<std::int64_t>(values.size())}, values);
}
std::vector<Value> Outputs(const char* op, const std::vector<Value>& inputs,
                           std::vector<Attribute> attributes, int outputs) {
  const auto got = RunOp(op, inputs, Attrs(std::move(attributes)), outputs);
  EXPECT_TRUE(got.ok()) << got.status();
  return got.ok() ? *got : std::vector<Value>(static_cast<std::size_t>(outputs));
}
std::string Error(const char* op, const std::vector<Value>& inputs,
                  std::vector<Attribute> attributes = {}) {
  return RunOp(op, inputs, Attrs(std::move(attributes)), 1).status().ToString();
}

TEST(StateTest, CausalConvContinuesWhereThePastEnded) {
  const auto got = Outputs(
      "CausalConvWithState",
      {F({1, 1, 2}, {3, 4}), F({1, 1, 3}, {100, 10, 1}), F({1}, {0.5}), F({1, 1, 2}, {1, 2})}, {},
      2);
  EXPECT_EQ(Difference(got[0], F({1, 1, 2}, {123.5, 234.5})), "");
  EXPECT_EQ(Difference(got[1], F({1, 1, 2}, {3, 4})), "");
}

TEST(StateTest, CausalConvKeepsPartOfThePastIfTheInputIsShort) {
  const auto got =
      Outputs("CausalConvWithState", {F({1, 1, 1}, {3}), F({1, 1, 3}, {100, 10, 1})}, {}, 2);
  EXPECT_EQ(Difference(got[0], F({1, 1, 1}, {3})), "");
  EXPECT_EQ(Difference(got[1], F({1, 1, 2}, {0, 3})), "");
  EXPECT_THAT(Error("CausalConvWithState",
                    {F({1, 1, 1}, {3}), F({1, 1, 3}, {1, 1, 1}), Value(), F({1, 1, 1}, {1})}),
              HasSubstr("past_state has shape [1, 1, 1], want [1, 1, 2]"));
  EXPECT_THAT(Error("CausalConvWithState", {F({1, 1, 1}, {3}), F({1, 1, 3}, {1, 1, 1})},
                    {{"activation", std::string("relu")}}),
              HasSubstr("activation is 'relu'"));
}

std::vector<Attribute> Heads(const char* rule) {
  return {{"q_num_heads", std::int64_t{1}},
          {"kv_num_heads", std::int64_t{1}},
          {"scale", 1.0f},
          {"update_rule", std::string(rule)}};
}

TEST(StateTest, LinearAttentionFollowsItsUpdateRule) {
  // One step of one head with a key of 2 numbers and a value of 1.
  const Value q = F({1, 1, 2}, {1, 10}), k = F({1, 1, 2}, {1, 2}), v = F({1, 1, 1}, {3});
  const Value past = F({1, 1, 2, 1}, {5, 7}), decay = F({1, 1, 1}, {std::log(0.5)});
  const Value beta = F({1, 1, 1}, {0.1});
  const auto check = [&](const char* rule, const Value& g, const Value& b, double s0, double s1) {
    const auto got = Outputs("LinearAttention", {q, k, v, past, g, b}, Heads(rule), 2);
    EXPECT_EQ(Difference(got[0], F({1, 1, 1}, {s0 + 10 * s1}), 1e-6, 1e-6), "") << rule;
    EXPECT_EQ(Difference(got[1], F({1, 1, 2, 1}, {s0, s1}), 1e-6, 1e-6), "") << rule;
  };
  check("linear", Value(), Value(), 5 + 3, 7 + 6);
  check("gated", decay, Value(), 2.5 + 3, 3.5 + 6);
  check("delta", Value(), beta, 5 + 0.1 * (3 - 19), 7 + 0.2 * (3 - 19));
  check("gated_delta", decay, beta, 2.5 + 0.1 * (3 - 9.5), 3.5 + 0.2 * (3 - 9.5));
  EXPECT_THAT(Error("LinearAttention", {q, k, v}, Heads("gated")),
              HasSubstr("this update_rule takes a decay and no beta"));
  EXPECT_THAT(Error("LinearAttention", {q, k, v, F({1, 1, 1, 2}, {5, 7})}, Heads("linear")),
              HasSubstr("past_state has shape [1, 1, 1, 2], want [1, 1, 2, 1]"));
}

TEST(StateTest, TensorScatterWritesEachSampleAtItsIndex) {
  const Value cache = F({2, 3, 1}, {1, 2, 3, 4, 5, 6}), update = F({2, 2, 1}, {10, 20, 30, 40});
  EXPECT_EQ(Difference(Outputs("TensorScatter", {cache, update, I({1, 0})}, {}, 1)[0],
                       F({2, 3, 1}, {1, 10, 20, 30, 40, 6})),
            "");
  EXPECT_EQ(Difference(Outputs("TensorScatter", {cache, update, I({2, -1})},
                               {{"mode", std::string("circular")}}, 1)[0],
                       F({2, 3, 1}, {20, 2, 10, 40, 5, 30})),
            "");
  EXPECT_THAT(Error("TensorScatter", {cache, update, I({2, 0})}),
              HasSubstr("write_indices[0] is 2, want 0 to 1"));
  EXPECT_THAT(Error("TensorScatter", {cache, update, I({0, -1})}),
              HasSubstr("write_indices[1] is -1, want 0 to 1"));
  EXPECT_THAT(Error("TensorScatter", {cache, F({2, 4, 1}, std::vector<double>(8))}),
              HasSubstr("does not fit into the cache [2, 3, 1] along axis 1"));
  EXPECT_THAT(Error("TensorScatter", {cache, update}, {{"axis", std::int64_t{0}}}),
              HasSubstr("the axis is that of the batch"));
}

TEST(StateTest, TensorScatterMovesPackedElements) {
  const auto u4 = [](const std::vector<std::int64_t>& dims, const std::vector<double>& values) {
    return MakeTensorOf(DType::kU4, dims, values);
  };
  const auto got =
      RunOp("TensorScatter", {u4({2, 3, 1}, {1, 2, 3, 4, 5, 6}), u4({2, 1, 1}, {9, 8}), I({2, 1})},
            {}, 1);
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(Difference((*got)[0], u4({2, 3, 1}, {1, 2, 9, 4, 8, 6})), "");
}

}  // namespace
}  // namespace npurt::ops
