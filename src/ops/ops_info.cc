#include "ops/ops_info.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace npurt::ops {
namespace {

constexpr const char* kWhite[] = {
#define NPURT_WHITE(name) #name,
#define NPURT_BLACK(name)
#include "ops/precision_reduce.inc"
#undef NPURT_WHITE
#undef NPURT_BLACK
};
constexpr const char* kBlack[] = {
#define NPURT_WHITE(name)
#define NPURT_BLACK(name) #name,
#include "ops/precision_reduce.inc"
#undef NPURT_WHITE
#undef NPURT_BLACK
};

template <std::size_t n>
bool Has(const char* const (&names)[n], absl::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

std::string Names(DTypeSet set) {
  std::vector<absl::string_view> names;
  for (int i = 1; i < kDTypeCount; ++i)
    if ((set & Bit(static_cast<DType>(i))) != 0) names.push_back(DTypeName(static_cast<DType>(i)));
  return absl::StrJoin(names, ",");
}

// `"input0": {...}`. Names are identifiers: nothing to escape.
std::string Operand(const OpDef& op, const char* side, int index, const Param& param) {
  absl::string_view name = param.name;
  const char* kind = "required";
  for (; !name.empty() && (name[0] == '*' || name[0] == '?'); name.remove_prefix(1))
    if (*kind != 'd') kind = name[0] == '*' ? "dynamic" : "optional";
  std::string dtypes = param.type;  // a fixed type, or a kind of value
  for (const TypeVar& type : op.types)
    if (type.name != nullptr && absl::string_view(type.name) == param.type)
      dtypes = Names(type.allowed);
  return absl::StrCat("\"", side, index, "\": {\"name\": \"", name, "\", \"paramType\": \"", kind,
                      "\", \"type\": \"", param.type, "\", \"dtype\": \"", dtypes, "\"}");
}

}  // namespace

const TypeVar* VariableOf(const OpDef& op, absl::Span<const Param> params, std::size_t i) {
  std::size_t count = 0;
  while (count < params.size() && params[count].name != nullptr) ++count;
  if (count == 0) return nullptr;
  const Param& param = params[std::min(i, count - 1)];
  for (const TypeVar& variable : op.types)
    if (variable.name != nullptr && absl::string_view(variable.name) == param.type)
      return &variable;
  return nullptr;
}

PrecisionReduce PrecisionReduceOf(absl::string_view op) {
  if (Has(kWhite, op)) return PrecisionReduce::kWhite;
  return Has(kBlack, op) ? PrecisionReduce::kBlack : PrecisionReduce::kGray;
}

std::string OpsInfoJson() {
  std::vector<std::string> rows;
  for (const OpDef* op : AllOps()) {
    if (op->internal) continue;
    std::vector<std::string> members = {
        absl::StrCat("\"engine\": \"", op->engine == Engine::kAiCore ? "AiCore" : "AiCpu", "\"")};
    const PrecisionReduce list = PrecisionReduceOf(op->name);
    if (list != PrecisionReduce::kGray)
      members.push_back(absl::StrCat("\"precision_reduce\": {\"flag\": \"",
                                     list == PrecisionReduce::kWhite ? "true" : "false", "\"}"));
    for (int i = 0; i < 16 && op->inputs[i].name != nullptr; ++i)
      members.push_back(Operand(*op, "input", i, op->inputs[i]));
    for (int i = 0; i < 16 && op->outputs[i].name != nullptr; ++i)
      members.push_back(Operand(*op, "output", i, op->outputs[i]));
    rows.push_back(
        absl::StrCat(" \"", op->name, "\": {\n  ", absl::StrJoin(members, ",\n  "), "\n }"));
  }
  return absl::StrCat("{\n", absl::StrJoin(rows, ",\n"), "\n}");
}

}  // namespace npurt::ops
