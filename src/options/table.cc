#include "options/table.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "options/forms.h"

namespace npurt::options {
namespace {

constexpr const char* kUnset = nullptr;
constexpr const char* kNone = nullptr;
constexpr const char* kNoLoop = "a training loop is the caller's; agree with its settings there";
constexpr const char* kNotThen = "the documents say: not supported in this version";

using Defaults = decltype(Row::defaults);
constexpr Defaults PerMode(const char* native, const char* session_inference,
                           const char* session_training, const char* run_config_inference,
                           const char* run_config_training) {
  return {{{native, native},
           {session_inference, session_training},
           {run_config_inference, run_config_training}}};
}
constexpr Defaults PerProfile(const char* native, const char* session, const char* run_config) {
  return PerMode(native, session, session, run_config, run_config);
}
constexpr Defaults All(const char* value) { return PerProfile(value, value, value); }

constexpr Allowed Form(std::string (*form)(absl::string_view), const char* text) {
  return {false, 0, 0, nullptr, "", form, text};
}
constexpr Allowed OneOf(const char* choices) {
  return {false, 0, 0, choices, "", nullptr, nullptr};
}
constexpr Allowed ListOf(const char* choices) { return OneOf(choices); }
constexpr Allowed AnyValue() { return OneOf(nullptr); }

constexpr Standing Active(const char* how = nullptr) {
  return {Availability::kActive, Life::kCurrent, how, nullptr};
}
constexpr Standing NotYet(const char* machinery, const char* harmless) {
  return {Availability::kNotYet, Life::kCurrent, machinery, harmless};
}
constexpr Standing NoEffect(const char* reason) {
  return {Availability::kNoEffect, Life::kCurrent, reason, nullptr};
}
constexpr Standing Unsupported(const char* reason) {
  return {Availability::kUnsupported, Life::kCurrent, reason, nullptr};
}
constexpr Standing WithLife(Standing standing, Life life) {
  standing.life = life;
  return standing;
}
constexpr Standing Ours() { return WithLife(Active(), Life::kOurs); }
constexpr Standing Experimental(Standing s) { return WithLife(s, Life::kExperimental); }
constexpr Standing Deprecated(Standing s) { return WithLife(s, Life::kDeprecated); }
constexpr Standing Older(Standing s) { return WithLife(s, Life::kOlder); }

// Writes `number` at `out`, returns the end.
constexpr char* Digits(std::int64_t number, char* out) {
  if (number < 0) *out++ = '-';
  char digits[20] = {};
  int count = 0;
  do {
    digits[count++] = static_cast<char>('0' + (number < 0 ? -(number % 10) : number % 10));
    number /= 10;
  } while (number != 0);
  while (count > 0) *out++ = digits[--count];
  return out;
}

constexpr Allowed Range(std::int64_t min, std::int64_t max) {
  Allowed allowed = {true, min, max, nullptr, "", nullptr, nullptr};
  char* end = Digits(min, allowed.range_text);
  *end++ = '.';
  *end++ = '.';
  if (max != INT64_MAX) Digits(max, end);
  return allowed;
}

constexpr Row kRows[] = {
#define NPURT_OPTION(name, type, defaults, allowed, scenario, standing, help) \
  {#name, Type::k##type, defaults, allowed, Scenario::scenario, standing, help},
#include "options/options.def"
#undef NPURT_OPTION
};
static_assert(sizeof kRows / sizeof kRows[0] == kOptionCount);

// Levenshtein: the least number of insertions, deletions and replacements.
std::size_t EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j < row.size(); ++j) row[j] = j;
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j + 1] + 1, row[j] + 1});
    }
  }
  return row.back();
}

}  // namespace

const char* ProfileName(Profile profile) {
  static constexpr const char* kNames[] = {"native", "session", "run_config"};
  return kNames[static_cast<int>(profile)];
}

absl::StatusOr<Profile> ProfileFromName(absl::string_view name) {
  for (int i = 0; i < kProfileCount; ++i)
    if (name == ProfileName(static_cast<Profile>(i))) return static_cast<Profile>(i);
  return absl::NotFoundError(
      absl::StrCat("profile: got '", name, "', want native, session or run_config"));
}

absl::Span<const Row> Rows() { return kRows; }
const Row& RowOf(Option option) { return kRows[static_cast<int>(option)]; }

absl::StatusOr<Option> FindOption(absl::string_view name) {
  for (int i = 0; i < kOptionCount; ++i)
    if (name == kRows[i].name) return static_cast<Option>(i);
  const Row* nearest = nullptr;
  std::size_t best = std::max<std::size_t>(2, name.size() / 3) + 1;  // farther is no hint
  if (name.size() <= 128) {
    for (const Row& row : kRows) {
      const std::size_t distance = EditDistance(name, row.name);
      if (distance < best) {
        best = distance;
        nearest = &row;
      }
    }
  }
  return absl::NotFoundError(
      absl::StrCat("option ", name.substr(0, 128), ": there is no such option",
                   nearest == nullptr ? "" : absl::StrCat(", did you mean ", nearest->name, "?")));
}

const char* DefaultOf(const Row& row, Profile profile) {
  const int p = static_cast<int>(profile);
  const char* mode = RowOf(Option::graph_run_mode).defaults[p][0];
  return row.defaults[p][*mode == '1'];
}

const char* TypeName(Type type) {
  static constexpr const char* kNames[] = {"bool", "switch", "int",  "bytes", "text",
                                           "path", "choice", "list", "json",  "object"};
  return kNames[static_cast<int>(type)];
}

const char* ScenarioName(Scenario scenario) {
  static constexpr const char* kNames[] = {"any", "load", "run", "training", "inference"};
  return kNames[static_cast<int>(scenario)];
}

const char* StatusText(const Standing& standing) {
#define NPURT_STATUSES(text) \
  { text, text, text ", experimental", text ", deprecated", text ", older document" }
  static constexpr const char* kTexts[][5] = {
      NPURT_STATUSES("active"), NPURT_STATUSES("not active yet"),
      NPURT_STATUSES("accepted, no effect"), NPURT_STATUSES("not supported in this version")};
#undef NPURT_STATUSES
  return kTexts[static_cast<int>(standing.availability)][static_cast<int>(standing.life)];
}

const char* AllowedText(const Row& row) {
  if (row.allowed.range) return row.allowed.range_text;
  if (row.allowed.form != nullptr) return row.allowed.form_text;
  if (row.type == Type::kSwitch) return "0|1";
  return row.allowed.choices == nullptr ? "" : row.allowed.choices;
}

bool OneOfThese(absl::string_view choices, absl::string_view item) {
  for (absl::string_view choice : absl::StrSplit(choices, '|'))
    if (choice == item) return true;
  return false;
}

bool NeedsWhatIsMissing(const Row& row, absl::string_view value) {
  const Standing& standing = row.standing;
  if (standing.availability != Availability::kNotYet) return false;
  if (standing.harmless == nullptr) return true;
  return absl::string_view(standing.harmless) != "*" && !OneOfThese(standing.harmless, value);
}

}  // namespace npurt::options
