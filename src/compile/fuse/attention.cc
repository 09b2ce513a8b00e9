// FuseAttention: softmax(scale * q k^T + mask) v, as frameworks write it out, becomes Attention,
// which computes it in blocks of keys and never stores the scores.
//
// The scale may be a product or quotient of the scores, of q or of k (transposed or not), in any
// combination. Transposes and reshapes that bring heads apart stay around it.
#include "compile/fuse/pattern.h"

namespace npurt::compile {
namespace {

using graph::kNone;
using graph::Node;
using graph::ValueId;

// Takes products and quotients with numbers off `value`.
ValueId WithoutScale(Pattern& p, ValueId value, double* scale) {
  for (;;) {
    if (const Node* mul = p.Peek(value, "Mul")) {
      const auto scaled = p.ScalarAndOther(*mul);
      if (!scaled) return value;
      p.Take(value, "Mul");
      value = scaled->value;
      *scale *= scaled->number;
    } else if (const Node* div = p.Peek(value, "Div")) {
      const auto number = p.Scalar(div->inputs[1]);
      if (!number) return value;
      p.Take(value, "Div");
      value = div->inputs[0];
      *scale /= *number;
    } else {
      return value;
    }
  }
}

bool IsFloatOfRank(const Pattern& p, ValueId value, std::size_t rank) {
  const ValueType& type = p.type(value);
  return type.kind == ValueKind::kTensor && type.dtype == DType::kF32 && type.has_rank &&
         type.dims.size() == rank;
}

// The mask has a column for each key, and its other dimensions are those of the scores or 1.
// Without heads Attention would take the batch of a mask for them.
bool MaskFits(const Pattern& p, ValueId mask, const SymDims& scores) {
  const ValueType& type = p.type(mask);
  if (type.kind != ValueKind::kTensor || type.dtype != DType::kF32 || !type.has_rank ||
      type.dims.empty() || type.dims.size() > scores.size())
    return false;
  for (std::size_t i = 0; i < type.dims.size(); ++i) {
    const Dim dim = type.dims[type.dims.size() - 1 - i], want = scores[scores.size() - 1 - i];
    const bool heads = scores.size() == 3 && i == 2;
    if (!(dim == want && !heads) && !(i > 0 && dim.Is(1))) return false;
  }
  return true;
}

bool Fuse(Pattern& p) {
  const ValueId shares = p.last().inputs[0], v = p.last().inputs[1];
  const std::size_t rank = p.type(v).dims.size();
  if ((rank != 3 && rank != 4) || !IsFloatOfRank(p, v, rank) || !IsFloatOfRank(p, shares, rank) ||
      p.last().inputs.size() > 2)
    return false;
  const Node* softmax = p.Take(shares, "Softmax");
  if (softmax == nullptr) return false;
  const std::int64_t axis = softmax->attributes.Int("axis", -1);
  if (axis != -1 && axis != static_cast<std::int64_t>(rank) - 1) return false;

  double scale = 1;
  ValueId scores = softmax->inputs[0], mask = kNone;
  const SymDims dims = p.type(scores).dims;
  if (const Node* add = p.Peek(scores, "Add")) {
    for (std::size_t i = 0; i < 2 && mask == kNone; ++i) {
      double ignored = 1;
      Pattern ahead = p;
      const ValueId product = WithoutScale(ahead, add->inputs[i], &ignored);
      if (p.Peek(product, "MatMul") == nullptr || !MaskFits(p, add->inputs[1 - i], dims)) continue;
      p.Take(scores, "Add");
      mask = add->inputs[1 - i];
      scores = add->inputs[i];
    }
    if (mask == kNone) return false;
  }
  scores = WithoutScale(p, scores, &scale);
  const Node* product = p.Take(scores, "MatMul");
  if (product == nullptr || product->inputs.size() > 2) return false;
  const ValueId q = WithoutScale(p, product->inputs[0], &scale);
  const ValueId columns = WithoutScale(p, product->inputs[1], &scale);
  const Node* transpose = p.Take(columns, "Transpose");
  if (transpose == nullptr || !(scale > 0)) return false;
  const ValueId source = transpose->inputs[0];
  const auto perm = transpose->attributes.Ints("perm");
  std::vector<std::int64_t> order(perm.begin(), perm.end());
  if (order.size() != rank || !IsFloatOfRank(p, source, rank) || !IsFloatOfRank(p, q, rank))
    return false;
  std::swap(order[rank - 1], order[rank - 2]);
  ValueType k_type = p.type(source);
  bool in_order = true;
  for (std::size_t i = 0; i < rank; ++i) {
    k_type.dims[i] = p.type(source).dims[static_cast<std::size_t>(order[i])];
    in_order &= order[i] == static_cast<std::int64_t>(i);
  }
  // No broadcasting: Attention would not, or would share heads.
  const SymDims &q_dims = p.type(q).dims, &v_dims = p.type(v).dims;
  for (std::size_t i = 0; i + 2 < rank; ++i)
    if (q_dims[i] != k_type.dims[i] || q_dims[i] != v_dims[i]) return false;
  if (q_dims[rank - 1] != k_type.dims[rank - 1] || k_type.dims[rank - 2] != v_dims[rank - 2] ||
      !p.Closed())
    return false;

  Attributes in_rows;
  in_rows.Set("perm", order);
  const ValueId k =
      in_order ? source : p.AddBefore("Transpose", source, std::move(k_type), std::move(in_rows));
  Attributes attributes;
  attributes.Set("scale", static_cast<float>(scale));
  if (rank == 3) {
    attributes.Set("q_num_heads", std::int64_t{1});
    attributes.Set("kv_num_heads", std::int64_t{1});
  }
  std::vector<ValueId> inputs = {q, k, v};
  if (mask != kNone) inputs.push_back(mask);
  p.Replace("Attention", std::move(inputs), std::move(attributes));
  return true;
}

}  // namespace

absl::StatusOr<int> FuseAttention(PassContext& context) {
  return ForEachNode(context, "MatMul", Fuse);
}

}  // namespace npurt::compile
