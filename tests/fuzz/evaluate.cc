// Computes nodes by their references, without a session: the answer that nothing of compile or exec
// has touched.
#include <algorithm>
#include <tuple>

#include "fuzz/noise.h"
#include "fuzz/random_graph.h"

namespace npurt::fuzz {
namespace {

constexpr std::int64_t kMaxTurns = 8;

const graph::Graph* Branch(const graph::NodeSpec& spec, const char* name) {
  return dynamic_cast<const graph::Graph*>(spec.attributes.FindGraph(name));
}

// `inputs` and `captures` in the order of the graph's.
absl::StatusOr<std::vector<NoisyValue>> EvaluateGraph(const graph::Graph& graph,
                                                      const std::vector<NoisyValue>& inputs,
                                                      const std::vector<NoisyValue>& captures) {
  std::vector<NoisyValue> values(static_cast<std::size_t>(graph.value_count()));
  for (std::size_t i = 0; i < inputs.size(); ++i) values[graph.inputs()[i]] = inputs[i];
  for (std::size_t i = 0; i < captures.size(); ++i) values[graph.captures()[i]] = captures[i];
  for (graph::ValueId id = 0; id < graph.value_count(); ++id)
    if (graph.value(id).is_constant()) values[id] = {Value(graph.value(id).constant), 0};
  NPURT_ASSIGN_OR_RETURN(const std::vector<graph::NodeId> order, graph.Order());
  for (const graph::NodeId id : order) {
    const graph::Node& node = graph.node(id);
    graph::NodeSpec spec;
    spec.op = node.op->name;
    spec.attributes = node.attributes;
    spec.outputs.resize(node.outputs.size());
    std::vector<NoisyValue> operands;
    for (const graph::ValueId input : node.inputs)
      operands.push_back(input == graph::kNone ? NoisyValue() : values[input]);
    NPURT_ASSIGN_OR_RETURN(const std::vector<NoisyValue> outputs, Evaluate(spec, operands));
    for (std::size_t i = 0; i < outputs.size(); ++i)
      if (node.outputs[i] != graph::kNone) values[node.outputs[i]] = outputs[i];
  }
  std::vector<NoisyValue> outputs;
  for (const graph::ValueId id : graph.outputs()) outputs.push_back(values[id]);
  return outputs;
}

// The captured values of a node with subgraphs: its last operands.
std::vector<NoisyValue> Captured(const graph::NodeSpec& spec,
                                 const std::vector<NoisyValue>& inputs) {
  return {inputs.end() - spec.attributes.Int("captures"), inputs.end()};
}

// Whether a loop's state of this type may change its shape so from turn to turn: only where the
// type leaves it open.
bool MayTurnInto(const ValueType& type, const Value& was, const Value& now) {
  if (!was.is_tensor() || !type.has_rank) return true;
  const auto &a = was.tensor().dims(), &b = now.tensor().dims();
  if (a.size() != b.size()) return false;
  for (std::size_t d = 0; d < a.size(); ++d)
    if (a[d] != b[d] && !type.dims[d].depends_on_run()) return false;
  return true;
}

// Slices of a loop's scan, stacked as a sequence's items are.
absl::StatusOr<NoisyValue> Stacked(const std::vector<NoisyValue>& slices) {
  if (slices.empty()) return absl::InvalidArgumentError("a loop without a turn has no scans");
  NoisyValue sequence;
  ValueList items;
  for (const NoisyValue& slice : slices) {
    items.push_back(slice.value);
    sequence.noise = std::max(sequence.noise, slice.noise);
  }
  sequence.value = Value::Sequence(std::move(items));
  graph::NodeSpec stack;
  stack.op = "ConcatFromSequence";
  stack.outputs = {"all"};
  stack.attributes.Set("axis", std::int64_t{0});
  stack.attributes.Set("new_axis", std::int64_t{1});
  NPURT_ASSIGN_OR_RETURN(const std::vector<NoisyValue> all, EvaluateWithNoise(stack, {sequence}));
  return all[0];
}

absl::StatusOr<std::vector<NoisyValue>> EvaluateLoop(const graph::NodeSpec& spec,
                                                     const std::vector<NoisyValue>& inputs) {
  const graph::Graph* body = Branch(spec, "body");
  const std::vector<NoisyValue> captured = Captured(spec, inputs);
  const std::size_t states = body->input_count() - 2;
  std::vector<NoisyValue> now(inputs.begin() + 2, inputs.begin() + 2 + static_cast<long>(states));
  std::vector<std::vector<NoisyValue>> scans(body->output_count() - 1 - states);
  const std::int64_t turns =
      inputs[0].value.is_tensor() ? inputs[0].value.tensor().at<std::int64_t>(0) : kMaxTurns;
  bool go = !inputs[1].value.is_tensor() || inputs[1].value.tensor().at<bool>(0);
  for (std::int64_t turn = 0; turn < turns && go; ++turn) {
    std::vector<NoisyValue> operands = {
        {Value(Tensor::Int64Scalar(turn)), 0},
        {Value(*Tensor::FromSpan<bool>({}, absl::MakeConstSpan(&go, 1))), 0}};
    operands.insert(operands.end(), now.begin(), now.end());
    NPURT_ASSIGN_OR_RETURN(const std::vector<NoisyValue> got,
                           EvaluateGraph(*body, operands, captured));
    go = got[0].value.tensor().at<bool>(0);
    for (std::size_t i = 0; i < states; ++i) {
      if (!MayTurnInto(body->value(body->inputs()[2 + i]).type, now[i].value, got[1 + i].value))
        return absl::InvalidArgumentError("the state's shape changes against its type");
      now[i] = got[1 + i];
    }
    for (std::size_t i = 0; i < scans.size(); ++i) scans[i].push_back(got[1 + states + i]);
  }
  for (const std::vector<NoisyValue>& slices : scans) {
    NPURT_ASSIGN_OR_RETURN(NoisyValue all, Stacked(slices));
    now.push_back(std::move(all));
  }
  return now;
}

}  // namespace

absl::StatusOr<std::vector<NoisyValue>> Evaluate(const graph::NodeSpec& spec,
                                                 const std::vector<NoisyValue>& inputs) {
  if (spec.op == "Loop") return EvaluateLoop(spec, inputs);
  if (spec.op == "If") {
    const bool taken = inputs[0].value.tensor().at<bool>(0);
    return EvaluateGraph(*Branch(spec, taken ? "then_branch" : "else_branch"), {},
                         Captured(spec, inputs));
  }
  return EvaluateWithNoise(spec, inputs);
}

ValueType TypeOf(const Value& value) {
  switch (value.kind()) {
    case ValueKind::kTensor:
      return ValueType::OfTensor(value.tensor().dtype(), ToSymDims(value.tensor().dims()));
    case ValueKind::kSequence: {  // items may differ in shape
      const ValueType item = value.items().empty() ? ValueType() : TypeOf(value.items()[0]);
      return ValueType::SequenceOf(ValueType::OfTensor(item.dtype));
    }
    case ValueKind::kOptional:
      return ValueType::OptionalOf(value.items().empty() ? ValueType() : TypeOf(value.items()[0]));
    case ValueKind::kMap: {
      ValueType map;
      map.kind = ValueKind::kMap;
      map.dtype = value.map().string_keys ? DType::kString : DType::kI64;
      const auto& [numbers, strings] = std::tie(value.map().by_number, value.map().by_string);
      const Value* any = !numbers.empty()   ? &numbers.begin()->second
                         : !strings.empty() ? &strings.begin()->second
                                            : nullptr;
      map.element = std::make_shared<ValueType>(any == nullptr ? ValueType() : TypeOf(*any));
      return map;
    }
    default: {
      ValueType none;
      none.kind = ValueKind::kNone;
      return none;
    }
  }
}

}  // namespace npurt::fuzz
