#include "options/options.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "options/resolver.h"

namespace npurt::options {
namespace {

// The message of `errors`, which is not empty.
absl::Status Joined(absl::StatusCode code, const std::vector<std::string>& errors) {
  if (errors.size() == 1) return absl::Status(code, errors[0]);
  return absl::Status(code,
                      absl::StrCat(errors.size(), " errors:\n  ", absl::StrJoin(errors, "\n  ")));
}

}  // namespace

Options::Options(Profile profile) : profile_(profile), entries_(kOptionCount) {
  entries_[static_cast<int>(Option::graph_run_mode)].value =
      DefaultOf(RowOf(Option::graph_run_mode), profile);
  FillDefaults();
}

// REQUIRES: graph_run_mode has a value, set or default.
void Options::FillDefault(Option option) {
  const Row& row = RowOf(option);
  const bool training = entry(Option::graph_run_mode).value == "1";
  const char* value = row.defaults[static_cast<int>(profile_)][training];
  Entry filled;
  filled.has_value = value != nullptr;
  // Defaults are spelled for people ("64M"); a test checks that all of them parse.
  if (value != nullptr) filled.value = ParseValue(row, value).value_or(value);
  entries_[static_cast<int>(option)] = std::move(filled);
}

void Options::FillDefaults() {
  for (int i = 0; i < kOptionCount; ++i)
    if (entries_[i].source == Source::kDefault) FillDefault(static_cast<Option>(i));
}

absl::Status Options::Set(absl::string_view name, absl::string_view value) {
  NPURT_ASSIGN_OR_RETURN(const Option option, FindOption(name));
  const Row& row = RowOf(option);
  value = absl::StripAsciiWhitespace(value);
  if (value.empty() || (value == "None" && row.standing.life != Life::kOurs)) return Unset(name);
  absl::StatusOr<std::string> parsed = ParseValue(row, value);
  if (!parsed.ok())
    return absl::InvalidArgumentError(absl::StrCat("option ", name, ": got '", value.substr(0, 200),
                                                   "', want ", parsed.status().message()));
  entries_[static_cast<int>(option)] = {Source::kSet, true, *std::move(parsed), ""};
  if (option == Option::graph_run_mode) FillDefaults();
  return absl::OkStatus();
}

absl::Status Options::Unset(absl::string_view name) {
  NPURT_ASSIGN_OR_RETURN(const Option option, FindOption(name));
  entries_[static_cast<int>(option)] = {Source::kUnset, false, "", ""};
  // Something must choose the defaults.
  if (option == Option::graph_run_mode) {
    FillDefault(option);
    FillDefaults();
  }
  return absl::OkStatus();
}

absl::Status Options::SetLines(absl::string_view text, bool run_only) {
  Options changed = *this;
  std::vector<std::string> errors;
  absl::StatusCode code = absl::StatusCode::kInvalidArgument;
  std::vector<int> line_of(kOptionCount, 0);
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line);
    if (line.empty() || line[0] == '#') continue;
    const auto equals = line.find('=');
    const absl::string_view name = absl::StripTrailingAsciiWhitespace(line.substr(0, equals));
    absl::Status status;
    if (equals == absl::string_view::npos) {
      status = absl::InvalidArgumentError(
          absl::StrCat("got '", line.substr(0, 200), "', want name = value"));
    } else if (const auto option = FindOption(name); !option.ok()) {
      status = option.status();
    } else if (int& earlier = line_of[static_cast<int>(*option)]; earlier != 0) {
      status = absl::InvalidArgumentError(
          absl::StrCat("option ", name, ": given before, in line ", earlier));
    } else if (run_only && RowOf(*option).scenario != Scenario::kRun) {
      status = absl::InvalidArgumentError(
          absl::StrCat("option ", name, ": cannot differ from run to run"));
    } else {
      earlier = number;
      status = changed.Set(name, line.substr(equals + 1));
    }
    if (status.ok()) continue;
    if (errors.empty()) code = status.code();
    errors.push_back(absl::StrCat("line ", number, ": ", status.message()));
  }
  if (!errors.empty()) return Joined(code, errors);
  *this = std::move(changed);
  return absl::OkStatus();
}

absl::Status Options::SetText(absl::string_view text) { return SetLines(text, false); }
absl::Status Options::SetRunText(absl::string_view text) { return SetLines(text, true); }

absl::Status Options::Check() const { return Resolve({}).status(); }

Resolution Options::Resolve(const Environment& environment) const {
  Resolution result{*this, {}};
  result.options.notes_.clear();
  if (profile_ != Profile::kNative) result.options.environment_ = environment;
  Resolver(&result).Run();
  return result;
}

absl::Status Resolution::status() const {
  if (problems.empty()) return absl::OkStatus();
  const bool unimplemented = std::all_of(problems.begin(), problems.end(),
                                         [](const Problem& p) { return p.unimplemented; });
  std::vector<std::string> texts;
  for (const Problem& problem : problems)
    texts.push_back(problem.rule.empty() ? problem.text
                                         : absl::StrCat(problem.text, " (", problem.rule, ")"));
  return Joined(
      unimplemented ? absl::StatusCode::kUnimplemented : absl::StatusCode::kInvalidArgument, texts);
}

const char* Options::value(Option option) const {
  const Entry& e = entry(option);
  return e.has_value ? e.value.c_str() : nullptr;
}

absl::string_view Options::Text(Option option) const {
  const char* text = value(option);
  return text == nullptr ? absl::string_view() : absl::string_view(text);
}

bool Options::Bool(Option option) const { return Text(option) == "true"; }

std::int64_t Options::Int(Option option) const {
  std::int64_t number = 0;
  return absl::SimpleAtoi(Text(option), &number) ? number : 0;
}

std::vector<absl::string_view> Options::List(Option option) const {
  return absl::StrSplit(Text(option), ',', absl::SkipEmpty());
}

bool Options::ListHas(Option option, absl::string_view item) const {
  const auto items = List(option);
  return std::find(items.begin(), items.end(), item) != items.end();
}

std::string Options::ToText() const {
  std::string text = absl::StrCat("# profile ", ProfileName(profile_), "\n");
  for (int i = 0; i < kOptionCount; ++i) {
    const Option option = static_cast<Option>(i);
    const Source from = source(option);
    if (from == Source::kSet || from == Source::kUnset)
      absl::StrAppend(&text, RowOf(option).name, " = ", entry(option).value, "\n");
  }
  return text;
}

}  // namespace npurt::options
