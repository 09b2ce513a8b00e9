// Types: what a file declares about values, as ValueTypes.
//
// Declared types of graph inputs count; those of outputs are only compared with what was inferred.
// The inputs of a subgraph are between the two: their element types must be those of the values
// that the node around it hands in, and a dimension counts only if both say the same number,
// because exporters often write those of the first iteration. All others are symbols of their own.
//
// Thread safety: pure functions, but for the table of dimensions of the graph.
#ifndef NPURT_FORMATS_ONNX_TYPES_H_
#define NPURT_FORMATS_ONNX_TYPES_H_

#include <string>
#include <vector>

#include "formats/onnx/lower.h"
#include "formats/onnx/proto.h"

namespace npurt::formats::onnx {

// What the node around a subgraph hands in as one of its inputs.
struct BodyInput {
  ValueType type;       // of unknown element type where the node does not tell
  bool varies = false;  // another iteration may have another shape
};

// The type of a graph input. Dimensions without a number are symbols: of their name, or
// "<name>_dim_<i>". INVALID_ARGUMENT, UNIMPLEMENTED.
absl::StatusOr<ValueType> GraphInputType(const TypeProto& proto, const std::string& name,
                                         graph::Graph& graph);
// The same for a subgraph; `given` may be null. `name` is unique among all graphs of the model.
absl::StatusOr<ValueType> BodyInputType(const TypeProto& proto, const BodyInput* given,
                                        const std::string& name, graph::Graph& graph);
// The inputs of the subgraphs of `node` (Loop, Scan, SequenceMap, FlexAttention; none for others), a
// node of `graph`.
std::vector<BodyInput> BodyInputsOf(const OnnxNode& node, const graph::Graph& graph);
// INVALID_ARGUMENT if the declared type of an output contradicts the inferred one.
absl::Status CheckDeclared(const TypeProto& declared, const ValueType& found);
// The value of a Constant node, from whichever of its attributes it has.
absl::StatusOr<Tensor> ConstantValue(const AttributeValue& value);

}  // namespace npurt::formats::onnx

#endif  // NPURT_FORMATS_ONNX_TYPES_H_
