// FuseNorms: LayerNormalization and RMSNormalization over the last axis, as frameworks write them
// out.
//
// With d = x - mean(x), or d = x for RMS, and s = sqrt(mean(d * d) + epsilon):
//   d / s [* scale] [+ bias], also with the reciprocal of s; and
//   x * g + (bias - mean(x) * g) where g = scale / s.
#include "compile/fuse/pattern.h"

namespace npurt::compile {
namespace {

using graph::kNone;
using graph::Node;
using graph::ValueId;

// The length of the last axis, 0 if unknown.
std::int64_t LastDim(const Pattern& p, ValueId value) {
  const ValueType& type = p.type(value);
  if (type.kind != ValueKind::kTensor || type.dtype != DType::kF32 || !type.has_rank ||
      type.dims.empty() || !type.dims.back().is_constant())
    return 0;
  return std::max<std::int64_t>(type.dims.back().value(), 0);
}

// The x of mean(x) over the last axis, which stays with length 1; or kNone.
ValueId MeanOf(Pattern& p, ValueId value) {
  const Node* mean = p.Take(value, "ReduceMean");
  if (mean == nullptr || mean->attributes.Int("keepdims", 1) != 1 || mean->inputs.size() != 2)
    return kNone;
  const auto axis = p.Scalar(mean->inputs[1]);
  const double rank = static_cast<double>(p.type(mean->inputs[0]).dims.size());
  return axis && (*axis == -1 || *axis == rank - 1) ? mean->inputs[0] : kNone;
}

// The d of d * d, or kNone.
ValueId RootOf(Pattern& p, ValueId value) {
  if (const Node* mul = p.Take(value, "Mul"))
    return mul->inputs[0] == mul->inputs[1] ? mul->inputs[0] : kNone;
  const Node* pow = p.Take(value, "Pow");
  return pow != nullptr && p.Scalar(pow->inputs[1]) == 2.0 ? pow->inputs[0] : kNone;
}

// The d of sqrt(mean(d * d) + epsilon), or kNone.
ValueId DeviationOf(Pattern& p, ValueId value, double* epsilon) {
  const Node* root = p.Take(value, "Sqrt");
  const Node* add = root == nullptr ? nullptr : p.Take(root->inputs[0], "Add");
  const auto sum = add == nullptr ? std::nullopt : p.ScalarAndOther(*add);
  if (!sum || sum->number < 0) return kNone;
  *epsilon = sum->number;
  const ValueId squares = MeanOf(p, sum->value);
  return squares == kNone ? kNone : RootOf(p, squares);
}

// The d of 1 / sqrt(mean(d * d) + epsilon), or kNone.
ValueId InverseDeviationOf(Pattern& p, ValueId value, double* epsilon) {
  if (const Node* reciprocal = p.Take(value, "Reciprocal"))
    return DeviationOf(p, reciprocal->inputs[0], epsilon);
  const Node* div = p.Peek(value, "Div");
  if (div == nullptr || p.Scalar(div->inputs[0]) != 1.0) return kNone;
  p.Take(value, "Div");
  return DeviationOf(p, div->inputs[1], epsilon);
}

// `value` as the scale or bias of n elements, or an undefined tensor.
Tensor RowOf(const Pattern& p, ValueId value, std::int64_t n) {
  if (value == kNone || !p.graph().value(value).is_constant()) return Tensor();
  const Tensor& tensor = p.graph().value(value).constant;
  const bool row = tensor.dtype() == DType::kF32 && tensor.element_count() == n &&
                   tensor.rank() >= 1 && tensor.dims().back() == n &&
                   tensor.dims().size() <= p.type(p.result()).dims.size();
  return row ? tensor.Reshaped({n}) : Tensor();
}

ValueId Other(const Node& node, ValueId value) {
  return node.inputs[node.inputs[0] == value ? 1 : 0];
}

bool Replace(Pattern& p, ValueId x, double epsilon, bool has_mean, Tensor scale, Tensor bias) {
  const std::int64_t n = LastDim(p, x);
  if (n == 0 || p.type(x).dims != p.type(p.result()).dims || !p.Closed()) return false;
  if (!scale.defined()) {
    auto ones = Tensor::Create(DType::kF32, {n});
    if (!ones.ok()) return false;
    for (std::int64_t i = 0; i < n; ++i) ones->set(i, 1.0f);
    scale = *std::move(ones);
  }
  std::vector<ValueId> inputs = {x, p.AddConstant(std::move(scale))};
  if (bias.defined()) inputs.push_back(p.AddConstant(std::move(bias)));
  Attributes attributes;
  attributes.Set("axis", std::int64_t{-1});
  attributes.Set("epsilon", static_cast<float>(epsilon));
  p.Replace(has_mean ? "LayerNormalization" : "RMSNormalization", std::move(inputs),
            std::move(attributes));
  return true;
}

// d / s, from which it goes on to the scale and the bias.
bool FuseFrom(Pattern p, ValueId d, ValueId root, double epsilon) {
  if (root == kNone || root != d) return false;
  ValueId x = d;
  bool has_mean = false;
  if (const Node* sub = p.Peek(d, "Sub")) {
    Pattern ahead = p;
    if (MeanOf(ahead, sub->inputs[1]) == sub->inputs[0]) {
      p.Take(d, "Sub");
      x = MeanOf(p, sub->inputs[1]);
      has_mean = true;
    }
  }
  const std::int64_t n = LastDim(p, x);
  Tensor scale, bias;
  if (const Node* mul = p.Next("Mul")) {
    scale = RowOf(p, Other(*mul, p.result()), n);
    if (scale.defined()) p.GoOn();
  }
  if (const Node* add = has_mean ? p.Next("Add") : nullptr) {
    bias = RowOf(p, Other(*add, p.result()), n);
    if (bias.defined()) p.GoOn();
  }
  return Replace(p, x, epsilon, has_mean, std::move(scale), std::move(bias));
}

bool FuseQuotient(Pattern& p) {
  double epsilon = 0;
  const ValueId root = DeviationOf(p, p.last().inputs[1], &epsilon);
  return FuseFrom(p, p.last().inputs[0], root, epsilon);
}

bool FuseProduct(Pattern& p) {
  for (std::size_t i = 0; i < 2; ++i) {
    Pattern attempt = p;
    double epsilon = 0;
    const ValueId root = InverseDeviationOf(attempt, p.last().inputs[i], &epsilon);
    if (FuseFrom(attempt, p.last().inputs[1 - i], root, epsilon)) return true;
  }
  return false;
}

// x * g + (bias - mean * g)
bool FuseShifted(Pattern& p) {
  for (std::size_t i = 0; i < 2; ++i) {
    Pattern attempt = p;
    const Node* scaled = attempt.Take(p.last().inputs[i], "Mul");
    const Node* shift = attempt.Take(p.last().inputs[1 - i], "Sub");
    const Node* shifted = shift == nullptr ? nullptr : attempt.Take(shift->inputs[1], "Mul");
    if (scaled == nullptr || shifted == nullptr) continue;
    for (std::size_t k = 0; k < 2; ++k) {
      const ValueId x = scaled->inputs[k], g = scaled->inputs[1 - k];
      const ValueId mean = Other(*shifted, g);
      Pattern rest = attempt;
      const Node* gain = rest.Take(g, "Mul");
      if (gain == nullptr || MeanOf(rest, mean) != x ||
          (shifted->inputs[0] != g && shifted->inputs[1] != g))
        continue;
      for (std::size_t m = 0; m < 2; ++m) {
        Pattern end = rest;
        double epsilon = 0;
        const ValueId d = InverseDeviationOf(end, gain->inputs[m], &epsilon);
        const Node* sub = d == kNone ? nullptr : end.Take(d, "Sub");
        const std::int64_t n = LastDim(end, x);
        Tensor scale = RowOf(end, gain->inputs[1 - m], n), bias = RowOf(end, shift->inputs[0], n);
        if (sub != nullptr && sub->inputs[0] == x && sub->inputs[1] == mean && scale.defined() &&
            bias.defined() && Replace(end, x, epsilon, true, std::move(scale), std::move(bias)))
          return true;
      }
    }
  }
  return false;
}

}  // namespace

absl::StatusOr<int> FuseNorms(PassContext& context) {
  return ForEachNode(context, "Div", FuseQuotient) + ForEachNode(context, "Mul", FuseProduct) +
         ForEachNode(context, "Add", FuseShifted);
}

}  // namespace npurt::compile
