// Cast rows between the plain types (bool, integers, floats of 16 to 64 bits).
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "kernels/elementwise/typed.h"

namespace npurt::kernels {
namespace {

template <typename T>
inline constexpr bool kIsReal =
    std::is_floating_point_v<T> || std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

template <typename T>
T LoadAt(const void* p, std::size_t i) {
  if constexpr (std::is_same_v<T, bool>) {
    return static_cast<const unsigned char*>(p)[i] != 0;
  } else {
    T value;
    std::memcpy(&value, static_cast<const char*>(p) + i * sizeof(T), sizeof(T));
    return value;
  }
}

template <typename From, typename To>
To Convert(From x) {
  if constexpr (std::is_same_v<From, To>) {
    return x;
  } else if constexpr (kIsReal<From>) {
    // 16-bit floats compute as float.
    using Wide = std::conditional_t<std::is_same_v<From, double>, double, float>;
    const Wide wide = static_cast<Wide>(x);
    if constexpr (std::is_same_v<To, bool>) {
      return wide != Wide(0);
    } else if constexpr (kIsReal<To>) {
      return static_cast<To>(wide);
    } else {
      // The largest To may not be a Wide; To's limit plus one is a power of two and always is.
      constexpr Wide kLow = static_cast<Wide>(std::numeric_limits<To>::min());
      const Wide high = std::ldexp(Wide(1), std::numeric_limits<To>::digits);
      if (!(wide == wide)) return To(0);
      if (wide <= kLow) return std::numeric_limits<To>::min();
      if (wide >= high) return std::numeric_limits<To>::max();
      return static_cast<To>(wide);
    }
  } else if constexpr (std::is_same_v<To, bool>) {
    return x != From(0);
  } else if constexpr (std::is_same_v<To, Half> || std::is_same_v<To, BFloat16>) {
    return static_cast<To>(static_cast<double>(x));
  } else {
    return static_cast<To>(x);
  }
}

template <typename From, typename To>
void CastRow(const RowArgs& a) {
  if (a.scalars & 1) {
    if (a.count == 0) return;
    const To value = Convert<From, To>(LoadAt<From>(a.in[0], 0));
    for (std::size_t i = 0; i < a.count; ++i)
      std::memcpy(static_cast<char*>(a.out) + i * sizeof(To), &value, sizeof(To));
    return;
  }
  for (std::size_t i = 0; i < a.count; ++i) {
    const To value = Convert<From, To>(LoadAt<From>(a.in[0], i));
    std::memcpy(static_cast<char*>(a.out) + i * sizeof(To), &value, sizeof(To));
  }
}

}  // namespace

RowFn TypedCastRow(DType from, DType to) {
  RowFn row = nullptr;
  DispatchDType<kCastTypes>(from, [&](auto source) {
    DispatchDType<kCastTypes>(to, [&](auto target) {
      row = &CastRow<decltype(source), decltype(target)>;
    });
  });
  return row;
}

}  // namespace npurt::kernels
