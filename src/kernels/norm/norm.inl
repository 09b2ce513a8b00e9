// Normalisations over F32 of one instruction set.
namespace {

constexpr std::size_t kW = static_cast<std::size_t>(F32::kWidth);
// Floats summed before the sum goes on in double.
constexpr std::size_t kBlock = 1024;

// The sum of (x - shift)^2 or of x.
template <bool kSquares>
inline double Sum(const float* in, std::size_t n, float shift) {
  const F32 s = F32::broadcast(shift);
  const auto add = [s](F32 acc, F32 x) {
    if (!kSquares) return F32::add(acc, x);
    const F32 d = F32::sub(x, s);
    return F32::fma(d, d, acc);
  };
  double sum = 0;
  while (n > 0) {
    const std::size_t block = n < kBlock ? n : kBlock;
    F32 a0 = F32::zero(), a1 = a0, a2 = a0, a3 = a0;
    std::size_t i = 0;
    for (; i + 4 * kW <= block; i += 4 * kW) {
      a0 = add(a0, F32::load(in + i));
      a1 = add(a1, F32::load(in + i + kW));
      a2 = add(a2, F32::load(in + i + 2 * kW));
      a3 = add(a3, F32::load(in + i + 3 * kW));
    }
    for (; i + kW <= block; i += kW) a0 = add(a0, F32::load(in + i));
    if (i < block) {
      // Lanes that are missing hold `shift`, whose distance to the mean is 0.
      float part[kW];
      F32::broadcast(kSquares ? shift : 0.0f).store(part);
      std::memcpy(part, in + i, (block - i) * sizeof(float));
      a1 = add(a1, F32::load(part));
    }
    sum += static_cast<double>(F32::reduce_add(F32::add(F32::add(a0, a1), F32::add(a2, a3))));
    in += block;
    n -= block;
  }
  return sum;
}

inline float InverseRoot(float x) {
  float lanes[kW];
  F32::div(F32::broadcast(1.0f), F32::sqrt(F32::broadcast(x))).store(lanes);
  return lanes[0];
}

template <bool kGamma, bool kBeta>
inline void Normalize(const LayerNormArgs& args, const float* in, float* out, float mean,
                      float inv_std) {
  const F32 m = F32::broadcast(mean), r = F32::broadcast(inv_std);
  const std::size_t whole = args.n - args.n % kW;
  for (std::size_t i = 0; i < whole; i += kW) {
    F32 y = F32::mul(F32::sub(F32::load(in + i), m), r);
    if (kGamma) y = F32::mul(y, F32::load(args.gamma + i));
    if (kBeta) y = F32::add(y, F32::load(args.beta + i));
    y.store(out + i);
  }
  if (whole < args.n) {
    const int tail = static_cast<int>(args.n - whole);
    F32 y = F32::mul(F32::sub(F32::load_partial(in + whole, tail), m), r);
    if (kGamma) y = F32::mul(y, F32::load_partial(args.gamma + whole, tail));
    if (kBeta) y = F32::add(y, F32::load_partial(args.beta + whole, tail));
    y.store_partial(out + whole, tail);
  }
}

inline void NormalizeRow(const LayerNormArgs& args, const float* in, float* out, float mean,
                         float inv_std) {
  if (args.gamma != nullptr && args.beta != nullptr)
    Normalize<true, true>(args, in, out, mean, inv_std);
  else if (args.gamma != nullptr)
    Normalize<true, false>(args, in, out, mean, inv_std);
  else if (args.beta != nullptr)
    Normalize<false, true>(args, in, out, mean, inv_std);
  else
    Normalize<false, false>(args, in, out, mean, inv_std);
}

inline void LayerNorm(const LayerNormArgs& args) {
  const double count = static_cast<double>(args.n);
  for (std::size_t row = 0; row < args.rows; ++row) {
    const float* in = args.in + row * args.n;
    float* out = args.out + row * args.n;
    const float mean = args.rms ? 0.0f : static_cast<float>(Sum<false>(in, args.n, 0.0f) / count);
    const double variance = Sum<true>(in, args.n, mean) / count;
    const float inv_std = InverseRoot(static_cast<float>(variance) + args.epsilon);
    NormalizeRow(args, in, out, mean, inv_std);
    if (args.mean != nullptr) std::memcpy(args.mean + row, &mean, sizeof mean);
    if (args.inv_std != nullptr) std::memcpy(args.inv_std + row, &inv_std, sizeof inv_std);
  }
}

inline void Moments(const float* in, std::size_t n, double* mean, double* variance) {
  *mean = Sum<false>(in, n, 0.0f) / static_cast<double>(n);
  // The float next to the mean is as good a point to measure from: its offset is taken off again.
  const float near = static_cast<float>(*mean);
  const double offset = *mean - static_cast<double>(near);
  *variance = Sum<true>(in, n, near) / static_cast<double>(n) - offset * offset;
  if (*variance < 0) *variance = 0;
}

inline void Affine(const float* in, float* out, std::size_t n, float center, float scale,
                   float shift) {
  const F32 m = F32::broadcast(center), a = F32::broadcast(scale), b = F32::broadcast(shift);
  std::size_t i = 0;
  for (; i + 2 * kW <= n; i += 2 * kW) {
    const F32 x = F32::add(F32::mul(F32::sub(F32::load(in + i), m), a), b);
    const F32 y = F32::add(F32::mul(F32::sub(F32::load(in + i + kW), m), a), b);
    x.store(out + i);
    y.store(out + i + kW);
  }
  for (; i < n; i += kW) {
    const int lanes = static_cast<int>(n - i < kW ? n - i : kW);
    F32::add(F32::mul(F32::sub(F32::load_partial(in + i, lanes), m), a), b)
        .store_partial(out + i, lanes);
  }
}

inline void AffineRows(const float* in, float* out, std::size_t n, const float* scale,
                       const float* shift) {
  std::size_t i = 0;
  for (; i + kW <= n; i += kW)
    F32::add(F32::mul(F32::load(in + i), F32::load(scale + i)), F32::load(shift + i))
        .store(out + i);
  if (i < n) {
    const int lanes = static_cast<int>(n - i);
    F32::add(F32::mul(F32::load_partial(in + i, lanes), F32::load_partial(scale + i, lanes)),
             F32::load_partial(shift + i, lanes))
        .store_partial(out + i, lanes);
  }
}

inline void Lrn(const LrnArgs& args) {
  const F32 alpha = F32::broadcast(args.alpha / static_cast<float>(args.size));
  const F32 beta = F32::broadcast(-args.beta), bias = F32::broadcast(args.bias);
  const std::size_t before = (args.size - 1) / 2, after = args.size - 1 - before;
  for (std::size_t i = 0; i < args.cols; i += kW) {
    const int lanes = static_cast<int>(args.cols - i < kW ? args.cols - i : kW);
    for (std::size_t c = 0; c < args.channels; ++c) {
      const std::size_t first = c < before ? 0 : c - before;
      const std::size_t last = args.channels - 1 - c < after ? args.channels - 1 : c + after;
      F32 sum = F32::zero();
      for (std::size_t k = first; k <= last; ++k) {
        const F32 x = F32::load_partial(args.in + k * args.stride + i, lanes);
        sum = F32::fma(x, x, sum);
      }
      const F32 base = F32::add(bias, F32::mul(alpha, sum));
      const F32 power = F32::exp(F32::mul(beta, F32::log(base)));
      const F32 x = F32::load_partial(args.in + c * args.stride + i, lanes);
      F32::mul(x, power).store_partial(args.out + c * args.stride + i, lanes);
    }
  }
}

}  // namespace

#define NPURT_NORM_SET(set)                                                                     \
  void layer_norm_f32_##set(const LayerNormArgs& args) { LayerNorm(args); }                     \
  void normalize_f32_##set(const LayerNormArgs& args, float mean, float inv_std) {              \
    NormalizeRow(args, args.in, args.out, mean, inv_std);                                       \
  }                                                                                             \
  void sum_f32_##set(const float* in, std::size_t n, float shift, bool squares, double* sum) {  \
    *sum += squares ? Sum<true>(in, n, shift) : Sum<false>(in, n, shift);                       \
  }                                                                                             \
  void moments_f32_##set(const float* in, std::size_t n, double* mean, double* variance) {      \
    Moments(in, n, mean, variance);                                                             \
  }                                                                                             \
  void affine_f32_##set(const float* in, float* out, std::size_t n, float center, float scale,  \
                        float shift) {                                                          \
    Affine(in, out, n, center, scale, shift);                                                   \
  }                                                                                             \
  void affine_rows_f32_##set(const float* in, float* out, std::size_t n, const float* scale,    \
                             const float* shift) {                                              \
    AffineRows(in, out, n, scale, shift);                                                       \
  }                                                                                             \
  void lrn_f32_##set(const LrnArgs& args) { Lrn(args); }
