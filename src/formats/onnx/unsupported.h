// UnsupportedNodes: what cannot be run, collected so that one error tells all of it.
//
// Thread safety: one thread.
#ifndef NPURT_FORMATS_ONNX_UNSUPPORTED_H_
#define NPURT_FORMATS_ONNX_UNSUPPORTED_H_

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace npurt::formats::onnx {

class UnsupportedNodes {
 public:
  void Add(const std::string& where, absl::string_view why) {
    if (count_++ < kMaxLines) lines_.push_back(absl::StrCat(where, ": ", why));
  }

  // What was added after `count` was count() was not meant.
  std::size_t count() const { return count_; }
  void ForgetAfter(std::size_t count) {
    count_ = count;
    if (lines_.size() > count) lines_.resize(count);
  }

  // OK, or UNIMPLEMENTED with a line for each of the first.
  absl::Status ToStatus() const {
    if (count_ == 0) return absl::OkStatus();
    std::string text =
        absl::StrCat(count_, count_ == 1 ? " node is" : " nodes are", " not supported:");
    for (const std::string& line : lines_) absl::StrAppend(&text, "\n  ", line);
    if (count_ > lines_.size()) absl::StrAppend(&text, "\n  and ", count_ - lines_.size(), " more");
    return absl::UnimplementedError(text);
  }

 private:
  static constexpr std::size_t kMaxLines = 50;
  std::vector<std::string> lines_;
  std::size_t count_ = 0;
};

}  // namespace npurt::formats::onnx

#endif  // NPURT_FORMATS_ONNX_UNSUPPORTED_H_
