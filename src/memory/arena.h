// ArenaPool: the arenas of a session. Runs lease one each and give it back; idle ones wait for the
// next.
//
// A lease gets the smallest idle arena that is big enough. Arenas that come back stay for the next
// lease up to a bound of idle bytes; beyond it those idle longest are freed. When memory is short,
// a lease first frees all idle arenas and tries again.
//
// Thread safety: all calls from any thread; the allocator is called without the lock. The pool
// outlives its leases, the allocator outlives the pool.
#ifndef NPURT_MEMORY_ARENA_H_
#define NPURT_MEMORY_ARENA_H_

#include <cstddef>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "memory/allocator.h"

namespace npurt::memory {

class ArenaPool;

// An arena until the end of the scope. An empty lease (zero bytes) has data() == nullptr.
class ArenaLease {
 public:
  ArenaLease() = default;
  ~ArenaLease() { Release(); }
  ArenaLease(ArenaLease&& other) noexcept { Swap(other); }
  ArenaLease& operator=(ArenaLease&& other) noexcept {
    ArenaLease(std::move(other)).Swap(*this);
    return *this;
  }

  std::byte* data() const { return arena_.data(); }
  std::size_t bytes() const { return arena_.bytes(); }

  // Back to the pool.
  void Release();

 private:
  friend class ArenaPool;
  void Swap(ArenaLease& other) {
    std::swap(pool_, other.pool_);
    std::swap(arena_, other.arena_);
  }

  ArenaPool* pool_ = nullptr;
  Buffer arena_;
};

class ArenaPool {
 public:
  // Arenas start at multiples of kAlignment.
  ArenaPool(Allocator& allocator, std::size_t max_idle_bytes)
      : allocator_(allocator), max_idle_bytes_(max_idle_bytes) {}
  ArenaPool(const ArenaPool&) = delete;
  ArenaPool& operator=(const ArenaPool&) = delete;

  // An arena of at least `bytes`. ResourceExhausted without memory.
  absl::StatusOr<ArenaLease> Lease(std::size_t bytes) NPURT_EXCLUDES_LOCK(mutex_);

  // Frees all idle arenas; returns their bytes.
  std::size_t Trim() NPURT_EXCLUDES_LOCK(mutex_);

  std::size_t idle_bytes() const NPURT_EXCLUDES_LOCK(mutex_);

 private:
  friend class ArenaLease;
  void Return(Buffer arena) NPURT_EXCLUDES_LOCK(mutex_);

  Allocator& allocator_;
  const std::size_t max_idle_bytes_;
  mutable Mutex mutex_;
  std::vector<Buffer> idle_ NPURT_GUARDED_BY(mutex_);  // the longest idle first
  std::size_t idle_bytes_ NPURT_GUARDED_BY(mutex_) = 0;
  std::size_t leased_ NPURT_GUARDED_BY(mutex_) = 0;
};

}  // namespace npurt::memory

#endif  // NPURT_MEMORY_ARENA_H_
