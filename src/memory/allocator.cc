#include "memory/allocator.h"

#include <algorithm>
#include <cstdlib>
#include <new>

#include "absl/strings/str_cat.h"
#include "base/checked_math.h"

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace npurt::memory {
namespace {

constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;
constexpr std::size_t kHugeFromBytes = std::size_t{4} << 20;

class SystemAllocator final : public Allocator {
 public:
  void* Allocate(std::size_t bytes, std::size_t alignment, Kind) override {
    alignment = std::max(alignment, sizeof(void*));
    const bool huge = bytes >= kHugeFromBytes;
    if (huge) alignment = std::max(alignment, kHugePageBytes);
    // aligned_alloc wants a multiple of the alignment; for a huge page that would waste up to one.
    void* data = nullptr;
    if (posix_memalign(&data, alignment, bytes) != 0) return nullptr;
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    // Only the whole huge pages inside, so that the tail takes no more than it needs. A refusal
    // changes speed alone.
    if (huge) madvise(data, bytes & ~(kHugePageBytes - 1), MADV_HUGEPAGE);
#endif
    return data;
  }

  void Free(void* data, std::size_t, std::size_t, Kind) override { std::free(data); }
};

}  // namespace

Allocator& DefaultAllocator() {
  // In place and never destroyed: memory may be freed through it while the process exits.
  alignas(SystemAllocator) static std::byte storage[sizeof(SystemAllocator)];
  static Allocator* const allocator = new (storage) SystemAllocator;
  return *allocator;
}

void CountingAllocator::Counter::Add(std::size_t bytes) {
  const std::size_t now = current.fetch_add(bytes, kRelaxed) + bytes;
  std::size_t seen = peak.load(kRelaxed);
  while (seen < now && !peak.compare_exchange_weak(seen, now, kRelaxed)) {
  }
}

void* CountingAllocator::Allocate(std::size_t bytes, std::size_t alignment, Kind kind) {
  void* data = inner_.Allocate(bytes, alignment, kind);
  if (data != nullptr) {
    counters_[static_cast<std::size_t>(kind)].Add(bytes);
    counters_[0].Add(bytes);
  }
  return data;
}

void CountingAllocator::Free(void* data, std::size_t bytes, std::size_t alignment, Kind kind) {
  counters_[static_cast<std::size_t>(kind)].current.fetch_sub(bytes, kRelaxed);
  counters_[0].current.fetch_sub(bytes, kRelaxed);
  inner_.Free(data, bytes, alignment, kind);
}

void CountingAllocator::Count(Kind kind, std::size_t bytes) {
  counters_[static_cast<std::size_t>(kind)].Add(bytes);
  counters_[0].Add(bytes);
}

absl::StatusOr<Buffer> Buffer::Allocate(Allocator& allocator, std::size_t bytes,
                                        std::size_t alignment, Kind kind) {
  Buffer buffer;
  if (bytes == 0) return buffer;
  if (!IsPowerOfTwo(alignment)) {
    return absl::InvalidArgumentError(
        absl::StrCat("memory: alignment is ", alignment, ", want a power of two"));
  }
  void* data = allocator.Allocate(bytes, alignment, kind);
  if (data == nullptr) {
    static constexpr absl::string_view kNames[] = {"weights", "packed weights", "an arena",
                                                   "scratch", "values"};
    return absl::ResourceExhaustedError(absl::StrCat("memory: no ", bytes, " bytes for ",
                                                     kNames[static_cast<std::size_t>(kind) - 1]));
  }
  buffer.allocator_ = &allocator;
  buffer.data_ = static_cast<std::byte*>(data);
  buffer.bytes_ = bytes;
  buffer.alignment_ = alignment;
  buffer.kind_ = kind;
  return buffer;
}

void Buffer::Reset() {
  if (data_ != nullptr) allocator_->Free(data_, bytes_, alignment_, kind_);
  allocator_ = nullptr;
  data_ = nullptr;
  bytes_ = 0;
}

}  // namespace npurt::memory
