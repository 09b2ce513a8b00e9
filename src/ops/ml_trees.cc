// TreeEnsembleClassifier, TreeEnsembleRegressor, TreeEnsemble: each row of x walks down every tree; what the
// leaves vote for is added up (or averaged, or the least or most of it taken).
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/checked_math.h"
#include "ops/ml_forest.h"
#include "ops/move.h"

namespace npurt::ops::ml_trees {
namespace {

constexpr DTypeSet kInputs = DTypes(DType::kF32, DType::kF64, DType::kI32, DType::kI64);

struct Model final : Prepared {
  Forest forest;
  bool classifier = false;
  // Two classes of which only one gets votes: the other has what is left.
  bool binary = false, positive = false;
};

ClassLabels LabelsOf(const Attributes& a) {
  return ClassLabelsOf(a, "classlabels_int64s", "classlabels_strings");
}

absl::StatusOr<Model> ClassifierOf(const Attributes& a) {
  Model model;
  model.classifier = true;
  const std::int64_t count = LabelsOf(a).count();
  if (count == 0) return absl::InvalidArgumentError("there are no class labels");
  NPURT_ASSIGN_OR_RETURN(model.forest, ForestOf(a, "class", count));
  const std::vector<Forest::Vote>& votes = model.forest.votes;
  model.binary = count == 2 && !votes.empty() &&
                 std::all_of(votes.begin(), votes.end(), [&](const Forest::Vote& v) {
                   return v.target == votes[0].target;
                 });
  model.positive = std::all_of(votes.begin(), votes.end(),
                               [](const Forest::Vote& v) { return v.weight >= 0; });
  return model;
}

absl::StatusOr<Model> RegressorOf(const Attributes& a) {
  Model model;
  const std::int64_t targets = a.Int("n_targets", 1);
  if (targets < 1) return absl::InvalidArgumentError(absl::StrCat("n_targets is ", targets));
  NPURT_ASSIGN_OR_RETURN(model.forest, ForestOf(a, "target", targets));
  return model;
}

absl::StatusOr<Model> EnsembleModelOf(const Attributes& a) {
  Model model;
  NPURT_ASSIGN_OR_RETURN(model.forest, EnsembleOf(a));
  return model;
}

using MakeModel = absl::StatusOr<Model> (*)(const Attributes&);

// x is [n, features], or [features] for one row.
absl::Status CheckFeatures(const Forest& forest, absl::Span<const std::int64_t> x) {
  const bool fits = x.size() == 1 || x.size() == 2;
  if (fits && x.back() >= forest.features) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("x has shape ", ShapeString(x), ", the trees read ",
                                                 forest.features, " features"));
}

std::int64_t RowsOf(absl::Span<const std::int64_t> x) { return x.size() == 2 ? x[0] : 1; }

void Aggregate(const Forest& forest, const RunContext& run, std::int64_t row,
               std::int64_t features, double* scores, double* voted) {
  std::fill_n(scores, forest.targets, 0.0);
  std::fill_n(voted, forest.targets, 0.0);
  for (std::int64_t root : forest.roots) {
    const Forest::Node& leaf = forest.LeafOf(
        root, [&](std::int64_t k) { return RealAt(run, 0, row * features + k); });
    for (std::int64_t v = leaf.yes; v < leaf.no; ++v) {
      const Forest::Vote& vote = forest.votes[static_cast<std::size_t>(v)];
      double& score = scores[vote.target];
      const bool first = voted[vote.target] == 0;
      voted[vote.target] = 1;
      if (forest.aggregate == Forest::Aggregate::kMin)
        score = first ? vote.weight : std::min(score, vote.weight);
      else if (forest.aggregate == Forest::Aggregate::kMax)
        score = first ? vote.weight : std::max(score, vote.weight);
      else
        score += vote.weight;
    }
  }
  if (forest.aggregate == Forest::Aggregate::kAverage && !forest.roots.empty())
    for (std::int64_t t = 0; t < forest.targets; ++t)
      scores[t] /= static_cast<double>(forest.roots.size());
}

// Scores of two classes from the votes for one of them; returns the class.
std::int64_t BinaryScores(const Model& model, double* scores) {
  const Forest& forest = model.forest;
  const std::int64_t target = forest.votes[0].target;
  double score = scores[target];
  if (forest.base.size() == 1) score += forest.base[0];
  if (forest.base.size() == 2) score += forest.base[1];
  const std::int64_t best = score > (model.positive ? 0.5 : 0) ? 1 : 0;
  scores[0] = model.positive ? 1 - score : -score;
  scores[1] = score;
  if (forest.transform == PostTransform::kProbit && !model.positive) {
    ApplyPostTransform(forest.transform, {scores + 1, 1});
    scores[0] = 1 - scores[1];
  } else {
    ApplyPostTransform(forest.transform, {scores, 2});
  }
  return best;
}

// `scratch` holds 2 * targets doubles.
absl::Status RunRows(const Model& model, const RunContext& run, std::int64_t first,
                     std::int64_t last, double* scratch) {
  const Forest& forest = model.forest;
  const std::int64_t targets = forest.targets, features = run.dims(0).back();
  const ClassLabels labels = LabelsOf(run.attributes());
  double* const scores = scratch;
  for (std::int64_t n = first; n < last; ++n) {
    if (n % 256 == 0) NPURT_RETURN_IF_ERROR(run.Poll());
    Aggregate(forest, run, n, features, scores, scratch + targets);
    std::int64_t best = 0;
    if (model.binary) {
      best = BinaryScores(model, scores);
    } else {
      for (std::size_t t = 0; t < forest.base.size() && t < static_cast<std::size_t>(targets); ++t)
        scores[t] += forest.base[t];
      best = std::max_element(scores, scores + targets) - scores;
      ApplyPostTransform(forest.transform, {scores, static_cast<std::size_t>(targets)});
    }
    const int output = model.classifier ? 1 : 0;
    if (model.classifier && run.has_output(0)) {
      const std::size_t b = static_cast<std::size_t>(best);
      if (labels.strings.empty()) run.Store<std::int64_t>(0, n, labels.numbers[b]);
      else run.Store<std::string>(0, n, labels.strings[b]);
    }
    for (std::int64_t t = 0; run.has_output(output) && t < targets; ++t)
      StoreReal(run, output, n * targets + t, scores[t]);
  }
  return absl::OkStatus();
}

template <MakeModel kMake>
absl::Status Infer(InferContext& context) {
  NPURT_ASSIGN_OR_RETURN(const Model model, kMake(context.attributes()));
  // TreeEnsemble answers in the type of its input, the older two in float32.
  const bool own_type = !model.classifier && context.attributes().FindTensor("leaf_weights");
  const DType scores = own_type ? context.dtype(0) : DType::kF32;
  const DType labels =
      LabelsOf(context.attributes()).strings.empty() ? DType::kI64 : DType::kString;
  const int output = model.classifier ? 1 : 0;  // of the scores
  if (!RanksKnown(context)) {
    if (model.classifier) context.set_output_unknown(0, labels);
    context.set_output_unknown(output, scores);
    return absl::OkStatus();
  }
  if (context.rank(0) != 1 && context.rank(0) != 2)
    return absl::InvalidArgumentError(
        absl::StrCat("x has shape ", ShapeString(context.shape(0)), ", want [n, features]"));
  if (AllConstant(context.shape(0)))
    NPURT_RETURN_IF_ERROR(CheckFeatures(model.forest, ToDims(context.shape(0))));
  const Dim rows = context.rank(0) == 2 ? context.shape(0)[0] : Dim(std::int64_t{1});
  if (model.classifier) context.set_output(0, labels, {rows});
  context.set_output(output, scores, {rows, model.forest.targets});
  return absl::OkStatus();
}

template <MakeModel kMake>
absl::Status Reference(const RunContext& run, std::int64_t, void*) {
  NPURT_ASSIGN_OR_RETURN(const Model model, kMake(run.attributes()));
  NPURT_RETURN_IF_ERROR(CheckFeatures(model.forest, run.dims(0)));
  std::vector<double> scratch(2 * static_cast<std::size_t>(model.forest.targets));
  return RunRows(model, run, 0, RowsOf(run.dims(0)), scratch.data());
}

template <MakeModel kMake>
absl::StatusOr<std::unique_ptr<Prepared>> Prepare(PrepareContext& context) {
  NPURT_ASSIGN_OR_RETURN(Model model, kMake(context.attributes()));
  model.kernel = "forest";
  model.packed_bytes = model.forest.nodes.size() * sizeof(Forest::Node) +
                       model.forest.votes.size() * sizeof(Forest::Vote);
  return std::make_unique<Model>(std::move(model));
}

constexpr std::int64_t kRowsPerTile = 64;

absl::Status Bind(BindContext& bind) {
  const Model& model = *bind.prepared<Model>();
  NPURT_RETURN_IF_ERROR(CheckFeatures(model.forest, bind.dims(0)));
  // About eight levels of 5 ns a tree.
  bind.SetTiles(npurt::CeilDiv<std::int64_t>(RowsOf(bind.dims(0)), kRowsPerTile),
                40.0 * static_cast<double>(model.forest.roots.size()) * kRowsPerTile);
  bind.SetScratch(2 * sizeof(double) * static_cast<std::size_t>(model.forest.targets));
  return absl::OkStatus();
}

absl::Status Run(const RunContext& run, std::int64_t tile, void* scratch) {
  return RunRows(*run.prepared<Model>(), run, tile * kRowsPerTile,
                 std::min((tile + 1) * kRowsPerTile, RowsOf(run.dims(0))),
                 static_cast<double*>(scratch));
}

}  // namespace

extern constexpr OpDef kOps[] = {
    {
        .name = "TreeEnsembleClassifier",
        .inputs = {{"x", "T1"}},
        .outputs = {{"y", "T2"}, {"z", "float32"}},
        .types = {{"T1", kInputs}, {"T2", kStrings | Bit(DType::kI64)}},
        .attributes = {{"base_values", AttrKind::kFloats},
                       {"base_values_as_tensor", AttrKind::kTensor},
                       {"class_ids", AttrKind::kInts},
                       {"class_nodeids", AttrKind::kInts},
                       {"class_treeids", AttrKind::kInts},
                       {"class_weights", AttrKind::kFloats},
                       {"class_weights_as_tensor", AttrKind::kTensor},
                       {"classlabels_int64s", AttrKind::kInts},
                       {"classlabels_strings", AttrKind::kStrings},
                       {"nodes_falsenodeids", AttrKind::kInts},
                       {"nodes_featureids", AttrKind::kInts},
                       {"nodes_hitrates", AttrKind::kFloats},
                       {"nodes_hitrates_as_tensor", AttrKind::kTensor},
                       {"nodes_missing_value_tracks_true", AttrKind::kInts},
                       {"nodes_modes", AttrKind::kStrings},
                       {"nodes_nodeids", AttrKind::kInts},
                       {"nodes_treeids", AttrKind::kInts},
                       {"nodes_truenodeids", AttrKind::kInts},
                       {"nodes_values", AttrKind::kFloats},
                       {"nodes_values_as_tensor", AttrKind::kTensor},
                       {"post_transform", AttrKind::kString}},
        .engine = Engine::kAiCpu,
        .any_rank = true,
        .infer = Infer<ClassifierOf>,
        .reference = Reference<ClassifierOf>,
        .prepare = Prepare<ClassifierOf>,
        .bind = Bind,
        .run = Run,
    },
    {
        .name = "TreeEnsembleRegressor",
        .inputs = {{"x", "T"}},
        .outputs = {{"y", "float32"}},
        .types = {{"T", kInputs}},
        .attributes = {{"aggregate_function", AttrKind::kString},
                       {"base_values", AttrKind::kFloats},
                       {"base_values_as_tensor", AttrKind::kTensor},
                       {"n_targets", AttrKind::kInt},
                       {"nodes_falsenodeids", AttrKind::kInts},
                       {"nodes_featureids", AttrKind::kInts},
                       {"nodes_hitrates", AttrKind::kFloats},
                       {"nodes_hitrates_as_tensor", AttrKind::kTensor},
                       {"nodes_missing_value_tracks_true", AttrKind::kInts},
                       {"nodes_modes", AttrKind::kStrings},
                       {"nodes_nodeids", AttrKind::kInts},
                       {"nodes_treeids", AttrKind::kInts},
                       {"nodes_truenodeids", AttrKind::kInts},
                       {"nodes_values", AttrKind::kFloats},
                       {"nodes_values_as_tensor", AttrKind::kTensor},
                       {"post_transform", AttrKind::kString},
                       {"target_ids", AttrKind::kInts},
                       {"target_nodeids", AttrKind::kInts},
                       {"target_treeids", AttrKind::kInts},
                       {"target_weights", AttrKind::kFloats},
                       {"target_weights_as_tensor", AttrKind::kTensor}},
        .engine = Engine::kAiCpu,
        .any_rank = true,
        .infer = Infer<RegressorOf>,
        .reference = Reference<RegressorOf>,
        .prepare = Prepare<RegressorOf>,
        .bind = Bind,
        .run = Run,
    },
    {
        .name = "TreeEnsemble",
        .inputs = {{"x", "T"}},
        .outputs = {{"y", "T"}},
        .types = {{"T", kFloats}},
        .attributes = {{"aggregate_function", AttrKind::kInt},
                       {"leaf_targetids", AttrKind::kInts, true},
                       {"leaf_weights", AttrKind::kTensor, true},
                       {"membership_values", AttrKind::kTensor},
                       {"n_targets", AttrKind::kInt},
                       {"nodes_falseleafs", AttrKind::kInts, true},
                       {"nodes_falsenodeids", AttrKind::kInts, true},
                       {"nodes_featureids", AttrKind::kInts, true},
                       {"nodes_hitrates", AttrKind::kTensor},
                       {"nodes_missing_value_tracks_true", AttrKind::kInts},
                       {"nodes_modes", AttrKind::kTensor, true},
                       {"nodes_splits", AttrKind::kTensor, true},
                       {"nodes_trueleafs", AttrKind::kInts, true},
                       {"nodes_truenodeids", AttrKind::kInts, true},
                       {"post_transform", AttrKind::kInt},
                       {"tree_roots", AttrKind::kInts, true}},
        .engine = Engine::kAiCpu,
        .any_rank = true,
        .infer = Infer<EnsembleModelOf>,
        .reference = Reference<EnsembleModelOf>,
        .prepare = Prepare<EnsembleModelOf>,
        .bind = Bind,
        .run = Run,
    },
};
extern constexpr int kOpCount = static_cast<int>(sizeof kOps / sizeof kOps[0]);

}  // namespace npurt::ops::ml_trees
