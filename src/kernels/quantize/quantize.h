// Quantize: float32 to integers of a scale and back, and sums of such integers, for runs of elements
// that share their scale.
//
// All sets give the same bits: quotients are exact divisions, halves go to the even neighbour, what
// does not fit saturates, a NaN becomes 0.
//
// Memory: nothing is allocated here; no byte outside the operands is read or written. Addresses may have
// any alignment. Thread safety: pure functions on what they are given.
#ifndef NPURT_KERNELS_QUANTIZE_QUANTIZE_H_
#define NPURT_KERNELS_QUANTIZE_QUANTIZE_H_

#include <cstddef>
#include <cstdint>

namespace npurt::kernels {

// round(x / scale) + zero, and (x - zero) * scale.
struct QuantizeArgs {
  const void* in;
  void* out;
  std::size_t count;
  float scale;
  std::int32_t zero;  // a number that the integer type has
};

// round(((a - a_zero) * a_scale + (b - b_zero) * b_scale) / scale) + zero, between low and high, which
// the type of the result has. Each step is one of float32.
struct ByteSumArgs {
  const void* a;
  const void* b;
  void* out;
  std::size_t count;
  float a_scale, b_scale, scale;
  std::int32_t a_zero, b_zero, zero, low, high;
  bool a_signed, b_signed;
};

enum class NarrowInteger : std::uint8_t { kI8, kU8, kI16, kU16 };
inline constexpr int kNarrowIntegerCount = 4;

struct QuantizeKernel {
  const char* name;
  std::uint32_t needs;  // an IsaSet
  void (*quantize)(NarrowInteger type, const QuantizeArgs& args);
  void (*dequantize)(NarrowInteger type, const QuantizeArgs& args);
  void (*byte_sum)(const ByteSumArgs& args);
};

#define NPURT_QUANTIZE(isa_set, set)                                         \
  void quantize_##set(NarrowInteger type, const QuantizeArgs& args);         \
  void dequantize_##set(NarrowInteger type, const QuantizeArgs& args);       \
  void byte_sum_##set(const ByteSumArgs& args);
#include "kernels/quantize/quantize.inc"
#undef NPURT_QUANTIZE

extern const QuantizeKernel kQuantizeKernels[];
extern const int kQuantizeKernelCount;

// The best that `allowed` (an IsaSet) admits; never null.
const QuantizeKernel* SelectQuantize(std::uint32_t allowed);

}  // namespace npurt::kernels

#endif  // NPURT_KERNELS_QUANTIZE_QUANTIZE_H_
