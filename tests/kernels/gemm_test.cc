// Gemm: every kernel row and the blocked driver against plain loops.
#include "kernels/gemm/gemm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>
#include <sstream>
#include <vector>

#include "base/cpu_isa.h"
#include "support/guarded_buffer.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace npurt::kernels {
namespace {

constexpr float kInf = INFINITY;

void FillRandom(GuardedBuffer<float>& buffer, std::mt19937& random) {
  std::uniform_real_distribution<float> next(-1, 1);
  for (float& x : buffer) x = next(random);
}

double Activate(const Epilogue& e, double x) {
  const auto clamp = [](double v, double low, double high) {
    return v < low ? low : v > high ? high : v;
  };
  switch (e.activation) {
    case Activation::kNone:
      return x;
    case Activation::kRelu:
      return x < 0 ? 0 : x;
    case Activation::kClip:
      return clamp(x, e.alpha, e.beta);
    case Activation::kLeakyRelu:
      return x < 0 ? x * e.alpha : x;
    case Activation::kHardSigmoid:
      return clamp(e.alpha * x + e.beta, 0, 1);
    case Activation::kHardSwish:
      return x * clamp(x / 6 + 0.5, 0, 1);
    case Activation::kSigmoid:
      return 1 / (1 + std::exp(-x));
    case Activation::kSilu:
      return x / (1 + std::exp(-x));
    case Activation::kTanh:
      return std::tanh(x);
    case Activation::kGelu:
      return x / 2 * (1 + std::erf(x / std::sqrt(2.0)));
    case Activation::kGeluTanh:
      return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
  }
  return x;
}

// Equal up to rounding; NaN and infinities exactly.
::testing::AssertionResult Near(double want, float got, double bound) {
  if (std::isnan(want) ? std::isnan(got)
                       : want == got || std::fabs(want - got) <= bound * (1 + std::fabs(want)))
    return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "got " << got << ", want " << want;
}

class GemmCheck : public ::testing::TestWithParam<GemmKernel> {};

TEST_P(GemmCheck, MicroKernelMatchesPlainLoopsOnAllTails) {
  const GemmKernel& kernel = GetParam();
  NPURT_SKIP_UNLESS_ISA(kernel.needs, kernel.name);
  std::mt19937 random(1);
  const Epilogue plain;
  for (int m = 1; m <= kernel.tile_m; ++m)
    for (int n = 1; n <= kernel.tile_n; ++n)
      for (int k : {0, 1, 2, 7})
        for (int way = 0; way < 4; ++way) {  // A packed or not, B a panel or not
          const bool packed_a = (way & 1) != 0, panel = (way & 2) != 0;
          const std::size_t a_stride = static_cast<std::size_t>(packed_a ? kernel.tile_m : k + 1);
          const std::size_t b_stride = static_cast<std::size_t>(panel ? kernel.tile_n : n + 3);
          const std::size_t c_stride = static_cast<std::size_t>(n + 2);
          const std::size_t mm = static_cast<std::size_t>(m), nn = static_cast<std::size_t>(n);
          const std::size_t kk = static_cast<std::size_t>(k);
          // Each ends with its last element: a packed A at its last valid row too.
          GuardedBuffer<float> a(kk == 0    ? 0
                                 : packed_a ? (kk - 1) * a_stride + mm
                                            : (mm - 1) * a_stride + kk);
          GuardedBuffer<float> b(kk == 0 ? 0 : (kk - 1) * b_stride + (panel ? b_stride : nn));
          GuardedBuffer<float> c((mm - 1) * c_stride + nn);
          FillRandom(a, random);
          FillRandom(b, random);
          for (int pass = 0; pass < 4; ++pass) {
            const bool first = (pass & 1) != 0, last = (pass & 2) != 0;
            FillRandom(c, random);
            const std::vector<float> before(c.begin(), c.end());
            GemmArgs args{a.data(),
                          packed_a ? 1 : static_cast<std::int64_t>(a_stride),
                          packed_a ? static_cast<std::int64_t>(a_stride) : 1,
                          b.data(),
                          static_cast<std::int64_t>(b_stride),
                          c.data(),
                          static_cast<std::int64_t>(c_stride),
                          k,
                          m,
                          n,
                          panel,
                          first,
                          last,
                          &plain};
            kernel.run(args);
            for (std::size_t i = 0; i < c.size(); ++i) {
              const std::size_t row = i / c_stride, column = i % c_stride;
              if (column >= nn) {
                ASSERT_EQ(c[i], before[i]) << kernel.name << " wrote beside its columns";
                continue;
              }
              double want = first ? 0 : before[i];
              for (std::size_t t = 0; t < kk; ++t)
                want +=
                    static_cast<double>(packed_a ? a[t * a_stride + row] : a[row * a_stride + t]) *
                    static_cast<double>(b[t * b_stride + column]);
              ASSERT_TRUE(Near(want, c[i], 1e-5))
                  << kernel.name << " m=" << m << " n=" << n << " k=" << k << " way=" << way
                  << " pass=" << pass << " at " << row << ", " << column;
            }
          }
        }
}

TEST_P(GemmCheck, EpilogueScalesAddsAndActivates) {
  const GemmKernel& kernel = GetParam();
  NPURT_SKIP_UNLESS_ISA(kernel.needs, kernel.name);
  std::mt19937 random(2);
  const std::vector<float> odd = {NAN, kInf, -kInf, 0.0f, -0.0f, 100.0f, -100.0f, 3.0f, -3.0f};
  for (int kind = 0; kind <= 10; ++kind)
    for (int n : {1, kernel.tile_n / 2, kernel.tile_n / 2 + 1, kernel.tile_n})
      for (int terms = 0; terms < 8; ++terms) {
        const int m = kernel.tile_m;
        const std::size_t mm = static_cast<std::size_t>(m), nn = static_cast<std::size_t>(n);
        GuardedBuffer<float> a(mm), b(nn), c(mm * nn), row(mm), column(nn), residual(mm * nn);
        for (GuardedBuffer<float>* buffer : {&a, &b, &row, &column, &residual})
          FillRandom(*buffer, random);
        for (std::size_t i = 0; i < mm; ++i) a[i] = i < odd.size() ? odd[i] : a[i];
        for (float& x : b) x = 1;
        Epilogue e;
        e.scale = terms == 7 ? 0.5f : 1.0f;
        if ((terms & 1) != 0) e.row_bias = row.data();
        if ((terms & 2) != 0) e.column_bias = column.data();
        if ((terms & 4) != 0) e.residual = residual.data();
        e.bias_scale = 2;
        e.residual_scale = 0.25f;
        e.residual_stride = n;
        e.activation = static_cast<Activation>(kind);
        e.alpha = kind == 2 ? -0.75f : 0.3f;
        e.beta = 0.6f;
        kernel.run({a.data(), 1, m, b.data(), n, c.data(), n, 1, m, n, false, true, true, &e});
        for (std::size_t i = 0; i < mm; ++i)
          for (std::size_t j = 0; j < nn; ++j) {
            double x = static_cast<double>(a[i]) * e.scale;
            if (e.row_bias != nullptr) x += 2.0 * row[i];
            if (e.column_bias != nullptr) x += 2.0 * column[j];
            if (e.residual != nullptr) x += 0.25 * residual[i * nn + j];
            ASSERT_TRUE(Near(Activate(e, x), c[i * nn + j], 2e-6))
                << kernel.name << " activation " << kind << " of " << x << ", n=" << n << " terms "
                << terms;
          }
      }
}

#if defined(__x86_64__)
TEST_P(GemmCheck, LeavesRoundingModesAlone) {
  const GemmKernel& kernel = GetParam();
  NPURT_SKIP_UNLESS_ISA(kernel.needs, kernel.name);
  constexpr unsigned kFlags = 0x3f;  // what happened, not how to compute
  const unsigned before = _mm_getcsr() & ~kFlags;
  const Epilogue e;
  float a = 1, b = 2, c = 0;
  kernel.run({&a, 1, 1, &b, 1, &c, 1, 1, 1, 1, false, true, true, &e});
  EXPECT_EQ(_mm_getcsr() & ~kFlags, before);
}
#endif

// A whole product through the driver.
struct Case {
  std::int64_t m, n, k;
  bool trans_a = false, trans_b = false;
  std::int64_t batch[2] = {1, 1};      // of C
  bool a_repeats[2] = {false, false};  // stride 0
  bool b_repeats[2] = {false, false};
};

std::string Text(const Case& c) {
  std::ostringstream out;
  out << c.m << "x" << c.n << "x" << c.k << (c.trans_a ? " tA" : "") << (c.trans_b ? " tB" : "")
      << " batch " << c.batch[0] << "," << c.batch[1];
  return out.str();
}

void CheckDriver(const GemmKernel& kernel, const Case& c, bool packed_a, bool packed_b,
                 std::mt19937& random) {
  const std::int64_t m = c.m, n = c.n, k = c.k;
  const double bound = 4e-5 * std::max(1.0, static_cast<double>(k) / 1024);
  GemmProblem p;
  p.m = m;
  p.n = n;
  p.k = k;
  p.packed_a = packed_a;
  p.packed_b = packed_b;
  p.a_row_stride = c.trans_a ? 1 : k;
  p.a_k_stride = c.trans_a ? m : 1;
  p.b_k_stride = c.trans_b ? 1 : n;
  p.b_column_stride = c.trans_b ? k : 1;
  p.batch_rank = 2;
  std::int64_t a_matrices = 1, b_matrices = 1;
  std::int64_t a_index[2], b_index[2];  // strides in matrices
  for (int d = 1; d >= 0; --d) {
    p.batch_dims[d] = c.batch[d];
    a_index[d] = c.a_repeats[d] ? 0 : a_matrices;
    b_index[d] = c.b_repeats[d] ? 0 : b_matrices;
    if (!c.a_repeats[d]) a_matrices *= c.batch[d];
    if (!c.b_repeats[d]) b_matrices *= c.batch[d];
  }
  const auto size = [](std::int64_t x) { return static_cast<std::size_t>(x); };
  GuardedBuffer<float> a(size(a_matrices * m * k)), b(size(b_matrices * k * n));
  FillRandom(a, random);
  FillRandom(b, random);
  const std::int64_t a_size = packed_a ? PackedASize(kernel, m, k) : m * k;
  const std::int64_t b_size = packed_b ? PackedBSize(kernel, k, n) : k * n;
  GuardedBuffer<float> used_a(size(a_matrices * a_size)), used_b(size(b_matrices * b_size));
  for (std::int64_t i = 0; i < a_matrices; ++i) {
    if (packed_a) {
      PackA(kernel, m, k, a.data() + i * m * k, p.a_row_stride, p.a_k_stride, 1,
            used_a.data() + i * a_size);
    } else {
      std::copy_n(a.data() + i * m * k, m * k, used_a.data() + i * a_size);
    }
  }
  for (std::int64_t i = 0; i < b_matrices; ++i) {
    if (packed_b) {
      PackB(kernel, k, n, b.data() + i * k * n, p.b_k_stride, p.b_column_stride, 1,
            used_b.data() + i * b_size);
    } else {
      std::copy_n(b.data() + i * k * n, k * n, used_b.data() + i * b_size);
    }
  }
  for (int d = 0; d < 2; ++d) {
    p.a_batch_strides[d] = a_index[d] * a_size;
    p.b_batch_strides[d] = b_index[d] * b_size;
  }
  const std::int64_t matrices = c.batch[0] * c.batch[1];
  GuardedBuffer<float> out(size(matrices * m * n)), residual(size(matrices * m * n));
  GuardedBuffer<float> bias(size(n));
  FillRandom(residual, random);
  FillRandom(bias, random);

  const GemmTiling tiling = PlanGemm(p, kernel);
  GemmCall call{&p, &tiling, used_a.data(), used_b.data(), out.data(), {}, m * n};
  call.epilogue.column_bias = bias.data();
  call.epilogue.residual = residual.data();
  call.epilogue.residual_stride = n;
  call.epilogue.activation = Activation::kClip;
  call.epilogue.alpha = -2;
  call.epilogue.beta = 1e30f;
  // Any order, each tile with scratch of its own that starts as NaN and ends at a page.
  std::vector<std::int64_t> tiles(size(tiling.tiles));
  std::iota(tiles.begin(), tiles.end(), 0);
  std::shuffle(tiles.begin(), tiles.end(), random);
  for (std::int64_t tile : tiles) {
    GuardedBuffer<float> scratch(tiling.scratch_bytes / sizeof(float));
    RunGemmTile(call, tile, scratch.data());
  }
  for (std::int64_t x = 0; x < c.batch[0]; ++x)
    for (std::int64_t y = 0; y < c.batch[1]; ++y)
      for (std::int64_t i = 0; i < m; ++i)
        for (std::int64_t j = 0; j < n; ++j) {
          double want = 0;
          for (std::int64_t t = 0; t < k; ++t)
            want += static_cast<double>(a[size((x * a_index[0] + y * a_index[1]) * m * k +
                                               i * p.a_row_stride + t * p.a_k_stride)]) *
                    static_cast<double>(b[size((x * b_index[0] + y * b_index[1]) * k * n +
                                               t * p.b_k_stride + j * p.b_column_stride)]);
          const std::size_t at = size(((x * c.batch[1] + y) * m + i) * n + j);
          want += static_cast<double>(bias[size(j)]) + static_cast<double>(residual[at]);
          ASSERT_TRUE(Near(std::max(want, -2.0), out[at], bound))
              << kernel.name << " " << Text(c) << (packed_a ? " packed A" : "")
              << (packed_b ? " packed B" : "") << " matrix " << x << "," << y << " at " << i << ", "
              << j;
        }
}

TEST_P(GemmCheck, DriverMatchesPlainLoopsHoweverOperandsAreGiven) {
  const GemmKernel& kernel = GetParam();
  NPURT_SKIP_UNLESS_ISA(kernel.needs, kernel.name);
  std::mt19937 random(3);
  const Case cases[] = {
      {1, 1, 1},
      {1, 70, 300},
      {2, 1100, 37},
      {3, 33, 0},
      {5, 17, 19, true, false},
      {8, 40, 513},
      {13, 65, 257, false, true},
      {64, 48, 100, true, true},
      {100, 129, 300},
      {300, 7, 70},
      {250, 520, 30},
      {16, 140, 1024},  // rows a page apart
      {2, 20, 70000},   // panels longer than one look at whether to stop
      {9, 18, 33, false, false, {2, 3}, {true, false}, {false, true}},
      {40, 50, 20, false, true, {3, 2}, {false, false}, {true, true}},
  };
  for (const Case& c : cases)
    for (int way = 0; way < 4; ++way) {
      CheckDriver(kernel, c, (way & 1) != 0, (way & 2) != 0, random);
      if (HasFatalFailure()) return;
    }
}

TEST_P(GemmCheck, PaddingNeverReachesAResult) {
  const GemmKernel& kernel = GetParam();
  NPURT_SKIP_UNLESS_ISA(kernel.needs, kernel.name);
  // Infinities times the zeros of the padding are NaN, in columns and rows that do not exist.
  const std::int64_t m = kernel.tile_m + 1, n = kernel.tile_n + 1, k = 3;
  std::vector<float> a(static_cast<std::size_t>(m * k), kInf);
  std::vector<float> b(static_cast<std::size_t>(k * n), 1.0f), c(static_cast<std::size_t>(m * n));
  std::vector<float> pa(static_cast<std::size_t>(PackedASize(kernel, m, k)));
  std::vector<float> pb(static_cast<std::size_t>(PackedBSize(kernel, k, n)));
  PackA(kernel, m, k, a.data(), k, 1, 1, pa.data());
  PackB(kernel, k, n, b.data(), n, 1, 1, pb.data());
  GemmProblem p;
  p.m = m;
  p.n = n;
  p.k = k;
  p.packed_a = p.packed_b = true;
  const GemmTiling tiling = PlanGemm(p, kernel);
  const GemmCall call{&p, &tiling, pa.data(), pb.data(), c.data(), {}, 0};
  for (std::int64_t tile = 0; tile < tiling.tiles; ++tile) RunGemmTile(call, tile, nullptr);
  for (float x : c) ASSERT_EQ(x, kInf);
}

TEST_P(GemmCheck, EmptyProductsHaveNoTiles) {
  const GemmKernel& kernel = GetParam();
  GemmProblem p;
  p.m = 0;
  p.n = 5;
  p.k = 3;
  EXPECT_EQ(PlanGemm(p, kernel).tiles, 0);
  p.m = 5;
  p.batch_rank = 1;
  p.batch_dims[0] = 0;
  EXPECT_EQ(PlanGemm(p, kernel).tiles, 0);
}

INSTANTIATE_TEST_SUITE_P(Gemm, GemmCheck,
                         ::testing::ValuesIn(kGemmKernels, kGemmKernels + kGemmKernelCount),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(SelectGemmKernelTest, PicksTheBestKernelTheMaskAllows) {
  EXPECT_EQ(SelectGemmKernel(isa::kGeneric)->needs, isa::kGeneric);
#if defined(__x86_64__)
  EXPECT_EQ(SelectGemmKernel(isa::kAvx2)->needs, isa::kAvx2);
  EXPECT_EQ(SelectGemmKernel(isa::kAvx2 | isa::kAvx512)->needs, isa::kAvx512);
#endif
}

TEST(PlanGemmTest, RefusesToPackWhatDoesNotFit) {
  const GemmKernel& kernel = *SelectGemmKernel(isa::kGeneric);
  EXPECT_EQ(PackedBSize(kernel, std::int64_t{1} << 40, std::int64_t{1} << 30), 0);
  EXPECT_EQ(PackedASize(kernel, INT64_MAX, 2), 0);
}

}  // namespace
}  // namespace npurt::kernels
