// What random graphs are made of: the samples of the operator laws, and what operators take.
//
// Thread safety: the tables are made once; one thread at first.
#ifndef NPURT_TESTS_FUZZ_VOCABULARY_H_
#define NPURT_TESTS_FUZZ_VOCABULARY_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ops/op_def.h"
#include "ops/op_samples.h"

namespace npurt::fuzz {

inline constexpr std::int64_t kMaxElements = 4000;  // of one value

std::int64_t ElementsOf(const Value& value);

// The samples that can stand in a graph, by operator. Those that fuse an epilogue are for passes.
const std::map<std::string, std::vector<ops::Sample>>& Samples();

// What models are full of, so that the patterns that passes look for occur.
const std::vector<std::string>& Common();

// The reference device holds float32 as float64, which prints with more digits.
bool IsPrintedFloat(const Value& value, const Value& of);

// The type of input `i` of the schema, and the elements that it allows.
const char* ParamType(const ops::OpDef& op, std::size_t i);
DTypeSet Allowed(const ops::OpDef& op, const std::string& type);

}  // namespace npurt::fuzz

#endif  // NPURT_TESTS_FUZZ_VOCABULARY_H_
