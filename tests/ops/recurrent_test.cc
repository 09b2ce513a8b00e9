// RNN, GRU and LSTM by hand, and their errors.
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
Value Lengths(const std::vector<double>& values) {
  return MakeTensorOf(DType::kI32, {static_cast<std::int64_t>(values.size())}, values);
}

// Both versions: the reference and, with constant weights, the fast one.
std::vector<std::vector<Value>> Both(const char* op, const std::vector<Value>& inputs,
                                     std::vector<Attribute> attributes, int outputs) {
  std::vector<std::vector<Value>> results;
  for (bool reference : {true, false}) {
    OpOptions options;
    options.reference = reference;
    options.constant = {false, true, true};
    OpReport report;
    auto got = RunOp(op, inputs, Attrs(attributes), outputs, options, &report);
    EXPECT_TRUE(got.ok()) << got.status();
    EXPECT_EQ(report.ran_fast, !reference);
    if (got.ok()) results.push_back(*got);
  }
  return results;
}

std::string Error(const char* op, const std::vector<Value>& inputs,
                  std::vector<Attribute> attributes = {}) {
  return RunOp(op, inputs, Attrs(std::move(attributes)), 1).status().ToString();
}

// h = x + h / 2 where nothing is negative.
const std::vector<Attribute> kRelu = {{"activations", std::vector<std::string>{"Relu"}}};

TEST(RecurrentTest, RnnAddsHalfOfItsState) {
  for (const auto& got :
       Both("RNN", {F({3, 1, 1}, {1, 2, 4}), F({1, 1, 1}, {1}), F({1, 1, 1}, {0.5})}, kRelu, 2)) {
    EXPECT_EQ(Difference(got[0], F({3, 1, 1, 1}, {1, 2.5, 5.25}), 1e-6, 1e-6), "");
    EXPECT_EQ(Difference(got[1], F({1, 1, 1}, {5.25}), 1e-6, 1e-6), "");
  }
}

TEST(RecurrentTest, ShortRowsEndEarlyAndStartLateBackwards) {
  // Two rows, 2 steps of the first and 3 of the second; both directions.
  const std::vector<Value> inputs = {F({3, 2, 1}, {1, 10, 2, 20, 4, 40}),
                                     F({2, 1, 1}, {1, 1}),
                                     F({2, 1, 1}, {0.5, 0.5}),
                                     Value(),
                                     Lengths({2, 3}),
                                     F({2, 2, 1}, {2, 0, 4, 0})};
  const std::vector<Attribute> attributes = {
      {"activations", std::vector<std::string>{"Relu", "Relu"}},
      {"direction", std::string("bidirectional")}};
  for (const auto& got : Both("RNN", inputs, attributes, 2)) {
    // [step, direction, row]
    EXPECT_EQ(Difference(got[0], F({3, 2, 2, 1}, {2, 10, 3, 30, 3, 25, 4, 40, 0, 52.5, 0, 40}),
                         1e-6, 1e-6),
              "");
    EXPECT_EQ(Difference(got[1], F({2, 2, 1}, {3, 52.5, 3, 30}), 1e-6, 1e-6), "");
  }
}

TEST(RecurrentTest, LayoutOneHasTheBatchFirst) {
  const std::vector<Value> inputs = {F({2, 3, 1}, {1, 2, 4, 10, 20, 40}), F({1, 1, 1}, {1}),
                                     F({1, 1, 1}, {0.5})};
  std::vector<Attribute> attributes = kRelu;
  attributes.push_back({"layout", std::int64_t{1}});
  for (const auto& got : Both("RNN", inputs, attributes, 2)) {
    EXPECT_EQ(Difference(got[0], F({2, 3, 1, 1}, {1, 2.5, 5.25, 10, 25, 52.5}), 1e-6, 1e-6), "");
    EXPECT_EQ(Difference(got[1], F({2, 1, 1}, {5.25, 52.5}), 1e-6, 1e-6), "");
  }
}

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

TEST(RecurrentTest, GruKeepsTheShareZOfItsState) {
  // Gates z, r, h. The last bias is inside the reset only if linear_before_reset.
  const std::vector<Value> inputs = {F({1, 1, 1}, {1}),
                                     F({1, 3, 1}, {0.1, 0.2, 0.3}),
                                     F({1, 3, 1}, {0.4, 0.5, 0.6}),
                                     F({1, 6}, {0.1, 0.2, 0.3, 0.01, 0.02, 0.7}),
                                     Value(),
                                     F({1, 1, 1}, {2})};
  const double z = Sigmoid(0.1 + 0.8 + 0.11), r = Sigmoid(0.2 + 1.0 + 0.22);
  const double outside = std::tanh(0.3 + 0.6 * r * 2 + 1.0);
  const double inside = std::tanh(0.3 + r * (0.6 * 2 + 0.7) + 0.3);
  for (const auto& got : Both("GRU", inputs, {}, 2))
    EXPECT_EQ(Difference(got[1], F({1, 1, 1}, {(1 - z) * outside + z * 2}), 1e-6, 1e-6), "");
  for (const auto& got : Both("GRU", inputs, {{"linear_before_reset", std::int64_t{1}}}, 2))
    EXPECT_EQ(Difference(got[1], F({1, 1, 1}, {(1 - z) * inside + z * 2}), 1e-6, 1e-6), "");
}

TEST(RecurrentTest, LstmPeepsAtTheOldCellAndItsOutputGateAtTheNewOne) {
  // Gates i, o, f, c; peepholes i, o, f.
  const std::vector<Value> inputs = {F({1, 1, 1}, {1}),
                                     F({1, 4, 1}, {0.1, 0.2, 0.3, 0.4}),
                                     F({1, 4, 1}, {0.5, 0.6, 0.7, 0.8}),
                                     F({1, 8}, {0, 0, 0, 0, 0.1, 0.1, 0.1, 0.1}),
                                     Value(),
                                     F({1, 1, 1}, {0.5}),
                                     F({1, 1, 1}, {2}),
                                     F({1, 3}, {0.2, 0.3, 0.4})};
  const double i = Sigmoid(0.1 + 0.25 + 0.1 + 0.4), f = Sigmoid(0.3 + 0.35 + 0.1 + 0.8);
  const double g = std::tanh(0.4 + 0.4 + 0.1), c = f * 2 + i * g;
  const double h = Sigmoid(0.2 + 0.3 + 0.1 + 0.3 * c) * std::tanh(c);
  for (const auto& got : Both("LSTM", inputs, {}, 3)) {
    EXPECT_EQ(Difference(got[1], F({1, 1, 1}, {h}), 1e-6, 1e-6), "");
    EXPECT_EQ(Difference(got[2], F({1, 1, 1}, {c}), 1e-6, 1e-6), "");
  }
  const double coupled = (1 - i) * 2 + i * g;
  for (const auto& got : Both("LSTM", inputs, {{"input_forget", std::int64_t{1}}}, 3))
    EXPECT_EQ(Difference(got[2], F({1, 1, 1}, {coupled}), 1e-6, 1e-6), "");
  // What goes into a function is limited, the cell itself is not.
  const double ci = Sigmoid(0.5), cg = std::tanh(0.5), cc = ci * 2 + ci * cg;
  for (const auto& got : Both("LSTM", inputs, {{"clip", 0.5f}}, 3)) {
    EXPECT_EQ(Difference(got[2], F({1, 1, 1}, {cc}), 1e-6, 1e-6), "");
    EXPECT_EQ(Difference(got[1], F({1, 1, 1}, {ci * cg}), 1e-6, 1e-6), "");
  }
}

TEST(RecurrentTest, ParametersGoToTheFunctionsThatTakeThem) {
  // i and o: 0.5 x + 0.25 within 0 and 1; c: tanh; h: 2 x below 0.
  const std::vector<Value> inputs = {F({1, 1, 1}, {1}), F({1, 4, 1}, {0.5, 0.5, 0.5, -1}),
                                     F({1, 4, 1}, {0, 0, 0, 0})};
  const double c = 0.5 * std::tanh(-1);
  for (const auto& got :
       Both("LSTM", inputs,
            {{"activations", std::vector<std::string>{"HardSigmoid", "Tanh", "LeakyRelu"}},
             {"activation_alpha", std::vector<float>{0.5f, 2.0f}},
             {"activation_beta", std::vector<float>{0.25f}}},
            3))
    EXPECT_EQ(Difference(got[1], F({1, 1, 1}, {0.5 * 2 * c}), 1e-6, 1e-6), "");
}

TEST(RecurrentTest, ErrorsNameTheOperandAndWhatItShouldBe) {
  const Value x = F({2, 1, 3}, std::vector<double>(6)), w = F({1, 8, 3}, std::vector<double>(24)),
              r = F({1, 8, 2}, std::vector<double>(16));
  EXPECT_THAT(Error("LSTM", {x, F({1, 8, 2}, std::vector<double>(16)), r}),
              HasSubstr("W has shape [1, 8, 2], want [1, 8, 3]"));
  EXPECT_THAT(Error("LSTM", {x, w, r}, {{"hidden_size", std::int64_t{3}}}),
              HasSubstr("W has shape [1, 8, 3], want [1, 12, 3]"));
  EXPECT_THAT(Error("LSTM", {x, w, r}, {{"direction", std::string("sideways")}}),
              HasSubstr("direction is 'sideways'"));
  EXPECT_THAT(Error("LSTM", {x, w, r}, {{"activations", std::vector<std::string>{"Tanh"}}}),
              HasSubstr("activations has 1 names, want 3"));
  EXPECT_THAT(Error("LSTM", {x, w, r}, {{"activations", std::vector<std::string>(3, "Sine")}}),
              HasSubstr("there is no activation 'Sine'"));
  EXPECT_THAT(Error("LSTM", {x, w, r, Value(), Lengths({3})}),
              HasSubstr("sequence_lens[0] is 3, want 0 to 2"));
  EXPECT_THAT(Error("LSTM", {x, w, r, Value(), Lengths({-1})}),
              HasSubstr("sequence_lens[0] is -1, want 0 to 2"));
}

}  // namespace
}  // namespace npurt::ops
