// npurt: runs, times, inspects and tests models with libnpurt. To add a verb: a row here, a
// declaration in verbs.h and a file.
#include <cstdio>
#include <string>
#include <vector>

#include "cli/args.h"
#include "cli/text.h"
#include "cli/verbs.h"

namespace npurt::cli {
namespace {

struct Verb {
  const char* name;
  const char* summary;
  Status (*run)(const Arguments& arguments);
};
constexpr Verb kVerbs[] = {
    {"run", "Runs a model once and shows its outputs.", RunVerb},
    {"bench", "Times a model.", BenchVerb},
    {"compare", "Shows where two configurations of a model differ.", CompareVerb},
    {"inspect", "Shows inputs, outputs, operators and the plan of a model.", InspectVerb},
    {"test", "Runs ONNX test folders.", TestVerb},
    {"options", "Lists the options of the library.", OptionsVerb},
    {"tune-precision", "Finds what must be kept out of mixed precision.", TunePrecisionVerb},
    {"version", "Shows version, build and CPU.", VersionVerb},
};

constexpr char kExitCodes[] =
    "Exit codes: 0 all went well; 1 the answer is no: tests failed, values differ, no list helps; "
    "2 the arguments are wrong; 3 a model, option or "
    "file was refused; 4 the run failed; 5 a bug of the library.";

std::string Help() {
  Table table;
  for (const Verb& verb : kVerbs) table.Add({std::string("  ") + verb.name, verb.summary});
  return "usage: npurt VERB [ARGUMENT]...\n       npurt VERB --help\n\n" + table.Format() + "\n" +
         Wrap(kExitCodes, 0, kColumns) + "\n";
}

Status Dispatch(const Arguments& arguments) {
  if (arguments.empty()) return Usage("a verb is missing", "npurt --help lists the verbs.");
  const std::string& name = arguments[0];
  if (name == "--help" || name == "-h" || name == "help") {
    std::fputs(Help().c_str(), stdout);
    return Status();
  }
  if (name == "--version") return VersionVerb({});
  std::vector<std::string> names;
  for (const Verb& verb : kVerbs) {
    if (name == verb.name) return verb.run({arguments.begin() + 1, arguments.end()});
    names.emplace_back(verb.name);
  }
  const std::string nearest = Nearest(name, names);
  return Usage(
      "unknown verb '" + name + "'" + (nearest.empty() ? "" : "; did you mean " + nearest + "?"),
      "npurt --help lists the verbs.");
}

int Main(int argc, char** argv) {
  const Status status = Dispatch(Arguments(argv + (argc > 0 ? 1 : 0), argv + argc));
  if (!status.message().empty()) std::fprintf(stderr, "npurt: %s\n", status.message().c_str());
  if (!status.remedy().empty()) std::fprintf(stderr, "%s\n", status.remedy().c_str());
  if (std::fflush(stdout) != 0 && status.ok()) {
    std::fprintf(stderr, "npurt: the output could not be written\n");
    return kExitRefused;
  }
  return status.exit_code();
}

}  // namespace
}  // namespace npurt::cli

int main(int argc, char** argv) { return npurt::cli::Main(argc, argv); }
