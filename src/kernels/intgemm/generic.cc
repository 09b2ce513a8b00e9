// The integer micro-kernel for any CPU: words of two int16, four columns at a time.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "kernels/intgemm/finish.h"
#include "kernels/intgemm/intgemm.h"

namespace npurt::kernels {
namespace {

typedef std::uint32_t Four __attribute__((vector_size(16)));
typedef std::int32_t SignedFour __attribute__((vector_size(16)));

// Lanes are unsigned, because sums wrap.
struct Sums {
  static constexpr int kWidth = 4;
  Four v;

  static Sums zero() { return {Four{0, 0, 0, 0}}; }
  static Sums broadcast(std::int32_t x) { return {Four{} + static_cast<std::uint32_t>(x)}; }
  static Sums load(const std::int32_t* p, int n) {
    Four x = {0, 0, 0, 0};
    std::memcpy(&x, p, static_cast<std::size_t>(n) * 4);
    return {x};
  }
  static Sums load_words(const Word* p) {
    Four x;
    std::memcpy(&x, p, sizeof x);
    return {x};
  }
  static Sums broadcast_word(const char* p) {
    std::uint32_t x;
    std::memcpy(&x, p, sizeof x);
    return {Four{} + x};
  }
  static Sums add(Sums a, Sums b) { return {a.v + b.v}; }
  static Sums sub(Sums a, Sums b) { return {a.v - b.v}; }
  static Sums mul(Sums a, Sums b) { return {a.v * b.v}; }
  template <bool kAUnsigned>
  static Sums dot(Sums acc, Sums a, Sums b) {
#if defined(__SSE2__)
    const __m128i products = _mm_madd_epi16(reinterpret_cast<__m128i>(a.v), reinterpret_cast<__m128i>(b.v));
    return {acc.v + reinterpret_cast<Four>(products)};
#else
    const SignedFour x = reinterpret_cast<SignedFour>(a.v), y = reinterpret_cast<SignedFour>(b.v);
    const SignedFour low_x = reinterpret_cast<SignedFour>(a.v << 16) >> 16;
    const SignedFour low_y = reinterpret_cast<SignedFour>(b.v << 16) >> 16;
    return {acc.v + reinterpret_cast<Four>(low_x * low_y + (x >> 16) * (y >> 16))};
#endif
  }
  static Sums finish(Sums x, const Finish& f, int n) {
    for (int i = 0; i < n; ++i) {
      double y = static_cast<double>(static_cast<std::int32_t>(x.v[i])) + f.row_bias;
      if (f.column_bias != nullptr) y += f.column_bias[i];
      y *= f.row_scale;
      if (f.column_scale != nullptr) y *= f.column_scale[i];
      const double near = y < f.low ? f.low : y > f.high ? f.high : y;
      // Adding and taking away 1.5 * 2^52 rounds to the nearest whole number, ties to even.
      const double whole = (near + 6755399441055744.0) - 6755399441055744.0;
      x.v[i] = y != y ? 0u
                      : static_cast<std::uint32_t>(static_cast<std::int32_t>(whole) + f.zero);
    }
    return x;
  }
  void store(std::int32_t* p, int n) const {
    std::memcpy(p, &v, static_cast<std::size_t>(n) * 4);
  }
  void store_bytes(unsigned char* p, int n) const {
    for (int i = 0; i < n; ++i) p[i] = static_cast<unsigned char>(v[i]);
  }
};

#include "kernels/intgemm/intgemm.inl"

}  // namespace

void intgemm_4x8_generic(const IntGemmArgs& args) { MultiplyUpTo<4, false>(args); }

}  // namespace npurt::kernels
