// Selection and tiling of the softmax kernels.
#include "kernels/softmax/softmax.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/cpu_isa.h"
#include "kernels/long_rows.h"

namespace npurt::kernels {

const SoftmaxKernel kSoftmaxKernels[] = {
#define NPURT_SOFTMAX(isa_set, set)                                        \
  {"softmax_f32_" #set, softmax_rows_f32_##set, softmax_columns_f32_##set, \
   softmax_finish_f32_##set, isa_set},
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

namespace {

float ByOf(double sum, bool log) { return static_cast<float>(log ? std::log(sum) : 1 / sum); }

void LongRow(const SoftmaxKernel& kernel, const ReduceKernel& folds, const SoftmaxArgs& args,
             const StopCheck& check) {
  const std::int64_t n = static_cast<std::int64_t>(args.n);
  double largest = -std::numeric_limits<double>::infinity(), sum = 0;
  FoldRow(folds, Fold::kMax, args.in, n, nullptr, &largest, check);
  const float max = static_cast<float>(largest);
  FoldRow(folds, Fold::kSumExp, args.in, n, &max, &sum, check);
  const float by = ByOf(sum, args.log);
  ForPieces(n, kPiece, check, [&](std::int64_t first, std::int64_t count) {
    kernel.finish({args.in + first, args.out + first, &max, &by, 1, static_cast<std::size_t>(count),
                   0, args.log, true});
  });
}

void LongColumns(const SoftmaxKernel& kernel, const ReduceKernel& folds, const SoftmaxArgs& args,
                 const StopCheck& check) {
  constexpr std::size_t kColumns = 64;
  // Whole blocks of the folds' sums.
  constexpr std::int64_t kRows = kPiece / static_cast<std::int64_t>(kColumns);
  const std::int64_t n = static_cast<std::int64_t>(args.n);
  for (std::size_t c = 0; c < args.count; c += kColumns) {
    const std::size_t columns = std::min(kColumns, args.count - c);
    float max[kColumns], by[kColumns];
    const auto fold = [&](Fold what, const float* shift, float* acc) {
      ForPieces(n, kRows, check, [&](std::int64_t first, std::int64_t count) {
        folds.columns[static_cast<int>(what)](
            args.in + c + static_cast<std::size_t>(first) * args.stride, args.stride,
            static_cast<std::size_t>(count), columns, shift, acc);
      });
    };
    std::fill(max, max + columns, -std::numeric_limits<float>::infinity());
    fold(Fold::kMax, nullptr, max);
    std::fill(by, by + columns, 0.0f);
    fold(Fold::kSumExp, max, by);
    for (std::size_t i = 0; i < columns; ++i) by[i] = ByOf(static_cast<double>(by[i]), args.log);
    ForPieces(n, kRows, check, [&](std::int64_t first, std::int64_t count) {
      const std::size_t at = c + static_cast<std::size_t>(first) * args.stride;
      kernel.finish({args.in + at, args.out + at, max, by, static_cast<std::size_t>(count), columns,
                     args.stride, args.log, false});
    });
  }
}

}  // namespace

void RunSoftmaxTile(const SoftmaxKernel& kernel, const ReduceKernel& folds, const SoftmaxPlan& plan,
                    const float* in, float* out, bool log, std::int64_t tile, const StopCheck& check) {
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
    // More than one row in a tile are short ones.
    if (plan.n > kPiece) return LongRow(kernel, folds, args, check);
    return kernel.rows(args);
  }
  const std::int64_t column = tile % plan.blocks * plan.lines_per_tile;
  const std::int64_t base = tile / plan.blocks * plan.n * plan.inner + column;
  args.count = static_cast<std::size_t>(std::min(plan.lines_per_tile, plan.inner - column));
  args.line_stride = 1;
  args.stride = static_cast<std::size_t>(plan.inner);
  args.in = in + base;
  args.out = out + base;
  if (plan.n * plan.lines_per_tile > 4 * kPiece) return LongColumns(kernel, folds, args, check);
  kernel.columns(args);
}

}  // namespace npurt::kernels
