// Planning of reductions and the loops around the folds.
#include "kernels/reduce/reduce.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/cpu_isa.h"
#include "kernels/long_rows.h"

namespace npurt::kernels {

const ReduceKernel kReduceKernels[] = {
#define NPURT_REDUCE(isa_set, set) {"reduce_f32_" #set, isa_set, kFoldRows_##set, kFoldColumns_##set},
#include "kernels/reduce/reduce.inc"
#undef NPURT_REDUCE
};
const std::size_t kReduceKernelCount = sizeof(kReduceKernels) / sizeof(kReduceKernels[0]);

const ReduceKernel& SelectReduce(IsaSet allowed) {
  std::size_t i = 0;
  while (!HasAll(allowed, kReduceKernels[i].needs)) ++i;  // the generic one needs nothing
  return kReduceKernels[i];
}

void FoldRow(const ReduceKernel& kernel, Fold fold, const float* in, std::int64_t n,
             const float* shift, double* acc, const StopCheck& check) {
  const FoldRowFn row = kernel.row[static_cast<int>(fold)];
  ForPieces(n, kPiece, check, [&](std::int64_t first, std::int64_t count) {
    row(in + first, static_cast<std::size_t>(count), shift, acc);
  });
}

namespace {

constexpr std::int64_t kTileElements = 32768;
// Columns folded at once: their partial results stay in the first cache.
constexpr std::int64_t kColumnBlock = 512;
constexpr std::int64_t kRowBlock = 128;  // rows that column kernels sum before they go on
constexpr float kInfinity = std::numeric_limits<float>::infinity();

Fold FoldOf(Reduction op) {
  switch (op) {
    case Reduction::kMax: return Fold::kMax;
    case Reduction::kMin: return Fold::kMin;
    case Reduction::kProd: return Fold::kProd;
    case Reduction::kSumSquares:
    case Reduction::kL2: return Fold::kSumSquares;
    case Reduction::kL1: return Fold::kSumAbs;
    case Reduction::kLogSumExp: return Fold::kSumExp;
    default: return Fold::kSum;
  }
}

float StartOf(Fold fold) {
  switch (fold) {
    case Fold::kMax: return -kInfinity;
    case Fold::kMin: return kInfinity;
    case Fold::kProd: return 1.0f;
    default: return 0.0f;
  }
}

// From what was folded to the result. `shift` is the maximum of a log-sum-exp.
float Finish(Reduction op, double value, std::int64_t reduced, float shift) {
  switch (op) {
    case Reduction::kMean: return static_cast<float>(value / static_cast<double>(reduced));
    case Reduction::kL2: return static_cast<float>(std::sqrt(value));
    case Reduction::kLogSum: return static_cast<float>(std::log(value));
    case Reduction::kLogSumExp:
      return static_cast<float>(std::log(value) + static_cast<double>(shift));
    default: return static_cast<float>(value);
  }
}

// The shift of a log-sum-exp: infinite maxima would turn into NaN, 0 gives the right limits.
float ShiftOf(float max) { return std::isfinite(max) ? max : 0.0f; }

// Calls f with the offset of each reduced row of `n` elements.
template <typename F>
void ForEachReducedRow(const ReducePlan& plan, std::int64_t n, const StopCheck& check, F f) {
  std::int64_t at[kReduceMaxRank] = {};
  std::int64_t offset = 0, done = 0;
  for (;;) {
    f(offset);
    if ((done += n) >= kPiece) {
      if (check.call != nullptr) check.call(check.run);
      done = 0;
    }
    int axis = plan.reduced_rank - 1;
    for (; axis >= 0; --axis) {
      offset += plan.reduced_strides[axis];
      if (++at[axis] < plan.reduced_dims[axis]) break;
      offset -= plan.reduced_dims[axis] * plan.reduced_strides[axis];
      at[axis] = 0;
    }
    if (axis < 0) return;
  }
}

std::int64_t KeptOffset(const ReducePlan& plan, std::int64_t index) {
  std::int64_t offset = 0;
  for (int i = plan.kept_rank - 1; i >= 0; --i) {
    offset += index % plan.kept_dims[i] * plan.kept_strides[i];
    index /= plan.kept_dims[i];
  }
  return offset;
}

// Sums and products of a few lanes of float32 may leave its range where the result does not: infinite ones
// make it infinite or, times a zero or added to their opposite, NaN; products that vanish make it 0.
bool IsDoubtful(Reduction op, float result) {
  if (op == Reduction::kMax || op == Reduction::kMin || op == Reduction::kLogSumExp) return false;
  return !std::isfinite(result) || (op == Reduction::kProd && result == 0);
}

// Such a result again, one element after the other, in double. `base` is its first element, `n` how many
// lie side by side.
float InDouble(const ReducePlan& plan, const float* base, std::int64_t n, const StopCheck& check) {
  const Fold fold = FoldOf(plan.op);
  double acc = static_cast<double>(StartOf(fold));
  ForEachReducedRow(plan, n, check, [&](std::int64_t offset) {
    ForPieces(n, kPiece, check, [&](std::int64_t at, std::int64_t count) {
      for (std::int64_t i = 0; i < count; ++i) {
        float element;
        std::memcpy(&element, base + offset + at + i, sizeof element);  // any alignment
        const double x = static_cast<double>(element);
        switch (fold) {
          case Fold::kSumAbs: acc += std::fabs(x); break;
          case Fold::kSumSquares: acc += x * x; break;
          case Fold::kProd: acc *= x; break;
          default: acc += x; break;
        }
      }
    });
  });
  return Finish(plan.op, acc, plan.reduced, 0);
}

void RunRows(const ReduceKernel& kernel, const ReducePlan& plan, const float* in, float* out,
             std::int64_t first, std::int64_t last, const StopCheck& check) {
  const Fold fold = FoldOf(plan.op);
  const FoldRowFn run = kernel.row[static_cast<int>(fold)];
  const std::int64_t n = plan.inner;
  if (plan.reduced_rank == 0 && plan.kept_rank <= 1 && n <= kPiece / 64 &&
      plan.op != Reduction::kLogSumExp) {  // many short rows: nothing to walk but them
    const std::int64_t stride = plan.kept_rank == 0 ? 0 : plan.kept_strides[0];
    for (std::int64_t i = first; i < last; ++i) {
      double acc = static_cast<double>(StartOf(fold));
      run(in + i * stride, static_cast<std::size_t>(n), nullptr, &acc);
      out[i] = Finish(plan.op, acc, plan.reduced, 0);
      if (IsDoubtful(plan.op, out[i])) out[i] = InDouble(plan, in + i * stride, n, check);
      if ((i - first) % 64 == 63 && check.call != nullptr) check.call(check.run);
    }
    return;
  }
  for (std::int64_t i = first; i < last; ++i) {
    const float* base = in + KeptOffset(plan, i);
    float shift = 0;
    if (plan.op == Reduction::kLogSumExp) {
      double max = -std::numeric_limits<double>::infinity();
      ForEachReducedRow(plan, n, check, [&](std::int64_t offset) {
        FoldRow(kernel, Fold::kMax, base + offset, n, nullptr, &max, check);
      });
      shift = ShiftOf(static_cast<float>(max));
    }
    double acc = static_cast<double>(StartOf(fold));
    ForEachReducedRow(plan, n, check, [&](std::int64_t offset) {
      ForPieces(n, kPiece, check, [&](std::int64_t at, std::int64_t count) {
        run(base + offset + at, static_cast<std::size_t>(count), &shift, &acc);
      });
    });
    out[i] = Finish(plan.op, acc, plan.reduced, shift);
    if (IsDoubtful(plan.op, out[i])) out[i] = InDouble(plan, base, n, check);
  }
}

void RunColumns(const ReduceKernel& kernel, const ReducePlan& plan, const float* in, float* out,
                std::int64_t tile, const StopCheck& check) {
  const Fold fold = FoldOf(plan.op);
  const FoldColumnsFn run = kernel.columns[static_cast<int>(fold)];
  const std::int64_t outer = tile / plan.column_blocks;
  std::int64_t column = tile % plan.column_blocks * plan.outputs_per_tile;
  const std::int64_t end = std::min(plan.inner, column + plan.outputs_per_tile);
  const float* base = in + KeptOffset(plan, outer);
  float acc[kColumnBlock], shift[kColumnBlock];
  // The last reduced axis is the one the kernel walks; the others are walked here.
  ReducePlan outer_plan = plan;
  std::int64_t rows = 1, stride = 0;
  if (plan.reduced_rank > 0) {
    rows = plan.reduced_dims[plan.reduced_rank - 1];
    stride = plan.reduced_strides[plan.reduced_rank - 1];
    --outer_plan.reduced_rank;
  }
  const auto fold_all = [&](FoldColumnsFn f, std::int64_t at, std::int64_t cols, const float* s,
                            float* to) {
    // Whole blocks of rows, so that pieces change no sum.
    const std::int64_t piece = std::max<std::int64_t>(kPiece / cols / kRowBlock, 1) * kRowBlock;
    ForEachReducedRow(outer_plan, rows * cols, check, [&](std::int64_t offset) {
      ForPieces(rows, piece, check, [&](std::int64_t row, std::int64_t count) {
        f(base + offset + row * stride + at, static_cast<std::size_t>(stride),
          static_cast<std::size_t>(count), static_cast<std::size_t>(cols), s, to);
      });
    });
  };
  for (; column < end; column += kColumnBlock) {
    const std::int64_t cols = std::min(kColumnBlock, end - column);
    const bool shifted = plan.op == Reduction::kLogSumExp;
    if (shifted) {
      std::fill(shift, shift + cols, -kInfinity);
      fold_all(kernel.columns[static_cast<int>(Fold::kMax)], column, cols, nullptr, shift);
      for (std::int64_t c = 0; c < cols; ++c) shift[c] = ShiftOf(shift[c]);
    }
    std::fill(acc, acc + cols, StartOf(fold));
    fold_all(run, column, cols, shifted ? shift : nullptr, acc);
    for (std::int64_t c = 0; c < cols; ++c) {
      float value = Finish(plan.op, static_cast<double>(acc[c]), plan.reduced,
                           shifted ? shift[c] : 0.0f);
      if (IsDoubtful(plan.op, value)) value = InDouble(plan, base + column + c, 1, check);
      out[outer * plan.inner + column + c] = value;
    }
  }
}

}  // namespace

bool PlanReduce(Reduction op, const std::int64_t* dims, int rank, std::uint32_t axes,
                ReducePlan* plan) {
  if (rank > kReduceMaxRank) return false;
  plan->op = op;
  plan->outputs = 1;
  plan->reduced = 1;
  plan->kept_rank = plan->reduced_rank = 0;
  plan->tiles = plan->tile_cost = 0;
  struct Axis {
    std::int64_t size, stride;
    bool reduced;
  };
  Axis merged[kReduceMaxRank];
  int count = 0;  // innermost first
  std::int64_t stride = 1;
  for (int i = rank - 1; i >= 0; --i) {
    const bool reduced = (axes >> i & 1) != 0;
    (reduced ? plan->reduced : plan->outputs) *= dims[i];
    if (dims[i] != 1) {
      if (count > 0 && merged[count - 1].reduced == reduced) {
        merged[count - 1].size *= dims[i];
      } else {
        merged[count++] = {dims[i], stride, reduced};
      }
    }
    stride *= dims[i];
  }
  if (plan->outputs == 0) return true;
  if (count == 0) merged[count++] = {1, 1, true};
  plan->rows = merged[0].reduced;
  plan->inner = merged[0].size;
  for (int i = count - 1; i > 0; --i) {
    const Axis& axis = merged[i];
    int& at = axis.reduced ? plan->reduced_rank : plan->kept_rank;
    (axis.reduced ? plan->reduced_dims : plan->kept_dims)[at] = axis.size;
    (axis.reduced ? plan->reduced_strides : plan->kept_strides)[at] = axis.stride;
    ++at;
  }
  if (plan->reduced == 0) {
    plan->outputs_per_tile = plan->outputs;
    plan->tiles = 1;
    return true;
  }
  const std::int64_t wanted = std::max<std::int64_t>(kTileElements / plan->reduced, 1);
  if (plan->rows) {
    plan->outputs_per_tile = std::min(wanted, plan->outputs);
    plan->tiles = (plan->outputs + plan->outputs_per_tile - 1) / plan->outputs_per_tile;
  } else {
    plan->outputs_per_tile = std::min(plan->inner, (wanted + 31) / 32 * 32);
    plan->column_blocks = (plan->inner + plan->outputs_per_tile - 1) / plan->outputs_per_tile;
    plan->tiles = plan->outputs / plan->inner * plan->column_blocks;
  }
  plan->tile_cost = plan->outputs_per_tile * plan->reduced;
  return true;
}

void RunReduceTile(const ReduceKernel& kernel, const ReducePlan& plan, const float* in, float* out,
                   std::int64_t tile, const StopCheck& check) {
  if (plan.reduced == 0) {
    const float value =
        Finish(plan.op, static_cast<double>(StartOf(FoldOf(plan.op))), 0, 0.0f);
    std::fill(out, out + plan.outputs, value);
    return;
  }
  if (!plan.rows) return RunColumns(kernel, plan, in, out, tile, check);
  const std::int64_t first = tile * plan.outputs_per_tile;
  RunRows(kernel, plan, in, out, first, std::min(plan.outputs, first + plan.outputs_per_tile),
          check);
}

ArgExtremePlan PlanArgExtreme(std::int64_t outer, std::int64_t n, std::int64_t inner) {
  ArgExtremePlan plan;
  plan.outer = outer;
  plan.n = n;
  plan.inner = inner;
  if (outer == 0 || n == 0 || inner == 0) return plan;
  plan.outer_per_tile = std::clamp<std::int64_t>(kTileElements / (n * inner), 1, outer);
  plan.tiles = (outer + plan.outer_per_tile - 1) / plan.outer_per_tile;
  plan.tile_cost = plan.outer_per_tile * n * inner;
  return plan;
}

namespace {

float At(const float* p, std::int64_t i) {
  float value;
  std::memcpy(&value, p + i, sizeof value);
  return value;
}

// Where the value that the fold found first (last) stands.
std::int64_t Find(const float* row, std::int64_t n, float value, bool last, const StopCheck& check) {
  const auto same = [value](float x) { return value != value ? x != x : x == value; };
  std::int64_t found = -1;
  ForPieces(n, kPiece, check, [&](std::int64_t first, std::int64_t count) {
    if (found >= 0) return;
    if (last) {
      std::int64_t i = n - first - 1;
      const std::int64_t end = i - count;
      while (i > end && !same(At(row, i))) --i;
      if (i > end) found = i;
    } else {
      std::int64_t i = first;
      const std::int64_t end = first + count;
      while (i < end && !same(At(row, i))) ++i;
      if (i < end) found = i;
    }
  });
  return std::max<std::int64_t>(found, 0);
}

// Rows [first, end) of `cols` columns against the best so far.
void BetterRows(bool largest, bool last, const float* in, std::int64_t inner, std::int64_t first,
                std::int64_t end, std::int64_t cols, float* best, std::int64_t* out) {
  for (std::int64_t i = first; i < end; ++i)
    for (std::int64_t c = 0; c < cols; ++c) {
      const float x = At(in, i * inner + c);
      const bool better = largest ? x > best[c] : x < best[c];
      const bool first_nan = x != x && best[c] == best[c];
      const bool tie = last && (x == best[c] || (x != x && best[c] != best[c]));
      const bool beaten = best[c] == best[c] && better;
      if (beaten || first_nan || tie) {
        best[c] = x;
        out[c] = i;
      }
    }
}

void ArgColumns(bool largest, bool last, const float* in, std::int64_t n, std::int64_t inner,
                std::int64_t* out, const StopCheck& check) {
  float best[kColumnBlock];
  for (std::int64_t c0 = 0; c0 < inner; c0 += kColumnBlock) {
    const std::int64_t cols = std::min(kColumnBlock, inner - c0);
    for (std::int64_t c = 0; c < cols; ++c) {
      best[c] = At(in, c0 + c);
      out[c0 + c] = 0;
    }
    ForPieces(n, kPiece / cols, check, [&](std::int64_t first, std::int64_t count) {
      BetterRows(largest, last, in + c0, inner, std::max<std::int64_t>(first, 1), first + count,
                 cols, best, out + c0);
    });
  }
}

}  // namespace

void RunArgExtremeTile(const ReduceKernel& kernel, const ArgExtremePlan& plan, bool largest,
                       bool last, const float* in, std::int64_t* out, std::int64_t tile,
                       const StopCheck& check) {
  const Fold fold = largest ? Fold::kMax : Fold::kMin;
  const std::int64_t first = tile * plan.outer_per_tile;
  const std::int64_t end = std::min(plan.outer, first + plan.outer_per_tile);
  for (std::int64_t i = first; i < end; ++i) {
    const float* row = in + i * plan.n * plan.inner;
    if (plan.inner > 1) {
      ArgColumns(largest, last, row, plan.n, plan.inner, out + i * plan.inner, check);
      continue;
    }
    double value = static_cast<double>(largest ? -kInfinity : kInfinity);
    FoldRow(kernel, fold, row, plan.n, nullptr, &value, check);
    out[i] = Find(row, plan.n, static_cast<float>(value), last, check);
  }
}

}  // namespace npurt::kernels
