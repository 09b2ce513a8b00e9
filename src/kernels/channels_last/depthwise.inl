// The channels-last depthwise kernel over the F32 of one instruction set: textually included by
// <isa>.cc inside its anonymous namespace, after `F32` names the vector type.

#if defined(__clang__)
#define NPURT_UNROLL _Pragma("clang loop unroll(full)")
#else
#define NPURT_UNROLL _Pragma("GCC unroll 32")
#endif

#include "kernels/activation.inl"

// kPixels x kVectors sums, from channel `c` of pixel `x` on. With kWhole all lanes are channels,
// else `lanes` of the only vector.
template <int kPixels, int kVectors, bool kWhole>
inline void DepthwiseLastBlock(const DepthwiseLastArgs& g, std::int64_t x, std::int64_t c,
                               int lanes) {
  constexpr int kW = F32::kWidth;
  const auto load = [lanes](const float* p) {
    return kWhole ? F32::load(p) : F32::load_partial(p, lanes);
  };
  F32 acc[kPixels][kVectors];
  NPURT_UNROLL
  for (int p = 0; p < kPixels; ++p) {
    NPURT_UNROLL
    for (int v = 0; v < kVectors; ++v) acc[p][v] = F32::zero();
  }
  const float* in = g.in + x * g.in_step + c;
  const float* weights = g.weights + c;
  for (std::int64_t t = 0; t < g.taps; ++t) {
    const float* at = in + g.in_offsets[t];
    F32 w[kVectors];
    NPURT_UNROLL
    for (int v = 0; v < kVectors; ++v) w[v] = load(weights + g.weight_offsets[t] + v * kW);
    NPURT_UNROLL
    for (int p = 0; p < kPixels; ++p) {
      NPURT_UNROLL
      for (int v = 0; v < kVectors; ++v)
        acc[p][v] = F32::fma(load(at + p * g.in_step + v * kW), w[v], acc[p][v]);
    }
  }
  const Epilogue& e = *g.epilogue;
  const F32 low = ClampLow(e), high = ClampHigh(e), bias_scale = F32::broadcast(e.bias_scale);
  const F32 residual_scale = F32::broadcast(e.residual_scale);
  NPURT_UNROLL
  for (int p = 0; p < kPixels; ++p) {
    NPURT_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      F32 y = acc[p][v];
      if (e.column_bias != nullptr)
        y = F32::add(y, F32::mul(load(e.column_bias + c + v * kW), bias_scale));
      const std::int64_t place = (x + p) * g.channels + c + v * kW;
      if (e.residual != nullptr)
        y = F32::add(y, F32::mul(load(e.residual + place), residual_scale));
      y = F32::clamp(y, low, high);
      if (kWhole) {
        y.store(g.out + place);
      } else {
        y.store_partial(g.out + place, lanes);
      }
    }
  }
}

template <int kPixels, int kVectors, bool kWhole>
inline void DepthwiseLastPixels(const DepthwiseLastArgs& g, std::int64_t c, int lanes) {
  std::int64_t x = 0;
  for (; x + kPixels <= g.pixels; x += kPixels)
    DepthwiseLastBlock<kPixels, kVectors, kWhole>(g, x, c, lanes);
  for (; x < g.pixels; ++x) DepthwiseLastBlock<1, kVectors, kWhole>(g, x, c, lanes);
}

inline void DepthwiseLastLine(const DepthwiseLastArgs& g) {
  constexpr int kW = F32::kWidth;
  std::int64_t c = 0;
  for (; c + 2 * kW <= g.channels; c += 2 * kW) DepthwiseLastPixels<4, 2, true>(g, c, kW);
  for (; c + kW <= g.channels; c += kW) DepthwiseLastPixels<8, 1, true>(g, c, kW);
  if (c < g.channels)
    DepthwiseLastPixels<4, 1, false>(g, c, static_cast<int>(g.channels - c));
  if (!IsClamp(g.epilogue->activation))
    ActivateRows(*g.epilogue, g.out, 0, 1, g.pixels * g.channels);
}
