// The quantising kernels for AVX2.
#include "kernels/simd/avx2.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/quantize/quantize.h"

namespace npurt::kernels {
namespace {

using simd::avx2::F32;
using simd::avx2::I32;

inline __m128i Load8(const void* p) { return _mm_loadl_epi64(static_cast<const __m128i*>(p)); }
inline __m128i Load16(const void* p) { return _mm_loadu_si128(static_cast<const __m128i*>(p)); }
inline I32 LoadNarrow(const std::int8_t* p) { return {_mm256_cvtepi8_epi32(Load8(p))}; }
inline I32 LoadNarrow(const std::uint8_t* p) { return {_mm256_cvtepu8_epi32(Load8(p))}; }
inline I32 LoadNarrow(const std::int16_t* p) { return {_mm256_cvtepi16_epi32(Load16(p))}; }
inline I32 LoadNarrow(const std::uint16_t* p) { return {_mm256_cvtepu16_epi32(Load16(p))}; }

// The low bits of int32 to the front of each half; the halves side by side.
inline void StoreNarrow(I32 x, void* p, std::int64_t bytes, __m256i low) {
  const __m256i parts = _mm256_shuffle_epi8(x.v, low);
  const __m128i a = _mm256_castsi256_si128(parts), b = _mm256_extracti128_si256(parts, 1);
  if (bytes == 8) {
    _mm_storel_epi64(static_cast<__m128i*>(p), _mm_unpacklo_epi32(a, b));
  } else {
    _mm_storeu_si128(static_cast<__m128i*>(p), _mm_unpacklo_epi64(a, b));
  }
}
template <typename T>
inline void StoreNarrow(I32 x, T* p) {
  if constexpr (sizeof(T) == 1) {
    StoreNarrow(x, p, 8, _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1)));
  } else {
    StoreNarrow(x, p, 16, _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, -1, -1, -1, -1, -1, -1, -1, -1)));
  }
}

#include "kernels/quantize/quantize.inl"

}  // namespace

NPURT_QUANTIZE_SET(avx2)

}  // namespace npurt::kernels
