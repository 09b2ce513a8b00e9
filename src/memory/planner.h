// PlanMemory: places buffers in one arena so that no two that are alive together overlap.
//
// A buffer lives from the step that defines it to the last step that uses it or a view of it.
// "Last" is a partial order when streams run side by side: two buffers may share bytes only if one
// is dead before the other is born on every stream (see StepOrder).
//
// Thread safety: pure functions. Cost: O(n log n) for n buffers with few conflicts each.
#ifndef NPURT_MEMORY_PLANNER_H_
#define NPURT_MEMORY_PLANNER_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/status.h"
#include "memory/step_order.h"

namespace npurt::memory {

struct BufferRequest {
  std::size_t bytes = 0;
  int defined_by = kBeforeFirstStep;  // a step, or kBeforeFirstStep
  std::vector<int> used_by = {};      // steps in any order; kAfterLastStep keeps it to the end
  int alias_of = -1;                  // a view into an earlier buffer of the list ...
  std::size_t alias_offset = 0;       // ... that many bytes from its start
  // The step that defines this buffer can write over that one. Granted if nothing needs the other
  // after (or beside) this step and the two are of like size.
  int in_place_of = -1;
  bool pinned = false;          // keeps its bytes from before the first step to after the last
  absl::string_view name = {};  // for messages; must live as long as the request
};

struct MemoryPlan {
  std::vector<std::size_t> offsets = {};  // per request; 0 for empty buffers
  std::size_t arena_bytes = 0;            // all requests end at or before this
  std::size_t lower_bound_bytes = 0;      // alive together at some step: no plan needs less
};

// Biggest buffers first, each at the lowest offset free among its conflicts; if that misses the
// lower bound, a few other orders, of which the best wins. Not optimal (the problem is NP-hard);
// deterministic. Offsets are multiples of `alignment`, a power of two; only a view may start
// between. Source: Pisarchyk and Lee, "Efficient memory management for deep neural net inference",
// 2020.
//
// InvalidArgument for indices out of range, views that do not fit their parent or precede it in the
// list; ResourceExhausted if the sizes do not fit an address space.
absl::StatusOr<MemoryPlan> PlanMemory(absl::Span<const BufferRequest> buffers,
                                      const StepOrder& order, std::size_t alignment);

// "'name'" or, without one, "#index".
std::string BufferName(absl::Span<const BufferRequest> buffers, int index);

}  // namespace npurt::memory

#endif  // NPURT_MEMORY_PLANNER_H_
