// Random programs for the tests of the planner: steps on streams, events, buffers with views and
// in-place wishes. Every use is ordered after the definition, as the compiler would make it.
#ifndef NPURT_TESTS_MEMORY_RANDOM_PROGRAM_H_
#define NPURT_TESTS_MEMORY_RANDOM_PROGRAM_H_

#include <algorithm>
#include <random>
#include <vector>

#include "memory/planner.h"

namespace npurt::memory {

struct RandomProgram {
  Schedule schedule;
  std::vector<BufferRequest> buffers;
};

// What happens before what, by plain closure: before[a][b].
inline std::vector<std::vector<bool>> Closure(const Schedule& schedule) {
  const std::size_t n = static_cast<std::size_t>(schedule.step_count);
  std::vector<std::vector<bool>> before(n, std::vector<bool>(n, false));
  if (schedule.streams.empty()) {
    for (std::size_t a = 0; a < n; ++a) {
      for (std::size_t b = a + 1; b < n; ++b) before[a][b] = true;
    }
    return before;
  }
  for (const std::vector<int>& stream : schedule.streams) {
    for (std::size_t i = 1; i < stream.size(); ++i) {
      before[static_cast<std::size_t>(stream[i - 1])][static_cast<std::size_t>(stream[i])] = true;
    }
  }
  for (const EventEdge& e : schedule.events) {
    before[static_cast<std::size_t>(e.signal_step)][static_cast<std::size_t>(e.wait_step)] = true;
  }
  for (std::size_t k = 0; k < n; ++k) {
    for (std::size_t a = 0; a < n; ++a) {
      if (!before[a][k]) continue;
      for (std::size_t b = 0; b < n; ++b) {
        if (before[k][b]) before[a][b] = true;
      }
    }
  }
  return before;
}

inline RandomProgram MakeRandomProgram(unsigned seed, int steps, int streams) {
  std::mt19937 random(seed);
  const auto below = [&random](int n) {
    return static_cast<int>(random() % static_cast<unsigned>(n));
  };
  RandomProgram program;
  program.schedule.step_count = steps;
  if (streams > 1) {
    program.schedule.streams.resize(static_cast<std::size_t>(streams));
    for (int step = 0; step < steps; ++step) {
      program.schedule.streams[static_cast<std::size_t>(below(streams))].push_back(step);
    }
    for (int e = below(steps + 1); e > 0 && steps > 1; --e) {
      const int a = below(steps - 1);
      program.schedule.events.push_back({a, a + 1 + below(std::min(steps - a - 1, 8))});
    }
  }
  const auto before = Closure(program.schedule);
  const int count = below(3 * steps + 1) + 1;
  for (int i = 0; i < count; ++i) {
    BufferRequest b;
    b.bytes = below(8) == 0 ? 0 : static_cast<std::size_t>(1 + below(5000));
    b.defined_by = steps == 0 || below(12) == 0 ? kBeforeFirstStep : below(steps);
    b.pinned = below(20) == 0;
    if (below(30) == 0) b.used_by.push_back(kAfterLastStep);
    if (i > 0 && below(4) == 0) {
      const int parent = below(i);
      const BufferRequest& p = program.buffers[static_cast<std::size_t>(parent)];
      if (p.defined_by < 0 ||
          (b.defined_by >= 0 &&
           (p.defined_by == b.defined_by || before[static_cast<std::size_t>(p.defined_by)]
                                                  [static_cast<std::size_t>(b.defined_by)]))) {
        b.alias_of = parent;
        b.bytes = std::min(b.bytes, p.bytes);
        b.alias_offset =
            p.bytes > b.bytes
                ? static_cast<std::size_t>(below(static_cast<int>(p.bytes - b.bytes) + 1))
                : 0;
      }
    }
    for (int u = below(4); u > 0 && steps > 0; --u) {
      // Near uses are likelier, as in real programs.
      const int step = b.defined_by < 0
                           ? below(steps)
                           : std::min(steps - 1, b.defined_by + below(below(5) == 0 ? steps : 6));
      // A view's user waits for the view's definition and so for all its parents'.
      if (b.defined_by < 0 || step == b.defined_by ||
          before[static_cast<std::size_t>(b.defined_by)][static_cast<std::size_t>(step)]) {
        b.used_by.push_back(step);
      }
    }
    if (i > 0 && below(3) == 0 && b.alias_of < 0 && b.defined_by >= 0) {
      b.in_place_of = below(i);
      BufferRequest& other = program.buffers[static_cast<std::size_t>(b.in_place_of)];
      if (below(2) == 0) b.bytes = other.bytes;
      // Mostly a step writes over what it reads.
      if (other.defined_by < 0 || before[static_cast<std::size_t>(other.defined_by)]
                                        [static_cast<std::size_t>(b.defined_by)]) {
        other.used_by.push_back(b.defined_by);
      }
    }
    program.buffers.push_back(std::move(b));
  }
  return program;
}

}  // namespace npurt::memory

#endif  // NPURT_TESTS_MEMORY_RANDOM_PROGRAM_H_
