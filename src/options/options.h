// Options: settings by name, checked against the table in options.def and the rules in rules.cc.
//
// Values are text. An option is in one of three states: the profile's default, set, or unset, which
// is not the same as 0 or false ("use what the system thinks best"). Set checks one value and
// brings it into one spelling (True, 1 and yes are "true"; 64M is 67108864). Resolve looks at all
// of them together and at the environment, and yields the values in force, everything that is wrong
// at once, and notes about what was set and has no effect.
//
// Thread safety: a value; const use from several threads is free.
#ifndef NPURT_OPTIONS_OPTIONS_H_
#define NPURT_OPTIONS_OPTIONS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/status.h"
#include "options/table.h"

namespace npurt::options {

// The documented environment variables that are set, in the order of their table.
using Environment = std::vector<std::pair<std::string, std::string>>;
// Reads them from the process.
Environment ReadEnvironment();
// Null if the variable is not set or empty.
const char* Find(const Environment& environment, absl::string_view name);

// Something that a session cannot be made with.
struct Problem {
  std::string rule;  // "R5"; "" for rules of our own
  std::string text;  // option, value, reason, remedy
  bool unimplemented = false;
};

struct Resolution;

class Options {
 public:
  enum class Source : std::uint8_t { kDefault, kSet, kUnset, kEnvironment, kForced, kIgnored };

  explicit Options(Profile profile = Profile::kNative);

  Profile profile() const { return profile_; }

  // NOT_FOUND for unknown names, INVALID_ARGUMENT for values that are not allowed:
  // "option threads: got '5000', want a number from 0 to 1024". Blanks around a value do not count;
  // an empty value is Unset, and so is None for the documents' names.
  absl::Status Set(absl::string_view name, absl::string_view value);
  absl::Status Unset(absl::string_view name);
  // Lines `name = value`, '#' starts a comment line. All or nothing; the error tells every bad
  // line.
  absl::Status SetText(absl::string_view text);
  // The same with only those options that may differ from run to run.
  absl::Status SetRunText(absl::string_view text);

  // The values in force. Reads the files that options name, to check them.
  Resolution Resolve(const Environment& environment) const;
  // Every problem of Resolve in one error, with an empty environment.
  absl::Status Check() const;

  // What Resolve found that was set and does nothing here, with the reason: one sentence each.
  const std::vector<std::string>& notes() const { return notes_; }

  // The value in force, null if unset. Lives until the next change.
  const char* value(Option option) const;
  Source source(Option option) const { return entry(option).source; }
  // Why the value is not what was set or the default; "" otherwise.
  const std::string& why(Option option) const { return entry(option).why; }
  // Chosen by the caller, or the environment, and not ignored.
  bool was_set(Option option) const {
    return source(option) != Source::kDefault && source(option) != Source::kIgnored;
  }
  // Typed; false, 0, "" if unset. REQUIRES: the row's type fits.
  bool Bool(Option option) const;
  std::int64_t Int(Option option) const;  // kInt, kBytes and kSwitch
  absl::string_view Text(Option option) const;
  bool ListHas(Option option, absl::string_view item) const;
  std::vector<absl::string_view> List(Option option) const;

  // What was set, as SetText reads it, after a comment with the profile.
  std::string ToText() const;
  // {"profile", "options": [{name, value, set, source, why, status}], "environment", "notes",
  // "problems"}
  std::string ToJson(const std::vector<Problem>& problems = {}) const;

 private:
  friend class Resolver;
  struct Entry {
    Source source = Source::kDefault;
    bool has_value = false;
    std::string value, why;
  };

  const Entry& entry(Option option) const { return entries_[static_cast<int>(option)]; }
  absl::Status SetLines(absl::string_view text, bool run_only);
  void FillDefault(Option option);
  void FillDefaults();

  Profile profile_;
  std::vector<Entry> entries_;  // one per option
  Environment environment_;     // what Resolve was given
  std::vector<std::string> notes_;
};

struct Resolution {
  Options options;
  std::vector<Problem> problems;
  // All problems in one error: UNIMPLEMENTED if nothing else is wrong, else INVALID_ARGUMENT.
  absl::Status status() const;
};

// The whole table as a JSON array, with the default of each profile.
std::string TableJson();

}  // namespace npurt::options

#endif  // NPURT_OPTIONS_OPTIONS_H_
