// ShareBytes: bytes that never change, once for everybody who has the same.
//
// Two sessions of one model pack the same weights; the second finds the first's buffer by a hash of
// what it has packed, compares, and gives its own back. So nothing has to say what packing depends
// on, and weights that a pass made anew are shared too. The table holds no buffer: the last owner
// frees it.
//
// Thread safety: any thread.
#ifndef NPURT_MEMORY_SHARED_BYTES_H_
#define NPURT_MEMORY_SHARED_BYTES_H_

#include <memory>

#include "absl/functional/function_ref.h"
#include "memory/allocator.h"

namespace npurt::memory {

// A buffer of `bytes` that `fill` has written completely, or an equal one that is there already.
// Nobody writes it again. `allocator` (null: the default) is held until the buffer is freed; owners
// of different allocators share nothing. RESOURCE_EXHAUSTED: no memory.
absl::StatusOr<std::shared_ptr<void>> ShareBytes(std::shared_ptr<Allocator> allocator,
                                                 std::size_t bytes, Kind kind,
                                                 absl::FunctionRef<void(void* data)> fill);

}  // namespace npurt::memory

#endif  // NPURT_MEMORY_SHARED_BYTES_H_
