// MatMulNBits by hand, its packed forms against the reference, and its errors.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ops/op_test_harness.h"

namespace npurt::ops {
namespace {

using ::testing::HasSubstr;

std::vector<Attribute> Form(int k, int n, int block, int bits) {
  return {{"K", std::int64_t{k}},
          {"N", std::int64_t{n}},
          {"block_size", std::int64_t{block}},
          {"bits", std::int64_t{bits}}};
}

Value Bytes(const std::vector<std::int64_t>& dims, const std::vector<double>& values) {
  return MakeTensorOf(DType::kU8, dims, values);
}
Value F(const std::vector<std::int64_t>& dims, const std::vector<double>& values) {
  return MakeTensorOf(DType::kF32, dims, values);
}

TEST(MatMulNBitsTest, LowBitsComeFirstAndEachBlockHasItsScaleAndZero) {
  // 18 numbers of a column in two blocks: 0 … 15 and 1, 2. The zero points are 3 and 1.
  std::vector<double> b(16, 0);
  for (int i = 0; i < 8; ++i) b[static_cast<std::size_t>(i)] = 2 * i + 16 * (2 * i + 1);
  b[8] = 0x21;
  std::vector<double> a(18, 0);
  a[5] = 1;   // (5 - 3) * 10
  a[16] = 2;  // (1 - 1) * 100
  a[17] = 3;  // (2 - 1) * 100
  for (bool reference : {true, false}) {
    OpOptions options;
    options.reference = reference;
    options.constant = {false, true, true, true};
    OpReport report;
    const auto got = RunOp("MatMulNBits",
                           {F({1, 18}, a), Bytes({1, 2, 8}, b), F({1, 2}, {10, 100}),
                            Bytes({1, 1}, {0x13}), Value(), F({1}, {0.5})},
                           Attrs(Form(18, 1, 16, 4)), 1, options, &report);
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_EQ(report.ran_fast, !reference);
    EXPECT_EQ(Difference((*got)[0], F({1, 1}, {320.5}), 1e-6), "");
  }
}

TEST(MatMulNBitsTest, AllNumbersOfRowsAndAllSetsAgreeWithTheReference) {
  for (int bits : {2, 4, 8})
    for (int rows : {1, 2, 3, 4, 5, 13, 26})
      for (int n : {1, 7, 16, 33, 300}) {
        const int k = 530, block = 32, blocks = 17;
        const std::vector<Value> inputs = {
            RandomTensor(DType::kF32, {rows, k}, 1),
            RandomTensor(DType::kU8, {n, blocks, block * bits / 8}, 2, 0, 255),
            RandomTensor(DType::kF32, {n, blocks}, 3, -0.1, 0.1),
            RandomTensor(DType::kU8, {n, (blocks * bits + 7) / 8}, 4, 0, 255)};
        OpOptions options;
        options.reference = true;
        const auto want = RunOp("MatMulNBits", inputs, Attrs(Form(k, n, block, bits)), 1, options);
        ASSERT_TRUE(want.ok()) << want.status();
        options.reference = false;
        options.constant = {false, true, true, true};
        options.misalign_inputs = true;
        for (const IsaSet set : {isa::kGeneric, isa::kAvx2, DetectedIsa()}) {
          options.isa = set & DetectedIsa();
          const auto got = RunOp("MatMulNBits", inputs, Attrs(Form(k, n, block, bits)), 1, options);
          ASSERT_TRUE(got.ok()) << got.status();
          const double tolerance = 1e-5 * (1 << bits);
          EXPECT_EQ(Difference((*got)[0], (*want)[0], 2e-5, tolerance), "")
              << bits << " bits, " << rows << " rows, " << n << " columns";
        }
      }
}

TEST(MatMulNBitsTest, ErrorsSayWhatWasWanted) {
  const Value a = F({1, 32}, std::vector<double>(32)), scales = F({2, 2}, {1, 1, 1, 1});
  const Value b = Bytes({2, 2, 8}, std::vector<double>(32));
  const auto error = [&](const std::vector<Value>& inputs, std::vector<Attribute> attributes) {
    return RunOp("MatMulNBits", inputs, Attrs(std::move(attributes))).status().ToString();
  };
  EXPECT_THAT(error({a, Bytes({2, 8}, std::vector<double>(16)), scales}, Form(32, 2, 16, 4)),
              HasSubstr("B has shape [2, 8], want 32 elements"));
  EXPECT_THAT(error({a, b, scales}, Form(31, 2, 16, 4)),
              HasSubstr("A has shape [1, 32], want K = 31 columns"));
  EXPECT_THAT(error({a, b, scales}, Form(32, 2, 24, 4)), HasSubstr("block_size is 24"));
  EXPECT_THAT(error({a, b, scales}, Form(32, 2, 16, 3)), HasSubstr("bits is 3, want 2, 4 or 8"));
  EXPECT_THAT(
      error({a, b, scales, Value(), MakeTensorOf(DType::kI32, {32}, std::vector<double>(32, 2))},
            Form(32, 2, 16, 4)),
      HasSubstr("2"));
}

}  // namespace
}  // namespace npurt::ops
