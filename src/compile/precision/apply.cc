// Apply: the types of a plan and the casts between them become part of the graph.
#include <algorithm>
#include <map>

#include "compile/precision/precision.h"

namespace npurt::compile::precision {
namespace {

using graph::Graph;
using graph::kNone;
using graph::NodeId;
using graph::Use;
using graph::ValueId;

class Applier {
 public:
  Applier(const Settings& settings, Graph* graph)
      : graph_(*graph), own_nodes_(graph->node_count()) {
    const auto found = settings.lists.find("Cast");
    merges_ = found == settings.lists.end() || found->second != ops::PrecisionReduce::kBlack;
  }

  void Visit(const NodePlan& plan) {
    Column column;
    for (const OperandPlan& operand : plan.inputs) column.inputs.push_back(operand.chosen);
    for (const OperandPlan& operand : plan.outputs) column.outputs.push_back(operand.chosen);
    for (std::size_t i = 0; i < plan.inputs.size(); ++i) {
      const ValueId in = graph_.node(plan.node).inputs[i];
      if (in == kNone || !Contains(ops::kExchangeable, plan.inputs[i].chosen)) continue;
      const DType computed = ComputeType(graph_.node(plan.node), column, false, i);
      const ValueId given = CastOf(in, plan.inputs[i].chosen);
      const ValueId read = given == in || TypeOf(given) == computed ? CastOf(given, computed)
                                                                    : Rounded(given, computed);
      if (read != in) graph_.SetInput(plan.node, static_cast<int>(i), read);
    }
    for (std::size_t i = 0; i < plan.outputs.size(); ++i) {
      const ValueId out = graph_.node(plan.node).outputs[i];
      if (out == kNone || !Contains(ops::kExchangeable, plan.outputs[i].chosen)) continue;
      const DType computed = ComputeType(graph_.node(plan.node), column, true, i);
      if (computed == plan.outputs[i].original && computed == plan.outputs[i].chosen) continue;
      Output(plan.node, static_cast<int>(i), out, computed, plan.outputs[i].chosen);
    }
  }

  // The consumers are known when all nodes read what they are to read.
  std::vector<InsertedCast> Report() const {
    std::vector<InsertedCast> report;
    for (const NodeId id : casts_) {
      const graph::Node& cast = graph_.node(id);
      const graph::ValueInfo& from = graph_.value(cast.inputs[0]);
      const graph::ValueInfo& to = graph_.value(cast.outputs[0]);
      InsertedCast row;
      row.value = from.name.empty() ? to.name : from.name;
      row.from = from.type.dtype;
      row.to = to.type.dtype;
      row.constant = from.is_constant();
      if (from.producer != kNone) row.producer = NodeName(graph_, graph_.node(from.producer));
      for (const Use& use : to.uses)
        row.consumers.push_back(NodeName(graph_, graph_.node(use.node)));
      if (graph_.IsOutput(cast.outputs[0])) row.consumers.emplace_back();
      report.push_back(std::move(row));
    }
    return report;
  }

 private:
  DType TypeOf(ValueId id) const { return graph_.value(id).type.dtype; }

  void AddCast(ValueId from, ValueId to) {
    Attributes attributes;
    attributes.Set("to", static_cast<std::int64_t>(TypeOf(to)));
    const NodeId producer = graph_.value(from).producer;
    const NodeId cast =
        graph_.AddRawNode(ops::FindOp("Cast"), "", {from}, {to}, std::move(attributes));
    if (producer != kNone) graph_.MergeOrigins(cast, producer);
    casts_.push_back(cast);
  }

  ValueId NewCast(ValueId value, DType dtype) {
    ValueType type = graph_.value(value).type;
    type.dtype = dtype;
    const ValueId out = graph_.AddRawValue(graph_.value(value).name, std::move(type));
    graph_.mutable_value(out).origins = graph_.value(value).origins;
    AddCast(value, out);
    return out;
  }

  // `value` in `dtype`, by one Cast for all who ask.
  ValueId CastOf(ValueId value, DType dtype) {
    if (TypeOf(value) == dtype) return value;
    const auto known = cast_of_.find({value, dtype});
    if (known != cast_of_.end()) return known->second;
    const ValueId source = BeforeCast(value);
    const ValueId out = source != value ? CastOf(source, dtype) : NewCast(value, dtype);
    cast_of_[{value, dtype}] = out;
    return out;
  }

  // The same, of a value that was narrowed on purpose.
  ValueId Rounded(ValueId value, DType dtype) {
    const auto known = cast_of_.find({value, dtype});
    if (known != cast_of_.end()) return known->second;
    return cast_of_[{value, dtype}] = NewCast(value, dtype);
  }

  // What a cast of the caller between floating types reads, or one of ours that lost nothing.
  ValueId BeforeCast(ValueId value) const {
    const NodeId producer = graph_.value(value).producer;
    if (producer == kNone) return value;
    const graph::Node& cast = graph_.node(producer);
    if (absl::string_view(cast.op->name) != "Cast") return value;
    const ValueId source = cast.inputs[0];
    const bool merges = producer < own_nodes_
                            ? merges_ && Contains(ops::kExchangeable, TypeOf(source)) &&
                                  Contains(ops::kExchangeable, TypeOf(value))
                            : TypeOf(value) == DType::kF32;
    return merges ? source : value;
  }

  // The node makes `computed`; who reads the value gets `chosen`. An output of the graph keeps its
  // type and its name.
  void Output(NodeId id, int index, ValueId out, DType computed, DType chosen) {
    const DType declared = TypeOf(out);
    const bool is_output = graph_.IsOutput(out);
    if (!is_output) graph_.mutable_value(out).type.dtype = chosen;
    if (!is_output && computed == chosen) return;
    ValueType type = graph_.value(out).type;
    type.dtype = computed;
    const ValueId made = graph_.AddRawValue(std::string(), std::move(type));
    graph_.mutable_value(made).origins = graph_.value(out).origins;
    graph_.mutable_value(out).producer = kNone;
    graph_.SetProducer(made, id, index);
    if (!is_output || chosen == declared) {
      AddCast(made, out);
      return;
    }
    const std::vector<Use> uses = graph_.value(out).uses;
    const ValueId read = computed == chosen ? made : NewCast(made, chosen);
    for (const Use& use : uses) graph_.SetInput(use.node, use.input, read);
    AddCast(read, out);
    cast_of_[{read, declared}] = out;
  }

  Graph& graph_;
  const int own_nodes_;  // those that were there before any cast
  bool merges_ = true;
  std::map<std::pair<ValueId, DType>, ValueId> cast_of_;
  std::vector<NodeId> casts_;
};

}  // namespace

std::vector<InsertedCast> Apply(const Plan& plan, const Settings& settings, Graph* graph) {
  Applier applier(settings, graph);
  for (const NodePlan& node : plan.nodes) applier.Visit(node);
  return applier.Report();
}

}  // namespace npurt::compile::precision
