// The environment variables that the documents name, with what each stands for.
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "options/resolver.h"

namespace npurt::options {
namespace {

struct EnvironmentRow {
  const char* name;
  Option option;  // takes the value if it is not set; kCount: none
  const char* suffix;
};

// ASCEND_WORK_PATH is also where other files go whose own option is not set.
constexpr EnvironmentRow kVariables[] = {
    {"AOE_MODE", Option::aoe_mode, ""},
    {"ASCEND_CACHE_PATH", Option::op_compiler_cache_dir, "/kernel_cache"},
    {"ASCEND_DEVICE_ID", Option::session_device_id, ""},
    {"ASCEND_MAX_OP_CACHE_SIZE", Option::kCount, ""},
    {"ASCEND_REMAIN_CACHE_SIZE_RATIO", Option::kCount, ""},
    {"ASCEND_WORK_PATH", Option::debug_dir, ""},
    {"ENABLE_DYNAMIC_SHAPE_MULTI_STREAM", Option::kCount, ""},
    {"HCCL_EXEC_TIMEOUT", Option::hccl_timeout, ""},
    {"HOME", Option::kCount, ""},
    {"LOSS_NOW", Option::kCount, ""},
    {"NPU_COLLECT_PATH", Option::kCount, ""},
    {"PROFILING_MODE", Option::profiling_mode, ""},
    {"STEP_NOW", Option::kCount, ""},
    {"TARGET_LOSS", Option::kCount, ""},
    {"TOTAL_STEP", Option::kCount, ""},
};

}  // namespace

Environment ReadEnvironment() {
  Environment environment;
  for (const EnvironmentRow& row : kVariables)
    if (const char* value = std::getenv(row.name); value != nullptr && *value != '\0')
      environment.emplace_back(row.name, value);
  return environment;
}

const char* Find(const Environment& environment, absl::string_view name) {
  for (const auto& [key, value] : environment)
    if (key == name) return value.c_str();
  return nullptr;
}

// An option that was set, even to nothing, stands above the environment.
void Resolver::TakeEnvironment() {
  for (const EnvironmentRow& row : kVariables) {
    const char* found = Variable(row.name);
    if (found == nullptr || row.option == Option::kCount) continue;
    Options::Entry& entry = At(row.option);
    if (entry.source != Options::Source::kDefault) continue;
    const auto value = ParseValue(RowOf(row.option), absl::StrCat(found, row.suffix));
    if (!value.ok()) {
      Note("", absl::StrCat("environment variable ", row.name, ": got '", found, "', want ",
                            value.status().message(), "; it has no effect"));
    } else {
      entry = {Options::Source::kEnvironment, true, *value, row.name};
    }
  }
  // The documents' default of a directory.
  Options::Entry& cache = At(Option::op_compiler_cache_dir);
  const char* home = Variable("HOME");
  if (cache.source == Options::Source::kDefault && home != nullptr &&
      cache.value.rfind("$HOME/", 0) == 0)
    cache.value = home + cache.value.substr(5);
}

}  // namespace npurt::options
