// DecodePicture: a picture file in memory as rows of 8-bit pixels.
//
// BMP and PNM are read here; JPEG, PNG, TIFF, WebP and JPEG 2000 by Debian's libraries through the
// module of codec.h. Alpha is dropped, 16-bit samples keep their high byte, animations are refused.
// Files are from strangers: sizes are checked before memory is taken, and what is damaged or cut
// short is an error.
//
// Thread safety: free functions.
#ifndef NPURT_IMAGE_IMAGE_H_
#define NPURT_IMAGE_IMAGE_H_

#include <cstdint>
#include <cstdlib>
#include <memory>

#include "absl/types/span.h"
#include "base/status.h"
#include "image/codec.h"

namespace npurt::image {

// The most pixels of a picture: 768 MiB as RGB; and of a compressed one, by the size of its file. A
// blank page of a fax has some ten thousand a byte; beyond that a few bytes only ask for memory.
inline constexpr std::uint64_t kMaxPixels = std::uint64_t{1} << 28;
inline constexpr std::uint64_t kMaxPixelsPerByte = std::uint64_t{1} << 16;

struct Freed {
  void operator()(std::uint8_t* bytes) const { std::free(bytes); }
};
struct Picture {
  std::int64_t width = 0, height = 0;
  std::unique_ptr<std::uint8_t[], Freed> rgb;  // rows from the top, three bytes a pixel
};

using Bytes = absl::Span<const std::uint8_t>;

// By the first bytes.
Format FormatOf(Bytes file);

absl::StatusOr<Picture> DecodePicture(Bytes file);

// Luma of a pixel, by the weights of ITU-R BT.601.
inline std::uint8_t GrayOf(const std::uint8_t* rgb) {
  return static_cast<std::uint8_t>((rgb[0] * 19595u + rgb[1] * 38470u + rgb[2] * 7471u + 0x8000u) >>
                                   16);
}

// --- the parts
// -------------------------------------------------------------------------------------

// Memory for a picture of this size, zeroed; an error if it is empty or too large.
absl::StatusOr<Picture> NewPicture(std::uint64_t width, std::uint64_t height);
absl::StatusOr<Picture> DecodeBmp(Bytes file);
absl::StatusOr<Picture> DecodePnm(Bytes file);
// Loads the module if need be. UNIMPLEMENTED if it is not installed.
absl::StatusOr<Picture> DecodeByModule(Format format, Bytes file);

}  // namespace npurt::image

#endif  // NPURT_IMAGE_IMAGE_H_
