// Input specifications: a table that describes the inputs of a run, from which the same values
// follow everywhere.
//
// One line per input: name, type, shape, kind, a, b, separated by tabs; '#' starts a comment line;
// shape is `1,3,224,224` or `scalar`. Element i takes the i-th output u of splitmix64, seeded with
// FNV-1a64(name) XOR seed. Kinds: `uniform a b`: a + (b-a)*((u>>40)/2^24) in double, then cast;
// `randint a b`: a + u mod (b-a+1); `const a`; `arange start step`: start + step*i;
// `values x;y;...`: repeated.
#ifndef NPURT_CLI_INPUTS_TSV_H_
#define NPURT_CLI_INPUTS_TSV_H_

#include <cstdint>
#include <string>
#include <vector>

#include "cli/array.h"
#include "cli/status.h"

namespace npurt::cli {

inline constexpr std::uint64_t kDefaultSeed = 1234;

struct InputSpec {
  std::string name;
  npurt_dtype dtype = NPURT_FLOAT32;
  std::vector<std::int64_t> dims;
  std::string kind = "uniform";
  double a = 0, b = 1;
  std::vector<std::string> values;  // of kind "values"
};

Status ReadInputSpecs(const std::string& path, std::vector<InputSpec>* out);

// The values of `spec`. Refuses kinds and types that do not go together.
Status MakeInput(const InputSpec& spec, std::uint64_t seed, Array* out);

}  // namespace npurt::cli

#endif  // NPURT_CLI_INPUTS_TSV_H_
