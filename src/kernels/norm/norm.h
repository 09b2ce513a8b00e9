// Normalisations of float32: layer and RMS norm over rows, moments, affine maps, local response.
//
// Means and variances are taken in two passes (the variance of what is left after the mean), sums go
// in float over blocks of 1,024 and in double across them. Batch, instance and group norm are
// moments (given or measured) followed by an affine map per channel.
//
// Thread safety: pure functions; the bits depend on the sizes and the instruction set only.
#ifndef NPURT_KERNELS_NORM_NORM_H_
#define NPURT_KERNELS_NORM_NORM_H_

#include <cstddef>
#include <cstdint>

#include "kernels/stop_check.h"

namespace npurt {
using IsaSet = std::uint32_t;  // base/cpu_isa.h, which files of one instruction set do not include
}

namespace npurt::kernels {

// Rows of `n` elements: out = (x - mean) / sqrt(variance + epsilon) * gamma + beta, or with `rms`
// x / sqrt(mean of squares + epsilon) * gamma + beta. Null gamma, beta, mean and inv_std are left
// out; the last two get one number per row. `out` may be `in`.
struct LayerNormArgs {
  const float* in;
  const float* gamma;
  const float* beta;
  float* out;
  float* mean;
  float* inv_std;
  std::size_t rows, n;
  float epsilon;
  bool rms;
};

// The window of `size` channels around each: out = x / (bias + alpha / size * sum of squares)^beta.
// Element (c, i) stands at c * stride + i, i < cols.
struct LrnArgs {
  const float* in;
  float* out;
  std::size_t channels, stride, cols, size;
  float alpha, beta, bias;
};

struct NormKernel {
  const char* name;
  IsaSet needs;
  void (*layer)(const LayerNormArgs& args);
  // One row of `layer` or a piece of it, whose mean and inverse deviation are known.
  void (*normalize)(const LayerNormArgs& args, float mean, float inv_std);
  // Adds the sum of x, or of (x - shift)^2, to *sum.
  void (*sum)(const float* in, std::size_t n, float shift, bool squares, double* sum);
  // Mean and variance (of the population) of n > 0 elements.
  void (*moments)(const float* in, std::size_t n, double* mean, double* variance);
  // out = (in - center) * scale + shift, one number each; `out` may be `in`.
  void (*affine)(const float* in, float* out, std::size_t n, float center, float scale,
                 float shift);
  // out = in * scale + shift with a scale and a shift per element.
  void (*affine_rows)(const float* in, float* out, std::size_t n, const float* scale,
                      const float* shift);
  void (*lrn)(const LrnArgs& args);
};

#define NPURT_NORM(isa_set, set)                                                                 \
  void layer_norm_f32_##set(const LayerNormArgs& args);                                          \
  void normalize_f32_##set(const LayerNormArgs& args, float mean, float inv_std);                \
  void sum_f32_##set(const float* in, std::size_t n, float shift, bool squares, double* sum);    \
  void moments_f32_##set(const float* in, std::size_t n, double* mean, double* variance);        \
  void affine_f32_##set(const float* in, float* out, std::size_t n, float center, float scale,   \
                        float shift);                                                            \
  void affine_rows_f32_##set(const float* in, float* out, std::size_t n, const float* scale,     \
                             const float* shift);                                                \
  void lrn_f32_##set(const LrnArgs& args);
#include "kernels/norm/norm.inc"
#undef NPURT_NORM

extern const NormKernel kNormKernels[];
extern const std::size_t kNormKernelCount;
// The best kernel that `allowed` offers.
const NormKernel& SelectNorm(IsaSet allowed);

// Work that is so many lines of `n` elements each, in tiles of whole lines.
struct NormPlan {
  std::int64_t lines = 0, n = 0;
  std::int64_t tiles = 0, lines_per_tile = 1;
  std::int64_t tile_cost = 0;  // elements
};
NormPlan PlanNorm(std::int64_t lines, std::int64_t n);

// Layer and RMS norm: lines are rows. Pointers in `args` are those of row 0.
void RunLayerNormTile(const NormKernel& kernel, const NormPlan& plan, const LayerNormArgs& args,
                      std::int64_t tile, const StopCheck& check = {});

// Lines of `spatial` elements, of channel (line % channels): out = in * scale[c] + shift[c].
// spatial = 1 is planned as lines of `channels` elements: see PlanChannelAffine.
struct ChannelAffinePlan {
  NormPlan norm;
  std::int64_t channels = 0;
  bool across = false;  // channels lie side by side
};
ChannelAffinePlan PlanChannelAffine(std::int64_t batch, std::int64_t channels,
                                    std::int64_t spatial);
void RunChannelAffineTile(const NormKernel& kernel, const ChannelAffinePlan& plan, const float* in,
                          const float* scale, const float* shift, float* out, std::int64_t tile,
                          const StopCheck& check = {});

// Instance norm (groups = channels) and group norm over batch x channels x spatial: lines are
// groups; gamma and beta are per channel.
struct GroupNormArgs {
  const float* in;
  const float* gamma;
  const float* beta;
  float* out;
  std::int64_t channels, groups, spatial;
  float epsilon;
};
void RunGroupNormTile(const NormKernel& kernel, const NormPlan& plan, const GroupNormArgs& args,
                      std::int64_t tile, const StopCheck& check = {});
// `moments` and `affine` for rows of any length.
void Moments(const NormKernel& kernel, const float* in, std::int64_t n, double* mean,
             double* variance, const StopCheck& check = {});
void Affine(const NormKernel& kernel, const float* in, float* out, std::int64_t n, float center,
            float scale, float shift, const StopCheck& check = {});

}  // namespace npurt::kernels

#endif  // NPURT_KERNELS_NORM_NORM_H_
