// The channels-last depthwise kernel of bytes over the Sums of one instruction set: textually included by
// intgemm/<isa>.cc after intgemm.inl. Sums are those of words of two int16, of which the upper one of
// each weight is 0; besides what intgemm.inl wants, they have
//   load_bytes<kSigned>(p, n): the first n bytes as int32.

// kPixels x kVectors sums, from channel `c` of pixel `x` on. With kWhole all lanes are channels, else
// `lanes` of the only vector.
template <int kPixels, int kVectors, bool kWhole, bool kSigned>
inline void IntDepthwiseBlock(const IntDepthwiseArgs& g, std::int64_t x, std::int64_t c, int lanes) {
  constexpr int kW = Sums::kWidth;
  const int n = kWhole ? kW : lanes;
  const auto load = [=](const std::int32_t* p) {
    return kWhole ? Sums::load_words(reinterpret_cast<const Word*>(p)) : Sums::load(p, n);
  };
  Sums acc[kPixels][kVectors];
  NPURT_UNROLL
  for (int v = 0; v < kVectors; ++v) {
    const Sums first = load(g.first + c + v * kW);
    NPURT_UNROLL
    for (int p = 0; p < kPixels; ++p) acc[p][v] = first;
  }
  const auto* weights = reinterpret_cast<const std::int32_t*>(g.weights) + c;
  for (std::int64_t t = 0; t < g.taps; ++t, weights += g.channels) {
    const std::int64_t step = g.in_steps[t];
    const unsigned char* const at = g.in[t] + x * step + c;
    Sums w[kVectors];
    NPURT_UNROLL
    for (int v = 0; v < kVectors; ++v) w[v] = load(weights + v * kW);
    NPURT_UNROLL
    for (int p = 0; p < kPixels; ++p) {
      NPURT_UNROLL
      for (int v = 0; v < kVectors; ++v)
        acc[p][v] = Sums::template dot<true>(
            acc[p][v], Sums::template load_bytes<kSigned>(at + p * step + v * kW, n), w[v]);
    }
  }
  Finish f;
  f.row_bias = 0;
  f.row_scale = 1;
  f.low = static_cast<double>(g.low - g.zero);
  f.high = static_cast<double>(g.high - g.zero);
  f.zero = g.zero;
  NPURT_UNROLL
  for (int v = 0; v < kVectors; ++v) {
    f.column_bias = g.column_bias == nullptr ? nullptr : g.column_bias + c + v * kW;
    f.column_scale = g.column_scale + c + v * kW;
    Sums sums[kPixels];
    NPURT_UNROLL
    for (int p = 0; p < kPixels; ++p) sums[p] = acc[p][v];
    FinishColumns(sums, f, n, [&](int p, Sums bytes) {
      bytes.store_bytes(g.out + (x + p) * g.channels + c + v * kW, n);
    });
  }
}

template <int kPixels, int kVectors, bool kWhole, bool kSigned>
inline void IntDepthwisePixels(const IntDepthwiseArgs& g, std::int64_t c, int lanes) {
  std::int64_t x = 0;
  for (; x + kPixels <= g.pixels; x += kPixels)
    IntDepthwiseBlock<kPixels, kVectors, kWhole, kSigned>(g, x, c, lanes);
  for (; x < g.pixels; ++x) IntDepthwiseBlock<1, kVectors, kWhole, kSigned>(g, x, c, lanes);
}

template <bool kSigned>
inline void IntDepthwiseLine(const IntDepthwiseArgs& g) {
  constexpr int kW = Sums::kWidth;
  std::int64_t c = 0;
  for (; c + 2 * kW <= g.channels; c += 2 * kW) IntDepthwisePixels<4, 2, true, kSigned>(g, c, kW);
  for (; c + kW <= g.channels; c += kW) IntDepthwisePixels<4, 1, true, kSigned>(g, c, kW);
  if (c < g.channels)
    IntDepthwisePixels<2, 1, false, kSigned>(g, c, static_cast<int>(g.channels - c));
}

inline void IntDepthwise(const IntDepthwiseArgs& g) {
  if (g.is_signed) {
    IntDepthwiseLine<true>(g);
  } else {
    IntDepthwiseLine<false>(g);
  }
}
