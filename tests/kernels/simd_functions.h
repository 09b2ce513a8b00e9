// SimdFunctions: the vector functions of one instruction set behind plain pointers, for simd_test.
//
// The idea: simd/<isa>.h may only be compiled for its set. simd_<isa>.cc does that for a table of
// pointers, with the text of simd_functions.inl; the test itself is ordinary code.
//
// Thread safety: constants.
#ifndef NPURT_TESTS_KERNELS_SIMD_FUNCTIONS_H_
#define NPURT_TESTS_KERNELS_SIMD_FUNCTIONS_H_

#include <cstdint>

#include "base/cpu_isa.h"

namespace npurt::kernels {

enum class Unary {
  kCopy,
  kExp,
  kLog,
  kTanh,
  kErf,
  kSigmoid,
  kSqrt,
  kAbs,
  kNeg,
  kFloor,
  kCeil,
  kTrunc,
  kRound,
  kThroughInt,
  kThroughRoundedInt,
  kThroughF16,
  kThroughBf16,
};
enum class Binary { kAdd, kSub, kMul, kDiv, kMax, kMin, kClampToOne, kSelectLess, kCopySign };
enum class Reduce { kAdd, kMax, kMin };

struct SimdFunctions {
  const char* name;
  IsaSet needs;
  int width;
  // y[i] = f(x[i]) for i < n <= width.
  void (*unary)(Unary f, const float* x, float* y, int n);
  void (*binary)(Binary f, const float* a, const float* b, float* y, int n);
  float (*reduce)(Reduce f, const float* x);         // of `width` elements
  unsigned (*less)(const float* a, const float* b);  // bit i: a[i] < b[i]; `width` elements
  void (*f16_to_f32)(const std::uint16_t* x, float* y, int n);
  void (*f32_to_f16)(const float* x, std::uint16_t* y, int n);
  void (*f32_to_bf16)(const float* x, std::uint16_t* y, int n);
  // y = (a + b) * b - (a << 3) + (b >> 2), wrapping around.
  void (*integers)(const std::int32_t* a, const std::int32_t* b, std::int32_t* y, int n);
};

extern const SimdFunctions kSimdGeneric;
#if defined(__x86_64__)
extern const SimdFunctions kSimdAvx2;
extern const SimdFunctions kSimdAvx512;
#endif

}  // namespace npurt::kernels

#endif  // NPURT_TESTS_KERNELS_SIMD_FUNCTIONS_H_
