// ChooseLayouts: puts the channels of images last where that pays.
//
// Convolutions run faster on [N, H, W, C] than on [N, C, H, W]: the image itself is the operand of
// their matrix kernels. What lies between them (activations, sums, pooling, Concat, Resize …) takes
// either order, so whole regions of a graph change it together, with Transposes at their edges only.
// Every node stays an ordinary operator on ordinary tensors: convolutions and pools say so by
// data_format, the others by their axes.
//
// Two walks in topological order. The first decides: a convolution begins a region, operators that
// follow join it, and those whose staying costs more Transposes than it saves leave again; a region is
// kept if it gains more than its Transposes cost, by rough rates that are the same on every machine,
// so that no bit of a result depends on them. The second rewrites.
// Transposes that nobody reads are left to RemoveUnused.
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "absl/strings/str_cat.h"
#include "compile/compile.h"
#include "kernels/channels_last/conv.h"
#include "kernels/channels_last/depthwise.h"
#include "kernels/intconv/depthwise_last.h"

namespace npurt::compile {
namespace {

using graph::Graph;
using graph::kNone;
using graph::Node;
using graph::NodeId;
using graph::ValueId;

constexpr std::int64_t kSwap[] = {0, 2, 1, 3, 4};  // of a shuffle of channels

// Elements, where unknown sizes are taken for those of a small picture.
double SizeOf(const ValueType& type) {
  double size = 1;
  for (std::size_t i = 0; i < type.dims.size(); ++i)
    size *= type.dims[i].is_constant() ? static_cast<double>(type.dims[i].value()) : i == 0 ? 1 : 64;
  return size;
}

// A Transpose between the orders moves nothing.
bool SameEitherWay(const ValueType& type) {
  return type.dims[1].Is(1) ||
         std::all_of(type.dims.begin() + 2, type.dims.end(), [](Dim d) { return d.Is(1); });
}

// Costs are in multiply-adds of a convolution at the limit of the hardware, of which there are some 15 in
// the time in which an element goes from cache to cache.
constexpr double kTransposed = 15;  // an element
constexpr double kCopied = 8;       // an element
constexpr double kLineCopied = 400;  // a line of a window of bytes
// With channels first, the gathered operand of several taps costs this many for each of its elements,
// which all output channels share.
constexpr double kGathered = 20;
constexpr double kStep = 10000;  // for less nobody leaves a region: a Transpose is a step too

struct Decision {
  bool joins = false;
  double gain = 0;
};

// Whether an operand that is no image broadcasts along channels only, or not at all: then it is
// reshaped. `reshaped` (may be null) gets the dimensions.
bool BroadcastsAlongChannels(const Graph& graph, ValueId id, std::size_t rank, Dims* reshaped) {
  const graph::ValueInfo& value = graph.value(id);
  if (!value.is_constant()) return false;
  const Dims& dims = value.constant.dims();
  if (dims.size() > rank) return false;
  Dims full(rank - dims.size(), 1);
  full.insert(full.end(), dims.begin(), dims.end());
  const std::int64_t channels = full[1];
  full[1] = 1;
  if (std::any_of(full.begin(), full.end(), [](std::int64_t d) { return d != 1; })) return false;
  full.back() = channels;
  if (reshaped != nullptr) *reshaped = std::move(full);
  return true;
}

bool IsSingle(const Graph& graph, ValueId id) {
  const ValueType& type = graph.value(id).type;
  return type.kind == ValueKind::kTensor && type.has_rank &&
         std::all_of(type.dims.begin(), type.dims.end(), [](Dim d) { return d.Is(1); });
}

bool ConstantAxes(const Graph& graph, const Node& node, std::size_t input) {
  return input < node.inputs.size() && node.inputs[input] != kNone &&
         graph.value(node.inputs[input]).is_constant();
}

// For images of one rank: those of 1-D and of 2-D convolutions.
class Layout {
 public:
  Layout(PassContext& context, int rank) : context_(context), graph_(context.graph), rank_(rank) {
    to_last_ = {0};
    to_first_ = {0, rank - 1};
    for (int axis = 2; axis < rank; ++axis) {
      to_last_.push_back(axis);
      to_first_.push_back(axis - 1);
    }
    to_last_.push_back(1);
  }

  absl::StatusOr<int> Run() {
    NPURT_ASSIGN_OR_RETURN(const std::vector<NodeId> order, graph_.Order());
    Decide(order);
    last_.assign(graph_.value_count(), kNone);
    int changes = 0;
    for (NodeId id : order) {
      if (!in_[id] || gain_[Root(id)] <= 0) continue;
      NPURT_RETURN_IF_ERROR(Rewrite(id));
      ++changes;
    }
    return changes;
  }

 private:
  struct Rule {
    absl::string_view op;
    Decision (Layout::*decide)(const Node& node) const;
    absl::Status (Layout::*rewrite)(NodeId id);
    bool begins = false;  // a region
  };
  static constexpr int kRules = 22;
  static const std::array<Rule, kRules>& Rules() {
    static constexpr std::array<Rule, kRules> kTable = {{
        {"Conv", &Layout::DecideConv, &Layout::SetFormat, true},
        {"QLinearConv", &Layout::DecideByteConv, &Layout::SetFormat, true},
        {"AveragePool", &Layout::DecidePool, &Layout::SetFormat},
        {"MaxPool", &Layout::DecidePool, &Layout::SetFormat},
        {"BatchNormalization", &Layout::DecideNorm, &Layout::ToMulAndAdd},
        {"Reshape", &Layout::DecideShuffle, &Layout::Shuffle},
        {"Slice", &Layout::DecideSlice, &Layout::RenameAxesInput},
        {"GlobalAveragePool", &Layout::Join, &Layout::ToReduceMean},
        {"ReduceMean", &Layout::DecideReduce, &Layout::RenameAxesInput},
        {"ReduceMax", &Layout::DecideReduce, &Layout::RenameAxesInput},
        {"ReduceSum", &Layout::DecideReduce, &Layout::RenameAxesInput},
        {"Concat", &Layout::DecideConcat, &Layout::RenameAxis},
        {"Split", &Layout::DecideSplit, &Layout::RenameAxis},
        {"Resize", &Layout::Join, &Layout::RenameAxes},
        {"Softmax", &Layout::DecideSoftmax, &Layout::RenameAxis},
        {"Pad", &Layout::DecidePad, &Layout::RenameAxesInput},
        {"PRelu", &Layout::DecideElementwise, &Layout::ReshapeOperands},
        {"Identity", &Layout::Join, &Layout::Nothing},
        {"QLinearAdd", &Layout::DecideElementwise, &Layout::Nothing},
        {"QuantizeLinear", &Layout::DecideQuantize, &Layout::Nothing},
        {"DequantizeLinear", &Layout::DecideQuantize, &Layout::Nothing},
        {"", &Layout::DecideElementwise, &Layout::ReshapeOperands},  // any with a row
    }};
    return kTable;
  }
  const Rule* RuleFor(const Node& node) const {
    for (const Rule& rule : Rules())
      if (rule.op == node.op->name || (rule.op.empty() && node.op->row != nullptr)) return &rule;
    return nullptr;
  }

  bool IsImage(ValueId id) const {
    const ValueType& type = graph_.value(id).type;
    return type.kind == ValueKind::kTensor && type.has_rank &&
           static_cast<int>(type.dims.size()) == rank_;
  }
  std::int64_t NewAxis(std::int64_t axis) const { return to_first_[axis < 0 ? axis + rank_ : axis]; }

  // --- deciding ----------------------------------------------------------------------------------

  // A region is known by one of its nodes.
  NodeId Root(NodeId id) {
    while (parent_[id] != id) id = parent_[id] = parent_[parent_[id]];  // halves the way for the next
    return id;
  }
  void Unite(NodeId a, NodeId b) {
    a = Root(a), b = Root(b);
    parent_[b] = a;
  }

  bool IsImageNode(const Node& node) const {
    return node.control.empty() && !node.outputs.empty() &&
           std::all_of(node.outputs.begin(), node.outputs.end(),
                       [this](ValueId v) { return v != kNone && IsImage(v); }) &&
           !node.inputs.empty() && node.inputs[0] != kNone;
  }

  bool InRegion(NodeId id) const { return id != kNone && in_[id]; }

  void Decide(const std::vector<NodeId>& order) {
    in_.assign(graph_.node_count(), false);
    own_gain_.assign(graph_.node_count(), 0);
    stands_for_.resize(graph_.node_count());
    for (NodeId id = 0; id < graph_.node_count(); ++id) stands_for_[id] = id;
    for (NodeId id : order) {
      const Node& node = graph_.node(id);
      const Rule* rule = RuleFor(node);
      if (rule == nullptr || !IsImageNode(node)) continue;
      const std::vector<ValueId> inputs = InputsOf(node);
      if (!rule->begins && std::none_of(inputs.begin(), inputs.end(), [&](ValueId v) {
            return v != kNone && InRegion(graph_.value(v).producer);
          }))
        continue;
      const Decision decision = (this->*rule->decide)(node);
      in_[id] = decision.joins;
      own_gain_[id] = decision.gain;
      if (inputs != node.inputs) {
        const NodeId swap = graph_.value(node.inputs[0]).producer;
        stands_for_[swap] = stands_for_[graph_.value(graph_.node(swap).inputs[0]).producer] = id;
      }
    }
    Peel(order);
    parent_.resize(graph_.node_count());
    for (NodeId id = 0; id < graph_.node_count(); ++id) parent_[id] = id;
    for (ValueId v = 0; v < graph_.value_count(); ++v) {
      NodeId one = InRegion(graph_.value(v).producer) ? graph_.value(v).producer : kNone;
      for (const graph::Use& use : graph_.value(v).uses) {
        const NodeId reader = stands_for_[use.node];
        if (!in_[reader] || graph_.value(v).is_constant()) continue;
        if (one != kNone) Unite(one, reader);
        one = reader;
      }
    }
    gain_.assign(graph_.node_count(), 0);
    for (NodeId id : order)
      if (in_[id]) gain_[Root(id)] += own_gain_[id];
    for (ValueId v = 0; v < graph_.value_count(); ++v)
      if (const auto [reader, cost] = Crossing(v); cost > 0)
        gain_[Root(InRegion(graph_.value(v).producer) ? graph_.value(v).producer : reader)] -= cost;
  }

  // What a value costs that has readers, or the maker, on both sides of an edge: one Transpose. `reader`:
  // one inside.
  struct Edge {
    NodeId reader = kNone;
    double cost = 0;
  };
  // One of the caller's that ours undoes: MergeTransposes takes both out.
  bool IsTranspose(NodeId id, const std::vector<std::int64_t>& perm) const {
    return id != kNone && absl::string_view(graph_.node(id).op->name) == "Transpose" &&
           graph_.node(id).attributes.Ints("perm") == absl::MakeConstSpan(perm);
  }
  Edge Crossing(ValueId v) const {
    const graph::ValueInfo& value = graph_.value(v);
    if (value.is_constant() || !IsImage(v) || SameEitherWay(value.type)) return {};
    bool leaves = !context_.MayVanish(v);
    Edge edge;
    for (const graph::Use& use : value.uses) {
      if (const NodeId reader = stands_for_[use.node]; in_[reader]) {
        edge.reader = reader;
      } else {
        leaves = leaves || !IsTranspose(use.node, to_last_);
      }
    }
    if (InRegion(value.producer) ? leaves
                                 : edge.reader != kNone && !IsTranspose(value.producer, to_first_))
      edge.cost = kTransposed * SizeOf(value.type);
    return edge;
  }

  // Nodes whose leaving makes the whole cheaper leave, the last ones first, until none is left.
  void Peel(const std::vector<NodeId>& order) {
    // A value of many readers crosses the edge whatever one of them does; it must not be looked at by each.
    constexpr std::size_t kMostReaders = 64;
    const auto cost_of = [&](ValueId v) {
      return graph_.value(v).uses.size() > kMostReaders ? 0 : Crossing(v).cost;
    };
    const auto cost_around = [&](const Node& node) {
      double cost = 0;
      const std::vector<ValueId> inputs = InputsOf(node);
      const auto end = inputs.begin() + static_cast<std::ptrdiff_t>(std::min(inputs.size(), kMostReaders));
      for (auto v = inputs.begin(); v != end; ++v)
        if (*v != kNone && std::find(inputs.begin(), v, *v) == v) cost += cost_of(*v);
      for (ValueId v : node.outputs) cost += cost_of(v);
      return cost;
    };
    constexpr int kRounds = 4;
    bool changed = true;
    for (int round = 0; round < kRounds && changed; ++round) {
      changed = false;
      for (auto id = order.rbegin(); id != order.rend(); ++id) {
        if (!in_[*id]) continue;
        const double inside = cost_around(graph_.node(*id)) - own_gain_[*id];
        in_[*id] = false;
        in_[*id] = cost_around(graph_.node(*id)) + kStep >= inside;
        changed = changed || !in_[*id];
      }
    }
  }

  Decision Join(const Node& node) const { return {IsImage(node.inputs[0])}; }

  Decision DecideConv(const Node& node) const {
    const graph::ValueInfo& w = graph_.value(node.inputs[1]);
    if (!IsImage(node.inputs[0]) || !w.is_constant() || w.constant.rank() != rank_ ||
        w.constant.dtype() != DType::kF32 || w.constant.element_count() == 0 ||
        node.attributes.Has("data_format"))
      return {};
    const Dims& dims = w.constant.dims();
    const std::int64_t groups = node.attributes.Int("group", 1);
    const std::int64_t taps = dims[2] * (rank_ > 3 ? dims[3] : 1);
    const double macs = SizeOf(graph_.value(node.outputs[0]).type) * static_cast<double>(dims[1] * taps);
    if (taps > kernels::kMostChannelsLastTaps) return {};
    if (groups != 1 && dims[1] == 1 && dims[0] == groups)
      return {taps <= kernels::kMostDepthwiseLastTaps, macs / 0.12 - macs / 0.27};
    const std::int64_t outputs = dims[0] / groups;
    // Shares of the hardware's limit, as measured; the vectors of few output channels are not full.
    const double first = taps == 1 && groups == 1 ? 0.85
                         : outputs <= 4           ? 0.3
                                                  : std::min(0.6, 1 / (1.1 + kGathered / static_cast<double>(outputs)));
    const double full = static_cast<double>(outputs) / static_cast<double>((outputs + 15) / 16 * 16);
    return {true, macs / first - macs / (0.95 * full)};
  }

  // The same for bytes, whose multiply-adds count as a quarter of one.
  Decision DecideByteConv(const Node& node) const {
    const graph::ValueInfo& w = graph_.value(node.inputs[3]);
    if (!IsImage(node.inputs[0]) || !w.is_constant() || w.constant.rank() != rank_ ||
        w.constant.element_count() == 0 || node.attributes.Has("data_format"))
      return {};
    const Dims& dims = w.constant.dims();
    const std::int64_t groups = node.attributes.Int("group", 1);
    const std::int64_t taps = dims[2] * (rank_ > 3 ? dims[3] : 1);
    const bool depthwise = groups != 1 && dims[1] == 1 && dims[0] == groups;
    const double macs = SizeOf(graph_.value(node.outputs[0]).type) * static_cast<double>(dims[1] * taps);
    // Shares of the hardware's limit, as measured.
    if (depthwise) return {taps <= kernels::kMostIntDepthwiseTaps, macs / 4 * (1 / 0.02 - 1 / 0.1)};
    // Windows are copied together a line at a time, which counts where few channels share a line.
    const double lines = taps == 1 ? 0 : SizeOf(graph_.value(node.outputs[0]).type) / static_cast<double>(dims[0]) * static_cast<double>(dims[2]);
    return {groups == 1, macs / 4 * (1 / 0.2 - 1 / 0.5) - kLineCopied * lines};
  }

  Decision DecidePool(const Node& node) const {
    const DType type = graph_.value(node.outputs[0]).type.dtype;
    const bool bytes = (type == DType::kI8 || type == DType::kU8) && absl::string_view(node.op->name) == "MaxPool";
    return {node.outputs.size() == 1 && !node.attributes.Has("data_format") &&
            (type == DType::kF32 || bytes)};
  }
  Decision DecideReduce(const Node& node) const {
    return {IsImage(node.inputs[0]) && node.attributes.Int("keepdims", 1) == 1 &&
            ConstantAxes(graph_, node, 1)};
  }
  // The planner places inputs inside the result where channels come first; else they are copied.
  Decision DecideConcat(const Node& node) const {
    for (ValueId v : node.inputs)
      if (v == kNone || !IsImage(v) || graph_.value(v).is_constant()) return {};
    return {true, -kCopied * SizeOf(graph_.value(node.outputs[0]).type)};
  }
  Decision DecideSplit(const Node& node) const {
    return {IsImage(node.inputs[0]), -kCopied * SizeOf(graph_.value(node.inputs[0]).type)};
  }
  // Along channels, where it becomes faster.
  Decision DecideSoftmax(const Node& node) const {
    const std::int64_t axis = node.attributes.Int("axis", -1);
    return {axis == 1 || axis == 1 - rank_};
  }
  Decision DecidePad(const Node& node) const {
    const bool has_axes = node.inputs.size() > 3 && node.inputs[3] != kNone;
    return {IsImage(node.inputs[0]) && (!has_axes || ConstantAxes(graph_, node, 3))};
  }
  Decision DecideSlice(const Node& node) const {
    return {IsImage(node.inputs[0]) && ConstantAxes(graph_, node, 3),
            -kCopied * SizeOf(graph_.value(node.outputs[0]).type)};
  }
  Decision DecideNorm(const Node& node) const {
    if (node.outputs.size() != 1 || node.attributes.Int("training_mode") != 0) return {};
    for (int i = 1; i < 5; ++i)
      if (!graph_.value(node.inputs[i]).is_constant() ||
          graph_.value(node.inputs[i]).constant.dtype() != DType::kF32)
        return {};
    return {graph_.value(node.outputs[0]).type.dtype == DType::kF32};
  }

  // The last of three nodes that shuffle channels: [N, g * c, H, W] seen as [N, g, c, H, W], g and c
  // swapped, and seen as an image again.
  struct ShuffleOf {
    ValueId image;
    std::int64_t groups, channels;  // g and c
  };
  std::optional<ShuffleOf> ShuffleBefore(const Node& node) const {
    if (rank_ != 4) return std::nullopt;
    if (absl::string_view(node.op->name) != "Reshape") return std::nullopt;
    const Node* const swap = OnlyReadBy(node.inputs[0], "Transpose");
    if (swap == nullptr || swap->attributes.Ints("perm") != absl::MakeConstSpan(kSwap))
      return std::nullopt;
    const Node* const split = OnlyReadBy(swap->inputs[0], "Reshape");
    if (split == nullptr || !IsImage(split->inputs[0])) return std::nullopt;
    const SymDims& in = graph_.value(split->inputs[0]).type.dims;
    const SymDims& parts = graph_.value(split->outputs[0]).type.dims;
    if (in != graph_.value(node.outputs[0]).type.dims || parts.size() != 5 || parts[0] != in[0] ||
        parts[3] != in[2] || parts[4] != in[3] || !parts[1].is_constant() || !parts[2].is_constant())
      return std::nullopt;
    return ShuffleOf{split->inputs[0], parts[1].value(), parts[2].value()};
  }
  // What a node reads; a shuffle of channels reads the image before it.
  std::vector<ValueId> InputsOf(const Node& node) const {
    if (const auto shuffle = ShuffleBefore(node)) return {shuffle->image};
    return node.inputs;
  }
  // The node that makes `value`, if it is an `op` and nobody else reads it.
  const Node* OnlyReadBy(ValueId value, absl::string_view op) const {
    const graph::ValueInfo& info = graph_.value(value);
    if (info.producer == kNone || info.uses.size() != 1 || !context_.MayVanish(value)) return nullptr;
    const Node& node = graph_.node(info.producer);
    return op == node.op->name && node.control.empty() ? &node : nullptr;
  }
  Decision DecideShuffle(const Node& node) const {
    return {ShuffleBefore(node).has_value()};
  }

  Decision DecideElementwise(const Node& node) const {
    for (ValueId v : node.inputs) {
      if (v == kNone || IsSingle(graph_, v) || BroadcastsAlongChannels(graph_, v, rank_, nullptr)) continue;
      if (!IsImage(v) || graph_.value(v).is_constant()) return {};
    }
    return {true};
  }

  // With one scale for all.
  Decision DecideQuantize(const Node& node) const {
    return {std::all_of(node.inputs.begin() + 1, node.inputs.end(),
                        [this](ValueId v) { return v == kNone || IsSingle(graph_, v); })};
  }

  // --- rewriting ---------------------------------------------------------------------------------

  ValueId Transposed(ValueId from, const std::vector<std::int64_t>& perm) {
    ValueType type = graph_.value(from).type;
    SymDims dims;
    for (std::int64_t axis : perm) dims.push_back(type.dims[axis]);
    type.dims = std::move(dims);
    return graph_.AddRawValue(std::string(), std::move(type));
  }
  NodeId AddTranspose(ValueId from, ValueId to, const std::vector<std::int64_t>& perm,
                      NodeId origin) {
    Attributes attributes;
    attributes.Set("perm", perm);
    const NodeId id = graph_.AddRawNode(ops::FindOp("Transpose"), "", {from}, {to}, std::move(attributes));
    graph_.MergeOrigins(id, origin);
    return id;
  }

  // `id` with its channels last.
  ValueId LastOf(ValueId id, NodeId reader) {
    if (static_cast<std::size_t>(id) < last_.size() && last_[id] != kNone) return last_[id];
    const ValueId made = Transposed(id, to_last_);
    AddTranspose(id, made, to_last_, reader);
    SetLast(id, made);
    return made;
  }
  void SetLast(ValueId id, ValueId twin) {
    last_.resize(graph_.value_count(), kNone);
    last_[id] = twin;
  }

  ValueId AddConstant(Tensor tensor) {
    const ValueId id = graph_.AddRawValue(
        std::string(), ValueType::OfTensor(tensor.dtype(), ToSymDims(tensor.dims())));
    graph_.mutable_value(id).constant = std::move(tensor);
    SetLast(id, id);
    return id;
  }
  absl::StatusOr<ValueId> AddIntegers(const std::vector<std::int64_t>& numbers) {
    NPURT_ASSIGN_OR_RETURN(
        Tensor tensor, Tensor::Create(DType::kI64, {static_cast<std::int64_t>(numbers.size())}));
    for (std::size_t i = 0; i < numbers.size(); ++i)
      tensor.set(static_cast<std::int64_t>(i), numbers[i]);
    return AddConstant(std::move(tensor));
  }

  absl::Status Rewrite(NodeId id) {
    NPURT_RETURN_IF_ERROR((this->*RuleFor(graph_.node(id))->rewrite)(id));
    for (std::size_t i = 0; i < graph_.node(id).inputs.size(); ++i) {
      const ValueId v = graph_.node(id).inputs[i];
      const absl::string_view op = graph_.node(id).op->name;
      const bool weights = (i == 1 && op == "Conv") || (i == 3 && op == "QLinearConv");
      if (v == kNone || weights || !IsImage(v) || (i > 0 && IsSingle(graph_, v))) continue;
      graph_.SetInput(id, static_cast<int>(i), LastOf(v, id));
    }
    const std::vector<ValueId> outputs = graph_.node(id).outputs;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const ValueId made = Transposed(outputs[i], to_last_);
      graph_.SetProducer(made, id, static_cast<int>(i));
      AddTranspose(made, outputs[i], to_first_, id);
      SetLast(outputs[i], made);
    }
    return graph_.Infer(id);
  }

  absl::Status Nothing(NodeId) { return absl::OkStatus(); }

  absl::Status SetFormat(NodeId id) {
    graph_.mutable_node(id).attributes.Set("data_format", std::string("NHWC"));
    return absl::OkStatus();
  }

  absl::Status RenameAxis(NodeId id) {
    Attributes& attributes = graph_.mutable_node(id).attributes;
    const bool is_softmax = absl::string_view(graph_.node(id).op->name) == "Softmax";
    attributes.Set("axis", NewAxis(attributes.Int("axis", is_softmax ? -1 : 0)));
    return absl::OkStatus();
  }

  // The attribute `axes`; without one, all axes in their order.
  absl::Status RenameAxes(NodeId id) {
    Attributes& attributes = graph_.mutable_node(id).attributes;
    std::vector<std::int64_t> axes = to_first_;
    if (attributes.Has("axes")) {
      axes.clear();
      for (std::int64_t axis : attributes.Ints("axes")) axes.push_back(NewAxis(axis));
    }
    attributes.Set("axes", std::move(axes));
    return absl::OkStatus();
  }

  // The same as an input, the last one.
  absl::Status RenameAxesInput(NodeId id) {
    const Node& node = graph_.node(id);
    const bool third = absl::string_view(node.op->name) == "Pad" || absl::string_view(node.op->name) == "Slice";
    const int input = third ? 3 : 1;
    std::vector<std::int64_t> axes = to_first_;
    if (ConstantAxes(graph_, node, static_cast<std::size_t>(input))) {
      NPURT_ASSIGN_OR_RETURN(axes, Integers(graph_.value(node.inputs[input]).constant));
      for (std::int64_t& axis : axes) axis = NewAxis(axis);
    }
    NPURT_ASSIGN_OR_RETURN(const ValueId constant, AddIntegers(axes));
    graph_.SetInput(id, input, constant);
    return absl::OkStatus();
  }

  absl::Status ToReduceMean(NodeId id) {
    NPURT_ASSIGN_OR_RETURN(const ValueId axes, AddIntegers(std::vector<std::int64_t>(to_first_.begin() + 2, to_first_.end())));
    Node& node = graph_.mutable_node(id);
    node.op = ops::FindOp("ReduceMean");
    node.attributes = Attributes();
    graph_.SetInput(id, 1, axes);
    return absl::OkStatus();
  }

  // Scale and shift as constants; what follows makes one chain of them.
  absl::Status ToMulAndAdd(NodeId id) {
    std::vector<double> numbers[4];  // scale, bias, mean, variance
    for (int i = 0; i < 4; ++i) {
      NPURT_ASSIGN_OR_RETURN(numbers[i], Reals(graph_.value(graph_.node(id).inputs[i + 1]).constant));
    }
    const double epsilon = graph_.node(id).attributes.Float("epsilon", 1e-5f);
    Dims dims(static_cast<std::size_t>(rank_), 1);
    dims.back() = static_cast<std::int64_t>(numbers[0].size());
    NPURT_ASSIGN_OR_RETURN(Tensor scale, Tensor::Create(DType::kF32, dims));
    NPURT_ASSIGN_OR_RETURN(Tensor shift, Tensor::Create(DType::kF32, dims));
    for (std::size_t c = 0; c < numbers[0].size(); ++c) {
      const double s = numbers[0][c] / std::sqrt(numbers[3][c] + epsilon);
      scale.set(static_cast<std::int64_t>(c), static_cast<float>(s));
      shift.set(static_cast<std::int64_t>(c), static_cast<float>(numbers[1][c] - numbers[2][c] * s));
    }
    const ValueId x = LastOf(graph_.node(id).inputs[0], id);
    const ValueId product = graph_.AddRawValue(std::string(), graph_.value(x).type);
    SetLast(product, product);
    const NodeId mul = graph_.AddRawNode(ops::FindOp("Mul"), "", {x, AddConstant(std::move(scale))},
                                         {product}, Attributes());
    graph_.MergeOrigins(mul, id);
    return Become(id, "Add", {product, AddConstant(std::move(shift))});
  }

  absl::Status Shuffle(NodeId id) {
    const ShuffleOf shuffle = *ShuffleBefore(graph_.node(id));
    const NodeId swap = graph_.value(graph_.node(id).inputs[0]).producer;
    const NodeId split = graph_.value(graph_.node(swap).inputs[0]).producer;
    const ValueId x = LastOf(shuffle.image, id);
    const SymDims& dims = graph_.value(x).type.dims;
    const SymDims parts = {dims[0], dims[1], dims[2], Dim(shuffle.groups), Dim(shuffle.channels)};
    const SymDims swapped = {dims[0], dims[1], dims[2], Dim(shuffle.channels), Dim(shuffle.groups)};
    const auto add = [&](const char* op, std::vector<ValueId> inputs, const SymDims& shape,
                         Attributes attributes, NodeId origin) {
      const ValueId out = graph_.AddRawValue(
          std::string(), ValueType::OfTensor(graph_.value(x).type.dtype, shape));
      const NodeId made =
          graph_.AddRawNode(ops::FindOp(op), "", std::move(inputs), {out}, std::move(attributes));
      graph_.MergeOrigins(made, origin);
      return out;
    };
    NPURT_ASSIGN_OR_RETURN(const ValueId parts_shape,
                           AddIntegers({0, 0, 0, shuffle.groups, shuffle.channels}));
    NPURT_ASSIGN_OR_RETURN(const ValueId whole_shape, AddIntegers({0, 0, 0, -1}));
    Attributes perm;
    perm.Set("perm", std::vector<std::int64_t>{0, 1, 2, 4, 3});
    ValueId y = add("Reshape", {x, parts_shape}, parts, Attributes(), split);
    y = add("Transpose", {y}, swapped, std::move(perm), swap);
    return Become(id, "Reshape", {y, whole_shape});
  }

  // `id` is another operator now.
  absl::Status Become(NodeId id, const char* op, const std::vector<ValueId>& inputs) {
    for (std::size_t i = inputs.size(); i < graph_.node(id).inputs.size(); ++i)
      if (graph_.node(id).inputs[i] != kNone) graph_.SetInput(id, static_cast<int>(i), kNone);
    Node& node = graph_.mutable_node(id);
    node.op = ops::FindOp(op);
    node.attributes = Attributes();
    for (std::size_t i = 0; i < inputs.size(); ++i)
      graph_.SetInput(id, static_cast<int>(i), inputs[i]);
    graph_.mutable_node(id).inputs.resize(inputs.size());
    return absl::OkStatus();
  }

  absl::Status ReshapeOperands(NodeId id) {
    const std::vector<ValueId> inputs = graph_.node(id).inputs;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      Dims dims;
      if (inputs[i] == kNone || IsSingle(graph_, inputs[i]) ||
          !BroadcastsAlongChannels(graph_, inputs[i], rank_, &dims))
        continue;
      graph_.SetInput(id, static_cast<int>(i),
                      AddConstant(graph_.value(inputs[i]).constant.Reshaped(dims)));
    }
    return absl::OkStatus();
  }

  PassContext& context_;
  Graph& graph_;
  const int rank_;
  std::vector<std::int64_t> to_last_;   // perm of a Transpose
  std::vector<std::int64_t> to_first_;  // also: where each axis went
  std::vector<bool> in_;          // of a node: in some region
  std::vector<NodeId> stands_for_;  // of a node: itself, or the last of the shuffle that it is part of
  std::vector<double> own_gain_;  // of a node
  std::vector<NodeId> parent_;    // of a node: another of its region, or itself
  std::vector<double> gain_;      // of a region, at its root
  std::vector<ValueId> last_;  // of a value: its twin with the channels last
};

}  // namespace

absl::StatusOr<int> ChooseLayouts(PassContext& context) {
  NPURT_ASSIGN_OR_RETURN(const int signals, Layout(context, 3).Run());
  NPURT_ASSIGN_OR_RETURN(const int pictures, Layout(context, 4).Run());
  return signals + pictures;
}

}  // namespace npurt::compile
