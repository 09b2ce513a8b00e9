// Pooling passes over F32 of one instruction set.
namespace {

constexpr std::size_t kW = static_cast<std::size_t>(F32::kWidth);

struct MaxOf {
  static constexpr bool kIsSum = false;
  static F32 Map(F32 x) { return x; }
  static F32 Join(F32 a, F32 b) { return F32::max(a, b); }
};
struct SumOf {
  static constexpr bool kIsSum = true;
  static F32 Map(F32 x) { return x; }
  static F32 Join(F32 a, F32 b) { return F32::add(a, b); }
};
struct SumAbsOf : SumOf {
  static F32 Map(F32 x) { return F32::abs(x); }
};
struct SumSquaresOf : SumOf {
  static F32 Map(F32 x) { return F32::mul(x, x); }
};

template <typename Op>
void Combine(float* acc, const float* row, std::size_t n, bool first) {
  for (std::size_t i = 0; i < n; i += kW) {
    const int lanes = static_cast<int>(n - i < kW ? n - i : kW);
    const F32 x = Op::Map(lanes == F32::kWidth ? F32::load(row + i)
                                               : F32::load_partial(row + i, lanes));
    const F32 y = first ? x
                  : lanes == F32::kWidth ? Op::Join(F32::load(acc + i), x)
                                         : Op::Join(F32::load_partial(acc + i, lanes), x);
    if (lanes == F32::kWidth) y.store(acc + i);
    else y.store_partial(acc + i, lanes);
  }
}

template <typename Op>
void Slide(const float* row, float* out, std::size_t n, std::size_t stride, std::size_t window,
           std::size_t dilation) {
  std::size_t i = 0;
  if (stride <= 2) {
    for (; i < n; i += kW) {
      const float* p = row + i * stride;
      const auto at = [stride, p](std::size_t offset) {
        const F32 low = F32::load(p + offset);
        return stride == 1 ? low : EvenOf(low, F32::load(p + offset + kW));
      };
      F32 acc = at(0);
      for (std::size_t k = 1; k < window; ++k) acc = Op::Join(acc, at(k * dilation));
      if (n - i >= kW) acc.store(out + i);
      else acc.store_partial(out + i, static_cast<int>(n - i));
    }
    return;
  }
  // Wide strides: gather kW windows at a time through memory.
  for (; i < n; i += kW) {
    const std::size_t lanes = n - i < kW ? n - i : kW;
    F32 acc = F32::zero();
    for (std::size_t k = 0; k < window; ++k) {
      float part[kW] = {};
      for (std::size_t l = 0; l < lanes; ++l) part[l] = row[(i + l) * stride + k * dilation];
      acc = k == 0 ? F32::load(part) : Op::Join(acc, F32::load(part));
    }
    acc.store_partial(out + i, static_cast<int>(lanes));
  }
}

// kBlocks vectors of channels at a time.
template <typename Op, int kBlocks>
inline void WindowBlocks(const PoolWindowArgs& g, const float* in, float* out, F32 factor) {
  F32 acc[kBlocks];
  for (int b = 0; b < kBlocks; ++b) acc[b] = F32::load(in + b * F32::kWidth);
  for (std::int64_t r = 0; r < g.rows; ++r)
    for (std::int64_t c = r == 0; c < g.cols; ++c) {
      const float* const p = in + r * g.row_stride + c * g.col_stride;
      for (int b = 0; b < kBlocks; ++b)
        acc[b] = Op::Join(acc[b], F32::load(p + b * F32::kWidth));
    }
  for (int b = 0; b < kBlocks; ++b)
    (Op::kIsSum ? F32::mul(acc[b], factor) : acc[b]).store(out + b * F32::kWidth);
}

template <typename Op>
void Window(const PoolWindowArgs& g) {
  const F32 factor = F32::broadcast(g.factor);
  const float* in = g.in;
  float* out = g.out;
  for (std::int64_t i = 0; i < g.pixels; ++i, in += g.pixel_stride, out += g.channels) {
    std::int64_t c = 0;
    for (; c + 4 * F32::kWidth <= g.channels; c += 4 * F32::kWidth)
      WindowBlocks<Op, 4>(g, in + c, out + c, factor);
    for (; c + F32::kWidth <= g.channels; c += F32::kWidth)
      WindowBlocks<Op, 1>(g, in + c, out + c, factor);
    if (c == g.channels) continue;
    const int n = static_cast<int>(g.channels - c);
    F32 acc = F32::load_partial(in + c, n);
    for (std::int64_t r = 0; r < g.rows; ++r)
      for (std::int64_t k = r == 0; k < g.cols; ++k)
        acc = Op::Join(acc, F32::load_partial(in + r * g.row_stride + k * g.col_stride + c, n));
    (Op::kIsSum ? F32::mul(acc, factor) : acc).store_partial(out + c, n);
  }
}

}  // namespace

// In the order of PoolFold.
#define NPURT_POOL_SET(set)                                                                     \
  const PoolCombineFn kPoolCombine_##set[kPoolFoldCount] = {Combine<MaxOf>, Combine<SumOf>,     \
                                                            Combine<SumAbsOf>,                  \
                                                            Combine<SumSquaresOf>};             \
  void pool_slide_max_##set(const float* row, float* out, std::size_t n, std::size_t stride,    \
                            std::size_t window, std::size_t dilation) {                         \
    Slide<MaxOf>(row, out, n, stride, window, dilation);                                        \
  }                                                                                             \
  void pool_slide_sum_##set(const float* row, float* out, std::size_t n, std::size_t stride,    \
                            std::size_t window, std::size_t dilation) {                         \
    Slide<SumOf>(row, out, n, stride, window, dilation);                                        \
  }                                                                                             \
  void pool_window_max_##set(const PoolWindowArgs& args) { Window<MaxOf>(args); }               \
  void pool_window_sum_##set(const PoolWindowArgs& args) { Window<SumOf>(args); }
