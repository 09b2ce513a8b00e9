// RemoveNoOps: takes out nodes that change nothing: Identity, Dropout in inference, Cast to the
// same type, Transpose that keeps the order, Reshape to the same shape, Pad by zero.
#include <algorithm>

#include "compile/compile.h"

namespace npurt::compile {
namespace {

using graph::Graph;
using graph::kNone;
using graph::Node;
using graph::NodeId;
using graph::ValueId;

bool OnlyFirstOutput(const Node& node) {
  return std::all_of(node.outputs.begin() + 1, node.outputs.end(),
                     [](ValueId v) { return v == kNone; });
}

const Tensor* ConstantInput(const Graph& graph, const Node& node, std::size_t i) {
  if (i >= node.inputs.size() || node.inputs[i] == kNone) return nullptr;
  const auto& value = graph.value(node.inputs[i]);
  return value.is_constant() ? &value.constant : nullptr;
}

bool Always(const Graph&, const Node&) { return true; }

bool Inference(const Graph& graph, const Node& node) {
  if (node.inputs.size() < 3 || node.inputs[2] == kNone) return OnlyFirstOutput(node);
  const Tensor* training = ConstantInput(graph, node, 2);
  return training != nullptr && training->dtype() == DType::kBool && !training->at<bool>(0) &&
         OnlyFirstOutput(node);
}

bool SameType(const Graph& graph, const Node& node) {
  return graph.value(node.inputs[0]).type.dtype == graph.value(node.outputs[0]).type.dtype;
}

bool KeepsOrder(const Graph&, const Node& node) {
  const auto perm = node.attributes.Ints("perm");
  if (perm.empty()) return false;
  for (std::size_t i = 0; i < perm.size(); ++i)
    if (perm[i] != static_cast<std::int64_t>(i)) return false;
  return true;
}

bool SameShape(const Graph& graph, const Node& node) {
  const ValueType& in = graph.value(node.inputs[0]).type;
  const ValueType& out = graph.value(node.outputs[0]).type;
  return in.has_rank && out.has_rank && in.dims == out.dims;
}

bool ZeroPads(const Graph& graph, const Node& node) {
  const Tensor* pads = ConstantInput(graph, node, 1);
  if (pads == nullptr) return false;
  auto numbers = Integers(*pads);
  return numbers.ok() &&
         std::all_of(numbers->begin(), numbers->end(), [](std::int64_t p) { return p == 0; });
}

struct Rule {
  absl::string_view op;
  bool (*applies)(const Graph& graph, const Node& node);
};
constexpr Rule kRules[] = {
    {"Identity", Always},  {"Dropout", Inference},  {"Cast", SameType}, {"Transpose", KeepsOrder},
    {"Reshape", SameShape}, {"Expand", SameShape},  {"Pad", ZeroPads},
};

}  // namespace

absl::StatusOr<int> RemoveNoOps(PassContext& context) {
  Graph& graph = context.graph;
  int changes = 0;
  for (NodeId id = 0; id < graph.node_count(); ++id) {
    const Node& node = graph.node(id);
    if (node.removed || node.outputs.empty() || node.outputs[0] == kNone || node.inputs.empty() ||
        node.inputs[0] == kNone || !OnlyFirstOutput(node))
      continue;
    const auto rule = std::find_if(std::begin(kRules), std::end(kRules), [&](const Rule& r) {
      return r.op == node.op->name && r.applies(graph, node);
    });
    if (rule == std::end(kRules)) continue;
    const ValueId in = node.inputs[0], out = node.outputs[0];
    // The names of outputs belong to the caller: such a node stays, as a view of its input.
    if (!context.MayVanish(out)) continue;
    for (const std::string& origin : graph.value(out).origins)
      graph.mutable_value(in).origins.push_back(origin);
    graph.ReplaceUses(out, in);
    graph.RemoveNode(id);
    ++changes;
  }
  return changes;
}

}  // namespace npurt::compile
