// Resize: resampling along any axes, nearest, linear or cubic, as ONNX defines it.
//
// Resampling is separable: along each axis an output position reads a few taps, input positions with
// weights. ResizeTaps is that definition, in double. The plan holds it as tables. An output row is
// made in two passes, as in pooling: the input rows that the outer axes ask for are blended into one
// row with vectors, then the innermost resized axis gathers from it.
//
// Thread safety: plans are plain data in a block of the caller; tiles write different rows.
#ifndef NPURT_KERNELS_RESIZE_RESIZE_H_
#define NPURT_KERNELS_RESIZE_RESIZE_H_

#include <cstddef>
#include <cstdint>

namespace npurt {
using IsaSet = std::uint32_t;  // base/cpu_isa.h, which files of one instruction set do not include
}

namespace npurt::kernels {

enum class ResizeMode : std::uint8_t { kNearest, kLinear, kCubic };
enum class ResizeCoordinates : std::uint8_t {
  kHalfPixel, kHalfPixelSymmetric, kPytorchHalfPixel, kAlignCorners, kAsymmetric, kCropAndResize,
};
enum class ResizeRounding : std::uint8_t { kPreferFloor, kPreferCeil, kFloor, kCeil };

struct ResizeOptions {
  ResizeMode mode = ResizeMode::kNearest;
  ResizeCoordinates coordinates = ResizeCoordinates::kHalfPixel;
  ResizeRounding rounding = ResizeRounding::kPreferFloor;
  bool antialias = false;
  bool exclude_outside = false;
  double cubic_a = -0.75;
  float extrapolation_value = 0;  // kCropAndResize: for positions outside the input
};

struct ResizeAxis {
  std::int64_t in = 1, out = 1;
  double scale = 1;  // out / in before rounding
  double roi_start = 0, roi_end = 1;
};

// The taps of any output position along `axis`.
int ResizeTapCount(const ResizeAxis& axis, const ResizeOptions& options);
// Writes the taps of output position `o`, all inside the input. False if the position lies outside
// the input and the result is the extrapolation value. `index` and `weight` hold ResizeTapCount.
bool ResizeTaps(const ResizeAxis& axis, const ResizeOptions& options, std::int64_t o,
                std::int64_t* index, double* weight);

// acc = row * weight, or acc += row * weight.
using ResizeBlendFn = void (*)(float* acc, const float* row, std::size_t n, float weight,
                               bool first);
// out[i] = sum over taps t of row[index[t * n + i]] * weight[t * n + i].
using ResizeGatherFn = void (*)(const float* row, const std::int32_t* index, const float* weight,
                                std::size_t taps, float* out, std::size_t n);

struct ResizeKernel {
  const char* name;
  IsaSet needs;
  ResizeBlendFn blend;
  ResizeGatherFn gather;
};

#define NPURT_RESIZE(isa_set, set)                                                             \
  void resize_blend_f32_##set(float* acc, const float* row, std::size_t n, float weight,       \
                              bool first);                                                     \
  void resize_gather_f32_##set(const float* row, const std::int32_t* index,                    \
                               const float* weight, std::size_t taps, float* out,              \
                               std::size_t n);
#include "kernels/resize/resize.inc"
#undef NPURT_RESIZE

extern const ResizeKernel kResizeKernels[];
extern const std::size_t kResizeKernelCount;
// The best kernel that `allowed` offers.
const ResizeKernel& SelectResize(IsaSet allowed);

inline constexpr int kResizeMaxRank = 8;

// The start of a block; tables follow at the offsets given (bytes from the start of the plan).
struct ResizePlan {
  ResizeOptions options;
  int rank = 0;                 // axes from the first to the last resized one
  std::int64_t planes = 1;      // what stands before them
  std::int64_t inner = 1;       // what stands after them
  ResizeAxis axes[kResizeMaxRank];
  int taps[kResizeMaxRank];
  std::int64_t in_strides[kResizeMaxRank];   // elements
  std::size_t index_offset[kResizeMaxRank];    // int32[taps][out]
  std::size_t weight_offset[kResizeMaxRank];   // float[taps][out]
  std::size_t outside_offset[kResizeMaxRank];  // uint8[out], 1: extrapolated
  std::int64_t in_plane = 1, out_plane = 1;  // elements
  std::int64_t rows = 0;                     // output rows of one plane
  std::int64_t tiles = 0, rows_per_tile = 1;
  std::int64_t tile_cost = 0;  // multiply-adds
  std::size_t scratch_bytes = 0;
};

// Bytes of the block for resizing a tensor with these axes (all of them, resized or not); 0 if more
// than kResizeMaxRank axes lie between the first and the last resized one or a size exceeds 2^31.
std::size_t ResizePlanBytes(const ResizeAxis* axes, int rank, const ResizeOptions& options);
// Writes the plan into `block`, aligned to 8.
ResizePlan* PlanResize(const ResizeAxis* axes, int rank, const ResizeOptions& options,
                       void* block);
// float32, any mode.
void RunResizeTile(const ResizeKernel& kernel, const ResizePlan& plan, const float* in, float* out,
                   std::int64_t tile, void* scratch);
// Nearest, elements of 1, 2, 4, 8 or 16 bytes. `extrapolation` is one element.
void RunResizeNearestTile(const ResizePlan& plan, std::size_t element_bytes,
                          const void* extrapolation, const void* in, void* out, std::int64_t tile);

}  // namespace npurt::kernels

#endif  // NPURT_KERNELS_RESIZE_RESIZE_H_
