// Integers that derive from shapes stay symbolic through the operators that exporters compute shapes
// with.
#include <gtest/gtest.h>

#include "ops/op_test_harness.h"

namespace npurt::ops {
namespace {

class ShapeArithmeticTest : public ::testing::Test {
 protected:
  InferInput Known(std::vector<std::int64_t> values, bool scalar = false) {
    InferInput input;
    input.constant = scalar ? Tensor::Int64Scalar(values[0]) : Tensor::Int64s(values);
    input.type = ValueType::OfTensor(DType::kI64, ToSymDims(input.constant->dims()));
    return input;
  }
  InferInput Like(const InferredOutput& output) {
    return InferInput{output.type, std::nullopt, output.integers};
  }
  InferInput Data(SymDims dims) {
    return InferInput{ValueType::OfTensor(DType::kF32, std::move(dims)), std::nullopt,
                      std::nullopt};
  }
  InferredOutput One(const char* op, const std::vector<InferInput>& inputs,
                     const Attributes& attributes = {}) {
    auto result = InferOp(op, inputs, attributes, 1, &table_);
    EXPECT_TRUE(result.ok()) << op << ": " << result.status();
    return result.ok() ? (*result)[0] : InferredOutput();
  }

  DimTable table_;
  const Dim batch_ = table_.Symbol("batch"), seq_ = table_.Symbol("seq");
};

TEST_F(ShapeArithmeticTest, ShapeGatherUnsqueezeConcatReshapeKeepsTheSymbols) {
  const InferInput x = Data({batch_, seq_, 768});
  const InferredOutput shape = One("Shape", {x});
  const InferredOutput b = One("Gather", {Like(shape), Known({0}, true)});
  const InferredOutput b1 = One("Unsqueeze", {Like(b), Known({0})});
  const InferredOutput target = One("Concat", {Like(b1), Known({-1, 12, 64})},
                                    Attrs({{"axis", std::int64_t{0}}}));
  const InferredOutput y = One("Reshape", {x, Like(target)});
  EXPECT_EQ(y.type.ToString(), "float32[batch, seq, 12, 64]");
}

TEST_F(ShapeArithmeticTest, SliceAndExpandAndTileOfShapesKeepTheSymbols) {
  const InferInput x = Data({batch_, seq_, 4});
  const InferredOutput shape = One("Shape", {x});
  const InferredOutput two = One("Slice", {Like(shape), Known({0}), Known({2}), Known({0})});
  ASSERT_TRUE(two.integers.has_value());
  EXPECT_EQ(ShapeString(*two.integers), "[batch, seq]");
  const InferredOutput mask = One("Expand", {Data({1, 1}), Like(two)});
  EXPECT_EQ(mask.type.ToString(), "float32[batch, seq]");
  const InferredOutput filled = One("ConstantOfShape", {Like(two)});
  EXPECT_EQ(filled.type.ToString(), "float32[batch, seq]");
}

TEST_F(ShapeArithmeticTest, RangeUpToADimensionHasThatLength) {
  const InferredOutput shape = One("Shape", {Data({seq_})});
  const InferredOutput n = One("Squeeze", {Like(shape), Known({0})});
  const InferredOutput range = One("Range", {Known({0}, true), Like(n), Known({1}, true)});
  EXPECT_EQ(range.type.ToString(), "int64[seq]");
}

TEST_F(ShapeArithmeticTest, SliceToTheEndOfASymbolicAxisCountsWhatIsLeft) {
  const InferInput x = Data({batch_, seq_});
  const auto cut = [&](std::int64_t start, std::int64_t end) {
    const InferredOutput y = One("Slice", {x, Known({start}), Known({end}), Known({1})});
    std::vector<std::int64_t> values(static_cast<std::size_t>(table_.size()), kInvalidDim);
    values[static_cast<std::size_t>(seq_.node()->index)] = 5;
    table_.Evaluate(absl::MakeSpan(values));
    return ValueOf(y.type.dims[1], values);
  };
  EXPECT_EQ(cut(0, INT64_MAX), 5);
  EXPECT_EQ(cut(2, INT64_MAX), 3);
  EXPECT_EQ(cut(7, INT64_MAX), 0);
  EXPECT_EQ(cut(-2, INT64_MAX), 2);
  EXPECT_EQ(cut(-9, INT64_MAX), 5);
  EXPECT_EQ(cut(1, -1), 3);
  EXPECT_EQ(cut(0, 3), 3);
  EXPECT_EQ(cut(4, 2), 0);
}

TEST_F(ShapeArithmeticTest, SplitIntoEqualPartsDividesTheSymbol) {
  auto parts = InferOp("Split", {Data({batch_, 6})},
                       Attrs({{"axis", std::int64_t{1}}, {"num_outputs", std::int64_t{3}}}), 3,
                       &table_);
  ASSERT_TRUE(parts.ok()) << parts.status();
  for (const InferredOutput& part : *parts) EXPECT_EQ(part.type.ToString(), "float32[batch, 2]");
}

TEST_F(ShapeArithmeticTest, ReshapeToAnUnknownShapeHasUnknownRank) {
  const InferInput shape{ValueType::OfTensor(DType::kI64, {3}), std::nullopt, std::nullopt};
  const InferredOutput y = One("Reshape", {Data({batch_, 6}), shape});
  EXPECT_FALSE(y.type.has_rank);
}

}  // namespace
}  // namespace npurt::ops
