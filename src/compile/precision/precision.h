// Precision: which element types each node computes in, decided before anything is changed, and the
// casts that follow from it.
//
// A node has columns: combinations of the types of its operands that its engine computes. They are
// filtered operand by operand, inputs first, those with a producer before constants; each filter
// takes the first type that it wants and that a column still offers. What a filter wants follows
// from the mode, from the operator's list (white: lowered, black: kept, gray: as what feeds it) and
// from the type already decided for the value that comes in. Nodes are visited in topological
// order, so that "what feeds it" is always decided; see ARCHITECTURE.md.
//
// Decide reads a graph and makes a plan; Apply changes the graph as the plan says. Graph inputs,
// outputs, and everything at the boundary of a subgraph keep their types.
//
// Thread safety: pure functions, and values.
#ifndef NPURT_COMPILE_PRECISION_PRECISION_H_
#define NPURT_COMPILE_PRECISION_PRECISION_H_

#include <memory>
#include <string>
#include <vector>

#include "base/hash_map.h"
#include "base/status.h"
#include "graph/graph.h"
#include "ops/ops_info.h"
#include "options/files.h"
#include "options/options.h"

namespace npurt::compile::precision {

// By the names of precision_mode.
enum class Mode {
  kKeepOrigin,       // must_keep_origin_dtype
  kForceFp16,        // force_fp16
  kCubeFp32,         // cube_fp16in_fp32out
  kForceFp32,        // force_fp32 of the older document
  kAllowFp32ToFp16,  // allow_fp32_to_fp16
  kAllowFp32ToBf16,  // allow_fp32_to_bf16
  kMixFp16,          // allow_mix_precision_fp16
  kMixBf16,          // allow_mix_precision_bf16
};
absl::string_view NameOf(Mode mode);

struct Settings {
  Mode mode = Mode::kKeepOrigin;
  std::string option;  // what was set: "precision_mode_v2=mixed_float16"
  // The older document's meaning: allow_fp32_to_fp16 does not lower matrix operators, mixed
  // precision does not lower bfloat16.
  bool older = false;
  HashMap<std::string, ops::PrecisionReduce> lists;  // what modify_mixlist says, by type
  std::vector<options::CustomDtypes::Entry> custom;  // of customize_dtypes
  std::shared_ptr<const options::OpsInfo> info;      // stands above the built-in one; may be null
  std::vector<std::string> warnings;                 // about the files
  // Implementation modes: whether a node has high_precision, by name, by type, or all others.
  HashMap<std::string, bool> precise_names, precise_types;
  bool precise = false;

  bool keeps_all() const { return mode == Mode::kKeepOrigin && info == nullptr; }
  // Options name this node or its type: rules of fusion that come before the decision leave it
  // alone.
  bool Names(const graph::Node& node) const;
  // The node computes in double precision, by its reference: one of the operators that gain by it (sums,
  // and functions that are no arithmetic) under high_precision.
  bool IsPrecise(const graph::Node& node) const;
};

// Reads the files that the options name. INVALID_ARGUMENT: a list that contradicts itself.
absl::StatusOr<Settings> ReadSettings(const options::Options& options);

struct OperandPlan {
  graph::ValueId value = graph::kNone;  // kNone: absent
  DType original = DType::kUndefined;   // undefined: no tensor
  DType chosen = DType::kUndefined;
  std::string why;
};

struct NodePlan {
  graph::NodeId node = graph::kNone;
  ops::PrecisionReduce list = ops::PrecisionReduce::kGray;
  ops::Engine engine = ops::Engine::kAiCore;
  std::vector<OperandPlan> inputs, outputs;
  std::string rule;      // what decided, in words
  std::string producer;  // the node whose type a gray node follows, if there is one
  std::string warning;
  bool changes() const;
};

// In topological order.
struct Plan {
  std::vector<NodePlan> nodes;
};

// INVALID_ARGUMENT: customize_dtypes wants what cannot be; UNIMPLEMENTED: no engine computes a node
// in a type that the mode allows. Errors say which node, what was wanted and what there is.
absl::StatusOr<Plan> Decide(const graph::Graph& graph, const Settings& settings);

struct InsertedCast {
  std::string value;  // the name of what is cast
  DType from = DType::kUndefined, to = DType::kUndefined;
  std::string producer;                // the node that makes it; "" for inputs and constants
  std::vector<std::string> consumers;  // nodes; "" for an output of the graph
  bool constant = false;               // folding computes it while loading
};

// One Cast serves all consumers of a value in a type; a cast of what a cast of the caller makes
// reads what that one reads, unless Cast is on the black list.
std::vector<InsertedCast> Apply(const Plan& plan, const Settings& settings, graph::Graph* graph);

// What was decided in a graph, by names: the graph goes on to change.
struct Report {
  std::string path;  // "" or the subgraph: "loop_1/body"
  struct Operand {
    std::string value;
    DType original, chosen;
    std::string why;
  };
  struct Node {
    std::string name, op, type;
    std::vector<std::string> origins;
    std::string list, engine, rule, producer, warning;
    std::vector<Operand> inputs, outputs;
  };
  std::vector<Node> nodes;
  std::vector<InsertedCast> casts;
};
// What origin means for a graph and its subgraphs.
std::vector<Report> DescribeOrigin(const graph::Graph& graph);
Report Describe(const graph::Graph& graph, const Plan& plan);

// The name of a node in reports: its own, or that of its first output.
std::string NodeName(const graph::Graph& graph, const graph::Node& node);

// --- columns (columns.cc)
// -------------------------------------------------------------------------

struct Column {
  absl::InlinedVector<DType, 4> inputs, outputs;
};
// The combinations of types that `engine` computes this node in; the node's own types come first.
// What is no floating tensor has its own type in all of them.
std::vector<Column> ColumnsOf(const graph::Graph& graph, const graph::Node& node,
                              ops::Engine engine, const options::OpsInfo* info);
// The type that the node computes operand `i` in, given a column: where operands that share a type
// variable differ, the widest.
DType ComputeType(const graph::Node& node, const Column& column, bool output, std::size_t i);

}  // namespace npurt::compile::precision

#endif  // NPURT_COMPILE_PRECISION_PRECISION_H_
