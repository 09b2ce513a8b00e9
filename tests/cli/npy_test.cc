#include "cli/npy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <iterator>

namespace npurt::cli {
namespace {

std::string TempFile(const std::string& name) {
  return ::testing::TempDir() + "npurt_npy_test_" + name;
}

void WriteFile(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Version 1.0 with this dictionary and these elements.
std::string Npy(const std::string& dictionary, const std::string& elements) {
  const std::string header = dictionary + "\n";
  return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(header.size()) + '\0' + header +
         elements;
}

Array Numbers(npurt_dtype dtype, std::vector<std::int64_t> dims,
              const std::vector<double>& numbers) {
  Array array;
  array.dtype = dtype;
  array.dims = std::move(dims);
  array.bytes.resize(BytesOf(dtype, numbers.size()));
  for (std::size_t i = 0; i < numbers.size(); ++i)
    StoreElement(dtype, array.bytes.data(), i, numbers[i]);
  return array;
}

TEST(NpyTest, EveryElementTypeSurvivesWritingAndReading) {
  for (npurt_dtype dtype = NPURT_FLOAT32; dtype <= NPURT_INT2; ++dtype) {
    if (dtype == NPURT_STRING || PartOf(dtype) != dtype) continue;
    SCOPED_TRACE(npurt_dtype_name(dtype));
    const Array array = Numbers(dtype, {3, 1}, {1, 0, 1});
    const std::string path = TempFile("types.npy");
    ASSERT_TRUE(WriteNpy(path, array).ok());
    Array read;
    ASSERT_TRUE(ReadNpy(path, &read).ok());
    ASSERT_TRUE(ReinterpretAs(dtype, &read));
    EXPECT_EQ(read.dtype, dtype);
    EXPECT_EQ(read.dims, array.dims);
    EXPECT_EQ(read.bytes, array.bytes);
  }
}

TEST(NpyTest, WritesWhatNumPyWrites) {
  const std::string path = TempFile("exact.npy");
  ASSERT_TRUE(WriteNpy(path, Numbers(NPURT_INT8, {2}, {1, -1})).ok());
  std::string want = "{'descr': '|i1', 'fortran_order': False, 'shape': (2,), }";
  want.append(128 - 10 - 1 - want.size(), ' ');
  EXPECT_EQ(ReadFile(path), std::string("\x93NUMPY\x01\x00\x76\x00", 10) + want + "\n\x01\xff");
}

TEST(NpyTest, ShapesOfAnyRankSurvive) {
  for (const std::vector<std::int64_t>& dims :
       {std::vector<std::int64_t>{}, {1}, {0}, {1, 1, 1}, {1, 0, 2}}) {
    const std::string path = TempFile("shape.npy");
    std::size_t count = 0;
    ASSERT_TRUE(CountOf(dims, &count));
    const Array array = Numbers(NPURT_FLOAT64, dims, std::vector<double>(count, 1.5));
    ASSERT_TRUE(WriteNpy(path, array).ok());
    Array read;
    ASSERT_TRUE(ReadNpy(path, &read).ok());
    EXPECT_EQ(read.dims, dims);
    EXPECT_EQ(read.bytes, array.bytes);
  }
}

TEST(NpyTest, StringsSurviveAsCodePoints) {
  Array array;
  array.dtype = NPURT_STRING;
  array.dims = {3};
  array.strings = {"", "na\u00efve", "\u4e2d\U0001F600"};
  const std::string path = TempFile("strings.npy");
  ASSERT_TRUE(WriteNpy(path, array).ok());
  Array read;
  ASSERT_TRUE(ReadNpy(path, &read).ok());
  EXPECT_EQ(read.strings, array.strings);
  EXPECT_EQ(read.dims, array.dims);
}

TEST(NpyTest, ReadsColumnMajorOrderAndForeignByteOrder) {
  const std::string path = TempFile("order.npy");
  WriteFile(path, Npy("{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3), }",
                      std::string("\0\1\0\4\0\2\0\5\0\3\0\6", 12)));
  Array read;
  ASSERT_TRUE(ReadNpy(path, &read).ok());
  EXPECT_EQ(read.dtype, NPURT_INT16);
  for (std::size_t i = 0; i < 6; ++i)
    EXPECT_EQ(LoadElement(NPURT_INT16, read.bytes.data(), i), i + 1);
}

TEST(NpyTest, RefusesWhatIsNoArrayAndSaysWhy) {
  const std::string head = "{'descr': '<f4', 'fortran_order': False, 'shape': ";
  const struct {
    std::string bytes;
    const char* why;
  } kCases[] = {
      {"", "not a .npy file"},
      {"PK\x03\x04 some archive", "not a .npy file"},
      {Npy(head + "(2,), }", "1234"), "the file is cut off"},
      {Npy(head + "(4611686018427387904, 8), }", "1234"), "does not fit into memory"},
      {Npy(head + "(-1,), }", "1234"), "does not fit into memory"},
      {Npy(head + "what", "1234"), "damaged"},
      {Npy("{}", "1234"), "damaged"},
      {Npy("{'descr': '|O8', 'fortran_order': False, 'shape': (), }", "12345678"),
       "are not supported"},
      {Npy(head + "(2,), }", "").substr(0, 40), "damaged"},
  };
  for (const auto& c : kCases) {
    const std::string path = TempFile("bad.npy");
    WriteFile(path, c.bytes);
    Array array;
    const Status status = ReadNpy(path, &array);
    EXPECT_EQ(status.exit_code(), kExitRefused) << c.why;
    EXPECT_NE(status.message().find(c.why), std::string::npos) << status.message();
  }
}

TEST(ArrayTest, SmallFloatsRoundToNearestEvenAndBack) {
  for (const npurt_dtype dtype :
       {NPURT_FLOAT16, NPURT_BFLOAT16, NPURT_FLOAT8E4M3FN, NPURT_FLOAT8E4M3FNUZ, NPURT_FLOAT8E5M2,
        NPURT_FLOAT8E5M2FNUZ, NPURT_FLOAT4E2M1}) {
    const unsigned bits = npurt_dtype_bits(dtype);
    for (unsigned code = 0; code < (1u << bits); ++code) {
      const std::uint16_t stored = static_cast<std::uint16_t>(code);
      std::uint16_t again = 0;
      const long double number = LoadElement(dtype, &stored, 0);
      StoreElement(dtype, &again, 0, static_cast<double>(number));
      if (!std::isnan(number)) {
        ASSERT_EQ(again, code) << npurt_dtype_name(dtype);
      } else {
        ASSERT_TRUE(std::isnan(LoadElement(dtype, &again, 0))) << npurt_dtype_name(dtype);
      }
    }
  }
  std::uint16_t half = 0;
  StoreElement(NPURT_FLOAT16, &half, 0, 1 + 1.0 / 2048);
  EXPECT_EQ(half, 0x3C00);
  StoreElement(NPURT_FLOAT16, &half, 0, 1 + 3.0 / 2048);
  EXPECT_EQ(half, 0x3C02);
  StoreElement(NPURT_FLOAT16, &half, 0, 65520);
  EXPECT_EQ(half, 0x7C00);
  std::uint8_t small = 0;
  StoreElement(NPURT_FLOAT4E2M1, &small, 0, -100);
  EXPECT_EQ(LoadElement(NPURT_FLOAT4E2M1, &small, 0), -6);
}

TEST(ArrayTest, IntegersGoToTheEndsOfTheirRange) {
  std::uint64_t bytes = 0;
  StoreElement(NPURT_UINT8, &bytes, 0, -3);
  EXPECT_EQ(LoadElement(NPURT_UINT8, &bytes, 0), 0);
  StoreElement(NPURT_INT64, &bytes, 0, 1e30);
  EXPECT_EQ(LoadElement(NPURT_INT64, &bytes, 0), static_cast<long double>(INT64_MAX));
  StoreElement(NPURT_INT4, &bytes, 3, -8);
  EXPECT_EQ(LoadElement(NPURT_INT4, &bytes, 3), -8);
}

}  // namespace
}  // namespace npurt::cli
