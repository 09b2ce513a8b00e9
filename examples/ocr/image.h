// Image: 8-bit RGB pixels, and the three things the example does with them.
#ifndef NPURT_EXAMPLES_OCR_IMAGE_H_
#define NPURT_EXAMPLES_OCR_IMAGE_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace ocr {

struct Image {
  int width = 0, height = 0;
  std::vector<std::uint8_t> rgb;  // row-major, 3 bytes a pixel
};

struct Point {
  float x = 0, y = 0;
};

// Corners of a rectangle that may be rotated: top left, top right, bottom right, bottom left, as
// the text in it reads.
using Quad = std::array<Point, 4>;

// Throws std::runtime_error if the file is not a picture (JPEG, PNG, BMP, GIF).
Image LoadImage(const std::string& path);

// Bilinear, pixel centres at half-integers.
Image Resize(const Image& image, int width, int height);

// What lies inside `quad`, upright; bilinear, the border is repeated outside the image.
Image Crop(const Image& image, const Quad& quad);

Image Rotate180(const Image& image);
Image Rotate90(const Image& image);  // counter-clockwise

// Planes blue, green, red of (value / 255 - mean[c]) / deviation[c]: the order in which these
// models were trained. `stride` is the width of a row of `out`, `plane` the size of a plane.
void ToPlanes(const Image& image, const float mean[3], const float deviation[3], int stride,
              std::size_t plane, float* out);

}  // namespace ocr

#endif  // NPURT_EXAMPLES_OCR_IMAGE_H_
