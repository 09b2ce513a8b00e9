#include "base/mapping.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

#include "base/mutex.h"

namespace npurt {
namespace {

constinit Mutex g_mutex;
constinit Mapping* g_first NPURT_GUARDED_BY(g_mutex) = nullptr;

}  // namespace

std::shared_ptr<Mapping> Mapping::Create(int fd, std::size_t bytes) {
  std::shared_ptr<Mapping> mapping(new Mapping);  // first: it may throw
  void* const data = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
  if (data == MAP_FAILED) return nullptr;
  mapping->data_ = static_cast<const char*>(data);
  mapping->bytes_ = bytes;
  MutexLock lock(g_mutex);
  mapping->next_ = g_first;
  if (g_first != nullptr) g_first->previous_ = mapping.get();
  g_first = mapping.get();
  return mapping;
}

Mapping::~Mapping() {
  if (data_ == nullptr) return;
  {
    MutexLock lock(g_mutex);
    (previous_ != nullptr ? previous_->next_ : g_first) = next_;
    if (next_ != nullptr) next_->previous_ = previous_;
  }
  munmap(const_cast<char*>(data_), bytes_);
}

void ReleaseMappedPages(const void* data, std::size_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(data);
  {
    MutexLock lock(g_mutex);
    const Mapping* mapping = g_first;
    const auto holds = [&](const Mapping& m) {
      const auto first = reinterpret_cast<std::uintptr_t>(m.data_);
      return begin >= first && begin - first <= m.bytes_ && bytes <= m.bytes_ - (begin - first);
    };
    while (mapping != nullptr && !holds(*mapping)) mapping = mapping->next_;
    if (mapping == nullptr) return;
  }
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const std::uintptr_t from = (begin + page - 1) / page * page, to = (begin + bytes) / page * page;
  if (from < to) madvise(reinterpret_cast<void*>(from), to - from, MADV_DONTNEED);
}

}  // namespace npurt
