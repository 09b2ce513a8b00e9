// Wire: reads protobuf messages from memory, and turns every damage into an error with its place.
//
// A Reader walks the fields of one message. After the first damage (the bytes end early, a number
// is too long, a field has another wire type than its name says) every Reader of the same Wire
// stops and all values read as empty; so parsing code has no error paths, it looks at Wire::status
// once. A place is a byte offset from the start of the file and a path,
// "graph.node[12].attribute[3].t.dims".
//
// The walk is ours because protozero's own reader takes lengths modulo 2^32, and models are larger;
// numbers are decoded by protozero.
//
// Lifetime: values are views of the bytes. Thread safety: one thread per Wire.
#ifndef NPURT_FORMATS_ONNX_WIRE_H_
#define NPURT_FORMATS_ONNX_WIRE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/status.h"
#include "formats/onnx/limits.h"

namespace npurt::formats::onnx {

// Where a message lies: a list on the stack, from the field up to the root.
struct Place {
  const Place* parent = nullptr;
  const char* field = nullptr;
  std::int64_t index = -1;  // of a repeated field
};

// What all readers of one file share.
class Wire {
 public:
  // `file` is only used to count offsets; `limits` must stay.
  Wire(absl::string_view file, const Limits& limits)
      : begin_(file.data()), limits_(limits), messages_left_(limits.max_messages) {}

  const absl::Status& status() const { return status_; }
  const Limits& limits() const { return limits_; }
  // Keeps the first error and stops all readers. `at` is in the file.
  void Fail(absl::StatusCode code, const char* at, const Place* place, const char* field,
            absl::string_view what);
  // Takes memory from max_expanded_bytes; false if there is not enough left.
  bool TakeExpanded(std::size_t bytes);

 private:
  friend class Reader;
  const char* begin_;
  const Limits& limits_;
  std::int64_t messages_left_;
  std::size_t expanded_bytes_ = 0;
  int depth_ = 0;
  absl::Status status_;
};

class Reader {
 public:
  Reader(absl::string_view message, Wire* wire, const Place* place = nullptr)
      : at_(message.data()), end_(message.data() + message.size()), wire_(wire), place_(place) {}

  // Goes to the next field. False at the end of the message, or after damage.
  bool Next();
  int field() const { return field_; }

  // The value of the current field, each at most once. `name` is for errors.
  std::int64_t Int(const char* name);
  float Float(const char* name);
  absl::string_view Bytes(const char* name);
  // A name: Bytes of limited length.
  absl::string_view Name(const char* name);
  // Appends one number, or all of a packed list.
  void Ints(const char* name, std::vector<std::int64_t>* out);
  void Floats(const char* name, std::vector<float>* out);
  // The encoded numbers of a list, packed or single: for bulk data. `packed` says which.
  absl::string_view Chunk(const char* name, bool* packed);
  void Skip() { SkipValue("?"); }

  // Reads the current field as a message: f(Reader&). `index` counts repeated fields.
  template <typename F>
  void Message(const char* name, std::int64_t index, F&& f) {
    const absl::string_view bytes = Bytes(name);
    if (!Enter(name)) return;
    const Place place{place_, name, index};
    Reader reader(bytes, wire_, &place);
    std::forward<F>(f)(reader);
    --wire_->depth_;
  }

  // Says that the message is wrong; stops all readers.
  void Fail(absl::StatusCode code, const char* field, absl::string_view what) {
    wire_->Fail(code, value_, place_, field, what);
  }
  bool ok() const { return wire_->status_.ok(); }
  Wire* wire() const { return wire_; }

 private:
  bool Enter(const char* name);
  bool Expect(int wire_type, const char* name);
  std::uint64_t Varint(const char* name);
  void SkipValue(const char* name);

  const char* at_;
  const char* end_;
  Wire* wire_;
  const Place* place_;
  const char* value_ = at_;  // where the current field starts
  int field_ = 0;
  int wire_type_ = 0;
  bool pending_ = false;  // the value of the current field was not read yet
};

// Decodes a list of varints, calling f(uint64). The bytes were checked by nobody: false if they end
// in the middle of a number.
template <typename F>
bool ForEachVarint(absl::string_view packed, F&& f);
bool NextVarint(const char** at, const char* end, std::uint64_t* out);

template <typename F>
bool ForEachVarint(absl::string_view packed, F&& f) {
  const char* at = packed.data();
  const char* const end = at + packed.size();
  while (at != end) {
    std::uint64_t value;
    if (!NextVarint(&at, end, &value)) return false;
    f(value);
  }
  return true;
}

}  // namespace npurt::formats::onnx

#endif  // NPURT_FORMATS_ONNX_WIRE_H_
