// Random graphs of all operators in every precision mode: they compile and run, and outputs have
// the types that the graph declares. Values are not compared: modes are there to change them.
#include <gtest/gtest.h>

#include "fuzz/differential.h"

namespace npurt::fuzz {
namespace {

using Mode = std::pair<const char*, const char*>;
constexpr Mode kModes[] = {
    {"precision_mode_v2", "fp16"},
    {"precision_mode_v2", "cube_fp16in_fp32out"},
    {"precision_mode_v2", "mixed_float16"},
    {"precision_mode_v2", "mixed_bfloat16"},
    {"precision_mode", "allow_fp32_to_fp16"},
    {"precision_mode", "allow_fp32_to_bf16"},
    {"op_select_implmode", "high_precision"},
};

TEST(PrecisionTest, RandomGraphsRunInEveryMode) {
  int ran = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Choices choices(seed);
    const Case made = MakeCase(choices, 20);
    for (const auto& [name, value] : kModes) {
      for (const char* device : {"cpu", "reference"}) {
        const auto outputs = RunCase(made, {{name, value}, {"device", device}});
        // A number that was rounded may be an index that is not there, or a shape that does not
        // fit.
        if (!outputs.ok()) {
          ASSERT_NE(outputs.status().code(), absl::StatusCode::kInternal)
              << "seed " << seed << ", " << name << "=" << value << " on " << device << ": "
              << outputs.status() << "\n"
              << CaseText(made);
          continue;
        }
        ++ran;
        for (std::size_t o = 0; o < outputs->size(); ++o) {
          const ValueType& want = made.graph->value(made.graph->outputs()[o]).type;
          const ValueType got = TypeOf((*outputs)[o]);
          ASSERT_TRUE(got.kind == want.kind && got.dtype == want.dtype)
              << "seed " << seed << ", " << name << "=" << value << " on " << device << ": output "
              << o << " is " << got.ToString() << ", want " << want.ToString() << "\n" << CaseText(made);
        }
      }
    }
  }
  // Most of them come to an end.
  EXPECT_GT(ran, 700);
}

}  // namespace
}  // namespace npurt::fuzz
