#include "image/codecs/codecs.h"

extern "C" __attribute__((visibility("default"))) bool npurt_image_decode_1(
    npurt::image::Format format, const std::uint8_t* data, std::size_t size,
    const npurt::image::Sink* sink) {
  using npurt::image::Format;
  switch (format) {
    case Format::kJpeg:
      return npurt::image::DecodeJpeg(data, size, *sink);
    case Format::kJpeg2000:
      return npurt::image::DecodeJpeg2000(data, size, *sink);
    case Format::kPng:
      return npurt::image::DecodePng(data, size, *sink);
    case Format::kTiff:
      return npurt::image::DecodeTiff(data, size, *sink);
    case Format::kWebp:
      return npurt::image::DecodeWebp(data, size, *sink);
    default:
      return npurt::image::Fail(*sink, "a format that the module does not read");
  }
}
