// The float32 micro-kernel, over the F32 of one instruction set: textually included by <isa>.cc
// inside its anonymous namespace, after `F32` names the vector type. Two vectors of columns.
//
// The sums stay in registers over the whole block of k. The number of rows is a template argument,
// so a tail of rows costs what it computes; tails of columns go by mask.

#if defined(__clang__)
#define NPURT_UNROLL _Pragma("clang loop unroll(full)")
#else
#define NPURT_UNROLL _Pragma("GCC unroll 32")
#endif

#include "kernels/activation.inl"

// Rows beyond the third start from a pointer of their own: three rows are within reach of x86
// addressing with one stride register.
inline constexpr int kRowsPerPointer = 3;

inline F32 LoadColumns(const float* p, int n) {
  return n >= F32::kWidth ? F32::load(p) : F32::load_partial(p, n);
}
inline void StoreColumns(F32 x, float* p, int n) {
  if (n >= F32::kWidth) {
    x.store(p);
  } else {
    x.store_partial(p, n);
  }
}

// kPackedStep is the distance of consecutive k in packed A (then rows are neighbours), or 0.
// kVectors is 1 if the columns fit one vector.
template <int kRows, int kPackedStep, bool kWholePanel, int kVectors>
inline void MultiplyTile(const GemmArgs& g) {
  constexpr int kW = F32::kWidth;
  // With few sums the multiply-adds would wait for each other: then several k run side by side.
  constexpr int kSums = kRows * kVectors;
  constexpr int kLanes = kSums <= 2 ? 4 : kSums <= 6 ? 2 : 1;
  constexpr int kPointers = (kRows + kRowsPerPointer - 1) / kRowsPerPointer;
  // Columns of each vector.
  const int cols[2] = {g.cols < kW ? g.cols : kW, g.cols - kW};

  F32 acc[kLanes][kRows][kVectors];
  NPURT_UNROLL
  for (int u = 0; u < kLanes; ++u) {
    NPURT_UNROLL
    for (int r = 0; r < kRows; ++r) {
      NPURT_UNROLL
      for (int v = 0; v < kVectors; ++v) acc[u][r][v] = F32::zero();
    }
  }

  const std::int64_t row_stride = kPackedStep > 0 ? 1 : g.a_row_stride;
  const std::int64_t k_stride = kPackedStep > 0 ? kPackedStep : g.a_k_stride;
  const float* a[kPointers];
  const float* b = g.b;
  const std::int64_t b_stride = g.b_stride;
  constexpr int kLineFloats = 16;
  const float* next = g.prefetch != nullptr ? g.prefetch : b;
  const std::int64_t next_step = g.prefetch != nullptr ? kLineFloats : 0;

  const auto step = [&](F32(&sums)[kRows][kVectors]) {
    F32 y[kVectors];
    NPURT_UNROLL
    for (int v = 0; v < kVectors; ++v)
      y[v] = kWholePanel ? F32::load(b + v * kW) : LoadColumns(b + v * kW, cols[v]);
    NPURT_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const F32 x =
          F32::load_broadcast(a[r / kRowsPerPointer] + (r % kRowsPerPointer) * row_stride);
      NPURT_UNROLL
      for (int v = 0; v < kVectors; ++v) sums[r][v] = F32::fma(x, y[v], sums[r][v]);
    }
    if (kWholePanel) {
      __builtin_prefetch(next, 0, 2);
      next += next_step;
    }
    b += b_stride;
    NPURT_UNROLL
    for (int p = 0; p < kPointers; ++p) a[p] += k_stride;
  };

  for (int segment = 0; segment < g.segments; ++segment) {
    const float* const segment_a = g.a_offsets == nullptr ? g.a : g.a + g.a_offsets[segment];
    NPURT_UNROLL
    for (int p = 0; p < kPointers; ++p) a[p] = segment_a + p * kRowsPerPointer * row_stride;
    std::int64_t k = g.k;
    for (; k >= kLanes; k -= kLanes) {
      NPURT_UNROLL
      for (int u = 0; u < kLanes; ++u) step(acc[u]);
    }
    if constexpr (kLanes > 1)
      for (; k > 0; --k) step(acc[0]);
  }
  if constexpr (kLanes > 1) {
    NPURT_UNROLL
    for (int r = 0; r < kRows; ++r) {
      NPURT_UNROLL
      for (int v = 0; v < kVectors; ++v) {
        acc[0][r][v] = F32::add(acc[0][r][v], acc[1][r][v]);
        if constexpr (kLanes == 4)
          acc[0][r][v] = F32::add(acc[0][r][v], F32::add(acc[2][r][v], acc[3][r][v]));
      }
    }
  }

  // f(sum, row, vector) for each.
  const auto for_each = [&](auto f) {
    NPURT_UNROLL
    for (int r = 0; r < kRows; ++r) {
      NPURT_UNROLL
      for (int v = 0; v < kVectors; ++v) acc[0][r][v] = f(acc[0][r][v], r, v);
    }
  };
  if (!g.first) {
    for_each([&](F32 x, int r, int v) {
      return F32::add(x, LoadColumns(g.c + r * g.c_stride + v * kW, cols[v]));
    });
  }
  if (g.last) {
    const Epilogue& e = *g.epilogue;
    if (e.scale != 1.0f) {
      const F32 scale = F32::broadcast(e.scale);
      for_each([&](F32 x, int, int) { return F32::mul(x, scale); });
    }
    if (e.row_bias != nullptr) {
      const F32 scale = F32::broadcast(e.bias_scale);
      for_each([&](F32 x, int r, int) {
        return F32::add(x, F32::mul(F32::load_broadcast(e.row_bias + r), scale));
      });
    }
    if (e.column_bias != nullptr) {
      F32 bias[kVectors];
      NPURT_UNROLL
      for (int v = 0; v < kVectors; ++v)
        bias[v] =
            F32::mul(LoadColumns(e.column_bias + v * kW, cols[v]), F32::broadcast(e.bias_scale));
      for_each([&](F32 x, int, int v) { return F32::add(x, bias[v]); });
    }
    if (e.residual != nullptr) {
      const F32 scale = F32::broadcast(e.residual_scale);
      for_each([&](F32 x, int r, int v) {
        const float* p = e.residual + r * e.residual_stride + v * kW;
        return F32::add(x, F32::mul(LoadColumns(p, cols[v]), scale));
      });
    }
    const F32 low = ClampLow(e), high = ClampHigh(e);
    for_each([&](F32 x, int, int) { return F32::clamp(x, low, high); });
  }
  NPURT_UNROLL
  for (int r = 0; r < kRows; ++r) {
    NPURT_UNROLL
    for (int v = 0; v < kVectors; ++v)
      StoreColumns(acc[0][r][v], g.c + r * g.c_stride + v * kW, cols[v]);
  }
  if (g.last && !IsClamp(g.epilogue->activation))
    ActivateRows(*g.epilogue, g.c, g.c_stride, kRows, g.cols);
}

template <int kRows, int kTileRows, int kVectors>
inline void MultiplyRows(const GemmArgs& g) {
  if (!g.b_is_panel && g.cols < kVectors * F32::kWidth)
    return MultiplyTile<kRows, 0, false, kVectors>(g);
  // Fixed strides are worth their code for whole tiles only.
  if constexpr (kRows == kTileRows) {
    if (g.a_row_stride == 1 && g.a_k_stride == kTileRows)
      return MultiplyTile<kRows, kTileRows, true, kVectors>(g);
  }
  MultiplyTile<kRows, 0, true, kVectors>(g);
}

template <int kRows, int kTileRows>
inline void MultiplyUpTo(const GemmArgs& g) {
  if constexpr (kRows > 1) {
    if (g.rows != kRows) return MultiplyUpTo<kRows - 1, kTileRows>(g);
  }
  if (g.cols <= F32::kWidth) {
    MultiplyRows<kRows, kTileRows, 1>(g);
  } else {
    MultiplyRows<kRows, kTileRows, 2>(g);
  }
}
