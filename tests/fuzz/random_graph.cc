#include "fuzz/random_graph.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "absl/strings/str_cat.h"
#include "fuzz/noise.h"
#include "fuzz/vocabulary.h"
#include "ops/op_test_harness.h"

namespace npurt::fuzz {
namespace {

using graph::kNone;
using graph::ValueId;
using DimList = std::vector<std::int64_t>;

class Generator {
 public:
  // Below the top (`depth` > 0) fresh values are constants, and outer values captures.
  Generator(Choices& choices, std::shared_ptr<DimTable> dims, int depth)
      : choices_(choices), depth_(depth) {
    made_.graph = std::make_shared<graph::Graph>(std::move(dims));
    made_.graph->name = depth == 0 ? "random" : absl::StrCat("body", depth);
  }

  void AddBaseInputs() {
    static const std::vector<DimList> shapes = {
        {6, 8},       {2, 3, 8}, {1, 4, 6, 6}, {2, 12},    {8},
        {2, 8, 5, 5}, {1, 1},    {3, 40},      {2, 6, 16}, {}};
    const int count = 1 + choices_.Below(3);
    for (int i = 0; i < count; ++i) {
      const DType dtype = choices_.Percent(65) ? DType::kF32 : AnyType();
      const bool integers = !IsFloat(dtype);
      const Tensor tensor = ops::RandomTensor(
          dtype, choices_.Of(shapes), choices_.Below(1000),
          Contains(kUnsignedIntegers | kBools, dtype) ? 0 : (integers ? -9 : -2), integers ? 9 : 2);
      Fresh(Value(tensor), true);
    }
  }

  void AddNodes(int count) {
    int added = 0;
    for (int tries = 0; added < count && tries < 8 * count; ++tries) added += AddSomething();
  }

  void AddNodesOf(const std::string& op, int count) {
    constexpr int kTries = 40;
    int added = 0;
    for (int tries = 0; added < count && tries < kTries * count; ++tries) {
      // What makes other operators' outputs: some operands are no graph's inputs.
      if (tries % 4 == 3) AddSomething();
      added += op == "If" ? AddIf() : (op == "Loop" ? AddLoop() : AddOp(op));
    }
  }

  // A value seen in the graph around.
  ValueId Capture(const graph::Graph& outer, ValueId id, const Value& value, double noise) {
    auto added = made_.graph->AddCapture(outer.value(id).name, outer.value(id).type);
    if (!added.ok()) return kNone;
    Know(*added, value, noise);
    return *added;
  }
  ValueId BodyInput(const std::string& name, ValueType type, const Value& value, double noise) {
    auto added = made_.graph->AddInput(name, std::move(type));
    if (!added.ok()) return kNone;
    Know(*added, value, noise);
    return *added;
  }

  bool Output(ValueId id) { return made_.graph->AddOutput(id, made_.graph->value(id).name).ok(); }
  // Values that nobody reads, and some others.
  void AddOutputs() {
    std::vector<ValueId> ends;
    for (const ValueId id : pool_)
      if (made_.graph->value(id).uses.empty() && made_.graph->value(id).producer != kNone)
        ends.push_back(id);
    if (ends.empty()) ends.push_back(pool_.back());
    for (const ValueId id : ends) Output(id);
    for (int more = choices_.Below(3); more > 0; --more) {
      const ValueId id = choices_.Of(pool_);
      if (std::find(ends.begin(), ends.end(), id) == ends.end() && !made_.graph->IsOutput(id) &&
          made_.graph->value(id).producer != kNone)
        Output(id);
    }
  }

  graph::Graph& graph() { return *made_.graph; }
  const std::vector<ValueId>& pool() const { return pool_; }
  const Value& value(ValueId id) const { return made_.values[id]; }
  double noise(ValueId id) const { return made_.noise[id]; }
  Case Take() { return std::move(made_); }

 private:
  DType AnyType() {
    static const std::vector<DType> types = {DType::kF16, DType::kBF16, DType::kF64, DType::kI32,
                                             DType::kI64, DType::kU8,   DType::kI8,  DType::kBool};
    return choices_.Of(types);
  }
  std::string Name() { return absl::StrCat(depth_ == 0 ? "v" : "b", depth_, "_", counter_++); }

  void Know(ValueId id, Value value, double noise) {
    made_.values.resize(static_cast<std::size_t>(made_.graph->value_count()));
    made_.noise.resize(made_.values.size());
    made_.values[id] = std::move(value);
    made_.noise[id] = noise;
    pool_.push_back(id);
  }

  // A graph input or a constant of this value.
  ValueId Fresh(const Value& value, bool input) {
    if ((input && depth_ == 0) || !value.is_tensor()) {
      if (depth_ != 0) return kNone;
      ValueType type = TypeOf(value);
      for (Dim& dim : type.dims)  // the same number, the same name
        if (choices_.Percent(50) && dim.value() > 1)
          dim = made_.graph->dims()->Symbol(absl::StrCat("d", dim.value()));
      const ValueId id = *made_.graph->AddInput(absl::StrCat("x", counter_++), type);
      made_.inputs.push_back(value);
      Know(id, value, 0);
      return id;
    }
    const ValueId id =
        *made_.graph->AddConstant(absl::StrCat("c", depth_, "_", counter_++), value.tensor());
    Know(id, value, 0);
    pool_.pop_back();  // constants are read where they were made for
    return id;
  }

  // An operand to come: a value that is there, or one to be made if the node is any good.
  struct Operand {
    ValueId id = kNone;
    Value value;
    bool as_input = false;
  };

  bool AddSomething() {
    const int what = choices_.Below(100);
    if (what < 6 && depth_ < 2) return choices_.Percent(50) ? AddIf() : AddLoop();
    if (what < 10) return AddReshapeLike();
    const std::string op = [&]() -> std::string {
      if (choices_.Percent(45)) return choices_.Of(Common());
      auto at = Samples().begin();
      std::advance(at, choices_.Below(Samples().size()));
      return at->first;
    }();
    return AddOp(op);
  }

  bool AddOp(const std::string& op) {
    const auto found = Samples().find(op);
    if (found == Samples().end()) return false;
    return AddSample(choices_.Of(found->second));
  }

  // A value of the pool that fits, or kNone.
  template <typename F>
  ValueId Pick(F&& fits) {
    for (int tries = 0; tries < 6 && !pool_.empty(); ++tries) {
      // Late values more often than early ones.
      const int back = std::min(choices_.Below(pool_.size()), choices_.Below(pool_.size()));
      const ValueId id = pool_[pool_.size() - 1 - static_cast<std::size_t>(back)];
      if (fits(value(id))) return id;
    }
    return kNone;
  }

  bool AddSample(const ops::Sample& sample) {
    const ops::OpDef& op = *ops::FindOp(sample.op);
    std::vector<Operand> operands(sample.inputs.size());
    for (std::size_t i = 0; i < operands.size(); ++i) operands[i].value = sample.inputs[i];
    std::map<std::int64_t, std::int64_t> resized;
    std::string retyped;
    DType dtype = DType::kUndefined;
    std::size_t first = 0;
    if (sample.inputs.size() > 0 && sample.inputs[0].is_tensor() && choices_.Percent(80)) {
      const DimList dims(sample.inputs[0].tensor().dims().begin(),
                         sample.inputs[0].tensor().dims().end());
      retyped = ParamType(op, 0);
      const DTypeSet allowed = Allowed(op, retyped);
      const ValueId id = Pick([&](const Value& v) {
        return v.is_tensor() && Contains(allowed, v.tensor().dtype()) &&
               (v.tensor().rank() == static_cast<int>(dims.size()) || choices_.Percent(40));
      });
      if (id == kNone) return false;
      operands[0].id = id;
      operands[0].value = value(id);
      dtype = value(id).tensor().dtype();
      const auto& now = value(id).tensor().dims();
      for (std::size_t back = 1; back <= std::min(dims.size(), now.size()); ++back)
        resized.try_emplace(dims[dims.size() - back], now[now.size() - back]);
      first = 1;
    }
    for (std::size_t i = first; i < operands.size(); ++i)
      if (!Fit(op, i, retyped, dtype, resized, &operands[i])) return false;
    graph::NodeSpec spec;
    spec.op = sample.op;
    spec.attributes = sample.attributes;
    return Add(std::move(spec), operands, sample.outputs);
  }

  // Gives an operand of a sample the type and shape that go with the first one, and a source.
  bool Fit(const ops::OpDef& op, std::size_t i, const std::string& retyped, DType dtype,
           const std::map<std::int64_t, std::int64_t>& resized, Operand* operand) {
    if (!operand->value.is_tensor()) {
      if (operand->value.kind() == ValueKind::kNone) return true;
      operand->id = Pick([&](const Value& v) { return v.kind() == operand->value.kind(); });
      return operand->id != kNone ? (operand->value = value(operand->id), true) : depth_ == 0;
    }
    const Tensor& was = operand->value.tensor();
    DimList dims(was.dims().begin(), was.dims().end());
    const DType wanted =
        retyped == ParamType(op, i) && dtype != DType::kUndefined ? dtype : was.dtype();
    const bool list = Contains(kIntegers, was.dtype()) && dims.size() <= 1;
    if (!list)
      for (std::int64_t& d : dims) {
        const auto at = resized.find(d);
        if (at != resized.end()) d = at->second;
      }
    if (choices_.Percent(list ? 10 : 50)) {
      const bool loose = choices_.Percent(15);
      operand->id = Pick([&](const Value& v) {
        return v.is_tensor() && v.tensor().dtype() == wanted &&
               (loose || DimList(v.tensor().dims().begin(), v.tensor().dims().end()) == dims);
      });
      if (operand->id != kNone) {
        operand->value = value(operand->id);
        return true;
      }
    }
    operand->as_input = choices_.Percent(30);
    const bool same =
        wanted == was.dtype() && dims == DimList(was.dims().begin(), was.dims().end());
    if (same && (list || choices_.Percent(50))) return true;
    if (wanted == DType::kString || was.dtype() == DType::kString) return same;
    const auto [low, high] = Range(was);
    if (!std::isfinite(low) || !std::isfinite(high)) return same;
    std::int64_t count = 1;
    for (const std::int64_t d : dims) {
      if (d < 0 || d > kMaxElements) return false;
      count *= d;
    }
    if (count > kMaxElements) return false;
    const double least = Contains(kUnsignedIntegers | kBools, wanted) ? std::max(low, 0.0) : low;
    operand->value =
        Value(ops::RandomTensor(wanted, dims, choices_.Below(1000), least, std::max(least, high)));
    return operand->value.tensor().defined();
  }

  // Shapes that come from other values: Reshape, Expand and Slice by Shape.
  bool AddReshapeLike() {
    const ValueId like = Pick([](const Value& v) { return v.is_tensor(); });
    if (like == kNone) return false;
    const bool expand = choices_.Percent(40);
    const std::int64_t count = value(like).tensor().element_count();
    const ValueId from = Pick([&](const Value& v) {
      return v.is_tensor() && (expand || v.tensor().element_count() == count);
    });
    if (from == kNone) return false;
    graph::NodeSpec shape;
    shape.op = "Shape";
    if (!Add(std::move(shape), {{like, value(like), false}}, 1)) return false;
    const ValueId dims = pool_.back();
    graph::NodeSpec spec;
    spec.op = expand ? "Expand" : "Reshape";
    return Add(std::move(spec), {{from, value(from), false}, {dims, value(dims), false}}, 1);
  }

  bool AddIf() {
    ValueId condition = Pick([](const Value& v) {
      return v.is_tensor() && v.tensor().dtype() == DType::kBool && v.tensor().element_count() == 1;
    });
    Operand first;
    if (condition != kNone) {
      first = {condition, value(condition), false};
    } else {
      const bool taken = choices_.Percent(50);
      first.value = Value(*Tensor::FromSpan<bool>({}, absl::MakeConstSpan(&taken, 1)));
      first.as_input = choices_.Percent(80);
    }
    const std::vector<ValueId> outer = Captures();
    if (outer.empty()) return false;
    std::vector<std::shared_ptr<graph::Graph>> branches;
    DType dtype = DType::kUndefined;
    for (int b = 0; b < 2; ++b) {
      Generator inner(choices_, graph().dims(), depth_ + 1);
      inner.CaptureAll(*this, outer);
      inner.AddNodes(1 + choices_.Below(4));
      const ValueId result = inner.Pick(
          [&](const Value& v) { return v.is_tensor() && (b == 0 || v.tensor().dtype() == dtype); });
      if (result == kNone || !inner.Output(result)) return false;
      dtype = inner.value(result).tensor().dtype();
      branches.push_back(inner.Take().graph);
    }
    graph::NodeSpec spec;
    spec.op = "If";
    spec.attributes.Set("then_branch", std::shared_ptr<const Subgraph>(branches[0]));
    spec.attributes.Set("else_branch", std::shared_ptr<const Subgraph>(branches[1]));
    return AddWithBody(std::move(spec), {first}, outer, 1);
  }

  bool AddLoop() {
    const std::int64_t turns = 1 + choices_.Below(3);
    const ValueId start = Pick([](const Value& v) { return v.is_tensor(); });
    if (start == kNone) return false;
    Operand count, state;
    count.value = Value(Tensor::Int64Scalar(turns));
    count.as_input = choices_.Percent(50);
    state = {start, value(start), false};
    const std::vector<ValueId> outer = Captures();
    Generator inner(choices_, graph().dims(), depth_ + 1);
    const bool yes = true;
    inner.BodyInput(inner.Name(), ValueType::OfTensor(DType::kI64, {}),
                    Value(Tensor::Int64Scalar(0)), 0);
    const ValueId go =
        inner.BodyInput(inner.Name(), ValueType::OfTensor(DType::kBool, {}),
                        Value(*Tensor::FromSpan<bool>({}, absl::MakeConstSpan(&yes, 1))), 0);
    const ValueId now =
        inner.BodyInput(inner.Name(), graph().value(start).type, value(start), noise(start));
    inner.CaptureAll(*this, outer);
    inner.AddNodes(1 + choices_.Below(5));
    const Tensor& first = value(start).tensor();
    ValueId next = inner.Pick([&](const Value& v) {
      return v.is_tensor() && v.tensor().dtype() == first.dtype() &&
             v.tensor().dims() == first.dims();
    });
    if (next == kNone) next = now;
    const ValueId scan = inner.Pick([](const Value& v) { return v.is_tensor(); });
    const bool scans = scan != kNone && scan != next && choices_.Percent(60);
    if (next == go || scan == go || !inner.Output(go) || !inner.Output(next) ||
        (scans && !inner.Output(scan)))
      return false;
    graph::NodeSpec spec;
    spec.op = "Loop";
    spec.attributes.Set("body", std::shared_ptr<const Subgraph>(inner.Take().graph));
    return AddWithBody(std::move(spec), {count, Operand(), state}, outer, scans ? 2 : 1);
  }

  // Some values for a body to read.
  std::vector<ValueId> Captures() {
    std::vector<ValueId> outer;
    for (int i = 1 + choices_.Below(3); i > 0; --i) {
      const ValueId id = Pick([](const Value& v) { return v.kind() != ValueKind::kNone; });
      if (id != kNone && std::find(outer.begin(), outer.end(), id) == outer.end())
        outer.push_back(id);
    }
    return outer;
  }
  void CaptureAll(const Generator& outer, const std::vector<ValueId>& ids) {
    for (const ValueId id : ids) Capture(*outer.made_.graph, id, outer.value(id), outer.noise(id));
  }
  bool AddWithBody(graph::NodeSpec spec, std::vector<Operand> operands,
                   const std::vector<ValueId>& outer, int outputs) {
    for (const ValueId id : outer) operands.push_back({id, value(id), false});
    spec.attributes.Set("captures", static_cast<std::int64_t>(outer.size()));
    return Add(std::move(spec), operands, outputs);
  }

  // Adds the node if it can be computed, is not too large and does not make rounding visible.
  bool Add(graph::NodeSpec spec, const std::vector<Operand>& operands, int outputs) {
    std::vector<NoisyValue> inputs;
    for (const Operand& operand : operands)
      inputs.push_back({operand.value, operand.id == kNone ? 0 : noise(operand.id)});
    for (int i = 0; i < outputs; ++i) spec.outputs.push_back(Name());
    // What 0 and -1 in a shape mean for no elements is not said.
    if (spec.op == "Reshape" && ElementsOf(operands[0].value) == 0) return false;
    auto computed = Evaluate(spec, inputs);
    if (!computed.ok()) return false;
    for (const NoisyValue& output : *computed)
      if (ElementsOf(output.value) > 4 * kMaxElements ||
          (!operands.empty() && IsPrintedFloat(output.value, operands[0].value)))
        return false;
    for (const Operand& operand : operands) {
      if (operand.id != kNone || operand.value.kind() == ValueKind::kNone) {
        spec.inputs.push_back(operand.id);
        continue;
      }
      spec.inputs.push_back(Fresh(operand.value, operand.as_input));
      if (spec.inputs.back() == kNone) return false;
    }
    spec.name = absl::StrCat(spec.outputs[0], "_node");
    const auto node = made_.graph->AddNode(std::move(spec));
    if (!node.ok()) return false;
    const std::vector<ValueId>& ids = made_.graph->node(*node).outputs;
    for (std::size_t i = 0; i < ids.size(); ++i)
      Know(ids[i], (*computed)[i].value, (*computed)[i].noise);
    return true;
  }

  Choices& choices_;
  const int depth_;
  Case made_;
  std::vector<ValueId> pool_;  // what nodes may read
  int counter_ = 0;
};

}  // namespace

Case MakeCase(Choices& choices, int nodes) {
  Generator generator(choices, std::make_shared<DimTable>(), 0);
  generator.AddBaseInputs();
  generator.AddNodes(1 + choices.Below(static_cast<std::size_t>(nodes)));
  generator.AddOutputs();
  return generator.Take();
}

Case MakeCaseOf(const std::string& op, Choices& choices, int nodes) {
  Generator generator(choices, std::make_shared<DimTable>(), 0);
  generator.AddBaseInputs();
  generator.AddNodesOf(op, nodes);
  generator.AddOutputs();
  return generator.Take();
}

}  // namespace npurt::fuzz
