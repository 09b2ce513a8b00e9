// ConvInteger: y = conv(x - x_zero, w - w_zero) in int32. QLinearConv: (that + bias) * x_scale * w_scale /
// y_scale, rounded, plus y_zero and saturated. Parameters of w may be one per output channel. The fuse
// pass may bound the bytes of QLinearConv: `low` and `high`. With data_format "NHWC" its images have their
// channels last.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "kernels/intconv/channels_last.h"
#include "kernels/intconv/depthwise_last.h"
#include "kernels/intconv/intconv.h"
#include "ops/conv_geometry.h"
#include "ops/move.h"
#include "ops/number_list.h"

namespace npurt::ops::integer_conv {
namespace {

constexpr DTypeSet kBytes = DTypes(DType::kI8, DType::kU8);

// A context in which x and w are the inputs 0 and 1, as InferConv wants them.
class ConvView final : public InferContext {
 public:
  ConvView(InferContext& base, int w, DType dtype) : base_(base), w_(w), dtype_(dtype) {}
  int input_count() const override { return 2; }
  int output_count() const override { return base_.output_count(); }
  bool has_input(int i) const override { return i < 2; }
  bool has_output(int i) const override { return base_.has_output(i); }
  const ValueType& type(int i) const override { return base_.type(i == 0 ? 0 : w_); }
  const Attributes& attributes() const override { return base_.attributes(); }
  const Tensor* constant(int) const override { return nullptr; }
  std::optional<SymDims> integers(int) const override { return std::nullopt; }
  void set_output(int i, DType, SymDims dims) override {
    base_.set_output(i, dtype_, std::move(dims));
  }
  void set_output_unknown(int i, DType) override { base_.set_output_unknown(i, dtype_); }
  void set_output_type(int i, ValueType type) override {
    base_.set_output_type(i, std::move(type));
  }
  void set_output_integers(int, SymDims) override {}
  Dim RunDim() override { return base_.RunDim(); }

 private:
  InferContext& base_;
  const int w_;
  const DType dtype_;
};

absl::Status InferInteger(InferContext& context) {
  ConvView view(context, 1, DType::kI32);
  return InferConv(view, false);
}

absl::Status InferQLinear(InferContext& context) {
  ConvView view(context, 3, context.dtype(7));
  return InferConv(view, false);
}

// A parameter of the weights: one number, or one per output channel.
absl::Status CheckPerChannel(const RunContext& run, int input, std::int64_t channels) {
  if (!run.has_input(input) || run.count(input) == 1 || run.count(input) == channels)
    return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("input ", input, " has ", run.count(input),
                                                 " elements, want 1 or ", channels));
}
absl::Status CheckScalar(const RunContext& run, int input) {
  if (!run.has_input(input) || run.count(input) == 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("input ", input, " has ", run.count(input), " elements, want 1"));
}
std::int64_t IntegerOf(const RunContext& run, int input, std::int64_t i) {
  return run.has_input(input) ? IndexAt(run, input, run.count(input) == 1 ? 0 : i) : 0;
}

template <typename Context>
absl::StatusOr<ConvGeometry> GeometryOf(const Context& context, int w_input) {
  const bool last = ChannelsLast(context.attributes());
  const auto image = [last](absl::Span<const std::int64_t> dims) {
    return ChannelsFirstOf(Dims(dims.begin(), dims.end()), last);
  };
  return ConvGeometryOf(context.attributes(), false, image(context.dims(0)), context.dims(w_input),
                        image(context.output_dims(0)));
}

// Calls `plane(n, channel, sums)` with the sums of each output plane.
template <typename Plane>
absl::Status ForEachPlane(const RunContext& run, int x_zero, int w_input, int w_zero,
                          Plane plane) {
  NPURT_ASSIGN_OR_RETURN(const ConvGeometry g, GeometryOf(run, w_input));
  NPURT_RETURN_IF_ERROR(CheckScalar(run, x_zero));
  NPURT_RETURN_IF_ERROR(CheckPerChannel(run, w_zero, g.groups * g.out_channels));
  const int spatial = static_cast<int>(g.in.size()), last = spatial - 1;
  const std::int64_t in_plane = ProductOf(g.in, 0, spatial);
  const std::int64_t out_plane = ProductOf(g.out, 0, spatial);
  const std::int64_t taps = ProductOf(g.kernel, 0, spatial);
  const std::int64_t in_channels = g.groups * g.in_channels;
  const bool last_channels = ChannelsLast(run.attributes());
  if (run.output_count_of(0) == 0) return absl::OkStatus();
  std::vector<std::int32_t> x(static_cast<std::size_t>(in_channels * in_plane));
  std::vector<std::int32_t> sums(static_cast<std::size_t>(out_plane));
  const std::int64_t zero = IntegerOf(run, x_zero, 0);
  const std::int64_t width = g.out[last], stride = g.stride[last];
  for (std::int64_t n = 0; n < g.batch; ++n) {
    for (std::int64_t c = 0; c < in_channels; ++c)
      for (std::int64_t i = 0; i < in_plane; ++i)
        x[static_cast<std::size_t>(c * in_plane + i)] = static_cast<std::int32_t>(
            IndexAt(run, 0,
                    n * in_channels * in_plane + (last_channels ? i * in_channels + c : c * in_plane + i)) -
            zero);
    for (std::int64_t m = 0; m < g.groups * g.out_channels; ++m) {
      NPURT_RETURN_IF_ERROR(run.Poll());
      std::fill(sums.begin(), sums.end(), 0);
      const std::int64_t group = m / g.out_channels, m_zero = IntegerOf(run, w_zero, m);
      for (std::int64_t c = 0; c < g.in_channels; ++c) {
        const std::int32_t* const in = x.data() + (group * g.in_channels + c) * in_plane;
        Dims tap(g.kernel.size());
        for (std::int64_t t = 0; t < taps; ++t, NextIndex(g.kernel, absl::MakeSpan(tap))) {
          const auto weight = static_cast<std::int32_t>(
              IndexAt(run, w_input, (m * g.in_channels + c) * taps + t) - m_zero);
          if (weight == 0) continue;
          // Rows of the output; along the last axis input columns go in steps of the stride.
          const std::int64_t shift = tap[last] * g.dilation[last] - g.pad[last];
          const std::int64_t first = shift >= 0 ? 0 : (-shift + stride - 1) / stride;
          const std::int64_t end =
              shift >= g.in[last] ? 0
                                  : std::min(width, (g.in[last] - 1 - shift) / stride + 1);
          Dims row(g.out.begin(), g.out.end() - 1);
          const Dims rows = row;
          std::fill(row.begin(), row.end(), 0);
          std::int64_t out_row = 0;
          do {
            std::int64_t in_row = 0;
            bool inside = true;
            for (int d = 0; d < last && inside; ++d) {
              const std::int64_t at =
                  row[d] * g.stride[d] + tap[d] * g.dilation[d] - g.pad[d];
              inside = at >= 0 && at < g.in[d];
              in_row = in_row * g.in[d] + at;
            }
            if (inside) {
              std::int32_t* const to = sums.data() + out_row * width;
              const std::int32_t* const from = in + in_row * g.in[last] + shift;
              // Unsigned: very long sums wrap, as int32 does in hardware.
              for (std::int64_t i = first; i < end; ++i)
                to[i] = static_cast<std::int32_t>(
                    static_cast<std::uint32_t>(to[i]) +
                    static_cast<std::uint32_t>(weight * from[i * stride]));
            }
            ++out_row;
          } while (NextIndex(rows, absl::MakeSpan(row)));
        }
      }
      NPURT_RETURN_IF_ERROR(plane(n, m, g, sums));
    }
  }
  return absl::OkStatus();
}

absl::Status ReferenceInteger(const RunContext& run, std::int64_t, void*) {
  return ForEachPlane(run, 2, 1, 3,
                      [&](std::int64_t n, std::int64_t m, const ConvGeometry& g,
                          const std::vector<std::int32_t>& sums) {
                        const auto size = static_cast<std::int64_t>(sums.size());
                        CopyElements(DType::kI32, run.output(0).data,
                                     (n * g.groups * g.out_channels + m) * size, sums.data(), 0,
                                     size);
                        return absl::OkStatus();
                      });
}

absl::Status ReferenceQLinear(const RunContext& run, std::int64_t, void*) {
  for (int input : {1, 6, 7}) NPURT_RETURN_IF_ERROR(CheckScalar(run, input));
  const Slot& out = run.output(0);
  return ForEachPlane(
      run, 2, 3, 5,
      [&](std::int64_t n, std::int64_t m, const ConvGeometry& g,
          const std::vector<std::int32_t>& sums) -> absl::Status {
        const std::int64_t channels = g.groups * g.out_channels;
        NPURT_RETURN_IF_ERROR(CheckPerChannel(run, 4, channels));
        NPURT_RETURN_IF_ERROR(CheckConvBias(g, run.has_input(8) ? run.count(8) : -1));
        const double scale = RealAt(run, 1, 0) * RealAt(run, 4, run.count(4) == 1 ? 0 : m) /
                             RealAt(run, 6, 0);
        const double zero = RealAt(run, 7, 0);
        const double bias = run.has_input(8) ? RealAt(run, 8, m) : 0;
        const ByteBounds bounds = BoundsOf(run.attributes(), out.dtype);
        const bool last = ChannelsLast(run.attributes());
        const auto size = static_cast<std::int64_t>(sums.size());
        for (std::int64_t i = 0; i < size; ++i) {
          const double y = std::nearbyint((sums[static_cast<std::size_t>(i)] + bias) * scale);
          const std::int64_t at = last ? (n * size + i) * channels + m : (n * channels + m) * size + i;
          StoreNumber(out.dtype, out.data, at, bounds.Bounded(y + zero));
        }
        return absl::OkStatus();
      });
}

// --- the fast version: constant weights ---------------------------------------------------------------

// Where an operator has its inputs; -1: it has none such.
struct Inputs {
  int x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias;
};
constexpr Inputs kInteger = {0, -1, 2, 1, -1, 3, -1, -1, -1};
constexpr Inputs kQLinear = {0, 1, 2, 3, 4, 5, 6, 7, 8};

struct PreparedIntConv : Prepared {
  const kernels::IntGemmKernel* gemm = nullptr;
  bool channels_last = false;
  const kernels::IntDepthwiseKernel* depthwise = nullptr;  // channels last, each its own group
  PackedBuffer weights;
  std::vector<std::int32_t> w_zero;  // per output channel
  // The same for scales and bias, if they are constants. The first is then that of the whole: a
  // product in the order in which the reference takes it.
  std::vector<double> scale, bias;
  std::vector<std::int32_t> first_of_sums;  // channels last: instead of bias, or nothing
};

void FillScale(const NumberList& x, const NumberList& w, const NumberList& y, std::int64_t n,
               double* to) {
  for (std::int64_t i = 0; i < n; ++i) to[i] = x.At(0) * w.At(i) / y.At(0);
}

// Packs w. Groups that are not single channels have no kernel with channels last; the layout pass makes
// no such node, and the reference runs it.
absl::Status PackChannelsLast(PrepareContext& context, const Tensor& w,
                              const kernels::IntConvProblem& problem, PreparedIntConv* prepared) {
  const kernels::ConvProblem& p = problem.shape;
  prepared->channels_last = true;
  if (p.groups > 1) {
    const std::int64_t taps = p.kernel[1] * p.kernel[2];
    prepared->depthwise = kernels::SelectIntDepthwiseKernel(context.isa());
    prepared->kernel = prepared->depthwise->name;
    prepared->packed_bytes =
        static_cast<std::size_t>(kernels::PackedIntDepthwiseSize(p.groups, taps));
    NPURT_ASSIGN_OR_RETURN(prepared->weights, context.Pack(prepared->packed_bytes, [&](void* data) {
      kernels::PackIntDepthwise(p.groups, taps, problem.w_signed, w.data(), prepared->w_zero.data(), data);
    }));
    return absl::OkStatus();
  }
  prepared->kernel = absl::StrCat("channels_last+", prepared->gemm->name);
  const std::int64_t bytes = kernels::PackedIntChannelsLastSize(*prepared->gemm, problem);
  if (bytes == 0) return absl::ResourceExhaustedError("w is too large to pack");
  prepared->packed_bytes = static_cast<std::size_t>(bytes);
  std::vector<std::uint8_t> turned(static_cast<std::size_t>(w.element_count()));
  NPURT_ASSIGN_OR_RETURN(prepared->weights, context.Pack(prepared->packed_bytes, [&](void* data) {
    kernels::PackIntChannelsLast(*prepared->gemm, problem, w.data(), prepared->w_zero.data(),
                                 turned.data(), data);
  }));
  return absl::OkStatus();
}

// Beyond these a tile's part of the image may not fit its scratch, and the reference needs the weights.
constexpr std::int64_t kMostReach = 128, kMostStride = 16;

template <const Inputs& kIn>
absl::StatusOr<std::unique_ptr<Prepared>> Prepare(PrepareContext& context) {
  const Tensor* w = context.constant(kIn.w);
  if (w == nullptr || w->rank() < 3 || w->rank() > 2 + kernels::kConvRank || w->element_count() == 0)
    return nullptr;
  const std::int64_t channels = w->dims()[0], groups = context.attributes().Int("group", 1);
  const auto constant = [&](int i) { return !context.has_input(i) || context.constant(i) != nullptr; };
  for (int i : {kIn.x_scale, kIn.x_zero, kIn.y_scale, kIn.y_zero})
    if (i >= 0 && !IsOneOrEach(context, i, 1)) return nullptr;
  for (int i : {kIn.w_scale, kIn.w_zero})
    if (i >= 0 && !IsOneOrEach(context, i, channels)) return nullptr;
  const bool has_bias = kIn.bias >= 0 && context.has_input(kIn.bias);
  if (has_bias && NumbersOf(context, kIn.bias).count != channels) return nullptr;
  if (!constant(kIn.w_zero) || groups <= 0 || channels % groups != 0) return nullptr;
  const bool last = ChannelsLast(context.attributes());
  const bool depthwise = groups > 1 && w->dims()[1] == 1 && channels == groups;
  if (last && (w->rank() > 4 || (groups > 1 && !depthwise) ||
               (depthwise && w->element_count() / channels > kernels::kMostIntDepthwiseTaps)))
    return nullptr;
  const ConvGeometry g = WeightsGeometry(context.attributes(), w->dims());
  for (std::size_t d = 0; !last && d < g.kernel.size(); ++d)
    if (g.stride[d] > kMostStride || g.dilation[d] > kMostReach ||
        g.kernel[d] * g.dilation[d] > kMostReach)
      return nullptr;
  auto prepared = std::make_unique<PreparedIntConv>();
  prepared->gemm = kernels::SelectIntGemmKernel(context.isa());
  prepared->kernel = prepared->gemm->name;
  const auto count = static_cast<std::size_t>(channels);
  prepared->w_zero.resize(count);
  for (std::int64_t i = 0; i < channels; ++i)
    prepared->w_zero[static_cast<std::size_t>(i)] = NumbersOf(context, kIn.w_zero).ZeroPoint(i);
  if (kIn.y_scale >= 0) {
    if (constant(kIn.x_scale) && constant(kIn.w_scale) && constant(kIn.y_scale)) {
      prepared->scale.resize(count);
      FillScale(NumbersOf(context, kIn.x_scale), NumbersOf(context, kIn.w_scale),
                NumbersOf(context, kIn.y_scale), channels, prepared->scale.data());
    }
    prepared->bias.resize(count);
    for (std::int64_t i = 0; i < channels; ++i)
      prepared->bias[static_cast<std::size_t>(i)] = NumbersOf(context, kIn.bias).Or(0, i);
  }
  kernels::IntConvProblem problem;
  ToConvProblem(g, false, &problem.shape);
  problem.x_signed = context.type(kIn.x).dtype == DType::kI8;
  problem.w_signed = w->dtype() == DType::kI8;
  if (last) {
    prepared->first_of_sums = FirstOfSums(prepared->bias, w->element_count() / channels);
    NPURT_RETURN_IF_ERROR(PackChannelsLast(context, *w, problem, prepared.get()));
    context.DropConstant(kIn.w);
    return prepared;
  }
  const std::int64_t bytes = kernels::PackedIntConvWeightsSize(*prepared->gemm, problem);
  if (bytes == 0) return absl::ResourceExhaustedError("w is too large to pack");
  prepared->packed_bytes = static_cast<std::size_t>(bytes);
  std::vector<std::uint32_t> row(
      static_cast<std::size_t>(kernels::IntConvRowSize(*prepared->gemm, problem) / 4));
  NPURT_ASSIGN_OR_RETURN(prepared->weights, context.Pack(prepared->packed_bytes, [&](void* data) {
    kernels::PackIntConvWeights(*prepared->gemm, problem, w->data(), prepared->w_zero.data(), 1,
                                row.data(), data);
  }));
  context.DropConstant(kIn.w);
  return prepared;
}

struct Bound {
  kernels::IntConvProblem problem;
  kernels::IntConvTiling tiling;
  kernels::IntChannelsLastTiling channels_last;
  kernels::IntDepthwiseTiling depthwise;
  std::size_t scale_offset;  // in the scratch
};

template <const Inputs& kIn>
absl::Status Bind(BindContext& bind) {
  const auto* prepared = bind.prepared<PreparedIntConv>();
  NPURT_ASSIGN_OR_RETURN(const ConvGeometry g, GeometryOf(bind, kIn.w));
  auto* bound = bind.New<Bound>();
  bound->problem = kernels::IntConvProblem();
  ToConvProblem(g, false, &bound->problem.shape);
  bound->problem.x_signed = bind.dtype(kIn.x) == DType::kI8;
  bound->problem.w_signed = bind.dtype(kIn.w) == DType::kI8;
  std::int64_t tiles;
  double flops_per_tile;
  const auto set = [&](const auto& t) {
    tiles = t.tiles;
    flops_per_tile = t.flops_per_tile;
    bound->scale_offset = (t.scratch_bytes + 7) / 8 * 8;
  };
  if (prepared->depthwise != nullptr) {
    set(bound->depthwise = kernels::PlanIntDepthwise(bound->problem, *prepared->depthwise));
  } else if (prepared->channels_last) {
    bound->channels_last = kernels::PlanIntChannelsLast(bound->problem, *prepared->gemm);
    set(bound->channels_last.tiling);
  } else {
    set(bound->tiling = kernels::PlanIntConv(bound->problem, *prepared->gemm));
  }
  if (tiles < 0) return absl::InvalidArgumentError("sizes overflow");
  const double bytes = static_cast<double>(bind.count(kIn.x) + bind.output_count_of(0));
  bind.SetTiles(tiles, CostOf(flops_per_tile, tiles > 0 ? bytes / static_cast<double>(tiles) : 0));
  bind.SetScratch(bound->scale_offset +
                  (kIn.y_scale >= 0 && prepared->scale.empty() ? prepared->w_zero.size() * 8 : 0));
  return absl::OkStatus();
}

template <const Inputs& kIn>
absl::Status Run(const RunContext& run, std::int64_t tile, void* scratch) {
  const auto* prepared = run.prepared<PreparedIntConv>();
  const auto* bound = run.bound<Bound>();
  const std::int32_t x_zero = NumbersOf(run, kIn.x_zero).ZeroPoint();
  kernels::IntEpilogue e;
  const double one = 1;
  if (kIn.y_scale >= 0) {
    e.to_bytes = true;
    const double* scale = prepared->scale.data();
    if (prepared->scale.empty()) {
      auto* const list =
          reinterpret_cast<double*>(static_cast<char*>(scratch) + bound->scale_offset);
      FillScale(NumbersOf(run, kIn.x_scale), NumbersOf(run, kIn.w_scale),
                NumbersOf(run, kIn.y_scale), static_cast<std::int64_t>(prepared->w_zero.size()),
                list);
      scale = list;
    }
    // Channels are columns if they come last, else rows.
    if (prepared->channels_last) {
      if (prepared->first_of_sums.empty()) {
        e.column_bias = prepared->bias.data();
      } else {
        e.column_add = prepared->first_of_sums.data();
      }
      e.column_scale = scale;
      e.row_scale = &one;
      e.one_row_scale = true;
    } else {
      e.row_bias = prepared->bias.data();
      e.row_scale = scale;
    }
    const ByteBounds bounds = BoundsOf(run.attributes(), run.output(0).dtype);
    e.zero = NumbersOf(run, kIn.y_zero).ZeroPoint();
    e.low = bounds.low;
    e.high = bounds.high;
  }
  const char* const x = run.in<char>(kIn.x);
  const void* const weights = prepared->weights.data.get();
  char* const out = run.out<char>(0);
  if (prepared->depthwise != nullptr) {
    kernels::RunIntDepthwiseTile(
        {&bound->problem, &bound->depthwise, x, weights, x_zero, out, e}, tile, scratch);
  } else if (prepared->channels_last) {
    kernels::RunIntChannelsLastTile(
        {&bound->problem, &bound->channels_last, x, weights, run.in<char>(kIn.x_zero),
         prepared->w_zero.data(), out, e},
        tile, scratch);
  } else {
    kernels::RunIntConvTile({&bound->problem, &bound->tiling, x, weights, x_zero,
                             prepared->w_zero.data(), 1, out, e},
                            tile, scratch);
  }
  return absl::OkStatus();
}

}  // namespace

extern constexpr OpDef kOps[] = {
    {
        .name = "ConvInteger",
        .inputs = {{"x", "T1"}, {"w", "T2"}, {"?x_zero_point", "T1"}, {"?w_zero_point", "T2"}},
        .outputs = {{"y", "int32"}},
        .types = {{"T1", kBytes}, {"T2", kBytes}},
        .attributes = {{"auto_pad", AttrKind::kString},
                       {"dilations", AttrKind::kInts},
                       {"group", AttrKind::kInt},
                       {"kernel_shape", AttrKind::kInts},
                       {"pads", AttrKind::kInts},
                       {"strides", AttrKind::kInts}},
        .infer = InferInteger,
        .reference = ReferenceInteger,
        .prepare = Prepare<kInteger>,
        .bind = Bind<kInteger>,
        .run = Run<kInteger>,
    },
    {
        .name = "QLinearConv",
        .inputs = {{"x", "T1"},
                   {"x_scale", "F"},
                   {"x_zero_point", "T1"},
                   {"w", "T2"},
                   {"w_scale", "F"},
                   {"w_zero_point", "T2"},
                   {"y_scale", "F"},
                   {"y_zero_point", "T3"},
                   {"?bias", "int32"}},
        .outputs = {{"y", "T3"}},
        .types = {{"T1", kBytes}, {"T2", kBytes}, {"T3", kBytes}, {"F", kFloats}},
        .attributes = {{"auto_pad", AttrKind::kString},
                       {"data_format", AttrKind::kString},
                       {"dilations", AttrKind::kInts},
                       {"group", AttrKind::kInt},
                       {"kernel_shape", AttrKind::kInts},
                       {"pads", AttrKind::kInts},
                       {"strides", AttrKind::kInts},
                       {"low", AttrKind::kInt},
                       {"high", AttrKind::kInt}},
        .infer = InferQLinear,
        .reference = ReferenceQLinear,
        .prepare = Prepare<kQLinear>,
        .bind = Bind<kQLinear>,
        .run = Run<kQLinear>,
    },
};
extern constexpr int kOpCount = static_cast<int>(sizeof kOps / sizeof kOps[0]);

}  // namespace npurt::ops::integer_conv
