// A comparison as one page of HTML that needs nothing else: a picture of the error along the graph
// and tables.
#ifndef NPURT_CLI_COMPARE_HTML_H_
#define NPURT_CLI_COMPARE_HTML_H_

#include <string>

#include "cli/comparison.h"

namespace npurt::cli {

struct ComparisonTitle {
  std::string model;
  std::string a, b;  // the configurations, as text
};

std::string ComparisonPage(const ComparisonTitle& title, const Comparison& comparison);

}  // namespace npurt::cli

#endif  // NPURT_CLI_COMPARE_HTML_H_
