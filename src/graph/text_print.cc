// The printer of graph/text.h.
#include <cstdio>
#include <cstring>
#include <map>

#include "base/hash_map.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "graph/text.h"
#include "graph/text_words.h"

namespace npurt::graph {
namespace {

using text::IsWord;

constexpr int kMaxDimOperations = 16;  // longer expressions tell people nothing

std::string Quoted(absl::string_view text) {
  return absl::StrCat("\"", absl::Utf8SafeCEscape(text), "\"");
}

std::string WordOrQuoted(absl::string_view name) {
  return IsWord(name) ? std::string(name) : Quoted(name);
}

// The shortest decimal that reads back as the same float or double, with a point or an exponent.
template <typename T>
std::string RealText(T value) {
  char buffer[40];
  for (int digits : {6, 9, 17}) {
    std::snprintf(buffer, sizeof buffer, "%.*g", digits, static_cast<double>(value));
    if (static_cast<T>(std::strtod(buffer, nullptr)) == value) break;
  }
  std::string text = buffer;
  if (text.find_first_of(".eni") == std::string::npos) text += ".0";
  return text == "-nan" ? "nan" : text;
}

std::uint64_t Hash(const void* data, std::size_t bytes) {  // FNV-1a
  std::uint64_t hash = 14695981039346656037u;
  for (std::size_t i = 0; i < bytes; ++i)
    hash = (hash ^ static_cast<const unsigned char*>(data)[i]) * 1099511628211u;
  return hash;
}

class Printer {
 public:
  explicit Printer(const TextOptions& options) : options_(options) {}

  std::string Print(const Graph& graph) {
    Body(graph, "");
    absl::StrAppend(&out_, "\n");
    for (const auto& [name, tensor] : blobs_)
      absl::StrAppend(
          &out_, "blob ", name, " ",
          absl::BytesToHexString({static_cast<const char*>(tensor.data()), tensor.bytes()}), "\n");
    return std::move(out_);
  }

  std::string Type(const ValueType& type) {
    const std::string held = type.element == nullptr ? "?" : Type(*type.element);
    switch (type.kind) {
      case ValueKind::kNone:
        return "none";
      case ValueKind::kTensor:
        break;
      case ValueKind::kSequence:
        return absl::StrCat("sequence(", held, ")");
      case ValueKind::kOptional:
        return absl::StrCat("optional(", held, ")");
      case ValueKind::kMap:
        return absl::StrCat("map(", DTypeName(type.dtype), ", ", held, ")");
      case ValueKind::kResource:
        return absl::StrCat("resource(", held, ")");
    }
    std::string text = absl::StrCat(DTypeName(type.dtype), "[");
    if (!type.has_rank) absl::StrAppend(&text, "?");
    for (std::size_t i = 0; i < type.dims.size(); ++i) {
      int budget = kMaxDimOperations;
      absl::StrAppend(&text, i == 0 ? "" : ", ", DimText(type.dims[i], &budget));
    }
    return text + "]";
  }

 private:
  // Expressions share their operands: written out, a short one may be longer than memory. What goes
  // beyond `budget` symbols is written like a dimension that only a run tells.
  std::string DimText(Dim dim, int* budget) {
    if (dim.is_constant()) return absl::StrCat(dim.value());
    const DimNode& node = *dim.node();
    if (node.op == DimOp::kInput) return WordOrQuoted(node.name);
    if (node.op == DimOp::kRun || --*budget < 0)
      return absl::StrCat("?", run_dims_.try_emplace(&node, run_dims_.size() + 1).first->second);
    const std::string a = DimText(node.a, budget);
    return absl::StrCat(text::DimOpName(node.op), "(", a, ", ", DimText(node.b, budget), ")");
  }

  // Names as they stand in the text: unique, and never empty.
  void NameValues(const Graph& graph, std::vector<std::string>* names) {
    HashSet<std::string> taken;
    for (ValueId id = 0; id < graph.value_count(); ++id) taken.insert(graph.value(id).name);
    HashSet<std::string> used;
    for (ValueId id = 0; id < graph.value_count(); ++id) {
      std::string name = graph.value(id).name;
      while (name.empty() || !used.insert(name).second) {
        absl::StrAppend(&name, "#", id);
        if (taken.contains(name)) continue;
        used.insert(name);
        break;
      }
      names->push_back(absl::StrCat("%", WordOrQuoted(name)));
    }
  }

  template <typename List, typename F>
  void AppendList(const char* kind, const List& list, F&& f) {
    if (list.empty()) absl::StrAppend(&out_, kind);  // else the first item tells
    absl::StrAppend(&out_, "[");
    const char* separator = "";
    for (const auto& item : list) {
      absl::StrAppend(&out_, separator);
      f(item);
      separator = ", ";
    }
    absl::StrAppend(&out_, "]");
  }

  void AppendStrings(const std::vector<std::string>& list) {
    AppendList("strings", list, [&](const std::string& s) { absl::StrAppend(&out_, Quoted(s)); });
  }

  void AppendTensor(const Tensor& tensor) {
    absl::StrAppend(&out_, Type(ValueType::OfTensor(tensor.dtype(), ToSymDims(tensor.dims()))),
                    " ");
    const bool strings = tensor.dtype() == DType::kString;
    const bool small = tensor.element_count() <= options_.inline_elements;
    const bool printable = strings || Contains(kPlainTypes, tensor.dtype());
    if (!printable || (!small && !strings)) {
      const std::string name =
          absl::StrCat("#", absl::Hex(Hash(tensor.data(), tensor.bytes()), absl::kZeroPad16));
      if (options_.blobs) blobs_.emplace(name, tensor);
      absl::StrAppend(&out_, name);
      return;
    }
    if (!small && !options_.blobs) {
      absl::StrAppend(&out_, "#strings");
      return;
    }
    absl::StrAppend(&out_, "{");
    for (std::int64_t i = 0; i < tensor.element_count(); ++i) {
      if (i > 0) absl::StrAppend(&out_, ", ");
      if (strings) absl::StrAppend(&out_, Quoted(tensor.at<std::string>(i)));
      DispatchDType<kPlainTypes>(tensor.dtype(), [&](auto zero) {
        using T = decltype(zero);
        const T value = tensor.at<T>(i);
        if constexpr (std::is_same_v<T, bool>)
          absl::StrAppend(&out_, value ? "true" : "false");
        else if constexpr (std::is_integral_v<T>)
          absl::StrAppend(&out_, +value);
        else if constexpr (std::is_same_v<T, double>)
          absl::StrAppend(&out_, RealText(value));
        else
          absl::StrAppend(&out_, RealText(static_cast<float>(value)));
      });
    }
    absl::StrAppend(&out_, "}");
  }

  void AppendAttribute(const AttributeValue& value, const std::string& indent) {
    switch (static_cast<ops::AttrKind>(value.index())) {
      case ops::AttrKind::kInt:
        return absl::StrAppend(&out_, std::get<std::int64_t>(value));
      case ops::AttrKind::kFloat:
        return absl::StrAppend(&out_, RealText(std::get<float>(value)));
      case ops::AttrKind::kString:
        return absl::StrAppend(&out_, Quoted(std::get<std::string>(value)));
      case ops::AttrKind::kInts:
        return AppendList("ints", std::get<std::vector<std::int64_t>>(value),
                          [&](std::int64_t i) { absl::StrAppend(&out_, i); });
      case ops::AttrKind::kFloats:
        return AppendList("floats", std::get<std::vector<float>>(value),
                          [&](float f) { absl::StrAppend(&out_, RealText(f)); });
      case ops::AttrKind::kStrings:
        return AppendStrings(std::get<std::vector<std::string>>(value));
      case ops::AttrKind::kTensor:
        absl::StrAppend(&out_, "tensor ");
        return AppendTensor(std::get<Tensor>(value));
      case ops::AttrKind::kTensors:
        absl::StrAppend(&out_, "tensors");
        return AppendList("", std::get<std::vector<Tensor>>(value),
                          [&](const Tensor& t) { AppendTensor(t); });
      case ops::AttrKind::kType:
        return absl::StrAppend(&out_, "type ",
                               Type(*std::get<std::shared_ptr<const ValueType>>(value)));
      case ops::AttrKind::kGraph: {
        const auto* graph =
            dynamic_cast<const Graph*>(std::get<std::shared_ptr<const Subgraph>>(value).get());
        if (graph != nullptr) Body(*graph, indent + "  ");
        return;
      }
    }
  }

  void AppendNode(const Graph& graph, const Node& node, const std::vector<std::string>& names,
                  const HashMap<NodeId, int>& labels, const std::string& indent) {
    const auto operand = [&](ValueId id) { return id == kNone ? "_" : names[id].c_str(); };
    for (std::size_t i = 0; i < node.outputs.size(); ++i)
      absl::StrAppend(&out_, i == 0 ? "" : ", ", operand(node.outputs[i]));
    absl::StrAppend(&out_, node.outputs.empty() ? "" : " = ", WordOrQuoted(node.op->name), "(");
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      absl::StrAppend(&out_, i == 0 ? "" : ", ", operand(node.inputs[i]));
    absl::StrAppend(&out_, ")");
    if (!node.attributes.all().empty()) {
      const char* separator = " [";
      for (const Attribute& attribute : node.attributes.all()) {
        absl::StrAppend(&out_, separator, WordOrQuoted(attribute.name), " = ");
        AppendAttribute(attribute.value, indent);
        separator = ", ";
      }
      absl::StrAppend(&out_, "]");
    }
    if (!node.name.empty()) absl::StrAppend(&out_, " name ", Quoted(node.name));
    if (node.original_op != node.op->name)
      absl::StrAppend(&out_, " from ", Quoted(node.original_op));
    if (node.origins != DefaultOrigins(node.name)) {
      absl::StrAppend(&out_, " origins ");
      AppendStrings(node.origins);
    }
    const char* separator = " after ";
    for (NodeId before : node.control) {
      const auto label = labels.find(before);
      if (label == labels.end()) continue;  // removed
      absl::StrAppend(&out_, separator, "@", label->second);
      separator = ", ";
    }
    separator = "  # ";
    for (ValueId id : node.outputs) {
      absl::StrAppend(&out_, separator, id == kNone ? "_" : Type(graph.value(id).type));
      separator = ", ";
    }
    absl::StrAppend(&out_, "\n");
  }

  static std::vector<std::string> DefaultOrigins(const std::string& name) {
    return name.empty() ? std::vector<std::string>() : std::vector<std::string>{name};
  }

  void Body(const Graph& graph, const std::string& indent) {
    std::vector<std::string> names;
    NameValues(graph, &names);
    const std::string inner = indent + "  ";
    std::vector<ValueId> printed = graph.inputs();  // in the order of the text
    printed.insert(printed.end(), graph.captures().begin(), graph.captures().end());
    absl::StrAppend(&out_, "graph ", Quoted(graph.name), " {\n");
    for (ValueId id : graph.inputs())
      absl::StrAppend(&out_, inner, "input ", names[id], " : ", Type(graph.value(id).type), "\n");
    for (ValueId id : graph.captures())
      absl::StrAppend(&out_, inner, "capture ", names[id], " : ", Type(graph.value(id).type), "\n");
    for (const Variable& variable : graph.variables()) {
      printed.push_back(variable.handle);
      absl::StrAppend(&out_, inner, "variable ", names[variable.handle], " : ",
                      Type(variable.type));
      if (variable.initial.defined()) {
        absl::StrAppend(&out_, " = ");
        AppendTensor(variable.initial);
      }
      absl::StrAppend(&out_, "\n");
    }
    for (ValueId id = 0; id < graph.value_count(); ++id) {
      const ValueInfo& info = graph.value(id);
      if (!info.is_constant() || info.producer != kNone || info.is_input) continue;
      printed.push_back(id);
      absl::StrAppend(&out_, inner, "const ", names[id], " = ");
      AppendTensor(info.constant);
      absl::StrAppend(&out_, "\n");
    }
    std::vector<NodeId> order;
    if (auto sorted = graph.Order(); sorted.ok()) {
      order = *std::move(sorted);
    } else {
      absl::StrAppend(&out_, inner, "# ", sorted.status().message(), "\n");
      for (NodeId id = 0; id < graph.node_count(); ++id)
        if (!graph.node(id).removed) order.push_back(id);
    }
    HashMap<NodeId, int> labels;  // of nodes that a control edge names
    for (NodeId id : order)
      for (NodeId before : graph.node(id).control)
        if (!graph.node(before).removed) labels.try_emplace(before, 0);
    for (std::size_t i = 0; i < order.size(); ++i)
      if (const auto label = labels.find(order[i]); label != labels.end())
        label->second = static_cast<int>(i);
    for (NodeId id : order) {
      absl::StrAppend(&out_, inner);
      if (const auto label = labels.find(id); label != labels.end())
        absl::StrAppend(&out_, "@", label->second, " ");
      AppendNode(graph, graph.node(id), names, labels, inner);
      for (ValueId out : graph.node(id).outputs)
        if (out != kNone) printed.push_back(out);
    }
    for (ValueId id : printed) {
      const ValueInfo& info = graph.value(id);
      if (info.origins == DefaultOrigins(info.name)) continue;
      absl::StrAppend(&out_, inner, "origins ", names[id], " ");
      AppendStrings(info.origins);
      absl::StrAppend(&out_, "\n");
    }
    for (std::size_t i = 0; i < graph.outputs().size(); ++i)
      absl::StrAppend(&out_, inner, "output ", names[graph.outputs()[i]], " ",
                      Quoted(graph.output_names()[i]), "\n");
    absl::StrAppend(&out_, indent, "}");
  }

  const TextOptions& options_;
  std::string out_;
  std::map<std::string, Tensor> blobs_;
  HashMap<const DimNode*, std::size_t> run_dims_;  // numbered as they appear
};

}  // namespace

std::string ToText(const Graph& graph, const TextOptions& options) {
  return Printer(options).Print(graph);
}

}  // namespace npurt::graph
