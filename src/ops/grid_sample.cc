// GridSample: out[n, c, p...] = input[n, c] at the place grid[n, p...], given from -1 to 1 (x, the last
// axis, first), by nearest, linear or cubic interpolation.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "ops/move.h"

namespace npurt::ops::grid_sample {
namespace {

enum class Mode { kNearest, kLinear, kCubic };
enum class Padding { kZeros, kBorder, kReflection };
constexpr int kMaxSpatial = 6;

struct Options {
  Mode mode;
  Padding padding;
  bool align_corners;
};

absl::StatusOr<Options> OptionsOf(const Attributes& attributes) {
  const std::string mode = attributes.String("mode", "linear");
  const std::string padding = attributes.String("padding_mode", "zeros");
  Options o;
  o.align_corners = attributes.Int("align_corners", 0) != 0;
  if (mode == "linear" || mode == "bilinear") o.mode = Mode::kLinear;
  else if (mode == "cubic" || mode == "bicubic") o.mode = Mode::kCubic;
  else if (mode == "nearest") o.mode = Mode::kNearest;
  else
    return absl::InvalidArgumentError(
        absl::StrCat("mode is '", mode, "', want linear, nearest or cubic"));
  if (padding == "zeros") o.padding = Padding::kZeros;
  else if (padding == "border") o.padding = Padding::kBorder;
  else if (padding == "reflection") o.padding = Padding::kReflection;
  else
    return absl::InvalidArgumentError(
        absl::StrCat("padding_mode is '", padding, "', want zeros, border or reflection"));
  return o;
}

absl::Status Infer(InferContext& context) {
  NPURT_RETURN_IF_ERROR(OptionsOf(context.attributes()));
  const SymDims &x = context.shape(0), &grid = context.shape(1);
  const std::size_t rank = x.size();
  const bool fits = rank >= 3 && rank <= kMaxSpatial + 2 && grid.size() == rank &&
                    (!grid.back().is_constant() ||
                     grid.back().Is(static_cast<std::int64_t>(rank) - 2));
  if (!fits)
    return absl::InvalidArgumentError(
        absl::StrCat("x has shape ", ShapeString(x), ", the grid ", ShapeString(grid)));
  SymDims out = {x[0], x[1]};
  out.insert(out.end(), grid.begin() + 1, grid.end() - 1);
  context.set_output(0, context.dtype(0), std::move(out));
  return absl::OkStatus();
}

double Reflect(double x, double low, double high) {
  const double range = high - low;
  if (!(range > 0)) return low;
  double rest = std::fmod(std::fabs(x - low), 2 * range);
  if (rest > range) rest = 2 * range - rest;
  return low + rest;
}

// The index in [0, dim), or -1 where zeros are.
std::int64_t Resolve(double index, std::int64_t dim, const Options& o) {
  const double last = static_cast<double>(dim - 1);
  if (o.padding == Padding::kReflection)
    index = std::nearbyint(o.align_corners ? Reflect(index, 0, last)
                                           : Reflect(index, -0.5, last + 0.5));
  if (o.padding != Padding::kZeros) index = std::clamp(index, 0.0, last);
  return index >= 0 && index <= last ? static_cast<std::int64_t>(index) : -1;
}

// The neighbours along one axis and their weights.
struct Taps {
  int count;
  std::int64_t at[4];
  double weight[4];
};

Taps TapsAt(double normalized, std::int64_t dim, const Options& o) {
  const double size = static_cast<double>(dim);
  double place = o.align_corners ? (normalized + 1) / 2 * (size - 1)
                                 : ((normalized + 1) * size - 1) / 2;
  if (!(std::fabs(place) < 1e15)) place = -1e15;  // also NaN
  if (o.mode == Mode::kNearest) return {1, {Resolve(std::nearbyint(place), dim, o)}, {1}};
  // Cubic interpolation pads its neighbours, linear interpolation the place.
  if (o.mode == Mode::kLinear) {
    if (o.padding == Padding::kBorder) place = std::clamp(place, 0.0, size - 1);
    if (o.padding == Padding::kReflection)
      place = o.align_corners
                  ? Reflect(place, 0, size - 1)
                  : std::clamp(Reflect(place, -0.5, size - 0.5), 0.0, size - 1);
    const double first = std::floor(place), t = place - first;
    return {2, {Resolve(first, dim, o), Resolve(first + 1, dim, o)}, {1 - t, t}};
  }
  const double first = std::floor(place), t = place - first;
  constexpr double kA = -0.75;
  const auto near = [](double d) { return ((kA + 2) * d - (kA + 3)) * d * d + 1; };
  const auto far = [](double d) { return ((kA * d - 5 * kA) * d + 8 * kA) * d - 4 * kA; };
  return {4,
          {Resolve(first - 1, dim, o), Resolve(first, dim, o), Resolve(first + 1, dim, o),
           Resolve(first + 2, dim, o)},
          {far(t + 1), near(t), near(1 - t), far(2 - t)}};
}

template <typename T>
struct Reference {
  static absl::Status Run(const RunContext& run) {
    NPURT_ASSIGN_OR_RETURN(const Options o, OptionsOf(run.attributes()));
    const auto x = run.dims(0), grid = run.dims(1);
    const int spatial = static_cast<int>(x.size()) - 2;
    const std::int64_t plane = ProductOf(x, 2, spatial + 2), channels = x[1];
    const std::int64_t points = ProductOf(grid, 1, spatial + 1);
    if (grid[0] != x[0] || grid.back() != spatial)
      return absl::InvalidArgumentError(
          absl::StrCat("x has shape ", ShapeString(x), ", the grid ", ShapeString(grid)));
    if (plane == 0 && run.output_count_of(0) > 0)
      return absl::InvalidArgumentError("there are no elements to sample");
    const Dims strides = StridesOf(x.subspan(2));
    Taps taps[kMaxSpatial];
    std::vector<std::pair<std::int64_t, double>> weighted;
    for (std::int64_t n = 0; n < x[0]; ++n)
      for (std::int64_t p = 0; p < points; ++p) {
        if (p % 4096 == 0) NPURT_RETURN_IF_ERROR(run.Poll());
        for (int d = 0; d < spatial; ++d)
          taps[d] = TapsAt(RealAt(run, 1, (n * points + p) * spatial + (spatial - 1 - d)),
                           x[static_cast<std::size_t>(d) + 2], o);
        // All combinations of neighbours, the last axis fastest.
        weighted.assign(1, {0, 1.0});
        for (int d = 0; d < spatial; ++d) {
          const std::size_t old = weighted.size();
          for (std::size_t k = 0; k < old; ++k)
            for (int t = 0; t < taps[d].count; ++t)
              if (taps[d].at[t] >= 0 && taps[d].weight[t] != 0)
                weighted.emplace_back(weighted[k].first + taps[d].at[t] * strides[d],
                                      weighted[k].second * taps[d].weight[t]);
          weighted.erase(weighted.begin(), weighted.begin() + static_cast<std::ptrdiff_t>(old));
        }
        for (std::int64_t c = 0; c < channels; ++c) {
          double sum = 0;
          for (const auto& [at, weight] : weighted)
            sum += weight * static_cast<double>(run.Load<T>(0, (n * channels + c) * plane + at));
          run.Store<T>(0, (n * channels + c) * points + p, static_cast<T>(sum));
        }
      }
    return absl::OkStatus();
  }
};

}  // namespace

extern constexpr OpDef kOp = {
    .name = "GridSample",
    .inputs = {{"x", "T1"}, {"grid", "T2"}},
    .outputs = {{"y", "T1"}},
    .types = {{"T1", kPlainTypes}, {"T2", kFloats}},
    .attributes = {{"align_corners", AttrKind::kInt},
                   {"mode", AttrKind::kString},
                   {"padding_mode", AttrKind::kString}},
    .infer = Infer,
    .reference = ForEachType<Reference, kPlainTypes>,
};

}  // namespace npurt::ops::grid_sample
