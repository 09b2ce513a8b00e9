#include "ops/numbers.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace npurt::ops {

double LowestOf(DType dtype) {
  switch (dtype) {
    case DType::kI4:
      return -8;
    case DType::kI2:
      return -2;
    case DType::kF16:
      return -65504;
    case DType::kBF16:
      return static_cast<double>(std::ldexp(-255.0, 120));
    default:
      break;
  }
  double lowest = 0;
  DispatchDType<kPlainTypes & ~DTypes(DType::kF16, DType::kBF16)>(dtype, [&](auto type) {
    lowest = static_cast<double>(std::numeric_limits<decltype(type)>::lowest());
  });
  return lowest;
}

double LargestOf(DType dtype) {
  switch (dtype) {
    case DType::kI4:
      return 7;
    case DType::kU4:
      return 15;
    case DType::kI2:
      return 1;
    case DType::kU2:
      return 3;
    case DType::kF16:
      return 65504;
    case DType::kBF16:
      return static_cast<double>(std::ldexp(255.0, 120));
    default:
      break;
  }
  double largest = 0;
  DispatchDType<kPlainTypes & ~DTypes(DType::kF16, DType::kBF16)>(dtype, [&](auto type) {
    largest = static_cast<double>(std::numeric_limits<decltype(type)>::max());
  });
  return largest;
}

double LoadNumber(DType dtype, const void* data, std::int64_t index) {
  if (Contains(kNarrowFloats, dtype))
    return static_cast<double>(kernels::NarrowToFloat(dtype, kernels::LoadBits(dtype, data, index)));
  if (Contains(kNarrowIntegers, dtype))
    return kernels::NarrowToInteger(dtype, kernels::LoadBits(dtype, data, index));
  double value = 0;
  DispatchDType<kPlainTypes>(dtype, [&](auto type) {
    using T = decltype(type);
    std::memcpy(&type, static_cast<const char*>(data) + index * static_cast<std::int64_t>(sizeof(T)),
                sizeof(T));
    value = static_cast<double>(type);
  });
  return value;
}

void StoreNumber(DType dtype, void* data, std::int64_t index, double value, bool saturate) {
  if (Contains(kNarrowFloats, dtype)) {
    const float once = Half::RoundToOdd(value);  // so that the next rounding is the only one
    kernels::StoreBits(dtype, data, index, kernels::FloatToNarrow(dtype, once, saturate));
    return;
  }
  const auto whole = [&] {
    return std::isnan(value)
               ? 0.0
               : std::clamp(std::nearbyint(value), LowestOf(dtype), LargestOf(dtype));
  };
  if (Contains(kNarrowIntegers, dtype)) {
    kernels::StoreBits(dtype, data, index, static_cast<unsigned>(static_cast<int>(whole())));
    return;
  }
  DispatchDType<kPlainTypes>(dtype, [&](auto type) {
    using T = decltype(type);
    if constexpr (std::is_same_v<T, bool>) {
      type = value != 0;
    } else if constexpr (std::is_integral_v<T>) {
      const double clamped = whole();
      // The largest 64-bit integers are no doubles: what rounds up to 2^63 must not be converted.
      type = clamped >= std::ldexp(1.0, std::numeric_limits<T>::digits)
                 ? std::numeric_limits<T>::max()
                 : static_cast<T>(clamped);
    } else {
      type = static_cast<T>(value);
    }
    std::memcpy(static_cast<char*>(data) + index * static_cast<std::int64_t>(sizeof(T)), &type,
                sizeof(T));
  });
}

}  // namespace npurt::ops
