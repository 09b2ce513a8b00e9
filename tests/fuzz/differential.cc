#include "fuzz/differential.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "absl/strings/str_cat.h"
#include "fuzz/noise.h"
#include "graph/text.h"
#include "ops/op_test_harness.h"
#include "session/run.h"
#include "session/session.h"

namespace npurt::fuzz {
namespace {

using graph::kNone;
using graph::NodeId;
using graph::ValueId;

// No option: the inputs that runs may overwrite, as bits.
constexpr char kDonate[] = "donate";

// Numbers in memory of their own.
Value CopyOf(const Value& value) {
  if (!value.is_tensor() || value.tensor().dtype() == DType::kString) return value;
  auto copy = Tensor::Create(value.tensor().dtype(), value.tensor().dims());
  if (!copy.ok()) return value;
  if (copy->bytes() > 0) std::memcpy(copy->mutable_data(), value.tensor().data(), copy->bytes());
  return Value(*std::move(copy));
}

// `counts` null: nobody asks.
std::string Compared(const Case& made, const absl::StatusOr<std::vector<Value>>& got,
                     Counts* counts) {
  if (!got.ok()) return absl::StrCat("fails: ", got.status().ToString());
  for (std::size_t o = 0; o < got->size(); ++o) {
    const ValueId id = made.graph->outputs()[o];
    const Value& want = made.values[id];
    const double bound = made.noise[id], distance = Distance((*got)[o], want);
    if (!(distance <= bound))
      return absl::StrCat("output ", made.graph->output_names()[o], ": ",
                          ops::Difference((*got)[o], want, 0, bound), ", may be off by ", bound);
    if (counts == nullptr) continue;
    ++(bound == 0 ? counts->exact
                  : (bound <= kTight * (1 + LargestOf(want)) ? counts->tight : counts->loose));
    if (bound > 0) counts->furthest = std::max(counts->furthest, distance / bound);
  }
  return "";
}

// Both devices against what the references gave one by one.
std::string ComparedWithReference(const Case& made, const Settings& settings, Counts* counts) {
  const std::string differs = Compared(made, RunCase(made, {{"device", "reference"}}), nullptr);
  if (!differs.empty()) return absl::StrCat("the reference device and its operators: ", differs);
  return Compared(made, RunCase(made, settings), counts);
}

// The option and value of a promise: same bits on every instruction set.
const std::pair<std::string, std::string>& SameBits() {
  static const auto* const same = new std::pair<std::string, std::string>("reproducibility", "isa");
  return *same;
}
bool Promises(const Settings& settings) {
  return std::find(settings.begin(), settings.end(), SameBits()) != settings.end();
}

std::string ComparedBits(const Case& made, Settings settings) {
  settings.erase(std::remove_if(settings.begin(), settings.end(),
                                [](const auto& s) { return s.first == "max_isa"; }),
                 settings.end());
  std::vector<Value> first;
  for (const char* isa : {"generic", "avx2", "avx512"}) {
    Settings here = settings;
    here.emplace_back("max_isa", isa);
    const auto got = RunCase(made, here);
    if (!got.ok()) return absl::StrCat("fails with max_isa=", isa, ": ", got.status().ToString());
    if (first.empty()) first = *got;
    for (std::size_t o = 0; o < first.size(); ++o) {
      const std::string difference = ops::Difference((*got)[o], first[o]);
      if (!difference.empty())
        return absl::StrCat("bits with max_isa=", isa, ", output ", made.graph->output_names()[o],
                            ": ", difference);
    }
  }
  return "";
}

std::string Problem(const Case& made, const Settings& settings, Counts* counts = nullptr) {
  const std::string problem = ComparedWithReference(made, settings, counts);
  return problem.empty() && Promises(settings) ? ComparedBits(made, settings) : problem;
}

Settings RandomSettings(Choices& choices) {
  static const auto* const rows = new std::vector<std::pair<std::string, std::vector<std::string>>>{
      {"fusion", {"true", "true", "false"}},
      {"constant_folding", {"true", "true", "false"}},
      {"inter_op_streams", {"0", "0", "1", "2", "3"}},
      {"max_isa", {"generic", "avx2", "avx512", "best"}},
      {"threads", {"1", "2", "3"}},
      {"reproducibility", {"fast", "machine", "machine", "isa"}},
      {"denormals", {"flush", "keep"}},
  };
  Settings settings;
  if (choices.Percent(40)) settings.emplace_back(kDonate, absl::StrCat(choices.Below(256)));
  for (const auto& [name, values] : *rows)
    if (choices.Percent(60)) settings.emplace_back(name, choices.Of(values));
  return settings;
}

// The case with these nodes; what the others computed are inputs. Only `output` is one.
Case Rebuild(const Case& made, const std::set<NodeId>& keep, ValueId output) {
  const graph::Graph& from = *made.graph;
  Case small;
  small.graph = std::make_shared<graph::Graph>(from.dims());
  small.graph->name = from.name;
  std::vector<ValueId> now(static_cast<std::size_t>(from.value_count()), kNone);
  const auto know = [&](ValueId old, ValueId id) {
    now[old] = id;
    small.values.resize(static_cast<std::size_t>(small.graph->value_count()));
    small.noise.resize(small.values.size());
    small.values[id] = made.values[old];
    small.noise[id] = made.noise[old];
  };
  const auto provide = [&](ValueId old) {
    if (old == kNone || now[old] != kNone) return true;
    const graph::ValueInfo& value = from.value(old);
    if (value.producer == kNone && value.is_constant()) {
      const auto id = small.graph->AddConstant(value.name, value.constant);
      if (id.ok()) know(old, *id);
      return id.ok();
    }
    const bool exact = value.producer != kNone;  // what a run has found is a number
    const auto id =
        small.graph->AddInput(value.name, exact ? TypeOf(made.values[old]) : value.type);
    if (!id.ok()) return false;
    small.inputs.push_back(made.values[old]);
    know(old, *id);
    if (exact) small.noise[*id] = 0;
    return true;
  };
  const auto order = from.Order();
  if (!order.ok()) return Case();
  for (const NodeId id : *order) {
    if (keep.count(id) == 0) continue;
    const graph::Node& node = from.node(id);
    graph::NodeSpec spec;
    spec.op = node.op->name;
    spec.name = node.name;
    spec.attributes = node.attributes;
    for (const ValueId input : node.inputs) {
      if (!provide(input)) return Case();
      spec.inputs.push_back(input == kNone ? kNone : now[input]);
    }
    for (const ValueId out : node.outputs)
      spec.outputs.push_back(out == kNone ? "" : from.value(out).name);
    const auto added = small.graph->AddNode(std::move(spec));
    if (!added.ok()) return Case();
    for (std::size_t i = 0; i < node.outputs.size(); ++i)
      if (node.outputs[i] != kNone) know(node.outputs[i], small.graph->node(*added).outputs[i]);
  }
  if (now[output] == kNone || !small.graph->AddOutput(now[output], from.value(output).name).ok())
    return Case();
  return small;
}

// The nodes that `output` needs.
std::set<NodeId> NeededBy(const graph::Graph& graph, ValueId output) {
  std::set<NodeId> needed;
  std::vector<ValueId> open = {output};
  while (!open.empty()) {
    const ValueId id = open.back();
    open.pop_back();
    if (id == kNone || graph.value(id).producer == kNone ||
        !needed.insert(graph.value(id).producer).second)
      continue;
    const graph::Node& node = graph.node(graph.value(id).producer);
    open.insert(open.end(), node.inputs.begin(), node.inputs.end());
  }
  return needed;
}

}  // namespace

std::string SettingsText(const Settings& settings) {
  std::string text;
  for (const auto& [name, value] : settings)
    absl::StrAppend(&text, text.empty() ? "" : " ", name, "=", value);
  return text.empty() ? "default options" : text;
}

absl::StatusOr<std::vector<Value>> RunCase(const Case& made, const Settings& settings) {
  options::Options options;
  unsigned long donated = 0;
  for (const auto& [name, value] : settings) {
    if (name == kDonate)
      donated = std::stoul(value);
    else
      NPURT_RETURN_IF_ERROR(options.Set(name, value));
  }
  NPURT_ASSIGN_OR_RETURN(const auto session, session::Session::Create(options, {}));
  NPURT_RETURN_IF_ERROR(session->AddGraph(made.graph->Clone(), "", {}).status());
  NPURT_ASSIGN_OR_RETURN(const auto run, session->NewRun(0));
  for (int round = 0; round < 2; ++round) {
    for (std::size_t i = 0; i < made.inputs.size(); ++i) {
      const bool donate = i < 64 && (donated >> i & 1) != 0;
      NPURT_RETURN_IF_ERROR(
          run->BindInput(i, donate ? CopyOf(made.inputs[i]) : made.inputs[i], donate));
    }
    NPURT_RETURN_IF_ERROR(run->Execute({}));
  }
  std::vector<Value> outputs;
  for (int o = 0; o < run->output_count(); ++o) {
    NPURT_ASSIGN_OR_RETURN(Value value, run->Output(static_cast<std::size_t>(o)));
    outputs.push_back(std::move(value));
  }
  return outputs;
}

Finding Compare(const Case& made, Choices& choices, int more, const Settings& fixed,
                Counts* counts) {
  std::vector<Settings> all = {{}};
  for (int i = 0; i < more; ++i) all.push_back(RandomSettings(choices));
  for (Settings& settings : all) {
    settings.insert(settings.end(), fixed.begin(), fixed.end());
    Finding finding = {settings, Problem(made, settings, counts)};
    if (!finding.what.empty()) return finding;
  }
  return {};
}

Case Reduce(const Case& made, const Settings& settings) {
  const auto bad = [&](const Case& c) {
    return c.graph != nullptr && !Problem(c, settings).empty();
  };
  for (const ValueId output : made.graph->outputs()) {
    std::set<NodeId> keep = NeededBy(*made.graph, output);
    if (!bad(Rebuild(made, keep, output))) continue;
    for (bool smaller = true; smaller;) {
      smaller = false;
      for (const NodeId node : std::vector<NodeId>(keep.begin(), keep.end())) {
        std::set<NodeId> fewer = keep;
        fewer.erase(node);
        if (!bad(Rebuild(made, fewer, output))) continue;
        keep = std::move(fewer);
        smaller = true;
      }
    }
    return Rebuild(made, keep, output);
  }
  return Case();  // it takes several outputs
}

std::string CaseText(const Case& made) {
  graph::Graph inputs;
  inputs.name = "inputs";
  for (std::size_t i = 0; i < made.inputs.size(); ++i)
    if (made.inputs[i].is_tensor())
      (void)inputs.AddConstant(made.graph->value(made.graph->inputs()[i]).name,
                               made.inputs[i].tensor());
  graph::TextOptions text;
  text.inline_elements = 512;
  return absl::StrCat(graph::ToText(*made.graph, text), "\n", graph::ToText(inputs, text));
}

}  // namespace npurt::fuzz
