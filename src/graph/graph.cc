#include "graph/graph.h"

#include <algorithm>
#include <queue>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace npurt::graph {
namespace {

void AddUnique(std::vector<std::string>* names, const std::string& name) {
  if (!name.empty() && std::find(names->begin(), names->end(), name) == names->end())
    names->push_back(name);
}

bool SaysLess(const ValueType& fresh, const ValueType& old) {
  if (fresh.kind != ValueKind::kTensor || old.kind != fresh.kind) return false;
  return fresh.dtype == DType::kUndefined || (!fresh.has_rank && old.has_rank);
}

}  // namespace

Graph::Graph(std::shared_ptr<DimTable> dims) : dims_(std::move(dims)) {}

std::string Node::Where(const Graph& graph) const {
  const std::string& type = original_op.empty() ? std::string(op->name) : original_op;
  if (!name.empty()) return absl::StrCat(type, " node '", name, "'");
  for (ValueId id : outputs)
    if (id != kNone) return absl::StrCat(type, " node of '", graph.value(id).name, "'");
  return absl::StrCat(type, " node");
}

absl::StatusOr<ValueId> Graph::NewValue(const std::string& name, ValueType type) {
  const ValueId id = value_count();
  if (!name.empty() && !by_name_.try_emplace(name, id).second)
    return absl::AlreadyExistsError(absl::StrCat("value '", name, "' is defined twice"));
  ValueInfo info;
  info.name = name;
  info.type = std::move(type);
  if (!name.empty()) info.origins.push_back(name);
  values_.push_back(std::move(info));
  return id;
}

absl::StatusOr<ValueId> Graph::AddInput(const std::string& name, ValueType type) {
  NPURT_ASSIGN_OR_RETURN(const ValueId id, NewValue(name, std::move(type)));
  values_[id].is_input = true;
  inputs_.push_back(id);
  return id;
}

absl::StatusOr<ValueId> Graph::AddCapture(const std::string& name, ValueType type) {
  NPURT_ASSIGN_OR_RETURN(const ValueId id, NewValue(name, std::move(type)));
  values_[id].is_input = true;
  captures_.push_back(id);
  return id;
}

absl::StatusOr<ValueId> Graph::AddConstant(const std::string& name, Tensor value) {
  NPURT_ASSIGN_OR_RETURN(
      const ValueId id,
      NewValue(name, ValueType::OfTensor(value.dtype(), ToSymDims(value.dims()))));
  values_[id].constant = std::move(value);
  return id;
}

absl::StatusOr<ValueId> Graph::AddVariable(const std::string& name, ValueType type,
                                           Tensor initial) {
  NPURT_ASSIGN_OR_RETURN(const ValueId id, NewValue(name, ValueType::ResourceOf(type)));
  variables_.push_back({name, std::move(type), std::move(initial), id});
  values_[id].is_input = true;
  return id;
}

absl::StatusOr<NodeId> Graph::AddNode(NodeSpec spec) {
  const NodeId id = node_count();
  Node node;
  node.name = std::move(spec.name);
  node.original_op = spec.original_op.empty() ? spec.op : std::move(spec.original_op);
  node.op = ops::FindOp(spec.op);
  if (node.op == nullptr)
    return absl::UnimplementedError(absl::StrCat("node '", node.name, "': there is no operator '",
                                                 node.original_op, "'"));
  node.inputs = std::move(spec.inputs);
  node.attributes = std::move(spec.attributes);
  node.control = std::move(spec.control);
  AddUnique(&node.origins, node.name);
  absl::InlinedVector<const ValueType*, 4> types;
  for (ValueId input : node.inputs) {
    if (input != kNone && (input < 0 || input >= value_count()))
      return absl::InvalidArgumentError(
          absl::StrCat(node.Where(*this), ": input ", input, " is no value of this graph"));
    types.push_back(input == kNone ? nullptr : &values_[input].type);
  }
  for (NodeId before : node.control)
    if (before < 0 || before >= id)
      return absl::InvalidArgumentError(
          absl::StrCat(node.Where(*this), ": control edge from ", before, ", which is no node"));
  const auto where = [&] {
    return node.name.empty() && !spec.outputs.empty()
               ? absl::StrCat(node.original_op, " node of '", spec.outputs[0], "'")
               : node.Where(*this);
  };
  const absl::Status checked = ops::CheckSchema(
      *node.op, types, static_cast<int>(spec.outputs.size()), node.attributes);
  if (!checked.ok()) return Annotate(checked, where());

  nodes_.push_back(std::move(node));
  for (const std::string& name : spec.outputs) {
    ValueId out = kNone;
    if (!name.empty()) {
      auto value = NewValue(name, ValueType::OfTensor(DType::kUndefined));
      if (!value.ok()) {
        nodes_[id].outputs.resize(nodes_[id].outputs.size());
        const absl::Status status = Annotate(value.status(), where());
        nodes_.pop_back();
        return status;
      }
      out = *value;
      values_[out].producer = id;
      values_[out].producer_output = static_cast<int>(nodes_[id].outputs.size());
    }
    nodes_[id].outputs.push_back(out);
  }
  for (std::size_t i = 0; i < nodes_[id].inputs.size(); ++i)
    if (nodes_[id].inputs[i] != kNone)
      values_[nodes_[id].inputs[i]].uses.push_back({id, static_cast<int>(i)});
  const absl::Status inferred = Infer(id);
  if (inferred.ok()) return id;
  // A refused node leaves the graph as it was.
  for (ValueId input : nodes_[id].inputs)
    if (input != kNone)
      values_[input].uses.erase(
          std::remove_if(values_[input].uses.begin(), values_[input].uses.end(),
                         [id](const Use& use) { return use.node == id; }),
          values_[input].uses.end());
  for (auto out = nodes_[id].outputs.rbegin(); out != nodes_[id].outputs.rend(); ++out)
    if (*out != kNone) {
      by_name_.erase(values_[*out].name);
      values_.pop_back();
    }
  nodes_.pop_back();
  return inferred;
}

absl::Status Graph::Infer(NodeId id) {
  Node& node = nodes_[id];
  absl::InlinedVector<InferInput, 4> inputs(node.inputs.size());
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == kNone) continue;
    const ValueInfo& info = values_[node.inputs[i]];
    inputs[i] = {&info.type, info.is_constant() ? &info.constant : nullptr, &info.integers};
  }
  absl::InlinedVector<bool, 4> wanted(node.outputs.size());
  std::string prefix;
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    wanted[i] = node.outputs[i] != kNone;
    if (wanted[i] && prefix.empty()) prefix = values_[node.outputs[i]].name;
  }
  auto result = InferNode(*node.op, node.attributes, inputs, wanted, dims_.get(), prefix);
  if (!result.ok()) return Annotate(result.status(), node.Where(*this));
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    if (!wanted[i]) continue;
    ValueInfo& out = values_[node.outputs[i]];
    InferOutput& fresh = result->outputs[i];
    if (!SaysLess(fresh.type, out.type)) out.type = std::move(fresh.type);
    if (fresh.integers.has_value()) out.integers = std::move(fresh.integers);
  }
  return absl::OkStatus();
}

absl::Status Graph::AddOutput(ValueId value, const std::string& name) {
  if (value < 0 || value >= value_count())
    return absl::InvalidArgumentError(
        absl::StrCat("output '", name, "': ", value, " is no value of this graph"));
  outputs_.push_back(value);
  output_names_.push_back(name);
  return absl::OkStatus();
}

ValueId Graph::Find(const std::string& name) const {
  auto it = by_name_.find(name);
  return it == by_name_.end() ? kNone : it->second;
}

bool Graph::IsOutput(ValueId id) const {
  return std::find(outputs_.begin(), outputs_.end(), id) != outputs_.end();
}

Dim Graph::NamedDim(const std::string& name, const std::string& fallback) {
  const bool says_nothing = name.empty() || name == "?" || name == "None" || name == "-1" ||
                            absl::StartsWith(name, "unk");
  return dims_->Symbol(says_nothing ? fallback : name);
}

void Graph::ReplaceUses(ValueId from, ValueId to) {
  for (const Use& use : values_[from].uses) {
    nodes_[use.node].inputs[use.input] = to;
    values_[to].uses.push_back(use);
  }
  values_[from].uses.clear();
  std::replace(outputs_.begin(), outputs_.end(), from, to);
}

void Graph::SetInput(NodeId id, int input, ValueId value) {
  Node& node = nodes_[id];
  if (input >= static_cast<int>(node.inputs.size())) node.inputs.resize(input + 1, kNone);
  const ValueId old = node.inputs[input];
  if (old != kNone) {
    auto& uses = values_[old].uses;
    uses.erase(std::find(uses.begin(), uses.end(), Use{id, input}));
  }
  node.inputs[input] = value;
  if (value != kNone) values_[value].uses.push_back({id, input});
}

void Graph::RemoveNode(NodeId id) {
  Node& node = nodes_[id];
  for (int i = 0; i < static_cast<int>(node.inputs.size()); ++i) SetInput(id, i, kNone);
  for (ValueId out : node.outputs)
    if (out != kNone && values_[out].producer == id) values_[out].producer = kNone;
  node.removed = true;
}

void Graph::SetProducer(ValueId value, NodeId node, int index) {
  ValueInfo& info = values_[value];
  if (info.producer != kNone && info.producer != node) {
    Node& old = nodes_[info.producer];
    for (ValueId& out : old.outputs)
      if (out == value) out = kNone;
  }
  info.producer = node;
  info.producer_output = index;
  Node& made_by = nodes_[node];
  if (index >= static_cast<int>(made_by.outputs.size())) made_by.outputs.resize(index + 1, kNone);
  made_by.outputs[index] = value;
}

NodeId Graph::AddRawNode(const ops::OpDef* op, std::string node_name, std::vector<ValueId> inputs,
                         std::vector<ValueId> outputs, Attributes attributes) {
  const NodeId id = node_count();
  Node node;
  node.op = op;
  node.name = std::move(node_name);
  node.original_op = op->name;
  node.attributes = std::move(attributes);
  node.inputs = std::move(inputs);
  nodes_.push_back(std::move(node));
  for (std::size_t i = 0; i < nodes_[id].inputs.size(); ++i)
    if (nodes_[id].inputs[i] != kNone)
      values_[nodes_[id].inputs[i]].uses.push_back({id, static_cast<int>(i)});
  nodes_[id].outputs.resize(outputs.size(), kNone);
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i] != kNone) SetProducer(outputs[i], id, static_cast<int>(i));
  return id;
}

ValueId Graph::AddRawValue(std::string value_name, ValueType type) {
  const ValueId id = value_count();
  ValueInfo info;
  info.name = std::move(value_name);
  info.type = std::move(type);
  values_.push_back(std::move(info));
  return id;
}

ops::Traits EffectsOf(const Node& node) {
  ops::Traits traits = node.op->traits;
  for (const Attribute& attribute : node.attributes.all())
    if (const auto* sub = std::get_if<std::shared_ptr<const Subgraph>>(&attribute.value)) {
      const auto& graph = static_cast<const Graph&>(**sub);
      for (NodeId id = 0; id < graph.node_count(); ++id)
        if (!graph.node(id).removed) traits |= EffectsOf(graph.node(id));
    }
  return traits;
}

absl::StatusOr<std::vector<NodeId>> Graph::Order() const {
  std::vector<int> waits_for(node_count(), 0);
  std::vector<std::vector<NodeId>> control_users(node_count());
  for (NodeId id = 0; id < node_count(); ++id) {
    const Node& node = nodes_[id];
    if (node.removed) continue;
    for (ValueId input : node.inputs)
      if (input != kNone && values_[input].producer != kNone) ++waits_for[id];
    for (NodeId before : node.control)
      if (!nodes_[before].removed) {
        ++waits_for[id];
        control_users[before].push_back(id);
      }
  }
  std::priority_queue<NodeId, std::vector<NodeId>, std::greater<NodeId>> ready;
  int live = 0;
  for (NodeId id = 0; id < node_count(); ++id) {
    if (nodes_[id].removed) continue;
    ++live;
    if (waits_for[id] == 0) ready.push(id);
  }
  std::vector<NodeId> order;
  order.reserve(live);
  const auto release = [&](NodeId user) {
    if (--waits_for[user] == 0) ready.push(user);
  };
  while (!ready.empty()) {
    const NodeId id = ready.top();
    ready.pop();
    order.push_back(id);
    for (ValueId out : nodes_[id].outputs)
      if (out != kNone)
        for (const Use& use : values_[out].uses) release(use.node);
    for (NodeId user : control_users[id]) release(user);
  }
  if (static_cast<int>(order.size()) == live) return order;
  for (NodeId id = 0; id < node_count(); ++id)
    if (!nodes_[id].removed && waits_for[id] > 0)
      return absl::InvalidArgumentError(
          absl::StrCat(nodes_[id].Where(*this), ": is part of a cycle"));
  return absl::InternalError("order of nodes");
}

absl::Status Graph::InferAgain() {
  for (ValueInfo& value : values_) {
    if (value.producer == kNone || value.is_constant()) continue;
    value.integers.reset();
    if (value.type.kind == ValueKind::kTensor) value.type = ValueType::OfTensor(value.type.dtype);
  }
  NPURT_ASSIGN_OR_RETURN(const std::vector<NodeId> order, Order());
  for (NodeId id : order) NPURT_RETURN_IF_ERROR(Infer(id));
  return absl::OkStatus();
}

void Graph::MergeOrigins(NodeId to, NodeId from) {
  const std::vector<std::string> origins = nodes_[from].origins;
  for (const std::string& origin : origins) AddUnique(&nodes_[to].origins, origin);
}

}  // namespace npurt::graph
