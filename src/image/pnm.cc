// PNM: P1 to P6, text or bytes, black and white, grey or colour.
#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "image/image.h"

namespace npurt::image {
namespace {

bool IsSpace(std::uint8_t c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

class Reader {
 public:
  explicit Reader(Bytes file) : file_(file) {}

  // The next number of the header or of a text picture; comments run from '#' to the line's end.
  std::optional<std::uint32_t> Number() {
    SkipSpace();
    std::uint64_t value = 0;
    const std::size_t first = at_;
    for (; at_ < file_.size() && file_[at_] >= '0' && file_[at_] <= '9'; ++at_) {
      value = value * 10 + (file_[at_] - '0');
      if (value > UINT32_MAX) return std::nullopt;
    }
    if (at_ == first) return std::nullopt;
    return static_cast<std::uint32_t>(value);
  }
  // One digit 0 or 1 of a text bitmap, which need no space between them.
  std::optional<std::uint32_t> Digit() {
    SkipSpace();
    if (at_ >= file_.size() || file_[at_] < '0' || file_[at_] > '1') return std::nullopt;
    return file_[at_++] - '0';
  }
  // What follows the header: one space, then bytes.
  Bytes Rest() { return file_.subspan(std::min(at_ + 1, file_.size())); }

 private:
  void SkipSpace() {
    for (; at_ < file_.size() && (IsSpace(file_[at_]) || file_[at_] == '#'); ++at_)
      if (file_[at_] == '#')
        while (at_ + 1 < file_.size() && file_[at_] != '\n') ++at_;
  }
  Bytes file_;
  std::size_t at_ = 2;
};

absl::Status TooShort() { return absl::InvalidArgumentError("the PNM file is cut short"); }

// Sample 0 … maximum as a byte, rounded.
std::uint8_t ByteOf(std::uint32_t sample, std::uint32_t maximum) {
  return static_cast<std::uint8_t>((std::min(sample, maximum) * 255u + maximum / 2) / maximum);
}

}  // namespace

absl::StatusOr<Picture> DecodePnm(Bytes file) {
  const int kind = file[1] - '0';
  const bool text = kind <= 3, bitmap = kind % 3 == 1;
  const std::uint64_t parts = kind % 3 == 0 ? 3 : 1;
  Reader reader(file);
  const auto width = reader.Number(), height = reader.Number();
  const auto maximum = bitmap ? std::optional<std::uint32_t>(1) : reader.Number();
  if (!width || !height || !maximum || *maximum == 0 || *maximum > 65535)
    return absl::InvalidArgumentError("the PNM file's header is damaged");
  // A picture takes a bit of the file for each pixel at least: no memory for what cannot be there.
  const std::uint64_t row_bits = std::uint64_t{*width} * parts *
                                 (bitmap           ? 1
                                  : *maximum > 255 ? 16
                                                   : 8);
  const std::uint64_t row_bytes = text ? std::uint64_t{*width} * parts : (row_bits + 7) / 8;
  const Bytes rest = reader.Rest();
  if (row_bytes > 0 && *height > (rest.size() + 1) / row_bytes) return TooShort();
  NPURT_ASSIGN_OR_RETURN(Picture picture, NewPicture(*width, *height));
  std::uint8_t* out = picture.rgb.get();
  for (std::uint64_t y = 0; y < *height; ++y)
    for (std::uint64_t x = 0; x < *width; ++x, out += 3)
      for (std::uint64_t c = 0; c < parts; ++c) {
        std::optional<std::uint32_t> sample;
        const std::uint64_t at = y * row_bytes;
        const std::uint64_t i = x * parts + c;
        if (text) {
          sample = bitmap ? reader.Digit() : reader.Number();
        } else if (bitmap) {
          if (at + i / 8 < rest.size()) sample = rest[at + i / 8] >> (7 - i % 8) & 1;
        } else if (*maximum > 255) {
          if (at + 2 * i + 1 < rest.size()) sample = rest[at + 2 * i] * 256u + rest[at + 2 * i + 1];
        } else if (at + i < rest.size()) {
          sample = rest[at + i];
        }
        if (!sample) return TooShort();
        // One is black.
        out[c] =
            bitmap ? static_cast<std::uint8_t>(*sample != 0 ? 0 : 255) : ByteOf(*sample, *maximum);
        if (parts == 1) out[1] = out[2] = out[0];
      }
  return picture;
}

}  // namespace npurt::image
