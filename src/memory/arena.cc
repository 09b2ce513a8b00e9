#include "memory/arena.h"

#include <utility>

namespace npurt::memory {

void ArenaLease::Release() {
  if (pool_ != nullptr) std::exchange(pool_, nullptr)->Return(std::move(arena_));
}

absl::StatusOr<ArenaLease> ArenaPool::Lease(std::size_t bytes) {
  ArenaLease lease;
  if (bytes == 0) return lease;
  {
    MutexLock lock(mutex_);
    // Room for all that may come back, so that Return, which runs in destructors, cannot fail.
    idle_.reserve(idle_.size() + leased_ + 1);
    auto best = idle_.end();
    for (auto it = idle_.begin(); it != idle_.end(); ++it) {
      if (it->bytes() >= bytes && (best == idle_.end() || it->bytes() <= best->bytes())) best = it;
    }
    ++leased_;
    if (best != idle_.end()) {
      idle_bytes_ -= best->bytes();
      lease.arena_ = std::move(*best);
      idle_.erase(best);
    }
  }
  lease.pool_ = this;
  if (lease.arena_.data() != nullptr) return lease;
  absl::StatusOr<Buffer> arena = Buffer::Allocate(allocator_, bytes, kAlignment, Kind::kArena);
  if (!arena.ok() && Trim() > 0) {
    arena = Buffer::Allocate(allocator_, bytes, kAlignment, Kind::kArena);
  }
  NPURT_RETURN_IF_ERROR(arena);
  lease.arena_ = *std::move(arena);
  return lease;
}

void ArenaPool::Return(Buffer arena) {
  for (;;) {
    Buffer evicted;  // freed after the lock
    MutexLock lock(mutex_);
    if (arena.data() == nullptr || arena.bytes() > max_idle_bytes_) {
      --leased_;
      return;
    }
    if (idle_bytes_ + arena.bytes() <= max_idle_bytes_) {
      --leased_;
      idle_bytes_ += arena.bytes();
      idle_.push_back(std::move(arena));
      return;
    }
    evicted = std::move(idle_.front());
    idle_.erase(idle_.begin());
    idle_bytes_ -= evicted.bytes();
  }
}

std::size_t ArenaPool::Trim() {
  std::vector<Buffer> freed;
  MutexLock lock(mutex_);
  // The vector goes with its capacity; leased arenas need room to return to.
  freed.reserve(leased_);
  freed.swap(idle_);
  return std::exchange(idle_bytes_, 0);
}

std::size_t ArenaPool::idle_bytes() const {
  MutexLock lock(mutex_);
  return idle_bytes_;
}

}  // namespace npurt::memory
