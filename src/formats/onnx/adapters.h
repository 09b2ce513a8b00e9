// Adapters: old forms of operators, brought into the newest one. See lower.h.
//
// Adapters look at the form rather than the version where they can (an attribute `axes` that is
// there is used), because files lie about versions, and some have none.
//
// Thread safety: functions on one graph.
#ifndef NPURT_FORMATS_ONNX_ADAPTERS_H_
#define NPURT_FORMATS_ONNX_ADAPTERS_H_

#include <initializer_list>
#include <utility>
#include <vector>

#include "formats/onnx/lower.h"

namespace npurt::formats::onnx {

// What an adapter works on: the node to come, and the graph for what stands around it.
class Lowering {
 public:
  Lowering(graph::Graph* graph, OnnxNode* node) : graph(graph), node(node) {}

  graph::Graph* const graph;
  OnnxNode* const node;
  // Set by an adapter that added everything itself, an entry per output of the node.
  std::vector<graph::ValueId> results;

  bool has_input(std::size_t i) const {
    return i < node->inputs.size() && node->inputs[i] != graph::kNone;
  }
  graph::ValueId input(std::size_t i) const {
    return has_input(i) ? node->inputs[i] : graph::kNone;
  }
  // The type of input `i`. REQUIRES: has_input(i).
  const ValueType& type(std::size_t i) const { return graph->value(node->inputs[i]).type; }
  // The rank of input `i`, or -1 if it is absent or its rank unknown.
  int rank(std::size_t i) const;
  // Grows the inputs if need be.
  void SetInput(std::size_t i, graph::ValueId value);

  // A constant beside the node, "<output>/<what>".
  absl::StatusOr<graph::ValueId> Constant(const char* what, Tensor value);
  absl::StatusOr<graph::ValueId> Ints(const char* what, absl::Span<const std::int64_t> values);
  absl::StatusOr<graph::ValueId> Int(const char* what, std::int64_t value);
  // A scalar (rank 0) of type `dtype`, a number type.
  absl::StatusOr<graph::ValueId> Scalar(const char* what, DType dtype, double value);
  // A node beside the node, with one output.
  absl::StatusOr<graph::ValueId> Add(const char* op, std::vector<graph::ValueId> inputs,
                                     Attributes attributes = {});
  // The same with several outputs.
  absl::StatusOr<std::vector<graph::ValueId>> AddMany(const char* op,
                                                      std::vector<graph::ValueId> inputs, int count,
                                                      Attributes attributes = {});
  // The last node: its output is output `i` of the node.
  absl::Status Finish(std::size_t i, const char* op, std::vector<graph::ValueId> inputs,
                      Attributes attributes = {});
  // `value`, of known rank, with its channels moved from the last dimension to the second, and back.
  absl::StatusOr<graph::ValueId> ChannelsFirst(graph::ValueId value);
  absl::StatusOr<graph::ValueId> ChannelsLast(graph::ValueId value);
  absl::Status FinishChannelsLast(graph::ValueId value);
  // Makes the attribute `name`, if it is there, int64 input `i`; and takes it away.
  absl::Status AttributeToInput(const char* name, std::size_t i);
  // The same for a float, as a scalar of the type of input 0.
  absl::Status FloatToInput(const char* name, std::size_t i);

 private:
  std::string FreeName(const char* what);
};

using Adapter = absl::Status (*)(Lowering& lowering);

Attributes MakeAttributes(std::initializer_list<std::pair<const char*, AttributeValue>> list);

// Declares an adapter per name in aliases.inc; each is defined in adapters_<theme>.cc. `Keep` does
// nothing.
#define NPURT_ALIAS(domain, name, since, until, type, adapter) \
  absl::Status adapter(Lowering& lowering);
namespace adapters {
#include "formats/onnx/aliases.inc"
}  // namespace adapters
#undef NPURT_ALIAS

}  // namespace npurt::formats::onnx

#endif  // NPURT_FORMATS_ONNX_ADAPTERS_H_
