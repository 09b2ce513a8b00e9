// TensorPool: memory for outputs whose size only the run tells, reused from run to run.
//
// Sizes are rounded up to classes, four to each power of two, and each class keeps a list of free
// blocks. When sizes repeat from run to run nothing is allocated. A small head before each block
// links it into a list of all blocks in use, so that a failed run can give everything back at once.
//
// Lifetime: the destructor frees all blocks, in use or not. Thread safety: none, a pool belongs to
// one context.
#ifndef NPURT_MEMORY_POOL_H_
#define NPURT_MEMORY_POOL_H_

#include <cstddef>

#include "memory/allocator.h"

namespace npurt::memory {

class TensorPool {
 public:
  explicit TensorPool(Allocator& allocator) : allocator_(allocator) {}
  ~TensorPool();
  TensorPool(const TensorPool&) = delete;
  TensorPool& operator=(const TensorPool&) = delete;

  // At least `bytes` (zero too) at a multiple of kAlignment; null when there is no memory.
  void* Take(std::size_t bytes);
  // Back into the pool. `data` came from Take of this pool.
  void Give(void* data);
  // As if Give had been called for every block in use.
  void GiveAll();
  // Frees the blocks that are not in use; returns their bytes.
  std::size_t Trim();

  // What a block for `bytes` really takes, without its head; 0 on overflow.
  static std::size_t ClassBytes(std::size_t bytes);

 private:
  struct Head {
    Head* next;
    Head** link;  // what points here, while in use
    std::size_t size_class;
  };
  static constexpr std::size_t kHeadBytes = kAlignment;
  static constexpr std::size_t kClasses = 4 * 64;

  static std::size_t ClassOf(std::size_t bytes);
  void FreeBlock(Head* head);

  Allocator& allocator_;
  Head* used_ = nullptr;
  Head* free_[kClasses] = {};
};

}  // namespace npurt::memory

#endif  // NPURT_MEMORY_POOL_H_
