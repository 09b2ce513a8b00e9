// Takes the place of the C library's functions in the test program, and calls what they call.
#include "support/count_allocations.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define NPURT_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
#define NPURT_SANITIZED 1
#endif
#endif

#if !defined(NPURT_SANITIZED) && defined(__GLIBC__)
#define NPURT_COUNTS 1
#endif

namespace {
std::atomic<std::int64_t> allocations{0};
}  // namespace

#ifdef NPURT_COUNTS
extern "C" {
void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* p, std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);

void* malloc(std::size_t bytes) {
  ++allocations;
  return __libc_malloc(bytes);
}
void* calloc(std::size_t count, std::size_t bytes) {
  ++allocations;
  return __libc_calloc(count, bytes);
}
void* realloc(void* p, std::size_t bytes) {
  ++allocations;
  return __libc_realloc(p, bytes);
}
void* memalign(std::size_t alignment, std::size_t bytes) {
  ++allocations;
  return __libc_memalign(alignment, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  return memalign(alignment, bytes);
}
int posix_memalign(void** p, std::size_t alignment, std::size_t bytes) {
  *p = memalign(alignment, bytes);
  return *p == nullptr ? ENOMEM : 0;
}
void* mmap(void* address, std::size_t bytes, int protection, int flags, int file, off_t offset) {
  ++allocations;
  return reinterpret_cast<void*>(
      syscall(SYS_mmap, address, bytes, protection, flags, file, offset));
}
}  // extern "C"
#endif

namespace npurt::testing {

std::int64_t AllocationCount() { return allocations; }

bool CountsAllocations() {
#ifdef NPURT_COUNTS
  return true;
#else
  return false;
#endif
}

}  // namespace npurt::testing
