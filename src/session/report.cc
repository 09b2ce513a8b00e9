#include "session/report.h"

#include <nlohmann/json.hpp>

#include "compile/precision/precision.h"

namespace npurt::session {
namespace {

using Json = nlohmann::ordered_json;
using exec::Base;
using exec::kNone;

// Names come from models and may be no UTF-8.
std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json Shape(absl::Span<const Dim> dims) {
  Json list = Json::array();
  for (Dim dim : dims) {
    if (dim.is_constant())
      list.push_back(dim.value());
    else
      list.push_back(dim.ToString());
  }
  return list;
}

Json TypeJson(const ValueType& type) {
  if (type.kind != ValueKind::kTensor || !type.has_rank) return type.ToString();
  return std::string(DTypeName(type.dtype)) + ShapeString(absl::MakeConstSpan(type.dims));
}

const char* BaseName(Base base) {
  switch (base) {
    case Base::kNone:
      return "none";
    case Base::kArena:
      return "arena";
    case Base::kConstant:
      return "constant";
    case Base::kInput:
      return "input";
    case Base::kOutput:
      return "output";
    case Base::kPlan:
      return "plan";
    case Base::kVariable:
      return "variable";
    case Base::kPool:
      return "pool";
  }
  return "?";
}

// The plan that the report shows, or null.
std::shared_ptr<const exec::Plan> PlanOf(const SessionGraph& graph) {
  auto plan = graph.plans->last();
  if (plan != nullptr) return plan;
  std::vector<Dims> shapes;
  for (const PortInfo& input : graph.inputs) {
    if (!input.type.has_rank || !AllConstant(input.type.dims)) return nullptr;
    shapes.push_back(ToDims(input.type.dims));
  }
  std::vector<absl::Span<const std::int64_t>> spans(shapes.begin(), shapes.end());
  auto made = graph.plans->Find(spans);
  return made.ok() ? *made : nullptr;
}

Json OperandJson(const exec::Program& program, const exec::Plan* plan, int value) {
  if (value == kNone) return nullptr;
  const exec::ProgramValue& info = program.values[value];
  Json json;
  json["name"] = info.name;
  json["dtype"] = std::string(DTypeName(info.dtype));
  const exec::PlannedValue* planned = plan == nullptr ? nullptr : &plan->values[value];
  if (planned != nullptr && planned->base != Base::kPool && planned->dims != nullptr) {
    json["shape"] = std::vector<std::int64_t>(planned->dims, planned->dims + planned->rank);
    json["bytes"] = planned->bytes;
    json["in"] = BaseName(planned->base);
    json["offset"] = planned->offset;
  } else {
    json["shape"] = info.has_rank ? Shape(info.dims) : Json();
    json["in"] = BaseName(info.home);
  }
  return json;
}

}  // namespace

std::string OperatorsJson(const graph::Graph& graph) {
  std::map<std::string, int> counts;
  int nodes = 0;
  for (int i = 0; i < graph.node_count(); ++i) {
    const graph::Node& node = graph.node(i);
    if (node.removed) continue;
    ++nodes;
    ++counts[node.original_op];
  }
  Json json;
  json["nodes"] = nodes;
  json["operators"] = counts;
  return Dump(json);
}

std::string GraphJson(const graph::Graph& graph) {
  Json json;
  json["name"] = graph.name;
  const auto value_name = [&](graph::ValueId id) -> Json {
    if (id == graph::kNone) return nullptr;
    return graph.value(id).name;
  };
  const auto value_json = [&](graph::ValueId id) {
    Json value;
    value["name"] = graph.value(id).name;
    value["type"] = TypeJson(graph.value(id).type);
    return value;
  };
  json["inputs"] = Json::array();
  for (graph::ValueId id : graph.inputs()) json["inputs"].push_back(value_json(id));
  json["outputs"] = Json::array();
  for (graph::ValueId id : graph.outputs()) json["outputs"].push_back(value_json(id));
  json["nodes"] = Json::array();
  for (int i = 0; i < graph.node_count(); ++i) {
    const graph::Node& node = graph.node(i);
    if (node.removed) continue;
    Json entry;
    entry["name"] = node.name;
    entry["op"] = node.original_op;
    entry["type"] = node.op->name;
    entry["inputs"] = Json::array();
    for (graph::ValueId id : node.inputs) entry["inputs"].push_back(value_name(id));
    entry["outputs"] = Json::array();
    for (graph::ValueId id : node.outputs) {
      if (id == graph::kNone)
        entry["outputs"].push_back(nullptr);
      else
        entry["outputs"].push_back(value_json(id));
    }
    json["nodes"].push_back(std::move(entry));
  }
  return Dump(json);
}

std::string ModelMemoryJson(const graph::Graph& graph) {
  std::size_t bytes = 0, count = 0;
  for (int i = 0; i < graph.value_count(); ++i) {
    if (!graph.value(i).is_constant()) continue;
    bytes += graph.value(i).constant.bytes();
    ++count;
  }
  return Dump(Json{{"weights", count}, {"weight_bytes", bytes}});
}

std::string CompileJson(const SessionGraph& graph) {
  const compile::CompileReport& report = graph.compiled.report;
  Json json;
  json["nodes"] = report.nodes_before;
  json["steps"] = report.steps_after;
  json["passes"] = Json::array();
  for (const compile::PassReport& pass : report.passes)
    json["passes"].push_back({{"name", pass.name}, {"changes", pass.changes}, {"ms", pass.ms}});
  return Dump(json);
}

namespace {

Json PrecisionOperands(const std::vector<compile::precision::Report::Operand>& operands) {
  Json list = Json::array();
  for (const auto& operand : operands) {
    Json entry;
    entry["name"] = operand.value;
    entry["original"] = nullptr;
    entry["chosen"] = nullptr;
    if (operand.original != DType::kUndefined) {
      entry["original"] = std::string(DTypeName(operand.original));
      entry["chosen"] = std::string(DTypeName(operand.chosen));
    }
    entry["why"] = operand.why;
    list.push_back(std::move(entry));
  }
  return list;
}

// What the files say of nodes and types that the graph does not have.
std::vector<std::string> Unmatched(const compile::precision::Settings& settings,
                                   const std::vector<compile::precision::Report>& reports) {
  const auto is_there = [&](const std::string& name, bool by_type) {
    for (const auto& report : reports)
      for (const auto& node : report.nodes)
        if (by_type ? name == node.op || name == node.type
                    : name == node.name || std::find(node.origins.begin(), node.origins.end(),
                                                     name) != node.origins.end())
          return true;
    return false;
  };
  std::vector<std::string> warnings;
  for (const auto& entry : settings.custom)
    if (!is_there(entry.name, entry.by_type))
      warnings.push_back("customize_dtypes: the graph has no " +
                         std::string(entry.by_type ? "operator " : "node ") + entry.name);
  for (const auto& [name, precise] : settings.precise_names)
    if (!is_there(name, false))
      warnings.push_back("op_precision_mode: the graph has no node " + name);
  return warnings;
}

Json PrecisionJson(const SessionGraph& graph, const compile::precision::Settings& settings) {
  namespace precision = compile::precision;
  Json json;
  json["option"] = settings.option;
  json["mode"] = std::string(precision::NameOf(settings.mode));
  json["warnings"] = settings.warnings;
  json["nodes"] = Json::array();
  json["casts"] = Json::array();
  const std::vector<precision::Report>* reports = graph.compiled.report.precision.get();
  std::vector<precision::Report> origin;
  if (settings.keeps_all()) {
    origin = precision::DescribeOrigin(*graph.source);
    reports = &origin;
  }
  for (const std::string& warning : Unmatched(settings, *reports))
    json["warnings"].push_back(warning);
  for (const precision::Report& report : *reports) {
    for (const precision::Report::Node& node : report.nodes) {
      Json entry;
      entry["graph"] = report.path;
      entry["name"] = node.name;
      entry["op"] = node.op;
      entry["type"] = node.type;
      entry["list"] = node.list;
      entry["engine"] = node.engine;
      entry["rule"] = node.rule;
      entry["producer"] = node.producer;
      if (!node.warning.empty()) entry["warning"] = node.warning;
      entry["origins"] = node.origins;
      entry["inputs"] = PrecisionOperands(node.inputs);
      entry["outputs"] = PrecisionOperands(node.outputs);
      json["nodes"].push_back(std::move(entry));
    }
    for (const precision::InsertedCast& cast : report.casts)
      json["casts"].push_back({{"graph", report.path},
                               {"value", cast.value},
                               {"from", std::string(DTypeName(cast.from))},
                               {"to", std::string(DTypeName(cast.to))},
                               {"producer", cast.producer},
                               {"consumers", cast.consumers},
                               {"constant", cast.constant}});
  }
  return json;
}

}  // namespace

std::string PlanJson(const SessionGraph& graph, const compile::precision::Settings& settings) {
  const exec::Program& program = *graph.compiled.program;
  const std::shared_ptr<const exec::Plan> plan = PlanOf(graph);
  Json json;
  json["graph"] = graph.name;
  json["planned"] = plan != nullptr;
  json["streams"] = program.stream_names;
  json["events"] = program.event_count;
  if (plan != nullptr) {
    json["arena_bytes"] = plan->arena_bytes;
    json["arena_lower_bound_bytes"] = plan->lower_bound_bytes;
    json["donated_bytes"] = plan->donated_bytes;
    json["values_bytes"] = plan->values_bytes;
    json["scratch_bytes_per_thread"] = plan->scratch_bytes;
    json["exact"] = plan->exact;
  }
  json["precision"] = PrecisionJson(graph, settings);
  json["steps"] = Json::array();
  for (std::size_t s = 0; s < program.steps.size(); ++s) {
    const exec::Step& step = program.steps[s];
    Json entry;
    entry["index"] = s;
    entry["op"] = step.op;
    entry["kernel"] = step.kernel;
    entry["engine"] = step.engine;
    entry["stream"] = program.stream_names[step.stream];
    const auto made = std::find_if(step.outputs.begin(), step.outputs.end(),
                                   [](int v) { return v != kNone; });
    entry["dtype"] = made == step.outputs.end()
                         ? ""
                         : std::string(DTypeName(program.values[*made].dtype));
    entry["layout"] = "row-major";
    if (!step.wait.empty()) entry["wait"] = step.wait;
    if (step.signal != kNone) entry["signal"] = step.signal;
    entry["origins"] = step.origins;
    entry["why"] = step.why;
    entry["late"] = step.late;
    if (plan != nullptr && !step.late) {
      entry["tiles"] = plan->steps[s].tiles;
      entry["cost_ns"] = plan->steps[s].cost_per_tile * static_cast<double>(plan->steps[s].tiles);
      entry["view"] = plan->steps[s].skip;
    }
    entry["inputs"] = Json::array();
    for (int v : step.inputs) entry["inputs"].push_back(OperandJson(program, plan.get(), v));
    entry["outputs"] = Json::array();
    for (int v : step.outputs) entry["outputs"].push_back(OperandJson(program, plan.get(), v));
    json["steps"].push_back(std::move(entry));
  }
  return Dump(json);
}

std::string MemoryJson(Session& session, const SessionGraph& graph) {
  const exec::Program& program = *graph.compiled.program;
  const std::shared_ptr<const exec::Plan> plan = PlanOf(graph);
  Json json;
  json["weight_bytes"] = program.weight_bytes;
  json["packed_bytes"] = program.packed_bytes;
  if (plan != nullptr) {
    json["arena_bytes"] = plan->arena_bytes;
    json["arena_lower_bound_bytes"] = plan->lower_bound_bytes;
    json["donated_bytes"] = plan->donated_bytes;
  }
  json["plan_bytes"] = graph.plans->stats().bytes;
  const memory::CountingAllocator& allocator = session.allocator();
  const std::pair<const char*, memory::Kind> kinds[] = {
      {"weights", memory::Kind::kWeights}, {"packed", memory::Kind::kPacked},
      {"arena", memory::Kind::kArena},     {"scratch", memory::Kind::kScratch},
      {"value", memory::Kind::kValue},
  };
  for (const auto& [name, kind] : kinds)
    json["session"][name] = {{"bytes", allocator.current_bytes(kind)},
                             {"peak_bytes", allocator.peak_bytes(kind)}};
  return Dump(json);
}

std::string CountersJson(const Session& session, const SessionGraph& graph) {
  const compile::PlanCache::Stats stats = graph.plans->stats();
  return Dump(Json{{"runs", session.counters().runs.load()},
                   {"failed_runs", session.counters().failed_runs.load()},
                   {"plans_made", stats.made},
                   {"layouts_made", stats.layouts},
                   {"plans_reused", stats.reused},
                   {"plans_dropped", stats.dropped},
                   {"plans_cached", stats.count},
                   {"plan_bytes", stats.bytes},
                   {"threads", session.threads()},
                   {"isa", IsaText(session.isa())}});
}

}  // namespace npurt::session
