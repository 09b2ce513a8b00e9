#include "cli/mix_list.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>

#include "cli/json.h"
#include "cli/text.h"

namespace npurt::cli {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Options that choose a precision, which the run in the model's own precision must not have.
constexpr const char* kPrecisionOptions[] = {"precision_mode", "precision_mode_v2",
                                             "modify_mixlist", "customize_dtypes"};

bool ChoosesPrecision(const std::string& option) {
  const std::string name = option.substr(0, option.find('='));
  return std::any_of(std::begin(kPrecisionOptions), std::end(kPrecisionOptions),
                     [&](const char* known) { return name == known; });
}

// A file that is gone when this is.
class TemporaryFile {
 public:
  ~TemporaryFile() {
    if (!path_.empty()) unlink(path_.c_str());
  }
  Status Write(const std::string& text) {
    const char* const folder = std::getenv("TMPDIR");
    path_ = std::string(folder == nullptr ? "/tmp" : folder) + "/npurt_mixlist_XXXXXX";
    const int file = mkstemp(path_.data());
    const bool written =
        file >= 0 && write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
    if (file >= 0) close(file);
    return written ? Status()
                   : Refused(path_ + ": " + std::strerror(errno), "Set TMPDIR to another folder.");
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

int TypeCoarseness(const Json& operand, const char* key) {
  return operand[key].is_string()
             ? Coarseness(npurt_dtype_find(operand[key].get<std::string>().c_str()))
             : -1;
}

bool IsLowered(const Json& node) {
  for (const char* side : {"inputs", "outputs"})
    for (const Json& operand : node[side])
      if (TypeCoarseness(operand, "chosen") > TypeCoarseness(operand, "original")) return true;
  return false;
}

std::string ErrorText(double excess) {
  return excess == kInfinity ? "NaN, infinite or not equal"
                             : "error " + FormatReal(excess) + " of what is allowed";
}

}  // namespace

std::string MixList::Json() const {
  cli::Json json = cli::Json::object();
  if (!black.empty()) json["black-list"]["to-add"] = black;
  if (!white.empty()) json["white-list"]["to-add"] = white;
  return DumpJson(json, 2) + "\n";
}

SessionFlags MixSearch::WithFile(const std::string& path) const {
  SessionFlags flags = flags_;
  flags.options.push_back("modify_mixlist=" + path);
  return flags;
}

Status MixSearch::RunAll(npurt_session* session, std::vector<Outputs>* out) const {
  std::vector<Outputs> all;
  for (const std::vector<OwnedValue>& inputs : inputs_) {
    std::vector<npurt_value*> in;
    for (const OwnedValue& input : inputs) in.push_back(input.get());
    std::vector<npurt_value*> results(npurt_session_output_count(session, 0), nullptr);
    OwnedError error;
    NPURT_CLI_TRY(
        FromLibrary(npurt_session_run(session, 0, nullptr, in.data(), in.size(), nullptr,
                                      results.data(), results.size(), nullptr, error.out()),
                    error, kExitRun, "running the model"));
    Outputs outputs(results.size());
    for (std::size_t i = 0; i < results.size(); ++i) *outputs[i].out() = results[i];
    all.push_back(std::move(outputs));
  }
  *out = std::move(all);
  return Status();
}

Status MixSearch::TrySession(npurt_session* session, MixTrial* out) const {
  std::vector<Outputs> all;
  NPURT_CLI_TRY(RunAll(session, &all));
  MixTrial trial;
  trial.outputs.resize(all[0].size());
  for (std::size_t s = 0; s < all.size(); ++s)
    for (std::size_t i = 0; i < all[s].size(); ++i) {
      Distance distance;
      NPURT_CLI_TRY(
          MeasureValues(right_[s][i].get(), all[s][i].get(), NPURT_DTYPE_NONE, &distance));
      trial.excess = std::max(trial.excess, Excess(distance, limits_));
      if (s == 0)
        trial.outputs[i] = distance;
      else
        Merge(distance, &trial.outputs[i]);
    }
  const cli::Json report = ParseJson(SessionReport(session, NPURT_REPORT_PLAN));
  if (report.contains("precision"))
    for (const cli::Json& node : report["precision"]["nodes"]) {
      const std::string type = node["type"].get<std::string>();
      trial.types.insert(type);
      if (IsLowered(node)) trial.lowered.insert(type);
    }
  *out = std::move(trial);
  return Status();
}

Status MixSearch::TryFile(const std::string& path, MixTrial* out) const {
  OwnedSession session;
  NPURT_CLI_TRY(Compile(model_, WithFile(path), "with " + path, &session));
  return TrySession(session.get(), out);
}

Status MixSearch::Try(const MixList& list, MixTrial* out) const {
  TemporaryFile file;
  NPURT_CLI_TRY(file.Write(list.Json()));
  return TryFile(file.path(), out);
}

Status MixSearch::Start(const Limits* limits) {
  origin_flags_ = flags_;
  auto& options = origin_flags_.options;
  options.erase(std::remove_if(options.begin(), options.end(), ChoosesPrecision), options.end());
  options.push_back("precision_mode_v2=origin");
  OwnedSession origin, mixed;
  NPURT_CLI_TRY(Compile(model_, origin_flags_, "in its own precision", &origin));
  NPURT_CLI_TRY(Compile(model_, flags_, "in mixed precision", &mixed));
  if (limits != nullptr) {
    limits_ = *limits;
  } else {
    ComparisonSettings settings;
    settings.outputs_only = true;
    Comparison comparison;
    NPURT_CLI_TRY(Compare(model_, origin.get(), mixed.get(), inputs_[0], settings, &comparison));
    int coarseness = 0;
    for (const ComparedValue& value : comparison.values)
      coarseness = std::max(coarseness, value.coarseness);
    limits_ = DefaultLimits(coarseness);
  }
  NPURT_CLI_TRY(RunAll(origin.get(), &right_));
  return TrySession(mixed.get(), &before_);
}

Status MixSearch::CompareValues(Comparison* out) const {
  TemporaryFile file;
  NPURT_CLI_TRY(file.Write(list_.Json()));
  OwnedSession origin, mixed;
  NPURT_CLI_TRY(Compile(model_, origin_flags_, "in its own precision", &origin));
  NPURT_CLI_TRY(Compile(model_, WithFile(file.path()), "in mixed precision", &mixed));
  ComparisonSettings settings;
  settings.limits = &limits_;
  return Compare(model_, origin.get(), mixed.get(), inputs_[0], settings, out);
}

// All other types stay as they are, so that this one reads what is right.
Status MixSearch::MeasureAlone(const std::string& type) {
  MixList list;
  list.black = before_.types;
  list.black.erase(type);
  list.white = {type};
  MixTrial trial;
  const Status status = Try(list, &trial);
  if (!status.ok() && status.exit_code() != kExitRefused) return status;
  alone_[type] = status.ok() ? trial.excess : kInfinity;
  return Status();
}

Status MixSearch::Find(const std::function<void(const std::string&)>& tell, bool* found) {
  *found = true;
  after_ = before_;
  list_ = {};
  if (before_.excess <= 1) return Status();
  MixTrial now;
  MixList list;
  list.black = before_.types;
  NPURT_CLI_TRY(Try(list, &now));
  tell("every type black: " + ErrorText(now.excess));
  if (now.excess > 1) {
    *found = false;
    after_ = now;
    list_ = list;
    return Status();
  }

  std::size_t done = 0;
  for (const std::string& type : before_.lowered) {
    NPURT_CLI_TRY(MeasureAlone(type));
    tell(std::to_string(++done) + " of " + std::to_string(before_.lowered.size()) + ": " + type +
         " lowered alone: " + ErrorText(alone_[type]));
  }
  list = {};
  now = before_;
  while (now.excess > 1) {
    // A type on the list may keep others from being fused, so that new ones appear.
    std::string worst;
    for (const std::string& type : now.lowered) {
      if (list.black.count(type) > 0) continue;
      if (alone_.count(type) == 0) NPURT_CLI_TRY(MeasureAlone(type));
      if (worst.empty() || alone_[type] > alone_[worst]) worst = type;
    }
    // What is lowered no more may still matter, if only by its fusion.
    for (const std::string& type : before_.types)
      if (worst.empty() && list.black.count(type) == 0) worst = type;
    if (worst.empty())
      return Status(kExitFailed, "the model's outputs change from run to run",
                    "Fix the seeds of its random numbers.");
    list.black.insert(worst);
    NPURT_CLI_TRY(Try(list, &now));
    tell(worst + " black: " + ErrorText(now.excess));
  }
  std::vector<std::string> order(list.black.begin(), list.black.end());
  std::stable_sort(order.begin(), order.end(),
                   [this](const auto& x, const auto& y) { return alone_[x] < alone_[y]; });
  for (const std::string& type : order) {
    if (list.black.size() == 1) break;
    MixList less = list;
    less.black.erase(type);
    MixTrial trial;
    NPURT_CLI_TRY(Try(less, &trial));
    tell("without " + type + ": " + ErrorText(trial.excess) +
         (trial.excess <= 1 ? ", so it is left out" : ""));
    if (trial.excess > 1) continue;
    list = std::move(less);
    now = std::move(trial);
  }
  list_ = std::move(list);
  after_ = std::move(now);
  return Status();
}

}  // namespace npurt::cli
