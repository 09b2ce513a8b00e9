// Moving elements without looking at them: copies of runs and of strided boxes, for every type.
//
// Operators that only move data (Slice, Concat, Expand …) describe what goes where in elements; the
// loops here know how many bytes that is, how packed types lie and that strings are objects.
// A StridedCopy is plain data on the stack: it is built again in each tile rather than kept, which
// costs less than a cache miss.
//
// Thread safety: free functions; tiles of one copy write disjoint bytes (see TileOf).
#ifndef NPURT_OPS_MOVE_H_
#define NPURT_OPS_MOVE_H_

#include <cstdint>

#include "ops/op_def.h"

namespace npurt::ops {

// Copies `count` elements from element `from` of `in` to element `to` of `out`. No overlap, but
// the very same place is fine.
void CopyElements(DType dtype, void* out, std::int64_t to, const void* in, std::int64_t from,
                  std::int64_t count);
// Writes element `from` of `in` to the `count` elements from `to` on.
void FillElements(DType dtype, void* out, std::int64_t to, const void* in, std::int64_t from,
                  std::int64_t count);
// Writes zeros (empty strings, false).
void ZeroElements(DType dtype, void* out, std::int64_t to, std::int64_t count);

// A box of elements with a stride for each of its dimensions on both sides.
struct StridedCopy {
  static constexpr int kMaxRank = 16;  // after neighbours are merged
  int rank = 0;
  bool too_deep = false;
  std::int64_t count = 1;
  std::int64_t in_offset = 0, out_offset = 0;
  std::int64_t dims[kMaxRank], in_strides[kMaxRank], out_strides[kMaxRank];

  // Adds a dimension inside those there are. Strides are in elements.
  void Add(std::int64_t dim, std::int64_t in_stride, std::int64_t out_stride);
  // Copies the elements `first` to `last` - 1 of the box in row-major order.
  absl::Status Run(DType dtype, void* out, const void* in, std::int64_t first,
                   std::int64_t last) const;
};

// How a copy of that many elements divides: about 128 KiB a tile.
std::int64_t CopyTiles(DType dtype, std::int64_t count);
void SetCopyTiles(BindContext& bind, DType dtype, std::int64_t count);
// Elements `first` to `last` - 1 of `count` belong to tile `tile` of `tiles`. Bounds are multiples of
// 64 elements, so that packed elements of two tiles never share a byte.
struct TileRange {
  std::int64_t first, last;
};
TileRange TileOf(std::int64_t tile, std::int64_t tiles, std::int64_t count);

// Output 0 is input 0, in the same order.
absl::Status BindCopy(BindContext& bind);  // offers a view too
absl::Status RunCopy(const RunContext& run, std::int64_t tile, void* scratch);
absl::Status ReferenceCopy(const RunContext& run, std::int64_t tile, void* scratch);

// Polls for cancellation at some of the `i`: call it with the number of each element.
inline absl::Status PollAt(const RunContext& run, std::int64_t i) {
  return (i & ((1 << 19) - 1)) == 0 ? run.Poll() : absl::OkStatus();
}

// The row-major strides, in elements.
Dims StridesOf(absl::Span<const std::int64_t> dims);
// The product of dims[first .. last - 1]; sizes of existing tensors, which do not overflow.
std::int64_t ProductOf(absl::Span<const std::int64_t> dims, int first, int last);
// Moves `index` to the next element of a box; false after the last.
bool NextIndex(absl::Span<const std::int64_t> dims, absl::Span<std::int64_t> index);

// Element `k` of an int32, int64 or other integer input.
inline std::int64_t IndexAt(const RunContext& run, int input, std::int64_t k) {
  if (run.dtype(input) == DType::kI64) return run.Load<std::int64_t>(input, k);
  if (run.dtype(input) == DType::kI32) return run.Load<std::int32_t>(input, k);
  std::int64_t value = 0;
  DispatchDType<kIntegers | kBools>(run.dtype(input), [&](auto type) {
    value = static_cast<std::int64_t>(run.Load<decltype(type)>(input, k));
  });
  return value;
}
// Element `k` of a numeric input as a double.
inline double RealAt(const RunContext& run, int input, std::int64_t k) {
  if (run.dtype(input) == DType::kF32) return static_cast<double>(run.Load<float>(input, k));
  if (run.dtype(input) == DType::kF64) return run.Load<double>(input, k);
  double value = 0;
  DispatchDType<kPlainTypes>(run.dtype(input), [&](auto type) {
    value = static_cast<double>(run.Load<decltype(type)>(input, k));
  });
  return value;
}
// Stores a double into a numeric output of whatever type.
inline void StoreReal(const RunContext& run, int output, std::int64_t k, double value) {
  DispatchDType<kPlainTypes>(run.output(output).dtype, [&](auto type) {
    run.Store<decltype(type)>(output, k, static_cast<decltype(type)>(value));
  });
}

// INVALID_ARGUMENT unless input `i`, if present, has this rank.
absl::Status WantRank(const InferContext& context, int i, int rank);

// Brings `index`, which may count from the end, into [0, limit); false, and no change, if it lies
// outside: then IndexError says so.
absl::Status IndexError(std::int64_t index, std::int64_t limit);
inline bool WrapIndex(std::int64_t* index, std::int64_t limit) {
  const std::int64_t wrapped = *index < 0 ? *index + limit : *index;
  if (wrapped < 0 || wrapped >= limit) return false;
  *index = wrapped;
  return true;
}

}  // namespace npurt::ops

#endif  // NPURT_OPS_MOVE_H_
