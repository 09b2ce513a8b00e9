// The integer micro-kernel for AVX-512 with VNNI: words of four bytes.
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
    return {kAUnsigned ? _mm512_dpbusd_epi32(acc.v, a.v, b.v)
                       : _mm512_dpbusd_epi32(acc.v, b.v, a.v)};
  }
};

#include "kernels/intgemm/intgemm.inl"

}  // namespace

void intgemm_12x32_avx512_vnni(const IntGemmArgs& args) {
  if (args.a_is_unsigned) {
    MultiplyUpTo<12, true>(args);
  } else {
    MultiplyUpTo<12, false>(args);
  }
}

}  // namespace npurt::kernels
