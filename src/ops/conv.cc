// Conv: Y[n, o, p] = sum over c, t of X[n, c, p * stride - pad + t * dilation] * W[o, c, t] + B[o],
// for any number of spatial dimensions, channels in groups. With data_format "NHWC" images and results
// have their channels last. The fuse pass may add a residual of Y's
// shape and an activation, in this order.
#include "kernels/conv/conv.h"
#include "absl/strings/str_cat.h"
#include "kernels/channels_last/conv.h"
#include "kernels/channels_last/depthwise.h"
#include "kernels/channels_last/winograd.h"
#include "kernels/depthwise/depthwise.h"
#include "kernels/winograd/winograd.h"
#include "ops/conv_geometry.h"
#include "ops/poller.h"

namespace npurt::ops::conv {
namespace {

constexpr int kBias = 2, kResidual = 3;

absl::Status Infer(InferContext& context) { return InferConv(context, false); }

// The next multi-index below `extents`; false after the last.
bool Advance(const Dims& extents, Dims* index) {
  for (std::size_t d = extents.size(); d-- > 0;) {
    if (++(*index)[d] < extents[d]) return true;
    (*index)[d] = 0;
  }
  return false;
}

template <typename Context>
absl::StatusOr<ConvGeometry> CheckedGeometry(const Context& context, const Attributes& attributes) {
  const bool last = ChannelsLast(attributes);
  const auto image = [last](absl::Span<const std::int64_t> dims) {
    return ChannelsFirstOf(Dims(dims.begin(), dims.end()), last);
  };
  NPURT_ASSIGN_OR_RETURN(ConvGeometry g,
                         ConvGeometryOf(attributes, false, image(context.dims(0)), context.dims(1),
                                        image(context.output_dims(0))));
  NPURT_RETURN_IF_ERROR(CheckConvBias(g, context.has_input(kBias) ? context.count(kBias) : -1));
  if (context.has_input(kResidual) && context.dims(kResidual) != context.output_dims(0))
    return absl::InvalidArgumentError(absl::StrCat("residual has shape ",
                                                   ShapeString(context.dims(kResidual)), ", want ",
                                                   ShapeString(context.output_dims(0))));
  return g;
}

template <typename T>
struct Reference {
  static absl::Status Run(const RunContext& run) {
    NPURT_ASSIGN_OR_RETURN(const ConvGeometry g, CheckedGeometry(run, run.attributes()));
    if (run.output_count_of(0) == 0) return absl::OkStatus();
    const kernels::Epilogue epilogue = EpilogueOf(run.attributes());
    Poller poller(run);
    std::int64_t taps = 1, in_plane = 1, out_plane = 1;
    for (std::int64_t extent : g.kernel) taps *= extent;
    for (std::int64_t extent : g.in) in_plane *= extent;
    for (std::int64_t extent : g.out) out_plane *= extent;
    // Elements between channels, and between pixels.
    const bool last = ChannelsLast(run.attributes());
    const std::int64_t in_channels = g.groups * g.in_channels;
    const std::int64_t out_channels = g.groups * g.out_channels;
    const std::int64_t in_channel = last ? 1 : in_plane, in_pixel = last ? in_channels : 1;
    const std::int64_t out_channel = last ? 1 : out_plane, out_pixel = last ? out_channels : 1;
    for (std::int64_t n = 0; n < g.batch; ++n)
      for (std::int64_t o = 0; o < out_channels; ++o) {
        const std::int64_t image =
            n * in_channels * in_plane + o / g.out_channels * g.in_channels * in_channel;
        std::int64_t at = n * out_channels * out_plane + o * out_channel;
        Dims p(g.out.size(), 0);
        do {
          double sum = run.has_input(kBias) ? static_cast<double>(run.Load<T>(kBias, o)) : 0.0;
          Dims t(g.kernel.size(), 0);
          if (taps > 0) {
            std::int64_t tap = 0;
            do {
              std::int64_t x = 0;
              bool inside = true;
              for (std::size_t d = 0; d < p.size(); ++d) {
                const std::int64_t i = p[d] * g.stride[d] - g.pad[d] + t[d] * g.dilation[d];
                inside = inside && i >= 0 && i < g.in[d];
                x = x * g.in[d] + i;
              }
              if (inside)
                for (std::int64_t c = 0; c < g.in_channels; ++c)
                  sum += static_cast<double>(run.Load<T>(0, image + c * in_channel + x * in_pixel)) *
                         static_cast<double>(run.Load<T>(1, (o * g.in_channels + c) * taps + tap));
              ++tap;
            } while (Advance(g.kernel, &t));
          }
          if (run.has_input(kResidual)) sum += static_cast<double>(run.Load<T>(kResidual, at));
          run.Store<T>(0, at, Finished<T>(epilogue, sum));
          at += out_pixel;
          NPURT_RETURN_IF_ERROR(poller.Count(g.in_channels * taps));
        } while (Advance(g.out, &p));
      }
    return absl::OkStatus();
  }
};

struct PreparedConv : Prepared {
  const kernels::GemmKernel* gemm = nullptr;
  const kernels::DepthwiseKernel* depthwise = nullptr;  // null if groups have many channels
  const kernels::WinogradKernel* winograd = nullptr;    // null: a sum over taps
  bool channels_last = false;  // then, of the kernels above, gemm only, and:
  const kernels::DepthwiseLastKernel* depthwise_last = nullptr;
  const kernels::WinogradLastKernel* winograd_last = nullptr;
  PackedBuffer weights;                                 // or nothing: read as they are
};

// Up to here the depthwise kernel does better than a matrix product of so few rows, unless a single
// tap makes the image itself the right operand.
constexpr std::int64_t kMostDepthwiseOutputs = 4;

// Whether the tiles of 2x2 outputs are known to be too few to fill the vectors of the matrix kernels.
bool IsSmall(const ValueType& y, std::size_t first_spatial) {
  constexpr std::int64_t kLeastTiles = 24;
  if (!y.has_rank || y.dims.size() != 4) return false;
  const Dim height = y.dims[first_spatial], width = y.dims[first_spatial + 1];
  const auto tiles = [](Dim size) { return (size.value() + 1) / 2; };
  return height.is_constant() && width.is_constant() && height.value() < 2 * kLeastTiles &&
         width.value() < 2 * kLeastTiles && tiles(height) * tiles(width) < kLeastTiles;
}

// Null: the reference does it. The layout pass makes no such node.
absl::StatusOr<std::unique_ptr<Prepared>> PrepareChannelsLast(PrepareContext& context) {
  const Tensor* w = context.constant(1);
  const std::int64_t groups = context.attributes().Int("group", 1);
  if (w == nullptr || w->rank() > 4 || w->element_count() == 0) return nullptr;
  auto prepared = std::make_unique<PreparedConv>();
  prepared->channels_last = true;
  kernels::ConvProblem problem;
  ToConvProblem(WeightsGeometry(context.attributes(), w->dims()), false, &problem);
  const std::int64_t taps = problem.kernel[1] * problem.kernel[2];
  const bool depthwise = problem.in_channels == 1 && problem.out_channels == 1 && groups > 1;
  if (taps > kernels::kMostChannelsLastTaps) return nullptr;
  if (depthwise && taps <= kernels::kMostDepthwiseLastTaps) {
    prepared->depthwise_last = kernels::SelectDepthwiseLastKernel(MatrixIsa(context));
    prepared->kernel = prepared->depthwise_last->name;
    prepared->packed_bytes = static_cast<std::size_t>(w->element_count()) * sizeof(float);
    NPURT_ASSIGN_OR_RETURN(prepared->weights, context.Pack(prepared->packed_bytes, [&](void* data) {
      kernels::PackDepthwiseLast(groups, taps, static_cast<const float*>(w->data()),
                                 static_cast<float*>(data));
    }));
  } else {
    prepared->gemm = kernels::SelectGemmKernel(MatrixIsa(context));
    prepared->kernel = absl::StrCat("channels_last+", prepared->gemm->name);
    const bool winograd =
        groups == 1 && kernels::WinogradSuits(problem) &&
        !IsSmall(context.output_type(0), /*first_spatial=*/1);
    if (winograd) {
      prepared->winograd_last = kernels::SelectWinogradLastKernel(MatrixIsa(context));
      prepared->kernel = absl::StrCat(prepared->winograd_last->name, "+", prepared->gemm->name);
    }
    const std::int64_t floats = winograd ? kernels::PackedWinogradLastSize(*prepared->gemm, problem)
                                         : kernels::PackedChannelsLastSize(*prepared->gemm, problem);
    if (floats == 0) return absl::ResourceExhaustedError("w is too large to pack");
    prepared->packed_bytes = static_cast<std::size_t>(floats) * sizeof(float);
    std::vector<float> row(static_cast<std::size_t>(kernels::ConvWeightsScratchSize(problem)));
    NPURT_ASSIGN_OR_RETURN(prepared->weights, context.Pack(prepared->packed_bytes, [&](void* data) {
      (winograd ? kernels::PackWinogradLastWeights : kernels::PackChannelsLastWeights)(
          *prepared->gemm, problem, static_cast<const float*>(w->data()), row.data(),
          static_cast<float*>(data));
    }));
  }
  context.DropConstant(1);
  return prepared;
}

absl::StatusOr<std::unique_ptr<Prepared>> Prepare(PrepareContext& context) {
  const ValueType& w_type = context.type(1);
  if (context.type(0).dtype != DType::kF32 || !w_type.has_rank ||
      w_type.dims.size() > 2 + kernels::kConvRank)
    return nullptr;
  if (ChannelsLast(context.attributes())) return PrepareChannelsLast(context);
  auto prepared = std::make_unique<PreparedConv>();
  prepared->gemm = kernels::SelectGemmKernel(MatrixIsa(context));
  prepared->kernel = prepared->gemm->name;
  const Tensor* w = context.constant(1);
  if (w == nullptr) return prepared;
  const ConvGeometry g = WeightsGeometry(context.attributes(), w->dims());
  std::int64_t taps = 1;
  for (int i = 2; i < w->rank(); ++i) taps *= w->dims()[i];
  if (g.out_channels <= kMostDepthwiseOutputs && w->rank() <= 4 &&
      (taps > 1 || g.in_channels == 1)) {
    prepared->depthwise = kernels::SelectDepthwiseKernel(MatrixIsa(context));
    prepared->kernel = prepared->depthwise->name;
    return prepared;
  }
  if (w->element_count() == 0) return prepared;
  kernels::ConvProblem problem;
  ToConvProblem(g, false, &problem);
  const bool winograd = kernels::WinogradSuits(problem) && !IsSmall(context.output_type(0), /*first_spatial=*/2);
  if (winograd) {
    prepared->winograd = kernels::SelectWinogradKernel(MatrixIsa(context));
    prepared->kernel = absl::StrCat(prepared->winograd->name, "+", prepared->gemm->name);
  }
  const std::int64_t floats = winograd ? kernels::PackedWinogradSize(*prepared->gemm, problem)
                                       : kernels::PackedConvWeightsSize(*prepared->gemm, problem);
  if (floats == 0) return absl::ResourceExhaustedError("w is too large to pack");
  prepared->packed_bytes = static_cast<std::size_t>(floats) * sizeof(float);
  std::vector<float> row(static_cast<std::size_t>(kernels::ConvWeightsScratchSize(problem)));
  NPURT_ASSIGN_OR_RETURN(prepared->weights, context.Pack(prepared->packed_bytes, [&](void* data) {
    (winograd ? kernels::PackWinogradWeights : kernels::PackConvWeights)(
        *prepared->gemm, problem, static_cast<const float*>(w->data()), row.data(),
        static_cast<float*>(data));
  }));
  context.DropConstant(1);
  return prepared;
}

struct Bound {
  kernels::ConvProblem problem;
  kernels::ChannelsLastTiling channels_last;
  kernels::DepthwiseLastTiling depthwise_last;
  kernels::WinogradLastTiling winograd_last;
  bool is_depthwise;
  kernels::ConvTiling tiling;
  kernels::DepthwiseTiling depthwise;
  kernels::WinogradTiling winograd;
  kernels::Epilogue epilogue;
};

absl::Status Bind(BindContext& bind) {
  const auto* prepared = bind.prepared<PreparedConv>();
  NPURT_ASSIGN_OR_RETURN(const ConvGeometry g, CheckedGeometry(bind, bind.attributes()));
  auto* bound = bind.New<Bound>();
  bound->epilogue = EpilogueOf(bind.attributes());
  if (!ToConvProblem(g, false, &bound->problem))
    return absl::InternalError("prepare let more than three spatial dimensions pass");
  const double bytes = 4.0 * static_cast<double>(bind.count(0) + bind.output_count_of(0));
  const auto set_tiles = [&](std::int64_t tiles, double flops_per_tile) {
    bind.SetTiles(tiles, CostOf(flops_per_tile, tiles > 0 ? bytes / static_cast<double>(tiles) : 0));
  };
  if (prepared->depthwise_last != nullptr) {
    const kernels::DepthwiseLastTiling& t = bound->depthwise_last =
        kernels::PlanDepthwiseLast(bound->problem, *prepared->depthwise_last);
    if (t.tiles < 0) return absl::InvalidArgumentError("sizes overflow");
    set_tiles(t.tiles, t.flops_per_tile * 2);
    return absl::OkStatus();
  }
  if (prepared->winograd_last != nullptr) {
    const kernels::WinogradLastTiling& t = bound->winograd_last =
        kernels::PlanWinogradLast(bound->problem, *prepared->winograd_last, *prepared->gemm);
    if (t.tiles < 0) return absl::InvalidArgumentError("sizes overflow");
    set_tiles(t.tiles, t.flops_per_tile);
    bind.SetScratch(t.scratch_bytes);
    return absl::OkStatus();
  }
  if (prepared->channels_last) {
    const kernels::ChannelsLastTiling& t = bound->channels_last =
        kernels::PlanChannelsLast(bound->problem, *prepared->gemm);
    if (t.tiles < 0) return absl::InvalidArgumentError("sizes overflow");
    set_tiles(t.tiles, t.flops_per_tile);
    bind.SetScratch(t.scratch_bytes);
    return absl::OkStatus();
  }
  if (prepared->depthwise != nullptr) {
    bound->depthwise = kernels::PlanDepthwise(bound->problem, *prepared->depthwise);
    bound->is_depthwise = bound->depthwise.tiles >= 0;
  }
  if (bound->is_depthwise) {
    const kernels::DepthwiseTiling& t = bound->depthwise;
    set_tiles(t.tiles, t.flops_per_tile * 2);
    bind.SetScratch(t.scratch_bytes);
    return absl::OkStatus();
  }
  if (prepared->winograd != nullptr) {
    const kernels::WinogradTiling& t = bound->winograd =
        kernels::PlanWinograd(bound->problem, *prepared->winograd, *prepared->gemm);
    if (t.tiles < 0) return absl::InvalidArgumentError("sizes overflow");
    set_tiles(t.tiles, t.flops_per_tile);
    bind.SetScratch(t.scratch_bytes);
    return absl::OkStatus();
  }
  const kernels::ConvTiling& t = bound->tiling = kernels::PlanConv(bound->problem, *prepared->gemm);
  if (t.tiles < 0) return absl::InvalidArgumentError("sizes overflow");
  set_tiles(t.tiles, t.flops_per_tile);
  bind.SetScratch(t.scratch_bytes);
  return absl::OkStatus();
}

absl::Status Run(const RunContext& run, std::int64_t tile, void* scratch) {
  const auto* prepared = run.prepared<PreparedConv>();
  const auto* bound = run.bound<Bound>();
  kernels::Epilogue epilogue = bound->epilogue;
  if (run.has_input(kBias))
    (prepared->channels_last ? epilogue.column_bias : epilogue.row_bias) = run.in<float>(kBias);
  if (run.has_input(kResidual)) epilogue.residual = run.in<float>(kResidual);
  if (prepared->depthwise_last != nullptr) {
    kernels::RunDepthwiseLastTile({&bound->problem, &bound->depthwise_last, run.in<float>(0),
                                   prepared->weights.as<float>(), run.out<float>(0), epilogue},
                                  tile);
    return absl::OkStatus();
  }
  if (prepared->winograd_last != nullptr) {
    kernels::RunWinogradLastTile({&bound->problem, &bound->winograd_last, run.in<float>(0),
                                  prepared->weights.as<float>(), run.out<float>(0), epilogue},
                                 tile, scratch);
    return absl::OkStatus();
  }
  if (prepared->channels_last) {
    kernels::RunChannelsLastTile({&bound->problem, &bound->channels_last, run.in<float>(0),
                                  prepared->weights.as<float>(), run.out<float>(0), epilogue},
                                 tile, scratch);
    return absl::OkStatus();
  }
  if (bound->is_depthwise) {
    kernels::RunDepthwiseTile({&bound->problem, &bound->depthwise, run.in<float>(0),
                               run.in<float>(1), run.out<float>(0), epilogue},
                              tile, scratch);
    return absl::OkStatus();
  }
  if (prepared->winograd != nullptr) {
    kernels::RunWinogradTile({&bound->problem, &bound->winograd, run.in<float>(0),
                              prepared->weights.as<float>(), run.out<float>(0), epilogue},
                             tile, scratch);
    return absl::OkStatus();
  }
  const bool packed = prepared->weights.data != nullptr;
  kernels::RunConvTile({&bound->problem, &bound->tiling, run.in<float>(0),
                        packed ? prepared->weights.as<float>() : run.in<float>(1), packed,
                        run.out<float>(0), epilogue, StopCheckOf(run)},
                       tile, scratch);
  return absl::OkStatus();
}

}  // namespace

extern constexpr OpDef kOp = {
    .name = "Conv",
    .inputs = {{"x", "T"}, {"w", "T"}, {"?b", "T"}, {"?residual", "T"}},
    .outputs = {{"y", "T"}},
    .types = {{"T", kFloats}},
    .attributes = {{"auto_pad", AttrKind::kString},
                   {"data_format", AttrKind::kString},
                   {"dilations", AttrKind::kInts},
                   {"group", AttrKind::kInt},
                   {"kernel_shape", AttrKind::kInts},
                   {"pads", AttrKind::kInts},
                   {"strides", AttrKind::kInts},
                   {"activation", AttrKind::kInt},
                   {"activation_alpha", AttrKind::kFloat},
                   {"activation_beta", AttrKind::kFloat}},
    .infer = Infer,
    .reference = ForEachType<Reference, kFloats>,
    .prepare = Prepare,
    .bind = Bind,
    .run = Run,
    .epilogue = {.activation = true, .bias_input = kBias, .residual_input = kResidual},
};

}  // namespace npurt::ops::conv
