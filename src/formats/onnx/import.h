// Import: the messages of a model become a Graph.
//
// Nodes are added in an order in which each comes after what it reads, so that types are inferred
// on the way and old forms can be rewritten knowing ranks. Functions of the file are inlined: their
// inner values are named "<call>/<name>". Subgraphs (the branches of If, the body of Loop) become
// Graphs in attributes; what they read of enclosing graphs is an input of the node, after its own:
// the attribute `captures` says how many, and each subgraph of the node has that many captures(),
// in the same order. Constants are not captured but shared.
//
// A node that cannot be supported does not end the import: all of them are told in one error.
//
// Thread safety: pure function.
#ifndef NPURT_FORMATS_ONNX_IMPORT_H_
#define NPURT_FORMATS_ONNX_IMPORT_H_

#include <memory>

#include "formats/onnx/proto.h"
#include "graph/graph.h"
#include "ops/host_call.h"

namespace npurt::formats::onnx {

// INVALID_ARGUMENT: the model contradicts itself, with the node. UNIMPLEMENTED: nodes or versions
// that this library does not support, at most 50 by name. RESOURCE_EXHAUSTED: a limit.
// `host`: operators that the host adds; may be null.
absl::StatusOr<std::unique_ptr<graph::Graph>> ImportModel(const ModelProto& model,
                                                          const Limits& limits,
                                                          const ops::HostOperators* host = nullptr);

}  // namespace npurt::formats::onnx

#endif  // NPURT_FORMATS_ONNX_IMPORT_H_
