// FoldConstants: computes what depends on constants only, and infers again where that tells more.
//
// One walk in topological order: a node whose inputs became better known is inferred again; a pure
// node whose inputs are all constant is evaluated by its reference; a small integer tensor whose
// elements inference knows as numbers (a Shape of a static tensor) becomes a constant too.
//
// On devices that store floats otherwise than declared only integers and booleans are folded: float
// results must be rounded by the device's rules, not here.
#include "absl/strings/str_cat.h"
#include "compile/compile.h"
#include "compile/evaluate.h"

namespace npurt::compile {
namespace {

using graph::kNone;
using graph::Node;
using graph::NodeId;
using graph::ValueId;
using graph::ValueInfo;

// Results larger than this stay with the node that makes them, unless they replace inputs of at least that size.
constexpr std::size_t kMaxGrowthBytes = std::size_t{1} << 30;

absl::StatusOr<Tensor> TensorOfIntegers(DType dtype, const ValueInfo& value) {
  NPURT_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Create(dtype, ToDims(value.type.dims)));
  if (tensor.element_count() != static_cast<std::int64_t>(value.integers->size()))
    return absl::InternalError(absl::StrCat("'", value.name, "': number of integers"));
  const bool known = DispatchDType<kIntegers | kBools>(dtype, [&](auto type) {
    for (std::size_t i = 0; i < value.integers->size(); ++i)
      tensor.set(static_cast<std::int64_t>(i),
                 static_cast<decltype(type)>((*value.integers)[i].value()));
  });
  if (!known) return absl::InternalError(absl::StrCat("'", value.name, "': integers of a float"));
  return tensor;
}

bool Foldable(const PassContext& context, const Node& node) {
  if (graph::EffectsOf(node) != ops::kPure || node.op->reference == nullptr) return false;
  if (node.inputs.empty() && node.op->any_rank) return false;
  for (ValueId input : node.inputs) {
    if (input == kNone) continue;
    const ValueInfo& value = context.graph.value(input);
    if (!value.is_constant()) return false;
  }
  for (ValueId output : node.outputs) {
    if (output == kNone) continue;
    const ValueType& type = context.graph.value(output).type;
    if (type.kind != ValueKind::kTensor) return false;
    if (!context.options.device->capabilities().fast_kernels && IsFloat(type.dtype)) return false;
    if (type.has_rank && AllConstant(type.dims)) {
      auto count = ElementCount(ToDims(type.dims));
      std::size_t bytes;
      if (!count.ok() || !BytesOf(type.dtype, *count, &bytes) || bytes > kMaxGrowthBytes)
        return false;
    }
  }
  for (const Attribute& attribute : node.attributes.all())
    if (std::holds_alternative<std::shared_ptr<const Subgraph>>(attribute.value)) return false;
  return true;
}

}  // namespace

absl::StatusOr<int> FoldConstants(PassContext& context) {
  graph::Graph& graph = context.graph;
  NPURT_ASSIGN_OR_RETURN(const std::vector<NodeId> order, graph.Order());
  int changes = 0;
  std::vector<bool> better(graph.value_count(), false);
  for (NodeId id : order) {
    const Node& node = graph.node(id);
    bool again = false;
    for (ValueId input : node.inputs) again |= input != kNone && better[input];
    std::vector<std::string> before;
    if (again) {
      for (ValueId output : node.outputs)
        before.push_back(output == kNone ? std::string() : graph.value(output).type.ToString());
      NPURT_RETURN_IF_ERROR(graph.Infer(id));
      for (std::size_t i = 0; i < node.outputs.size(); ++i) {
        const ValueId output = node.outputs[i];
        if (output == kNone) continue;
        const ValueInfo& value = graph.value(output);
        if (value.integers.has_value() || value.type.ToString() != before[i])
          better[output] = true;
      }
    }
    if (Foldable(context, node)) {
      std::vector<Tensor> inputs;
      for (ValueId input : node.inputs)
        inputs.push_back(input == kNone ? Tensor() : graph.value(input).constant);
      absl::InlinedVector<bool, 4> wanted;
      for (ValueId output : node.outputs) wanted.push_back(output != kNone);
      auto results = Evaluate(*node.op, node.attributes, inputs, wanted);
      if (!results.ok()) {
        // What cannot be computed now fails at the same place when it runs, if it ever does.
        if (results.status().code() == absl::StatusCode::kInternal)
          return Annotate(results.status(), node.Where(graph));
        continue;
      }
      for (std::size_t i = 0; i < node.outputs.size(); ++i) {
        const ValueId output = node.outputs[i];
        if (output == kNone) continue;
        ValueInfo& value = graph.mutable_value(output);
        value.constant = std::move((*results)[i]);
        value.type = ValueType::OfTensor(value.constant.dtype(), ToSymDims(value.constant.dims()));
        value.integers.reset();
        better[output] = true;
      }
      graph.RemoveNode(id);
      ++changes;
      continue;
    }
    if (graph::EffectsOf(node) != ops::kPure) continue;
    bool all_known = !node.outputs.empty();
    for (ValueId output : node.outputs) {
      if (output == kNone) continue;
      const ValueInfo& value = graph.value(output);
      all_known &= value.integers.has_value() && AllConstant(*value.integers) &&
                   value.type.has_rank && AllConstant(value.type.dims);
    }
    if (!all_known) continue;
    for (ValueId output : node.outputs) {
      if (output == kNone) continue;
      ValueInfo& value = graph.mutable_value(output);
      NPURT_ASSIGN_OR_RETURN(value.constant, TensorOfIntegers(value.type.dtype, value));
      value.integers.reset();
      better[output] = true;
    }
    graph.RemoveNode(id);
    ++changes;
  }
  return changes;
}

absl::StatusOr<int> RemoveUnused(PassContext& context) {
  graph::Graph& graph = context.graph;
  NPURT_ASSIGN_OR_RETURN(const std::vector<NodeId> order, graph.Order());
  int changes = 0;
  for (auto id = order.rbegin(); id != order.rend(); ++id) {
    const Node& node = graph.node(*id);
    if ((graph::EffectsOf(node) & ops::kWritesState) != 0) continue;
    bool used = false;
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      const ValueId output = node.outputs[i];
      if (output == kNone) continue;
      if (!graph.value(output).uses.empty() || !context.MayVanish(output)) {
        used = true;
      } else if (i > 0) {
        // An optional output that nobody reads is not asked for.
        graph.mutable_value(output).producer = kNone;
        graph.mutable_node(*id).outputs[i] = kNone;
      }
    }
    if (used) continue;
    graph.RemoveNode(*id);
    ++changes;
  }
  return changes;
}

}  // namespace npurt::compile
