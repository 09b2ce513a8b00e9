// RNN: H = f(X W' + H R' + b). GRU: z and r = f(X W' + H R' + b), h = g(X W' + (r . H) R' + b),
// H = (1 - z) . h + z . H. LSTM: i, o and f = f(X W' + H R' + P . C + b), c = g(X W' + H R' + b),
// C = f . C + i . c, H = o . h(C). One step after the other, forwards, backwards or both.
//
// A row of the batch that is shorter than the others keeps its state and yields zeros where it has
// ended; read backwards, it starts where it ends.
#include "ops/recurrent.h"

#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kernels/elementwise/scalar.h"
#include "ops/epilogue.h"
#include "ops/move.h"

namespace npurt::ops::recurrent {
namespace {

using kernels::ElementwiseOp;
namespace scalar = kernels::scalar;

constexpr ActivationRow kActivationRows[] = {
    {"Affine", [](double x, double a, double b) { return a * x + b; }, ElementwiseOp::kIdentity, 2,
     1, 0},
    {"Elu", [](double x, double a, double) { return x < 0 ? a * std::expm1(x) : x; },
     ElementwiseOp::kElu, 1, 1, 0},
    {"HardSigmoid", [](double x, double a, double b) { return scalar::Clamp(a * x + b, 0.0, 1.0); },
     ElementwiseOp::kHardSigmoid, 2, 0.2f, 0.5f},
    {"LeakyRelu", [](double x, double a, double) { return x < 0 ? a * x : x; },
     ElementwiseOp::kLeakyRelu, 1, 0.01f, 0},
    {"Relu", [](double x, double, double) { return x < 0 ? 0 : x; }, ElementwiseOp::kRelu, 0, 0, 0},
    {"ScaledTanh", [](double x, double a, double b) { return a * std::tanh(b * x); },
     ElementwiseOp::kIdentity, 2, 1, 1},
    {"Sigmoid", [](double x, double, double) { return scalar::Sigmoid(x); },
     ElementwiseOp::kSigmoid, 0, 0, 0},
    {"Softplus", [](double x, double, double) { return scalar::Softplus(x); },
     ElementwiseOp::kSoftplus, 0, 0, 0},
    {"Softsign", [](double x, double, double) { return x / (1 + std::fabs(x)); },
     ElementwiseOp::kSoftsign, 0, 0, 0},
    {"Tanh", [](double x, double, double) { return std::tanh(x); }, ElementwiseOp::kTanh, 0, 0, 0},
    {"ThresholdedRelu", [](double x, double a, double) { return x > a || x != x ? x : 0; },
     ElementwiseOp::kThresholdedRelu, 1, 1, 0},
};

const ActivationRow* FindActivation(absl::string_view name) {
  for (const ActivationRow& row : kActivationRows)
    if (absl::EqualsIgnoreCase(name, row.name)) return &row;
  return nullptr;
}

}  // namespace

absl::StatusOr<Options> OptionsOf(Cell cell, const Attributes& attributes) {
  Options o;
  o.cell = cell;
  const std::string direction = attributes.String("direction", "forward");
  o.directions = direction == "bidirectional" ? 2 : 1;
  o.reversed = direction == "reverse";
  if (o.directions == 1 && !o.reversed && direction != "forward")
    return absl::InvalidArgumentError(absl::StrCat(
        "direction is '", direction, "', want 'forward', 'reverse' or 'bidirectional'"));
  o.batch_first = attributes.Int("layout") != 0;
  o.input_forget = attributes.Int("input_forget") != 0;
  o.linear_before_reset = attributes.Int("linear_before_reset") != 0;
  o.hidden_size = attributes.Int("hidden_size", -1);
  o.clip = attributes.Float("clip");
  if (!(o.clip >= 0))
    return absl::InvalidArgumentError(absl::StrCat("clip is ", o.clip, ", want no less than 0"));

  const absl::Span<const std::string> names = attributes.Strings("activations");
  const std::size_t each = static_cast<std::size_t>(ActivationsOf(cell));
  const std::size_t all = each * static_cast<std::size_t>(o.directions);
  if (!names.empty() && names.size() != all)
    return absl::InvalidArgumentError(
        absl::StrCat("activations has ", names.size(), " names, want ", all));
  // The parameters belong, one after the other, to the functions that take one.
  absl::Span<const float> alphas = attributes.Floats("activation_alpha");
  absl::Span<const float> betas = attributes.Floats("activation_beta");
  const auto next = [](absl::Span<const float>& list, float otherwise) {
    if (list.empty()) return otherwise;
    const float first = list[0];
    list.remove_prefix(1);
    return first;
  };
  for (std::size_t i = 0; i < all; ++i) {
    const char* usual = i % each == 0 && cell != Cell::kRnn ? "Sigmoid" : "Tanh";
    const absl::string_view name = names.empty() ? usual : absl::string_view(names[i]);
    Activation& activation = o.activations[i / each][i % each];
    activation.row = FindActivation(name);
    if (activation.row == nullptr)
      return absl::InvalidArgumentError(absl::StrCat("there is no activation '", name, "'"));
    activation.params[0] = activation.row->params > 0 ? next(alphas, activation.row->alpha) : 0;
    activation.params[1] = activation.row->params > 1 ? next(betas, activation.row->beta) : 0;
  }
  return o;
}

absl::StatusOr<SymbolicSizes> CheckShapes(const Options& o,
                                          absl::Span<const SymDims* const> shapes) {
  constexpr const char* kNames[kInputs] = {"X",         "W",         "R", "B", "sequence_lens",
                                           "initial_h", "initial_c", "P"};
  constexpr std::size_t kRanks[kInputs] = {3, 3, 3, 2, 1, 3, 3, 2};
  for (std::size_t i = 0; i < kInputs; ++i)
    if (shapes[i] != nullptr && shapes[i]->size() != kRanks[i])
      return absl::InvalidArgumentError(absl::StrCat(
          kNames[i], " has shape ", ShapeString(*shapes[i]), ", want rank ", kRanks[i]));
  const SymDims& x = *shapes[kX];
  SymbolicSizes s;
  s.steps = x[o.batch_first ? 1 : 0];
  s.batch = x[o.batch_first ? 0 : 1];
  s.input = x[2];
  s.hidden = o.hidden_size >= 0 ? Dim(o.hidden_size) : (*shapes[kR])[2];
  const Dim directions = std::int64_t{o.directions};
  const Dim gates = Dim(std::int64_t{GatesOf(o.cell)}) * s.hidden;
  const SymDims state = o.batch_first ? SymDims{s.batch, directions, s.hidden}
                                      : SymDims{directions, s.batch, s.hidden};
  const SymDims want[kInputs] = {x,
                                 {directions, gates, s.input},
                                 {directions, gates, s.hidden},
                                 {directions, Dim(2) * gates},
                                 {s.batch},
                                 state,
                                 state,
                                 {directions, Dim(3) * s.hidden}};
  for (std::size_t i = 0; i < kInputs; ++i) {
    if (shapes[i] == nullptr) continue;
    for (std::size_t d = 0; d < kRanks[i]; ++d) {
      const Dim& mine = (*shapes[i])[d];
      if (mine != want[i][d] && mine.is_constant() && want[i][d].is_constant())
        return absl::InvalidArgumentError(absl::StrCat(
            kNames[i], " has shape ", ShapeString(*shapes[i]), ", want ", ShapeString(want[i])));
    }
  }
  return s;
}

absl::Status CheckLengths(const RunContext& run, const Sizes& sizes) {
  for (std::int64_t b = 0; b < sizes.batch; ++b) {
    const std::int64_t length = LengthOf(run, sizes, b);
    if (length < 0 || length > sizes.steps)
      return absl::OutOfRangeError(
          absl::StrCat("sequence_lens[", b, "] is ", length, ", want 0 to ", sizes.steps));
  }
  return absl::OkStatus();
}

namespace {

template <Cell kCell>
absl::Status Infer(InferContext& context) {
  NPURT_ASSIGN_OR_RETURN(const Options o, OptionsOf(kCell, context.attributes()));
  const SymDims* shapes[kInputs] = {};
  for (int i = 0; i < context.input_count(); ++i)
    if (context.has_input(i)) shapes[i] = &context.shape(i);
  NPURT_ASSIGN_OR_RETURN(const SymbolicSizes s, CheckShapes(o, shapes));
  const Dim directions = std::int64_t{o.directions};
  const SymDims all = o.batch_first ? SymDims{s.batch, s.steps, directions, s.hidden}
                                    : SymDims{s.steps, directions, s.batch, s.hidden};
  const SymDims state = o.batch_first ? SymDims{s.batch, directions, s.hidden}
                                      : SymDims{directions, s.batch, s.hidden};
  for (int i = 0; i < context.output_count(); ++i)
    context.set_output(i, context.dtype(kX), i == kY ? all : state);
  return absl::OkStatus();
}

using Vector = std::vector<double>;

// Elements `first` to `first + count - 1` of an input, or zeros if it is absent.
Vector Load(const RunContext& run, int input, std::int64_t first, std::int64_t count) {
  Vector values(static_cast<std::size_t>(count));
  if (run.has_input(input))
    for (std::int64_t i = 0; i < count; ++i)
      values[static_cast<std::size_t>(i)] = RealAt(run, input, first + i);
  return values;
}

// The weights and the state of one row of the batch in one direction.
struct ReferenceCell {
  const Options& options;
  const Activation* activations;
  std::size_t input, hidden;
  Vector w, r, b, p;
  Vector x, h, c;

  // Number `j` of gate `g` without what comes from the state …
  double OfInput(std::size_t g, std::size_t j) const {
    double sum = b[g * hidden + j];
    for (std::size_t k = 0; k < input; ++k) sum += w[(g * hidden + j) * input + k] * x[k];
    return sum;
  }
  // … and from the state.
  double OfState(std::size_t g, std::size_t j, const Vector& state) const {
    const std::size_t gates = static_cast<std::size_t>(GatesOf(options.cell));
    double sum = b[(gates + g) * hidden + j];
    for (std::size_t k = 0; k < hidden; ++k) sum += r[(g * hidden + j) * hidden + k] * state[k];
    return sum;
  }
  double Activate(int which, double value) const {
    const double clip = static_cast<double>(options.clip);
    return activations[which](clip > 0 ? scalar::Clamp(value, -clip, clip) : value);
  }

  void Step() {
    const Vector before = h;
    if (options.cell == Cell::kRnn) {
      for (std::size_t j = 0; j < hidden; ++j)
        h[j] = Activate(0, OfInput(0, j) + OfState(0, j, before));
    } else if (options.cell == Cell::kGru) {
      Vector reset(hidden), masked(hidden);
      for (std::size_t j = 0; j < hidden; ++j) {
        reset[j] = Activate(0, OfInput(1, j) + OfState(1, j, before));
        masked[j] = reset[j] * before[j];
      }
      for (std::size_t j = 0; j < hidden; ++j) {
        const double z = Activate(0, OfInput(0, j) + OfState(0, j, before));
        const double state =
            options.linear_before_reset ? reset[j] * OfState(2, j, before) : OfState(2, j, masked);
        h[j] = (1 - z) * Activate(1, OfInput(2, j) + state) + z * before[j];
      }
    } else {
      for (std::size_t j = 0; j < hidden; ++j) {
        const auto gate = [&](std::size_t g) { return OfInput(g, j) + OfState(g, j, before); };
        const double in = Activate(0, gate(0) + p[j] * c[j]);
        const double forget =
            options.input_forget ? 1 - in : Activate(0, gate(2) + p[2 * hidden + j] * c[j]);
        c[j] = forget * c[j] + in * Activate(1, gate(3));
        h[j] = Activate(0, gate(1) + p[hidden + j] * c[j]) * Activate(2, c[j]);
      }
    }
  }
};

void Store(const RunContext& run, int output, std::int64_t row, const Vector& values) {
  if (!run.has_output(output)) return;
  const auto count = static_cast<std::int64_t>(values.size());
  for (std::int64_t i = 0; i < count; ++i)
    StoreReal(run, output, row * count + i, values[static_cast<std::size_t>(i)]);
}

template <Cell kCell>
absl::Status Reference(const RunContext& run, std::int64_t, void*) {
  NPURT_ASSIGN_OR_RETURN(const Options o, OptionsOf(kCell, run.attributes()));
  NPURT_ASSIGN_OR_RETURN(const Sizes s, SizesOf(run, o));
  NPURT_RETURN_IF_ERROR(CheckLengths(run, s));
  const std::int64_t gates = GatesOf(kCell) * s.hidden;
  const Vector zeros(static_cast<std::size_t>(s.hidden));
  Poller poller(run);
  for (int d = 0; d < s.directions; ++d) {
    ReferenceCell cell{o,
                       o.activations[d],
                       static_cast<std::size_t>(s.input),
                       static_cast<std::size_t>(s.hidden),
                       Load(run, kW, d * gates * s.input, gates * s.input),
                       Load(run, kR, d * gates * s.hidden, gates * s.hidden),
                       Load(run, kB, d * 2 * gates, 2 * gates),
                       Load(run, kP, d * 3 * s.hidden, 3 * s.hidden),
                       {},
                       {},
                       {}};
    for (std::int64_t b = 0; b < s.batch; ++b) {
      const std::int64_t state = s.StateRow(d, b), length = LengthOf(run, s, b);
      cell.h = Load(run, kInitialH, state * s.hidden, s.hidden);
      cell.c = Load(run, kInitialC, state * s.hidden, s.hidden);
      for (std::int64_t i = 0; i < s.steps; ++i) {
        const std::int64_t t = o.IsReversed(d) ? s.steps - 1 - i : i;
        if (t >= length) {
          Store(run, kY, s.YRow(t, d, b), zeros);
          continue;
        }
        cell.x = Load(run, kX, s.XRow(t, b) * s.input, s.input);
        cell.Step();
        Store(run, kY, s.YRow(t, d, b), cell.h);
        NPURT_RETURN_IF_ERROR(poller.Count(gates * (s.input + s.hidden)));
      }
      Store(run, kYH, state, cell.h);
      Store(run, kYC, state, cell.c);
    }
  }
  return absl::OkStatus();
}

template <Cell kCell>
constexpr OpDef Def(const char* name) {
  OpDef op;
  op.name = name;
  op.inputs[kX] = {"x", "T"};
  op.inputs[kW] = {"w", "T"};
  op.inputs[kR] = {"r", "T"};
  op.inputs[kB] = {"?b", "T"};
  op.inputs[kLengths] = {"?sequence_lens", "int32"};
  op.inputs[kInitialH] = {"?initial_h", "T"};
  op.outputs[kY] = {"?y", "T"};
  op.outputs[kYH] = {"?y_h", "T"};
  op.types[0] = {"T", kFloats};
  op.attributes[0] = {"activation_alpha", AttrKind::kFloats};
  op.attributes[1] = {"activation_beta", AttrKind::kFloats};
  op.attributes[2] = {"activations", AttrKind::kStrings};
  op.attributes[3] = {"clip", AttrKind::kFloat};
  op.attributes[4] = {"direction", AttrKind::kString};
  op.attributes[5] = {"hidden_size", AttrKind::kInt};
  op.attributes[6] = {"layout", AttrKind::kInt};
  if (kCell == Cell::kGru) op.attributes[7] = {"linear_before_reset", AttrKind::kInt};
  if (kCell == Cell::kLstm) {
    op.inputs[kInitialC] = {"?initial_c", "T"};
    op.inputs[kP] = {"?p", "T"};
    op.outputs[kYC] = {"?y_c", "T"};
    op.attributes[7] = {"input_forget", AttrKind::kInt};
  }
  op.infer = Infer<kCell>;
  op.reference = Reference<kCell>;
  op.prepare = Prepare<kCell>;
  op.bind = Bind<kCell>;
  op.run = Run<kCell>;
  return op;
}

}  // namespace

extern constexpr OpDef kOps[] = {Def<Cell::kRnn>("RNN"), Def<Cell::kGru>("GRU"),
                                 Def<Cell::kLstm>("LSTM")};
extern constexpr int kOpCount = static_cast<int>(sizeof kOps / sizeof kOps[0]);

}  // namespace npurt::ops::recurrent
