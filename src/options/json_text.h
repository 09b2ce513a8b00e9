// JSON that people write by hand: a tree that remembers where everything stood, so that an error
// can say line and column. Comments may be allowed; names in an object must differ.
//
// Thread safety: values.
#ifndef NPURT_OPTIONS_JSON_TEXT_H_
#define NPURT_OPTIONS_JSON_TEXT_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/status.h"

namespace npurt::options {

// Where an error is: "ops.json:3:14: "; without a file "line 3, column 14: ".
struct Place {
  int line = 1, column = 1;
};
absl::Status ErrorAt(absl::string_view file, Place place, absl::string_view what);

struct JsonNode {
  struct Member;
  enum class Kind { kNull, kBool, kNumber, kString, kArray, kObject };
  Kind kind = Kind::kNull;
  std::string text;             // of strings, numbers, true and false
  std::vector<JsonNode> items;  // of arrays
  std::vector<Member> members;  // of objects
  Place place;

  // Null if there is none.
  const JsonNode* Find(absl::string_view name) const;
};
struct JsonNode::Member {
  std::string name;
  JsonNode value;
  Place place;  // of the name
};

// "an object", "a string" ...
const char* JsonKindName(JsonNode::Kind kind);

// `file` is for errors. Depth is limited to 32.
absl::StatusOr<JsonNode> ParseJson(absl::string_view text, absl::string_view file,
                                   bool comments = false);

}  // namespace npurt::options

#endif  // NPURT_OPTIONS_JSON_TEXT_H_
