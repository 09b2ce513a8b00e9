// The fast version of RNN, GRU and LSTM. A tile is a direction and some rows of the batch. It takes
// the steps in spans: one matrix product makes the input's part of all gates of a span; then each
// step is a product of the state with R, which adds that part, and a few rows of vector arithmetic.
#include <algorithm>

#include "base/checked_math.h"
#include "kernels/gemm/gemm.h"
#include "ops/around_axis.h"
#include "ops/epilogue.h"
#include "ops/poller.h"
#include "ops/recurrent.h"

namespace npurt::ops::recurrent {
namespace {

using kernels::ElementwiseOp;
using kernels::RowFn;

// A product with a packed constant, of `columns` columns.
struct Part {
  std::int64_t first_row, columns;  // rows of the weights that it holds
  std::int64_t offset;              // of the first direction in the packed buffer, in floats
  std::int64_t floats;              // of one direction
};

struct State final : Prepared {
  const kernels::GemmKernel* gemm = nullptr;
  PackedBuffer packed;
  Part w = {};
  Part r[2] = {};  // GRU: the gates z and r, then h, if the reset comes first; else all gates
  int r_parts = 1;
  RowFn add = nullptr, sub = nullptr, mul = nullptr, fma = nullptr, clip = nullptr;
  RowFn activations[2][3] = {};
};

bool Multiplies(std::int64_t a, std::int64_t b, std::int64_t limit) {
  std::int64_t product;
  return CheckedMul(a, b, &product) && product <= limit;
}

}  // namespace

template <Cell kCell>
absl::StatusOr<std::unique_ptr<Prepared>> Prepare(PrepareContext& context) {
  const Tensor *w = context.constant(kW), *r = context.constant(kR);
  if (context.type(kX).dtype != DType::kF32 || w == nullptr || r == nullptr) return nullptr;
  if (w->element_count() == 0 || r->element_count() == 0) return nullptr;
  NPURT_ASSIGN_OR_RETURN(const Options o, OptionsOf(kCell, context.attributes()));
  auto state = std::make_unique<State>();
  const IsaSet allowed = KernelIsa(context);
  for (int d = 0; d < o.directions; ++d)
    for (int i = 0; i < ActivationsOf(kCell); ++i) {
      const ElementwiseOp op = o.activations[d][i].row->op;
      if (op == ElementwiseOp::kIdentity) return nullptr;
      state->activations[d][i] = kernels::SelectRow(op, DType::kF32, allowed);
    }
  state->add = kernels::SelectRow(ElementwiseOp::kAdd, DType::kF32, allowed);
  state->sub = kernels::SelectRow(ElementwiseOp::kSub, DType::kF32, allowed);
  state->mul = kernels::SelectRow(ElementwiseOp::kMul, DType::kF32, allowed);
  state->fma = kernels::SelectRow(ElementwiseOp::kFma, DType::kF32, allowed);
  state->clip = kernels::SelectRow(ElementwiseOp::kClip, DType::kF32, allowed);
  state->gemm = kernels::SelectGemmKernel(allowed);
  state->kernel = state->gemm->name;

  const std::int64_t input = w->dims()[2], hidden = r->dims()[2];
  const std::int64_t gates = GatesOf(kCell) * hidden;
  const bool split = kCell == Cell::kGru && !o.linear_before_reset;
  state->w = {0, gates, 0, kernels::PackedBSize(*state->gemm, input, gates)};
  state->r_parts = split ? 2 : 1;
  state->r[0] = {0, split ? 2 * hidden : gates, 0, 0};
  if (split) state->r[1] = {2 * hidden, hidden, 0, 0};
  constexpr std::int64_t kMost = std::int64_t{1} << 58;
  std::int64_t floats = 0;
  const auto place = [&](Part* part) {
    part->offset = floats;
    if (part->floats == 0 || !Multiplies(part->floats, o.directions, kMost)) return false;
    floats += part->floats * o.directions;
    return true;
  };
  bool fits = place(&state->w);
  for (int i = 0; i < state->r_parts; ++i) {
    state->r[i].floats = kernels::PackedBSize(*state->gemm, hidden, state->r[i].columns);
    fits = fits && place(&state->r[i]);
  }
  if (!fits) return absl::ResourceExhaustedError("the weights are too large to pack");
  state->packed_bytes = static_cast<std::size_t>(floats) * sizeof(float);
  NPURT_ASSIGN_OR_RETURN(state->packed, context.Pack(state->packed_bytes, [&](void* data) {
    // Both lie transposed: a row per gate and number.
    const auto pack = [&](const Tensor& from, const Part& part, std::int64_t k) {
      for (int d = 0; d < o.directions; ++d)
        kernels::PackB(*state->gemm, k, part.columns,
                       static_cast<const float*>(from.data()) + (d * gates + part.first_row) * k, 1,
                       k, 1, static_cast<float*>(data) + part.offset + d * part.floats);
    };
    pack(*w, state->w, input);
    for (int i = 0; i < state->r_parts; ++i) pack(*r, state->r[i], hidden);
  }));
  context.DropConstant(kW);
  context.DropConstant(kR);
  return state;
}

namespace {

struct Bound {
  Options options;
  Sizes sizes;
  std::int64_t rows;  // of the batch in a tile
  std::int64_t span;  // steps whose input part is made at once
  std::size_t offset_h, offset_c, offset_gates, offset_row, offset_span, offset_gemm;  // of scratch
};

// The product that makes the input's part of all gates of `steps` steps, for `rows` rows of the
// batch: a matrix per step or, where the batch comes first, per row; one if they lie together.
kernels::GemmProblem InputProblem(const Sizes& s, std::int64_t gates, std::int64_t rows,
                                  std::int64_t steps) {
  kernels::GemmProblem p;
  const std::int64_t inner = s.batch_first ? steps : rows, outer = s.batch_first ? rows : steps;
  const std::int64_t stride = s.batch_first ? s.steps : s.batch;
  const bool dense = inner == stride;
  p.m = dense ? inner * outer : inner;
  p.n = gates;
  p.k = s.input;
  p.packed_b = true;
  p.a_row_stride = s.input;
  p.batch_rank = dense ? 0 : 1;
  p.batch_dims[0] = outer;
  p.a_batch_strides[0] = stride * s.input;
  return p;
}

kernels::GemmProblem StateProblem(std::int64_t hidden, std::int64_t rows, std::int64_t columns) {
  kernels::GemmProblem p;
  p.m = rows;
  p.n = columns;
  p.k = hidden;
  p.packed_b = true;
  p.a_row_stride = hidden;
  return p;
}

}  // namespace

template <Cell kCell>
absl::Status Bind(BindContext& bind) {
  const auto* state = bind.prepared<State>();
  auto* bound = bind.New<Bound>();
  NPURT_ASSIGN_OR_RETURN(bound->options, OptionsOf(kCell, bind.attributes()));
  NPURT_ASSIGN_OR_RETURN(bound->sizes, SizesOf(bind, bound->options));
  const Sizes& s = bound->sizes;
  const std::int64_t gates = GatesOf(kCell) * s.hidden;
  // Fewer rows than two tiles of the kernel would read R too often for what they do with it.
  bound->rows = std::min(
      s.batch, std::max<std::int64_t>(2 * state->gemm->tile_m, CeilDiv(s.batch, std::int64_t{16})));
  if (bound->rows == 0) {
    bind.SetTiles(0, 0);
    return absl::OkStatus();
  }
  // Half a megabyte for a span stays in the second-level cache; no more than 192 rows are needed
  // to keep the kernel busy.
  const std::int64_t most = std::clamp<std::int64_t>((512 << 10) / 4 / gates, 16, 192);
  bound->span = std::clamp<std::int64_t>(most / bound->rows, 1, std::max<std::int64_t>(s.steps, 1));

  std::size_t gemm = 0;
  const auto add_gemm = [&](const kernels::GemmProblem& problem) {
    gemm = std::max(gemm, kernels::PlanGemm(problem, *state->gemm).scratch_bytes);
  };
  for (const std::int64_t rows : {bound->rows, s.batch % bound->rows}) {
    for (const std::int64_t steps : {bound->span, s.steps % bound->span})
      add_gemm(InputProblem(s, gates, rows, steps));
    for (int i = 0; i < state->r_parts; ++i)
      add_gemm(StateProblem(s.hidden, rows, state->r[i].columns));
  }
  std::size_t bytes = 0;
  bool fits = true;
  const auto book = [&](std::int64_t n, std::int64_t each) {
    std::size_t here = bytes, size = 0;
    std::int64_t count = 0;
    fits = fits && CheckedMul(n, each, &count) && BytesOf(DType::kF32, count, &size) &&
           CheckedAlignUp<std::size_t>(size, 64, &size) && CheckedAdd(bytes, size, &bytes);
    return here;
  };
  book(2, gates);  // at 0: the biases of the input's and of the state's part
  bound->offset_h = book(bound->rows, s.hidden);
  bound->offset_c = book(bound->rows, s.hidden);  // GRU: r . h
  bound->offset_gates = book(bound->rows, gates);
  bound->offset_row = book(1, s.hidden);
  bound->offset_span = book(bound->rows * bound->span, gates);
  bound->offset_gemm = bytes;
  if (!fits || !CheckedAdd(bytes, gemm, &bytes))
    return absl::ResourceExhaustedError("the gates of one step are too large");
  bind.SetScratch(bytes);
  const double weights = static_cast<double>(gates) * static_cast<double>(s.input + s.hidden);
  const double steps = static_cast<double>(s.steps);
  bind.SetTiles(
      CeilDiv(s.batch, bound->rows) * s.directions,
      CostOf(2 * weights * steps * static_cast<double>(bound->rows), 4 * weights * steps));
  return absl::OkStatus();
}

namespace {

// Rows of one direction on their way through the steps.
template <Cell kCell>
class Walk {
 public:
  Walk(const RunContext& run, std::int64_t tile, void* scratch)
      : run_(run),
        state_(*run.prepared<State>()),
        bound_(*run.bound<Bound>()),
        s_(bound_.sizes),
        hidden_(s_.hidden),
        gates_(GatesOf(kCell) * s_.hidden),
        direction_(static_cast<int>(tile % s_.directions)),
        first_(tile / s_.directions * bound_.rows),
        rows_(std::min(bound_.rows, s_.batch - first_)),
        clip_{-bound_.options.clip, bound_.options.clip} {
    const auto at = [&](std::size_t offset) {
      return reinterpret_cast<float*>(static_cast<char*>(scratch) + offset);
    };
    bias_ = at(0);
    h_ = at(bound_.offset_h);
    c_ = at(bound_.offset_c);
    step_ = at(bound_.offset_gates);
    row_ = at(bound_.offset_row);
    span_ = at(bound_.offset_span);
    gemm_scratch_ = at(bound_.offset_gemm);
    for (int i = 0; i < state_.r_parts; ++i) {
      problems_[i] = StateProblem(hidden_, rows_, state_.r[i].columns);
      tilings_[i] = kernels::PlanGemm(problems_[i], *state_.gemm);
    }
  }

  absl::Status Run() {
    PrepareBiases();
    ReadState(kInitialH, h_);
    if (kCell == Cell::kLstm) ReadState(kInitialC, c_);
    const bool reversed = bound_.options.IsReversed(direction_);
    for (std::int64_t done = 0; done < s_.steps; done += bound_.span) {
      NPURT_RETURN_IF_ERROR(run_.Poll());
      const std::int64_t count = std::min(bound_.span, s_.steps - done);
      const std::int64_t begin = reversed ? s_.steps - done - count : done;
      MakeSpan(begin, count);
      for (std::int64_t i = 0; i < count; ++i) {
        const std::int64_t in_span = reversed ? count - 1 - i : i;
        Step(begin + in_span, in_span, count);
      }
    }
    WriteState(kYH, h_);
    if (kCell == Cell::kLstm) WriteState(kYC, c_);
    return absl::OkStatus();
  }

 private:
  std::size_t RowBytes() const { return static_cast<std::size_t>(hidden_) * sizeof(float); }

  // All biases go where the input's part is made, but that of h if the reset multiplies it.
  void PrepareBiases() {
    std::memset(bias_, 0, static_cast<std::size_t>(2 * gates_) * sizeof(float));
    if (!run_.has_input(kB)) return;
    const char* const b =
        run_.in<char>(kB) + direction_ * 2 * gates_ * static_cast<std::int64_t>(sizeof(float));
    std::memcpy(bias_, b, static_cast<std::size_t>(2 * gates_) * sizeof(float));
    const bool apart = kCell == Cell::kGru && bound_.options.linear_before_reset;
    const std::int64_t together = apart ? 2 * hidden_ : gates_;
    Row(state_.add, bias_, bias_ + gates_, nullptr, bias_, together);
    std::memset(bias_ + gates_, 0, static_cast<std::size_t>(together) * sizeof(float));
  }

  void ReadState(int input, float* to) const {
    for (std::int64_t b = 0; b < rows_; ++b, to += hidden_) {
      if (run_.has_input(input)) {
        std::memcpy(to, run_.in<float>(input) + s_.StateRow(direction_, first_ + b) * hidden_,
                    RowBytes());
      } else {
        std::memset(to, 0, RowBytes());
      }
    }
  }
  void WriteState(int output, const float* from) const {
    if (!run_.has_output(output)) return;
    for (std::int64_t b = 0; b < rows_; ++b)
      std::memcpy(run_.out<float>(output) + s_.StateRow(direction_, first_ + b) * hidden_,
                  from + b * hidden_, RowBytes());
  }

  void Multiply(const kernels::GemmProblem& problem, const kernels::GemmTiling& tiling,
                const float* a, const Part& part, float* c, const kernels::Epilogue& epilogue) {
    const kernels::GemmCall call{
        &problem, &tiling,  a, state_.packed.as<float>() + part.offset + direction_ * part.floats,
        c,        epilogue, 0, StopCheckOf(run_)};
    for (std::int64_t tile = 0; tile < tiling.tiles; ++tile)
      kernels::RunGemmTile(call, tile, gemm_scratch_);
  }

  void MakeSpan(std::int64_t begin, std::int64_t count) {
    const kernels::GemmProblem problem = InputProblem(s_, gates_, rows_, count);
    kernels::Epilogue epilogue;
    epilogue.column_bias = bias_;
    Multiply(problem, kernels::PlanGemm(problem, *state_.gemm),
             run_.in<float>(kX) + s_.XRow(begin, first_) * s_.input, state_.w, span_, epilogue);
  }

  // Step `t`, which is number `i` of the `count` steps of the span.
  void Step(std::int64_t t, std::int64_t i, std::int64_t count) {
    const float* const input = span_ + (s_.batch_first ? i : i * rows_) * gates_;
    const std::int64_t stride = s_.batch_first ? count * gates_ : gates_;
    kernels::Epilogue epilogue;
    epilogue.residual = input;
    epilogue.residual_stride = stride;
    if (kCell == Cell::kGru) {
      StepGru(t, input, stride, epilogue);
    } else {
      Multiply(problems_[0], tilings_[0], h_, state_.r[0], step_, epilogue);
      for (std::int64_t b = 0; b < rows_; ++b) {
        if (!Active(t, b)) continue;
        if (kCell == Cell::kLstm) {
          Lstm(step_ + b * gates_, h_ + b * hidden_, c_ + b * hidden_);
        } else {
          Activate(0, step_ + b * gates_, hidden_);
          std::memcpy(h_ + b * hidden_, step_ + b * gates_, RowBytes());
        }
      }
    }
    if (!run_.has_output(kY)) return;
    for (std::int64_t b = 0; b < rows_; ++b) {
      float* const y = run_.out<float>(kY) + s_.YRow(t, direction_, first_ + b) * hidden_;
      if (Active(t, b)) {
        std::memcpy(y, h_ + b * hidden_, RowBytes());
      } else {
        std::memset(y, 0, RowBytes());
      }
    }
  }

  void Lstm(float* gate, float* h, float* c) {
    float *const in = gate, *const out = gate + hidden_, *const forget = gate + 2 * hidden_,
                 *const cell = gate + 3 * hidden_;
    const float* const p =
        run_.has_input(kP) ? run_.in<float>(kP) + direction_ * 3 * hidden_ : nullptr;
    if (p == nullptr) {
      Activate(0, in, 3 * hidden_);
    } else {
      Row(state_.fma, p, c, in, in, hidden_);
      Row(state_.fma, p + 2 * hidden_, c, forget, forget, hidden_);
      Activate(0, in, hidden_);
      Activate(0, forget, hidden_);
    }
    if (bound_.options.input_forget) {
      const float one = 1;
      Row(state_.sub, &one, in, nullptr, forget, hidden_, 1);
    }
    Activate(1, cell, hidden_);
    Row(state_.mul, in, cell, nullptr, cell, hidden_);
    Row(state_.fma, forget, c, cell, c, hidden_);
    if (p != nullptr) {
      Row(state_.fma, p + hidden_, c, out, out, hidden_);
      Activate(0, out, hidden_);
    }
    std::memcpy(row_, c, RowBytes());
    Activate(2, row_, hidden_);
    Row(state_.mul, out, row_, nullptr, h, hidden_);
  }

  void StepGru(std::int64_t t, const float* input, std::int64_t stride,
               const kernels::Epilogue& with_input) {
    const bool linear = bound_.options.linear_before_reset;
    const std::int64_t columns = state_.r[0].columns;
    float* const h_gate = step_ + rows_ * columns;  // of all rows, unless `linear`
    if (linear) {
      kernels::Epilogue epilogue;
      epilogue.column_bias = bias_ + gates_;
      Multiply(problems_[0], tilings_[0], h_, state_.r[0], step_, epilogue);
      for (std::int64_t b = 0; b < rows_; ++b) {
        float* const gate = step_ + b * gates_;
        const float* const part = input + b * stride;
        Row(state_.add, gate, part, nullptr, gate, 2 * hidden_);
        Activate(0, gate, 2 * hidden_);
        float* const h = gate + 2 * hidden_;
        Row(state_.fma, gate + hidden_, h, part + 2 * hidden_, h, hidden_);
      }
    } else {
      Multiply(problems_[0], tilings_[0], h_, state_.r[0], step_, with_input);
      for (std::int64_t b = 0; b < rows_; ++b) {
        float* const gate = step_ + b * columns;
        Activate(0, gate, 2 * hidden_);
        Row(state_.mul, gate + hidden_, h_ + b * hidden_, nullptr, c_ + b * hidden_, hidden_);
      }
      kernels::Epilogue epilogue = with_input;
      epilogue.residual += 2 * hidden_;
      Multiply(problems_[1], tilings_[1], c_, state_.r[1], h_gate, epilogue);
    }
    for (std::int64_t b = 0; b < rows_; ++b) {
      if (!Active(t, b)) continue;
      float* const h = h_ + b * hidden_;
      float* const candidate = linear ? step_ + b * gates_ + 2 * hidden_ : h_gate + b * hidden_;
      Activate(1, candidate, hidden_);
      Row(state_.sub, h, candidate, nullptr, row_, hidden_);
      Row(state_.fma, step_ + b * columns, row_, candidate, h, hidden_);
    }
  }

  bool Active(std::int64_t t, std::int64_t b) const { return t < LengthOf(run_, s_, first_ + b); }

  void Activate(int which, float* x, std::int64_t count) {
    if (bound_.options.clip > 0) Row(state_.clip, x, x, nullptr, x, count, 0, clip_);
    Row(state_.activations[direction_][which], x, x, nullptr, x, count, 0,
        bound_.options.activations[direction_][which].params);
  }

  static void Row(RowFn row, const float* x, const float* y, const float* z, float* out,
                  std::int64_t count, std::uint32_t scalars = 0, const float* params = nullptr) {
    row({{x, y, z}, out, static_cast<std::size_t>(count), scalars, params});
  }

  const RunContext& run_;
  const State& state_;
  const Bound& bound_;
  const Sizes& s_;
  const std::int64_t hidden_, gates_;
  const int direction_;
  const std::int64_t first_, rows_;  // of the batch
  const float clip_[2];
  float *bias_, *h_, *c_, *step_, *row_, *span_;
  void* gemm_scratch_;
  kernels::GemmProblem problems_[2];
  kernels::GemmTiling tilings_[2];
};

}  // namespace

template <Cell kCell>
absl::Status Run(const RunContext& run, std::int64_t tile, void* scratch) {
  NPURT_RETURN_IF_ERROR(CheckLengths(run, run.bound<Bound>()->sizes));
  return Walk<kCell>(run, tile, scratch).Run();
}

#define NPURT_CELL(cell)                                                             \
  template absl::StatusOr<std::unique_ptr<Prepared>> Prepare<cell>(PrepareContext&); \
  template absl::Status Bind<cell>(BindContext&);                                    \
  template absl::Status Run<cell>(const RunContext&, std::int64_t, void*);
NPURT_CELL(Cell::kRnn)
NPURT_CELL(Cell::kGru)
NPURT_CELL(Cell::kLstm)
#undef NPURT_CELL

}  // namespace npurt::ops::recurrent
