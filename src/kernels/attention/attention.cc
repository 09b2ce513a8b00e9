// Selection, tiling and the walk over blocks of keys. See attention.h.
#include "kernels/attention/attention.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/checked_math.h"
#include "base/cpu_isa.h"
#include "kernels/gemm/gemm.h"

namespace npurt::kernels {

const AttentionKernel kAttentionKernels[] = {
#define NPURT_ATTENTION(isa_set, set, width)                                             \
  {"attention_f32_" #set, attention_cap_f32_##set, attention_step_f32_##set, isa_set, width},
#include "kernels/attention/attention.inc"
#undef NPURT_ATTENTION
};
const std::size_t kAttentionKernelCount =
    sizeof(kAttentionKernels) / sizeof(kAttentionKernels[0]);

AttentionKernels SelectAttention(IsaSet allowed) {
  AttentionKernels kernels;
  kernels.attention = kAttentionKernels;
  while (!HasAll(allowed, kernels.attention->needs)) ++kernels.attention;  // the last needs nothing
  kernels.gemm = SelectGemmKernel(allowed);
  for (std::size_t i = kTransposeKernelCount; i-- > 0;) {  // best first
    const TransposeKernel& row = kTransposeKernels[i];
    if (!HasAll(allowed, row.needs)) continue;
    if (row.element_bytes == 4) kernels.transpose_floats = row.run;
    if (row.element_bytes == 1) kernels.transpose_bytes = row.run;
  }
  return kernels;
}

namespace {

// 64 queries x 128 keys of scores and the keys and values of a block stay in the second-level cache.
constexpr std::int64_t kQueries = 64, kKeys = 128;
constexpr float kHidden = -std::numeric_limits<float>::infinity();

// Operands may have any alignment.
float LoadFloat(const float* p) {
  float x;
  std::memcpy(&x, p, sizeof x);
  return x;
}
void StoreFloat(float* p, float x) { std::memcpy(p, &x, sizeof x); }

// Scratch of a tile, each part on a cache line.
struct Scratch {
  float *packed_q, *scores, *out, *max, *sum, *factor;
  float* mask;  // of a block, [keys][queries], or bytes
  std::int64_t *first, *last;  // of the keys that a column sees
  std::size_t bytes;
};

Scratch Layout(const GemmKernel& gemm, std::int64_t queries, std::int64_t lanes,
               std::int64_t head_size, std::int64_t value_size, void* memory) {
  std::size_t at = 0;
  const auto take = [&](std::int64_t count, std::size_t size) {
    const std::size_t start = at;
    at += (static_cast<std::size_t>(count) * size + 63) / 64 * 64;
    return memory == nullptr ? nullptr : static_cast<char*>(memory) + start;
  };
  const auto floats = [&](std::int64_t count) {
    return reinterpret_cast<float*>(take(count, sizeof(float)));
  };
  const auto numbers = [&](std::int64_t count) {
    return reinterpret_cast<std::int64_t*>(take(count, sizeof(std::int64_t)));
  };
  Scratch s;
  s.packed_q = floats(RoundUp(queries, gemm.tile_n) * head_size);
  s.scores = floats(kKeys * lanes);
  s.out = floats(queries * value_size);
  s.max = floats(lanes);
  s.sum = floats(lanes);
  s.factor = floats(lanes);
  s.mask = floats(kKeys * lanes);
  s.first = numbers(lanes);
  s.last = numbers(lanes);
  s.bytes = at;
  return s;
}

}  // namespace

AttentionPlan PlanAttention(const AttentionKernels& kernels, std::int64_t batch,
                            std::int64_t kv_heads, std::int64_t group, std::int64_t rows,
                            std::int64_t keys, std::int64_t head_size, std::int64_t value_size) {
  AttentionPlan p;
  p.batch = batch;
  p.kv_heads = kv_heads;
  p.group = group;
  p.rows = rows;
  p.head_size = head_size;
  p.value_size = value_size;
  if (batch == 0 || kv_heads == 0 || group == 0 || rows == 0) return p;
  p.row_blocks = CeilDiv(rows, kQueries);
  p.rows_per_tile = CeilDiv(rows, p.row_blocks);
  p.heads_per_tile = std::clamp<std::int64_t>(kQueries / rows, 1, group);
  p.head_blocks = CeilDiv(group, p.heads_per_tile);
  p.heads_per_tile = CeilDiv(group, p.head_blocks);
  p.tiles = batch * kv_heads * p.head_blocks * p.row_blocks;
  const std::int64_t queries = p.heads_per_tile * p.rows_per_tile;
  p.lanes = RoundUp(queries, kernels.attention->width);
  p.scratch_bytes = Layout(*kernels.gemm, queries, p.lanes, head_size, value_size, nullptr).bytes;
  const double pairs = static_cast<double>(queries) * static_cast<double>(keys);
  const double sizes = static_cast<double>(head_size + value_size);
  p.tile_flops = pairs * (2 * sizes + 20);
  p.tile_bytes = 4 * sizes * static_cast<double>(keys + queries);
  return p;
}

AttentionPart AttentionPartOf(const AttentionPlan& p, std::int64_t tile) {
  const std::int64_t row_block = tile % p.row_blocks;
  const std::int64_t head_block = tile / p.row_blocks % p.head_blocks;
  const std::int64_t kv = tile / (p.row_blocks * p.head_blocks);
  AttentionPart part;
  part.batch = kv / p.kv_heads;
  part.kv_head = kv % p.kv_heads;
  const std::int64_t head = head_block * p.heads_per_tile;
  part.head = part.kv_head * p.group + head;
  part.heads = std::min(p.heads_per_tile, p.group - head);
  part.row = row_block * p.rows_per_tile;
  part.rows = std::min(p.rows_per_tile, p.rows - part.row);
  return part;
}

namespace {

// One tile at work. A column is a query: the rows of the first head, then those of the next.
class Tile {
 public:
  Tile(const AttentionKernels& kernels, const AttentionPlan& plan, const AttentionArgs& args,
       const AttentionPart& part, void* scratch)
      : kernels_(kernels), gemm_(*kernels.gemm), plan_(plan), a_(args), part_(part),
        columns_(part.heads * part.rows),
        s_(Layout(gemm_, plan.heads_per_tile * plan.rows_per_tile, plan.lanes, plan.head_size,
                  plan.value_size, scratch)) {}

  void Run() {
    Start();
    PackQueries();
    const bool all = a_.scores != nullptr;
    for (int part = 0; part < 2; ++part) {
      const std::int64_t base = part == 0 ? 0 : a_.keys[0];
      const std::int64_t end = all ? a_.keys[part] : std::min(a_.keys[part], last_ - base);
      const std::int64_t start = all ? 0 : std::max<std::int64_t>(first_ - base, 0);
      for (std::int64_t key = start; key < end; key += kKeys)
        RunBlock(part, key, base + key, std::min(kKeys, end - key));
    }
    Finish();
  }

 private:
  struct Query {
    std::int64_t head, row;
  };
  // f(column, query) for each column.
  template <typename F>
  void ForQueries(F f) const {
    std::int64_t c = 0;
    for (std::int64_t h = part_.head; h < part_.head + part_.heads; ++h)
      for (std::int64_t r = part_.row; r < part_.row + part_.rows; ++r) f(c++, Query{h, r});
  }
  std::int64_t At(const AttentionStrides& strides, Query q) const {
    return part_.batch * strides.batch + q.head * strides.head + q.row * strides.row;
  }
  float* ScoresOf(Query q) const {
    const std::int64_t heads = plan_.kv_heads * plan_.group;
    return a_.scores + ((part_.batch * heads + q.head) * plan_.rows + q.row) *
                           (a_.keys[0] + a_.keys[1]);
  }

  void Start() {
    // Lanes without a query hold whatever is finite.
    const std::int64_t rows = std::min(kKeys, std::max(a_.keys[0], a_.keys[1]));
    if (columns_ < plan_.lanes)
      std::memset(s_.scores, 0, static_cast<std::size_t>(rows * plan_.lanes) * sizeof(float));
    std::memset(s_.out, 0, static_cast<std::size_t>(columns_ * plan_.value_size) * sizeof(float));
    first_ = std::numeric_limits<std::int64_t>::max();
    last_ = all_first_ = 0;
    all_last_ = first_;
    for (std::int64_t c = columns_; c < plan_.lanes; ++c) s_.max[c] = s_.sum[c] = 0;
    ForQueries([&](std::int64_t c, Query q) {
      s_.max[c] = a_.sinks != nullptr ? LoadFloat(a_.sinks + q.head) : -FLT_MAX;
      s_.sum[c] = a_.sinks != nullptr ? 1.0f : 0.0f;
      const std::int64_t before = q.row + a_.offset + 1;
      s_.last[c] = std::clamp<std::int64_t>(before, 0, a_.valid);
      s_.first[c] = std::clamp<std::int64_t>(before - a_.window, 0, s_.last[c]);
      first_ = std::min(first_, s_.first[c]);
      last_ = std::max(last_, s_.last[c]);
      all_first_ = std::max(all_first_, s_.first[c]);
      all_last_ = std::min(all_last_, s_.last[c]);
    });
  }

  // A panel is tile_n queries: for each element of the head, the queries side by side.
  void PackQueries() {
    const std::int64_t n = gemm_.tile_n, size = plan_.head_size;
    const std::int64_t whole = columns_ / n * n;
    if (columns_ > whole)  // the last panel ends in zeros
      std::memset(s_.packed_q + whole * size, 0, static_cast<std::size_t>(n * size) * sizeof(float));
    for (std::int64_t h = 0, c = 0; h < part_.heads; ++h)
      for (std::int64_t row = 0, count; row < part_.rows; row += count, c += count) {
        count = std::min(part_.rows - row, n - c % n);
        const float* from = a_.q + At(a_.q_strides, {part_.head + h, part_.row + row});
        kernels_.transpose_floats(from, static_cast<std::size_t>(a_.q_strides.row),
                                  s_.packed_q + c / n * n * size + c % n,
                                  static_cast<std::size_t>(n), static_cast<std::size_t>(count),
                                  static_cast<std::size_t>(size));
      }
    const std::int64_t floats = RoundUp(columns_, n) * size;
    const float scale = a_.scale;
    float* const packed = s_.packed_q;
    for (std::int64_t i = 0; i < floats; ++i) packed[i] *= scale;
  }

  // Keys `key` to key + count - 1 of a part; `place` is the number of the first among all.
  void RunBlock(int part, std::int64_t key, std::int64_t place, std::int64_t count) {
    Multiply(part, key, count);
    if (a_.scores != nullptr && a_.scores_mode == 0) StoreScores(place, count);
    if (a_.softcap != 0)
      kernels_.attention->cap(s_.scores, static_cast<std::size_t>(count * plan_.lanes), a_.softcap);
    if (a_.scores != nullptr && a_.scores_mode == 1) StoreScores(place, count);
    if (a_.mask_kind != AttentionMask::kNone) AddMask(place, count);
    Hide(place, count);
    if (a_.scores != nullptr && a_.scores_mode >= 2) StoreScores(place, count);
    const std::int64_t seen = std::min(count, last_ - place);
    if (seen <= 0 || place + count <= first_) return;
    kernels_.attention->step({s_.scores, static_cast<std::size_t>(seen),
                              static_cast<std::size_t>(plan_.lanes), s_.max, s_.sum, s_.factor});
    AddValues(part, key, seen);
  }

  // scores[key][query] = K Q^T
  void Multiply(int part, std::int64_t key, std::int64_t count) {
    const std::int64_t stride = a_.k_strides[part].row;
    const float* k = a_.k[part] + part_.batch * a_.k_strides[part].batch +
                     part_.kv_head * a_.k_strides[part].head + key * stride;
    const Epilogue none;
    GemmArgs g = {};
    g.a_row_stride = stride;
    g.a_k_stride = 1;
    g.b_stride = gemm_.tile_n;
    g.c_stride = plan_.lanes;
    g.k = plan_.head_size;
    g.b_is_panel = true;
    g.first = true;
    g.epilogue = &none;
    for (std::int64_t c = 0; c < columns_; c += gemm_.tile_n) {
      g.b = s_.packed_q + c * plan_.head_size;
      g.cols = static_cast<int>(std::min<std::int64_t>(gemm_.tile_n, columns_ - c));
      for (std::int64_t j = 0; j < count; j += gemm_.tile_m) {
        g.a = k + j * stride;
        g.c = s_.scores + j * plan_.lanes + c;
        g.rows = static_cast<int>(std::min<std::int64_t>(gemm_.tile_m, count - j));
        gemm_.run(g);
      }
    }
  }

  void AddMask(std::int64_t place, std::int64_t count) {
    const std::int64_t known = std::clamp<std::int64_t>(a_.mask_keys - place, 0, count);
    for (std::int64_t h = 0; h < part_.heads; ++h) {
      const std::int64_t at = At(a_.mask_strides, {part_.head + h, part_.row}) + place;
      float* const scores = s_.scores + h * part_.rows;
      if (a_.mask_kind == AttentionMask::kAdded) {
        MaskHead(static_cast<const float*>(a_.mask) + at, kernels_.transpose_floats, known, scores,
                 [](float score, float mask) { return score + mask; });
      } else {
        MaskHead(static_cast<const unsigned char*>(a_.mask) + at, kernels_.transpose_bytes, known,
                 scores, [](float score, unsigned char m) { return m != 0 ? score : kHidden; });
      }
      for (std::int64_t j = known; j < count; ++j)
        std::fill_n(scores + j * plan_.lanes, part_.rows, kHidden);
    }
  }

  // The queries of one head and `count` keys; `mask` is of the first of both.
  template <typename T, typename F>
  void MaskHead(const T* mask, TransposeBlockFn transpose, std::int64_t count, float* scores,
                F masked) {
    const std::int64_t lanes = plan_.lanes, rows = part_.rows;
    if (a_.mask_strides.row == 0 || rows == 1) {
      for (std::int64_t j = 0; j < count; ++j) {
        T m;
        std::memcpy(&m, mask + j, sizeof m);
        for (std::int64_t c = 0; c < rows; ++c)
          scores[j * lanes + c] = masked(scores[j * lanes + c], m);
      }
      return;
    }
    T* const turned = reinterpret_cast<T*>(s_.mask);
    transpose(mask, static_cast<std::size_t>(a_.mask_strides.row), turned,
              static_cast<std::size_t>(lanes), static_cast<std::size_t>(rows),
              static_cast<std::size_t>(count));
    for (std::int64_t j = 0; j < count; ++j)
      for (std::int64_t c = 0; c < rows; ++c)
        scores[j * lanes + c] = masked(scores[j * lanes + c], turned[j * lanes + c]);
  }

  // What a query does not see, in blocks that not all queries see whole.
  void Hide(std::int64_t place, std::int64_t count) {
    if (all_first_ <= place && place + count <= all_last_) return;
    for (std::int64_t c = 0; c < columns_; ++c) {
      const std::int64_t from = std::clamp<std::int64_t>(s_.first[c] - place, 0, count);
      const std::int64_t to = std::clamp<std::int64_t>(s_.last[c] - place, 0, count);
      for (std::int64_t j = 0; j < from; ++j) s_.scores[j * plan_.lanes + c] = kHidden;
      for (std::int64_t j = to; j < count; ++j) s_.scores[j * plan_.lanes + c] = kHidden;
    }
  }

  void StoreScores(std::int64_t place, std::int64_t count) {
    ForQueries([&](std::int64_t c, Query q) {
      float* to = ScoresOf(q) + place;
      for (std::int64_t j = 0; j < count; ++j) StoreFloat(to + j, s_.scores[j * plan_.lanes + c]);
    });
  }

  // out = out * factor + P V
  void AddValues(int part, std::int64_t key, std::int64_t count) {
    const std::int64_t size = plan_.value_size, stride = a_.v_strides[part].row;
    for (std::int64_t c = 0; c < columns_; ++c) {
      const float factor = s_.factor[c];
      if (factor == 1.0f) continue;
      float* row = s_.out + c * size;
      for (std::int64_t e = 0; e < size; ++e) row[e] *= factor;
    }
    const float* v = a_.v[part] + part_.batch * a_.v_strides[part].batch +
                     part_.kv_head * a_.v_strides[part].head + key * stride;
    const Epilogue none;
    GemmArgs g = {};
    g.a_row_stride = 1;
    g.a_k_stride = plan_.lanes;
    g.b_stride = stride;
    g.c_stride = size;
    g.k = count;
    g.epilogue = &none;
    for (std::int64_t e = 0; e < size; e += gemm_.tile_n) {
      g.b = v + e;
      g.cols = static_cast<int>(std::min<std::int64_t>(gemm_.tile_n, size - e));
      for (std::int64_t c = 0; c < columns_; c += gemm_.tile_m) {
        g.a = s_.scores + c;
        g.c = s_.out + c * size + e;
        g.rows = static_cast<int>(std::min<std::int64_t>(gemm_.tile_m, columns_ - c));
        gemm_.run(g);
      }
    }
  }

  void Finish() {
    const std::int64_t keys = a_.keys[0] + a_.keys[1];
    ForQueries([&](std::int64_t c, Query q) {
      // A query that sees nothing gets nothing.
      const float factor = s_.sum[c] == 0.0f ? 0.0f : 1.0f / s_.sum[c];
      const std::int64_t size = plan_.value_size;
      float* const from = s_.out + c * size;
      for (std::int64_t e = 0; e < size; ++e) from[e] *= factor;
      std::memcpy(a_.out + At(a_.out_strides, q), from,
                  static_cast<std::size_t>(size) * sizeof(float));
      if (a_.scores == nullptr || a_.scores_mode != 3) return;
      float* scores = ScoresOf(q);
      for (std::int64_t j = 0; j < keys; ++j)
        StoreFloat(scores + j, std::exp(LoadFloat(scores + j) - s_.max[c]) * factor);
    });
  }

  const AttentionKernels& kernels_;
  const GemmKernel& gemm_;
  const AttentionPlan& plan_;
  const AttentionArgs& a_;
  const AttentionPart& part_;
  const std::int64_t columns_;
  const Scratch s_;
  std::int64_t first_ = 0, last_ = 0;          // the keys that any query of the tile sees
  std::int64_t all_first_ = 0, all_last_ = 0;  // the keys that all queries see
};

}  // namespace

void RunAttention(const AttentionKernels& kernels, const AttentionPlan& plan,
                  const AttentionArgs& args, const AttentionPart& part, void* scratch) {
  Tile(kernels, plan, args, part, scratch).Run();
}

}  // namespace npurt::kernels
