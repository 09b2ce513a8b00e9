// What the elementwise operations mean for one element: the vocabulary of ops.inc.
//
// Integers wrap; division by zero gives 0 (remainders too) and the smallest number divided by -1
// wraps, so nothing traps. Floats follow IEEE 754; Min, Max and Clamp pass NaN on.
//
// Not for files of one instruction set: these are shared inline functions and call libm.
// Thread safety: pure functions.
#ifndef NPURT_KERNELS_ELEMENTWISE_SCALAR_H_
#define NPURT_KERNELS_ELEMENTWISE_SCALAR_H_

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace npurt::kernels::scalar {

template <typename T>
inline constexpr bool kIsFloat = std::is_floating_point_v<T>;

// The unsigned type in which arithmetic on T wraps; at least 32 bits, since narrower ones would be
// promoted to int and uint16 * uint16 can overflow that.
template <typename T>
struct WrapType {
  using type = std::conditional_t<(sizeof(T) < 4), std::uint32_t, std::make_unsigned_t<T>>;
};
template <>
struct WrapType<bool> {
  using type = std::uint32_t;
};
template <typename T>
using Wrap = typename WrapType<T>::type;

template <typename T>
bool IsNan(T x) {
  if constexpr (kIsFloat<T>) return x != x;
  return false;
}
template <typename T>
bool IsInf(T x) {
  if constexpr (kIsFloat<T>)
    return x == std::numeric_limits<T>::infinity() || x == -std::numeric_limits<T>::infinity();
  return false;
}

template <typename T>
T Add(T x, T y) {
  if constexpr (kIsFloat<T>) return x + y;
  else return static_cast<T>(static_cast<Wrap<T>>(x) + static_cast<Wrap<T>>(y));
}
template <typename T>
T Sub(T x, T y) {
  if constexpr (kIsFloat<T>) return x - y;
  else return static_cast<T>(static_cast<Wrap<T>>(x) - static_cast<Wrap<T>>(y));
}
template <typename T>
T Mul(T x, T y) {
  if constexpr (kIsFloat<T>) return x * y;
  else return static_cast<T>(static_cast<Wrap<T>>(x) * static_cast<Wrap<T>>(y));
}
template <typename T>
T Neg(T x) {
  if constexpr (kIsFloat<T>) return -x;
  else return Sub(T(0), x);
}
template <typename T>
T Abs(T x) {
  if constexpr (kIsFloat<T>) return std::fabs(x);
  else if constexpr (std::is_unsigned_v<T>) return x;
  else return x < 0 ? Neg(x) : x;
}
template <typename T>
T Sign(T x) {
  if (IsNan(x)) return x;
  return T(x > T(0) ? 1 : 0) - T(x < T(0) ? 1 : 0);
}
template <typename T>
T BitNot(T x) {
  return static_cast<T>(~static_cast<Wrap<T>>(x));
}

template <typename T>
T Div(T x, T y) {
  if constexpr (kIsFloat<T>) return x / y;
  else if (y == 0) return 0;
  else if constexpr (std::is_signed_v<T>) {
    if (y == -1) return Neg(x);
    return static_cast<T>(x / y);
  } else return static_cast<T>(x / y);
}
// The remainder with the sign of x, as C has it.
template <typename T>
T FMod(T x, T y) {
  if constexpr (kIsFloat<T>) return std::fmod(x, y);
  else if (y == 0) return 0;
  else if constexpr (std::is_signed_v<T>) {
    if (y == -1) return 0;
    return static_cast<T>(x % y);
  } else return static_cast<T>(x % y);
}
// The remainder with the sign of y, as Python has it.
template <typename T>
T Mod(T x, T y) {
  const T rest = FMod(x, y);
  if constexpr (kIsFloat<T>) {
    if (rest == T(0)) return std::copysign(T(0), y);
  }
  if (rest != T(0) && (rest < T(0)) != (y < T(0))) return Add(rest, y);
  return rest;
}
template <typename T>
T FloorDiv(T x, T y) {
  if constexpr (kIsFloat<T>) return std::floor(x / y);
  else {
    const T quotient = Div(x, y);
    const T rest = FMod(x, y);
    if (rest != 0 && (rest < 0) != (y < 0)) return Sub(quotient, T(1));
    return quotient;
  }
}
template <typename T>
T Pow(T x, T y) {
  if constexpr (kIsFloat<T>) return std::pow(x, y);
  else {
    if constexpr (std::is_signed_v<T>) {
      if (y < 0) return x == 1 ? T(1) : x == -1 ? (y % 2 == 0 ? T(1) : T(-1)) : T(0);
    }
    T result = 1;
    for (std::make_unsigned_t<T> n = static_cast<std::make_unsigned_t<T>>(y); n != 0;
         n = static_cast<std::make_unsigned_t<T>>(n >> 1)) {
      if (n & 1) result = Mul(result, x);
      x = Mul(x, x);
    }
    return result;
  }
}
template <typename T>
T Min(T x, T y) {
  if (IsNan(x)) return x;
  return y < x || IsNan(y) ? y : x;
}
template <typename T>
T Max(T x, T y) {
  if (IsNan(x)) return x;
  return x < y || IsNan(y) ? y : x;
}
template <typename T>
T Clamp(T x, T low, T high) {
  const T raised = x < low ? low : x;
  return high < raised ? high : raised;
}
template <typename T>
T ShiftLeft(T x, T y) {
  constexpr std::uint64_t kBits = sizeof(T) * 8;
  if (static_cast<std::uint64_t>(y) >= kBits) return 0;
  return static_cast<T>(static_cast<Wrap<T>>(x) << y);
}
template <typename T>
T ShiftRight(T x, T y) {
  constexpr std::uint64_t kBits = sizeof(T) * 8;
  if (static_cast<std::uint64_t>(y) >= kBits) return x < 0 ? static_cast<T>(-1) : T(0);
  return static_cast<T>(x >> y);
}
template <typename T>
T Shrink(T x, float bias, float lambd) {
  // Integers compare and move in double, which holds the attributes exactly.
  using C = std::conditional_t<kIsFloat<T>, T, double>;
  const C value = static_cast<C>(x), b = static_cast<C>(bias), l = static_cast<C>(lambd);
  if (IsNan(x)) return x;
  const C moved = value < -l ? value + b : value > l ? value - b : C(0);
  if constexpr (kIsFloat<T>) return moved;
  else {
    if (!(moved > -9.2e18 && moved < 9.2e18)) return x;
    return static_cast<T>(static_cast<std::int64_t>(moved));
  }
}
template <typename T>
T Sigmoid(T x) {
  if (x >= T(0)) return T(1) / (T(1) + std::exp(-x));
  const T e = std::exp(x);
  return e / (T(1) + e);
}
template <typename T>
T Softplus(T x) {
  return (x > T(0) ? x : IsNan(x) ? x : T(0)) + std::log1p(std::exp(-std::fabs(x)));
}

}  // namespace npurt::kernels::scalar

#endif  // NPURT_KERNELS_ELEMENTWISE_SCALAR_H_
