// npurt version: the library that was loaded, how it was built, and the CPU it found.
#include <cstdio>

#include "cli/args.h"
#include "cli/json.h"
#include "cli/session.h"
#include "cli/text.h"
#include "cli/verbs.h"

namespace npurt::cli {

Status VersionVerb(const Arguments& arguments) {
  bool as_json = false;
  Args args("version", "Shows the version of the library, how it was built, and the CPU.");
  args.Switch("--json", &as_json, "One JSON document.");
  bool help = false;
  NPURT_CLI_TRY(args.Parse(arguments, &help));
  if (help) {
    std::fputs(args.Help().c_str(), stdout);
    return Status();
  }
  Json json;
  json["version"] = npurt_version();
  json["abi"] = npurt_abi();
  json["built_for_abi"] = NPURT_ABI_MAJOR;
  json["build"] = ParseJson(LibraryReport(NPURT_REPORT_BUILD));
  json["cpu"] = ParseJson(LibraryReport(NPURT_REPORT_CPU));
  if (as_json) {
    std::printf("%s\n", DumpJson(json, 1).c_str());
    return Status();
  }
  std::printf("npurt %s, ABI %u\n", npurt_version(), npurt_abi());
  Table table;
  for (const char* part : {"build", "cpu"})
    for (const auto& [key, value] : json[part].items()) table.Add({part, key, ReadableJson(value)});
  std::fputs(table.Format().c_str(), stdout);
  return Status();
}

}  // namespace npurt::cli
