// Attention of float32: out = softmax(cap(scale * Q K^T) + mask) V, keys in blocks.
//
// The idea: a tile is a few dozen queries that share a head of K and V. It walks the keys in blocks,
// keeps for each query the largest score so far and the sum of exponentials relative to it, and
// corrects sum and output when a larger score comes, so that no matrix of all scores exists. Scores
// lie transposed, [keys][queries]: then K and V are read where they lie, only the queries are
// packed, and softmax runs across vectors of queries without a sum inside a vector. Queries of
// all heads that share K and V go together, which is what makes one query a head worth a product.
//
// Memory: nothing is allocated here. Keys that no query of a tile sees are not read, nor their
// values.
// Thread safety: pure functions; the bits depend on sizes and kernels only.
#ifndef NPURT_KERNELS_ATTENTION_ATTENTION_H_
#define NPURT_KERNELS_ATTENTION_ATTENTION_H_

#include <cstddef>
#include <cstdint>

#include "kernels/transpose/transpose.h"

namespace npurt::kernels {

struct GemmKernel;

// `keys` rows of `columns` scores, whole vectors. Replaces them by e^(score - max) with the new
// max, which and whose sum are kept per column; `factor` is what the new max makes of the old sum.
// A score of -Inf gives 0, also where all are: max starts at the lowest finite number.
struct AttentionStepArgs {
  float* scores;
  std::size_t keys, columns;
  float* max;
  float* sum;
  float* factor;
};

struct AttentionKernel {
  const char* name;
  // x = cap * tanh(x / cap) for `count` numbers, whole vectors.
  void (*cap)(float* x, std::size_t count, float cap);
  void (*step)(const AttentionStepArgs& args);
  IsaSet needs;
  int width;
};

#define NPURT_ATTENTION(isa_set, set, width)                                 \
  void attention_cap_f32_##set(float* x, std::size_t count, float cap);      \
  void attention_step_f32_##set(const AttentionStepArgs& args);
#include "kernels/attention/attention.inc"
#undef NPURT_ATTENTION

extern const AttentionKernel kAttentionKernels[];
extern const std::size_t kAttentionKernelCount;

// The best kernels that `allowed` offers.
struct AttentionKernels {
  const AttentionKernel* attention = nullptr;
  const GemmKernel* gemm = nullptr;
  TransposeBlockFn transpose_floats = nullptr, transpose_bytes = nullptr;
};
AttentionKernels SelectAttention(IsaSet allowed);

struct AttentionPlan {
  std::int64_t batch = 0, kv_heads = 0, group = 0;  // `group` heads of queries per head of keys
  std::int64_t rows = 0;                            // queries of a head
  std::int64_t head_size = 0, value_size = 0;
  std::int64_t heads_per_tile = 0, rows_per_tile = 0;
  std::int64_t head_blocks = 0, row_blocks = 0;
  std::int64_t tiles = 0;
  std::int64_t lanes = 0;  // queries of a tile, in whole vectors
  std::size_t scratch_bytes = 0;
  double tile_flops = 0, tile_bytes = 0;
};

// A plan is for these kernels. `keys` is for the costs only.
AttentionPlan PlanAttention(const AttentionKernels& kernels, std::int64_t batch,
                            std::int64_t kv_heads, std::int64_t group, std::int64_t rows,
                            std::int64_t keys, std::int64_t head_size, std::int64_t value_size);

// The queries of a tile.
struct AttentionPart {
  std::int64_t batch, kv_head;
  std::int64_t head, heads;  // of queries: the first, and how many
  std::int64_t row, rows;    // of each of these heads
};
AttentionPart AttentionPartOf(const AttentionPlan& plan, std::int64_t tile);

// [batch][head][row][element] in whatever order: distances in elements; elements are neighbours.
struct AttentionStrides {
  std::int64_t batch = 0, head = 0, row = 0;
};

enum class AttentionMask : std::uint8_t { kNone, kAdded, kBool };

// What to attend to, for the batch entry of one tile. Pointers are to the whole operands.
struct AttentionArgs {
  const float* q;
  const float *k[2], *v[2];  // past, then new
  float* out;
  AttentionStrides q_strides, k_strides[2], v_strides[2], out_strides;
  std::int64_t keys[2];  // of each part
  float scale, softcap;  // no cap: 0

  // Query i sees the keys before min(valid, i + offset + 1), the last `window` of them.
  std::int64_t valid, offset, window;

  AttentionMask mask_kind;
  const void* mask;  // floats that are added, or bytes: 0 hides a key
  AttentionStrides mask_strides;
  std::int64_t mask_keys;  // keys from here on are hidden

  const float* sinks;  // one score a head that takes part in the sum and has no value, or null

  // The scores, [batch][heads][rows][keys], after `scores_mode` of: product and scale (0), cap (1),
  // mask (2), softmax (3). Null if nobody wants them.
  float* scores;
  int scores_mode;
};

// `scratch` has plan.scratch_bytes, aligned to 64 bytes.
void RunAttention(const AttentionKernels& kernels, const AttentionPlan& plan,
                  const AttentionArgs& args, const AttentionPart& part, void* scratch);

}  // namespace npurt::kernels

#endif  // NPURT_KERNELS_ATTENTION_ATTENTION_H_
