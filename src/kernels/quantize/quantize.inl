// The quantising kernels over the F32 and I32 of one instruction set: textually included by <isa>.cc
// inside its anonymous namespace, after
//   LoadNarrow(p): a vector of the elements of p as int32;
//   StoreNarrow(x, p): the low bits of each lane.

inline constexpr int kQuantizeWidth = F32::kWidth;

// round(x) + zero, between low and high, which are whole numbers; 0 for a NaN.
inline I32 Rounded(F32 x, F32 zero, F32 low, F32 high) {
  // Beyond these all types are saturated.
  x = F32::clamp(x, F32::broadcast(-4194304.0f), F32::broadcast(4194304.0f));
  x = F32::clamp(F32::add(F32::round(x), zero), low, high);
  return I32::from_f32_round(F32::select(F32::is_nan(x), F32::zero(), x));
}

// Calls vector(i, n) for each vector of elements from i on, n of them.
template <typename Vector>
inline void ForEachVector(std::size_t count, Vector vector) {
  std::size_t i = 0;
  for (; i + kQuantizeWidth <= count; i += kQuantizeWidth) vector(i, kQuantizeWidth);
  if (i < count) vector(i, static_cast<int>(count - i));
}
// The same for parts of a vector.
template <typename T>
inline I32 LoadNarrow(const T* p, int n) {
  if (n == kQuantizeWidth) return LoadNarrow(p);
  T lanes[kQuantizeWidth] = {};
  std::memcpy(lanes, p, static_cast<std::size_t>(n) * sizeof(T));
  return LoadNarrow(lanes);
}
template <typename T>
inline void StoreNarrow(I32 x, T* p, int n) {
  if (n == kQuantizeWidth) return StoreNarrow(x, p);
  T lanes[kQuantizeWidth];
  StoreNarrow(x, lanes);
  std::memcpy(p, lanes, static_cast<std::size_t>(n) * sizeof(T));
}

template <typename T>
inline void QuantizeRow(const QuantizeArgs& g, float lowest, float highest) {
  const F32 scale = F32::broadcast(g.scale), zero = F32::broadcast(static_cast<float>(g.zero));
  const F32 low = F32::broadcast(lowest), high = F32::broadcast(highest);
  const float* const in = static_cast<const float*>(g.in);
  T* const out = static_cast<T*>(g.out);
  ForEachVector(g.count, [&](std::size_t i, int n) {
    const F32 x = n == kQuantizeWidth ? F32::load(in + i) : F32::load_partial(in + i, n);
    StoreNarrow(Rounded(F32::div(x, scale), zero, low, high), out + i, n);
  });
}

template <typename T>
inline void DequantizeRow(const QuantizeArgs& g) {
  const F32 scale = F32::broadcast(g.scale);
  const I32 zero = I32::broadcast(g.zero);
  const T* const in = static_cast<const T*>(g.in);
  float* const out = static_cast<float*>(g.out);
  ForEachVector(g.count, [&](std::size_t i, int n) {
    const F32 y = F32::mul(I32::to_f32(I32::sub(LoadNarrow(in + i, n), zero)), scale);
    if (n == kQuantizeWidth) {
      y.store(out + i);
    } else {
      y.store_partial(out + i, n);
    }
  });
}

inline void Quantize(NarrowInteger type, const QuantizeArgs& g) {
  switch (type) {
    case NarrowInteger::kI8:
      return QuantizeRow<std::int8_t>(g, -128, 127);
    case NarrowInteger::kU8:
      return QuantizeRow<std::uint8_t>(g, 0, 255);
    case NarrowInteger::kI16:
      return QuantizeRow<std::int16_t>(g, -32768, 32767);
    case NarrowInteger::kU16:
      return QuantizeRow<std::uint16_t>(g, 0, 65535);
  }
}
inline void Dequantize(NarrowInteger type, const QuantizeArgs& g) {
  switch (type) {
    case NarrowInteger::kI8:
      return DequantizeRow<std::int8_t>(g);
    case NarrowInteger::kU8:
      return DequantizeRow<std::uint8_t>(g);
    case NarrowInteger::kI16:
      return DequantizeRow<std::int16_t>(g);
    case NarrowInteger::kU16:
      return DequantizeRow<std::uint16_t>(g);
  }
}

inline void ByteSum(const ByteSumArgs& g) {
  // A signed byte is an unsigned one with its highest bit turned, less 128.
  const auto flip = [](bool is_signed) { return I32::broadcast(is_signed ? 128 : 0); };
  const auto zero_of = [](bool is_signed, std::int32_t zero) {
    return I32::broadcast(is_signed ? zero + 128 : zero);
  };
  const I32 a_flip = flip(g.a_signed), b_flip = flip(g.b_signed);
  const I32 a_zero = zero_of(g.a_signed, g.a_zero), b_zero = zero_of(g.b_signed, g.b_zero);
  const F32 a_scale = F32::broadcast(g.a_scale), b_scale = F32::broadcast(g.b_scale);
  const F32 scale = F32::broadcast(g.scale), zero = F32::broadcast(static_cast<float>(g.zero));
  const F32 low = F32::broadcast(static_cast<float>(g.low));
  const F32 high = F32::broadcast(static_cast<float>(g.high));
  const auto* const a = static_cast<const std::uint8_t*>(g.a);
  const auto* const b = static_cast<const std::uint8_t*>(g.b);
  auto* const out = static_cast<std::uint8_t*>(g.out);
  const auto real = [](I32 x, I32 turned, I32 less, F32 times) {
    return F32::mul(I32::to_f32(I32::sub(I32::xor_(x, turned), less)), times);
  };
  ForEachVector(g.count, [&](std::size_t i, int n) {
    const F32 sum = F32::add(real(LoadNarrow(a + i, n), a_flip, a_zero, a_scale),
                             real(LoadNarrow(b + i, n), b_flip, b_zero, b_scale));
    StoreNarrow(Rounded(F32::div(sum, scale), zero, low, high), out + i, n);
  });
}

#define NPURT_QUANTIZE_SET(set)                                                                \
  void quantize_##set(NarrowInteger type, const QuantizeArgs& args) { Quantize(type, args); }  \
  void dequantize_##set(NarrowInteger type, const QuantizeArgs& args) { Dequantize(type, args); } \
  void byte_sum_##set(const ByteSumArgs& args) { ByteSum(args); }
