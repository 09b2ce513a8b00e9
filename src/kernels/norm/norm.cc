// Selection, tiling and the per-channel loops of the normalisations.
#include "kernels/norm/norm.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/cpu_isa.h"
#include "kernels/long_rows.h"

namespace npurt::kernels {
namespace {

// Parameters come from files and callers: any alignment.
float At(const float* values, std::int64_t i) {
  float value;
  std::memcpy(&value, values + i, sizeof value);
  return value;
}

double LongSum(const NormKernel& kernel, const float* in, std::int64_t n, float shift,
               bool squares, const StopCheck& check) {
  double sum = 0;
  ForPieces(n, kPiece, check, [&](std::int64_t first, std::int64_t count) {
    kernel.sum(in + first, static_cast<std::size_t>(count), shift, squares, &sum);
  });
  return sum;
}

// What `layer` does with a row that is too long to be done at once.
void LongLayerNorm(const NormKernel& kernel, const LayerNormArgs& args, const StopCheck& check) {
  const std::int64_t n = static_cast<std::int64_t>(args.n);
  const double count = static_cast<double>(n);
  const float mean =
      args.rms ? 0.0f : static_cast<float>(LongSum(kernel, args.in, n, 0, false, check) / count);
  const double variance = LongSum(kernel, args.in, n, mean, true, check) / count;
  const float inv_std = 1 / std::sqrt(static_cast<float>(variance) + args.epsilon);
  ForPieces(n, kPiece, check, [&](std::int64_t first, std::int64_t length) {
    LayerNormArgs piece = args;
    piece.n = static_cast<std::size_t>(length);
    piece.in += first;
    piece.out += first;
    if (piece.gamma != nullptr) piece.gamma += first;
    if (piece.beta != nullptr) piece.beta += first;
    kernel.normalize(piece, mean, inv_std);
  });
  if (args.mean != nullptr) std::memcpy(args.mean, &mean, sizeof mean);
  if (args.inv_std != nullptr) std::memcpy(args.inv_std, &inv_std, sizeof inv_std);
}

}  // namespace

void Moments(const NormKernel& kernel, const float* in, std::int64_t n, double* mean,
                 double* variance, const StopCheck& check) {
  if (n <= kPiece) return kernel.moments(in, static_cast<std::size_t>(n), mean, variance);
  const double count = static_cast<double>(n);
  *mean = LongSum(kernel, in, n, 0, false, check) / count;
  const float near = static_cast<float>(*mean);
  const double offset = *mean - static_cast<double>(near);
  *variance = LongSum(kernel, in, n, near, true, check) / count - offset * offset;
  *variance = std::max(*variance, 0.0);
}

void Affine(const NormKernel& kernel, const float* in, float* out, std::int64_t n,
                float center, float scale, float shift, const StopCheck& check) {
  ForPieces(n, kPiece, check, [&](std::int64_t first, std::int64_t count) {
    kernel.affine(in + first, out + first, static_cast<std::size_t>(count), center, scale, shift);
  });
}

const NormKernel kNormKernels[] = {
#define NPURT_NORM(isa_set, set)                                                          \
  {"norm_f32_" #set, isa_set,          layer_norm_f32_##set,  normalize_f32_##set, \
   sum_f32_##set,    moments_f32_##set, affine_f32_##set, affine_rows_f32_##set, lrn_f32_##set},
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
                      std::int64_t tile, const StopCheck& check) {
  const std::int64_t first = tile * plan.lines_per_tile;
  LayerNormArgs part = args;
  part.rows = static_cast<std::size_t>(std::min(plan.lines_per_tile, plan.lines - first));
  part.n = static_cast<std::size_t>(plan.n);
  part.in += first * plan.n;
  part.out += first * plan.n;
  if (part.mean != nullptr) part.mean += first;
  if (part.inv_std != nullptr) part.inv_std += first;
  // More than one row in a tile are short ones.
  if (plan.n > kPiece) return LongLayerNorm(kernel, part, check);
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
                          const float* scale, const float* shift, float* out, std::int64_t tile,
                          const StopCheck& check) {
  const std::int64_t n = plan.norm.n;
  const std::int64_t first = tile * plan.norm.lines_per_tile;
  const std::int64_t last = std::min(plan.norm.lines, first + plan.norm.lines_per_tile);
  for (std::int64_t line = first; line < last; ++line) {
    if (plan.across) {
      kernel.affine_rows(in + line * n, out + line * n, static_cast<std::size_t>(n), scale, shift);
    } else {
      const std::int64_t c = line % plan.channels;
      Affine(kernel, in + line * n, out + line * n, n, 0.0f, At(scale, c), At(shift, c), check);
    }
  }
}

void RunGroupNormTile(const NormKernel& kernel, const NormPlan& plan, const GroupNormArgs& args,
                      std::int64_t tile, const StopCheck& check) {
  const std::int64_t first = tile * plan.lines_per_tile;
  const std::int64_t last = std::min(plan.lines, first + plan.lines_per_tile);
  const std::int64_t channels = args.channels / args.groups;
  for (std::int64_t line = first; line < last; ++line) {
    const float* in = args.in + line * plan.n;
    float* out = args.out + line * plan.n;
    double mean, variance;
    Moments(kernel, in, plan.n, &mean, &variance, check);
    const double inv_std = 1.0 / std::sqrt(variance + static_cast<double>(args.epsilon));
    for (std::int64_t i = 0; i < channels; ++i) {
      const std::int64_t c = line % args.groups * channels + i;
      // Taking the mean off first keeps what a large mean would swallow.
      Affine(kernel, in + i * args.spatial, out + i * args.spatial, args.spatial,
                 static_cast<float>(mean),
                 static_cast<float>(static_cast<double>(At(args.gamma, c)) * inv_std),
                 At(args.beta, c), check);
    }
  }
}

}  // namespace npurt::kernels
