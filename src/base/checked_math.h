// Checked arithmetic on sizes: every size that comes from a file or a caller passes through here.
//
// CheckedAdd, CheckedSub, CheckedMul and CheckedAlignUp write `*out` and return true, or return
// false on overflow and leave `*out` unspecified. Work for any one integer type (int64_t, size_t).
//
// Thread safety: pure functions.
#ifndef NPURT_BASE_CHECKED_MATH_H_
#define NPURT_BASE_CHECKED_MATH_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace npurt {

template <typename T>
[[nodiscard]] constexpr bool CheckedAdd(T a, std::type_identity_t<T> b, T* out) {
  return !__builtin_add_overflow(a, b, out);
}

template <typename T>
[[nodiscard]] constexpr bool CheckedSub(T a, std::type_identity_t<T> b, T* out) {
  return !__builtin_sub_overflow(a, b, out);
}

template <typename T>
[[nodiscard]] constexpr bool CheckedMul(T a, std::type_identity_t<T> b, T* out) {
  return !__builtin_mul_overflow(a, b, out);
}

// True and the value if it fits To (negative to unsigned, too wide: false).
template <typename To, typename From>
[[nodiscard]] constexpr bool CheckedCast(From from, To* out) {
  return !__builtin_add_overflow(from, From{0}, out);
}

constexpr bool IsPowerOfTwo(std::size_t n) { return n != 0 && (n & (n - 1)) == 0; }

// The next multiple of `alignment` (a power of two) at or above `n`. Wraps to 0 on overflow: for
// sizes that are known to be small; CheckedAlignUp for the others.
template <typename T>
constexpr T AlignUp(T n, std::type_identity_t<T> alignment) {
  using U = std::make_unsigned_t<T>;
  return static_cast<T>((static_cast<U>(n) + static_cast<U>(alignment) - 1) &
                        ~(static_cast<U>(alignment) - 1));
}

template <typename T>
[[nodiscard]] constexpr bool CheckedAlignUp(T n, std::type_identity_t<T> alignment, T* out) {
  if (!CheckedAdd(n, static_cast<T>(alignment - 1), out)) return false;
  *out = static_cast<T>(*out & ~(alignment - 1));
  return true;
}

// ceil(a / b) for a >= 0, b > 0, without the overflow of a + b - 1.
template <typename T>
constexpr T CeilDiv(T a, std::type_identity_t<T> b) {
  return static_cast<T>(a / b + (a % b != 0 ? 1 : 0));
}

// The next multiple of `to`, any positive number, at or above `n`; for sizes that are known to fit.
template <typename T>
constexpr T RoundUp(T n, std::type_identity_t<T> to) {
  return CeilDiv(n, to) * to;
}

}  // namespace npurt

#endif  // NPURT_BASE_CHECKED_MATH_H_
