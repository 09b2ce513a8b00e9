// ImageScaler: y[n, c, ...] = x[n, c, ...] * scale + bias[c] (from ONNX's experimental days).
#include "absl/strings/str_cat.h"
#include "ops/move.h"

namespace npurt::ops::image_scaler {
namespace {

absl::Status Infer(InferContext& context) {
  const SymDims& x = context.shape(0);
  const auto bias = context.attributes().Floats("bias");
  if (x.size() < 2 || (!bias.empty() && x[1].is_constant() &&
                       !x[1].Is(static_cast<std::int64_t>(bias.size()))))
    return absl::InvalidArgumentError(
        absl::StrCat("x has shape ", ShapeString(x), ", bias ", bias.size(), " numbers"));
  context.set_output(0, context.dtype(0), x);
  return absl::OkStatus();
}

template <typename T>
struct Reference {
  static absl::Status Run(const RunContext& run) {
    const auto dims = run.dims(0);
    const double scale = static_cast<double>(run.attributes().Float("scale", 1));
    const auto bias = run.attributes().Floats("bias");
    if (!bias.empty() && static_cast<std::int64_t>(bias.size()) != dims[1])
      return absl::InvalidArgumentError(
          absl::StrCat("x has ", dims[1], " channels, bias ", bias.size(), " numbers"));
    const std::int64_t plane = ProductOf(dims, 2, run.input(0).rank);
    for (std::int64_t i = 0; i < run.count(0); ++i) {
      const double shift =
          bias.empty() ? 0 : static_cast<double>(bias[static_cast<std::size_t>(i / plane % dims[1])]);
      run.Store<T>(0, i, static_cast<T>(static_cast<double>(run.Load<T>(0, i)) * scale + shift));
    }
    return absl::OkStatus();
  }
};

absl::Status Bind(BindContext& bind) {
  bind.MayOverwrite(0, 0);
  return absl::OkStatus();
}

}  // namespace

extern constexpr OpDef kOp = {
    .name = "ImageScaler",
    .inputs = {{"input", "T"}},
    .outputs = {{"output", "T"}},
    .types = {{"T", kFloats}},
    .attributes = {{"bias", AttrKind::kFloats}, {"scale", AttrKind::kFloat}},
    .infer = Infer,
    .reference = ForEachType<Reference, kFloats>,
    .bind = Bind,
};

}  // namespace npurt::ops::image_scaler
