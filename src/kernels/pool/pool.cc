// Planning of pooling and the loops around its two passes.
#include "kernels/pool/pool.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/cpu_isa.h"

namespace npurt::kernels {

const PoolKernel kPoolKernels[] = {
#define NPURT_POOL(isa_set, set)                                                           \
  {"pool_f32_" #set,     isa_set,           kPoolCombine_##set, pool_slide_max_##set, \
   pool_slide_sum_##set, pool_window_max_##set, pool_window_sum_##set},
#include "kernels/pool/pool.inc"
#undef NPURT_POOL
};
const std::size_t kPoolKernelCount = sizeof(kPoolKernels) / sizeof(kPoolKernels[0]);

const PoolKernel& SelectPool(IsaSet allowed) {
  std::size_t i = 0;
  while (!HasAll(allowed, kPoolKernels[i].needs)) ++i;  // the generic one needs nothing
  return kPoolKernels[i];
}

namespace {

// The k of a window at `start` with start + k * dilation in [low, high).
struct Range {
  std::int64_t first, last;
  std::int64_t size() const { return std::max<std::int64_t>(last - first, 0); }
};
Range Inside(std::int64_t start, std::int64_t window, std::int64_t dilation, std::int64_t low,
             std::int64_t high) {
  const std::int64_t first = start >= low ? 0 : (low - start + dilation - 1) / dilation;
  const std::int64_t last = high <= start ? 0 : (high - start + dilation - 1) / dilation;
  return {std::min(first, window), std::min(last, window)};
}

// Positions that an average divides by, along one axis.
std::int64_t CountOf(const PoolPlan& plan, int axis, std::int64_t out_index) {
  const PoolShape& s = plan.shape;
  const std::int64_t start = out_index * s.stride[axis] - s.pad_begin[axis];
  const std::int64_t low = plan.count_include_pad ? -s.pad_begin[axis] : 0;
  const std::int64_t high = s.in[axis] + (plan.count_include_pad ? s.pad_end[axis] : 0);
  return Inside(start, s.window[axis], s.dilation[axis], low, high).size();
}

// What to multiply sums with: factors[i] = 1 / (outer * (positions along the row)).
void FillFactors(const PoolPlan& plan, std::int64_t outer, float* factors) {
  const int axis = plan.shape.rank - 1;
  for (std::int64_t i = 0; i < plan.shape.out[axis]; ++i) {
    const std::int64_t count = std::max<std::int64_t>(outer * CountOf(plan, axis, i), 1);
    factors[i] = static_cast<float>(1.0 / static_cast<double>(count));
  }
}

}  // namespace

bool PlanPool(const PoolShape& shape, PoolKind kind, bool count_include_pad, PoolPlan* plan) {
  if (shape.rank < 1 || shape.rank > kPoolMaxRank) return false;
  *plan = PoolPlan();
  plan->shape = shape;
  plan->kind = kind;
  plan->count_include_pad = count_include_pad;
  std::int64_t window = 1;
  plan->rows = 1;
  for (int i = 0; i < shape.rank; ++i) {
    plan->in_plane *= shape.in[i];
    plan->out_plane *= shape.out[i];
    if (i < shape.rank - 1) plan->rows *= shape.out[i];
    window *= shape.window[i];
  }
  const int last = shape.rank - 1;
  if (plan->out_plane == 0 || shape.planes == 0) return true;
  plan->row_length = (shape.out[last] - 1) * shape.stride[last] +
                     (shape.window[last] - 1) * shape.dilation[last] + 1;
  // Slack for whole vectors past the last window, in steps of up to two.
  const std::size_t floats = static_cast<std::size_t>(plan->row_length) + 2 * kPoolRowSlack;
  plan->row_floats = static_cast<std::int64_t>((floats + 15) / 16 * 16);
  plan->scratch_bytes = static_cast<std::size_t>(plan->row_floats) * sizeof(float);
  if (kind == PoolKind::kAverage)
    plan->scratch_bytes += static_cast<std::size_t>(shape.out[last]) * sizeof(float);
  constexpr std::int64_t kTileCost = 1 << 17;
  const std::int64_t row_cost = std::max<std::int64_t>(shape.out[last] * window, 1);
  const std::int64_t all_rows = plan->rows * shape.planes;
  plan->rows_per_tile = std::clamp<std::int64_t>(kTileCost / row_cost, 1, all_rows);
  plan->tiles = (all_rows + plan->rows_per_tile - 1) / plan->rows_per_tile;
  plan->tile_cost = plan->rows_per_tile * row_cost;
  return true;
}

namespace {

// The rows of one tile. Ops has: T, nothing(), combine(acc, row, n, first), slide(row, out, n, stride,
// window, dilation), finish(counted, out row).
template <typename T, typename Ops>
void RunRows(const Ops& ops, const PoolPlan& plan, const T* in, T* out, std::int64_t tile,
             void* scratch) {
  const PoolShape& s = plan.shape;
  const int last = s.rank - 1;
  T* row = static_cast<T*>(scratch);
  std::fill(row, row + plan.row_floats, ops.nothing);
  // Where the input row lies in the combined row.
  const std::int64_t skip = std::max<std::int64_t>(-s.pad_begin[last], 0);
  const std::int64_t at = std::max<std::int64_t>(s.pad_begin[last], 0);
  const std::int64_t length =
      std::max<std::int64_t>(std::min(s.in[last] - skip, plan.row_length - at), 0);

  const std::int64_t first = tile * plan.rows_per_tile;
  const std::int64_t end = std::min(plan.rows * s.planes, first + plan.rows_per_tile);
  for (std::int64_t r = first; r < end; ++r) {
    const T* plane = in + r / plan.rows * plan.in_plane;
    Range range[kPoolMaxRank];
    std::int64_t start[kPoolMaxRank], stride[kPoolMaxRank], at_k[kPoolMaxRank];
    std::int64_t index = r % plan.rows, step = s.in[last], positions = 1, counted = 1;
    for (int a = last - 1; a >= 0; --a) {
      const std::int64_t o = index % s.out[a];
      index /= s.out[a];
      start[a] = o * s.stride[a] - s.pad_begin[a];
      range[a] = Inside(start[a], s.window[a], s.dilation[a], 0, s.in[a]);
      at_k[a] = range[a].first;
      stride[a] = step;
      step *= s.in[a];
      positions *= range[a].size();
      if (plan.kind == PoolKind::kAverage) counted *= CountOf(plan, a, o);
    }
    if (positions == 0 || length == 0) {
      std::fill(row + at, row + at + length, ops.nothing);
    } else {
      for (std::int64_t p = 0; p < positions; ++p) {
        std::int64_t offset = skip;
        for (int a = 0; a < last; ++a) offset += (start[a] + at_k[a] * s.dilation[a]) * stride[a];
        ops.combine(row + at, plane + offset, static_cast<std::size_t>(length), p == 0);
        for (int a = last - 1; a >= 0; --a) {
          if (++at_k[a] < range[a].last) break;
          at_k[a] = range[a].first;
        }
      }
    }
    T* to = out + r * s.out[last];
    ops.slide(row, to, static_cast<std::size_t>(s.out[last]), static_cast<std::size_t>(s.stride[last]),
          static_cast<std::size_t>(s.window[last]), static_cast<std::size_t>(s.dilation[last]));
    ops.finish(counted, to);
  }
}

struct FloatRows {
  const PoolPlan& plan;
  PoolCombineFn combine;
  PoolSlideFn slide;
  float nothing;
  float* factors;  // of an average whose rows count `factors_of` positions
  mutable std::int64_t factors_of = -1;
  void finish(std::int64_t counted, float* to) const {
    if (plan.kind == PoolKind::kAverage) {
      if (factors_of != counted) FillFactors(plan, counted, factors);
      factors_of = counted;
      for (std::int64_t i = 0; i < plan.shape.out[plan.shape.rank - 1]; ++i) to[i] *= factors[i];
    }
    if (plan.kind == PoolKind::kLp2)
      for (std::int64_t i = 0; i < plan.shape.out[plan.shape.rank - 1]; ++i)
        to[i] = std::sqrt(to[i]);
  }
};

// The largest of bytes, for any CPU: loops that compilers turn into vectors.
template <typename T>
struct ByteRows {
  static constexpr T nothing = std::numeric_limits<T>::min();
  static void combine(T* acc, const T* row, std::size_t n, bool first) {
    if (first) {
      std::copy_n(row, n, acc);
      return;
    }
    for (std::size_t i = 0; i < n; ++i) acc[i] = std::max(acc[i], row[i]);
  }
  template <std::size_t kStride>
  static void Slide(const T* row, T* out, std::size_t n, std::size_t stride) {
    const std::size_t step = kStride == 0 ? stride : kStride;
    for (std::size_t i = 0; i < n; ++i) out[i] = std::max(out[i], row[i * step]);
  }
  static void slide(const T* row, T* out, std::size_t n, std::size_t stride, std::size_t window,
                    std::size_t dilation) {
    std::fill_n(out, n, nothing);
    for (std::size_t k = 0; k < window; ++k, row += dilation)
      (stride == 1 ? Slide<1> : stride == 2 ? Slide<2> : Slide<0>)(row, out, n, stride);
  }
  static void finish(std::int64_t, T*) {}
};

}  // namespace

namespace {

// Whether the last axis is one of channels, along which nothing slides, after one or two others.
bool IsChannelsLast(const PoolShape& s) {
  const int last = s.rank - 1;
  return (s.rank == 2 || s.rank == 3) && s.window[last] == 1 && s.stride[last] == 1 &&
         s.pad_begin[last] == 0 && s.in[last] == s.out[last];
}

void RunChannelsLast(const PoolKernel& kernel, const PoolPlan& plan, const float* in, float* out,
                     std::int64_t tile) {
  const PoolShape& s = plan.shape;
  const bool max = plan.kind == PoolKind::kMax, flat = s.rank == 2;
  const int x_axis = s.rank - 2;
  const std::int64_t channels = s.in[s.rank - 1], width = s.out[x_axis];
  const std::int64_t first = tile * plan.rows_per_tile;
  const std::int64_t end = std::min(plan.rows * s.planes, first + plan.rows_per_tile);
  PoolWindowArgs args;
  args.channels = channels;
  args.col_stride = s.dilation[x_axis] * channels;
  args.pixel_stride = s.stride[x_axis] * channels;
  args.row_stride = flat ? 0 : s.dilation[0] * s.in[x_axis] * channels;
  for (std::int64_t pixel = first; pixel < end;) {
    const std::int64_t x = pixel % width, y = flat ? 0 : pixel % plan.rows / width;
    const float* const plane = in + pixel / plan.rows * plan.in_plane;
    const std::int64_t top = flat ? 0 : y * s.stride[0] - s.pad_begin[0];
    const Range rows = flat ? Range{0, 1} : Inside(top, s.window[0], s.dilation[0], 0, s.in[0]);
    const std::int64_t left = x * s.stride[x_axis] - s.pad_begin[x_axis];
    const Range cols = Inside(left, s.window[x_axis], s.dilation[x_axis], 0, s.in[x_axis]);
    args.pixels = 1;
    const std::int64_t reach = (s.window[x_axis] - 1) * s.dilation[x_axis];
    if (left >= 0 && left + reach < s.in[x_axis])  // and so are those up to the right border
      args.pixels = std::min({width - x, end - pixel,
                              (s.in[x_axis] - 1 - reach - left) / s.stride[x_axis] + 1});
    // Where an average counts padding, whole windows all count the same if their ends do.
    if (!max) {
      const std::int64_t counted = (flat ? 1 : CountOf(plan, 0, y)) * CountOf(plan, x_axis, x);
      args.factor =
          static_cast<float>(1.0 / static_cast<double>(std::max<std::int64_t>(counted, 1)));
    }
    float* const to = out + pixel * channels;
    if (rows.size() == 0 || cols.size() == 0) {
      std::fill_n(to, channels, max ? -std::numeric_limits<float>::infinity() : 0.0f);
      args.pixels = 1;
    } else {
      args.rows = rows.size();
      args.cols = cols.size();
      args.in = plane + ((flat ? 0 : (top + rows.first * s.dilation[0]) * s.in[x_axis]) + left +
                         cols.first * s.dilation[x_axis]) *
                            channels;
      args.out = to;
      (max ? kernel.window_max : kernel.window_sum)(args);
    }
    pixel += args.pixels;
  }
}

}  // namespace

void RunPoolTile(const PoolKernel& kernel, const PoolPlan& plan, const float* in, float* out,
                 std::int64_t tile, void* scratch) {
  if ((plan.kind == PoolKind::kMax || plan.kind == PoolKind::kAverage) && IsChannelsLast(plan.shape))
    return RunChannelsLast(kernel, plan, in, out, tile);
  const bool max = plan.kind == PoolKind::kMax;
  const PoolFold fold = max                               ? PoolFold::kMax
                        : plan.kind == PoolKind::kAverage ? PoolFold::kSum
                        : plan.kind == PoolKind::kLp1     ? PoolFold::kSumAbs
                                                          : PoolFold::kSumSquares;
  RunRows<float>(FloatRows{plan, kernel.combine[static_cast<int>(fold)],
                           max ? kernel.slide_max : kernel.slide_sum,
                           max ? -std::numeric_limits<float>::infinity() : 0.0f,
                           static_cast<float*>(scratch) + plan.row_floats},
                 plan, in, out, tile, scratch);
}

void RunMaxPoolTile(const PoolPlan& plan, const std::int8_t* in, std::int8_t* out,
                    std::int64_t tile, void* scratch) {
  RunRows<std::int8_t>(ByteRows<std::int8_t>(), plan, in, out, tile, scratch);
}
void RunMaxPoolTile(const PoolPlan& plan, const std::uint8_t* in, std::uint8_t* out,
                    std::int64_t tile, void* scratch) {
  RunRows<std::uint8_t>(ByteRows<std::uint8_t>(), plan, in, out, tile, scratch);
}

}  // namespace npurt::kernels
