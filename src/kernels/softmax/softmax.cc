// Selection and tiling of the softmax kernels.
#include "kernels/softmax/softmax.h"

#include <algorithm>

#include "base/cpu_isa.h"

namespace npurt::kernels {

const SoftmaxKernel kSoftmaxKernels[] = {
#define NPURT_SOFTMAX(isa_set, set) \
  {"softmax_f32_" #set, softmax_rows_f32_##set, softmax_columns_f32_##set, isa_set},
#include "kernels/softmax/softmax.inc"
#undef NPURT_SOFTMAX
};
const std::size_t kSoftmaxKernelCount = sizeof(kSoftmaxKernels) / sizeof(kSoftmaxKernels[0]);

const SoftmaxKernel& SelectSoftmax(IsaSet allowed) {
  std::size_t i = 0;
  while (!HasAll(allowed, kSoftmaxKernels[i].needs)) ++i;  // the generic one needs nothing
  return kSoftmaxKernels[i];
}

SoftmaxPlan PlanSoftmax(std::int64_t outer, std::int64_t n, std::int64_t inner) {
  constexpr std::int64_t kTileElements = 8192;
  SoftmaxPlan plan;
  plan.outer = outer;
  plan.n = n;
  plan.inner = inner;
  if (outer == 0 || n == 0 || inner == 0) return plan;
  const std::int64_t lines = std::max<std::int64_t>(kTileElements / n, 1);
  if (inner == 1) {
    plan.lines_per_tile = std::min(lines, outer);
    plan.tiles = (outer + plan.lines_per_tile - 1) / plan.lines_per_tile;
  } else {
    // Whole cache lines across.
    plan.lines_per_tile = std::min(inner, (lines + 15) / 16 * 16);
    plan.blocks = (inner + plan.lines_per_tile - 1) / plan.lines_per_tile;
    plan.tiles = outer * plan.blocks;
  }
  plan.tile_cost = plan.lines_per_tile * n * 10;
  return plan;
}

void RunSoftmaxTile(const SoftmaxKernel& kernel, const SoftmaxPlan& plan, const float* in,
                    float* out, bool log, std::int64_t tile) {
  SoftmaxArgs args;
  args.log = log;
  args.n = static_cast<std::size_t>(plan.n);
  if (plan.inner == 1) {
    const std::int64_t first = tile * plan.lines_per_tile;
    args.count = static_cast<std::size_t>(std::min(plan.lines_per_tile, plan.outer - first));
    args.line_stride = args.n;
    args.stride = 1;
    args.in = in + first * plan.n;
    args.out = out + first * plan.n;
    kernel.rows(args);
    return;
  }
  const std::int64_t column = tile % plan.blocks * plan.lines_per_tile;
  const std::int64_t base = tile / plan.blocks * plan.n * plan.inner + column;
  args.count = static_cast<std::size_t>(std::min(plan.lines_per_tile, plan.inner - column));
  args.line_stride = 1;
  args.stride = static_cast<std::size_t>(plan.inner);
  args.in = in + base;
  args.out = out + base;
  kernel.columns(args);
}

}  // namespace npurt::kernels
