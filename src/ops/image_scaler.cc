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

// The fast version: float32, tiles of whole planes.
absl::Status Bind(BindContext& bind) {
  bind.MayOverwrite(0, 0);
  const auto dims = bind.dims(0);
  const auto bias = bind.attributes().Floats("bias");
  if (!bias.empty() && static_cast<std::int64_t>(bias.size()) != dims[1])
    return absl::InvalidArgumentError(
        absl::StrCat("x has ", dims[1], " channels, bias ", bias.size(), " numbers"));
  if (bind.dtype(0) != DType::kF32) return absl::OkStatus();
  const std::int64_t planes = dims[0] * dims[1];
  bind.SetTiles(planes, planes == 0 ? 0 : 0.8 * static_cast<double>(bind.count(0) / planes));
  return absl::OkStatus();
}

absl::Status Run(const RunContext& run, std::int64_t tile, void*) {
  if (run.dtype(0) != DType::kF32) return ForEachType<Reference, kFloats>(run, tile, nullptr);
  const auto dims = run.dims(0);
  const std::int64_t plane = ProductOf(dims, 2, run.input(0).rank);
  const float scale = run.attributes().Float("scale", 1);
  const auto bias = run.attributes().Floats("bias");
  const float shift = bias.empty() ? 0.0f : bias[static_cast<std::size_t>(tile % dims[1])];
  const char* const in = run.in<char>(0) + tile * plane * 4;
  char* const out = run.out<char>(0) + tile * plane * 4;
  for (std::int64_t i = 0; i < plane; ++i) {
    float x;
    std::memcpy(&x, in + i * 4, 4);
    x = x * scale + shift;
    std::memcpy(out + i * 4, &x, 4);
  }
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
    .run = Run,
};

}  // namespace npurt::ops::image_scaler
