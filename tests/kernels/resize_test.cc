// Resize kernels against products of taps, and the taps themselves on cases known by heart.
#include "kernels/resize/resize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "support/guarded_buffer.h"

namespace npurt::kernels {
namespace {

class ResizeCheck : public ::testing::TestWithParam<ResizeKernel> {};

TEST_P(ResizeCheck, MatchesTheProductOfTaps) {
  const ResizeKernel& kernel = GetParam();
  NPURT_SKIP_UNLESS_ISA(kernel.needs, kernel.name);
  std::mt19937 random(8);
  std::uniform_real_distribution<float> uniform(-2, 2);
  const auto pick = [&](int low, int high) {
    return low + static_cast<std::int64_t>(random() % static_cast<unsigned>(high - low + 1));
  };
  for (int round = 0; round < 60; ++round) {
    ResizeOptions options;
    options.mode = static_cast<ResizeMode>(pick(1, 2));
    options.coordinates = static_cast<ResizeCoordinates>(pick(0, 5));
    options.antialias = pick(0, 2) == 0;
    options.exclude_outside = pick(0, 2) == 0;
    options.extrapolation_value = 9;
    ResizeAxis axes[3];
    std::int64_t in_count = 1, out_count = 1;
    for (ResizeAxis& axis : axes) {
      axis.in = axis.out = pick(1, 9);
      if (pick(0, 2) != 0) {
        axis.out = pick(1, 20);
        axis.scale = static_cast<double>(axis.out) / static_cast<double>(axis.in);
        if (options.coordinates == ResizeCoordinates::kCropAndResize) axis.roi_end = 1.3;
      }
      in_count *= axis.in;
      out_count *= axis.out;
    }
    std::vector<char> block(ResizePlanBytes(axes, 3, options) + 8);
    void* start = reinterpret_cast<void*>(
        (reinterpret_cast<std::uintptr_t>(block.data()) + 7) / 8 * 8);
    const ResizePlan& plan = *PlanResize(axes, 3, options, start);
    GuardedBuffer<float> in(static_cast<std::size_t>(in_count));
    GuardedBuffer<float> out(static_cast<std::size_t>(out_count));
    GuardedBuffer<char> scratch(plan.scratch_bytes);
    for (float& x : in) x = uniform(random);
    for (std::int64_t t = plan.tiles - 1; t >= 0; --t)
      RunResizeTile(kernel, plan, in.data(), out.data(), t, scratch.data());
    for (std::int64_t i = 0; i < out_count; ++i) {
      std::vector<std::int64_t> index[3];
      std::vector<double> weight[3];
      std::int64_t rest = i, total = 1;
      bool inside = true;
      for (int a = 2; a >= 0; --a) {
        ResizeOptions own = options;
        const bool resized = axes[a].scale != 1 || axes[a].in != axes[a].out || axes[a].roi_end != 1;
        if (!resized) own.mode = ResizeMode::kNearest;
        index[a].resize(static_cast<std::size_t>(ResizeTapCount(axes[a], own)));
        weight[a].resize(index[a].size());
        inside &= ResizeTaps(axes[a], own, rest % axes[a].out, index[a].data(), weight[a].data());
        rest /= axes[a].out;
        total *= static_cast<std::int64_t>(index[a].size());
      }
      double want = 0;
      for (std::int64_t k = 0; k < total; ++k) {
        std::int64_t taps = k, at = 0, stride = 1;
        double w = 1;
        for (int a = 2; a >= 0; --a) {
          const std::int64_t n = static_cast<std::int64_t>(index[a].size());
          at += index[a][static_cast<std::size_t>(taps % n)] * stride;
          w *= weight[a][static_cast<std::size_t>(taps % n)];
          taps /= n;
          stride *= axes[a].in;
        }
        want += w * static_cast<double>(in[static_cast<std::size_t>(at)]);
      }
      if (!inside) want = 9;
      ASSERT_NEAR(out[static_cast<std::size_t>(i)], want, 2e-5)
          << kernel.name << " round " << round << " at " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Resize, ResizeCheck,
                         ::testing::ValuesIn(kResizeKernels, kResizeKernels + kResizeKernelCount),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(ResizeTapsTest, HalfPixelLinearDoublingBlendsThreeToOne) {
  const ResizeAxis axis = {4, 8, 2, 0, 1};
  ResizeOptions options;
  options.mode = ResizeMode::kLinear;
  std::int64_t index[2];
  double weight[2];
  ASSERT_EQ(ResizeTapCount(axis, options), 2);
  ASSERT_TRUE(ResizeTaps(axis, options, 1, index, weight));  // at 0.25
  EXPECT_EQ(index[0], 0);
  EXPECT_EQ(index[1], 1);
  EXPECT_DOUBLE_EQ(weight[0], 0.75);
  EXPECT_DOUBLE_EQ(weight[1], 0.25);
  ASSERT_TRUE(ResizeTaps(axis, options, 0, index, weight));  // at -0.25: the border repeats
  EXPECT_EQ(index[0], 0);
  EXPECT_EQ(index[1], 0);
}

TEST(ResizeTapsTest, NearestRoundsAsItIsTold) {
  const ResizeAxis axis = {2, 4, 2, 0, 1};  // asymmetric: 0, 0.5, 1, 1.5
  ResizeOptions options;
  options.coordinates = ResizeCoordinates::kAsymmetric;
  std::int64_t index;
  double weight;
  const struct {
    ResizeRounding rounding;
    std::int64_t want;
  } kCases[] = {{ResizeRounding::kPreferFloor, 0},
                {ResizeRounding::kPreferCeil, 1},
                {ResizeRounding::kFloor, 0},
                {ResizeRounding::kCeil, 1}};
  for (const auto& c : kCases) {
    options.rounding = c.rounding;
    ResizeTaps(axis, options, 1, &index, &weight);
    EXPECT_EQ(index, c.want);
  }
}

TEST(ResizeNearestTest, MovesElementsOfEverySize) {
  const ResizeAxis axes[] = {{2, 2, 1, 0, 1}, {3, 6, 2, 0, 1}, {4, 8, 2, 0, 1}};
  for (std::size_t width : {1u, 2u, 4u, 8u, 16u}) {
    ResizeOptions options;
    std::vector<std::int64_t> block(ResizePlanBytes(axes, 3, options) / 8 + 1);
    const ResizePlan& plan = *PlanResize(axes, 3, options, block.data());
    GuardedBuffer<unsigned char> in(2 * 3 * 4 * width), out(2 * 6 * 8 * width);
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<unsigned char>(i * 5);
    const unsigned char beyond[16] = {};
    for (std::int64_t t = plan.tiles - 1; t >= 0; --t)
      RunResizeNearestTile(plan, width, beyond, in.data(), out.data(), t);
    for (std::size_t p = 0; p < 2; ++p)
      for (std::size_t y = 0; y < 6; ++y)
        for (std::size_t x = 0; x < 8; ++x)
          ASSERT_EQ(std::memcmp(out.data() + ((p * 6 + y) * 8 + x) * width,
                                in.data() + ((p * 3 + y / 2) * 4 + x / 2) * width, width),
                    0)
              << width << " at " << p << " " << y << " " << x;
  }
}

}  // namespace
}  // namespace npurt::kernels
