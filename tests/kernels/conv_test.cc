// Conv and Depthwise: every kernel row against plain loops, over many geometries.
#include "kernels/conv/conv.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <sstream>
#include <vector>

#include "base/cpu_isa.h"
#include "kernels/channels_last/conv.h"
#include "kernels/channels_last/depthwise.h"
#include "kernels/channels_last/winograd.h"
#include "kernels/depthwise/depthwise.h"
#include "kernels/winograd/winograd.h"
#include "support/guarded_buffer.h"

namespace npurt::kernels {
namespace {

std::size_t Size(std::int64_t x) { return static_cast<std::size_t>(x); }

std::int64_t Volume(const std::int64_t dims[kConvRank]) { return dims[0] * dims[1] * dims[2]; }

std::string Text(const ConvProblem& p) {
  std::ostringstream out;
  out << (p.transposed ? "transposed " : "") << "batch " << p.batch << " groups " << p.groups << " "
      << p.in_channels << "->" << p.out_channels;
  for (int d = 0; d < kConvRank; ++d)
    out << " | in " << p.in[d] << " out " << p.out[d] << " kernel " << p.kernel[d] << " stride "
        << p.stride[d] << " dilation " << p.dilation[d] << " pad " << p.pad[d];
  return out.str();
}

struct Operands {
  explicit Operands(const ConvProblem& p, std::mt19937& random)
      : image(Size(p.batch * p.groups * p.in_channels * Volume(p.in))),
        weights(Size(p.groups * p.in_channels * p.out_channels * Volume(p.kernel))),
        bias(Size(p.groups * p.out_channels)),
        residual(Size(p.batch * p.groups * p.out_channels * Volume(p.out))),
        out(residual.size()) {
    std::uniform_real_distribution<float> next(-1, 1);
    for (GuardedBuffer<float>* buffer : {&image, &weights, &bias, &residual})
      for (float& x : *buffer) x = next(random);
  }
  GuardedBuffer<float> image, weights, bias, residual, out;
};

// The definition, as a sum over input pixels that reach an output.
void ExpectPlainResult(const ConvProblem& p, const Operands& o, const Epilogue& e,
                       const char* kernel) {
  const std::int64_t taps = Volume(p.kernel), in_plane = Volume(p.in);
  std::size_t at = 0;
  for (std::int64_t n = 0; n < p.batch; ++n)
    for (std::int64_t channel = 0; channel < p.groups * p.out_channels; ++channel)
      for (std::int64_t z = 0; z < p.out[0]; ++z)
        for (std::int64_t y = 0; y < p.out[1]; ++y)
          for (std::int64_t x = 0; x < p.out[2]; ++x, ++at) {
            const std::int64_t group = channel / p.out_channels;
            double want = static_cast<double>(o.bias[Size(channel)]);
            for (std::int64_t tap = 0; tap < taps; ++tap) {
              const std::int64_t t[kConvRank] = {tap / p.kernel[2] / p.kernel[1],
                                                 tap / p.kernel[2] % p.kernel[1],
                                                 tap % p.kernel[2]};
              const std::int64_t place[kConvRank] = {z, y, x};
              std::int64_t i[kConvRank];
              bool hit = true;
              for (int d = 0; d < kConvRank; ++d) {
                if (p.transposed) {
                  const std::int64_t distance = place[d] + p.pad[d] - t[d] * p.dilation[d];
                  hit = hit && distance % p.stride[d] == 0;
                  i[d] = distance / p.stride[d];
                  hit = hit && distance >= 0;
                } else {
                  i[d] = place[d] * p.stride[d] - p.pad[d] + t[d] * p.dilation[d];
                }
                hit = hit && i[d] >= 0 && i[d] < p.in[d];
              }
              if (!hit) continue;
              const std::int64_t pixel = (i[0] * p.in[1] + i[1]) * p.in[2] + i[2];
              for (std::int64_t c = 0; c < p.in_channels; ++c) {
                const std::int64_t in_channel = group * p.in_channels + c;
                const std::int64_t weight =
                    p.transposed
                        ? (in_channel * p.out_channels + channel % p.out_channels) * taps + tap
                        : (channel * p.in_channels + c) * taps + tap;
                want += static_cast<double>(o.image[Size(
                            (n * p.groups * p.in_channels + in_channel) * in_plane + pixel)]) *
                        static_cast<double>(o.weights[Size(weight)]);
              }
            }
            if (e.residual != nullptr) want += static_cast<double>(o.residual[at]);
            if (e.activation == Activation::kRelu) want = want < 0 ? 0 : want;
            if (e.activation == Activation::kTanh) want = std::tanh(want);
            ASSERT_NEAR(o.out[at], want, 3e-5 * (1 + std::fabs(want)))
                << kernel << " " << Text(p) << " at " << n << "," << channel << "," << z << "," << y
                << "," << x;
          }
}

// Runs all tiles in any order, each with scratch of its own that starts as NaN and ends at a page.
template <typename Run>
void RunTiles(std::int64_t tiles, std::size_t scratch_bytes, std::mt19937& random, Run run) {
  std::vector<std::int64_t> order(Size(tiles));
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  for (std::int64_t tile : order) {
    GuardedBuffer<float> scratch((scratch_bytes + 3) / 4);
    run(tile, scratch.data());
  }
}

Epilogue EpilogueFor(const ConvProblem& p, const Operands& o, int variant) {
  Epilogue e;
  e.row_bias = o.bias.data();
  if (!p.transposed && variant % 2 == 1) e.residual = o.residual.data();
  e.activation = variant % 3 == 0   ? Activation::kNone
                 : variant % 3 == 1 ? Activation::kRelu
                                    : Activation::kTanh;
  return e;
}

void CheckConv(const GemmKernel& kernel, const ConvProblem& p, bool packed, std::mt19937& random) {
  Operands o(p, random);
  GuardedBuffer<float> weights(Size(PackedConvWeightsSize(kernel, p)));
  std::vector<float> row(Size(ConvWeightsScratchSize(p)));
  PackConvWeights(kernel, p, o.weights.data(), row.data(), weights.data());
  const ConvTiling tiling = PlanConv(p, kernel);
  ASSERT_GE(tiling.tiles, 0) << Text(p);
  const Epilogue e = EpilogueFor(p, o, static_cast<int>(random() % 6));
  const ConvCall call{
      &p,           &tiling, o.image.data(), packed ? weights.data() : o.weights.data(), packed,
      o.out.data(), e};
  RunTiles(tiling.tiles, tiling.scratch_bytes, random,
           [&](std::int64_t tile, float* scratch) { RunConvTile(call, tile, scratch); });
  ExpectPlainResult(p, o, e, kernel.name);
}

ConvProblem Problem2D(std::int64_t groups, std::int64_t in_channels, std::int64_t out_channels,
                      std::int64_t height, std::int64_t width, std::int64_t kernel,
                      std::int64_t stride, std::int64_t pad, std::int64_t dilation = 1) {
  ConvProblem p;
  p.groups = groups;
  p.in_channels = in_channels;
  p.out_channels = out_channels;
  const std::int64_t in[2] = {height, width};
  for (int d = 1; d < kConvRank; ++d) {
    p.in[d] = in[d - 1];
    p.kernel[d] = kernel;
    p.stride[d] = stride;
    p.pad[d] = pad;
    p.dilation[d] = dilation;
    p.out[d] =
        std::max<std::int64_t>(0, (p.in[d] + 2 * pad - (kernel - 1) * dilation - 1) / stride + 1);
  }
  return p;
}

// Small numbers of everything, up to three dimensions.
ConvProblem RandomProblem(bool transposed, std::mt19937& random) {
  const auto pick = [&](int least, int most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random);
  };
  ConvProblem p;
  p.transposed = transposed;
  p.batch = pick(1, 2);
  p.groups = pick(1, 3);
  p.in_channels = pick(1, 5);
  p.out_channels = pick(1, 9);
  const int rank = static_cast<int>(pick(1, 3));
  for (int d = kConvRank - rank; d < kConvRank; ++d) {
    p.in[d] = pick(1, rank == 1 ? 700 : 12);
    p.kernel[d] = pick(1, 4);
    p.stride[d] = pick(1, 3);
    p.dilation[d] = pick(1, 3);
    p.pad[d] = pick(0, 3);
    const std::int64_t reach = (p.kernel[d] - 1) * p.dilation[d] + 1, end_pad = pick(0, 3);
    p.out[d] = transposed ? (p.in[d] - 1) * p.stride[d] + reach - p.pad[d] - end_pad + pick(0, 1)
                          : (p.in[d] + p.pad[d] + end_pad - reach) / p.stride[d] + 1;
    if (!transposed && p.in[d] + p.pad[d] + end_pad < reach) p.out[d] = 0;
    p.out[d] = std::max<std::int64_t>(p.out[d], 0);
  }
  return p;
}

class ConvCheck : public ::testing::TestWithParam<GemmKernel> {};

TEST_P(ConvCheck, MatchesPlainLoopsOnChosenShapes) {
  const GemmKernel& kernel = GetParam();
  NPURT_SKIP_UNLESS_ISA(kernel.needs, kernel.name);
  std::mt19937 random(1);
  std::vector<ConvProblem> problems = {
      Problem2D(1, 3, 40, 33, 35, 3, 2, 1),     // a first layer
      Problem2D(1, 33, 50, 14, 14, 3, 1, 1),    // several blocks of k
      Problem2D(1, 60, 130, 7, 7, 1, 1, 0),     // the image itself, packed per tile
      Problem2D(1, 60, 5, 30, 31, 1, 1, 0),     // the image itself, in place
      Problem2D(1, 20, 9, 15, 15, 1, 2, 0),     // one residue of two
      Problem2D(4, 5, 7, 12, 13, 3, 1, 2, 2),   // groups, dilation
      Problem2D(1, 2, 3, 9, 700, 3, 1, 1),      // lines longer than a tile
      Problem2D(1, 300, 4, 3, 3, 3, 1, 1),      // few pixels, much k
      Problem2D(1, 3, 4, 16, 16, 16, 16, 0),    // patches
      Problem2D(1, 2, 3, 20, 20, 2, 1, 19, 19)  // taps far apart
  };
  ConvProblem line;  // 1-D, with taps so far apart that no stage holds them
  line.in_channels = 2;
  line.out_channels = 3;
  line.in[2] = 400000;
  line.kernel[2] = 2;
  line.dilation[2] = 399000;
  line.out[2] = 1000;
  problems.push_back(line);
  ConvProblem volume = Problem2D(1, 4, 6, 9, 10, 3, 1, 1);
  volume.in[0] = 8;
  volume.kernel[0] = 3;
  volume.pad[0] = 1;
  volume.out[0] = 8;
  problems.push_back(volume);
  ConvProblem batch = Problem2D(2, 8, 8, 6, 5, 3, 1, 1);
  batch.batch = 3;
  problems.push_back(batch);
  for (const ConvProblem& p : problems)
    for (bool packed : {true, false}) {
      CheckConv(kernel, p, packed, random);
      if (HasFatalFailure()) return;
    }
}

TEST_P(ConvCheck, MatchesPlainLoopsOnRandomShapes) {
  const GemmKernel& kernel = GetParam();
  NPURT_SKIP_UNLESS_ISA(kernel.needs, kernel.name);
  std::mt19937 random(2);
  for (int i = 0; i < 150; ++i) {
    CheckConv(kernel, RandomProblem(false, random), i % 2 == 0, random);
    if (HasFatalFailure()) return;
  }
}

TEST_P(ConvCheck, TransposedMatchesPlainLoopsOnChosenShapes) {
  const GemmKernel& kernel = GetParam();
  NPURT_SKIP_UNLESS_ISA(kernel.needs, kernel.name);
  std::mt19937 random(3);
  const auto transposed = [](std::int64_t in_channels, std::int64_t out_channels, std::int64_t size,
                             std::int64_t k, std::int64_t stride, std::int64_t pad,
                             std::int64_t extra) {
    ConvProblem p;
    p.transposed = true;
    p.in_channels = in_channels;
    p.out_channels = out_channels;
    for (int d = 1; d < kConvRank; ++d) {
      p.in[d] = size + d;
      p.kernel[d] = k;
      p.stride[d] = stride;
      p.pad[d] = pad;
      p.out[d] = (p.in[d] - 1) * stride + k - 2 * pad + extra;
    }
    return p;
  };
  for (const ConvProblem& p :
       {transposed(20, 9, 13, 2, 2, 0, 0),   // no overlap
        transposed(20, 60, 13, 2, 2, 0, 0),  // the same, packed per tile
        transposed(9, 5, 12, 3, 2, 1, 1),    // the usual up-sampling
        transposed(9, 5, 12, 4, 2, 1, 0), transposed(3, 4, 5, 2, 3, 0, 1),  // phases without taps
        transposed(70, 3, 40, 3, 1, 1, 0)}) {
    CheckConv(kernel, p, true, random);
    if (HasFatalFailure()) return;
  }
}

TEST_P(ConvCheck, TransposedMatchesPlainLoopsOnRandomShapes) {
  const GemmKernel& kernel = GetParam();
  NPURT_SKIP_UNLESS_ISA(kernel.needs, kernel.name);
  std::mt19937 random(4);
  for (int i = 0; i < 150; ++i) {
    CheckConv(kernel, RandomProblem(true, random), true, random);
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Conv, ConvCheck,
                         ::testing::ValuesIn(kGemmKernels, kGemmKernels + kGemmKernelCount),
                         [](const auto& info) { return std::string(info.param.name); });

// --- Channels last --------------------------------------------------------------------------------

// [batch, channels, pixels] to [batch, pixels, channels], or back.
void Reorder(const GuardedBuffer<float>& from, std::int64_t batch, std::int64_t channels,
             std::int64_t pixels, bool to_last, GuardedBuffer<float>* to) {
  for (std::int64_t n = 0; n < batch; ++n)
    for (std::int64_t c = 0; c < channels; ++c)
      for (std::int64_t i = 0; i < pixels; ++i) {
        const std::size_t first = Size((n * channels + c) * pixels + i);
        const std::size_t last = Size((n * pixels + i) * channels + c);
        (*to)[to_last ? last : first] = from[to_last ? first : last];
      }
}

// `run(image, epilogue, out)` computes the whole convolution with the channels last.
template <typename Run>
void CheckLast(const ConvProblem& p, const char* kernel, std::mt19937& random, Run run) {
  Operands o(p, random);
  GuardedBuffer<float> image(o.image.size()), residual(o.out.size()), out(o.out.size());
  Reorder(o.image, p.batch, p.groups * p.in_channels, Volume(p.in), true, &image);
  Reorder(o.residual, p.batch, p.groups * p.out_channels, Volume(p.out), true, &residual);
  const Epilogue e = EpilogueFor(p, o, static_cast<int>(random() % 6));
  Epilogue last = e;
  std::swap(last.row_bias, last.column_bias);
  if (e.residual != nullptr) last.residual = residual.data();
  run(o, image.data(), last, out.data());
  Reorder(out, p.batch, p.groups * p.out_channels, Volume(p.out), false, &o.out);
  ExpectPlainResult(p, o, e, kernel);
}

void CheckChannelsLast(const GemmKernel& kernel, const ConvProblem& p, std::mt19937& random) {
  CheckLast(p, kernel.name, random,
            [&](const Operands& o, const float* image, const Epilogue& e, float* out) {
              GuardedBuffer<float> weights(Size(PackedChannelsLastSize(kernel, p)));
              std::vector<float> row(Size(ConvWeightsScratchSize(p)));
              PackChannelsLastWeights(kernel, p, o.weights.data(), row.data(), weights.data());
              const ChannelsLastTiling tiling = PlanChannelsLast(p, kernel);
              ASSERT_GE(tiling.tiles, 0) << Text(p);
              const ChannelsLastCall call{&p, &tiling, image, weights.data(), out, e};
              RunTiles(tiling.tiles, tiling.scratch_bytes, random,
                       [&](std::int64_t tile, float* scratch) {
                         RunChannelsLastTile(call, tile, scratch);
                       });
            });
}

TEST_P(ConvCheck, ChannelsLastMatchesPlainLoopsOnChosenShapes) {
  const GemmKernel& kernel = GetParam();
  NPURT_SKIP_UNLESS_ISA(kernel.needs, kernel.name);
  std::mt19937 random(11);
  ConvProblem batch = Problem2D(1, 8, 40, 6, 5, 3, 1, 1);
  batch.batch = 3;
  for (const ConvProblem& p :
       {Problem2D(1, 3, 40, 33, 35, 7, 2, 3), Problem2D(1, 33, 50, 14, 14, 3, 1, 1),
        Problem2D(1, 60, 130, 7, 7, 1, 1, 0), Problem2D(1, 60, 5, 30, 31, 1, 2, 0),
        Problem2D(1, 20, 9, 15, 15, 3, 1, 2, 2), Problem2D(1, 300, 40, 3, 3, 3, 1, 1),
        Problem2D(1, 270, 40, 5, 5, 1, 1, 1), Problem2D(1, 3, 4, 16, 16, 16, 16, 0),
        Problem2D(1, 2, 3, 20, 20, 2, 1, 19, 19), Problem2D(1, 40, 600, 40, 40, 3, 1, 1),
        Problem2D(1, 40, 50, 20, 21, 3, 1, 2, 2), Problem2D(1, 130, 33, 13, 11, 3, 2, 1),
        Problem2D(1, 140, 5, 4, 3, 3, 1, 5, 4), Problem2D(7, 12, 20, 13, 14, 3, 2, 1), batch}) {
    CheckChannelsLast(kernel, p, random);
    if (HasFatalFailure()) return;
  }
}

TEST_P(ConvCheck, ChannelsLastMatchesPlainLoopsOnRandomShapes) {
  const GemmKernel& kernel = GetParam();
  NPURT_SKIP_UNLESS_ISA(kernel.needs, kernel.name);
  std::mt19937 random(12);
  for (int i = 0; i < 200; ++i) {
    ConvProblem p = RandomProblem(false, random);
    p.in[0] = p.out[0] = p.kernel[0] = p.stride[0] = p.dilation[0] = 1;
    p.pad[0] = 0;
    if (i % 3 != 0) p.groups = 1;
    p.in_channels = 1 + static_cast<std::int64_t>(random() % 40);
    p.out_channels = 1 + static_cast<std::int64_t>(random() % 70);
    CheckChannelsLast(kernel, p, random);
    if (HasFatalFailure()) return;
  }
}

TEST_P(ConvCheck, ChannelsLastLeavesOtherProblemsAlone) {
  ConvProblem volume = Problem2D(1, 2, 2, 5, 5, 3, 1, 1);
  volume.in[0] = volume.out[0] = 2;
  EXPECT_EQ(PlanChannelsLast(volume, GetParam()).tiles, -1);
  EXPECT_EQ(PlanChannelsLast(Problem2D(1, 2, 2, 50, 50, 33, 1, 1), GetParam()).tiles, -1);
  ConvProblem huge = Problem2D(1, 2, 2, 5, 5, 3, 1, 1);
  huge.in[1] = std::int64_t{1} << 61;
  EXPECT_EQ(PlanChannelsLast(huge, GetParam()).tiles, -1);
}

TEST_P(ConvCheck, WinogradChannelsLastMatchesPlainLoops) {
  const GemmKernel& kernel = GetParam();
  NPURT_SKIP_UNLESS_ISA(kernel.needs, kernel.name);
  std::mt19937 random(13);
  ConvProblem batch = Problem2D(1, 33, 35, 6, 5, 3, 1, 1);
  batch.batch = 3;
  ConvProblem uneven = Problem2D(1, 40, 150, 13, 21, 3, 1, 0);
  uneven.pad[1] = 2;
  uneven.out[1] = 12;
  for (const ConvProblem& p : {Problem2D(1, 32, 32, 2, 2, 3, 1, 1), Problem2D(1, 50, 60, 33, 35, 3, 1, 1),
                               Problem2D(1, 300, 40, 7, 9, 3, 1, 2), batch, uneven}) {
    CheckLast(p, kernel.name, random,
              [&](const Operands& o, const float* image, const Epilogue& e, float* out) {
                GuardedBuffer<float> weights(Size(PackedWinogradLastSize(kernel, p)));
                std::vector<float> plain(Size(p.in_channels * p.out_channels));
                PackWinogradLastWeights(kernel, p, o.weights.data(), plain.data(), weights.data());
                const WinogradLastTiling tiling =
                    PlanWinogradLast(p, *SelectWinogradLastKernel(kernel.needs), kernel);
                const WinogradLastCall call{&p, &tiling, image, weights.data(), out, e};
                RunTiles(tiling.tiles, tiling.scratch_bytes, random,
                         [&](std::int64_t tile, float* scratch) {
                           RunWinogradLastTile(call, tile, scratch);
                         });
              });
    if (HasFatalFailure()) return;
  }
}

class DepthwiseLastCheck : public ::testing::TestWithParam<DepthwiseLastKernel> {};

void CheckDepthwiseLast(const DepthwiseLastKernel& kernel, const ConvProblem& p,
                        std::mt19937& random) {
  CheckLast(p, kernel.name, random,
            [&](const Operands& o, const float* image, const Epilogue& e, float* out) {
              GuardedBuffer<float> weights(o.weights.size());
              PackDepthwiseLast(p.groups, Volume(p.kernel), o.weights.data(), weights.data());
              const DepthwiseLastTiling tiling = PlanDepthwiseLast(p, kernel);
              ASSERT_GE(tiling.tiles, 0) << Text(p);
              const DepthwiseLastCall call{&p, &tiling, image, weights.data(), out, e};
              RunTiles(tiling.tiles, 0, random,
                       [&](std::int64_t tile, float*) { RunDepthwiseLastTile(call, tile); });
            });
}

TEST_P(DepthwiseLastCheck, MatchesPlainLoops) {
  const DepthwiseLastKernel& kernel = GetParam();
  NPURT_SKIP_UNLESS_ISA(kernel.needs, kernel.name);
  std::mt19937 random(14);
  for (std::int64_t channels = 1; channels <= 70; ++channels) {  // every tail
    CheckDepthwiseLast(kernel, Problem2D(channels, 1, 1, 5, 11, 3, 1, 1), random);
    if (HasFatalFailure()) return;
  }
  for (int i = 0; i < 200; ++i) {
    ConvProblem p = RandomProblem(false, random);
    p.in[0] = p.out[0] = p.kernel[0] = p.stride[0] = p.dilation[0] = 1;
    p.pad[0] = 0;
    p.in_channels = p.out_channels = 1;
    p.groups = 1 + static_cast<std::int64_t>(random() % 40);
    CheckDepthwiseLast(kernel, p, random);
    if (HasFatalFailure()) return;
  }
}

TEST_P(DepthwiseLastCheck, LeavesOtherProblemsAlone) {
  EXPECT_EQ(PlanDepthwiseLast(Problem2D(4, 2, 1, 5, 5, 3, 1, 1), GetParam()).tiles, -1);
  EXPECT_EQ(PlanDepthwiseLast(Problem2D(4, 1, 1, 50, 50, 17, 1, 1), GetParam()).tiles, -1);
}

INSTANTIATE_TEST_SUITE_P(Conv, DepthwiseLastCheck,
                         ::testing::ValuesIn(kDepthwiseLastKernels,
                                             kDepthwiseLastKernels + kDepthwiseLastKernelCount),
                         [](const auto& info) { return std::string(info.param.name); });

class DepthwiseCheck : public ::testing::TestWithParam<DepthwiseKernel> {};

void CheckDepthwise(const DepthwiseKernel& kernel, const ConvProblem& p, std::mt19937& random) {
  Operands o(p, random);
  const DepthwiseTiling tiling = PlanDepthwise(p, kernel);
  ASSERT_GE(tiling.tiles, 0) << Text(p);
  const Epilogue e = EpilogueFor(p, o, static_cast<int>(random() % 6));
  const DepthwiseCall call{&p, &tiling, o.image.data(), o.weights.data(), o.out.data(), e};
  RunTiles(tiling.tiles, tiling.scratch_bytes, random,
           [&](std::int64_t tile, float* scratch) { RunDepthwiseTile(call, tile, scratch); });
  ExpectPlainResult(p, o, e, kernel.name);
}

TEST_P(DepthwiseCheck, MatchesPlainLoopsOnChosenShapes) {
  const DepthwiseKernel& kernel = GetParam();
  NPURT_SKIP_UNLESS_ISA(kernel.needs, kernel.name);
  std::mt19937 random(5);
  for (std::int64_t width = 1; width <= 70; ++width) {  // every tail
    CheckDepthwise(kernel, Problem2D(3, 1, 1, 9, width, 3, 1, 1), random);
    if (HasFatalFailure()) return;
  }
  for (const ConvProblem& p :
       {Problem2D(8, 1, 1, 40, 41, 3, 2, 1), Problem2D(8, 1, 2, 20, 21, 5, 1, 2),
        Problem2D(4, 1, 1, 30, 30, 7, 3, 3), Problem2D(4, 1, 1, 30, 30, 3, 1, 4, 4),
        Problem2D(2, 1, 1, 500, 60, 3, 1, 1), Problem2D(100, 1, 1, 4, 4, 3, 1, 1),
        Problem2D(1, 40, 3, 30, 33, 3, 1, 1), Problem2D(5, 4, 4, 9, 10, 3, 2, 1)}) {
    CheckDepthwise(kernel, p, random);
    if (HasFatalFailure()) return;
  }
}

TEST_P(DepthwiseCheck, MatchesPlainLoopsOnRandomShapes) {
  const DepthwiseKernel& kernel = GetParam();
  NPURT_SKIP_UNLESS_ISA(kernel.needs, kernel.name);
  std::mt19937 random(6);
  for (int i = 0; i < 150; ++i) {
    ConvProblem p = RandomProblem(false, random);
    p.in[0] = p.out[0] = p.kernel[0] = p.stride[0] = p.dilation[0] = 1;
    p.pad[0] = 0;
    CheckDepthwise(kernel, p, random);
    if (HasFatalFailure()) return;
  }
}

TEST_P(DepthwiseCheck, LeavesOtherProblemsToConv) {
  ConvProblem p = Problem2D(4, 2, 2, 5, 5, 3, 1, 1);
  p.kernel[0] = 2;
  EXPECT_EQ(PlanDepthwise(p, GetParam()).tiles, -1);
  p = Problem2D(1, 2000, 1, 5, 5, 3, 1, 1);
  EXPECT_EQ(PlanDepthwise(p, GetParam()).tiles, -1);
  p = Problem2D(1, 1, 1, 100000, 100000, 3, 1, 0, 40000);
  EXPECT_EQ(PlanDepthwise(p, GetParam()).tiles, -1);
}

INSTANTIATE_TEST_SUITE_P(Depthwise, DepthwiseCheck,
                         ::testing::ValuesIn(kDepthwiseKernels,
                                             kDepthwiseKernels + kDepthwiseKernelCount),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(PlanConvTest, ReportsSizesThatOverflow) {
  ConvProblem p = Problem2D(1, 3, 4, 8, 8, 3, 1, 1);
  p.in[1] = p.in[2] = std::int64_t{1} << 40;
  EXPECT_EQ(PlanConv(p, *SelectGemmKernel(isa::kGeneric)).tiles, -1);
  EXPECT_EQ(PackedConvWeightsSize(*SelectGemmKernel(isa::kGeneric), p), 0);
}

TEST(PlanConvTest, EmptyOutputsHaveNoTiles) {
  ConvProblem p = Problem2D(1, 3, 4, 8, 8, 3, 1, 1);
  p.batch = 0;
  EXPECT_EQ(PlanConv(p, *SelectGemmKernel(isa::kGeneric)).tiles, 0);
}

// --- Winograd

const GemmKernel& GemmFor(std::uint32_t needs) { return *SelectGemmKernel(needs); }

void CheckWinograd(const WinogradKernel& kernel, const ConvProblem& p, int variant,
                   std::mt19937& random) {
  ASSERT_TRUE(WinogradSuits(p)) << Text(p);
  const GemmKernel& gemm = GemmFor(kernel.needs);
  Operands o(p, random);
  GuardedBuffer<float> weights(Size(PackedWinogradSize(gemm, p)));
  std::vector<float> plain(Size(p.out_channels * p.in_channels));
  PackWinogradWeights(gemm, p, o.weights.data(), plain.data(), weights.data());
  const WinogradTiling tiling = PlanWinograd(p, kernel, gemm);
  ASSERT_GE(tiling.tiles, 0) << Text(p);
  const Epilogue e = EpilogueFor(p, o, variant);
  const WinogradCall call{&p, &tiling, o.image.data(), weights.data(), o.out.data(), e};
  RunTiles(tiling.tiles, tiling.scratch_bytes, random,
           [&](std::int64_t tile, float* scratch) { RunWinogradTile(call, tile, scratch); });
  ExpectPlainResult(p, o, e, kernel.name);
}

class WinogradCheck : public ::testing::TestWithParam<WinogradKernel> {};

TEST_P(WinogradCheck, MatchesPlainLoops) {
  const WinogradKernel& kernel = GetParam();
  NPURT_SKIP_UNLESS_ISA(kernel.needs, kernel.name);
  std::mt19937 random(8);
  std::vector<ConvProblem> problems;
  for (std::int64_t size : {1, 2, 3, 4, 7, 8, 15, 30})
    problems.push_back(Problem2D(1, 32, 33, size, size + size % 3, 3, 1, 1));
  problems.push_back(Problem2D(1, 300, 40, 9, 9, 3, 1, 1));    // two blocks of k
  problems.push_back(Problem2D(1, 32, 270, 14, 14, 3, 1, 0));  // three of output channels
  problems.push_back(
      Problem2D(2, 32, 32, 6, 70, 3, 1, 2));  // groups, lines over a panel, wide pads
  problems.push_back(Problem2D(1, 32, 32, 40, 41, 3, 1, 1));  // several bands
  problems.back().batch = 2;
  problems.push_back(Problem2D(1, 32, 32, 12, 12, 3, 1, 1));  // pads at the end only
  problems.back().pad[1] = problems.back().pad[2] = 0;
  int variant = 0;
  for (const ConvProblem& p : problems) {
    CheckWinograd(kernel, p, variant++, random);
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, WinogradCheck,
                         ::testing::ValuesIn(kWinogradKernels,
                                             kWinogradKernels + kWinogradKernelCount),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace npurt::kernels
