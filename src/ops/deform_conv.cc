// DeformConv: a convolution whose taps are moved by `offset`, by fractions of an element for each
// output element, interpolated (zero outside of x) and multiplied by `mask`.
#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/checked_math.h"
#include "kernels/gemm/gemm.h"
#include "ops/conv_geometry.h"
#include "ops/move.h"
#include "ops/poller.h"

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
template <typename Context>
absl::Status CheckShape(const Context& context, int i, std::int64_t channels) {
  if (!context.has_input(i)) return absl::OkStatus();
  Dims want(context.output_dims(0).begin(), context.output_dims(0).end());
  want[1] = channels;
  if (context.dims(i) == absl::MakeConstSpan(want)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(i == kMask ? "the mask" : "the offset",
                                                 " has shape ", ShapeString(context.dims(i)),
                                                 ", want ", ShapeString(want)));
}

// Sizes, checked now that symbols are numbers. `Context` is a BindContext or a RunContext.
template <typename Context>
absl::StatusOr<ConvGeometry> CheckedGeometry(const Context& context, const Attributes& attributes) {
  NPURT_ASSIGN_OR_RETURN(ConvGeometry g, ConvGeometryOf(attributes, false, context.dims(kX),
                                                        context.dims(kW), context.output_dims(0)));
  NPURT_RETURN_IF_ERROR(CheckConvBias(g, context.has_input(kBias) ? context.count(kBias) : -1));
  const std::int64_t groups = OffsetGroups(attributes), channels = g.in_channels * g.groups;
  if (channels % groups != 0)
    return absl::InvalidArgumentError(
        absl::StrCat("offset_group is ", groups, ", x has ", channels, " channels"));
  const int spatial = static_cast<int>(g.in.size());
  const std::int64_t taps = ProductOf(g.kernel, 0, spatial);
  NPURT_RETURN_IF_ERROR(CheckShape(context, kOffset, groups * taps * spatial));
  NPURT_RETURN_IF_ERROR(CheckShape(context, kMask, groups * taps));
  return g;
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
    NPURT_ASSIGN_OR_RETURN(const ConvGeometry g, CheckedGeometry(run, run.attributes()));
    const std::size_t spatial = g.in.size();
    const std::int64_t offset_groups = OffsetGroups(run.attributes());
    const std::int64_t channels = g.in_channels * g.groups;
    const std::int64_t taps = ProductOf(g.kernel, 0, static_cast<int>(spatial));
    const std::int64_t points = ProductOf(g.out, 0, static_cast<int>(spatial));
    const std::int64_t plane = ProductOf(g.in, 0, static_cast<int>(spatial));
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

// --- float32
// --------------------------------------------------------------------------------------- A tile is
// a block of output points of one image: what their taps see becomes a matrix of a row per channel
// and tap and a column per point, which the weights multiply.

constexpr std::size_t kFastSpatial = 3;
constexpr int kMaxCorners = 1 << kFastSpatial;

struct State final : Prepared {
  const kernels::GemmKernel* gemm = nullptr;
};

struct Plan {
  int spatial;
  std::int64_t in[kFastSpatial], out[kFastSpatial], kernel[kFastSpatial];
  std::int64_t stride[kFastSpatial], dilation[kFastSpatial], pad[kFastSpatial];
  std::int64_t groups, in_channels, out_channels;  // channels of one group
  std::int64_t offset_groups, taps, points, plane;
  std::int64_t block, blocks;  // points of a tile, tiles of an image
  kernels::GemmProblem problem;
  kernels::GemmTiling tiling;
  // In scratch, in floats: the matrix, its product, and the gemm's own.
  std::int64_t product_at, gemm_at;
};

absl::StatusOr<std::unique_ptr<Prepared>> Prepare(PrepareContext& context) {
  const ValueType& x = context.type(kX);
  if (x.dtype != DType::kF32 || x.dims.size() > kFastSpatial + 2) return nullptr;
  auto state = std::make_unique<State>();
  state->gemm = kernels::SelectGemmKernel(MatrixIsa(context));
  state->kernel = state->gemm->name;
  return state;
}

absl::Status Bind(BindContext& context) {
  NPURT_ASSIGN_OR_RETURN(const ConvGeometry g, CheckedGeometry(context, context.attributes()));
  if (context.output_count_of(0) == 0) {
    context.SetTiles(0, 0);
    return absl::OkStatus();
  }
  Plan& p = *context.New<Plan>();
  p.spatial = static_cast<int>(g.in.size());
  p.taps = p.points = p.plane = 1;
  for (std::size_t d = 0; d < g.in.size(); ++d) {
    p.in[d] = g.in[d];
    p.out[d] = g.out[d];
    p.kernel[d] = g.kernel[d];
    p.stride[d] = g.stride[d];
    p.dilation[d] = g.dilation[d];
    p.pad[d] = g.pad[d];
    p.taps *= g.kernel[d];
    p.points *= g.out[d];
    p.plane *= g.in[d];
  }
  p.groups = g.groups;
  p.in_channels = g.in_channels;
  p.out_channels = g.out_channels;
  p.offset_groups = OffsetGroups(context.attributes());
  // About a quarter of a megabyte of matrix.
  constexpr std::int64_t kFloats = 1 << 16, kMaxRows = std::int64_t{1} << 40;
  std::int64_t rows;
  if (!CheckedMul(p.groups * p.in_channels, p.taps, &rows) || rows > kMaxRows ||
      p.out_channels > kMaxRows)
    return absl::ResourceExhaustedError("too many channels");
  p.block = std::clamp<std::int64_t>(kFloats / std::max<std::int64_t>(rows, 1) / 16 * 16, 16, 512);
  p.blocks = CeilDiv(p.points, p.block);
  p.problem = kernels::GemmProblem();
  p.problem.m = p.out_channels;
  p.problem.n = p.block;
  p.problem.k = p.in_channels * p.taps;
  p.problem.a_row_stride = p.problem.k;
  p.problem.b_k_stride = p.block;
  p.tiling = kernels::PlanGemm(p.problem, *context.prepared<State>()->gemm);
  p.product_at = rows * p.block;
  p.gemm_at = p.product_at + p.out_channels * p.block;
  constexpr double kNsPerSample = 3;
  context.SetTiles(g.batch * p.blocks, kNsPerSample * static_cast<double>(rows * p.block) +
                                           p.tiling.flops_per_tile *
                                               static_cast<double>(p.tiling.tiles * p.groups) / 50);
  context.SetScratch(static_cast<std::size_t>(p.gemm_at) * sizeof(float) + p.tiling.scratch_bytes);
  return absl::OkStatus();
}

// The elements around a place, and their shares; those outside have the share 0 of element 0.
struct Around {
  std::int64_t at[kMaxCorners];
  float share[kMaxCorners];
};

Around AroundPlace(const Plan& p, const double* place, float factor) {
  Around around = {};
  around.share[0] = factor;
  int count = 1;
  for (int d = 0; d < p.spatial; ++d) {
    if (!(place[d] > -1 && place[d] < static_cast<double>(p.in[d]))) return {};  // NaN too
    const double first = std::floor(place[d]);
    const float t = static_cast<float>(place[d] - first);
    const auto index = static_cast<std::int64_t>(first);
    const bool low = index >= 0, high = index + 1 < p.in[d];
    for (int k = 0; k < count; ++k) {
      const std::int64_t at = around.at[k] * p.in[d];
      const float share = around.share[k];
      around.at[k] = low ? at + index : 0;
      around.share[k] = low ? share * (1 - t) : 0;
      around.at[count + k] = high ? at + index + 1 : 0;
      around.share[count + k] = high ? share * t : 0;
    }
    count *= 2;
  }
  return around;
}

// The columns of points `first` to `first + count` - 1 of image `n`.
void FillMatrix(const RunContext& run, const Plan& p, std::int64_t n, std::int64_t first,
                std::int64_t count, float* matrix) {
  const std::int64_t channels = p.groups * p.in_channels, share = channels / p.offset_groups;
  const int corners = 1 << p.spatial;
  for (std::int64_t og = 0; og < p.offset_groups; ++og)
    for (std::int64_t t = 0; t < p.taps; ++t) {
      const std::int64_t moved = (n * p.offset_groups + og) * p.taps + t;
      for (std::int64_t k = 0; k < p.block; ++k) {
        Around around = {};
        if (k < count) {
          double place[kFastSpatial];
          std::int64_t point = first + k, tap = t;
          for (int d = p.spatial; d-- > 0;) {
            place[d] = static_cast<double>(point % p.out[d] * p.stride[d] - p.pad[d] +
                                           tap % p.kernel[d] * p.dilation[d]) +
                       static_cast<double>(run.Load<float>(
                           kOffset, (moved * p.spatial + d) * p.points + first + k));
            point /= p.out[d];
            tap /= p.kernel[d];
          }
          around = AroundPlace(
              p, place,
              run.has_input(kMask) ? run.Load<float>(kMask, moved * p.points + first + k) : 1);
        }
        for (std::int64_t c = og * share; c < (og + 1) * share; ++c) {
          const std::int64_t plane = (n * channels + c) * p.plane;
          float sum = 0;
          for (int corner = 0; corner < corners; ++corner)
            if (around.share[corner] != 0)
              sum += around.share[corner] * run.Load<float>(kX, plane + around.at[corner]);
          matrix[(c * p.taps + t) * p.block + k] = sum;
        }
      }
    }
}

absl::Status Run(const RunContext& run, std::int64_t tile, void* scratch) {
  const Plan& p = *run.bound<Plan>();
  const std::int64_t n = tile / p.blocks, first = tile % p.blocks * p.block;
  const std::int64_t count = std::min(p.block, p.points - first);
  auto* matrix = static_cast<float*>(scratch);
  float* product = matrix + p.product_at;
  FillMatrix(run, p, n, first, count, matrix);
  for (std::int64_t g = 0; g < p.groups; ++g) {
    kernels::GemmCall call = {&p.problem,
                              &p.tiling,
                              run.in<float>(kW) + g * p.out_channels * p.problem.k,
                              matrix + g * p.problem.k * p.block,
                              product,
                              {},
                              0,
                              StopCheckOf(run)};
    for (std::int64_t i = 0; i < p.tiling.tiles; ++i)
      kernels::RunGemmTile(call, i, matrix + p.gemm_at);
    for (std::int64_t oc = 0; oc < p.out_channels; ++oc) {
      const std::int64_t channel = g * p.out_channels + oc;
      const float bias = run.has_input(kBias) ? run.Load<float>(kBias, channel) : 0;
      const std::int64_t to = (n * p.groups * p.out_channels + channel) * p.points + first;
      for (std::int64_t k = 0; k < count; ++k)
        run.Store<float>(0, to + k, product[oc * p.block + k] + bias);
    }
  }
  return absl::OkStatus();
}

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
    .prepare = Prepare,
    .bind = Bind,
    .run = Run,
};

}  // namespace npurt::ops::deform_conv
