// The table of options: a row per name, made from options.def.
//
// Thread safety: constants.
#ifndef NPURT_OPTIONS_TABLE_H_
#define NPURT_OPTIONS_TABLE_H_

#include <array>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/status.h"

namespace npurt::options {

enum class Option : int {
#define NPURT_OPTION(name, ...) name,
#include "options/options.def"
#undef NPURT_OPTION
  kCount
};
inline constexpr int kOptionCount = static_cast<int>(Option::kCount);

// Where the defaults come from: our own, the documents' session options, NPURunConfig's. The
// environment counts in the last two only.
enum class Profile : int { kNative, kSession, kRunConfig };
inline constexpr int kProfileCount = 3;
const char* ProfileName(Profile profile);
// NOT_FOUND, with the names there are.
absl::StatusOr<Profile> ProfileFromName(absl::string_view name);

// kSwitch is "0" or "1" and reads all that a bool does; kObject has no text form.
enum class Type : std::uint8_t {
  kBool,
  kSwitch,
  kInt,
  kBytes,
  kText,
  kPath,
  kChoice,
  kList,
  kJson,
  kObject
};
enum class Scenario : std::uint8_t { kAny, kLoad, kRun, kTraining, kInference };
enum class Availability : std::uint8_t { kActive, kNotYet, kNoEffect, kUnsupported };
enum class Life : std::uint8_t { kOurs, kCurrent, kExperimental, kDeprecated, kOlder };

struct Standing {
  Availability availability;
  Life life;
  const char*
      reason;  // kNotYet: what is missing; kActive: what it does here, null: as the help says
  const char* harmless;  // kNotYet: values "a|b" that do not need it; "*" all; null none
};

struct Allowed {
  bool range;  // else `choices`, or anything if that is null
  std::int64_t min, max;
  const char* choices;  // "a|b|c"
  char range_text[48];  // "0..1024"
  // What is wrong with a value, "" if nothing; null if there is no such check.
  std::string (*form)(absl::string_view value);
  const char* form_text;  // what it wants
};

struct Row {
  const char* name;
  Type type;
  std::array<std::array<const char*, 2>, kProfileCount> defaults;  // by graph_run_mode; null: unset
  Allowed allowed;
  Scenario scenario;
  Standing standing;
  const char* help;
};

absl::Span<const Row> Rows();
const Row& RowOf(Option option);
// NOT_FOUND, with the nearest name if one is near.
absl::StatusOr<Option> FindOption(absl::string_view name);
// The default in a profile whose graph_run_mode is at its own default.
const char* DefaultOf(const Row& row, Profile profile);
const char* TypeName(Type type);
const char* ScenarioName(Scenario scenario);
// "active", "not active yet, deprecated".
const char* StatusText(const Standing& standing);
// "0..1024", "fast|machine|isa", "" if anything goes.
const char* AllowedText(const Row& row);
// Whether a value needs machinery that is missing here. REQUIRES: a value in its one spelling.
bool NeedsWhatIsMissing(const Row& row, absl::string_view value);
// Whether "a|b" has `item`.
bool OneOfThese(absl::string_view choices, absl::string_view item);

// `value` in the one spelling that is kept; the error is what was wanted.
absl::StatusOr<std::string> ParseValue(const Row& row, absl::string_view value);

}  // namespace npurt::options

#endif  // NPURT_OPTIONS_TABLE_H_
