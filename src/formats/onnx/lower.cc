#include "formats/onnx/lower.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "formats/onnx/adapters.h"
#include "ops/op_def.h"

namespace npurt::formats::onnx {

using graph::kNone;
using graph::NodeId;
using graph::ValueId;

namespace {

struct Alias {
  std::string_view domain, name;
  int since, until;
  const char* type;
  Adapter adapter;
};

constexpr int kAny = std::numeric_limits<int>::max();
constexpr Alias kAliases[] = {
#define NPURT_ALIAS(domain, name, since, until, type, adapter) \
  {domain, name, since, until, type, adapters::adapter},
#include "formats/onnx/aliases.inc"
#undef NPURT_ALIAS
};

constexpr bool IsSorted() {
  for (std::size_t i = 1; i < std::size(kAliases); ++i) {
    const Alias &a = kAliases[i - 1], &b = kAliases[i];
    if (!(a.domain < b.domain || (a.domain == b.domain && a.name < b.name) ||
          (a.domain == b.domain && a.name == b.name && a.until < b.since)))
      return false;
  }
  return true;
}
static_assert(IsSorted(), "rows of aliases.inc must be sorted by domain, name and version");

const Alias* FindAlias(absl::string_view domain, absl::string_view name, int version) {
  const std::string_view d(domain.data(), domain.size()), n(name.data(), name.size());
  const Alias* const end = std::end(kAliases);
  const Alias* row = std::lower_bound(std::begin(kAliases), end, 0, [&](const Alias& a, int) {
    return std::tie(a.domain, a.name) < std::tie(d, n);
  });
  for (; row != end && row->domain == d && row->name == n; ++row)
    if (row->until == kAny ? version == 0 || version >= row->since
                           : version >= row->since && version <= row->until)
      return row;
  return nullptr;
}

constexpr absl::string_view kMicrosoft = "com.microsoft";

bool IsKnownDomain(absl::string_view domain) {
  return domain.empty() || domain == "ai.onnx.ml" || domain == kMicrosoft ||
         domain == "ai.onnx.preview" || domain == "ai.onnx.preview.training";
}

// The libnpurt type and the row, which may be null. Null type: none.
std::pair<const char*, const Alias*> Resolve(absl::string_view domain, absl::string_view type,
                                             int version) {
  if (!IsKnownDomain(domain)) return {nullptr, nullptr};
  const Alias* row = FindAlias(domain, type, version);
  if (row != nullptr && row->type == nullptr) return {"", row};  // the adapter adds all nodes
  const ops::OpDef* op = ops::FindOp(row != nullptr ? row->type : type);
  if (op == nullptr || (row == nullptr && op->internal)) return {nullptr, nullptr};
  return {op->name, row};
}

std::string Qualified(absl::string_view domain, absl::string_view type) {
  return domain.empty() ? std::string(type) : absl::StrCat(domain, ".", type);
}

absl::Status NoSuchOperator(absl::string_view domain, absl::string_view type) {
  return absl::UnimplementedError(
      absl::StrCat("there is no operator '", Qualified(domain, type), "'"));
}

// An attribute that the operator does not know would change its meaning unnoticed.
absl::Status CheckAttributeNames(const ops::OpDef& op, const Attributes& attributes) {
  for (const Attribute& attribute : attributes.all()) {
    if (attribute.name == "_keep_dtype") continue;  // any node may have it
    const bool known = std::any_of(
        std::begin(op.attributes), std::end(op.attributes),
        [&](const ops::AttrDef& def) { return def.name != nullptr && attribute.name == def.name; });
    if (!known)
      return absl::UnimplementedError(
          absl::StrCat("attribute '", attribute.name, "' is not supported"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Lowered> AddHostNode(graph::Graph* graph, OnnxNode node,
                                    const ops::HostOperators& host) {
  graph::NodeSpec spec;
  NPURT_ASSIGN_OR_RETURN(auto made, host.Make(node.domain, node.type, node.name, node.attributes,
                                              node.inputs.size(), node.outputs.size()));
  spec.op = made.type;
  spec.name = node.name;
  spec.original_op = Qualified(node.domain, node.type);
  spec.inputs = std::move(node.inputs);
  spec.outputs = std::move(node.outputs);
  spec.attributes = std::move(made.attributes);
  Lowered lowered;
  NPURT_ASSIGN_OR_RETURN(lowered.node, graph->AddNode(std::move(spec)));
  lowered.outputs = graph->node(lowered.node).outputs;
  return lowered;
}

}  // namespace

absl::string_view CanonicalDomain(absl::string_view domain) {
  return domain == "ai.onnx" ? absl::string_view() : domain;
}

absl::Status CheckOpset(absl::string_view domain, std::int64_t version) {
  const int newest = domain.empty()           ? kNewestOpset
                     : domain == "ai.onnx.ml" ? kNewestMlOpset
                                              : 1'000'000;
  const std::string what = absl::StrCat("opset ", version, " of domain '", domain, "'");
  if (version < 1) return absl::InvalidArgumentError(absl::StrCat(what, ", want 1 or more"));
  if (version > newest)
    return absl::UnimplementedError(absl::StrCat(what, ": the newest known is ", newest));
  return absl::OkStatus();
}

absl::Status CheckOperator(absl::string_view domain, absl::string_view type, int version,
                           const ops::HostOperators* host) {
  if (host != nullptr && host->Has(domain, type)) return absl::OkStatus();
  return Resolve(domain, type, version).first != nullptr ? absl::OkStatus()
                                                         : NoSuchOperator(domain, type);
}

absl::StatusOr<Lowered> AddOnnxNode(graph::Graph* graph, OnnxNode node,
                                    const ops::HostOperators* host) {
  if (host != nullptr && host->Has(node.domain, node.type))
    return AddHostNode(graph, std::move(node), *host);
  const auto [type, row] = Resolve(node.domain, node.type, node.version);
  if (type == nullptr) return NoSuchOperator(node.domain, node.type);
  const std::string name = node.name;
  const std::string original = Qualified(node.domain, node.type);
  // A hint of the first versions on which inputs may be overwritten; we find out by ourselves.
  node.attributes.Remove("consumed_inputs");
  while (!node.inputs.empty() && node.inputs.back() == kNone) node.inputs.pop_back();
  const NodeId first = graph->node_count();

  Lowered lowered;
  Lowering lowering(graph, &node);
  if (row != nullptr) NPURT_RETURN_IF_ERROR(row->adapter(lowering));
  if (!lowering.results.empty()) {
    lowered.node = graph->node_count() - 1;
    lowered.outputs = std::move(lowering.results);
  } else {
    NPURT_RETURN_IF_ERROR(CheckAttributeNames(*ops::FindOp(type), node.attributes));
    graph::NodeSpec spec;
    spec.op = type;
    spec.name = name;
    spec.original_op = original;
    spec.inputs = std::move(node.inputs);
    spec.outputs = std::move(node.outputs);
    spec.attributes = std::move(node.attributes);
    NPURT_ASSIGN_OR_RETURN(lowered.node, graph->AddNode(std::move(spec)));
    lowered.outputs = graph->node(lowered.node).outputs;
  }
  for (NodeId id = first; id < graph->node_count(); ++id) {
    graph::Node& added = graph->mutable_node(id);
    added.original_op = original;
    added.origins.clear();
    if (!name.empty()) added.origins.push_back(name);
  }
  return lowered;
}

int Lowering::rank(std::size_t i) const {
  if (!has_input(i) || type(i).kind != ValueKind::kTensor || !type(i).has_rank) return -1;
  return static_cast<int>(type(i).dims.size());
}

void Lowering::SetInput(std::size_t i, ValueId value) {
  if (i >= node->inputs.size()) node->inputs.resize(i + 1, kNone);
  node->inputs[i] = value;
}

std::string Lowering::FreeName(const char* what) {
  std::string base = node->name;
  for (const std::string& output : node->outputs)
    if (!output.empty()) {
      base = output;
      break;
    }
  std::string name = absl::StrCat(base, "/", what);
  while (graph->Find(name) != kNone) absl::StrAppend(&name, "#", graph->value_count());
  return name;
}

absl::StatusOr<ValueId> Lowering::Constant(const char* what, Tensor value) {
  NPURT_ASSIGN_OR_RETURN(const ValueId id, graph->AddConstant(FreeName(what), std::move(value)));
  graph->mutable_value(id).origins.clear();  // the caller's graph has no such name
  return id;
}

absl::StatusOr<ValueId> Lowering::Ints(const char* what, absl::Span<const std::int64_t> values) {
  return Constant(what, Tensor::Int64s(values));
}

absl::StatusOr<ValueId> Lowering::Int(const char* what, std::int64_t value) {
  return Constant(what, Tensor::Int64Scalar(value));
}

absl::StatusOr<ValueId> Lowering::Scalar(const char* what, DType dtype, double value) {
  NPURT_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Create(dtype, {}));
  if (!DispatchDType<kNumbers>(dtype, [&](auto t) {
        using T = decltype(t);
        if constexpr (std::is_integral_v<T>) {
          // A float that does not fit has the nearest meaning that does; NaN has none.
          constexpr double low = static_cast<double>(std::numeric_limits<T>::lowest());
          constexpr double high = static_cast<double>(std::numeric_limits<T>::max());
          tensor.set<T>(0, value != value  ? T{0}
                           : value <= low  ? std::numeric_limits<T>::lowest()
                           : value >= high ? std::numeric_limits<T>::max()
                                           : static_cast<T>(value));
        } else {
          tensor.set<T>(0, T(value));
        }
      }))
    return absl::UnimplementedError(
        absl::StrCat("the old form of an operator for ", DTypeName(dtype)));
  return Constant(what, std::move(tensor));
}

absl::StatusOr<ValueId> Lowering::Add(const char* op, std::vector<ValueId> inputs,
                                      Attributes attributes) {
  NPURT_ASSIGN_OR_RETURN(const std::vector<ValueId> outputs,
                         AddMany(op, std::move(inputs), 1, std::move(attributes)));
  return outputs[0];
}

absl::StatusOr<std::vector<ValueId>> Lowering::AddMany(const char* op, std::vector<ValueId> inputs,
                                                       int count, Attributes attributes) {
  graph::NodeSpec spec;
  spec.op = op;
  spec.name = node->name.empty() ? "" : absl::StrCat(node->name, "/", op);
  spec.inputs = std::move(inputs);
  const std::string base = FreeName(op);
  for (int i = 0; i < count; ++i)
    spec.outputs.push_back(i == 0 ? base : FreeName(absl::StrCat(op, ":", i).c_str()));
  spec.attributes = std::move(attributes);
  NPURT_ASSIGN_OR_RETURN(const NodeId id, graph->AddNode(std::move(spec)));
  for (ValueId out : graph->node(id).outputs) graph->mutable_value(out).origins.clear();
  return graph->node(id).outputs;
}

absl::Status Lowering::Finish(std::size_t i, const char* op, std::vector<ValueId> inputs,
                              Attributes attributes) {
  if (i >= node->outputs.size())
    return absl::InvalidArgumentError(absl::StrCat("output ", i, " is missing"));
  graph::NodeSpec spec;
  spec.op = op;
  spec.name = node->name;
  spec.inputs = std::move(inputs);
  spec.outputs = {node->outputs[i]};
  spec.attributes = std::move(attributes);
  NPURT_ASSIGN_OR_RETURN(const NodeId id, graph->AddNode(std::move(spec)));
  results.resize(node->outputs.size(), kNone);
  results[i] = graph->node(id).outputs[0];
  return absl::OkStatus();
}

namespace {

// The permutation that moves the channels of `value` from the last dimension to the second, or
// back.
absl::StatusOr<Attributes> ChannelOrder(const graph::Graph& graph, ValueId value, bool first) {
  const ValueType& type = graph.value(value).type;
  if (type.kind != ValueKind::kTensor || !type.has_rank || type.dims.size() < 2)
    return absl::UnimplementedError("channels last in a tensor of unknown rank");
  std::vector<std::int64_t> order(type.dims.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int64_t>(i);
  if (first) {
    std::rotate(order.begin() + 1, order.end() - 1, order.end());
  } else {
    std::rotate(order.begin() + 1, order.begin() + 2, order.end());
  }
  return MakeAttributes({{"perm", std::move(order)}});
}

}  // namespace

absl::StatusOr<ValueId> Lowering::ChannelsFirst(ValueId value) {
  NPURT_ASSIGN_OR_RETURN(Attributes order, ChannelOrder(*graph, value, true));
  return Add("Transpose", {value}, std::move(order));
}

absl::StatusOr<ValueId> Lowering::ChannelsLast(ValueId value) {
  NPURT_ASSIGN_OR_RETURN(Attributes order, ChannelOrder(*graph, value, false));
  return Add("Transpose", {value}, std::move(order));
}

absl::Status Lowering::FinishChannelsLast(ValueId value) {
  NPURT_ASSIGN_OR_RETURN(Attributes order, ChannelOrder(*graph, value, false));
  return Finish(0, "Transpose", {value}, std::move(order));
}

absl::Status Lowering::AttributeToInput(const char* name, std::size_t i) {
  const AttributeValue* value = node->attributes.Find(name);
  if (value == nullptr) return absl::OkStatus();
  ValueId constant = kNone;
  if (const auto* ints = std::get_if<std::vector<std::int64_t>>(value)) {
    NPURT_ASSIGN_OR_RETURN(constant, Ints(name, *ints));
  } else if (const auto* number = std::get_if<std::int64_t>(value)) {
    NPURT_ASSIGN_OR_RETURN(constant, Ints(name, {*number}));
  } else {
    return absl::InvalidArgumentError(absl::StrCat("attribute '", name, "' has no integers"));
  }
  node->attributes.Remove(name);
  SetInput(i, constant);
  return absl::OkStatus();
}

absl::Status Lowering::FloatToInput(const char* name, std::size_t i) {
  if (!node->attributes.Has(name)) return absl::OkStatus();
  if (!has_input(0)) return absl::InvalidArgumentError("input 0 is missing");
  NPURT_ASSIGN_OR_RETURN(const ValueId constant,
                         Scalar(name, type(0).dtype, node->attributes.Float(name)));
  node->attributes.Remove(name);
  SetInput(i, constant);
  return absl::OkStatus();
}

Attributes MakeAttributes(std::initializer_list<std::pair<const char*, AttributeValue>> list) {
  Attributes attributes;
  for (const auto& [name, value] : list) attributes.Set(name, value);
  return attributes;
}

namespace adapters {

absl::Status Keep(Lowering&) { return absl::OkStatus(); }

}  // namespace adapters
}  // namespace npurt::formats::onnx
