#include "options/resolver.h"

#include "absl/strings/str_cat.h"

namespace npurt::options {
namespace {

using Source = Options::Source;

// An option of ours that another name stands for.
struct Alias {
  Option name, means;
};
constexpr Alias kAliases[] = {
    {Option::oo_constant_folding, Option::constant_folding},
    {Option::tf_random_seed, Option::random_seed},
};

}  // namespace

bool Resolver::IsSet(Option option) const {
  const Source source = options_.source(option);
  return options_.value(option) != nullptr &&
         (source == Source::kSet || source == Source::kEnvironment || source == Source::kForced);
}

std::string Resolver::Show(Option option) const {
  const char* value = options_.value(option);
  const char* name = RowOf(option).name;
  return value == nullptr ? absl::StrCat(name, " unset") : absl::StrCat(name, "=", value);
}

void Resolver::Fail(const char* rule, std::string text) {
  result_->problems.push_back({rule, std::move(text), false});
}

void Resolver::Refuse(std::string text) {
  result_->problems.push_back({"", std::move(text), true});
}

void Resolver::Note(const char* rule, absl::string_view text) {
  options_.notes_.push_back(*rule == '\0' ? std::string(text)
                                          : absl::StrCat(text, " (", rule, ")"));
}

void Resolver::Default(Option option, const char* value, std::string why) {
  Options::Entry& entry = At(option);
  if (entry.source != Source::kDefault) return;
  entry = {Source::kDefault, value != nullptr, value == nullptr ? "" : value, std::move(why)};
}

void Resolver::Force(Option option, const std::string& value, std::string why) {
  Options::Entry& entry = At(option);
  if (entry.has_value && entry.value == value) return;
  if (IsSet(option)) absl::StrAppend(&why, "; ", entry.value, " was set");
  entry = {Source::kForced, true, value, std::move(why)};
}

void Resolver::Ignore(const char* rule, Option option, const std::string& why) {
  Note(rule, absl::StrCat("option ", RowOf(option).name, ": ", why));
  const std::string was = Show(option);
  options_.FillDefault(option);
  At(option).source = Source::kIgnored;
  At(option).why = absl::StrCat(was, " ", why);
}

void Resolver::TakeAliases() {
  for (const auto& [name, means] : kAliases) {
    if (!IsSet(name)) continue;
    const char* wanted = options_.value(name);
    if (IsSet(means) && absl::string_view(options_.value(means)) != wanted) {
      Fail("", absl::StrCat("option ", Show(name), " excludes ", Show(means),
                            ": they are two names of one thing; leave one out"));
    } else {
      Force(means, wanted, absl::StrCat(Show(name), " means it"));
    }
  }
}

void Resolver::IgnoreOtherScenario() {
  const bool training = options_.Int(Option::graph_run_mode) == 1;
  const Scenario other = training ? Scenario::kInference : Scenario::kTraining;
  for (int i = 0; i < kOptionCount; ++i) {
    const auto option = static_cast<Option>(i);
    if (IsSet(option) && RowOf(option).scenario == other)
      Ignore(training ? "R43" : "R44", option,
             training ? "works in online inference only, and graph_run_mode is 1"
                      : "works in training only, and graph_run_mode is 0");
  }
}

// What this version makes of a value that counts.
void Resolver::CheckStanding(Option option) {
  const Row& row = RowOf(option);
  const Standing& standing = row.standing;
  Options::Entry& entry = At(option);
  if (!entry.has_value) return;
  const bool by_caller = entry.source == Source::kSet;
  const bool missing = NeedsWhatIsMissing(row, entry.value);
  if (!IsSet(option)) {
    if (missing) absl::StrAppend(&entry.why, entry.why.empty() ? "" : "; ", "not active yet");
    return;
  }
  const std::string what = absl::StrCat("option ", Show(option));
  switch (standing.availability) {
    case Availability::kActive:
      break;
    case Availability::kUnsupported:
      return Refuse(absl::StrCat(what, ": ", standing.reason, "; leave it out"));
    case Availability::kNoEffect:
      Note("", absl::StrCat("option ", row.name, ": has no effect here, ", standing.reason));
      break;
    case Availability::kNotYet:
      if (missing && by_caller)
        return Refuse(absl::StrCat(what, ": not active yet, it needs ", standing.reason, "; ",
                                   standing.harmless == nullptr
                                       ? std::string("leave it out")
                                       : absl::StrCat("leave it at ", standing.harmless)));
      if (missing || absl::string_view(standing.harmless) == "*")
        Note("", absl::StrCat("option ", row.name, ": not active yet, it needs ", standing.reason));
      break;
  }
  if (standing.life == Life::kDeprecated)
    Note("", absl::StrCat("option ", row.name, ": the documents will drop it"));
}

void Resolver::Run() {
  TakeEnvironment();
  TakeAliases();
  ApplyDefaultsAndForce();
  AdjustValues(*this);
  CheckPairs();
  CheckFiles(*this);
  CheckValues(*this);
  IgnoreAndAdvise();
  IgnoreOtherScenario();
  for (int i = 0; i < kOptionCount; ++i) CheckStanding(static_cast<Option>(i));
}

}  // namespace npurt::options
