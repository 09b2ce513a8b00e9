// Channels-last convolution: weight packing, plan and tile driver. See conv.h.
#include "kernels/channels_last/conv.h"

#include <algorithm>
#include <cstring>

#include "base/checked_math.h"
#include "kernels/channels_last/window.h"

namespace npurt::kernels {
namespace {

std::int64_t KernelVolume(const ConvProblem& p) { return p.kernel[1] * p.kernel[2]; }

// Columns of an image line that some output reads, the padding included.
std::int64_t ReadWidth(const ConvProblem& p) {
  return (p.out[2] - 1) * p.stride[2] + (p.kernel[2] - 1) * p.dilation[2] + 1;
}
// Lines that `rows` output lines read.
std::int64_t ReadLines(const ConvProblem& p, std::int64_t rows) {
  return (rows - 1) * p.stride[1] + (p.kernel[1] - 1) * p.dilation[1] + 1;
}

}  // namespace

std::int64_t PackedChannelsLastSize(const GemmKernel& kernel, const ConvProblem& p) {
  std::int64_t size;
  if (!ConvSizesFit(p) ||
      !CheckedMul(PackedBSize(kernel, p.in_channels * KernelVolume(p), p.out_channels), p.groups, &size))
    return 0;
  return size;
}

void PackChannelsLastWeights(const GemmKernel& kernel, const ConvProblem& p, const float* weights,
                             float* row, float* packed) {
  const std::int64_t taps = KernelVolume(p), k = taps * p.in_channels;
  for (std::int64_t g = 0; g < p.groups; ++g, weights += p.out_channels * k) {
    float* to = row;
    for (std::int64_t o = 0; o < p.out_channels; ++o)
      for (std::int64_t tap = 0; tap < taps; ++tap)
        for (std::int64_t c = 0; c < p.in_channels; ++c)
          std::memcpy(to++, weights + (o * p.in_channels + c) * taps + tap, sizeof(float));  // any alignment
    PackB(kernel, k, p.out_channels, row, 1, k, 1.0f, packed);
    packed += PackedBSize(kernel, k, p.out_channels);
  }
}

ChannelsLastTiling PlanChannelsLast(const ConvProblem& p, const GemmKernel& kernel) {
  ChannelsLastTiling t;
  t.kernel = &kernel;
  if (!ConvSizesFit(p) || p.transposed || p.in[0] != 1 || p.out[0] != 1 || p.kernel[0] != 1 ||
      KernelVolume(p) > kMostChannelsLastTaps) {
    t.tiles = -1;
    return t;
  }
  const std::int64_t pixels = p.out[1] * p.out[2];
  if (p.batch * p.groups * p.out_channels * pixels == 0) return t;
  const std::int64_t k = p.in_channels * KernelVolume(p);
  t.flat = KernelVolume(p) == 1 && p.groups == 1 && p.stride[1] == 1 && p.stride[2] == 1 &&
           p.pad[1] == 0 && p.pad[2] == 0 && p.in[1] == p.out[1] && p.in[2] == p.out[2];
  if (t.flat) {
    t.product.m = p.batch * pixels;
    t.product.n = p.out_channels;
    t.product.k = k;
    t.product.a_row_stride = k;
    t.product.packed_b = true;
    t.product_tiling = PlanGemm(t.product, kernel);
    t.tiles = t.product_tiling.tiles;
    t.flops_per_tile = t.product_tiling.flops_per_tile;
    t.scratch_bytes = t.product_tiling.scratch_bytes;
    return t;
  }

  // Copying lines costs less than adding up taps one by one where the sums of a tap are short.
  const std::int64_t first = -p.pad[2], end = first + ReadWidth(p);
  const bool outside = first < 0 || end > p.in[2];
  const bool dilated = p.dilation[1] > 1 || p.dilation[2] > 1;
  t.by_tap = outside && p.groups == 1 && p.in_channels >= (dilated ? 32 : kernel.kc / 2);
  t.staged = outside && !t.by_tap;
  const std::int64_t all_channels = p.groups * p.in_channels;
  t.line = (t.staged ? ReadWidth(p) : p.in[2]) * all_channels;
  // Taps of a line that lie side by side are one run with their channels.
  const bool joined = !t.by_tap && p.groups == 1 && (p.dilation[2] == 1 || p.kernel[2] == 1);
  t.run = joined ? p.kernel[2] * p.in_channels : p.in_channels;
  t.segments = joined ? p.kernel[1] : KernelVolume(p);
  t.segment_block =
      t.by_tap ? 1 : std::max<std::int64_t>(kernel.kc / std::max<std::int64_t>(t.run, 1), 1);
  t.run_block = std::max<std::int64_t>(t.run, 1);
  if (t.run > kernel.kc)
    t.run_block = RoundUp(CeilDiv(t.run, CeilDiv<std::int64_t>(t.run, kernel.kc)), 4);

  // As in PlanGemm: about 32 tiles of at most a millisecond, whose lines stay in the second-level
  // cache.
  const double flops_per_element = 2.0 * static_cast<double>(std::max<std::int64_t>(k, 1));
  const double flops = flops_per_element * static_cast<double>(p.groups * p.out_channels) *
                       static_cast<double>(pixels) * static_cast<double>(p.batch);
  const double most = std::clamp(flops / 32, 2e6, 4e7) * 1.5;
  constexpr std::int64_t kMostStaged = 96 << 10;  // floats
  std::int64_t band = std::clamp<std::int64_t>(kernel.mc / p.out[2], 1, p.out[1]);
  // A tile has all groups, or a part of one.
  std::int64_t cols = std::min<std::int64_t>(p.out_channels, kernel.nc);
  const auto tile_flops = [&] {
    return flops_per_element * static_cast<double>(p.groups * cols) *
           static_cast<double>(band * p.out[2]);
  };
  while (band > 1 && t.staged && ReadLines(p, band) * t.line > kMostStaged) band = (band + 1) / 2;
  while (band > 1 && tile_flops() > most && band * p.out[2] > 96) band = (band + 1) / 2;
  while (tile_flops() > most && cols > 4 * kernel.tile_n)
    cols = RoundUp(cols / 2, kernel.tile_n);
  t.bands = CeilDiv(p.out[1], band);
  t.band = CeilDiv(p.out[1], t.bands);
  t.bands = CeilDiv(p.out[1], t.band);
  t.tiles_n = CeilDiv(p.out_channels, cols);
  t.cols = RoundUp(CeilDiv(p.out_channels, t.tiles_n), kernel.tile_n);
  t.tiles_n = CeilDiv(p.out_channels, t.cols);
  t.tiles = p.batch * t.bands * t.tiles_n;
  t.flops_per_tile = flops_per_element *
                     static_cast<double>(p.groups * std::min(t.cols, p.out_channels)) *
                     static_cast<double>(t.band * p.out[2]);
  std::int64_t staged_bytes = 0;
  if (t.staged && (!CheckedMul(ReadLines(p, t.band), t.line, &staged_bytes) ||
                   !CheckedMul(staged_bytes, std::int64_t{sizeof(float)}, &staged_bytes))) {
    t.tiles = -1;
    return t;
  }
  t.scratch_bytes = static_cast<std::size_t>(staged_bytes);
  return t;
}

namespace {

// The lines [first, end) of an image with their padding, of which each output reads ReadWidth pixels.
void Stage(const ConvProblem& p, const float* image, std::int64_t first, std::int64_t end,
           float* to) {
  const std::int64_t width = ReadWidth(p), c = p.groups * p.in_channels;
  const std::int64_t left = std::clamp<std::int64_t>(p.pad[2], 0, width);
  const std::int64_t from = std::max<std::int64_t>(-p.pad[2], 0);
  const std::int64_t count = std::clamp<std::int64_t>(p.in[2] - from, 0, width - left);
  const auto zeros = [&](std::int64_t pixels) {
    std::memset(to, 0, static_cast<std::size_t>(pixels * c) * sizeof(float));
    to += pixels * c;
  };
  for (std::int64_t y = first; y < end; ++y) {
    zeros(left);
    if (count > 0)
      std::memcpy(to, image + (y * p.in[2] + from) * c,
                  static_cast<std::size_t>(count * c) * sizeof(float));
    to += count * c;
    zeros(width - left - count);
  }
}

// One tile's fixed facts, and the products of pieces of its lines with one panel of weights.
class Tile {
 public:
  Tile(const ChannelsLastCall& call, std::int64_t tile, float* scratch)
      : call_(call), p_(*call.problem), t_(*call.tiling), kernel_(*t_.kernel) {
    col_ = tile % t_.tiles_n * t_.cols;
    cols_ = std::min(t_.cols, p_.out_channels - col_);
    y_first_ = tile / t_.tiles_n % t_.bands * t_.band;
    y_end_ = std::min(p_.out[1], y_first_ + t_.band);
    n_ = tile / (t_.tiles_n * t_.bands);
    channels_ = p_.groups * p_.in_channels;
    lines_ = call.image + n_ * p_.in[1] * p_.in[2] * channels_;
    origin_ = -p_.pad[2] * channels_;
    if (t_.staged) {
      const std::int64_t top = y_first_ * p_.stride[1] - p_.pad[1];
      const std::int64_t first = std::clamp<std::int64_t>(top, 0, p_.in[1]);
      const std::int64_t end = std::clamp(top + ReadLines(p_, y_end_ - y_first_), first, p_.in[1]);
      Stage(p_, lines_, first, end, scratch);
      lines_ = scratch;
      origin_ = -first * t_.line;
    }
    args_.a_row_stride = p_.stride[2] * channels_;
    args_.a_k_stride = 1;
    args_.b_stride = kernel_.tile_n;
    args_.b_is_panel = true;
    args_.c_stride = p_.groups * p_.out_channels;
    args_.epilogue = &epilogue_;
    whole_ = call.epilogue;
    whole_.residual_stride = args_.c_stride;
  }

  void Run() {
    for (group_ = 0; group_ < p_.groups; ++group_) {
      if (t_.by_tap) {
        AddTaps();
      } else {
        SumLines();
      }
    }
  }

 private:
  std::int64_t k() const { return t_.segments * t_.run; }

  // Outputs [x.first, x.end) of line `y`. `a` is what output 0 sees, in floats from `lines_`.
  void Multiply(std::int64_t y, Range x, std::int64_t panel, std::int64_t a, std::int64_t k_first) {
    const std::int64_t block = args_.segments * args_.k;
    const std::int64_t count = x.end - x.first;
    if (count <= 0) return;
    const std::int64_t piece = CeilDiv(count, CeilDiv<std::int64_t>(count, kernel_.tile_m));  // even shares
    const std::int64_t channel = group_ * p_.out_channels + col_ + panel;
    const std::int64_t group_weights = CeilDiv<std::int64_t>(p_.out_channels, kernel_.tile_n) * kernel_.tile_n * k();
    args_.cols = static_cast<int>(std::min<std::int64_t>(kernel_.tile_n, cols_ - panel));
    args_.b = call_.weights + group_ * group_weights + (col_ + panel) * k() + k_first * kernel_.tile_n;
    const std::int64_t place = (n_ * p_.out[1] + y) * p_.out[2];
    for (std::int64_t i = x.first; i < x.end; i += piece) {
      args_.rows = static_cast<int>(std::min(piece, x.end - i));
      args_.a = args_.k > 0 ? lines_ + a + i * args_.a_row_stride : lines_;
      const std::int64_t at = (place + i) * args_.c_stride + channel;
      args_.c = call_.out + at;
      if (args_.last) {
        epilogue_ = whole_;
        if (whole_.column_bias != nullptr) epilogue_.column_bias += channel;
        if (whole_.residual != nullptr) epilogue_.residual += at;
      }
      args_.prefetch =
          PartToPrefetch(kernel_, panel + kernel_.tile_n < cols_ ? args_.b + k() * kernel_.tile_n : nullptr,
                         block, (y - y_first_) * p_.out[2] / kernel_.tile_m + i / piece);
      kernel_.run(args_);
    }
  }

  // Blocks of k in the outermost loop, so that a block of a panel is used for all pixels while it is
  // in the first-level cache.
  void SumLines() {
    const std::int64_t per_line = t_.segments / std::max<std::int64_t>(p_.kernel[1], 1);  // segments
    std::int64_t offsets[kMostChannelsLastTaps];
    for (std::int64_t s = 0; s < t_.segments; ++s)
      offsets[s] = s / per_line * p_.dilation[1] * t_.line + s % per_line * p_.dilation[2] * channels_;
    const Range all{0, p_.out[2]};
    for (std::int64_t s = 0; s < std::max<std::int64_t>(t_.segments, 1); s += t_.segment_block)
      for (std::int64_t r = 0; r < std::max<std::int64_t>(t_.run, 1); r += t_.run_block)
        for (std::int64_t panel = 0; panel < cols_; panel += kernel_.tile_n)
          for (std::int64_t y = y_first_; y < y_end_; ++y) {
            const Range taps = TapsInside(p_, 1, y);
            const std::int64_t first = taps.first * per_line, end = taps.end * per_line;
            if (first >= end || t_.run == 0) {  // nothing but padding: a sum of nothing, made once
              if (s != 0 || r != 0) continue;
              args_.first = args_.last = true;
              args_.k = 0;
              args_.segments = 1;
              args_.a_offsets = nullptr;
              Multiply(y, all, panel, 0, 0);
              continue;
            }
            const std::int64_t from = std::max(s, first);
            const std::int64_t until = std::min({s + t_.segment_block, t_.segments, end});
            if (from >= until) continue;
            args_.k = std::min(t_.run_block, t_.run - r);
            args_.first = r == 0 && from == first;
            args_.last = r + args_.k == t_.run && until == end;
            args_.segments = static_cast<int>(until - from);
            args_.a_offsets = offsets + from;
            const std::int64_t top = y * p_.stride[1] - p_.pad[1];
            Multiply(y, all, panel, origin_ + top * t_.line + group_ * p_.in_channels + r,
                     from * t_.run + r);
          }
  }

  // Each tap on the outputs that it reaches, between a sum of nothing and the epilogue.
  void AddTaps() {
    const Range all{0, p_.out[2]};
    const auto touch = [&](bool first) {
      args_.first = first;
      args_.last = !first;
      args_.k = 0;
      for (std::int64_t panel = 0; panel < cols_; panel += kernel_.tile_n)
        for (std::int64_t y = y_first_; y < y_end_; ++y) Multiply(y, all, panel, 0, 0);
    };
    touch(true);
    args_.first = args_.last = false;
    for (std::int64_t s = 0; s < t_.segments; ++s) {
      const std::int64_t line = s / p_.kernel[2], x = s % p_.kernel[2];
      const Range outputs = OutputsReached(p_, 2, x);
      for (std::int64_t r = 0; r < t_.run; r += t_.run_block) {
        args_.k = std::min(t_.run_block, t_.run - r);
        for (std::int64_t panel = 0; panel < cols_; panel += kernel_.tile_n)
          for (std::int64_t y = y_first_; y < y_end_; ++y) {
            const Range taps = TapsInside(p_, 1, y);
            if (line < taps.first || line >= taps.end) continue;
            const std::int64_t in_line = y * p_.stride[1] - p_.pad[1] + line * p_.dilation[1];
            Multiply(y, outputs, panel,
                     origin_ + in_line * t_.line + x * p_.dilation[2] * channels_ + r,
                     s * t_.run + r);
          }
      }
    }
    touch(false);
  }

  const ChannelsLastCall& call_;
  const ConvProblem& p_;
  const ChannelsLastTiling& t_;
  const GemmKernel& kernel_;
  std::int64_t n_, y_first_, y_end_, col_, cols_, channels_;
  std::int64_t group_ = 0;
  const float* lines_;     // of the image, or staged
  std::int64_t origin_;    // floats from `lines_` to column -pad of line 0
  Epilogue whole_, epilogue_;
  GemmArgs args_;
};

}  // namespace

void RunChannelsLastTile(const ChannelsLastCall& call, std::int64_t tile, void* scratch) {
  const ChannelsLastTiling& t = *call.tiling;
  if (t.flat) {
    Epilogue epilogue = call.epilogue;
    epilogue.residual_stride = call.problem->out_channels;
    RunGemmTile({&t.product, &t.product_tiling, call.image, call.weights, call.out, epilogue}, tile,
                scratch);
    return;
  }
  Tile(call, tile, static_cast<float*>(scratch)).Run();
}

}  // namespace npurt::kernels
