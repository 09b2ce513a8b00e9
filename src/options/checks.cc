// The rules between options that need code: files, directories, counts, numbers.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "options/files.h"
#include "options/forms.h"
#include "options/resolver.h"

namespace npurt::options {
namespace {

using enum Option;

std::string Named(const Resolver& r, Option option) {
  return absl::StrCat("option ", r.Show(option));
}

// The parsed file of an option; null if it is not set or wrong, and then the error is told.
template <typename File>
std::optional<File> Read(Resolver& r, Option option,
                         absl::StatusOr<File> (*parse)(absl::string_view, absl::string_view)) {
  if (!r.IsSet(option)) return std::nullopt;
  const std::string path(r.options().Text(option));
  const bool in_line = RowOf(option).type == Type::kJson;
  auto text = in_line ? absl::StatusOr<std::string>(path) : ReadTextFile(path);
  auto parsed = text.ok() ? parse(*text, in_line ? "" : path) : absl::StatusOr<File>(text.status());
  if (parsed.ok()) return *std::move(parsed);
  r.Fail("", absl::StrCat("option ", RowOf(option).name, ": ", parsed.status().message()));
  return std::nullopt;
}

void WantDirectory(Resolver& r, const char* rule, Option option) {
  const std::string path(r.options().Text(option));
  struct stat info;
  std::string wrong;
  if (stat(path.c_str(), &info) != 0) {
    wrong = errno == ENOENT ? "there is no such directory" : "cannot be read";
  } else if (!S_ISDIR(info.st_mode)) {
    wrong = "is no directory";
  } else if (access(path.c_str(), R_OK | W_OK) != 0) {
    wrong = "may not be read and written";
  }
  if (!wrong.empty()) r.Fail(rule, absl::StrCat(Named(r, option), ": ", wrong, "; make it before"));
}

// --- files
// -----------------------------------------------------------------------------------------

void CheckMixList(Resolver& r) {
  const auto lists = Read<MixList>(r, modify_mixlist, ParseMixList);
  const bool mixed =
      r.Holds({Condition::kIs, precision_mode_v2, "mixed_float16|mixed_bfloat16|mixed_hif8"}) ||
      absl::StartsWith(r.options().Text(precision_mode), "allow_mix_precision");
  if (lists.has_value() && !mixed)
    r.Fail("R18", absl::StrCat(Named(r, modify_mixlist),
                               " requires a mixed precision: lists are "
                               "what it goes by; set precision_mode_v2=mixed_float16 or "
                               "mixed_bfloat16"));
}

// Of the modes that an operator may have, one has an effect, two are what kernels do anyway.
void CheckOpPrecision(Resolver& r) {
  struct Mode {
    const char* name;
    bool refused;
    const char* reason;
  };
  static constexpr Mode kModes[] = {
      {"enable_float_32_execution", false, "float32 is always computed in float32"},
      {"enable_hi_float_32_execution", true, "the documents say: not supported in this version"},
      {"keep_fp16", true, "float16 is computed in float32 here and rounded once"},
      {"super_performance", true, "no kernel gives up more than high_performance does"},
      {"support_out_of_bound_index", false, "indices are always checked"},
  };
  const auto file = Read<OpPrecision>(r, op_precision_mode, ParseOpPrecision);
  if (!file.has_value()) return;
  for (const Mode& mode : kModes) {
    std::vector<std::string> who;
    for (const auto* entries : {&file->by_type, &file->by_name})
      for (const auto& [name, wanted] : *entries)
        if (wanted == mode.name) who.push_back(name);
    if (who.empty()) continue;
    const std::string text = absl::StrCat("option op_precision_mode: ", mode.name, " for ",
                                          absl::StrJoin(who, ", "), ": ", mode.reason);
    if (mode.refused)
      r.Refuse(absl::StrCat(text, "; choose high_precision or high_performance"));
    else
      r.Note("", text);
  }
}

// R19: files of another debug level cannot be kept; run_config's document allows 3 too.
void CheckCompileCache(Resolver& r, const std::optional<OpDebug>& debug) {
  if (!r.IsSet(op_compiler_cache_mode) ||
      r.Holds({Condition::kIs, op_compiler_cache_mode, "disable"}))
    return;
  const char* kept = r.options().profile() == Profile::kRunConfig ? "0|3" : "0";
  if (r.Holds({Condition::kSetElse, op_debug_level, kept}))
    return r.Ignore("R19", op_compiler_cache_mode,
                    absl::StrCat("has no effect with ", r.Show(op_debug_level),
                                 ", what is compiled then is not kept"));
  if (!debug.has_value()) return;
  if (!debug->lists_operators())
    return r.Ignore("R20", op_compiler_cache_mode,
                    "has no effect with op_debug_config for all operators");
  r.Note("R20", "op_compiler_cache_mode: the operators of op_debug_list are compiled anew");
}

void CheckOpDebug(Resolver& r, const std::optional<OpDebug>& debug) {
  if (!debug.has_value() || !debug->Has("oom")) return;
  const auto forbid = [&r](absl::string_view what, absl::string_view remedy) {
    r.Fail("R21", absl::StrCat("option op_debug_config: oom excludes ", what,
                               ": checks of memory fail with it; ", remedy));
  };
  if (debug->Has("ccec_O0")) forbid("ccec_O0", "leave one out");
  if (r.Holds({Condition::kIs, op_debug_level, "2"})) forbid("op_debug_level=2", "leave one out");
  if (r.Variable("NPU_COLLECT_PATH") != nullptr)
    forbid("the environment variable NPU_COLLECT_PATH", "unset it");
}

void CheckAoe(Resolver& r) {
  const auto config = Read<AoeConfig>(r, aoe_config_file, ParseAoeConfig);
  if (!config.has_value()) return;
  const auto want = [&](const char* feature, const char* mode) {
    const auto& all = config->features;
    if (std::find(all.begin(), all.end(), feature) == all.end() ||
        r.Holds({Condition::kIs, aoe_mode, mode}))
      return;
    r.Fail("R31", absl::StrCat("option aoe_config_file: feature ", feature,
                               " requires aoe_mode=", mode, ": it is a way of that mode; set it"));
  };
  want("deeper_opat", "2");
  want("nonhomo_split", "1");
}

void CheckProfiling(Resolver& r) {
  const auto parsed = Read<ProfilingOptions>(r, profiling_options, ParseProfilingOptions);
  if (!parsed.has_value()) return;
  const auto text = [&](const char* key) {
    const auto found = parsed->find(key);
    return found == parsed->end() ? std::string() : found->second;
  };
  if (parsed->count("instr_profiling_freq") > 0) {
    std::vector<std::string> both;
    for (const char* key : {"training_trace", "task_trace", "hccl", "aicpu", "fp_point", "bp_point",
                            "aic_metrics", "l2", "task_time", "runtime_api"})
      if (parsed->count(key) > 0) both.emplace_back(key);
    if (!both.empty())
      r.Fail("R32", absl::StrCat("option profiling_options: instr_profiling_freq excludes ",
                                 absl::StrJoin(both, ", "),
                                 ": it takes the counters that they need; leave it out"));
  }
  const bool training = r.options().Int(graph_run_mode) == 1;
  if (training && text("task_trace") == "on" && text("training_trace") != "on")
    r.Fail("R32",
           "option profiling_options: task_trace=on requires training_trace=on in training: "
           "tasks are told by iteration; set it");
  if (!training && text("training_trace") == "on")
    r.Fail("R32",
           "option profiling_options: training_trace=on excludes online inference: there are "
           "no iterations; leave it out");
}

void CheckFusionSwitch(Resolver& r) {
  const auto file = Read<FusionSwitch>(r, fusion_switch_file, ParseFusionSwitch);
  if (!file.has_value()) return;
  static constexpr const char* kKnown[] = {
      "ALL",
#define NPURT_FUSION_RULE(name) #name,
#include "options/fusion_rules.inc"
#undef NPURT_FUSION_RULE
  };
  std::vector<std::string> unknown;
  for (const auto* group : {&file->graph, &file->ub})
    for (const auto& [name, on] : *group)
      if (std::find(std::begin(kKnown), std::end(kKnown), name) == std::end(kKnown))
        unknown.push_back(name);
  if (!unknown.empty())
    r.Note("", absl::StrCat("option fusion_switch_file: there is no rule ",
                            absl::StrJoin(unknown, ", "), "; those that can be switched are ",
                            absl::StrJoin(std::begin(kKnown) + 1, std::end(kKnown), ", ")));
}

// op_cache.ini > environment > 500 MB and half of it.
void CheckOpCache(Resolver& r) {
  if (!r.IsSet(op_compiler_cache_dir)) return;
  const std::string path = absl::StrCat(r.options().Text(op_compiler_cache_dir), "/op_cache.ini");
  const auto text = ReadTextFile(path);
  if (!text.ok()) return;  // nobody wrote one
  const auto cache = ParseOpCache(*text, path);
  if (!cache.ok()) {
    r.Note("", absl::StrCat("op_cache.ini has no effect: ", cache.status().message()));
  } else {
    for (const char* name : {"ASCEND_MAX_OP_CACHE_SIZE", "ASCEND_REMAIN_CACHE_SIZE_RATIO"})
      if (r.Variable(name) != nullptr)
        r.Note("", absl::StrCat("environment variable ", name, ": op_cache.ini stands above it"));
  }
}

// --- values
// ----------------------------------------------------------------------------------------

void CheckGears(Resolver& r) {
  if (!r.IsSet(dynamic_dims)) return;
  const absl::string_view gears = r.options().Text(dynamic_dims);
  const int limit = r.options().Text(product) == "350" ? 256 : 100;
  if (CountGears(gears) > limit)
    r.Fail("R5", absl::StrCat("option dynamic_dims: got ", CountGears(gears),
                              " gears, want at most ", limit, "; leave some out"));
  if (!r.IsSet(input_shape)) return;
  const absl::string_view shapes = r.options().Text(input_shape);
  const int want = CountGearDimensions(shapes);
  if (GearLength(gears) != want)
    return r.Fail("R5", absl::StrCat(Named(r, dynamic_dims), ": a gear has ", GearLength(gears),
                                     " values and input_shape has ", want,
                                     " dimensions of -1; make them equally many"));
  constexpr int kShown = 4;
  std::vector<std::string> shown;
  for (const auto& gear : ExpandGears(shapes, gears)) {
    if (shown.size() == kShown) break;
    shown.push_back(absl::StrJoin(gear, " ", [](std::string* out, const GearInput& input) {
      absl::StrAppend(out, input.name, "[", absl::StrJoin(input.dims, ","), "]");
    }));
  }
  if (CountGears(gears) > kShown)
    shown.push_back(absl::StrCat("and ", CountGears(gears) - kShown, " more"));
  r.Note("R5", absl::StrCat("the gears are ", absl::StrJoin(shown, "; ")));
}

void CheckCheckpoints(Resolver& r) {
  const std::int64_t loop = r.options().Int(iterations_per_loop);
  const std::int64_t steps = r.options().Int(save_checkpoints_steps);
  if (!r.IsSet(save_checkpoints_steps) || loop <= 1 || steps % loop == 0) return;
  r.Fail("R12", absl::StrCat(Named(r, save_checkpoints_steps), ": want a multiple of ",
                             r.Show(iterations_per_loop),
                             ", as checkpoints are written between loops; change one"));
}

void CheckAccelerateTrain(Resolver& r) {
  if (!r.IsSet(experimental_accelerate_train_mode)) return;
  const bool step = absl::StrContains(r.options().Text(experimental_accelerate_train_mode), "step");
  for (const char* name : {step ? "STEP_NOW" : "LOSS_NOW", step ? "TOTAL_STEP" : "TARGET_LOSS"})
    if (r.Variable(name) == nullptr)
      r.Fail("R27", absl::StrCat(Named(r, experimental_accelerate_train_mode),
                                 " requires the environment variable ", name,
                                 ": the script tells its progress there; set it"));
}

// R39, of the older document.
void CheckMemorySizes(Resolver& r) {
  constexpr std::int64_t kMax = std::int64_t{31} << 30;
  const std::int64_t sum =
      r.options().Int(graph_memory_max_size) + r.options().Int(variable_memory_max_size);
  if (r.options().profile() == Profile::kRunConfig && sum > kMax)
    r.Fail("R39", absl::StrCat("option ", r.Show(graph_memory_max_size), " and ",
                               r.Show(variable_memory_max_size), ": got ", sum,
                               " bytes together, want at most ", kMax, "; lower one"));
}

// R29: -1 waits for ever. Both are numbers that fit an int32.
void CheckTimeouts(Resolver& r) {
  const std::int64_t stream = r.options().Int(stream_sync_timeout);
  const std::int64_t collective = r.options().Int(hccl_timeout) * 1000;
  if (r.IsSet(stream_sync_timeout) && stream >= 0 && (collective == 0 || stream <= collective))
    r.Note("R29", absl::StrCat("stream_sync_timeout of ", stream,
                               " ms should be longer than hccl_timeout, which is ",
                               collective == 0 ? "for ever" : absl::StrCat(collective, " ms")));
}

// The documents' own words for two values of a list that is otherwise right.
void CheckHif8(Resolver& r) {
  if (r.Holds({Condition::kIs, precision_mode_v2, "mixed_hif8|cube_hif8"}))
    r.Refuse(absl::StrCat(Named(r, precision_mode_v2),
                          ": the documents say: not supported in this version; choose another"));
}

void CheckDirectories(Resolver& r) {
  const bool dumps = r.options().Bool(enable_dump) || r.options().Bool(enable_dump_debug);
  if (dumps && r.IsSet(dump_path)) WantDirectory(r, "R3", dump_path);
  if (r.IsSet(graph_compiler_cache_dir)) WantDirectory(r, "R35", graph_compiler_cache_dir);
  if (r.IsSet(work_path)) WantDirectory(r, "", work_path);
}

}  // namespace

// R40: two products count collective timeouts in units of 68 seconds.
void AdjustValues(Resolver& r) {
  if (!r.IsSet(hccl_timeout) || !r.Holds({Condition::kIs, product, "training|300i_duo"})) return;
  const std::int64_t seconds = r.options().Int(hccl_timeout);
  if (seconds < 1 || seconds > 17340)
    return r.Fail("R40", absl::StrCat(Named(r, hccl_timeout), " on ", r.Show(product),
                                      ": want a number from 1 to 17340; change it"));
  const std::int64_t whole = std::max<std::int64_t>(seconds / 68 * 68, 68);
  r.Force(hccl_timeout, absl::StrCat(whole), "this product counts in units of 68 seconds");
}

void CheckFiles(Resolver& r) {
  CheckMixList(r);
  Read<CustomDtypes>(r, customize_dtypes, ParseCustomDtypes);
  Read<OpsInfo>(r, ops_info, ParseOpsInfo);
  CheckOpPrecision(r);
  const auto debug = Read<OpDebug>(r, op_debug_config, ParseOpDebug);
  CheckOpDebug(r, debug);
  CheckCompileCache(r, debug);
  CheckAoe(r);
  CheckProfiling(r);
  CheckFusionSwitch(r);
  CheckOpCache(r);
  CheckDirectories(r);
}

void CheckValues(Resolver& r) {
  CheckGears(r);
  CheckCheckpoints(r);
  CheckAccelerateTrain(r);
  CheckMemorySizes(r);
  CheckTimeouts(r);
  CheckHif8(r);
}

}  // namespace npurt::options
