// WebP with libwebp, lossy and lossless; animations are not read.
#include <webp/decode.h>

#include "image/codecs/codecs.h"

namespace npurt::image {

bool DecodeWebp(const std::uint8_t* data, std::size_t size, const Sink& sink) {
  WebPBitstreamFeatures features;
  if (WebPGetFeatures(data, size, &features) != VP8_STATUS_OK) return Fail(sink, "no WebP header");
  if (features.has_animation != 0) return Fail(sink, "an animation");
  const std::size_t width = static_cast<std::size_t>(features.width),
                    height = static_cast<std::size_t>(features.height);
  std::uint8_t* rgb = sink.allocate(sink.user, width, height);
  if (rgb == nullptr) return false;
  if (WebPDecodeRGBInto(data, size, rgb, 3 * width * height, 3 * features.width) == nullptr)
    return Fail(sink, "libwebp cannot decode it");
  return true;
}

}  // namespace npurt::image
