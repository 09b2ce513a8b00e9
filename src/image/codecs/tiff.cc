// TIFF with libtiff's conversion to RGBA: the first picture of the file, turned as it says.
#include <tiffio.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "image/codecs/codecs.h"

namespace npurt::image {
namespace {

// The file in memory. Offsets come from the file and may be anything.
struct Source {
  const std::uint8_t* data;
  std::uint64_t size, at;
  char text[160];
};

Source* From(thandle_t handle) { return static_cast<Source*>(handle); }

tmsize_t Read(thandle_t handle, void* out, tmsize_t count) {
  Source* s = From(handle);
  if (count < 0 || s->at >= s->size) return 0;
  const std::uint64_t left = s->size - s->at, wanted = static_cast<std::uint64_t>(count);
  const std::uint64_t taken = wanted < left ? wanted : left;
  std::memcpy(out, s->data + s->at, taken);
  s->at += taken;
  return static_cast<tmsize_t>(taken);
}
tmsize_t Write(thandle_t, void*, tmsize_t) { return 0; }
toff_t Seek(thandle_t handle, toff_t offset, int whence) {
  Source* s = From(handle);
  s->at = offset + (whence == SEEK_CUR ? s->at : whence == SEEK_END ? s->size : 0);
  return s->at;
}
int Close(thandle_t) { return 0; }
toff_t Size(thandle_t handle) { return From(handle)->size; }
int Map(thandle_t handle, void** base, toff_t* size) {
  *base = const_cast<std::uint8_t*>(From(handle)->data);
  *size = From(handle)->size;
  return 1;
}
void Unmap(thandle_t, void*, toff_t) {}

// Keeps the first error: the others follow from it.
int Error(TIFF*, void* user, const char*, const char* format, std::va_list arguments) {
  Source* s = static_cast<Source*>(user);
  if (s->text[0] == 0) std::vsnprintf(s->text, sizeof s->text, format, arguments);
  return 1;  // handled: nothing is printed
}
int Warning(TIFF*, void*, const char*, const char*, std::va_list) { return 1; }

bool ReadPicture(TIFF* tiff, Source* source, const Sink& sink) {
  std::uint32_t width = 0, height = 0;
  TIFFGetField(tiff, TIFFTAG_IMAGEWIDTH, &width);
  TIFFGetField(tiff, TIFFTAG_IMAGELENGTH, &height);
  if (TIFFRGBAImageOK(tiff, source->text) == 0) return Fail(sink, source->text);
  std::uint8_t* rgb = sink.allocate(sink.user, width, height);
  if (rgb == nullptr) return false;
  const std::size_t count = std::size_t{width} * height;
  auto* pixels = static_cast<std::uint32_t*>(std::malloc(count * sizeof(std::uint32_t)));
  if (pixels == nullptr) return Fail(sink, "no memory for it");
  const bool ok =
      TIFFReadRGBAImageOriented(tiff, width, height, pixels, ORIENTATION_TOPLEFT, 1) != 0;
  for (std::size_t i = 0; ok && i < count; ++i) {
    rgb[3 * i] = static_cast<std::uint8_t>(TIFFGetR(pixels[i]));
    rgb[3 * i + 1] = static_cast<std::uint8_t>(TIFFGetG(pixels[i]));
    rgb[3 * i + 2] = static_cast<std::uint8_t>(TIFFGetB(pixels[i]));
  }
  std::free(pixels);
  return ok || Fail(sink, source->text);
}

}  // namespace

bool DecodeTiff(const std::uint8_t* data, std::size_t size, const Sink& sink) {
  constexpr tmsize_t kMaxAllocation = tmsize_t{1} << 30;
  Source source = {data, size, 0, {}};
  TIFFOpenOptions* options = TIFFOpenOptionsAlloc();
  if (options == nullptr) return Fail(sink, "libtiff does not start");
  TIFFOpenOptionsSetMaxSingleMemAlloc(options, kMaxAllocation);
  TIFFOpenOptionsSetErrorHandlerExtR(options, Error, &source);
  TIFFOpenOptionsSetWarningHandlerExtR(options, Warning, nullptr);
  TIFF* tiff = TIFFClientOpenExt("picture", "r", &source, Read, Write, Seek, Close, Size, Map,
                                 Unmap, options);
  TIFFOpenOptionsFree(options);
  if (tiff == nullptr) return Fail(sink, source.text);
  const bool ok = ReadPicture(tiff, &source, sink);
  TIFFClose(tiff);
  return ok;
}

}  // namespace npurt::image
