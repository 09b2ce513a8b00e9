// ConvInteger: y = conv(x - x_zero, w - w_zero) in int32. QLinearConv: (that + bias) * x_scale * w_scale /
// y_scale, rounded, plus y_zero and saturated. Parameters of w may be one per output channel.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "ops/conv_geometry.h"
#include "ops/move.h"
#include "ops/numbers.h"

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

// Calls `plane(n, channel, sums)` with the sums of each output plane.
template <typename Plane>
absl::Status ForEachPlane(const RunContext& run, int x_zero, int w_input, int w_zero,
                          Plane plane) {
  NPURT_ASSIGN_OR_RETURN(const ConvGeometry g,
                         ConvGeometryOf(run.attributes(), false, run.dims(0), run.dims(w_input),
                                        run.output_dims(0)));
  NPURT_RETURN_IF_ERROR(CheckScalar(run, x_zero));
  NPURT_RETURN_IF_ERROR(CheckPerChannel(run, w_zero, g.groups * g.out_channels));
  const int spatial = static_cast<int>(g.in.size()), last = spatial - 1;
  const std::int64_t in_plane = ProductOf(g.in, 0, spatial);
  const std::int64_t out_plane = ProductOf(g.out, 0, spatial);
  const std::int64_t taps = ProductOf(g.kernel, 0, spatial);
  const std::int64_t in_channels = g.groups * g.in_channels;
  if (run.output_count_of(0) == 0) return absl::OkStatus();
  std::vector<std::int32_t> x(static_cast<std::size_t>(in_channels * in_plane));
  std::vector<std::int32_t> sums(static_cast<std::size_t>(out_plane));
  const std::int64_t zero = IntegerOf(run, x_zero, 0);
  const std::int64_t width = g.out[last], stride = g.stride[last];
  for (std::int64_t n = 0; n < g.batch; ++n) {
    for (std::size_t i = 0; i < x.size(); ++i)
      x[i] = static_cast<std::int32_t>(
          IndexAt(run, 0, n * in_channels * in_plane + static_cast<std::int64_t>(i)) - zero);
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
        const auto size = static_cast<std::int64_t>(sums.size());
        for (std::int64_t i = 0; i < size; ++i)
          StoreNumber(out.dtype, out.data, (n * channels + m) * size + i,
                      std::nearbyint((sums[static_cast<std::size_t>(i)] + bias) * scale) + zero);
        return absl::OkStatus();
      });
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
                       {"dilations", AttrKind::kInts},
                       {"group", AttrKind::kInt},
                       {"kernel_shape", AttrKind::kInts},
                       {"pads", AttrKind::kInts},
                       {"strides", AttrKind::kInts}},
        .infer = InferQLinear,
        .reference = ReferenceQLinear,
    },
};
extern constexpr int kOpCount = static_cast<int>(sizeof kOps / sizeof kOps[0]);

}  // namespace npurt::ops::integer_conv
