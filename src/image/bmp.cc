// BMP: 1, 4 and 8 bits with a palette, 16 and 32 with masks, 24; rows upwards or downwards. Run
// lengths are not read.
#include <algorithm>
#include <bit>

#include "absl/strings/str_cat.h"
#include "image/image.h"

namespace npurt::image {
namespace {

constexpr std::size_t kFileHeader = 14;
constexpr std::uint32_t kRgb = 0, kBitFields = 3, kAlphaBitFields = 6;

std::uint32_t Load(Bytes file, std::size_t at, int bytes) {
  std::uint32_t value = 0;
  for (int i = 0; i < bytes; ++i)
    value |= std::uint32_t{file[at + static_cast<std::size_t>(i)]} << (8 * i);
  return value;
}

absl::Status Damaged(const char* what) {
  return absl::InvalidArgumentError(absl::StrCat("the BMP file's ", what));
}

// The bits of `mask` in a pixel as a byte.
std::uint8_t Channel(std::uint32_t pixel, std::uint32_t mask) {
  if (mask == 0) return 0;
  const std::uint64_t value = (pixel & mask) >> std::countr_zero(mask);
  const std::uint64_t largest = mask >> std::countr_zero(mask);
  return static_cast<std::uint8_t>((value * 255 + largest / 2) / largest);
}

struct Header {
  std::uint64_t width, height;
  bool downwards = false;
  std::uint32_t bits = 0, compression = kRgb;
  std::uint32_t masks[3] = {};
  std::size_t palette = 0, colours = 0, entry = 4;  // where, how many, bytes of one
  std::size_t pixels = 0;
};

absl::StatusOr<Header> HeaderOf(Bytes file) {
  Header h;
  if (file.size() < kFileHeader + 12) return Damaged("header is cut short");
  const std::size_t size = Load(file, kFileHeader, 4);
  if ((size != 12 && size < 40) || size > 1024 || file.size() < kFileHeader + size)
    return Damaged("header is damaged");
  h.pixels = Load(file, 10, 4);
  h.palette = kFileHeader + size;
  if (size == 12) {
    h.width = Load(file, 18, 2);
    h.height = Load(file, 20, 2);
    h.bits = Load(file, 24, 2);
    h.entry = 3;
  } else {
    const auto width = static_cast<std::int32_t>(Load(file, 18, 4));
    const auto height = static_cast<std::int32_t>(Load(file, 22, 4));
    h.downwards = height < 0;
    h.width = width < 0 ? 0 : static_cast<std::uint64_t>(width);
    h.height = static_cast<std::uint64_t>(h.downwards ? -std::int64_t{height} : height);
    h.bits = Load(file, 28, 2);
    h.compression = Load(file, 30, 4);
    h.colours = Load(file, 46, 4);
  }
  if (h.compression == kBitFields || h.compression == kAlphaBitFields) {
    if (file.size() < 66) return Damaged("header is cut short");
    for (std::size_t i = 0; i < 3; ++i) h.masks[i] = Load(file, 54 + 4 * i, 4);
    if (size == 40) h.palette += h.compression == kBitFields ? 12 : 16;
  } else if (h.compression != kRgb) {
    return absl::UnimplementedError(absl::StrCat("BMP files with compression ", h.compression));
  } else {
    for (std::uint32_t i = 0; i < 3; ++i)
      h.masks[i] = h.bits == 16 ? 0x7c00u >> (5 * i) : 0xff0000u >> (8 * i);
  }
  const bool known =
      h.bits == 1 || h.bits == 4 || h.bits == 8 || h.bits == 16 || h.bits == 24 || h.bits == 32;
  if (!known) return Damaged("pixels have an odd number of bits");
  const std::size_t most = std::size_t{1} << std::min(h.bits, 8u);
  if (h.bits > 8)
    h.colours = 0;
  else if (h.colours == 0 || h.colours > most)
    h.colours = most;
  if (h.palette + h.colours * h.entry > file.size()) return Damaged("palette is cut short");
  return h;
}

}  // namespace

absl::StatusOr<Picture> DecodeBmp(Bytes file) {
  NPURT_ASSIGN_OR_RETURN(const Header h, HeaderOf(file));
  const std::uint64_t row_bytes = (h.width * h.bits + 31) / 32 * 4;
  if (h.pixels > file.size() ||
      (row_bytes > 0 && h.height > (file.size() - h.pixels + 3) / row_bytes))
    return Damaged("pixels are cut short");
  NPURT_ASSIGN_OR_RETURN(Picture picture, NewPicture(h.width, h.height));
  std::uint8_t* out = picture.rgb.get();
  for (std::uint64_t y = 0; y < h.height; ++y) {
    const std::uint64_t row = h.pixels + (h.downwards ? y : h.height - 1 - y) * row_bytes;
    for (std::uint64_t x = 0; x < h.width; ++x, out += 3) {
      const std::uint64_t bit = x * h.bits, at = row + bit / 8;
      const int bytes = static_cast<int>((h.bits + 7) / 8);
      if (at + static_cast<std::uint64_t>(bytes) > file.size())
        return Damaged("pixels are cut short");
      std::uint32_t pixel = Load(file, at, bytes);
      if (h.bits <= 8) {
        pixel = pixel >> (8 - h.bits - bit % 8) & ((1u << h.bits) - 1);
        if (pixel >= h.colours) return Damaged("palette lacks a colour");
        const std::size_t entry = h.palette + pixel * h.entry;
        for (std::size_t c = 0; c < 3; ++c) out[c] = file[entry + 2 - c];
      } else {
        for (int c = 0; c < 3; ++c) out[c] = Channel(pixel, h.masks[c]);
      }
    }
  }
  return picture;
}

}  // namespace npurt::image
