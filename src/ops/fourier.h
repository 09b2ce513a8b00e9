// FourierPlan: the discrete Fourier transform of one line of n complex numbers in double, for any
// n, in O(n log n): y[k] = sum over j of x[j] e^(-2 pi i jk / n).
//
// Lengths whose prime factors are small go through Stockham's self-sorting passes, one a factor (D.
// H. Bailey, "FFTs in external or hierarchical memory", 1990, describes them). Other lengths use
// Bluestein's identity jk = (j^2 + k^2 - (k - j)^2) / 2, which makes the transform a convolution,
// done by transforms of a power of two ("A linear filtering approach to the computation of discrete
// Fourier transform", 1970).
//
// Lifetime: the plan is plain bytes that the caller keeps (Bytes, Make); scratch is the caller's
// too. Thread safety: a made plan is read-only.
#ifndef NPURT_OPS_FOURIER_H_
#define NPURT_OPS_FOURIER_H_

#include <cstddef>
#include <cstdint>

#include "kernels/stop_check.h"

namespace npurt::ops {

struct Complex {
  double re, im;
};
inline Complex operator+(Complex a, Complex b) { return {a.re + b.re, a.im + b.im}; }
inline Complex operator-(Complex a, Complex b) { return {a.re - b.re, a.im - b.im}; }
inline Complex operator*(Complex a, Complex b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

// e^(-2 pi i k / n), exact in the arguments; 0 <= k < n.
Complex UnitRoot(std::int64_t k, std::int64_t n);

class FourierPlan {
 public:
  // The longest line; its tables take 1 to 7 GiB.
  static constexpr std::int64_t kMaxLength = std::int64_t{1} << 26;

  // Bytes of the plan of lines of n numbers, 1 <= n <= kMaxLength; 8-byte aligned.
  static std::size_t Bytes(std::int64_t n);
  static FourierPlan* Make(std::int64_t n, void* memory, const kernels::StopCheck& stop = {});
  // Bytes of scratch of a transform.
  static std::size_t ScratchBytes(std::int64_t n);

  // Transforms `line` in place; nothing is divided. `inverse` takes e^(+2 pi i jk / n).
  void Run(Complex* line, bool inverse, void* scratch, const kernels::StopCheck& stop = {}) const;

 private:
  void Passes(Complex* line, Complex* other, const kernels::StopCheck& stop) const;

  std::int64_t n_;       // of the line
  std::int64_t length_;  // of the passes: n, or the power of two that holds Bluestein's convolution
  // Behind the plan: `length_` unit roots; for Bluestein also n chirps, length_ numbers of their
  // transform, and room to make it.
  Complex* roots() { return reinterpret_cast<Complex*>(this + 1); }
  const Complex* roots() const { return reinterpret_cast<const Complex*>(this + 1); }
};

}  // namespace npurt::ops

#endif  // NPURT_OPS_FOURIER_H_
