// JPEG 2000 with OpenJPEG, as file (JP2) or bare codestream (J2K): grey, RGB or luma and chroma.
#include <openjpeg.h>

#include <algorithm>
#include <cstring>

#include "image/codecs/codecs.h"

namespace npurt::image {
namespace {

struct Source {
  const std::uint8_t* data;
  std::size_t size, at;
};

OPJ_SIZE_T Read(void* out, OPJ_SIZE_T count, void* user) {
  auto* s = static_cast<Source*>(user);
  if (s->at >= s->size) return static_cast<OPJ_SIZE_T>(-1);
  const std::size_t taken = std::min(count, s->size - s->at);
  std::memcpy(out, s->data + s->at, taken);
  s->at += taken;
  return taken;
}
OPJ_OFF_T Skip(OPJ_OFF_T count, void* user) {
  auto* s = static_cast<Source*>(user);
  const std::size_t left = s->size - std::min(s->at, s->size);
  if (count < 0 || static_cast<std::uint64_t>(count) > left) {
    s->at = s->size;
    return static_cast<OPJ_OFF_T>(left) == 0 ? -1 : static_cast<OPJ_OFF_T>(left);
  }
  s->at += static_cast<std::size_t>(count);
  return count;
}
OPJ_BOOL Seek(OPJ_OFF_T to, void* user) {
  auto* s = static_cast<Source*>(user);
  if (to < 0 || static_cast<std::uint64_t>(to) > s->size) return OPJ_FALSE;
  s->at = static_cast<std::size_t>(to);
  return OPJ_TRUE;
}

void Quiet(const char*, void*) {}
// Keeps the first error, without its line break.
void Error(const char* text, void* user) {
  auto* kept = static_cast<char*>(user);
  if (kept[0] != 0) return;
  std::strncpy(kept, text, 127);
  kept[std::strcspn(kept, "\n")] = 0;
}

// Sample of a component at a place of the picture, as a byte.
int SampleAt(const opj_image_comp_t& c, std::uint32_t x, std::uint32_t y) {
  const std::uint32_t cx = std::min(x / c.dx, c.w - 1), cy = std::min(y / c.dy, c.h - 1);
  int value = c.data[std::size_t{cy} * c.w + cx];
  if (c.sgnd != 0) value += 1 << (c.prec - 1);
  if (c.prec > 8) value >>= c.prec - 8;
  if (c.prec < 8) value = value * 255 / ((1 << c.prec) - 1);
  return std::clamp(value, 0, 255);
}

std::uint8_t Rounded(double v) {
  return static_cast<std::uint8_t>(std::clamp(v + 0.5, 0.0, 255.0));
}

bool Convert(const opj_image_t& image, const Sink& sink) {
  const std::uint32_t parts = image.numcomps >= 3 ? 3 : 1;
  const bool chroma = parts == 3 && image.color_space == OPJ_CLRSPC_SYCC;
  if (image.numcomps == 0) return Fail(sink, "no components");
  for (std::uint32_t k = 0; k < parts; ++k) {
    const opj_image_comp_t& c = image.comps[k];
    if (c.data == nullptr || c.w == 0 || c.h == 0 || c.dx == 0 || c.dy == 0 || c.prec < 1 ||
        c.prec > 30)
      return Fail(sink, "a component is missing");
  }
  const std::uint32_t width = image.x1 - image.x0, height = image.y1 - image.y0;
  std::uint8_t* rgb = sink.allocate(sink.user, width, height);
  if (rgb == nullptr) return false;
  for (std::uint32_t y = 0; y < height; ++y)
    for (std::uint32_t x = 0; x < width; ++x, rgb += 3) {
      for (std::uint32_t k = 0; k < 3; ++k)
        rgb[k] = static_cast<std::uint8_t>(SampleAt(image.comps[parts == 3 ? k : 0], x, y));
      if (!chroma) continue;
      const double luma = rgb[0], cb = rgb[1] - 128.0, cr = rgb[2] - 128.0;
      rgb[0] = Rounded(luma + 1.402 * cr);
      rgb[1] = Rounded(luma - 0.344136 * cb - 0.714136 * cr);
      rgb[2] = Rounded(luma + 1.772 * cb);
    }
  return true;
}

// Whether the decoder may take the memory that the header asks for.
bool IsSane(const opj_image_t& image, std::uint64_t max_pixels) {
  constexpr std::uint32_t kMaxComponents = 5;
  if (image.x1 <= image.x0 || image.y1 <= image.y0 || image.numcomps > kMaxComponents) return false;
  return std::uint64_t{image.x1 - image.x0} * (image.y1 - image.y0) <= max_pixels;
}

}  // namespace

bool DecodeJpeg2000(const std::uint8_t* data, std::size_t size, const Sink& sink) {
  Source source = {data, size, 0};
  char text[128] = {};
  opj_codec_t* codec = opj_create_decompress(data[0] == 0 ? OPJ_CODEC_JP2 : OPJ_CODEC_J2K);
  opj_stream_t* stream = opj_stream_create(std::min<std::size_t>(size, 1 << 20), OPJ_TRUE);
  opj_image_t* image = nullptr;
  bool ok = false;
  if (codec != nullptr && stream != nullptr) {
    opj_set_info_handler(codec, Quiet, nullptr);
    opj_set_warning_handler(codec, Quiet, nullptr);
    opj_set_error_handler(codec, Error, text);
    opj_stream_set_read_function(stream, Read);
    opj_stream_set_skip_function(stream, Skip);
    opj_stream_set_seek_function(stream, Seek);
    opj_stream_set_user_data(stream, &source, nullptr);
    opj_stream_set_user_data_length(stream, size);
    opj_dparameters_t parameters;
    opj_set_default_decoder_parameters(&parameters);
    ok = opj_setup_decoder(codec, &parameters) != 0 &&
         opj_read_header(stream, codec, &image) != 0 && IsSane(*image, sink.max_pixels) &&
         opj_decode(codec, stream, image) != 0 && opj_end_decompress(codec, stream) != 0;
  }
  ok = ok ? Convert(*image, sink) : Fail(sink, text[0] != 0 ? text : "OpenJPEG cannot decode it");
  opj_image_destroy(image);
  opj_stream_destroy(stream);
  opj_destroy_codec(codec);
  return ok;
}

}  // namespace npurt::image
