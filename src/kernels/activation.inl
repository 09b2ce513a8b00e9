// Activations over the F32 of one instruction set: textually included by kernel .inl files, inside
// the anonymous namespace of the instruction set's file, after `F32` names its vector type.

// None, relu and clip are a clamp; the others are applied to what has been stored.
inline bool IsClamp(Activation kind) {
  return kind == Activation::kNone || kind == Activation::kRelu || kind == Activation::kClip;
}
inline F32 ClampLow(const Epilogue& e) {
  return F32::broadcast(e.activation == Activation::kRelu   ? 0.0f
                        : e.activation == Activation::kClip ? e.alpha
                                                            : -__builtin_inff());
}
inline F32 ClampHigh(const Epilogue& e) {
  return F32::broadcast(e.activation == Activation::kClip ? e.beta : __builtin_inff());
}

template <typename Function>
inline void MapRows(float* c, std::int64_t stride, int rows, std::int64_t cols, Function function) {
  for (int r = 0; r < rows; ++r) {
    float* p = c + r * stride;
    std::int64_t i = 0;
    for (; i + F32::kWidth <= cols; i += F32::kWidth) function(F32::load(p + i)).store(p + i);
    if (i < cols) {
      const int n = static_cast<int>(cols - i);
      function(F32::load_partial(p + i, n)).store_partial(p + i, n);
    }
  }
}

// In place on rows x cols floats, just written and so still in the nearest cache.
// Not inlined: one copy serves every shape of a kernel.
[[gnu::noinline]] inline void ActivateRows(const Epilogue& e, float* c, std::int64_t stride,
                                           int rows, std::int64_t cols) {
  const F32 zero = F32::zero(), one = F32::broadcast(1.0f), half = F32::broadcast(0.5f);
  const F32 alpha = F32::broadcast(e.alpha), beta = F32::broadcast(e.beta);
  switch (e.activation) {
    case Activation::kNone:
    case Activation::kRelu:
    case Activation::kClip:
      return;
    case Activation::kLeakyRelu:
      return MapRows(c, stride, rows, cols,
                     [=](F32 x) { return F32::select(F32::lt(x, zero), F32::mul(x, alpha), x); });
    case Activation::kHardSigmoid:
      return MapRows(c, stride, rows, cols,
                     [=](F32 x) { return F32::clamp(F32::fma(x, alpha, beta), zero, one); });
    case Activation::kHardSwish:
      return MapRows(c, stride, rows, cols, [=](F32 x) {
        const F32 gate = F32::fma(x, F32::broadcast(1.0f / 6.0f), half);
        return F32::mul(x, F32::clamp(gate, zero, one));
      });
    case Activation::kSigmoid:
      return MapRows(c, stride, rows, cols, [](F32 x) { return F32::sigmoid(x); });
    case Activation::kSilu:
      return MapRows(c, stride, rows, cols, [](F32 x) { return F32::mul(x, F32::sigmoid(x)); });
    case Activation::kTanh:
      return MapRows(c, stride, rows, cols, [](F32 x) { return F32::tanh(x); });
    case Activation::kGelu:
      return MapRows(c, stride, rows, cols, [=](F32 x) {
        const F32 t = F32::erf(F32::mul(x, F32::broadcast(0.70710678f)));
        return F32::mul(F32::mul(x, half), F32::add(one, t));
      });
    case Activation::kGeluTanh:
      return MapRows(c, stride, rows, cols, [=](F32 x) {
        const F32 cube = F32::mul(F32::mul(x, x), x);
        const F32 inner = F32::fma(cube, F32::broadcast(0.044715f), x);
        const F32 t = F32::tanh(F32::mul(inner, F32::broadcast(0.79788456f)));
        return F32::mul(F32::mul(x, half), F32::add(one, t));
      });
  }
}
