// The two passes of resize over F32 of one instruction set. Multiply, then add: an upsampled constant
// stays that constant on every set.
namespace {

constexpr std::size_t kW = static_cast<std::size_t>(F32::kWidth);

inline void Blend(float* acc, const float* row, std::size_t n, float weight, bool first) {
  const F32 w = F32::broadcast(weight);
  std::size_t i = 0;
  for (; i + kW <= n; i += kW) {
    const F32 x = F32::mul(F32::load(row + i), w);
    (first ? x : F32::add(F32::load(acc + i), x)).store(acc + i);
  }
  if (i < n) {
    const int lanes = static_cast<int>(n - i);
    const F32 x = F32::mul(F32::load_partial(row + i, lanes), w);
    (first ? x : F32::add(F32::load_partial(acc + i, lanes), x)).store_partial(acc + i, lanes);
  }
}

inline void GatherRow(const float* row, const std::int32_t* index, const float* weight,
                      std::size_t taps, float* out, std::size_t n) {
  for (std::size_t i = 0; i < n; i += kW) {
    const int lanes = static_cast<int>(n - i < kW ? n - i : kW);
    F32 acc = F32::zero();
    // Lanes past the end gather element 0 and are not stored.
    for (std::size_t t = 0; t < taps; ++t)
      acc = F32::add(acc, F32::mul(Gather(row, I32::load_partial(index + t * n + i, lanes)),
                                   F32::load_partial(weight + t * n + i, lanes)));
    acc.store_partial(out + i, lanes);
  }
}

}  // namespace

#define NPURT_RESIZE_SET(set)                                                                  \
  void resize_blend_f32_##set(float* acc, const float* row, std::size_t n, float weight,       \
                              bool first) {                                                    \
    Blend(acc, row, n, weight, first);                                                         \
  }                                                                                            \
  void resize_gather_f32_##set(const float* row, const std::int32_t* index,                    \
                               const float* weight, std::size_t taps, float* out,              \
                               std::size_t n) {                                                \
    GatherRow(row, index, weight, taps, out, n);                                               \
  }
