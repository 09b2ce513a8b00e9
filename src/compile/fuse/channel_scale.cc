// FoldChannelScale: BatchNormalization, or a multiplication or addition of one number per channel, right
// after a convolution with constant weights, goes into weights and bias: conv(x) * s + t is a
// convolution with weights w * s and bias b * s + t.
#include <cmath>
#include <optional>

#include "base/mapping.h"
#include "compile/compile.h"

namespace npurt::compile {
namespace {

using graph::Graph;
using graph::kNone;
using graph::Node;
using graph::NodeId;
using graph::ValueId;

struct ChannelScale {
  std::vector<double> scale, shift;
};

// Where the output channels are in the weights.
struct Foldable {
  absl::string_view op;
  int weight_axis;
  bool grouped;  // several groups are fine
};
constexpr Foldable kFoldable[] = {{"Conv", 0, true}, {"ConvTranspose", 1, false}};

std::optional<std::vector<double>> ConstantReals(const Graph& graph, const Node& node, int i) {
  if (i >= static_cast<int>(node.inputs.size()) || node.inputs[i] == kNone) return std::nullopt;
  const auto& value = graph.value(node.inputs[i]);
  if (!value.is_constant() || !IsFloat(value.constant.dtype())) return std::nullopt;
  auto reals = Reals(value.constant);
  if (!reals.ok()) return std::nullopt;
  return *std::move(reals);
}

// One number per channel: constant input `i` of a node whose output has `rank`.
std::optional<std::vector<double>> PerChannel(const Graph& graph, const Node& node, int i, int rank,
                                              std::int64_t channels) {
  auto reals = ConstantReals(graph, node, i);
  if (!reals.has_value()) return std::nullopt;
  const Dims& dims = graph.value(node.inputs[i]).constant.dims();
  if (static_cast<int>(dims.size()) > rank) return std::nullopt;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    const int axis = rank - static_cast<int>(dims.size()) + static_cast<int>(d);
    if (dims[d] != 1 && (axis != 1 || dims[d] != channels)) return std::nullopt;
  }
  if (reals->size() == 1) return std::vector<double>(channels, (*reals)[0]);
  return reals;
}

std::optional<ChannelScale> ScaleOf(const Graph& graph, const Node& node, ValueId conv_output,
                                    int rank, std::int64_t channels) {
  ChannelScale result;
  if (absl::string_view(node.op->name) == "BatchNormalization") {
    if (node.attributes.Int("training_mode") != 0 || node.inputs[0] != conv_output)
      return std::nullopt;
    for (std::size_t i = 1; i < node.outputs.size(); ++i)
      if (node.outputs[i] != kNone) return std::nullopt;
    const auto gamma = ConstantReals(graph, node, 1), beta = ConstantReals(graph, node, 2),
               mean = ConstantReals(graph, node, 3), variance = ConstantReals(graph, node, 4);
    if (!gamma || !beta || !mean || !variance) return std::nullopt;
    const std::size_t count = static_cast<std::size_t>(channels);
    if (gamma->size() != count || beta->size() != count || mean->size() != count ||
        variance->size() != count)
      return std::nullopt;
    const double epsilon = node.attributes.Float("epsilon", 1e-5f);
    for (std::size_t c = 0; c < count; ++c) {
      const double scale = (*gamma)[c] / std::sqrt((*variance)[c] + epsilon);
      result.scale.push_back(scale);
      result.shift.push_back((*beta)[c] - (*mean)[c] * scale);
    }
    return result;
  }
  const absl::string_view op = node.op->name;
  const bool add = op == "Add", sub = op == "Sub", mul = op == "Mul", div = op == "Div";
  if (!add && !sub && !mul && !div) return std::nullopt;
  const int other = node.inputs[0] == conv_output ? 1 : 0;
  if (node.inputs[1 - other] != conv_output || ((sub || div) && other == 0)) return std::nullopt;
  const auto numbers = PerChannel(graph, node, other, rank, channels);
  if (!numbers.has_value()) return std::nullopt;
  result.scale.assign(channels, 1);
  result.shift.assign(channels, 0);
  for (std::int64_t c = 0; c < channels; ++c) {
    if (add) result.shift[c] = (*numbers)[c];
    if (sub) result.shift[c] = -(*numbers)[c];
    if (mul) result.scale[c] = (*numbers)[c];
    if (div) result.scale[c] = 1 / (*numbers)[c];
  }
  return result;
}

// True if the weights were replaced.
absl::StatusOr<bool> Fold(PassContext& context, NodeId conv_id, const Foldable& rule) {
  Graph& graph = context.graph;
  const Node& conv = graph.node(conv_id);
  const ValueId output = conv.outputs[0];
  if (conv.inputs.size() > 3 || conv.attributes.Has("activation") ||
      graph.value(output).uses.size() != 1 || !context.MayVanish(output) ||
      graph.value(output).type.dtype != DType::kF32)
    return false;
  const auto& weight_value = graph.value(conv.inputs[1]);
  if (!weight_value.is_constant() || (!rule.grouped && conv.attributes.Int("group", 1) != 1))
    return false;
  const Tensor weight = weight_value.constant;
  if (weight.rank() < 3) return false;
  const std::int64_t channels = weight.dims()[rule.weight_axis];
  std::vector<double> bias(channels, 0);
  if (conv.inputs.size() == 3 && conv.inputs[2] != kNone) {
    auto reals = ConstantReals(graph, conv, 2);
    if (!reals.has_value() || static_cast<std::int64_t>(reals->size()) != channels) return false;
    bias = *std::move(reals);
  }
  const NodeId next_id = graph.value(output).uses[0].node;
  const Node& next = graph.node(next_id);
  if (context.Named(conv) || context.Named(next)) return false;
  const auto scale = ScaleOf(graph, next, output, weight.rank(), channels);
  // The result must have the convolution's shape, not a broadcast of it.
  if (!scale.has_value() || next.outputs[0] == kNone ||
      graph.value(next.outputs[0]).type.dims != graph.value(output).type.dims)
    return false;

  NPURT_ASSIGN_OR_RETURN(Tensor folded, Tensor::Create(DType::kF32, weight.dims()));
  std::int64_t inner = 1;
  for (int d = rule.weight_axis + 1; d < weight.rank(); ++d) inner *= weight.dims()[d];
  for (std::int64_t i = 0; i < weight.element_count(); ++i)
    folded.set(i, static_cast<float>(weight.at<float>(i) * scale->scale[i / inner % channels]));
  ReleaseMappedPages(weight.data(), weight.bytes());
  NPURT_ASSIGN_OR_RETURN(Tensor new_bias, Tensor::Create(DType::kF32, {channels}));
  for (std::int64_t c = 0; c < channels; ++c)
    new_bias.set(c, static_cast<float>(bias[c] * scale->scale[c] + scale->shift[c]));

  const auto add_constant = [&](Tensor tensor) {
    const ValueId id =
        graph.AddRawValue(std::string(), ValueType::OfTensor(DType::kF32, ToSymDims(tensor.dims())));
    graph.mutable_value(id).constant = std::move(tensor);
    return id;
  };
  const ValueId old_weight = graph.node(conv_id).inputs[1];
  const std::string weight_name = graph.value(old_weight).name;
  const ValueId weight_id = add_constant(std::move(folded));
  graph.mutable_value(weight_id).name = weight_name;
  graph.SetInput(conv_id, 1, weight_id);
  graph.SetInput(conv_id, 2, add_constant(std::move(new_bias)));
  const ValueId final_output = graph.node(next_id).outputs[0];
  graph.MergeOrigins(conv_id, next_id);
  graph.RemoveNode(next_id);
  graph.SetProducer(final_output, conv_id, 0);
  return true;
}

}  // namespace

absl::StatusOr<int> FoldChannelScale(PassContext& context) {
  int changes = 0;
  const int count = context.graph.node_count();
  for (NodeId id = 0; id < count; ++id) {
    if (context.graph.node(id).removed) continue;
    for (const Foldable& rule : kFoldable) {
      if (rule.op != context.graph.node(id).op->name) continue;
      for (;;) {
        NPURT_ASSIGN_OR_RETURN(const bool folded, Fold(context, id, rule));
        if (!folded) break;
        ++changes;
      }
    }
  }
  return changes;
}

}  // namespace npurt::compile
