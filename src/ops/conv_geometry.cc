// ConvGeometry: see conv_geometry.h.
#include "ops/conv_geometry.h"

#include "absl/strings/str_cat.h"

namespace npurt::ops {
namespace {

// An attribute with one number per spatial dimension, or nothing.
absl::Status CheckCount(const Attributes& attributes, const char* name, std::size_t want,
                        std::int64_t least) {
  const auto values = attributes.Ints(name);
  if (!values.empty() && values.size() != want)
    return absl::InvalidArgumentError(
        absl::StrCat(name, " has ", values.size(), " numbers, want ", want));
  for (std::int64_t value : values)
    if (value < least || value > (std::int64_t{1} << 40))
      return absl::InvalidArgumentError(
          absl::StrCat(name, " has ", value, ", want at least ", least));
  return absl::OkStatus();
}

absl::Status CheckAttributes(const Attributes& attributes, std::size_t spatial, bool transposed) {
  NPURT_RETURN_IF_ERROR(CheckCount(attributes, "kernel_shape", spatial, 0));
  NPURT_RETURN_IF_ERROR(CheckCount(attributes, "strides", spatial, 1));
  NPURT_RETURN_IF_ERROR(CheckCount(attributes, "dilations", spatial, 1));
  NPURT_RETURN_IF_ERROR(CheckCount(attributes, "pads", 2 * spatial, -(std::int64_t{1} << 40)));
  if (transposed) {
    NPURT_RETURN_IF_ERROR(CheckCount(attributes, "output_padding", spatial, 0));
    NPURT_RETURN_IF_ERROR(CheckCount(attributes, "output_shape", spatial, 0));
  }
  const std::string auto_pad = attributes.String("auto_pad", "NOTSET");
  if (auto_pad != "NOTSET" && auto_pad != "VALID" && auto_pad != "SAME_UPPER" &&
      auto_pad != "SAME_LOWER")
    return absl::InvalidArgumentError(
        absl::StrCat("auto_pad is '", auto_pad, "', want NOTSET, VALID, SAME_UPPER or SAME_LOWER"));
  if (attributes.Int("group", 1) < 1)
    return absl::InvalidArgumentError(
        absl::StrCat("group is ", attributes.Int("group", 1), ", want at least 1"));
  return absl::OkStatus();
}

std::int64_t At(const Attributes& attributes, const char* name, std::size_t i,
                std::int64_t fallback) {
  const auto values = attributes.Ints(name);
  return i < values.size() ? values[i] : fallback;
}

bool IsSame(const Attributes& attributes) {
  const std::string auto_pad = attributes.String("auto_pad", "NOTSET");
  return auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
}
bool UsesPads(const Attributes& attributes) {
  return attributes.String("auto_pad", "NOTSET") == "NOTSET";
}

// Spatial output size `i`, for Dim and its arithmetic.
Dim OutputOf(const Attributes& attributes, bool transposed, std::size_t i, std::size_t spatial,
             Dim in, Dim kernel) {
  const std::int64_t stride = At(attributes, "strides", i, 1);
  const std::int64_t dilation = At(attributes, "dilations", i, 1);
  const std::int64_t pads =
      UsesPads(attributes) ? At(attributes, "pads", i, 0) + At(attributes, "pads", i + spatial, 0)
                           : 0;
  const Dim reach = (kernel - Dim(1)) * Dim(dilation) + Dim(1);
  if (transposed) {
    if (!attributes.Ints("output_shape").empty()) return At(attributes, "output_shape", i, 0);
    if (IsSame(attributes)) return in * Dim(stride);
    return (in - Dim(1)) * Dim(stride) + reach + Dim(At(attributes, "output_padding", i, 0) - pads);
  }
  if (IsSame(attributes)) return CeilDiv(in, Dim(stride));
  return FloorDiv(in + Dim(pads) - reach, Dim(stride)) + Dim(1);
}

// Padding at the beginning.
std::int64_t PadOf(const Attributes& attributes, bool transposed, std::size_t i, std::int64_t in,
                   std::int64_t out, std::int64_t kernel) {
  const std::string auto_pad = attributes.String("auto_pad", "NOTSET");
  const bool given_shape = transposed && !attributes.Ints("output_shape").empty();
  if (!IsSame(attributes) && !given_shape)
    return auto_pad == "NOTSET" ? At(attributes, "pads", i, 0) : 0;
  const std::int64_t stride = At(attributes, "strides", i, 1);
  const std::int64_t reach = (kernel - 1) * At(attributes, "dilations", i, 1) + 1;
  const std::int64_t narrow = transposed ? in : out, wide = transposed ? out : in;
  std::int64_t total = (narrow - 1) * stride + reach - wide;
  if (transposed) total += At(attributes, "output_padding", i, 0);
  if (total < 0) total = 0;
  // The odd one goes to the end for SAME_UPPER, to the beginning else.
  return auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
}

}  // namespace

bool ChannelsLast(const Attributes& attributes) {
  return attributes.Has("data_format") && attributes.String("data_format", "") == "NHWC";
}

absl::Status InferConv(InferContext& context, bool transposed, int bias) {
  const SymDims& w = context.shape(1);
  if (context.rank(0) < 3 || context.rank(0) != context.rank(1))
    return absl::InvalidArgumentError(absl::StrCat("x has shape ", ShapeString(context.shape(0)),
                                                   ", w ", ShapeString(w),
                                                   ", want equal ranks of at least 3"));
  const Attributes& attributes = context.attributes();
  const std::string format = attributes.String("data_format", "NCHW");
  if (format != "NCHW" && format != "NHWC")
    return absl::InvalidArgumentError(
        absl::StrCat("data_format is '", format, "', want NCHW or NHWC"));
  const bool last = format == "NHWC";
  const SymDims x = ChannelsFirstOf(context.shape(0), last);
  const std::size_t spatial = x.size() - 2;
  NPURT_RETURN_IF_ERROR(CheckAttributes(attributes, spatial, transposed));
  const std::int64_t groups = attributes.Int("group", 1);
  const Dim w_in = transposed ? w[0] : w[1] * Dim(groups);
  if (x[1].is_constant() && w_in.is_constant() && x[1] != w_in)
    return absl::InvalidArgumentError(absl::StrCat("x ", ShapeString(x), " has ", x[1].ToString(),
                                                   " channels, w ", ShapeString(w), " with ",
                                                   groups, " groups wants ", w_in.ToString()));
  const Dim grouped = w[0];
  if (grouped.is_constant() && grouped.value() % groups != 0)
    return absl::InvalidArgumentError(absl::StrCat("w ", ShapeString(w), " does not divide into ",
                                                   groups, " groups of channels"));
  SymDims out = {x[0], transposed ? w[1] * Dim(groups) : w[0]};
  for (std::size_t i = 0; i < spatial; ++i) {
    const std::int64_t kernel = At(attributes, "kernel_shape", i, -1);
    if (kernel >= 0 && w[2 + i].is_constant() && !w[2 + i].Is(kernel))
      return absl::InvalidArgumentError(absl::StrCat("kernel_shape ",
                                                     ShapeString(attributes.Ints("kernel_shape")),
                                                     " does not fit w ", ShapeString(w)));
    out.push_back(OutputOf(attributes, transposed, i, spatial, x[2 + i],
                           kernel >= 0 ? Dim(kernel) : w[2 + i]));
    if (out.back().is_constant() && out.back().value() < 0)
      return absl::InvalidArgumentError(absl::StrCat(
          "x ", ShapeString(x), " with its padding is smaller than w ", ShapeString(w)));
  }
  if (context.has_input(bias) && context.type(bias).has_rank &&
      (context.rank(bias) != 1 || (context.shape(bias)[0].is_constant() && out[1].is_constant() &&
                                   context.shape(bias)[0] != out[1])))
    return absl::InvalidArgumentError(absl::StrCat("bias has shape ",
                                                   ShapeString(context.shape(bias)), ", want [",
                                                   out[1].ToString(), "]"));
  context.set_output(0, context.dtype(0), ChannelsLastOf(std::move(out), last));
  return absl::OkStatus();
}

absl::StatusOr<ConvGeometry> ConvGeometryOf(const Attributes& attributes, bool transposed,
                                            absl::Span<const std::int64_t> x,
                                            absl::Span<const std::int64_t> w,
                                            absl::Span<const std::int64_t> out) {
  ConvGeometry g;
  g.groups = attributes.Int("group", 1);
  g.batch = x[0];
  g.in_channels = x[1] / g.groups;
  g.out_channels = transposed ? w[1] : w[0] / g.groups;
  const std::int64_t w_in = transposed ? w[0] : w[1] * g.groups;
  const bool kernel_fits =
      attributes.Ints("kernel_shape").empty() || attributes.Ints("kernel_shape") == w.subspan(2);
  if (x[1] != w_in || w[0] % g.groups != 0 || !kernel_fits)
    return absl::InvalidArgumentError(absl::StrCat("x ", ShapeString(x), " and w ", ShapeString(w),
                                                   " do not fit each other (", g.groups,
                                                   " groups)"));
  for (std::size_t i = 0; i + 2 < x.size(); ++i) {
    g.in.push_back(x[2 + i]);
    g.out.push_back(out[2 + i]);
    g.kernel.push_back(w[2 + i]);
    g.stride.push_back(At(attributes, "strides", i, 1));
    g.dilation.push_back(At(attributes, "dilations", i, 1));
    g.pad.push_back(PadOf(attributes, transposed, i, x[2 + i], out[2 + i], w[2 + i]));
  }
  return g;
}

ConvGeometry WeightsGeometry(const Attributes& attributes, absl::Span<const std::int64_t> w) {
  ConvGeometry g;
  g.batch = 1;
  g.groups = attributes.Int("group", 1);
  g.in_channels = w[1];
  g.out_channels = w[0] / g.groups;
  for (std::size_t i = 0; i + 2 < w.size(); ++i) {
    g.kernel.push_back(w[2 + i]);
    g.stride.push_back(At(attributes, "strides", i, 1));
    g.dilation.push_back(At(attributes, "dilations", i, 1));
    g.pad.push_back(0);
    for (Dims* ones : {&g.in, &g.out}) ones->push_back(1);
  }
  return g;
}

bool ToConvProblem(const ConvGeometry& g, bool transposed, kernels::ConvProblem* problem) {
  const std::size_t spatial = g.in.size();
  if (spatial > kernels::kConvRank) return false;
  kernels::ConvProblem p;
  p.transposed = transposed;
  p.batch = g.batch;
  p.groups = g.groups;
  p.in_channels = g.in_channels;
  p.out_channels = g.out_channels;
  // Kernels work along the last dimension: one that has a single element does not count as such.
  std::size_t d = kernels::kConvRank;
  for (std::size_t i = spatial; i-- > 0;) {
    const bool single = g.in[i] == 1 && g.out[i] == 1 && g.kernel[i] == 1 && g.pad[i] == 0 &&
                        (!transposed || g.stride[i] == 1);
    if (single) continue;
    --d;
    p.in[d] = g.in[i];
    p.out[d] = g.out[i];
    p.kernel[d] = g.kernel[i];
    p.stride[d] = g.stride[i];
    p.dilation[d] = g.dilation[i];
    p.pad[d] = g.pad[i];
  }
  *problem = p;
  return true;
}

absl::Status CheckConvBias(const ConvGeometry& g, std::int64_t bias) {
  if (bias == -1 || bias == g.out_channels * g.groups) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("bias has ", bias, " elements, want ", g.out_channels * g.groups));
}

}  // namespace npurt::ops
