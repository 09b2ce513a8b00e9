// Lower: the last pass, from a graph to a Program: where each value is at home, which kernel each
// node gets, which steps there are and in which stream.
//
// A value is at home in the arena unless it is a constant, an input, an output, a shape that
// binding computes (kPlan: then nobody runs the nodes that made it), or something whose size only
// the run tells (kPool). Steps that touch the pool are late: they are bound when they come up.
#include <algorithm>
#include <deque>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/mapping.h"
#include "compile/compile.h"
#include "compile/precision/precision.h"
#include "compile/preparer.h"
#include "compile/streams.h"

namespace npurt::compile {
namespace {

using exec::Base;
using exec::Program;
using exec::ProgramValue;
using exec::Step;
using graph::Graph;
using graph::kNone;
using graph::Node;
using graph::NodeId;
using graph::ValueId;
using graph::ValueInfo;

constexpr std::size_t kMaxPlanIntegers = 64;

// Binding computes it: a small integer tensor that derives from shapes of inputs.
bool IsPlanValue(const PassContext& context, ValueId id) {
  const ValueInfo& value = context.graph.value(id);
  if (value.is_constant() || value.is_input || !value.integers.has_value() ||
      !context.MayVanish(id) || value.type.kind != ValueKind::kTensor || !value.type.has_rank ||
      !AllConstant(value.type.dims) || value.integers->size() > kMaxPlanIntegers ||
      !Contains(kIntegers | kBools, value.type.dtype))
    return false;
  auto count = ElementCount(ToDims(value.type.dims));
  return count.ok() && *count == static_cast<std::int64_t>(value.integers->size()) &&
         std::none_of(value.integers->begin(), value.integers->end(),
                      [](Dim d) { return d.depends_on_run(); });
}

bool KnownWhenBound(const ValueType& type) {
  return type.kind == ValueKind::kTensor && type.has_rank && type.dtype != DType::kString &&
         std::none_of(type.dims.begin(), type.dims.end(), [](Dim d) { return d.depends_on_run(); });
}

// The C++ objects that steps point to.
struct Owned {
  std::deque<Attributes> attributes;
  std::vector<std::unique_ptr<ops::Prepared>> prepared;
};

// A constant as the device stores it.
absl::StatusOr<Tensor> Stored(const Tensor& tensor, const device::Device& device) {
  const DType dtype = device.StorageType(tensor.dtype());
  if (dtype == tensor.dtype()) return tensor;
  NPURT_ASSIGN_OR_RETURN(const std::vector<double> reals, Reals(tensor));
  NPURT_ASSIGN_OR_RETURN(Tensor stored, Tensor::Create(dtype, tensor.dims()));
  for (std::size_t i = 0; i < reals.size(); ++i) stored.set(static_cast<std::int64_t>(i), reals[i]);
  return stored;
}

// The type of a value inside a sequence, optional or map as the device stores it.
ValueType StoredType(ValueType type, const device::Device& device) {
  if (type.kind == ValueKind::kTensor) type.dtype = device.StorageType(type.dtype);
  if (type.element != nullptr)
    type.element = std::make_shared<const ValueType>(StoredType(*type.element, device));
  return type;
}

class Lowering {
 public:
  Lowering(Graph& graph, const CompileOptions& options)
      : graph_(graph),
        options_(options),
        device_(*options.device),
        program_(std::make_shared<Program>()),
        owned_(std::make_shared<Owned>()),
        value_of_(graph.value_count(), exec::kNone) {}

  absl::StatusOr<Compiled> Run() {
    program_->name = graph_.name;
    program_->allocator = options_.allocator;
    program_->dims = graph_.dims();
    program_->random_seed = options_.random_seed;
    NPURT_ASSIGN_OR_RETURN(const std::vector<NodeId> order, graph_.Order());
    FindNeeded(order);
    NPURT_RETURN_IF_ERROR(AddVariables());
    AddInputs();
    for (NodeId id : order)
      if (needed_[id]) NPURT_RETURN_IF_ERROR(AddNodeStep(id));
    NPURT_RETURN_IF_ERROR(AddOutputs());
    DropConstants();
    AssignStreams(options_.streams_per_engine, control_, program_.get());
    SetReleases();
    program_->owners.push_back(owned_);
    for (std::size_t s = 0; s < program_->steps.size(); ++s) {
      BindStep& step = bind_steps_[s];
      for (int v : program_->steps[s].inputs) {
        const bool constant = v != exec::kNone && program_->values[v].home == Base::kConstant;
        const Tensor* tensor = constant ? &program_->constants[program_->values[v].index] : nullptr;
        const bool readable = constant && (tensor->data() != nullptr || tensor->bytes() == 0);
        step.constants.push_back(readable ? tensor : nullptr);
      }
    }
    auto binder = std::make_unique<Binder>(program_.get(), std::move(bind_steps_));
    Compiled compiled;
    compiled.binder = binder.get();
    program_->binder = std::move(binder);
    compiled.program = std::move(program_);
    return compiled;
  }

 private:
  // Backwards from the outputs: what binding computes needs no producer.
  void FindNeeded(const std::vector<NodeId>& order) {
    PassContext context{graph_, options_};
    needed_.assign(graph_.node_count(), false);
    is_plan_.assign(graph_.value_count(), false);
    std::vector<bool> read(graph_.value_count(), false);
    for (ValueId id = 0; id < graph_.value_count(); ++id) is_plan_[id] = IsPlanValue(context, id);
    for (ValueId output : graph_.outputs()) read[output] = true;
    for (auto id = order.rbegin(); id != order.rend(); ++id) {
      const Node& node = graph_.node(*id);
      bool needed = (graph::EffectsOf(node) & ops::kWritesState) != 0;
      for (ValueId output : node.outputs)
        if (output != kNone)
          needed |= !is_plan_[output] && (read[output] || !context.MayVanish(output));
      if (!needed) continue;
      needed_[*id] = true;
      for (ValueId input : node.inputs)
        if (input != kNone) read[input] = true;
    }
  }

  int AddValue(const ValueInfo& info, Base home, int index, bool on_device) {
    ProgramValue value;
    value.name = info.name;
    value.origins = info.origins;
    value.kind = info.type.kind;
    value.declared = info.type.dtype;
    value.dtype = on_device ? device_.StorageType(info.type.dtype) : info.type.dtype;
    value.has_rank = info.type.has_rank;
    value.dims = info.type.dims;
    value.element = info.type.element;
    value.home = home;
    value.index = index;
    program_->values.push_back(std::move(value));
    return static_cast<int>(program_->values.size()) - 1;
  }

  // The program's value for a value of the graph, made on first sight.
  absl::StatusOr<int> ValueFor(ValueId id) {
    if (id == kNone) return exec::kNone;
    int& v = value_of_[id];
    if (v != exec::kNone) return v;
    const ValueInfo& info = graph_.value(id);
    if (info.is_constant()) {
      NPURT_ASSIGN_OR_RETURN(Tensor stored, Stored(info.constant, device_));
      program_->weight_bytes += stored.bytes();
      program_->constants.push_back(std::move(stored));
      constant_uses_.push_back(0);
      v = AddValue(info, Base::kConstant, static_cast<int>(program_->constants.size()) - 1, true);
    } else if (is_plan_[id]) {
      v = AddValue(info, Base::kPlan, exec::kNone, true);
      program_->values[v].integers = *info.integers;
    } else {
      const Base home = IsReadOfVariable(id)        ? Base::kVariable
                        : KnownWhenBound(info.type) ? Base::kArena
                                                    : Base::kPool;
      v = AddValue(info, home, exec::kNone, true);
    }
    return v;
  }

  absl::Status AddVariables() {
    for (const graph::Variable& variable : graph_.variables()) {
      const auto found = options_.variables.find(variable.name);
      if (found == options_.variables.end())
        return absl::InternalError(absl::StrCat("variable '", variable.name, "' is not there"));
      value_of_[variable.handle] =
          AddValue(graph_.value(variable.handle), Base::kVariable,
                   static_cast<int>(program_->resources.size()), false);
      program_->resources.push_back(found->second);
    }
    return absl::OkStatus();
  }

  // What a step reads of a variable is not copied, if the device stores it as the session does.
  bool IsReadOfVariable(ValueId id) const {
    const ValueInfo& info = graph_.value(id);
    return info.producer != kNone && graph_.node(info.producer).op->shares_variable &&
           KnownWhenBound(info.type) && device_.StorageType(info.type.dtype) == info.type.dtype;
  }

  void AddInputs() {
    std::vector<ValueId> inputs = graph_.inputs();
    inputs.insert(inputs.end(), graph_.captures().begin(), graph_.captures().end());
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const ValueId id = inputs[i];
      const ValueInfo& info = graph_.value(id);
      const int v = AddValue(info, Base::kInput, static_cast<int>(i), options_.inside);
      program_->inputs.push_back({info.name, v});
      value_of_[id] = v;
      if (device_.capabilities().shares_host_memory || options_.inside) continue;
      const int copy =
          AddValue(info, KnownWhenBound(info.type) ? Base::kArena : Base::kPool, exec::kNone, true);
      AddCopy(v, copy, true, absl::StrCat("copy of input '", info.name, "'"));
      value_of_[id] = copy;
    }
  }

  // A boundary copy, or on this device a copy of one value to another.
  void AddCopy(int from, int to, bool on_device, std::string where) {
    Step step;
    BindStep bind;
    if (device_.boundary_copy() != nullptr && !options_.inside) {
      step.run = device_.boundary_copy();
      step.op = "BoundaryCopy";
      step.why = "the device has memory of its own";
    } else {
      bind.op = ops::FindOp("Identity");
      bind.bind = bind.op->bind;
      step.run = bind.op->run != nullptr ? bind.op->run : bind.op->reference;
      step.op = "Identity";
      step.why = "an output must be a buffer of its own";
    }
    const ProgramValue& target = program_->values[to];
    owned_->attributes.emplace_back();
    if (target.kind != ValueKind::kTensor) {
      ValueType type;
      type.kind = target.kind;
      type.dtype = target.dtype;
      type.element = target.element;
      if (on_device) type = StoredType(std::move(type), device_);
      owned_->attributes.back().Set(device::kBoundaryType,
                                    std::make_shared<const ValueType>(std::move(type)));
    }
    step.attributes = &owned_->attributes.back();
    step.inputs = {from};
    step.outputs = {to};
    step.where = std::move(where);
    step.kernel = "copy";
    step.engine = std::string(device::EngineName(ops::Engine::kAiCpu));
    step.origins = program_->values[from].origins;
    step.late = IsLate(step);
    program_->steps.push_back(std::move(step));
    bind_steps_.push_back(std::move(bind));
  }

  bool IsLate(const Step& step) const {
    const auto in_pool = [this](int v) {
      if (v == exec::kNone) return false;
      const ProgramValue& value = program_->values[v];
      return value.home == Base::kPool ||
             (value.home == Base::kInput && (value.kind != ValueKind::kTensor || !value.has_rank));
    };
    return std::any_of(step.inputs.begin(), step.inputs.end(), in_pool) ||
           std::any_of(step.outputs.begin(), step.outputs.end(), in_pool);
  }

  absl::Status AddNodeStep(NodeId id) {
    const Node& node = graph_.node(id);
    const ops::OpDef& op = *node.op;
    absl::InlinedVector<const ValueType*, 4> types;
    for (ValueId input : node.inputs)
      types.push_back(input == kNone ? nullptr : &graph_.value(input).type);
    NPURT_RETURN_IF_ERROR(Annotate(device_.Supports(op, types), node.Where(graph_)));

    Step step;
    BindStep bind;
    bind.op = &op;
    step.node = id;
    step.writes_state = (graph::EffectsOf(node) & ops::kWritesState) != 0;
    for (ValueId input : node.inputs) {
      NPURT_ASSIGN_OR_RETURN(const int v, ValueFor(input));
      step.inputs.push_back(v);
      if (device_.boundary_copy() != nullptr)
        step.declared_inputs.push_back(v == exec::kNone ? DType::kUndefined
                                                        : program_->values[v].declared);
    }
    for (ValueId output : node.outputs) {
      // Kernels are chosen by type, so that one that only the run tells has none.
      if (output != kNone && graph_.value(output).type.kind == ValueKind::kTensor &&
          graph_.value(output).type.dtype == DType::kUndefined)
        return absl::UnimplementedError(absl::StrCat(node.Where(graph_), ": the element type of '",
                                                     graph_.value(output).name,
                                                     "' cannot be known before it runs"));
      NPURT_ASSIGN_OR_RETURN(const int v, ValueFor(output));
      step.outputs.push_back(v);
      if (device_.boundary_copy() != nullptr)
        step.declared_outputs.push_back(v == exec::kNone ? DType::kUndefined
                                                         : program_->values[v].declared);
    }
    owned_->attributes.push_back(node.attributes);
    step.attributes = &owned_->attributes.back();
    step.where = node.Where(graph_);
    step.op = op.name;
    step.engine = std::string(device::EngineName(op.engine));
    step.origins = node.origins;
    for (NodeId before : node.control)
      if (needed_[before])
        control_.push_back({step_of_[before], static_cast<int>(program_->steps.size())});
    OrderState(node);
    NPURT_RETURN_IF_ERROR(ChooseKernel(node, &step, &bind));
    NPURT_RETURN_IF_ERROR(AddCallees(node, &step));
    step.late = IsLate(step);
    step_of_[id] = static_cast<int>(program_->steps.size());
    program_->steps.push_back(std::move(step));
    bind_steps_.push_back(std::move(bind));
    return absl::OkStatus();
  }

  // Steps that touch the same variable run in the order of the graph: a write after all before it, a
  // read after the last write.
  void OrderState(const Node& node) {
    const ops::Traits effects = graph::EffectsOf(node);
    if ((effects & (ops::kReadsState | ops::kWritesState)) == 0) return;
    const int step = static_cast<int>(program_->steps.size());
    for (ValueId input : node.inputs) {
      if (input == kNone || graph_.value(input).type.kind != ValueKind::kResource) continue;
      auto& [reads, write] = state_[input];
      if (write != exec::kNone) control_.push_back({write, step});
      if ((effects & ops::kWritesState) == 0) {
        reads.push_back(step);
        continue;
      }
      for (int read : reads) control_.push_back({read, step});
      reads.clear();
      write = step;
    }
  }

  // In the order of attribute names, which is how steps count their subgraphs.
  absl::Status AddCallees(const Node& node, Step* step) {
    for (const Attribute& attribute : node.attributes.all()) {
      const auto* sub = std::get_if<std::shared_ptr<const Subgraph>>(&attribute.value);
      if (sub == nullptr) continue;
      auto callee =
          CompileSubgraph(graph_, node, attribute.name, static_cast<const Graph&>(**sub), options_);
      if (!callee.ok())
        return Annotate(callee.status(), absl::StrCat(step->where, ", ", attribute.name));
      if ((*callee)->program != nullptr) {
        program_->weight_bytes += (*callee)->program->weight_bytes;
        program_->packed_bytes += (*callee)->program->packed_bytes;
      }
      step->callees.push_back(*std::move(callee));
    }
    return absl::OkStatus();
  }

  absl::Status ChooseKernel(const Node& node, Step* step, BindStep* bind) {
    const ops::OpDef& op = *node.op;
    step->run = op.reference;
    step->kernel = "reference";
    step->why = "the operator has plain loops only";
    std::vector<int> dropped;
    if (!device_.capabilities().fast_kernels) {
      step->why = "the reference device runs plain loops";
    } else if (options_.precision != nullptr && options_.precision->IsPrecise(node)) {
      step->why = "high_precision: plain loops in double precision";
    } else if (op.prepare != nullptr) {
      Preparer preparer(graph_, node, options_);
      auto prepared = op.prepare(preparer);
      if (!prepared.ok()) return Annotate(prepared.status(), step->where);
      step->why = "no fast kernel for these types or attributes";
      if (*prepared != nullptr) {
        step->run = op.run;
        bind->bind = op.bind;
        step->kernel = (*prepared)->kernel;
        step->prepared = prepared->get();
        step->why = "best kernel the instruction sets allow";
        program_->packed_bytes += preparer.packed_bytes;
        owned_->prepared.push_back(*std::move(prepared));
        dropped = preparer.dropped;
      }
    } else if (op.bind != nullptr) {
      bind->bind = op.bind;
      if (op.run != nullptr) {
        step->run = op.run;
        step->kernel = op.name;
      }
      step->why = "the only kernel";
    }
    if (step->run == nullptr)
      return absl::UnimplementedError(absl::StrCat(step->where, ": no kernel"));
    for (std::size_t i = 0; i < step->inputs.size(); ++i) {
      const int v = step->inputs[i];
      if (v == exec::kNone || program_->values[v].home != Base::kConstant) continue;
      if (std::find(dropped.begin(), dropped.end(), static_cast<int>(i)) == dropped.end())
        ++constant_uses_[program_->values[v].index];
    }
    for (int i : dropped) FreePacked(node.inputs[static_cast<std::size_t>(i)]);
    return absl::OkStatus();
  }

  // What all readers of a constant have packed goes at once: a graph and its packed form are never in
  // memory both as a whole. Pages of a mapped file come again if somebody asks.
  void FreePacked(ValueId id) {
    ValueInfo& value = graph_.mutable_value(id);
    const int index = program_->values[value_of_[id]].index;
    Tensor& tensor = program_->constants[index];
    const bool by_all = ++packed_by_[id] == static_cast<int>(value.uses.size());
    if (!by_all || constant_uses_[index] > 0 || graph_.IsOutput(id) || tensor.bytes() == 0) return;
    ReleaseMappedPages(tensor.data(), tensor.bytes());
    DropConstant(&tensor);
    value.constant = tensor;
  }

  absl::Status AddOutputs() {
    for (std::size_t i = 0; i < graph_.outputs().size(); ++i) {
      const ValueId id = graph_.outputs()[i];
      NPURT_ASSIGN_OR_RETURN(const int v, ValueFor(id));
      const std::string& name = graph_.output_names()[i];
      const ValueInfo& info = graph_.value(id);
      const bool known = KnownWhenBound(info.type);
      ProgramValue& value = program_->values[v];
      const bool shared = device_.capabilities().shares_host_memory || options_.inside;
      const bool own_buffer = shared && !info.is_input &&
                              (value.home == Base::kArena || value.home == Base::kPool) &&
                              !is_output_.contains(v);
      int out = v;
      if (own_buffer) {
        if (known) {
          value.home = Base::kOutput;
          value.index = static_cast<int>(i);
        }
      } else {
        if (value.home == Base::kConstant) ++constant_uses_[value.index];
        out = AddValue(info, known ? Base::kOutput : Base::kPool, static_cast<int>(i),
                       options_.inside);
        AddCopy(v, out, options_.inside, absl::StrCat("copy to output '", name, "'"));
      }
      is_output_.insert(out);
      program_->outputs.push_back({name, out});
    }
    return absl::OkStatus();
  }

  // Weights that every user has packed are not kept twice.
  void DropConstants() {
    for (std::size_t c = 0; c < program_->constants.size(); ++c)
      if (constant_uses_[c] == 0 && program_->constants[c].data() != nullptr)
        DropConstant(&program_->constants[c]);
  }
  void DropConstant(Tensor* tensor) {
    program_->weight_bytes -= tensor->bytes();
    *tensor = Tensor::Borrow(tensor->dtype(), tensor->dims(), nullptr, nullptr);
  }

  // With several streams the order of execution is not that of the list: then values of the pool
  // stay until the run is over.
  void SetReleases() {
    if (program_->stream_count > 1) return;
    std::vector<int> last(program_->values.size(), exec::kNone);
    for (std::size_t s = 0; s < program_->steps.size(); ++s)
      for (const auto* list : {&program_->steps[s].inputs, &program_->steps[s].outputs})
        for (int v : *list)
          if (v != exec::kNone) last[v] = static_cast<int>(s);
    for (std::size_t v = 0; v < last.size(); ++v)
      if (last[v] != exec::kNone && program_->values[v].home == Base::kPool &&
          !is_output_.contains(static_cast<int>(v)))
        program_->steps[last[v]].release.push_back(static_cast<int>(v));
  }

  Graph& graph_;
  const CompileOptions& options_;
  const device::Device& device_;
  std::shared_ptr<Program> program_;
  std::shared_ptr<Owned> owned_;
  std::vector<BindStep> bind_steps_;
  std::vector<int> value_of_;
  std::vector<bool> needed_, is_plan_;
  std::vector<int> constant_uses_;  // readers of the original bytes
  HashMap<ValueId, int> packed_by_;  // of a constant: how many readers have packed it
  HashMap<NodeId, int> step_of_;
  HashSet<int> is_output_;
  std::vector<std::pair<int, int>> control_;
  struct Accesses {
    std::vector<int> reads;  // since the last write
    int write = exec::kNone;
  };
  HashMap<ValueId, Accesses> state_;  // by the variable's handle
};

}  // namespace

absl::StatusOr<Compiled> Lower(graph::Graph& graph, const CompileOptions& options) {
  return Lowering(graph, options).Run();
}

}  // namespace npurt::compile
