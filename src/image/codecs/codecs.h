// The codecs behind npurt_image_decode_1; each reads one format with one library. See codec.h.
//
// A codec must not leave an object with a destructor in a frame that its library jumps over.
//
// Thread safety: free functions.
#ifndef NPURT_IMAGE_CODECS_CODECS_H_
#define NPURT_IMAGE_CODECS_CODECS_H_

#include "image/codec.h"

namespace npurt::image {

bool DecodeJpeg(const std::uint8_t* data, std::size_t size, const Sink& sink);
bool DecodeJpeg2000(const std::uint8_t* data, std::size_t size, const Sink& sink);
bool DecodePng(const std::uint8_t* data, std::size_t size, const Sink& sink);
bool DecodeTiff(const std::uint8_t* data, std::size_t size, const Sink& sink);
bool DecodeWebp(const std::uint8_t* data, std::size_t size, const Sink& sink);

inline bool Fail(const Sink& sink, const char* why) {
  sink.fail(sink.user, why);
  return false;
}

}  // namespace npurt::image

#endif  // NPURT_IMAGE_CODECS_CODECS_H_
