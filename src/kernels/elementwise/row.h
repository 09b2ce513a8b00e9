// Row kernels: one elementwise operation over `count` elements that lie side by side.
//
// This is the contract of the engine's leaves, split from elementwise.h so that files compiled for
// one instruction set include nothing else. An operand whose bit is set in `scalars` is one value
// for the whole row. Rows read each element before they write it: `out` may be an operand whose
// elements are as wide. Addresses may have any alignment.
//
// Thread safety: pure functions.
#ifndef NPURT_KERNELS_ELEMENTWISE_ROW_H_
#define NPURT_KERNELS_ELEMENTWISE_ROW_H_

#include <cstddef>
#include <cstdint>

namespace npurt::kernels {

struct RowArgs {
  const void* in[3];
  void* out;
  std::size_t count;
  std::uint32_t scalars;
  const float* params;
};

using RowFn = void (*)(const RowArgs& args);

#define NPURT_VECTOR_OP(name) void name(const RowArgs& args);
#define NPURT_VECTOR_CAST(name, from, to) void name(const RowArgs& args);
namespace rows_generic {
#include "kernels/elementwise/vector_ops.inc"
}  // namespace rows_generic
#if defined(__x86_64__)
namespace rows_avx2 {
#include "kernels/elementwise/vector_ops.inc"
}  // namespace rows_avx2
namespace rows_avx512 {
#include "kernels/elementwise/vector_ops.inc"
}  // namespace rows_avx512
#endif
#undef NPURT_VECTOR_OP
#undef NPURT_VECTOR_CAST

}  // namespace npurt::kernels

#endif  // NPURT_KERNELS_ELEMENTWISE_ROW_H_
