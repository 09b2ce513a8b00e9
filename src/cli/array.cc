#include "cli/array.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace npurt::cli {
namespace {

// A floating type of at most 16 bits.
enum class Specials {
  kIeee,  // the highest exponent is infinity and NaN
  kFn,    // no infinity; all ones is NaN
  kFnuz,  // no infinity, no -0; what would be -0 is NaN
  kNone,  // finite numbers only
};
struct SmallFloat {
  npurt_dtype dtype;
  int exponent_bits, mantissa_bits, bias;
  Specials specials;
};
constexpr SmallFloat kSmallFloats[] = {
    {NPURT_FLOAT16, 5, 10, 15, Specials::kIeee},
    {NPURT_BFLOAT16, 8, 7, 127, Specials::kIeee},
    {NPURT_FLOAT8E4M3FN, 4, 3, 7, Specials::kFn},
    {NPURT_FLOAT8E4M3FNUZ, 4, 3, 8, Specials::kFnuz},
    {NPURT_FLOAT8E5M2, 5, 2, 15, Specials::kIeee},
    {NPURT_FLOAT8E5M2FNUZ, 5, 2, 16, Specials::kFnuz},
    {NPURT_FLOAT4E2M1, 2, 1, 1, Specials::kNone},
};

const SmallFloat* FindSmallFloat(npurt_dtype dtype) {
  for (const SmallFloat& type : kSmallFloats)
    if (type.dtype == dtype) return &type;
  return nullptr;
}

double Decode(const SmallFloat& type, unsigned code) {
  const unsigned mantissa_mask = (1u << type.mantissa_bits) - 1;
  const unsigned exponent_mask = (1u << type.exponent_bits) - 1;
  const unsigned sign_bit = 1u << (type.mantissa_bits + type.exponent_bits);
  const unsigned mantissa = code & mantissa_mask;
  const unsigned exponent = (code >> type.mantissa_bits) & exponent_mask;
  const double sign = (code & sign_bit) != 0 ? -1 : 1;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  if (type.specials == Specials::kIeee && exponent == exponent_mask)
    return mantissa != 0 ? nan : sign * std::numeric_limits<double>::infinity();
  if (type.specials == Specials::kFn && exponent == exponent_mask && mantissa == mantissa_mask)
    return nan;
  if (type.specials == Specials::kFnuz && code == sign_bit) return nan;
  const int scale = (exponent == 0 ? 1 : static_cast<int>(exponent)) - type.bias;
  const unsigned digits = exponent == 0 ? mantissa : mantissa + mantissa_mask + 1;
  return sign * std::ldexp(digits, scale - type.mantissa_bits);
}

unsigned Encode(const SmallFloat& type, double value) {
  const unsigned sign_bit = 1u << (type.mantissa_bits + type.exponent_bits);
  const unsigned hidden = 1u << type.mantissa_bits;
  const unsigned all_ones = sign_bit - 1;
  const unsigned infinity = all_ones & ~(hidden - 1);
  unsigned nan = infinity | (hidden >> 1), largest = infinity - 1;
  if (type.specials == Specials::kFn) nan = all_ones, largest = all_ones - 1;
  if (type.specials == Specials::kFnuz) nan = sign_bit, largest = all_ones;
  if (type.specials == Specials::kNone) nan = 0, largest = all_ones;
  if (std::isnan(value)) return nan;
  const unsigned sign = std::signbit(value) ? sign_bit : 0;
  unsigned code = largest + 1;
  if (value == 0) {
    code = 0;
  } else if (!std::isinf(value)) {
    int exponent = 0;
    std::frexp(value, &exponent);
    exponent = std::max(exponent - 1, 1 - type.bias);
    const double digits =
        std::nearbyint(std::ldexp(std::fabs(value), type.mantissa_bits - exponent));
    // Digits that carry into the next power of two do the right thing by plain addition, and so do
    // subnormal numbers, whose field of the exponent is one below that of the smallest normal one.
    if (exponent + type.bias < (1 << type.exponent_bits))
      code = (static_cast<unsigned>(exponent + type.bias - 1) << type.mantissa_bits) +
             static_cast<unsigned>(digits);
  }
  if (code > largest)
    code = type.specials == Specials::kIeee   ? infinity
           : type.specials == Specials::kNone ? largest
                                              : nan & all_ones;
  if (type.specials == Specials::kFnuz && code == 0) return std::fabs(value) > 1 ? nan : 0;
  return code | sign;
}

template <typename T>
T Load(const void* data, std::size_t index) {
  T value;
  std::memcpy(&value, static_cast<const char*>(data) + index * sizeof value, sizeof value);
  return value;
}

template <typename T>
void Store(void* data, std::size_t index, T value) {
  std::memcpy(static_cast<char*>(data) + index * sizeof value, &value, sizeof value);
}

// To the nearest end of the range where a plain cast would be undefined.
template <typename T>
T CastTo(double value) {
  if (std::isnan(value)) return 0;
  if (value <= static_cast<double>(std::numeric_limits<T>::min()))
    return std::numeric_limits<T>::min();
  if (value >= static_cast<double>(std::numeric_limits<T>::max()))
    return std::numeric_limits<T>::max();
  return static_cast<T>(value);
}

unsigned LoadBits(const void* data, std::size_t index, unsigned bits) {
  const std::size_t bit = index * bits;
  return (Load<std::uint8_t>(data, bit / 8) >> (bit % 8)) & ((1u << bits) - 1);
}

void StoreBits(void* data, std::size_t index, unsigned bits, unsigned code) {
  const std::size_t bit = index * bits;
  const unsigned mask = ((1u << bits) - 1) << (bit % 8);
  const unsigned old = Load<std::uint8_t>(data, bit / 8);
  Store(data, bit / 8, static_cast<std::uint8_t>((old & ~mask) | ((code << (bit % 8)) & mask)));
}

unsigned LoadCode(npurt_dtype dtype, const void* data, std::size_t index) {
  const unsigned bits = npurt_dtype_bits(dtype);
  return bits == 16  ? Load<std::uint16_t>(data, index)
         : bits == 8 ? Load<std::uint8_t>(data, index)
                     : LoadBits(data, index, bits);
}

}  // namespace

bool CountOf(const std::vector<std::int64_t>& dims, std::size_t* out_count) {
  std::size_t count = 1;
  bool empty = false;
  for (const std::int64_t dim : dims) {
    if (dim < 0) return false;
    empty = empty || dim == 0;
    if (dim != 0 && __builtin_mul_overflow(count, static_cast<std::size_t>(dim), &count))
      return false;
  }
  *out_count = empty ? 0 : count;
  return count <= std::numeric_limits<std::size_t>::max() / 256;  // bytes and bits fit too
}

std::size_t BytesOf(npurt_dtype dtype, std::size_t count) {
  return (count * npurt_dtype_bits(dtype) + 7) / 8;
}

bool IsFloating(npurt_dtype dtype) {
  return dtype == NPURT_FLOAT32 || dtype == NPURT_FLOAT64 || dtype == NPURT_COMPLEX64 ||
         dtype == NPURT_COMPLEX128 || dtype == NPURT_FLOAT8E8M0 || FindSmallFloat(dtype) != nullptr;
}

npurt_dtype PartOf(npurt_dtype dtype) {
  if (dtype == NPURT_COMPLEX64) return NPURT_FLOAT32;
  if (dtype == NPURT_COMPLEX128) return NPURT_FLOAT64;
  return dtype;
}

long double LoadElement(npurt_dtype dtype, const void* data, std::size_t index) {
  switch (dtype) {
    case NPURT_FLOAT32:
      return Load<float>(data, index);
    case NPURT_FLOAT64:
      return Load<double>(data, index);
    case NPURT_UINT8:
    case NPURT_BOOL:
      return Load<std::uint8_t>(data, index);
    case NPURT_INT8:
      return Load<std::int8_t>(data, index);
    case NPURT_UINT16:
      return Load<std::uint16_t>(data, index);
    case NPURT_INT16:
      return Load<std::int16_t>(data, index);
    case NPURT_UINT32:
      return Load<std::uint32_t>(data, index);
    case NPURT_INT32:
      return Load<std::int32_t>(data, index);
    case NPURT_UINT64:
      return static_cast<long double>(Load<std::uint64_t>(data, index));
    case NPURT_INT64:
      return static_cast<long double>(Load<std::int64_t>(data, index));
    default:
      break;
  }
  const unsigned code = LoadCode(dtype, data, index);
  if (const SmallFloat* type = FindSmallFloat(dtype)) return Decode(*type, code);
  if (dtype == NPURT_FLOAT8E8M0)
    return code == 255 ? std::numeric_limits<double>::quiet_NaN()
                       : std::ldexp(1.0, static_cast<int>(code) - 127);
  const bool is_signed = dtype == NPURT_INT4 || dtype == NPURT_INT2;
  const int half = 1 << (npurt_dtype_bits(dtype) - 1);
  const int number = static_cast<int>(code);
  return is_signed && number >= half ? number - 2 * half : number;
}

void LoadElements(npurt_dtype dtype, const void* data, std::size_t begin, std::size_t count,
                  double* out) {
  const auto all = [&](auto load) {
    for (std::size_t i = 0; i < count; ++i) out[i] = load(begin + i);
  };
  const auto of_bits = [](std::uint32_t bits) {
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  };
  switch (dtype) {
    case NPURT_FLOAT32:
      return all([&](std::size_t i) { return Load<float>(data, i); });
    case NPURT_FLOAT64:
      return all([&](std::size_t i) { return Load<double>(data, i); });
    case NPURT_BFLOAT16:
      return all([&](std::size_t i) {
        return of_bits(static_cast<std::uint32_t>(Load<std::uint16_t>(data, i)) << 16);
      });
    case NPURT_FLOAT16:
      return all([&](std::size_t i) {
        const std::uint32_t code = Load<std::uint16_t>(data, i), exponent = (code >> 10) & 31;
        const std::uint32_t sign = (code & 0x8000) << 16;
        if (exponent == 0) {
          const float tiny = static_cast<float>(code & 1023) * 0x1p-24f;
          return sign == 0 ? tiny : -tiny;
        }
        return of_bits(sign | ((exponent == 31 ? 255 : exponent + 112) << 23) |
                       ((code & 1023) << 13));
      });
    default:
      return all([&](std::size_t i) { return static_cast<double>(LoadElement(dtype, data, i)); });
  }
}

void StoreElement(npurt_dtype dtype, void* data, std::size_t index, double value) {
  switch (dtype) {
    case NPURT_FLOAT32:
      return Store(data, index, static_cast<float>(value));
    case NPURT_FLOAT64:
      return Store(data, index, value);
    case NPURT_BOOL:
      return Store<std::uint8_t>(data, index, value != 0);
    case NPURT_UINT8:
      return Store(data, index, CastTo<std::uint8_t>(value));
    case NPURT_INT8:
      return Store(data, index, CastTo<std::int8_t>(value));
    case NPURT_UINT16:
      return Store(data, index, CastTo<std::uint16_t>(value));
    case NPURT_INT16:
      return Store(data, index, CastTo<std::int16_t>(value));
    case NPURT_UINT32:
      return Store(data, index, CastTo<std::uint32_t>(value));
    case NPURT_INT32:
      return Store(data, index, CastTo<std::int32_t>(value));
    case NPURT_UINT64:
      return Store(data, index, CastTo<std::uint64_t>(value));
    case NPURT_INT64:
      return Store(data, index, CastTo<std::int64_t>(value));
    default:
      break;
  }
  unsigned code = 0;
  if (const SmallFloat* type = FindSmallFloat(dtype)) {
    code = Encode(*type, static_cast<float>(value));
  } else if (dtype == NPURT_FLOAT8E8M0) {
    const double exponent = value > 0 ? std::nearbyint(std::log2(value)) + 127 : 0;
    code = exponent >= 0 && exponent <= 254 ? static_cast<unsigned>(exponent) : 255;
  } else {
    code = static_cast<unsigned>(CastTo<std::int8_t>(value));
  }
  const unsigned bits = npurt_dtype_bits(dtype);
  if (bits == 16)
    Store(data, index, static_cast<std::uint16_t>(code));
  else if (bits == 8)
    Store(data, index, static_cast<std::uint8_t>(code));
  else
    StoreBits(data, index, bits, code);
}

}  // namespace npurt::cli
