#include <utility>

#include "graph/graph.h"

namespace npurt::graph {
namespace {

void Translate(const DimTable& table, SymDims* dims) {
  for (Dim& dim : *dims) dim = table.Translate(dim);
}

ValueType Translated(const DimTable& table, ValueType type) {
  Translate(table, &type.dims);
  if (type.element != nullptr)
    type.element = std::make_shared<const ValueType>(Translated(table, *type.element));
  return type;
}

}  // namespace

std::unique_ptr<Graph> Graph::Clone() const { return CloneInto(dims_->Clone()); }

std::unique_ptr<Graph> Graph::CloneInto(const std::shared_ptr<DimTable>& dims) const {
  auto copy = std::make_unique<Graph>(*this);
  copy->dims_ = dims;
  for (ValueInfo& value : copy->values_) {
    value.type = Translated(*dims, std::move(value.type));
    if (value.integers.has_value()) Translate(*dims, &*value.integers);
  }
  for (Variable& variable : copy->variables_)
    variable.type = Translated(*dims, std::move(variable.type));
  for (Node& node : copy->nodes_) {
    std::vector<std::pair<std::string, std::shared_ptr<const Subgraph>>> inner;
    for (const Attribute& attribute : node.attributes.all())
      if (const auto* sub = std::get_if<std::shared_ptr<const Subgraph>>(&attribute.value))
        inner.emplace_back(attribute.name, static_cast<const Graph&>(**sub).CloneInto(dims));
    for (auto& [name, sub] : inner) node.attributes.Set(name, std::move(sub));
  }
  return copy;
}

}  // namespace npurt::graph
