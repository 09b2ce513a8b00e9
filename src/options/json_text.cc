#include "options/json_text.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace npurt::options {
namespace {

constexpr int kMaxDepth = 32;

class Reader {
 public:
  Reader(absl::string_view text, absl::string_view file, bool comments)
      : text_(text), file_(file), comments_(comments) {}

  absl::StatusOr<JsonNode> Document() {
    NPURT_ASSIGN_OR_RETURN(JsonNode node, Value(0));
    NPURT_RETURN_IF_ERROR(Blanks());
    if (at_ < text_.size()) return Wrong("got more text after the end of the document");
    return node;
  }

 private:
  Place Here() const { return {line_, static_cast<int>(at_ - line_start_) + 1}; }
  absl::Status Wrong(absl::string_view what) const { return ErrorAt(file_, Here(), what); }
  absl::Status Want(absl::string_view what) const {
    if (at_ >= text_.size()) return Wrong(absl::StrCat("got the end, want ", what));
    return Wrong(absl::StrCat("got '", text_.substr(at_, 1), "', want ", what));
  }
  char Peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void Step() {
    if (text_[at_++] == '\n') {
      ++line_;
      line_start_ = at_;
    }
  }

  absl::Status Blanks() {
    while (at_ < text_.size()) {
      const absl::string_view rest = text_.substr(at_);
      if (absl::ascii_isspace(Peek())) {
        Step();
      } else if (absl::StartsWith(rest, "//") || absl::StartsWith(rest, "/*")) {
        if (!comments_) return Wrong("comments are not allowed here");
        const bool line = rest[1] == '/';
        const auto end = line ? text_.find('\n', at_) : text_.find("*/", at_ + 2);
        if (end == absl::string_view::npos && !line) return Wrong("this comment has no end");
        const auto stop = end == absl::string_view::npos ? text_.size() : end + (line ? 0 : 2);
        while (at_ < stop) Step();
      } else {
        break;
      }
    }
    return absl::OkStatus();
  }

  absl::StatusOr<JsonNode> Value(int depth) {
    NPURT_RETURN_IF_ERROR(Blanks());
    JsonNode node;
    node.place = Here();
    const char c = Peek();
    if (c == '{' || c == '[') {
      if (depth == kMaxDepth) return Wrong(absl::StrCat("more than ", kMaxDepth, " levels deep"));
      NPURT_RETURN_IF_ERROR(Group(c == '{', depth, &node));
    } else if (c == '"') {
      node.kind = JsonNode::Kind::kString;
      NPURT_ASSIGN_OR_RETURN(node.text, String());
    } else if (c == '-' || absl::ascii_isdigit(c)) {
      node.kind = JsonNode::Kind::kNumber;
      NPURT_RETURN_IF_ERROR(Number(&node.text));
    } else {
      const auto start = at_;
      while (absl::ascii_isalpha(Peek())) Step();
      node.text = std::string(text_.substr(start, at_ - start));
      if (node.text == "true" || node.text == "false") {
        node.kind = JsonNode::Kind::kBool;
      } else if (node.text != "null") {
        at_ = start;
        return Want("a value");
      }
    }
    return node;
  }

  // An object or an array. A comma before the end is an error, as JSON has it.
  absl::Status Group(bool object, int depth, JsonNode* node) {
    node->kind = object ? JsonNode::Kind::kObject : JsonNode::Kind::kArray;
    const char end = object ? '}' : ']';
    Step();
    NPURT_RETURN_IF_ERROR(Blanks());
    if (Peek() == end) {
      Step();
      return absl::OkStatus();
    }
    while (true) {
      std::string name;
      Place place;
      if (object) {
        NPURT_RETURN_IF_ERROR(Blanks());
        place = Here();
        if (Peek() != '"') return Want("a name in double quotes");
        NPURT_ASSIGN_OR_RETURN(name, String());
        if (node->Find(name) != nullptr)
          return ErrorAt(file_, place, absl::StrCat("'", name, "' was given before"));
        NPURT_RETURN_IF_ERROR(Blanks());
        if (Peek() != ':') return Want("':'");
        Step();
      }
      NPURT_ASSIGN_OR_RETURN(JsonNode item, Value(depth + 1));
      if (object) {
        node->members.push_back({std::move(name), std::move(item), place});
      } else {
        node->items.push_back(std::move(item));
      }
      NPURT_RETURN_IF_ERROR(Blanks());
      const char c = Peek();
      if (c != ',' && c != end) return Want(object ? "',' or '}'" : "',' or ']'");
      Step();
      if (c == end) return absl::OkStatus();
    }
  }

  absl::Status Number(std::string* text) {
    const auto start = at_;
    const auto digits = [this] {
      const auto before = at_;
      while (absl::ascii_isdigit(Peek())) Step();
      return at_ > before;
    };
    if (Peek() == '-') Step();
    const auto first = at_;
    if (!digits()) return Want("a digit");
    if (text_[first] == '0' && at_ > first + 1) return Wrong("a number begins with 0");
    if (Peek() == '.') {
      Step();
      if (!digits()) return Want("a digit");
    }
    if (Peek() == 'e' || Peek() == 'E') {
      Step();
      if (Peek() == '+' || Peek() == '-') Step();
      if (!digits()) return Want("a digit");
    }
    *text = std::string(text_.substr(start, at_ - start));
    return absl::OkStatus();
  }

  absl::StatusOr<unsigned> Hex4() {
    unsigned code = 0;
    for (int i = 0; i < 4; ++i) {
      const char c = absl::ascii_tolower(Peek());
      if (!absl::ascii_isxdigit(c)) return Want("four hexadecimal digits");
      code = code * 16 + static_cast<unsigned>(absl::ascii_isdigit(c) ? c - '0' : c - 'a' + 10);
      Step();
    }
    return code;
  }

  static void AppendUtf8(unsigned code, std::string* text) {
    const auto byte = [text](unsigned b) { text->push_back(static_cast<char>(b)); };
    if (code < 0x80) return byte(code);
    if (code < 0x800) return byte(0xC0 | code >> 6), byte(0x80 | (code & 63));
    if (code < 0x10000) {
      byte(0xE0 | code >> 12);
    } else {
      byte(0xF0 | code >> 18);
      byte(0x80 | (code >> 12 & 63));
    }
    byte(0x80 | (code >> 6 & 63));
    byte(0x80 | (code & 63));
  }

  absl::Status Escape(std::string* text) {
    static constexpr absl::string_view kFrom = "\"\\/bfnrt", kTo = "\"\\/\b\f\n\r\t";
    const auto known = kFrom.find(Peek());
    if (at_ < text_.size() && known != absl::string_view::npos) {
      text->push_back(kTo[known]);
      Step();
      return absl::OkStatus();
    }
    if (Peek() != 'u') return Want("an escape that JSON knows");
    Step();
    NPURT_ASSIGN_OR_RETURN(unsigned code, Hex4());
    if (code >= 0xD800 && code < 0xDC00 && absl::StartsWith(text_.substr(at_), "\\u")) {
      Step();
      Step();
      NPURT_ASSIGN_OR_RETURN(const unsigned low, Hex4());
      if (low < 0xDC00 || low > 0xDFFF) return Wrong("half a pair of surrogates");
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    }
    if (code >= 0xD800 && code <= 0xDFFF) return Wrong("half a pair of surrogates");
    AppendUtf8(code, text);
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> String() {
    std::string text;
    const Place start = Here();
    Step();
    while (Peek() != '"') {
      if (at_ >= text_.size()) return ErrorAt(file_, start, "this string has no end");
      if (static_cast<unsigned char>(Peek()) < 0x20)
        return Wrong("a control character in a string");
      if (Peek() == '\\') {
        Step();
        NPURT_RETURN_IF_ERROR(Escape(&text));
      } else {
        text.push_back(Peek());
        Step();
      }
    }
    Step();
    return text;
  }

  const absl::string_view text_, file_;
  const bool comments_;
  std::size_t at_ = 0, line_start_ = 0;
  int line_ = 1;
};

}  // namespace

absl::Status ErrorAt(absl::string_view file, Place place, absl::string_view what) {
  if (file.empty())
    return absl::InvalidArgumentError(
        absl::StrCat("line ", place.line, ", column ", place.column, ": ", what));
  return absl::InvalidArgumentError(
      absl::StrCat(file, ":", place.line, ":", place.column, ": ", what));
}

const JsonNode* JsonNode::Find(absl::string_view name) const {
  for (const Member& member : members)
    if (member.name == name) return &member.value;
  return nullptr;
}

const char* JsonKindName(JsonNode::Kind kind) {
  static constexpr const char* kNames[] = {"null",     "true or false", "a number",
                                           "a string", "an array",      "an object"};
  return kNames[static_cast<int>(kind)];
}

absl::StatusOr<JsonNode> ParseJson(absl::string_view text, absl::string_view file, bool comments) {
  return Reader(text, file, comments).Document();
}

}  // namespace npurt::options
