#include "memory/pool.h"

#include <algorithm>
#include <bit>
#include <new>

namespace npurt::memory {
namespace {

// Class c holds blocks of (4 + c % 4) << (c / 4) bytes: 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, ...
constexpr std::size_t BytesOfClass(std::size_t c) { return (4 + c % 4) << (c / 4); }

// Below this, sizes share a class: a cache line is the least one can hand out.
constexpr std::size_t kMinBytes = kAlignment;

}  // namespace

std::size_t TensorPool::ClassOf(std::size_t bytes) {
  bytes = std::max(bytes, kMinBytes);
  const std::size_t shift = static_cast<std::size_t>(std::bit_width(bytes)) - 3;
  const std::size_t c = 4 * shift + (bytes >> shift) - 4;
  return c + (BytesOfClass(c) < bytes ? 1 : 0);
}

std::size_t TensorPool::ClassBytes(std::size_t bytes) {
  constexpr std::size_t kMaxBytes = std::size_t{1} << 62;
  return bytes > kMaxBytes ? 0 : BytesOfClass(ClassOf(bytes));
}

TensorPool::~TensorPool() {
  GiveAll();
  Trim();
}

void* TensorPool::Take(std::size_t bytes) {
  const std::size_t block_bytes = ClassBytes(bytes);
  if (block_bytes == 0) return nullptr;
  const std::size_t size_class = ClassOf(bytes);
  Head* head = free_[size_class];
  if (head != nullptr) {
    free_[size_class] = head->next;
  } else {
    void* data = allocator_.Allocate(kHeadBytes + block_bytes, kAlignment, Kind::kValue);
    if (data == nullptr) return nullptr;
    head = new (data) Head;
    head->size_class = size_class;
  }
  head->next = used_;
  head->link = &used_;
  if (used_ != nullptr) used_->link = &head->next;
  used_ = head;
  return reinterpret_cast<std::byte*>(head) + kHeadBytes;
}

void TensorPool::Give(void* data) {
  Head* head = reinterpret_cast<Head*>(static_cast<std::byte*>(data) - kHeadBytes);
  *head->link = head->next;
  if (head->next != nullptr) head->next->link = head->link;
  head->next = free_[head->size_class];
  free_[head->size_class] = head;
}

void TensorPool::GiveAll() {
  while (used_ != nullptr) Give(reinterpret_cast<std::byte*>(used_) + kHeadBytes);
}

std::size_t TensorPool::Trim() {
  std::size_t freed = 0;
  for (Head*& list : free_) {
    while (list != nullptr) {
      Head* head = list;
      list = head->next;
      freed += BytesOfClass(head->size_class);
      FreeBlock(head);
    }
  }
  return freed;
}

void TensorPool::FreeBlock(Head* head) {
  const std::size_t bytes = kHeadBytes + BytesOfClass(head->size_class);
  head->~Head();
  allocator_.Free(head, bytes, kAlignment, Kind::kValue);
}

}  // namespace npurt::memory
