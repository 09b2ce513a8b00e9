// Lexer: the tokens of a graph's text, and errors with line and column.
//
// Thread safety: one thread.
#ifndef NPURT_GRAPH_TEXT_LEXER_H_
#define NPURT_GRAPH_TEXT_LEXER_H_

#include <algorithm>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "graph/text_words.h"

namespace npurt::graph::text {

// A token is a view of the text; kinds are told by the first character.
enum class Kind { kEnd, kNewline, kWord, kString, kNumber, kPunctuation, kBlob };

class Lexer {
 protected:
  explicit Lexer(absl::string_view text) : text_(text) {}

  void Advance() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\r' || text_[at_] == '\t'))
      ++at_;
    start_ = at_;
    if (at_ == text_.size()) return SetToken(Kind::kEnd);
    const char c = text_[at_];
    if (c == '\n') {
      ++at_;
      return SetToken(Kind::kNewline);
    }
    if (c == '#') {
      // A blob's name has no blank behind the '#'.
      if (at_ + 1 < text_.size() && IsWordChar(text_[at_ + 1])) {
        ++at_;
        while (at_ < text_.size() && IsWordChar(text_[at_])) ++at_;
        return SetToken(Kind::kBlob);
      }
      while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      return Advance();
    }
    if (c == '"') {
      for (++at_; at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\n'; ++at_)
        if (text_[at_] == '\\') ++at_;
      if (at_ >= text_.size() || text_[at_] != '"') {
        at_ = std::min(at_, text_.size());
        return SetToken(Kind::kEnd);  // reported as what is wanted instead
      }
      ++at_;
      return SetToken(Kind::kString);
    }
    const bool number = absl::ascii_isdigit(static_cast<unsigned char>(c)) || c == '-' || c == '+';
    if (number || IsWordChar(c)) {
      while (at_ < text_.size() && (IsWordChar(text_[at_]) || text_[at_] == '+')) ++at_;
      return SetToken(number ? Kind::kNumber : Kind::kWord);
    }
    ++at_;
    SetToken(Kind::kPunctuation);
  }

  void SetToken(Kind kind) {
    kind_ = kind;
    token_ = text_.substr(start_, at_ - start_);
  }

  absl::Status ErrorHere(absl::StatusCode code, absl::string_view what) const {
    std::size_t line = 1, column = 1;
    for (std::size_t i = 0; i < start_; ++i) {
      ++column;
      if (text_[i] != '\n') continue;
      ++line;
      column = 1;
    }
    return absl::Status(code, absl::StrCat("line ", line, ", column ", column, ": ", what));
  }

  absl::Status Error(absl::string_view what) const {
    return ErrorHere(absl::StatusCode::kInvalidArgument, what);
  }

  // The error of what stands at `start`.
  template <typename T>
  absl::Status At(std::size_t start, const absl::StatusOr<T>& result) {
    if (result.ok()) return absl::OkStatus();
    start_ = start;
    return ErrorHere(result.status().code(), result.status().message());
  }

  absl::Status Want(absl::string_view what) const {
    const std::string got = kind_ == Kind::kEnd ? "the end of the text or an open string"
                            : kind_ == Kind::kNewline
                                ? "the end of the line"
                                : absl::StrCat("'", token_.substr(0, 40), "'");
    return Error(absl::StrCat("got ", got, ", want ", what));
  }

  bool IsWord(absl::string_view word) const { return kind_ == Kind::kWord && token_ == word; }
  bool Is(char c) const { return kind_ == Kind::kPunctuation && token_[0] == c; }
  bool Take(char c) {
    if (!Is(c)) return false;
    Advance();
    return true;
  }
  bool TakeWord(absl::string_view word) {
    if (!IsWord(word)) return false;
    Advance();
    return true;
  }
  absl::Status Expect(char c) {
    return Take(c) ? absl::OkStatus() : Want(absl::StrCat("'", absl::string_view(&c, 1), "'"));
  }
  void SkipNewlines() {
    while (kind_ == Kind::kNewline) Advance();
  }

  absl::StatusOr<std::string> String() {
    if (kind_ != Kind::kString) return Want("a string");
    std::string value;
    if (!absl::CUnescape(token_.substr(1, token_.size() - 2), &value))
      return Error("an escape sequence that is none");
    Advance();
    return value;
  }

  absl::StatusOr<std::string> Name(absl::string_view what) {
    if (kind_ == Kind::kString) return String();
    if (kind_ != Kind::kWord) return Want(what);
    const std::string name(token_);
    Advance();
    return name;
  }

  absl::StatusOr<std::int64_t> Integer() {
    std::int64_t value;
    if (kind_ != Kind::kNumber || !absl::SimpleAtoi(token_, &value)) return Want("an integer");
    Advance();
    return value;
  }

  bool IsReal() const {
    return IsWord("nan") || IsWord("inf") ||
           (kind_ == Kind::kNumber && token_.find_first_of(".eni") != absl::string_view::npos);
  }

  absl::StatusOr<double> Real() {
    double value;
    if ((kind_ != Kind::kNumber && kind_ != Kind::kWord) || !absl::SimpleAtod(token_, &value))
      return Want("a number");
    Advance();
    return value;
  }

  // A float of its own decimal: not a double rounded once more.
  absl::StatusOr<float> Float() {
    float value;
    if ((kind_ != Kind::kNumber && kind_ != Kind::kWord) || !absl::SimpleAtof(token_, &value))
      return Want("a number");
    Advance();
    return value;
  }

  // Calls item() between brackets until `close`.
  template <typename F>
  absl::Status List(char close, F&& item) {
    if (Take(close)) return absl::OkStatus();
    do {
      NPURT_RETURN_IF_ERROR(item());
    } while (Take(','));
    return Expect(close);
  }

  const absl::string_view text_;
  std::size_t at_ = 0, start_ = 0;  // behind and at the current token
  Kind kind_ = Kind::kEnd;
  absl::string_view token_;
};

}  // namespace npurt::graph::text

#endif  // NPURT_GRAPH_TEXT_LEXER_H_
