// MaxPool, AveragePool, LpPool and their Global forms: one number from each window over the spatial axes.
#include "kernels/pool/pool.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "kernels/reduce/reduce.h"
#include "ops/around_axis.h"
#include "ops/conv_geometry.h"
#include "ops/move.h"
#include "ops/poller.h"

namespace npurt::ops::pool {
namespace {

enum class Kind { kMax, kAverage, kLp };

std::int64_t At(const Attributes& attributes, const char* name, std::size_t i,
                std::int64_t fallback) {
  const auto values = attributes.Ints(name);
  return i < values.size() ? values[i] : fallback;
}

bool IsSame(const std::string& auto_pad) {
  return auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
}

absl::Status CheckCount(const Attributes& attributes, const char* name, std::size_t want,
                        std::int64_t least) {
  constexpr std::int64_t kMost = std::int64_t{1} << 31;
  const auto values = attributes.Ints(name);
  if (attributes.Has(name) && values.size() != want)
    return absl::InvalidArgumentError(
        absl::StrCat(name, " has ", values.size(), " numbers, want ", want));
  for (std::int64_t value : values)
    if (value < least || value > kMost)
      return absl::InvalidArgumentError(
          absl::StrCat(name, " has ", value, ", want at least ", least));
  return absl::OkStatus();
}

absl::Status Infer(InferContext& context) {
  const Attributes& attributes = context.attributes();
  if (context.rank(0) < 3)
    return absl::InvalidArgumentError(
        absl::StrCat("input has shape ", ShapeString(context.shape(0)),
                     ", want a batch, channels and a spatial axis"));
  const bool channels_last = ChannelsLast(attributes);
  const SymDims in = ChannelsFirstOf(context.shape(0), channels_last);
  const std::size_t spatial = in.size() - 2;
  NPURT_RETURN_IF_ERROR(CheckCount(attributes, "kernel_shape", spatial, 1));
  NPURT_RETURN_IF_ERROR(CheckCount(attributes, "strides", spatial, 1));
  NPURT_RETURN_IF_ERROR(CheckCount(attributes, "dilations", spatial, 1));
  NPURT_RETURN_IF_ERROR(CheckCount(attributes, "pads", 2 * spatial, 0));
  if (attributes.Has("p") && attributes.Int("p") < 1)
    return absl::InvalidArgumentError(absl::StrCat("p is ", attributes.Int("p")));
  const std::string auto_pad = attributes.String("auto_pad", "NOTSET");
  if (!IsSame(auto_pad) && auto_pad != "NOTSET" && auto_pad != "VALID")
    return absl::InvalidArgumentError(
        absl::StrCat("auto_pad is '", auto_pad, "', want NOTSET, VALID, SAME_UPPER or SAME_LOWER"));
  const bool ceil = attributes.Int("ceil_mode") != 0;
  SymDims out = {in[0], in[1]};
  for (std::size_t i = 0; i < spatial; ++i) {
    const std::int64_t stride = At(attributes, "strides", i, 1);
    const std::int64_t reach =
        (At(attributes, "kernel_shape", i, 1) - 1) * At(attributes, "dilations", i, 1) + 1;
    const bool given = auto_pad == "NOTSET";
    const std::int64_t begin = given ? At(attributes, "pads", i, 0) : 0;
    const std::int64_t end = given ? At(attributes, "pads", i + spatial, 0) : 0;
    const Dim size = in[2 + i];
    if (IsSame(auto_pad)) {
      out.push_back(CeilDiv(size, Dim(stride)));
    } else {
      const Dim room = size + Dim(begin + end - reach);
      if (room.is_constant() && room.value() < 0)
        return absl::InvalidArgumentError(
            absl::StrCat("input ", ShapeString(in), " with its padding is smaller than the window ",
                         ShapeString(attributes.Ints("kernel_shape"))));
      // Rounding up adds no window that would start beyond the input.
      out.push_back(ceil ? Min(CeilDiv(room, Dim(stride)) + Dim(std::int64_t{1}),
                               CeilDiv(size + Dim(begin), Dim(stride)))
                         : FloorDiv(room, Dim(stride)) + Dim(std::int64_t{1}));
    }
  }
  out = ChannelsLastOf(std::move(out), channels_last);
  context.set_output(0, context.dtype(0), out);
  if (context.output_count() > 1) context.set_output(1, DType::kI64, std::move(out));
  return absl::OkStatus();
}

// Window, stride and padding of each spatial axis, for concrete dimensions.
struct Geometry {
  std::int64_t planes = 1, in_plane = 1, out_plane = 1;
  Dims in, out, window, stride, dilation, pad_begin, pad_end;
};

// Channels that come last are one more axis, with a window of one element.
Geometry GeometryOf(const Attributes& attributes, absl::Span<const std::int64_t> x,
                    absl::Span<const std::int64_t> y) {
  const bool channels_last = ChannelsLast(attributes);
  const Dims in = ChannelsFirstOf(Dims(x.begin(), x.end()), channels_last);
  const Dims out = ChannelsFirstOf(Dims(y.begin(), y.end()), channels_last);
  Geometry g;
  g.planes = channels_last ? in[0] : in[0] * in[1];
  const std::string auto_pad = attributes.String("auto_pad", "NOTSET");
  const std::size_t spatial = in.size() - 2;
  for (std::size_t i = 0; i < spatial; ++i) {
    g.in.push_back(in[2 + i]);
    g.out.push_back(out[2 + i]);
    g.in_plane *= in[2 + i];
    g.out_plane *= out[2 + i];
    g.window.push_back(At(attributes, "kernel_shape", i, 1));
    g.stride.push_back(At(attributes, "strides", i, 1));
    g.dilation.push_back(At(attributes, "dilations", i, 1));
    std::int64_t begin = 0, end = 0;
    if (auto_pad == "NOTSET") {
      begin = At(attributes, "pads", i, 0);
      end = At(attributes, "pads", i + spatial, 0);
    } else if (IsSame(auto_pad)) {
      const std::int64_t reach = (g.window[i] - 1) * g.dilation[i] + 1;
      const std::int64_t total =
          std::max<std::int64_t>((g.out[i] - 1) * g.stride[i] + reach - g.in[i], 0);
      // The odd one goes to the end for SAME_UPPER, to the beginning else.
      begin = auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
      end = total - begin;
    }
    g.pad_begin.push_back(begin);
    g.pad_end.push_back(end);
  }
  if (channels_last) {
    for (Dims* dims : {&g.in, &g.out}) dims->push_back(in[1]);
    for (std::int64_t* plane : {&g.in_plane, &g.out_plane}) *plane *= in[1];
    for (Dims* ones : {&g.window, &g.stride, &g.dilation}) ones->push_back(1);
    for (Dims* zeros : {&g.pad_begin, &g.pad_end}) zeros->push_back(0);
  }
  return g;
}

// The window of output position `o` of a plane, element by element: f(offset in the plane) for what
// lies on the input. Returns how many elements lie on the input or its padding.
template <typename F>
std::int64_t ForWindow(const Geometry& g, const Dims& o, F f) {
  const Dims strides = StridesOf(g.in);
  Dims k(g.window.size(), 0);
  std::int64_t padded = 0;
  do {
    bool inside = true, on_padding = true;
    std::int64_t offset = 0;
    for (std::size_t a = 0; a < k.size(); ++a) {
      const std::int64_t at = o[a] * g.stride[a] - g.pad_begin[a] + k[a] * g.dilation[a];
      inside = inside && at >= 0 && at < g.in[a];
      on_padding = on_padding && at < g.in[a] + g.pad_end[a];
      offset += at * strides[a];
    }
    if (on_padding) ++padded;
    if (inside) f(offset);
  } while (NextIndex(g.window, absl::MakeSpan(k)));
  return padded;
}

// Where `offset` of a plane is if the first spatial axis changes fastest.
std::int64_t ColumnMajor(const Dims& in, std::int64_t offset) {
  std::int64_t stride = 1, index = 0;
  const Dims strides = StridesOf(in);
  for (std::size_t a = 0; a < in.size(); ++a) {
    index += offset / strides[a] % in[a] * stride;
    stride *= in[a];
  }
  return index;
}

template <typename T>
void MaxLoop(const RunContext& run, const Geometry& g) {
  const bool columns = run.attributes().Int("storage_order") == 1;
  for (std::int64_t p = 0; p < g.planes; ++p) {
    Dims o(g.out.size(), 0);
    for (std::int64_t i = 0; i < g.out_plane; ++i, NextIndex(g.out, absl::MakeSpan(o))) {
      std::int64_t best = -1;
      T max{};
      ForWindow(g, o, [&](std::int64_t offset) {
        const T x = run.Load<T>(0, p * g.in_plane + offset);
        if (best < 0 || x > max || (x != x && max == max)) {
          best = offset;
          max = x;
        }
      });
      if (best < 0) {
        // Nothing but padding.
        if constexpr (Contains(kFloats, kDTypeOf<T>))
          max = static_cast<T>(-std::numeric_limits<double>::infinity());
        else
          max = std::numeric_limits<T>::lowest();
      }
      run.Store<T>(0, p * g.out_plane + i, max);
      if (!run.has_output(1)) continue;
      const std::int64_t at = columns && best >= 0 ? ColumnMajor(g.in, best) : best;
      run.Store<std::int64_t>(1, p * g.out_plane + i, best < 0 ? -1 : p * g.in_plane + at);
    }
  }
}

absl::Status ReferenceMax(const RunContext& run, std::int64_t, void*) {
  const Geometry g = GeometryOf(run.attributes(), run.dims(0), run.output_dims(0));
  DispatchDType<kNumbers>(run.dtype(0), [&](auto type) { MaxLoop<decltype(type)>(run, g); });
  return absl::OkStatus();
}

template <Kind kKind>
absl::Status ReferenceSum(const RunContext& run, std::int64_t, void*) {
  const Geometry g = GeometryOf(run.attributes(), run.dims(0), run.output_dims(0));
  const bool count_pads = run.attributes().Int("count_include_pad") != 0;
  const double p = static_cast<double>(run.attributes().Int("p", 2));
  for (std::int64_t plane = 0; plane < g.planes; ++plane) {
    Dims o(g.out.size(), 0);
    for (std::int64_t i = 0; i < g.out_plane; ++i, NextIndex(g.out, absl::MakeSpan(o))) {
      double sum = 0;
      std::int64_t count = 0;
      const std::int64_t padded = ForWindow(g, o, [&](std::int64_t offset) {
        const double x = RealAt(run, 0, plane * g.in_plane + offset);
        sum += kKind == Kind::kAverage ? x : std::pow(std::fabs(x), p);
        ++count;
      });
      if (kKind == Kind::kLp) sum = std::pow(sum, 1 / p);
      else sum /= static_cast<double>(std::max<std::int64_t>(count_pads ? padded : count, 1));
      StoreReal(run, 0, plane * g.out_plane + i, sum);
    }
  }
  return absl::OkStatus();
}

struct State final : Prepared {
  const kernels::PoolKernel* rows = nullptr;
};

absl::StatusOr<std::unique_ptr<Prepared>> PreparePool(PrepareContext& context) {
  const ValueType& in = context.type(0);
  if (in.dtype != DType::kF32 || !in.has_rank || in.dims.size() > kernels::kPoolMaxRank + (ChannelsLast(context.attributes()) ? 1 : 2))
    return nullptr;
  auto state = std::make_unique<State>();
  state->rows = &kernels::SelectPool(KernelIsa(context));
  state->kernel = state->rows->name;
  return state;
}

absl::StatusOr<std::unique_ptr<Prepared>> PrepareMax(PrepareContext& context) {
  const ValueType& in = context.type(0);
  if (in.dtype != DType::kI8 && in.dtype != DType::kU8) return PreparePool(context);
  if (!in.has_rank || in.dims.size() > kernels::kPoolMaxRank + 2) return nullptr;
  auto state = std::make_unique<State>();
  state->kernel = "pool_bytes";
  return state;
}

absl::StatusOr<std::unique_ptr<Prepared>> PrepareLp(PrepareContext& context) {
  const std::int64_t p = context.attributes().Int("p", 2);
  if (p != 1 && p != 2) return nullptr;
  return PreparePool(context);
}

template <Kind kKind>
absl::Status Bind(BindContext& context) {
  const Attributes& attributes = context.attributes();
  const Geometry g = GeometryOf(attributes, context.dims(0), context.output_dims(0));
  kernels::PoolShape shape;
  shape.rank = static_cast<int>(g.in.size());
  shape.planes = g.planes;
  std::copy(g.in.begin(), g.in.end(), shape.in);
  std::copy(g.out.begin(), g.out.end(), shape.out);
  std::copy(g.window.begin(), g.window.end(), shape.window);
  std::copy(g.stride.begin(), g.stride.end(), shape.stride);
  std::copy(g.dilation.begin(), g.dilation.end(), shape.dilation);
  std::copy(g.pad_begin.begin(), g.pad_begin.end(), shape.pad_begin);
  std::copy(g.pad_end.begin(), g.pad_end.end(), shape.pad_end);
  const kernels::PoolKind kind = kKind == Kind::kMax             ? kernels::PoolKind::kMax
                                 : kKind == Kind::kAverage       ? kernels::PoolKind::kAverage
                                 : attributes.Int("p", 2) == 1   ? kernels::PoolKind::kLp1
                                                                 : kernels::PoolKind::kLp2;
  auto* plan = context.New<kernels::PoolPlan>();
  if (!kernels::PlanPool(shape, kind, attributes.Int("count_include_pad") != 0, plan))
    return absl::UnimplementedError(absl::StrCat("pooling over ", shape.rank, " axes"));
  context.SetTiles(plan->tiles, static_cast<double>(plan->tile_cost) * kNsPerElement);
  context.SetScratch(plan->scratch_bytes);
  return absl::OkStatus();
}

absl::Status Run(const RunContext& run, std::int64_t tile, void* scratch) {
  kernels::RunPoolTile(*run.prepared<State>()->rows, *run.bound<kernels::PoolPlan>(),
                       run.in<float>(0), run.out<float>(0), tile, scratch);
  return absl::OkStatus();
}

// Positions of maxima are the reference's business.
absl::Status BindMax(BindContext& context) {
  return context.has_output(1) ? absl::OkStatus() : Bind<Kind::kMax>(context);
}

absl::Status RunMax(const RunContext& run, std::int64_t tile, void* scratch) {
  if (run.has_output(1)) return ReferenceMax(run, tile, scratch);
  const auto& plan = *run.bound<kernels::PoolPlan>();
  if (run.dtype(0) == DType::kI8) {
    kernels::RunMaxPoolTile(plan, run.in<std::int8_t>(0), run.out<std::int8_t>(0), tile, scratch);
    return absl::OkStatus();
  }
  if (run.dtype(0) == DType::kU8) {
    kernels::RunMaxPoolTile(plan, run.in<std::uint8_t>(0), run.out<std::uint8_t>(0), tile, scratch);
    return absl::OkStatus();
  }
  return Run(run, tile, scratch);
}

// --- Global forms: the window is all of the spatial axes. -------------------------------------

absl::Status InferGlobal(InferContext& context) {
  const SymDims& in = context.shape(0);
  if (in.size() < 3)
    return absl::InvalidArgumentError(absl::StrCat(
        "input has shape ", ShapeString(in), ", want a batch, channels and a spatial axis"));
  SymDims out(in.size(), Dim(std::int64_t{1}));
  out[0] = in[0];
  out[1] = in[1];
  context.set_output(0, context.dtype(0), std::move(out));
  return absl::OkStatus();
}

template <Kind kKind>
absl::Status ReferenceGlobal(const RunContext& run, std::int64_t, void*) {
  const std::int64_t planes = run.output_count_of(0);
  const std::int64_t n = planes == 0 ? 0 : run.count(0) / planes;
  const double p = static_cast<double>(run.attributes().Int("p", 2));
  for (std::int64_t i = 0; i < planes; ++i) {
    double acc = kKind == Kind::kMax ? -std::numeric_limits<double>::infinity() : 0;
    for (std::int64_t k = 0; k < n; ++k) {
      const double x = RealAt(run, 0, i * n + k);
      if (kKind == Kind::kMax) acc = x > acc || std::isnan(x) ? x : acc;
      else acc += kKind == Kind::kAverage ? x : std::pow(std::fabs(x), p);
      if (kKind == Kind::kMax && std::isnan(acc)) break;
    }
    if (kKind == Kind::kAverage) acc /= static_cast<double>(n);
    if (kKind == Kind::kLp) acc = std::pow(acc, 1 / p);
    StoreReal(run, 0, i, acc);
  }
  return absl::OkStatus();
}

struct GlobalState final : Prepared {
  const kernels::ReduceKernel* rows = nullptr;
};

absl::StatusOr<std::unique_ptr<Prepared>> PrepareGlobal(PrepareContext& context) {
  const std::int64_t p = context.attributes().Int("p", 2);
  if (context.type(0).dtype != DType::kF32 || (p != 1 && p != 2)) return nullptr;
  auto state = std::make_unique<GlobalState>();
  state->rows = &kernels::SelectReduce(KernelIsa(context));
  state->kernel = state->rows->name;
  return state;
}

template <Kind kKind>
absl::Status BindGlobal(BindContext& context) {
  const std::int64_t planes = context.output_count_of(0);
  const std::int64_t dims[2] = {planes, planes == 0 ? 0 : context.count(0) / planes};
  const kernels::Reduction op = kKind == Kind::kMax       ? kernels::Reduction::kMax
                                : kKind == Kind::kAverage ? kernels::Reduction::kMean
                                : context.attributes().Int("p", 2) == 1
                                    ? kernels::Reduction::kL1
                                    : kernels::Reduction::kL2;
  auto* plan = context.New<kernels::ReducePlan>();
  kernels::PlanReduce(op, dims, 2, 2u, plan);
  context.SetTiles(plan->tiles, static_cast<double>(plan->tile_cost) * kNsPerElement);
  return absl::OkStatus();
}

absl::Status RunGlobal(const RunContext& run, std::int64_t tile, void*) {
  kernels::RunReduceTile(*run.prepared<GlobalState>()->rows, *run.bound<kernels::ReducePlan>(),
                         run.in<float>(0), run.out<float>(0), tile, StopCheckOf(run));
  return absl::OkStatus();
}

constexpr OpDef Windowed(const char* name, DTypeSet types) {
  OpDef op;
  op.name = name;
  op.inputs[0] = {"x", "T"};
  op.outputs[0] = {"y", "T"};
  op.types[0] = {"T", types};
  op.attributes[0] = {"auto_pad", AttrKind::kString};
  op.attributes[1] = {"ceil_mode", AttrKind::kInt};
  op.attributes[2] = {"dilations", AttrKind::kInts};
  op.attributes[3] = {"kernel_shape", AttrKind::kInts, true};
  op.attributes[4] = {"pads", AttrKind::kInts};
  op.attributes[5] = {"strides", AttrKind::kInts};
  op.attributes[7] = {"data_format", AttrKind::kString};
  op.infer = Infer;
  op.run = Run;
  return op;
}

constexpr OpDef MaxDef() {
  OpDef op = Windowed("MaxPool", kNumbers);
  op.outputs[1] = {"?indices", "int64"};
  op.attributes[6] = {"storage_order", AttrKind::kInt};
  op.reference = ReferenceMax;
  op.prepare = PrepareMax;
  op.bind = BindMax;
  op.run = RunMax;
  return op;
}
constexpr OpDef AverageDef() {
  OpDef op = Windowed("AveragePool", kFloats);
  op.attributes[6] = {"count_include_pad", AttrKind::kInt};
  op.reference = ReferenceSum<Kind::kAverage>;
  op.prepare = PreparePool;
  op.bind = Bind<Kind::kAverage>;
  return op;
}
constexpr OpDef LpDef() {
  OpDef op = Windowed("LpPool", kFloats);
  op.attributes[6] = {"p", AttrKind::kInt};
  op.reference = ReferenceSum<Kind::kLp>;
  op.prepare = PrepareLp;
  op.bind = Bind<Kind::kLp>;
  return op;
}

template <Kind kKind>
constexpr OpDef Global(const char* name) {
  OpDef op;
  op.name = name;
  op.inputs[0] = {"x", "T"};
  op.outputs[0] = {"y", "T"};
  op.types[0] = {"T", kFloats};
  if (kKind == Kind::kLp) op.attributes[0] = {"p", AttrKind::kInt};
  op.infer = InferGlobal;
  op.reference = ReferenceGlobal<kKind>;
  op.prepare = PrepareGlobal;
  op.bind = BindGlobal<kKind>;
  op.run = RunGlobal;
  return op;
}

}  // namespace

extern constexpr OpDef kOps[] = {
    AverageDef(),
    Global<Kind::kAverage>("GlobalAveragePool"),
    Global<Kind::kLp>("GlobalLpPool"),
    Global<Kind::kMax>("GlobalMaxPool"),
    LpDef(),
    MaxDef(),
};
extern constexpr int kOpCount = static_cast<int>(sizeof kOps / sizeof kOps[0]);

}  // namespace npurt::ops::pool
