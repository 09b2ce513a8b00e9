// FuseEpilogues: what follows a matrix product or convolution element by element is computed while its
// result is still in registers: a constant bias, the addition of a tensor of the same shape, an
// activation. Which of these an operator takes stands in its OpDef.
#include <algorithm>
#include <optional>

#include "compile/compile.h"
#include "kernels/activation.h"

namespace npurt::compile {
namespace {

using graph::Graph;
using graph::kNone;
using graph::Node;
using graph::NodeId;
using graph::Use;
using graph::ValueId;
using kernels::Activation;

struct Fused {
  Activation activation;
  float alpha = 0, beta = 0;
};

std::optional<float> ConstantScalar(const Graph& graph, const Node& node, std::size_t i,
                                    float absent) {
  if (i >= node.inputs.size() || node.inputs[i] == kNone) return absent;
  const auto& value = graph.value(node.inputs[i]);
  if (!value.is_constant() || value.constant.dtype() != DType::kF32 ||
      value.constant.element_count() != 1)
    return std::nullopt;
  return value.constant.at<float>(0);
}

std::optional<Fused> Relu(const Graph&, const Node&) { return Fused{Activation::kRelu}; }
std::optional<Fused> Sigmoid(const Graph&, const Node&) { return Fused{Activation::kSigmoid}; }
std::optional<Fused> Tanh(const Graph&, const Node&) { return Fused{Activation::kTanh}; }
std::optional<Fused> HardSwish(const Graph&, const Node&) { return Fused{Activation::kHardSwish}; }

std::optional<Fused> LeakyRelu(const Graph&, const Node& node) {
  return Fused{Activation::kLeakyRelu, node.attributes.Float("alpha", 0.01f)};
}

std::optional<Fused> HardSigmoid(const Graph&, const Node& node) {
  return Fused{Activation::kHardSigmoid, node.attributes.Float("alpha", 0.2f),
               node.attributes.Float("beta", 0.5f)};
}

std::optional<Fused> Gelu(const Graph&, const Node& node) {
  const std::string kind = node.attributes.String("approximate", "none");
  return Fused{kind == "tanh" ? Activation::kGeluTanh : Activation::kGelu};
}

std::optional<Fused> Clip(const Graph& graph, const Node& node) {
  const auto low = ConstantScalar(graph, node, 1, -__builtin_inff());
  const auto high = ConstantScalar(graph, node, 2, __builtin_inff());
  if (!low.has_value() || !high.has_value() || !(*low <= *high)) return std::nullopt;
  return Fused{Activation::kClip, *low, *high};
}

struct Rule {
  absl::string_view op;
  std::optional<Fused> (*match)(const Graph& graph, const Node& node);
};
constexpr Rule kRules[] = {
    {"Relu", Relu},     {"Clip", Clip},           {"LeakyRelu", LeakyRelu}, {"Sigmoid", Sigmoid},
    {"Tanh", Tanh},     {"HardSigmoid", HardSigmoid}, {"HardSwish", HardSwish}, {"Gelu", Gelu},
};

std::optional<Fused> Match(const Graph& graph, const Node& node) {
  for (const Rule& rule : kRules)
    if (rule.op == node.op->name) return rule.match(graph, node);
  return std::nullopt;
}

class Fuser {
 public:
  Fuser(PassContext& context, std::vector<int> position)
      : context_(context), graph_(context.graph), position_(std::move(position)) {}

  int Run(NodeId id) {
    int changes = 0;
    while (Bias(id) || Residual(id) || GatedActivation(id) || SimpleActivation(id)) ++changes;
    return changes;
  }

 private:
  const Node& node(NodeId id) const { return graph_.node(id); }
  bool HasInput(NodeId id, int i) const {
    return i < static_cast<int>(node(id).inputs.size()) && node(id).inputs[i] != kNone;
  }
  bool HasActivation(NodeId id) const { return node(id).attributes.Has("activation"); }

  // The only node that reads the output of `id`, or kNone.
  NodeId OnlyUser(NodeId id) const {
    const ValueId out = node(id).outputs[0];
    const std::vector<Use>& uses = graph_.value(out).uses;
    if (uses.size() != 1 || !context_.MayVanish(out)) return kNone;
    return context_.Precise(node(uses[0].node)) ? kNone : uses[0].node;
  }

  // `id` computes what `next` did.
  void Absorb(NodeId id, NodeId next) {
    const ValueId out = node(next).outputs[0];
    graph_.MergeOrigins(id, next);
    graph_.RemoveNode(next);
    graph_.SetProducer(out, id, 0);
  }

  bool SameShape(ValueId a, ValueId b) const {
    const ValueType &x = graph_.value(a).type, &y = graph_.value(b).type;
    return x.has_rank && y.has_rank && x.dtype == y.dtype && x.dims == y.dims;
  }

  bool Bias(NodeId id) {
    const int bias_input = node(id).op->epilogue.bias_input;
    if (bias_input < 0 || HasInput(id, bias_input) || HasActivation(id) ||
        (node(id).op->epilogue.residual_input >= 0 &&
         HasInput(id, node(id).op->epilogue.residual_input)))
      return false;
    const NodeId next = OnlyUser(id);
    if (next == kNone || absl::string_view(node(next).op->name) != "Add") return false;
    const ValueId out = node(id).outputs[0];
    const ValueId other = node(next).inputs[node(next).inputs[0] == out ? 1 : 0];
    const auto& value = graph_.value(other);
    const ValueType& type = graph_.value(out).type;
    if (!value.is_constant() || !SameShape(out, node(next).outputs[0]) || type.dims.empty())
      return false;
    // Along the last axis only: convolutions have had theirs folded before.
    const Dims& dims = value.constant.dims();
    if (absl::string_view(node(id).op->name) == "Conv" || dims.empty() ||
        !type.dims.back().Is(dims.back()) || value.constant.element_count() != dims.back())
      return false;
    const ValueId bias = graph_.AddRawValue(
        value.name, ValueType::OfTensor(DType::kF32, SymDims{dims.back()}));
    graph_.mutable_value(bias).constant =
        graph_.value(other).constant.Reshaped({graph_.value(other).constant.element_count()});
    graph_.SetInput(id, bias_input, bias);
    Absorb(id, next);
    return true;
  }

  bool Residual(NodeId id) {
    const int residual_input = node(id).op->epilogue.residual_input;
    if (residual_input < 0 || HasInput(id, residual_input) || HasActivation(id)) return false;
    const NodeId next = OnlyUser(id);
    if (next == kNone || absl::string_view(node(next).op->name) != "Add") return false;
    const ValueId out = node(id).outputs[0];
    const ValueId other = node(next).inputs[node(next).inputs[0] == out ? 1 : 0];
    if (!SameShape(out, other) || !SameShape(out, node(next).outputs[0])) return false;
    // What is added must be there before this node runs.
    const NodeId producer = graph_.value(other).producer;
    if (producer != kNone && position_[producer] >= position_[id]) return false;
    graph_.SetInput(id, residual_input, other);
    Absorb(id, next);
    return true;
  }

  void SetActivation(NodeId id, const Fused& fused) {
    Attributes& attributes = graph_.mutable_node(id).attributes;
    attributes.Set("activation", static_cast<std::int64_t>(fused.activation));
    attributes.Set("activation_alpha", fused.alpha);
    attributes.Set("activation_beta", fused.beta);
  }

  bool SimpleActivation(NodeId id) {
    if (!node(id).op->epilogue.activation || HasActivation(id)) return false;
    const NodeId next = OnlyUser(id);
    if (next == kNone || node(next).inputs[0] != node(id).outputs[0]) return false;
    const auto fused = Match(graph_, node(next));
    if (!fused.has_value()) return false;
    SetActivation(id, *fused);
    Absorb(id, next);
    return true;
  }

  // x * sigmoid(x) and x * hard_sigmoid(x).
  bool GatedActivation(NodeId id) {
    if (!node(id).op->epilogue.activation || HasActivation(id)) return false;
    const ValueId out = node(id).outputs[0];
    const std::vector<Use>& uses = graph_.value(out).uses;
    if (uses.size() != 2 || !context_.MayVanish(out)) return false;
    for (int gate_use = 0; gate_use < 2; ++gate_use) {
      const NodeId gate = uses[gate_use].node, mul = uses[1 - gate_use].node;
      if (gate == mul || absl::string_view(node(mul).op->name) != "Mul") continue;
      const auto fused = Match(graph_, node(gate));
      if (!fused.has_value() || OnlyUser(gate) != mul) continue;
      Fused product{Activation::kNone};
      if (fused->activation == Activation::kSigmoid) product.activation = Activation::kSilu;
      if (fused->activation == Activation::kHardSigmoid &&
          std::abs(fused->alpha - 1.0f / 6) < 1e-7f && fused->beta == 0.5f)
        product.activation = Activation::kHardSwish;
      if (product.activation == Activation::kNone) continue;
      SetActivation(id, product);
      const ValueId result = node(mul).outputs[0];
      graph_.MergeOrigins(id, gate);
      graph_.MergeOrigins(id, mul);
      graph_.RemoveNode(mul);
      graph_.RemoveNode(gate);
      graph_.SetProducer(result, id, 0);
      return true;
    }
    return false;
  }

  PassContext& context_;
  Graph& graph_;
  std::vector<int> position_;  // of nodes, in an order that respects data
};

}  // namespace

absl::StatusOr<int> FuseEpilogues(PassContext& context) {
  Graph& graph = context.graph;
  NPURT_ASSIGN_OR_RETURN(const std::vector<NodeId> order, graph.Order());
  std::vector<int> position(graph.node_count(), 0);
  for (std::size_t i = 0; i < order.size(); ++i) position[order[i]] = static_cast<int>(i);
  Fuser fuser(context, std::move(position));
  int changes = 0;
  for (NodeId id : order) {
    const Node& node = graph.node(id);
    if (node.removed || node.outputs.empty() || node.outputs[0] == kNone ||
        graph.value(node.outputs[0]).type.dtype != DType::kF32)
      continue;
    const ops::EpilogueSupport& takes = node.op->epilogue;
    if (takes.activation || takes.bias_input >= 0 || takes.residual_input >= 0)
      changes += fuser.Run(id);
  }
  return changes;
}

}  // namespace npurt::compile
