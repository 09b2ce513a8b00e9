// The files that are lines: names, an equals sign or colons, values.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "options/files.h"
#include "options/json_text.h"
#include "options/table.h"

namespace npurt::options {
namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{4} << 20;

// A part of a line, with its place.
struct Piece {
  absl::string_view text;
  Place place;
};

Piece Trimmed(Piece piece) {
  const absl::string_view text = absl::StripLeadingAsciiWhitespace(piece.text);
  piece.place.column += static_cast<int>(piece.text.size() - text.size());
  piece.text = absl::StripTrailingAsciiWhitespace(text);
  return piece;
}

// From `start` on, `length` characters.
Piece Part(const Piece& piece, std::size_t start, std::size_t length = absl::string_view::npos) {
  return Trimmed({piece.text.substr(start, length),
                  {piece.place.line, piece.place.column + static_cast<int>(start)}});
}

std::vector<Piece> SplitList(const Piece& piece) {
  std::vector<Piece> items;
  std::size_t start = 0;
  while (true) {
    const auto comma = piece.text.find(',', start);
    items.push_back(Part(piece, start, comma - start));
    if (comma == absl::string_view::npos) return items;
    start = comma + 1;
  }
}

absl::Status Wrong(absl::string_view file, const Piece& piece, absl::string_view wanted) {
  return ErrorAt(file, piece.place,
                 absl::StrCat("got '", piece.text.substr(0, 80), "', want ", wanted));
}

// Lines that are neither empty nor comments.
absl::Status ForEachLine(absl::string_view text,
                         const std::function<absl::Status(const Piece& line)>& take) {
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    const Piece piece = Trimmed({line, {++number, 1}});
    if (piece.text.empty() || piece.text[0] == '#' || piece.text[0] == ';') continue;
    NPURT_RETURN_IF_ERROR(take(piece));
  }
  return absl::OkStatus();
}

// `name = value`; what follows " #" is a comment.
absl::Status SplitPair(absl::string_view file, const Piece& line, Piece* name, Piece* value) {
  const auto equals = line.text.find('=');
  if (equals == absl::string_view::npos || equals == 0) return Wrong(file, line, "name=value");
  *name = Part(line, 0, equals);
  *value = Part(line, equals + 1);
  const auto comment = value->text.find(" #");
  if (comment != absl::string_view::npos) *value = Part(*value, 0, comment);
  return absl::OkStatus();
}

// InputDtype:a,b or OutputDtype:a,b without the word.
absl::Status ReadDtypes(absl::string_view file, const Piece& list, std::vector<DType>* dtypes) {
  for (const Piece& item : SplitList(list)) {
    DType dtype = DType::kUndefined;
    if (!item.text.empty()) {
      dtype = DTypeFromName(absl::AsciiStrToLower(item.text));
      if (dtype == DType::kUndefined) return Wrong(file, item, "an element type such as float16");
    }
    dtypes->push_back(dtype);
  }
  return absl::OkStatus();
}

absl::StatusOr<CustomDtypes::Entry> ReadCustomLine(absl::string_view file, const Piece& line) {
  static constexpr absl::string_view kIn = "InputDtype:", kOut = "OutputDtype:", kType = "OpType::";
  constexpr absl::string_view kWant =
      "name::InputDtype:types,OutputDtype:types or OpType::Type:InputDtype:types,OutputDtype:types";
  const auto in = line.text.find(kIn);
  if (in == absl::string_view::npos) return Wrong(file, line, kWant);
  const auto out = line.text.find(kOut, in);
  if (out == absl::string_view::npos)
    return ErrorAt(file, line.place, "OutputDtype: is missing after InputDtype:");
  CustomDtypes::Entry entry;
  absl::string_view head = line.text.substr(0, in);
  entry.by_type = absl::StartsWithIgnoreCase(head, kType);
  if (entry.by_type) head.remove_prefix(kType.size());
  const absl::string_view end = entry.by_type ? ":" : "::";
  if (!absl::EndsWith(head, end) || head.size() == end.size()) return Wrong(file, line, kWant);
  head.remove_suffix(end.size());
  entry.name = std::string(head);
  Piece inputs = Part(line, in + kIn.size(), out - in - kIn.size());
  if (absl::EndsWith(inputs.text, ",")) inputs.text.remove_suffix(1);
  NPURT_RETURN_IF_ERROR(ReadDtypes(file, inputs, &entry.inputs));
  NPURT_RETURN_IF_ERROR(ReadDtypes(file, Part(line, out + kOut.size()), &entry.outputs));
  return entry;
}

}  // namespace

absl::StatusOr<std::string> ReadTextFile(const std::string& path) {
  const auto failed = [&path] { return absl::ErrnoToStatus(errno, absl::StrCat("'", path, "'")); };
  // Not to block on a pipe that somebody named.
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return failed();
  std::string text;
  struct stat info;
  absl::Status status;
  if (fstat(file, &info) != 0) {
    status = failed();
  } else if (!S_ISREG(info.st_mode)) {
    status = absl::InvalidArgumentError(absl::StrCat("'", path, "' is no file"));
  }
  char buffer[4096];
  while (status.ok()) {
    const ssize_t got = read(file, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) status = failed();
    if (got <= 0) break;
    text.append(buffer, static_cast<std::size_t>(got));
    if (text.size() > kMaxFileBytes)
      status = absl::InvalidArgumentError(absl::StrCat("'", path, "' has more than 4 MB"));
  }
  close(file);
  if (!status.ok()) return status;
  return text;
}

absl::StatusOr<CustomDtypes> ParseCustomDtypes(absl::string_view text, absl::string_view file) {
  CustomDtypes result;
  std::set<std::pair<bool, std::string>> seen;
  NPURT_RETURN_IF_ERROR(ForEachLine(text, [&](const Piece& line) -> absl::Status {
    NPURT_ASSIGN_OR_RETURN(CustomDtypes::Entry entry, ReadCustomLine(file, line));
    if (!seen.emplace(entry.by_type, entry.name).second)
      return ErrorAt(file, line.place, absl::StrCat("'", entry.name, "' was given before"));
    result.entries.push_back(std::move(entry));
    return absl::OkStatus();
  }));
  return result;
}

absl::StatusOr<OpPrecision> ParseOpPrecision(absl::string_view text, absl::string_view file) {
  static constexpr absl::string_view kModes =
      "high_precision|high_performance|super_performance|enable_float_32_execution|"
      "enable_hi_float_32_execution|support_out_of_bound_index|keep_fp16";
  OpPrecision result;
  auto* section = &result.by_type;
  NPURT_RETURN_IF_ERROR(ForEachLine(text, [&](const Piece& line) -> absl::Status {
    if (line.text[0] == '[') {
      if (line.text != "[ByOpType]" && line.text != "[ByNodeName]")
        return Wrong(file, line, "[ByOpType] or [ByNodeName]");
      section = line.text == "[ByOpType]" ? &result.by_type : &result.by_name;
      return absl::OkStatus();
    }
    Piece name, mode;
    NPURT_RETURN_IF_ERROR(SplitPair(file, line, &name, &mode));
    if (!OneOfThese(kModes, mode.text))
      return Wrong(file, mode, absl::StrReplaceAll(kModes, {{"|", ", "}}));
    if (!section->emplace(name.text, mode.text).second)
      return ErrorAt(file, name.place, absl::StrCat("'", name.text, "' was given before"));
    return absl::OkStatus();
  }));
  return result;
}

bool OpDebug::Has(absl::string_view word) const {
  return std::find(words.begin(), words.end(), word) != words.end();
}

absl::StatusOr<OpDebug> ParseOpDebug(absl::string_view text, absl::string_view file) {
  static constexpr absl::string_view kWords = "oom|dump_cce|dump_loc|ccec_O0|ccec_g|check_flag";
  OpDebug result;
  NPURT_RETURN_IF_ERROR(ForEachLine(text, [&](const Piece& line) -> absl::Status {
    Piece key, value;
    NPURT_RETURN_IF_ERROR(SplitPair(file, line, &key, &value));
    const bool words = key.text == "op_debug_config";
    if (!words && key.text != "op_debug_list")
      return Wrong(file, key, "op_debug_config or op_debug_list");
    if (words ? !result.words.empty() : result.lists_operators())
      return ErrorAt(file, key.place, absl::StrCat("'", key.text, "' was given before"));
    for (const Piece& item : SplitList(value)) {
      const auto colons = item.text.find("::");
      const bool type = colons != absl::string_view::npos;
      if (words && !OneOfThese(kWords, item.text))
        return Wrong(file, item, absl::StrReplaceAll(kWords, {{"|", ", "}}));
      if (item.text.empty() || (!words && type &&
                                (!absl::EqualsIgnoreCase(item.text.substr(0, colons), "OpType") ||
                                 item.text.size() == colons + 2)))
        return Wrong(file, item, "a name or OpType::Type");
      if (words) {
        result.words.emplace_back(item.text);
      } else if (type) {
        result.types.emplace_back(item.text.substr(colons + 2));
      } else {
        result.names.emplace_back(item.text);
      }
    }
    return absl::OkStatus();
  }));
  if (result.words.empty()) return ErrorAt(file, {1, 1}, "the line op_debug_config=... is missing");
  return result;
}

absl::StatusOr<OpCache> ParseOpCache(absl::string_view text, absl::string_view file) {
  OpCache cache;
  bool in_section = false, has_size = false, has_ratio = false;
  NPURT_RETURN_IF_ERROR(ForEachLine(text, [&](const Piece& line) -> absl::Status {
    if (!in_section) {
      if (line.text != "[op_compiler_cache]") return Wrong(file, line, "[op_compiler_cache]");
      in_section = true;
      return absl::OkStatus();
    }
    Piece key, value;
    NPURT_RETURN_IF_ERROR(SplitPair(file, line, &key, &value));
    std::int64_t number = 0;
    const bool is_number = absl::SimpleAtoi(value.text, &number);
    if (key.text == "max_op_cache_size") {
      if (!is_number || (number != -1 && number < 1))
        return Wrong(file, value, "megabytes above 0, or -1");
      cache.max_megabytes = number;
      has_size = true;
    } else if (key.text == "remain_cache_size_ratio") {
      if (!is_number || number < 1 || number > 100)
        return Wrong(file, value, "percent from 1 to 100");
      cache.percent_kept = static_cast<int>(number);
      has_ratio = true;
    } else {
      return Wrong(file, key, "max_op_cache_size or remain_cache_size_ratio");
    }
    return absl::OkStatus();
  }));
  if (!in_section) return ErrorAt(file, {1, 1}, "the line [op_compiler_cache] is missing");
  if (!has_size || !has_ratio)
    return ErrorAt(file, {1, 1},
                   absl::StrCat(has_size ? "remain_cache_size_ratio" : "max_op_cache_size",
                                " is missing, and one alone has no effect"));
  return cache;
}

}  // namespace npurt::options
