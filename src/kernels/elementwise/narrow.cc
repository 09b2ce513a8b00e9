#include "kernels/elementwise/narrow.h"

#include <bit>
#include <cmath>
#include <limits>

namespace npurt::kernels {
namespace {

// A type with a sign bit, exponents from 0 (subnormal) and `mantissa` bits.
struct Format {
  int mantissa, bias;
  unsigned sign;      // its bit
  unsigned largest;   // finite code without the sign
  unsigned overflow;  // code of what is too large, without the sign
  unsigned nan;       // code of NaN, without the sign
  bool unsigned_zero;  // FNUZ: the code of -0 is NaN, there is no -0
};

constexpr Format kE4M3FN = {3, 7, 0x80, 0x7e, 0x7f, 0x7f, false};
constexpr Format kE4M3FNUZ = {3, 8, 0x80, 0x7f, 0x80, 0x80, true};
constexpr Format kE5M2 = {2, 15, 0x80, 0x7b, 0x7c, 0x7e, false};
constexpr Format kE5M2FNUZ = {2, 16, 0x80, 0x7f, 0x80, 0x80, true};
constexpr Format kE2M1 = {1, 1, 0x8, 0x7, 0x7, 0x8, false};

const Format& FormatOf(DType type) {
  switch (type) {
    case DType::kF8E4M3FN: return kE4M3FN;
    case DType::kF8E4M3FNUZ: return kE4M3FNUZ;
    case DType::kF8E5M2: return kE5M2;
    case DType::kF8E5M2FNUZ: return kE5M2FNUZ;
    default: return kE2M1;
  }
}

bool IsNanCode(DType type, unsigned code) {
  switch (type) {
    case DType::kF8E4M3FN: return (code & 0x7f) == 0x7f;
    case DType::kF8E5M2: return (code & 0x7f) > 0x7c;
    case DType::kF4E2M1: return false;
    default: return code == 0x80;
  }
}

float PowerToFloat(unsigned code) {
  if (code == 255) return std::numeric_limits<float>::quiet_NaN();
  return std::bit_cast<float>(code == 0 ? 0x00400000u : code << 23);
}

unsigned FloatToPower(float value, bool saturate, PowerRounding rounding) {
  constexpr unsigned kNan = 255, kLargest = 254;
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value) || (value < 0)) return kNan;
  if (std::isinf(value)) return saturate ? kLargest : kNan;
  const std::uint32_t exponent = bits >> 23 & 0xff, fraction = bits & 0x7fffff;
  if (exponent == 0) {
    // Below 2^-126: 2^-127 is the smallest value.
    const bool up = rounding == PowerRounding::kUp      ? fraction > 0x400000
                    : rounding == PowerRounding::kNearest ? fraction >= 0x600000
                                                          : false;
    return up ? 1u : 0u;
  }
  const bool up = rounding == PowerRounding::kUp        ? fraction != 0
                  : rounding == PowerRounding::kNearest ? fraction >= 0x400000
                                                        : false;
  const unsigned code = exponent + (up ? 1u : 0u);
  return code <= kLargest ? code : saturate ? kLargest : kNan;
}

}  // namespace

float NarrowToFloat(DType type, unsigned bits) {
  if (type == DType::kF8E8M0) return PowerToFloat(bits & 0xff);
  const Format& format = FormatOf(type);
  bits &= 2 * format.sign - 1;
  if (IsNanCode(type, bits)) return std::numeric_limits<float>::quiet_NaN();
  const unsigned code = bits & (format.sign - 1);
  const int exponent = static_cast<int>(code >> format.mantissa);
  const unsigned fraction = code & ((1u << format.mantissa) - 1);
  float magnitude;
  if (type == DType::kF8E5M2 && code == 0x7c)
    magnitude = std::numeric_limits<float>::infinity();
  else if (exponent == 0)
    magnitude = std::ldexp(static_cast<float>(fraction), 1 - format.bias - format.mantissa);
  else
    magnitude = std::ldexp(static_cast<float>(fraction + (1u << format.mantissa)),
                           exponent - format.bias - format.mantissa);
  return bits & format.sign ? -magnitude : magnitude;
}

unsigned FloatToNarrow(DType type, float value, bool saturate, PowerRounding rounding) {
  if (type == DType::kF8E8M0) return FloatToPower(value, saturate, rounding);
  const Format& format = FormatOf(type);
  if (std::isnan(value)) return format.nan;
  const unsigned sign = std::signbit(value) ? format.sign : 0;
  const unsigned too_large =
      saturate || type == DType::kF4E2M1 ? format.largest | sign
      : format.unsigned_zero             ? format.nan
                                         : format.overflow | sign;
  if (std::isinf(value)) return too_large;
  const float magnitude = std::fabs(value);
  if (magnitude == 0) return format.unsigned_zero ? 0 : sign;
  int exponent;
  std::frexp(magnitude, &exponent);
  exponent = std::max(exponent - 1, 1 - format.bias);
  // In units of the last place; rounding up may carry into the exponent, which the sum below does.
  const unsigned units = static_cast<unsigned>(
      std::nearbyint(std::ldexp(magnitude, std::min(format.mantissa - exponent, 200))));
  if (exponent + format.bias > 31) return too_large;
  const unsigned code =
      (static_cast<unsigned>(exponent + format.bias - 1) << format.mantissa) + units;
  if (code > format.largest) return too_large;
  return code == 0 && format.unsigned_zero ? 0 : code | sign;
}

unsigned LoadBits(DType type, const void* data, std::int64_t index) {
  const int bits = DTypeBits(type);
  const std::int64_t bit = index * bits;
  const unsigned byte = static_cast<const unsigned char*>(data)[bit / 8];
  return byte >> (bit % 8) & ((1u << bits) - 1);
}

void StoreBits(DType type, void* data, std::int64_t index, unsigned value) {
  const int bits = DTypeBits(type);
  const std::int64_t bit = index * bits;
  const unsigned shift = static_cast<unsigned>(bit % 8), mask = ((1u << bits) - 1) << shift;
  unsigned char& byte = static_cast<unsigned char*>(data)[bit / 8];
  byte = static_cast<unsigned char>((byte & ~mask) | (value << shift & mask));
}

int NarrowToInteger(DType type, unsigned bits) {
  const bool is_signed = type == DType::kI4 || type == DType::kI2;
  const int width = DTypeBits(type);
  const int value = static_cast<int>(bits & ((1u << width) - 1));
  return is_signed && value >> (width - 1) ? value - (1 << width) : value;
}

}  // namespace npurt::kernels
