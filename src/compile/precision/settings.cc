// ReadSettings: what the options of precision say, brought into one form.
#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compile/precision/precision.h"

namespace npurt::compile::precision {
namespace {

using ops::PrecisionReduce;
using options::Option;

struct Spelling {
  absl::string_view value;
  Mode mode;
};
// Both options, new names and old.
constexpr Spelling kSpellings[] = {
    {"allow_fp32_to_bf16", Mode::kAllowFp32ToBf16},
    {"allow_fp32_to_fp16", Mode::kAllowFp32ToFp16},
    {"allow_mix_precision", Mode::kMixFp16},
    {"allow_mix_precision_bf16", Mode::kMixBf16},
    {"allow_mix_precision_fp16", Mode::kMixFp16},
    {"cube_fp16in_fp32out", Mode::kCubeFp32},
    {"force_fp16", Mode::kForceFp16},
    {"force_fp32", Mode::kCubeFp32},
    {"fp16", Mode::kForceFp16},
    {"mixed_bfloat16", Mode::kMixBf16},
    {"mixed_float16", Mode::kMixFp16},
    {"must_keep_origin_dtype", Mode::kKeepOrigin},
    {"origin", Mode::kKeepOrigin},
};

// Operators that gain by high_precision beside those of the black list.
constexpr absl::string_view kGain[] = {
    "AveragePool",       "Celu",     "Cos",      "Elu",  "Erf",     "Gelu",
    "GlobalAveragePool", "Mish",     "RoiAlign", "Selu", "Sigmoid", "Sin",
    "Softmax",           "Softplus", "Swish",    "Tan",  "Tanh",
};

// Names of the NPU documents that are others here.
struct NpuType {
  absl::string_view name, op;
};
constexpr NpuType kNpuTypes[] = {
    {"AvgPoolV2", "AveragePool"},  {"Pooling", "AveragePool"}, {"Pooling", "GlobalAveragePool"},
    {"ReduceMeanD", "ReduceMean"}, {"ROIAlign", "RoiAlign"},   {"SoftmaxV2", "Softmax"},
};

template <typename File>
absl::Status Read(const options::Options& options, Option option,
                  absl::StatusOr<File> (*parse)(absl::string_view, absl::string_view), File* out) {
  const std::string path(options.Text(option));
  if (path.empty()) return absl::OkStatus();
  NPURT_ASSIGN_OR_RETURN(const std::string text, options::ReadTextFile(path));
  NPURT_ASSIGN_OR_RETURN(*out, parse(text, path));
  return absl::OkStatus();
}

const char* ListName(PrecisionReduce list) {
  return list == PrecisionReduce::kWhite   ? "white-list"
         : list == PrecisionReduce::kBlack ? "black-list"
                                           : "gray-list";
}

// Where each type that the file names ends up.
absl::Status Move(const options::MixList& file, Settings* settings) {
  struct Moves {
    std::vector<PrecisionReduce> added, removed;
  };
  std::map<std::string, Moves> moves;
  const std::pair<PrecisionReduce, const options::MixList::Moves*> all[] = {
      {PrecisionReduce::kWhite, &file.white},
      {PrecisionReduce::kBlack, &file.black},
      {PrecisionReduce::kGray, &file.gray}};
  for (const auto& [list, in_file] : all) {
    for (const std::string& type : in_file->to_add) moves[type].added.push_back(list);
    for (const std::string& type : in_file->to_remove) moves[type].removed.push_back(list);
  }
  for (const auto& [type, move] : moves) {
    const bool removes_only =
        move.added.empty() && move.removed.size() == 1 && move.removed[0] != PrecisionReduce::kGray;
    const bool adds = move.added.size() == 1 && move.removed.size() <= 1;
    if (!removes_only && !adds)
      return absl::InvalidArgumentError(
          absl::StrCat("option modify_mixlist: '", type,
                       "' is moved in more than one way; add it to one list, or remove it from the "
                       "black or the white one"));
    if (ops::FindOp(type) == nullptr)
      settings->warnings.push_back(
          absl::StrCat("modify_mixlist: there is no operator ", type, " here"));
    for (const PrecisionReduce list : move.removed)
      if (ops::PrecisionReduceOf(type) != list)
        settings->warnings.push_back(absl::StrCat("modify_mixlist: ", type, " is not on the ",
                                                  ListName(list), ", and stays where it is"));
    if (adds)
      settings->lists[type] = move.added[0];
    else
      settings->lists[type] = ops::PrecisionReduceOf(type) == move.removed[0]
                                  ? PrecisionReduce::kGray
                                  : ops::PrecisionReduceOf(type);
  }
  return absl::OkStatus();
}

}  // namespace

absl::string_view NameOf(Mode mode) {
  switch (mode) {
    case Mode::kKeepOrigin:
      return "must_keep_origin_dtype";
    case Mode::kForceFp16:
      return "force_fp16";
    case Mode::kCubeFp32:
      return "cube_fp16in_fp32out";
    case Mode::kForceFp32:
      return "force_fp32";
    case Mode::kAllowFp32ToFp16:
      return "allow_fp32_to_fp16";
    case Mode::kAllowFp32ToBf16:
      return "allow_fp32_to_bf16";
    case Mode::kMixFp16:
      return "allow_mix_precision_fp16";
    case Mode::kMixBf16:
      return "allow_mix_precision_bf16";
  }
  return "?";
}

bool Settings::IsPrecise(const graph::Node& node) const {
  const std::string type = node.op->name;
  if (ops::PrecisionReduceOf(type) != PrecisionReduce::kBlack &&
      std::find(std::begin(kGain), std::end(kGain), type) == std::end(kGain))
    return false;
  if (const auto found = precise_names.find(node.name); found != precise_names.end())
    return found->second;
  for (const std::string& name : {type, node.original_op})
    if (const auto found = precise_types.find(name); found != precise_types.end())
      return found->second;
  return precise;
}

bool Settings::Names(const graph::Node& node) const {
  if (precise_names.contains(node.name) || precise_types.contains(node.op->name)) return true;
  if (keeps_all()) return false;
  if (node.attributes.Has("_keep_dtype") || lists.contains(node.op->name) ||
      lists.contains(node.original_op))
    return true;
  return std::any_of(custom.begin(), custom.end(), [&](const auto& entry) {
    return entry.by_type ? entry.name == node.op->name || entry.name == node.original_op
                         : entry.name == node.name;
  });
}

absl::Status ReadImplementationModes(const options::Options& options, Settings* settings) {
  options::OpPrecision file;
  NPURT_RETURN_IF_ERROR(Read(options, Option::op_precision_mode, options::ParseOpPrecision, &file));
  const auto add_type = [settings](absl::string_view type, bool precise) {
    settings->precise_types[std::string(type)] = precise;
    for (const NpuType& npu : kNpuTypes)
      if (npu.name == type) settings->precise_types[std::string(npu.op)] = precise;
  };
  for (const auto& [type, mode] : file.by_type) add_type(type, mode == "high_precision");
  for (const auto& [name, mode] : file.by_name)
    settings->precise_names[name] = mode == "high_precision";
  if (!absl::StartsWith(options.Text(Option::op_select_implmode), "high_precision"))
    return absl::OkStatus();
  const auto types = options.List(Option::optypelist_for_implmode);
  for (absl::string_view type : types) add_type(type, true);
  settings->precise = types.empty();
  return absl::OkStatus();
}

absl::StatusOr<Settings> ReadSettings(const options::Options& options) {
  Settings settings;
  settings.older = options.profile() == options::Profile::kRunConfig;
  for (const Option option : {Option::precision_mode, Option::precision_mode_v2}) {
    const absl::string_view value = options.Text(option);
    if (value.empty()) continue;
    const auto* found = std::find_if(std::begin(kSpellings), std::end(kSpellings),
                                     [&](const Spelling& s) { return s.value == value; });
    if (found == std::end(kSpellings))
      return absl::UnimplementedError(
          absl::StrCat("option ", options::RowOf(option).name, "=", value));
    settings.mode = settings.older && value == "force_fp32" ? Mode::kForceFp32 : found->mode;
    settings.option = absl::StrCat(options::RowOf(option).name, "=", value);
    break;
  }
  options::MixList lists;
  NPURT_RETURN_IF_ERROR(Read(options, Option::modify_mixlist, options::ParseMixList, &lists));
  NPURT_RETURN_IF_ERROR(Move(lists, &settings));
  options::CustomDtypes custom;
  NPURT_RETURN_IF_ERROR(
      Read(options, Option::customize_dtypes, options::ParseCustomDtypes, &custom));
  settings.custom = std::move(custom.entries);
  NPURT_RETURN_IF_ERROR(ReadImplementationModes(options, &settings));
  if (!options.Text(Option::ops_info).empty()) {
    auto info = std::make_shared<options::OpsInfo>();
    NPURT_RETURN_IF_ERROR(Read(options, Option::ops_info, options::ParseOpsInfo, info.get()));
    settings.info = std::move(info);
  }
  return settings;
}

}  // namespace npurt::compile::precision
