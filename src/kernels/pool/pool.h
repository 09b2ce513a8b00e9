// Pooling of float32 over windows: maximum, average and Lp, with any number of spatial axes.
//
// A window is the product of its axes, so an output row is made in two passes: first the rows of the
// input that the window covers are combined into one row (vectors along it), padded with what does
// not count; then the window slides along that row. Padding thus costs no test per element.
//
// Thread safety: plans are plain data; tiles write different rows and may run in any order.
#ifndef NPURT_KERNELS_POOL_POOL_H_
#define NPURT_KERNELS_POOL_POOL_H_

#include <cstddef>
#include <cstdint>

namespace npurt {
using IsaSet = std::uint32_t;  // base/cpu_isa.h, which files of one instruction set do not include
}

namespace npurt::kernels {

// How elements combine: the largest, the sum, the sum of magnitudes, the sum of squares.
enum class PoolFold : std::uint8_t { kMax, kSum, kSumAbs, kSumSquares };
inline constexpr int kPoolFoldCount = 4;

// acc = fold(acc, row) over n elements; with `first`, acc = fold(nothing, row).
using PoolCombineFn = void (*)(float* acc, const float* row, std::size_t n, bool first);
// out[i] = max or sum of row[i * stride + k * dilation], k < window. `row` may be read up to
// kPoolRowSlack elements beyond its end.
using PoolSlideFn = void (*)(const float* row, float* out, std::size_t n, std::size_t stride,
                             std::size_t window, std::size_t dilation);
inline constexpr std::size_t kPoolRowSlack = 32;

// Windows over places whose channels lie side by side: `pixels` outputs of `channels` floats, dense, each
// the fold of rows x cols places, times `factor` if it is a sum. Strides in floats.
struct PoolWindowArgs {
  const float* in;  // the first place of the first window
  std::int64_t row_stride, col_stride, pixel_stride;
  std::int64_t rows, cols;
  float* out;
  std::int64_t pixels, channels;
  float factor;
};
using PoolWindowFn = void (*)(const PoolWindowArgs& args);

struct PoolKernel {
  const char* name;
  IsaSet needs;
  const PoolCombineFn* combine;  // by PoolFold
  PoolSlideFn slide_max, slide_sum;
  PoolWindowFn window_max, window_sum;
};

#define NPURT_POOL(isa_set, set)                                                              \
  extern const PoolCombineFn kPoolCombine_##set[kPoolFoldCount];                              \
  void pool_slide_max_##set(const float* row, float* out, std::size_t n, std::size_t stride,  \
                            std::size_t window, std::size_t dilation);                        \
  void pool_slide_sum_##set(const float* row, float* out, std::size_t n, std::size_t stride,  \
                            std::size_t window, std::size_t dilation);                        \
  void pool_window_max_##set(const PoolWindowArgs& args);                                     \
  void pool_window_sum_##set(const PoolWindowArgs& args);
#include "kernels/pool/pool.inc"
#undef NPURT_POOL

extern const PoolKernel kPoolKernels[];
extern const std::size_t kPoolKernelCount;
// The best kernel that `allowed` offers.
const PoolKernel& SelectPool(IsaSet allowed);

inline constexpr int kPoolMaxRank = 6;  // spatial axes

struct PoolShape {
  int rank = 0;
  std::int64_t planes = 0;  // batch x channels
  std::int64_t in[kPoolMaxRank], out[kPoolMaxRank], window[kPoolMaxRank], stride[kPoolMaxRank];
  std::int64_t dilation[kPoolMaxRank], pad_begin[kPoolMaxRank], pad_end[kPoolMaxRank];
};

enum class PoolKind : std::uint8_t { kMax, kAverage, kLp1, kLp2 };

struct PoolPlan {
  PoolShape shape;
  PoolKind kind = PoolKind::kMax;
  bool count_include_pad = false;  // kAverage: divide by what lies on padding too
  std::int64_t in_plane = 1, out_plane = 1;  // elements
  std::int64_t row_length = 0;   // of the combined row
  std::int64_t row_floats = 0;   // its room in the scratch
  std::int64_t rows = 0;         // output rows of one plane
  std::int64_t tiles = 0, rows_per_tile = 1;
  std::int64_t tile_cost = 0;  // elements combined
  std::size_t scratch_bytes = 0;
};

// False if shape.rank is 0 or larger than kPoolMaxRank.
bool PlanPool(const PoolShape& shape, PoolKind kind, bool count_include_pad, PoolPlan* plan);
void RunPoolTile(const PoolKernel& kernel, const PoolPlan& plan, const float* in, float* out,
                 std::int64_t tile, void* scratch);
// The largest of bytes, with a plan of PoolKind::kMax; for any CPU.
void RunMaxPoolTile(const PoolPlan& plan, const std::int8_t* in, std::int8_t* out,
                    std::int64_t tile, void* scratch);
void RunMaxPoolTile(const PoolPlan& plan, const std::uint8_t* in, std::uint8_t* out,
                    std::int64_t tile, void* scratch);

}  // namespace npurt::kernels

#endif  // NPURT_KERNELS_POOL_POOL_H_
