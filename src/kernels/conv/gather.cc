// Gather and scatter loops, for any CPU. See gather.h.
#include "kernels/conv/gather.h"

#include <cstring>

#include "base/checked_math.h"

namespace npurt::kernels {
namespace {

std::int64_t Gcd(std::int64_t a, std::int64_t b) {
  while (b != 0) {
    const std::int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

void SetConvDimension(const ConvProblem& p, int d, ConvPhase* f) {
  f->lattice[d] = p.out[d];
  f->in_step[d] = p.stride[d];
  f->tap_first[d] = -p.pad[d];
  f->tap_step[d] = p.dilation[d];
  f->taps[d] = p.kernel[d];
  f->first_tap[d] = 0;
  f->every_tap[d] = 1;
  f->out_first[d] = 0;
  f->out_step[d] = 1;
}

// Output o = i * stride - pad + t * dilation. For o = first + j * stride the taps t with
// (first + pad - t * dilation) divisible by the stride hit an input, i = j + that quotient.
void SetTransposedDimension(const ConvProblem& p, int d, std::int64_t first, ConvPhase* f) {
  const std::int64_t stride = p.stride[d], dilation = p.dilation[d];
  const std::int64_t every = stride / Gcd(stride, dilation % stride);
  f->lattice[d] = first < p.out[d] ? CeilDiv(p.out[d] - first, stride) : 0;
  f->in_step[d] = 1;
  f->taps[d] = 0;
  f->first_tap[d] = 0;
  f->tap_first[d] = 0;
  for (std::int64_t t = 0; t < std::min(every, p.kernel[d]); ++t) {
    const std::int64_t distance = first + p.pad[d] - t * dilation;
    if (distance % stride != 0) continue;
    f->first_tap[d] = t;
    f->tap_first[d] = distance / stride;
    f->taps[d] = CeilDiv(p.kernel[d] - t, every);
    break;
  }
  f->every_tap[d] = every;
  f->tap_step[d] = -(every * dilation / stride);
  f->out_first[d] = first;
  f->out_step[d] = stride;
}

std::int64_t LowestOffset(const ConvPhase& f, int d) {
  return f.tap_first[d] + std::min<std::int64_t>(0, (f.taps[d] - 1) * f.tap_step[d]);
}
typedef float Four __attribute__((vector_size(16)));

Four LoadFour(const float* p) {
  Four v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
void StoreFour(Four v, float* p) { std::memcpy(p, &v, sizeof v); }

// Runs are a line of an image at most: too short for the call of memcpy to pay.
void Copy(const float* from, std::int64_t count, float* to) {
  if (count >= 64) {
    std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(float));
    return;
  }
  if (count < 4) {
    for (std::int64_t i = 0; i < count; ++i) std::memcpy(to + i, from + i, sizeof(float));
    return;
  }
  for (std::int64_t i = 0; i + 4 <= count; i += 4) StoreFour(LoadFour(from + i), to + i);
  StoreFour(LoadFour(from + count - 4), to + count - 4);  // may overlap the last
}

// Copies `count` floats that lie `step` apart.
void CopyStrided(const float* from, std::int64_t step, std::int64_t count, float* to) {
  if (step == 1) return Copy(from, count, to);
  std::int64_t i = 0;
  if (step == 2) {
    // Four at a time read one float more than they use: another must follow.
    for (; i + 4 < count; i += 4)
      StoreFour(
          __builtin_shufflevector(LoadFour(from + 2 * i), LoadFour(from + 2 * i + 4), 0, 2, 4, 6),
          to + i);
  }
  for (; i < count; ++i) std::memcpy(to + i, from + i * step, sizeof(float));
}

// Zeros; may run over the end by up to three floats.
void ZeroOver(float* to, std::int64_t count) {
  for (std::int64_t i = 0; i < count; i += 4) StoreFour(Four{0, 0, 0, 0}, to + i);
}

// Copies; may read and write over the end by up to three floats.
void CopyOver(const float* from, std::int64_t count, float* to) {
  for (std::int64_t i = 0; i < count; i += 4) StoreFour(LoadFour(from + i), to + i);
}

}  // namespace

void CopyLine(const float* line, std::int64_t width, std::int64_t first, std::int64_t step,
              std::int64_t count, float* to) {
  std::int64_t low = 0, high = 0;
  if (step == 1) {
    low = std::clamp<std::int64_t>(-first, 0, count);
    high = std::clamp<std::int64_t>(width - first, low, count);
  } else {
    low = first >= 0 ? 0 : std::min(count, CeilDiv(-first, step));
    high = width > first ? std::clamp(CeilDiv(width - first, step), low, count) : low;
  }
  ZeroOver(to, low);
  if (high > low) CopyStrided(line + first + low * step, step, high - low, to + low);
  ZeroOver(to + high, count - high);
}

namespace {

// One row of the gathered block: `plane` of the image, or of the stage, seen through one tap.
// Pixels [first, first + count), then zeros up to `width`.
void GatherFromImage(const ConvPhase& f, const float* plane, const std::int64_t offset[kConvRank],
                     std::int64_t first, std::int64_t count, float* to) {
  const std::int64_t line = f.lattice[2];
  std::int64_t x = first % line, y = first / line % f.lattice[1], z = first / line / f.lattice[1];
  while (count > 0) {
    const std::int64_t run = std::min(line - x, count);
    const std::int64_t in_z = z * f.in_step[0] + offset[0], in_y = y * f.in_step[1] + offset[1];
    if (in_z < 0 || in_z >= f.in[0] || in_y < 0 || in_y >= f.in[1]) {
      ZeroOver(to, run);
    } else {
      CopyLine(plane + (in_z * f.in[1] + in_y) * f.in[2], f.in[2], x * f.in_step[2] + offset[2],
               f.in_step[2], run, to);
    }
    to += run;
    count -= run;
    x = 0;
    if (++y == f.lattice[1]) {
      y = 0;
      ++z;
    }
  }
}

void GatherFromStage(const ConvPhase& f, const ConvStage& s, const float* plane,
                     const std::int64_t offset[kConvRank], std::int64_t first, std::int64_t count,
                     float* to) {
  const std::int64_t line = f.lattice[2];
  std::int64_t x = first % line, y = first / line % f.lattice[1], z = first / line / f.lattice[1];
  // The stage begins at lattice point 0 of x, unless it holds a part of one line: that has run 1.
  const std::int64_t distance = x * f.in_step[2] + offset[2] - s.first[2];
  const float* from = plane + distance % s.residues * s.count[2] + distance / s.residues;
  while (count > 0) {
    const std::int64_t run = std::min(line - x, count);
    const std::int64_t in_z = z * f.in_step[0] + offset[0] - s.first[0];
    const std::int64_t in_y = y * f.in_step[1] + offset[1] - s.first[1];
    CopyOver(from + (in_z * s.count[1] + in_y) * s.line, run, to);
    to += run;
    count -= run;
    from -= x;
    x = 0;
    if (++y == f.lattice[1]) {
      y = 0;
      ++z;
    }
  }
}

}  // namespace

std::int64_t ConvPhaseCount(const ConvProblem& p) {
  return p.transposed ? p.stride[0] * p.stride[1] * p.stride[2] : 1;
}

ConvPhase ConvPhaseOf(const ConvProblem& p, std::int64_t index) {
  ConvPhase f;
  f.pixels = 1;
  f.tap_count = 1;
  for (int d = kConvRank - 1; d >= 0; --d) {
    if (p.transposed) {
      SetTransposedDimension(p, d, index % p.stride[d], &f);
      index /= p.stride[d];
    } else {
      SetConvDimension(p, d, &f);
    }
    f.in[d] = p.in[d];
    f.pixels *= f.lattice[d];
    f.tap_count *= f.taps[d];
  }
  f.k = p.in_channels * f.tap_count;
  return f;
}

// Whether pixel and tap are the same place of the image: then the image itself is the right
// operand.
bool ReadsImageDirectly(const ConvPhase& f) {
  for (int d = 0; d < kConvRank; ++d)
    if (f.taps[d] != 1 || f.tap_first[d] != 0 || f.in_step[d] != 1 || f.lattice[d] != f.in[d])
      return false;
  return true;
}

// Pixels are then one long row, which is copied faster.
void Flatten(ConvPhase* f) {
  f->lattice[2] = f->in[2] = f->pixels;
  f->lattice[0] = f->lattice[1] = f->in[0] = f->in[1] = 1;
}

// Lattice points [from, until) per dimension; a phase with taps.
ConvStage StageOf(const ConvPhase& f, const std::int64_t from[kConvRank],
                  const std::int64_t until[kConvRank]) {
  ConvStage s;
  for (int d = 0; d < kConvRank; ++d) {
    s.first[d] = from[d] * f.in_step[d] + LowestOffset(f, d);
    s.count[d] = (until[d] - from[d] - 1) * f.in_step[d] + TapSpan(f, d) + 1;
  }
  s.residues = f.in_step[2];
  s.count[2] = until[2] - from[2] + TapSpan(f, 2) / s.residues;
  s.line = s.residues * s.count[2];
  s.channel = s.count[0] * s.count[1] * s.line;
  return s;
}

// The smallest box of lattice points around pixels [first, first + count).
void BoxOf(const ConvPhase& f, std::int64_t first, std::int64_t count, std::int64_t from[kConvRank],
           std::int64_t until[kConvRank]) {
  const std::int64_t last = first + count - 1;
  const std::int64_t line = f.lattice[2], plane = f.lattice[1] * line;
  from[0] = first / plane;
  until[0] = last / plane + 1;
  const bool one_plane = until[0] - from[0] == 1;
  from[1] = one_plane ? first % plane / line : 0;
  until[1] = one_plane ? last % plane / line + 1 : f.lattice[1];
  const bool one_line = first / line == last / line;
  from[2] = one_line ? first % line : 0;
  until[2] = one_line ? last % line + 1 : line;
}

// Channels [0, channels) of the image into scratch, padded.
void FillStage(const ConvPhase& f, const ConvStage& s, const float* image, std::int64_t channels,
               float* to) {
  // Residues that no tap uses are left as they are.
  std::uint64_t used = ~std::uint64_t{0};
  if (s.residues > 1 && s.residues <= 64) {
    used = 0;
    const std::int64_t step = f.tap_step[2] < 0 ? -f.tap_step[2] : f.tap_step[2];
    for (std::int64_t t = 0; t < std::min(f.taps[2], s.residues); ++t)
      used |= std::uint64_t{1} << (t * step % s.residues);
  }
  for (std::int64_t c = 0; c < channels; ++c)
    for (std::int64_t z = s.first[0]; z < s.first[0] + s.count[0]; ++z)
      for (std::int64_t y = s.first[1]; y < s.first[1] + s.count[1]; ++y, to += s.line) {
        if (z < 0 || z >= f.in[0] || y < 0 || y >= f.in[1]) {
          ZeroOver(to, s.line);
          continue;
        }
        const float* line = image + ((c * f.in[0] + z) * f.in[1] + y) * f.in[2];
        for (std::int64_t r = 0; r < s.residues; ++r)
          if (r >= 64 || (used >> r & 1) != 0)
            CopyLine(line, f.in[2], s.first[2] + r, s.residues, s.count[2], to + r * s.count[2]);
      }
}

// Rows [k, k + count) of the right operand.
void GatherBlock(const ConvPhase& f, const ConvStage* stage, float* staged, const float* image,
                 std::int64_t k, std::int64_t count, std::int64_t first, std::int64_t pixels,
                 std::int64_t width, const GatherTarget& to) {
  const std::int64_t channel = k / f.tap_count;
  const float* const plane = image + channel * (f.in[0] * f.in[1] * f.in[2]);
  if (stage != nullptr) {
    FillStage(f, *stage, plane, (k + count - 1) / f.tap_count - channel + 1, staged);
    return GatherRows(f, stage, staged, k, count, first, pixels, width, to);
  }
  GatherRows(f, nullptr, plane, k, count, first, pixels, width, to);
}

void GatherRows(const ConvPhase& f, const ConvStage* stage, const float* plane, std::int64_t k,
                std::int64_t count, std::int64_t first, std::int64_t pixels, std::int64_t width,
                const GatherTarget& to) {
  const std::int64_t channel_size =
      stage != nullptr ? stage->channel : f.in[0] * f.in[1] * f.in[2];
  std::int64_t tap[kConvRank];
  tap[2] = k % f.taps[2];
  tap[1] = k / f.taps[2] % f.taps[1];
  tap[0] = k / f.taps[2] / f.taps[1] % f.taps[0];
  const std::size_t row = static_cast<std::size_t>(to.columns) * sizeof(float);
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t offset[kConvRank];
    for (int d = 0; d < kConvRank; ++d) offset[d] = f.tap_first[d] + tap[d] * f.tap_step[d];
    if (stage != nullptr) {
      GatherFromStage(f, *stage, plane, offset, first, pixels, to.line);
    } else {
      GatherFromImage(f, plane, offset, first, pixels, to.line);
    }
    ZeroOver(to.line + pixels, width - pixels);
    float* panel = to.panels + i * to.columns;
    for (std::int64_t c = 0; c < width; c += to.columns, panel += to.panel)
      std::memcpy(panel, to.line + c, row);
    if (++tap[2] == f.taps[2]) {
      tap[2] = 0;
      if (++tap[1] == f.taps[1]) {
        tap[1] = 0;
        if (++tap[0] == f.taps[0]) {
          tap[0] = 0;
          plane += channel_size;
        }
      }
    }
  }
}

// Puts `rows` x `pixels` finished values where a phase of a transposed convolution has its outputs.
void ScatterPhase(const ConvProblem& p, const ConvPhase& f, const float* from, std::int64_t stride,
                  std::int64_t rows, std::int64_t first, std::int64_t pixels, float* out) {
  const std::int64_t plane = p.out[0] * p.out[1] * p.out[2];
  for (std::int64_t r = 0; r < rows; ++r, from += stride, out += plane) {
    std::int64_t x = first % f.lattice[2], y = first / f.lattice[2] % f.lattice[1];
    std::int64_t z = first / f.lattice[2] / f.lattice[1];
    for (std::int64_t i = 0; i < pixels;) {
      float* to =
          out +
          ((f.out_first[0] + z * f.out_step[0]) * p.out[1] + f.out_first[1] + y * f.out_step[1]) *
              p.out[2] +
          f.out_first[2] + x * f.out_step[2];
      const std::int64_t run = std::min(f.lattice[2] - x, pixels - i);
      for (std::int64_t j = 0; j < run; ++j)
        std::memcpy(to + j * f.out_step[2], from + i + j, sizeof(float));
      i += run;
      x = 0;
      if (++y == f.lattice[1]) {
        y = 0;
        ++z;
      }
    }
  }
}

}  // namespace npurt::kernels
