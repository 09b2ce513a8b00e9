// AroundAxis: a tensor seen as outer x n x inner around one of its axes.
//
// Thread safety: pure functions.
#ifndef NPURT_OPS_AROUND_AXIS_H_
#define NPURT_OPS_AROUND_AXIS_H_

#include <cstdint>

#include "absl/types/span.h"
#include "base/cpu_isa.h"
#include "ops/op_def.h"

namespace npurt::ops {

struct AroundAxis {
  std::int64_t outer = 1, n = 1, inner = 1;
};

// Around `axis`, which may be negative. A tensor of rank 0 has one axis of size 1.
inline AroundAxis Around(absl::Span<const std::int64_t> dims, std::int64_t axis) {
  AroundAxis around;
  const std::int64_t rank = static_cast<std::int64_t>(dims.size());
  if (rank == 0) return around;
  if (axis < 0) axis += rank;
  for (std::int64_t i = 0; i < rank; ++i) {
    const std::int64_t size = dims[static_cast<std::size_t>(i)];
    (i < axis ? around.outer : i == axis ? around.n : around.inner) *= size;
  }
  return around;
}

// The instruction sets that float32 kernels of an operator may use. The generic kernels alone have
// the same bits everywhere.
inline IsaSet KernelIsa(const PrepareContext& context) {
  return context.same_bits_on_every_isa() ? isa::kGeneric : context.isa();
}

// About what one element costs in a float32 kernel, for SetTiles.
inline constexpr double kNsPerElement = 0.1;

}  // namespace npurt::ops

#endif  // NPURT_OPS_AROUND_AXIS_H_
