// Resolver: from what was set to the values in force.
//
// In this order: the environment, defaults that depend on other options, values that are forced;
// then everything that is wrong is collected, what has no effect is put back to its default, and
// what this version cannot do is refused. rules.cc has the rules that are rows, checks.cc those
// that need code: files, counts, directories.
//
// Thread safety: one thread.
#ifndef NPURT_OPTIONS_RESOLVER_H_
#define NPURT_OPTIONS_RESOLVER_H_

#include <string>

#include "options/options.h"

namespace npurt::options {

// Something that may hold.
struct Condition {
  enum Kind {
    kAlways,
    kSet,      // set to a value
    kSetElse,  // set to none of `text`, "a|b"
    kOn,       // set, and neither false nor 0
    kIs,       // the value in force is one of `text`
    kIsNot,    // it is none of them, or unset
    kUnset,    // no value is in force
    kEnv,      // the environment variable `text` is set
    kProfile,  // the profile is one of `text`
  } kind = kAlways;
  Option option = Option::kCount;
  const char* text = nullptr;
};

class Resolver {
 public:
  explicit Resolver(Resolution* result) : result_(result), options_(result->options) {}
  void Run();

  // For the rules.
  const Options& options() const { return options_; }
  const char* Variable(absl::string_view name) const { return Find(options_.environment_, name); }
  bool Holds(const Condition& condition) const;
  // Set by the caller or the environment, or forced, to a value.
  bool IsSet(Option option) const;
  // "name=value".
  std::string Show(Option option) const;
  void Fail(const char* rule, std::string text);
  void Refuse(std::string text);
  void Note(const char* rule, absl::string_view text);
  // Gives a value that was not set.
  void Default(Option option, const char* value, std::string why);
  void Force(Option option, const std::string& value, std::string why);
  // Puts the default back; "option NAME: WHY" becomes a note.
  void Ignore(const char* rule, Option option, const std::string& why);

 private:
  Options::Entry& At(Option option) { return options_.entries_[static_cast<int>(option)]; }
  void TakeEnvironment();
  void TakeAliases();
  void ApplyDefaultsAndForce();
  void CheckPairs();
  void IgnoreAndAdvise();
  void IgnoreOtherScenario();
  void CheckStanding(Option option);

  Resolution* result_;
  Options& options_;
};

// checks.cc.
void AdjustValues(Resolver& resolver);
void CheckFiles(Resolver& resolver);
void CheckValues(Resolver& resolver);

}  // namespace npurt::options

#endif  // NPURT_OPTIONS_RESOLVER_H_
