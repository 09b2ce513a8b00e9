// DeformConv: a convolution whose taps are moved by `offset`, by fractions of an element for each
// output element, interpolated (zero outside of x) and multiplied by `mask`.
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ops/conv_geometry.h"
#include "ops/move.h"

namespace npurt::ops::deform_conv {
namespace {

constexpr int kX = 0, kW = 1, kOffset = 2, kBias = 3, kMask = 4;
constexpr std::size_t kMaxSpatial = 6;

std::int64_t OffsetGroups(const Attributes& attributes) {
  return attributes.Int("offset_group", 1);
}

absl::Status Infer(InferContext& context) {
  NPURT_RETURN_IF_ERROR(InferConv(context, false, kBias));
  const int rank = context.rank(kX);
  if (static_cast<std::size_t>(rank) > kMaxSpatial + 2)
    return absl::UnimplementedError(absl::StrCat("x has rank ", rank));
  NPURT_RETURN_IF_ERROR(WantRank(context, kOffset, rank));
  NPURT_RETURN_IF_ERROR(WantRank(context, kMask, rank));
  const std::int64_t groups = OffsetGroups(context.attributes());
  const Dim channels = context.shape(kX)[1];
  if (groups < 1 || (channels.is_constant() && channels.value() % groups != 0))
    return absl::InvalidArgumentError(
        absl::StrCat("offset_group is ", groups, ", x has shape ", ShapeString(context.shape(kX))));
  return absl::OkStatus();
}

// An error unless input `i`, if present, is [batch, channels, output...].
absl::Status CheckShape(const RunContext& run, int i, std::int64_t channels) {
  if (!run.has_input(i)) return absl::OkStatus();
  Dims want(run.output_dims(0).begin(), run.output_dims(0).end());
  want[1] = channels;
  if (run.dims(i) == absl::MakeConstSpan(want)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(i == kMask ? "the mask" : "the offset",
                                                 " has shape ", ShapeString(run.dims(i)), ", want ",
                                                 ShapeString(want)));
}

// The elements of a plane around a place, and their shares.
struct Corner {
  std::int64_t at;
  double share;
};

void CornersAt(absl::Span<const double> place, absl::Span<const std::int64_t> dims,
               const Dims& strides, std::vector<Corner>* corners) {
  corners->assign(1, {0, 1.0});
  for (std::size_t d = 0; d < dims.size(); ++d) {
    const double size = static_cast<double>(dims[d]);
    if (!(place[d] > -1 && place[d] < size)) return corners->clear();  // NaN too
    const double first = std::floor(place[d]), t = place[d] - first;
    const std::size_t old = corners->size();
    for (std::size_t k = 0; k < old; ++k)
      for (int side = 0; side < 2; ++side) {
        const std::int64_t index = static_cast<std::int64_t>(first) + side;
        const double share = side == 0 ? 1 - t : t;
        if (index >= 0 && index < dims[d] && share != 0)
          corners->push_back({(*corners)[k].at + index * strides[d], (*corners)[k].share * share});
      }
    corners->erase(corners->begin(), corners->begin() + static_cast<std::ptrdiff_t>(old));
  }
}

template <typename T>
struct Reference {
  static absl::Status Run(const RunContext& run) {
    const Attributes& attributes = run.attributes();
    NPURT_ASSIGN_OR_RETURN(const ConvGeometry g, ConvGeometryOf(attributes, false, run.dims(kX),
                                                                run.dims(kW), run.output_dims(0)));
    NPURT_RETURN_IF_ERROR(CheckConvBias(g, run.has_input(kBias) ? run.count(kBias) : -1));
    const std::size_t spatial = g.in.size();
    const std::int64_t offset_groups = OffsetGroups(attributes);
    const std::int64_t channels = g.in_channels * g.groups;
    const std::int64_t taps = ProductOf(g.kernel, 0, static_cast<int>(spatial));
    const std::int64_t points = ProductOf(g.out, 0, static_cast<int>(spatial));
    const std::int64_t plane = ProductOf(g.in, 0, static_cast<int>(spatial));
    if (channels % offset_groups != 0)
      return absl::InvalidArgumentError(
          absl::StrCat("offset_group is ", offset_groups, ", x has ", channels, " channels"));
    NPURT_RETURN_IF_ERROR(
        CheckShape(run, kOffset, offset_groups * taps * static_cast<std::int64_t>(spatial)));
    NPURT_RETURN_IF_ERROR(CheckShape(run, kMask, offset_groups * taps));
    if (run.output_count_of(0) == 0) return absl::OkStatus();

    const Dims strides = StridesOf(g.in);
    std::vector<double> column(static_cast<std::size_t>(channels * taps));  // what the taps see
    std::vector<Corner> corners;
    double place[kMaxSpatial];
    for (std::int64_t n = 0; n < g.batch; ++n) {
      Dims at(spatial, 0);
      std::int64_t p = 0;
      do {
        NPURT_RETURN_IF_ERROR(run.Poll());
        for (std::int64_t og = 0; og < offset_groups; ++og) {
          Dims tap(spatial, 0);
          for (std::int64_t t = 0; t < taps; ++t) {
            for (std::size_t d = 0; d < spatial; ++d) {
              const std::int64_t moved =
                  ((n * offset_groups + og) * taps + t) * static_cast<std::int64_t>(spatial) +
                  static_cast<std::int64_t>(d);
              place[d] =
                  static_cast<double>(at[d] * g.stride[d] - g.pad[d] + tap[d] * g.dilation[d]) +
                  RealAt(run, kOffset, moved * points + p);
            }
            CornersAt(absl::MakeConstSpan(place, spatial), g.in, strides, &corners);
            const std::int64_t masked = ((n * offset_groups + og) * taps + t) * points + p;
            const double factor = run.has_input(kMask) ? RealAt(run, kMask, masked) : 1;
            const std::int64_t share = channels / offset_groups;
            for (std::int64_t c = og * share; c < (og + 1) * share; ++c) {
              double sum = 0;
              for (const Corner& corner : corners)
                sum += corner.share *
                       static_cast<double>(run.Load<T>(kX, (n * channels + c) * plane + corner.at));
              column[static_cast<std::size_t>(c * taps + t)] = sum * factor;
            }
            NextIndex(g.kernel, absl::MakeSpan(tap));
          }
        }
        const std::int64_t depth = g.in_channels * taps;
        for (std::int64_t oc = 0; oc < g.groups * g.out_channels; ++oc) {
          const std::int64_t first = oc / g.out_channels * depth;
          double sum = run.has_input(kBias) ? RealAt(run, kBias, oc) : 0;
          for (std::int64_t i = 0; i < depth; ++i)
            sum += static_cast<double>(run.Load<T>(kW, oc * depth + i)) *
                   column[static_cast<std::size_t>(first + i)];
          run.Store<T>(0, (n * g.groups * g.out_channels + oc) * points + p, static_cast<T>(sum));
        }
        ++p;
      } while (NextIndex(g.out, absl::MakeSpan(at)));
    }
    return absl::OkStatus();
  }
};

}  // namespace

extern constexpr OpDef kOp = {
    .name = "DeformConv",
    .inputs = {{"x", "T"}, {"w", "T"}, {"offset", "T"}, {"?b", "T"}, {"?mask", "T"}},
    .outputs = {{"y", "T"}},
    .types = {{"T", kFloats}},
    .attributes = {{"dilations", AttrKind::kInts},
                   {"group", AttrKind::kInt},
                   {"kernel_shape", AttrKind::kInts},
                   {"offset_group", AttrKind::kInt},
                   {"pads", AttrKind::kInts},
                   {"strides", AttrKind::kInts}},
    .infer = Infer,
    .reference = ForEachType<Reference, kFloats>,
};

}  // namespace npurt::ops::deform_conv
