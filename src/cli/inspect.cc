// npurt inspect: what a model takes and gives, its operators, and with --plan how it would run.
//
// The library's reports are shown as they are: known members of a step make its headline, all
// others follow by name, so that a newer library shows more without a newer command.
#include <algorithm>
#include <cstdio>
#include <functional>

#include "cli/args.h"
#include "cli/inputs.h"
#include "cli/json.h"
#include "cli/session.h"
#include "cli/text.h"
#include "cli/verbs.h"

namespace npurt::cli {
namespace {

Json ToJson(const std::vector<ValueInfo>& infos) {
  Json list = Json::array();
  for (const ValueInfo& info : infos) {
    Json json;
    json["name"] = info.name;
    json["type"] = info.type;
    json["dims"] = nullptr;
    if (info.has_rank) {
      json["dims"] = Json::array();
      for (std::size_t d = 0; d < info.dims.size(); ++d) {
        if (info.dims[d] >= 0)
          json["dims"].push_back(info.dims[d]);
        else
          json["dims"].push_back(info.dim_names[d]);
      }
    }
    list.push_back(std::move(json));
  }
  return list;
}

void PrintValues(const char* head, const std::vector<ValueInfo>& infos) {
  std::printf("%s\n", head);
  Table table;
  for (const ValueInfo& info : infos) table.Add({"  " + info.name, info.Describe()});
  std::fputs(table.Format().c_str(), stdout);
}

void PrintOperators(const Json& report) {
  if (!report.contains("operators")) return;
  std::vector<std::pair<std::string, std::int64_t>> rows;
  for (const auto& [name, count] : report["operators"].items())
    rows.emplace_back(name, count.get<std::int64_t>());
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::int64_t total = 0;
  std::string text;
  for (const auto& [name, count] : rows) {
    total += count;
    text += (text.empty() ? "" : "  ") + name + ":" + std::to_string(count);
  }
  std::printf("operators (%lld nodes)\n  %s\n", static_cast<long long>(total),
              Wrap(text, 2, kColumns).c_str());
}

// "y float32 [1, 64] arena+256", as far as it is known.
std::string Operand(const Json& operand) {
  if (!operand.is_object()) return operand.is_null() ? "-" : ReadableJson(operand);
  std::string text;
  for (const char* key : {"name", "dtype", "shape", "in"}) {
    if (!operand.contains(key) || operand[key].is_null()) continue;
    const bool shape = operand[key].is_array();
    text += (text.empty() ? "" : " ") +
            (shape ? DumpJson(operand[key], -1) : ReadableJson(operand[key]));
  }
  if (operand.contains("offset")) text += "+" + ReadableJson(operand["offset"]);
  return text;
}

// A member of a step as text; "" if there is nothing to say.
std::string Member(const Json& value) {
  if (value.is_null() || value == "" || value == false) return "";
  if (!value.is_array())
    return value.is_number_float() ? FormatReal(value.get<double>()) : ReadableJson(value);
  std::string text;
  for (const Json& item : value) text += (text.empty() ? "" : ", ") + Operand(item);
  return text;
}

// Members of a step that make its first line, in this order.
constexpr const char* kHeadline[] = {"op", "kernel", "engine", "stream", "dtype", "layout"};

void PrintStep(const Json& step) {
  std::string head = step.contains("index") ? ReadableJson(step["index"]) : "-", rest;
  for (const char* key : kHeadline)
    if (step.contains(key) && step[key] != "") head += "  " + ReadableJson(step[key]);
  for (const auto& [key, value] : step.items()) {
    if (key == "index" ||
        std::find(std::begin(kHeadline), std::end(kHeadline), key) != std::end(kHeadline))
      continue;
    const std::string text = Member(value);
    if (!text.empty()) rest += "\n" + key + ": " + text;
  }
  std::printf("%s\n", Wrap(head, 4, kColumns).c_str());
  if (!rest.empty()) std::printf("    %s\n", Wrap(rest.substr(1), 4, kColumns).c_str());
}

void PrintPlan(const Json& plan) {
  std::string summary;
  for (const auto& [key, value] : plan.items())
    if (!value.is_structured())
      summary += (summary.empty() ? "" : "; ") + key + " " + ReadableJson(value);
  std::printf("plan\n");
  if (!summary.empty()) std::printf("  %s\n", Wrap(summary, 2, kColumns).c_str());
  if (!plan.contains("steps")) return;
  for (const Json& step : plan["steps"]) PrintStep(step);
}

// The types of tensors: "float32 > float16" where one was changed; once if all are alike.
std::string PrecisionTypes(const Json& operands) {
  std::vector<std::string> types;
  for (const Json& operand : operands) {
    if (operand["original"].is_null()) continue;
    const std::string original = ReadableJson(operand["original"]);
    const std::string chosen = ReadableJson(operand["chosen"]);
    types.push_back(original == chosen ? original : original + " > " + chosen);
  }
  if (std::adjacent_find(types.begin(), types.end(), std::not_equal_to<>()) == types.end())
    types.resize(std::min<std::size_t>(types.size(), 1));
  std::string text;
  for (const std::string& type : types) text += (text.empty() ? "" : ", ") + type;
  return text;
}

void PrintPrecisionNode(const Json& node) {
  const std::string in = PrecisionTypes(node["inputs"]), out = PrecisionTypes(node["outputs"]);
  if ((in + out).find("float") == std::string::npos) return;
  const std::string path = ReadableJson(node["graph"]);
  const std::string head = path + (path.empty() ? "" : "/") + ReadableJson(node["name"]) + "  " +
                           ReadableJson(node["op"]) + "  " + ReadableJson(node["list"]) + "  " +
                           (in == out ? in : in + " -> " + out);
  std::string rule = ReadableJson(node["rule"]);
  if (node.contains("warning")) rule += "; warning: " + ReadableJson(node["warning"]);
  std::printf("  %s\n    %s\n", Wrap(head, 4, kColumns).c_str(), Wrap(rule, 4, kColumns).c_str());
}

void PrintPrecisionCast(const Json& cast) {
  const std::string producer = cast["constant"] == true ? "a constant, cast while loading"
                               : cast["producer"] == "" ? "an input"
                                                        : ReadableJson(cast["producer"]);
  std::string consumers;
  for (const Json& consumer : cast["consumers"])
    consumers +=
        (consumers.empty() ? "" : ", ") + (consumer == "" ? "an output" : ReadableJson(consumer));
  const std::string text = ReadableJson(cast["value"]) + "  " + ReadableJson(cast["from"]) + " > " +
                           ReadableJson(cast["to"]) + "  of " + producer + ", for " + consumers;
  std::printf("  %s\n", Wrap(text, 4, kColumns).c_str());
}

void PrintPrecision(const Json& precision) {
  std::printf("precision\n  mode %s", ReadableJson(precision["mode"]).c_str());
  if (precision["option"] != "")
    std::printf(", by %s", ReadableJson(precision["option"]).c_str());
  std::printf("; nodes with floating tensors:\n");
  for (const Json& warning : precision["warnings"])
    std::printf("  warning: %s\n", Wrap(ReadableJson(warning), 4, kColumns).c_str());
  for (const Json& node : precision["nodes"]) PrintPrecisionNode(node);
  if (precision["casts"].empty()) return;
  std::printf("casts\n");
  for (const Json& cast : precision["casts"]) PrintPrecisionCast(cast);
}

// Lets the session plan for the shapes on the command line, if they say enough.
void PlanFor(const InputFlags& flags, npurt_session* session) {
  std::vector<ValueInfo> infos;
  std::vector<OwnedValue> values;
  if (!InputsOf(session, &infos).ok() || !MakeInputs(flags, infos, &values).ok()) return;
  std::vector<npurt_shape> shapes;
  std::vector<npurt_tensor> views(values.size(), npurt_tensor_init());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (npurt_value_tensor(values[i].get(), &views[i], nullptr) != NPURT_OK) return;
    shapes.push_back({views[i].dims, static_cast<std::size_t>(views[i].rank)});
  }
  npurt_memory_info ignored = npurt_memory_info_init();
  npurt_session_memory(session, 0, shapes.data(), shapes.size(), &ignored, nullptr);
}

}  // namespace

Status InspectVerb(const Arguments& arguments) {
  std::string path;
  SessionFlags flags;
  InputFlags shapes;
  bool as_json = false, with_plan = false, with_precision = false;
  Args args("inspect",
            "Shows inputs, outputs and operators of a model; with --plan also each step of the "
            "compiled model: engine, stream, events, element type, kernel, layout, place in the "
            "arena, the names it has in the model, and why it came to be so; with --precision what "
            "the options have it compute in.");
  args.Positional("MODEL", &path, true);
  flags.Declare(args);
  args.Switch("--plan", &with_plan, "Compiles the model and shows its steps.");
  args.Switch("--precision", &with_precision,
              "Compiles the model and shows for each node the list it is on, its element types, "
              "what decided on them, and the casts between them.");
  args.List("--shape", "NAME=1x3x224x224", &shapes.shapes,
            "With --plan: the shape of an input whose dimensions are not all known.");
  args.Text("--inputs", "SPEC.tsv", &shapes.table,
            "With --plan: shapes from a table as npurt run takes it.");
  args.Switch("--json", &as_json, "One JSON document, with the library's reports as they are.");
  bool help = false;
  NPURT_CLI_TRY(args.Parse(arguments, &help));
  if (help) {
    std::fputs(args.Help().c_str(), stdout);
    return Status();
  }
  OpenSession open;
  if (with_plan || with_precision)
    NPURT_CLI_TRY(Open(path, flags, &open));
  else
    NPURT_CLI_TRY(Load(path, flags, &open.model));
  std::vector<ValueInfo> inputs, outputs;
  NPURT_CLI_TRY(InputsOf(open.model.get(), &inputs));
  NPURT_CLI_TRY(OutputsOf(open.model.get(), &outputs));
  const Json operators = ParseJson(ModelReport(open.model.get(), NPURT_REPORT_OPERATORS));
  Json plan;
  if (with_plan) PlanFor(shapes, open.session.get());
  if (with_plan || with_precision)
    plan = ParseJson(SessionReport(open.session.get(), NPURT_REPORT_PLAN));
  if (as_json) {
    Json json;
    json["model"] = path;
    json["inputs"] = ToJson(inputs);
    json["outputs"] = ToJson(outputs);
    json["operators"] = operators.contains("operators") ? operators["operators"] : Json();
    json["memory"] = ParseJson(ModelReport(open.model.get(), NPURT_REPORT_MEMORY));
    if (with_plan) {
      json["compile"] = ParseJson(SessionReport(open.session.get(), NPURT_REPORT_COMPILE));
      json["memory"] = ParseJson(SessionReport(open.session.get(), NPURT_REPORT_MEMORY));
      json["plan"] = plan;
    }
    if (with_precision) json["precision"] = plan["precision"];
    std::printf("%s\n", DumpJson(json, 1).c_str());
    return Status();
  }
  PrintValues("inputs", inputs);
  PrintValues("outputs", outputs);
  PrintOperators(operators);
  if (with_plan) PrintPlan(plan);
  if (with_precision) PrintPrecision(plan["precision"]);
  return Status();
}

}  // namespace npurt::cli
