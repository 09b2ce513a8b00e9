// Allocator: where the library's big memory comes from; Buffer: a piece of it with an owner.
//
// Weights, packed weights, arenas, scratch and values pass through one Allocator, which the host
// may provide. It says what memory is for and frees with the numbers of the allocation, so that it
// can be an arena, a NUMA pool or a counter. Small bookkeeping objects use plain new.
//
// Thread safety: allocators may be called from any thread, several at once. Buffers are values.
#ifndef NPURT_MEMORY_ALLOCATOR_H_
#define NPURT_MEMORY_ALLOCATOR_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/status.h"

namespace npurt::memory {

// Numbered as npurt_memory in npurt.h.
enum class Kind : std::int32_t {
  kWeights = 1,  // as loaded
  kPacked = 2,   // weights in a kernel's order
  kArena = 3,    // intermediate values of one run
  kScratch = 4,  // working space of kernels
  kValue = 5,    // values the library makes: outputs, variables
};
inline constexpr int kKindCount = 5;

// Cache lines, and the widest vector there is.
inline constexpr std::size_t kAlignment = 64;

class Allocator {
 public:
  virtual ~Allocator() = default;

  // `bytes` > 0, `alignment` a power of two. Null when there is no memory.
  virtual void* Allocate(std::size_t bytes, std::size_t alignment, Kind kind) = 0;
  // With the numbers of the allocation; `data` is not null.
  virtual void Free(void* data, std::size_t bytes, std::size_t alignment, Kind kind) = 0;
};

// The C library's memory. From 4 MB on in huge pages, if the system grants them: an arena touched
// page by page costs a fault and a TLB entry for each 4 KB otherwise. Lives for ever.
Allocator& DefaultAllocator();

// Counts what passes through to another allocator.
class CountingAllocator final : public Allocator {
 public:
  explicit CountingAllocator(Allocator& inner) : inner_(inner) {}

  void* Allocate(std::size_t bytes, std::size_t alignment, Kind kind) override;
  void Free(void* data, std::size_t bytes, std::size_t alignment, Kind kind) override;

  // Counts bytes that came another way and stay as long as this object.
  void Count(Kind kind, std::size_t bytes);

  std::size_t current_bytes(Kind kind) const { return counter(kind).current.load(kRelaxed); }
  std::size_t peak_bytes(Kind kind) const { return counter(kind).peak.load(kRelaxed); }
  std::size_t current_bytes() const { return counters_[0].current.load(kRelaxed); }
  std::size_t peak_bytes() const { return counters_[0].peak.load(kRelaxed); }

 private:
  static constexpr std::memory_order kRelaxed = std::memory_order_relaxed;
  struct Counter {
    std::atomic<std::size_t> current{0};
    std::atomic<std::size_t> peak{0};

    void Add(std::size_t bytes);
  };

  const Counter& counter(Kind kind) const { return counters_[static_cast<std::size_t>(kind)]; }

  Allocator& inner_;
  Counter counters_[kKindCount + 1];  // [0]: all kinds together
};

// Bytes from an allocator, given back by the destructor. An empty one has data() == nullptr.
class Buffer {
 public:
  Buffer() = default;
  ~Buffer() { Reset(); }
  Buffer(Buffer&& other) noexcept { Swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    Buffer(std::move(other)).Swap(*this);
    return *this;
  }

  // ResourceExhausted if the allocator has no memory. Zero bytes give an empty buffer. `allocator`
  // outlives the buffer.
  static absl::StatusOr<Buffer> Allocate(Allocator& allocator, std::size_t bytes,
                                         std::size_t alignment, Kind kind);

  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

  void Reset();

 private:
  void Swap(Buffer& other) {
    std::swap(allocator_, other.allocator_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(alignment_, other.alignment_);
    std::swap(kind_, other.kind_);
  }

  Allocator* allocator_ = nullptr;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  std::size_t alignment_ = 0;
  Kind kind_ = Kind::kValue;
};

}  // namespace npurt::memory

#endif  // NPURT_MEMORY_ALLOCATOR_H_
