// Input and output transform of F(2x2, 3x3) over the F32 of one instruction set: textually included
// by <isa>.cc inside its anonymous namespace, after depthwise.inl. Lanes are channels.

// Rows of the matrix B^T: 0 - 2, 1 + 2, 2 - 1, 1 - 3; once over lines, once over columns.
template <typename Load, typename Store>
inline void TransformPixels(const WinogradLastInputArgs& g, std::int64_t c, Load load, Store store) {
  F32 u[4][4];
  NPURT_UNROLL
  for (int x = 0; x < 4; ++x) {
    const F32 d0 = load(g.pixels[x] + c), d1 = load(g.pixels[4 + x] + c),
              d2 = load(g.pixels[8 + x] + c), d3 = load(g.pixels[12 + x] + c);
    u[0][x] = F32::sub(d0, d2);
    u[1][x] = F32::add(d1, d2);
    u[2][x] = F32::sub(d2, d1);
    u[3][x] = F32::sub(d1, d3);
  }
  float* out = g.out + c;
  NPURT_UNROLL
  for (int r = 0; r < 4; ++r) {
    store(F32::sub(u[r][0], u[r][2]), out);
    store(F32::add(u[r][1], u[r][2]), out + g.place_stride);
    store(F32::sub(u[r][2], u[r][1]), out + 2 * g.place_stride);
    store(F32::sub(u[r][1], u[r][3]), out + 3 * g.place_stride);
    out += 4 * g.place_stride;
  }
}

inline void WinogradLastInput(const WinogradLastInputArgs& g) {
  std::int64_t c = 0;
  for (; c + F32::kWidth <= g.channels; c += F32::kWidth)
    TransformPixels(
        g, c, [](const float* p) { return F32::load(p); },
        [](F32 x, float* p) { x.store(p); });
  const int n = static_cast<int>(g.channels - c);
  if (n > 0)
    TransformPixels(
        g, c, [n](const float* p) { return F32::load_partial(p, n); },
        [n](F32 x, float* p) { x.store_partial(p, n); });
}

// Rows of the matrix A^T: 0 + 1 + 2, 1 - 2 - 3.
template <typename Load, typename Store>
inline void TransformProducts(const WinogradLastOutputArgs& g, std::int64_t c, Load load,
                              Store store) {
  const Epilogue& e = *g.epilogue;
  F32 s[2][4];
  NPURT_UNROLL
  for (int x = 0; x < 4; ++x) {
    const float* in = g.in + x * g.place_stride + c;
    const F32 m0 = load(in), m1 = load(in + 4 * g.place_stride),
              m2 = load(in + 8 * g.place_stride), m3 = load(in + 12 * g.place_stride);
    s[0][x] = F32::add(F32::add(m0, m1), m2);
    s[1][x] = F32::sub(F32::sub(m1, m2), m3);
  }
  const F32 low = ClampLow(e), high = ClampHigh(e), residual_scale = F32::broadcast(e.residual_scale);
  const F32 bias = g.bias == nullptr
                       ? F32::zero()
                       : F32::mul(load(g.bias + c), F32::broadcast(e.bias_scale));
  const auto finish = [&](F32 y, int pixel) {
    if (g.out[pixel] == nullptr) return;
    y = F32::add(y, bias);
    if (g.residual[pixel] != nullptr)
      y = F32::add(y, F32::mul(load(g.residual[pixel] + c), residual_scale));
    store(F32::clamp(y, low, high), g.out[pixel] + c);
  };
  NPURT_UNROLL
  for (int r = 0; r < 2; ++r) {
    finish(F32::add(F32::add(s[r][0], s[r][1]), s[r][2]), 2 * r);
    finish(F32::sub(F32::sub(s[r][1], s[r][2]), s[r][3]), 2 * r + 1);
  }
}

inline void WinogradLastOutput(const WinogradLastOutputArgs& g) {
  std::int64_t c = 0;
  for (; c + F32::kWidth <= g.channels; c += F32::kWidth)
    TransformProducts(
        g, c, [](const float* p) { return F32::load(p); },
        [](F32 x, float* p) { x.store(p); });
  const int n = static_cast<int>(g.channels - c);
  if (n > 0)
    TransformProducts(
        g, c, [n](const float* p) { return F32::load_partial(p, n); },
        [n](F32 x, float* p) { x.store_partial(p, n); });
  if (IsClamp(g.epilogue->activation)) return;
  for (float* pixel : g.out)
    if (pixel != nullptr) ActivateRows(*g.epilogue, pixel, 0, 1, g.channels);
}
