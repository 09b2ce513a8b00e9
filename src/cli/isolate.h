// RunIsolated: does numbered jobs in child processes, so that one that crashes or hangs is an
// answer like any other.
//
// Each job is a fork of the calling process: REQUIRES that it has only one thread, and that the
// library has no session in it yet. Several children may run at a time.
#ifndef NPURT_CLI_ISOLATE_H_
#define NPURT_CLI_ISOLATE_H_

#include <cstddef>
#include <functional>
#include <string>

namespace npurt::cli {

struct IsolatedResult {
  std::string answer;   // what the job returned
  std::string problem;  // "" or why there is no answer: "crashed (signal 11, ...)"
};

void RunIsolated(std::size_t count, std::size_t at_a_time, double timeout_seconds,
                 const std::function<std::string(std::size_t)>& job,
                 const std::function<void(std::size_t, const IsolatedResult&)>& done);

}  // namespace npurt::cli

#endif  // NPURT_CLI_ISOLATE_H_
