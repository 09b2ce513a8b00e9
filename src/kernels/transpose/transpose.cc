// Plans transposes and runs their tiles.
#include "kernels/transpose/transpose.h"

#include <algorithm>
#include <cstring>

#include "base/cpu_isa.h"

namespace npurt::kernels {

const TransposeKernel kTransposeKernels[] = {
#define NPURT_TRANSPOSE(isa_set, name, bytes) {#name, name, isa_set, bytes},
#include "kernels/transpose/transpose.inc"
#undef NPURT_TRANSPOSE
};
const std::size_t kTransposeKernelCount = sizeof(kTransposeKernels) / sizeof(kTransposeKernels[0]);

namespace {

// Work for one tile: enough to pay for claiming it, little enough to balance.
constexpr std::int64_t kTileBytes = 128 << 10;

// A strip of a plane that two 32 KiB caches hold while both sides are walked.
constexpr std::int64_t kStripBytes = 32 << 10;

struct Axis {
  std::int64_t size;
  std::int64_t in_stride;  // elements
};

// The axes in output order, without those of size 1, neighbours merged.
int MergeAxes(const std::int64_t* dims, const std::int64_t* perm, int rank, Axis* axes) {
  std::int64_t strides[kTransposeMaxRank];
  std::int64_t stride = 1;
  for (int i = rank - 1; i >= 0; --i) {
    strides[i] = stride;
    stride *= dims[i];
  }
  int count = 0;
  for (int i = 0; i < rank; ++i) {
    const Axis axis = {dims[perm[i]], strides[perm[i]]};
    if (axis.size == 1) continue;
    if (count > 0 && axes[count - 1].in_stride == axis.in_stride * axis.size) {
      axes[count - 1] = {axes[count - 1].size * axis.size, axis.in_stride};
    } else {
      axes[count++] = axis;
    }
  }
  return count;
}

const TransposeKernel* SelectBlock(std::size_t element_bytes, IsaSet allowed) {
  for (const TransposeKernel& kernel : kTransposeKernels)
    if (kernel.element_bytes == element_bytes && HasAll(allowed, kernel.needs)) return &kernel;
  return nullptr;
}

// Offsets (in elements) of the outer index `index`.
void OuterOffsets(const TransposePlan& plan, std::int64_t index, std::int64_t* in,
                  std::int64_t* out) {
  *in = 0;
  *out = 0;
  for (int i = plan.outer_rank - 1; i >= 0; --i) {
    const std::int64_t at = index % plan.outer_dims[i];
    index /= plan.outer_dims[i];
    *in += at * plan.outer_in_strides[i];
    *out += at * plan.outer_out_strides[i];
  }
}

// Columns in pieces of a few lines keep the output lines of a strip in the first cache.
std::int64_t ColumnStep(std::int64_t rows, std::int64_t bytes) {
  return std::max<std::int64_t>({16, 256 / bytes, 4096 / std::max<std::int64_t>(rows, 1)});
}

void FinishTiling(std::int64_t unit_bytes, TransposePlan* plan) {
  plan->units_per_tile =
      std::clamp<std::int64_t>(kTileBytes / std::max<std::int64_t>(unit_bytes, 1), 1, plan->units);
  plan->tiles = (plan->units + plan->units_per_tile - 1) / plan->units_per_tile;
  plan->tile_bytes = plan->units_per_tile * unit_bytes;
}

}  // namespace

bool PlanTranspose(const std::int64_t* dims, const std::int64_t* perm, int rank,
                   std::size_t element_bytes, IsaSet allowed, TransposePlan* plan) {
  *plan = TransposePlan();
  if (rank > kTransposeMaxRank) return false;
  std::int64_t total = 1;
  for (int i = 0; i < rank; ++i) total *= dims[i];
  plan->element_bytes = element_bytes;
  if (total == 0) return true;

  Axis axes[kTransposeMaxRank];
  int count = MergeAxes(dims, perm, rank, axes);
  std::int64_t bytes = static_cast<std::int64_t>(element_bytes);
  if (count == 0 || (count == 1 && axes[0].in_stride == 1)) {
    plan->kind = TransposePlan::Kind::kCopy;
    plan->units = total * bytes;
    FinishTiling(1, plan);
    return true;
  }

  // A short innermost run that stays innermost is one larger element.
  if (axes[count - 1].in_stride == 1) {
    const std::int64_t run = axes[count - 1].size * bytes;
    const bool is_element = run == 2 || run == 4 || run == 8 || run == 16;
    std::int64_t scale = axes[count - 1].size;
    for (int i = 0; i < count; ++i) scale = axes[i].in_stride % scale == 0 || i == count - 1 ? scale : 0;
    if (is_element && scale != 0) {
      --count;
      for (int i = 0; i < count; ++i) axes[i].in_stride /= scale;
      bytes = run;
      plan->element_bytes = static_cast<std::size_t>(run);
    }
  }

  std::int64_t out_strides[kTransposeMaxRank];
  std::int64_t out_stride = 1;
  for (int i = count - 1; i >= 0; --i) {
    out_strides[i] = out_stride;
    out_stride *= axes[i].size;
  }
  int in_inner = count - 1;
  for (int i = 0; i < count; ++i)
    if (axes[i].in_stride == 1) in_inner = i;

  const bool runs = axes[count - 1].in_stride == 1;
  for (int i = 0; i < count - 1; ++i) {
    if (!runs && i == in_inner) continue;
    plan->outer_dims[plan->outer_rank] = axes[i].size;
    plan->outer_in_strides[plan->outer_rank] = axes[i].in_stride;
    plan->outer_out_strides[plan->outer_rank] = out_strides[i];
    ++plan->outer_rank;
  }
  std::int64_t outer = 1;
  for (int i = 0; i < plan->outer_rank; ++i) outer *= plan->outer_dims[i];

  if (runs) {
    plan->kind = TransposePlan::Kind::kRuns;
    plan->kernel_name = "runs";
    plan->run = axes[count - 1].size * bytes;
    plan->units = outer;
    FinishTiling(plan->run, plan);
    return true;
  }
  const TransposeKernel* kernel = SelectBlock(plan->element_bytes, allowed);
  if (kernel == nullptr) return false;
  plan->kind = TransposePlan::Kind::kPlanes;
  plan->block = kernel->run;
  plan->kernel_name = kernel->name;
  // Rows of the plane run along the output's innermost axis, columns along the input's.
  plan->rows = axes[count - 1].size;
  plan->in_row_stride = axes[count - 1].in_stride;
  plan->cols = axes[in_inner].size;
  plan->out_col_stride = out_strides[in_inner];
  const std::int64_t strip =
      std::max<std::int64_t>(64, kStripBytes / std::max<std::int64_t>(1, plan->cols * bytes));
  plan->strip_rows = std::min(plan->rows, (strip + 15) / 16 * 16);
  plan->strips = (plan->rows + plan->strip_rows - 1) / plan->strip_rows;
  // Strips of long lines are cut across, in whole blocks, so that no tile takes long.
  constexpr std::int64_t kMostUnitBytes = 512 << 10;
  const std::int64_t col_step = ColumnStep(plan->rows, bytes);
  plan->unit_cols = std::min(
      plan->cols,
      std::max<std::int64_t>(kMostUnitBytes / (plan->strip_rows * bytes) / col_step, 1) * col_step);
  plan->cuts = (plan->cols + plan->unit_cols - 1) / plan->unit_cols;
  plan->units = outer * plan->strips * plan->cuts;
  FinishTiling(plan->strip_rows * plan->unit_cols * bytes, plan);
  return true;
}

void RunTransposeTile(const TransposePlan& plan, const void* in, void* out, std::int64_t tile) {
  const char* from = static_cast<const char*>(in);
  char* to = static_cast<char*>(out);
  const std::int64_t first = tile * plan.units_per_tile;
  const std::int64_t last = std::min(plan.units, first + plan.units_per_tile);
  const std::int64_t bytes = static_cast<std::int64_t>(plan.element_bytes);
  switch (plan.kind) {
    case TransposePlan::Kind::kEmpty:
      return;
    case TransposePlan::Kind::kCopy:
      std::memcpy(to + first, from + first, static_cast<std::size_t>(last - first));
      return;
    case TransposePlan::Kind::kRuns: {
      // The innermost outer axis is walked with strides; the others by division once per walk.
      const int inner = plan.outer_rank - 1;
      const std::int64_t inner_size = plan.outer_dims[inner];
      const std::int64_t in_step = plan.outer_in_strides[inner] * bytes;
      const std::size_t run = static_cast<std::size_t>(plan.run);
      for (std::int64_t unit = first; unit < last;) {
        std::int64_t in_offset, out_offset;
        OuterOffsets(plan, unit, &in_offset, &out_offset);
        const std::int64_t count = std::min(last - unit, inner_size - unit % inner_size);
        const char* src = from + in_offset * bytes;
        char* dst = to + unit * plan.run;
        for (std::int64_t i = 0; i < count; ++i, src += in_step, dst += run)
          std::memcpy(dst, src, run);
        unit += count;
      }
      return;
    }
    case TransposePlan::Kind::kPlanes:
      for (std::int64_t unit = first; unit < last; ++unit) {
        std::int64_t in_offset, out_offset;
        const std::int64_t strip = unit / plan.cuts;
        OuterOffsets(plan, strip / plan.strips, &in_offset, &out_offset);
        const std::int64_t row = strip % plan.strips * plan.strip_rows;
        const std::int64_t rows = std::min(plan.strip_rows, plan.rows - row);
        const std::int64_t col_step = ColumnStep(plan.rows, bytes);
        const std::int64_t first_col = unit % plan.cuts * plan.unit_cols;
        const std::int64_t end_col = std::min(plan.cols, first_col + plan.unit_cols);
        for (std::int64_t col = first_col; col < end_col; col += col_step) {
          const std::int64_t cols = std::min(col_step, end_col - col);
          plan.block(from + (in_offset + row * plan.in_row_stride + col) * bytes,
                     static_cast<std::size_t>(plan.in_row_stride),
                     to + (out_offset + col * plan.out_col_stride + row) * bytes,
                     static_cast<std::size_t>(plan.out_col_stride), static_cast<std::size_t>(rows),
                     static_cast<std::size_t>(cols));
        }
      }
      return;
  }
}

}  // namespace npurt::kernels
