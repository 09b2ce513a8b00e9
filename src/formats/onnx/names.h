// Names: what reads what in a list of nodes, before any of them is built.
//
// Thread safety: pure functions.
#ifndef NPURT_FORMATS_ONNX_NAMES_H_
#define NPURT_FORMATS_ONNX_NAMES_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "formats/onnx/proto.h"

namespace npurt::formats::onnx {

// "Conv node 'conv1'", or by its first output if it has no name.
std::string Where(const NodeProto& node);

// The names that `graph` reads and does not define: those of enclosing graphs. In order of first
// use, each once.
std::vector<absl::string_view> FreeNames(const GraphProto& graph);

// An order of `nodes` in which each comes after what it reads, their own if that is one. Linear.
// INVALID_ARGUMENT: a value is defined twice, or there is a cycle.
absl::StatusOr<std::vector<int>> OrderNodes(absl::Span<const NodeProto> nodes);

}  // namespace npurt::formats::onnx

#endif  // NPURT_FORMATS_ONNX_NAMES_H_
