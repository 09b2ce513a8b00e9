#include "base/attributes.h"

#include <algorithm>

namespace npurt {
namespace {

template <typename T>
const T* FindAs(const Attributes& attributes, absl::string_view name) {
  const AttributeValue* value = attributes.Find(name);
  return value == nullptr ? nullptr : std::get_if<T>(value);
}

bool Before(const Attribute& a, absl::string_view name) { return a.name < name; }

}  // namespace

void Attributes::Set(absl::string_view name, AttributeValue value) {
  auto it = std::lower_bound(all_.begin(), all_.end(), name, Before);
  if (it != all_.end() && it->name == name)
    it->value = std::move(value);
  else
    all_.insert(it, {std::string(name), std::move(value)});
}

void Attributes::Remove(absl::string_view name) {
  auto it = std::lower_bound(all_.begin(), all_.end(), name, Before);
  if (it != all_.end() && it->name == name) all_.erase(it);
}

const AttributeValue* Attributes::Find(absl::string_view name) const {
  auto it = std::lower_bound(all_.begin(), all_.end(), name, Before);
  return it != all_.end() && it->name == name ? &it->value : nullptr;
}

std::int64_t Attributes::Int(absl::string_view name, std::int64_t fallback) const {
  const auto* value = FindAs<std::int64_t>(*this, name);
  return value == nullptr ? fallback : *value;
}

float Attributes::Float(absl::string_view name, float fallback) const {
  const auto* value = FindAs<float>(*this, name);
  return value == nullptr ? fallback : *value;
}

std::string Attributes::String(absl::string_view name, absl::string_view fallback) const {
  const auto* value = FindAs<std::string>(*this, name);
  return value == nullptr ? std::string(fallback) : *value;
}

absl::Span<const std::int64_t> Attributes::Ints(absl::string_view name) const {
  const auto* value = FindAs<std::vector<std::int64_t>>(*this, name);
  return value == nullptr ? absl::Span<const std::int64_t>() : absl::MakeConstSpan(*value);
}

absl::Span<const float> Attributes::Floats(absl::string_view name) const {
  const auto* value = FindAs<std::vector<float>>(*this, name);
  return value == nullptr ? absl::Span<const float>() : absl::MakeConstSpan(*value);
}

absl::Span<const std::string> Attributes::Strings(absl::string_view name) const {
  const auto* value = FindAs<std::vector<std::string>>(*this, name);
  return value == nullptr ? absl::Span<const std::string>() : absl::MakeConstSpan(*value);
}

const Tensor* Attributes::FindTensor(absl::string_view name) const {
  return FindAs<Tensor>(*this, name);
}

const Subgraph* Attributes::FindGraph(absl::string_view name) const {
  const auto* value = FindAs<std::shared_ptr<const Subgraph>>(*this, name);
  return value == nullptr ? nullptr : value->get();
}

}  // namespace npurt
