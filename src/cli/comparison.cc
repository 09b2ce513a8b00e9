#include "cli/comparison.h"

#include <algorithm>
#include <set>

#include "cli/json.h"
#include "cli/session.h"
#include "cli/text.h"
#include "cli/values.h"

namespace npurt::cli {
namespace {

using Names = std::set<std::string>;

// What the graph report says of a value.
struct Origin {
  std::size_t index = 0;
  std::string node, op;
};

struct GraphNames {
  std::map<std::string, Origin> origins;  // of what nodes make
  std::vector<std::string> outputs;
};

std::string NameAt(const Json& json) {
  const auto found = json.find("name");
  return found == json.end() || !found->is_string() ? std::string() : found->get<std::string>();
}

GraphNames ReadGraph(const npurt_model* model) {
  GraphNames names;
  const Json report = ParseJson(ModelReport(model, NPURT_REPORT_GRAPH));
  if (!report.contains("nodes")) return names;
  for (const Json& node : report["nodes"])
    for (const Json& output : node["outputs"])
      if (output.is_object())
        names.origins.emplace(NameAt(output), Origin{names.origins.size(), NameAt(node),
                                                     node["op"].get<std::string>()});
  for (const Json& output : report["outputs"]) names.outputs.push_back(NameAt(output));
  return names;
}

// What a configuration makes of the graph's values.
struct Plan {
  struct Made {
    npurt_dtype chosen = NPURT_DTYPE_NONE;  // what the node is to make; it may be stored wider
    int coarseness = -1;                    // of the coarsest floating type on the way to it
  };
  std::map<std::string, Made> made;
  Names exists;  // some step makes it
};

npurt_dtype TypeAt(const Json& operand, const char* key) {
  const auto found = operand.find(key);
  return found == operand.end() || !found->is_string()
             ? NPURT_DTYPE_NONE
             : npurt_dtype_find(found->get<std::string>().c_str());
}

Plan ReadPlan(npurt_session* session) {
  Plan plan;
  const Json report = ParseJson(SessionReport(session, NPURT_REPORT_PLAN));
  if (!report.contains("steps") || !report.contains("precision")) return plan;
  for (const Json& step : report["steps"])
    for (const Json& output : step["outputs"])
      if (output.is_object()) plan.exists.insert(NameAt(output));
  // Nodes come in topological order, those of subgraphs after them; what a subgraph computes counts
  // for the node that has it.
  const Json& nodes = report["precision"]["nodes"];
  std::vector<std::pair<std::string, int>> inside;  // path and coarseness
  for (const Json& node : nodes) {
    const std::string path = node["graph"].get<std::string>();
    if (path.empty()) continue;
    for (const char* side : {"inputs", "outputs"})
      for (const Json& operand : node[side])
        inside.emplace_back(path, Coarseness(TypeAt(operand, "chosen")));
  }
  for (const Json& node : nodes) {
    if (node["graph"] != "") continue;
    int coarsest = -1;
    for (const Json& input : node["inputs"]) {
      coarsest = std::max(coarsest, Coarseness(TypeAt(input, "chosen")));
      const auto before = plan.made.find(NameAt(input));
      if (before != plan.made.end()) coarsest = std::max(coarsest, before->second.coarseness);
    }
    const std::string prefix = NameAt(node) + "/";
    for (const auto& [path, coarseness] : inside)
      if (path.compare(0, prefix.size(), prefix) == 0) coarsest = std::max(coarsest, coarseness);
    for (const Json& output : node["outputs"]) {
      Plan::Made& made = plan.made[NameAt(output)];
      made.chosen = TypeAt(output, "chosen");
      made.coarseness = std::max(coarsest, Coarseness(made.chosen));
    }
  }
  return plan;
}

std::size_t BytesOf(npurt_value* value) {
  npurt_tensor view = npurt_tensor_init();
  if (npurt_value_tensor(value, &view, nullptr) == NPURT_OK) return view.bytes;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < npurt_value_count(value); ++i) {
    OwnedValue item;
    if (npurt_value_item(value, i, item.out(), nullptr) == NPURT_OK) bytes += BytesOf(item.get());
  }
  return bytes;
}

using Parts = std::vector<std::pair<std::string, Array>>;

Status PartsOf(npurt_value* value, Parts* out) {
  return VisitTensors(value, "", [out](const std::string& suffix, const Array& array) {
    out->emplace_back(suffix, array);
    return Status();
  });
}

npurt_dtype DTypeOf(npurt_value* value) {
  npurt_tensor view = npurt_tensor_init();
  return npurt_value_tensor(value, &view, nullptr) == NPURT_OK ? view.dtype : NPURT_DTYPE_NONE;
}

// "float16 [2, 3]"; with "in float32" if that is how it is stored.
std::string TypeOf(npurt_value* value, npurt_dtype chosen) {
  npurt_tensor view = npurt_tensor_init();
  if (npurt_value_tensor(value, &view, nullptr) != NPURT_OK) return npurt_value_type(value);
  const bool wider = Coarseness(chosen) > Coarseness(view.dtype) && Coarseness(view.dtype) >= 0;
  return (wider ? std::string(npurt_dtype_name(chosen)) + " in " : "") +
         npurt_dtype_name(view.dtype) + " " + FormatDims({view.dims, view.dims + view.rank});
}

// Runs a session and shows named values as they are made. The library calls back between run and
// return only, so the object may live on the stack.
class ObservedRun {
 public:
  using See = std::function<Status(const std::string& name, npurt_value* value)>;

  Status Prepare(npurt_session* session, const std::vector<OwnedValue>& inputs) {
    OwnedError error;
    NPURT_CLI_TRY(FromLibrary(npurt_run_create(session, 0, run_.out(), error.out()), error,
                              kExitRun, "preparing a run"));
    for (std::size_t i = 0; i < inputs.size(); ++i)
      NPURT_CLI_TRY(FromLibrary(
          npurt_run_bind_input(run_.get(), i, inputs[i].get(), 0, error.out()), error, kExitRun,
          "input " + std::to_string(i), "npurt inspect MODEL shows what it takes."));
    return Status();
  }

  Status Execute(const Names& names, const See& see, const std::string& what) {
    see_ = &see;
    seen_ = Status();
    std::vector<const char*> wanted;
    for (const std::string& name : names) wanted.push_back(name.c_str());
    npurt_observer observer = npurt_observer_init();
    observer.names = wanted.data();
    observer.name_count = wanted.size();
    observer.user_data = this;
    observer.observe = &ObservedRun::Observe;
    OwnedError error;
    NPURT_CLI_TRY(FromLibrary(
        npurt_run_set_observer(run_.get(), names.empty() ? nullptr : &observer, error.out()), error,
        kExitRun, what));
    const npurt_status status = npurt_run_execute(run_.get(), nullptr, error.out());
    if (!seen_.ok()) return seen_;
    return FromLibrary(status, error, kExitRun, what);
  }

  Status Output(std::size_t index, OwnedValue* out) {
    OwnedError error;
    return FromLibrary(npurt_run_output(run_.get(), index, out->out(), error.out()), error,
                       kExitRun, "output " + std::to_string(index));
  }

 private:
  static npurt_status Observe(void* self, const char* name, npurt_value* value) {
    auto& run = *static_cast<ObservedRun*>(self);
    if (value == nullptr) return NPURT_OK;
    run.seen_ = (*run.see_)(name, value);
    return run.seen_.ok() ? NPURT_OK : NPURT_ABORTED;
  }

  OwnedRun run_;
  const See* see_ = nullptr;
  Status seen_;
};

// The pairs of runs, and what they found.
class Comparer {
 public:
  Comparer(const npurt_model* model, npurt_session* a, npurt_session* b,
           const ComparisonSettings& settings)
      : settings_(settings), graph_(ReadGraph(model)), plan_a_(ReadPlan(a)), plan_b_(ReadPlan(b)) {}

  Status Run(npurt_session* a, npurt_session* b, const std::vector<OwnedValue>& inputs,
             Comparison* out) {
    Names rest;
    out->graph_values = graph_.origins.size();
    for (const auto& [name, origin] : graph_.origins) {
      const bool in_a = plan_a_.exists.count(name) > 0, in_b = plan_b_.exists.count(name) > 0;
      out->hidden_a += !in_a;
      out->hidden_b += !in_b;
      if (in_a && in_b && !settings_.outputs_only) rest.insert(name);
    }
    ObservedRun run_a, run_b;
    NPURT_CLI_TRY(run_a.Prepare(a, inputs));
    NPURT_CLI_TRY(run_b.Prepare(b, inputs));
    do {
      NPURT_CLI_TRY(Slice(&run_a, &run_b, &rest));
      if (out->runs++ == 0) NPURT_CLI_TRY(CompareOutputs(&run_a, &run_b));
    } while (!rest.empty());
    for (auto& [name, value] : found_) out->values.push_back(std::move(value));
    std::sort(out->values.begin(), out->values.end(),
              [](const auto& x, const auto& y) { return x.index < y.index; });
    return Status();
  }

 private:
  // One pair of runs: as many of `rest` as memory allows, and always one.
  Status Slice(ObservedRun* run_a, ObservedRun* run_b, Names* rest) {
    std::map<std::string, OwnedValue> kept;
    Names seen;
    std::size_t bytes = 0;
    const auto keep = [&](const std::string& name, npurt_value* value) -> Status {
      seen.insert(name);
      const std::size_t size = BytesOf(value);
      const bool again = kept.count(name) > 0;
      if (again ? !Replaces(plan_a_, name, DTypeOf(kept[name].get()), value)
                : !kept.empty() && bytes + size > settings_.keep_bytes)
        return Status();
      bytes += size;
      *kept[name].out() = npurt_value_retain(value);
      return Status();
    };
    NPURT_CLI_TRY(run_a->Execute(*rest, keep, "configuration A"));
    Names names;
    for (const auto& [name, value] : kept) names.insert(name);
    std::map<std::string, npurt_dtype> of_b;
    const auto compare = [&](const std::string& name, npurt_value* value) -> Status {
      const auto [before, first] = of_b.emplace(name, DTypeOf(value));
      if (!first && !Replaces(plan_b_, name, before->second, value)) return Status();
      before->second = DTypeOf(value);
      return Add(name, kept[name].get(), value);
    };
    NPURT_CLI_TRY(run_b->Execute(names, compare, "configuration B"));
    Names next;  // what A did not make in this run will not come in the next one
    std::set_difference(seen.begin(), seen.end(), names.begin(), names.end(),
                        std::inserter(next, next.begin()));
    *rest = std::move(next);
    return Status();
  }

  Status CompareOutputs(ObservedRun* run_a, ObservedRun* run_b) {
    for (std::size_t i = 0; i < graph_.outputs.size(); ++i) {
      const std::string& name = graph_.outputs[i];
      if (found_.count(name) == 0) {
        OwnedValue a, b;
        NPURT_CLI_TRY(run_a->Output(i, &a));
        NPURT_CLI_TRY(run_b->Output(i, &b));
        NPURT_CLI_TRY(Add(name, a.get(), b.get()));
      }
      found_[name].is_output = true;
    }
    return Status();
  }

  Status Add(const std::string& name, npurt_value* a, npurt_value* b) {
    ComparedValue value;
    const Plan::Made made_a = MadeIn(plan_a_, name), made_b = MadeIn(plan_b_, name);
    const bool b_coarser = Coarseness(made_b.chosen) > Coarseness(made_a.chosen);
    NPURT_CLI_TRY(MeasureValues(a, b, b_coarser ? made_b.chosen : made_a.chosen, &value.distance));
    value.type_a = TypeOf(a, made_a.chosen);
    value.type_b = TypeOf(b, made_b.chosen);
    value.name = name;
    value.index = graph_.origins.size();
    const auto origin = graph_.origins.find(name);
    if (origin != graph_.origins.end()) {
      value.index = origin->second.index;
      value.node = origin->second.node;
      value.op = origin->second.op;
    }
    value.is_output = found_.count(name) > 0 && found_[name].is_output;
    value.coarseness = std::max(
        {Coarseness(DTypeOf(a)), Coarseness(DTypeOf(b)), made_a.coarseness, made_b.coarseness});
    value.limits =
        settings_.limits != nullptr ? *settings_.limits : DefaultLimits(value.coarseness);
    value.excess = Excess(value.distance, value.limits);
    found_[name] = std::move(value);
    return Status();
  }

  static Plan::Made MadeIn(const Plan& plan, const std::string& name) {
    const auto found = plan.made.find(name);
    return found == plan.made.end() ? Plan::Made() : found->second;
  }

  // Whether `value`, which bears the name of one that came `before`, is rather the one that is
  // meant.
  static bool Replaces(const Plan& plan, const std::string& name, npurt_dtype before,
                       npurt_value* value) {
    const npurt_dtype chosen = MadeIn(plan, name).chosen;
    return chosen != NPURT_DTYPE_NONE && before != chosen && DTypeOf(value) == chosen;
  }

  const ComparisonSettings& settings_;
  const GraphNames graph_;
  const Plan plan_a_, plan_b_;
  std::map<std::string, ComparedValue> found_;
};

}  // namespace

Status MeasureValues(npurt_value* a, npurt_value* b, npurt_dtype rounded_to, Distance* out) {
  Parts parts_a, parts_b;
  NPURT_CLI_TRY(PartsOf(a, &parts_a));
  NPURT_CLI_TRY(PartsOf(b, &parts_b));
  Distance distance;
  if (npurt_value_kind(a) != npurt_value_kind(b) || parts_a.size() != parts_b.size()) {
    distance.problem = "A has " + std::to_string(parts_a.size()) + " tensors (" +
                       npurt_value_type(a) + "), B has " + std::to_string(parts_b.size()) + " (" +
                       npurt_value_type(b) + ")";
  } else {
    for (std::size_t i = 0; i < parts_a.size(); ++i) {
      const Distance part = Measure(parts_a[i].second, parts_b[i].second, rounded_to);
      if (i == 0)
        distance = part;
      else
        Merge(part, &distance);
    }
  }
  *out = distance;
  return Status();
}

bool Comparison::within() const { return first_beyond() == nullptr; }

const ComparedValue* Comparison::first_beyond() const {
  for (const ComparedValue& value : values)
    if (value.excess > 1) return &value;
  return nullptr;
}

std::vector<const ComparedValue*> Comparison::Worst(std::size_t count) const {
  std::vector<const ComparedValue*> worst;
  for (const ComparedValue& value : values)
    if (value.excess > 0) worst.push_back(&value);
  std::stable_sort(worst.begin(), worst.end(),
                   [](const auto* x, const auto* y) { return x->excess > y->excess; });
  if (worst.size() > count) worst.resize(count);
  return worst;
}

Status Compare(const npurt_model* model, npurt_session* a, npurt_session* b,
               const std::vector<OwnedValue>& inputs, const ComparisonSettings& settings,
               Comparison* out) {
  Comparison comparison;
  NPURT_CLI_TRY(Comparer(model, a, b, settings).Run(a, b, inputs, &comparison));
  *out = std::move(comparison);
  return Status();
}

}  // namespace npurt::cli
