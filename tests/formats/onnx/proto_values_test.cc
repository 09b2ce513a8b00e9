#include "formats/onnx/proto_values.h"

#include <functional>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "support/onnx_builder.h"

namespace npurt::formats::onnx {
namespace {

using tests::onnx::Message;
using Writer = protozero::pbf_writer;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string TypedTensor(int dtype, const std::vector<std::int64_t>& dims,
                        const std::function<void(Writer&)>& data) {
  return Message([&](Writer& w) {
    w.add_packed_int64(1, dims.begin(), dims.end());
    w.add_int32(2, dtype);
    data(w);
  });
}

std::string Int32Data(int dtype, const std::vector<std::int64_t>& dims,
                      const std::vector<std::int32_t>& values) {
  return TypedTensor(dtype, dims,
                     [&](Writer& w) { w.add_packed_int32(5, values.begin(), values.end()); });
}

Tensor Read(const std::string& bytes) {
  auto tensor = ReadTensorProto(bytes);
  EXPECT_TRUE(tensor.ok()) << tensor.status();
  return tensor.ok() ? *tensor : Tensor();
}

TEST(TensorProtoTest, ReadsRawData) {
  const Tensor tensor = Read(tests::onnx::FloatTensor("x", {2, 2}, {1, -2, 3.5, 4}));
  EXPECT_EQ(tensor.dtype(), DType::kF32);
  EXPECT_THAT(tensor.dims(), ElementsAre(2, 2));
  EXPECT_EQ(tensor.at<float>(2), 3.5f);
}

TEST(TensorProtoTest, ReadsEveryTypedField) {
  EXPECT_EQ(Read(TypedTensor(1, {2},
                             [](Writer& w) {
                               const float values[] = {1.5f, 2.5f};
                               w.add_packed_float(4, values, values + 2);
                             }))
                .at<float>(1),
            2.5f);
  EXPECT_EQ(Read(TypedTensor(11, {1}, [](Writer& w) { w.add_double(10, 0.1); })).at<double>(0),
            0.1);
  EXPECT_EQ(Read(TypedTensor(7, {2},
                             [](Writer& w) {
                               w.add_int64(7, -1);  // one by one, which old writers do
                               w.add_int64(7, INT64_MIN);
                             }))
                .at<std::int64_t>(1),
            INT64_MIN);
  EXPECT_EQ(Read(TypedTensor(13, {1}, [](Writer& w) { w.add_uint64(11, 4294967295u); }))
                .at<std::uint32_t>(0),
            4294967295u);
  EXPECT_EQ(Read(Int32Data(3, {2}, {-128, 127})).at<std::int8_t>(0), -128);
  EXPECT_EQ(Read(Int32Data(4, {1}, {65535})).at<std::uint16_t>(0), 65535);
  EXPECT_EQ(Read(Int32Data(9, {3}, {0, 1, 2})).at<bool>(2), true);
  EXPECT_EQ(static_cast<float>(Read(Int32Data(10, {1}, {0x3e00})).at<Half>(0)), 1.5f);
  EXPECT_EQ(static_cast<float>(Read(Int32Data(16, {1}, {0x3fc0})).at<BFloat16>(0)), 1.5f);
  const Tensor strings = Read(TypedTensor(8, {2}, [](Writer& w) {
    w.add_bytes(6, "a");
    w.add_bytes(6, std::string("\0b", 2));
  }));
  EXPECT_EQ(strings.at<std::string>(1), std::string("\0b", 2));
}

TEST(TensorProtoTest, ReadsPackedTypesFromNumbersOfOneByte) {
  const Tensor tensor = Read(Int32Data(22, {3}, {0x21, 0x0f}));  // int4: 1, 2, -1
  EXPECT_EQ(tensor.bytes(), 2u);
  EXPECT_EQ(static_cast<const unsigned char*>(tensor.data())[0], 0x21);
}

TEST(TensorProtoTest, MakesBoolsZeroOrOne) {
  const Tensor tensor = Read(tests::onnx::RawTensor<unsigned char>("b", 9, {3}, {0, 1, 0x80}));
  EXPECT_EQ(tensor.at<std::uint8_t>(2), 1);
}

TEST(TensorProtoTest, RefusesTensorsThatContradictThemselves) {
  const std::pair<std::string, const char*> cases[] = {
      {tests::onnx::FloatTensor("x", {3}, {1, 2}), "has 8 bytes, want 12"},
      {tests::onnx::FloatTensor("x", {-1}, {}), "is not possible"},
      {tests::onnx::FloatTensor("x", {INT64_MAX, 2}, {}), "is not possible"},
      {tests::onnx::RawTensor<float>("x", 99, {1}, {1}), "no element type"},
      {tests::onnx::RawTensor<float>("x", 0, {1}, {1}), "no element type"},
      {Int32Data(6, {3}, {1, 2}), "has too few elements"},
      {Int32Data(6, {1}, {1, 2}), "not the number of elements"},
      {Int32Data(1, {1}, {1}), "int32_data, which is not for"},
      {TypedTensor(8, {2}, [](Writer& w) { w.add_bytes(6, "one"); }), "has 1 strings"},
      {TypedTensor(1, {1000000000}, [](Writer&) {}), "has too few elements"},
  };
  for (const auto& [bytes, want] : cases) {
    const auto tensor = ReadTensorProto(bytes);
    EXPECT_EQ(tensor.status().code(), absl::StatusCode::kInvalidArgument) << want;
    EXPECT_THAT(std::string(tensor.status().message()), HasSubstr(want));
  }
}

TEST(TensorProtoTest, RefusesExternalDataWithoutAFolder) {
  const auto tensor =
      ReadTensorProto(tests::onnx::ExternalTensor("x", 1, {1}, {{"location", "w.bin"}}));
  EXPECT_EQ(tensor.status().code(), absl::StatusCode::kPermissionDenied);
}

TEST(TensorProtoTest, LimitsTheRank) {
  const auto tensor =
      ReadTensorProto(tests::onnx::FloatTensor("x", std::vector<std::int64_t>(65, 1), {1}));
  EXPECT_EQ(tensor.status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(TensorProtoTest, SaysWhereItIsCutOff) {
  const std::string whole = tests::onnx::FloatTensor("weights", {2, 3}, {1, 2, 3, 4, 5, 6});
  for (std::size_t size = 1; size < whole.size(); ++size) {
    const auto tensor = ReadTensorProto(whole.substr(0, size));
    EXPECT_FALSE(tensor.ok()) << size;
    EXPECT_THAT(std::string(tensor.status().message()), HasSubstr("byte "));
  }
}

TEST(SequenceProtoTest, ReadsTensorsAndNesting) {
  const std::string inner = Message([](Writer& w) {
    w.add_message(3, tests::onnx::FloatTensor("", {1}, {1}));
    w.add_message(3, tests::onnx::FloatTensor("", {2}, {2, 3}));
  });
  const auto sequence = ReadSequenceProto(Message([&](Writer& w) {
    w.add_message(5, inner);
    w.add_message(5, std::string());
  }));
  ASSERT_TRUE(sequence.ok()) << sequence.status();
  ASSERT_EQ(sequence->items().size(), 2u);
  EXPECT_EQ(sequence->items()[0].items()[1].tensor().at<float>(1), 3);
  EXPECT_TRUE(sequence->items()[1].items().empty());
}

TEST(SequenceProtoTest, LimitsNesting) {
  std::string bytes;
  for (int i = 0; i < 1000; ++i) bytes = Message([&](Writer& w) { w.add_message(5, bytes); });
  EXPECT_EQ(ReadSequenceProto(bytes).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(OptionalProtoTest, ReadsFullAndEmptyOnes) {
  const auto full = ReadOptionalProto(Message([](Writer& w) {
    w.add_int32(2, 1);
    w.add_message(3, tests::onnx::FloatTensor("", {}, {7}));
  }));
  ASSERT_TRUE(full.ok());
  ASSERT_EQ(full->items().size(), 1u);
  EXPECT_EQ(full->items()[0].tensor().at<float>(0), 7);
  const auto empty = ReadOptionalProto(Message([](Writer& w) { w.add_int32(2, 1); }));
  ASSERT_TRUE(empty.ok());
  EXPECT_TRUE(empty->items().empty());
}

TEST(MapProtoTest, ReadsKeysOfBothKinds) {
  const std::string values = Message([](Writer& w) {
    w.add_message(3, tests::onnx::FloatTensor("", {}, {1}));
    w.add_message(3, tests::onnx::FloatTensor("", {}, {2}));
  });
  const auto map = ReadMapProto(Message([&](Writer& w) {
    w.add_int32(2, tests::onnx::kString);
    w.add_bytes(4, "b");
    w.add_bytes(4, "a");
    w.add_message(5, values);
  }));
  ASSERT_TRUE(map.ok()) << map.status();
  EXPECT_EQ(map->map().by_string.at("a").tensor().at<float>(0), 2);
  const auto twice = ReadMapProto(Message([&](Writer& w) {
    w.add_int32(2, tests::onnx::kInt64);
    w.add_int64(3, 5);
    w.add_int64(3, 5);
    w.add_message(5, values);
  }));
  EXPECT_EQ(twice.status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace npurt::formats::onnx
