// NegativeLogLikelihoodLoss: -weight[t] * x[n, t, p...] for the label t = target[n, p...], and the
// sum or weighted mean of that. SoftmaxCrossEntropyLoss: the same of log softmax(scores) along
// axis 1.
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "ops/around_axis.h"
#include "ops/move.h"

namespace npurt::ops::cross_entropy {
namespace {

enum class Reduction { kNone, kSum, kMean };

absl::StatusOr<Reduction> ReductionOf(const Attributes& attributes) {
  const std::string name = attributes.String("reduction", "mean");
  if (name == "none") return Reduction::kNone;
  if (name == "sum") return Reduction::kSum;
  if (name == "mean") return Reduction::kMean;
  return absl::InvalidArgumentError(
      absl::StrCat("reduction is '", name, "', want none, sum or mean"));
}

bool MayBeEqual(Dim a, Dim b) {
  return !a.is_constant() || !b.is_constant() || a.value() == b.value();
}

absl::Status Infer(InferContext& context) {
  NPURT_ASSIGN_OR_RETURN(const Reduction reduction, ReductionOf(context.attributes()));
  const SymDims &x = context.shape(0), &labels = context.shape(1);
  bool fits = x.size() >= 2 && labels.size() + 1 == x.size();
  for (std::size_t i = 0; fits && i < labels.size(); ++i)
    fits = MayBeEqual(labels[i], x[i == 0 ? 0 : i + 1]);
  if (!fits)
    return absl::InvalidArgumentError(
        absl::StrCat("the input has shape ", ShapeString(x), ", the labels ", ShapeString(labels)));
  NPURT_RETURN_IF_ERROR(WantRank(context, 2, 1));
  if (context.has_input(2) && !MayBeEqual(context.shape(2)[0], x[1]))
    return absl::InvalidArgumentError(absl::StrCat(
        "the weights have shape ", ShapeString(context.shape(2)), ", the input ", ShapeString(x)));
  context.set_output(0, context.dtype(0), reduction == Reduction::kNone ? labels : SymDims());
  if (context.output_count() > 1) context.set_output(1, context.dtype(0), x);
  return absl::OkStatus();
}

// The shapes once more, now that symbols are numbers.
absl::Status CheckShapes(const RunContext& run) {
  const auto x = run.dims(0), labels = run.dims(1);
  for (std::size_t i = 0; i < labels.size(); ++i)
    if (labels[i] != x[i == 0 ? 0 : i + 1])
      return absl::InvalidArgumentError(absl::StrCat("the input has shape ", ShapeString(x),
                                                     ", the labels ", ShapeString(labels)));
  if (run.has_input(2) && run.count(2) != x[1])
    return absl::InvalidArgumentError(
        absl::StrCat(run.count(2), " weights for ", x[1], " classes"));
  return absl::OkStatus();
}

// What is subtracted from x to make its softmax's logarithm, for the line of classes from `base`
// on.
double LogSumExp(const RunContext& run, const AroundAxis& a, std::int64_t base) {
  double max = -std::numeric_limits<double>::infinity(), sum = 0;
  for (std::int64_t c = 0; c < a.n; ++c) max = std::fmax(max, RealAt(run, 0, base + c * a.inner));
  for (std::int64_t c = 0; c < a.n; ++c) sum += std::exp(RealAt(run, 0, base + c * a.inner) - max);
  return max + std::log(sum);
}

template <bool kSoftmax>
absl::Status Reference(const RunContext& run, std::int64_t, void*) {
  NPURT_ASSIGN_OR_RETURN(const Reduction reduction, ReductionOf(run.attributes()));
  NPURT_RETURN_IF_ERROR(CheckShapes(run));
  const AroundAxis a = Around(run.dims(0), 1);
  const bool ignores = run.attributes().Has("ignore_index");
  const std::int64_t ignored = run.attributes().Int("ignore_index");
  double sum = 0, weights = 0;
  for (std::int64_t i = 0; i < run.count(1); ++i) {
    NPURT_RETURN_IF_ERROR(PollAt(run, i * a.n));
    const std::int64_t base = i / a.inner * a.n * a.inner + i % a.inner;
    const double log_sum = kSoftmax ? LogSumExp(run, a, base) : 0;
    for (std::int64_t c = 0; run.has_output(1) && c < a.n; ++c)
      StoreReal(run, 1, base + c * a.inner, RealAt(run, 0, base + c * a.inner) - log_sum);
    const std::int64_t label = IndexAt(run, 1, i);
    double weight = 0, loss = 0;
    if (!ignores || label != ignored) {
      if (label < 0 || label >= a.n)
        return absl::OutOfRangeError(
            absl::StrCat("label ", label, " of element ", i, " is no class, there are ", a.n));
      weight = run.has_input(2) ? RealAt(run, 2, label) : 1;
      loss = weight * (log_sum - RealAt(run, 0, base + label * a.inner));
    }
    if (reduction == Reduction::kNone) StoreReal(run, 0, i, loss);
    sum += loss;
    weights += weight;
  }
  if (reduction == Reduction::kSum) StoreReal(run, 0, 0, sum);
  if (reduction == Reduction::kMean) StoreReal(run, 0, 0, sum / weights);
  return absl::OkStatus();
}

}  // namespace

extern constexpr OpDef kOps[] = {
    {
        .name = "NegativeLogLikelihoodLoss",
        .inputs = {{"input", "T"}, {"target", "Tind"}, {"?weight", "T"}},
        .outputs = {{"loss", "T"}},
        .types = {{"T", kFloats}, {"Tind", DTypes(DType::kI32, DType::kI64)}},
        .attributes = {{"ignore_index", AttrKind::kInt}, {"reduction", AttrKind::kString}},
        .infer = Infer,
        .reference = Reference<false>,
    },
    {
        .name = "SoftmaxCrossEntropyLoss",
        .inputs = {{"scores", "T"}, {"labels", "Tind"}, {"?weights", "T"}},
        .outputs = {{"output", "T"}, {"?log_prob", "T"}},
        .types = {{"T", kFloats}, {"Tind", DTypes(DType::kI32, DType::kI64)}},
        .attributes = {{"ignore_index", AttrKind::kInt}, {"reduction", AttrKind::kString}},
        .infer = Infer,
        .reference = Reference<true>,
    },
};
extern constexpr int kOpCount = static_cast<int>(sizeof kOps / sizeof kOps[0]);

}  // namespace npurt::ops::cross_entropy
