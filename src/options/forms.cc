#include "options/forms.h"

#include <algorithm>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace npurt::options {
namespace {

using Parts = std::vector<absl::string_view>;

// Digits alone, and no more than an int64 holds.
bool IsNumber(absl::string_view text, std::int64_t* number) {
  return !text.empty() && std::all_of(text.begin(), text.end(), absl::ascii_isdigit) &&
         absl::SimpleAtoi(text, number);
}
bool IsNumber(absl::string_view text) {
  std::int64_t number;
  return IsNumber(text, &number);
}

std::string Got(absl::string_view what, absl::string_view got) {
  return absl::StrCat(what, ": got '", got.substr(0, 80), "'");
}

// One item of input_shape.
std::string InputItem(absl::string_view item) {
  const auto colon = item.rfind(':');
  if (colon == absl::string_view::npos || colon == 0) return Got("name:dims is wanted", item);
  if (absl::StrContains(item.substr(0, colon), ':'))
    return Got("a name has no ':' in it", item.substr(0, colon));
  for (absl::string_view dim : absl::StrSplit(item.substr(colon + 1), ','))
    if (dim != "-1" && !IsNumber(dim)) return Got("a dimension is a number or -1", dim);
  return "";
}

}  // namespace

std::string InputShape(absl::string_view value) {
  std::set<absl::string_view> names;
  absl::string_view before;
  for (absl::string_view item : absl::StrSplit(value, ';')) {
    std::string wrong = InputItem(item);
    if (!wrong.empty()) return wrong;
    const absl::string_view name = item.substr(0, item.find(':'));
    if (!names.insert(name).second) return Got("a name twice", name);
    if (name < before) return Got("names stand in the order of the alphabet", name);
    before = name;
  }
  return CountGearDimensions(value) == 0 ? "no dimension is -1" : "";
}

int CountGearDimensions(absl::string_view input_shape) {
  int count = 0;
  for (absl::string_view item : absl::StrSplit(input_shape, ';'))
    for (absl::string_view dim : absl::StrSplit(item.substr(item.find(':') + 1), ','))
      count += dim == "-1";
  return count;
}

std::string DynamicDims(absl::string_view value) {
  std::set<absl::string_view> gears;
  std::ptrdiff_t commas = -1;
  for (absl::string_view gear : absl::StrSplit(value, ';')) {
    for (absl::string_view number : absl::StrSplit(gear, ','))
      if (!IsNumber(number)) return Got("a gear is numbers separated by commas", gear);
    const auto here = std::count(gear.begin(), gear.end(), ',');
    if (commas >= 0 && here != commas) return Got("gears are equally long", gear);
    commas = here;
    if (!gears.insert(gear).second) return Got("a gear twice", gear);
  }
  return gears.size() < 2 ? "one gear alone" : "";
}

int CountGears(absl::string_view dynamic_dims) {
  return static_cast<int>(std::count(dynamic_dims.begin(), dynamic_dims.end(), ';')) + 1;
}

int GearLength(absl::string_view dynamic_dims) {
  const absl::string_view first = dynamic_dims.substr(0, dynamic_dims.find(';'));
  return static_cast<int>(std::count(first.begin(), first.end(), ',')) + 1;
}

std::vector<std::vector<GearInput>> ExpandGears(absl::string_view input_shape,
                                                absl::string_view dynamic_dims) {
  std::vector<std::vector<GearInput>> gears;
  for (absl::string_view gear : absl::StrSplit(dynamic_dims, ';')) {
    const Parts values = absl::StrSplit(gear, ',');
    std::size_t next = 0;
    std::vector<GearInput> inputs;
    for (absl::string_view item : absl::StrSplit(input_shape, ';')) {
      const auto colon = item.find(':');
      GearInput input = {std::string(item.substr(0, colon)), {}};
      if (item.substr(colon + 1) != "0")
        for (absl::string_view dim : absl::StrSplit(item.substr(colon + 1), ',')) {
          std::int64_t number = 0;
          (void)IsNumber(dim == "-1" ? values[next++] : dim, &number);
          input.dims.push_back(number);
        }
      inputs.push_back(std::move(input));
    }
    gears.push_back(std::move(inputs));
  }
  return gears;
}

namespace {

std::string RangeDim(absl::string_view dim) {
  dim = absl::StripAsciiWhitespace(dim);
  const auto tilde = dim.find('~');
  std::int64_t low, high;
  if (dim == "-1" || (tilde == absl::string_view::npos && IsNumber(dim))) return "";
  if (tilde == absl::string_view::npos ||
      !IsNumber(absl::StripTrailingAsciiWhitespace(dim.substr(0, tilde)), &low) ||
      !IsNumber(absl::StripLeadingAsciiWhitespace(dim.substr(tilde + 1)), &high))
    return Got("a dimension is a number, low~high or -1", dim);
  return low > high ? Got("the range goes backwards", dim) : "";
}

// [a,b],[],[c] and so on.
std::string RangeShapes(absl::string_view shapes) {
  while (true) {
    const auto end = shapes.find(']');
    if (shapes.empty() || shapes[0] != '[' || end == absl::string_view::npos)
      return Got("a shape stands in brackets", shapes);
    const absl::string_view inside = shapes.substr(1, end - 1);
    if (!inside.empty())
      for (absl::string_view dim : absl::StrSplit(inside, ',')) {
        std::string wrong = RangeDim(dim);
        if (!wrong.empty()) return wrong;
      }
    shapes.remove_prefix(end + 1);
    if (shapes.empty()) return "";
    if (shapes[0] != ',') return Got("a comma stands between shapes", shapes);
    shapes.remove_prefix(1);
  }
}

}  // namespace

std::string ShapeRange(absl::string_view value) {
  std::set<absl::string_view> groups;
  for (absl::string_view group : absl::StrSplit(value, ';')) {
    const auto colon = group.find(':');
    const absl::string_view name = group.substr(0, colon);
    if (colon == absl::string_view::npos || (name != "getnext" && name != "data"))
      return Got("a group is getnext:... or data:...", group);
    if (!groups.insert(name).second) return Got("a group twice", name);
    std::string wrong = RangeShapes(group.substr(colon + 1));
    if (!wrong.empty()) return wrong;
  }
  return "";
}

namespace {

// Reads Python's text of lists of strings, blanks anywhere.
class PairReader {
 public:
  explicit PairReader(absl::string_view text) : text_(text) {}

  bool Take(char c) {
    text_ = absl::StripLeadingAsciiWhitespace(text_);
    if (text_.empty() || text_[0] != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  bool AtEnd() const { return absl::StripLeadingAsciiWhitespace(text_).empty(); }
  absl::string_view rest() const { return text_; }

  bool NameList() {
    if (!Take('[')) return false;
    do {
      const char quote = Take('\'') ? '\'' : Take('"') ? '"' : '\0';
      if (quote == '\0') return false;
      const auto end = text_.find(quote);
      if (end == absl::string_view::npos || end == 0) return false;
      text_.remove_prefix(end + 1);
    } while (Take(','));
    return Take(']');
  }

 private:
  absl::string_view text_;
};

}  // namespace

std::string InOutPair(absl::string_view value) {
  PairReader in(value);
  if (!in.Take('[') || !in.Take('[') || !in.NameList() || !in.Take(',') || !in.NameList() ||
      !in.Take(']'))
    return Got("two lists of names in quotes are wanted", in.rest());
  if (in.Take(',')) return "there may be one region only";
  if (!in.Take(']') || !in.AtEnd()) return Got("the list should end", in.rest());
  return "";
}

std::string DumpStep(absl::string_view value) {
  const Parts steps = absl::StrSplit(value, '|');
  if (steps.size() > 100) return absl::StrCat(steps.size(), " items");
  for (absl::string_view step : steps) {
    const auto dash = step.find('-');
    std::int64_t from, to = 0;
    if (!IsNumber(step.substr(0, dash), &from) ||
        (dash != absl::string_view::npos && !IsNumber(step.substr(dash + 1), &to)))
      return Got("an item is a number or a range", step);
    if (dash != absl::string_view::npos && from >= to) return Got("the range goes backwards", step);
  }
  return "";
}

std::string StreamParallel(absl::string_view value) {
  std::set<absl::string_view> engines;
  for (absl::string_view item : absl::StrSplit(value, ',')) {
    const auto colon = item.find(':');
    const absl::string_view engine = item.substr(0, colon);
    std::int64_t count = 0;
    if (colon == absl::string_view::npos || !IsNumber(item.substr(colon + 1), &count) || count < 1)
      return Got("engine:n with n above 0 is wanted", item);
    const bool old = engine == "DNN_VM_TF" || engine == "DNN_V100";
    if (!old && engine != "DNN_VM_AICPU" && engine != "AIcoreEngine")
      return Got("there is no such engine", engine);
    if (old && count > 13) return Got("this engine takes 1 to 13", item);
    if (!engines.insert(engine).second) return Got("an engine twice", engine);
  }
  return "";
}

std::string AicoreNum(absl::string_view value) {
  const Parts parts = absl::StrSplit(value, '|');
  std::int64_t count;
  if (parts.size() != 2) return Got("two numbers are wanted", value);
  for (absl::string_view part : parts)
    if (!IsNumber(part, &count) || count == 0) return Got("a number above 0 is wanted", part);
  return "";
}

std::string AccelerateTrain(absl::string_view value) {
  const Parts parts = absl::StrSplit(value, '|');
  if (parts.size() < 2 || parts.size() > 3) return Got("two or three parts are wanted", value);
  if (parts[0] != "fast" && parts[0] != "fast1") return Got("fast or fast1 is wanted", parts[0]);
  const bool step = parts[1] == "step";
  if (!step && parts[1] != "loss") return Got("step or loss is wanted", parts[1]);
  if (parts.size() == 2) return "";
  double ratio;
  if (!absl::SimpleAtod(parts[2], &ratio) || !(ratio >= (step ? 0.2 : 1.01)) ||
      ratio > (step ? 0.9 : 1.5))
    return Got(step ? "0.2 to 0.9 is wanted" : "1.01 to 1.5 is wanted", parts[2]);
  return "";
}

std::string DeviceList(absl::string_view value) {
  for (absl::string_view device : absl::StrSplit(value, ','))
    if (!IsNumber(device)) return Got("a device is a number", device);
  return "";
}

std::string Names(absl::string_view value) {
  for (absl::string_view name : absl::StrSplit(value, ',')) {
    name = absl::StripAsciiWhitespace(name);
    if (name.empty() || absl::StrContains(name, ' ')) return Got("a name is missing", name);
  }
  return "";
}

std::string PlainPath(absl::string_view value) {
  if (absl::StartsWith(value, "$HOME/")) value.remove_prefix(5);  // the documents' default
  for (const char c : value)
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && static_cast<signed char>(c) >= 0 &&
        !absl::StrContains("_-./", c))
      return Got("this character is not allowed", absl::string_view(&c, 1));
  return "";
}

std::string Number(absl::string_view value) {
  double number;
  return absl::SimpleAtod(value, &number) && number > 0 && number < 1e9 ? ""
                                                                        : Got("no number", value);
}

}  // namespace npurt::options
