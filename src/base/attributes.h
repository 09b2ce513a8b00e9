// Attributes: the named constants of a node.
//
// A sorted small vector: nodes have few attributes. Names are those of the newest ONNX version of
// the operator; readers bring older forms into this one. Subgraphs are opaque here: `graph` holds
// them and knows their type.
//
// Thread safety: a value; reading from several threads is free.
#ifndef NPURT_BASE_ATTRIBUTES_H_
#define NPURT_BASE_ATTRIBUTES_H_

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/tensor.h"

namespace npurt {

// A graph inside a node (the branches of If, the body of Loop) as inference sees it. src/graph derives
// from it. Its types may name dimensions of the graph around it, and dimensions of its own.
class Subgraph {
 public:
  virtual ~Subgraph() = default;
  virtual std::size_t input_count() const = 0;
  virtual std::size_t capture_count() const = 0;
  virtual std::size_t output_count() const = 0;
  // REQUIRES: the index is below the count.
  virtual const ValueType& input_type(std::size_t i) const = 0;
  virtual const ValueType& capture_type(std::size_t i) const = 0;
  virtual const ValueType& output_type(std::size_t i) const = 0;
};

using AttributeValue =
    std::variant<std::int64_t, float, std::string, std::vector<std::int64_t>, std::vector<float>,
                 std::vector<std::string>, Tensor, std::vector<Tensor>,
                 std::shared_ptr<const Subgraph>, std::shared_ptr<const ValueType>>;

struct Attribute {
  std::string name;
  AttributeValue value;
};

class Attributes {
 public:
  void Set(absl::string_view name, AttributeValue value);
  void Remove(absl::string_view name);
  const AttributeValue* Find(absl::string_view name) const;
  bool Has(absl::string_view name) const { return Find(name) != nullptr; }
  const std::vector<Attribute>& all() const { return all_; }

  // The value, or `fallback` if the attribute is absent or of another type (schemas check types when
  // the node is added, so "of another type" does not happen later).
  std::int64_t Int(absl::string_view name, std::int64_t fallback = 0) const;
  float Float(absl::string_view name, float fallback = 0) const;
  std::string String(absl::string_view name, absl::string_view fallback = "") const;
  absl::Span<const std::int64_t> Ints(absl::string_view name) const;
  absl::Span<const float> Floats(absl::string_view name) const;
  absl::Span<const std::string> Strings(absl::string_view name) const;
  const Tensor* FindTensor(absl::string_view name) const;
  const Subgraph* FindGraph(absl::string_view name) const;

 private:
  std::vector<Attribute> all_;  // sorted by name
};

}  // namespace npurt

#endif  // NPURT_BASE_ATTRIBUTES_H_
