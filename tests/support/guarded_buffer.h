// GuardedBuffer: memory that ends right before an unreadable page, for tests of kernels that might
// read or write too far. Starts poisoned (NaN for floats), so that what was not written shows.
//
// Also SkipUnlessIsa: a test that this CPU cannot run says so, or fails if NPURT_REQUIRE_ISA names
// the set ("avx512", or "all").
//
// Thread safety: a buffer belongs to one test.
#ifndef NPURT_TESTS_SUPPORT_GUARDED_BUFFER_H_
#define NPURT_TESTS_SUPPORT_GUARDED_BUFFER_H_

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "base/cpu_isa.h"

namespace npurt {

template <typename T>
class GuardedBuffer {
 public:
  explicit GuardedBuffer(std::size_t count) : count_(count) {
    const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t bytes = (count * sizeof(T) + page - 1) / page * page;
    map_bytes_ = bytes + page;
    map_ = mmap(nullptr, map_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map_ == MAP_FAILED || mprotect(static_cast<char*>(map_) + bytes, page, PROT_NONE) != 0) {
      ADD_FAILURE() << "no memory for a guarded buffer of " << count << " elements";
      std::exit(1);
    }
    data_ = reinterpret_cast<T*>(static_cast<char*>(map_) + bytes - count * sizeof(T));
    std::memset(static_cast<void*>(data_), 0xff, count * sizeof(T));
  }
  ~GuardedBuffer() { munmap(map_, map_bytes_); }
  GuardedBuffer(const GuardedBuffer&) = delete;
  GuardedBuffer& operator=(const GuardedBuffer&) = delete;

  T* data() { return data_; }
  const T* data() const { return data_; }
  std::size_t size() const { return count_; }
  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }
  T* begin() { return data_; }
  T* end() { return data_ + count_; }

 private:
  std::size_t count_;
  std::size_t map_bytes_;
  void* map_;
  T* data_;
};

// True if the test must be skipped because the CPU lacks `needs`; says so. A failure instead if
// NPURT_REQUIRE_ISA asks for it.
inline bool SkipUnlessIsa(IsaSet needs, const std::string& what) {
  if (HasAll(DetectedIsa(), needs)) return false;
  const char* required = std::getenv("NPURT_REQUIRE_ISA");
  if (required != nullptr) {
    const std::optional<IsaSet> set = std::string(required) == "all" ? needs : IsaNamed(required);
    EXPECT_FALSE(set.has_value() && (*set & needs) != 0)
        << what << " needs " << IsaText(needs) << ", which NPURT_REQUIRE_ISA=" << required
        << " demands, but this CPU has " << IsaText(DetectedIsa());
  }
  return true;
}

}  // namespace npurt

// At the start of a test body.
#define NPURT_SKIP_UNLESS_ISA(needs, what) \
  if (::npurt::SkipUnlessIsa(needs, what)) \
  GTEST_SKIP() << "this CPU cannot run " << (what) << ": it lacks " << ::npurt::IsaText(needs)

#endif  // NPURT_TESTS_SUPPORT_GUARDED_BUFFER_H_
