// The files that options name: each a parser from text to a struct, with line and column in its
// errors. `file` is the name for errors. Names and types are not looked up here: whether an
// operator exists is a question for a graph.
//
// Thread safety: pure functions, and values.
#ifndef NPURT_OPTIONS_FILES_H_
#define NPURT_OPTIONS_FILES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/dtype.h"
#include "base/status.h"

namespace npurt::options {

// The text of a file of at most 4 MB. NOT_FOUND, PERMISSION_DENIED, INVALID_ARGUMENT.
absl::StatusOr<std::string> ReadTextFile(const std::string& path);

// modify_mixlist: JSON, comments allowed.
struct MixList {
  struct Moves {
    std::vector<std::string> to_add, to_remove;  // operator types
  };
  Moves white, black, gray;
};
absl::StatusOr<MixList> ParseMixList(absl::string_view text, absl::string_view file);

// customize_dtypes: lines `name::InputDtype:a,b,OutputDtype:c` and `OpType::Type:InputDtype:...`;
// the comma before OutputDtype may be missing. Names win over types.
struct CustomDtypes {
  struct Entry {
    bool by_type = false;
    std::string name;
    std::vector<DType> inputs, outputs;  // kUndefined: does not matter
  };
  std::vector<Entry> entries;
};
absl::StatusOr<CustomDtypes> ParseCustomDtypes(absl::string_view text, absl::string_view file);

// ops_info: JSON, as `npurt options --ops-info` prints it. `dtype` is a list of types separated by
// commas ("any": whatever it is); the n-th of every operand make the n-th combination. What a row does not say stays as it is
// built in; what it says of an engine is all that the engine has.
struct OpsInfo {
  struct Column {
    std::vector<DType> inputs, outputs;  // the last one stands for all that follow
  };
  struct Row {
    std::optional<bool> lowered;  // precision_reduce
    std::optional<std::vector<Column>> ai_core, ai_cpu;
  };
  std::map<std::string, Row> rows;
  const Row* Find(absl::string_view type) const {
    const auto found = rows.find(std::string(type));
    return found == rows.end() ? nullptr : &found->second;
  }
};
absl::StatusOr<OpsInfo> ParseOpsInfo(absl::string_view text, absl::string_view file);

// op_precision_mode: INI with [ByOpType] and [ByNodeName]; without sections, types.
struct OpPrecision {
  std::map<std::string, std::string> by_type, by_name;
};
absl::StatusOr<OpPrecision> ParseOpPrecision(absl::string_view text, absl::string_view file);

// fusion_switch_file: JSON, or lines `rule:on`. A rule that is named wins over ALL.
struct FusionSwitch {
  std::map<std::string, bool> graph, ub;  // true: on
  bool IsOn(const std::string& rule) const;
};
absl::StatusOr<FusionSwitch> ParseFusionSwitch(absl::string_view text, absl::string_view file);

// op_debug_config: lines `op_debug_config=oom,dump_cce` and `op_debug_list=Name,OpType::Type`.
struct OpDebug {
  std::vector<std::string> words, names, types;
  bool Has(absl::string_view word) const;
  bool lists_operators() const { return !names.empty() || !types.empty(); }
};
absl::StatusOr<OpDebug> ParseOpDebug(absl::string_view text, absl::string_view file);

// op_cache.ini. An error means that the whole file has no effect.
struct OpCache {
  std::int64_t max_megabytes = 500;  // -1: nothing gets old
  int percent_kept = 50;
};
absl::StatusOr<OpCache> ParseOpCache(absl::string_view text, absl::string_view file);

// aoe_config_file: JSON.
struct AoeConfig {
  std::vector<std::string> names, types, features;
  std::string level = "O2";
};
absl::StatusOr<AoeConfig> ParseAoeConfig(absl::string_view text, absl::string_view file);

// profiling_options: a JSON object of strings.
using ProfilingOptions = std::map<std::string, std::string>;
absl::StatusOr<ProfilingOptions> ParseProfilingOptions(absl::string_view text,
                                                       absl::string_view file);

}  // namespace npurt::options

#endif  // NPURT_OPTIONS_FILES_H_
