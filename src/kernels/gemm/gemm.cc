// Gemm: the table of kernels, packing, and the blocked driver. See gemm.h.
#include "kernels/gemm/gemm.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/checked_math.h"
#include "base/cpu_isa.h"
#include "kernels/long_rows.h"

namespace npurt::kernels {

const GemmKernel kGemmKernels[] = {
#define NPURT_GEMM(isa_set, name, tile_m, tile_n, kc, mc, nc) \
  {#name, name, isa_set, tile_m, tile_n, kc, mc, nc},
#include "kernels/gemm/gemm.inc"
#undef NPURT_GEMM
};
const int kGemmKernelCount = static_cast<int>(sizeof kGemmKernels / sizeof kGemmKernels[0]);

const GemmKernel* SelectGemmKernel(std::uint32_t allowed) {
  const GemmKernel* kernel = kGemmKernels;
  while (!HasAll(allowed, kernel->needs)) ++kernel;  // the last one needs nothing
  return kernel;
}

namespace {

std::int64_t PanelFloats(std::int64_t extent, std::int64_t k, int width) {
  std::int64_t rounded, floats, bytes;
  if (!CheckedMul(CeilDiv(extent, width), width, &rounded) || !CheckedMul(rounded, k, &floats) ||
      !CheckedMul(floats, std::int64_t{sizeof(float)}, &bytes))
    return 0;
  return floats;
}

// Operands may have any alignment.
float LoadFloat(const float* p) {
  float x;
  std::memcpy(&x, p, sizeof x);
  return x;
}

// One panel: for each k, `count` elements `across` apart, then zeros up to `width`.
void PackPanel(const float* from, std::int64_t across, std::int64_t k_stride, std::int64_t k,
               int count, int width, float scale, float* to) {
  if (across == 1 && scale == 1.0f) {
    const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(float);
    const std::size_t rest = static_cast<std::size_t>(width - count) * sizeof(float);
    if (rest == 0 && width == 16) {  // a size the compiler knows: two or four moves
      for (std::int64_t kk = 0; kk < k; ++kk, from += k_stride, to += 16)
        std::memcpy(to, from, 16 * sizeof(float));
      return;
    }
    if (rest == 0 && width == 32) {
      for (std::int64_t kk = 0; kk < k; ++kk, from += k_stride, to += 32)
        std::memcpy(to, from, 32 * sizeof(float));
      return;
    }
    for (std::int64_t kk = 0; kk < k; ++kk, from += k_stride, to += width) {
      std::memcpy(to, from, bytes);
      std::memset(to + count, 0, rest);
    }
    return;
  }
  // Blocks of 16 k: when k is contiguous, each line is used up while it is near.
  for (std::int64_t k0 = 0; k0 < k; k0 += 16) {
    const std::int64_t k1 = std::min<std::int64_t>(k, k0 + 16);
    for (int i = 0; i < count; ++i)
      for (std::int64_t kk = k0; kk < k1; ++kk)
        to[kk * width + i] = LoadFloat(from + i * across + kk * k_stride) * scale;
    for (int i = count; i < width; ++i)
      for (std::int64_t kk = k0; kk < k1; ++kk) to[kk * width + i] = 0;
  }
}

void PackPanels(const float* from, std::int64_t across, std::int64_t k_stride, std::int64_t extent,
                std::int64_t k, int width, float scale, float* to) {
  for (std::int64_t i = 0; i < extent; i += width, to += width * k)
    PackPanel(from + i * across, across, k_stride, k,
              static_cast<int>(std::min<std::int64_t>(width, extent - i)), width, scale, to);
}

// The batch's total; strides of matrix `index` by counting down the dimensions.
std::int64_t BatchCount(const GemmProblem& p) {
  std::int64_t count = 1;
  for (int i = 0; i < p.batch_rank; ++i) count *= p.batch_dims[i];
  return count;
}

}  // namespace

std::int64_t PackedASize(const GemmKernel& kernel, std::int64_t m, std::int64_t k) {
  return PanelFloats(m, k, kernel.tile_m);
}
std::int64_t PackedBSize(const GemmKernel& kernel, std::int64_t k, std::int64_t n) {
  return PanelFloats(n, k, kernel.tile_n);
}
void PackA(const GemmKernel& kernel, std::int64_t m, std::int64_t k, const float* a,
           std::int64_t row_stride, std::int64_t k_stride, float scale, float* packed) {
  PackPanels(a, row_stride, k_stride, m, k, kernel.tile_m, scale, packed);
}
void PackB(const GemmKernel& kernel, std::int64_t k, std::int64_t n, const float* b,
           std::int64_t k_stride, std::int64_t column_stride, float scale, float* packed) {
  PackPanels(b, column_stride, k_stride, n, k, kernel.tile_n, scale, packed);
}

GemmTiling PlanGemm(const GemmProblem& p, const GemmKernel& kernel) {
  GemmTiling t;
  t.kernel = &kernel;
  const std::int64_t batch = BatchCount(p);
  if (p.m == 0 || p.n == 0 || batch == 0) return t;
  const std::int64_t mr = kernel.tile_m, nr = kernel.tile_n;

  // A transposed B cannot be loaded as vectors. Otherwise packing pays when a panel is used often.
  t.pack_b = !p.packed_b && (p.b_column_stride != 1 || p.m >= 6 * mr);
  // Rows whose distance is a multiple of a page fall into the same few lines of the first-level
  // cache, and more than eight of them push each other out.
  t.pack_a = !p.packed_a && mr > 8 && p.a_k_stride == 1 && p.a_row_stride % 1024 == 0 &&
             p.n >= 4 * nr && p.m > 8;

  // About 2 to 40 million operations (40 us to 1 ms of one core), and about 32 tiles, so that
  // several cores end together. A tile that packs B wants rows, to use it often; the others want
  // columns, so that rows of A come from the second-level cache more often than from beyond it.
  const double flops_per_element = 2.0 * static_cast<double>(std::max<std::int64_t>(p.k, 1));
  const double flops = flops_per_element * static_cast<double>(p.m) * static_cast<double>(p.n) *
                       static_cast<double>(batch);
  const double target = std::clamp(flops / 32, 2e6, 4e7);
  const std::int64_t least_rows = t.pack_b ? 96 : 48;
  const std::int64_t least_cols = std::max<std::int64_t>(t.pack_b ? 64 : 128, nr);
  std::int64_t rows = std::min<std::int64_t>(p.m, kernel.mc);
  std::int64_t cols = std::min<std::int64_t>(p.n, kernel.nc);
  // Thin products are bound by reading B: half a megabyte of it is a tile. Unpacked, wide tiles are
  // read better.
  const bool thin = !t.pack_b && p.m <= 2 * mr;
  const bool thin_b = thin && !p.packed_b;
  if (thin) {
    const std::int64_t fair = (512 << 10) / 4 / std::max<std::int64_t>(p.k, 1);
    cols = std::min(p.n, std::clamp<std::int64_t>(fair, thin_b ? 256 : nr, 1024));
  }
  const auto too_big = [&] {
    return flops_per_element * static_cast<double>(rows) * static_cast<double>(cols) > target * 1.5;
  };
  while (!thin && too_big() && (rows > least_rows || cols > least_cols)) {
    if (cols > least_cols && (t.pack_b || cols >= rows || rows <= least_rows)) {
      cols = std::max(least_cols, cols / 2);
    } else {
      rows = std::max(least_rows, rows / 2);
    }
  }
  // Sums over very many products: tiles are what threads share, so that one must not take more than
  // some milliseconds, even if it is slower then.
  constexpr double kMostFlops = 2e8;
  while (!thin && (rows > mr || cols > nr) &&
         flops_per_element * static_cast<double>(rows) * static_cast<double>(cols) > kMostFlops) {
    if (cols > nr && cols >= rows)
      cols = std::max(nr, cols / 2);
    else
      rows = std::max(mr, rows / 2);
  }
  t.tiles_m = CeilDiv(p.m, rows);
  t.tiles_n = CeilDiv(p.n, cols);
  // Even shares, in whole panels.
  t.tile_rows = std::min(p.m, RoundUp(CeilDiv(p.m, t.tiles_m), mr));
  t.tile_cols = std::min(p.n, RoundUp(CeilDiv(p.n, t.tiles_n), nr));
  t.tiles_m = CeilDiv(p.m, t.tile_rows);
  t.tiles_n = CeilDiv(p.n, t.tile_cols);

  // With few rows a packed panel is read once from end to end, as memory likes it.
  t.panel_outermost = p.packed_b && t.tile_rows <= 4 * mr;
  std::int64_t k_most = kernel.kc;
  constexpr std::int64_t kLongestPanel = 1 << 16;  // between two looks at whether to stop
  if (t.panel_outermost && t.tile_rows <= mr)
    k_most = std::clamp<std::int64_t>(p.k, 1, kLongestPanel);
  // Few rows of an unpacked B: every byte of B is read once, so the way it is read decides. Short
  // blocks across wide tiles read a few rows side by side, each from left to right.
  if (thin_b) k_most = p.m <= 2 ? 16 : 32;
  const std::int64_t blocks = std::max<std::int64_t>(CeilDiv(p.k, k_most), 1);
  t.k_block = std::max<std::int64_t>(RoundUp(CeilDiv(p.k, blocks), 4), 4);

  std::size_t floats = 0;
  if (t.pack_b)
    floats += static_cast<std::size_t>(RoundUp(t.tile_cols, nr) * std::min(t.k_block, p.k));
  if (t.pack_a)
    floats += static_cast<std::size_t>(RoundUp(t.tile_rows, mr) * std::min(t.k_block, p.k));
  // 16 floats of room between the two keep both on cache lines.
  t.scratch_bytes = floats == 0 ? 0 : (floats + 16) * sizeof(float);
  t.tiles = t.tiles_m * t.tiles_n * batch;
  t.flops_per_tile =
      flops_per_element * static_cast<double>(t.tile_rows) * static_cast<double>(t.tile_cols);
  t.bytes_per_tile =
      4.0 * (static_cast<double>(p.k) * static_cast<double>(t.tile_rows + t.tile_cols) +
             static_cast<double>(t.tile_rows) * static_cast<double>(t.tile_cols));
  return t;
}

namespace {

// One tile's fixed facts.
struct Tile {
  const GemmCall& call;
  const float* a;  // of the matrix of the batch: its first element
  const float* b;
  float* c;  // the tile's first element
  std::int64_t row, rows, col, cols;
  Epilogue epilogue;  // of the tile's first element
};

struct Block {
  std::int64_t k, k_count;
  const float* a;  // of the tile's first row at `k`, if packed into scratch
  const float* b;  // of the tile's first column at `k`, if packed into scratch
};

Epilogue Shifted(const Epilogue& e, std::int64_t row, std::int64_t col) {
  Epilogue s = e;
  if (s.row_bias != nullptr) s.row_bias += row;
  if (s.column_bias != nullptr) s.column_bias += col;
  if (s.residual != nullptr) s.residual += row * s.residual_stride + col;
  return s;
}

// Rows of the tile times the panel that starts at column `col` of the tile.
void RunPanel(const Tile& t, const Block& block, std::int64_t col) {
  const GemmProblem& p = *t.call.problem;
  const GemmTiling& tiling = *t.call.tiling;
  const GemmKernel& kernel = *tiling.kernel;
  GemmArgs args;
  const float* next = nullptr;
  args.k = block.k_count;
  args.first = block.k == 0;
  args.last = block.k + block.k_count == p.k;
  args.c_stride = p.n;
  args.cols = static_cast<int>(std::min<std::int64_t>(kernel.tile_n, t.cols - col));
  if (tiling.pack_b) {
    args.b = block.b + col * block.k_count;
    args.b_stride = kernel.tile_n;
    args.b_is_panel = true;
  } else if (p.packed_b) {
    args.b = t.b + (t.col + col) * p.k + block.k * kernel.tile_n;
    args.b_stride = kernel.tile_n;
    args.b_is_panel = true;
    // The same block of the next panel, fetched while the first rows are multiplied by this one.
    if (col + kernel.tile_n < t.cols) next = args.b + p.k * kernel.tile_n;
  } else {
    args.b = t.b + block.k * p.b_k_stride + t.col + col;
    args.b_stride = p.b_k_stride;
    args.b_is_panel = false;
  }
  Epilogue epilogue;
  args.epilogue = &epilogue;
  for (std::int64_t row = 0; row < t.rows; row += kernel.tile_m) {
    args.rows = static_cast<int>(std::min<std::int64_t>(kernel.tile_m, t.rows - row));
    if (tiling.pack_a) {
      args.a = block.a + row * block.k_count;
      args.a_row_stride = 1;
      args.a_k_stride = kernel.tile_m;
    } else if (p.packed_a) {
      args.a = t.a + (t.row + row) * p.k + block.k * kernel.tile_m;
      args.a_row_stride = 1;
      args.a_k_stride = kernel.tile_m;
    } else {
      args.a = t.a + (t.row + row) * p.a_row_stride + block.k * p.a_k_stride;
      args.a_row_stride = p.a_row_stride;
      args.a_k_stride = p.a_k_stride;
    }
    args.c = t.c + row * p.n + col;
    if (args.last) epilogue = Shifted(t.epilogue, row, col);
    args.prefetch = PartToPrefetch(kernel, next, block.k_count, row / kernel.tile_m);
    kernel.run(args);
  }
}

}  // namespace

void RunGemmTile(const GemmCall& call, std::int64_t tile, void* scratch) {
  const GemmProblem& p = *call.problem;
  const GemmTiling& tiling = *call.tiling;
  const GemmKernel& kernel = *tiling.kernel;

  // Neighbouring tiles share columns of B, the larger operand of most problems.
  const std::int64_t tile_m = tile % tiling.tiles_m;
  const std::int64_t tile_n = tile / tiling.tiles_m % tiling.tiles_n;
  const std::int64_t matrix = tile / (tiling.tiles_m * tiling.tiles_n);
  Tile t{call, call.a, call.b, call.c, 0, 0, 0, 0, {}};
  std::int64_t rest = matrix, bias = 0;
  for (int i = p.batch_rank - 1; i >= 0; --i) {
    const std::int64_t index = rest % p.batch_dims[i];
    rest /= p.batch_dims[i];
    t.a += index * p.a_batch_strides[i];
    t.b += index * p.b_batch_strides[i];
    bias += index * p.bias_batch_strides[i];
  }
  t.row = tile_m * tiling.tile_rows;
  t.rows = std::min(tiling.tile_rows, p.m - t.row);
  t.col = tile_n * tiling.tile_cols;
  t.cols = std::min(tiling.tile_cols, p.n - t.col);
  t.c += matrix * p.m * p.n + t.row * p.n + t.col;
  t.epilogue = Shifted(call.epilogue, t.row, t.col);
  if (t.epilogue.row_bias != nullptr) t.epilogue.row_bias += bias;
  if (t.epilogue.column_bias != nullptr) t.epilogue.column_bias += bias;
  if (t.epilogue.residual != nullptr) t.epilogue.residual += matrix * call.residual_batch_stride;

  if (p.k == 0) {  // one block of nothing: B and A are not touched
    for (std::int64_t col = 0; col < t.cols; col += kernel.tile_n)
      RunPanel(t, {0, 0, t.a, t.b}, col);
    return;
  }
  StopMeter meter(call.stop, kProducts);
  const auto run_panel = [&](const Block& block, std::int64_t col) {
    RunPanel(t, block, col);
    meter.Count(block.k_count * t.rows * kernel.tile_n);
  };
  if (tiling.panel_outermost && !tiling.pack_a) {
    for (std::int64_t col = 0; col < t.cols; col += kernel.tile_n)
      for (std::int64_t k = 0; k < p.k; k += tiling.k_block)
        run_panel({k, std::min(tiling.k_block, p.k - k), nullptr, nullptr}, col);
    return;
  }
  float* const packed_b = static_cast<float*>(scratch);
  for (std::int64_t k = 0; k < p.k; k += tiling.k_block) {
    const std::int64_t count = std::min(tiling.k_block, p.k - k);
    float* packed_a = packed_b;
    if (tiling.pack_b) {
      PackB(kernel, count, t.cols, t.b + k * p.b_k_stride + t.col * p.b_column_stride, p.b_k_stride,
            p.b_column_stride, 1.0f, packed_b);
      packed_a += RoundUp(RoundUp(t.cols, kernel.tile_n) * count, 16);
    }
    if (tiling.pack_a)
      PackA(kernel, t.rows, count, t.a + t.row * p.a_row_stride + k * p.a_k_stride, p.a_row_stride,
            p.a_k_stride, 1.0f, packed_a);
    for (std::int64_t col = 0; col < t.cols; col += kernel.tile_n)
      run_panel({k, count, packed_a, packed_b}, col);
  }
}

}  // namespace npurt::kernels
