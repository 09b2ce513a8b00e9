#include "base/dtype.h"

#include <bit>
#include <cmath>
#include <limits>

#include "base/checked_math.h"

namespace npurt {
namespace {

struct DTypeRow {
  const char* name;
  int bits;
};

// Indexed by the number of the type.
constexpr DTypeRow kRows[kDTypeCount] = {
    {"undefined", 0},     {"float32", 32},      {"uint8", 8},
    {"int8", 8},          {"uint16", 16},       {"int16", 16},
    {"int32", 32},        {"int64", 64},        {"string", 8 * sizeof(std::string)},
    {"bool", 8},          {"float16", 16},      {"float64", 64},
    {"uint32", 32},       {"uint64", 64},       {"complex64", 64},
    {"complex128", 128},  {"bfloat16", 16},     {"float8e4m3fn", 8},
    {"float8e4m3fnuz", 8}, {"float8e5m2", 8},   {"float8e5m2fnuz", 8},
    {"uint4", 4},         {"int4", 4},          {"float4e2m1", 4},
    {"float8e8m0", 8},    {"uint2", 2},         {"int2", 2},
};

const DTypeRow& RowOf(DType dtype) {
  const int number = static_cast<int>(dtype);
  return kRows[number < kDTypeCount ? number : 0];
}

}  // namespace

int DTypeBits(DType dtype) { return RowOf(dtype).bits; }

absl::string_view DTypeName(DType dtype) { return RowOf(dtype).name; }

DType DTypeFromName(absl::string_view name) {
  if (name == "float") return DType::kF32;
  if (name == "double") return DType::kF64;
  for (int i = 1; i < kDTypeCount; ++i)
    if (name == kRows[i].name) return static_cast<DType>(i);
  return DType::kUndefined;
}

bool BytesOf(DType dtype, std::int64_t count, std::size_t* bytes) {
  std::int64_t bits;
  if (count < 0) return false;
  const std::int64_t each = DTypeBits(dtype);
  if (each >= 8) {
    if (!CheckedMul(count, each / 8, &bits)) return false;
    *bytes = static_cast<std::size_t>(bits);
    return true;
  }
  if (!CheckedMul(count, each, &bits) || !CheckedAdd(bits, 7, &bits)) return false;
  *bytes = static_cast<std::size_t>(bits / 8);
  return true;
}

float HalfBitsToFloat(std::uint16_t bits) {
  const std::uint32_t sign = std::uint32_t{bits & 0x8000u} << 16;
  const std::uint32_t exponent = (bits >> 10) & 31u;
  const std::uint32_t fraction = bits & 0x3ffu;
  if (exponent == 0) {
    const float magnitude = std::ldexp(static_cast<float>(fraction), -24);
    return sign ? -magnitude : magnitude;
  }
  const std::uint32_t wide = exponent == 31 ? (0x7f800000u | (fraction << 13))
                                            : ((exponent + 112) << 23) | (fraction << 13);
  return std::bit_cast<float>(sign | wide);
}

std::uint16_t FloatToHalfBits(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint16_t sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<std::uint16_t>(sign | 0x7e00u);
  if (magnitude >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7c00u);  // >= 65520
  if (magnitude < 0x38800000u) {  // below 2^-14: subnormal, steps of 2^-24
    const float scaled = std::bit_cast<float>(magnitude) * 16777216.0f;
    return static_cast<std::uint16_t>(sign | static_cast<std::uint32_t>(std::nearbyint(scaled)));
  }
  const std::uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
  return static_cast<std::uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

float Half::RoundToOdd(double value) {
  const float nearest = static_cast<float>(value);
  if (static_cast<double>(nearest) == value || std::isnan(value) || std::isinf(nearest))
    return nearest;
  // Inexact: take the float towards zero and set its last bit.
  std::uint32_t bits = std::bit_cast<std::uint32_t>(nearest);
  if (std::fabs(static_cast<double>(nearest)) > std::fabs(value)) --bits;
  return std::bit_cast<float>(bits | 1u);
}

std::uint16_t BFloat16::FromFloat(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

}  // namespace npurt
