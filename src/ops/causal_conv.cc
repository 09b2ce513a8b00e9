// CausalConvWithState: y[b, c, t] = f(bias[c] + sum over j of w[c, j] * s[b, c, t + j]), where s is
// the past state followed by the input along time; present_state is the end of s, as long as the
// past.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/checked_math.h"
#include "kernels/elementwise/elementwise.h"
#include "ops/around_axis.h"
#include "ops/epilogue.h"
#include "ops/move.h"

namespace npurt::ops::causal_conv {
namespace {

using kernels::ElementwiseOp;
using kernels::RowFn;

constexpr int kX = 0, kW = 1, kBias = 2, kPast = 3, kInputs = 4;

absl::StatusOr<bool> HasSilu(const Attributes& attributes) {
  const std::string activation = attributes.String("activation", "none");
  const bool silu = activation == "silu" || activation == "swish";
  if (!silu && activation != "none")
    return absl::InvalidArgumentError(
        absl::StrCat("activation is '", activation, "', want 'none', 'silu' or 'swish'"));
  return silu;
}

// Checks what is known. `shapes` has an entry per input, null if absent. Returns the shape of the
// state.
absl::StatusOr<SymDims> CheckShapes(absl::Span<const SymDims* const> shapes) {
  constexpr const char* kNames[kInputs] = {"input", "weight", "bias", "past_state"};
  const SymDims &x = *shapes[kX], &w = *shapes[kW];
  if (x.size() != 3 || w.size() != 3 || w[2].Is(0))
    return absl::InvalidArgumentError(absl::StrCat("got shapes ", ShapeString(x), " and ",
                                                   ShapeString(w),
                                                   ", want [batch, channels, length] and "
                                                   "[channels, 1, k]"));
  const SymDims state = {x[0], x[1], w[2] - Dim(1)};
  const SymDims want[kInputs] = {x, {x[1], 1, w[2]}, {x[1]}, state};
  for (std::size_t i = 0; i < kInputs; ++i) {
    if (shapes[i] == nullptr) continue;
    bool fits = shapes[i]->size() == want[i].size();
    for (std::size_t d = 0; fits && d < want[i].size(); ++d) {
      const Dim& mine = (*shapes[i])[d];
      fits = mine == want[i][d] || !mine.is_constant() || !want[i][d].is_constant();
    }
    if (!fits)
      return absl::InvalidArgumentError(absl::StrCat(
          kNames[i], " has shape ", ShapeString(*shapes[i]), ", want ", ShapeString(want[i])));
  }
  return state;
}

absl::Status Infer(InferContext& context) {
  NPURT_RETURN_IF_ERROR(HasSilu(context.attributes()));
  const SymDims* shapes[kInputs] = {};
  for (int i = 0; i < context.input_count(); ++i)
    if (context.has_input(i)) shapes[i] = &context.shape(i);
  NPURT_ASSIGN_OR_RETURN(SymDims state, CheckShapes(shapes));
  context.set_output(0, context.dtype(0), context.shape(0));
  if (context.output_count() > 1) context.set_output(1, context.dtype(0), std::move(state));
  return absl::OkStatus();
}

struct Sizes {
  std::int64_t rows, channels, length, past, taps;
};

template <typename Context>
absl::StatusOr<Sizes> SizesOf(const Context& context) {
  SymDims dims[kInputs];
  const SymDims* shapes[kInputs] = {};
  for (int i = 0; i < kInputs; ++i) {
    if (!context.has_input(i)) continue;
    dims[i] = ToSymDims(context.dims(i));
    shapes[i] = &dims[i];
  }
  NPURT_RETURN_IF_ERROR(CheckShapes(shapes));
  const auto x = context.dims(kX), w = context.dims(kW);
  return Sizes{x[0] * x[1], x[1], x[2], w[2] - 1, w[2]};
}

absl::Status Reference(const RunContext& run, std::int64_t, void*) {
  NPURT_ASSIGN_OR_RETURN(const bool silu, HasSilu(run.attributes()));
  NPURT_ASSIGN_OR_RETURN(const Sizes s, SizesOf(run));
  std::vector<double> row(static_cast<std::size_t>(s.past + s.length));
  Poller poller(run);
  for (std::int64_t r = 0; r < s.rows; ++r) {
    const std::int64_t c = r % s.channels;
    for (std::int64_t i = 0; i < s.past + s.length; ++i)
      row[static_cast<std::size_t>(i)] = i >= s.past ? RealAt(run, kX, r * s.length + i - s.past)
                                         : run.has_input(kPast) ? RealAt(run, kPast, r * s.past + i)
                                                                : 0;
    for (std::int64_t t = 0; t < s.length; ++t) {
      double sum = run.has_input(kBias) ? RealAt(run, kBias, c) : 0;
      for (std::int64_t j = 0; j < s.taps; ++j)
        sum += RealAt(run, kW, c * s.taps + j) * row[static_cast<std::size_t>(t + j)];
      StoreReal(run, 0, r * s.length + t, silu ? sum / (1 + std::exp(-sum)) : sum);
      NPURT_RETURN_IF_ERROR(poller.Count(s.taps));
    }
    if (!run.has_output(1)) continue;
    for (std::int64_t i = 0; i < s.past; ++i)
      StoreReal(run, 1, r * s.past + i, row[static_cast<std::size_t>(s.length + i)]);
  }
  return absl::OkStatus();
}

struct State final : Prepared {
  RowFn fma = nullptr, swish = nullptr;
};

absl::StatusOr<std::unique_ptr<Prepared>> Prepare(PrepareContext& context) {
  if (context.type(kX).dtype != DType::kF32) return nullptr;
  auto state = std::make_unique<State>();
  const IsaSet allowed = KernelIsa(context);
  const char* name = "";
  state->fma = kernels::SelectRow(ElementwiseOp::kFma, DType::kF32, allowed, &name);
  state->swish = kernels::SelectRow(ElementwiseOp::kSwish, DType::kF32, allowed);
  state->kernel = name;
  return state;
}

struct Bound {
  Sizes sizes;
  std::int64_t rows_per_tile;
  bool silu;
};

absl::Status Bind(BindContext& bind) {
  auto* bound = bind.New<Bound>();
  NPURT_ASSIGN_OR_RETURN(bound->silu, HasSilu(bind.attributes()));
  NPURT_ASSIGN_OR_RETURN(bound->sizes, SizesOf(bind));
  const Sizes& s = bound->sizes;
  std::int64_t row;
  std::size_t bytes;
  if (!CheckedAdd(s.past, s.length, &row) || !BytesOf(DType::kF32, row, &bytes))
    return absl::ResourceExhaustedError("a row is too long");
  bind.SetScratch(bytes);
  // About 16 k products a tile.
  bound->rows_per_tile = std::clamp<std::int64_t>(
      (std::int64_t{1} << 14) / (s.taps * std::max<std::int64_t>(s.length, 1)), 1,
      std::max<std::int64_t>(s.rows, 1));
  bind.SetTiles(CeilDiv(s.rows, bound->rows_per_tile),
                kNsPerElement * static_cast<double>(bound->rows_per_tile) *
                    static_cast<double>(s.taps) * static_cast<double>(s.length + 8));
  return absl::OkStatus();
}

absl::Status Run(const RunContext& run, std::int64_t tile, void* scratch) {
  const State& state = *run.prepared<State>();
  const auto& [s, rows_per_tile, silu] = *run.bound<Bound>();
  const std::int64_t first = tile * rows_per_tile, last = std::min(s.rows, first + rows_per_tile);
  float* const row = static_cast<float*>(scratch);
  const std::size_t past_bytes = static_cast<std::size_t>(s.past) * sizeof(float);
  const std::size_t length_bytes = static_cast<std::size_t>(s.length) * sizeof(float);
  for (std::int64_t r = first; r < last; ++r) {
    const std::int64_t c = r % s.channels;
    // What is empty may have no memory to point at.
    if (past_bytes > 0 && run.has_input(kPast))
      std::memcpy(row, run.in<float>(kPast) + r * s.past, past_bytes);
    else if (past_bytes > 0)
      std::memset(row, 0, past_bytes);
    if (length_bytes > 0) std::memcpy(row + s.past, run.in<float>(kX) + r * s.length, length_bytes);
    if (past_bytes > 0 && run.has_output(1))
      std::memcpy(run.out<float>(1) + r * s.past, row + s.length, past_bytes);
    const float bias = run.has_input(kBias) ? run.Load<float>(kBias, c) : 0;
    if (s.length < 8) {  // a call of a row kernel would cost more
      for (std::int64_t t = 0; t < s.length; ++t) {
        float sum = bias;
        for (std::int64_t j = 0; j < s.taps; ++j)
          sum += run.Load<float>(kW, c * s.taps + j) * row[t + j];
        run.Store<float>(0, r * s.length + t, sum);
      }
      continue;
    }
    float* const y = run.out<float>(0) + r * s.length;
    for (std::int64_t j = 0; j < s.taps; ++j) {
      const float w = run.Load<float>(kW, c * s.taps + j);
      // Operands 1 and, of the first tap, 2 are one number.
      state.fma({{row + j, &w, j == 0 ? &bias : y},
                 y,
                 static_cast<std::size_t>(s.length),
                 j == 0 ? 6u : 2u,
                 nullptr});
    }
  }
  if (silu && last > first) {
    const float one = 1;
    float* const y = run.out<float>(0) + first * s.length;
    state.swish(
        {{y, nullptr, nullptr}, y, static_cast<std::size_t>((last - first) * s.length), 0, &one});
  }
  return absl::OkStatus();
}

}  // namespace

extern constexpr OpDef kOp = {
    .name = "CausalConvWithState",
    .inputs = {{"input", "T"}, {"weight", "T"}, {"?bias", "T"}, {"?past_state", "T"}},
    .outputs = {{"output", "T"}, {"?present_state", "T"}},
    .types = {{"T", kFloats}},
    .attributes = {{"activation", AttrKind::kString}},
    .infer = Infer,
    .reference = Reference,
    .prepare = Prepare,
    .bind = Bind,
    .run = Run,
};

}  // namespace npurt::ops::causal_conv
