// Input and output transform of F(2x2, 3x3) over the F32 of one instruction set: textually included
// by <isa>.cc inside its anonymous namespace. Lanes are tiles.

#include "kernels/activation.inl"

inline F32 LoadTiles(const float* p, std::int64_t n) {
  return n >= F32::kWidth ? F32::load(p) : F32::load_partial(p, static_cast<int>(n));
}
inline void StoreTiles(F32 x, float* p, std::int64_t n) {
  if (n >= F32::kWidth) {
    x.store(p);
  } else if (n > 0) {
    x.store_partial(p, static_cast<int>(n));
  }
}

// Rows of the matrix B^T: 0 - 2, 1 + 2, 2 - 1, 1 - 3; once over lines, once over columns.
inline void TransformInput(const WinogradInputArgs& g) {
  for (std::int64_t t = 0; t < g.count; t += F32::kWidth) {
    const std::int64_t n = g.count - t;
    F32 d[4][4];
    for (int r = 0; r < 4; ++r) {
      d[r][0] = F32::load(g.even[r] + t);
      d[r][1] = F32::load(g.odd[r] + t);
      d[r][2] = F32::load(g.even[r] + t + 1);
      d[r][3] = F32::load(g.odd[r] + t + 1);
    }
    F32 u[4][4];
    for (int c = 0; c < 4; ++c) {
      u[0][c] = F32::sub(d[0][c], d[2][c]);
      u[1][c] = F32::add(d[1][c], d[2][c]);
      u[2][c] = F32::sub(d[2][c], d[1][c]);
      u[3][c] = F32::sub(d[1][c], d[3][c]);
    }
    float* out = g.out + t;
    for (int r = 0; r < 4; ++r) {
      StoreTiles(F32::sub(u[r][0], u[r][2]), out, n);
      StoreTiles(F32::add(u[r][1], u[r][2]), out + g.place_stride, n);
      StoreTiles(F32::sub(u[r][2], u[r][1]), out + 2 * g.place_stride, n);
      StoreTiles(F32::sub(u[r][1], u[r][3]), out + 3 * g.place_stride, n);
      out += 4 * g.place_stride;
    }
  }
}

// Rows of the matrix A^T: 0 + 1 + 2, 1 - 2 - 3.
inline void TransformOutput(const WinogradOutputArgs& g) {
  const Epilogue& e = *g.epilogue;
  const F32 bias = F32::broadcast(g.bias), low = ClampLow(e), high = ClampHigh(e);
  const bool plain = g.residual == nullptr;
  for (std::int64_t t = 0; t < g.count; t += F32::kWidth) {
    const std::int64_t n = g.count - t;
    F32 s[2][4];
    for (int c = 0; c < 4; ++c) {
      const float* in = g.in + c * g.place_stride + t;
      const F32 m0 = LoadTiles(in, n), m1 = LoadTiles(in + 4 * g.place_stride, n),
                m2 = LoadTiles(in + 8 * g.place_stride, n),
                m3 = LoadTiles(in + 12 * g.place_stride, n);
      s[0][c] = F32::add(F32::add(m0, m1), m2);
      s[1][c] = F32::sub(F32::sub(m1, m2), m3);
    }
    const std::int64_t left = g.columns - 2 * t;
    for (int r = 0; r < g.rows; ++r) {
      F32 y0 = F32::add(F32::add(F32::add(s[r][0], s[r][1]), s[r][2]), bias);
      F32 y1 = F32::add(F32::sub(F32::sub(s[r][1], s[r][2]), s[r][3]), bias);
      if (plain) {
        y0 = F32::clamp(y0, low, high);
        y1 = F32::clamp(y1, low, high);
      }
      float* out = g.out + r * g.out_stride + 2 * t;
      StoreTiles(ZipLow(y0, y1), out, left);
      StoreTiles(ZipHigh(y0, y1), out + F32::kWidth, left - F32::kWidth);
    }
  }
  if (!plain) {
    const F32 scale = F32::broadcast(e.residual_scale);
    for (int r = 0; r < g.rows; ++r) {
      float* out = g.out + r * g.out_stride;
      const float* residual = g.residual + r * g.out_stride;
      for (std::int64_t i = 0; i < g.columns; i += F32::kWidth) {
        const std::int64_t n = g.columns - i;
        const F32 x = F32::add(LoadTiles(out + i, n), F32::mul(LoadTiles(residual + i, n), scale));
        StoreTiles(F32::clamp(x, low, high), out + i, n);
      }
    }
  }
  if (!IsClamp(e.activation))
    ActivateRows(e, g.out, g.out_stride, static_cast<int>(g.rows), g.columns);
}
