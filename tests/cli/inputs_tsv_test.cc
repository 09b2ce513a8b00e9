#include "cli/inputs_tsv.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/values.h"

namespace npurt::cli {
namespace {

std::string WriteTable(const std::string& text) {
  const std::string path = ::testing::TempDir() + "npurt_inputs_test.tsv";
  std::ofstream(path) << text;
  return path;
}

std::vector<double> Make(const std::string& line, std::uint64_t seed = kDefaultSeed) {
  std::vector<InputSpec> specs;
  const Status read = ReadInputSpecs(WriteTable(line), &specs);
  EXPECT_TRUE(read.ok()) << read.message();
  Array array;
  const Status made = MakeInput(specs.at(0), seed, &array);
  EXPECT_TRUE(made.ok()) << made.message();
  std::vector<double> values;
  std::size_t count = 0;
  EXPECT_TRUE(CountOf(array.dims, &count));
  for (std::size_t i = 0; i < count; ++i)
    values.push_back(static_cast<double>(LoadElement(array.dtype, array.bytes.data(), i)));
  return values;
}

TEST(InputsTsvTest, MakesEveryKind) {
  EXPECT_EQ(Make("# comment\n\nx\tint32\t3\tconst\t7\t0\n"), (std::vector<double>{7, 7, 7}));
  EXPECT_EQ(Make("x\tfloat32\t2,2\tarange\t1\t0.5"), (std::vector<double>{1, 1.5, 2, 2.5}));
  EXPECT_EQ(Make("x\tint64\t3\tvalues\t5;-6"), (std::vector<double>{5, -6, 5}));
  EXPECT_EQ(Make("x\tint64\tscalar\tconst\t16000\t0"), (std::vector<double>{16000}));
  for (const double value : Make("x\tint8\t1000\trandint\t-2\t2")) {
    EXPECT_GE(value, -2);
    EXPECT_LE(value, 2);
  }
}

// Worked out by hand from FNV-1a and splitmix64.
TEST(InputsTsvTest, ValuesFollowFromTheName) {
  std::uint64_t state = (1469598103934665603u ^ 'x') * 1099511628211u;
  state = (state ^ 1234) + 0x9E3779B97F4A7C15u;
  std::uint64_t u = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9u;
  u = (u ^ (u >> 27)) * 0x94D049BB133111EBu;
  u ^= u >> 31;
  EXPECT_EQ(Make("x\tfloat64\t1\tuniform\t-1\t1")[0],
            -1 + 2 * (static_cast<double>(u >> 40) / 16777216));
  EXPECT_EQ(Make("x\tint64\t1\trandint\t10\t19")[0], 10 + static_cast<double>(u % 10));
  EXPECT_NE(Make("x\tfloat64\t1\tuniform\t0\t1"), Make("y\tfloat64\t1\tuniform\t0\t1"));
  EXPECT_NE(Make("x\tfloat64\t1\tuniform\t0\t1"), Make("x\tfloat64\t1\tuniform\t0\t1", 5));
}

TEST(InputsTsvTest, NamesTheLineThatIsWrong) {
  for (const char* line : {"x\tfloat32\t1", "x\tfloat99\t1\tconst\t1", "x\tfloat32\t1,a\tconst\t1",
                           "x\tfloat32\t-1\tconst\t1", "x\tfloat32\t1\tgauss\t1",
                           "x\tfloat32\t1\tconst\tone", "x\tfloat32\t1\tvalues"}) {
    std::vector<InputSpec> specs;
    const Status status = ReadInputSpecs(WriteTable(std::string("#\n") + line), &specs);
    EXPECT_EQ(status.exit_code(), kExitRefused) << line;
    EXPECT_NE(status.message().find(".tsv:2: "), std::string::npos) << status.message();
  }
}

TEST(InputsTsvTest, RefusesRangesThatAreEmpty) {
  InputSpec spec;
  spec.kind = "randint";
  spec.dims = {1};
  spec.a = 2;
  spec.b = 1;
  Array array;
  EXPECT_EQ(MakeInput(spec, 0, &array).exit_code(), kExitRefused);
}

// The statistics that a peer reported for the same tables.
TEST(InputsTsvTest, MakesTheInputsOfThePublishedReferences) {
  namespace fs = std::filesystem;
  const char* root = std::getenv("NPURT_SOURCE_ROOT");
  const fs::path models = fs::path(root == nullptr ? "." : root) / ".." / "shared" / "models";
  if (!fs::exists(models / "inputs")) GTEST_SKIP() << "there is no " << models;
  int checked = 0;
  for (const auto& entry : fs::directory_iterator(models / "inputs")) {
    const fs::path json_path = models / "ref" / entry.path().stem() / "ref.json";
    std::vector<InputSpec> specs;
    if (!fs::exists(json_path)) continue;
    SCOPED_TRACE(entry.path().string());
    ASSERT_TRUE(ReadInputSpecs(entry.path().string(), &specs).ok());
    const auto json = nlohmann::json::parse(std::ifstream(json_path), nullptr, false);
    if (!json.is_object() || json["inputs"].size() != specs.size()) continue;
    for (std::size_t i = 0; i < specs.size(); ++i) {
      const auto& want = json["inputs"][i]["value"];
      Array array;
      ASSERT_TRUE(MakeInput(specs[i], kDefaultSeed, &array).ok());
      const Summary got = Summarise(array);
      EXPECT_EQ(array.dims, want["shape"].get<std::vector<std::int64_t>>());
      EXPECT_EQ(npurt_dtype_name(array.dtype), want["dtype"].get<std::string>());
      const double scale = std::abs(want["max"].get<double>()) + 1e-30;
      EXPECT_NEAR(got.min, want["min"].get<double>(), 1e-8 * scale);
      EXPECT_NEAR(got.max, want["max"].get<double>(), 1e-8 * scale);
      EXPECT_NEAR(got.mean, want["mean"].get<double>(), 1e-6 * scale);
      ++checked;
    }
  }
  EXPECT_GT(checked, 40);
}

}  // namespace
}  // namespace npurt::cli
