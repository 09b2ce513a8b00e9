// Folds over F32 of one instruction set. Each fold says what it starts from, what it adds and how two
// partial results combine; the two loop shapes own blocks and tails.
namespace {

constexpr std::size_t kW = static_cast<std::size_t>(F32::kWidth);
// Floats summed before the sum goes to the next level.
constexpr std::size_t kBlock = 1024;
constexpr std::size_t kRowBlock = 128;

struct SumFold {
  static constexpr float kStart = 0.0f;
  static F32 Add(F32 acc, F32 x, F32) { return F32::add(acc, x); }
  static F32 Join(F32 a, F32 b) { return F32::add(a, b); }
  static double Lanes(F32 a, double acc) { return acc + static_cast<double>(F32::reduce_add(a)); }
};
struct SumAbsFold : SumFold {
  static F32 Add(F32 acc, F32 x, F32) { return F32::add(acc, F32::abs(x)); }
};
struct SumSquaresFold : SumFold {
  static F32 Add(F32 acc, F32 x, F32) { return F32::fma(x, x, acc); }
};
struct SumExpFold : SumFold {
  static F32 Add(F32 acc, F32 x, F32 shift) { return F32::add(acc, F32::exp(F32::sub(x, shift))); }
};
struct MaxFold {
  static constexpr float kStart = -__builtin_inff();
  static F32 Add(F32 acc, F32 x, F32) { return F32::max(acc, x); }
  static F32 Join(F32 a, F32 b) { return F32::max(a, b); }
  static double Lanes(F32 a, double acc) {
    const double lanes = static_cast<double>(F32::reduce_max(a));
    return acc != acc || acc > lanes ? acc : lanes;
  }
};
struct MinFold {
  static constexpr float kStart = __builtin_inff();
  static F32 Add(F32 acc, F32 x, F32) { return F32::min(acc, x); }
  static F32 Join(F32 a, F32 b) { return F32::min(a, b); }
  static double Lanes(F32 a, double acc) {
    const double lanes = static_cast<double>(F32::reduce_min(a));
    return acc != acc || acc < lanes ? acc : lanes;
  }
};
struct ProdFold {
  static constexpr float kStart = 1.0f;
  static F32 Add(F32 acc, F32 x, F32) { return F32::mul(acc, x); }
  static F32 Join(F32 a, F32 b) { return F32::mul(a, b); }
  static double Lanes(F32 a, double acc) {
    float lanes[kW];
    a.store(lanes);
    for (std::size_t i = 0; i < kW; ++i) acc *= static_cast<double>(lanes[i]);
    return acc;
  }
};

template <typename F>
void Row(const float* in, std::size_t n, const float* shift, double* acc) {
  const F32 s = F32::broadcast(shift != nullptr ? *shift : 0.0f);
  const F32 start = F32::broadcast(F::kStart);
  double result = *acc;
  while (n > 0) {
    const std::size_t block = n < kBlock ? n : kBlock;
    F32 a0 = start, a1 = start, a2 = start, a3 = start;
    std::size_t i = 0;
    for (; i + 4 * kW <= block; i += 4 * kW) {
      a0 = F::Add(a0, F32::load(in + i), s);
      a1 = F::Add(a1, F32::load(in + i + kW), s);
      a2 = F::Add(a2, F32::load(in + i + 2 * kW), s);
      a3 = F::Add(a3, F32::load(in + i + 3 * kW), s);
    }
    for (; i + kW <= block; i += kW) a0 = F::Add(a0, F32::load(in + i), s);
    if (i < block) {
      // The lanes that are missing must not count, whatever 0 would mean to the fold.
      const int tail = static_cast<int>(block - i);
      float lanes[kW], kept[kW];
      a1.store(kept);
      F::Add(a1, F32::load_partial(in + i, tail), s).store(lanes);
      std::memcpy(kept, lanes, static_cast<std::size_t>(tail) * sizeof(float));
      a1 = F32::load(kept);
    }
    result = F::Lanes(F::Join(F::Join(a0, a1), F::Join(a2, a3)), result);
    in += block;
    n -= block;
  }
  *acc = result;
}

template <typename F>
void Columns(const float* in, std::size_t stride, std::size_t rows, std::size_t cols,
             const float* shift, float* acc) {
  const F32 start = F32::broadcast(F::kStart);
  for (std::size_t r0 = 0; r0 < rows; r0 += kRowBlock) {
    const std::size_t count = rows - r0 < kRowBlock ? rows - r0 : kRowBlock;
    const float* from = in + r0 * stride;
    std::size_t c = 0;
    for (; c + 4 * kW <= cols; c += 4 * kW) {
      F32 a0 = start, a1 = start, a2 = start, a3 = start;
      F32 s0 = F32::zero(), s1 = s0, s2 = s0, s3 = s0;
      if (shift != nullptr) {
        s0 = F32::load(shift + c);
        s1 = F32::load(shift + c + kW);
        s2 = F32::load(shift + c + 2 * kW);
        s3 = F32::load(shift + c + 3 * kW);
      }
      const float* p = from + c;
      for (std::size_t r = 0; r < count; ++r, p += stride) {
        a0 = F::Add(a0, F32::load(p), s0);
        a1 = F::Add(a1, F32::load(p + kW), s1);
        a2 = F::Add(a2, F32::load(p + 2 * kW), s2);
        a3 = F::Add(a3, F32::load(p + 3 * kW), s3);
      }
      F::Join(F32::load(acc + c), a0).store(acc + c);
      F::Join(F32::load(acc + c + kW), a1).store(acc + c + kW);
      F::Join(F32::load(acc + c + 2 * kW), a2).store(acc + c + 2 * kW);
      F::Join(F32::load(acc + c + 3 * kW), a3).store(acc + c + 3 * kW);
    }
    for (; c < cols; c += kW) {
      const int lanes = static_cast<int>(cols - c < kW ? cols - c : kW);
      const F32 s = shift != nullptr ? F32::load_partial(shift + c, lanes) : F32::zero();
      F32 a = start;
      const float* p = from + c;
      for (std::size_t r = 0; r < count; ++r, p += stride)
        a = F::Add(a, F32::load_partial(p, lanes), s);
      F::Join(F32::load_partial(acc + c, lanes), a).store_partial(acc + c, lanes);
    }
  }
}

}  // namespace

// In the order of Fold.
#define NPURT_REDUCE_SET(set)                                                              \
  const FoldRowFn kFoldRows_##set[kFoldCount] = {                                          \
      Row<SumFold>, Row<SumAbsFold>, Row<SumSquaresFold>, Row<SumExpFold>,                 \
      Row<MaxFold>, Row<MinFold>,    Row<ProdFold>};                                       \
  const FoldColumnsFn kFoldColumns_##set[kFoldCount] = {                                   \
      Columns<SumFold>, Columns<SumAbsFold>, Columns<SumSquaresFold>, Columns<SumExpFold>, \
      Columns<MaxFold>, Columns<MinFold>,    Columns<ProdFold>};
