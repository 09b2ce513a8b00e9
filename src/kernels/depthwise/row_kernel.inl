// The depthwise kernel over the F32 of one instruction set: textually included by <isa>.cc inside
// its anonymous namespace, after `F32` names the vector type.

#if defined(__clang__)
#define NPURT_UNROLL _Pragma("clang loop unroll(full)")
#else
#define NPURT_UNROLL _Pragma("GCC unroll 32")
#endif

#include "kernels/activation.inl"

// kRows x kVectors vectors at (row, col); kRows * kVectors sums hide the latency of the
// multiply-add.
template <int kRows, int kVectors>
inline void DepthwiseBlock(const DepthwiseArgs& g, std::int64_t row, std::int64_t col) {
  constexpr int kW = F32::kWidth;
  F32 acc[kRows][kVectors];
  NPURT_UNROLL
  for (int r = 0; r < kRows; ++r) {
    NPURT_UNROLL
    for (int v = 0; v < kVectors; ++v) acc[r][v] = F32::zero();
  }
  const float* in = g.in + row * g.in_stride + col;
  for (std::int64_t t = 0; t < g.taps; ++t) {
    const F32 w = F32::load_broadcast(g.weights + t);
    const float* p = in + g.tap_offsets[t];
    NPURT_UNROLL
    for (int r = 0; r < kRows; ++r) {
      NPURT_UNROLL
      for (int v = 0; v < kVectors; ++v)
        acc[r][v] = F32::fma(F32::load(p + r * g.in_stride + v * kW), w, acc[r][v]);
    }
  }
  const Epilogue& e = *g.epilogue;
  const F32 bias = F32::broadcast(g.bias), low = ClampLow(e), high = ClampHigh(e);
  const F32 residual_scale = F32::broadcast(e.residual_scale);
  NPURT_UNROLL
  for (int r = 0; r < kRows; ++r) {
    NPURT_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      const std::int64_t left = g.cols - col - v * kW;
      if (left <= 0) continue;
      F32 x = F32::add(acc[r][v], bias);
      if (e.residual != nullptr) {
        const float* p = e.residual + (row + r) * e.residual_stride + col + v * kW;
        const F32 y = left >= kW ? F32::load(p) : F32::load_partial(p, static_cast<int>(left));
        x = F32::add(x, F32::mul(y, residual_scale));
      }
      x = F32::clamp(x, low, high);
      float* out = g.out + (row + r) * g.out_stride + col + v * kW;
      if (left >= kW) {
        x.store(out);
      } else {
        x.store_partial(out, static_cast<int>(left));
      }
    }
  }
}

template <int kRows, int kVectors>
inline void DepthwiseColumns(const DepthwiseArgs& g, std::int64_t col) {
  std::int64_t row = 0;
  for (; row + kRows <= g.rows; row += kRows) DepthwiseBlock<kRows, kVectors>(g, row, col);
  if constexpr (kRows > 1)
    for (; row < g.rows; ++row) DepthwiseBlock<1, kVectors>(g, row, col);
}

inline void DepthwiseRows(const DepthwiseArgs& g) {
  constexpr int kW = F32::kWidth;
  std::int64_t col = 0;
  for (; g.cols - col > 2 * kW; col += 4 * kW) DepthwiseColumns<2, 4>(g, col);
  if (g.cols - col > kW) {
    DepthwiseColumns<4, 2>(g, col);
  } else if (g.cols - col > 0) {
    DepthwiseColumns<8, 1>(g, col);
  }
  if (!IsClamp(g.epilogue->activation))
    ActivateRows(*g.epilogue, g.out, g.out_stride, static_cast<int>(g.rows), g.cols);
}
