#include "memory/allocator.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "memory/arena.h"
#include "memory/pool.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#endif

namespace npurt::memory {
namespace {

// Checks what is promised to allocators, and fails on demand.
class CheckingAllocator final : public Allocator {
 public:
  ~CheckingAllocator() override { EXPECT_TRUE(live_.empty()) << "leaked"; }

  void* Allocate(std::size_t bytes, std::size_t alignment, Kind kind) override {
    EXPECT_GT(bytes, 0u);
    MutexLock lock(mutex_);
    if (allocations_left_ == 0) return nullptr;
    if (allocations_left_ > 0) --allocations_left_;
    ++allocations_;
    void* data = DefaultAllocator().Allocate(bytes, alignment, kind);
    live_[data] = {bytes, alignment, kind};
    return data;
  }

  void Free(void* data, std::size_t bytes, std::size_t alignment, Kind kind) override {
    MutexLock lock(mutex_);
    const auto it = live_.find(data);
    ASSERT_NE(it, live_.end());
    EXPECT_EQ(it->second.bytes, bytes);
    EXPECT_EQ(it->second.alignment, alignment);
    EXPECT_EQ(it->second.kind, kind);
    live_.erase(it);
    DefaultAllocator().Free(data, bytes, alignment, kind);
  }

  void FailAfter(int allocations) {
    MutexLock lock(mutex_);
    allocations_left_ = allocations;
  }
  int allocations() {
    MutexLock lock(mutex_);
    return allocations_;
  }

 private:
  struct Block {
    std::size_t bytes;
    std::size_t alignment;
    Kind kind;
  };

  Mutex mutex_;
  std::map<void*, Block> live_ NPURT_GUARDED_BY(mutex_);
  int allocations_ NPURT_GUARDED_BY(mutex_) = 0;
  int allocations_left_ NPURT_GUARDED_BY(mutex_) = -1;
};

TEST(DefaultAllocatorTest, AlignsSmallAndHugeBlocks) {
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{100}, std::size_t{5} << 20}) {
    for (const std::size_t alignment : {std::size_t{1}, std::size_t{64}, std::size_t{4096}}) {
      void* data = DefaultAllocator().Allocate(bytes, alignment, Kind::kArena);
      ASSERT_NE(data, nullptr);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(data) % alignment, 0u);
      std::memset(data, 1, bytes);
      DefaultAllocator().Free(data, bytes, alignment, Kind::kArena);
    }
  }
}

TEST(DefaultAllocatorTest, ReturnsNullWhenThereIsNoMemory) {
#if defined(SANITIZED)
  GTEST_SKIP() << "the sanitizers end the process instead";
#endif
  EXPECT_EQ(DefaultAllocator().Allocate(std::size_t{1} << 60, 64, Kind::kArena), nullptr);
}

TEST(CountingAllocatorTest, CountsEachKindAndAll) {
  CheckingAllocator inner;
  CountingAllocator counting(inner);
  void* a = counting.Allocate(100, 64, Kind::kWeights);
  void* b = counting.Allocate(50, 64, Kind::kArena);
  counting.Free(a, 100, 64, Kind::kWeights);
  EXPECT_EQ(counting.current_bytes(Kind::kWeights), 0u);
  EXPECT_EQ(counting.peak_bytes(Kind::kWeights), 100u);
  EXPECT_EQ(counting.current_bytes(Kind::kArena), 50u);
  EXPECT_EQ(counting.current_bytes(), 50u);
  EXPECT_EQ(counting.peak_bytes(), 150u);
  inner.FailAfter(0);
  EXPECT_EQ(counting.Allocate(1000, 64, Kind::kArena), nullptr);
  EXPECT_EQ(counting.peak_bytes(), 150u);
  counting.Free(b, 50, 64, Kind::kArena);
}

TEST(BufferTest, OwnsItsBytesAndMoves) {
  CheckingAllocator allocator;
  auto buffer = Buffer::Allocate(allocator, 100, 64, Kind::kPacked);
  ASSERT_TRUE(buffer.ok());
  Buffer moved = *std::move(buffer);
  std::byte* data = moved.data();
  Buffer other;
  other = std::move(moved);
  EXPECT_EQ(other.data(), data);
  EXPECT_EQ(other.bytes(), 100u);
  other.Reset();
  EXPECT_EQ(other.data(), nullptr);
  other.Reset();
}

TEST(BufferTest, ReportsMissingMemoryAndAllowsNone) {
  CheckingAllocator allocator;
  allocator.FailAfter(0);
  EXPECT_EQ(Buffer::Allocate(allocator, 100, 64, Kind::kPacked).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Buffer::Allocate(allocator, 1, 3, Kind::kPacked).status().code(),
            absl::StatusCode::kInvalidArgument);
  const auto empty = Buffer::Allocate(allocator, 0, 64, Kind::kPacked);
  ASSERT_TRUE(empty.ok());
  EXPECT_EQ(empty->data(), nullptr);
}

TEST(ArenaPoolTest, LeasesTheSmallestArenaThatFits) {
  CheckingAllocator allocator;
  ArenaPool pool(allocator, 1 << 20);
  {
    auto small = pool.Lease(1000);
    auto big = pool.Lease(5000);
    ASSERT_TRUE(small.ok() && big.ok());
  }
  EXPECT_EQ(pool.idle_bytes(), 6000u);
  auto lease = pool.Lease(900);
  ASSERT_TRUE(lease.ok());
  EXPECT_EQ(lease->bytes(), 1000u);
  EXPECT_EQ(pool.idle_bytes(), 5000u);
  EXPECT_EQ(allocator.allocations(), 2);
  EXPECT_EQ(pool.Lease(0)->data(), nullptr);
}

TEST(ArenaPoolTest, BoundsItsIdleBytesAndTrims) {
  CheckingAllocator allocator;
  ArenaPool pool(allocator, 2500);
  {
    auto a = pool.Lease(1000), b = pool.Lease(1200), c = pool.Lease(1100), d = pool.Lease(9000);
    ASSERT_TRUE(a.ok() && b.ok() && c.ok() && d.ok());
  }
  EXPECT_LE(pool.idle_bytes(), 2500u);
  EXPECT_GE(pool.idle_bytes(), 1000u);
  const std::size_t idle = pool.idle_bytes();
  EXPECT_EQ(pool.Trim(), idle);
  EXPECT_EQ(pool.idle_bytes(), 0u);
}

TEST(ArenaPoolTest, FreesIdleArenasWhenMemoryIsShort) {
  CheckingAllocator allocator;
  ArenaPool pool(allocator, 1 << 20);
  pool.Lease(1000)->Release();
  allocator.FailAfter(0);
  EXPECT_EQ(pool.Lease(5000).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(pool.idle_bytes(), 0u) << "given back before giving up";
  allocator.FailAfter(-1);
  EXPECT_TRUE(pool.Lease(5000).ok());
}

TEST(ArenaPoolTest, ServesManyThreads) {
  CheckingAllocator allocator;
  ArenaPool pool(allocator, 10000);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&pool, t] {
      for (std::size_t i = 0; i < 500; ++i) {
        const std::size_t bytes = 100 + (i * 7 + static_cast<std::size_t>(t)) % 4000;
        auto lease = pool.Lease(bytes);
        ASSERT_TRUE(lease.ok());
        std::memset(lease->data(), t, bytes);
        EXPECT_EQ(lease->data()[bytes - 1], static_cast<std::byte>(t));
        if (i % 50 == 0) pool.Trim();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(TensorPoolTest, AllocatesNothingOnceSizesRepeat) {
  CheckingAllocator allocator;
  TensorPool pool(allocator);
  int first = 0;
  for (int run = 0; run < 5; ++run) {
    void* a = pool.Take(1000);
    void* b = pool.Take(1000);
    void* c = pool.Take(77777);
    ASSERT_TRUE(a != nullptr && b != nullptr && c != nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(c) % kAlignment, 0u);
    std::memset(a, 1, 1000);
    std::memset(b, 2, 1000);
    std::memset(c, 3, 77777);
    pool.Give(b);
    if (run % 2 == 0) {
      pool.Give(a);
      pool.Give(c);
    } else {
      pool.GiveAll();
    }
    if (run == 0) first = allocator.allocations();
  }
  EXPECT_EQ(allocator.allocations(), first);
  EXPECT_GT(pool.Trim(), 0u);
}

TEST(TensorPoolTest, WastesAQuarterAtMost) {
  for (std::size_t bytes = 64; bytes < 100000; bytes += 61) {
    EXPECT_GE(TensorPool::ClassBytes(bytes), bytes);
    EXPECT_LE(TensorPool::ClassBytes(bytes), bytes + bytes / 4 + 1);
  }
  EXPECT_GE(TensorPool::ClassBytes(0), 1u);
  EXPECT_EQ(TensorPool::ClassBytes(~std::size_t{0}), 0u);
}

TEST(TensorPoolTest, ReportsMissingMemoryAndFreesWhatIsInUse) {
  CheckingAllocator allocator;
  TensorPool pool(allocator);
  EXPECT_NE(pool.Take(10), nullptr);
  allocator.FailAfter(0);
  EXPECT_EQ(pool.Take(5000), nullptr);
  EXPECT_EQ(pool.Take(~std::size_t{0}), nullptr);
}

}  // namespace
}  // namespace npurt::memory
