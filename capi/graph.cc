// Graphs: the builder. Nodes are added as an ONNX file adds them, so that both mean the same.
#include "graph.h"

#include <algorithm>

#include "formats/onnx/lower.h"
#include "graph/text.h"

namespace npurt::capi {
namespace {

using graph::kNone;
using graph::NodeId;
using graph::ValueId;

std::string TextOr(const char* text, std::string otherwise) {
  return text == nullptr || *text == '\0' ? std::move(otherwise) : std::string(text);
}

// A name that no value of the graph has yet.
std::string FreeName(const graph::Graph& graph, std::string name) {
  const std::size_t stem = name.size();
  for (int n = 1; graph.Find(name) != kNone; ++n) {
    name.resize(stem);
    absl::StrAppend(&name, "#", n);
  }
  return name;
}

absl::Status WantValue(const graph::Graph& graph, ValueId id, const char* what) {
  if (id >= 0 && id < graph.value_count()) return absl::OkStatus();
  return absl::OutOfRangeError(absl::StrCat(what, ": ", id, " is no value of this graph"));
}

absl::Status WantNode(const graph::Graph& graph, NodeId id) {
  if (id >= 0 && id < graph.node_count()) return absl::OkStatus();
  return absl::OutOfRangeError(absl::StrCat(id, " is no node of this graph"));
}

// Type and name of an input, variable or capture.
struct Declaration {
  std::string name;
  ValueType type;
};
absl::StatusOr<Declaration> Declare(graph::Graph* graph, const npurt_value_info* user) {
  NPURT_ASSIGN_OR_RETURN(const npurt_value_info info, CopyIn(user, "info"));
  NPURT_RETURN_IF_ERROR(WantAll("info.name", info.name));
  const std::string name = info.name;
  auto type = TypeFromInfo(info, [&](absl::string_view dim, int i) {
    return graph->NamedDim(std::string(dim), absl::StrCat(name, ".", i));
  });
  if (!type.ok()) return Annotate(type.status(), absl::StrCat("value '", name, "'"));
  return Declaration{name, *std::move(type)};
}

template <typename T>
absl::Span<const T> Items(const npurt_attribute& attribute) {
  return {static_cast<const T*>(attribute.data), attribute.count};
}

template <typename T>
std::vector<T> Copy(absl::Span<const T> items) {
  return std::vector<T>(items.begin(), items.end());
}

absl::StatusOr<AttributeValue> FromC(const npurt_attribute& attribute) {
  const bool is_list = attribute.kind >= NPURT_ATTRIBUTE_FLOATS;
  if (!is_list && attribute.count != 1)
    return absl::InvalidArgumentError(absl::StrCat("got ", attribute.count, " elements, want 1"));
  if (attribute.count > 0) NPURT_RETURN_IF_ERROR(WantAll("data", attribute.data));
  const auto text = [](const npurt_string& s) {
    return std::string(s.size == 0 ? "" : s.data, s.size);
  };
  switch (attribute.kind) {
    case NPURT_ATTRIBUTE_INT:
      return AttributeValue(Items<std::int64_t>(attribute)[0]);
    case NPURT_ATTRIBUTE_FLOAT:
      return AttributeValue(Items<float>(attribute)[0]);
    case NPURT_ATTRIBUTE_STRING:
      return AttributeValue(text(Items<npurt_string>(attribute)[0]));
    case NPURT_ATTRIBUTE_INTS:
      return AttributeValue(Copy(Items<std::int64_t>(attribute)));
    case NPURT_ATTRIBUTE_FLOATS:
      return AttributeValue(Copy(Items<float>(attribute)));
    case NPURT_ATTRIBUTE_STRINGS: {
      std::vector<std::string> texts;
      for (const npurt_string& s : Items<npurt_string>(attribute)) texts.push_back(text(s));
      return AttributeValue(std::move(texts));
    }
    case NPURT_ATTRIBUTE_TENSOR: {
      const npurt_value* value = Items<npurt_value*>(attribute)[0];
      if (value == nullptr || !value->value.is_tensor())
        return absl::InvalidArgumentError("want a tensor");
      NPURT_ASSIGN_OR_RETURN(const Value plain, RowMajor(*value));
      return AttributeValue(plain.tensor());
    }
    default:
      return absl::InvalidArgumentError(absl::StrCat(attribute.kind, " is no kind of attribute"));
  }
}

// A graph in an attribute, copied.
struct Inner {
  std::string attribute;
  std::shared_ptr<graph::Graph> graph;
};

absl::StatusOr<std::shared_ptr<graph::Graph>> InnerOf(const npurt_graph& outer,
                                                      const npurt_attribute& attribute) {
  NPURT_RETURN_IF_ERROR(WantAll("data", attribute.data));
  const npurt_graph* inner = Items<npurt_graph*>(attribute)[0];
  NPURT_RETURN_IF_ERROR(WantAll("graph", inner));
  if (inner->outer.get() != &outer)
    return absl::InvalidArgumentError("the graph was not made with npurt_graph_create_inner here");
  return std::make_shared<graph::Graph>(inner->graph);
}

// What inner graphs capture becomes inputs of the node, after its own; each of its graphs gets all
// captures, in one order.
absl::Status Connect(const graph::Graph& outer, std::vector<Inner>* inner,
                     formats::onnx::OnnxNode* node) {
  std::vector<std::string> names;
  for (const Inner& part : *inner)
    for (ValueId id : part.graph->captures()) {
      const std::string& name = part.graph->value(id).name;
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  for (Inner& part : *inner) {
    std::vector<ValueId> order;
    for (const std::string& name : names) {
      ValueId id = part.graph->Find(name);
      const auto& captures = part.graph->captures();
      if (std::find(captures.begin(), captures.end(), id) == captures.end()) {
        // A value of its own may have the name of another graph's capture.
        NPURT_ASSIGN_OR_RETURN(
            id, part.graph->AddCapture(id == kNone ? name : FreeName(*part.graph, name),
                                       outer.value(outer.Find(name)).type));
      }
      order.push_back(id);
    }
    part.graph->SetCaptureOrder(std::move(order));
    node->attributes.Set(part.attribute, std::shared_ptr<const Subgraph>(std::move(part.graph)));
  }
  for (const std::string& name : names) node->inputs.push_back(outer.Find(name));
  if (!names.empty()) node->attributes.Set("captures", static_cast<std::int64_t>(names.size()));
  return absl::OkStatus();
}

absl::StatusOr<formats::onnx::OnnxNode> FromC(const npurt_graph& graph, const npurt_node& node) {
  NPURT_RETURN_IF_ERROR(WantAll("node.type", node.type));
  if (node.input_count > 0) NPURT_RETURN_IF_ERROR(WantAll("node.inputs", node.inputs));
  if (node.attribute_count > 0) NPURT_RETURN_IF_ERROR(WantAll("node.attributes", node.attributes));
  formats::onnx::OnnxNode made;
  made.domain = std::string(formats::onnx::CanonicalDomain(TextOr(node.domain, "")));
  made.type = node.type;
  made.version = node.version;
  made.name = TextOr(node.name, absl::StrCat(node.type, "_", graph.graph.node_count()));
  for (std::size_t i = 0; i < node.input_count; ++i) {
    if (node.inputs[i] != kNone)
      NPURT_RETURN_IF_ERROR(WantValue(graph.graph, node.inputs[i], "input"));
    made.inputs.push_back(node.inputs[i]);
  }
  for (std::size_t i = 0; i < node.output_count; ++i) {
    const char* name = node.output_names == nullptr ? nullptr : node.output_names[i];
    made.outputs.push_back(TextOr(name, FreeName(graph.graph, absl::StrCat(made.name, ":", i))));
  }
  std::vector<Inner> inner;
  for (std::size_t i = 0; i < node.attribute_count; ++i) {
    const npurt_attribute& attribute = node.attributes[i];
    NPURT_RETURN_IF_ERROR(WantAll("attribute.name", attribute.name));
    const std::string where = absl::StrCat("attribute '", attribute.name, "'");
    if (attribute.kind == NPURT_ATTRIBUTE_GRAPH) {
      auto copy = InnerOf(graph, attribute);
      if (!copy.ok()) return Annotate(copy.status(), where);
      inner.push_back({attribute.name, *std::move(copy)});
      continue;
    }
    auto value = FromC(attribute);
    if (!value.ok()) return Annotate(value.status(), where);
    made.attributes.Set(attribute.name, *std::move(value));
  }
  NPURT_RETURN_IF_ERROR(Connect(graph.graph, &inner, &made));
  return made;
}

}  // namespace
}  // namespace npurt::capi

using namespace npurt;        // NOLINT: the C functions below are the outside of this file
using namespace npurt::capi;  // NOLINT

npurt_status npurt_graph_create(const char* name, npurt_host* host, npurt_graph** out_graph,
                                npurt_error** error) {
  return Guard(error, [&]() -> absl::Status {
    NPURT_RETURN_IF_ERROR(WantAll("out_graph", out_graph));
    auto made = std::make_unique<npurt_graph>();
    made->graph.name = TextOr(name, "");
    made->host = HostOperatorsOf(host);
    *out_graph = made.release();
    return absl::OkStatus();
  });
}

npurt_status npurt_graph_add_input(npurt_graph* graph, const npurt_value_info* info,
                                   npurt_value_id* out_id, npurt_error** error) {
  return Guard(error, [&]() -> absl::Status {
    NPURT_RETURN_IF_ERROR(WantAll("graph", graph, "out_id", out_id));
    graph->infos.clear();
    NPURT_ASSIGN_OR_RETURN(Declaration input, Declare(&graph->graph, info));
    NPURT_ASSIGN_OR_RETURN(*out_id, graph->graph.AddInput(input.name, std::move(input.type)));
    return absl::OkStatus();
  });
}

npurt_status npurt_graph_add_constant(npurt_graph* graph, const char* name, npurt_value* value,
                                      npurt_value_id* out_id, npurt_error** error) {
  return Guard(error, [&]() -> absl::Status {
    NPURT_RETURN_IF_ERROR(WantAll("graph", graph, "value", value, "out_id", out_id));
    if (!value->value.is_tensor())
      return absl::UnimplementedError(absl::StrCat("constants of type ", value->type));
    graph->infos.clear();
    NPURT_ASSIGN_OR_RETURN(const Value plain, RowMajor(*value));
    NPURT_ASSIGN_OR_RETURN(
        *out_id, graph->graph.AddConstant(
                     TextOr(name, FreeName(graph->graph,
                                           absl::StrCat("constant_", graph->graph.value_count()))),
                     plain.tensor()));
    return absl::OkStatus();
  });
}

npurt_status npurt_graph_add_variable(npurt_graph* graph, const npurt_value_info* info,
                                      npurt_value* initial, npurt_value_id* out_id,
                                      npurt_error** error) {
  return Guard(error, [&]() -> absl::Status {
    NPURT_RETURN_IF_ERROR(WantAll("graph", graph, "out_id", out_id));
    graph->infos.clear();
    NPURT_ASSIGN_OR_RETURN(Declaration variable, Declare(&graph->graph, info));
    Tensor start;
    if (initial != nullptr) {
      if (!initial->value.is_tensor() || initial->value.tensor().dtype() != variable.type.dtype)
        return absl::InvalidArgumentError(absl::StrCat("variable '", variable.name, "': got a ",
                                                       initial->type, ", want a ",
                                                       TypeText(variable.type)));
      NPURT_ASSIGN_OR_RETURN(const Value plain, RowMajor(*initial));
      start = plain.tensor();
    }
    NPURT_ASSIGN_OR_RETURN(*out_id, graph->graph.AddVariable(
                                        variable.name, std::move(variable.type), std::move(start)));
    return absl::OkStatus();
  });
}

npurt_status npurt_graph_create_inner(npurt_graph* outer, const char* name, npurt_graph** out_graph,
                                      npurt_error** error) {
  return Guard(error, [&]() -> absl::Status {
    NPURT_RETURN_IF_ERROR(WantAll("outer", outer, "out_graph", out_graph));
    std::unique_ptr<npurt_graph> made(new npurt_graph{
        {1}, Ref<npurt_graph>(outer), graph::Graph(outer->graph.dims()), outer->host, {}});
    made->graph.name = TextOr(name, "");
    *out_graph = made.release();
    return absl::OkStatus();
  });
}

npurt_status npurt_graph_add_capture(npurt_graph* graph, const char* name, npurt_value_id* out_id,
                                     npurt_error** error) {
  return Guard(error, [&]() -> absl::Status {
    NPURT_RETURN_IF_ERROR(WantAll("graph", graph, "name", name, "out_id", out_id));
    if (!graph->outer) return absl::FailedPreconditionError("this is no inner graph");
    const graph::Graph& outer = graph->outer->graph;
    const ValueId captured = outer.Find(name);
    if (captured == kNone)
      return absl::NotFoundError(absl::StrCat("the outer graph has no value '", name, "'"));
    graph->infos.clear();
    const graph::ValueInfo& value = outer.value(captured);
    if (value.is_constant()) {
      NPURT_ASSIGN_OR_RETURN(*out_id, graph->graph.AddConstant(name, value.constant));
    } else {
      NPURT_ASSIGN_OR_RETURN(*out_id, graph->graph.AddCapture(name, value.type));
    }
    return absl::OkStatus();
  });
}

npurt_status npurt_graph_add_node(npurt_graph* graph, const npurt_node* node,
                                  npurt_value_id* out_outputs, npurt_node_id* out_node,
                                  npurt_error** error) {
  return Guard(error, [&]() -> absl::Status {
    NPURT_RETURN_IF_ERROR(WantAll("graph", graph));
    NPURT_ASSIGN_OR_RETURN(const npurt_node given, CopyIn(node, "node"));
    graph->infos.clear();
    auto made = FromC(*graph, given);
    if (!made.ok())
      return Annotate(made.status(), absl::StrCat(TextOr(given.type, "?"), " node '",
                                                  TextOr(given.name, ""), "'"));
    NPURT_ASSIGN_OR_RETURN(
        const formats::onnx::Lowered lowered,
        formats::onnx::AddOnnxNode(&graph->graph, *std::move(made), graph->host.get()));
    if (out_outputs != nullptr)
      std::copy(lowered.outputs.begin(), lowered.outputs.end(), out_outputs);
    if (out_node != nullptr) *out_node = lowered.node;
    return absl::OkStatus();
  });
}

npurt_status npurt_graph_add_control_edge(npurt_graph* graph, npurt_node_id before,
                                          npurt_node_id after, npurt_error** error) {
  return Guard(error, [&]() -> absl::Status {
    NPURT_RETURN_IF_ERROR(WantAll("graph", graph));
    NPURT_RETURN_IF_ERROR(WantNode(graph->graph, before));
    NPURT_RETURN_IF_ERROR(WantNode(graph->graph, after));
    std::vector<NodeId>& control = graph->graph.mutable_node(after).control;
    if (std::find(control.begin(), control.end(), before) != control.end()) return absl::OkStatus();
    control.push_back(before);
    const absl::Status ordered = graph->graph.Order().status();
    if (!ordered.ok()) control.pop_back();
    return ordered;
  });
}

npurt_status npurt_graph_add_output(npurt_graph* graph, npurt_value_id id, const char* name,
                                    npurt_error** error) {
  return Guard(error, [&]() -> absl::Status {
    NPURT_RETURN_IF_ERROR(WantAll("graph", graph));
    NPURT_RETURN_IF_ERROR(WantValue(graph->graph, id, "output"));
    const std::string wanted = TextOr(name, graph->graph.value(id).name);
    const auto& names = graph->graph.output_names();
    if (std::find(names.begin(), names.end(), wanted) != names.end())
      return absl::AlreadyExistsError(absl::StrCat("output '", wanted, "' is there already"));
    return graph->graph.AddOutput(id, wanted);
  });
}

npurt_status npurt_graph_value_info(npurt_graph* graph, npurt_value_id id,
                                    npurt_value_info* out_info, npurt_error** error) {
  return Guard(error, [&]() -> absl::Status {
    NPURT_RETURN_IF_ERROR(WantAll("graph", graph));
    NPURT_RETURN_IF_ERROR(WantOut(out_info, "out_info"));
    NPURT_RETURN_IF_ERROR(WantValue(graph->graph, id, "value"));
    const graph::ValueInfo& value = graph->graph.value(id);
    const bool is_variable = value.type.kind == ValueKind::kResource;
    CopyOut(graph->infos
                .emplace_back(value.name, is_variable ? *value.type.element : value.type,
                              static_cast<npurt_kind>(value.type.kind))
                .View(),
            out_info);
    return absl::OkStatus();
  });
}

npurt_status npurt_graph_text(npurt_graph* graph, npurt_text** out_text, npurt_error** error) {
  return Guard(error, [&]() -> absl::Status {
    NPURT_RETURN_IF_ERROR(WantAll("graph", graph));
    return GiveText(graph::ToText(graph->graph, {.blobs = false}), out_text);
  });
}

void npurt_graph_release(npurt_graph* graph) { Release(graph); }
