// The taps of a resize, its plan, and the loops around its two passes.
#include "kernels/resize/resize.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>
#include <vector>

#include "base/cpu_isa.h"

namespace npurt::kernels {

const ResizeKernel kResizeKernels[] = {
#define NPURT_RESIZE(isa_set, set) \
  {"resize_f32_" #set, isa_set, resize_blend_f32_##set, resize_gather_f32_##set},
#include "kernels/resize/resize.inc"
#undef NPURT_RESIZE
};
const std::size_t kResizeKernelCount = sizeof(kResizeKernels) / sizeof(kResizeKernels[0]);

const ResizeKernel& SelectResize(IsaSet allowed) {
  std::size_t i = 0;
  while (!HasAll(allowed, kResizeKernels[i].needs)) ++i;  // the generic one needs nothing
  return kResizeKernels[i];
}

namespace {

// The position in the input that output position `o` stands for.
double SourceOf(const ResizeAxis& axis, ResizeCoordinates coordinates, double o) {
  const double in = static_cast<double>(axis.in), out = static_cast<double>(axis.out);
  switch (coordinates) {
    case ResizeCoordinates::kHalfPixel:
      return (o + 0.5) / axis.scale - 0.5;
    case ResizeCoordinates::kHalfPixelSymmetric: {
      // The part of the output that the rounded size cuts off is taken from both ends.
      const double adjustment = out / (axis.scale * in);
      return in / 2 * (1 - adjustment) + (o + 0.5) / axis.scale - 0.5;
    }
    case ResizeCoordinates::kPytorchHalfPixel:
      return axis.out == 1 ? 0 : (o + 0.5) / axis.scale - 0.5;
    case ResizeCoordinates::kAlignCorners: {
      const double exact_out = axis.scale * in;
      return exact_out == 1 ? 0 : o * (in - 1) / (exact_out - 1);
    }
    case ResizeCoordinates::kAsymmetric:
      return o / axis.scale;
    case ResizeCoordinates::kCropAndResize:
      if (axis.out == 1) return (axis.roi_end + axis.roi_start) * (in - 1) / 2;
      return axis.roi_start * (in - 1) +
             o * (axis.roi_end - axis.roi_start) * (in - 1) / (out - 1);
  }
  return 0;
}

double CubicKernel(double x, double a) {
  x = std::fabs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  return 0;
}

double RoundSource(double x, ResizeRounding rounding) {
  switch (rounding) {
    case ResizeRounding::kPreferFloor: return std::ceil(x - 0.5);
    case ResizeRounding::kPreferCeil: return std::floor(x + 0.5);
    case ResizeRounding::kFloor: return std::floor(x);
    case ResizeRounding::kCeil: return std::ceil(x);
  }
  return x;
}

// With antialiasing a shrinking axis widens the filter.
double FilterScale(const ResizeAxis& axis, const ResizeOptions& options) {
  return options.antialias ? std::min(axis.scale, 1.0) : 1.0;
}

// The first tap, counted from floor(source).
std::int64_t FirstTap(const ResizeAxis& axis, const ResizeOptions& options) {
  const double radius = options.mode == ResizeMode::kCubic ? 2 : 1;
  return static_cast<std::int64_t>(std::floor(-radius / FilterScale(axis, options))) + 1;
}

}  // namespace

int ResizeTapCount(const ResizeAxis& axis, const ResizeOptions& options) {
  if (options.mode == ResizeMode::kNearest) return 1;
  return static_cast<int>(2 - 2 * FirstTap(axis, options));
}

bool ResizeTaps(const ResizeAxis& axis, const ResizeOptions& options, std::int64_t o,
                std::int64_t* index, double* weight) {
  const double source = SourceOf(axis, options.coordinates, static_cast<double>(o));
  const bool crop = options.coordinates == ResizeCoordinates::kCropAndResize;
  const bool inside = !crop || (source >= 0 && source <= static_cast<double>(axis.in - 1));
  const auto clamp = [&axis](double at) {
    return static_cast<std::int64_t>(std::clamp(at, 0.0, static_cast<double>(axis.in - 1)));
  };
  if (options.mode == ResizeMode::kNearest) {
    index[0] = clamp(RoundSource(source, options.rounding));
    weight[0] = 1;
    return inside;
  }
  const int taps = ResizeTapCount(axis, options);
  const double scale = FilterScale(axis, options);
  const double base = std::floor(source);
  const double first = base + static_cast<double>(FirstTap(axis, options));
  double sum = 0;
  for (int t = 0; t < taps; ++t) {
    const double at = first + t;
    const double distance = (at - source) * scale;
    weight[t] = options.mode == ResizeMode::kCubic
                    ? CubicKernel(distance, options.cubic_a)
                    : std::max(0.0, 1 - std::fabs(distance));
    if (options.exclude_outside && (at < 0 || at > static_cast<double>(axis.in - 1))) weight[t] = 0;
    sum += weight[t];
    index[t] = clamp(at);
  }
  if ((options.antialias || options.exclude_outside) && sum != 0)
    for (int t = 0; t < taps; ++t) weight[t] /= sum;
  return inside;
}

namespace {

bool IsResized(const ResizeAxis& axis, const ResizeOptions& options) {
  if (options.coordinates == ResizeCoordinates::kCropAndResize &&
      (axis.roi_start != 0 || axis.roi_end != 1))
    return true;
  return axis.in != axis.out || axis.scale != 1;
}

std::size_t Align8(std::size_t n) { return (n + 7) / 8 * 8; }

// Fills all of the plan but the tables; returns the bytes of the block, 0 on failure.
std::size_t Lay(const ResizeAxis* axes, int rank, const ResizeOptions& options, ResizePlan* plan) {
  int first = 0, last = rank - 1;
  while (first < rank && !IsResized(axes[first], options)) ++first;
  while (last > first && !IsResized(axes[last], options)) --last;
  if (first == rank) first = last = std::max(rank - 1, 0);  // a plain copy, row by row
  plan->options = options;
  plan->rank = std::min(last - first + 1, rank);
  if (plan->rank > kResizeMaxRank) return 0;
  for (int i = 0; i < first; ++i) plan->planes *= axes[i].in;
  for (int i = last + 1; i < rank; ++i) plan->inner *= axes[i].in;
  if (rank == 0) {
    plan->rank = 1;
    plan->axes[0] = ResizeAxis();
  }
  std::size_t offset = Align8(sizeof(ResizePlan));
  plan->in_plane = plan->out_plane = plan->inner;
  plan->rows = 1;
  for (int i = plan->rank - 1; i >= 0; --i) {
    if (rank > 0) plan->axes[i] = axes[first + i];
    ResizeAxis& axis = plan->axes[i];
    ResizeOptions axis_options = options;
    if (!IsResized(axis, options)) axis_options.mode = ResizeMode::kNearest;
    plan->taps[i] = ResizeTapCount(axis, axis_options);
    plan->in_strides[i] = plan->in_plane;
    plan->in_plane *= axis.in;
    plan->out_plane *= axis.out;
    if (i < plan->rank - 1) plan->rows *= axis.out;
    if (axis.in >= INT32_MAX || axis.out >= INT32_MAX) return 0;
    const std::size_t out = static_cast<std::size_t>(axis.out);
    const std::size_t entries = out * static_cast<std::size_t>(plan->taps[i]);
    plan->index_offset[i] = offset;
    offset = Align8(offset + entries * sizeof(std::int32_t));
    plan->weight_offset[i] = offset;
    offset = Align8(offset + entries * sizeof(float));
    plan->outside_offset[i] = offset;
    offset = Align8(offset + out);
  }
  if (plan->out_plane == 0 || plan->planes == 0) return offset;
  const ResizeAxis& row = plan->axes[plan->rank - 1];
  std::int64_t blends = 1;
  for (int i = 0; i < plan->rank - 1; ++i) blends *= plan->taps[i];
  const std::int64_t row_cost =
      plan->inner * (row.in * blends + row.out * plan->taps[plan->rank - 1] * 2);
  constexpr std::int64_t kTileCost = 1 << 16;
  const std::int64_t rows = plan->rows * plan->planes;
  plan->rows_per_tile =
      std::clamp<std::int64_t>(kTileCost / std::max<std::int64_t>(row_cost, 1), 1, rows);
  plan->tiles = (rows + plan->rows_per_tile - 1) / plan->rows_per_tile;
  plan->tile_cost = plan->rows_per_tile * row_cost;
  plan->scratch_bytes = static_cast<std::size_t>(row.in * plan->inner) * sizeof(float);
  return offset;
}

template <typename T>
const T* Table(const ResizePlan& plan, std::size_t offset) {
  return reinterpret_cast<const T*>(reinterpret_cast<const char*>(&plan) + offset);
}

}  // namespace

std::size_t ResizePlanBytes(const ResizeAxis* axes, int rank, const ResizeOptions& options) {
  ResizePlan plan;
  return Lay(axes, rank, options, &plan);
}

ResizePlan* PlanResize(const ResizeAxis* axes, int rank, const ResizeOptions& options,
                       void* block) {
  ResizePlan* plan = new (block) ResizePlan;
  Lay(axes, rank, options, plan);
  char* base = static_cast<char*>(block);
  for (int a = 0; a < plan->rank; ++a) {
    const ResizeAxis& axis = plan->axes[a];
    ResizeOptions axis_options = options;
    if (!IsResized(axis, options)) axis_options.mode = ResizeMode::kNearest;
    const int taps = plan->taps[a];
    std::vector<std::int64_t> index(static_cast<std::size_t>(taps));
    std::vector<double> weight(static_cast<std::size_t>(taps));
    std::int32_t* indices = reinterpret_cast<std::int32_t*>(base + plan->index_offset[a]);
    float* weights = reinterpret_cast<float*>(base + plan->weight_offset[a]);
    for (std::int64_t o = 0; o < axis.out; ++o) {
      const bool inside = ResizeTaps(axis, axis_options, o, index.data(), weight.data());
      for (int t = 0; t < taps; ++t) {
        const std::size_t k = static_cast<std::size_t>(t);
        indices[t * axis.out + o] = static_cast<std::int32_t>(index[k]);
        weights[t * axis.out + o] = static_cast<float>(weight[k]);
      }
      base[plan->outside_offset[a] + static_cast<std::size_t>(o)] = inside ? 0 : 1;
    }
  }
  return plan;
}

namespace {

// Output row r of all planes: its plane, its position on the outer axes, whether it is outside.
struct Row {
  std::int64_t plane;
  std::int64_t at[kResizeMaxRank];
  bool outside = false;

  Row(const ResizePlan& plan, std::int64_t r) : plane(r / plan.rows) {
    std::int64_t index = r % plan.rows;
    for (int a = plan.rank - 2; a >= 0; --a) {
      at[a] = index % plan.axes[a].out;
      index /= plan.axes[a].out;
      outside = outside || Table<char>(plan, plan.outside_offset[a])[at[a]] != 0;
    }
  }
};

template <std::size_t kBytes>
void NearestRow(const char* row, const std::int32_t* index, const char* outside,
                const void* extrapolation, std::int64_t n, std::int64_t inner, char* out) {
  if (inner == 1) {
    for (std::int64_t i = 0; i < n; ++i)
      std::memcpy(out + i * static_cast<std::int64_t>(kBytes),
                  outside[i] ? extrapolation
                             : row + std::int64_t{index[i]} * static_cast<std::int64_t>(kBytes),
                  kBytes);
    return;
  }
  const std::int64_t run = inner * static_cast<std::int64_t>(kBytes);
  for (std::int64_t i = 0; i < n; ++i, out += run) {
    if (!outside[i]) {
      std::memcpy(out, row + index[i] * run, static_cast<std::size_t>(run));
      continue;
    }
    for (std::int64_t k = 0; k < inner; ++k)
      std::memcpy(out + k * static_cast<std::int64_t>(kBytes), extrapolation, kBytes);
  }
}

}  // namespace

void RunResizeTile(const ResizeKernel& kernel, const ResizePlan& plan, const float* in, float* out,
                   std::int64_t tile, void* scratch) {
  const int last = plan.rank - 1;
  const ResizeAxis& x = plan.axes[last];
  const std::size_t row_in = static_cast<std::size_t>(x.in * plan.inner);
  const std::int64_t row_out = x.out * plan.inner;
  const std::int32_t* x_index = Table<std::int32_t>(plan, plan.index_offset[last]);
  const float* x_weight = Table<float>(plan, plan.weight_offset[last]);
  const char* x_outside = Table<char>(plan, plan.outside_offset[last]);
  const float beyond = plan.options.extrapolation_value;
  float* blended = static_cast<float*>(scratch);
  const std::int64_t first = tile * plan.rows_per_tile;
  const std::int64_t end = std::min(plan.rows * plan.planes, first + plan.rows_per_tile);
  for (std::int64_t r = first; r < end; ++r) {
    const Row row(plan, r);
    float* to = out + r * row_out;
    if (row.outside) {
      std::fill(to, to + row_out, beyond);
      continue;
    }
    const float* plane = in + row.plane * plan.in_plane;
    const float* from = plane;
    int tap[kResizeMaxRank] = {};
    bool is_first = true;
    for (bool more = last > 0; more;) {
      float weight = 1;
      std::int64_t offset = 0;
      for (int a = 0; a < last; ++a) {
        const std::int64_t entry = tap[a] * plan.axes[a].out + row.at[a];
        weight *= Table<float>(plan, plan.weight_offset[a])[entry];
        offset += Table<std::int32_t>(plan, plan.index_offset[a])[entry] * plan.in_strides[a];
      }
      more = false;
      for (int a = last - 1; a >= 0 && !more; --a) {
        more = ++tap[a] < plan.taps[a];
        if (!more) tap[a] = 0;
      }
      if (is_first && !more) {
        from = plane + offset;  // one tap: nothing to blend, its weight is 1
      } else if (weight != 0 || is_first) {
        kernel.blend(blended, plane + offset, row_in, weight, is_first);
        from = blended;
      }
      is_first = false;
    }
    const int taps = plan.taps[last];
    if (plan.inner == 1) {
      kernel.gather(from, x_index, x_weight, static_cast<std::size_t>(taps), to,
                    static_cast<std::size_t>(x.out));
    } else {
      for (std::int64_t o = 0; o < x.out; ++o)
        for (int t = 0; t < taps; ++t)
          kernel.blend(to + o * plan.inner, from + x_index[t * x.out + o] * plan.inner,
                       static_cast<std::size_t>(plan.inner), x_weight[t * x.out + o], t == 0);
    }
    if (plan.options.coordinates != ResizeCoordinates::kCropAndResize) continue;
    for (std::int64_t o = 0; o < x.out; ++o)
      if (x_outside[o]) std::fill(to + o * plan.inner, to + (o + 1) * plan.inner, beyond);
  }
}

void RunResizeNearestTile(const ResizePlan& plan, std::size_t element_bytes,
                          const void* extrapolation, const void* in, void* out,
                          std::int64_t tile) {
  const int last = plan.rank - 1;
  const ResizeAxis& x = plan.axes[last];
  const std::int64_t bytes = static_cast<std::int64_t>(element_bytes);
  const std::int64_t row_bytes = x.out * plan.inner * bytes;
  const std::int32_t* x_index = Table<std::int32_t>(plan, plan.index_offset[last]);
  const char* x_outside = Table<char>(plan, plan.outside_offset[last]);
  const std::int64_t first = tile * plan.rows_per_tile;
  const std::int64_t end = std::min(plan.rows * plan.planes, first + plan.rows_per_tile);
  const char* previous = nullptr;  // the source of the row just before
  for (std::int64_t r = first; r < end; ++r) {
    const Row row(plan, r);
    char* to = static_cast<char*>(out) + r * row_bytes;
    if (row.outside) {
      previous = nullptr;
      for (std::int64_t i = 0; i < x.out * plan.inner; ++i)
        std::memcpy(to + i * bytes, extrapolation, element_bytes);
      continue;
    }
    std::int64_t offset = row.plane * plan.in_plane;
    for (int a = 0; a < last; ++a)
      offset +=
          Table<std::int32_t>(plan, plan.index_offset[a])[row.at[a]] * plan.in_strides[a];
    const char* from = static_cast<const char*>(in) + offset * bytes;
    if (from == previous) {
      // Upsampling repeats rows.
      std::memcpy(to, to - row_bytes, static_cast<std::size_t>(row_bytes));
      continue;
    }
    previous = from;
    switch (element_bytes) {
      case 1: NearestRow<1>(from, x_index, x_outside, extrapolation, x.out, plan.inner, to); break;
      case 2: NearestRow<2>(from, x_index, x_outside, extrapolation, x.out, plan.inner, to); break;
      case 4: NearestRow<4>(from, x_index, x_outside, extrapolation, x.out, plan.inner, to); break;
      case 8: NearestRow<8>(from, x_index, x_outside, extrapolation, x.out, plan.inner, to); break;
      default:
        NearestRow<16>(from, x_index, x_outside, extrapolation, x.out, plan.inner, to);
    }
  }
}

}  // namespace npurt::kernels
