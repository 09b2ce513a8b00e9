// The verbs of the command; the table is in main.cc. Each parses its arguments, does its work and
// prints to stdout; what it returns is printed to stderr by main.
#ifndef NPURT_CLI_VERBS_H_
#define NPURT_CLI_VERBS_H_

#include <string>
#include <vector>

#include "cli/status.h"

namespace npurt::cli {

using Arguments = std::vector<std::string>;  // after the verb

Status RunVerb(const Arguments& arguments);
Status BenchVerb(const Arguments& arguments);
Status CompareVerb(const Arguments& arguments);
Status InspectVerb(const Arguments& arguments);
Status TestVerb(const Arguments& arguments);
Status OptionsVerb(const Arguments& arguments);
Status TunePrecisionVerb(const Arguments& arguments);
Status VersionVerb(const Arguments& arguments);

}  // namespace npurt::cli

#endif  // NPURT_CLI_VERBS_H_
