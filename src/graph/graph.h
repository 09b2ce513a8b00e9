// Graph: nodes, values, state and order: what to compute, before anyone decides how.
//
// Nodes and values live in tables and are named by index, so that passes can edit freely. A value
// has one producer: a node, the caller (input), or nobody (constant). Each node is checked against its
// operator and its outputs' types are inferred as it is added; passes infer again when they learn
// more. Names are those of the caller's graph; every node and value also keeps `origins`, the names
// in the caller's graph that it stands for, which passes carry over when they merge or replace.
//
// Control edges order nodes without data between them; resource values (Variable) carry state. A pass asks
// ops::Traits before it folds, merges or drops a node.
//
// Thread safety: one thread while it changes; const use from many threads.
#ifndef NPURT_GRAPH_GRAPH_H_
#define NPURT_GRAPH_GRAPH_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/hash_map.h"
#include "base/attributes.h"
#include "base/shape.h"
#include "base/status.h"
#include "base/tensor.h"
#include "ops/op_def.h"

namespace npurt::graph {

using ValueId = std::int32_t;
using NodeId = std::int32_t;
inline constexpr std::int32_t kNone = -1;

struct Use {
  NodeId node;
  int input;
  friend bool operator==(const Use& a, const Use& b) {
    return a.node == b.node && a.input == b.input;
  }
};

struct ValueInfo {
  std::string name;
  ValueType type;
  NodeId producer = kNone;
  int producer_output = 0;
  std::vector<Use> uses;
  // A constant's value, also of values that inference or folding found out; undefined() otherwise.
  Tensor constant;
  // Elements of a small integer tensor as dimensions, where known (see InferContext::integers).
  std::optional<SymDims> integers;
  std::vector<std::string> origins;
  bool is_input = false;
  bool is_constant() const { return constant.defined(); }
};

struct Node {
  const ops::OpDef* op = nullptr;
  std::string name;      // may be empty
  std::string original_op;  // framework type, e.g. "Conv" of ONNX, for option files and messages
  std::vector<ValueId> inputs;   // kNone: absent optional
  std::vector<ValueId> outputs;  // kNone: not wanted
  Attributes attributes;
  std::vector<NodeId> control;  // nodes that must have run before this one
  std::vector<std::string> origins;
  bool removed = false;

  // "Conv node 'conv1'", or by its first output if it has no name.
  std::string Where(const class Graph& graph) const;
};

// What AddNode takes.
struct NodeSpec {
  std::string op;  // a name in ops::AllOps()
  std::string name;
  std::string original_op;  // empty: the same as op
  std::vector<ValueId> inputs;
  std::vector<std::string> outputs;  // names; an empty one is not wanted
  Attributes attributes;
  std::vector<NodeId> control;
};

struct Variable {
  std::string name;
  ValueType type;
  Tensor initial;  // undefined: must be assigned first
  ValueId handle = kNone;
};

class Graph : public Subgraph {
 public:
  // A graph shares its table of dimensions with its subgraphs.
  explicit Graph(std::shared_ptr<DimTable> dims = std::make_shared<DimTable>());

  std::string name;

  // A copy that shares constants but has its own table of dimensions (of subgraphs too), so that
  // passes over it disturb nobody.
  std::unique_ptr<Graph> Clone() const;

  // Adds a graph input. Dimensions are symbols of dims() or numbers. ALREADY_EXISTS if the name
  // is taken.
  absl::StatusOr<ValueId> AddInput(const std::string& name, ValueType type);
  absl::StatusOr<ValueId> AddConstant(const std::string& name, Tensor value);
  // Checks the node and infers the types of its outputs. The id of the node; its outputs are
  // node(id).outputs. Errors say which node.
  absl::StatusOr<NodeId> AddNode(NodeSpec spec);
  absl::Status AddOutput(ValueId value, const std::string& name);
  absl::StatusOr<ValueId> AddVariable(const std::string& name, ValueType type, Tensor initial);
  // A captured value: the name of an outer graph's value seen in a subgraph. Acts as an input.
  absl::StatusOr<ValueId> AddCapture(const std::string& name, ValueType type);

  const std::shared_ptr<DimTable>& dims() const { return dims_; }
  int node_count() const { return static_cast<int>(nodes_.size()); }
  int value_count() const { return static_cast<int>(values_.size()); }
  const Node& node(NodeId id) const { return nodes_[id]; }
  Node& mutable_node(NodeId id) { return nodes_[id]; }
  const ValueInfo& value(ValueId id) const { return values_[id]; }
  ValueInfo& mutable_value(ValueId id) { return values_[id]; }
  ValueId Find(const std::string& name) const;  // kNone if there is no such value
  const std::vector<ValueId>& inputs() const { return inputs_; }
  const std::vector<ValueId>& captures() const { return captures_; }
  std::size_t input_count() const override { return inputs_.size(); }
  std::size_t capture_count() const override { return captures_.size(); }
  std::size_t output_count() const override { return outputs_.size(); }
  const ValueType& input_type(std::size_t i) const override { return values_[inputs_[i]].type; }
  const ValueType& capture_type(std::size_t i) const override { return values_[captures_[i]].type; }
  const ValueType& output_type(std::size_t i) const override { return values_[outputs_[i]].type; }
  const std::vector<ValueId>& outputs() const { return outputs_; }
  const std::vector<std::string>& output_names() const { return output_names_; }
  const std::vector<Variable>& variables() const { return variables_; }
  bool IsOutput(ValueId id) const;

  // The dimension called `name`, or a fresh one if the name says nothing ("", "?", "None", "unk…").
  Dim NamedDim(const std::string& name, const std::string& fallback);

  // --- for passes -------------------------------------------------------------------------------
  // Runs inference of one node again with what is known now. Keeps the old type of an output if the
  // new one says less.
  absl::Status Infer(NodeId id);
  // All users of `from` read `to` instead; graph outputs too.
  void ReplaceUses(ValueId from, ValueId to);
  void SetInput(NodeId node, int input, ValueId value);  // grows the list if need be
  // Unlinks a node. Its outputs must have no uses.
  void RemoveNode(NodeId id);
  // Moves the production of `value` to output `index` of `node`.
  void SetProducer(ValueId value, NodeId node, int index);
  // A node without inference, for passes: outputs are existing values or kNone.
  NodeId AddRawNode(const ops::OpDef* op, std::string name, std::vector<ValueId> inputs,
                    std::vector<ValueId> outputs, Attributes attributes);
  ValueId AddRawValue(std::string name, ValueType type);
  // `captures` is a permutation of captures().
  void SetCaptureOrder(std::vector<ValueId> captures) { captures_ = std::move(captures); }
  void SetGraphInputType(ValueId id, ValueType type) { values_[id].type = std::move(type); }
  // Forgets what inference found and infers every node again, from the types of inputs and captures.
  absl::Status InferAgain();
  // Live nodes, each after what it reads and what its control edges name. INVALID_ARGUMENT if
  // there is a cycle. Stable: keeps the order of addition where it can.
  absl::StatusOr<std::vector<NodeId>> Order() const;
  // Adds the origins of `from` to `to`, without doubles.
  void MergeOrigins(NodeId to, NodeId from);

 private:
  std::unique_ptr<Graph> CloneInto(const std::shared_ptr<DimTable>& dims) const;
  absl::StatusOr<ValueId> NewValue(const std::string& name, ValueType type);

  std::shared_ptr<DimTable> dims_;
  std::vector<Node> nodes_;
  std::vector<ValueInfo> values_;
  HashMap<std::string, ValueId> by_name_;
  std::vector<ValueId> inputs_, captures_, outputs_;
  std::vector<std::string> output_names_;
  std::vector<Variable> variables_;
};

// The operator's traits and those of all nodes in the node's subgraphs.
ops::Traits EffectsOf(const Node& node);

// Infers one node without a graph around it: used by Graph and, with concrete shapes, by the
// binder of steps whose shapes only the run tells.
struct InferInput {
  const ValueType* type = nullptr;  // null: absent
  const Tensor* constant = nullptr;
  const std::optional<SymDims>* integers = nullptr;
};
struct InferOutput {
  ValueType type;
  std::optional<SymDims> integers;
};
// `wanted[i]` says whether output i is named. `dims` makes RunDim(); null: RunDim() is
// Dim(kInvalidDim), and `unknown` is set to true in the result.
struct InferResult {
  std::vector<InferOutput> outputs;
  bool unknown = false;
};
absl::StatusOr<InferResult> InferNode(const ops::OpDef& op, const Attributes& attributes,
                                      absl::Span<const InferInput> inputs,
                                      absl::Span<const bool> wanted, DimTable* dims,
                                      const std::string& run_dim_prefix);

}  // namespace npurt::graph

#endif  // NPURT_GRAPH_GRAPH_H_
