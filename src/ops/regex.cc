#include "ops/regex.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace npurt::ops {
namespace {

constexpr std::uint32_t kLastCode = 0x10ffff;
constexpr std::size_t kMaxProgram = 20000;  // instructions; {m,n} multiplies
constexpr int kMaxDepth = 200;              // nested groups
constexpr int kMaxRepeat = 1000;            // as in RE2

bool IsWord(std::uint32_t c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

}  // namespace

std::uint32_t NextCodePoint(absl::string_view text, std::size_t* at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const std::uint32_t first = byte((*at)++);
  const int more = first >= 0xf0 && first < 0xf8 ? 3 : first >= 0xe0 ? 2 : first >= 0xc0 ? 1 : 0;
  if (more == 0 || first >= 0xf8 || *at + static_cast<std::size_t>(more) > text.size())
    return first;
  std::uint32_t code = first & (0x3fu >> more);
  for (int i = 0; i < more; ++i) {
    const std::uint32_t next = byte(*at + static_cast<std::size_t>(i));
    if ((next & 0xc0) != 0x80) return first;
    code = (code << 6) | (next & 0x3f);
  }
  *at += static_cast<std::size_t>(more);
  return code;
}

void AppendCodePoint(std::uint32_t code, std::string* text) {
  const auto push = [&](std::uint32_t byte) { text->push_back(static_cast<char>(byte)); };
  if (code < 0x80) return push(code);
  if (code < 0x800) {
    push(0xc0 | (code >> 6));
  } else {
    if (code < 0x10000) {
      push(0xe0 | (code >> 12));
    } else {
      push(0xf0 | (code >> 18));
      push(0x80 | ((code >> 12) & 0x3f));
    }
    push(0x80 | ((code >> 6) & 0x3f));
  }
  push(0x80 | (code & 0x3f));
}

// Writes the program while it reads the pattern. A part of it is the instructions from some index
// on, whose jumps are relative until the end: parts can be copied for repeats.
class RegexParser {
 public:
  RegexParser(absl::string_view pattern, Regex* out) : text_(pattern), out_(*out) {}

  absl::Status Parse() {
    NPURT_RETURN_IF_ERROR(Alternatives(0));
    if (at_ < text_.size()) return Error("a ')' too many");
    Add({Regex::Op::kMatch});
    return absl::OkStatus();
  }

 private:
  using Op = Regex::Op;
  using Instruction = Regex::Instruction;

  absl::Status Error(absl::string_view what) const {
    return absl::InvalidArgumentError(
        absl::StrCat("pattern '", text_, "': ", what, " near position ", at_));
  }
  std::int32_t Size() const { return static_cast<std::int32_t>(out_.program_.size()); }
  void Add(Instruction i) { out_.program_.push_back(i); }
  void InsertAt(std::int32_t place, Instruction i) {
    out_.program_.insert(out_.program_.begin() + place, i);
  }
  bool More() const { return at_ < text_.size(); }

  // a|b: split to a, b; a jumps over b.
  absl::Status Alternatives(int depth) {
    if (depth > kMaxDepth) return Error("too many nested groups");
    const std::int32_t start = Size();
    NPURT_RETURN_IF_ERROR(Sequence(depth));
    while (More() && text_[at_] == '|') {
      ++at_;
      const std::int32_t length = Size() - start;
      InsertAt(start, {Op::kSplit, 1, length + 2});
      const std::int32_t jump = Size();
      Add({Op::kJump});
      NPURT_RETURN_IF_ERROR(Sequence(depth));
      out_.program_[static_cast<std::size_t>(jump)].x = Size() - jump;
    }
    return absl::OkStatus();
  }

  absl::Status Sequence(int depth) {
    while (More() && text_[at_] != '|' && text_[at_] != ')') {
      const std::int32_t start = Size();
      NPURT_RETURN_IF_ERROR(Atom(depth));
      NPURT_RETURN_IF_ERROR(Repeats(start));
      if (out_.program_.size() > kMaxProgram) return Error("too large");
    }
    return absl::OkStatus();
  }

  absl::Status Atom(int depth) {
    const char c = text_[at_];
    switch (c) {
      case '(':
        ++at_;
        if (text_.substr(at_, 2) == "?:") {
          at_ += 2;
        } else if (text_.substr(at_, 3) == "?P<" || text_.substr(at_, 2) == "?<") {
          at_ = text_.find('>', at_);
          if (at_ == absl::string_view::npos) {
            at_ = text_.size();
            return Error("an open group name");
          }
          ++at_;
        } else if (text_.substr(at_, 1) == "?") {
          return Error("an unknown group");
        }
        NPURT_RETURN_IF_ERROR(Alternatives(depth + 1));
        if (!More()) return Error("a ')' is missing");
        ++at_;
        return absl::OkStatus();
      case '[':
        return Class();
      case '.':
        ++at_;
        return Set({{0, '\n' - 1}, {'\n' + 1, kLastCode}}, false);
      case '^':
        ++at_;
        Add({Op::kBegin});
        return absl::OkStatus();
      case '$':
        ++at_;
        Add({Op::kEnd});
        return absl::OkStatus();
      case '*':
      case '+':
      case '?':
        return Error("nothing to repeat");
      case '\\':
        return Escape();
      default: {
        const std::uint32_t code = NextCodePoint(text_, &at_);
        return Set({{code, code}}, false);
      }
    }
  }

  absl::Status Set(const std::vector<Regex::Range>& ranges, bool negated) {
    const auto first = static_cast<std::int32_t>(out_.ranges_.size());
    out_.ranges_.insert(out_.ranges_.end(), ranges.begin(), ranges.end());
    Add({Op::kSet, first, static_cast<std::int32_t>(out_.ranges_.size()), negated});
    return absl::OkStatus();
  }

  // \d and its like; false if `c` is none of them.
  static bool NamedSet(char c, std::vector<Regex::Range>* ranges) {
    switch (c) {
      case 'd':
      case 'D':
        *ranges = {{'0', '9'}};
        return true;
      case 'w':
      case 'W':
        *ranges = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
        return true;
      case 's':
      case 'S':
        *ranges = {{'\t', '\n'}, {'\f', '\r'}, {' ', ' '}};
        return true;
      default:
        return false;
    }
  }
  static bool IsOpposite(char c) { return c >= 'A' && c <= 'Z'; }

  // The character after a backslash at `at_`.
  absl::StatusOr<std::uint32_t> EscapedCode() {
    const std::uint32_t c = NextCodePoint(text_, &at_);
    switch (c) {
      case 'n':
        return '\n';
      case 't':
        return '\t';
      case 'r':
        return '\r';
      case 'f':
        return '\f';
      case 'v':
        return '\v';
      case 'a':
        return '\a';
      case 'x': {
        std::uint32_t code = 0;
        const bool braces = More() && text_[at_] == '{';
        if (braces) ++at_;
        int digits = 0;
        for (; More() && digits < (braces ? 6 : 2); ++digits, ++at_) {
          const char h = text_[at_];
          const int value = h >= '0' && h <= '9'   ? h - '0'
                            : h >= 'a' && h <= 'f' ? h - 'a' + 10
                            : h >= 'A' && h <= 'F' ? h - 'A' + 10
                                                   : -1;
          if (value < 0) break;
          code = code * 16 + static_cast<std::uint32_t>(value);
        }
        if (digits == 0 || (!braces && digits != 2)) return Error("an incomplete \\x");
        if (braces) {
          if (!More() || text_[at_] != '}') return Error("an incomplete \\x");
          ++at_;
        }
        return code;
      }
      default:
        if (IsWord(c)) return Error("an unknown escape");
        return c;
    }
  }

  absl::Status Escape() {
    ++at_;
    if (!More()) return Error("a '\\' at the end");
    const char c = text_[at_];
    std::vector<Regex::Range> ranges;
    if (NamedSet(c, &ranges)) {
      ++at_;
      return Set(ranges, IsOpposite(c));
    }
    if (c == 'b' || c == 'B' || c == 'A' || c == 'z') {
      ++at_;
      Add({c == 'b' ? Op::kWordEdge : c == 'B' ? Op::kNotWordEdge : c == 'A' ? Op::kBegin : Op::kEnd});
      return absl::OkStatus();
    }
    NPURT_ASSIGN_OR_RETURN(const std::uint32_t code, EscapedCode());
    return Set({{code, code}}, false);
  }

  absl::Status Class() {
    ++at_;
    const bool negated = More() && text_[at_] == '^';
    if (negated) ++at_;
    std::vector<Regex::Range> all;
    bool first = true;
    while (More() && (first || text_[at_] != ']')) {
      first = false;
      std::vector<Regex::Range> named;
      if (text_.substr(at_, 2) == "[:") {
        const std::size_t end = text_.find(":]", at_);
        if (end == absl::string_view::npos) return Error("an open class name");
        if (!PosixSet(text_.substr(at_ + 2, end - at_ - 2), &named))
          return Error("an unknown class name");
        at_ = end + 2;
        all.insert(all.end(), named.begin(), named.end());
        continue;
      }
      if (text_[at_] == '\\' && at_ + 1 < text_.size() && NamedSet(text_[at_ + 1], &named)) {
        if (IsOpposite(text_[at_ + 1])) {
          std::uint32_t low = 0;
          for (const Regex::Range& r : named) {
            if (r.low > low) all.push_back({low, r.low - 1});
            low = r.high + 1;
          }
          all.push_back({low, kLastCode});
        } else {
          all.insert(all.end(), named.begin(), named.end());
        }
        at_ += 2;
        continue;
      }
      NPURT_ASSIGN_OR_RETURN(const std::uint32_t low, ClassCode());
      std::uint32_t high = low;
      if (at_ + 1 < text_.size() && text_[at_] == '-' && text_[at_ + 1] != ']') {
        ++at_;
        NPURT_ASSIGN_OR_RETURN(high, ClassCode());
        if (high < low) return Error("a range that runs backwards");
      }
      all.push_back({low, high});
    }
    if (!More()) return Error("a ']' is missing");
    ++at_;
    return Set(all, negated);
  }

  absl::StatusOr<std::uint32_t> ClassCode() {
    if (text_[at_] != '\\') return NextCodePoint(text_, &at_);
    ++at_;
    if (!More()) return Error("a '\\' at the end");
    return EscapedCode();
  }

  static bool PosixSet(absl::string_view name, std::vector<Regex::Range>* ranges) {
    if (name == "alpha") *ranges = {{'A', 'Z'}, {'a', 'z'}};
    else if (name == "digit") *ranges = {{'0', '9'}};
    else if (name == "alnum") *ranges = {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}};
    else if (name == "upper") *ranges = {{'A', 'Z'}};
    else if (name == "lower") *ranges = {{'a', 'z'}};
    else if (name == "space") *ranges = {{'\t', '\r'}, {' ', ' '}};
    else if (name == "punct") *ranges = {{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}};
    else if (name == "xdigit") *ranges = {{'0', '9'}, {'A', 'F'}, {'a', 'f'}};
    else if (name == "word") *ranges = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
    else return false;
    return true;
  }

  // "{m,n}" at `at_`; false if it is none, and then '{' is a character.
  bool Counts(int* least, int* most) {
    std::size_t i = at_ + 1;
    const auto number = [&](int* value) {
      const std::size_t start = i;
      *value = 0;
      for (; i < text_.size() && text_[i] >= '0' && text_[i] <= '9'; ++i)
        *value = std::min(*value * 10 + (text_[i] - '0'), kMaxRepeat + 1);
      return i > start;
    };
    if (!number(least)) return false;
    *most = *least;
    if (i < text_.size() && text_[i] == ',') {
      ++i;
      if (!number(most)) *most = -1;
    }
    if (i >= text_.size() || text_[i] != '}') return false;
    at_ = i + 1;
    return true;
  }

  absl::Status Repeats(std::int32_t start) {
    while (More()) {
      int least = 0, most = -1;
      const char c = text_[at_];
      if (c == '*') ++at_;
      else if (c == '+') least = 1, ++at_;
      else if (c == '?') most = 1, ++at_;
      else if (c != '{' || !Counts(&least, &most)) return absl::OkStatus();
      if (least > kMaxRepeat || most > kMaxRepeat || (most >= 0 && most < least))
        return Error("a repeat out of bounds");
      if (More() && text_[at_] == '?') ++at_;  // lazy: the same for a full match
      const std::vector<Instruction> body(out_.program_.begin() + start, out_.program_.end());
      const auto length = static_cast<std::int32_t>(body.size());
      if (body.size() * static_cast<std::size_t>(std::max({least, most, 1})) > kMaxProgram)
        return Error("too large");
      out_.program_.resize(static_cast<std::size_t>(start));
      const auto add_body = [&] {
        out_.program_.insert(out_.program_.end(), body.begin(), body.end());
      };
      for (int i = 0; i < least; ++i) add_body();
      if (most < 0) {
        Add({Op::kSplit, 1, length + 2});
        add_body();
        Add({Op::kJump, -(length + 1)});
      }
      for (int i = least; i < most; ++i) {
        // Each optional copy skips all that follow.
        Add({Op::kSplit, 1, (most - i) * (length + 1)});
        add_body();
      }
    }
    return absl::OkStatus();
  }

  const absl::string_view text_;
  std::size_t at_ = 0;
  Regex& out_;
};

absl::StatusOr<Regex> Regex::Compile(absl::string_view pattern) {
  Regex regex;
  RegexParser parser(pattern, &regex);
  NPURT_RETURN_IF_ERROR(parser.Parse());
  return regex;
}

bool Regex::FullMatch(absl::string_view text) const {
  const std::size_t size = program_.size();
  std::vector<std::int32_t> now, next, stack;
  std::vector<std::size_t> seen(size, 0);  // the step + 1 at which an instruction was added
  std::size_t step = 0, at = 0;
  std::uint32_t before = 0;
  bool has_before = false;
  // Follows what needs no character from `from` on.
  const auto add = [&](std::int32_t from, std::vector<std::int32_t>* list) {
    std::size_t peek = at;
    const bool has_after = at < text.size();
    const std::uint32_t after = has_after ? NextCodePoint(text, &peek) : 0;
    const bool edge = (has_before && IsWord(before)) != (has_after && IsWord(after));
    stack.assign(1, from);
    while (!stack.empty()) {
      const std::int32_t pc = stack.back();
      stack.pop_back();
      const std::size_t i = static_cast<std::size_t>(pc);
      if (seen[i] == step + 1) continue;
      seen[i] = step + 1;
      const Instruction& in = program_[i];
      switch (in.op) {
        case Op::kSplit:
          stack.push_back(pc + in.x);
          stack.push_back(pc + in.y);
          break;
        case Op::kJump:
          stack.push_back(pc + in.x);
          break;
        case Op::kBegin:
          if (!has_before) stack.push_back(pc + 1);
          break;
        case Op::kEnd:
          if (!has_after) stack.push_back(pc + 1);
          break;
        case Op::kWordEdge:
          if (edge) stack.push_back(pc + 1);
          break;
        case Op::kNotWordEdge:
          if (!edge) stack.push_back(pc + 1);
          break;
        case Op::kSet:
        case Op::kMatch:
          list->push_back(pc);
          break;
      }
    }
  };
  add(0, &now);
  while (at < text.size() && !now.empty()) {
    const std::uint32_t c = NextCodePoint(text, &at);
    before = c;
    has_before = true;
    ++step;
    next.clear();
    for (std::int32_t pc : now) {
      const Instruction& in = program_[static_cast<std::size_t>(pc)];
      if (in.op != Op::kSet) continue;
      bool inside = false;
      for (std::int32_t r = in.x; r < in.y && !inside; ++r) {
        const Range& range = ranges_[static_cast<std::size_t>(r)];
        inside = c >= range.low && c <= range.high;
      }
      if (inside != in.negated) add(pc + 1, &next);
    }
    now.swap(next);
  }
  if (at < text.size()) return false;
  return std::any_of(now.begin(), now.end(), [&](std::int32_t pc) {
    return program_[static_cast<std::size_t>(pc)].op == Op::kMatch;
  });
}

}  // namespace npurt::ops
