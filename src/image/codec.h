// The contract between the library and its module of picture codecs, libnpurt_image.so.
//
// The module is a file of its own so that the library itself needs none of the codecs: it is loaded
// when a model first meets a picture of such a format. The function's name has the number of this
// contract; a module that lacks it is of another version.
//
// Thread safety: decoding is free-threaded. Nothing throws across this line, in either direction.
#ifndef NPURT_IMAGE_CODEC_H_
#define NPURT_IMAGE_CODEC_H_

#include <cstddef>
#include <cstdint>

namespace npurt::image {

enum class Format : int { kUnknown, kBmp, kPnm, kJpeg, kPng, kTiff, kWebp, kJpeg2000 };

// Where a codec puts the picture.
struct Sink {
  void* user;
  std::uint64_t max_pixels;  // what `allocate` would give at most
  // Memory for `height` rows of `width` RGB pixels, or null: too large. Called at most once.
  std::uint8_t* (*allocate)(void* user, std::uint64_t width, std::uint64_t height);
  // Says why decoding fails; the text is copied.
  void (*fail)(void* user, const char* why);
};

// True on success; else `fail` was called, or `allocate` returned null.
using Decode = bool (*)(Format format, const std::uint8_t* data, std::size_t size,
                        const Sink* sink);

inline constexpr char kModule[] = "libnpurt_image.so";
inline constexpr char kDecode[] = "npurt_image_decode_1";

}  // namespace npurt::image

#endif  // NPURT_IMAGE_CODEC_H_
