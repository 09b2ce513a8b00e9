// ConvTranspose: Y[n, o, p] = sum over c, t, i with i * stride - pad + t * dilation = p of
// X[n, c, i] * W[c, o, t] + B[o], for any number of spatial dimensions, channels in groups. The
// fuse pass may add an activation.
#include "kernels/conv/conv.h"
#include "ops/conv_geometry.h"
#include "ops/poller.h"

namespace npurt::ops::conv_transpose {
namespace {

constexpr int kBias = 2;

absl::Status Infer(InferContext& context) { return InferConv(context, true); }

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
  NPURT_ASSIGN_OR_RETURN(ConvGeometry g, ConvGeometryOf(attributes, true, context.dims(0),
                                                        context.dims(1), context.output_dims(0)));
  NPURT_RETURN_IF_ERROR(CheckConvBias(g, context.has_input(kBias) ? context.count(kBias) : -1));
  return g;
}

template <typename T>
struct Reference {
  static absl::Status Run(const RunContext& run) {
    NPURT_ASSIGN_OR_RETURN(const ConvGeometry g, CheckedGeometry(run, run.attributes()));
    if (run.output_count_of(0) == 0) return absl::OkStatus();
    const kernels::Epilogue epilogue = EpilogueOf(run.attributes());
    Poller poller(run);
    std::int64_t taps = 1, in_plane = 1;
    for (std::int64_t extent : g.kernel) taps *= extent;
    for (std::int64_t extent : g.in) in_plane *= extent;
    std::int64_t at = 0;
    for (std::int64_t n = 0; n < g.batch; ++n)
      for (std::int64_t o = 0; o < g.groups * g.out_channels; ++o) {
        const std::int64_t first_in = o / g.out_channels * g.in_channels;
        Dims p(g.out.size(), 0);
        do {
          double sum = run.has_input(kBias) ? static_cast<double>(run.Load<T>(kBias, o)) : 0.0;
          Dims t(g.kernel.size(), 0);
          if (taps > 0) {
            std::int64_t tap = 0;
            do {
              std::int64_t x = 0;
              bool hit = true;
              for (std::size_t d = 0; d < p.size(); ++d) {
                const std::int64_t distance = p[d] + g.pad[d] - t[d] * g.dilation[d];
                const std::int64_t i = distance / g.stride[d];
                hit = hit && distance >= 0 && distance % g.stride[d] == 0 && i < g.in[d];
                x = x * g.in[d] + i;
              }
              if (hit)
                for (std::int64_t c = first_in; c < first_in + g.in_channels; ++c)
                  sum += static_cast<double>(
                             run.Load<T>(0, (n * g.groups * g.in_channels + c) * in_plane + x)) *
                         static_cast<double>(run.Load<T>(
                             1, (c * g.out_channels + o % g.out_channels) * taps + tap));
              ++tap;
            } while (Advance(g.kernel, &t));
          }
          run.Store<T>(0, at++, Finished<T>(epilogue, sum));
          NPURT_RETURN_IF_ERROR(poller.Count(g.in_channels * taps));
        } while (Advance(g.out, &p));
      }
    return absl::OkStatus();
  }
};

struct PreparedConvTranspose : Prepared {
  const kernels::GemmKernel* gemm = nullptr;
  PackedBuffer weights;
};

absl::StatusOr<std::unique_ptr<Prepared>> Prepare(PrepareContext& context) {
  const Tensor* w = context.constant(1);
  if (context.type(0).dtype != DType::kF32 || w == nullptr || w->element_count() == 0 ||
      w->rank() > 2 + kernels::kConvRank)
    return nullptr;
  const Attributes& attributes = context.attributes();
  ConvGeometry g;
  g.batch = 1;
  g.groups = attributes.Int("group", 1);
  g.in_channels = w->dims()[0] / g.groups;
  g.out_channels = w->dims()[1];
  const auto strides = attributes.Ints("strides"), dilations = attributes.Ints("dilations");
  const auto pads = attributes.Ints("pads");
  std::int64_t phases = 1;
  for (int i = 2; i < w->rank(); ++i) {
    const std::size_t d = static_cast<std::size_t>(i - 2);
    g.kernel.push_back(w->dims()[i]);
    g.in.push_back(1);
    g.out.push_back(1);
    g.stride.push_back(d < strides.size() ? strides[d] : 1);
    g.dilation.push_back(d < dilations.size() ? dilations[d] : 1);
    g.pad.push_back(d < pads.size() ? pads[d] : 0);
    phases = phases > 4096 ? phases : phases * g.stride.back();
  }
  // Which taps meet in a phase depends on the padding, which is known here only if it is given; and
  // with very many phases there is little in each.
  if (attributes.String("auto_pad", "NOTSET") != "NOTSET" ||
      !attributes.Ints("output_shape").empty() || phases > 4096)
    return nullptr;
  auto prepared = std::make_unique<PreparedConvTranspose>();
  prepared->gemm = kernels::SelectGemmKernel(MatrixIsa(context));
  prepared->kernel = prepared->gemm->name;
  kernels::ConvProblem problem;
  ToConvProblem(g, true, &problem);
  const std::int64_t floats = kernels::PackedConvWeightsSize(*prepared->gemm, problem);
  if (floats == 0) return absl::ResourceExhaustedError("w is too large to pack");
  prepared->packed_bytes = static_cast<std::size_t>(floats) * sizeof(float);
  std::vector<float> row(static_cast<std::size_t>(kernels::ConvWeightsScratchSize(problem)));
  NPURT_ASSIGN_OR_RETURN(prepared->weights, context.Pack(prepared->packed_bytes, [&](void* data) {
    kernels::PackConvWeights(*prepared->gemm, problem, static_cast<const float*>(w->data()),
                             row.data(), static_cast<float*>(data));
  }));
  context.DropConstant(1);
  return prepared;
}

struct Bound {
  kernels::ConvProblem problem;
  kernels::ConvTiling tiling;
  kernels::Epilogue epilogue;
};

absl::Status Bind(BindContext& bind) {
  const auto* prepared = bind.prepared<PreparedConvTranspose>();
  NPURT_ASSIGN_OR_RETURN(const ConvGeometry g, CheckedGeometry(bind, bind.attributes()));
  auto* bound = bind.New<Bound>();
  bound->epilogue = EpilogueOf(bind.attributes());
  if (!ToConvProblem(g, true, &bound->problem))
    return absl::InternalError("prepare let more than three spatial dimensions pass");
  const kernels::ConvTiling& t = bound->tiling = kernels::PlanConv(bound->problem, *prepared->gemm);
  if (t.tiles < 0) return absl::InvalidArgumentError("sizes overflow");
  const double bytes = 4.0 * static_cast<double>(bind.count(0) + bind.output_count_of(0));
  bind.SetTiles(t.tiles,
                CostOf(t.flops_per_tile, t.tiles > 0 ? bytes / static_cast<double>(t.tiles) : 0));
  bind.SetScratch(t.scratch_bytes);
  return absl::OkStatus();
}

absl::Status Run(const RunContext& run, std::int64_t tile, void* scratch) {
  const auto* prepared = run.prepared<PreparedConvTranspose>();
  const auto* bound = run.bound<Bound>();
  kernels::Epilogue epilogue = bound->epilogue;
  if (run.has_input(kBias)) epilogue.row_bias = run.in<float>(kBias);
  kernels::RunConvTile({&bound->problem, &bound->tiling, run.in<float>(0),
                        prepared->weights.as<float>(), true, run.out<float>(0), epilogue,
                        StopCheckOf(run)},
                       tile, scratch);
  return absl::OkStatus();
}

}  // namespace

extern constexpr OpDef kOp = {
    .name = "ConvTranspose",
    .inputs = {{"x", "T"}, {"w", "T"}, {"?b", "T"}},
    .outputs = {{"y", "T"}},
    .types = {{"T", kFloats}},
    .attributes = {{"auto_pad", AttrKind::kString},
                   {"dilations", AttrKind::kInts},
                   {"group", AttrKind::kInt},
                   {"kernel_shape", AttrKind::kInts},
                   {"output_padding", AttrKind::kInts},
                   {"output_shape", AttrKind::kInts},
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
    .epilogue = {.activation = true},
};

}  // namespace npurt::ops::conv_transpose
