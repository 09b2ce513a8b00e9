// WidenHalf: a device that cannot compute in float16 and bfloat16 computes in float32 what the
// graph says of them.
//
// A node is widened if each of its half operands is of a type that the operator's schema leaves
// open: it then reads and makes float32 twins of the values. Constants get their twin here. A Cast
// stands where a value changes width: behind inputs, before outputs and kept values, around nodes
// that are not widened (their schema or meaning needs the narrow type) and at subgraphs, whose
// boundaries stay as declared. Nodes that only move bytes stay narrow until they meet a value that
// is wide.
//
// RoundHalf does the same where options have chosen the types: what a node makes is then rounded to
// its type, once, before anybody reads it. Nodes that only select among or negate what they are given
// make nothing that needs rounding; before one that keeps the order of numbers (Relu) rounding
// waits for its result, so that both stay one step.
#include <algorithm>

#include "compile/compile.h"
#include "ops/ops_info.h"

namespace npurt::compile {
namespace {

using graph::Graph;
using graph::kNone;
using graph::Node;
using graph::NodeId;
using graph::ValueId;

constexpr DTypeSet kHalf = DTypes(DType::kF16, DType::kBF16);

enum class Kind {
  kMoves,   // values as they are
  kRounds,  // its result is what it is because of its declared type; its input may be wide
  kNarrow,  // its input is what it is because of its declared type
};
struct Special {
  absl::string_view op;
  Kind kind;
};
constexpr Special kSpecial[] = {
    {"BitCast", Kind::kNarrow},        {"Cast", Kind::kRounds},
    {"CastLike", Kind::kNarrow},       {"CenterCropPad", Kind::kMoves},
    {"Compress", Kind::kMoves},        {"Concat", Kind::kMoves},
    {"DepthToSpace", Kind::kMoves},    {"DequantizeLinear", Kind::kNarrow},
    {"Expand", Kind::kMoves},          {"Flatten", Kind::kMoves},
    {"Gather", Kind::kMoves},          {"GatherElements", Kind::kMoves},
    {"GatherND", Kind::kMoves},        {"HostCall", Kind::kNarrow},
    {"Identity", Kind::kMoves},        {"QuantizeLinear", Kind::kNarrow},
    {"Reshape", Kind::kMoves},         {"ReverseSequence", Kind::kMoves},
    {"ScatterElements", Kind::kMoves}, {"ScatterND", Kind::kMoves},
    {"Shape", Kind::kMoves},           {"Size", Kind::kMoves},
    {"Slice", Kind::kMoves},           {"SpaceToDepth", Kind::kMoves},
    {"Split", Kind::kMoves},           {"Squeeze", Kind::kMoves},
    {"TensorScatter", Kind::kMoves},   {"Tile", Kind::kMoves},
    {"Transpose", Kind::kMoves},       {"Trilu", Kind::kMoves},
    {"Unique", Kind::kNarrow},         {"Unsqueeze", Kind::kMoves},
    {"Where", Kind::kMoves},
};

const Special* FindSpecial(absl::string_view op) {
  const auto* found = std::find_if(std::begin(kSpecial), std::end(kSpecial),
                                   [op](const Special& special) { return special.op == op; });
  return found == std::end(kSpecial) ? nullptr : found;
}

// Operators whose result is representable if what they read is; kKeepsOrder also f(round(x)) =
// round(f(x)).
struct Exact {
  absl::string_view op;
  bool keeps_order;
};
constexpr Exact kExact[] = {
    {"Abs", false},       {"Ceil", false},      {"Clip", true},  {"Floor", false},
    {"GlobalMaxPool", true}, {"Hardmax", false}, {"Max", false},  {"MaxPool", true},
    {"Min", false},       {"Neg", false},       {"Pad", false},  {"ReduceMax", true},
    {"ReduceMin", true},  {"Relu", true},       {"Round", false}, {"Sign", false},
    {"ThresholdedRelu", false}, {"TopK", false},
};

bool IsExact(absl::string_view op) {
  const Special* special = FindSpecial(op);
  return (special != nullptr && special->kind == Kind::kMoves) ||
         std::any_of(std::begin(kExact), std::end(kExact),
                     [op](const Exact& exact) { return exact.op == op; });
}
bool KeepsOrder(absl::string_view op) {
  return std::any_of(std::begin(kExact), std::end(kExact),
                     [op](const Exact& exact) { return exact.op == op && exact.keeps_order; });
}

class Widener {
 public:
  Widener(PassContext& context, bool rounds)
      : context_(context),
        graph_(context.graph),
        rounds_(rounds),
        unrounded_(static_cast<std::size_t>(context.graph.value_count()), false),
        rounded_(static_cast<std::size_t>(context.graph.value_count()), false),
        wide_(static_cast<std::size_t>(context.graph.value_count()), kNone) {}

  absl::StatusOr<int> Run() {
    NPURT_ASSIGN_OR_RETURN(const std::vector<NodeId> order, graph_.Order());
    int changes = 0;
    for (NodeId id : order) {
      const Special* special = FindSpecial(graph_.node(id).op->name);
      if (special != nullptr && special->kind == Kind::kNarrow) continue;
      if (special != nullptr && special->kind == Kind::kRounds) {
        ReadWide(id);
      } else if ((special == nullptr || MeetsWide(id)) && MayWiden(graph_.node(id))) {
        NPURT_RETURN_IF_ERROR(Widen(id));
        ++changes;
      }
    }
    NarrowAgain();
    return changes;
  }

 private:
  bool IsHalf(ValueId id) const {
    if (id == kNone) return false;
    const ValueType& type = graph_.value(id).type;
    return type.kind == ValueKind::kTensor && Contains(kHalf, type.dtype);
  }
  ValueId WideOf(ValueId id) const {
    return id != kNone && static_cast<std::size_t>(id) < wide_.size()
               ? wide_[static_cast<std::size_t>(id)]
               : kNone;
  }

  bool IsRounded(ValueId id) const {
    return id != kNone && static_cast<std::size_t>(id) < rounded_.size() &&
           rounded_[static_cast<std::size_t>(id)];
  }

  // A value that it reads was made wide; constants and casts of inputs do not count.
  bool MeetsWide(NodeId id) const {
    const Node& node = graph_.node(id);
    return std::any_of(node.inputs.begin(), node.inputs.end(), [this](ValueId in) {
      return IsRounded(in) || (WideOf(in) != kNone && !graph_.value(in).is_constant() &&
                               graph_.value(in).producer == kNone && !graph_.value(in).is_input);
    });
  }

  bool MayWiden(const Node& node) const {
    if (graph::EffectsOf(node) != ops::kPure) return false;
    for (const Attribute& attribute : node.attributes.all())
      if (std::holds_alternative<std::shared_ptr<const Subgraph>>(attribute.value)) return false;
    const ops::OpDef& op = *node.op;
    absl::InlinedVector<const ops::TypeVar*, 4> open;  // that become float32
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] == kNone) continue;
      if (graph_.value(node.inputs[i]).type.kind != ValueKind::kTensor) return false;
      if (!IsHalf(node.inputs[i])) continue;
      const ops::TypeVar* variable = ops::VariableOf(op, op.inputs, i);
      if (variable == nullptr || !Contains(variable->allowed, DType::kF32)) return false;
      open.push_back(variable);
    }
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] == kNone) continue;
      if (graph_.value(node.outputs[i]).type.kind != ValueKind::kTensor) return false;
      if (!IsHalf(node.outputs[i])) continue;
      const ops::TypeVar* variable = ops::VariableOf(op, op.outputs, i);
      if (std::find(open.begin(), open.end(), variable) == open.end()) return false;
    }
    return !open.empty();
  }

  ValueId NewTwin(ValueId id) {
    ValueType type = graph_.value(id).type;
    type.dtype = DType::kF32;
    // The name of a value that stays observable is its own.
    const ValueId twin = graph_.AddRawValue(
        context_.MayVanish(id) ? graph_.value(id).name : std::string(), std::move(type));
    graph_.mutable_value(twin).origins = graph_.value(id).origins;
    return twin;
  }

  // The same value as float32.
  absl::StatusOr<ValueId> Twin(ValueId id) {
    ValueId& twin = wide_[static_cast<std::size_t>(id)];
    if (twin != kNone) return twin;
    twin = NewTwin(id);
    if (graph_.value(id).is_constant()) {
      const Tensor narrow = graph_.value(id).constant;
      NPURT_ASSIGN_OR_RETURN(Tensor wide, Tensor::Create(DType::kF32, narrow.dims()));
      DispatchDType<kHalf>(narrow.dtype(), [&](auto type) {
        for (std::int64_t i = 0; i < narrow.element_count(); ++i)
          wide.set(i, static_cast<float>(narrow.at<decltype(type)>(i)));
      });
      graph_.mutable_value(twin).constant = std::move(wide);
    } else {
      AddCast(id, twin);
    }
    return twin;
  }

  void AddCast(ValueId from, ValueId to) {
    Attributes attributes;
    attributes.Set("to", static_cast<std::int64_t>(graph_.value(to).type.dtype));
    const NodeId producer = graph_.value(from).producer;
    const NodeId cast = graph_.AddRawNode(ops::FindOp("Cast"), "", {from}, {to}, attributes);
    if (producer != kNone) graph_.MergeOrigins(cast, producer);
  }

  // The result of a node is not representable, and somebody may tell.
  bool Rounds(NodeId id, ValueId out) {
    if (!rounds_) return false;
    const Node& node = graph_.node(id);
    const bool exact = IsExact(node.op->name) &&
                       std::none_of(node.inputs.begin(), node.inputs.end(), [this](ValueId in) {
                         return in != kNone && static_cast<std::size_t>(in) < unrounded_.size() &&
                                unrounded_[static_cast<std::size_t>(in)];
                       });
    if (exact) return false;
    const auto& uses = graph_.value(out).uses;
    const bool waits = uses.size() == 1 && uses[0].input == 0 && context_.MayVanish(out) &&
                       KeepsOrder(graph_.node(uses[0].node).op->name) &&
                       MayWiden(graph_.node(uses[0].node));
    unrounded_[static_cast<std::size_t>(out)] = waits;
    return !waits;
  }

  absl::Status Widen(NodeId id) {
    absl::InlinedVector<bool, 4> rounds;
    for (ValueId out : graph_.node(id).outputs) rounds.push_back(IsHalf(out) && Rounds(id, out));
    for (std::size_t i = 0; i < graph_.node(id).inputs.size(); ++i) {
      const ValueId in = graph_.node(id).inputs[i];
      if (!IsHalf(in)) continue;
      NPURT_ASSIGN_OR_RETURN(const ValueId twin, Twin(in));
      graph_.SetInput(id, static_cast<int>(i), twin);
    }
    for (std::size_t i = 0; i < graph_.node(id).outputs.size(); ++i) {
      const ValueId out = graph_.node(id).outputs[i];
      if (!IsHalf(out)) continue;
      const ValueId twin = NewTwin(out);
      graph_.mutable_value(out).producer = kNone;
      graph_.SetProducer(twin, id, static_cast<int>(i));
      if (rounds[i]) {
        AddCast(twin, out);
        rounded_[static_cast<std::size_t>(out)] = true;
        continue;
      }
      wide_[static_cast<std::size_t>(out)] = twin;
      moved_.push_back(out);
    }
    return absl::OkStatus();
  }

  // A Cast reads what is wide without rounding it first.
  void ReadWide(NodeId id) {
    if (!MeetsWide(id) || WideOf(graph_.node(id).inputs[0]) == kNone) return;
    graph_.SetInput(id, 0, WideOf(graph_.node(id).inputs[0]));
  }

  // Who still wants the narrow value gets it from its twin.
  void NarrowAgain() {
    for (ValueId id : moved_)
      if (!graph_.value(id).uses.empty() || !context_.MayVanish(id))
        AddCast(wide_[static_cast<std::size_t>(id)], id);
  }

  PassContext& context_;
  Graph& graph_;
  const bool rounds_;
  std::vector<bool> unrounded_;  // values that wait for a Relu to be rounded
  std::vector<bool> rounded_;    // values that a node made wide and a Cast rounds
  std::vector<ValueId> wide_;   // by narrow value
  std::vector<ValueId> moved_;  // whose producers make their twins
};

}  // namespace

absl::StatusOr<int> WidenHalf(PassContext& context) { return Widener(context, false).Run(); }
absl::StatusOr<int> RoundHalf(PassContext& context) { return Widener(context, true).Run(); }

}  // namespace npurt::compile
