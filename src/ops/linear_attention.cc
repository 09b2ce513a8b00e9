// LinearAttention: a state S per head takes in a key and a value each step, o = scale * S' q. The
// update rules: linear S += k v'; gated S = exp(g) S + k v'; delta S += beta k (v - S' k)';
// gated_delta S = exp(g) S, then as delta. Several heads of q may share a state.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/checked_math.h"
#include "kernels/elementwise/elementwise.h"
#include "ops/around_axis.h"
#include "ops/epilogue.h"
#include "ops/move.h"

namespace npurt::ops::linear_attention {
namespace {

using kernels::ElementwiseOp;
using kernels::RowFn;

constexpr int kQ = 0, kK = 1, kV = 2, kPast = 3, kDecay = 4, kBeta = 5, kInputs = 6;

struct Options {
  std::int64_t q_heads, kv_heads;
  bool gated, delta;
  float scale;  // 0: 1 / sqrt(size of a key)
};

absl::StatusOr<Options> OptionsOf(const Attributes& attributes) {
  const std::string rule = attributes.String("update_rule", "gated_delta");
  Options o;
  o.gated = rule == "gated" || rule == "gated_delta";
  o.delta = rule == "delta" || rule == "gated_delta";
  if (!o.gated && !o.delta && rule != "linear")
    return absl::InvalidArgumentError(absl::StrCat(
        "update_rule is '", rule, "', want 'linear', 'gated', 'delta' or 'gated_delta'"));
  o.q_heads = attributes.Int("q_num_heads");
  o.kv_heads = attributes.Int("kv_num_heads");
  if (o.kv_heads <= 0 || o.q_heads <= 0 || o.q_heads % o.kv_heads != 0)
    return absl::InvalidArgumentError(absl::StrCat(
        "q_num_heads is ", o.q_heads, ", want a multiple of kv_num_heads ", o.kv_heads));
  o.scale = attributes.Float("scale");
  return o;
}

struct SymbolicSizes {
  Dim batch, steps, key, value;  // sizes of a key and of a value of one head
};

// Checks what is known. `shapes` has an entry per input, null if absent.
absl::StatusOr<SymbolicSizes> CheckShapes(const Options& o,
                                          absl::Span<const SymDims* const> shapes) {
  constexpr const char* kNames[kInputs] = {"query", "key", "value", "past_state", "decay", "beta"};
  if ((shapes[kDecay] != nullptr) != o.gated || (shapes[kBeta] != nullptr) != o.delta)
    return absl::InvalidArgumentError(absl::StrCat("this update_rule takes ", o.gated ? "a" : "no",
                                                   " decay and ", o.delta ? "a" : "no", " beta"));
  for (std::size_t i = 0; i < kInputs; ++i)
    if (shapes[i] != nullptr && shapes[i]->size() != (i == kPast ? 4 : 3))
      return absl::InvalidArgumentError(absl::StrCat(
          kNames[i], " has shape ", ShapeString(*shapes[i]), ", want rank ", i == kPast ? 4 : 3));
  const SymDims& q = *shapes[kQ];
  SymbolicSizes s;
  s.batch = q[0];
  s.steps = q[1];
  s.key = FloorDiv(q[2], o.q_heads);
  s.value = FloorDiv((*shapes[kV])[2], o.kv_heads);
  const Dim keys = s.key * Dim(o.kv_heads);
  const SymDims want[kInputs] = {
      {s.batch, s.steps, s.key * Dim(o.q_heads)},
      {s.batch, s.steps, keys},
      {s.batch, s.steps, s.value * Dim(o.kv_heads)},
      {s.batch, o.kv_heads, s.key, s.value},
      {s.batch, s.steps, keys},
      {s.batch, s.steps, o.kv_heads},
  };
  // One decay or beta for all numbers of a head, one beta for all heads.
  const std::int64_t also[kInputs] = {-1, -1, -1, -1, o.kv_heads, 1};
  for (std::size_t i = 0; i < kInputs; ++i) {
    if (shapes[i] == nullptr) continue;
    bool fits = true;
    for (std::size_t d = 0; fits && d < want[i].size(); ++d) {
      const Dim& mine = (*shapes[i])[d];
      fits = mine == want[i][d] || !mine.is_constant() || !want[i][d].is_constant() ||
             (d == 2 && mine.Is(also[i]));
    }
    if (!fits)
      return absl::InvalidArgumentError(absl::StrCat(
          kNames[i], " has shape ", ShapeString(*shapes[i]), ", want ", ShapeString(want[i])));
  }
  return s;
}

absl::Status Infer(InferContext& context) {
  NPURT_ASSIGN_OR_RETURN(const Options o, OptionsOf(context.attributes()));
  const DType state = context.dtype(context.has_input(kPast) ? kPast : kQ);
  if (!RanksKnown(context)) {
    context.set_output_unknown(0, context.dtype(kQ));
    if (context.output_count() > 1) context.set_output_unknown(1, state);
    return absl::OkStatus();
  }
  const SymDims* shapes[kInputs] = {};
  for (int i = 0; i < context.input_count(); ++i)
    if (context.has_input(i)) shapes[i] = &context.shape(i);
  NPURT_ASSIGN_OR_RETURN(const SymbolicSizes s, CheckShapes(o, shapes));
  context.set_output(0, context.dtype(kQ), {s.batch, s.steps, s.value * Dim(o.q_heads)});
  if (context.output_count() > 1)
    context.set_output(1, state, {s.batch, o.kv_heads, s.key, s.value});
  return absl::OkStatus();
}

struct Sizes {
  std::int64_t batch, steps, key, value;
  std::int64_t decays, betas;  // per step: of all heads
};

template <typename Context>
absl::StatusOr<Sizes> SizesOf(const Context& context, const Options& o) {
  SymDims dims[kInputs];
  const SymDims* shapes[kInputs] = {};
  for (int i = 0; i < kInputs; ++i) {
    if (!context.has_input(i)) continue;
    dims[i] = ToSymDims(context.dims(i));
    shapes[i] = &dims[i];
  }
  NPURT_ASSIGN_OR_RETURN(const SymbolicSizes s, CheckShapes(o, shapes));
  return Sizes{s.batch.value(),
               s.steps.value(),
               s.key.value(),
               s.value.value(),
               o.gated ? context.dims(kDecay)[2] : 0,
               o.delta ? context.dims(kBeta)[2] : 0};
}

double ScaleOf(const Options& o, const Sizes& s) {
  return o.scale != 0 ? static_cast<double>(o.scale) : 1 / std::sqrt(static_cast<double>(s.key));
}

// Where step (b, t) of head `h` finds number `i` of its decay.
std::int64_t DecayIndex(const Options& o, const Sizes& s, std::int64_t step, std::int64_t h,
                        std::int64_t i) {
  return step * s.decays + (s.decays == o.kv_heads ? h : h * s.key + i);
}
std::int64_t BetaIndex(const Sizes& s, std::int64_t step, std::int64_t h) {
  return step * s.betas + (s.betas == 1 ? 0 : h);
}

absl::Status Reference(const RunContext& run, std::int64_t, void*) {
  NPURT_ASSIGN_OR_RETURN(const Options o, OptionsOf(run.attributes()));
  NPURT_ASSIGN_OR_RETURN(const Sizes s, SizesOf(run, o));
  const double scale = ScaleOf(o, s);
  const std::int64_t group = o.q_heads / o.kv_heads, cells = s.key * s.value;
  std::vector<double> state(static_cast<std::size_t>(cells));
  std::vector<double> delta(static_cast<std::size_t>(s.value));
  const auto at = [&](std::int64_t i, std::int64_t j) -> double& {
    return state[static_cast<std::size_t>(i * s.value + j)];
  };
  Poller poller(run);
  for (std::int64_t head = 0; head < s.batch * o.kv_heads; ++head) {
    const std::int64_t b = head / o.kv_heads, h = head % o.kv_heads;
    for (std::int64_t i = 0; i < cells; ++i)
      state[static_cast<std::size_t>(i)] =
          run.has_input(kPast) ? RealAt(run, kPast, head * cells + i) : 0;
    for (std::int64_t t = 0; t < s.steps; ++t) {
      const std::int64_t step = b * s.steps + t, row = step * o.kv_heads + h;
      const auto key = [&](std::int64_t i) { return RealAt(run, kK, row * s.key + i); };
      if (o.gated)
        for (std::int64_t i = 0; i < s.key; ++i) {
          const double keep = std::exp(RealAt(run, kDecay, DecayIndex(o, s, step, h, i)));
          for (std::int64_t j = 0; j < s.value; ++j) at(i, j) *= keep;
        }
      for (std::int64_t j = 0; j < s.value; ++j) {
        double& d = delta[static_cast<std::size_t>(j)];
        d = RealAt(run, kV, row * s.value + j);
        if (!o.delta) continue;
        for (std::int64_t i = 0; i < s.key; ++i) d -= at(i, j) * key(i);
        d *= RealAt(run, kBeta, BetaIndex(s, step, h));
      }
      for (std::int64_t i = 0; i < s.key; ++i)
        for (std::int64_t j = 0; j < s.value; ++j)
          at(i, j) += key(i) * delta[static_cast<std::size_t>(j)];
      for (std::int64_t g = 0; g < group; ++g) {
        const std::int64_t q = step * o.q_heads + h * group + g;
        for (std::int64_t j = 0; j < s.value; ++j) {
          double sum = 0;
          for (std::int64_t i = 0; i < s.key; ++i) sum += at(i, j) * RealAt(run, kQ, q * s.key + i);
          StoreReal(run, 0, q * s.value + j, scale * sum);
        }
      }
      NPURT_RETURN_IF_ERROR(poller.Count(cells * (group + 3)));
    }
    if (!run.has_output(1)) continue;
    for (std::int64_t i = 0; i < cells; ++i)
      StoreReal(run, 1, head * cells + i, state[static_cast<std::size_t>(i)]);
  }
  return absl::OkStatus();
}

struct State final : Prepared {
  RowFn mul = nullptr, sub = nullptr, fma = nullptr;
};

absl::StatusOr<std::unique_ptr<Prepared>> Prepare(PrepareContext& context) {
  if (context.type(kQ).dtype != DType::kF32) return nullptr;
  if (context.has_input(kPast) && context.type(kPast).dtype != DType::kF32) return nullptr;
  auto state = std::make_unique<State>();
  const IsaSet allowed = KernelIsa(context);
  const char* name = "";
  state->mul = kernels::SelectRow(ElementwiseOp::kMul, DType::kF32, allowed);
  state->sub = kernels::SelectRow(ElementwiseOp::kSub, DType::kF32, allowed);
  state->fma = kernels::SelectRow(ElementwiseOp::kFma, DType::kF32, allowed, &name);
  state->kernel = name;
  return state;
}

struct Bound {
  Options options;
  Sizes sizes;
  std::size_t state_bytes;
};

absl::Status Bind(BindContext& bind) {
  auto* bound = bind.New<Bound>();
  NPURT_ASSIGN_OR_RETURN(bound->options, OptionsOf(bind.attributes()));
  NPURT_ASSIGN_OR_RETURN(bound->sizes, SizesOf(bind, bound->options));
  const Sizes& s = bound->sizes;
  std::int64_t cells;
  std::size_t row, bytes;
  if (!CheckedMul(s.key, s.value, &cells) || !BytesOf(DType::kF32, cells, &bound->state_bytes) ||
      !BytesOf(DType::kF32, s.value, &row) || !CheckedAdd(bound->state_bytes, row, &bytes))
    return absl::ResourceExhaustedError("the state is too large");
  bind.SetScratch(bytes);  // the state, if nobody wants it; then a row of values
  const double passes = 3 + static_cast<double>(bound->options.q_heads / bound->options.kv_heads);
  bind.SetTiles(s.batch * bound->options.kv_heads,
                kNsPerElement * passes * static_cast<double>(s.steps) * static_cast<double>(cells));
  return absl::OkStatus();
}

// A tile is one head of one sample. Rows of the state are numbers of a value: all work is along
// them.
absl::Status Run(const RunContext& run, std::int64_t tile, void* scratch) {
  const State& rows = *run.prepared<State>();
  const auto& [o, s, state_bytes] = *run.bound<Bound>();
  const std::int64_t b = tile / o.kv_heads, h = tile % o.kv_heads, cells = s.key * s.value;
  const std::int64_t group = o.q_heads / o.kv_heads;
  const auto count = static_cast<std::size_t>(s.value);
  if (count == 0) return absl::OkStatus();  // there may be no memory to point at
  float* const state =
      run.has_output(1) ? run.out<float>(1) + tile * cells : static_cast<float*>(scratch);
  auto* const delta = reinterpret_cast<float*>(static_cast<char*>(scratch) + state_bytes);
  if (run.has_input(kPast) && cells > 0) {
    std::memcpy(state, run.in<float>(kPast) + tile * cells, state_bytes);
  } else if (cells > 0) {
    std::memset(state, 0, state_bytes);
  }
  const auto scale = static_cast<float>(ScaleOf(o, s));
  for (std::int64_t t = 0; t < s.steps; ++t) {
    if (t % 64 == 0) NPURT_RETURN_IF_ERROR(run.Poll());
    const std::int64_t step = b * s.steps + t, row = step * o.kv_heads + h;
    const float* const value = run.in<float>(kV) + row * s.value;
    const float* added = value;
    if (o.delta) std::memset(delta, 0, count * sizeof(float));
    if (o.gated || o.delta) {
      for (std::int64_t i = 0; i < s.key; ++i) {
        float* const cell = state + i * s.value;
        if (o.gated) {
          const float keep = std::exp(run.Load<float>(kDecay, DecayIndex(o, s, step, h, i)));
          rows.mul({{cell, &keep, nullptr}, cell, count, 2, nullptr});
        }
        if (!o.delta) continue;
        const float key = run.Load<float>(kK, row * s.key + i);
        rows.fma({{cell, &key, delta}, delta, count, 2, nullptr});
      }
    }
    if (o.delta) {
      const float beta = run.Load<float>(kBeta, BetaIndex(s, step, h));
      rows.sub({{value, delta, nullptr}, delta, count, 0, nullptr});
      rows.mul({{delta, &beta, nullptr}, delta, count, 2, nullptr});
      added = delta;
    }
    float* const out = run.out<float>(0) + (step * o.q_heads + h * group) * s.value;
    std::memset(out, 0, static_cast<std::size_t>(group) * count * sizeof(float));
    for (std::int64_t i = 0; i < s.key; ++i) {
      float* const cell = state + i * s.value;
      const float key = run.Load<float>(kK, row * s.key + i);
      rows.fma({{added, &key, cell}, cell, count, 2, nullptr});
      for (std::int64_t g = 0; g < group; ++g) {
        const float q = scale * run.Load<float>(kQ, (step * o.q_heads + h * group + g) * s.key + i);
        rows.fma({{cell, &q, out + g * s.value}, out + g * s.value, count, 2, nullptr});
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

extern constexpr OpDef kOp = {
    .name = "LinearAttention",
    .inputs = {{"query", "T"},
               {"key", "T"},
               {"value", "T"},
               {"?past_state", "S"},
               {"?decay", "T"},
               {"?beta", "T"}},
    .outputs = {{"output", "T"}, {"?present_state", "S"}},
    .types = {{"T", kFloats}, {"S", kFloats}},
    .attributes = {{"chunk_size", AttrKind::kInt},
                   {"kv_num_heads", AttrKind::kInt, true},
                   {"q_num_heads", AttrKind::kInt, true},
                   {"scale", AttrKind::kFloat},
                   {"update_rule", AttrKind::kString}},
    .any_rank = true,
    .infer = Infer,
    .reference = Reference,
    .prepare = Prepare,
    .bind = Bind,
    .run = Run,
};

}  // namespace npurt::ops::linear_attention
