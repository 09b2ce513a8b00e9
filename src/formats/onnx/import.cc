#include "formats/onnx/import.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/hash_map.h"
#include "formats/onnx/lower.h"
#include "formats/onnx/names.h"
#include "formats/onnx/types.h"
#include "formats/onnx/unsupported.h"

namespace npurt::formats::onnx {
namespace {

using graph::kNone;
using graph::ValueId;

// A value that a node without support would have made: what reads it is passed over.
constexpr ValueId kUnsupported = -2;
// An output that only training yields: reading it is not supported.
constexpr ValueId kUnavailable = -3;

using Opsets = HashMap<absl::string_view, int>;

struct Scope;

struct Argument {
  const AttributeProto* attribute = nullptr;
  Scope* scope = nullptr;  // where the names in its subgraph are looked up
};

// The names of one list of nodes: of a graph, a subgraph or an inlined function.
struct Scope {
  graph::Graph* graph = nullptr;
  const Opsets* opsets = nullptr;
  HashMap<absl::string_view, ValueId> names;
  // Of a function: what stands before its names, the caller's names of its outputs, its attributes,
  // and the outermost call's name.
  bool is_function = false;
  std::string prefix;
  HashMap<absl::string_view, std::string> output_names;
  HashMap<absl::string_view, Argument> arguments;
  std::string origin;
};

struct FunctionInfo {
  const FunctionProto* proto;
  Opsets opsets;
};

class Importer {
 public:
  Importer(const ModelProto& model, const Limits& limits, const ops::HostOperators* host)
      : model_(model), limits_(limits), host_(host), nodes_left_(limits.max_nodes) {}

  absl::StatusOr<std::unique_ptr<graph::Graph>> Import() {
    NPURT_RETURN_IF_ERROR(ReadOpsets(model_.opset_imports, &opsets_));
    for (const FunctionProto& function : model_.functions) {
      FunctionInfo info{&function, {}};
      NPURT_RETURN_IF_ERROR(Annotate(ReadOpsets(function.opset_imports, &info.opsets),
                                     absl::StrCat("function '", function.name, "'")));
      if (!functions_.emplace(Key(function.domain, function.name, function.overload), info).second)
        return absl::InvalidArgumentError(
            absl::StrCat("function '", function.name, "' is defined twice"));
    }
    auto graph = std::make_unique<graph::Graph>();
    Scope scope;
    scope.graph = graph.get();
    scope.opsets = &opsets_;
    NPURT_RETURN_IF_ERROR(ReadGraph(model_.graph, nullptr, &scope));
    NPURT_RETURN_IF_ERROR(unsupported_.ToStatus());
    return graph;
  }

 private:
  static std::string Key(absl::string_view domain, absl::string_view name,
                         absl::string_view overload) {
    return absl::StrCat(CanonicalDomain(domain), "\n", name, "\n", overload);
  }

  static absl::Status ReadOpsets(const std::vector<OpsetImport>& imports, Opsets* opsets) {
    for (const OpsetImport& import : imports) {
      const absl::string_view domain = CanonicalDomain(import.domain);
      NPURT_RETURN_IF_ERROR(CheckOpset(domain, import.version));
      (*opsets)[domain] = static_cast<int>(import.version);
    }
    return absl::OkStatus();
  }

  // Version 1 where the file does not say: files of the first versions had no field for it.
  static int VersionOf(const Scope& scope, absl::string_view domain) {
    const auto it = scope.opsets->find(domain);
    return it == scope.opsets->end() ? 1 : it->second;
  }

  static absl::Status Define(Scope* scope, absl::string_view name, ValueId id) {
    if (name.empty() || scope->names.emplace(name, id).second) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("value '", name, "' is defined twice"));
  }

  // What the value `name` of `scope` is called in the graph. Names that were made up meanwhile (in
  // functions, by adapters) step aside.
  static std::string NameInGraph(const Scope& scope, absl::string_view name) {
    if (name.empty()) return "";
    const auto output = scope.output_names.find(name);
    std::string full =
        output != scope.output_names.end() ? output->second : absl::StrCat(scope.prefix, name);
    while (scope.graph->Find(full) != kNone)
      absl::StrAppend(&full, "#", scope.graph->value_count());
    return full;
  }

  // --- Graphs -----------------------------------------------------------------------------------

  // `outer`: the types of the inputs as the node around this subgraph has them; null: main graph.
  absl::Status ReadGraph(const GraphProto& proto, const std::vector<BodyInput>* outer,
                         Scope* scope) {
    graph::Graph& graph = *scope->graph;
    graph.name = std::string(proto.name);
    HashSet<absl::string_view> constants;
    for (const NamedTensor& initializer : proto.initializers) constants.insert(initializer.name);
    const std::string place =
        outer == nullptr ? "" : absl::StrCat(proto.name, "#", ++subgraphs_, "/");
    std::size_t index = 0;
    for (const ValueInfoProto& input : proto.inputs) {
      const BodyInput* const given =
          outer != nullptr && index < outer->size() ? &(*outer)[index] : nullptr;
      ++index;
      // An input with a value of its own is a constant: nobody can feed it here.
      if (constants.contains(input.name)) continue;
      auto type = outer == nullptr
                      ? GraphInputType(input.type, std::string(input.name), graph)
                      : BodyInputType(input.type, given, absl::StrCat(place, input.name), graph);
      if (!type.ok()) return Annotate(type.status(), absl::StrCat("input '", input.name, "'"));
      NPURT_ASSIGN_OR_RETURN(const ValueId id,
                             graph.AddInput(std::string(input.name), *std::move(type)));
      NPURT_RETURN_IF_ERROR(Define(scope, input.name, id));
    }
    for (const NamedTensor& initializer : proto.initializers) {
      if (initializer.name.empty()) return absl::InvalidArgumentError("an initializer has no name");
      NPURT_ASSIGN_OR_RETURN(const ValueId id,
                             graph.AddConstant(std::string(initializer.name), initializer.tensor));
      NPURT_RETURN_IF_ERROR(Define(scope, initializer.name, id));
    }
    NPURT_RETURN_IF_ERROR(ReadNodes(proto.nodes, scope));
    HashSet<absl::string_view> seen;
    for (const ValueInfoProto& output : proto.outputs) {
      if (outer == nullptr && !seen.insert(output.name).second)
        return absl::InvalidArgumentError(
            absl::StrCat("output '", output.name, "' is there twice"));
      NPURT_RETURN_IF_ERROR(ReadOutput(output, scope));
    }
    return absl::OkStatus();
  }

  absl::Status ReadOutput(const ValueInfoProto& output, Scope* scope) {
    const auto it = scope->names.find(output.name);
    if (it == scope->names.end() || it->second == kNone)
      return absl::InvalidArgumentError(
          absl::StrCat("output '", output.name, "': no node makes it"));
    if (it->second == kUnavailable)
      unsupported_.Add(absl::StrCat("output '", output.name, "'"), "only training yields it");
    if (it->second < 0) return absl::OkStatus();
    const ValueType& found = scope->graph->value(it->second).type;
    NPURT_RETURN_IF_ERROR(
        Annotate(CheckDeclared(output.type, found), absl::StrCat("output '", output.name, "'")));
    return scope->graph->AddOutput(it->second, std::string(output.name));
  }

  absl::Status ReadNodes(const std::vector<NodeProto>& nodes, Scope* scope) {
    NPURT_ASSIGN_OR_RETURN(const std::vector<int> order, OrderNodes(nodes));
    scope->names.reserve(scope->names.size() + nodes.size());
    for (int i : order) {
      if (nodes_left_-- <= 0)
        return absl::ResourceExhaustedError(
            absl::StrCat("the model has more than ", limits_.max_nodes, " nodes"));
      NPURT_RETURN_IF_ERROR(ReadNode(nodes[static_cast<std::size_t>(i)], scope));
    }
    return absl::OkStatus();
  }

  // --- Nodes ------------------------------------------------------------------------------------

  absl::Status ReadNode(const NodeProto& node, Scope* scope) {
    if (node.outputs.empty())
      return absl::InvalidArgumentError(absl::StrCat(Where(node), ": has no outputs"));
    OnnxNode onnx;
    bool known = true;  // all inputs are there
    for (absl::string_view input : node.inputs) {
      ValueId id = kNone;
      if (!input.empty()) {
        const auto it = scope->names.find(input);
        if (it == scope->names.end())
          return absl::InvalidArgumentError(
              absl::StrCat(Where(node), ": input '", input, "' is nowhere defined"));
        id = it->second;
      }
      if (id == kUnavailable)
        unsupported_.Add(Where(node),
                         absl::StrCat("reads '", input, "', which only training yields"));
      known &= id >= kNone;
      onnx.inputs.push_back(id);
    }
    const absl::string_view domain = CanonicalDomain(node.domain);
    if (!functions_.empty()) {
      const auto function = functions_.find(Key(domain, node.op_type, node.overload));
      if (function != functions_.end())
        return Inline(node, function->second, std::move(onnx.inputs), scope);
    }
    NPURT_ASSIGN_OR_RETURN(const std::vector<Bound> attributes, BindAttributes(node, scope));
    if (domain.empty() && node.op_type == "Constant")
      return Annotate(ReadConstant(node, attributes, scope), Where(node));

    onnx.domain = std::string(domain);
    onnx.type = std::string(node.op_type);
    onnx.version = VersionOf(*scope, domain);
    if (!node.name.empty()) onnx.name = absl::StrCat(scope->prefix, node.name);
    bool has_subgraphs = false;
    for (const Bound& bound : attributes) {
      if (bound.attribute->graph != nullptr) {
        has_subgraphs = true;
      } else if (bound.name == "captures") {  // ours, see ReadSubgraphs
        unsupported_.Add(Where(node), "attribute 'captures'");
        return Forget(node, scope);
      } else if (bound.attribute->supported) {
        onnx.attributes.Set(bound.name, bound.attribute->value);
      } else {
        unsupported_.Add(Where(node), absl::StrCat("attribute '", bound.name, "' is a list of ",
                                                   "graphs, types or sparse tensors"));
        return Forget(node, scope);
      }
    }
    if (has_subgraphs) {
      auto ready = ReadSubgraphs(attributes, *scope, &onnx);
      if (ready.status().code() == absl::StatusCode::kUnimplemented) {
        unsupported_.Add(Where(node), ready.status().message());
        return Forget(node, scope);
      }
      if (!ready.ok()) return Annotate(ready.status(), Where(node));
      known &= *ready;
    }
    const absl::Status exists = CheckOperator(domain, onnx.type, onnx.version, host_);
    if (!exists.ok()) unsupported_.Add(Where(node), exists.message());
    if (!exists.ok() || !known) return Forget(node, scope);

    onnx.outputs.reserve(node.outputs.size());
    for (absl::string_view output : node.outputs)
      onnx.outputs.push_back(NameInGraph(*scope, output));
    const int first = scope->graph->node_count();
    auto lowered = AddOnnxNode(scope->graph, std::move(onnx), host_);
    if (lowered.status().code() == absl::StatusCode::kUnimplemented) {
      unsupported_.Add(Where(node), lowered.status().message());
      return Forget(node, scope);
    }
    if (!lowered.ok()) return AnnotateOnce(lowered.status(), node);
    for (int id = first; !scope->origin.empty() && id < scope->graph->node_count(); ++id)
      scope->graph->mutable_node(id).origins.push_back(scope->origin);
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      const ValueId id = i < lowered->outputs.size() ? lowered->outputs[i] : kNone;
      NPURT_RETURN_IF_ERROR(
          Annotate(Define(scope, node.outputs[i], id == kNone ? kUnavailable : id), Where(node)));
    }
    return absl::OkStatus();
  }

  // Graph::AddNode says which node by itself; adapters do not.
  static absl::Status AnnotateOnce(const absl::Status& status, const NodeProto& node) {
    const absl::string_view message = status.message();
    const std::string type = absl::StrCat(node.op_type, " node");
    return message.substr(0, type.size()) == type ? status : Annotate(status, Where(node));
  }

  // The outputs of a node without support.
  static absl::Status Forget(const NodeProto& node, Scope* scope) {
    for (absl::string_view output : node.outputs)
      NPURT_RETURN_IF_ERROR(Annotate(Define(scope, output, kUnsupported), Where(node)));
    return absl::OkStatus();
  }

  struct Bound {
    absl::string_view name;
    const AttributeProto* attribute;
    Scope* scope;
  };

  // The attributes of a node, with references to those of the function around it resolved.
  static absl::StatusOr<std::vector<Bound>> BindAttributes(const NodeProto& node, Scope* scope) {
    std::vector<Bound> bound;
    bound.reserve(node.attributes.size());
    for (const AttributeProto& attribute : node.attributes) {
      if (attribute.ref_attr_name.empty()) {
        bound.push_back({attribute.name, &attribute, scope});
        continue;
      }
      if (!scope->is_function)
        return absl::InvalidArgumentError(absl::StrCat(Where(node), ": attribute '", attribute.name,
                                                       "' refers to '", attribute.ref_attr_name,
                                                       "', but this is no function"));
      const auto it = scope->arguments.find(attribute.ref_attr_name);
      if (it != scope->arguments.end())  // else the call leaves it out, and so does the node
        bound.push_back({attribute.name, it->second.attribute, it->second.scope});
    }
    return bound;
  }

  // A node that holds a value is a constant of the graph.
  static absl::Status ReadConstant(const NodeProto& node, const std::vector<Bound>& attributes,
                                   Scope* scope) {
    if (attributes.size() != 1 || node.outputs.size() != 1 || !node.inputs.empty())
      return absl::InvalidArgumentError("want one attribute with a value, one output and no input");
    NPURT_ASSIGN_OR_RETURN(Tensor tensor, ConstantValue(attributes[0].attribute->value));
    NPURT_ASSIGN_OR_RETURN(
        const ValueId id,
        scope->graph->AddConstant(NameInGraph(*scope, node.outputs[0]), std::move(tensor)));
    if (!node.name.empty())
      scope->graph->mutable_value(id).origins.push_back(absl::StrCat(scope->prefix, node.name));
    return Define(scope, node.outputs[0], id);
  }

  // --- Functions and subgraphs ------------------------------------------------------------------

  absl::Status Inline(const NodeProto& call, const FunctionInfo& function,
                      std::vector<ValueId> inputs, Scope* caller) {
    const FunctionProto& proto = *function.proto;
    const auto refuse = [&call](absl::string_view why) {
      return absl::InvalidArgumentError(absl::StrCat(Where(call), ": ", why));
    };
    if (std::find(calls_.begin(), calls_.end(), &proto) != calls_.end())
      return refuse(absl::StrCat("function '", proto.name, "' calls itself"));
    if (static_cast<int>(calls_.size()) >= limits_.max_function_depth)
      return absl::ResourceExhaustedError(absl::StrCat(Where(call),
                                                       ": functions call functions more than ",
                                                       limits_.max_function_depth, " deep"));
    if (inputs.size() > proto.inputs.size() || call.outputs.size() > proto.outputs.size())
      return refuse(absl::StrCat("got ", inputs.size(), " inputs and ", call.outputs.size(),
                                 " outputs, the function has ", proto.inputs.size(), " and ",
                                 proto.outputs.size()));
    const std::string name(call.name.empty() && !call.outputs.empty() ? call.outputs[0]
                                                                      : call.name);
    Scope scope;
    scope.graph = caller->graph;
    scope.opsets = &function.opsets;
    scope.is_function = true;
    scope.prefix = absl::StrCat(caller->prefix, name, "/");
    scope.origin = caller->origin.empty() ? name : caller->origin;
    for (std::size_t i = 0; i < proto.inputs.size(); ++i)
      NPURT_RETURN_IF_ERROR(
          Annotate(Define(&scope, proto.inputs[i], i < inputs.size() ? inputs[i] : kNone),
                   absl::StrCat("function '", proto.name, "'")));
    for (std::size_t i = 0; i < call.outputs.size(); ++i)
      if (!call.outputs[i].empty())
        scope.output_names.emplace(proto.outputs[i], NameInGraph(*caller, call.outputs[i]));
    for (const AttributeProto& attribute : proto.attribute_defaults) {
      if (!attribute.ref_attr_name.empty())
        return refuse(absl::StrCat("default of attribute '", attribute.name, "' is a reference"));
      scope.arguments[attribute.name] = {&attribute, &scope};
    }
    NPURT_ASSIGN_OR_RETURN(const std::vector<Bound> given, BindAttributes(call, caller));
    for (const Bound& bound : given) scope.arguments[bound.name] = {bound.attribute, bound.scope};

    calls_.push_back(&proto);
    const absl::Status status = ReadNodes(proto.nodes, &scope);
    calls_.pop_back();
    if (!status.ok())
      return Annotate(status, absl::StrCat(Where(call), ": in function '", proto.name, "'"));
    for (std::size_t i = 0; i < call.outputs.size(); ++i) {
      const auto it = scope.names.find(proto.outputs[i]);
      if (it == scope.names.end())
        return refuse(absl::StrCat("function '", proto.name, "' does not make its output '",
                                   proto.outputs[i], "'"));
      NPURT_RETURN_IF_ERROR(Define(caller, call.outputs[i], it->second));
    }
    return absl::OkStatus();
  }

  // A value of an enclosing graph that a subgraph reads.
  struct Outer {
    ValueId id;
    const Bound* reader;
    absl::string_view name;
  };
  struct OuterValues {
    std::vector<Outer> captures;
    std::vector<Outer> others;  // constants, and what is not to be had
  };

  // What the subgraphs among `attributes` of a node in `around` read of it.
  static absl::StatusOr<OuterValues> OuterValuesOf(const std::vector<Bound>& attributes,
                                                   const Scope& around) {
    OuterValues values;
    HashSet<std::pair<const Scope*, absl::string_view>> captured;
    for (const Bound& bound : attributes) {
      if (bound.attribute->graph == nullptr) continue;
      if (bound.scope->graph != around.graph)
        return absl::UnimplementedError(
            absl::StrCat("'", bound.name, "' is a graph that was handed through another subgraph"));
      for (absl::string_view name : FreeNames(*bound.attribute->graph)) {
        const auto it = bound.scope->names.find(name);
        if (it == bound.scope->names.end() || it->second == kNone)
          return absl::InvalidArgumentError(
              absl::StrCat("'", bound.name, "' reads '", name, "', which is nowhere defined"));
        if (it->second < 0 || around.graph->value(it->second).is_constant())
          values.others.push_back({it->second, &bound, name});
        else if (captured.emplace(bound.scope, name).second)
          values.captures.push_back({it->second, &bound, name});
      }
    }
    return values;
  }

  // `any_shape`: does not tell the subgraph the shapes of what it captures.
  absl::StatusOr<std::shared_ptr<const graph::Graph>> ReadSubgraph(
      const Bound& bound, const OuterValues& outer, const std::vector<BodyInput>& inputs,
      const Scope& around, bool any_shape) {
    auto graph = std::make_shared<graph::Graph>(around.graph->dims());
    Scope scope;
    scope.graph = graph.get();
    scope.opsets = bound.scope->opsets;
    scope.is_function = bound.scope->is_function;
    scope.arguments = bound.scope->arguments;
    scope.origin = bound.scope->origin;
    const std::vector<absl::string_view> free = FreeNames(*bound.attribute->graph);
    const HashSet<absl::string_view> reads(free.begin(), free.end());
    for (const Outer& value : outer.captures) {
      const bool read = value.reader->scope == bound.scope && reads.contains(value.name);
      const graph::ValueInfo& info = around.graph->value(value.id);
      const bool forget = any_shape && info.type.kind == ValueKind::kTensor;
      NPURT_ASSIGN_OR_RETURN(
          const ValueId id,
          graph->AddCapture(read ? std::string(value.name) : "",
                            forget ? ValueType::OfTensor(info.type.dtype) : info.type));
      if (!any_shape) graph->mutable_value(id).integers = info.integers;
      if (read) NPURT_RETURN_IF_ERROR(Define(&scope, value.name, id));
    }
    for (const Outer& value : outer.others) {
      if (value.reader != &bound) continue;
      ValueId id = value.id;
      if (id >= 0) {
        NPURT_ASSIGN_OR_RETURN(
            id, graph->AddConstant(std::string(value.name), around.graph->value(id).constant));
      }
      NPURT_RETURN_IF_ERROR(Define(&scope, value.name, id));
    }
    NPURT_RETURN_IF_ERROR(ReadGraph(*bound.attribute->graph, &inputs, &scope));
    return graph;
  }

  // Reads the graphs among the attributes. False if they read values that are not to be had.
  absl::StatusOr<bool> ReadSubgraphs(const std::vector<Bound>& attributes, const Scope& around,
                                     OnnxNode* onnx) {
    if (subgraph_depth_ >= limits_.max_subgraph_depth)
      return absl::ResourceExhaustedError(
          absl::StrCat("subgraphs are nested more than ", limits_.max_subgraph_depth, " deep"));
    NPURT_ASSIGN_OR_RETURN(const OuterValues outer, OuterValuesOf(attributes, around));
    const std::vector<BodyInput> inputs = BodyInputsOf(*onnx, *around.graph);
    for (const Bound& bound : attributes) {
      if (bound.attribute->graph == nullptr) continue;
      const std::size_t unsupported = unsupported_.count();
      ++subgraph_depth_;
      auto graph = ReadSubgraph(bound, outer, inputs, around, false);
      // A branch that is never taken may be wrong for the shapes at hand: only a run may say so.
      if (graph.status().code() == absl::StatusCode::kInvalidArgument && onnx->type == "If") {
        unsupported_.ForgetAfter(unsupported);
        graph = ReadSubgraph(bound, outer, inputs, around, true);
      }
      --subgraph_depth_;
      if (!graph.ok()) return Annotate(graph.status(), absl::StrCat("'", bound.name, "'"));
      onnx->attributes.Set(bound.name, std::shared_ptr<const Subgraph>(*std::move(graph)));
    }
    // The operands of a Loop that files may leave out stand before its captures.
    if (onnx->type == "Loop" && onnx->inputs.size() < 2) onnx->inputs.resize(2, kNone);
    for (const Outer& value : outer.captures) onnx->inputs.push_back(value.id);
    if (!outer.captures.empty())
      onnx->attributes.Set("captures", static_cast<std::int64_t>(outer.captures.size()));
    return std::all_of(outer.others.begin(), outer.others.end(),
                       [](const Outer& value) { return value.id >= 0; });
  }

  const ModelProto& model_;
  const Limits& limits_;
  const ops::HostOperators* const host_;
  Opsets opsets_;
  HashMap<std::string, FunctionInfo> functions_;
  std::vector<const FunctionProto*> calls_;  // that are being inlined
  std::int64_t nodes_left_;
  int subgraph_depth_ = 0, subgraphs_ = 0;
  UnsupportedNodes unsupported_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<graph::Graph>> ImportModel(const ModelProto& model,
                                                          const Limits& limits,
                                                          const ops::HostOperators* host) {
  return Importer(model, limits, host).Import();
}

}  // namespace npurt::formats::onnx
