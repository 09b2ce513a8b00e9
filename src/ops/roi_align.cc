// RoiAlign: each region of interest is cut into a grid of cells; a cell is the mean (or maximum) of
// bilinear samples at regular points in it.
#include <algorithm>
#include <cmath>

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

template <typename T>
struct Reference {
  static absl::Status Run(const RunContext& run) {
    const Attributes& a = run.attributes();
    const bool average = a.String("mode", "avg") == "avg";
    const double offset =
        a.String("coordinate_transformation_mode", "half_pixel") == "half_pixel" ? 0.5 : 0;
    const double scale = static_cast<double>(a.Float("spatial_scale", 1));
    const std::int64_t ratio = a.Int("sampling_ratio", 0);
    const auto x = run.dims(0), out = run.output_dims(0);
    const std::int64_t channels = x[1], height = x[2], width = x[3];
    if (run.dims(1)[1] != 4 || run.count(2) != run.dims(1)[0])
      return absl::InvalidArgumentError(absl::StrCat("rois have shape ", ShapeString(run.dims(1)),
                                                     ", batch_indices ",
                                                     ShapeString(run.dims(2))));
    std::vector<Sample> samples;
    for (std::int64_t r = 0; r < out[0]; ++r) {
      NPURT_RETURN_IF_ERROR(run.Poll());
      std::int64_t batch = IndexAt(run, 2, r);
      if (batch < 0 || batch >= x[0]) return IndexError(batch, x[0]);
      if (height == 0 || width == 0)
        return absl::InvalidArgumentError("there are no pixels to sample");
      const auto corner = [&](int k) { return RealAt(run, 1, 4 * r + k) * scale - offset; };
      const double x0 = corner(0), y0 = corner(1);
      double w = corner(2) - x0, h = corner(3) - y0;
      if (offset == 0) {  // the older form keeps regions at least one pixel wide
        w = std::max(w, 1.0);
        h = std::max(h, 1.0);
      }
      const double cell_h = h / static_cast<double>(out[2]);
      const double cell_w = w / static_cast<double>(out[3]);
      constexpr double kMost = 4096;  // more samples in a cell than any image needs
      const auto grid = [&](double cell) {
        return ratio > 0 ? ratio
                         : static_cast<std::int64_t>(std::clamp(std::ceil(cell), 0.0, kMost));
      };
      const std::int64_t grid_h = grid(cell_h), grid_w = grid(cell_w);
      if (grid_h > 4096 || grid_w > 4096)
        return absl::InvalidArgumentError(absl::StrCat("sampling_ratio is ", ratio));
      for (std::int64_t i = 0; i < out[2]; ++i)
        for (std::int64_t j = 0; j < out[3]; ++j) {
          samples.clear();
          for (std::int64_t gy = 0; gy < grid_h; ++gy)
            for (std::int64_t gx = 0; gx < grid_w; ++gx)
              samples.push_back(SampleAt(
                  y0 + cell_h * (static_cast<double>(i) + (static_cast<double>(gy) + 0.5) /
                                                              static_cast<double>(grid_h)),
                  x0 + cell_w * (static_cast<double>(j) + (static_cast<double>(gx) + 0.5) /
                                                              static_cast<double>(grid_w)),
                  height, width));
          for (std::int64_t c = 0; c < channels; ++c) {
            const std::int64_t plane = (batch * channels + c) * height * width;
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
              result /= static_cast<double>(std::max<std::int64_t>(grid_h * grid_w, 1));
            run.Store<T>(0, ((r * channels + c) * out[2] + i) * out[3] + j,
                         static_cast<T>(result));
          }
        }
    }
    return absl::OkStatus();
  }
};

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
};

}  // namespace npurt::ops::roi_align
