// Computes nodes by their references, without a session: the answer that nothing of compile or exec
// has touched.
#include <map>

#include "absl/strings/str_cat.h"
#include "fuzz/random_graph.h"
#include "ops/op_test_harness.h"

namespace npurt::fuzz {
namespace {

constexpr std::int64_t kMaxTurns = 8;

const graph::Graph* Branch(const graph::NodeSpec& spec, const char* name) {
  return dynamic_cast<const graph::Graph*>(spec.attributes.FindGraph(name));
}

// `inputs` and `captures` in the order of the graph's.
absl::StatusOr<std::vector<Value>> EvaluateGraph(const graph::Graph& graph,
                                                 const std::vector<Value>& inputs,
                                                 const std::vector<Value>& captures) {
  std::vector<Value> values(static_cast<std::size_t>(graph.value_count()));
  for (std::size_t i = 0; i < inputs.size(); ++i) values[graph.inputs()[i]] = inputs[i];
  for (std::size_t i = 0; i < captures.size(); ++i) values[graph.captures()[i]] = captures[i];
  for (graph::ValueId id = 0; id < graph.value_count(); ++id)
    if (graph.value(id).is_constant()) values[id] = Value(graph.value(id).constant);
  NPURT_ASSIGN_OR_RETURN(const std::vector<graph::NodeId> order, graph.Order());
  for (const graph::NodeId id : order) {
    const graph::Node& node = graph.node(id);
    graph::NodeSpec spec;
    spec.op = node.op->name;
    spec.attributes = node.attributes;
    spec.outputs.resize(node.outputs.size());
    std::vector<Value> operands;
    for (const graph::ValueId input : node.inputs)
      operands.push_back(input == graph::kNone ? Value() : values[input]);
    NPURT_ASSIGN_OR_RETURN(const std::vector<Value> outputs, Evaluate(spec, operands));
    for (std::size_t i = 0; i < outputs.size(); ++i)
      if (node.outputs[i] != graph::kNone) values[node.outputs[i]] = outputs[i];
  }
  std::vector<Value> outputs;
  for (const graph::ValueId id : graph.outputs()) outputs.push_back(values[id]);
  return outputs;
}

// The captured values of a node with subgraphs: its last operands.
std::vector<Value> Captured(const graph::NodeSpec& spec, const std::vector<Value>& inputs) {
  return {inputs.end() - spec.attributes.Int("captures"), inputs.end()};
}

absl::StatusOr<std::vector<Value>> EvaluateLoop(const graph::NodeSpec& spec,
                                                const std::vector<Value>& inputs) {
  const graph::Graph* body = Branch(spec, "body");
  const std::vector<Value> captured = Captured(spec, inputs);
  const std::size_t states = body->input_count() - 2;
  std::vector<Value> now(inputs.begin() + 2, inputs.begin() + 2 + static_cast<long>(states));
  std::vector<std::vector<Value>> scans(body->output_count() - 1 - states);
  const std::int64_t turns =
      inputs[0].is_tensor() ? inputs[0].tensor().at<std::int64_t>(0) : kMaxTurns;
  bool go = !inputs[1].is_tensor() || inputs[1].tensor().at<bool>(0);
  for (std::int64_t turn = 0; turn < turns && go; ++turn) {
    std::vector<Value> operands = {Value(Tensor::Int64Scalar(turn)),
                                   Value(*Tensor::FromSpan<bool>({}, absl::MakeConstSpan(&go, 1)))};
    operands.insert(operands.end(), now.begin(), now.end());
    NPURT_ASSIGN_OR_RETURN(const std::vector<Value> got, EvaluateGraph(*body, operands, captured));
    go = got[0].tensor().at<bool>(0);
    for (std::size_t i = 0; i < states; ++i) now[i] = got[1 + i];
    for (std::size_t i = 0; i < scans.size(); ++i) scans[i].push_back(got[1 + states + i]);
  }
  for (const std::vector<Value>& slices : scans) {
    if (slices.empty()) return absl::InvalidArgumentError("a loop without a turn has no scans");
    // Stacked as a sequence's items are.
    graph::NodeSpec stack;
    stack.op = "ConcatFromSequence";
    stack.outputs = {"all"};
    stack.attributes.Set("axis", std::int64_t{0});
    stack.attributes.Set("new_axis", std::int64_t{1});
    NPURT_ASSIGN_OR_RETURN(const std::vector<Value> all,
                           Evaluate(stack, {Value::Sequence(slices)}));
    now.push_back(all[0]);
  }
  return now;
}

}  // namespace

absl::StatusOr<std::vector<Value>> Evaluate(const graph::NodeSpec& spec,
                                            const std::vector<Value>& inputs) {
  if (spec.op == "Loop") return EvaluateLoop(spec, inputs);
  if (spec.op == "If") {
    const bool taken = inputs[0].tensor().at<bool>(0);
    return EvaluateGraph(*Branch(spec, taken ? "then_branch" : "else_branch"), {},
                         Captured(spec, inputs));
  }
  ops::OpOptions options;
  options.reference = true;
  return ops::RunOp(spec.op, inputs, spec.attributes, static_cast<int>(spec.outputs.size()),
                    options);
}

ValueType TypeOf(const Value& value) {
  switch (value.kind()) {
    case ValueKind::kTensor:
      return ValueType::OfTensor(value.tensor().dtype(), ToSymDims(value.tensor().dims()));
    case ValueKind::kSequence: {  // items may differ in shape
      const ValueType item = value.items().empty() ? ValueType() : TypeOf(value.items()[0]);
      return ValueType::SequenceOf(ValueType::OfTensor(item.dtype));
    }
    default: {
      ValueType none;
      none.kind = ValueKind::kNone;
      return none;
    }
  }
}

}  // namespace npurt::fuzz
