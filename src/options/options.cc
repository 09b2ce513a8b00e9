#include "options/options.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "nlohmann/json.hpp"

namespace npurt::options {
namespace {

using Json = nlohmann::ordered_json;

[[maybe_unused]] constexpr const char* kUnset = nullptr;
constexpr std::array<const char*, kProfileCount> All(const char* value) {
  return {value, value, value};
}
[[maybe_unused]] constexpr std::array<const char*, kProfileCount> PerProfile(
    const char* native, const char* session, const char* run_config) {
  return {native, session, run_config};
}
using Allowed = decltype(Row::allowed);
constexpr Allowed OneOf(const char* choices) { return {false, 0, 0, choices, ""}; }
constexpr Allowed ListOf(const char* choices) { return OneOf(choices); }
constexpr Allowed AnyValue() { return OneOf(nullptr); }

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
  Allowed allowed = {true, min, max, nullptr, ""};
  char* end = Digits(min, allowed.range_text);
  *end++ = '.';
  *end++ = '.';
  if (max != INT64_MAX) Digits(max, end);
  return allowed;
}

constexpr Row kRows[] = {
#define NPURT_OPTION(name, type, defaults, allowed, scenario, status, help) \
  {#name, Type::k##type, defaults, allowed, Scenario::scenario, Availability::status, help},
#define NPURT_OPTION_EXCLUDES(...)
#define NPURT_OPTION_REQUIRES(...)
#define NPURT_OPTION_IGNORED(...)
#include "options/options.def"
#undef NPURT_OPTION
#undef NPURT_OPTION_EXCLUDES
#undef NPURT_OPTION_REQUIRES
#undef NPURT_OPTION_IGNORED
};
static_assert(sizeof kRows / sizeof kRows[0] == kOptionCount);

absl::StatusOr<std::string> ParseBool(absl::string_view value) {
  const std::string lower = absl::AsciiStrToLower(value);
  for (const char* yes : {"true", "1", "yes", "on"})
    if (lower == yes) return std::string("true");
  for (const char* no : {"false", "0", "no", "off"})
    if (lower == no) return std::string("false");
  return absl::InvalidArgumentError("true or false");
}

absl::StatusOr<std::string> ParseInt(const Row& row, absl::string_view value) {
  std::int64_t factor = 1;
  absl::string_view digits = value;
  if (row.type == Type::kBytes && !digits.empty()) {
    const absl::string_view units = "KMGT";
    const auto unit = units.find(absl::ascii_toupper(digits.back()));
    if (unit != absl::string_view::npos) {
      factor = std::int64_t{1} << (10 * (unit + 1));
      digits.remove_suffix(1);
    }
  }
  std::int64_t number;
  const std::int64_t min = row.allowed.range ? row.allowed.min : INT64_MIN;
  const std::int64_t max = row.allowed.range ? row.allowed.max : INT64_MAX;
  if (!absl::SimpleAtoi(digits, &number) || __builtin_mul_overflow(number, factor, &number) ||
      number < min || number > max) {
    std::string want = row.type == Type::kBytes ? "a number of bytes" : "a number";
    if (row.allowed.range) absl::StrAppend(&want, " from ", min, " to ", max);
    if (row.type == Type::kBytes) absl::StrAppend(&want, " (K, M, G and T may follow)");
    return absl::InvalidArgumentError(want);
  }
  return absl::StrCat(number);
}

bool IsChoice(const Row& row, absl::string_view value) {
  if (row.allowed.choices == nullptr) return true;
  for (absl::string_view choice : absl::StrSplit(row.allowed.choices, '|'))
    if (choice == value) return true;
  return false;
}

std::string Choices(const Row& row, const char* before_last) {
  const std::vector<std::string> all = absl::StrSplit(row.allowed.choices, '|');
  if (all.size() == 1) return all[0];
  return absl::StrCat(absl::StrJoin(all.begin(), all.end() - 1, ", "), before_last, all.back());
}

absl::StatusOr<std::string> ParseList(const Row& row, absl::string_view value) {
  std::vector<std::string> items;
  for (absl::string_view item : absl::StrSplit(value, ',')) {
    item = absl::StripAsciiWhitespace(item);
    if (item.empty()) continue;
    if (!IsChoice(row, item))
      return absl::InvalidArgumentError(absl::StrCat("a list of ", Choices(row, " and ")));
    items.emplace_back(item);
  }
  return absl::StrJoin(items, ",");
}

// `value` in the one spelling that is kept; the error is what was wanted.
absl::StatusOr<std::string> Parse(const Row& row, absl::string_view value) {
  switch (row.type) {
    case Type::kBool:
      return ParseBool(value);
    case Type::kInt:
    case Type::kBytes:
      return ParseInt(row, value);
    case Type::kChoice:
      if (!IsChoice(row, value)) return absl::InvalidArgumentError(Choices(row, " or "));
      return std::string(value);
    case Type::kList:
      return ParseList(row, value);
    case Type::kJson: {
      const Json json = Json::parse(value.begin(), value.end(), nullptr, false);
      if (!json.is_object()) return absl::InvalidArgumentError("a JSON object");
      return json.dump(-1, ' ', false, Json::error_handler_t::replace);
    }
    case Type::kText:
      if (absl::StrContains(value, '\n')) return absl::InvalidArgumentError("one line");
      return std::string(value);
  }
  return absl::InternalError("unknown type of option");
}

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

// The message of `errors`, which is not empty.
absl::Status Joined(absl::StatusCode code, const std::vector<std::string>& errors) {
  if (errors.size() == 1) return absl::Status(code, errors[0]);
  return absl::Status(code,
                      absl::StrCat(errors.size(), " errors:\n  ", absl::StrJoin(errors, "\n  ")));
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

const char* TypeName(Type type) {
  static constexpr const char* kNames[] = {"bool",   "int",  "bytes", "text",
                                           "choice", "list", "json"};
  return kNames[static_cast<int>(type)];
}

const char* ScenarioName(Scenario scenario) {
  static constexpr const char* kNames[] = {"any", "load", "run", "training", "inference"};
  return kNames[static_cast<int>(scenario)];
}

const char* AvailabilityName(Availability status) {
  static constexpr const char* kNames[] = {"active", "not active yet", "accepted, no effect"};
  return kNames[static_cast<int>(status)];
}

const char* AllowedText(const Row& row) {
  if (row.allowed.range) return row.allowed.range_text;
  return row.allowed.choices == nullptr ? "" : row.allowed.choices;
}

Options::Options(Profile profile) : profile_(profile), entries_(kOptionCount) {
  for (int i = 0; i < kOptionCount; ++i) {
    const char* value = kRows[i].defaults[static_cast<int>(profile)];
    // Defaults are spelled for people ("64M"); a test checks that all of them parse.
    if (value != nullptr) entries_[i].value = Parse(kRows[i], value).value_or(value);
  }
}

absl::Status Options::Set(absl::string_view name, absl::string_view value) {
  NPURT_ASSIGN_OR_RETURN(const Option option, FindOption(name));
  value = absl::StripAsciiWhitespace(value);
  if (value.empty()) return Unset(name);
  absl::StatusOr<std::string> parsed = Parse(RowOf(option), value);
  if (!parsed.ok())
    return absl::InvalidArgumentError(absl::StrCat("option ", name, ": got '", value.substr(0, 200),
                                                   "', want ", parsed.status().message()));
  entries_[static_cast<int>(option)] = {State::kSet, *std::move(parsed)};
  return absl::OkStatus();
}

absl::Status Options::Unset(absl::string_view name) {
  NPURT_ASSIGN_OR_RETURN(const Option option, FindOption(name));
  entries_[static_cast<int>(option)] = {State::kUnset, ""};
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

// Something that may hold: the option has this value, or (null) any but false.
struct Options::Condition {
  Option option;
  const char* value;
};

struct Options::Rule {
  enum Kind { kExcludes, kRequires, kIgnored } kind;
  Condition a, b;
  const char* reason;
};

absl::Span<const Options::Rule> Options::Rules() {
  using enum Option;
  static constexpr auto On = [](Option option) { return Condition{option, nullptr}; };
  static constexpr auto Is = [](Option option, const char* value) {
    return Condition{option, value};
  };
  static constexpr Rule kRules[] = {
#define NPURT_OPTION(...)
#define NPURT_OPTION_EXCLUDES(a, b, reason) {Rule::kExcludes, a, b, reason},
#define NPURT_OPTION_REQUIRES(a, b, reason) {Rule::kRequires, a, b, reason},
#define NPURT_OPTION_IGNORED(name, b, reason) {Rule::kIgnored, On(name), b, reason},
#include "options/options.def"
#undef NPURT_OPTION
#undef NPURT_OPTION_EXCLUDES
#undef NPURT_OPTION_REQUIRES
#undef NPURT_OPTION_IGNORED
  };
  return kRules;
}

bool Options::Holds(const Condition& condition) const {
  const char* now = value(condition.option);
  if (now == nullptr) return false;
  if (condition.value != nullptr) return absl::string_view(now) == condition.value;
  return was_set(condition.option) && absl::string_view(now) != "false" && *now != '\0';
}

absl::Status Options::Check() const {
  const auto text = [this](const Condition& c) {
    return absl::StrCat(RowOf(c.option).name, "=", value(c.option) ? value(c.option) : "(unset)");
  };
  std::vector<std::string> errors;
  for (const Rule& rule : Rules()) {
    if (!Holds(rule.a) || rule.kind == Rule::kIgnored) continue;
    if (rule.kind == Rule::kExcludes && Holds(rule.b))
      errors.push_back(
          absl::StrCat("option ", text(rule.a), " excludes ", text(rule.b), ": ", rule.reason));
    if (rule.kind == Rule::kRequires && !Holds(rule.b))
      errors.push_back(absl::StrCat(
          "option ", text(rule.a), " requires ", RowOf(rule.b.option).name,
          rule.b.value == nullptr ? "" : absl::StrCat("=", rule.b.value), ": ", rule.reason));
  }
  return errors.empty() ? absl::OkStatus() : Joined(absl::StatusCode::kInvalidArgument, errors);
}

std::vector<std::string> Options::Notes() const {
  std::vector<std::string> notes;
  for (int i = 0; i < kOptionCount; ++i)
    if (was_set(static_cast<Option>(i)) && kRows[i].status != Availability::kActive)
      notes.push_back(
          absl::StrCat("option ", kRows[i].name, ": ", AvailabilityName(kRows[i].status)));
  for (const Rule& rule : Rules())
    if (rule.kind == Rule::kIgnored && Holds(rule.a) && Holds(rule.b))
      notes.push_back(absl::StrCat("option ", RowOf(rule.a.option).name, ": has no effect with ",
                                   RowOf(rule.b.option).name, "=", value(rule.b.option), ", ",
                                   rule.reason));
  return notes;
}

const char* Options::value(Option option) const {
  const Entry& e = entry(option);
  if (e.state == State::kUnset) return nullptr;
  if (e.state == State::kDefault && RowOf(option).defaults[static_cast<int>(profile_)] == nullptr)
    return nullptr;
  return e.value.c_str();
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
    if (was_set(option)) absl::StrAppend(&text, kRows[i].name, " = ", entry(option).value, "\n");
  }
  return text;
}

std::string Options::ToJson() const {
  Json rows = Json::array();
  for (int i = 0; i < kOptionCount; ++i) {
    const Option option = static_cast<Option>(i);
    const char* now = value(option);
    rows.push_back({{"name", kRows[i].name},
                    {"value", now == nullptr ? Json() : Json(now)},
                    {"set", was_set(option)},
                    {"status", AvailabilityName(kRows[i].status)}});
  }
  const Json all = {{"profile", ProfileName(profile_)}, {"options", rows}, {"notes", Notes()}};
  return all.dump(1, ' ', false, Json::error_handler_t::replace);
}

std::string TableJson() {
  Json rows = Json::array();
  for (const Row& row : kRows) {
    Json defaults = Json::object();
    for (int i = 0; i < kProfileCount; ++i)
      defaults[ProfileName(static_cast<Profile>(i))] =
          row.defaults[i] == nullptr ? Json() : Json(row.defaults[i]);
    rows.push_back({{"name", row.name},
                    {"type", TypeName(row.type)},
                    {"defaults", defaults},
                    {"allowed", AllowedText(row)},
                    {"scenario", ScenarioName(row.scenario)},
                    {"status", AvailabilityName(row.status)},
                    {"help", row.help}});
  }
  return rows.dump(1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace npurt::options
