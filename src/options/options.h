// Options: settings by name, checked against the table in options.def.
//
// Values are text. An option is in one of three states: the profile's default, set, or unset, which
// is not the same as 0 or false ("use what the system thinks best"). Set checks one value and
// brings it into one spelling (True, 1 and yes are "true"; 64M is 67108864); Check looks at the
// rules between options and tells all that is wrong at once; Notes tells what was set and has no
// effect.
//
// Thread safety: a value; const use from several threads is free.
#ifndef NPURT_OPTIONS_OPTIONS_H_
#define NPURT_OPTIONS_OPTIONS_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/status.h"

namespace npurt::options {

enum class Option : int {
#define NPURT_OPTION(name, ...) name,
#define NPURT_OPTION_EXCLUDES(...)
#define NPURT_OPTION_REQUIRES(...)
#define NPURT_OPTION_IGNORED(...)
#include "options/options.def"
#undef NPURT_OPTION
#undef NPURT_OPTION_EXCLUDES
#undef NPURT_OPTION_REQUIRES
#undef NPURT_OPTION_IGNORED
  kCount
};
inline constexpr int kOptionCount = static_cast<int>(Option::kCount);

// Where the defaults come from: our own, the documents' session options, NPURunConfig's.
enum class Profile : int { kNative, kSession, kRunConfig };
inline constexpr int kProfileCount = 3;
const char* ProfileName(Profile profile);
// NOT_FOUND, with the names there are.
absl::StatusOr<Profile> ProfileFromName(absl::string_view name);

enum class Type : std::uint8_t { kBool, kInt, kBytes, kText, kChoice, kList, kJson };
enum class Scenario : std::uint8_t { kAny, kLoad, kRun, kTraining, kInference };
enum class Availability : std::uint8_t { kActive, kNotYet, kNoEffect };

struct Row {
  const char* name;
  Type type;
  std::array<const char*, kProfileCount> defaults;  // null: unset
  struct {
    bool range;  // else `choices`, or anything if that is null
    std::int64_t min, max;
    const char* choices;  // "a|b|c"
    char range_text[48];  // "0..1024"
  } allowed;
  Scenario scenario;
  Availability status;
  const char* help;
};

absl::Span<const Row> Rows();
const Row& RowOf(Option option);
// NOT_FOUND, with the nearest name if one is near.
absl::StatusOr<Option> FindOption(absl::string_view name);
const char* TypeName(Type type);
const char* ScenarioName(Scenario scenario);
const char* AvailabilityName(Availability status);
// "0..1024", "fast|machine|isa", "" if anything goes.
const char* AllowedText(const Row& row);

class Options {
 public:
  explicit Options(Profile profile = Profile::kNative);

  Profile profile() const { return profile_; }

  // NOT_FOUND for unknown names, INVALID_ARGUMENT for values that are not allowed:
  // "option threads: got '5000', want a number from 0 to 1024". Blanks around a value do not count;
  // an empty value is Unset.
  absl::Status Set(absl::string_view name, absl::string_view value);
  absl::Status Unset(absl::string_view name);
  // Lines `name = value`, '#' starts a comment line. All or nothing; the error tells every bad
  // line.
  absl::Status SetText(absl::string_view text);
  // The same with only those options that may differ from run to run.
  absl::Status SetRunText(absl::string_view text);

  // Every violation of the rules between options, in one error.
  absl::Status Check() const;
  // What was set and does nothing here, with the reason: one sentence each.
  std::vector<std::string> Notes() const;

  // The value in force, null if unset. Lives until the next change.
  const char* value(Option option) const;
  bool was_set(Option option) const { return entry(option).state != State::kDefault; }
  // Typed; false, 0, "" if unset. REQUIRES: the row's type fits.
  bool Bool(Option option) const;
  std::int64_t Int(Option option) const;  // kInt and kBytes
  absl::string_view Text(Option option) const;
  bool ListHas(Option option, absl::string_view item) const;
  std::vector<absl::string_view> List(Option option) const;

  // What was set, as SetText reads it, after a comment with the profile.
  std::string ToText() const;
  // {"profile": ..., "options": [{name, value, set, status}], "notes": [...]}
  std::string ToJson() const;

 private:
  enum class State : std::uint8_t { kDefault, kSet, kUnset };
  struct Entry {
    State state = State::kDefault;
    std::string value;
  };
  struct Condition;
  struct Rule;

  const Entry& entry(Option option) const { return entries_[static_cast<int>(option)]; }
  absl::Status SetLines(absl::string_view text, bool run_only);
  bool Holds(const Condition& condition) const;
  static absl::Span<const Rule> Rules();

  Profile profile_;
  std::vector<Entry> entries_;  // one per option, the value in force if not unset
};

// The whole table as a JSON array, with the default of each profile.
std::string TableJson();

}  // namespace npurt::options

#endif  // NPURT_OPTIONS_OPTIONS_H_
