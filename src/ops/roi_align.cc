// RoiAlign: each region of interest is cut into a grid of cells; a cell is the mean (or maximum) of
// bilinear samples at regular points in it.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "ops/move.h"

namespace npurt::ops::roi_align {
namespace {

absl::Status Infer(InferContext& context) {
  NPURT_RETURN_IF_ERROR(WantRank(context, 0, 4));
  NPURT_RETURN_IF_ERROR(WantRank(context, 1, 2));
  NPURT_RETURN_IF_ERROR(WantRank(context, 2, 1));
  const Attributes& a = context.attributes();
  const std::string mode = a.String("mode", "avg");
  const std::string transform = a.String("coordinate_transformation_mode", "half_pixel");
  const std::int64_t height = a.Int("output_height", 1), width = a.Int("output_width", 1);
  if ((mode != "avg" && mode != "max") || a.Int("sampling_ratio", 0) < 0 ||
      (transform != "half_pixel" && transform != "output_half_pixel") || height < 1 || width < 1)
    return absl::InvalidArgumentError(
        absl::StrCat("mode '", mode, "', coordinate_transformation_mode '", transform, "', output ",
                     height, " x ", width));
  const Dim count = context.shape(1)[0];
  if (context.shape(1)[1].is_constant() && !context.shape(1)[1].Is(4))
    return absl::InvalidArgumentError(
        absl::StrCat("rois have shape ", ShapeString(context.shape(1)), ", want [n, 4]"));
  context.set_output(0, context.dtype(0), {count, context.shape(0)[1], height, width});
  return absl::OkStatus();
}

// Four neighbours of a sample point and their shares; all zero outside of the image.
struct Sample {
  std::int64_t at[4];
  double share[4];
};

Sample SampleAt(double y, double x, std::int64_t height, std::int64_t width) {
  Sample s = {};
  if (!(y >= -1 && y <= static_cast<double>(height) && x >= -1 && x <= static_cast<double>(width)))
    return s;
  y = std::max(y, 0.0);
  x = std::max(x, 0.0);
  std::int64_t y0 = static_cast<std::int64_t>(y), x0 = static_cast<std::int64_t>(x);
  if (y0 >= height - 1) y = static_cast<double>(y0 = height - 1);
  if (x0 >= width - 1) x = static_cast<double>(x0 = width - 1);
  const std::int64_t y1 = std::min(y0 + 1, height - 1), x1 = std::min(x0 + 1, width - 1);
  const double dy = y - static_cast<double>(y0), dx = x - static_cast<double>(x0);
  return {{y0 * width + x0, y0 * width + x1, y1 * width + x0, y1 * width + x1},
          {(1 - dy) * (1 - dx), (1 - dy) * dx, dy * (1 - dx), dy * dx}};
}

// Region `r` as a grid of cells, each with grid_h x grid_w samples.
struct Region {
  std::int64_t batch, grid_h, grid_w, height, width;
  double x0, y0, cell_h, cell_w;

  Sample At(std::int64_t i, std::int64_t j, std::int64_t gy, std::int64_t gx) const {
    const auto place = [](std::int64_t cell, std::int64_t g, std::int64_t grid) {
      return static_cast<double>(cell) + (static_cast<double>(g) + 0.5) / static_cast<double>(grid);
    };
    return SampleAt(y0 + cell_h * place(i, gy, grid_h), x0 + cell_w * place(j, gx, grid_w), height,
                    width);
  }
};

double OffsetOf(const Attributes& a) {
  return a.String("coordinate_transformation_mode", "half_pixel") == "half_pixel" ? 0.5 : 0;
}

absl::StatusOr<Region> RegionOf(const RunContext& run, std::int64_t r, double offset) {
  const Attributes& a = run.attributes();
  const double scale = static_cast<double>(a.Float("spatial_scale", 1));
  const std::int64_t ratio = a.Int("sampling_ratio", 0);
  const auto x = run.dims(0), out = run.output_dims(0);
  Region region;
  region.batch = IndexAt(run, 2, r);
  region.height = x[2];
  region.width = x[3];
  if (region.batch < 0 || region.batch >= x[0]) return IndexError(region.batch, x[0]);
  if (region.height == 0 || region.width == 0)
    return absl::InvalidArgumentError("there are no pixels to sample");
  const auto corner = [&](int k) { return RealAt(run, 1, 4 * r + k) * scale - offset; };
  region.x0 = corner(0);
  region.y0 = corner(1);
  double w = corner(2) - region.x0, h = corner(3) - region.y0;
  if (offset == 0) {  // the older form keeps regions at least one pixel wide
    w = std::max(w, 1.0);
    h = std::max(h, 1.0);
  }
  region.cell_h = h / static_cast<double>(out[2]);
  region.cell_w = w / static_cast<double>(out[3]);
  constexpr double kMost = 4096;  // more samples in a cell than any image needs
  const auto grid = [&](double cell) {
    return ratio > 0 ? ratio : static_cast<std::int64_t>(std::clamp(std::ceil(cell), 0.0, kMost));
  };
  region.grid_h = grid(region.cell_h);
  region.grid_w = grid(region.cell_w);
  if (region.grid_h > 4096 || region.grid_w > 4096)
    return absl::InvalidArgumentError(absl::StrCat("sampling_ratio is ", ratio));
  return region;
}

absl::Status CheckRegions(const RunContext& run) {
  if (run.dims(1)[1] == 4 && run.count(2) == run.dims(1)[0]) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("rois have shape ", ShapeString(run.dims(1)),
                                                 ", batch_indices ", ShapeString(run.dims(2))));
}

bool IsAverage(const Attributes& a) { return a.String("mode", "avg") == "avg"; }

template <typename T>
struct Reference {
  static absl::Status Run(const RunContext& run) {
    const bool average = IsAverage(run.attributes());
    const double offset = OffsetOf(run.attributes());
    const auto x = run.dims(0), out = run.output_dims(0);
    const std::int64_t channels = x[1];
    NPURT_RETURN_IF_ERROR(CheckRegions(run));
    std::vector<Sample> samples;
    for (std::int64_t r = 0; r < out[0]; ++r) {
      NPURT_RETURN_IF_ERROR(run.Poll());
      NPURT_ASSIGN_OR_RETURN(const Region region, RegionOf(run, r, offset));
      for (std::int64_t i = 0; i < out[2]; ++i)
        for (std::int64_t j = 0; j < out[3]; ++j) {
          samples.clear();
          for (std::int64_t gy = 0; gy < region.grid_h; ++gy)
            for (std::int64_t gx = 0; gx < region.grid_w; ++gx)
              samples.push_back(region.At(i, j, gy, gx));
          for (std::int64_t c = 0; c < channels; ++c) {
            const std::int64_t plane = (region.batch * channels + c) * region.height * region.width;
            double result = 0;
            bool first = true;
            for (const Sample& s : samples) {
              double sum = 0, most = 0;
              for (int k = 0; k < 4; ++k) {
                const double part =
                    s.share[k] * static_cast<double>(run.Load<T>(0, plane + s.at[k]));
                sum += part;
                most = k == 0 ? part : std::max(most, part);
              }
              // The maximum is over the weighted neighbours, as the operator is defined.
              result = average ? result + sum : first ? most : std::max(result, most);
              first = false;
            }
            if (average)
              result /= static_cast<double>(
                  std::max<std::int64_t>(region.grid_h * region.grid_w, 1));
            run.Store<T>(0, ((r * channels + c) * out[2] + i) * out[3] + j,
                         static_cast<T>(result));
          }
        }
    }
    return absl::OkStatus();
  }
};

// The fast version: float32, a given number of samples. A tile is a region: its samples are the same in all
// channels, so that they are found once, and a channel's part of the image is read while it is near.
float LoadAt(const float* p, std::int64_t i) {  // any alignment
  float x;
  std::memcpy(&x, p + i, sizeof x);
  return x;
}
void StoreAt(float* p, std::int64_t i, float x) { std::memcpy(p + i, &x, sizeof x); }

struct Tap {
  std::int64_t at[4];
  float share[4];
};
constexpr std::int64_t kMostTaps = 16384;  // less than a megabyte

struct PreparedRegions : Prepared {
  std::int64_t per_cell = 0;  // taps
  double offset = 0;
  bool average = true;
};

absl::StatusOr<std::unique_ptr<Prepared>> Prepare(PrepareContext& context) {
  const Attributes& a = context.attributes();
  const std::int64_t ratio = a.Int("sampling_ratio", 0);
  const std::int64_t height = a.Int("output_height", 1), width = a.Int("output_width", 1);
  if (context.type(0).dtype != DType::kF32 || ratio < 1 || ratio > 128 || height > 128 ||
      width > 128 || ratio * ratio * height * width > kMostTaps)
    return nullptr;
  auto prepared = std::make_unique<PreparedRegions>();
  prepared->per_cell = ratio * ratio;
  prepared->offset = OffsetOf(a);
  prepared->average = IsAverage(a);
  prepared->kernel = "regions";
  return prepared;
}

absl::Status Bind(BindContext& bind) {
  const auto out = bind.output_dims(0);
  const std::int64_t taps = bind.prepared<PreparedRegions>()->per_cell * out[2] * out[3];
  bind.SetTiles(out[0], static_cast<double>(taps) * static_cast<double>(out[1]) * 2);
  bind.SetScratch(static_cast<std::size_t>(taps) * sizeof(Tap));
  return absl::OkStatus();
}

absl::Status Run(const RunContext& run, std::int64_t r, void* scratch) {
  const auto* prepared = run.prepared<PreparedRegions>();
  const std::int64_t per_cell = prepared->per_cell;
  NPURT_RETURN_IF_ERROR(CheckRegions(run));
  NPURT_ASSIGN_OR_RETURN(const Region region, RegionOf(run, r, prepared->offset));
  const auto x = run.dims(0), out = run.output_dims(0);
  const std::int64_t channels = x[1], cells = out[2] * out[3];
  Tap* const taps = static_cast<Tap*>(scratch);
  Tap* tap = taps;
  for (std::int64_t i = 0; i < out[2]; ++i)
    for (std::int64_t j = 0; j < out[3]; ++j)
      for (std::int64_t g = 0; g < per_cell; ++g, ++tap) {
        const Sample s = region.At(i, j, g / region.grid_w, g % region.grid_w);
        for (int k = 0; k < 4; ++k) {
          tap->at[k] = s.at[k];
          tap->share[k] = static_cast<float>(s.share[k]);
        }
      }
  const bool average = prepared->average;
  const float part_of_mean = 1.0f / static_cast<float>(per_cell);
  for (std::int64_t c = 0; c < channels; ++c) {
    const float* const plane =
        run.in<float>(0) + (region.batch * channels + c) * region.height * region.width;
    float* const to = run.out<float>(0) + (r * channels + c) * cells;
    const Tap* t = taps;
    for (std::int64_t cell = 0; cell < cells; ++cell) {
      float result = 0;
      for (std::int64_t g = 0; g < per_cell; ++g, ++t) {
        float parts[4];
        for (int k = 0; k < 4; ++k) parts[k] = t->share[k] * LoadAt(plane, t->at[k]);
        if (average) {
          result += (parts[0] + parts[1]) + (parts[2] + parts[3]);
        } else {
          const float most =
              std::max(std::max(parts[0], parts[1]), std::max(parts[2], parts[3]));
          result = g == 0 ? most : std::max(result, most);
        }
      }
      StoreAt(to, cell, average ? result * part_of_mean : result);
    }
  }
  return absl::OkStatus();
}

}  // namespace

extern constexpr OpDef kOp = {
    .name = "RoiAlign",
    .inputs = {{"x", "T"}, {"rois", "T"}, {"batch_indices", "int64"}},
    .outputs = {{"y", "T"}},
    .types = {{"T", kFloats}},
    .attributes = {{"coordinate_transformation_mode", AttrKind::kString},
                   {"mode", AttrKind::kString},
                   {"output_height", AttrKind::kInt},
                   {"output_width", AttrKind::kInt},
                   {"sampling_ratio", AttrKind::kInt},
                   {"spatial_scale", AttrKind::kFloat}},
    .infer = Infer,
    .reference = ForEachType<Reference, kFloats>,
    .prepare = Prepare,
    .bind = Bind,
    .run = Run,
};

}  // namespace npurt::ops::roi_align
