// Columns: the combinations of element types that an operator computes. Those that are built in
// follow from the schema: each of its type variables that a floating input binds may be float16,
// bfloat16 or float32 where the schema allows it; matrix operators also take 16 bits and give
// float32, as they sum in it. The AI CPU computes a node as it is.
#include <algorithm>

#include "compile/precision/precision.h"

namespace npurt::compile::precision {
namespace {

using graph::Graph;
using graph::kNone;
using graph::Node;
using graph::ValueId;

constexpr DType kOrder[] = {DType::kF32, DType::kF16, DType::kBF16};

// Operators whose meaning is tied to the types they are given; what runs subgraphs is another.
constexpr absl::string_view kSensitive[] = {
    "Bernoulli", "BitCast",        "CastLike",         "DequantizeLinear",  "EyeLike",
    "HostCall",  "QuantizeLinear", "RandomNormalLike", "RandomUniformLike", "Unique",
};
bool IsTied(const Node& node) {
  for (const Attribute& attribute : node.attributes.all())
    if (std::holds_alternative<std::shared_ptr<const Subgraph>>(attribute.value)) return true;
  return std::find(std::begin(kSensitive), std::end(kSensitive), node.op->name) !=
         std::end(kSensitive);
}

DType TypeOf(const Graph& graph, ValueId id) {
  if (id == kNone || graph.value(id).type.kind != ValueKind::kTensor) return DType::kUndefined;
  return graph.value(id).type.dtype;
}

Column OwnTypes(const Graph& graph, const Node& node) {
  Column column;
  for (ValueId id : node.inputs) column.inputs.push_back(TypeOf(graph, id));
  for (ValueId id : node.outputs) column.outputs.push_back(TypeOf(graph, id));
  return column;
}

// Every column with `variable` in each of its other types.
void Multiply(const Node& node, const ops::TypeVar& variable, std::vector<Column>* columns) {
  const std::size_t count = columns->size();
  for (const DType dtype : kOrder) {
    if (!Contains(variable.allowed, dtype)) continue;
    for (std::size_t c = 0; c < count; ++c) {
      Column column = (*columns)[c];
      bool other = false;
      const auto put = [&](absl::Span<const ops::Param> params,
                           absl::InlinedVector<DType, 4>& types) {
        for (std::size_t i = 0; i < types.size(); ++i) {
          if (types[i] == DType::kUndefined || ops::VariableOf(*node.op, params, i) != &variable)
            continue;
          other |= types[i] != dtype;
          types[i] = dtype;
        }
      };
      put(node.op->inputs, column.inputs);
      put(node.op->outputs, column.outputs);
      if (other) columns->push_back(std::move(column));
    }
  }
}

// Gives a column the outputs that inference sees for its inputs: a type that only outputs have may
// follow that of an input. False if it refuses them.
bool InferOutputs(const Graph& graph, const Node& node, Column* column) {
  absl::InlinedVector<ValueType, 4> types(node.inputs.size());
  absl::InlinedVector<graph::InferInput, 4> inputs(node.inputs.size());
  absl::InlinedVector<bool, 4> wanted;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == kNone) continue;
    const graph::ValueInfo& value = graph.value(node.inputs[i]);
    types[i] = value.type;
    if (column->inputs[i] != DType::kUndefined) types[i].dtype = column->inputs[i];
    inputs[i] = {
        &types[i],
        value.is_constant() && types[i].dtype == value.type.dtype ? &value.constant : nullptr,
        &value.integers};
  }
  for (ValueId out : node.outputs) wanted.push_back(out != kNone);
  const auto result = graph::InferNode(*node.op, node.attributes, inputs, wanted, nullptr, "");
  if (!result.ok()) return false;
  for (std::size_t i = 0; i < column->outputs.size() && i < result->outputs.size(); ++i) {
    const DType seen = result->outputs[i].type.dtype;
    if (column->outputs[i] != DType::kUndefined && seen != DType::kUndefined)
      column->outputs[i] = seen;
  }
  return true;
}

std::vector<Column> BuiltIn(const Graph& graph, const Node& node) {
  std::vector<Column> columns = {OwnTypes(graph, node)};
  // By value: columns grow.
  const auto own = columns[0].inputs;
  if (IsTied(node)) return columns;
  std::vector<const ops::TypeVar*> seen;
  for (std::size_t i = 0; i < own.size(); ++i) {
    const ops::TypeVar* variable = ops::VariableOf(*node.op, node.op->inputs, i);
    if (!Contains(ops::kExchangeable, own[i]) || variable == nullptr ||
        std::find(seen.begin(), seen.end(), variable) != seen.end())
      continue;
    seen.push_back(variable);
    Multiply(node, *variable, &columns);
  }
  columns.erase(std::remove_if(columns.begin() + 1, columns.end(),
                               [&](Column& column) { return !InferOutputs(graph, node, &column); }),
                columns.end());
  // Its schema takes whatever there is, and so has no variable.
  if (absl::string_view(node.op->name) == "Identity" && Contains(ops::kExchangeable, own[0]))
    for (const DType dtype : kOrder)
      if (dtype != own[0]) columns.push_back({{dtype}, {dtype}});
  const std::size_t narrow = std::min(ops::NarrowInputs(node.op->name), own.size());
  if (narrow == 0 || !Contains(ops::kExchangeable, own[0])) return columns;
  for (const DType dtype : {DType::kF16, DType::kBF16}) {
    Column column = OwnTypes(graph, node);
    for (DType& type : column.inputs)
      if (type != DType::kUndefined) type = DType::kF32;
    for (std::size_t i = 0; i < narrow; ++i) column.inputs[i] = dtype;
    column.outputs[0] = DType::kF32;
    columns.push_back(std::move(column));
  }
  return columns;
}

// The rows of a file that fit the node: same types where types cannot be exchanged.
std::vector<Column> Listed(const Graph& graph, const Node& node,
                           const std::vector<options::OpsInfo::Column>& rows) {
  const Column own = OwnTypes(graph, node);
  std::vector<Column> columns;
  const auto fit = [](const std::vector<DType>& row, const absl::InlinedVector<DType, 4>& own_types,
                      absl::InlinedVector<DType, 4>* out) {
    for (std::size_t i = 0; i < own_types.size(); ++i) {
      if (own_types[i] == DType::kUndefined || row.empty()) {
        out->push_back(own_types[i]);
        continue;
      }
      DType want = row[std::min(i, row.size() - 1)];
      if (want == DType::kUndefined) want = own_types[i];
      const bool exchangeable =
          Contains(ops::kExchangeable, want) && Contains(ops::kExchangeable, own_types[i]);
      if (want != own_types[i] && !exchangeable) return false;
      out->push_back(want);
    }
    return true;
  };
  for (const options::OpsInfo::Column& row : rows) {
    Column column;
    if (!fit(row.inputs, own.inputs, &column.inputs) ||
        !fit(row.outputs, own.outputs, &column.outputs))
      continue;
    const bool is_own = column.inputs == own.inputs && column.outputs == own.outputs;
    if (!is_own && IsTied(node)) continue;
    columns.insert(is_own ? columns.begin() : columns.end(), std::move(column));
  }
  return columns;
}

}  // namespace

std::vector<Column> ColumnsOf(const Graph& graph, const Node& node, ops::Engine engine,
                              const options::OpsInfo* info) {
  const bool any = absl::string_view(node.op->name) == "Identity";  // no list says more
  const options::OpsInfo::Row* row = info == nullptr || any ? nullptr : info->Find(node.op->name);
  const auto& listed = row == nullptr                   ? std::nullopt
                       : engine == ops::Engine::kAiCore ? row->ai_core
                                                        : row->ai_cpu;
  if (listed.has_value()) return Listed(graph, node, *listed);
  if (engine == ops::Engine::kAiCpu) return {OwnTypes(graph, node)};
  if (node.op->engine == ops::Engine::kAiCpu) return {};
  return BuiltIn(graph, node);
}

DType ComputeType(const Node& node, const Column& column, bool output, std::size_t i) {
  const DType own = output ? column.outputs[i] : column.inputs[i];
  const ops::TypeVar* variable =
      ops::VariableOf(*node.op, output ? node.op->outputs : node.op->inputs, i);
  if (variable == nullptr || !Contains(ops::kExchangeable, own)) return own;
  const auto differs = [&](absl::Span<const ops::Param> params,
                           const absl::InlinedVector<DType, 4>& types) {
    for (std::size_t k = 0; k < types.size(); ++k)
      if (types[k] != DType::kUndefined && types[k] != own &&
          ops::VariableOf(*node.op, params, k) == variable)
        return true;
    return false;
  };
  return differs(node.op->inputs, column.inputs) || differs(node.op->outputs, column.outputs)
             ? DType::kF32
             : own;
}

}  // namespace npurt::compile::precision
