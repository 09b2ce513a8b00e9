#include "formats/onnx/wire.h"

#include <cstring>
#include <protozero/exception.hpp>
#include <protozero/varint.hpp>

#include "absl/strings/str_cat.h"

namespace npurt::formats::onnx {
namespace {

enum WireType { kVarint = 0, kFixed64 = 1, kLength = 2, kFixed32 = 5 };

std::string PathOf(const Place* place, const char* field) {
  std::string path;
  if (place != nullptr) {
    path = PathOf(place->parent, place->field);
    if (place->index >= 0) absl::StrAppend(&path, "[", place->index, "]");
  }
  if (field != nullptr) absl::StrAppend(&path, path.empty() ? "" : ".", field);
  return path;
}

}  // namespace

bool NextVarint(const char** at, const char* end, std::uint64_t* out) {
  if (*at != end && static_cast<signed char>(**at) >= 0) {
    *out = static_cast<std::uint64_t>(*(*at)++);
    return true;
  }
  try {
    *out = protozero::decode_varint(at, end);
    return true;
  } catch (const protozero::exception&) {
    return false;
  }
}

void Wire::Fail(absl::StatusCode code, const char* at, const Place* place, const char* field,
                absl::string_view what) {
  if (!status_.ok()) return;
  const std::string path = PathOf(place, field);
  status_ = absl::Status(
      code, absl::StrCat("byte ", at - begin_, path.empty() ? "" : ", ", path, ": ", what));
}

bool Wire::TakeExpanded(std::size_t bytes) {
  if (bytes > limits_.max_expanded_bytes - expanded_bytes_) return false;
  expanded_bytes_ += bytes;
  return true;
}

bool Reader::Next() {
  if (!ok()) return false;
  if (pending_) Skip();
  if (at_ == end_ || !ok()) return false;
  value_ = at_;
  std::uint64_t key;
  if (!NextVarint(&at_, end_, &key)) {
    Fail(absl::StatusCode::kDataLoss, nullptr, "is cut off");
    return false;
  }
  wire_type_ = static_cast<int>(key & 7);
  if (key >> 3 == 0 || key >> 3 > 0x1fffffff || (wire_type_ > kLength && wire_type_ != kFixed32)) {
    Fail(absl::StatusCode::kDataLoss, nullptr, absl::StrCat("no protobuf field has the key ", key));
    return false;
  }
  field_ = static_cast<int>(key >> 3);
  pending_ = true;
  return true;
}

bool Reader::Expect(int wire_type, const char* name) {
  pending_ = false;
  if (!ok()) return false;
  if (wire_type_ == wire_type) return true;
  Fail(absl::StatusCode::kDataLoss, name,
       absl::StrCat("has wire type ", wire_type_, ", want ", wire_type));
  return false;
}

std::uint64_t Reader::Varint(const char* name) {
  std::uint64_t value;
  if (NextVarint(&at_, end_, &value)) return value;
  Fail(absl::StatusCode::kDataLoss, name, "is cut off, or a number of more than 64 bits");
  return 0;
}

std::int64_t Reader::Int(const char* name) {
  return Expect(kVarint, name) ? static_cast<std::int64_t>(Varint(name)) : 0;
}

float Reader::Float(const char* name) {
  if (!Expect(kFixed32, name)) return 0;
  float value = 0;
  if (end_ - at_ < 4) {
    Fail(absl::StatusCode::kDataLoss, name, "is cut off");
    return 0;
  }
  std::memcpy(&value, at_, 4);
  at_ += 4;
  return value;
}

absl::string_view Reader::Bytes(const char* name) {
  if (!Expect(kLength, name)) return {};
  const std::uint64_t size = Varint(name);
  if (!ok()) return {};
  const auto left = static_cast<std::uint64_t>(end_ - at_);
  if (size > left) {
    Fail(absl::StatusCode::kDataLoss, name,
         absl::StrCat("is cut off: says ", size, " bytes, has ", left));
    return {};
  }
  const absl::string_view bytes(at_, size);
  at_ += size;
  return bytes;
}

absl::string_view Reader::Name(const char* name) {
  const absl::string_view bytes = Bytes(name);
  if (bytes.size() > wire_->limits_.max_name_bytes) {
    Fail(absl::StatusCode::kResourceExhausted, name,
         absl::StrCat("a name of ", bytes.size(), " bytes, the limit is ",
                      wire_->limits_.max_name_bytes));
    return {};
  }
  return bytes;
}

absl::string_view Reader::Chunk(const char* name, bool* packed) {
  *packed = wire_type_ == kLength;
  if (*packed) return Bytes(name);
  const char* const start = at_;
  SkipValue(name);
  return ok() ? absl::string_view(start, static_cast<std::size_t>(at_ - start))
              : absl::string_view();
}

void Reader::Ints(const char* name, std::vector<std::int64_t>* out) {
  if (wire_type_ != kLength) {
    out->push_back(Int(name));
  } else if (!ForEachVarint(Bytes(name), [out](std::uint64_t value) {
               out->push_back(static_cast<std::int64_t>(value));
             })) {
    Fail(absl::StatusCode::kDataLoss, name, "ends in the middle of a number");
  }
}

void Reader::Floats(const char* name, std::vector<float>* out) {
  if (wire_type_ != kLength) {
    out->push_back(Float(name));
    return;
  }
  const absl::string_view bytes = Bytes(name);
  if (bytes.size() % 4 != 0)
    return Fail(absl::StatusCode::kDataLoss, name, "ends in the middle of a number");
  const std::size_t old = out->size();
  out->resize(old + bytes.size() / 4);
  if (!bytes.empty()) std::memcpy(out->data() + old, bytes.data(), bytes.size());
}

void Reader::SkipValue(const char* name) {
  switch (wire_type_) {
    case kVarint:
      Int(name);
      return;
    case kLength:
      Bytes(name);
      return;
    default: {
      pending_ = false;
      const std::ptrdiff_t size = wire_type_ == kFixed64 ? 8 : 4;
      if (!ok()) return;
      if (end_ - at_ < size) return Fail(absl::StatusCode::kDataLoss, name, "is cut off");
      at_ += size;
    }
  }
}

bool Reader::Enter(const char* name) {
  if (!ok()) return false;
  if (wire_->messages_left_-- <= 0) {
    Fail(absl::StatusCode::kResourceExhausted, name,
         absl::StrCat("has more than ", wire_->limits_.max_messages, " messages"));
    return false;
  }
  if (wire_->depth_ >= wire_->limits_.max_message_depth) {
    Fail(absl::StatusCode::kResourceExhausted, name,
         absl::StrCat("messages are nested more than ", wire_->limits_.max_message_depth, " deep"));
    return false;
  }
  ++wire_->depth_;
  return true;
}

}  // namespace npurt::formats::onnx
