// npurt compare: one model in two configurations; which values differ, by how much, and where it
// begins.
#include <cstdio>
#include <fstream>

#include "cli/args.h"
#include "cli/compare_html.h"
#include "cli/comparison.h"
#include "cli/inputs.h"
#include "cli/json.h"
#include "cli/session.h"
#include "cli/text.h"
#include "cli/verbs.h"

namespace npurt::cli {
namespace {

constexpr std::size_t kWorst = 10;
constexpr std::size_t kTableColumns = 220;
constexpr std::size_t kNameColumns = 44;

std::string Short(double number) {
  char buffer[40];
  std::snprintf(buffer, sizeof buffer, "%.3g", number);
  return buffer;
}

// "2/0": A's and B's; "" for none.
std::string Sides(std::size_t a, std::size_t b) {
  return a + b == 0 ? "" : std::to_string(a) + "/" + std::to_string(b);
}

std::string Types(const ComparedValue& value) {
  return value.type_a == value.type_b ? value.type_a : value.type_a + " | " + value.type_b;
}

std::string TableOf(const std::vector<const ComparedValue*>& values) {
  Table table({"", "VALUE", "OPERATOR", "TYPE", "MAX ABS", "OF RANGE", "MAX REL", "COSINE", "ULP",
               "NAN", "INF", "OVERFLOW"});
  for (const ComparedValue* value : values) {
    const Distance& d = value->distance;
    const std::string mark = value->excess > 1 ? "!" : "";
    const std::string name = Shorten(value->name, kNameColumns);
    if (!d.problem.empty()) {
      table.Add({mark, name, value->op, d.problem, "", "", "", "", "", "", "", ""});
      continue;
    }
    table.Add({mark, name, value->op, Types(*value), Short(d.max_abs), Short(d.part_of_range()),
               Short(d.max_rel), FormatReal(d.cosine), Short(d.ulp), Sides(d.a.nan, d.b.nan),
               Sides(d.a.inf, d.b.inf), Sides(d.a.overflow, d.b.overflow)});
  }
  return table.Format(kTableColumns);
}

// Infinity is no JSON number.
Json Finite(double number) { return number > 1e308 ? Json("inf") : Json(number); }

Json ToJson(const ComparedValue& value) {
  const Distance& d = value.distance;
  Json json;
  json["name"] = value.name;
  json["node"] = value.node;
  json["op"] = value.op;
  json["output"] = value.is_output;
  json["type_a"] = value.type_a;
  json["type_b"] = value.type_b;
  json["within"] = value.excess <= 1;
  json["excess"] = Finite(value.excess);
  if (!d.problem.empty()) {
    json["problem"] = d.problem;
    return json;
  }
  json["count"] = d.count;
  json["differing"] = d.differing;
  json["range"] = d.range;
  json["max_abs"] = d.max_abs;
  json["part_of_range"] = Finite(d.part_of_range());
  json["max_rel"] = d.max_rel;
  json["cosine"] = d.cosine;
  json["ulp"] = d.ulp;
  const auto side = [](const Distance::Side& s) {
    return Json{{"nan", s.nan}, {"inf", s.inf}, {"overflow", s.overflow}};
  };
  json["a"] = side(d.a);
  json["b"] = side(d.b);
  if (value.limits.numbers) {
    json["tolerance"]["abs"] = value.limits.absolute;
    json["tolerance"]["rel"] = value.limits.relative;
  }
  if (value.limits.cosine > -1) json["tolerance"]["cosine"] = value.limits.cosine;
  return json;
}

Json ToJson(const ComparisonTitle& title, const Comparison& comparison) {
  Json json;
  json["model"] = title.model;
  json["a"] = title.a;
  json["b"] = title.b;
  json["within"] = comparison.within();
  json["graph_values"] = comparison.graph_values;
  json["hidden_in_a"] = comparison.hidden_a;
  json["hidden_in_b"] = comparison.hidden_b;
  json["runs"] = comparison.runs;
  const ComparedValue* const first = comparison.first_beyond();
  json["first_beyond"] = first == nullptr ? Json() : Json(first->name);
  json["worst"] = Json::array();
  for (const ComparedValue* value : comparison.Worst(kWorst)) json["worst"].push_back(value->name);
  json["values"] = Json::array();
  for (const ComparedValue& value : comparison.values) json["values"].push_back(ToJson(value));
  return json;
}

void Print(const Comparison& comparison) {
  std::vector<const ComparedValue*> all;
  for (const ComparedValue& value : comparison.values) all.push_back(&value);
  std::fputs(TableOf(all).c_str(), stdout);
  std::printf("\n%zu values compared; the graph has %zu, of which A does not show %zu and B %zu\n",
              comparison.values.size(), comparison.graph_values, comparison.hidden_a,
              comparison.hidden_b);
  if (comparison.hidden_a + comparison.hidden_b > 0)
    std::printf("(fused or folded; --every-value shows more)\n");
  const std::vector<const ComparedValue*> worst = comparison.Worst(kWorst);
  if (!worst.empty()) {
    std::printf("\nthe worst, by the error as a part of what is allowed\n");
    std::fputs(TableOf(worst).c_str(), stdout);
  }
  const ComparedValue* const first = comparison.first_beyond();
  if (first == nullptr) {
    std::printf("\nall within the tolerance\n");
    return;
  }
  std::string text = "first beyond the tolerance: value '" + first->name + "'";
  if (!first->op.empty()) text += " of " + first->op + " '" + first->node + "'";
  const Distance& d = first->distance;
  if (!d.problem.empty())
    text += ": " + d.problem;
  else if (d.not_finite > 0)
    text += ": " + std::to_string(d.not_finite) + " numbers are NaN or infinite on one side only";
  else if (d.exact)
    text += ": " + std::to_string(d.differing) + " of " + std::to_string(d.count) + " differ";
  else
    text += ": max abs " + Short(d.max_abs) + ", " + Short(d.part_of_range()) +
            " of its range, cosine " + FormatReal(d.cosine) + "; allowed is " +
            Describe(first->limits);
  std::printf("\n%s\n", Wrap(text, 0, kColumns).c_str());
}

// "K=V,K=V": a part without '=' goes on with the value before, as lists have commas too.
Status SplitOptions(const char* flag, const std::vector<std::string>& texts, SessionFlags* flags) {
  for (const std::string& text : texts) {
    bool first = true;
    for (const std::string& part : Split(text, ',')) {
      if (part.find('=', 1) != std::string::npos)
        flags->options.push_back(part);
      else if (!first)
        flags->options.back() += "," + part;
      else
        return Usage(std::string(flag) + ": got '" + part + "', want KEY=VALUE,KEY=VALUE");
      first = false;
    }
  }
  return Status();
}

std::string OptionsText(const SessionFlags& flags) {
  std::string text;
  if (!flags.profile.empty()) text = "profile " + flags.profile;
  if (!flags.device.empty()) text += (text.empty() ? "" : " ") + ("device=" + flags.device);
  for (const std::string& option : flags.options) text += (text.empty() ? "" : " ") + option;
  return text.empty() ? "(the defaults)" : text;
}

}  // namespace

Status CompareVerb(const Arguments& arguments) {
  std::string path, tolerance, html;
  std::vector<std::string> a_texts, b_texts;
  InputFlags input_flags;
  SessionFlags common;
  std::int64_t memory_mb = 1024;
  bool every_value = false, as_json = false;
  Args args("compare",
            "Runs a model in two configurations on the same inputs, A and B, and shows in "
            "topological order how far each value that exists in both lies apart, the first one "
            "beyond the tolerance and the worst ten. A is taken as right. Exit code 1: something "
            "is beyond the tolerance.");
  args.Positional("MODEL", &path, true);
  args.List("--a", "KEY=VALUE,...", &a_texts, "Options of A; without it A has those of --option.");
  args.List("--b", "KEY=VALUE,...", &b_texts, "Options of B.");
  args.Text("--tolerance", "abs=X,rel=X,cosine=X", &tolerance,
            "What is allowed: |a - b| up to abs + rel * the largest |a| of the value, and this "
            "cosine at least; what is not named is not checked. Without it: by the coarsest "
            "floating type on the way to the value, float32 abs=1e-6,rel=1e-3,cosine=0.9999, "
            "float16 rel=0.05,cosine=0.999, bfloat16 rel=0.2,cosine=0.99. Values that are not "
            "floating must be equal, NaN and infinity stand where they stand in A.");
  args.Switch("--every-value", &every_value,
              "Sets fusion=false in both, so that values exist which fusion would swallow. Without "
              "it fusion stays as the options say.");
  args.Integer("--memory-mb", 1, 1 << 30, &memory_mb,
               "How much of A's values is kept while B runs; what does not fit is compared in "
               "further pairs of runs. 1024 if it is not given.");
  args.Switch("--json", &as_json, "One JSON document; npurt(1) lists its fields.");
  args.Text("--html", "FILE", &html, "Writes a page with a picture of the error along the graph.");
  input_flags.Declare(args);
  common.Declare(args);
  args.Note("Example: npurt compare model.onnx --a device=reference --b max_isa=avx2");
  bool help = false;
  NPURT_CLI_TRY(args.Parse(arguments, &help));
  if (help) {
    std::fputs(args.Help().c_str(), stdout);
    return Status();
  }
  if (a_texts.empty() && b_texts.empty())
    return Usage("--a and --b are missing: both configurations would be the same",
                 "npurt compare MODEL --a device=reference compares with plain loops.");
  ComparisonSettings settings;
  settings.keep_bytes = static_cast<std::size_t>(memory_mb) << 20;
  Limits limits;
  if (!tolerance.empty()) {
    NPURT_CLI_TRY(ParseLimits(tolerance, &limits));
    settings.limits = &limits;
  }
  if (every_value) common.options.push_back("fusion=false");
  SessionFlags flags_a = common, flags_b = common;
  NPURT_CLI_TRY(SplitOptions("--a", a_texts, &flags_a));
  NPURT_CLI_TRY(SplitOptions("--b", b_texts, &flags_b));
  ComparisonTitle title = {path, OptionsText(flags_a), OptionsText(flags_b)};

  OpenSession a;
  OwnedSession b;
  NPURT_CLI_TRY(Open(path, flags_a, &a));
  NPURT_CLI_TRY(Compile(a.model.get(), flags_b, path, &b));
  std::vector<ValueInfo> infos;
  NPURT_CLI_TRY(InputsOf(a.session.get(), &infos));
  std::vector<OwnedValue> inputs;
  NPURT_CLI_TRY(MakeInputs(input_flags, infos, &inputs));
  Comparison comparison;
  NPURT_CLI_TRY(Compare(a.model.get(), a.session.get(), b.get(), inputs, settings, &comparison));
  if (as_json)
    std::printf("%s\n", DumpJson(ToJson(title, comparison), 1).c_str());
  else
    Print(comparison);
  if (!html.empty()) {
    std::ofstream file(html, std::ios::binary);
    file << ComparisonPage(title, comparison) << std::flush;
    if (!file) return Refused(html + ": cannot be written", "Check the folder and who may write.");
  }
  return comparison.within() ? Status() : Status(kExitFailed, "");
}

}  // namespace npurt::cli
