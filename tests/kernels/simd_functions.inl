// The functions of SimdFunctions over F32 and I32: included by simd_<isa>.cc inside its anonymous
// namespace.

void ApplyUnary(Unary f, const float* x, float* y, int n) {
  const F32 a = n == F32::kWidth ? F32::load(x) : F32::load_partial(x, n);
  F32 r = a;
  std::uint16_t half[F32::kWidth];
  switch (f) {
    case Unary::kCopy:
      break;
    case Unary::kExp:
      r = F32::exp(a);
      break;
    case Unary::kLog:
      r = F32::log(a);
      break;
    case Unary::kTanh:
      r = F32::tanh(a);
      break;
    case Unary::kErf:
      r = F32::erf(a);
      break;
    case Unary::kSigmoid:
      r = F32::sigmoid(a);
      break;
    case Unary::kSqrt:
      r = F32::sqrt(a);
      break;
    case Unary::kAbs:
      r = F32::abs(a);
      break;
    case Unary::kNeg:
      r = F32::neg(a);
      break;
    case Unary::kFloor:
      r = F32::floor(a);
      break;
    case Unary::kCeil:
      r = F32::ceil(a);
      break;
    case Unary::kTrunc:
      r = F32::trunc(a);
      break;
    case Unary::kRound:
      r = F32::round(a);
      break;
    case Unary::kThroughInt:
      r = I32::to_f32(I32::from_f32_trunc(a));
      break;
    case Unary::kThroughRoundedInt:
      r = I32::to_f32(I32::from_f32_round(a));
      break;
    case Unary::kThroughF16:
      a.store_f16(half);
      r = F32::load_f16(half);
      break;
    case Unary::kThroughBf16:
      a.store_bf16(half);
      r = F32::load_bf16(half);
      break;
  }
  if (n == F32::kWidth) {
    r.store(y);
  } else {
    r.store_partial(y, n);
  }
}

void ApplyBinary(Binary f, const float* x, const float* y, float* z, int n) {
  const F32 a = F32::load_partial(x, n), b = F32::load_partial(y, n);
  const F32 one = F32::broadcast(1.0f);
  F32 r = a;
  switch (f) {
    case Binary::kAdd:
      r = F32::add(a, b);
      break;
    case Binary::kSub:
      r = F32::sub(a, b);
      break;
    case Binary::kMul:
      r = F32::mul(a, b);
      break;
    case Binary::kDiv:
      r = F32::div(a, b);
      break;
    case Binary::kMax:
      r = F32::max(a, b);
      break;
    case Binary::kMin:
      r = F32::min(a, b);
      break;
    case Binary::kClampToOne:
      r = F32::clamp(a, F32::neg(one), one);
      break;
    case Binary::kSelectLess:
      r = F32::select(F32::lt(a, b), a, b);
      break;
    case Binary::kCopySign:
      r = F32::copysign(a, b);
      break;
  }
  r.store_partial(z, n);
}

float ApplyReduce(Reduce f, const float* x) {
  const F32 a = F32::load(x);
  return f == Reduce::kAdd   ? F32::reduce_add(a)
         : f == Reduce::kMax ? F32::reduce_max(a)
                             : F32::reduce_min(a);
}

unsigned Less(const float* a, const float* b) { return F32::lt(F32::load(a), F32::load(b)).bits(); }

void F16ToF32Lanes(const std::uint16_t* x, float* y, int n) {
  F32::load_f16_partial(x, n).store_partial(y, n);
}
void F32ToF16Lanes(const float* x, std::uint16_t* y, int n) {
  F32::load_partial(x, n).store_f16_partial(y, n);
}
void F32ToBf16Lanes(const float* x, std::uint16_t* y, int n) {
  F32::load_partial(x, n).store_bf16_partial(y, n);
}

void Integers(const std::int32_t* x, const std::int32_t* y, std::int32_t* z, int n) {
  const I32 a = I32::load_partial(x, n), b = I32::load_partial(y, n);
  const I32 product = I32::mul(I32::add(a, b), b);
  const I32 shifted = I32::sub(product, I32::shift_left<3>(a));
  I32::add(shifted, I32::shift_right<2>(b)).store_partial(z, n);
}
