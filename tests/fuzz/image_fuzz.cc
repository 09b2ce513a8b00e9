// Pictures: the formats of the library, and the module's codecs, which are linked in here.
#include "image/image.h"

#include <cstdlib>

extern "C" bool npurt_image_decode_1(npurt::image::Format format, const std::uint8_t* data,
                                     std::size_t size, const npurt::image::Sink* sink);

namespace {

constexpr std::uint64_t kMaxPixels = 1 << 16;

std::uint8_t* Allocate(void* user, std::uint64_t width, std::uint64_t height) {
  if (width == 0 || height == 0 || width > kMaxPixels || height > kMaxPixels / width)
    return nullptr;
  auto* memory = static_cast<std::uint8_t*>(std::malloc(3 * width * height));
  *static_cast<std::uint8_t**>(user) = memory;
  return memory;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const npurt::image::Format format = npurt::image::FormatOf({data, size});
  if (format <= npurt::image::Format::kPnm) {
    (void)npurt::image::DecodePicture({data, size});
    return 0;
  }
  std::uint8_t* memory = nullptr;
  const npurt::image::Sink sink = {&memory, kMaxPixels, Allocate, [](void*, const char*) {}};
  (void)npurt_image_decode_1(format, data, size, &sink);
  std::free(memory);
  return 0;
}
