#include "formats/onnx/names.h"

#include <functional>
#include <queue>

#include "base/hash_map.h"
#include "absl/strings/str_cat.h"

namespace npurt::formats::onnx {
namespace {

// Calls f(name) for each value that `node` reads, also inside its subgraphs.
template <typename F>
void ForEachRead(const NodeProto& node, F&& f) {
  for (absl::string_view input : node.inputs)
    if (!input.empty()) f(input);
  for (const AttributeProto& attribute : node.attributes)
    if (attribute.graph != nullptr)
      for (absl::string_view name : FreeNames(*attribute.graph)) f(name);
}

bool IsConstant(const NodeProto& node) {
  return node.op_type == "Constant" && (node.domain.empty() || node.domain == "ai.onnx");
}

}  // namespace

std::string Where(const NodeProto& node) {
  const std::string type = node.domain.empty() || node.domain == "ai.onnx"
                               ? std::string(node.op_type)
                               : absl::StrCat(node.domain, ".", node.op_type);
  if (!node.name.empty()) return absl::StrCat(type, " node '", node.name, "'");
  for (absl::string_view output : node.outputs)
    if (!output.empty()) return absl::StrCat(type, " node of '", output, "'");
  return absl::StrCat(type, " node");
}

std::vector<absl::string_view> FreeNames(const GraphProto& graph) {
  HashSet<absl::string_view> known;
  for (const ValueInfoProto& input : graph.inputs) known.insert(input.name);
  for (const NamedTensor& initializer : graph.initializers) known.insert(initializer.name);
  for (const NodeProto& node : graph.nodes) known.insert(node.outputs.begin(), node.outputs.end());
  std::vector<absl::string_view> free;
  const auto read = [&](absl::string_view name) {
    if (known.insert(name).second) free.push_back(name);
  };
  for (const NodeProto& node : graph.nodes) ForEachRead(node, read);
  for (const ValueInfoProto& output : graph.outputs)
    if (!output.name.empty()) read(output.name);
  return free;
}

absl::StatusOr<std::vector<int>> OrderNodes(absl::Span<const NodeProto> nodes) {
  const int count = static_cast<int>(nodes.size());
  HashMap<absl::string_view, int> producers;
  producers.reserve(nodes.size());
  std::vector<bool> replaced(nodes.size());
  for (int i = 0; i < count; ++i) {
    for (absl::string_view output : nodes[i].outputs) {
      if (output.empty()) continue;
      const auto [it, fresh] = producers.try_emplace(output, i);
      if (fresh) continue;
      // Exporters that mend a model leave the old constant in it: the last one counts.
      if (IsConstant(nodes[i]) && IsConstant(nodes[it->second])) {
        replaced[it->second] = true;
        it->second = i;
      } else {
        return absl::InvalidArgumentError(absl::StrCat(
            Where(nodes[i]), ": '", output, "' is also defined by ", Where(nodes[it->second])));
      }
    }
  }
  bool sorted = true;
  for (int i = 0; i < count && sorted; ++i)
    ForEachRead(nodes[i], [&](absl::string_view name) {
      const auto it = producers.find(name);
      sorted &= it == producers.end() || it->second < i;
    });
  std::vector<int> order;
  order.reserve(nodes.size());
  for (int i = 0; i < count; ++i)
    if (!replaced[i]) order.push_back(i);
  if (sorted) return order;
  const std::size_t live = order.size();

  std::vector<std::vector<int>> users(nodes.size());
  std::vector<int> waits_for(nodes.size(), 0);
  for (int i = 0; i < count; ++i)
    ForEachRead(nodes[i], [&](absl::string_view name) {
      const auto it = producers.find(name);
      if (it == producers.end()) return;
      users[it->second].push_back(i);
      ++waits_for[i];
    });
  std::priority_queue<int, std::vector<int>, std::greater<int>> ready;
  for (int i = 0; i < count; ++i)
    if (waits_for[i] == 0 && !replaced[i]) ready.push(i);
  order.clear();
  while (!ready.empty()) {
    const int i = ready.top();
    ready.pop();
    order.push_back(i);
    for (int user : users[i])
      if (--waits_for[user] == 0) ready.push(user);
  }
  if (order.size() == live) return order;
  // What still waits is in a cycle or behind one: going back from any of them ends in a cycle.
  int at = 0;
  while (waits_for[at] == 0) ++at;
  std::vector<bool> seen(nodes.size());
  while (!seen[at]) {
    seen[at] = true;
    int before = at;
    ForEachRead(nodes[at], [&](absl::string_view name) {
      const auto it = producers.find(name);
      if (it != producers.end() && waits_for[it->second] > 0) before = it->second;
    });
    at = before;
  }
  return absl::InvalidArgumentError(absl::StrCat(Where(nodes[at]), ": is part of a cycle"));
}

}  // namespace npurt::formats::onnx
