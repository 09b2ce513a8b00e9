// Pattern: the nodes that a fuse rule has found to be one operator, on the way to being replaced.
//
// A rule walks from the last node towards the inputs and takes the nodes it recognises. If it got
// to the end and nobody outside reads what is inside (Closed), Replace puts one node in their
// place.
//
// Lifetime: one attempt. Thread safety: used by one thread.
#ifndef NPURT_COMPILE_FUSE_PATTERN_H_
#define NPURT_COMPILE_FUSE_PATTERN_H_

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compile/compile.h"

namespace npurt::compile {

class Pattern {
 public:
  // `last` makes the result.
  Pattern(PassContext& context, graph::NodeId last)
      : context_(context), graph_(context.graph), nodes_{last} {}

  const graph::Graph& graph() const { return graph_; }
  const graph::Node& last() const { return graph_.node(nodes_[0]); }
  graph::ValueId result() const { return last().outputs[0]; }
  const ValueType& type(graph::ValueId value) const { return graph_.value(value).type; }

  // The node that makes `value`, if it is an `op` without other outputs; else null.
  const graph::Node* Peek(graph::ValueId value, absl::string_view op) const {
    if (value == graph::kNone || graph_.value(value).producer == graph::kNone) return nullptr;
    const graph::Node& node = graph_.node(graph_.value(value).producer);
    const bool alone = node.control.empty() && node.outputs[0] == value &&
                       std::all_of(node.outputs.begin() + 1, node.outputs.end(),
                                   [](graph::ValueId v) { return v == graph::kNone; });
    return alone && op == node.op->name && !context_.Named(node) ? &node : nullptr;
  }
  // The same; the node is inside now.
  const graph::Node* Take(graph::ValueId value, absl::string_view op) {
    const graph::Node* node = Peek(value, op);
    if (node != nullptr && value != result()) nodes_.push_back(graph_.value(value).producer);
    return node;
  }
  // The only node that reads the result, if it is an `op` with one output.
  const graph::Node* Next(absl::string_view op) const {
    const auto& uses = graph_.value(result()).uses;
    if (uses.size() != 1 || !context_.MayVanish(result())) return nullptr;
    const graph::Node& node = graph_.node(uses[0].node);
    const bool fits = op == node.op->name && node.outputs.size() == 1 && node.control.empty();
    return fits && !context_.Named(node) ? &node : nullptr;
  }
  // That node is inside now, and the last. REQUIRES: there is a Next.
  void GoOn() {
    nodes_.push_back(nodes_[0]);
    nodes_[0] = graph_.value(result()).uses[0].node;
  }

  // The number, if `value` is a constant of one element.
  std::optional<double> Scalar(graph::ValueId value) const {
    if (value == graph::kNone || !graph_.value(value).is_constant()) return std::nullopt;
    const Tensor& tensor = graph_.value(value).constant;
    std::optional<double> number;
    if (tensor.element_count() == 1)
      DispatchDType<kFloats | kIntegers>(tensor.dtype(), [&](auto type) {
        number = static_cast<double>(tensor.at<decltype(type)>(0));
      });
    return number;
  }
  // Of two operands in any order, one a number.
  struct Scaled {
    graph::ValueId value;
    double number;
  };
  std::optional<Scaled> ScalarAndOther(const graph::Node& node) const {
    for (std::size_t i = 0; i < 2; ++i)
      if (const auto number = Scalar(node.inputs[i])) return Scaled{node.inputs[1 - i], *number};
    return std::nullopt;
  }

  bool Closed() const {
    const auto inside = [this](graph::NodeId id) {
      return std::find(nodes_.begin(), nodes_.end(), id) != nodes_.end();
    };
    return std::all_of(nodes_.begin() + 1, nodes_.end(), [&](graph::NodeId id) {
      const graph::ValueId out = graph_.node(id).outputs[0];
      const auto& uses = graph_.value(out).uses;
      return context_.MayVanish(out) &&
             std::all_of(uses.begin(), uses.end(),
                         [&](const graph::Use& use) { return inside(use.node); });
    });
  }

  // REQUIRES: Closed().
  void Replace(const char* op, std::vector<graph::ValueId> inputs, Attributes attributes) {
    const graph::ValueId out = result();
    const graph::NodeId fused = graph_.AddRawNode(ops::FindOp(op), last().name, std::move(inputs),
                                                  {}, std::move(attributes));
    std::sort(nodes_.begin(), nodes_.end());
    nodes_.erase(std::unique(nodes_.begin(), nodes_.end()), nodes_.end());
    for (graph::NodeId id : nodes_) graph_.MergeOrigins(fused, id);
    for (graph::NodeId id : nodes_) graph_.RemoveNode(id);
    graph_.SetProducer(out, fused, 0);
  }

  graph::ValueId AddConstant(Tensor tensor) {
    const graph::ValueId id = graph_.AddRawValue(
        std::string(), ValueType::OfTensor(tensor.dtype(), ToSymDims(tensor.dims())));
    graph_.mutable_value(id).constant = std::move(tensor);
    return id;
  }
  // A node in front of the pattern.
  graph::ValueId AddBefore(const char* op, graph::ValueId input, ValueType type,
                           Attributes attributes) {
    const graph::ValueId out = graph_.AddRawValue(std::string(), std::move(type));
    const graph::NodeId id =
        graph_.AddRawNode(ops::FindOp(op), "", {input}, {out}, std::move(attributes));
    graph_.MergeOrigins(id, nodes_[0]);
    return out;
  }

 private:
  PassContext& context_;
  graph::Graph& graph_;
  std::vector<graph::NodeId> nodes_;  // the last one first
};

// Tries `rule` with each node of operator `op` as the last; the number of times that it fitted.
template <typename Rule>
int ForEachNode(PassContext& context, absl::string_view op, Rule rule) {
  int changes = 0;
  const int count = context.graph.node_count();
  for (graph::NodeId id = 0; id < count; ++id) {
    const graph::Node& node = context.graph.node(id);
    if (node.removed || op != node.op->name || node.outputs.size() != 1 ||
        node.outputs[0] == graph::kNone || !node.control.empty() || context.Named(node))
      continue;
    Pattern pattern(context, id);
    changes += rule(pattern);
  }
  return changes;
}

}  // namespace npurt::compile

#endif  // NPURT_COMPILE_FUSE_PATTERN_H_
