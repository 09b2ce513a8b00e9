// OPERATORS.md says what the table of operators and aliases.inc say. To write it anew:
// NPURT_WRITE_OPERATORS_MD=1 and run this.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <limits>
#include <map>
#include <sstream>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "formats/onnx/lower.h"
#include "ops/op_def.h"
#include "ops/ops_info.h"

namespace npurt::formats::onnx {
namespace {

constexpr int kAny = std::numeric_limits<int>::max();
struct Row {
  const char *domain, *name;
  int since, until;
  const char* type;
};
constexpr Row kRows[] = {
#define NPURT_ALIAS(domain, name, since, until, type, adapter) {domain, name, since, until, type},
#include "formats/onnx/aliases.inc"
#undef NPURT_ALIAS
};

// Where operators come from that are not of ONNX's own domain. "-" is none: passes, hosts and texts
// make them.
const std::map<std::string, std::vector<const char*>>& Homes() {
  static const std::map<std::string, std::vector<const char*>> homes = {
      {"ai.onnx.ml",
       {"ArrayFeatureExtractor", "Binarizer", "DictVectorizer", "Imputer", "LabelEncoder",
        "LinearClassifier", "LinearRegressor", "Normalizer", "OneHotEncoder", "Scaler",
        "TreeEnsemble", "TreeEnsembleClassifier", "TreeEnsembleRegressor", "ZipMap"}},
      {"ai.onnx.preview.training", {"Adagrad", "Adam", "Momentum"}},
      {"com.microsoft", {"GroupQueryAttention", "MatMulNBits"}},
      {"-",
       {"Assign", "AssignAdd", "AssignSub", "Atan2", "Erfc", "Expm1", "FloorDiv",
        "FusedElementwise", "HostCall", "HostCallReadsState", "HostCallWritesState", "Log1p",
        "NotEqual", "ReadVariable", "Rsqrt", "Square", "SquaredDifference", "Trunc"}},
  };
  return homes;
}

std::string HomeOf(const std::string& op) {
  for (const auto& [home, names] : Homes())
    for (const char* name : names)
      if (op == name) return home;
  return "";
}

std::string Qualified(const std::string& domain, const std::string& name) {
  return domain.empty() ? name : absl::StrCat(domain, ".", name);
}

std::string Versions(const Row& row) {
  if (row.until == kAny && row.since == 1) return "";
  if (row.until == kAny) return absl::StrCat(" from ", row.since);
  return row.since == 1 ? absl::StrCat(" until ", row.until)
                        : absl::StrCat(" ", row.since, " to ", row.until);
}

// What a node of the operator may be called in a file.
std::string ReadFrom(const ops::OpDef& op) {
  std::vector<std::string> from;
  const std::string home = HomeOf(op.name);
  if (home != "-") from.push_back(Qualified(home, op.name));
  for (const Row& row : kRows)
    if (row.type != nullptr && std::string(row.type) == op.name) {
      const bool itself = home == row.domain && std::string(row.name) == op.name;
      const std::string name = Qualified(row.domain, row.name);
      if (!itself)
        from.push_back(name + Versions(row));
      else if (row.until != kAny)
        from[0] += absl::StrCat(" (rewritten", Versions(row), ")");
    }
  return from.empty() ? "none" : absl::StrJoin(from, ", ");
}

std::string SetText(DTypeSet set) {
  constexpr DTypeSet kNarrow =
      DTypes(DType::kF8E4M3FN, DType::kF8E4M3FNUZ, DType::kF8E5M2, DType::kF8E5M2FNUZ, DType::kU4,
             DType::kI4, DType::kF4E2M1, DType::kF8E8M0, DType::kU2, DType::kI2);
  static constexpr std::pair<DTypeSet, const char*> sets[] = {
      {kAnyType, "any"},
      {kNumbers, "numbers"},
      {kFloats, "floats"},
      {kIntegers, "integers"},
      {kSignedIntegers, "signed integers"},
      {kUnsignedIntegers, "unsigned integers"},
      {kComplexes, "complex"},
      {kNarrow, "narrow"}};
  std::vector<std::string> parts;
  for (const auto& [members, name] : sets)
    if ((set & members) == members) {
      parts.push_back(name);
      set &= ~members;
    }
  for (int d = 1; d < kDTypeCount; ++d)
    if (Contains(set, static_cast<DType>(d)))
      parts.push_back(std::string(DTypeName(static_cast<DType>(d))));
  return absl::StrJoin(parts, ", ");
}

std::string Types(const ops::OpDef& op) {
  std::vector<std::string> parts;
  for (const ops::TypeVar& var : op.types)
    if (var.name != nullptr) parts.push_back(absl::StrCat(var.name, ": ", SetText(var.allowed)));
  return absl::StrJoin(parts, "; ");
}

std::string How(const ops::OpDef& op) {
  if (op.row != nullptr) return "elementwise kernels";
  if (op.prepare != nullptr) return "kernels";
  if (op.run != nullptr) return "fast loops";
  return op.bind != nullptr ? "reference, shares memory" : "reference";
}

const char* ListOf(const ops::OpDef& op) {
  static constexpr const char* kNames[] = {"gray", "white", "black"};
  return kNames[static_cast<int>(ops::PrecisionReduceOf(op.name))];
}

std::string Notes(const ops::OpDef& op) {
  std::vector<std::string> notes;
  if (op.traits & ops::kRandom) notes.push_back("random");
  if (op.traits & ops::kReadsState) notes.push_back("reads state");
  if (op.traits & ops::kWritesState) notes.push_back("writes state");
  if (op.internal) notes.push_back("made by passes and hosts only");
  if (op.epilogue.activation) notes.push_back("takes an activation into itself");
  for (const ops::AttrDef& attribute : op.attributes)
    if (attribute.name != nullptr && attribute.kind == ops::AttrKind::kGraph) {
      notes.push_back("runs subgraphs");
      break;
    }
  return absl::StrJoin(notes, ", ");
}

std::string Markdown() {
  std::string text = absl::StrCat(
      "# Operators\n\n"
      "Generated from the operators' schemas and aliases.inc; do not edit. A test fails when it is "
      "stale\n"
      "and says how to write it anew. ONNX's own operators are read in every version up to opset ",
      kNewestOpset, ", those\nof ai.onnx.ml up to ", kNewestMlOpset,
      "; older forms are rewritten to the newest one. Every operator has a reference\n"
      "in plain loops, which is what the reference device runs; the last columns say what the cpu "
      "device has.\n"
      "Floats are float16, bfloat16, float32 and float64; narrow types are the floats of 8 and 4 "
      "bits "
      "and\nthe integers of 4 and 2; numbers are floats and integers from 8 bits on. The list is the one of\n"
      "mixed precision: white operators (the matrix operators) are lowered, black ones are not, gray "
      "ones\nfollow what they are fed with; documents name no lists of their own, ARCHITECTURE.md "
      "says how they were\nchosen, and option modify_mixlist changes them.\n\n"
      "| operator | read from | types | engine | list | on the cpu | notes "
      "|\n|---|---|---|---|---|---|---|\n");
  for (const ops::OpDef* op : ops::AllOps())
    absl::StrAppend(&text, "| ", op->name, " | ", ReadFrom(*op), " | ", Types(*op), " | ",
                    op->engine == ops::Engine::kAiCore ? "AI core" : "AI CPU", " | ", ListOf(*op),
                    " | ", How(*op),
                    " | ", Notes(*op), " |\n");
  absl::StrAppend(&text,
                  "\n## Read as several operators\n\n"
                  "Each node of these becomes nodes of the operators above.\n\n"
                  "| operator | versions |\n|---|---|\n");
  for (const Row& row : kRows)
    if (row.type == nullptr) {
      const std::string versions = Versions(row);
      absl::StrAppend(&text, "| ", Qualified(row.domain, row.name), " |",
                      versions.empty() ? " all" : versions, " |\n");
    }
  return text;
}

TEST(OperatorsMdTest, TheDocumentIsNotStale) {
  const char* root = std::getenv("NPURT_SOURCE_ROOT");
  if (root == nullptr) GTEST_SKIP() << "NPURT_SOURCE_ROOT is not set";
  const std::string path = absl::StrCat(root, "/src/ops/OPERATORS.md");
  if (std::getenv("NPURT_WRITE_OPERATORS_MD") != nullptr) std::ofstream(path) << Markdown();
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  EXPECT_TRUE(text.str() == Markdown())
      << path << " is stale: run this test with NPURT_WRITE_OPERATORS_MD=1";
}

TEST(OperatorsMdTest, WhatHasAnotherHomeIsAnOperator) {
  for (const auto& [home, names] : Homes())
    for (const char* name : names) EXPECT_NE(ops::FindOp(name), nullptr) << home << " " << name;
}

}  // namespace
}  // namespace npurt::formats::onnx
