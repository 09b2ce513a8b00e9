// The files that are JSON.
#include <algorithm>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "options/files.h"
#include "options/json_text.h"

namespace npurt::options {
namespace {

using Kind = JsonNode::Kind;

constexpr std::size_t kMaxOperands = 64;

absl::Status WantKind(const JsonNode& node, Kind kind, absl::string_view file) {
  if (node.kind == kind) return absl::OkStatus();
  return ErrorAt(file, node.place,
                 absl::StrCat("got ", JsonKindName(node.kind), ", want ", JsonKindName(kind)));
}

absl::Status UnknownName(const JsonNode::Member& member, absl::string_view file,
                         absl::string_view wanted) {
  return ErrorAt(file, member.place, absl::StrCat("got '", member.name, "', want ", wanted));
}

// Strings, none of them empty.
absl::Status ReadStrings(const JsonNode& node, absl::string_view file,
                         std::vector<std::string>* strings) {
  NPURT_RETURN_IF_ERROR(WantKind(node, Kind::kArray, file));
  for (const JsonNode& item : node.items) {
    NPURT_RETURN_IF_ERROR(WantKind(item, Kind::kString, file));
    if (item.text.empty()) return ErrorAt(file, item.place, "an empty name");
    strings->push_back(item.text);
  }
  return absl::OkStatus();
}

absl::Status ReadMoves(const JsonNode& node, absl::string_view file, MixList::Moves* moves) {
  NPURT_RETURN_IF_ERROR(WantKind(node, Kind::kObject, file));
  for (const auto& member : node.members) {
    const auto& [name, value, place] = member;
    if (name != "to-add" && name != "to-remove")
      return UnknownName(member, file, "to-add or to-remove");
    NPURT_RETURN_IF_ERROR(
        ReadStrings(value, file, name == "to-add" ? &moves->to_add : &moves->to_remove));
  }
  for (const std::string& type : moves->to_add)
    if (std::count(moves->to_remove.begin(), moves->to_remove.end(), type) > 0)
      return ErrorAt(file, node.place,
                     absl::StrCat("'", type, "' is both added to this list and removed from it"));
  return absl::OkStatus();
}

absl::Status ReadSwitches(const JsonNode& node, absl::string_view file,
                          std::map<std::string, bool>* switches) {
  NPURT_RETURN_IF_ERROR(WantKind(node, Kind::kObject, file));
  for (const auto& [name, value, place] : node.members) {
    NPURT_RETURN_IF_ERROR(WantKind(value, Kind::kString, file));
    if (value.text != "on" && value.text != "off")
      return ErrorAt(file, value.place, absl::StrCat("got '", value.text, "', want on or off"));
    (*switches)[name] = value.text == "on";
  }
  return absl::OkStatus();
}

// The older form: `rule:on`, a line each.
absl::StatusOr<FusionSwitch> ParseSwitchLines(absl::string_view text, absl::string_view file) {
  FusionSwitch result;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line);
    if (line.empty() || line[0] == '#') continue;
    const auto colon = line.rfind(':');
    const absl::string_view name = absl::StripAsciiWhitespace(line.substr(0, colon));
    if (colon == absl::string_view::npos || name.empty())
      return ErrorAt(file, {number, 1},
                     absl::StrCat("got '", line.substr(0, 80),
                                  "', want a JSON "
                                  "object or lines `rule:on`"));
    const absl::string_view value = absl::StripAsciiWhitespace(line.substr(colon + 1));
    if (value != "on" && value != "off")
      return ErrorAt(file, {number, static_cast<int>(colon) + 2},
                     absl::StrCat("got '", value.substr(0, 80), "', want on or off"));
    if (!result.graph.emplace(name, value == "on").second)
      return ErrorAt(file, {number, 1}, absl::StrCat("'", name, "' was given before"));
  }
  return result;
}

}  // namespace

absl::StatusOr<MixList> ParseMixList(absl::string_view text, absl::string_view file) {
  NPURT_ASSIGN_OR_RETURN(const JsonNode root, ParseJson(text, file, /*comments=*/true));
  NPURT_RETURN_IF_ERROR(WantKind(root, Kind::kObject, file));
  MixList lists;
  const std::map<absl::string_view, MixList::Moves*> known = {
      {"white-list", &lists.white}, {"black-list", &lists.black}, {"gray-list", &lists.gray}};
  std::map<std::string, std::string> added;  // type to list
  for (const auto& member : root.members) {
    const auto& [name, value, place] = member;
    const auto list = known.find(name);
    if (list == known.end())
      return UnknownName(member, file, "black-list, white-list or gray-list");
    NPURT_RETURN_IF_ERROR(ReadMoves(value, file, list->second));
    for (const std::string& type : list->second->to_add) {
      const auto [other, is_new] = added.emplace(type, name);
      if (!is_new && other->second != name)
        return ErrorAt(file, value.place,
                       absl::StrCat("'", type, "' is added to ", other->second, " and to ", name));
    }
  }
  return lists;
}

namespace {

// "input12" is {false, 12}, "output0" {true, 0}; false if `name` is neither.
bool IsOperand(absl::string_view name, bool* output, std::size_t* index) {
  *output = absl::ConsumePrefix(&name, "output");
  if (!*output && !absl::ConsumePrefix(&name, "input")) return false;
  std::uint32_t number;
  if (!absl::SimpleAtoi(name, &number) || number >= kMaxOperands) return false;
  *index = number;
  return true;
}

// Adds the combinations that one operand's `dtype` has a part in.
absl::Status ReadOperand(const JsonNode& node, absl::string_view file, bool output,
                         std::size_t index, std::vector<OpsInfo::Column>* columns) {
  NPURT_RETURN_IF_ERROR(WantKind(node, Kind::kObject, file));
  const JsonNode* dtype = node.Find("dtype");
  if (dtype == nullptr) return ErrorAt(file, node.place, "dtype is missing");
  NPURT_RETURN_IF_ERROR(WantKind(*dtype, Kind::kString, file));
  const std::vector<absl::string_view> names = absl::StrSplit(dtype->text, ',');
  if (columns->empty()) columns->resize(names.size());
  if (names.size() != columns->size())
    return ErrorAt(file, dtype->place,
                   absl::StrCat("got ", names.size(), " types, want ", columns->size(),
                                " as for the operand before: the n-th of each belong together"));
  for (std::size_t c = 0; c < names.size(); ++c) {
    const absl::string_view name = absl::StripAsciiWhitespace(names[c]);
    const DType type = DTypeFromName(name);
    if (type == DType::kUndefined && name != "any")
      return ErrorAt(file, dtype->place, absl::StrCat("'", name, "' is no type"));
    auto& types = output ? (*columns)[c].outputs : (*columns)[c].inputs;
    if (types.size() != index)
      return ErrorAt(file, node.place, "operands must be counted from 0 and stand in order");
    types.push_back(type);
  }
  return absl::OkStatus();
}

// Columns of an engine from the operands in `node`; members that are no operands go to `other`.
template <typename Other>
absl::Status ReadColumns(const JsonNode& node, absl::string_view file,
                         std::optional<std::vector<OpsInfo::Column>>* columns, Other other) {
  NPURT_RETURN_IF_ERROR(WantKind(node, Kind::kObject, file));
  for (const auto& member : node.members) {
    bool output;
    std::size_t index;
    if (!IsOperand(member.name, &output, &index)) {
      NPURT_RETURN_IF_ERROR(other(member));
      continue;
    }
    if (!columns->has_value()) columns->emplace();
    NPURT_RETURN_IF_ERROR(ReadOperand(member.value, file, output, index, &**columns));
  }
  return absl::OkStatus();
}

absl::Status ReadFlag(const JsonNode& node, absl::string_view file, std::optional<bool>* flag) {
  NPURT_RETURN_IF_ERROR(WantKind(node, Kind::kObject, file));
  const JsonNode* value = node.Find("flag");
  if (value == nullptr || (value->text != "true" && value->text != "false"))
    return ErrorAt(file, node.place, "want {\"flag\": \"true\"} or {\"flag\": \"false\"}");
  *flag = value->text == "true";
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<OpsInfo> ParseOpsInfo(absl::string_view text, absl::string_view file) {
  NPURT_ASSIGN_OR_RETURN(const JsonNode root, ParseJson(text, file));
  NPURT_RETURN_IF_ERROR(WantKind(root, Kind::kObject, file));
  OpsInfo result;
  for (const auto& [type, operators, place] : root.members) {
    OpsInfo::Row& row = result.rows[type];
    NPURT_RETURN_IF_ERROR(
        ReadColumns(operators, file, &row.ai_core, [&](const JsonNode::Member& member) {
          if (member.name == "precision_reduce") return ReadFlag(member.value, file, &row.lowered);
          if (member.name != "AiCpu") return absl::OkStatus();
          row.ai_cpu.emplace();
          return ReadColumns(member.value, file, &row.ai_cpu, [&](const JsonNode::Member& inner) {
            return UnknownName(inner, file, "input0, output0 ...");
          });
        }));
  }
  return result;
}

absl::StatusOr<FusionSwitch> ParseFusionSwitch(absl::string_view text, absl::string_view file) {
  if (!absl::StartsWith(absl::StripLeadingAsciiWhitespace(text), "{"))
    return ParseSwitchLines(text, file);
  NPURT_ASSIGN_OR_RETURN(const JsonNode root, ParseJson(text, file));
  FusionSwitch result;
  for (const auto& member : root.members) {
    if (member.name != "Switch") return UnknownName(member, file, "Switch");
    const JsonNode& groups = member.value;
    NPURT_RETURN_IF_ERROR(WantKind(groups, Kind::kObject, file));
    for (const auto& group : groups.members) {
      const auto& [name, value, place] = group;
      if (name != "GraphFusion" && name != "UBFusion")
        return UnknownName(group, file, "GraphFusion or UBFusion");
      NPURT_RETURN_IF_ERROR(
          ReadSwitches(value, file, name == "UBFusion" ? &result.ub : &result.graph));
    }
  }
  return result;
}

bool FusionSwitch::IsOn(const std::string& rule) const {
  for (const auto* name : {rule.c_str(), "ALL"})
    for (const auto* group : {&graph, &ub})
      if (const auto found = group->find(name); found != group->end()) return found->second;
  return true;
}

absl::StatusOr<AoeConfig> ParseAoeConfig(absl::string_view text, absl::string_view file) {
  NPURT_ASSIGN_OR_RETURN(const JsonNode root, ParseJson(text, file));
  NPURT_RETURN_IF_ERROR(WantKind(root, Kind::kObject, file));
  AoeConfig config;
  for (const auto& member : root.members) {
    const auto& [name, value, place] = member;
    if (name == "tune_ops_name") {
      NPURT_RETURN_IF_ERROR(ReadStrings(value, file, &config.names));
    } else if (name == "tune_ops_type") {
      NPURT_RETURN_IF_ERROR(ReadStrings(value, file, &config.types));
    } else if (name == "feature") {
      NPURT_RETURN_IF_ERROR(ReadStrings(value, file, &config.features));
      for (const JsonNode& item : value.items)
        if (item.text != "deeper_opat" && item.text != "nonhomo_split")
          return ErrorAt(file, item.place,
                         absl::StrCat("got '", item.text, "', want deeper_opat or nonhomo_split"));
    } else if (name == "tune_optimization_level") {
      NPURT_RETURN_IF_ERROR(WantKind(value, Kind::kString, file));
      if (value.text != "O1" && value.text != "O2")
        return ErrorAt(file, value.place, absl::StrCat("got '", value.text, "', want O1 or O2"));
      config.level = value.text;
    } else {
      return UnknownName(member, file,
                         "tune_ops_name, tune_ops_type, tune_optimization_level or feature");
    }
  }
  return config;
}

namespace {

enum class Form { kFree, kPath, kChoice, kList, kRange, kStorage, kMetrics };

// What a key of profiling_options takes.
struct Key {
  const char* name;
  Form form;
  const char* choices;
  std::int64_t min, max;
};
constexpr const char* kOnOff = "on|off";
constexpr Key kKeys[] = {
    {"output", Form::kPath, nullptr, 0, 0},
    {"storage_limit", Form::kStorage, nullptr, 200, 4294967295},
    {"training_trace", Form::kChoice, kOnOff, 0, 0},
    {"task_trace", Form::kChoice, "on|off|l0|l1", 0, 0},
    {"task_time", Form::kChoice, "on|off|l0|l1", 0, 0},
    {"ge_api", Form::kChoice, "off|l0|l1", 0, 0},
    {"hccl", Form::kChoice, kOnOff, 0, 0},
    {"aicpu", Form::kChoice, kOnOff, 0, 0},
    {"fp_point", Form::kFree, nullptr, 0, 0},
    {"bp_point", Form::kFree, nullptr, 0, 0},
    {"aic_metrics", Form::kMetrics,
     "ArithmeticUtilization|PipeUtilization|Memory|MemoryL0|MemoryUB|ResourceConflictRatio|L2Cache|"
     "MemoryAccess",
     0, 0},
    {"l2", Form::kChoice, kOnOff, 0, 0},
    {"msproftx", Form::kChoice, kOnOff, 0, 0},
    {"runtime_api", Form::kChoice, kOnOff, 0, 0},
    {"sys_hardware_mem_freq", Form::kRange, nullptr, 1, 100},
    {"llc_profiling", Form::kChoice, "read|write", 0, 0},
    {"sys_io_sampling_freq", Form::kRange, nullptr, 1, 100},
    {"sys_interconnection_freq", Form::kRange, nullptr, 1, 50},
    {"dvpp_freq", Form::kRange, nullptr, 1, 100},
    {"instr_profiling", Form::kChoice, kOnOff, 0, 0},
    {"instr_profiling_freq", Form::kRange, nullptr, 300, 30000},
    {"host_sys", Form::kList, "cpu|mem|disk|network|osrt", 0, 0},
    {"host_sys_usage", Form::kList, "cpu|mem", 0, 0},
    {"host_sys_usage_freq", Form::kRange, nullptr, 1, 50},
};

bool IsChoice(absl::string_view choices, absl::string_view value) {
  const std::vector<absl::string_view> all = absl::StrSplit(choices, '|');
  return std::find(all.begin(), all.end(), value) != all.end();
}

bool InRange(const Key& key, absl::string_view value) {
  std::int64_t number;
  return absl::SimpleAtoi(value, &number) && number >= key.min && number <= key.max;
}

// Custom:0x5,7 names at most eight registers from 0x1 to 0x6E.
bool IsCustomMetrics(absl::string_view value) {
  if (!absl::StartsWith(value, "Custom:")) return false;
  const std::vector<absl::string_view> registers = absl::StrSplit(value.substr(7), ',');
  for (absl::string_view text : registers) {
    std::int64_t number;
    const bool hex = absl::StartsWithIgnoreCase(text, "0x");
    if (!(hex ? absl::SimpleHexAtoi(text, &number) : absl::SimpleAtoi(text, &number)) ||
        number < 0x1 || number > 0x6E)
      return false;
  }
  return registers.size() <= 8;
}

// "" if the value is right, else what is wanted.
std::string WantedBy(const Key& key, absl::string_view value) {
  switch (key.form) {
    case Form::kFree:
      return "";
    case Form::kPath: {
      const bool control = std::any_of(value.begin(), value.end(), [](char c) {
        return static_cast<unsigned char>(c) < 0x20 || c == 0x7F;
      });
      return value.empty() || control ? "a directory without control characters" : "";
    }
    case Form::kStorage: {
      const bool unit = absl::EndsWith(value, "MB");
      return unit && InRange(key, value.substr(0, value.size() - 2)) ? "" : "200MB to 4294967295MB";
    }
    case Form::kRange:
      return InRange(key, value) ? "" : absl::StrCat("a number from ", key.min, " to ", key.max);
    case Form::kMetrics:
      return IsChoice(key.choices, value) || IsCustomMetrics(value)
                 ? ""
                 : absl::StrCat(absl::StrJoin(absl::StrSplit(key.choices, '|'), ", "),
                                " or Custom: with up to 8 registers from 0x1 to 0x6E");
    case Form::kChoice:
      return IsChoice(key.choices, value)
                 ? ""
                 : absl::StrCat("one of ", absl::StrJoin(absl::StrSplit(key.choices, '|'), ", "));
    case Form::kList:
      for (absl::string_view item : absl::StrSplit(value, ','))
        if (!IsChoice(key.choices, item))
          return absl::StrCat("a list of ", absl::StrJoin(absl::StrSplit(key.choices, '|'), ", "));
      return "";
  }
  return "";
}

}  // namespace

absl::StatusOr<ProfilingOptions> ParseProfilingOptions(absl::string_view text,
                                                       absl::string_view file) {
  NPURT_ASSIGN_OR_RETURN(const JsonNode root, ParseJson(text, file));
  NPURT_RETURN_IF_ERROR(WantKind(root, Kind::kObject, file));
  ProfilingOptions result;
  for (const auto& member : root.members) {
    const auto& [name, value, place] = member;
    const auto* key = std::find_if(std::begin(kKeys), std::end(kKeys),
                                   [&name = name](const Key& k) { return name == k.name; });
    if (key == std::end(kKeys)) return UnknownName(member, file, "a key of profiling_options");
    if (value.kind != Kind::kNumber || key->form != Form::kRange)
      NPURT_RETURN_IF_ERROR(WantKind(value, Kind::kString, file));
    const std::string wanted = WantedBy(*key, value.text);
    if (!wanted.empty())
      return ErrorAt(file, value.place,
                     absl::StrCat(name, ": got '", value.text, "', want ", wanted));
    result[name] = value.text;
  }
  return result;
}

}  // namespace npurt::options
