// Operands of the attention operators: their order, what their shapes must be, and which keys a query
// sees.
//
// The shapes are checked by one text over Dim in inference and over numbers after it.
//
// Thread safety: pure functions.
#ifndef NPURT_OPS_ATTENTION_SIZES_H_
#define NPURT_OPS_ATTENTION_SIZES_H_

#include <cstdint>

#include "ops/op_def.h"

namespace npurt::ops::attention {

enum Input { kQ, kK, kV, kMask, kPastK, kPastV, kLengths, kTotal, kSinks };
enum Output { kY, kPresentK, kPresentV, kScores };

// D is Dim or std::int64_t.
template <typename D>
struct Sizes {
  D batch = 0, heads = 0, kv_heads = 0;
  D rows = 0;               // of q
  D past = 0, fresh = 0;    // rows of past_key and of k
  D head_size = 0, value_size = 0;
  bool apart = false;  // q, k, v and y are [batch, heads, rows, size], else [batch, rows, heads * size]
  bool grouped = false;  // GroupQueryAttention, else Attention
};

// Of all operands of either operator; an error names the first that does not fit.
absl::StatusOr<Sizes<Dim>> SizesOf(const InferContext& context, bool grouped);
absl::StatusOr<Sizes<std::int64_t>> SizesOf(const BindContext& context, bool grouped);
absl::StatusOr<Sizes<std::int64_t>> SizesOf(const RunContext& context, bool grouped);

// The keys of one batch entry, and which of them its queries see: query i those before
// min(valid, i + offset + 1), the last `window` of them.
struct Range {
  std::int64_t past = 0, fresh = 0, valid = 0, offset = 0, window = 0;
};
inline constexpr std::int64_t kFar = std::int64_t{1} << 60;  // beyond every key
// What the attributes say of it.
struct Sight {
  bool causal = false;
  std::int64_t window = 2 * kFar;
};
Sight SightOf(const Attributes& attributes);
absl::StatusOr<Range> RangeOf(const RunContext& run, const Sizes<std::int64_t>& sizes,
                              const Sight& sight, std::int64_t batch_entry);

}  // namespace npurt::ops::attention

#endif  // NPURT_OPS_ATTENTION_SIZES_H_
