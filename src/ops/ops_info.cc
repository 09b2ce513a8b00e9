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

// One combination of the types of an operator's operands, by their place in the schema; kUndefined
// for what is no tensor.
struct Combination {
  std::vector<DType> inputs, outputs;
};

std::vector<Combination> Combinations(const OpDef& op) {
  std::vector<Combination> all(1);
  const auto each = [&op](auto visit) {
    for (const bool output : {false, true})
      for (const Param& param : output ? op.outputs : op.inputs)
        if (param.name != nullptr) visit(output, param);
  };
  each([&](bool output, const Param& param) {
    for (Combination& c : all) (output ? c.outputs : c.inputs).push_back(DTypeFromName(param.type));
  });
  for (const TypeVar& variable : op.types) {
    if (variable.name == nullptr) continue;
    std::vector<Combination> more;
    for (int d = 1; d < kDTypeCount; ++d) {
      if (!Contains(variable.allowed, static_cast<DType>(d))) continue;
      for (Combination c : all) {
        std::size_t counts[2] = {0, 0};
        each([&](bool output, const Param& param) {
          const std::size_t i = counts[output]++;
          if (absl::string_view(variable.name) == param.type)
            (output ? c.outputs : c.inputs)[i] = static_cast<DType>(d);
        });
        more.push_back(std::move(c));
      }
    }
    all = std::move(more);
  }
  const std::size_t narrow = NarrowInputs(op.name);
  for (const DType dtype : {DType::kF16, DType::kBF16}) {
    if (narrow == 0) break;
    Combination c = {std::vector<DType>(all[0].inputs.size(), DType::kF32), {DType::kF32}};
    std::fill_n(c.inputs.begin(), narrow, dtype);
    all.push_back(std::move(c));
  }
  return all;
}

// `"input0": {...}`. Names are identifiers: nothing to escape.
std::string Operand(const std::vector<Combination>& combinations, bool output, std::size_t index,
                    const Param& param) {
  absl::string_view name = param.name;
  const char* kind = "required";
  for (; !name.empty() && (name[0] == '*' || name[0] == '?'); name.remove_prefix(1))
    if (*kind != 'd') kind = name[0] == '*' ? "dynamic" : "optional";
  const std::string dtypes =
      absl::StrJoin(combinations, ",", [&](std::string* out, const Combination& c) {
        const DType type = (output ? c.outputs : c.inputs)[index];
        out->append(type == DType::kUndefined ? "any" : std::string(DTypeName(type)));
      });
  return absl::StrCat("\"", output ? "output" : "input", index, "\": {\"name\": \"", name,
                      "\", \"paramType\": \"", kind, "\", \"type\": \"", param.type,
                      "\", \"dtype\": \"", dtypes, "\"}");
}

std::string Operands(const OpDef& op, const char* separator) {
  const std::vector<Combination> combinations = Combinations(op);
  std::vector<std::string> members;
  for (const bool output : {false, true})
    for (std::size_t i = 0; i < 16 && (output ? op.outputs : op.inputs)[i].name != nullptr; ++i)
      members.push_back(Operand(combinations, output, i, (output ? op.outputs : op.inputs)[i]));
  return absl::StrJoin(members, separator);
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

std::size_t NarrowInputs(absl::string_view op) {
  return op == "Conv" || op == "ConvTranspose" || op == "Gemm" || op == "MatMul" ? 2 : 0;
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
    members.push_back(op->engine == Engine::kAiCore
                          ? Operands(*op, ",\n  ")
                          : absl::StrCat("\"AiCpu\": {\n   ", Operands(*op, ",\n   "), "\n  }"));
    rows.push_back(
        absl::StrCat(" \"", op->name, "\": {\n  ", absl::StrJoin(members, ",\n  "), "\n }"));
  }
  return absl::StrCat("{\n", absl::StrJoin(rows, ",\n"), "\n}");
}

}  // namespace npurt::ops
