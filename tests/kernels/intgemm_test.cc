// Intgemm and Intconv: every kernel row against plain loops, to the bit.
#include "kernels/intgemm/intgemm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "base/cpu_isa.h"
#include "kernels/intconv/intconv.h"
#include "support/guarded_buffer.h"

namespace npurt::kernels {
namespace {

std::size_t Size(std::int64_t x) { return static_cast<std::size_t>(x); }

std::int32_t ValueOf(bool is_signed, std::uint8_t byte) {
  return is_signed ? static_cast<std::int8_t>(byte) : byte;
}

// Bytes of any value, and of the largest magnitude in every third buffer.
void FillBytes(GuardedBuffer<std::uint8_t>& buffer, int variant, bool is_signed,
               std::mt19937& random) {
  for (std::uint8_t& x : buffer) x = static_cast<std::uint8_t>(random());
  if (variant % 3 == 2)
    for (std::uint8_t& x : buffer) x = is_signed ? 127 + (variant & 1) : 255;
}

std::int32_t AnyZero(bool is_signed, std::mt19937& random) {
  return ValueOf(is_signed, static_cast<std::uint8_t>(random()));
}

// IntEpilogue in plain words.
std::int32_t Finished(const IntEpilogue& e, std::int64_t sum, std::int64_t row, std::int64_t column) {
  if (!e.to_bytes) return static_cast<std::int32_t>(sum);
  double y = static_cast<double>(static_cast<std::int32_t>(sum));
  if (e.row_bias != nullptr) y += e.row_bias[row];
  if (e.column_bias != nullptr) y += e.column_bias[column];
  y *= e.row_scale[e.one_row_scale ? 0 : row];
  if (e.column_scale != nullptr) y *= e.column_scale[column];
  if (std::isnan(y)) return 0;
  return static_cast<std::int32_t>(std::clamp(std::nearbyint(y) + e.zero,
                                              static_cast<double>(e.low),
                                              static_cast<double>(e.high)));
}

template <typename Run>
void RunTiles(std::int64_t tiles, std::size_t scratch_bytes, std::mt19937& random, Run run) {
  std::vector<std::int64_t> order(Size(tiles));
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  for (std::int64_t tile : order) {
    GuardedBuffer<std::uint32_t> scratch((scratch_bytes + 63) / 64 * 16);
    run(tile, scratch.data());
  }
}

struct Arrays {
  Arrays(std::int64_t rows, std::int64_t columns, std::mt19937& random)
      : row_bias(Size(rows)),
        row_scale(Size(rows)),
        column_bias(Size(columns)),
        column_scale(Size(columns)) {
    std::uniform_real_distribution<double> scale(1e-4, 1e-2);
    for (double& x : row_bias) x = static_cast<std::int32_t>(random() % 20000) - 10000;
    for (double& x : column_bias) x = static_cast<std::int32_t>(random() % 20000) - 10000;
    for (double& x : row_scale) x = scale(random);
    for (double& x : column_scale) x = scale(random) * 100;
    row_scale[0] = 0.5;  // ties
    if (rows > 1) row_scale[1] = NAN;
  }
  IntEpilogue Make(int variant) const {
    IntEpilogue e;
    e.to_bytes = variant % 2 == 1;
    e.row_scale = row_scale.data();
    e.one_row_scale = variant % 5 == 1;
    if (variant % 3 != 0) e.row_bias = row_bias.data();
    if (variant % 4 == 3) {
      e.low = 0;
      e.high = 255;
      e.zero = 99;
    }
    return e;
  }
  std::vector<double> row_bias, row_scale, column_bias, column_scale;
};

std::int32_t ResultAt(const IntEpilogue& e, const GuardedBuffer<std::uint8_t>& out, std::int64_t i) {
  if (e.to_bytes) return ValueOf(e.low < 0, out[Size(i)]);
  std::int32_t x;
  std::memcpy(&x, out.data() + i * 4, 4);
  return x;
}

class IntGemmCheck : public ::testing::TestWithParam<IntGemmKernel> {};

TEST_P(IntGemmCheck, MatchesPlainLoops) {
  const IntGemmKernel& kernel = GetParam();
  NPURT_SKIP_UNLESS_ISA(kernel.needs, kernel.name);
  std::mt19937 random(1);
  std::vector<std::array<std::int64_t, 3>> sizes = {{1, 1, 1},     {3, 70, 33},   {1, 300, 500},
                                                    {130, 64, 96}, {40, 200, 30}, {2, 5, 0},
                                                    {0, 3, 4},     {30, 20, 4096}};
  for (int m = 1; m <= kernel.tile_m + 1; ++m)
    for (int n = 1; n <= kernel.tile_n + 1; n += 3) sizes.push_back({m, n, 1 + (m * 7 + n) % 13});
  int variant = 0;
  for (const auto& [m, n, k] : sizes)
    for (int way = 0; way < 16; ++way, ++variant) {
      IntGemmProblem p;
      p.m = m;
      p.n = n;
      p.k = k;
      p.a_signed = (way & 1) != 0;
      p.b_signed = (way & 2) != 0;
      p.packed_b = (way & 4) != 0;
      const bool per_column = (way & 8) != 0;
      GuardedBuffer<std::uint8_t> a(Size(m * k)), b(Size(k * n));
      FillBytes(a, variant, p.a_signed, random);
      FillBytes(b, variant, p.b_signed, random);
      std::vector<std::uint8_t> a_zero(kernel.bytes || variant % 2 == 0 ? 1 : 3);
      for (std::uint8_t& x : a_zero) x = static_cast<std::uint8_t>(random());
      std::vector<std::int32_t> b_zero(Size(n));
      for (std::int32_t& x : b_zero) x = AnyZero(p.b_signed, random);
      const Arrays arrays(m + 1, n, random);
      IntEpilogue e = arrays.Make(variant);
      if (variant % 7 < 4) e.column_scale = arrays.column_scale.data();
      if (variant % 7 > 2) e.column_bias = arrays.column_bias.data();
      std::vector<std::uint32_t> packed(Size(PackedIntBSize(kernel, k, n) / 4));
      if (p.packed_b)
        PackIntB(kernel, p, b.data(), b_zero.data(), per_column ? 1 : 0, packed.data());
      const IntGemmTiling tiling = PlanIntGemm(p, kernel);
      GuardedBuffer<std::uint8_t> out(Size(m * n * (e.to_bytes ? 1 : 4)));
      const IntGemmCall call{&p,
                             &tiling,
                             a.data(),
                             p.packed_b ? static_cast<const void*>(packed.data()) : b.data(),
                             a_zero.data(),
                             static_cast<std::int64_t>(a_zero.size()),
                             1,
                             b_zero.data(),
                             per_column ? 1 : 0,
                             out.data(),
                             e};
      RunTiles(tiling.tiles, tiling.scratch_bytes, random,
               [&](std::int64_t tile, void* scratch) { RunIntGemmTile(call, tile, scratch); });
      for (std::int64_t i = 0; i < m; ++i)
        for (std::int64_t j = 0; j < n; ++j) {
          std::int64_t sum = 0;
          for (std::int64_t t = 0; t < k; ++t)
            sum += static_cast<std::int64_t>(ValueOf(p.a_signed, a[Size(i * k + t)]) -
                                              ValueOf(p.a_signed, a_zero[Size(1 + i) % a_zero.size()])) *
                   (ValueOf(p.b_signed, b[Size(t * n + j)]) - b_zero[Size(per_column ? j : 0)]);
          ASSERT_EQ(ResultAt(e, out, i * n + j), Finished(e, sum, i, j))
              << kernel.name << " " << m << "x" << n << "x" << k << " way " << way << " at " << i
              << ", " << j;
        }
    }
}

void CheckConv(const IntGemmKernel& kernel, const ConvProblem& shape, int variant,
               std::mt19937& random) {
  IntConvProblem problem{shape, (variant & 1) != 0, (variant & 2) != 0};
  const ConvProblem& p = problem.shape;
  const std::int64_t taps = p.kernel[0] * p.kernel[1] * p.kernel[2];
  const std::int64_t in_plane = p.in[0] * p.in[1] * p.in[2];
  const std::int64_t channels = p.groups * p.out_channels;
  const std::int64_t out_count = p.batch * channels * p.out[0] * p.out[1] * p.out[2];
  GuardedBuffer<std::uint8_t> x(Size(p.batch * p.groups * p.in_channels * in_plane));
  GuardedBuffer<std::uint8_t> w(Size(channels * p.in_channels * taps));
  FillBytes(x, variant, problem.x_signed, random);
  FillBytes(w, variant, problem.w_signed, random);
  const std::int32_t x_zero = AnyZero(problem.x_signed, random);
  const int step = variant / 4 % 2;
  std::vector<std::int32_t> w_zero(Size(channels));
  for (std::int32_t& z : w_zero)
    z = variant / 8 % 2 == 0 ? (problem.w_signed ? 0 : 128) : AnyZero(problem.w_signed, random);
  const Arrays arrays(channels, 1, random);
  const IntEpilogue e = arrays.Make(variant / 2);
  GuardedBuffer<std::uint32_t> packed(Size(PackedIntConvWeightsSize(kernel, problem) / 4));
  GuardedBuffer<std::uint32_t> row(Size(IntConvRowSize(kernel, problem) / 4));
  PackIntConvWeights(kernel, problem, w.data(), w_zero.data(), step, row.data(), packed.data());
  const IntConvTiling tiling = PlanIntConv(problem, kernel);
  if (tiling.tiles < 0) return;
  GuardedBuffer<std::uint8_t> out(Size(out_count * (e.to_bytes ? 1 : 4)));
  const IntConvCall call{&problem, &tiling,       x.data(), packed.data(), x_zero,
                         w_zero.data(), step, out.data(), e};
  RunTiles(tiling.tiles, tiling.scratch_bytes, random,
           [&](std::int64_t tile, void* scratch) { RunIntConvTile(call, tile, scratch); });
  std::int64_t at = 0;
  for (std::int64_t n = 0; n < p.batch; ++n)
    for (std::int64_t o = 0; o < channels; ++o)
      for (std::int64_t place = 0; place < p.out[0] * p.out[1] * p.out[2]; ++place, ++at) {
        const std::int64_t to[kConvRank] = {place / p.out[2] / p.out[1], place / p.out[2] % p.out[1],
                                            place % p.out[2]};
        std::int64_t sum = 0;
        for (std::int64_t tap = 0; tap < taps; ++tap) {
          const std::int64_t t[kConvRank] = {tap / p.kernel[2] / p.kernel[1],
                                             tap / p.kernel[2] % p.kernel[1], tap % p.kernel[2]};
          std::int64_t pixel = 0;
          bool hit = true;
          for (int d = 0; d < kConvRank; ++d) {
            const std::int64_t i = to[d] * p.stride[d] - p.pad[d] + t[d] * p.dilation[d];
            hit = hit && i >= 0 && i < p.in[d];
            pixel = pixel * p.in[d] + i;
          }
          for (std::int64_t c = 0; hit && c < p.in_channels; ++c)
            sum += static_cast<std::int64_t>(
                       ValueOf(problem.x_signed,
                               x[Size((n * p.groups * p.in_channels +
                                       o / p.out_channels * p.in_channels + c) * in_plane + pixel)]) -
                       x_zero) *
                   (ValueOf(problem.w_signed, w[Size((o * p.in_channels + c) * taps + tap)]) -
                    w_zero[Size(step * o)]);
        }
        ASSERT_EQ(ResultAt(e, out, at), Finished(e, sum, o, 0))
            << kernel.name << " variant " << variant << " channel " << o << " at " << place
            << " groups " << p.groups << " channels " << p.in_channels << " kernel " << p.kernel[0]
            << "," << p.kernel[1] << "," << p.kernel[2] << " in " << p.in[1] << "," << p.in[2];
      }
}

TEST_P(IntGemmCheck, ConvolutionsMatchPlainLoops) {
  const IntGemmKernel& kernel = GetParam();
  NPURT_SKIP_UNLESS_ISA(kernel.needs, kernel.name);
  std::mt19937 random(2);
  const auto pick = [&](int least, int most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random);
  };
  for (int i = 0; i < 300; ++i) {
    ConvProblem p;
    p.batch = pick(1, 2);
    p.groups = pick(1, 3);
    p.in_channels = i % 3 == 0 ? 1 : pick(1, 9);
    p.out_channels = pick(1, 14);
    const int rank = static_cast<int>(pick(1, 3));
    const bool plain = i % 5 == 0;  // a tap, the image itself
    for (int d = kConvRank - rank; d < kConvRank; ++d) {
      p.in[d] = pick(1, rank == 1 ? 700 : 14);
      p.kernel[d] = plain ? 1 : pick(1, 5);
      p.stride[d] = plain ? 1 : pick(1, 3);
      p.dilation[d] = pick(1, 3);
      p.pad[d] = plain ? 0 : pick(0, 3);
      const std::int64_t reach = (p.kernel[d] - 1) * p.dilation[d] + 1;
      const std::int64_t room = p.in[d] + p.pad[d] + (plain ? 0 : pick(0, 3)) - reach;
      p.out[d] = room < 0 ? 0 : room / p.stride[d] + 1;
    }
    CheckConv(kernel, p, i, random);
    if (HasFatalFailure()) return;
  }
  ConvProblem wide;  // several tiles, much k
  wide.in_channels = 200;
  wide.out_channels = 70;
  for (int d = 1; d < kConvRank; ++d) {
    wide.in[d] = wide.out[d] = 17;
    wide.kernel[d] = 3;
    wide.pad[d] = 1;
  }
  for (int i = 0; i < 4; ++i) CheckConv(kernel, wide, i, random);
}

INSTANTIATE_TEST_SUITE_P(Rows, IntGemmCheck,
                         ::testing::ValuesIn(kIntGemmKernels, kIntGemmKernels + kIntGemmKernelCount),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace npurt::kernels
