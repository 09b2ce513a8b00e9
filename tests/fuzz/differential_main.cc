// Looks for graphs that the cpu device computes differently from the reference device.
//
//   differential [--seconds N] [--seed S] [--count N] [--nodes N] [--only] [--print] [--keep-going]
//                [--set OPTION=VALUE]...
//
// Prints the smallest graph it can make of a finding, and ends with 1. `--only` looks at seed S
// alone, `--print` shows every graph, `--set` overrides an option in all sessions of the cpu.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "fuzz/differential.h"

int main(int argc, char** argv) {
  using namespace npurt::fuzz;  // NOLINT: a program's one function
  double seconds = 60;
  unsigned long long seed = 1, count = ~0ULL;
  int nodes = 24, findings = 0;
  Settings fixed;
  bool keep_going = false, print = false;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    const bool more = i + 1 < argc;
    if (flag == "--seconds" && more) {
      seconds = std::atof(argv[++i]);
    } else if (flag == "--seed" && more) {
      seed = std::strtoull(argv[++i], nullptr, 10);
    } else if (flag == "--count" && more) {
      count = std::strtoull(argv[++i], nullptr, 10);
    } else if (flag == "--nodes" && more) {
      nodes = std::max(1, std::atoi(argv[++i]));
    } else if (flag == "--only") {
      count = 1;
    } else if (flag == "--print") {
      print = true;
    } else if (flag == "--set" && more && std::strchr(argv[i + 1], '=') != nullptr) {
      const std::string text = argv[++i];
      fixed.emplace_back(text.substr(0, text.find('=')), text.substr(text.find('=') + 1));
    } else if (flag == "--keep-going") {
      keep_going = true;
    } else {
      std::fprintf(stderr, "%s: not a flag of this program\n", argv[i]);
      return 2;
    }
  }
  const auto start = std::chrono::steady_clock::now();
  const auto late = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() >
           seconds;
  };
  unsigned long long done = 0, steps = 0, furthest_seed = 0;
  Counts counts;
  for (; done < count && !late(); ++done) {
    Choices choices(seed + done);
    const Case made = MakeCase(choices, nodes);
    steps += static_cast<unsigned long long>(made.graph->node_count());
    if (print) std::printf("%s\n", CaseText(made).c_str());
    const double furthest = counts.furthest;
    const Finding finding = Compare(made, choices, 3, fixed, &counts);
    if (counts.furthest > furthest) furthest_seed = seed + done;
    if (finding.what.empty()) continue;
    ++findings;
    std::printf("FINDING seed %llu, %s\n%s\n", seed + done, SettingsText(finding.settings).c_str(),
                finding.what.c_str());
    const Case small = Reduce(made, finding.settings);
    std::printf("%s\n", CaseText(small.graph == nullptr ? made : small).c_str());
    std::fflush(stdout);
    if (!keep_going) break;
  }
  std::printf(
      "%llu graphs, %llu nodes, %d findings; outputs: %lld exact, %lld within %g of the largest "
      "element, %lld wider; the worst used %.2f of its bound (seed %llu)\n",
      done, steps, findings, counts.exact, counts.tight, kTight, counts.loose, counts.furthest,
      furthest_seed);
  return findings == 0 ? 0 : 1;
}
