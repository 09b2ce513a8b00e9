// PNG with libpng: everything becomes 8-bit RGB, without alpha and without colour management.
#include <csetjmp>
#include <cstring>

#include <png.h>

#include "image/codecs/codecs.h"

namespace npurt::image {
namespace {

struct Source {
  const std::uint8_t* data;
  std::size_t left;
  char text[128];
};

void Read(png_structp png, png_bytep out, std::size_t count) {
  auto* source = static_cast<Source*>(png_get_io_ptr(png));
  if (count > source->left) png_error(png, "the file is cut short");
  std::memcpy(out, source->data, count);
  source->data += count;
  source->left -= count;
}

[[noreturn]] void Error(png_structp png, png_const_charp why) {
  auto* source = static_cast<Source*>(png_get_error_ptr(png));
  std::strncpy(source->text, why, sizeof source->text - 1);
  png_longjmp(png, 1);
}

void Warning(png_structp, png_const_charp) {}

}  // namespace

bool DecodePng(const std::uint8_t* data, std::size_t size, const Sink& sink) {
  constexpr png_alloc_size_t kMaxChunk = 16 << 20;
  Source source = {data, size, {}};
  png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &source, Error, Warning);
  png_infop info = png == nullptr ? nullptr : png_create_info_struct(png);
  if (info == nullptr) {
    png_destroy_read_struct(&png, nullptr, nullptr);
    return Fail(sink, "libpng does not start");
  }
  if (setjmp(png_jmpbuf(png)) != 0) {
    png_destroy_read_struct(&png, &info, nullptr);
    return Fail(sink, source.text);
  }
  png_set_read_fn(png, &source, Read);
  png_set_user_limits(png, 0x7fffffff, 0x7fffffff);  // the sink decides
  png_set_chunk_malloc_max(png, kMaxChunk);
  png_read_info(png, info);
  png_set_expand(png);
  png_set_strip_16(png);
  png_set_gray_to_rgb(png);
  png_set_strip_alpha(png);
  const int passes = png_set_interlace_handling(png);
  const png_uint_32 width = png_get_image_width(png, info),
                    height = png_get_image_height(png, info);
  png_read_update_info(png, info);
  if (png_get_rowbytes(png, info) != std::size_t{width} * 3) png_error(png, "odd rows");
  std::uint8_t* rgb = sink.allocate(sink.user, width, height);
  if (rgb == nullptr) {
    png_destroy_read_struct(&png, &info, nullptr);
    return false;
  }
  for (int pass = 0; pass < passes; ++pass)
    for (png_uint_32 y = 0; y < height; ++y)
      png_read_row(png, rgb + std::size_t{y} * width * 3, nullptr);
  png_read_end(png, nullptr);
  png_destroy_read_struct(&png, &info, nullptr);
  return true;
}

}  // namespace npurt::image
