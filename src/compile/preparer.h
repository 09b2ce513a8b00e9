// Preparer: what an operator sees while it chooses its kernel and packs its weights, and what it
// said.
//
// Thread safety: used by one thread.
#ifndef NPURT_COMPILE_PREPARER_H_
#define NPURT_COMPILE_PREPARER_H_

#include <memory>
#include <vector>

#include "compile/compile.h"
#include "graph/graph.h"
#include "memory/shared_bytes.h"
#include "ops/op_def.h"

namespace npurt::compile {

class Preparer final : public ops::PrepareContext {
 public:
  Preparer(const graph::Graph& graph, const graph::Node& node, const CompileOptions& options)
      : graph_(graph), node_(node), options_(options) {}

  int input_count() const override { return static_cast<int>(node_.inputs.size()); }
  bool has_input(int i) const override {
    return i < input_count() && node_.inputs[i] != graph::kNone;
  }
  const ValueType& type(int i) const override { return graph_.value(node_.inputs[i]).type; }
  const ValueType& output_type(int i) const override { return graph_.value(node_.outputs[i]).type; }
  const Tensor* constant(int i) const override {
    if (!has_input(i)) return nullptr;
    const graph::ValueInfo& value = graph_.value(node_.inputs[i]);
    return value.is_constant() ? &value.constant : nullptr;
  }
  const Attributes& attributes() const override { return node_.attributes; }
  IsaSet isa() const override { return options_.isa; }
  bool same_bits_on_every_isa() const override { return options_.same_bits_on_every_isa; }
  absl::StatusOr<ops::PackedBuffer> Pack(std::size_t bytes,
                                         absl::FunctionRef<void(void* data)> fill) override {
    NPURT_ASSIGN_OR_RETURN(std::shared_ptr<void> data,
                           memory::ShareBytes(options_.packed_allocator, bytes,
                                              memory::Kind::kPacked, fill));
    packed_bytes += bytes;
    return ops::PackedBuffer{std::move(data)};
  }
  void DropConstant(int i) override { dropped.push_back(i); }

  std::vector<int> dropped;
  std::size_t packed_bytes = 0;

 private:
  const graph::Graph& graph_;
  const graph::Node& node_;
  const CompileOptions& options_;
};

}  // namespace npurt::compile

#endif  // NPURT_COMPILE_PREPARER_H_
