// Regex: full matches of regular expressions in time linear in the text.
//
// The idea: the expression becomes a small program whose instructions are simulated in parallel
// (Thompson 1968), so no pattern is slow. Understands literals, ., classes, \d \w \s \b and their
// opposites, ^ $, groups, |, and the repeats * + ? {m,n}; works on UTF-8 code points. No
// back-references, no look-around: like RE2, which ONNX names.
//
// Thread safety: immutable once compiled.
#ifndef NPURT_OPS_REGEX_H_
#define NPURT_OPS_REGEX_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/status.h"

namespace npurt::ops {

// The code point at `*at` of UTF-8 text; moves `*at` behind it. A byte that is not UTF-8 stands for
// itself.
std::uint32_t NextCodePoint(absl::string_view text, std::size_t* at);
void AppendCodePoint(std::uint32_t code, std::string* text);

class Regex {
 public:
  static absl::StatusOr<Regex> Compile(absl::string_view pattern);
  bool FullMatch(absl::string_view text) const;

 private:
  friend class RegexParser;
  enum class Op : std::uint8_t { kSet, kSplit, kJump, kBegin, kEnd, kWordEdge, kNotWordEdge, kMatch };
  struct Range {
    std::uint32_t low, high;
  };
  struct Instruction {
    Op op;
    std::int32_t x = 0, y = 0;  // targets of kSplit and kJump
    bool negated = false;       // kSet: ranges [x, y) of ranges_
  };
  std::vector<Instruction> program_;
  std::vector<Range> ranges_;
};

}  // namespace npurt::ops

#endif  // NPURT_OPS_REGEX_H_
