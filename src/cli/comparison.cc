#include "cli/comparison.h"

#include <algorithm>
#include <set>

#include "cli/json.h"
#include "cli/session.h"
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

// The values that a session's steps make, with the coarsest floating type on the way to each.
std::map<std::string, int> ReadPlan(npurt_session* session) {
  std::map<std::string, int> coarseness;
  std::map<std::string, int> made;
  const Json plan = ParseJson(SessionReport(session, NPURT_REPORT_PLAN));
  if (!plan.contains("steps")) return made;
  const auto of_type = [](const Json& operand) {
    const auto dtype = operand.find("dtype");
    return dtype == operand.end() ? -1
                                  : Coarseness(npurt_dtype_find(dtype->get<std::string>().c_str()));
  };
  for (const Json& step : plan["steps"]) {
    int coarsest = -1;
    for (const Json& input : step["inputs"]) {
      if (!input.is_object()) continue;
      coarsest = std::max(coarsest, of_type(input));
      const auto before = coarseness.find(NameAt(input));
      if (before != coarseness.end()) coarsest = std::max(coarsest, before->second);
    }
    for (const Json& output : step["outputs"]) {
      if (!output.is_object()) continue;
      int& now = coarseness.emplace(NameAt(output), -1).first->second;
      now = std::max({now, coarsest, of_type(output)});
      made[NameAt(output)] = now;
    }
  }
  return made;
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

std::string TypeOf(npurt_value* value, const Parts& parts) {
  return npurt_value_kind(value) == NPURT_KIND_TENSOR && parts.size() == 1
             ? Describe(parts[0].second)
             : npurt_value_type(value);
}

Status MeasureValues(npurt_value* a, npurt_value* b, ComparedValue* out) {
  Parts parts_a, parts_b;
  NPURT_CLI_TRY(PartsOf(a, &parts_a));
  NPURT_CLI_TRY(PartsOf(b, &parts_b));
  out->type_a = TypeOf(a, parts_a);
  out->type_b = TypeOf(b, parts_b);
  out->distance = Distance();
  if (npurt_value_kind(a) != npurt_value_kind(b) || parts_a.size() != parts_b.size()) {
    out->distance.problem = "A has " + std::to_string(parts_a.size()) + " tensors (" +
                            npurt_value_type(a) + "), B has " + std::to_string(parts_b.size()) +
                            " (" + npurt_value_type(b) + ")";
    return Status();
  }
  for (std::size_t i = 0; i < parts_a.size(); ++i) {
    out->coarseness = std::max({out->coarseness, Coarseness(parts_a[i].second.dtype),
                                Coarseness(parts_b[i].second.dtype)});
    const Distance part = Measure(parts_a[i].second, parts_b[i].second);
    if (i == 0)
      out->distance = part;
    else
      Merge(part, &out->distance);
  }
  return Status();
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
      const bool in_a = plan_a_.count(name) > 0, in_b = plan_b_.count(name) > 0;
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
      const auto before = kept.find(name);
      if (before == kept.end() && !kept.empty() && bytes + size > settings_.keep_bytes)
        return Status();
      bytes += size;
      // A name that two steps bear is that of the caller's value in the later one.
      *kept[name].out() = npurt_value_retain(value);
      return Status();
    };
    NPURT_CLI_TRY(run_a->Execute(*rest, keep, "configuration A"));
    Names names;
    for (const auto& [name, value] : kept) names.insert(name);
    const auto compare = [&](const std::string& name, npurt_value* value) {
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
    NPURT_CLI_TRY(MeasureValues(a, b, &value));
    value.name = name;
    value.index = graph_.origins.size();
    const auto origin = graph_.origins.find(name);
    if (origin != graph_.origins.end()) {
      value.index = origin->second.index;
      value.node = origin->second.node;
      value.op = origin->second.op;
    }
    value.is_output = found_.count(name) > 0 && found_[name].is_output;
    value.coarseness =
        std::max({value.coarseness, CoarsenessIn(plan_a_, name), CoarsenessIn(plan_b_, name)});
    value.limits =
        settings_.limits != nullptr ? *settings_.limits : DefaultLimits(value.coarseness);
    value.excess = Excess(value.distance, value.limits);
    found_[name] = std::move(value);
    return Status();
  }

  static int CoarsenessIn(const std::map<std::string, int>& plan, const std::string& name) {
    const auto found = plan.find(name);
    return found == plan.end() ? -1 : found->second;
  }

  const ComparisonSettings& settings_;
  const GraphNames graph_;
  const std::map<std::string, int> plan_a_, plan_b_;
  std::map<std::string, ComparedValue> found_;
};

}  // namespace

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
