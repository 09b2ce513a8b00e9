// The quantising kernels for AVX-512.
#include "kernels/simd/avx512.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/quantize/quantize.h"

namespace npurt::kernels {
namespace {

using simd::avx512::F32;
using simd::avx512::I32;

inline I32 LoadNarrow(const std::int8_t* p) {
  return {_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))};
}
inline I32 LoadNarrow(const std::uint8_t* p) {
  return {_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))};
}
inline I32 LoadNarrow(const std::int16_t* p) {
  return {_mm512_cvtepi16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
}
inline I32 LoadNarrow(const std::uint16_t* p) {
  return {_mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
}
template <typename T>
inline void StoreNarrow(I32 x, T* p) {
  if constexpr (sizeof(T) == 1) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(x.v));
  } else {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi32_epi16(x.v));
  }
}

#include "kernels/quantize/quantize.inl"

}  // namespace

NPURT_QUANTIZE_SET(avx512)

}  // namespace npurt::kernels
