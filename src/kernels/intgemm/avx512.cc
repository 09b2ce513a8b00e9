// The integer micro-kernel for AVX-512 without VNNI: words of two int16.
#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/intgemm/finish.h"
#include "kernels/intgemm/intgemm.h"

namespace npurt::kernels {
namespace {

struct Sums {
#include "kernels/intgemm/sums512.inl"
  template <bool kAUnsigned>
  static Sums dot(Sums acc, Sums a, Sums b) {
    return {_mm512_add_epi32(acc.v, _mm512_madd_epi16(a.v, b.v))};
  }
};

#include "kernels/intgemm/intgemm.inl"

}  // namespace

void intgemm_12x32_avx512(const IntGemmArgs& args) { MultiplyUpTo<12, false>(args); }

}  // namespace npurt::kernels
