// Intconv: packing, plan and tile driver. See intconv.h.
#include "kernels/intconv/intconv.h"

#include <algorithm>
#include <cstring>

#include "base/checked_math.h"
#include "kernels/conv/gather.h"

namespace npurt::kernels {
namespace {

// Whether a word holds neighbouring taps of a line: where that makes fewer words.
bool AlongLine(const IntGemmKernel& kernel, const ConvProblem& p) {
  const std::int64_t parts = kernel.per_word();
  return p.in_channels * CeilDiv(p.kernel[2], parts) < CeilDiv(p.in_channels, parts) * p.kernel[2];
}

ConvProblem WordsOf(const IntGemmKernel& kernel, const ConvProblem& p) {
  const std::int64_t parts = kernel.per_word();
  ConvProblem w = p;
  if (AlongLine(kernel, p)) {
    w.kernel[2] = CeilDiv(p.kernel[2], parts);
    w.dilation[2] = p.dilation[2] * parts;
  } else {
    w.in_channels = CeilDiv(p.in_channels, parts);
  }
  return w;
}

// The weights are A. Only if both operands would have to be flipped, image and weights keep their roles.
bool WeightsAreUnsigned(const IntConvProblem& p) { return p.x_signed && !p.w_signed; }
IntForm FormOfWeights(const IntGemmKernel& kernel, const IntConvProblem& p) {
  return IntFormOf(kernel, p.w_signed, !WeightsAreUnsigned(p));
}
IntForm FormOfImage(const IntGemmKernel& kernel, const IntConvProblem& p) {
  return IntFormOf(kernel, p.x_signed, WeightsAreUnsigned(p));
}
std::int32_t ZeroAt(const std::int32_t* zero, int step, std::int64_t i) {
  return zero == nullptr ? 0 : zero[i * step];
}

// Words of one group's panels.
std::int64_t GroupWords(const IntGemmKernel& kernel, const ConvPhase& f, std::int64_t channels) {
  return RoundUp(channels, kernel.tile_m) * f.k;
}

}  // namespace

std::int64_t PackedIntConvWeightsSize(const IntGemmKernel& kernel, const IntConvProblem& problem) {
  const ConvProblem w = WordsOf(kernel, problem.shape);
  if (!ConvSizesFit(problem.shape) || !ConvSizesFit(w)) return 0;
  const ConvPhase f = ConvPhaseOf(w, 0);
  return (GroupWords(kernel, f, w.out_channels) + w.out_channels) * w.groups * 4;
}

std::int64_t IntConvRowSize(const IntGemmKernel& kernel, const IntConvProblem& problem) {
  return ConvPhaseOf(WordsOf(kernel, problem.shape), 0).k * 4;
}

void PackIntConvWeights(const IntGemmKernel& kernel, const IntConvProblem& problem,
                        const void* weights, const std::int32_t* zero, int zero_step, void* row,
                        void* packed) {
  const ConvProblem& p = problem.shape;
  const ConvProblem words = WordsOf(kernel, p);
  const ConvPhase f = ConvPhaseOf(words, 0);
  const IntForm form = FormOfWeights(kernel, problem);
  const bool along_line = AlongLine(kernel, p);
  const std::int64_t parts = kernel.per_word(), mr = kernel.tile_m;
  const std::int64_t taps = p.kernel[0] * p.kernel[1] * p.kernel[2];
  const std::int64_t group_words = GroupWords(kernel, f, p.out_channels);
  std::int32_t* const sums = static_cast<std::int32_t*>(packed) + group_words * p.groups;
  std::memset(packed, 0, static_cast<std::size_t>(group_words * p.groups) * 4);
  for (std::int64_t o = 0; o < p.groups * p.out_channels; ++o) {
    const char* const from = static_cast<const char*>(weights) + o * p.in_channels * taps;
    const std::int32_t own = ZeroAt(zero, zero_step, o);
    const std::int32_t rest = PartOf(form, own, own);  // the part of a weight that counts as 0
    char* to = static_cast<char*>(row);
    if (along_line) {
      for (std::int64_t line = 0; line < p.in_channels * p.kernel[0] * p.kernel[1];
           ++line, to += words.kernel[2] * 4)
        FillWords(form, from + line * p.kernel[2], 1, p.kernel[2], own, rest, to);
    } else {
      for (std::int64_t c = 0; c < p.in_channels; c += parts)
        for (std::int64_t tap = 0; tap < taps; ++tap, to += 4)
          FillWords(form, from + c * taps + tap, taps, std::min(parts, p.in_channels - c), own, rest,
                    to);
    }
    sums[o] = static_cast<std::int32_t>(
        static_cast<std::uint32_t>(
            SumOfParts(form.bytes, !WeightsAreUnsigned(problem), row, f.k * parts)) -
        static_cast<std::uint32_t>(f.k * parts) * static_cast<std::uint32_t>(ZeroOf(form, own)));
    const std::int64_t r = o % p.out_channels;
    Word* const panel =
        static_cast<Word*>(packed) + o / p.out_channels * group_words + r / mr * mr * f.k + r % mr;
    for (std::int64_t k = 0; k < f.k; ++k)
      std::memcpy(panel + k * mr, static_cast<const char*>(row) + k * 4, 4);
  }
}

namespace {

// As in the float32 convolution: tiles shorter than a line do not cross lines.
void PixelsOf(const IntConvTiling& t, const ConvPhase& f, std::int64_t index, std::int64_t* first,
              std::int64_t* count) {
  const std::int64_t per_line = CeilDiv(f.lattice[2], t.tile_pixels);
  if (per_line > 1) {
    const std::int64_t x = index % per_line * t.tile_pixels;
    *first = index / per_line * f.lattice[2] + x;
    *count = std::min(t.tile_pixels, f.lattice[2] - x);
  } else {
    *first = index * t.tile_pixels;
    *count = t.tile_pixels;
  }
  *count = std::min(*count, f.pixels - *first);
}

// The phase as tiles see it: pixels in one long line where image and result are the same places.
ConvPhase SeenPhase(const ConvProblem& words, bool along_line) {
  ConvPhase f = ConvPhaseOf(words, 0);
  if (!along_line && ReadsImageDirectly(f)) Flatten(&f);
  return f;
}

// The most words that the stage of one channel has in any tile; -1 if too many.
std::int64_t StageChannel(const IntConvTiling& t, const ConvPhase& f) {
  const bool part = t.tile_pixels < f.lattice[2];
  const std::int64_t lines = part ? 1 : t.tile_pixels / f.lattice[2] + 2;
  const bool planes = lines > 1 && f.lattice[0] > 1;
  const std::int64_t from[kConvRank] = {0, 0, 0};
  const std::int64_t until[kConvRank] = {
      planes ? std::min(f.lattice[0], lines / f.lattice[1] + 2) : 1,
      planes ? f.lattice[1] : std::min(f.lattice[1], lines), part ? t.tile_pixels : f.lattice[2]};
  double size = 1;
  for (int d = 0; d < kConvRank; ++d)
    size *= static_cast<double>(until[d]) * static_cast<double>(f.in_step[d]) +
            static_cast<double>(TapSpan(f, d));
  return size > (256 << 10) ? -1 : StageOf(f, from, until).channel;
}

}  // namespace

IntConvTiling PlanIntConv(const IntConvProblem& problem, const IntGemmKernel& kernel) {
  const ConvProblem& p = problem.shape;
  IntConvTiling t;
  t.kernel = &kernel;
  t.words = WordsOf(kernel, p);
  t.along_line = AlongLine(kernel, p);
  if (!ConvSizesFit(p) || !ConvSizesFit(t.words)) {
    t.tiles = -1;
    return t;
  }
  if (p.batch * p.groups * p.out_channels * p.out[0] * p.out[1] * p.out[2] == 0) return t;
  const ConvPhase f = SeenPhase(t.words, t.along_line);
  const std::int64_t mr = kernel.tile_m, nr = kernel.tile_n;
  const double ops_per_pixel_row = 2.0 * static_cast<double>(std::max<std::int64_t>(f.k, 1));
  const double ops = ops_per_pixel_row * static_cast<double>(p.out_channels) *
                     static_cast<double>(f.pixels) * static_cast<double>(p.batch * p.groups);
  const double target = std::clamp(ops / 32, 2e6, 4e7);
  std::int64_t rows = std::min<std::int64_t>(p.out_channels, 512);
  // The gathered block holds all of k: a quarter of a megabyte of it.
  std::int64_t pixels = std::min<std::int64_t>(
      f.pixels, std::clamp<std::int64_t>((64 << 10) / std::max<std::int64_t>(f.k, 1) / nr * nr, nr, 1024));
  const auto too_big = [&] {
    return ops_per_pixel_row * static_cast<double>(rows) * static_cast<double>(pixels) >
           target * 1.5;
  };
  const std::int64_t least_pixels = std::min(pixels, std::max<std::int64_t>(96, nr));
  while (too_big() && pixels > least_pixels) pixels = std::max(least_pixels, pixels / 2);
  while (too_big() && rows > 96) rows = std::max<std::int64_t>(96, rows / 2);
  t.tile_rows = RoundUp(CeilDiv(p.out_channels, CeilDiv(p.out_channels, rows)), mr);
  t.tiles_m = CeilDiv(p.out_channels, t.tile_rows);
  const std::int64_t extent = f.lattice[2] > pixels ? f.lattice[2] : f.pixels;
  t.tile_pixels = RoundUp(CeilDiv(extent, CeilDiv(extent, pixels)), nr);
  t.flops_per_tile = ops_per_pixel_row * static_cast<double>(t.tile_rows) *
                     static_cast<double>(std::min(t.tile_pixels, f.pixels));
  const std::int64_t per_line = CeilDiv(f.lattice[2], t.tile_pixels);
  t.tiles_n = per_line > 1 ? per_line * f.lattice[0] * f.lattice[1]
                           : CeilDiv(f.pixels, t.tile_pixels);
  const std::int64_t channel = f.tap_count == 0 ? 0 : StageChannel(t, f);
  if (channel < 0) {
    t.tiles = -1;
    return t;
  }
  t.channels_at_once = std::clamp<std::int64_t>((16 << 10) / std::max<std::int64_t>(channel, 1), 1,
                                                std::max<std::int64_t>(t.words.in_channels, 1));
  t.line_offset = RoundUp(f.k * t.tile_pixels, 16);
  t.stage_offset = t.line_offset + RoundUp(t.tile_pixels + kGatherSlack, 16);
  t.strip_offset = t.stage_offset + RoundUp(t.channels_at_once * channel + 2 * kGatherSlack, 16);
  // A line of the stage in the order of x, as words, and as bytes before that.
  const std::int64_t line =
      t.tile_pixels * f.in_step[2] + TapSpan(f, 2) + f.in_step[2] + 4 * p.dilation[2];
  t.array_offset = t.strip_offset + RoundUp(3 * line + 64, 16);
  t.scratch_bytes =
      static_cast<std::size_t>(RoundUp(t.array_offset + RoundUp(t.tile_rows, 16) + nr, 16)) * 4;
  t.tiles = p.batch * p.groups * t.tiles_m * t.tiles_n;
  return t;
}

namespace {

// What turns a part of the image into words.
struct Stager {
  const IntForm form;
  const ConvProblem& p;
  const ConvPhase& f;
  const bool along_line;
  const std::int32_t zero;
  Word* const strip;  // room for a line

  // Words at x in [first, first + count) of line (z, y) of channel word `c`; zero points outside.
  void Line(const char* image, std::int64_t c, std::int64_t z, std::int64_t y, std::int64_t first,
            std::int64_t count, Word* to) const {
    const std::int32_t rest = PartOf(form, zero, zero);
    const bool inside = z >= 0 && z < f.in[0] && y >= 0 && y < f.in[1];
    const std::int64_t plane = f.in[0] * f.in[1] * f.in[2];
    const std::int64_t at = (z * f.in[1] + y) * f.in[2];
    const int parts = form.bytes ? 4 : 2;
    const std::int64_t low = inside ? std::clamp<std::int64_t>(-first, 0, count) : count;
    if (!along_line) {
      const void* rows[4] = {};
      InterleaveRows(form, rows, zero, rest, low, to);
      if (!inside) return;
      const std::int64_t high = std::clamp<std::int64_t>(f.in[2] - first, low, count);
      InterleaveRows(form, rows, zero, rest, count - high, to + high);
      for (int i = 0; i < parts && c * parts + i < p.in_channels; ++i)
        rows[i] = image + (c * parts + i) * plane + at + first + low;
      InterleaveRows(form, rows, zero, rest, high - low, to + low);
      return;
    }
    // The line in parts, then the words that begin at each of them.
    const std::int64_t step = p.dilation[2], size = form.bytes ? 1 : 2;
    const std::int64_t needed = count + (parts - 1) * step;
    char* const line = reinterpret_cast<char*>(strip);
    const auto fill = [&](std::int64_t from, std::int64_t until) {
      for (std::int64_t i = from; i < until; ++i) {
        if (form.bytes) {
          line[i] = static_cast<char>(rest);
        } else {
          const std::int16_t part = static_cast<std::int16_t>(rest);
          std::memcpy(line + 2 * i, &part, 2);
        }
      }
    };
    const std::int64_t begin = inside ? std::clamp<std::int64_t>(-first, 0, needed) : needed;
    const std::int64_t end = inside ? std::clamp<std::int64_t>(f.in[2] - first, begin, needed) : needed;
    if (end > begin)  // may write a little over the end, which is filled next
      FillWords(form, image + c * plane + at + first + begin, 1, end - begin, zero, rest,
                line + begin * size);
    fill(0, begin);
    fill(end, needed);
    if (step == 1) {
      for (std::int64_t i = 0; i < count; ++i) std::memcpy(to + i, line + i * size, 4);
      return;
    }
    for (std::int64_t i = 0; i < count; ++i)
      for (int j = 0; j < parts; ++j)
        std::memcpy(reinterpret_cast<char*>(to + i) + j * size, line + (i + j * step) * size,
                    static_cast<std::size_t>(size));
  }

  // Channel words [c, c + count) into the stage.
  void Fill(const ConvStage& s, const char* image, std::int64_t c, std::int64_t count,
            Word* to) const {
    Word* const line = strip + s.line + 4 * p.dilation[2] + 16;
    for (std::int64_t i = c; i < c + count; ++i)
      for (std::int64_t z = s.first[0]; z < s.first[0] + s.count[0]; ++z)
        for (std::int64_t y = s.first[1]; y < s.first[1] + s.count[1]; ++y, to += s.line) {
          if (s.residues == 1) {
            Line(image, i, z, y, s.first[2], s.line, to);
            continue;
          }
          Line(image, i, z, y, s.first[2], s.line, line);
          for (std::int64_t r = 0; r < s.residues; ++r)
            for (std::int64_t x = 0; x < s.count[2]; ++x)
              to[r * s.count[2] + x] = line[x * s.residues + r];
        }
  }
};

}  // namespace

void RunIntConvTile(const IntConvCall& call, std::int64_t tile, void* scratch) {
  const IntConvProblem& problem = *call.problem;
  const IntConvTiling& t = *call.tiling;
  const ConvProblem& p = problem.shape;
  const IntGemmKernel& kernel = *t.kernel;
  const std::int64_t mr = kernel.tile_m, nr = kernel.tile_n;
  const std::int64_t tile_m = tile % t.tiles_m, tile_n = tile / t.tiles_m % t.tiles_n;
  const std::int64_t matrix = tile / (t.tiles_m * t.tiles_n);
  const std::int64_t group = matrix % p.groups;

  const ConvPhase f = SeenPhase(t.words, t.along_line);
  std::int64_t first, pixels;
  PixelsOf(t, f, tile_n, &first, &pixels);
  const std::int64_t row = tile_m * t.tile_rows;
  const std::int64_t rows = std::min(t.tile_rows, p.out_channels - row);
  const std::int64_t channel = group * p.out_channels + row;  // of all output channels
  const std::int64_t out_plane = p.out[0] * p.out[1] * p.out[2];
  const char* const image = static_cast<const char*>(call.image) +
                            matrix * p.in_channels * (p.in[0] * p.in[1] * p.in[2]);

  Word* const block = static_cast<Word*>(scratch);
  const IntForm x_form = FormOfImage(kernel, problem), w_form = FormOfWeights(kernel, problem);
  const Stager stager{x_form, p, f, t.along_line, call.x_zero, block + t.strip_offset};
  const std::int64_t width = RoundUp(pixels, nr);
  if (f.k > 0) {
    if (!t.along_line && ReadsImageDirectly(f)) {
      for (std::int64_t col = 0; col < pixels; col += nr)
        for (std::int64_t k = 0; k < f.k; ++k)
          stager.Line(image, k, 0, 0, first + col, nr, block + col * f.k + k * nr);
    } else {
      std::int64_t from[kConvRank], until[kConvRank];
      BoxOf(f, first, pixels, from, until);
      const ConvStage stage = StageOf(f, from, until);
      for (std::int64_t c = 0; c < t.words.in_channels; c += t.channels_at_once) {
        const std::int64_t count = std::min(t.channels_at_once, t.words.in_channels - c);
        stager.Fill(stage, image, c, count, block + t.stage_offset);
        // Words are copied as floats: no arithmetic touches them.
        GatherRows(f, &stage, reinterpret_cast<const float*>(block + t.stage_offset),
                   c * f.tap_count, count * f.tap_count, first, pixels, width,
                   {reinterpret_cast<float*>(block + c * f.tap_count * nr), nr, f.k * nr,
                    reinterpret_cast<float*>(block + t.line_offset)});
      }
    }
  }

  // The sum of (w - w_zero) of each channel, times the image's zero point.
  IntEpilogue e = call.epilogue;
  std::int32_t* const row_array = reinterpret_cast<std::int32_t*>(block + t.array_offset);
  std::int32_t* const column_sums = row_array + RoundUp(t.tile_rows, 16);
  const std::int64_t group_words = GroupWords(kernel, f, p.out_channels);
  if (const std::int32_t zero = ZeroOf(x_form, call.x_zero); zero != 0) {
    const std::int32_t* const sums =
        static_cast<const std::int32_t*>(call.weights) + group_words * p.groups + channel;
    for (std::int64_t r = 0; r < rows; ++r)
      row_array[r] = static_cast<std::int32_t>(0u - static_cast<std::uint32_t>(zero) *
                                                        static_cast<std::uint32_t>(sums[r]));
    e.row_add = row_array;
  }
  std::int32_t w_zeros[64];
  bool corrects_columns = false;
  for (std::int64_t r = 0; r < rows && !corrects_columns; ++r)
    corrects_columns = ZeroOf(w_form, ZeroAt(call.w_zero, call.w_zero_step, channel + r)) != 0;

  const Word* const weights =
      static_cast<const Word*>(call.weights) + group * group_words + row * f.k;
  const std::int64_t element = e.to_bytes ? 1 : 4;
  IntGemmArgs args;
  args.a_row_stride = 1;
  args.a_word_stride = mr;
  args.c_stride = out_plane;
  args.words = f.k;
  args.a_is_unsigned = WeightsAreUnsigned(problem);
  char* const out =
      static_cast<char*>(call.out) +
      ((matrix * p.out_channels + row) * out_plane + first) * element;
  for (std::int64_t col = 0; col < pixels; col += nr) {
    args.b = block + col * f.k;
    args.cols = static_cast<int>(std::min(nr, pixels - col));
    if (corrects_columns) {  // a row of weights that are 1
      constexpr Word kOnes = 0x01010101;
      constexpr IntEpilogue kSums;
      IntGemmArgs ones = args;
      ones.a = &kOnes;
      ones.a_row_stride = ones.a_word_stride = 0;
      ones.c = column_sums;
      ones.rows = 1;
      ones.epilogue = &kSums;
      kernel.run(ones);
    }
    for (std::int64_t r = 0; r < rows; r += mr) {
      args.rows = static_cast<int>(std::min(mr, rows - r));
      args.a = weights + r * f.k;
      args.c = out + (r * out_plane + col) * element;
      IntEpilogue here = e;
      if (here.row_add != nullptr) here.row_add += r;
      if (here.row_bias != nullptr) here.row_bias += channel + r;
      if (here.row_scale != nullptr && !here.one_row_scale) here.row_scale += channel + r;
      if (corrects_columns) {
        for (int i = 0; i < args.rows; ++i)
          w_zeros[i] = ZeroOf(w_form, ZeroAt(call.w_zero, call.w_zero_step, channel + r + i));
        here.row_factor = w_zeros;
        here.column_factor = column_sums;
      }
      args.epilogue = &here;
      kernel.run(args);
    }
  }
}

}  // namespace npurt::kernels
