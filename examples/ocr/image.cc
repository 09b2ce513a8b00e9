#include "image.h"

#include <stb_image.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace ocr {
namespace {

// The colour at (x, y), pixel centres at integers; outside, the border is repeated.
void Sample(const Image& image, float x, float y, std::uint8_t out[3]) {
  x = std::clamp(x, 0.0f, static_cast<float>(image.width - 1));
  y = std::clamp(y, 0.0f, static_cast<float>(image.height - 1));
  const int x0 = static_cast<int>(x), y0 = static_cast<int>(y);
  const int x1 = std::min(x0 + 1, image.width - 1), y1 = std::min(y0 + 1, image.height - 1);
  const float fx = x - static_cast<float>(x0), fy = y - static_cast<float>(y0);
  const auto at = [&](int px, int py, int c) {
    const std::size_t pixel = static_cast<std::size_t>(py) * image.width + px;
    return static_cast<float>(image.rgb[pixel * 3 + c]);
  };
  for (int c = 0; c < 3; ++c) {
    const float top = at(x0, y0, c) * (1 - fx) + at(x1, y0, c) * fx;
    const float bottom = at(x0, y1, c) * (1 - fx) + at(x1, y1, c) * fx;
    out[c] = static_cast<std::uint8_t>(std::lround(top * (1 - fy) + bottom * fy));
  }
}

Image Blank(int width, int height) {
  Image image;
  image.width = width;
  image.height = height;
  image.rgb.resize(static_cast<std::size_t>(width) * height * 3);
  return image;
}

float Distance(const Point& a, const Point& b) { return std::hypot(a.x - b.x, a.y - b.y); }

}  // namespace

Image LoadImage(const std::string& path) {
  int width = 0, height = 0, channels = 0;
  std::uint8_t* pixels = stbi_load(path.c_str(), &width, &height, &channels, 3);
  if (pixels == nullptr) throw std::runtime_error(path + ": " + stbi_failure_reason());
  Image image = Blank(width, height);
  std::copy(pixels, pixels + image.rgb.size(), image.rgb.begin());
  stbi_image_free(pixels);
  return image;
}

Image Resize(const Image& image, int width, int height) {
  Image out = Blank(width, height);
  const float step_x = static_cast<float>(image.width) / static_cast<float>(width);
  const float step_y = static_cast<float>(image.height) / static_cast<float>(height);
  std::uint8_t* to = out.rgb.data();
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x, to += 3)
      Sample(image, (static_cast<float>(x) + 0.5f) * step_x - 0.5f,
             (static_cast<float>(y) + 0.5f) * step_y - 0.5f, to);
  return out;
}

Image Crop(const Image& image, const Quad& quad) {
  const float across = std::max(Distance(quad[0], quad[1]), Distance(quad[3], quad[2]));
  const float down = std::max(Distance(quad[0], quad[3]), Distance(quad[1], quad[2]));
  Image out = Blank(std::max(1, static_cast<int>(across)), std::max(1, static_cast<int>(down)));
  std::uint8_t* to = out.rgb.data();
  for (int y = 0; y < out.height; ++y)
    for (int x = 0; x < out.width; ++x, to += 3) {
      const float u = static_cast<float>(x) / static_cast<float>(out.width);
      const float v = static_cast<float>(y) / static_cast<float>(out.height);
      // The quad is a rectangle, so that mixing its corners is the perspective as well.
      const auto mix = [&](float Point::*axis) {
        return (quad[0].*axis * (1 - u) + quad[1].*axis * u) * (1 - v) +
               (quad[3].*axis * (1 - u) + quad[2].*axis * u) * v;
      };
      Sample(image, mix(&Point::x), mix(&Point::y), to);
    }
  return out;
}

Image Rotate180(const Image& image) {
  Image out = Blank(image.width, image.height);
  const std::size_t pixels = image.rgb.size() / 3;
  for (std::size_t i = 0; i < pixels; ++i)
    std::copy_n(&image.rgb[i * 3], 3, &out.rgb[(pixels - 1 - i) * 3]);
  return out;
}

Image Rotate90(const Image& image) {
  Image out = Blank(image.height, image.width);
  for (int y = 0; y < image.height; ++y)
    for (int x = 0; x < image.width; ++x) {
      const std::size_t from = static_cast<std::size_t>(y) * image.width + x;
      const std::size_t to = static_cast<std::size_t>(image.width - 1 - x) * out.width + y;
      std::copy_n(&image.rgb[from * 3], 3, &out.rgb[to * 3]);
    }
  return out;
}

void ToPlanes(const Image& image, const float mean[3], const float deviation[3], int stride,
              std::size_t plane, float* out) {
  for (int c = 0; c < 3; ++c)
    for (int y = 0; y < image.height; ++y)
      for (int x = 0; x < image.width; ++x) {
        const std::size_t pixel = static_cast<std::size_t>(y) * image.width + x;
        const float value = static_cast<float>(image.rgb[pixel * 3 + (2 - c)]) / 255;
        out[c * plane + static_cast<std::size_t>(y) * stride + x] =
            (value - mean[c]) / deviation[c];
      }
}

}  // namespace ocr
