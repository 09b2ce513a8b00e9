// LinearClassifier, LinearRegressor: scores = x * coefficients^T + intercepts, then the post transform; the
// classifier also gives the label of the best score.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "kernels/gemm/gemm.h"
#include "ops/epilogue.h"
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

// One row of coefficients for two classes scores the second.
bool IsBinary(std::int64_t rows, std::int64_t classes) { return rows == 1 && classes == 2; }

absl::Status CheckRows(std::int64_t rows, std::int64_t classes) {
  if (rows == classes || IsBinary(rows, classes)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(rows, " rows of coefficients for ", classes, " classes"));
}

// Label and scores of example `n`, whose linear scores are the first `rows` of `scores`, one per class.
void FinishExample(const RunContext& run, std::int64_t n, PostTransform transform,
                   const ClassLabels& labels, std::int64_t rows, absl::Span<double> scores) {
  std::int64_t best;
  if (IsBinary(rows, labels.count())) {
    double score = scores[0];
    best = score > 0 ? 1 : 0;
    const bool alone = transform == PostTransform::kLogistic || transform == PostTransform::kProbit;
    if (alone) ApplyPostTransform(transform, {&score, 1});
    scores[0] = 1 - score;
    scores[1] = score;
    if (!alone) ApplyPostTransform(transform, scores);
  } else {
    best = std::max_element(scores.begin(), scores.end()) - scores.begin();
    ApplyPostTransform(transform, scores);
  }
  if (run.has_output(0)) {
    const std::size_t b = static_cast<std::size_t>(best);
    if (labels.strings.empty()) run.Store<std::int64_t>(0, n, labels.numbers[b]);
    else run.Store<std::string>(0, n, labels.strings[b]);
  }
  const auto classes = static_cast<std::int64_t>(scores.size());
  for (std::int64_t c = 0; run.has_output(1) && c < classes; ++c)
    StoreReal(run, 1, n * classes + c, scores[static_cast<std::size_t>(c)]);
}

std::int64_t ExamplesOf(absl::Span<const std::int64_t> x) { return x.size() == 2 ? x[0] : 1; }

absl::Status ReferenceClassifier(const RunContext& run, std::int64_t, void*) {
  const Attributes& a = run.attributes();
  NPURT_ASSIGN_OR_RETURN(const PostTransform transform,
                         PostTransformOf(a.String("post_transform", "NONE")));
  const ClassLabels labels = ClassLabelsOf(a, "classlabels_ints", "classlabels_strings");
  NPURT_ASSIGN_OR_RETURN(const Linear linear, LinearOf(a, run.dims(0).back(), 0));
  NPURT_RETURN_IF_ERROR(CheckRows(linear.rows, labels.count()));
  std::vector<double> scores(static_cast<std::size_t>(labels.count()));
  std::vector<double> x(static_cast<std::size_t>(linear.features));
  for (std::int64_t n = 0; n < ExamplesOf(run.dims(0)); ++n) {
    NPURT_RETURN_IF_ERROR(run.Poll());
    ReadExample(run, n, &x);
    for (std::int64_t row = 0; row < linear.rows; ++row)
      scores[static_cast<std::size_t>(row)] = linear.At(x, row);
    FinishExample(run, n, transform, labels, linear.rows, absl::MakeSpan(scores));
  }
  return absl::OkStatus();
}

// The fast version: float32, linear scores by the matrix kernels, some examples a tile.
constexpr std::int64_t kExamples = 48;

struct PreparedClassifier : Prepared {
  const kernels::GemmKernel* gemm = nullptr;
  PostTransform transform;
  std::int64_t rows = 0, features = 0;
  PackedBuffer coefficients;
};

absl::StatusOr<std::unique_ptr<Prepared>> PrepareClassifier(PrepareContext& context) {
  const ValueType& x = context.type(0);
  if (x.dtype != DType::kF32 || !x.has_rank || x.dims.empty() || !x.dims.back().is_constant())
    return nullptr;
  const Attributes& a = context.attributes();
  const auto linear = LinearOf(a, x.dims.back().value(), 0);
  const ClassLabels labels = ClassLabelsOf(a, "classlabels_ints", "classlabels_strings");
  if (!linear.ok() || !CheckRows(linear->rows, labels.count()).ok())
    return nullptr;  // the reference says so
  auto prepared = std::make_unique<PreparedClassifier>();
  NPURT_ASSIGN_OR_RETURN(prepared->transform, PostTransformOf(a.String("post_transform", "NONE")));
  prepared->gemm = kernels::SelectGemmKernel(MatrixIsa(context));
  prepared->kernel = prepared->gemm->name;
  prepared->rows = linear->rows;
  prepared->features = linear->features;
  prepared->packed_bytes = static_cast<std::size_t>(kernels::PackedBSize(
                               *prepared->gemm, linear->features, linear->rows)) * sizeof(float);
  NPURT_ASSIGN_OR_RETURN(prepared->coefficients,
                         context.Pack(prepared->packed_bytes, [&](void* data) {
                           kernels::PackB(*prepared->gemm, linear->features, linear->rows,
                                          linear->coefficients.data(), 1, linear->features, 1.0f,
                                          static_cast<float*>(data));
                         }));
  return prepared;
}

struct BoundClassifier {
  std::int64_t scores_offset, sums_offset;  // of the scratch: of one example, of all of a tile
};

kernels::GemmProblem ProductOfTile(const PreparedClassifier& prepared, std::int64_t examples) {
  kernels::GemmProblem p;
  p.m = examples;
  p.n = prepared.rows;
  p.k = p.a_row_stride = prepared.features;
  p.packed_b = true;
  return p;
}

absl::Status BindClassifier(BindContext& bind) {
  const auto* prepared = bind.prepared<PreparedClassifier>();
  auto* bound = bind.New<BoundClassifier>();
  const std::int64_t n = ExamplesOf(bind.dims(0));
  const kernels::GemmTiling tiling =
      kernels::PlanGemm(ProductOfTile(*prepared, std::min(n, kExamples)), *prepared->gemm);
  const auto classes = static_cast<std::int64_t>(
      ClassLabelsOf(bind.attributes(), "classlabels_ints", "classlabels_strings").count());
  bound->scores_offset = static_cast<std::int64_t>(tiling.scratch_bytes);
  bound->sums_offset = bound->scores_offset + classes * 8;
  bind.SetScratch(static_cast<std::size_t>(bound->sums_offset + kExamples * prepared->rows * 4));
  const auto each = static_cast<double>(prepared->rows * prepared->features);
  bind.SetTiles((n + kExamples - 1) / kExamples, each * static_cast<double>(kExamples) / 25);
  return absl::OkStatus();
}

absl::Status RunClassifier(const RunContext& run, std::int64_t tile, void* scratch) {
  const auto* prepared = run.prepared<PreparedClassifier>();
  const auto* bound = run.bound<BoundClassifier>();
  const std::int64_t first = tile * kExamples, rows = prepared->rows;
  const std::int64_t count = std::min(kExamples, ExamplesOf(run.dims(0)) - first);
  const kernels::GemmProblem p = ProductOfTile(*prepared, count);
  const kernels::GemmTiling tiling = kernels::PlanGemm(p, *prepared->gemm);
  auto* const sums = reinterpret_cast<float*>(static_cast<char*>(scratch) + bound->sums_offset);
  kernels::GemmCall call{&p,   &tiling, run.in<float>(0) + first * p.k,
                         prepared->coefficients.as<float>(), sums, {}, 0};
  const auto intercepts = run.attributes().Floats("intercepts");
  if (!intercepts.empty()) call.epilogue.column_bias = intercepts.data();
  for (std::int64_t t = 0; t < tiling.tiles; ++t) kernels::RunGemmTile(call, t, scratch);
  const ClassLabels labels =
      ClassLabelsOf(run.attributes(), "classlabels_ints", "classlabels_strings");
  auto* const scores = reinterpret_cast<double*>(static_cast<char*>(scratch) + bound->scores_offset);
  for (std::int64_t i = 0; i < count; ++i) {
    for (std::int64_t row = 0; row < rows; ++row) scores[row] = static_cast<double>(sums[i * rows + row]);
    FinishExample(run, first + i, prepared->transform, labels, rows,
                  {scores, static_cast<std::size_t>(labels.count())});
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
        .prepare = PrepareClassifier,
        .bind = BindClassifier,
        .run = RunClassifier,
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
