// AllocationCount: how many times this program has asked for memory: malloc and its kin (operator new
// ends there) and mmap. Programs with sanitizers keep those of the sanitizer, and nothing is counted.
//
// Thread safety: any thread.
#ifndef NPURT_TESTS_SUPPORT_COUNT_ALLOCATIONS_H_
#define NPURT_TESTS_SUPPORT_COUNT_ALLOCATIONS_H_

#include <cstdint>

namespace npurt::testing {

std::int64_t AllocationCount();
bool CountsAllocations();

}  // namespace npurt::testing

#endif  // NPURT_TESTS_SUPPORT_COUNT_ALLOCATIONS_H_
