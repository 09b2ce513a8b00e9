// Long rows in pieces, so that a run can stop within one; and a meter for loops of other shapes.
//
// Thread safety: pure functions.
#ifndef NPURT_KERNELS_LONG_ROWS_H_
#define NPURT_KERNELS_LONG_ROWS_H_

#include <algorithm>
#include <cstdint>

#include "kernels/stop_check.h"

namespace npurt::kernels {

// Elements that every kernel is through with in a millisecond or two.
inline constexpr std::int64_t kPiece = std::int64_t{1} << 18;

// For more than one piece, out of the way of the short rows.
template <typename F>
[[gnu::noinline]] void ForEachPiece(std::int64_t n, std::int64_t piece, const StopCheck& check,
                                    const F& f) {
  for (std::int64_t first = 0; first < n; first += piece) {
    if (first > 0 && check.call != nullptr) check.call(check.run);
    f(first, std::min(piece, n - first));
  }
}

// Calls f(first, count) for the pieces of [0, n) in order.
template <typename F>
[[gnu::always_inline]] inline void ForPieces(std::int64_t n, std::int64_t piece,
                                             const StopCheck& check, const F& f) {
  if (__builtin_expect(n <= piece, 1)) {
    if (n > 0) f(std::int64_t{0}, n);
    return;
  }
  ForEachPiece(n, piece, check, f);
}

// Asks once in `every` units of work.
class StopMeter {
 public:
  StopMeter(const StopCheck& check, std::int64_t every) : check_(check), every_(every), left_(every) {}
  void Count(std::int64_t work) {
    left_ -= work;
    if (__builtin_expect(left_ > 0, 1)) return;
    left_ = every_;
    if (check_.call != nullptr) check_.call(check_.run);
  }

 private:
  StopCheck check_;
  std::int64_t every_, left_;
};

// Products that every kernel of matrices is through with in a few milliseconds.
inline constexpr std::int64_t kProducts = std::int64_t{1} << 22;

}  // namespace npurt::kernels

#endif  // NPURT_KERNELS_LONG_ROWS_H_
