// npurt tune-precision: the operator types that must stay out of mixed precision, as a file for
// modify_mixlist.
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "cli/args.h"
#include "cli/comparison.h"
#include "cli/inputs.h"
#include "cli/json.h"
#include "cli/mix_list.h"
#include "cli/text.h"
#include "cli/verbs.h"

namespace npurt::cli {
namespace {

// The mode in force must be one that lists change.
Status WantMixed(const SessionFlags& flags) {
  OwnedOptions options;
  NPURT_CLI_TRY(flags.MakeOptions(&options));
  const auto value = [&](const char* name) {
    const char* text = nullptr;
    return npurt_options_get(options.get(), name, &text, nullptr) != NPURT_OK || text == nullptr
               ? std::string()
               : std::string(text);
  };
  if (!value("modify_mixlist").empty())
    return Usage("--option modify_mixlist: the file is what this command makes",
                 "Leave the option out.");
  if (value("precision_mode_v2").compare(0, 6, "mixed_") == 0 ||
      value("precision_mode").compare(0, 19, "allow_mix_precision") == 0)
    return Status();
  return Usage("the options do not choose a mixed precision, which is what lists are for",
               "Add --option precision_mode_v2=mixed_float16 or mixed_bfloat16.");
}

Json ToJson(const std::vector<ValueInfo>& outputs, const MixTrial& trial, const Limits& limits) {
  Json list = Json::array();
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Distance& d = trial.outputs[i];
    const double excess = Excess(d, limits);
    Json json;
    json["output"] = outputs[i].name;
    json["within"] = excess <= 1;
    json["excess"] = excess > 1e308 ? Json("inf") : Json(excess);
    json["max_abs"] = d.max_abs;
    json["cosine"] = d.cosine;
    json["not_finite"] = d.not_finite;
    json["differing"] = d.differing;
    list.push_back(std::move(json));
  }
  return list;
}

std::string Shown(const Distance& d) {
  if (!d.problem.empty()) return d.problem;
  if (d.not_finite > 0)
    return std::to_string(d.not_finite) + " of " + std::to_string(d.count) + " NaN or infinite";
  if (d.exact) return std::to_string(d.differing) + " of " + std::to_string(d.count) + " differ";
  return "max abs " + FormatReal(d.max_abs) + ", cosine " + FormatReal(d.cosine);
}

void PrintErrors(const std::vector<ValueInfo>& outputs, const MixSearch& search) {
  Table table({"OUTPUT", "BEFORE", "AFTER"});
  for (std::size_t i = 0; i < outputs.size(); ++i)
    table.Add(
        {outputs[i].name, Shown(search.before().outputs[i]), Shown(search.after().outputs[i])});
  std::fputs(table.Format().c_str(), stdout);
}

Status WriteText(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text << std::flush;
  return file ? Status()
              : Refused(path + ": cannot be written", "Check the folder and who may write.");
}

}  // namespace

Status TunePrecisionVerb(const Arguments& arguments) {
  std::string path, tolerance, file;
  InputFlags input_flags;
  SessionFlags flags;
  std::int64_t samples = 1;
  bool as_json = false;
  Args args("tune-precision",
            "Finds operator types that must be kept out of mixed precision so that the outputs "
            "stay within a tolerance of those in the model's own precision, and writes them as a "
            "black list for the option modify_mixlist. No type of the list can be left out. Exit "
            "code 1: no list helps.");
  args.Positional("MODEL", &path, true);
  args.Text("-o", "FILE", &file,
            "Where the list is written. Without it the list is shown and written nowhere.");
  args.Text("--tolerance", "abs=X,rel=X,cosine=X", &tolerance,
            "What the outputs may differ by, as in npurt compare; without it float16 "
            "rel=0.05,cosine=0.999, bfloat16 rel=0.2,cosine=0.99.");
  args.Integer("--samples", 1, 10000, &samples,
               "How many sets of made-up inputs are tried, with seeds that follow --seed; 1 if it "
               "is not given.");
  args.Switch("--json", &as_json, "One JSON document; npurt(1) lists its fields.");
  input_flags.Declare(args);
  flags.Declare(args);
  args.Note(
      "Each step compiles and runs the model; its progress goes to standard error. Example: npurt "
      "tune-precision model.onnx --option precision_mode_v2=mixed_float16 -o mixlist.json");
  bool help = false;
  NPURT_CLI_TRY(args.Parse(arguments, &help));
  if (help) {
    std::fputs(args.Help().c_str(), stdout);
    return Status();
  }
  Limits limits;
  if (!tolerance.empty()) NPURT_CLI_TRY(ParseLimits(tolerance, &limits));
  NPURT_CLI_TRY(WantMixed(flags));
  OwnedModel model;
  NPURT_CLI_TRY(Load(path, flags, &model));
  std::vector<ValueInfo> inputs, outputs;
  NPURT_CLI_TRY(InputsOf(model.get(), &inputs));
  NPURT_CLI_TRY(OutputsOf(model.get(), &outputs));
  std::vector<std::vector<OwnedValue>> sets(static_cast<std::size_t>(samples));
  for (std::vector<OwnedValue>& set : sets) {
    NPURT_CLI_TRY(MakeInputs(input_flags, inputs, &set));
    ++input_flags.seed;
  }

  MixSearch search(model.get(), flags, sets);
  NPURT_CLI_TRY(search.Start(tolerance.empty() ? nullptr : &limits));
  bool found = false;
  NPURT_CLI_TRY(search.Find(
      [](const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); }, &found));
  if (found && !file.empty()) {
    NPURT_CLI_TRY(WriteText(file, search.list().Json()));
    MixTrial verified;
    NPURT_CLI_TRY(search.TryFile(file, &verified));
    if (verified.excess > 1)
      return Status(kExitFailed, file + ": the list helps no more when it is tried again",
                    "The model's outputs change from run to run: fix its seeds.");
  }
  if (as_json) {
    Json json;
    json["model"] = path;
    json["found"] = found;
    json["black_list"] = search.list().black;
    json["file"] = found && !file.empty() ? Json(file) : Json();
    json["tolerance"] = Describe(search.limits());
    json["before"] = ToJson(outputs, search.before(), search.limits());
    json["after"] = ToJson(outputs, search.after(), search.limits());
    json["alone"] = Json::object();
    for (const auto& [type, excess] : search.alone())
      json["alone"][type] = excess > 1e308 ? Json("inf") : Json(excess);
    std::printf("%s\n", DumpJson(json, 1).c_str());
  } else {
    PrintErrors(outputs, search);
    std::printf("allowed is %s\n", Describe(search.limits()).c_str());
    if (found && search.list().black.empty())
      std::printf("nothing needs to be on the black list\n");
    else if (found)
      std::printf("black list: %s\n", search.list().Json().c_str());
  }
  if (found) return Status();
  Comparison comparison;
  NPURT_CLI_TRY(search.CompareValues(&comparison));
  const std::vector<const ComparedValue*> worst = comparison.Worst(1);
  return Status(kExitFailed, "no list helps: with every type black the outputs still differ",
                worst.empty()
                    ? ""
                    : "The worst value is '" + worst[0]->name + "' of " + worst[0]->op + " '" +
                          worst[0]->node + "': " + Shown(worst[0]->distance) + ".");
}

}  // namespace npurt::cli
