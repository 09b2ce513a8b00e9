// FuseQuantized: real arithmetic between DequantizeLinear and QuantizeLinear becomes arithmetic of bytes.
//
//   Q(Relu(Conv(DQ(x), DQ(w), bias)))      QLinearConv, with int32 sums
//   Q(Relu(MatMul(DQ(a), DQ(b)) + bias))   QLinearMatMul; Gemm likewise
//   Q(move(DQ(x))), equal scales           move(x), for operators that only move elements, and MaxPool
//
// Scales, zero points, weights and biases are constants. The results differ from those of float32 by its
// rounding only: a value that lies within it of the middle between two steps may go to the other one. This
// pass comes before constants are folded, so that weights are still bytes.
#include <cmath>
#include <limits>
#include <optional>

#include "compile/compile.h"
#include "compile/fuse/pattern.h"
#include "kernels/activation.h"

namespace npurt::compile {
namespace {

using graph::kNone;
using graph::Node;
using graph::ValueId;

constexpr DTypeSet kBytes = DTypes(DType::kI8, DType::kU8);

// The scale of a QuantizeLinear or DequantizeLinear.
struct Scale {
  ValueId scale, zero;        // constants; zero may be kNone
  std::vector<double> values;  // one, or one per index of `axis`
  std::int64_t axis = 0;
};

ValueId InputOf(const Node& node, std::size_t i) {
  return i < node.inputs.size() ? node.inputs[i] : kNone;
}

std::optional<Scale> ScaleOf(const Pattern& p, const Node& node) {
  Scale s{InputOf(node, 1), InputOf(node, 2), {}, node.attributes.Int("axis", 1)};
  const graph::Graph& graph = p.graph();
  const ValueType& x = p.type(node.inputs[0]);
  if (node.attributes.Int("block_size") != 0 || node.attributes.Int("output_dtype") != 0 ||
      !x.has_rank || !graph.value(s.scale).is_constant() || p.type(s.scale).dtype != DType::kF32 ||
      (s.zero != kNone && !graph.value(s.zero).is_constant()))
    return std::nullopt;
  const Tensor& scale = graph.value(s.scale).constant;
  const std::int64_t rank = static_cast<std::int64_t>(x.dims.size());
  if (s.axis < 0) s.axis += rank;
  if (scale.rank() > 1 || scale.element_count() == 0) return std::nullopt;
  if (scale.element_count() > 1 &&
      (s.axis >= rank || !x.dims[static_cast<std::size_t>(s.axis)].Is(scale.element_count())))
    return std::nullopt;
  for (std::int64_t i = 0; i < scale.element_count(); ++i) {
    const float value = scale.at<float>(i);
    if (!(value >= std::numeric_limits<float>::min()) || !std::isfinite(value)) return std::nullopt;
    s.values.push_back(static_cast<double>(value));
  }
  return s;
}

// What a real operand was before DequantizeLinear made it real.
struct Bytes {
  ValueId value;
  Scale scale;
};
std::optional<Bytes> BytesOf(const Pattern& p, ValueId real) {
  const Node* node = p.Peek(real, "DequantizeLinear");
  if (node == nullptr || !Contains(kBytes, p.type(node->inputs[0]).dtype)) return std::nullopt;
  auto scale = ScaleOf(p, *node);
  if (!scale.has_value()) return std::nullopt;
  return Bytes{node->inputs[0], *std::move(scale)};
}
// The same, with one scale for all.
std::optional<Bytes> PlainBytesOf(const Pattern& p, ValueId real) {
  auto bytes = BytesOf(p, real);
  return bytes.has_value() && bytes->scale.values.size() == 1 ? bytes : std::nullopt;
}
// The same of constant weights, with one scale or one per index of `axis`.
std::optional<Bytes> WeightsOf(const Pattern& p, ValueId real, std::int64_t axis) {
  auto bytes = BytesOf(p, real);
  if (!bytes.has_value() || !p.graph().value(bytes->value).is_constant() ||
      (bytes->scale.values.size() > 1 && bytes->scale.axis != axis))
    return std::nullopt;
  return bytes;
}

// The last node's scale, if it makes bytes with one.
std::optional<Scale> ResultScale(const Pattern& p) {
  if (!Contains(kBytes, p.type(p.result()).dtype) ||
      p.type(p.last().inputs[0]).dtype != DType::kF32)
    return std::nullopt;
  auto scale = ScaleOf(p, p.last());
  return scale.has_value() && scale->values.size() == 1 ? scale : std::nullopt;
}

ValueId ZeroOrNew(Pattern& p, const Scale& scale, DType dtype) {
  if (scale.zero != kNone) return scale.zero;
  absl::StatusOr<Tensor> zero = Tensor::Create(dtype, {});
  if (!zero.ok()) return kNone;
  *static_cast<std::uint8_t*>(zero->mutable_data()) = 0;
  return p.AddConstant(*std::move(zero));
}

// The reals of a constant, or of a dequantised constant.
std::optional<std::vector<double>> ConstantReals(const Pattern& p, ValueId value) {
  const auto& info = p.graph().value(value);
  if (info.is_constant()) {
    auto reals = Reals(info.constant);
    if (!reals.ok() || !IsFloat(info.constant.dtype())) return std::nullopt;
    return *std::move(reals);
  }
  const Node* node = p.Peek(value, "DequantizeLinear");
  if (node == nullptr || !p.graph().value(node->inputs[0]).is_constant()) return std::nullopt;
  const Tensor& constant = p.graph().value(node->inputs[0]).constant;
  const auto scale = ScaleOf(p, *node);
  auto reals = Reals(constant);
  if (!scale.has_value() || !reals.ok() ||
      (scale->values.size() > 1 && scale->values.size() != reals->size()))
    return std::nullopt;
  std::vector<double> zeros(scale->values.size(), 0);
  if (scale->zero != kNone) {
    auto list = Reals(p.graph().value(scale->zero).constant);
    if (!list.ok() || list->size() != scale->values.size()) return std::nullopt;
    zeros = *std::move(list);
  }
  for (std::size_t i = 0; i < reals->size(); ++i) {
    const std::size_t at = scale->values.size() == 1 ? 0 : i;
    (*reals)[i] = ((*reals)[i] - zeros[at]) * scale->values[at];
  }
  return *std::move(reals);
}

// A bias as int32 in units of the product's scales. Not if rounding it moved results by more than a
// small part of a step.
std::optional<Tensor> BiasOf(const Pattern& p, ValueId value, const Scale& x, const Scale& w,
                             const Scale& y, std::int64_t channels) {
  const auto reals = ConstantReals(p, value);
  if (!reals.has_value() || static_cast<std::int64_t>(reals->size()) != channels)
    return std::nullopt;
  absl::StatusOr<Tensor> bias = Tensor::Create(DType::kI32, {channels});
  if (!bias.ok()) return std::nullopt;
  for (std::int64_t i = 0; i < channels; ++i) {
    const std::size_t at = static_cast<std::size_t>(i);
    const double unit = x.values[0] * w.values[w.values.size() == 1 ? 0 : at];
    const double units = (*reals)[at] / unit, whole = std::nearbyint(units);
    if (!(std::fabs(whole) < 1 << 30) ||
        std::fabs(units - whole) * unit > y.values[0] / 1024)
      return std::nullopt;
    bias->set<std::int32_t>(i, static_cast<std::int32_t>(whole));
  }
  return *std::move(bias);
}

// Replaces the pattern by a product of bytes.
void ReplaceByProduct(Pattern& p, const char* op, const Bytes& x, const Bytes& w, const Scale& y,
                      std::optional<Tensor> bias, bool relu, Attributes attributes) {
  std::vector<ValueId> inputs = {x.value, x.scale.scale,
                                 ZeroOrNew(p, x.scale, p.type(x.value).dtype),
                                 w.value, w.scale.scale,
                                 ZeroOrNew(p, w.scale, p.type(w.value).dtype),
                                 y.scale, ZeroOrNew(p, y, p.type(p.result()).dtype)};
  if (bias.has_value()) inputs.push_back(p.AddConstant(*std::move(bias)));
  if (relu)
    attributes.Set("activation", static_cast<std::int64_t>(kernels::Activation::kRelu));
  p.Replace(op, std::move(inputs), std::move(attributes));
}

bool ConvRule(Pattern& p) {
  const auto y = ResultScale(p);
  if (!y.has_value()) return false;
  const Node* relu = p.Take(p.last().inputs[0], "Relu");
  const Node* conv = p.Take(relu != nullptr ? relu->inputs[0] : p.last().inputs[0], "Conv");
  if (conv == nullptr || conv->inputs.size() > 3 || conv->attributes.Has("activation")) return false;
  const auto x = PlainBytesOf(p, conv->inputs[0]);
  const auto w = WeightsOf(p, conv->inputs[1], 0);
  if (!x.has_value() || !w.has_value() || !p.Closed()) return false;
  std::optional<Tensor> bias;
  if (InputOf(*conv, 2) != kNone) {
    const std::int64_t channels = p.graph().value(w->value).constant.dims()[0];
    bias = BiasOf(p, conv->inputs[2], x->scale, w->scale, *y, channels);
    if (!bias.has_value()) return false;
  }
  ReplaceByProduct(p, "QLinearConv", *x, *w, *y, std::move(bias), relu != nullptr, conv->attributes);
  return true;
}

bool MatMulRule(Pattern& p) {
  const auto y = ResultScale(p);
  if (!y.has_value()) return false;
  ValueId sum = p.last().inputs[0];
  const Node* relu = p.Take(sum, "Relu");
  if (relu != nullptr) sum = relu->inputs[0];
  const Node* add = p.Take(sum, "Add");
  const Node* product = nullptr;
  ValueId addend = kNone;
  if (add == nullptr) {
    product = p.Take(sum, "MatMul");
  } else {
    for (std::size_t i = 0; i < 2 && product == nullptr; ++i) {
      product = p.Take(add->inputs[i], "MatMul");
      addend = add->inputs[1 - i];
    }
  }
  if (product == nullptr || product->inputs.size() > 2) return false;
  const auto a = PlainBytesOf(p, product->inputs[0]);
  const auto b = WeightsOf(p, product->inputs[1], 1);
  if (!a.has_value() || !b.has_value() || !p.Closed()) return false;
  const Tensor& weights = p.graph().value(b->value).constant;
  if (weights.rank() != 2) return false;
  std::optional<Tensor> bias;
  if (addend != kNone) {
    const ValueType &type = p.type(addend), &out = p.type(p.result());
    if (!type.has_rank || type.dims.empty() || !type.dims.back().Is(weights.dims()[1]) ||
        !out.has_rank || type.dims.size() > out.dims.size())
      return false;
    bias = BiasOf(p, addend, a->scale, b->scale, *y, weights.dims()[1]);
    if (!bias.has_value()) return false;
  }
  ReplaceByProduct(p, "QLinearMatMul", *a, *b, *y, std::move(bias), relu != nullptr, {});
  return true;
}

std::optional<Tensor> Transposed(const Tensor& matrix) {
  const std::int64_t rows = matrix.dims()[0], columns = matrix.dims()[1];
  absl::StatusOr<Tensor> result = Tensor::Create(matrix.dtype(), {columns, rows});
  if (!result.ok()) return std::nullopt;
  const auto* const from = static_cast<const std::uint8_t*>(matrix.data());
  auto* const to = static_cast<std::uint8_t*>(result->mutable_data());
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c) to[c * rows + r] = from[r * columns + c];
  return *std::move(result);
}

bool GemmRule(Pattern& p) {
  const auto y = ResultScale(p);
  if (!y.has_value()) return false;
  const Node* relu = p.Take(p.last().inputs[0], "Relu");
  const Node* gemm = p.Take(relu != nullptr ? relu->inputs[0] : p.last().inputs[0], "Gemm");
  if (gemm == nullptr || gemm->attributes.Has("activation") ||
      gemm->attributes.Int("transA") != 0 || gemm->attributes.Float("alpha", 1) != 1 ||
      gemm->attributes.Float("beta", 1) != 1)
    return false;
  const bool transposed = gemm->attributes.Int("transB") != 0;
  const auto a = PlainBytesOf(p, gemm->inputs[0]);
  auto b = WeightsOf(p, gemm->inputs[1], transposed ? 0 : 1);
  if (!a.has_value() || !b.has_value() || !p.Closed()) return false;
  const Tensor weights = p.graph().value(b->value).constant;
  const std::int64_t n = weights.dims()[transposed ? 0 : 1];
  std::optional<Tensor> bias;
  if (InputOf(*gemm, 2) != kNone) {
    const ValueType& type = p.type(gemm->inputs[2]);
    if (!type.has_rank || type.dims.empty() || !type.dims.back().Is(n)) return false;
    bias = BiasOf(p, gemm->inputs[2], a->scale, b->scale, *y, n);
    if (!bias.has_value()) return false;
  }
  if (transposed) {
    auto turned = Transposed(weights);
    if (!turned.has_value()) return false;
    b->value = p.AddConstant(*std::move(turned));
  }
  ReplaceByProduct(p, "QLinearMatMul", *a, *b, *y, std::move(bias), relu != nullptr, {});
  return true;
}

// Operators whose results are elements of input 0; for MaxPool because a larger byte is a larger number.
constexpr absl::string_view kMoves[] = {"DepthToSpace", "Flatten", "MaxPool", "Reshape", "Slice",
                                        "SpaceToDepth", "Squeeze", "Transpose", "Unsqueeze"};

bool SameConstant(const Pattern& p, ValueId a, ValueId b) {
  if (a == b) return true;
  if (a == kNone || b == kNone) return false;
  const Tensor &x = p.graph().value(a).constant, &y = p.graph().value(b).constant;
  return x.dtype() == y.dtype() && x.element_count() == 1 && y.element_count() == 1 &&
         std::memcmp(x.data(), y.data(), x.bytes()) == 0;
}

bool MoveRule(Pattern& p) {
  const auto y = ResultScale(p);
  if (!y.has_value()) return false;
  for (const absl::string_view op : kMoves) {
    const Node* move = p.Take(p.last().inputs[0], op);
    if (move == nullptr) continue;
    const auto x = PlainBytesOf(p, move->inputs[0]);
    if (!x.has_value() || p.type(x->value).dtype != p.type(p.result()).dtype || !p.Closed() ||
        !SameConstant(p, x->scale.scale, y->scale) || !SameConstant(p, x->scale.zero, y->zero))
      return false;
    std::vector<ValueId> inputs = move->inputs;
    inputs[0] = x->value;
    p.Replace(move->op->name, std::move(inputs), move->attributes);
    return true;
  }
  return false;
}

}  // namespace

absl::StatusOr<int> FuseQuantized(PassContext& context) {
  int changes = 0;
  for (auto* rule : {&ConvRule, &MatMulRule, &GemmRule, &MoveRule})
    changes += ForEachNode(context, "QuantizeLinear", *rule);
  return changes;
}

}  // namespace npurt::compile
