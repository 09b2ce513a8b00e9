// One value of one option: from what people write to the one spelling that is kept.
#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "options/json_text.h"
#include "options/table.h"

namespace npurt::options {
namespace {

absl::StatusOr<std::string> ParseBool(absl::string_view value, const char* yes, const char* no) {
  const std::string lower = absl::AsciiStrToLower(value);
  if (OneOfThese("true|1|yes|on", lower)) return std::string(yes);
  if (OneOfThese("false|0|no|off", lower)) return std::string(no);
  return absl::InvalidArgumentError(absl::StrCat(yes, " or ", no));
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

std::string Choices(const Row& row, const char* before_last) {
  const std::vector<std::string> all = absl::StrSplit(row.allowed.choices, '|');
  if (all.size() == 1) return all[0];
  return absl::StrCat(absl::StrJoin(all.begin(), all.end() - 1, ", "), before_last, all.back());
}

// As the table spells it, else the same but for capitals: a script's True is a choice "true".
absl::StatusOr<std::string> ParseChoice(const Row& row, absl::string_view value) {
  if (OneOfThese(row.allowed.choices, value)) return std::string(value);
  for (absl::string_view choice : absl::StrSplit(row.allowed.choices, '|'))
    if (absl::EqualsIgnoreCase(choice, value)) return std::string(choice);
  return absl::InvalidArgumentError(Choices(row, " or "));
}

absl::StatusOr<std::string> ParseList(const Row& row, absl::string_view value) {
  std::vector<std::string> items;
  for (absl::string_view item : absl::StrSplit(value, ',')) {
    item = absl::StripAsciiWhitespace(item);
    if (item.empty()) continue;
    if (row.allowed.choices != nullptr && !OneOfThese(row.allowed.choices, item))
      return absl::InvalidArgumentError(absl::StrCat("a list of ", Choices(row, " and ")));
    items.emplace_back(item);
  }
  return absl::StrJoin(items, ",");
}

absl::StatusOr<std::string> ParseText(const Row& row, absl::string_view value) {
  if (absl::StrContains(value, '\n') || absl::StrContains(value, '\0'))
    return absl::InvalidArgumentError("one line");
  if (row.allowed.form != nullptr) {
    const std::string wrong = row.allowed.form(value);
    if (!wrong.empty())
      return absl::InvalidArgumentError(absl::StrCat(row.allowed.form_text, " (", wrong, ")"));
  }
  return std::string(value);
}

absl::StatusOr<std::string> ParseJsonValue(absl::string_view value) {
  const auto json = ParseJson(value, "");
  if (!json.ok())
    return absl::InvalidArgumentError(
        absl::StrCat("a JSON object (", json.status().message(), ")"));
  if (json->kind != JsonNode::Kind::kObject) return absl::InvalidArgumentError("a JSON object");
  std::string line(value);
  // A line break outside of strings is a blank, and there is none inside: the reader saw to it.
  std::replace_if(
      line.begin(), line.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return line;
}

}  // namespace

absl::StatusOr<std::string> ParseValue(const Row& row, absl::string_view value) {
  switch (row.type) {
    case Type::kBool:
      return ParseBool(value, "true", "false");
    case Type::kSwitch:
      return ParseBool(value, "1", "0");
    case Type::kInt:
    case Type::kBytes:
      return ParseInt(row, value);
    case Type::kChoice:
      return ParseChoice(row, value);
    case Type::kList:
      return ParseList(row, value);
    case Type::kJson:
      return ParseJsonValue(value);
    case Type::kText:
    case Type::kPath:
    case Type::kObject:
      return ParseText(row, value);
  }
  return absl::InternalError("unknown type of option");
}

}  // namespace npurt::options
