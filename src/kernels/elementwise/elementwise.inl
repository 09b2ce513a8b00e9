// The vector rows of the elementwise engine, written once over F32, I32 and Mask of one instruction
// set. Included by generic.cc, avx2.cc and avx512.cc inside namespace npurt::kernels::rows_<set>,
// with that set's types in scope.
//
// Each operation is one expression; the four loop shapes below own tails and scalar operands. Two
// vectors a round: most expressions are chains of dependent steps.
namespace {

constexpr std::size_t kW = static_cast<std::size_t>(F32::kWidth);

inline int TailOf(std::size_t count) { return static_cast<int>(count % kW); }

// Bit i of `bits` as byte i, 0 or 1.
inline void StoreBits(unsigned bits, std::uint8_t* out, std::size_t n) {
  for (std::size_t i = 0; i < n; i += 8) {
    // Every byte keeps its own bit; adding 0x7f carries it to the top of the byte.
    std::uint64_t bytes = ((bits >> i) & 0xffu) * 0x0101010101010101u & 0x8040201008040201u;
    bytes = ((bytes + 0x7f7f7f7f7f7f7f7fu) >> 7) & 0x0101010101010101u;
    std::memcpy(out + i, &bytes, n - i < 8 ? n - i : 8);
  }
}

inline Mask LoadBools(const std::uint8_t* p) {
  return Mask::not_(I32::eq(LoadU8(p), I32::zero()));
}
inline Mask LoadBoolsPartial(const std::uint8_t* p, int n) {
  std::uint8_t part[kW] = {};
  std::memcpy(part, p, static_cast<std::size_t>(n));
  return LoadBools(part);
}

// An operand of a row: a vector per step, or one value throughout.
template <bool kScalar>
struct Operand {
  const float* p;
  F32 value;
  Operand(const void* at, std::size_t count) : p(static_cast<const float*>(at)) {
    value = F32::zero();
    if (kScalar && count > 0) {
      float x;
      std::memcpy(&x, at, sizeof x);
      value = F32::broadcast(x);
    }
  }
  F32 At(std::size_t i) const { return kScalar ? value : F32::load(p + i); }
  F32 Partial(std::size_t i, int n) const { return kScalar ? value : F32::load_partial(p + i, n); }
};

inline void Fill(float* out, std::size_t count, F32 value) {
  std::size_t i = 0;
  for (; i + kW <= count; i += kW) value.store(out + i);
  if (i < count) value.store_partial(out + i, TailOf(count));
}

template <typename Op>
void Unary(const RowArgs& args) {
  float* out = static_cast<float*>(args.out);
  const F32 p0 = F32::broadcast(args.params[0]), p1 = F32::broadcast(args.params[1]);
  if (args.scalars & 1) {
    const Operand<true> x(args.in[0], args.count);
    Fill(out, args.count, Op::Run(x.value, p0, p1));
    return;
  }
  const float* x = static_cast<const float*>(args.in[0]);
  std::size_t i = 0;
  for (; i + 2 * kW <= args.count; i += 2 * kW) {
    const F32 a = Op::Run(F32::load(x + i), p0, p1);
    const F32 b = Op::Run(F32::load(x + i + kW), p0, p1);
    a.store(out + i);
    b.store(out + i + kW);
  }
  if (i + kW <= args.count) {
    Op::Run(F32::load(x + i), p0, p1).store(out + i);
    i += kW;
  }
  if (i < args.count) {
    const int n = TailOf(args.count);
    Op::Run(F32::load_partial(x + i, n), p0, p1).store_partial(out + i, n);
  }
}

template <typename Op, bool kX, bool kY>
void BinaryLoop(const RowArgs& args) {
  float* out = static_cast<float*>(args.out);
  const Operand<kX> x(args.in[0], args.count);
  const Operand<kY> y(args.in[1], args.count);
  std::size_t i = 0;
  for (; i + 2 * kW <= args.count; i += 2 * kW) {
    const F32 a = Op::Run(x.At(i), y.At(i));
    const F32 b = Op::Run(x.At(i + kW), y.At(i + kW));
    a.store(out + i);
    b.store(out + i + kW);
  }
  if (i + kW <= args.count) {
    Op::Run(x.At(i), y.At(i)).store(out + i);
    i += kW;
  }
  if (i < args.count) {
    const int n = TailOf(args.count);
    Op::Run(x.Partial(i, n), y.Partial(i, n)).store_partial(out + i, n);
  }
}

template <typename Op, bool kX, bool kY>
void TestLoop(const RowArgs& args) {
  std::uint8_t* out = static_cast<std::uint8_t*>(args.out);
  const Operand<kX> x(args.in[0], args.count);
  const Operand<kY> y(args.in[1], args.count);
  std::size_t i = 0;
  for (; i + kW <= args.count; i += kW)
    StoreBits(Op::Run(x.At(i), y.At(i)).bits(), out + i, kW);
  if (i < args.count) {
    const int n = TailOf(args.count);
    StoreBits(Op::Run(x.Partial(i, n), y.Partial(i, n)).bits(), out + i,
              static_cast<std::size_t>(n));
  }
}

template <typename Op, bool kX, bool kY, bool kZ>
void TernaryLoop(const RowArgs& args) {
  float* out = static_cast<float*>(args.out);
  const Operand<kX> x(args.in[0], args.count);
  const Operand<kY> y(args.in[1], args.count);
  const Operand<kZ> z(args.in[2], args.count);
  std::size_t i = 0;
  for (; i + kW <= args.count; i += kW) Op::Run(x.At(i), y.At(i), z.At(i)).store(out + i);
  if (i < args.count) {
    const int n = TailOf(args.count);
    Op::Run(x.Partial(i, n), y.Partial(i, n), z.Partial(i, n)).store_partial(out + i, n);
  }
}

template <bool kX, bool kY>
void WhereLoop(const RowArgs& args, const std::uint8_t* condition) {
  float* out = static_cast<float*>(args.out);
  const Operand<kX> x(args.in[1], args.count);
  const Operand<kY> y(args.in[2], args.count);
  std::size_t i = 0;
  for (; i + kW <= args.count; i += kW)
    F32::select(LoadBools(condition + i), x.At(i), y.At(i)).store(out + i);
  if (i < args.count) {
    const int n = TailOf(args.count);
    F32::select(LoadBoolsPartial(condition + i, n), x.Partial(i, n), y.Partial(i, n))
        .store_partial(out + i, n);
  }
}

// e^x - 1 for x <= 0, without the cancellation near 0: with t = tanh(x / 2) it is 2t / (1 - t).
inline F32 NegativeExpm1(F32 x) {
  const F32 one = F32::broadcast(1.0f);
  const F32 t = F32::tanh(F32::mul(x, F32::broadcast(0.5f)));
  return F32::div(F32::add(t, t), F32::sub(one, t));
}

inline F32 EluOf(F32 x, F32 alpha) {
  const F32 negative = F32::mul(alpha, NegativeExpm1(F32::min_or_second(F32::zero(), x)));
  return F32::select(F32::lt(x, F32::zero()), negative, x);
}

// max(x, 0) + log(1 + e) with e = exp(-|x|); the correction by e / ((1 + e) - 1) keeps small e.
inline F32 SoftplusOf(F32 x) {
  const F32 one = F32::broadcast(1.0f);
  const F32 e = F32::exp(F32::neg(F32::abs(x)));
  const F32 u = F32::add(one, e);
  const F32 d = F32::sub(u, one);
  const Mask lost = F32::eq(d, F32::zero());
  const F32 log = F32::mul(F32::log(u), F32::div(e, F32::select(lost, one, d)));
  return F32::add(F32::max_or_second(F32::zero(), x), F32::select(lost, e, log));
}

// x * tanh(softplus(x)) = x * n / (n + 2) with n = e^x (e^x + 2); from 20 on it is x.
inline F32 MishOf(F32 x) {
  const F32 two = F32::broadcast(2.0f);
  const F32 limit = F32::broadcast(20.0f);
  const F32 e = F32::exp(F32::min_or_second(limit, x));
  const F32 n = F32::mul(e, F32::add(e, two));
  return F32::select(F32::gt(x, limit), x, F32::mul(x, F32::div(n, F32::add(n, two))));
}

inline F32 SignOf(F32 x) {
  const F32 one = F32::broadcast(1.0f);
  const F32 positive = F32::select(F32::gt(x, F32::zero()), one, F32::zero());
  const F32 signed_one = F32::select(F32::lt(x, F32::zero()), F32::neg(one), positive);
  return F32::select(F32::is_nan(x), x, signed_one);
}

inline F32 GeluOf(F32 x) {
  const F32 half = F32::mul(F32::broadcast(0.5f), x);
  const F32 erf = F32::erf(F32::mul(x, F32::broadcast(0.70710678118654752440f)));
  return F32::mul(half, F32::add(F32::broadcast(1.0f), erf));
}

inline F32 GeluTanhOf(F32 x) {
  const F32 half = F32::mul(F32::broadcast(0.5f), x);
  const F32 cube = F32::mul(F32::mul(F32::mul(F32::broadcast(0.044715f), x), x), x);
  const F32 inner = F32::mul(F32::broadcast(0.79788456080286535588f), F32::add(x, cube));
  return F32::mul(half, F32::add(F32::broadcast(1.0f), F32::tanh(inner)));
}

inline F32 UnitClamp(F32 x) { return F32::clamp(x, F32::zero(), F32::broadcast(1.0f)); }

inline F32 ShrinkOf(F32 x, F32 bias, F32 lambd) {
  const F32 right = F32::select(F32::gt(x, lambd), F32::sub(x, bias), F32::zero());
  const F32 both = F32::select(F32::lt(x, F32::neg(lambd)), F32::add(x, bias), right);
  return F32::select(F32::is_nan(x), x, both);
}

}  // namespace

#define NPURT_UNARY(name, ...)                                        \
  namespace {                                                         \
  struct name##Op {                                                   \
    static F32 Run(F32 x, [[maybe_unused]] F32 p0, [[maybe_unused]] F32 p1) { \
      return __VA_ARGS__;                                             \
    }                                                                 \
  };                                                                  \
  }                                                                   \
  void name(const RowArgs& args) { Unary<name##Op>(args); }

NPURT_UNARY(Abs, F32::abs(x))
NPURT_UNARY(Neg, F32::neg(x))
NPURT_UNARY(Sign, SignOf(x))
NPURT_UNARY(Square, F32::mul(x, x))
NPURT_UNARY(Reciprocal, F32::div(F32::broadcast(1.0f), x))
NPURT_UNARY(Sqrt, F32::sqrt(x))
NPURT_UNARY(Rsqrt, F32::div(F32::broadcast(1.0f), F32::sqrt(x)))
NPURT_UNARY(Exp, F32::exp(x))
NPURT_UNARY(Log, F32::log(x))
NPURT_UNARY(Floor, F32::floor(x))
NPURT_UNARY(Ceil, F32::ceil(x))
NPURT_UNARY(Round, F32::round(x))
NPURT_UNARY(Tanh, F32::tanh(x))
NPURT_UNARY(Erf, F32::erf(x))
NPURT_UNARY(Sigmoid, F32::sigmoid(x))
NPURT_UNARY(Softplus, SoftplusOf(x))
NPURT_UNARY(Softsign, F32::div(x, F32::add(F32::broadcast(1.0f), F32::abs(x))))
NPURT_UNARY(Relu, F32::max_or_second(F32::zero(), x))
NPURT_UNARY(LeakyRelu, F32::select(F32::lt(x, F32::zero()), F32::mul(p0, x), x))
NPURT_UNARY(Elu, EluOf(x, p0))
NPURT_UNARY(Selu, F32::mul(p1, EluOf(x, p0)))
NPURT_UNARY(Celu, F32::select(F32::lt(x, F32::zero()), EluOf(F32::div(x, p0), p0), x))
NPURT_UNARY(HardSigmoid, UnitClamp(F32::add(F32::mul(p0, x), p1)))
NPURT_UNARY(HardSwish, F32::mul(x, UnitClamp(F32::add(F32::div(x, F32::broadcast(6.0f)),
                                                      F32::broadcast(0.5f)))))
NPURT_UNARY(Mish, MishOf(x))
NPURT_UNARY(Gelu, GeluOf(x))
NPURT_UNARY(GeluTanh, GeluTanhOf(x))
NPURT_UNARY(ThresholdedRelu,
            F32::select(Mask::or_(F32::gt(x, p0), F32::is_nan(x)), x, F32::zero()))
NPURT_UNARY(Swish, F32::mul(x, F32::sigmoid(F32::mul(p0, x))))
NPURT_UNARY(DivideBy, F32::div(x, p0))
NPURT_UNARY(Clip, F32::clamp(x, p0, p1))
NPURT_UNARY(Shrink, ShrinkOf(x, p0, p1))
#undef NPURT_UNARY

// The four ways in which two operands may be scalars.
#define NPURT_TWO_OPERANDS(name, loop)             \
  void name(const RowArgs& args) {                 \
    switch (args.scalars & 3) {                    \
      case 0: return loop<name##Op, false, false>(args); \
      case 1: return loop<name##Op, true, false>(args);  \
      case 2: return loop<name##Op, false, true>(args);  \
      default: return loop<name##Op, true, true>(args);  \
    }                                              \
  }
#define NPURT_BINARY(name, ...)                                   \
  namespace {                                                     \
  struct name##Op {                                               \
    static F32 Run(F32 x, F32 y) { return __VA_ARGS__; }          \
  };                                                              \
  }                                                               \
  NPURT_TWO_OPERANDS(name, BinaryLoop)
#define NPURT_TEST(name, ...)                                     \
  namespace {                                                     \
  struct name##Op {                                               \
    static Mask Run(F32 x, F32 y) { return __VA_ARGS__; }         \
  };                                                              \
  }                                                               \
  NPURT_TWO_OPERANDS(name, TestLoop)

NPURT_BINARY(Add, F32::add(x, y))
NPURT_BINARY(Sub, F32::sub(x, y))
NPURT_BINARY(Mul, F32::mul(x, y))
NPURT_BINARY(Div, F32::div(x, y))
NPURT_BINARY(Min, F32::min(x, y))
NPURT_BINARY(Max, F32::max(x, y))
NPURT_BINARY(PRelu, F32::select(F32::lt(x, F32::zero()), F32::mul(x, y), x))
NPURT_BINARY(SquaredDifference, F32::mul(F32::sub(x, y), F32::sub(x, y)))
NPURT_TEST(Equal, F32::eq(x, y))
NPURT_TEST(NotEqual, F32::ne(x, y))
NPURT_TEST(Less, F32::lt(x, y))
NPURT_TEST(LessEqual, F32::le(x, y))
NPURT_TEST(Greater, F32::gt(x, y))
NPURT_TEST(GreaterEqual, F32::ge(x, y))
#undef NPURT_BINARY
#undef NPURT_TEST
#undef NPURT_TWO_OPERANDS

#define NPURT_TERNARY(name, ...)                                        \
  namespace {                                                           \
  struct name##Op {                                                     \
    static F32 Run(F32 x, F32 y, F32 z) { return __VA_ARGS__; }         \
  };                                                                    \
  }                                                                     \
  void name(const RowArgs& args) {                                      \
    switch (args.scalars & 7) {                                         \
      case 0: return TernaryLoop<name##Op, false, false, false>(args);  \
      case 1: return TernaryLoop<name##Op, true, false, false>(args);   \
      case 2: return TernaryLoop<name##Op, false, true, false>(args);   \
      case 3: return TernaryLoop<name##Op, true, true, false>(args);    \
      case 4: return TernaryLoop<name##Op, false, false, true>(args);   \
      case 5: return TernaryLoop<name##Op, true, false, true>(args);    \
      case 6: return TernaryLoop<name##Op, false, true, true>(args);    \
      default: return TernaryLoop<name##Op, true, true, true>(args);    \
    }                                                                   \
  }
// Multiply, then add: the bits of a chain must not depend on the instruction set's fma.
NPURT_TERNARY(Fma, F32::add(F32::mul(x, y), z))
NPURT_TERNARY(Clamp, F32::clamp(x, y, z))
#undef NPURT_TERNARY

void Where(const RowArgs& args) {
  if (args.count == 0) return;
  const std::uint8_t* condition = static_cast<const std::uint8_t*>(args.in[0]);
  if (args.scalars & 1) {
    // One condition for all: a copy of the chosen operand.
    const int chosen = *condition != 0 ? 1 : 2;
    float* out = static_cast<float*>(args.out);
    if (args.scalars & (1u << chosen)) {
      Fill(out, args.count, Operand<true>(args.in[chosen], args.count).value);
    } else {
      const Operand<false> x(args.in[chosen], args.count);
      std::size_t i = 0;
      for (; i + kW <= args.count; i += kW) x.At(i).store(out + i);
      if (i < args.count) {
        const int n = TailOf(args.count);
        x.Partial(i, n).store_partial(out + i, n);
      }
    }
    return;
  }
  switch (args.scalars >> 1 & 3) {
    case 0: return WhereLoop<false, false>(args, condition);
    case 1: return WhereLoop<true, false>(args, condition);
    case 2: return WhereLoop<false, true>(args, condition);
    default: return WhereLoop<true, true>(args, condition);
  }
}

// The casts between float32 and the 16-bit floats.
#define NPURT_WIDEN(name, load)                                                   \
  void name(const RowArgs& args) {                                                \
    const std::uint16_t* x = static_cast<const std::uint16_t*>(args.in[0]);       \
    float* out = static_cast<float*>(args.out);                                   \
    if (args.count == 0) return;                                                  \
    if (args.scalars & 1) {                                                       \
      float first[kW];                                                            \
      F32::load##_partial(x, 1).store(first);                                     \
      Fill(out, args.count, F32::broadcast(first[0]));                            \
      return;                                                                     \
    }                                                                             \
    std::size_t i = 0;                                                            \
    for (; i + kW <= args.count; i += kW) F32::load(x + i).store(out + i);        \
    if (i < args.count) {                                                         \
      const int n = TailOf(args.count);                                           \
      F32::load##_partial(x + i, n).store_partial(out + i, n);                    \
    }                                                                             \
  }
#define NPURT_NARROW(name, put)                                                   \
  void name(const RowArgs& args) {                                                \
    std::uint16_t* out = static_cast<std::uint16_t*>(args.out);                   \
    const bool scalar = (args.scalars & 1) != 0;                                  \
    const Operand<false> x(args.in[0], args.count);                               \
    const Operand<true> one(args.in[0], scalar ? args.count : 0);                 \
    std::size_t i = 0;                                                            \
    for (; i + kW <= args.count; i += kW) (scalar ? one.value : x.At(i)).put(out + i); \
    if (i < args.count) {                                                         \
      const int n = TailOf(args.count);                                           \
      (scalar ? one.value : x.Partial(i, n)).put##_partial(out + i, n);           \
    }                                                                             \
  }
NPURT_WIDEN(HalfToFloat, load_f16)
NPURT_WIDEN(BFloat16ToFloat, load_bf16)
NPURT_NARROW(FloatToHalf, store_f16)
NPURT_NARROW(FloatToBFloat16, store_bf16)
#undef NPURT_WIDEN
#undef NPURT_NARROW
