// LinearClassifier, LinearRegressor: scores = x * coefficients^T + intercepts, then the post transform; the
// classifier also gives the label of the best score.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ops/ml_scores.h"
#include "ops/move.h"

namespace npurt::ops::ml_linear {
namespace {

constexpr DTypeSet kInputs = DTypes(DType::kF32, DType::kF64, DType::kI32, DType::kI64);

// The linear function: rows x features coefficients.
struct Linear {
  std::int64_t rows, features;
  absl::Span<const float> coefficients, intercepts;

  // `x` has the features of one example.
  double At(absl::Span<const double> x, std::int64_t row) const {
    constexpr std::size_t kSums = 8;  // side by side, so that they fill vectors
    double sums[kSums] = {};
    const float* c = coefficients.data() + row * features;
    std::size_t k = 0;
    for (; k + kSums <= x.size(); k += kSums)
      for (std::size_t i = 0; i < kSums; ++i) sums[i] += x[k + i] * static_cast<double>(c[k + i]);
    for (; k < x.size(); ++k) sums[0] += x[k] * static_cast<double>(c[k]);
    double sum = intercepts.empty() ? 0 : static_cast<double>(intercepts[row]);
    for (double part : sums) sum += part;
    return sum;
  }
};

// Example `n` of the input.
void ReadExample(const RunContext& run, std::int64_t n, std::vector<double>* x) {
  const auto features = static_cast<std::int64_t>(x->size());
  for (std::int64_t k = 0; k < features; ++k) (*x)[k] = RealAt(run, 0, n * features + k);
}

// x has shape [n, features] or [features].
absl::StatusOr<Linear> LinearOf(const Attributes& attributes, std::int64_t features,
                                std::int64_t rows) {
  Linear linear{rows, features, attributes.Floats("coefficients"),
                attributes.Floats("intercepts")};
  const auto count = static_cast<std::int64_t>(linear.coefficients.size());
  if (rows == 0 && features > 0) linear.rows = count / features;
  const auto intercepts = static_cast<std::int64_t>(linear.intercepts.size());
  if (features == 0 || linear.rows < 1 || count != linear.rows * features ||
      (intercepts != 0 && intercepts != linear.rows))
    return absl::InvalidArgumentError(absl::StrCat(count, " coefficients and ", intercepts,
                                                   " intercepts for ", linear.rows, " scores of ",
                                                   features, " features"));
  return linear;
}

absl::Status WantTable(const InferContext& context) {
  if (context.rank(0) == 1 || context.rank(0) == 2) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("x has shape ", ShapeString(context.shape(0)), ", want [n, features]"));
}

Dim RowsOf(const InferContext& context) {
  return context.rank(0) == 2 ? context.shape(0)[0] : Dim(std::int64_t{1});
}

absl::Status InferRegressor(InferContext& context) {
  NPURT_RETURN_IF_ERROR(WantTable(context));
  NPURT_RETURN_IF_ERROR(
      PostTransformOf(context.attributes().String("post_transform", "NONE")));
  context.set_output(0, DType::kF32,
                     {RowsOf(context), context.attributes().Int("targets", 1)});
  return absl::OkStatus();
}

absl::Status ReferenceRegressor(const RunContext& run, std::int64_t, void*) {
  NPURT_ASSIGN_OR_RETURN(const PostTransform transform,
                         PostTransformOf(run.attributes().String("post_transform", "NONE")));
  const std::int64_t targets = run.attributes().Int("targets", 1);
  NPURT_ASSIGN_OR_RETURN(const Linear linear,
                         LinearOf(run.attributes(), run.dims(0).back(), targets));
  std::vector<double> scores(static_cast<std::size_t>(targets));
  std::vector<double> x(static_cast<std::size_t>(linear.features));
  for (std::int64_t n = 0; n < run.output_dims(0)[0]; ++n) {
    NPURT_RETURN_IF_ERROR(run.Poll());
    ReadExample(run, n, &x);
    for (std::int64_t t = 0; t < targets; ++t)
      scores[static_cast<std::size_t>(t)] = linear.At(x, t);
    ApplyPostTransform(transform, absl::MakeSpan(scores));
    for (std::int64_t t = 0; t < targets; ++t)
      StoreReal(run, 0, n * targets + t, scores[static_cast<std::size_t>(t)]);
  }
  return absl::OkStatus();
}

absl::Status InferClassifier(InferContext& context) {
  NPURT_RETURN_IF_ERROR(
      PostTransformOf(context.attributes().String("post_transform", "NONE")));
  const ClassLabels labels =
      ClassLabelsOf(context.attributes(), "classlabels_ints", "classlabels_strings");
  if (labels.count() == 0) return absl::InvalidArgumentError("there are no class labels");
  const DType dtype = labels.strings.empty() ? DType::kI64 : DType::kString;
  if (!RanksKnown(context)) {
    context.set_output_unknown(0, dtype);
    context.set_output_unknown(1, DType::kF32);
    return absl::OkStatus();
  }
  NPURT_RETURN_IF_ERROR(WantTable(context));
  context.set_output(0, dtype, {RowsOf(context)});
  context.set_output(1, DType::kF32, {RowsOf(context), labels.count()});
  return absl::OkStatus();
}

absl::Status ReferenceClassifier(const RunContext& run, std::int64_t, void*) {
  const Attributes& a = run.attributes();
  NPURT_ASSIGN_OR_RETURN(const PostTransform transform,
                         PostTransformOf(a.String("post_transform", "NONE")));
  const ClassLabels labels = ClassLabelsOf(a, "classlabels_ints", "classlabels_strings");
  const std::int64_t classes = labels.count();
  NPURT_ASSIGN_OR_RETURN(const Linear linear, LinearOf(a, run.dims(0).back(), 0));
  // One row of coefficients for two classes scores the second.
  const bool binary = linear.rows == 1 && classes == 2;
  if (!binary && linear.rows != classes)
    return absl::InvalidArgumentError(
        absl::StrCat(linear.rows, " rows of coefficients for ", classes, " classes"));
  std::vector<double> scores(static_cast<std::size_t>(classes));
  const std::int64_t rows = run.dims(0).size() == 2 ? run.dims(0)[0] : 1;
  std::vector<double> x(static_cast<std::size_t>(linear.features));
  for (std::int64_t n = 0; n < rows; ++n) {
    NPURT_RETURN_IF_ERROR(run.Poll());
    ReadExample(run, n, &x);
    std::int64_t best;
    if (binary) {
      double score = linear.At(x, 0);
      best = score > 0 ? 1 : 0;
      const bool alone = transform == PostTransform::kLogistic || transform == PostTransform::kProbit;
      if (alone) ApplyPostTransform(transform, {&score, 1});
      scores = {1 - score, score};
      if (!alone) ApplyPostTransform(transform, absl::MakeSpan(scores));
    } else {
      for (std::int64_t c = 0; c < classes; ++c)
        scores[static_cast<std::size_t>(c)] = linear.At(x, c);
      best = std::max_element(scores.begin(), scores.end()) - scores.begin();
      ApplyPostTransform(transform, absl::MakeSpan(scores));
    }
    if (run.has_output(0)) {
      const std::size_t b = static_cast<std::size_t>(best);
      if (labels.strings.empty()) run.Store<std::int64_t>(0, n, labels.numbers[b]);
      else run.Store<std::string>(0, n, labels.strings[b]);
    }
    for (std::int64_t c = 0; run.has_output(1) && c < classes; ++c)
      StoreReal(run, 1, n * classes + c, scores[static_cast<std::size_t>(c)]);
  }
  return absl::OkStatus();
}

}  // namespace

extern constexpr OpDef kOps[] = {
    {
        .name = "LinearClassifier",
        .inputs = {{"x", "T1"}},
        .outputs = {{"y", "T2"}, {"z", "float32"}},
        .types = {{"T1", kInputs}, {"T2", kStrings | Bit(DType::kI64)}},
        .attributes = {{"classlabels_ints", AttrKind::kInts},
                       {"classlabels_strings", AttrKind::kStrings},
                       {"coefficients", AttrKind::kFloats, true},
                       {"intercepts", AttrKind::kFloats},
                       {"multi_class", AttrKind::kInt},
                       {"post_transform", AttrKind::kString}},
        .engine = Engine::kAiCpu,
        .any_rank = true,
        .infer = InferClassifier,
        .reference = ReferenceClassifier,
    },
    {
        .name = "LinearRegressor",
        .inputs = {{"x", "T"}},
        .outputs = {{"y", "float32"}},
        .types = {{"T", kInputs}},
        .attributes = {{"coefficients", AttrKind::kFloats},
                       {"intercepts", AttrKind::kFloats},
                       {"post_transform", AttrKind::kString},
                       {"targets", AttrKind::kInt}},
        .engine = Engine::kAiCpu,
        .infer = InferRegressor,
        .reference = ReferenceRegressor,
    },
};
extern constexpr int kOpCount = static_cast<int>(sizeof kOps / sizeof kOps[0]);

}  // namespace npurt::ops::ml_linear
