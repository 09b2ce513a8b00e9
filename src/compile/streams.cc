#include "compile/streams.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace npurt::compile {
namespace {

using exec::kNone;
using exec::Program;
using exec::Step;

// The steps that must be over before each step starts: producers of operands, and control edges.
std::vector<std::vector<int>> Dependencies(const Program& program,
                                           const std::vector<std::pair<int, int>>& control) {
  std::vector<int> producer(program.values.size(), kNone);
  std::vector<std::vector<int>> before(program.steps.size());
  for (std::size_t s = 0; s < program.steps.size(); ++s) {
    for (int v : program.steps[s].inputs)
      if (v != kNone && producer[v] != kNone) before[s].push_back(producer[v]);
    for (int v : program.steps[s].outputs)
      if (v != kNone) producer[v] = static_cast<int>(s);
  }
  for (const auto& [first, then] : control) before[then].push_back(first);
  return before;
}

}  // namespace

void AssignStreams(int per_engine, const std::vector<std::pair<int, int>>& control,
                   Program* program) {
  std::vector<Step>& steps = program->steps;
  if (per_engine == 0) {
    program->stream_count = 1;
    program->stream_names = {"main"};
    return;
  }
  const std::vector<std::vector<int>> before = Dependencies(*program, control);
  std::vector<std::string> engines;
  for (const Step& step : steps)
    if (std::find(engines.begin(), engines.end(), step.engine) == engines.end())
      engines.push_back(step.engine);
  program->stream_count = std::max(1, static_cast<int>(engines.size()) * per_engine);
  program->stream_names.clear();
  for (const std::string& engine : engines)
    for (int i = 0; i < per_engine; ++i)
      program->stream_names.push_back(absl::StrCat(engine, ":", i));
  if (engines.empty()) program->stream_names.push_back("main");

  const std::size_t streams = static_cast<std::size_t>(program->stream_count);
  std::vector<int> length(streams, 0), last(streams, kNone), position(steps.size());
  // known[s][t]: how many steps of stream t are over when step s starts.
  std::vector<std::vector<int>> known(steps.size(), std::vector<int>(streams, 0));
  std::vector<std::vector<int>> seen(streams, std::vector<int>(streams, 0));
  for (std::size_t s = 0; s < steps.size(); ++s) {
    Step& step = steps[s];
    const int engine = static_cast<int>(
        std::find(engines.begin(), engines.end(), step.engine) - engines.begin());
    const int first = engine * per_engine;
    int chosen = kNone;
    for (int d : before[s]) {
      const int stream = steps[d].stream;
      if (stream >= first && stream < first + per_engine && last[stream] == d) chosen = stream;
    }
    if (chosen == kNone)
      chosen = static_cast<int>(
          std::min_element(length.begin() + first, length.begin() + first + per_engine) -
          length.begin());
    step.stream = chosen;
    std::vector<int>& clock = seen[chosen];
    // The latest first: waiting for it may make the others superfluous.
    std::vector<int> sorted = before[s];
    std::sort(sorted.rbegin(), sorted.rend());
    for (int d : sorted) {
      const int stream = steps[d].stream;
      if (stream == chosen || clock[stream] > position[d]) continue;
      if (steps[d].signal == kNone) steps[d].signal = program->event_count++;
      step.wait.push_back(steps[d].signal);
      for (std::size_t t = 0; t < streams; ++t) clock[t] = std::max(clock[t], known[d][t]);
      clock[stream] = std::max(clock[stream], position[d] + 1);
    }
    known[s] = clock;
    position[s] = length[chosen]++;
    clock[chosen] = length[chosen];
    last[chosen] = static_cast<int>(s);
  }
}

}  // namespace npurt::compile
