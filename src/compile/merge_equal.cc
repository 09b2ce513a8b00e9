// MergeEqualNodes: nodes that compute the same from the same are one node; so are small constants
// with the same bytes, which exporters write again for each reader.
//
// One walk in topological order: a node is known by its operator, its inputs (after the merges
// before it) and its attributes. Random and stateful nodes never merge, nor nodes with subgraphs.
#include <cstring>
#include <map>
#include <optional>

#include "absl/strings/str_cat.h"
#include "compile/compile.h"

namespace npurt::compile {
namespace {

using graph::Graph;
using graph::kNone;
using graph::Node;
using graph::NodeId;
using graph::ValueId;

constexpr std::size_t kMaxConstantBytes = 1024;

template <typename T>
void Append(std::string* key, const T& number) {
  key->append(reinterpret_cast<const char*>(&number), sizeof number);
}

void AppendText(std::string* key, absl::string_view text) {
  Append(key, text.size());
  key->append(text.data(), text.size());
}

template <typename List>
void AppendList(std::string* key, const List& list) {
  Append(key, list.size());
  for (const auto& item : list) {
    if constexpr (std::is_same_v<std::decay_t<decltype(item)>, std::string>)
      AppendText(key, item);
    else
      Append(key, item);
  }
}

bool AppendTensor(std::string* key, const Tensor& tensor) {
  if (tensor.dtype() == DType::kString || tensor.bytes() > kMaxConstantBytes) return false;
  Append(key, tensor.dtype());
  AppendList(key, tensor.dims());
  AppendText(key, {static_cast<const char*>(tensor.data()), tensor.bytes()});
  return true;
}

bool AppendAttribute(std::string* key, const Attribute& attribute) {
  AppendText(key, attribute.name);
  Append(key, attribute.value.index());
  return std::visit(
      [key](const auto& value) {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_arithmetic_v<T>) {
          Append(key, value);
        } else if constexpr (std::is_same_v<T, std::string>) {
          AppendText(key, value);
        } else if constexpr (std::is_same_v<T, Tensor>) {
          return AppendTensor(key, value);
        } else if constexpr (std::is_same_v<T, std::vector<std::int64_t>> ||
                             std::is_same_v<T, std::vector<float>> ||
                             std::is_same_v<T, std::vector<std::string>>) {
          AppendList(key, value);
        } else {
          return false;  // graphs, types and lists of tensors
        }
        return true;
      },
      attribute.value);
}

// What the results depend on; nothing if the node may not merge.
std::optional<std::string> KeyOf(const Node& node) {
  if (graph::EffectsOf(node) != ops::kPure || !node.control.empty()) return std::nullopt;
  std::string key;
  Append(&key, node.op);
  AppendList(&key, node.inputs);
  for (const Attribute& attribute : node.attributes.all())
    if (!AppendAttribute(&key, attribute)) return std::nullopt;
  return key;
}

void MergeConstants(Graph& graph) {
  std::map<std::string, ValueId> seen;
  for (ValueId id = 0; id < graph.value_count(); ++id) {
    const graph::ValueInfo& value = graph.value(id);
    std::string key;
    if (!value.is_constant() || value.uses.empty() || graph.IsOutput(id) ||
        !AppendTensor(&key, value.constant))
      continue;
    const auto [first, added] = seen.emplace(std::move(key), id);
    if (!added) graph.ReplaceUses(id, first->second);
  }
}

// `same` computes what `first` did already. False if an output of it must stay.
bool Merge(PassContext& context, NodeId first, NodeId same) {
  Graph& graph = context.graph;
  const auto outputs = graph.node(same).outputs;
  for (ValueId out : outputs)
    if (out != kNone && !context.MayVanish(out)) return false;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i] == kNone) continue;
    const auto& mine = graph.node(first).outputs;
    const ValueId known = i < mine.size() ? mine[i] : kNone;
    if (known == kNone) {
      graph.SetProducer(outputs[i], first, static_cast<int>(i));
      continue;
    }
    for (const std::string& origin : graph.value(outputs[i]).origins)
      graph.mutable_value(known).origins.push_back(origin);
    graph.ReplaceUses(outputs[i], known);
  }
  graph.MergeOrigins(first, same);
  graph.RemoveNode(same);
  return true;
}

}  // namespace

absl::StatusOr<int> MergeEqualNodes(PassContext& context) {
  MergeConstants(context.graph);
  NPURT_ASSIGN_OR_RETURN(const std::vector<NodeId> order, context.graph.Order());
  std::map<std::string, NodeId> seen;
  int changes = 0;
  for (NodeId id : order) {
    std::optional<std::string> key = KeyOf(context.graph.node(id));
    if (!key.has_value()) continue;
    const auto [first, added] = seen.emplace(*std::move(key), id);
    if (!added) changes += Merge(context, first->second, id);
  }
  return changes;
}

}  // namespace npurt::compile
