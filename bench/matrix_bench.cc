// What the matrix and convolution kernels reach, per row of gemm.inc, depthwise.inc and intgemm.inc, on one
// core.
//
// Every result has GFLOP/s and, next to it, the share of the peak: what a loop of independent
// multiply-adds of the same instruction set reaches just before. A CPU that lacks a set says so.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <vector>

#include "base/cpu_isa.h"
#include "kernels/channels_last/conv.h"
#include "kernels/channels_last/depthwise.h"
#include "kernels/channels_last/winograd.h"
#include "kernels/conv/conv.h"
#include "kernels/depthwise/depthwise.h"
#include "kernels/gemm/gemm.h"
#include "kernels/intconv/intconv.h"
#include "kernels/intgemm/intgemm.h"

namespace npurt::kernels {
namespace {

using Clock = std::chrono::steady_clock;

#if defined(__x86_64__)

// Ten chains of multiply-adds hide their latency on every CPU with two units. Assembly, because
// this file is compiled for the plain CPU.
#define NPURT_FMA(reg) "vfmadd231ps %%" reg "15, %%" reg "14, %%" reg
void FmaAvx2(std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i)
    __asm__ volatile(NPURT_FMA("ymm") "0\n" NPURT_FMA("ymm") "1\n" NPURT_FMA("ymm") "2\n"
                     NPURT_FMA("ymm") "3\n" NPURT_FMA("ymm") "4\n" NPURT_FMA("ymm") "5\n"
                     NPURT_FMA("ymm") "6\n" NPURT_FMA("ymm") "7\n" NPURT_FMA("ymm") "8\n"
                     NPURT_FMA("ymm") "9\n" ::: "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5",
                     "xmm6", "xmm7", "xmm8", "xmm9", "xmm14", "xmm15");
}
void FmaAvx512(std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i)
    __asm__ volatile(NPURT_FMA("zmm") "0\n" NPURT_FMA("zmm") "1\n" NPURT_FMA("zmm") "2\n"
                     NPURT_FMA("zmm") "3\n" NPURT_FMA("zmm") "4\n" NPURT_FMA("zmm") "5\n"
                     NPURT_FMA("zmm") "6\n" NPURT_FMA("zmm") "7\n" NPURT_FMA("zmm") "8\n"
                     NPURT_FMA("zmm") "9\n" ::: "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5",
                     "xmm6", "xmm7", "xmm8", "xmm9", "xmm14", "xmm15");
}
void MulAddSse(std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i)
    __asm__ volatile(
        "mulps %%xmm15, %%xmm0\n addps %%xmm15, %%xmm1\n mulps %%xmm15, %%xmm2\n"
        "addps %%xmm15, %%xmm3\n mulps %%xmm15, %%xmm4\n addps %%xmm15, %%xmm5\n"
        "mulps %%xmm15, %%xmm6\n addps %%xmm15, %%xmm7\n mulps %%xmm15, %%xmm8\n"
        "addps %%xmm15, %%xmm9\n" ::
            : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",
              "xmm15");
}

// GFLOP/s of the best of a few short loops.
double PeakOf(IsaSet needs) {
  const bool avx512 = HasAll(needs, isa::kAvx512), avx2 = HasAll(needs, isa::kAvx2);
  const double flops = 10.0 * (avx512 ? 32 : avx2 ? 16 : 4);
  constexpr std::int64_t kCount = 200000;
  double best = 0;
  for (int i = 0; i < 5; ++i) {
    const Clock::time_point start = Clock::now();
    (avx512 ? FmaAvx512 : avx2 ? FmaAvx2 : MulAddSse)(kCount);
    const std::chrono::duration<double> time = Clock::now() - start;
    best = std::max(best, flops * static_cast<double>(kCount) / time.count() / 1e9);
  }
  return best;
}

#else

double PeakOf(IsaSet) { return 0; }

#endif

struct Buffer {
  explicit Buffer(std::int64_t floats) : data(static_cast<std::size_t>(floats) + 16, 0.5f) {}
  float* begin() { return data.data(); }
  std::vector<float> data;
};

void Report(benchmark::State& state, double flops, double peak) {
  state.counters["GFLOP/s"] = benchmark::Counter(
      flops * static_cast<double>(state.iterations()) / 1e9, benchmark::Counter::kIsRate);
  if (peak > 0)
    state.counters["peak"] = benchmark::Counter(
        flops * static_cast<double>(state.iterations()) / 1e9 / peak, benchmark::Counter::kIsRate);
}

// False, with the reason in the output, if the kernel cannot run here.
template <typename Kernel>
bool Start(benchmark::State& state, const Kernel& kernel) {
  state.SetLabel(kernel.name);
  if (HasAll(DetectedIsa(), kernel.needs)) return true;
  state.SkipWithError("this CPU lacks the instruction set");
  return false;
}

// m, n, k of a product with weights packed, as in MatMul. Columns: row of gemm.inc, m, n, k.
void BM_Gemm(benchmark::State& state) {
  const GemmKernel& kernel = kGemmKernels[state.range(0)];
  if (!Start(state, kernel)) return;
  GemmProblem p;
  p.m = state.range(1);
  p.n = state.range(2);
  p.k = state.range(3);
  p.a_row_stride = p.k;
  p.packed_b = true;
  Buffer a(p.m * p.k), b(p.k * p.n), packed(PackedBSize(kernel, p.k, p.n)), c(p.m * p.n);
  PackB(kernel, p.k, p.n, b.begin(), p.n, 1, 1, packed.begin());
  const GemmTiling tiling = PlanGemm(p, kernel);
  Buffer scratch(static_cast<std::int64_t>(tiling.scratch_bytes / 4));
  const GemmCall call{&p, &tiling, a.begin(), packed.begin(), c.begin(), {}, 0};
  const double peak = PeakOf(kernel.needs);
  for (auto _ : state)
    for (std::int64_t tile = 0; tile < tiling.tiles; ++tile)
      RunGemmTile(call, tile, scratch.begin());
  Report(state, 2.0 * static_cast<double>(p.m * p.n * p.k), peak);
}
void GemmShapes(benchmark::internal::Benchmark* bench) {
  for (int row = 0; row < kGemmKernelCount; ++row)
    for (const auto& shape : {std::array<int, 3>{512, 512, 512},
                              {128, 768, 768},
                              {1, 1024, 1024},
                              {8, 1024, 1024},
                              {64, 64, 64}})
      bench->Args({row, shape[0], shape[1], shape[2]});
}
BENCHMARK(BM_Gemm)->Apply(GemmShapes);

ConvProblem Square(std::int64_t groups, std::int64_t in_channels, std::int64_t out_channels,
                   std::int64_t size, std::int64_t kernel, std::int64_t stride) {
  ConvProblem p;
  p.groups = groups;
  p.in_channels = in_channels;
  p.out_channels = out_channels;
  for (int d = 1; d < kConvRank; ++d) {
    p.in[d] = size;
    p.kernel[d] = kernel;
    p.stride[d] = stride;
    p.pad[d] = kernel / 2;
    p.out[d] = (size + 2 * p.pad[d] - kernel) / stride + 1;
  }
  return p;
}
double FlopsOf(const ConvProblem& p) {
  return 2.0 * static_cast<double>(p.groups * p.in_channels * p.out_channels * p.out[1] * p.out[2] *
                                   p.kernel[1] * p.kernel[2]);
}

// Columns: row of gemm.inc, input channels, output channels, height and width, kernel, stride.
void BM_Conv(benchmark::State& state) {
  const GemmKernel& kernel = kGemmKernels[state.range(0)];
  if (!Start(state, kernel)) return;
  const ConvProblem p =
      Square(1, state.range(1), state.range(2), state.range(3), state.range(4), state.range(5));
  Buffer image(p.in_channels * p.in[1] * p.in[2]), out(p.out_channels * p.out[1] * p.out[2]);
  Buffer weights(ConvWeightsScratchSize(p)), row(ConvWeightsScratchSize(p));
  Buffer packed(PackedConvWeightsSize(kernel, p));
  PackConvWeights(kernel, p, weights.begin(), row.begin(), packed.begin());
  const ConvTiling tiling = PlanConv(p, kernel);
  Buffer scratch(static_cast<std::int64_t>(tiling.scratch_bytes / 4));
  const ConvCall call{&p, &tiling, image.begin(), packed.begin(), true, out.begin(), {}};
  const double peak = PeakOf(kernel.needs);
  for (auto _ : state)
    for (std::int64_t tile = 0; tile < tiling.tiles; ++tile)
      RunConvTile(call, tile, scratch.begin());
  Report(state, FlopsOf(p), peak);
}
// The same, channels last.
void BM_ConvLast(benchmark::State& state) {
  const GemmKernel& kernel = kGemmKernels[state.range(0)];
  if (!Start(state, kernel)) return;
  const ConvProblem p =
      Square(1, state.range(1), state.range(2), state.range(3), state.range(4), state.range(5));
  Buffer image(p.in_channels * p.in[1] * p.in[2]), out(p.out_channels * p.out[1] * p.out[2]);
  Buffer weights(ConvWeightsScratchSize(p)), row(ConvWeightsScratchSize(p));
  Buffer packed(PackedChannelsLastSize(kernel, p));
  PackChannelsLastWeights(kernel, p, weights.begin(), row.begin(), packed.begin());
  const ChannelsLastTiling tiling = PlanChannelsLast(p, kernel);
  Buffer scratch(static_cast<std::int64_t>(tiling.scratch_bytes / 4 + 1));
  const ChannelsLastCall call{&p, &tiling, image.begin(), packed.begin(), out.begin(), {}};
  const double peak = PeakOf(kernel.needs);
  for (auto _ : state)
    for (std::int64_t tile = 0; tile < tiling.tiles; ++tile)
      RunChannelsLastTile(call, tile, scratch.begin());
  Report(state, FlopsOf(p), peak);
}
// The same by Winograd, with GFLOP/s of a plain sum.
void BM_WinogradLast(benchmark::State& state) {
  const GemmKernel& kernel = kGemmKernels[state.range(0)];
  if (!Start(state, kernel)) return;
  const ConvProblem p =
      Square(1, state.range(1), state.range(2), state.range(3), state.range(4), state.range(5));
  Buffer image(p.in_channels * p.in[1] * p.in[2]), out(p.out_channels * p.out[1] * p.out[2]);
  Buffer weights(ConvWeightsScratchSize(p)), row(ConvWeightsScratchSize(p));
  Buffer packed(PackedWinogradLastSize(kernel, p));
  PackWinogradLastWeights(kernel, p, weights.begin(), row.begin(), packed.begin());
  const WinogradLastTiling tiling =
      PlanWinogradLast(p, *SelectWinogradLastKernel(kernel.needs), kernel);
  Buffer scratch(static_cast<std::int64_t>(tiling.scratch_bytes / 4 + 1));
  const WinogradLastCall call{&p, &tiling, image.begin(), packed.begin(), out.begin(), {}};
  const double peak = PeakOf(kernel.needs);
  for (auto _ : state)
    for (std::int64_t tile = 0; tile < tiling.tiles; ++tile)
      RunWinogradLastTile(call, tile, scratch.begin());
  Report(state, FlopsOf(p), peak);
}
void ConvShapes(benchmark::internal::Benchmark* bench) {
  for (int row = 0; row < kGemmKernelCount; ++row)
    for (const auto& shape : {std::array<int, 5>{64, 64, 56, 3, 1},
                              {3, 64, 224, 7, 2},
                              {256, 256, 14, 3, 1},
                              {512, 512, 7, 3, 1},
                              {16, 24, 80, 3, 1},
                              {16, 8, 80, 3, 1},
                              {64, 256, 56, 1, 1}})
      bench->Args({row, shape[0], shape[1], shape[2], shape[3], shape[4]});
}
BENCHMARK(BM_Conv)->Apply(ConvShapes);
BENCHMARK(BM_ConvLast)->Apply(ConvShapes);
void WinogradShapes(benchmark::internal::Benchmark* bench) {
  for (int row = 0; row < kGemmKernelCount; ++row)
    for (const auto& shape : {std::array<int, 5>{64, 64, 56, 3, 1},
                              {128, 128, 28, 3, 1},
                              {256, 256, 14, 3, 1},
                              {512, 512, 7, 3, 1},
                              {32, 32, 56, 3, 1}})
      bench->Args({row, shape[0], shape[1], shape[2], shape[3], shape[4]});
}
BENCHMARK(BM_WinogradLast)->Apply(WinogradShapes);

// Columns: row of depthwise.inc, channels, height and width, kernel, stride.
void BM_Depthwise(benchmark::State& state) {
  const DepthwiseKernel& kernel = kDepthwiseKernels[state.range(0)];
  if (!Start(state, kernel)) return;
  const ConvProblem p =
      Square(state.range(1), 1, 1, state.range(2), state.range(3), state.range(4));
  Buffer image(p.groups * p.in[1] * p.in[2]), out(p.groups * p.out[1] * p.out[2]);
  Buffer weights(p.groups * ConvWeightsScratchSize(p));
  const DepthwiseTiling tiling = PlanDepthwise(p, kernel);
  Buffer scratch(static_cast<std::int64_t>(tiling.scratch_bytes / 4 + 1));
  const DepthwiseCall call{&p, &tiling, image.begin(), weights.begin(), out.begin(), {}};
  const double peak = PeakOf(kernel.needs);
  for (auto _ : state)
    for (std::int64_t tile = 0; tile < tiling.tiles; ++tile)
      RunDepthwiseTile(call, tile, scratch.begin());
  Report(state, FlopsOf(p), peak);
}
// The same, channels last: row of channels_last/depthwise.inc.
void BM_DepthwiseLast(benchmark::State& state) {
  const DepthwiseLastKernel& kernel = kDepthwiseLastKernels[state.range(0)];
  if (!Start(state, kernel)) return;
  const ConvProblem p =
      Square(state.range(1), 1, 1, state.range(2), state.range(3), state.range(4));
  Buffer image(p.groups * p.in[1] * p.in[2]), out(p.groups * p.out[1] * p.out[2]);
  Buffer weights(p.groups * ConvWeightsScratchSize(p));
  const DepthwiseLastTiling tiling = PlanDepthwiseLast(p, kernel);
  const DepthwiseLastCall call{&p, &tiling, image.begin(), weights.begin(), out.begin(), {}};
  const double peak = PeakOf(kernel.needs);
  for (auto _ : state)
    for (std::int64_t tile = 0; tile < tiling.tiles; ++tile) RunDepthwiseLastTile(call, tile);
  Report(state, FlopsOf(p), peak);
}
void DepthwiseShapes(benchmark::internal::Benchmark* bench) {
  for (int row = 0; row < kDepthwiseKernelCount; ++row)
    for (const auto& shape :
         {std::array<int, 4>{64, 56, 3, 1}, {64, 112, 3, 2}, {512, 14, 3, 1}, {256, 28, 5, 1}})
      bench->Args({row, shape[0], shape[1], shape[2], shape[3]});
}
BENCHMARK(BM_Depthwise)->Apply(DepthwiseShapes);
BENCHMARK(BM_DepthwiseLast)->Apply(DepthwiseShapes);

// Products of bytes, weights packed. Columns: row of intgemm.inc, m, n, k. The peak is that of float32.
void BM_IntGemm(benchmark::State& state) {
  const IntGemmKernel& kernel = kIntGemmKernels[state.range(0)];
  if (!Start(state, kernel)) return;
  IntGemmProblem p;
  p.m = state.range(1);
  p.n = state.range(2);
  p.k = state.range(3);
  p.packed_b = true;
  Buffer a(p.m * p.k / 4 + 1), b(p.k * p.n / 4 + 1), packed(PackedIntBSize(kernel, p.k, p.n) / 4);
  PackIntB(kernel, p, b.begin(), nullptr, 0, packed.begin());
  const IntGemmTiling tiling = PlanIntGemm(p, kernel);
  Buffer scratch(static_cast<std::int64_t>(tiling.scratch_bytes / 4)), c(p.m * p.n / 4 + 1);
  const double scale = 1e-4;
  IntEpilogue e;
  e.to_bytes = e.one_row_scale = true;
  e.row_scale = &scale;
  const IntGemmCall call{&p, &tiling, a.begin(), packed.begin(), nullptr, 0, 0, nullptr, 0,
                         c.begin(), e};
  const double peak = PeakOf(kernel.needs);
  for (auto _ : state)
    for (std::int64_t tile = 0; tile < tiling.tiles; ++tile)
      RunIntGemmTile(call, tile, scratch.begin());
  Report(state, 2.0 * static_cast<double>(p.m * p.n * p.k), peak);
}
void IntGemmShapes(benchmark::internal::Benchmark* bench) {
  for (int row = 0; row < kIntGemmKernelCount; ++row)
    for (const auto& shape :
         {std::array<int, 3>{1024, 1024, 1024}, {128, 768, 768}, {1, 1024, 1024}, {64, 64, 64}})
      bench->Args({row, shape[0], shape[1], shape[2]});
}
BENCHMARK(BM_IntGemm)->Apply(IntGemmShapes);

// Columns: row of intgemm.inc, groups, channels of a group in and out, height and width, kernel, stride.
void BM_IntConv(benchmark::State& state) {
  const IntGemmKernel& kernel = kIntGemmKernels[state.range(0)];
  if (!Start(state, kernel)) return;
  IntConvProblem problem;
  const ConvProblem& p = problem.shape =
      Square(state.range(1), state.range(2), state.range(3), state.range(4), state.range(5),
             state.range(6));
  const std::int64_t channels = p.groups * p.out_channels;
  Buffer image(p.groups * p.in_channels * p.in[1] * p.in[2] / 4 + 1);
  Buffer weights(p.groups * ConvWeightsScratchSize(p) / 4 + 1);
  Buffer out(channels * p.out[1] * p.out[2] / 4 + 1);
  Buffer packed(PackedIntConvWeightsSize(kernel, problem) / 4);
  Buffer row(IntConvRowSize(kernel, problem) / 4);
  PackIntConvWeights(kernel, problem, weights.begin(), nullptr, 0, row.begin(), packed.begin());
  const IntConvTiling tiling = PlanIntConv(problem, kernel);
  Buffer scratch(static_cast<std::int64_t>(tiling.scratch_bytes / 4));
  const std::vector<double> scale(static_cast<std::size_t>(channels), 1e-4);
  IntEpilogue e;
  e.to_bytes = true;
  e.row_scale = scale.data();
  const IntConvCall call{&problem, &tiling, image.begin(), packed.begin(), 0, nullptr, 0,
                         out.begin(), e};
  const double peak = PeakOf(kernel.needs);
  for (auto _ : state)
    for (std::int64_t tile = 0; tile < tiling.tiles; ++tile)
      RunIntConvTile(call, tile, scratch.begin());
  Report(state, FlopsOf(p), peak);
}
void IntConvShapes(benchmark::internal::Benchmark* bench) {
  for (int row = 0; row < kIntGemmKernelCount; ++row)
    for (const auto& shape : {std::array<int, 6>{1, 64, 64, 56, 3, 1},
                              {1, 3, 64, 224, 7, 2},
                              {1, 256, 256, 14, 3, 1},
                              {1, 64, 256, 56, 1, 1},
                              {64, 1, 1, 56, 3, 1}})
      bench->Args({row, shape[0], shape[1], shape[2], shape[3], shape[4], shape[5]});
}
BENCHMARK(BM_IntConv)->Apply(IntConvShapes);

}  // namespace
}  // namespace npurt::kernels
