// BatchNormalization: y = (x - mean) / sqrt(variance + epsilon) * scale + bias per channel (axis 1). In
// inference mean and variance are inputs; with training_mode they are those of the batch, and the
// running ones move towards them.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "kernels/norm/norm.h"
#include "ops/around_axis.h"
#include "ops/move.h"
#include "ops/poller.h"

namespace npurt::ops::batch_norm {
namespace {

struct Sizes {
  std::int64_t batch = 1, channels = 1, spatial = 1;
};

Sizes SizesOf(absl::Span<const std::int64_t> dims) {
  Sizes s;
  for (std::size_t i = 0; i < dims.size(); ++i)
    (i == 0 ? s.batch : i == 1 ? s.channels : s.spatial) *= dims[i];
  return s;
}

absl::Status Infer(InferContext& context) {
  const SymDims& in = context.shape(0);
  const Dim channels = in.size() > 1 ? in[1] : Dim(std::int64_t{1});
  for (int i = 1; i < 5; ++i) {
    const SymDims& dims = context.shape(i);
    if (dims.size() != 1 ||
        (dims[0].is_constant() && channels.is_constant() && dims[0] != channels))
      return absl::InvalidArgumentError(absl::StrCat("input ", i, " has shape ", ShapeString(dims),
                                                     ", want one number per channel of ",
                                                     ShapeString(in)));
  }
  if (context.output_count() > 1 && context.attributes().Int("training_mode") == 0)
    return absl::InvalidArgumentError("running statistics are outputs of training_mode only");
  context.set_output(0, context.dtype(0), in);
  for (int i = 1; i < context.output_count(); ++i)
    context.set_output(i, context.dtype(3), context.shape(3));
  return absl::OkStatus();
}

absl::Status Reference(const RunContext& run, std::int64_t, void*) {
  const Sizes s = SizesOf(run.dims(0));
  const double epsilon = static_cast<double>(run.attributes().Float("epsilon", 1e-5f));
  const double momentum = static_cast<double>(run.attributes().Float("momentum", 0.9f));
  const bool training = run.attributes().Int("training_mode") != 0;
  for (int i = 1; i < 5; ++i)
    if (run.count(i) != s.channels)
      return absl::InvalidArgumentError(absl::StrCat("input ", i, " has ", run.count(i),
                                                     " numbers, want ", s.channels));
  for (std::int64_t c = 0; c < s.channels; ++c) {
    const auto at = [&](std::int64_t b, std::int64_t i) {
      return (b * s.channels + c) * s.spatial + i;
    };
    double mean = RealAt(run, 3, c), variance = RealAt(run, 4, c);
    if (training) {
      const double count = static_cast<double>(s.batch * s.spatial);
      double sum = 0, squares = 0;
      for (std::int64_t b = 0; b < s.batch; ++b)
        for (std::int64_t i = 0; i < s.spatial; ++i) sum += RealAt(run, 0, at(b, i));
      for (std::int64_t b = 0; b < s.batch; ++b)
        for (std::int64_t i = 0; i < s.spatial; ++i) {
          const double d = RealAt(run, 0, at(b, i)) - sum / count;
          squares += d * d;
        }
      if (run.has_output(1))
        StoreReal(run, 1, c, mean * momentum + sum / count * (1 - momentum));
      if (run.has_output(2))
        StoreReal(run, 2, c, variance * momentum + squares / count * (1 - momentum));
      mean = sum / count;
      variance = squares / count;
    }
    const double scale = RealAt(run, 1, c) / std::sqrt(variance + epsilon);
    const double bias = RealAt(run, 2, c);
    for (std::int64_t b = 0; b < s.batch; ++b)
      for (std::int64_t i = 0; i < s.spatial; ++i)
        StoreReal(run, 0, at(b, i), (RealAt(run, 0, at(b, i)) - mean) * scale + bias);
  }
  return absl::OkStatus();
}

struct State final : Prepared {
  const kernels::NormKernel* rows = nullptr;
  PackedBuffer affine;  // scale then shift of each channel, if the statistics are constant
  std::int64_t channels = 0;
};

// y = x * scale + shift; `value(i, c)` reads input i.
template <typename F>
void AffineOf(std::int64_t channels, float epsilon, F value, float* scale, float* shift) {
  for (std::int64_t c = 0; c < channels; ++c) {
    const double factor =
        value(1, c) / std::sqrt(value(4, c) + static_cast<double>(epsilon));
    scale[c] = static_cast<float>(factor);
    shift[c] = static_cast<float>(value(2, c) - value(3, c) * factor);
  }
}

absl::StatusOr<std::unique_ptr<Prepared>> Prepare(PrepareContext& context) {
  if (context.attributes().Int("training_mode") != 0) return nullptr;
  bool constant = true;
  for (int i = 0; i < 5; ++i) {
    if (context.type(i).dtype != DType::kF32) return nullptr;
    constant = constant && (i == 0 || context.constant(i) != nullptr);
  }
  auto state = std::make_unique<State>();
  state->rows = &kernels::SelectNorm(KernelIsa(context));
  state->kernel = state->rows->name;
  if (constant) {
    state->channels = context.constant(1)->element_count();
    for (int i = 2; i < 5; ++i)
      if (context.constant(i)->element_count() != state->channels) return nullptr;
    state->packed_bytes = static_cast<std::size_t>(state->channels) * 2 * sizeof(float);
    NPURT_ASSIGN_OR_RETURN(state->affine, context.Pack(state->packed_bytes, [&](void* data) {
      float* scale = static_cast<float*>(data);
      AffineOf(state->channels, context.attributes().Float("epsilon", 1e-5f),
               [&](int i, std::int64_t c) {
                 return static_cast<double>(context.constant(i)->at<float>(c));
               },
               scale, scale + state->channels);
    }));
    for (int i = 1; i < 5; ++i) context.DropConstant(i);
  }
  return state;
}

absl::Status Bind(BindContext& context) {
  const State* state = context.prepared<State>();
  const Sizes s = SizesOf(context.dims(0));
  const bool packed = state->affine.data != nullptr;
  for (int i = 1; i < 5; ++i) {
    const std::int64_t count = packed ? state->channels : context.count(i);
    if (count != s.channels)
      return absl::InvalidArgumentError(
          absl::StrCat("input ", i, " has ", count, " numbers, want ", s.channels));
  }
  auto* plan = context.New<kernels::ChannelAffinePlan>();
  *plan = kernels::PlanChannelAffine(s.batch, s.channels, s.spatial);
  context.SetTiles(plan->norm.tiles, static_cast<double>(plan->norm.tile_cost) * kNsPerElement);
  if (!packed) context.SetScratch(static_cast<std::size_t>(s.channels) * 2 * sizeof(float));
  context.MayOverwrite(0, 0);
  return absl::OkStatus();
}

absl::Status Run(const RunContext& run, std::int64_t tile, void* scratch) {
  const State* state = run.prepared<State>();
  const auto& plan = *run.bound<kernels::ChannelAffinePlan>();
  const float* scale = state->affine.as<float>();
  if (state->affine.data == nullptr) {
    float* made = static_cast<float*>(scratch);
    AffineOf(plan.channels, run.attributes().Float("epsilon", 1e-5f),
             [&](int i, std::int64_t c) { return static_cast<double>(run.Load<float>(i, c)); },
             made, made + plan.channels);
    scale = made;
  }
  kernels::RunChannelAffineTile(*state->rows, plan, run.in<float>(0), scale, scale + plan.channels,
                                run.out<float>(0), tile, StopCheckOf(run));
  return absl::OkStatus();
}

}  // namespace

extern constexpr OpDef kOp = {
    .name = "BatchNormalization",
    .inputs = {{"x", "T"}, {"scale", "T1"}, {"b", "T1"}, {"input_mean", "T2"}, {"input_var", "T2"}},
    .outputs = {{"y", "T"}, {"?running_mean", "T2"}, {"?running_var", "T2"}},
    .types = {{"T", kFloats}, {"T1", kFloats}, {"T2", kFloats}},
    .attributes = {{"epsilon", AttrKind::kFloat},
                   {"momentum", AttrKind::kFloat},
                   {"training_mode", AttrKind::kInt}},
    .infer = Infer,
    .reference = Reference,
    .prepare = Prepare,
    .bind = Bind,
    .run = Run,
};

}  // namespace npurt::ops::batch_norm
