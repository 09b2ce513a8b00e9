#include "base/tensor.h"

#include <gtest/gtest.h>

#include "base/attributes.h"

namespace npurt {
namespace {

TEST(TensorTest, IsZeroedAndAligned) {
  auto tensor = Tensor::Create(DType::kF32, {3, 5});
  ASSERT_TRUE(tensor.ok());
  EXPECT_EQ(tensor->element_count(), 15);
  EXPECT_EQ(tensor->bytes(), 60u);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensor->data()) % 64, 0u);
  for (int i = 0; i < 15; ++i) EXPECT_EQ(tensor->at<float>(i), 0.0f);
}

TEST(TensorTest, ReadsAnyAlignment) {
  alignas(8) char bytes[13] = {};
  const float value = 2.5f;
  std::memcpy(bytes + 5, &value, sizeof value);
  EXPECT_EQ(Tensor::Borrow(DType::kF32, {1}, bytes + 5, nullptr).at<float>(0), 2.5f);
}

TEST(TensorTest, TooLargeShapesAreRefused) {
  EXPECT_EQ(Tensor::Create(DType::kF64, {std::int64_t{1} << 62}).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Tensor::Create(DType::kF32, {-1}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(ValueTest, SequencesShareTheirItems) {
  Tensor tensor = Tensor::Int64s({1, 2, 3});
  const Value sequence = Value::Sequence({Value(tensor), Value(tensor)});
  EXPECT_EQ(sequence.kind(), ValueKind::kSequence);
  EXPECT_EQ(sequence.items()[1].tensor().data(), tensor.data());
}

TEST(AttributesTest, AreFoundByNameWhateverTheOrder) {
  Attributes attributes;
  attributes.Set("pads", std::vector<std::int64_t>{1, 2});
  attributes.Set("alpha", 0.5f);
  attributes.Set("mode", std::string("same"));
  attributes.Set("alpha", 0.25f);
  EXPECT_EQ(attributes.Float("alpha"), 0.25f);
  EXPECT_EQ(attributes.Ints("pads")[1], 2);
  EXPECT_EQ(attributes.String("mode"), "same");
  EXPECT_EQ(attributes.Int("missing", 7), 7);
  attributes.Remove("alpha");
  EXPECT_FALSE(attributes.Has("alpha"));
}

}  // namespace
}  // namespace npurt
