// FlexAttention: y = prob_mod(softmax(score_mod(scale * q k^T))) v. Without its two graphs it is
// Attention. With them it becomes the nodes it stands for, and each graph, a function of all scores
// at once, the nodes of its body: so the passes see what is in them.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "formats/onnx/adapters.h"

namespace npurt::formats::onnx::adapters {

using graph::kNone;
using graph::NodeId;
using graph::ValueId;

namespace {

constexpr const char *kScoreMod = "score_mod", *kProbMod = "prob_mod";

// The nodes of the subgraph in attribute `name`, if it is there, in front of the node: its output.
// `captured` stand for its captures.
absl::StatusOr<ValueId> Inlined(Lowering& l, const char* name, ValueId input,
                                absl::Span<const ValueId> captured) {
  const auto* body = static_cast<const graph::Graph*>(l.node->attributes.FindGraph(name));
  if (body == nullptr) return input;
  if (body->inputs().size() != 1 || body->outputs().size() != 1 ||
      body->captures().size() != captured.size())
    return absl::InvalidArgumentError(
        absl::StrCat("'", name, "' has ", body->inputs().size(), " inputs and ",
                     body->outputs().size(), " outputs, want one of each"));
  std::vector<ValueId> here(static_cast<std::size_t>(body->value_count()), kNone);
  const auto at = [&here](ValueId id) -> ValueId& { return here[static_cast<std::size_t>(id)]; };
  for (ValueId id = 0; id < body->value_count(); ++id) {
    const graph::ValueInfo& value = body->value(id);
    if (!value.is_constant()) continue;
    NPURT_ASSIGN_OR_RETURN(at(id), l.Constant(name, value.constant));
  }
  at(body->inputs()[0]) = input;
  for (std::size_t i = 0; i < captured.size(); ++i) at(body->captures()[i]) = captured[i];
  NPURT_ASSIGN_OR_RETURN(const std::vector<NodeId> order, body->Order());
  for (NodeId id : order) {
    const graph::Node& node = body->node(id);
    std::vector<ValueId> inputs;
    for (ValueId in : node.inputs) inputs.push_back(in == kNone ? kNone : at(in));
    NPURT_ASSIGN_OR_RETURN(const std::vector<ValueId> outputs,
                           l.AddMany(node.op->name, std::move(inputs),
                                     static_cast<int>(node.outputs.size()), node.attributes));
    for (std::size_t i = 0; i < outputs.size(); ++i)
      if (node.outputs[i] != kNone) at(node.outputs[i]) = outputs[i];
  }
  const ValueId result = at(body->outputs()[0]);
  const ValueType &got = l.graph->value(result).type, &want = l.graph->value(input).type;
  bool same = got.kind == want.kind && got.dtype == want.dtype;
  if (got.has_rank && want.has_rank) {
    same &= got.dims.size() == want.dims.size();
    for (std::size_t i = 0; same && i < got.dims.size(); ++i)
      same = got.dims[i] == want.dims[i] || !got.dims[i].is_constant() ||
             !want.dims[i].is_constant();
  }
  if (!same)
    return absl::InvalidArgumentError(absl::StrCat("'", name, "' makes ", got.ToString(), " of ",
                                                   want.ToString(), ", want the same"));
  return result;
}

absl::StatusOr<ValueId> As(Lowering& l, ValueId value, DType dtype) {
  if (l.graph->value(value).type.dtype == dtype) return value;
  return l.Add("Cast", {value}, MakeAttributes({{"to", static_cast<std::int64_t>(dtype)}}));
}

// The length of `value` along `axis`, int64[1].
absl::StatusOr<ValueId> LengthOf(Lowering& l, ValueId value, std::int64_t axis) {
  return l.Add("Shape", {value}, MakeAttributes({{"start", axis}, {"end", axis + 1}}));
}

// Each head of `value` `times` times in a row: `heads` in all.
absl::StatusOr<ValueId> Repeated(Lowering& l, ValueId value, std::int64_t heads,
                                 std::int64_t times) {
  if (times == 1) return value;
  NPURT_ASSIGN_OR_RETURN(const ValueId axes, l.Ints("axes", {2}));
  NPURT_ASSIGN_OR_RETURN(const ValueId apart, l.Add("Unsqueeze", {value, axes}));
  NPURT_ASSIGN_OR_RETURN(const ValueId shape, l.Ints("times", {1, 1, times, 1, 1}));
  NPURT_ASSIGN_OR_RETURN(const ValueId wide, l.Add("Expand", {apart, shape}));
  NPURT_ASSIGN_OR_RETURN(const ValueId first, l.Ints("heads", {0, heads, -1}));
  NPURT_ASSIGN_OR_RETURN(const ValueId size, LengthOf(l, value, 3));
  NPURT_ASSIGN_OR_RETURN(
      const ValueId dims,
      l.Add("Concat", {first, size}, MakeAttributes({{"axis", std::int64_t{0}}})));
  return l.Add("Reshape", {wide, dims});
}

// The attribute, or 1 / sqrt(size of a head).
absl::StatusOr<ValueId> Scale(Lowering& l, DType dtype) {
  if (l.node->attributes.Has("scale"))
    return l.Scalar("scale", dtype, l.node->attributes.Float("scale"));
  const Dim size = l.type(0).dims[3];
  if (size.is_constant() && size.value() > 0)
    return l.Scalar("scale", dtype, 1 / std::sqrt(static_cast<double>(size.value())));
  NPURT_ASSIGN_OR_RETURN(const ValueId length, LengthOf(l, l.input(0), 3));
  NPURT_ASSIGN_OR_RETURN(const ValueId number, As(l, length, DType::kF32));
  NPURT_ASSIGN_OR_RETURN(const ValueId root, l.Add("Sqrt", {number}));
  NPURT_ASSIGN_OR_RETURN(const ValueId scale, l.Add("Reciprocal", {root}));
  return As(l, scale, dtype);
}

// How many heads of q share one of k and v.
absl::StatusOr<std::int64_t> Sharing(const Lowering& l) {
  const Dim heads = l.type(0).dims[1], shared = l.type(1).dims[1];
  if (heads == shared) return 1;
  if (!heads.is_constant() || !shared.is_constant())
    return absl::UnimplementedError("score_mod and prob_mod with an unknown number of heads");
  if (shared.value() <= 0 || heads.value() % shared.value() != 0)
    return absl::InvalidArgumentError(absl::StrCat(heads.value(), " heads of Q cannot share ",
                                                   shared.value(), " heads of K"));
  return heads.value() / shared.value();
}

}  // namespace

absl::Status FlexAttention(Lowering& l) {
  const Attributes& attributes = l.node->attributes;
  if (!attributes.Has(kScoreMod) && !attributes.Has(kProbMod)) return absl::OkStatus();
  const std::int64_t captures = attributes.Int("captures");
  if (l.node->inputs.size() != 3 + static_cast<std::size_t>(captures))
    return absl::InvalidArgumentError("want the inputs Q, K and V");
  for (std::size_t i = 0; i < 3; ++i)
    if (l.rank(i) != 4)
      return l.has_input(i) && l.type(i).has_rank
                 ? absl::InvalidArgumentError(absl::StrCat("input ", i, " has rank ", l.rank(i),
                                                           ", want 4"))
                 : absl::UnimplementedError(absl::StrCat("input ", i, " of unknown rank"));
  const DType dtype = l.type(0).dtype;
  const bool narrow = dtype == DType::kF16 || dtype == DType::kBF16;
  const std::int64_t number = attributes.Int(
      "softmax_precision", static_cast<std::int64_t>(narrow ? DType::kF32 : dtype));
  if (!IsDType(static_cast<int>(number)) || !IsFloat(static_cast<DType>(number)))
    return absl::InvalidArgumentError(
        absl::StrCat("softmax_precision is ", number, ", want a type of floats"));
  const DType precision = static_cast<DType>(number);
  const std::vector<ValueId> captured(l.node->inputs.begin() + 3, l.node->inputs.end());

  NPURT_ASSIGN_OR_RETURN(const std::int64_t times, Sharing(l));
  const Dim heads = l.type(0).dims[1];
  const std::int64_t head_count = heads.is_constant() ? heads.value() : 0;
  NPURT_ASSIGN_OR_RETURN(const ValueId k, Repeated(l, l.input(1), head_count, times));
  NPURT_ASSIGN_OR_RETURN(const ValueId v, Repeated(l, l.input(2), head_count, times));
  NPURT_ASSIGN_OR_RETURN(const ValueId scale, Scale(l, dtype));
  NPURT_ASSIGN_OR_RETURN(const ValueId q, l.Add("Mul", {l.input(0), scale}));
  NPURT_ASSIGN_OR_RETURN(
      const ValueId k_columns,
      l.Add("Transpose", {k}, MakeAttributes({{"perm", std::vector<std::int64_t>{0, 1, 3, 2}}})));
  NPURT_ASSIGN_OR_RETURN(const ValueId products, l.Add("MatMul", {q, k_columns}));
  NPURT_ASSIGN_OR_RETURN(ValueId scores, As(l, products, precision));
  NPURT_ASSIGN_OR_RETURN(scores, Inlined(l, kScoreMod, scores, captured));
  NPURT_ASSIGN_OR_RETURN(
      ValueId shares, l.Add("Softmax", {scores}, MakeAttributes({{"axis", std::int64_t{-1}}})));
  NPURT_ASSIGN_OR_RETURN(shares, Inlined(l, kProbMod, shares, captured));
  NPURT_ASSIGN_OR_RETURN(shares, As(l, shares, dtype));
  return l.Finish(0, "MatMul", {shares, v});
}

}  // namespace npurt::formats::onnx::adapters
