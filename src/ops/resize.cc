// Resize: y at each position is x resampled there: nearest, linear or cubic along any axes.
#include "kernels/resize/resize.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "ops/around_axis.h"
#include "ops/move.h"

namespace npurt::ops::resize {
namespace {

using kernels::ResizeAxis;
using kernels::ResizeCoordinates;
using kernels::ResizeMode;
using kernels::ResizeOptions;
using kernels::ResizeRounding;

template <typename T>
struct Named {
  const char* name;
  T value;
};

constexpr Named<ResizeMode> kModes[] = {{"nearest", ResizeMode::kNearest},
                                        {"linear", ResizeMode::kLinear},
                                        {"cubic", ResizeMode::kCubic}};
constexpr Named<ResizeCoordinates> kCoordinates[] = {
    {"half_pixel", ResizeCoordinates::kHalfPixel},
    {"half_pixel_symmetric", ResizeCoordinates::kHalfPixelSymmetric},
    {"pytorch_half_pixel", ResizeCoordinates::kPytorchHalfPixel},
    {"align_corners", ResizeCoordinates::kAlignCorners},
    {"asymmetric", ResizeCoordinates::kAsymmetric},
    {"tf_crop_and_resize", ResizeCoordinates::kCropAndResize}};
constexpr Named<ResizeRounding> kRoundings[] = {
    {"round_prefer_floor", ResizeRounding::kPreferFloor},
    {"round_prefer_ceil", ResizeRounding::kPreferCeil},
    {"floor", ResizeRounding::kFloor},
    {"ceil", ResizeRounding::kCeil}};

template <typename T, std::size_t N>
absl::Status Choose(const Attributes& attributes, const char* attribute, const Named<T> (&table)[N],
                    T* out) {
  const std::string name = attributes.String(attribute, table[0].name);
  for (const Named<T>& row : table)
    if (name == row.name) {
      *out = row.value;
      return absl::OkStatus();
    }
  return absl::InvalidArgumentError(absl::StrCat(attribute, " is '", name, "', which is unknown"));
}

absl::StatusOr<ResizeOptions> OptionsOf(const Attributes& attributes) {
  ResizeOptions options;
  NPURT_RETURN_IF_ERROR(Choose(attributes, "mode", kModes, &options.mode));
  NPURT_RETURN_IF_ERROR(
      Choose(attributes, "coordinate_transformation_mode", kCoordinates, &options.coordinates));
  NPURT_RETURN_IF_ERROR(Choose(attributes, "nearest_mode", kRoundings, &options.rounding));
  options.antialias = attributes.Int("antialias") != 0;
  options.exclude_outside = attributes.Int("exclude_outside") != 0;
  options.cubic_a = static_cast<double>(attributes.Float("cubic_coeff_a", -0.75f));
  options.extrapolation_value = attributes.Float("extrapolation_value", 0);
  return options;
}

// The axes that roi, scales and sizes speak of: `axes`, or all.
absl::StatusOr<Dims> AxesOf(const Attributes& attributes, int rank) {
  Dims axes;
  if (!attributes.Has("axes"))
    for (int i = 0; i < rank; ++i) axes.push_back(i);
  for (std::int64_t a : attributes.Ints("axes")) {
    NPURT_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(a, rank));
    if (std::find(axes.begin(), axes.end(), axis) != axes.end())
      return absl::InvalidArgumentError(absl::StrCat("axes names axis ", axis, " twice"));
    axes.push_back(axis);
  }
  return axes;
}

// What the node asks for, with the values of its inputs; empty: absent.
struct Request {
  std::vector<double> roi, scales;
  std::vector<std::int64_t> sizes;
};

// Beyond these no tensor has room for both sides; sizes and sample positions stay exact as double.
constexpr double kMinScale = 1e-9, kMaxScale = 1e9, kMaxSize = 9e15;

absl::Status CheckCounts(const Request& request, std::size_t axes) {
  if (request.scales.empty() == request.sizes.empty())
    return absl::InvalidArgumentError("want either scales or sizes");
  const std::size_t count = request.scales.empty() ? request.sizes.size() : request.scales.size();
  if (count != axes)
    return absl::InvalidArgumentError(absl::StrCat(request.scales.empty() ? "sizes" : "scales",
                                                   " has ", count, " elements, want ", axes));
  for (double scale : request.scales)
    if (!(scale >= kMinScale && scale <= kMaxScale))
      return absl::InvalidArgumentError(
          absl::StrCat("a scale is ", scale, ", want ", kMinScale, " to ", kMaxScale));
  for (std::int64_t size : request.sizes)
    if (size < 0) return absl::InvalidArgumentError(absl::StrCat("a size is ", size));
  return absl::OkStatus();
}

// How each axis of the input is resampled.
absl::StatusOr<std::vector<ResizeAxis>> ResampledAxes(const Attributes& attributes,
                                                      absl::Span<const std::int64_t> dims,
                                                      const Request& request) {
  NPURT_ASSIGN_OR_RETURN(const Dims axes, AxesOf(attributes, static_cast<int>(dims.size())));
  NPURT_RETURN_IF_ERROR(CheckCounts(request, axes.size()));
  std::vector<ResizeAxis> out(dims.size());
  for (std::size_t i = 0; i < dims.size(); ++i) out[i].in = out[i].out = dims[i];
  if (!request.roi.empty() && request.roi.size() != 2 * axes.size())
    return absl::InvalidArgumentError(
        absl::StrCat("roi has ", request.roi.size(), " elements, want ", 2 * axes.size()));
  for (std::size_t i = 0; i < axes.size() && !request.roi.empty(); ++i) {
    out[static_cast<std::size_t>(axes[i])].roi_start = request.roi[i];
    out[static_cast<std::size_t>(axes[i])].roi_end = request.roi[i + axes.size()];
  }
  if (!request.scales.empty()) {
    for (std::size_t i = 0; i < axes.size(); ++i) {
      ResizeAxis& axis = out[static_cast<std::size_t>(axes[i])];
      const double size = std::floor(static_cast<double>(axis.in) * request.scales[i]);
      if (!(size >= 0 && size <= kMaxSize))
        return absl::InvalidArgumentError("a scale gives the output no valid size");
      axis.scale = request.scales[i];
      axis.out = static_cast<std::int64_t>(size);
    }
    return out;
  }
  const std::string policy = attributes.String("keep_aspect_ratio_policy", "stretch");
  double common = 0;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const ResizeAxis& axis = out[static_cast<std::size_t>(axes[i])];
    if (axis.in == 0) continue;
    const double scale = static_cast<double>(request.sizes[i]) / static_cast<double>(axis.in);
    if (i == 0) common = scale;
    common = policy == "not_larger" ? std::min(common, scale) : std::max(common, scale);
  }
  for (std::size_t i = 0; i < axes.size(); ++i) {
    ResizeAxis& axis = out[static_cast<std::size_t>(axes[i])];
    axis.out = request.sizes[i];
    if (policy != "stretch") {
      const double size = std::floor(common * static_cast<double>(axis.in) + 0.5);
      if (!(size >= 0 && size <= kMaxSize))
        return absl::InvalidArgumentError("a scale gives the output no valid size");
      axis.scale = common;
      axis.out = static_cast<std::int64_t>(size);
    } else if (axis.in != 0) {
      axis.scale = static_cast<double>(axis.out) / static_cast<double>(axis.in);
    }
  }
  return out;
}

std::vector<double> RealsOf(const Tensor& tensor) {
  auto reals = Reals(tensor);
  return reals.ok() ? *std::move(reals) : std::vector<double>();
}

// The request of constant inputs. Nothing if a value is not known yet.
template <typename Context>
std::optional<Request> ConstantRequest(const Context& context) {
  Request request;
  if (context.has_input(1)) {
    if (context.constant(1) == nullptr) return std::nullopt;
    request.roi = RealsOf(*context.constant(1));
  }
  if (context.has_input(2)) {
    if (context.constant(2) == nullptr) return std::nullopt;
    request.scales = RealsOf(*context.constant(2));
  }
  if (context.has_input(3)) {
    if (context.constant(3) == nullptr) return std::nullopt;
    auto sizes = Integers(*context.constant(3));
    if (sizes.ok()) request.sizes = *std::move(sizes);
  }
  return request;
}

Request RequestOf(const RunContext& run) {
  Request request;
  for (std::int64_t i = 0; run.has_input(1) && i < run.count(1); ++i)
    request.roi.push_back(RealAt(run, 1, i));
  for (std::int64_t i = 0; run.has_input(2) && i < run.count(2); ++i)
    request.scales.push_back(RealAt(run, 2, i));
  if (run.has_input(3)) request.sizes = run.Integers(3);
  return request;
}

absl::Status Infer(InferContext& context) {
  const SymDims& in = context.shape(0);
  const Attributes& attributes = context.attributes();
  NPURT_RETURN_IF_ERROR(OptionsOf(attributes).status());
  for (int i : {2, 3})
    if (context.has_input(i) && context.rank(i) != 1)
      return absl::InvalidArgumentError(
          absl::StrCat("scales and sizes want rank 1, got ", context.rank(i)));
  const std::string policy = attributes.String("keep_aspect_ratio_policy", "stretch");
  if (policy != "stretch" && policy != "not_larger" && policy != "not_smaller")
    return absl::InvalidArgumentError(
        absl::StrCat("keep_aspect_ratio_policy is '", policy, "', which is unknown"));
  NPURT_ASSIGN_OR_RETURN(const Dims axes, AxesOf(attributes, context.rank(0)));
  SymDims out = in;
  const bool by_sizes = context.has_input(3);
  if (by_sizes == context.has_input(2))
    return absl::InvalidArgumentError("want either scales or sizes");
  // Sizes may be symbols: they are the output's dimensions themselves.
  if (by_sizes && policy == "stretch") {
    const auto sizes = context.integers(3);
    if (sizes && sizes->size() != axes.size())
      return absl::InvalidArgumentError(
          absl::StrCat("sizes has ", sizes->size(), " elements, want ", axes.size()));
    for (std::size_t i = 0; i < axes.size(); ++i)
      out[static_cast<std::size_t>(axes[i])] = sizes ? (*sizes)[i] : context.RunDim();
    context.set_output(0, context.dtype(0), std::move(out));
    return absl::OkStatus();
  }
  std::optional<Request> request;
  if (by_sizes) {
    if (const auto sizes = ConstantIntegers(context, 3)) {
      request.emplace();
      request->sizes = *sizes;
    }
  } else if (context.constant(2) != nullptr) {
    request.emplace();
    request->scales = RealsOf(*context.constant(2));
  }
  if (request) NPURT_RETURN_IF_ERROR(CheckCounts(*request, axes.size()));
  if (request && AllConstant(in)) {
    NPURT_ASSIGN_OR_RETURN(const std::vector<ResizeAxis> resampled,
                           ResampledAxes(attributes, ToDims(in), *request));
    for (std::size_t i = 0; i < in.size(); ++i) out[i] = resampled[i].out;
  } else {
    for (std::size_t i = 0; i < axes.size(); ++i) {
      const std::size_t axis = static_cast<std::size_t>(axes[i]);
      const double scale = request && !by_sizes ? request->scales[i] : 0;
      // A whole factor (or its inverse) is exact arithmetic on symbols.
      if (scale >= 1 && scale == std::floor(scale) && scale < 1e6)
        out[axis] = in[axis] * Dim(static_cast<std::int64_t>(scale));
      else if (scale > 1e-6 && scale < 1 && 1 / scale == std::floor(1 / scale))
        out[axis] = FloorDiv(in[axis], Dim(static_cast<std::int64_t>(1 / scale)));
      else if (in[axis].is_constant() && scale > 0 &&
               static_cast<double>(in[axis].value()) * scale <= kMaxSize)
        out[axis] = Dim(
            static_cast<std::int64_t>(std::floor(static_cast<double>(in[axis].value()) * scale)));
      else
        out[axis] = context.RunDim();
    }
  }
  context.set_output(0, context.dtype(0), std::move(out));
  return absl::OkStatus();
}

// The axes, checked against what inference made of the output. Outputs known only to the run are
// allocated here.
absl::StatusOr<std::vector<ResizeAxis>> AxesForRun(const RunContext& run) {
  NPURT_ASSIGN_OR_RETURN(std::vector<ResizeAxis> axes,
                         ResampledAxes(run.attributes(), run.dims(0), RequestOf(run)));
  Dims out;
  for (const ResizeAxis& axis : axes) out.push_back(axis.out);
  if (run.output(0).data == nullptr) NPURT_RETURN_IF_ERROR(run.AllocateOutput(0, out));
  if (absl::Span<const std::int64_t>(out) != run.output_dims(0))
    return absl::InvalidArgumentError(absl::StrCat("the result has shape ", ShapeString(out),
                                                   ", the output ",
                                                   ShapeString(run.output_dims(0))));
  for (const ResizeAxis& axis : axes)
    if (axis.in == 0 && axis.out != 0)
      return absl::InvalidArgumentError("an empty axis cannot grow");
  return axes;
}

absl::Status Reference(const RunContext& run, std::int64_t, void*) {
  NPURT_ASSIGN_OR_RETURN(const ResizeOptions options, OptionsOf(run.attributes()));
  NPURT_ASSIGN_OR_RETURN(const std::vector<ResizeAxis> axes, AxesForRun(run));
  const std::size_t rank = axes.size();
  const bool crop = options.coordinates == ResizeCoordinates::kCropAndResize;
  // All taps of all axes, then every output element as the product over its axes.
  struct Taps {
    int count = 1;
    std::vector<std::int64_t> index;
    std::vector<double> weight;
    std::vector<char> inside;
  };
  std::vector<Taps> taps(rank);
  Dims sizes;
  for (std::size_t a = 0; a < rank; ++a) {
    ResizeOptions own = options;
    const bool resized = axes[a].in != axes[a].out || axes[a].scale != 1 ||
                         (crop && (axes[a].roi_start != 0 || axes[a].roi_end != 1));
    if (!resized) own.mode = ResizeMode::kNearest;
    Taps& t = taps[a];
    t.count = kernels::ResizeTapCount(axes[a], own);
    t.index.resize(static_cast<std::size_t>(t.count * axes[a].out));
    t.weight.resize(t.index.size());
    for (std::int64_t o = 0; o < axes[a].out; ++o)
      t.inside.push_back(kernels::ResizeTaps(axes[a], own, o, t.index.data() + o * t.count,
                                             t.weight.data() + o * t.count));
    sizes.push_back(axes[a].out);
  }
  const Dims strides = StridesOf(run.dims(0));
  const std::int64_t total = ProductOf(sizes, 0, static_cast<int>(rank));
  Dims at(rank, 0), counts;
  for (const Taps& t : taps) counts.push_back(t.count);
  for (std::int64_t i = 0; i < total; ++i, NextIndex(sizes, absl::MakeSpan(at))) {
    bool inside = true;
    for (std::size_t a = 0; a < rank; ++a)
      inside = inside && taps[a].inside[static_cast<std::size_t>(at[a])] != 0;
    if (!inside) {
      StoreReal(run, 0, i, static_cast<double>(options.extrapolation_value));
      continue;
    }
    Dims tap(rank, 0);
    double sum = 0;
    std::int64_t source = 0;
    do {
      double weight = 1;
      source = 0;
      for (std::size_t a = 0; a < rank; ++a) {
        const std::size_t entry = static_cast<std::size_t>(at[a] * taps[a].count + tap[a]);
        weight *= taps[a].weight[entry];
        source += taps[a].index[entry] * strides[a];
      }
      if (options.mode != ResizeMode::kNearest && weight != 0)
        sum += weight * RealAt(run, 0, source);
    } while (NextIndex(counts, absl::MakeSpan(tap)));
    if (options.mode == ResizeMode::kNearest)
      CopyElements(run.dtype(0), run.output(0).data, i, run.input(0).data, source, 1);
    else if (IsFloat(run.dtype(0)))
      StoreReal(run, 0, i, sum);
    else
      DispatchDType<kIntegers | kBools>(run.dtype(0), [&](auto type) {
        using T = decltype(type);
        const double low = static_cast<double>(std::numeric_limits<T>::min());
        const double high = static_cast<double>(std::numeric_limits<T>::max());
        // Fractions are dropped; what overshoots (cubic) stays in the type.
        const double whole = std::trunc(sum);
        run.Store<T>(0, i,
                     whole <= low    ? std::numeric_limits<T>::min()
                     : whole >= high ? std::numeric_limits<T>::max()
                                     : static_cast<T>(whole));
      });
  }
  return absl::OkStatus();
}

struct State final : Prepared {
  const kernels::ResizeKernel* rows = nullptr;
};

absl::StatusOr<std::unique_ptr<Prepared>> Prepare(PrepareContext& context) {
  const DType dtype = context.type(0).dtype;
  NPURT_ASSIGN_OR_RETURN(const ResizeOptions options, OptionsOf(context.attributes()));
  const bool nearest = options.mode == ResizeMode::kNearest;
  if (!nearest && dtype != DType::kF32) return nullptr;
  if (!Contains(kPlainTypes, dtype) || !ConstantRequest(context)) return nullptr;
  auto state = std::make_unique<State>();
  state->rows = &kernels::SelectResize(KernelIsa(context));
  state->kernel = nearest ? "resize_nearest" : state->rows->name;
  return state;
}

absl::Status Bind(BindContext& context) {
  NPURT_ASSIGN_OR_RETURN(const ResizeOptions options, OptionsOf(context.attributes()));
  const std::optional<Request> request = ConstantRequest(context);
  if (!request) return absl::InternalError("the sizes are not constant");
  NPURT_ASSIGN_OR_RETURN(const std::vector<ResizeAxis> axes,
                         ResampledAxes(context.attributes(), context.dims(0), *request));
  for (std::size_t i = 0; i < axes.size(); ++i)
    if (axes[i].out != context.output_dims(0)[i] || (axes[i].in == 0 && axes[i].out != 0))
      return absl::InvalidArgumentError(absl::StrCat("axis ", i, " of size ", axes[i].in,
                                                     " cannot become ", context.output_dims(0)[i]));
  const int rank = static_cast<int>(axes.size());
  const std::size_t bytes = kernels::ResizePlanBytes(axes.data(), rank, options);
  if (bytes == 0) return absl::UnimplementedError("a resize along more axes than eight");
  // The tables follow the plan, so the block is as long as the shapes say.
  void* block = context.NewBytes(bytes, alignof(std::max_align_t));
  const kernels::ResizePlan* plan = kernels::PlanResize(axes.data(), rank, options, block);
  context.SetTiles(plan->tiles, static_cast<double>(plan->tile_cost) * kNsPerElement * 2);
  context.SetScratch(plan->scratch_bytes);
  return absl::OkStatus();
}

absl::Status Run(const RunContext& run, std::int64_t tile, void* scratch) {
  const auto& plan = *run.bound<kernels::ResizePlan>();
  if (plan.options.mode != ResizeMode::kNearest) {
    kernels::RunResizeTile(*run.prepared<State>()->rows, plan, run.in<float>(0), run.out<float>(0),
                           tile, scratch);
    return absl::OkStatus();
  }
  alignas(8) char beyond[8] = {};
  DispatchDType<kPlainTypes>(run.dtype(0), [&](auto type) {
    const auto value = static_cast<decltype(type)>(plan.options.extrapolation_value);
    std::memcpy(beyond, &value, sizeof value);
  });
  kernels::RunResizeNearestTile(plan, static_cast<std::size_t>(DTypeBits(run.dtype(0)) / 8), beyond,
                                run.in<void>(0), run.out<void>(0), tile);
  return absl::OkStatus();
}

}  // namespace

extern constexpr OpDef kOp = {
    .name = "Resize",
    .inputs = {{"x", "T1"}, {"?roi", "T2"}, {"?scales", "float32"}, {"?sizes", "int64"}},
    .outputs = {{"y", "T1"}},
    .types = {{"T1", kPlainTypes}, {"T2", kFloats}},
    .attributes = {{"antialias", AttrKind::kInt},
                   {"axes", AttrKind::kInts},
                   {"coordinate_transformation_mode", AttrKind::kString},
                   {"cubic_coeff_a", AttrKind::kFloat},
                   {"exclude_outside", AttrKind::kInt},
                   {"extrapolation_value", AttrKind::kFloat},
                   {"keep_aspect_ratio_policy", AttrKind::kString},
                   {"mode", AttrKind::kString},
                   {"nearest_mode", AttrKind::kString}},
    .infer = Infer,
    .reference = Reference,
    .prepare = Prepare,
    .bind = Bind,
    .run = Run,
};

}  // namespace npurt::ops::resize
