// The integer micro-kernel over the Sums of one instruction set: textually included by <isa>.cc inside
// its anonymous namespace, after `Sums` names the vector of int32. Two vectors of columns.
//
// Sums has: kWidth, zero(), load(p), add, sub, mul, broadcast_load(p),
//   dot<kAUnsigned>(acc, a, b): acc plus the products of the parts of words a and b;
//   load_words, broadcast_word;
//   finish(x, Finish): the rounded result, see IntEpilogue;
//   kFinishesInFloat: whether there is a faster way in some cases, see sums512.inl;
//   store(p, n), store_bytes(p, n): the first n elements, n <= kWidth.

#if defined(__clang__)
#if __has_feature(address_sanitizer)
#define NPURT_UNROLL  // what the sanitizers add makes the loops too long, of which clang would warn
#else
#define NPURT_UNROLL _Pragma("clang loop unroll(full)")
#endif
#else
#define NPURT_UNROLL _Pragma("GCC unroll 32")
#endif

inline constexpr int kRowsPerPointer = 3;

// Calls store(i, bytes) for vectors of sums of the same columns; no row has a bias.
template <typename S, int kCount, typename Store>
inline void FinishColumns(const S (&sums)[kCount], const Finish& f, int n, Store store) {
  if constexpr (S::kFinishesInFloat) {
    if (f.column_bias == nullptr) {
      const auto in_float = S::InFloat(f, n);
      NPURT_UNROLL
      for (int i = 0; i < kCount; ++i) {
        S bytes;
        store(i, S::finish_in_float(sums[i], in_float, &bytes) ? bytes : S::finish(sums[i], f, n));
      }
      return;
    }
  }
  NPURT_UNROLL
  for (int i = 0; i < kCount; ++i) store(i, S::finish(sums[i], f, n));
}

template <int kRows, int kVectors, bool kAUnsigned>
inline void MultiplyTile(const IntGemmArgs& g) {
  constexpr int kW = Sums::kWidth;
  constexpr int kSums = kRows * kVectors;
  constexpr int kLanes = kSums <= 2 ? 4 : kSums <= 6 ? 2 : 1;
  constexpr int kPointers = (kRows + kRowsPerPointer - 1) / kRowsPerPointer;

  Sums acc[kLanes][kRows][kVectors];
  NPURT_UNROLL
  for (int u = 0; u < kLanes; ++u) {
    NPURT_UNROLL
    for (int r = 0; r < kRows; ++r) {
      NPURT_UNROLL
      for (int v = 0; v < kVectors; ++v) acc[u][r][v] = Sums::zero();
    }
  }
  const char* a[kPointers];
  const std::int64_t row_stride = g.a_row_stride * 4, word_stride = g.a_word_stride * 4;
  NPURT_UNROLL
  for (int p = 0; p < kPointers; ++p)
    a[p] = static_cast<const char*>(g.a) + p * kRowsPerPointer * row_stride;
  const Word* b = g.b;
  const auto step = [&](Sums(&sums)[kRows][kVectors]) {
    Sums y[kVectors];
    NPURT_UNROLL
    for (int v = 0; v < kVectors; ++v) y[v] = Sums::load_words(b + v * kW);
    NPURT_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const Sums x =
          Sums::broadcast_word(a[r / kRowsPerPointer] + (r % kRowsPerPointer) * row_stride);
      NPURT_UNROLL
      for (int v = 0; v < kVectors; ++v)
        sums[r][v] = Sums::template dot<kAUnsigned>(sums[r][v], x, y[v]);
    }
    b += 2 * kW;
    NPURT_UNROLL
    for (int p = 0; p < kPointers; ++p) a[p] += word_stride;
  };
  std::int64_t w = g.words;
  for (; w >= kLanes; w -= kLanes) {
    NPURT_UNROLL
    for (int u = 0; u < kLanes; ++u) step(acc[u]);
  }
  if constexpr (kLanes > 1) {
    for (; w > 0; --w) step(acc[0]);
    NPURT_UNROLL
    for (int r = 0; r < kRows; ++r) {
      NPURT_UNROLL
      for (int v = 0; v < kVectors; ++v) {
        acc[0][r][v] = Sums::add(acc[0][r][v], acc[1][r][v]);
        if constexpr (kLanes == 4)
          acc[0][r][v] = Sums::add(acc[0][r][v], Sums::add(acc[2][r][v], acc[3][r][v]));
      }
    }
  }

  const IntEpilogue& e = *g.epilogue;
  NPURT_UNROLL
  for (int v = 0; v < kVectors; ++v) {
    const int n = g.cols - v * kW < kW ? g.cols - v * kW : kW;
    const auto columns = [&](const std::int32_t* p) { return Sums::load(p + v * kW, n); };
    const Sums column_add = e.column_add == nullptr ? Sums::zero() : columns(e.column_add);
    const Sums factor = e.column_factor == nullptr ? Sums::zero() : columns(e.column_factor);
    NPURT_UNROLL
    for (int r = 0; r < kRows; ++r) {
      Sums x = Sums::add(acc[0][r][v], column_add);
      if (e.row_add != nullptr) x = Sums::add(x, Sums::broadcast(e.row_add[r]));
      if (e.column_factor != nullptr)
        x = Sums::sub(x, Sums::mul(factor, Sums::broadcast(e.row_factor[r])));
      acc[0][r][v] = x;
    }
  }
  if (!e.to_bytes) {
    NPURT_UNROLL
    for (int r = 0; r < kRows; ++r) {
      NPURT_UNROLL
      for (int v = 0; v < kVectors; ++v)
        acc[0][r][v].store(static_cast<std::int32_t*>(g.c) + r * g.c_stride + v * kW,
                           g.cols - v * kW < kW ? g.cols - v * kW : kW);
    }
    return;
  }
  Finish f;
  f.low = static_cast<double>(e.low - e.zero);
  f.high = static_cast<double>(e.high - e.zero);
  f.zero = e.zero;
  const bool alike = e.one_row_scale && e.row_bias == nullptr;
  NPURT_UNROLL
  for (int v = 0; v < kVectors; ++v) {
    const int n = g.cols - v * kW < kW ? g.cols - v * kW : kW;
    f.column_bias = e.column_bias == nullptr ? nullptr : e.column_bias + v * kW;
    f.column_scale = e.column_scale == nullptr ? nullptr : e.column_scale + v * kW;
    const auto store = [&](int r, Sums bytes) {
      bytes.store_bytes(static_cast<unsigned char*>(g.c) + r * g.c_stride + v * kW, n);
    };
    if (alike) {
      Sums sums[kRows];
      NPURT_UNROLL
      for (int r = 0; r < kRows; ++r) sums[r] = acc[0][r][v];
      f.row_bias = 0;
      f.row_scale = e.row_scale[0];
      FinishColumns(sums, f, n, store);
      continue;
    }
    NPURT_UNROLL
    for (int r = 0; r < kRows; ++r) {
      f.row_bias = e.row_bias == nullptr ? 0.0 : e.row_bias[r];
      f.row_scale = e.row_scale[e.one_row_scale ? 0 : r];
      store(r, Sums::finish(acc[0][r][v], f, n));
    }
  }
}

template <int kRows, bool kAUnsigned>
inline void MultiplyUpTo(const IntGemmArgs& g) {
  if constexpr (kRows > 1) {
    if (g.rows != kRows) return MultiplyUpTo<kRows - 1, kAUnsigned>(g);
  }
  if (g.cols <= Sums::kWidth) {
    MultiplyTile<kRows, 1, kAUnsigned>(g);
  } else {
    MultiplyTile<kRows, 2, kAUnsigned>(g);
  }
}
