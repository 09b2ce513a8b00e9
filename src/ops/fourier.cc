#include "ops/fourier.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numbers>

#include "kernels/long_rows.h"

namespace npurt::ops {
namespace {

// Larger prime factors cost more in a pass than Bluestein's detour.
constexpr std::int64_t kMaxFactor = 31;

std::int64_t SmallestFactor(std::int64_t n) {
  if (n % 4 == 0) return 4;
  for (std::int64_t p = 2; p * p <= n; ++p)
    if (n % p == 0) return p;
  return n;
}

// The length of the passes for a line of n.
std::int64_t PassLength(std::int64_t n) {
  std::int64_t rest = n;
  while (rest > 1) {
    std::int64_t factor = 2;
    while (factor <= kMaxFactor && rest % factor != 0) ++factor;
    if (factor > kMaxFactor)
      return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(2 * n - 1)));
    rest /= factor;
  }
  return n;
}

Complex Conjugate(Complex a) { return {a.re, -a.im}; }
Complex TimesMinusI(Complex a) { return {a.im, -a.re}; }

// Calls f(j) for j in [0, n).
template <typename F>
void Each(std::int64_t n, std::int64_t piece, const kernels::StopCheck& stop, F&& f) {
  kernels::ForPieces(n, piece, stop, [&](std::int64_t first, std::int64_t count) {
    for (std::int64_t j = first; j < first + count; ++j) f(j);
  });
}

// A part of one pass: numbers [j, j_end) of the first m of a line, of lines [q, q_end).
struct Part {
  std::int64_t j, j_end, q, q_end;
};

// One pass: lines of n = p * m at stride s become p times as many lines of m at stride s * p.
void Pass2(const Complex* x, Complex* y, std::int64_t m, std::int64_t s, const Complex* roots,
           const Part& part) {
  for (std::int64_t j = part.j; j < part.j_end; ++j) {
    const Complex w = roots[j * s];
    for (std::int64_t q = part.q; q < part.q_end; ++q) {
      const Complex a = x[q + s * j], b = x[q + s * (j + m)];
      y[q + s * 2 * j] = a + b;
      y[q + s * (2 * j + 1)] = (a - b) * w;
    }
  }
}

void Pass4(const Complex* x, Complex* y, std::int64_t m, std::int64_t s, const Complex* roots,
           const Part& part) {
  for (std::int64_t j = part.j; j < part.j_end; ++j) {
    const Complex w1 = roots[j * s], w2 = roots[2 * j * s], w3 = roots[3 * j * s];
    for (std::int64_t q = part.q; q < part.q_end; ++q) {
      const Complex a = x[q + s * j], b = x[q + s * (j + m)], c = x[q + s * (j + 2 * m)],
                    d = x[q + s * (j + 3 * m)];
      const Complex even = a + c, odd = b + d, left = a - c, right = TimesMinusI(b - d);
      Complex* out = y + q + s * 4 * j;
      out[0] = even + odd;
      out[s] = (left + right) * w1;
      out[2 * s] = (even - odd) * w2;
      out[3 * s] = (left - right) * w3;
    }
  }
}

void PassAny(const Complex* x, Complex* y, std::int64_t p, std::int64_t m, std::int64_t s,
             const Complex* roots, const Part& part) {
  const std::int64_t turn = m * s;  // roots[turn] is the p-th root of one
  for (std::int64_t j = part.j; j < part.j_end; ++j)
    for (std::int64_t k = 0; k < p; ++k) {
      const Complex w = roots[k * j * s];
      for (std::int64_t q = part.q; q < part.q_end; ++q) {
        Complex sum = x[q + s * j];
        for (std::int64_t i = 1, step = k; i < p; ++i, step += k) {
          if (step >= p) step -= p;
          sum = sum + x[q + s * (j + i * m)] * roots[step * turn];
        }
        y[q + s * (p * j + k)] = sum * w;
      }
    }
}

}  // namespace

Complex UnitRoot(std::int64_t k, std::int64_t n) {
  // Through the nearest eighth of the circle, where sine and cosine are exact at the ends.
  const std::int64_t eighth = 8 * k / n;
  const double angle =
      std::numbers::pi / 4 * (static_cast<double>(8 * k - eighth * n) / static_cast<double>(n));
  const bool odd = eighth % 2 != 0;
  const double turned = odd ? std::numbers::pi / 4 - angle : angle;
  double c = std::cos(turned), s = std::sin(turned);
  if (odd) std::swap(c, s);
  switch (eighth / 2) {
    case 0:
      return {c, -s};
    case 1:
      return {-s, -c};
    case 2:
      return {-c, s};
    default:
      return {s, c};
  }
}

std::size_t FourierPlan::Bytes(std::int64_t n) {
  const std::int64_t length = PassLength(n);
  const std::int64_t numbers = length == n ? length : 3 * length + n;
  return sizeof(FourierPlan) + static_cast<std::size_t>(numbers) * sizeof(Complex);
}

std::size_t FourierPlan::ScratchBytes(std::int64_t n) {
  const std::int64_t length = PassLength(n);
  return static_cast<std::size_t>(length == n ? length : 2 * length) * sizeof(Complex);
}

FourierPlan* FourierPlan::Make(std::int64_t n, void* memory, const kernels::StopCheck& stop) {
  constexpr std::int64_t kRoots = 1 << 14;  // made at a time
  auto* plan = static_cast<FourierPlan*>(memory);
  plan->n_ = n;
  plan->length_ = PassLength(n);
  const std::int64_t length = plan->length_;
  Complex* roots = plan->roots();
  Each(length, kRoots, stop, [&](std::int64_t k) { roots[k] = UnitRoot(k, length); });
  if (length == n) return plan;
  // e^(-pi i j^2 / n); the square modulo 2n keeps the angle exact.
  Complex *chirp = roots + length, *filter = chirp + n;
  Each(n, kRoots, stop, [&](std::int64_t j) { chirp[j] = UnitRoot(j * j % (2 * n), 2 * n); });
  Each(length, kernels::kPiece, stop, [&](std::int64_t j) { filter[j] = {0, 0}; });
  Each(n, kernels::kPiece, stop, [&](std::int64_t j) {
    filter[j] = Conjugate(chirp[j]);
    if (j > 0) filter[length - j] = filter[j];
  });
  plan->Passes(filter, filter + length, stop);
  return plan;
}

void FourierPlan::Passes(Complex* line, Complex* other, const kernels::StopCheck& stop) const {
  constexpr std::int64_t kPart = 1 << 15;  // numbers of a part, times the factor
  Complex *x = line, *y = other;
  std::int64_t n = length_, s = 1;
  while (n > 1) {
    const std::int64_t p = SmallestFactor(n), m = n / p;
    kernels::ForPieces(
        m, std::max<std::int64_t>(kPart / s, 1), stop, [&](std::int64_t j, std::int64_t numbers) {
          kernels::ForPieces(s, kPart, stop, [&](std::int64_t q, std::int64_t lines) {
            const Part part = {j, j + numbers, q, q + lines};
            if (p == 4)
              Pass4(x, y, m, s, roots(), part);
            else if (p == 2)
              Pass2(x, y, m, s, roots(), part);
            else
              PassAny(x, y, p, m, s, roots(), part);
          });
        });
    std::swap(x, y);
    n = m;
    s *= p;
  }
  if (x == line) return;
  kernels::ForPieces(length_, kernels::kPiece, stop, [&](std::int64_t first, std::int64_t count) {
    std::memcpy(static_cast<void*>(line + first), x + first,
                static_cast<std::size_t>(count) * sizeof(Complex));
  });
}

void FourierPlan::Run(Complex* line, bool inverse, void* scratch, const kernels::StopCheck& stop) const {
  auto* work = static_cast<Complex*>(scratch);
  const auto each = [&stop](std::int64_t n, auto&& f) { Each(n, kernels::kPiece, stop, f); };
  // The inverse is the conjugate of the transform of the conjugate.
  if (inverse) each(n_, [&](std::int64_t j) { line[j] = Conjugate(line[j]); });
  if (length_ == n_) {
    Passes(line, work, stop);
  } else {
    const Complex *chirp = roots() + length_, *filter = chirp + n_;
    Complex* other = work + length_;
    each(n_, [&](std::int64_t j) { work[j] = line[j] * chirp[j]; });
    each(length_ - n_, [&](std::int64_t j) { work[n_ + j] = {0, 0}; });
    Passes(work, other, stop);
    each(length_, [&](std::int64_t j) { work[j] = Conjugate(work[j] * filter[j]); });
    Passes(work, other, stop);
    const double scale = 1 / static_cast<double>(length_);
    each(n_, [&](std::int64_t j) {
      const Complex y = Conjugate(work[j]) * chirp[j];
      line[j] = {y.re * scale, y.im * scale};
    });
  }
  if (inverse) each(n_, [&](std::int64_t j) { line[j] = Conjugate(line[j]); });
}

}  // namespace npurt::ops
