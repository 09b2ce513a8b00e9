// Adagrad, Adam, Momentum: one step of an optimizer on tensors X with gradients G. Inputs are the
// rate R, the number of updates T, and then the lists X, G and the state one after another; outputs
// X and the state.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "ops/move.h"

namespace npurt::ops::optimizers {
namespace {

// Lists among the inputs (with X and G) and among the outputs (G is not updated).
struct Lists {
  int in, out;
};

absl::Status CheckLists(int inputs, int outputs, Lists lists) {
  const int count = (inputs - 2) / lists.in;
  if (count >= 1 && inputs == 2 + count * lists.in && outputs <= count * lists.out)
    return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("got ", inputs, " inputs and ", outputs,
                                                 " outputs, want 2 inputs and then ", lists.in,
                                                 " for each ", lists.out, " outputs"));
}

bool MayBeSame(const SymDims& a, const SymDims& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a[i].is_constant() && b[i].is_constant() && a[i] != b[i]) return false;
  return true;
}

// The mode of Momentum; the others have none.
absl::Status CheckMode(const Attributes& attributes) {
  const std::string mode = attributes.String("mode", "standard");
  if (mode == "standard" || mode == "nesterov") return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("mode is '", mode, "', want standard or nesterov"));
}

template <const Lists& kLists>
absl::Status Infer(InferContext& context) {
  NPURT_RETURN_IF_ERROR(CheckMode(context.attributes()));
  NPURT_RETURN_IF_ERROR(CheckLists(context.input_count(), context.output_count(), kLists));
  const int count = (context.input_count() - 2) / kLists.in;
  for (int i = 2; i < context.input_count(); ++i) {
    const int x = 2 + (i - 2) % count;
    if (!MayBeSame(context.shape(i), context.shape(x)))
      return absl::InvalidArgumentError(absl::StrCat("input ", i, " has shape ",
                                                     ShapeString(context.shape(i)), ", input ", x,
                                                     " ", ShapeString(context.shape(x))));
  }
  for (int i = 0; i < context.output_count(); ++i)
    context.set_output(i, context.dtype(2 + i % count), context.shape(2 + i % count));
  return absl::OkStatus();
}

struct Options {
  double rate, epsilon, norm, norm_post, alpha, beta;
  bool nesterov;
};

// One element and its state, updated in place. `g` has the share of x that norm_coefficient adds.
struct Element {
  double x, g, state[2];
};

void StepAdagrad(const Options& o, Element& e) {
  e.state[0] += e.g * e.g;
  e.x -= o.rate * e.g / (std::sqrt(e.state[0]) + o.epsilon);
}
Options PrepareAdagrad(Options o, const Attributes& a, double t) {
  o.rate /= 1 + t * static_cast<double>(a.Float("decay_factor", 0));
  return o;
}

void StepAdam(const Options& o, Element& e) {
  e.state[0] = o.alpha * e.state[0] + (1 - o.alpha) * e.g;
  e.state[1] = o.beta * e.state[1] + (1 - o.beta) * e.g * e.g;
  e.x -= o.rate * e.state[0] / (std::sqrt(e.state[1]) + o.epsilon);
  e.x *= 1 - o.norm_post;
}
Options PrepareAdam(Options o, const Attributes& a, double t) {
  o.alpha = static_cast<double>(a.Float("alpha", 0.9f));
  o.beta = static_cast<double>(a.Float("beta", 0.999f));
  if (t > 0) o.rate *= std::sqrt(1 - std::pow(o.beta, t)) / (1 - std::pow(o.alpha, t));
  return o;
}

void StepMomentum(const Options& o, Element& e) {
  e.state[0] = o.alpha * e.state[0] + o.beta * e.g;
  e.x -= o.rate * (o.nesterov ? e.g + o.alpha * e.state[0] : e.state[0]);
}
Options PrepareMomentum(Options o, const Attributes& a, double t) {
  o.alpha = static_cast<double>(a.Float("alpha"));
  o.beta = t > 0 ? static_cast<double>(a.Float("beta")) : 1;
  o.nesterov = a.String("mode") == "nesterov";
  return o;
}

template <const Lists& kLists, Options (*kPrepare)(Options, const Attributes&, double),
          void (*kStep)(const Options&, Element&)>
absl::Status Reference(const RunContext& run, std::int64_t, void*) {
  const Attributes& a = run.attributes();
  if (run.count(0) != 1 || run.count(1) != 1)
    return absl::InvalidArgumentError("R and T must be one number each");
  Options o = {};
  o.rate = RealAt(run, 0, 0);
  o.epsilon = static_cast<double>(a.Float("epsilon", 1e-6f));
  o.norm = static_cast<double>(a.Float("norm_coefficient", 0));
  o.norm_post = static_cast<double>(a.Float("norm_coefficient_post", 0));
  o = kPrepare(o, a, static_cast<double>(run.Load<std::int64_t>(1, 0)));
  const int count = (run.input_count() - 2) / kLists.in;
  for (int n = 0; n < count; ++n) {
    for (int k = 1; k < kLists.in; ++k)
      if (run.dims(2 + k * count + n) != run.dims(2 + n))
        return absl::InvalidArgumentError(absl::StrCat(
            "input ", 2 + k * count + n, " has shape ", ShapeString(run.dims(2 + k * count + n)),
            ", input ", 2 + n, " ", ShapeString(run.dims(2 + n))));
    for (std::int64_t i = 0; i < run.count(2 + n); ++i) {
      NPURT_RETURN_IF_ERROR(PollAt(run, i));
      Element e = {};
      e.x = RealAt(run, 2 + n, i);
      e.g = RealAt(run, 2 + count + n, i) + o.norm * e.x;
      for (int s = 0; s < kLists.in - 2; ++s) e.state[s] = RealAt(run, 2 + (2 + s) * count + n, i);
      kStep(o, e);
      if (run.has_output(n)) StoreReal(run, n, i, e.x);
      for (int s = 0; s < kLists.in - 2; ++s)
        if (run.has_output((1 + s) * count + n)) StoreReal(run, (1 + s) * count + n, i, e.state[s]);
    }
  }
  return absl::OkStatus();
}

constexpr Lists kOneState = {3, 2}, kTwoStates = {4, 3};
constexpr DTypeSet kRates = DTypes(DType::kF32, DType::kF64);

}  // namespace

extern constexpr OpDef kOps[] = {
    {
        .name = "Adagrad",
        .inputs = {{"R", "T1"}, {"T", "int64"}, {"*inputs", "T3"}},
        .outputs = {{"*outputs", "T3"}},
        .types = {{"T1", kRates}, {"T3", kRates}},
        .attributes = {{"decay_factor", AttrKind::kFloat},
                       {"epsilon", AttrKind::kFloat},
                       {"norm_coefficient", AttrKind::kFloat}},
        .infer = Infer<kOneState>,
        .reference = Reference<kOneState, PrepareAdagrad, StepAdagrad>,
    },
    {
        .name = "Adam",
        .inputs = {{"R", "T1"}, {"T", "int64"}, {"*inputs", "T3"}},
        .outputs = {{"*outputs", "T3"}},
        .types = {{"T1", kRates}, {"T3", kRates}},
        .attributes = {{"alpha", AttrKind::kFloat},
                       {"beta", AttrKind::kFloat},
                       {"epsilon", AttrKind::kFloat},
                       {"norm_coefficient", AttrKind::kFloat},
                       {"norm_coefficient_post", AttrKind::kFloat}},
        .infer = Infer<kTwoStates>,
        .reference = Reference<kTwoStates, PrepareAdam, StepAdam>,
    },
    {
        .name = "Momentum",
        .inputs = {{"R", "T1"}, {"T", "int64"}, {"*inputs", "T3"}},
        .outputs = {{"*outputs", "T3"}},
        .types = {{"T1", kRates}, {"T3", kRates}},
        .attributes = {{"alpha", AttrKind::kFloat, true},
                       {"beta", AttrKind::kFloat, true},
                       {"mode", AttrKind::kString, true},
                       {"norm_coefficient", AttrKind::kFloat, true}},
        .infer = Infer<kOneState>,
        .reference = Reference<kOneState, PrepareMomentum, StepMomentum>,
    },
};
extern constexpr int kOpCount = static_cast<int>(sizeof kOps / sizeof kOps[0]);

}  // namespace npurt::ops::optimizers
