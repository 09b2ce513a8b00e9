// FuseElementwiseChains: elementwise nodes in a row become one node that computes the chain tile by
// tile, so that what lies between them never leaves the first cache.
//
// A chain grows from its first node along results that exactly one node reads and that have the
// shape of the chain's result. Other operands come in from outside; they cannot depend on the
// chain's inner results, which nobody else reads, so the fused node has no cycle.
#include <algorithm>
#include <optional>

#include "compile/compile.h"
#include "kernels/elementwise/elementwise.h"
#include "ops/fused_elementwise.h"

namespace npurt::compile {
namespace {

using graph::Graph;
using graph::kNone;
using graph::Node;
using graph::NodeId;
using graph::ValueId;
using kernels::ElementwiseInstruction;

// Leaves room for registers of both kinds.
constexpr std::size_t kMaxInstructions = 24;
constexpr std::size_t kMaxInputs = kernels::kMaxElementwiseInputs;

std::optional<ElementwiseInstruction> RowOf(const PassContext& context, NodeId id) {
  const Graph& graph = context.graph;
  const Node& node = graph.node(id);
  if (context.Precise(node)) return std::nullopt;
  if (node.removed || node.op->row == nullptr || node.outputs.size() != 1 ||
      node.outputs[0] == kNone || !node.control.empty())
    return std::nullopt;
  absl::InlinedVector<const ValueType*, 4> types;
  absl::InlinedVector<const Tensor*, 4> constants;
  for (ValueId input : node.inputs) {
    const graph::ValueInfo* value = input == kNone ? nullptr : &graph.value(input);
    types.push_back(value == nullptr ? nullptr : &value->type);
    constants.push_back(value != nullptr && value->is_constant() ? &value->constant : nullptr);
    if (value != nullptr && (!value->type.has_rank || value->type.kind != ValueKind::kTensor))
      return std::nullopt;
  }
  if (!graph.value(node.outputs[0]).type.has_rank) return std::nullopt;
  ElementwiseInstruction instruction;
  if (!node.op->row(node.attributes, types, constants, &instruction)) return std::nullopt;
  return instruction;
}

struct Link {
  NodeId node;
  ElementwiseInstruction instruction;
};

// The node that alone reads the result of `id`, if the chain may go on there.
NodeId Next(const PassContext& context, NodeId id) {
  const Graph& graph = context.graph;
  const ValueId out = graph.node(id).outputs[0];
  const auto& uses = graph.value(out).uses;
  if (uses.empty() || !context.MayVanish(out)) return kNone;
  for (const graph::Use& use : uses)
    if (use.node != uses[0].node) return kNone;
  return uses[0].node;
}

// Operands of a link outside the chain, each once, added to `inputs`.
void AddOutside(const Graph& graph, const Link& link, ValueId inner, std::vector<ValueId>* inputs) {
  const int operands = kernels::InfoOf(link.instruction.op).operands;
  for (int k = 0; k < operands; ++k) {
    const ValueId value = graph.node(link.node).inputs[link.instruction.in[k]];
    if (value != inner && std::find(inputs->begin(), inputs->end(), value) == inputs->end())
      inputs->push_back(value);
  }
}

void Fuse(const ops::OpDef* op, Graph& graph, const std::vector<Link>& chain,
          const std::vector<ValueId>& inputs) {
  kernels::ElementwiseProgram program;
  for (ValueId input : inputs) program.inputs.push_back(graph.value(input).type.dtype);
  ValueId inner = kNone;
  for (std::size_t i = 0; i < chain.size(); ++i) {
    ElementwiseInstruction instruction = chain[i].instruction;
    const int operands = kernels::InfoOf(instruction.op).operands;
    for (int k = 0; k < operands; ++k) {
      const ValueId value = graph.node(chain[i].node).inputs[chain[i].instruction.in[k]];
      instruction.in[k] =
          value == inner
              ? static_cast<std::uint8_t>(inputs.size() + i - 1)
              : static_cast<std::uint8_t>(
                    std::find(inputs.begin(), inputs.end(), value) - inputs.begin());
    }
    program.code.push_back(instruction);
    inner = graph.node(chain[i].node).outputs[0];
  }
  const NodeId last = chain.back().node;
  const ValueId out = graph.node(last).outputs[0];
  Attributes attributes;
  ops::EncodeChain(program, &attributes);
  std::string name = graph.node(chain.front().node).name;
  const NodeId fused =
      graph.AddRawNode(op, std::move(name), inputs, {}, std::move(attributes));
  std::string types;
  for (const Link& link : chain) {
    graph.MergeOrigins(fused, link.node);
    if (!types.empty()) types += "+";
    types += graph.node(link.node).original_op;
  }
  graph.mutable_node(fused).original_op = std::move(types);
  for (auto link = chain.rbegin(); link != chain.rend(); ++link) graph.RemoveNode(link->node);
  graph.SetProducer(out, fused, 0);
}

}  // namespace

absl::StatusOr<int> FuseElementwiseChains(PassContext& context) {
  Graph& graph = context.graph;
  NPURT_ASSIGN_OR_RETURN(const std::vector<NodeId> order, graph.Order());
  const ops::OpDef* op = ops::FindOp("FusedElementwise");
  if (op == nullptr) return absl::InternalError("there is no operator FusedElementwise");
  int changes = 0;
  for (NodeId first : order) {
    const auto instruction = RowOf(context, first);
    if (!instruction.has_value()) continue;
    std::vector<Link> chain = {{first, *instruction}};
    std::vector<ValueId> inputs;
    AddOutside(graph, chain[0], kNone, &inputs);
    // By value: the graph's tables grow while fusing.
    const SymDims shape = graph.value(graph.node(first).outputs[0]).type.dims;
    for (NodeId next = Next(context, first); next != kNone;
         next = Next(context, chain.back().node)) {
      const auto row = RowOf(context, next);
      if (!row.has_value() || chain.size() >= kMaxInstructions ||
          graph.value(graph.node(next).outputs[0]).type.dims != shape)
        break;
      // Reads the inner result as an operand, not as a parameter that row() took for a constant.
      const ValueId inner = graph.node(chain.back().node).outputs[0];
      const Link link = {next, *row};
      const int operands = kernels::InfoOf(row->op).operands;
      bool reads = false;
      for (int k = 0; k < operands; ++k) reads |= graph.node(next).inputs[row->in[k]] == inner;
      std::vector<ValueId> more = inputs;
      AddOutside(graph, link, inner, &more);
      if (!reads || more.size() > kMaxInputs) break;
      inputs = std::move(more);
      chain.push_back(link);
    }
    if (chain.size() < 2) continue;
    Fuse(op, graph, chain, inputs);
    changes += static_cast<int>(chain.size()) - 1;
  }
  return changes;
}

}  // namespace npurt::compile
