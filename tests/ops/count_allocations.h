// AllocationCount: how many times this program has called operator new.
//
// Thread safety: any thread.
#ifndef NPURT_TESTS_OPS_COUNT_ALLOCATIONS_H_
#define NPURT_TESTS_OPS_COUNT_ALLOCATIONS_H_

#include <cstdint>

namespace npurt::ops {

std::int64_t AllocationCount();

}  // namespace npurt::ops

#endif  // NPURT_TESTS_OPS_COUNT_ALLOCATIONS_H_
