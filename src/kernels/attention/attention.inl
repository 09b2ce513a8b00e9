// One step of the running softmax over F32 of one instruction set: the vectors lie across queries.
namespace {

constexpr std::size_t kW = static_cast<std::size_t>(F32::kWidth);

inline void Cap(float* x, std::size_t count, float cap) {
  const F32 limit = F32::broadcast(cap);
  for (std::size_t i = 0; i < count; i += kW)
    F32::mul(F32::tanh(F32::div(F32::load(x + i), limit)), limit).store(x + i);
}

inline void Step(const AttentionStepArgs& args) {
  const std::size_t columns = args.columns, pairs = args.keys & ~std::size_t{1};
  for (std::size_t c = 0; c < columns; c += kW) {
    float* const scores = args.scores + c;
    const F32 old = F32::load(args.max + c);
    // Two chains each, so that one does not wait for the other.
    F32 m0 = old, m1 = old;
    for (std::size_t j = 0; j < pairs; j += 2) {
      m0 = F32::max(m0, F32::load(scores + j * columns));
      m1 = F32::max(m1, F32::load(scores + (j + 1) * columns));
    }
    if (pairs < args.keys) m0 = F32::max(m0, F32::load(scores + pairs * columns));
    const F32 max = F32::max(m0, m1);
    F32 s0 = F32::zero(), s1 = F32::zero();
    for (std::size_t j = 0; j < pairs; j += 2) {
      const F32 e0 = F32::exp(F32::sub(F32::load(scores + j * columns), max));
      const F32 e1 = F32::exp(F32::sub(F32::load(scores + (j + 1) * columns), max));
      e0.store(scores + j * columns);
      e1.store(scores + (j + 1) * columns);
      s0 = F32::add(s0, e0);
      s1 = F32::add(s1, e1);
    }
    if (pairs < args.keys) {
      const F32 e = F32::exp(F32::sub(F32::load(scores + pairs * columns), max));
      e.store(scores + pairs * columns);
      s0 = F32::add(s0, e);
    }
    const F32 factor = F32::exp(F32::sub(old, max));
    factor.store(args.factor + c);
    max.store(args.max + c);
    F32::fma(F32::load(args.sum + c), factor, F32::add(s0, s1)).store(args.sum + c);
  }
}

}  // namespace

#define NPURT_ATTENTION_SET(set)                                                                \
  void attention_cap_f32_##set(float* x, std::size_t count, float cap) { Cap(x, count, cap); } \
  void attention_step_f32_##set(const AttentionStepArgs& args) { Step(args); }
