// Selection, tiling and the per-channel loops of the normalisations.
#include "kernels/norm/norm.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/cpu_isa.h"

namespace npurt::kernels {
namespace {

// Parameters come from files and callers: any alignment.
float At(const float* values, std::int64_t i) {
  float value;
  std::memcpy(&value, values + i, sizeof value);
  return value;
}

}  // namespace

const NormKernel kNormKernels[] = {
#define NPURT_NORM(isa_set, set)                                                          \
  {"norm_f32_" #set,       isa_set,                layer_norm_f32_##set, moments_f32_##set, \
   affine_f32_##set, affine_rows_f32_##set, lrn_f32_##set},
#include "kernels/norm/norm.inc"
#undef NPURT_NORM
};
const std::size_t kNormKernelCount = sizeof(kNormKernels) / sizeof(kNormKernels[0]);

const NormKernel& SelectNorm(IsaSet allowed) {
  std::size_t i = 0;
  while (!HasAll(allowed, kNormKernels[i].needs)) ++i;  // the generic one needs nothing
  return kNormKernels[i];
}

NormPlan PlanNorm(std::int64_t lines, std::int64_t n) {
  constexpr std::int64_t kTileElements = 16384;
  NormPlan plan;
  plan.lines = lines;
  plan.n = n;
  if (lines == 0 || n == 0) return plan;
  plan.lines_per_tile = std::clamp<std::int64_t>(kTileElements / n, 1, lines);
  plan.tiles = (lines + plan.lines_per_tile - 1) / plan.lines_per_tile;
  plan.tile_cost = plan.lines_per_tile * n;
  return plan;
}

void RunLayerNormTile(const NormKernel& kernel, const NormPlan& plan, const LayerNormArgs& args,
                      std::int64_t tile) {
  const std::int64_t first = tile * plan.lines_per_tile;
  LayerNormArgs part = args;
  part.rows = static_cast<std::size_t>(std::min(plan.lines_per_tile, plan.lines - first));
  part.n = static_cast<std::size_t>(plan.n);
  part.in += first * plan.n;
  part.out += first * plan.n;
  if (part.mean != nullptr) part.mean += first;
  if (part.inv_std != nullptr) part.inv_std += first;
  kernel.layer(part);
}

ChannelAffinePlan PlanChannelAffine(std::int64_t batch, std::int64_t channels,
                                    std::int64_t spatial) {
  ChannelAffinePlan plan;
  plan.channels = channels;
  plan.across = spatial == 1;
  plan.norm = plan.across ? PlanNorm(batch, channels) : PlanNorm(batch * channels, spatial);
  return plan;
}

void RunChannelAffineTile(const NormKernel& kernel, const ChannelAffinePlan& plan, const float* in,
                          const float* scale, const float* shift, float* out, std::int64_t tile) {
  const std::int64_t n = plan.norm.n;
  const std::int64_t first = tile * plan.norm.lines_per_tile;
  const std::int64_t last = std::min(plan.norm.lines, first + plan.norm.lines_per_tile);
  for (std::int64_t line = first; line < last; ++line) {
    if (plan.across) {
      kernel.affine_rows(in + line * n, out + line * n, static_cast<std::size_t>(n), scale, shift);
    } else {
      const std::int64_t c = line % plan.channels;
      kernel.affine(in + line * n, out + line * n, static_cast<std::size_t>(n), 0.0f,
                    At(scale, c), At(shift, c));
    }
  }
}

void RunGroupNormTile(const NormKernel& kernel, const NormPlan& plan, const GroupNormArgs& args,
                      std::int64_t tile) {
  const std::int64_t first = tile * plan.lines_per_tile;
  const std::int64_t last = std::min(plan.lines, first + plan.lines_per_tile);
  const std::int64_t channels = args.channels / args.groups;
  for (std::int64_t line = first; line < last; ++line) {
    const float* in = args.in + line * plan.n;
    float* out = args.out + line * plan.n;
    double mean, variance;
    kernel.moments(in, static_cast<std::size_t>(plan.n), &mean, &variance);
    const double inv_std = 1.0 / std::sqrt(variance + static_cast<double>(args.epsilon));
    for (std::int64_t i = 0; i < channels; ++i) {
      const std::int64_t c = line % args.groups * channels + i;
      // Taking the mean off first keeps what a large mean would swallow.
      kernel.affine(in + i * args.spatial, out + i * args.spatial,
                    static_cast<std::size_t>(args.spatial), static_cast<float>(mean),
                    static_cast<float>(static_cast<double>(At(args.gamma, c)) * inv_std),
                    At(args.beta, c));
    }
  }
}

}  // namespace npurt::kernels
