// MergeTransposes: a Transpose of a Transpose reads what the first one read. What then keeps its order is
// left to RemoveNoOps, and who is read no more to RemoveUnused.
#include <algorithm>

#include "compile/compile.h"

namespace npurt::compile {
namespace {

// Which input axis each output axis is; nothing if the node is no plain Transpose.
std::vector<std::int64_t> PermOf(const graph::Graph& graph, graph::NodeId id) {
  if (id == graph::kNone) return {};
  const graph::Node& node = graph.node(id);
  if (node.removed || absl::string_view(node.op->name) != "Transpose" || !node.control.empty())
    return {};
  const ValueType& type = graph.value(node.inputs[0]).type;
  if (!type.has_rank) return {};
  const auto given = node.attributes.Ints("perm");
  std::vector<std::int64_t> perm(given.begin(), given.end());
  if (!perm.empty()) return perm;
  for (std::size_t axis = type.dims.size(); axis-- > 0;)
    perm.push_back(static_cast<std::int64_t>(axis));
  return perm;
}

}  // namespace

absl::StatusOr<int> MergeTransposes(PassContext& context) {
  graph::Graph& graph = context.graph;
  NPURT_ASSIGN_OR_RETURN(const std::vector<graph::NodeId> order, graph.Order());
  int changes = 0;
  for (graph::NodeId id : order) {
    const std::vector<std::int64_t> outer = PermOf(graph, id);
    if (outer.empty()) continue;
    const graph::NodeId first = graph.value(graph.node(id).inputs[0]).producer;
    const std::vector<std::int64_t> inner = PermOf(graph, first);
    if (inner.size() != outer.size()) continue;
    std::vector<std::int64_t> perm;
    for (std::int64_t axis : outer) perm.push_back(inner[static_cast<std::size_t>(axis)]);
    graph.mutable_node(id).attributes.Set("perm", std::move(perm));
    graph.SetInput(id, 0, graph.node(first).inputs[0]);
    graph.MergeOrigins(id, first);
    ++changes;
  }
  return changes;
}

}  // namespace npurt::compile
