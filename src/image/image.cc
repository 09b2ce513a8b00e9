#include "image/image.h"

#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace npurt::image {
namespace {

struct Magic {
  Format format;
  std::size_t at, size;
  char bytes[13];
};

// The first that fits.
constexpr Magic kMagics[] = {
    {Format::kBmp, 0, 2, "BM"},
    {Format::kJpeg, 0, 3, "\xff\xd8\xff"},
    {Format::kPng, 0, 8, "\x89PNG\r\n\x1a\n"},
    {Format::kTiff, 0, 4, "II*\0"},
    {Format::kTiff, 0, 4, "MM\0*"},
    {Format::kTiff, 0, 4, "II+\0"},
    {Format::kTiff, 0, 4, "MM\0+"},
    {Format::kWebp, 8, 4, "WEBP"},
    {Format::kJpeg2000, 0, 12, "\0\0\0\x0cjP  \r\n\x87\n"},
    {Format::kJpeg2000, 0, 4, "\xff\x4f\xff\x51"},
};

}  // namespace

Format FormatOf(Bytes file) {
  for (const Magic& magic : kMagics)
    if (file.size() >= magic.at + magic.size &&
        std::memcmp(file.data() + magic.at, magic.bytes, magic.size) == 0)
      return magic.format;
  if (file.size() > 2 && file[0] == 'P' && file[1] >= '1' && file[1] <= '6') return Format::kPnm;
  return Format::kUnknown;
}

absl::StatusOr<Picture> NewPicture(std::uint64_t width, std::uint64_t height) {
  if (width == 0 || height == 0 || width > kMaxPixels || height > kMaxPixels / width)
    return absl::InvalidArgumentError(
        absl::StrCat("a picture of ", width, " x ", height, " pixels, want 1 to ", kMaxPixels));
  Picture picture;
  picture.width = static_cast<std::int64_t>(width);
  picture.height = static_cast<std::int64_t>(height);
  // Pages that no decoder fills are never touched: a header that lies costs little.
  picture.rgb.reset(static_cast<std::uint8_t*>(std::calloc(width * height, 3)));
  if (picture.rgb == nullptr)
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory for a picture of ", width, " x ", height, " pixels"));
  return picture;
}

absl::StatusOr<Picture> DecodePicture(Bytes file) {
  switch (const Format format = FormatOf(file)) {
    case Format::kUnknown:
      return absl::InvalidArgumentError(absl::StrCat(
          file.size(), " bytes that are no BMP, PNM, JPEG, PNG, TIFF, WebP or JPEG 2000 file"));
    case Format::kBmp:
      return DecodeBmp(file);
    case Format::kPnm:
      return DecodePnm(file);
    default:
      return DecodeByModule(format, file);
  }
}

}  // namespace npurt::image
