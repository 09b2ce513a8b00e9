// Products with weights of few bits over the F32 and I32 of one instruction set. Two vectors of
// columns; the words of a vector of columns hold several k, which come out one after the other.
namespace {

#if defined(__clang__)
#define NPURT_UNROLL _Pragma("clang loop unroll(full)")
#else
#define NPURT_UNROLL _Pragma("GCC unroll 32")
#endif

constexpr int kW = F32::kWidth;

// Calls each(k, w0, w1) with q - zero of the columns, for every k from `first` to `last` - 1, which are
// of one block. `first` starts a word.
template <int kBits, typename Each>
inline void ForEachWeight(const NbitsPanel& p, F32 zero0, F32 zero1, std::int64_t first,
                          std::int64_t last, Each each) {
  constexpr int kPerWord = 32 / kBits;
  const I32 mask = I32::broadcast((1 << kBits) - 1);
  const std::int32_t* words = p.words + first / kPerWord * 2 * kW;
  const auto one = [&](std::int64_t k, I32* w0, I32* w1) {
    each(k, F32::sub(I32::to_f32(I32::and_(*w0, mask)), zero0),
         F32::sub(I32::to_f32(I32::and_(*w1, mask)), zero1));
    *w0 = I32::template shift_right<kBits>(*w0);
    *w1 = I32::template shift_right<kBits>(*w1);
  };
  std::int64_t k = first;
  for (; k + kPerWord <= last; k += kPerWord, words += 2 * kW) {
    I32 w0 = I32::load(words), w1 = I32::load(words + kW);
    NPURT_UNROLL
    for (int i = 0; i < kPerWord; ++i) one(k + i, &w0, &w1);
  }
  if (k == last) return;
  I32 w0 = I32::load(words), w1 = I32::load(words + kW);
  for (; k < last; ++k) one(k, &w0, &w1);
}

inline std::int64_t Smaller(std::int64_t a, std::int64_t b) { return a < b ? a : b; }

template <int kBits, int kRows>
inline void Dot(const NbitsDotArgs& g) {
  const NbitsPanel& p = g.panel;
  F32 sum[kRows][2];
  const F32 bias0 =
      g.bias == nullptr ? F32::zero() : F32::load_partial(g.bias, g.cols < kW ? g.cols : kW);
  const F32 bias1 =
      g.bias == nullptr || g.cols <= kW ? F32::zero() : F32::load_partial(g.bias + kW, g.cols - kW);
  NPURT_UNROLL
  for (int r = 0; r < kRows; ++r) {
    sum[r][0] = bias0;
    sum[r][1] = bias1;
  }
  const std::int64_t end = p.first_k + p.k;
  for (std::int64_t k = p.first_k; k < end;) {
    const std::int64_t b = k / p.block, last = Smaller(end, (b + 1) * p.block);
    F32 part[kRows][2];
    NPURT_UNROLL
    for (int r = 0; r < kRows; ++r) part[r][0] = part[r][1] = F32::zero();
    const float* const zeros = p.zeros + b * 2 * kW;
    ForEachWeight<kBits>(p, F32::load(zeros), F32::load(zeros + kW), k, last,
                         [&](std::int64_t i, F32 w0, F32 w1) {
                           NPURT_UNROLL
                           for (int r = 0; r < kRows; ++r) {
                             const F32 x = F32::load_broadcast(g.a + r * g.a_row_stride + i);
                             part[r][0] = F32::fma(x, w0, part[r][0]);
                             part[r][1] = F32::fma(x, w1, part[r][1]);
                           }
                         });
    const F32 scale0 = F32::load(p.scales + b * 2 * kW);
    const F32 scale1 = F32::load(p.scales + b * 2 * kW + kW);
    NPURT_UNROLL
    for (int r = 0; r < kRows; ++r) {
      sum[r][0] = F32::fma(part[r][0], scale0, sum[r][0]);
      sum[r][1] = F32::fma(part[r][1], scale1, sum[r][1]);
    }
    k = last;
  }
  for (int r = 0; r < kRows; ++r) {
    float* const c = g.c + r * g.c_stride;
    if (g.cols >= kW) {
      sum[r][0].store(c);
    } else {
      sum[r][0].store_partial(c, g.cols);
    }
    if (g.cols == 2 * kW) {
      sum[r][1].store(c + kW);
    } else if (g.cols > kW) {
      sum[r][1].store_partial(c + kW, g.cols - kW);
    }
  }
}

template <int kBits>
inline void DotRows(const NbitsDotArgs& g) {
  switch (g.rows) {
    case 1:
      return Dot<kBits, 1>(g);
    case 2:
      return Dot<kBits, 2>(g);
    case 3:
      return Dot<kBits, 3>(g);
    default:
      return Dot<kBits, 4>(g);
  }
}

template <int kBits>
inline void Unpack(const NbitsPanel& p, float* out) {
  const std::int64_t end = p.first_k + p.k;
  for (std::int64_t k = p.first_k; k < end;) {
    const std::int64_t b = k / p.block, last = Smaller(end, (b + 1) * p.block);
    const float *const zeros = p.zeros + b * 2 * kW, *const scales = p.scales + b * 2 * kW;
    const F32 scale0 = F32::load(scales), scale1 = F32::load(scales + kW);
    ForEachWeight<kBits>(p, F32::load(zeros), F32::load(zeros + kW), k, last,
                         [&](std::int64_t, F32 w0, F32 w1) {
                           F32::mul(w0, scale0).store(out);
                           F32::mul(w1, scale1).store(out + kW);
                           out += 2 * kW;
                         });
    k = last;
  }
}

inline void DotBits(const NbitsDotArgs& g) {
  switch (g.panel.bits) {
    case 2:
      return DotRows<2>(g);
    case 4:
      return DotRows<4>(g);
    default:
      return DotRows<8>(g);
  }
}

inline void UnpackBits(const NbitsPanel& p, float* out) {
  switch (p.bits) {
    case 2:
      return Unpack<2>(p, out);
    case 4:
      return Unpack<4>(p, out);
    default:
      return Unpack<8>(p, out);
  }
}

}  // namespace

#define NPURT_NBITS_SET(set)                                        \
  void nbits_dot_##set(const NbitsDotArgs& args) { DotBits(args); } \
  void nbits_unpack_##set(const NbitsPanel& panel, float* out) { UnpackBits(panel, out); }
