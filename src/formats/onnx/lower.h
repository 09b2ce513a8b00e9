// Lower: one node of an ONNX graph, of any version, becomes nodes in their newest form.
//
// aliases.inc says which (domain, name, versions) have a libnpurt type of another name or an older
// form, and which adapter brings them up to date; an operator without a row is already in the
// newest form and its type is its name. An adapter edits the node (attributes become inputs,
// defaults of old versions are written out) and may add nodes before or after it.
//
// Thread safety: as for Graph.
#ifndef NPURT_FORMATS_ONNX_LOWER_H_
#define NPURT_FORMATS_ONNX_LOWER_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "graph/graph.h"
#include "ops/host_call.h"

namespace npurt::formats::onnx {

inline constexpr int kNewestOpset = 28;   // of the default domain
inline constexpr int kNewestMlOpset = 5;  // of ai.onnx.ml

struct OnnxNode {
  std::string domain;  // "" is ONNX's own; see CanonicalDomain
  std::string type;
  int version = 0;  // of the domain's operator set; 0: the newest
  std::string name;
  std::vector<graph::ValueId> inputs;  // graph::kNone: absent
  std::vector<std::string> outputs;    // "": not wanted
  Attributes attributes;
};

struct Lowered {
  graph::NodeId node = graph::kNone;    // the last one added
  std::vector<graph::ValueId> outputs;  // kNone: not wanted, or not to be had (see below)
};

// "ai.onnx" is "".
absl::string_view CanonicalDomain(absl::string_view domain);

// INVALID_ARGUMENT: no version of an operator set; UNIMPLEMENTED: newer than what is known.
absl::Status CheckOpset(absl::string_view domain, std::int64_t version);

// UNIMPLEMENTED if neither the host (may be null) nor this library has such an operator (whatever
// its node looks like).
absl::Status CheckOperator(absl::string_view domain, absl::string_view type, int version,
                           const ops::HostOperators* host = nullptr);

// Adds the node. Outputs that only training yields (the statistics of an old BatchNormalization)
// are kNone though they were wanted. UNIMPLEMENTED: an operator, attribute or old form that this
// library does not have; nodes that were already added then stay, unused.
// The host's operators (may be null) come first.
absl::StatusOr<Lowered> AddOnnxNode(graph::Graph* graph, OnnxNode node,
                                    const ops::HostOperators* host = nullptr);

}  // namespace npurt::formats::onnx

#endif  // NPURT_FORMATS_ONNX_LOWER_H_
