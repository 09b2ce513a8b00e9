// VerifyPlan: proves that a memory plan keeps apart what is alive together.
//
// It shares no code with the planner: it derives the order of steps from streams and events with
// forward clocks, and the lives of buffers from that. The idea: "dead before the other is born" is
// transitive. So it is enough to visit the buffers in an order of birth that respects the streams,
// keep for each byte range its last owner, and ask at every takeover whether that owner is dead.
//
// Thread safety: a pure function. Cost: near-linear; it runs at every bind that makes a plan.
#ifndef NPURT_MEMORY_VERIFIER_H_
#define NPURT_MEMORY_VERIFIER_H_

#include <cstddef>

#include "absl/types/span.h"
#include "memory/planner.h"

namespace npurt::memory {

// Internal, naming both buffers, if
//  - two buffers that may be alive together overlap and are neither views of one another nor in
//  place;
//  - a buffer lies outside the arena or off its alignment, or a view off its parent;
//  - a step uses a buffer without being ordered after the step that defines it;
//  - the schedule is not one.
absl::Status VerifyPlan(absl::Span<const BufferRequest> buffers, const Schedule& schedule,
                        std::size_t alignment, const MemoryPlan& plan);

}  // namespace npurt::memory

#endif  // NPURT_MEMORY_VERIFIER_H_
