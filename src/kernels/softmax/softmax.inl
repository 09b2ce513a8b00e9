// Softmax over F32 of one instruction set: three passes, maximum, exponentials and their sum, scale.
// The second pass leaves the exponentials in `out`, so that they are computed once.
namespace {

constexpr std::size_t kW = static_cast<std::size_t>(F32::kWidth);

inline void Row(const float* in, float* out, std::size_t n, bool log) {
  const F32 lowest = F32::broadcast(-__builtin_inff());
  const int tail = static_cast<int>(n % kW);
  const std::size_t whole = n - n % kW;
  // Lanes beyond the row are -Inf: no maximum, and an exponential of 0.
  F32 last = lowest;
  if (tail != 0) {
    float part[kW];
    lowest.store(part);
    std::memcpy(part, in + whole, static_cast<std::size_t>(tail) * sizeof(float));
    last = F32::load(part);
  }
  F32 m0 = lowest, m1 = last;
  std::size_t i = 0;
  for (; i + 2 * kW <= whole; i += 2 * kW) {
    m0 = F32::max(m0, F32::load(in + i));
    m1 = F32::max(m1, F32::load(in + i + kW));
  }
  if (i < whole) m0 = F32::max(m0, F32::load(in + i));
  const float max = F32::reduce_max(F32::max(m0, m1));

  const F32 shift = F32::broadcast(max);
  F32 s0 = F32::zero(), s1 = F32::zero();
  for (i = 0; i + 2 * kW <= whole; i += 2 * kW) {
    const F32 e0 = F32::exp(F32::sub(F32::load(in + i), shift));
    const F32 e1 = F32::exp(F32::sub(F32::load(in + i + kW), shift));
    if (!log) {
      e0.store(out + i);
      e1.store(out + i + kW);
    }
    s0 = F32::add(s0, e0);
    s1 = F32::add(s1, e1);
  }
  if (i < whole) {
    const F32 e = F32::exp(F32::sub(F32::load(in + i), shift));
    if (!log) e.store(out + i);
    s0 = F32::add(s0, e);
  }
  if (tail != 0) {
    const F32 e = F32::exp(F32::sub(last, shift));
    if (!log) e.store_partial(out + whole, tail);
    s1 = F32::add(s1, e);
  }
  const float sum = F32::reduce_add(F32::add(s0, s1));
  if (!log) {
    const F32 scale = F32::broadcast(1.0f / sum);
    for (i = 0; i < whole; i += kW) F32::mul(F32::load(out + i), scale).store(out + i);
    if (tail != 0)
      F32::mul(F32::load_partial(out + whole, tail), scale).store_partial(out + whole, tail);
    return;
  }
  float lanes[kW];
  F32::log(F32::broadcast(sum)).store(lanes);
  const F32 offset = F32::broadcast(lanes[0]);
  for (i = 0; i < whole; i += kW)
    F32::sub(F32::sub(F32::load(in + i), shift), offset).store(out + i);
  if (tail != 0)
    F32::sub(F32::sub(F32::load_partial(in + whole, tail), shift), offset)
        .store_partial(out + whole, tail);
}

// kW columns at once, or the `lanes` that are left.
template <bool kPartial>
inline void Columns(const SoftmaxArgs& args, std::size_t column, int lanes) {
  const float* in = args.in + column;
  float* out = args.out + column;
  const auto load = [lanes](const float* p) {
    return kPartial ? F32::load_partial(p, lanes) : F32::load(p);
  };
  const auto store = [lanes](F32 v, float* p) {
    if (kPartial) v.store_partial(p, lanes);
    else v.store(p);
  };
  F32 max = F32::broadcast(-__builtin_inff());
  for (std::size_t i = 0; i < args.n; ++i) max = F32::max(max, load(in + i * args.stride));
  F32 sum = F32::zero();
  for (std::size_t i = 0; i < args.n; ++i) {
    const F32 e = F32::exp(F32::sub(load(in + i * args.stride), max));
    if (!args.log) store(e, out + i * args.stride);
    sum = F32::add(sum, e);
  }
  if (args.log) {
    const F32 offset = F32::log(sum);
    for (std::size_t i = 0; i < args.n; ++i)
      store(F32::sub(F32::sub(load(in + i * args.stride), max), offset), out + i * args.stride);
    return;
  }
  const F32 scale = F32::div(F32::broadcast(1.0f), sum);
  for (std::size_t i = 0; i < args.n; ++i)
    store(F32::mul(load(out + i * args.stride), scale), out + i * args.stride);
}

inline F32 Finished(F32 x, F32 max, F32 by, bool log) {
  const F32 d = F32::sub(x, max);
  return log ? F32::sub(d, by) : F32::mul(F32::exp(d), by);
}

inline void Finish(const SoftmaxPieceArgs& args) {
  for (std::size_t r = 0; r < args.rows; ++r) {
    const float* in = args.in + r * args.stride;
    float* out = args.out + r * args.stride;
    for (std::size_t c = 0; c < args.columns; c += kW) {
      const int lanes = static_cast<int>(args.columns - c < kW ? args.columns - c : kW);
      const F32 max = args.one_line ? F32::broadcast(*args.max)
                                    : F32::load_partial(args.max + c, lanes);
      const F32 by = args.one_line ? F32::broadcast(*args.by)
                                   : F32::load_partial(args.by + c, lanes);
      if (lanes == static_cast<int>(kW))
        Finished(F32::load(in + c), max, by, args.log).store(out + c);
      else
        Finished(F32::load_partial(in + c, lanes), max, by, args.log).store_partial(out + c, lanes);
    }
  }
}

}  // namespace

#define NPURT_SOFTMAX_SET(set)                                                             \
  void softmax_rows_f32_##set(const SoftmaxArgs& args) {                                   \
    for (std::size_t i = 0; i < args.count; ++i)                                           \
      Row(args.in + i * args.line_stride, args.out + i * args.line_stride, args.n, args.log); \
  }                                                                                        \
  void softmax_columns_f32_##set(const SoftmaxArgs& args) {                                \
    std::size_t c = 0;                                                                     \
    for (; c + kW <= args.count; c += kW) Columns<false>(args, c, 0);                      \
    if (c < args.count) Columns<true>(args, c, static_cast<int>(args.count - c));          \
  }                                                                                        \
  void softmax_finish_f32_##set(const SoftmaxPieceArgs& args) { Finish(args); }
