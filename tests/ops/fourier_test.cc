#include <gtest/gtest.h>

#include "ops/op_test_harness.h"

namespace npurt::ops {
namespace {

Value Scalar(std::int64_t v) { return MakeTensor<std::int64_t>({}, {v}); }

TEST(DftTest, TransformsFourNumbersAsByHand) {
  const auto y = RunOp("DFT", {MakeTensor<double>({4, 1}, {1, 2, 3, 4})});
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_EQ(
      Difference((*y)[0], MakeTensor<double>({4, 2}, {10, 0, -2, 2, -2, 0, -2, -2}), 0, 1e-15), "");
}

// Products of small factors, primes on both sides of the largest factor, and their products.
TEST(DftTest, TheFastTransformAgreesWithTheDefinitionForEveryKindOfLength) {
  for (std::int64_t n : {1,  2,  3,  4,  5,   6,   7,   8,   16,  30,  31,   32,  37,
                         41, 64, 74, 97, 121, 210, 243, 400, 512, 961, 1009, 1021}) {
    const Tensor x = RandomTensor(DType::kF64, {2, n, 2}, static_cast<int>(n));
    for (std::int64_t inverse : {0, 1}) {
      const Attributes attributes = Attrs({{"inverse", inverse}});
      OpOptions reference;
      reference.reference = true;
      OpReport report;
      const auto got = RunOp("DFT", {x}, attributes, 1, {}, &report);
      const auto want = RunOp("DFT", {x}, attributes, 1, reference);
      ASSERT_TRUE(got.ok()) << got.status();
      EXPECT_TRUE(report.ran_fast);
      EXPECT_EQ(Difference((*got)[0], (*want)[0], 0, 2e-13 * static_cast<double>(n)), "") << n;
    }
  }
}

TEST(DftTest, TheInverseGivesTheRealLineBack) {
  const Tensor x = RandomTensor(DType::kF64, {3, 9, 1}, 5);
  const auto half = RunOp("DFT", {x}, Attrs({{"onesided", std::int64_t{1}}}));
  ASSERT_TRUE(half.ok()) << half.status();
  EXPECT_EQ((*half)[0].tensor().dims()[1], 5);
  const auto back = RunOp("DFT", {(*half)[0], Scalar(9)},
                          Attrs({{"onesided", std::int64_t{1}}, {"inverse", std::int64_t{1}}}));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(Difference((*back)[0], x, 0, 1e-14), "");
}

std::string ErrorOf(const char* op, std::vector<Value> inputs, Attributes attributes = {}) {
  return std::string(RunOp(op, inputs, attributes).status().message());
}

TEST(DftTest, RefusesWhatHasNoTransform) {
  const Tensor x = RandomTensor(DType::kF32, {2, 6, 2}, 1);
  EXPECT_EQ(ErrorOf("DFT", {x, Value(), Scalar(2)}),
            "axis 2 is the last one, which holds real and imaginary parts");
  EXPECT_EQ(ErrorOf("DFT", {x}, Attrs({{"onesided", std::int64_t{1}}})),
            "onesided wants real input, the last dimension is 2");
  EXPECT_EQ(ErrorOf("DFT", {x, Scalar(0)}), "the length is 0, want 1 to 67108864");
  EXPECT_EQ(
      ErrorOf("STFT", {x, Scalar(1), Value(), Scalar(7)}, Attrs({{"onesided", std::int64_t{0}}})),
      "frames of 7 do not fit a signal of 6");
  EXPECT_EQ(
      ErrorOf("STFT", {x, Scalar(0), Value(), Scalar(3)}, Attrs({{"onesided", std::int64_t{0}}})),
      "frame_step is 0");
  EXPECT_EQ(ErrorOf("STFT", {x, Scalar(1)}, Attrs({{"onesided", std::int64_t{0}}})),
            "want a window or a frame_length");
}

TEST(WindowTest, SymmetricWindowsEndAsTheyBegin) {
  const Attributes symmetric =
      Attrs({{"periodic", std::int64_t{0}}, {"output_datatype", std::int64_t{11}}});
  const auto hann = RunOp("HannWindow", {Scalar(5)}, symmetric);
  ASSERT_TRUE(hann.ok()) << hann.status();
  EXPECT_EQ(Difference((*hann)[0], MakeTensor<double>({5}, {0, 0.5, 1, 0.5, 0}), 0, 1e-15), "");
  for (const char* window : {"HannWindow", "HammingWindow", "BlackmanWindow"}) {
    const auto one = RunOp(window, {Scalar(1)}, symmetric);
    ASSERT_TRUE(one.ok()) << one.status();
    EXPECT_EQ(Difference((*one)[0], MakeTensor<double>({1}, {1}), 0, 1e-15), "") << window;
  }
  EXPECT_EQ(ErrorOf("HannWindow", {Scalar(-1)}), "input 0 is -1, want 0 or more");
}

TEST(MelWeightMatrixTest, RefusesEdgesBeyondTheSpectrum) {
  const auto hertz = [](float v) -> Value { return MakeTensor<float>({}, {v}); };
  const absl::Status status =
      RunOp("MelWeightMatrix", {Scalar(4), Scalar(16), Scalar(8000), hertz(0), hertz(90000)})
          .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
}

}  // namespace
}  // namespace npurt::ops
