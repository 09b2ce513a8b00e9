// The integer micro-kernel for AVX-512 without VNNI: words of two int16.
#include "kernels/simd/avx512.h"  // <immintrin.h>, without what GCC 12 warns of in it

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/intconv/depthwise_last.h"
#include "kernels/intgemm/finish.h"
#include "kernels/intgemm/intgemm.h"

namespace npurt::kernels {
namespace {

struct Sums {
#include "kernels/intgemm/sums512.inl"
  template <bool kSigned>
  static Sums load_bytes(const unsigned char* p, int n) {
    const __m128i bytes = n == kWidth ? _mm_loadu_si128(reinterpret_cast<const __m128i*>(p))
                                      : _mm_maskz_loadu_epi8(First(n), p);
    return {kSigned ? _mm512_cvtepi8_epi32(bytes) : _mm512_cvtepu8_epi32(bytes)};
  }
  template <bool kAUnsigned>
  static Sums dot(Sums acc, Sums a, Sums b) {
    return {_mm512_add_epi32(acc.v, _mm512_madd_epi16(a.v, b.v))};
  }
};

#include "kernels/intgemm/intgemm.inl"
#include "kernels/intconv/depthwise_last.inl"

}  // namespace

void intgemm_12x32_avx512(const IntGemmArgs& args) { MultiplyUpTo<12, false>(args); }
void depthwise_last_i8_avx512(const IntDepthwiseArgs& args) { IntDepthwise(args); }

}  // namespace npurt::kernels
