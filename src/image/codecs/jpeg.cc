// JPEG with libjpeg. Colour has four parts in print files, which libjpeg leaves to us.
#include <csetjmp>
#include <cstddef>
#include <cstdio>
#include <jerror.h>
#include <jpeglib.h>

#include "image/codecs/codecs.h"

namespace npurt::image {
namespace {

// A progressive file may ask to refine the whole picture over and over.
constexpr int kMaxScans = 500;

struct Errors {
  jpeg_error_mgr base;
  std::jmp_buf out;
  char text[JMSG_LENGTH_MAX];
};

[[noreturn]] void Stop(j_common_ptr info) {
  auto* errors = reinterpret_cast<Errors*>(info->err);
  errors->base.format_message(info, errors->text);
  std::longjmp(errors->out, 1);
}

// Warnings are forgiven, but for those that the picture ends too early.
void Message(j_common_ptr info, int level) {
  if (level < 0 && (info->err->msg_code == JWRN_JPEG_EOF || info->err->msg_code == JWRN_HIT_MARKER))
    Stop(info);
}

void Progress(j_common_ptr info) {
  auto* decompress = reinterpret_cast<j_decompress_ptr>(info);
  if (decompress->input_scan_number > kMaxScans) {
    info->err->msg_code = JERR_BAD_PROGRESSION;
    Stop(info);
  }
}

// Cyan, magenta, yellow and black as most programs store them, inverted.
void FromInk(const JSAMPLE* ink, std::uint8_t* rgb, std::size_t count, bool inverted) {
  for (std::size_t x = 0; x < count; ++x)
    for (std::size_t c = 0; c < 3; ++c) {
      const unsigned colour = inverted ? ink[4 * x + c] : 255u - ink[4 * x + c];
      const unsigned black = inverted ? ink[4 * x + 3] : 255u - ink[4 * x + 3];
      rgb[3 * x + c] = static_cast<std::uint8_t>((colour * black + 127) / 255);
    }
}

}  // namespace

bool DecodeJpeg(const std::uint8_t* data, std::size_t size, const Sink& sink) {
  jpeg_decompress_struct info = {};
  Errors errors = {};
  jpeg_progress_mgr progress = {};
  info.err = jpeg_std_error(&errors.base);
  errors.base.error_exit = Stop;
  errors.base.emit_message = Message;
  errors.base.output_message = [](j_common_ptr) {};
  if (setjmp(errors.out) != 0) {
    jpeg_destroy_decompress(&info);
    return Fail(sink, errors.text);
  }
  jpeg_create_decompress(&info);
  progress.progress_monitor = Progress;
  info.progress = &progress;
  jpeg_mem_src(&info, data, size);
  jpeg_read_header(&info, TRUE);
  const bool ink = info.jpeg_color_space == JCS_CMYK || info.jpeg_color_space == JCS_YCCK;
  info.out_color_space = ink ? JCS_CMYK : JCS_RGB;
  std::uint8_t* rgb = sink.allocate(sink.user, info.image_width, info.image_height);
  if (rgb == nullptr) {
    jpeg_destroy_decompress(&info);
    return false;
  }
  jpeg_start_decompress(&info);
  const std::size_t width = info.output_width;
  JSAMPARRAY line = nullptr;
  if (ink)
    line = (*info.mem->alloc_sarray)(reinterpret_cast<j_common_ptr>(&info), JPOOL_IMAGE,
                                     static_cast<JDIMENSION>(4 * width), 1);
  while (info.output_scanline < info.output_height) {
    JSAMPROW row = rgb + std::size_t{info.output_scanline} * width * 3;
    if (ink) {
      jpeg_read_scanlines(&info, line, 1);
      FromInk(line[0], row, width, info.saw_Adobe_marker != 0);
    } else {
      jpeg_read_scanlines(&info, &row, 1);
    }
  }
  jpeg_finish_decompress(&info);
  jpeg_destroy_decompress(&info);
  return true;
}

}  // namespace npurt::image
