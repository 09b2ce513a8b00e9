// Decide: the types of every node, from the mode, the lists and what feeds it.
#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compile/precision/precision.h"

namespace npurt::compile::precision {
namespace {

using graph::Graph;
using graph::kNone;
using graph::Node;
using graph::NodeId;
using graph::ValueId;
using ops::Engine;
using ops::PrecisionReduce;
using options::CustomDtypes;
using Types = absl::InlinedVector<DType, 4>;

constexpr DType kF32 = DType::kF32, kF16 = DType::kF16, kBF16 = DType::kBF16;

// Types for an operand, best first. If none is left: nothing happens, or, with `must`, this engine
// cannot compute the node.
struct Want {
  Types types;
  bool must = false;
  std::string why;
};

// The types that are as good as `own` before those that are less: what the modes that do not lower
// by themselves go by. They are the documents' sentences, one each.
Types OwnFirst(DType own) {
  if (own == kF32) return {kF32, kF16};
  if (own == kBF16) return {kBF16, kF32, kF16};
  return {kF16, kF32};
}
Types OwnFirstBf16(DType own) {
  if (own == kF32) return {kF32, kBF16};
  if (own == kBF16) return {kBF16, kF32};
  return {kF16, kF32};
}
// What matrix operators take under allow_fp32_to_fp16.
Types LoweredFirst(DType own) { return own == kBF16 ? OwnFirst(own) : Types{kF16, kF32}; }
Types OwnOrWider(DType own) { return own == kF32 ? Types{kF32} : Types{own, kF32}; }

bool Keep(const Node& node) { return node.attributes.Int("_keep_dtype") != 0; }

std::string Text(DType dtype) { return std::string(DTypeName(dtype)); }
std::string Text(const Column& column) {
  const auto names = [](const Types& types) {
    return absl::StrJoin(types, ", ", [](std::string* out, DType dtype) {
      out->append(dtype == DType::kUndefined ? "-" : Text(dtype));
    });
  };
  return absl::StrCat("(", names(column.inputs), ") -> (", names(column.outputs), ")");
}
std::string Text(const std::vector<Column>& columns) {
  if (columns.empty()) return "none";
  return absl::StrJoin(columns, "; ", [](std::string* out, const Column& c) { *out += Text(c); });
}

DType& At(Column& column, bool output, std::size_t i) {
  return output ? column.outputs[i] : column.inputs[i];
}

// Leaves the columns that have the first wanted type that there is.
bool Filter(std::vector<Column>* columns, bool output, std::size_t i, const Types& wanted) {
  for (const DType dtype : wanted) {
    const auto other = [&](Column& column) { return At(column, output, i) != dtype; };
    if (std::all_of(columns->begin(), columns->end(), other)) continue;
    columns->erase(std::remove_if(columns->begin(), columns->end(), other), columns->end());
    return true;
  }
  return false;
}

class Decider {
 public:
  Decider(const Graph& graph, const Settings& settings) : graph_(graph), settings_(settings) {
    for (ValueId id = 0; id < graph.value_count(); ++id) chosen_.push_back(TypeOf(id));
  }

  absl::StatusOr<Plan> Run() {
    NPURT_ASSIGN_OR_RETURN(const std::vector<NodeId> order, graph_.Order());
    Plan result;
    for (NodeId id : order) {
      NPURT_ASSIGN_OR_RETURN(NodePlan plan, Visit(id));
      for (const OperandPlan& out : plan.outputs)
        if (out.value != kNone) chosen_[static_cast<std::size_t>(out.value)] = out.chosen;
      result.nodes.push_back(std::move(plan));
    }
    return result;
  }

 private:
  DType TypeOf(ValueId id) const {
    if (id == kNone || graph_.value(id).type.kind != ValueKind::kTensor) return DType::kUndefined;
    return graph_.value(id).type.dtype;
  }
  bool mixed() const {
    return settings_.mode == Mode::kMixFp16 || settings_.mode == Mode::kMixBf16;
  }
  DType target() const { return settings_.mode == Mode::kMixBf16 ? kBF16 : kF16; }

  PrecisionReduce ListOf(const Node& node) const {
    for (const std::string& type : {std::string(node.op->name), node.original_op})
      if (const auto found = settings_.lists.find(type); found != settings_.lists.end())
        return found->second;
    if (settings_.info != nullptr)
      if (const auto* row = settings_.info->Find(node.op->name); row != nullptr && row->lowered)
        return *row->lowered ? PrecisionReduce::kWhite : PrecisionReduce::kBlack;
    return ops::PrecisionReduceOf(node.op->name);
  }

  // The entry for this node, its name before its type; null if there is none.
  const CustomDtypes::Entry* CustomOf(const Node& node) const {
    const CustomDtypes::Entry* by_type = nullptr;
    for (const CustomDtypes::Entry& entry : settings_.custom) {
      if (entry.by_type) {
        if (entry.name == node.op->name || entry.name == node.original_op) by_type = &entry;
      } else if (entry.name == node.name || std::find(node.origins.begin(), node.origins.end(),
                                                      entry.name) != node.origins.end()) {
        return &entry;
      }
    }
    return by_type;
  }

  // The value whose type a gray node follows at an input: behind a cast that mixed precision made
  // pointless, what it casts.
  ValueId Source(ValueId id) const {
    const NodeId producer = graph_.value(id).producer;
    if (producer == kNone) return id;
    const Node& cast = graph_.node(producer);
    if (absl::string_view(cast.op->name) != "Cast" || ListOf(cast) == PrecisionReduce::kBlack)
      return id;
    const DType to = TypeOf(id);
    const bool undone =
        TypeOf(cast.inputs[0]) == target() && Contains(ops::kExchangeable, to) && to != target();
    return undone ? cast.inputs[0] : id;
  }

  // Constants and variables are asked last.
  bool IsData(ValueId id) const {
    const graph::ValueInfo& value = graph_.value(id);
    return value.is_constant() ||
           (value.producer != kNone && graph_.node(value.producer).op->shares_variable);
  }

  Want Gray(NodePlan* plan, bool output, std::size_t i) const {
    const OperandPlan& operand = output ? plan->outputs[i] : plan->inputs[i];
    const DType own = operand.original;
    Want want;
    if (output) {
      want.types = target() == kBF16 ? OwnFirstBf16(own) : OwnFirst(own);
      want.why = "output: its own type first, of what the inputs leave";
      return want;
    }
    const ValueId source = Source(operand.value);
    const NodeId producer = graph_.value(source).producer;
    if (producer == kNone && !graph_.value(source).is_constant()) {
      want.types = target() == kBF16 ? OwnFirstBf16(own) : OwnFirst(own);
      want.why = "no producer: its own type first";
      return want;
    }
    const DType previous = chosen_[static_cast<std::size_t>(source)];
    want.types = {previous};
    if (previous != kF32) want.types.push_back(kF32);
    if (previous != target()) want.types.push_back(target());
    if (IsData(operand.value)) {
      want.why = absl::StrCat("constant: asked last, ", Text(previous), " first");
      return want;
    }
    const std::string name = NodeName(graph_, graph_.node(producer));
    want.why = absl::StrCat("follows '", name, "': ", Text(previous));
    if (plan->producer.empty()) plan->producer = name;
    return want;
  }

  Want Mixed(NodePlan* plan, bool output, std::size_t i) const {
    const DType own = (output ? plan->outputs[i] : plan->inputs[i]).original;
    Want want;
    switch (plan->list) {
      case PrecisionReduce::kWhite:
        if (settings_.older && own == kBF16)
          return {OwnOrWider(own), false, "white: only float32 is lowered"};
        want.types = {target()};
        for (const DType dtype : OwnOrWider(own)) want.types.push_back(dtype);
        want.why = absl::StrCat("white: ", Text(target()), " first");
        return want;
      case PrecisionReduce::kBlack:
        return {OwnOrWider(own), true, "black: its own type or a wider one"};
      case PrecisionReduce::kGray:
        break;
    }
    return Gray(plan, output, i);
  }

  Want WantOf(NodePlan* plan, const Node& node, bool output, std::size_t i) const {
    const DType own = (output ? plan->outputs[i] : plan->inputs[i]).original;
    const bool matrix = ops::IsMatrix(node.op->name);
    if (Keep(node) && settings_.mode != Mode::kKeepOrigin)
      return {OwnFirst(own), true, "keep_dtype: its own type first"};
    switch (settings_.mode) {
      case Mode::kKeepOrigin:
        return {OwnOrWider(own), true, "origin: its own type"};
      case Mode::kForceFp16:
        return {{kF16, own, kF32}, true, "forced to float16"};
      case Mode::kForceFp32:
        return {{kF32, own}, true, "forced to float32"};
      case Mode::kCubeFp32:
        if (plan->list == PrecisionReduce::kBlack)
          return {{kF32}, true, "vector operator, black: float32"};
        return {{kF32, own, kF16}, true, "vector operator: float32 first"};
      case Mode::kAllowFp32ToFp16:
        if (matrix && !settings_.older)
          return {LoweredFirst(own), true, "matrix operator: float16 instead of float32"};
        return {OwnFirst(own), true, "vector operator: its own type first"};
      case Mode::kAllowFp32ToBf16:
        return {OwnFirstBf16(own), true, "its own type first"};
      case Mode::kMixFp16:
      case Mode::kMixBf16:
        break;
    }
    return Mixed(plan, output, i);
  }

  // Matrix operators under cube_fp16in_fp32out: the first operand and the result decide.
  bool FilterCube(NodePlan* plan, std::vector<Column>* columns) const {
    constexpr DType kSteps[][2] = {{kF16, kF32}, {kF32, kF32}, {kF16, kF16}};
    for (const auto& [in, out] : kSteps) {
      std::vector<Column> left = *columns;
      if (!Filter(&left, false, 0, {in}) || !Filter(&left, true, 0, {out})) continue;
      *columns = {left[0]};
      const std::string why =
          absl::StrCat("matrix operator: ", Text(in), " in, ", Text(out), " out");
      for (auto* side : {&plan->inputs, &plan->outputs})
        for (OperandPlan& operand : *side) operand.why = why;
      plan->rule = why;
      return true;
    }
    return false;
  }

  // Exactly what customize_dtypes says.
  absl::Status FilterCustom(const Node& node, const CustomDtypes::Entry& entry, NodePlan* plan,
                            std::vector<Column>* columns) const {
    const std::string name =
        absl::StrCat("customize_dtypes: ", entry.by_type ? "OpType::" : "", entry.name);
    const std::vector<Column> all = *columns;
    for (const bool output : {false, true}) {
      const std::vector<DType>& wanted = output ? entry.outputs : entry.inputs;
      std::vector<OperandPlan>& operands = output ? plan->outputs : plan->inputs;
      const char* side = output ? "output" : "input";
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        if (wanted[i] == DType::kUndefined) continue;
        if (i >= operands.size() || operands[i].original == DType::kUndefined)
          return absl::InvalidArgumentError(absl::StrCat(node.Where(graph_), ": ", name, " wants ",
                                                         side, " ", i, " in ", Text(wanted[i]),
                                                         ", and the node has no such tensor"));
        if (!Filter(columns, output, i, {wanted[i]}))
          return absl::InvalidArgumentError(absl::StrCat(
              node.Where(graph_), ": ", name, " wants ", side, " ", i, " in ", Text(wanted[i]),
              ", which the operator does not compute; it has ", Text(all)));
        operands[i].why = name;
      }
    }
    plan->rule = name;
    return absl::OkStatus();
  }

  // The inputs in the order in which they decide.
  std::vector<std::size_t> InputOrder(const NodePlan& plan) const {
    std::vector<std::size_t> order;
    for (const bool data : {false, true})
      for (std::size_t i = 0; i < plan.inputs.size(); ++i)
        if (plan.inputs[i].value != kNone && IsData(plan.inputs[i].value) == data)
          order.push_back(i);
    return order;
  }

  // False if a filter that must find a type finds none. `relaxed`: customize_dtypes has left what
  // there is, and comes first.
  bool FilterAll(const Node& node, bool relaxed, NodePlan* plan,
                 std::vector<Column>* columns) const {
    if (settings_.mode == Mode::kCubeFp32 && ops::IsMatrix(node.op->name) && !Keep(node) &&
        !relaxed && !plan->inputs.empty() && Contains(ops::kExchangeable, plan->inputs[0].original))
      return FilterCube(plan, columns);
    const auto one = [&](bool output, std::size_t i) {
      OperandPlan& operand = output ? plan->outputs[i] : plan->inputs[i];
      if (!Contains(ops::kExchangeable, operand.original)) return true;
      const Want want = WantOf(plan, node, output, i);
      if (operand.why.empty()) operand.why = want.why;
      return Filter(columns, output, i, want.types) || !want.must || relaxed;
    };
    for (const std::size_t i : InputOrder(*plan))
      if (!one(false, i)) return false;
    for (std::size_t i = 0; i < plan->outputs.size(); ++i)
      if (plan->outputs[i].value != kNone && !one(true, i)) return false;
    if (settings_.mode != Mode::kMixBf16 || relaxed) return true;
    // A node that computes neither bfloat16 nor float32 is for the AI CPU.
    for (std::size_t i = 0; i < plan->inputs.size(); ++i)
      if (Contains(ops::kExchangeable, plan->inputs[i].original))
        return (*columns)[0].inputs[i] != kF16 || plan->inputs[i].original == kF16;
    return true;
  }

  // The AI CPU computes a node as it is; cube_fp16in_fp32out wants float32 there too.
  bool FilterCpu(NodePlan* plan, std::vector<Column>* columns) const {
    for (const bool output : {false, true}) {
      std::vector<OperandPlan>& operands = output ? plan->outputs : plan->inputs;
      for (std::size_t i = 0; i < operands.size(); ++i) {
        if (!Contains(ops::kExchangeable, operands[i].original)) continue;
        const DType want = settings_.mode == Mode::kCubeFp32 ? kF32 : operands[i].original;
        if (!Filter(columns, output, i, {want})) return false;
        operands[i].why = "AI CPU: as it is";
      }
    }
    return !columns->empty();
  }

  void Choose(const Column& column, NodePlan* plan) const {
    for (std::size_t i = 0; i < plan->inputs.size(); ++i) plan->inputs[i].chosen = column.inputs[i];
    for (std::size_t i = 0; i < plan->outputs.size(); ++i)
      plan->outputs[i].chosen = column.outputs[i];
  }

  // The sentence of the operand that decided.
  std::string RuleOf(const NodePlan& plan) const {
    std::string first;
    for (const std::size_t i : InputOrder(plan))
      if (first.empty()) first = plan.inputs[i].why;
    for (const OperandPlan& out : plan.outputs)
      if (first.empty()) first = out.why;
    if (mixed() && plan.list == PrecisionReduce::kGray && !first.empty() &&
        first.rfind("keep", 0) != 0)
      return "gray: " + first;
    return first;
  }

  // White that stayed as it was, and what nobody could be found for.
  void Warn(NodePlan* plan) const {
    if (!mixed() || plan->list != PrecisionReduce::kWhite) return;
    for (const OperandPlan& in : plan->inputs)
      if (in.why.rfind("white: " + Text(target()), 0) == 0 && in.chosen != target() &&
          plan->warning.empty())
        plan->warning = absl::StrCat("white, but it does not compute ", Text(target()), " in '",
                                     in.value == kNone ? "" : graph_.value(in.value).name,
                                     "': that stays ", Text(in.chosen));
  }

  absl::StatusOr<NodePlan> Visit(NodeId id) const {
    const Node& node = graph_.node(id);
    NodePlan plan;
    plan.node = id;
    plan.list = ListOf(node);
    bool exchangeable = false;
    for (const bool output : {false, true})
      for (ValueId value : output ? node.outputs : node.inputs) {
        OperandPlan operand;
        operand.value = value;
        operand.original = operand.chosen = TypeOf(value);
        exchangeable |= Contains(ops::kExchangeable, operand.original);
        (output ? plan.outputs : plan.inputs).push_back(std::move(operand));
      }
    const options::OpsInfo* info = settings_.info.get();
    plan.engine = node.op->engine;
    if (!exchangeable || settings_.keeps_all()) {
      plan.rule = exchangeable ? "origin: its own types" : "no types to choose between";
      return plan;
    }
    const std::vector<Column> core = ColumnsOf(graph_, node, Engine::kAiCore, info);
    const std::vector<Column> cpu = ColumnsOf(graph_, node, Engine::kAiCpu, info);
    std::vector<Column> columns = core.empty() ? cpu : core;
    plan.engine = core.empty() ? Engine::kAiCpu : Engine::kAiCore;
    const CustomDtypes::Entry* custom =
        settings_.mode == Mode::kKeepOrigin ? nullptr : CustomOf(node);
    if (custom != nullptr) NPURT_RETURN_IF_ERROR(FilterCustom(node, *custom, &plan, &columns));
    const bool found = !core.empty() && FilterAll(node, custom != nullptr, &plan, &columns);
    if (!found && custom == nullptr) {
      plan.engine = Engine::kAiCpu;
      plan.producer.clear();
      columns = cpu;
      if (!FilterCpu(&plan, &columns))
        return absl::UnimplementedError(absl::StrCat(
            node.Where(graph_), ": ", NameOf(settings_.mode), " finds no kernel: AI Core has ",
            Text(core), ", AI CPU has ", Text(cpu),
            mixed() && plan.list == PrecisionReduce::kBlack
                ? absl::StrCat("; ", node.original_op, " should not be on the black list")
                : ""));
      plan.rule = core.empty() ? "AI CPU operator: its own types"
                               : "no AI Core kernel that the mode allows: AI CPU";
    }
    Choose(columns[0], &plan);
    Warn(&plan);
    if (core.size() == 1 && plan.rule.empty() && plan.warning.empty() && !plan.changes()) {
      plan.rule = "the operator has no other types";
      for (auto* side : {&plan.inputs, &plan.outputs})
        for (OperandPlan& operand : *side) operand.why.clear();
      plan.producer.clear();
    }
    if (plan.rule.empty()) plan.rule = RuleOf(plan);
    return plan;
  }

  const Graph& graph_;
  const Settings& settings_;
  std::vector<DType> chosen_;  // by value
};

}  // namespace

bool NodePlan::changes() const {
  const auto other = [](const OperandPlan& operand) { return operand.chosen != operand.original; };
  return std::any_of(inputs.begin(), inputs.end(), other) ||
         std::any_of(outputs.begin(), outputs.end(), other);
}

std::string NodeName(const Graph& graph, const Node& node) {
  if (!node.name.empty()) return node.name;
  for (ValueId out : node.outputs)
    if (out != kNone) return graph.value(out).name;
  return std::string();
}

absl::StatusOr<Plan> Decide(const Graph& graph, const Settings& settings) {
  return Decider(graph, settings).Run();
}

}  // namespace npurt::compile::precision
