#include "memory/shared_bytes.h"

#include <cstring>
#include <utility>

#include "absl/hash/hash.h"
#include "absl/strings/string_view.h"
#include "base/mutex.h"

namespace npurt::memory {
namespace {

constexpr std::size_t kBuckets = 256;

struct Entry;
constinit Mutex g_mutex;
constinit Entry* g_buckets[kBuckets] NPURT_GUARDED_BY(g_mutex) = {};

struct Entry {
  Entry() = default;
  ~Entry() {
    MutexLock lock(g_mutex);
    Entry** link = &g_buckets[hash % kBuckets];
    while (*link != nullptr && *link != this) link = &(*link)->next;
    if (*link != nullptr) *link = next;
  }
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;

  std::shared_ptr<Allocator> allocator;  // outlives the buffer
  Buffer buffer;
  std::size_t hash = 0;
  std::weak_ptr<Entry> self;
  Entry* next = nullptr;  // guarded by g_mutex
};

bool MaybeEqual(const Entry& a, const Entry& b) {
  return a.hash == b.hash && a.buffer.bytes() == b.buffer.bytes() && a.allocator == b.allocator;
}

// An entry that looks like `made`, or null.
std::shared_ptr<Entry> FindLike(const Entry& made) {
  MutexLock lock(g_mutex);
  for (Entry* entry = g_buckets[made.hash % kBuckets]; entry != nullptr; entry = entry->next)
    if (MaybeEqual(*entry, made))
      if (auto found = entry->self.lock()) return found;  // else its last owner is just going
  return nullptr;
}

}  // namespace

absl::StatusOr<std::shared_ptr<void>> ShareBytes(std::shared_ptr<Allocator> allocator,
                                                 std::size_t bytes, Kind kind,
                                                 absl::FunctionRef<void(void* data)> fill) {
  auto made = std::make_shared<Entry>();
  made->allocator = std::move(allocator);
  Allocator& memory = made->allocator != nullptr ? *made->allocator : DefaultAllocator();
  NPURT_ASSIGN_OR_RETURN(made->buffer, Buffer::Allocate(memory, bytes, kAlignment, kind));
  fill(made->buffer.data());
  made->hash = absl::HashOf(
      absl::string_view(reinterpret_cast<const char*>(made->buffer.data()), bytes));
  // Two threads that make the same at the same time may both keep theirs, which costs memory only.
  std::shared_ptr<Entry> owner = FindLike(*made);
  if (owner == nullptr ||
      (bytes > 0 && std::memcmp(owner->buffer.data(), made->buffer.data(), bytes) != 0)) {
    owner = std::move(made);
    owner->self = owner;
    MutexLock lock(g_mutex);
    owner->next = std::exchange(g_buckets[owner->hash % kBuckets], owner.get());
  }
  void* data = owner->buffer.data();
  return std::shared_ptr<void>(std::move(owner), data);
}

}  // namespace npurt::memory
