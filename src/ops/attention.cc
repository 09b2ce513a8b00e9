// Attention, GroupQueryAttention: y = softmax(cap(scale * q k^T) + mask) v for each head, where heads of q
// in a row share a head of k and v; past keys and values stand before the new ones.
//
// The two differ in how keys are counted. Attention: all keys of all batch entries, or those that
// `nonpad_kv_seqlen` counts. GroupQueryAttention: an entry of the batch has had its own number of
// past keys, `seqlens_k` + 1 with the new ones, in buffers that may be longer; it is always causal.
// Its queries and keys are rotated and its operands apart when they come here: see formats/onnx.
#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/checked_math.h"
#include "kernels/attention/attention.h"
#include "ops/around_axis.h"
#include "ops/attention_sizes.h"
#include "ops/epilogue.h"
#include "ops/move.h"

namespace npurt::ops::attention {
namespace {

absl::Status CheckAttributes(const Attributes& attributes) {
  const std::int64_t mode = attributes.Int("qk_matmul_output_mode");
  if (mode < 0 || mode > 3)
    return absl::InvalidArgumentError(
        absl::StrCat("qk_matmul_output_mode is ", mode, ", want 0, 1, 2 or 3"));
  const std::int64_t precision = attributes.Int("softmax_precision", 1);
  if (!IsDType(static_cast<int>(precision)) || !IsFloat(static_cast<DType>(precision)))
    return absl::InvalidArgumentError(
        absl::StrCat("softmax_precision is ", precision, ", want a type of floats"));
  if (attributes.Float("softcap") < 0)
    return absl::InvalidArgumentError(
        absl::StrCat("softcap is ", attributes.Float("softcap"), ", want 0 or more"));
  if (attributes.Float("scale", 1) < 0)
    return absl::InvalidArgumentError(
        absl::StrCat("scale is ", attributes.Float("scale"), ", want 0 or more"));
  return absl::OkStatus();
}

template <bool kGrouped>
absl::Status Infer(InferContext& context) {
  NPURT_RETURN_IF_ERROR(CheckAttributes(context.attributes()));
  NPURT_ASSIGN_OR_RETURN(const auto s, SizesOf(context, kGrouped));
  SymDims y = {s.batch, s.heads, s.rows, s.value_size};
  if (!s.apart) y = {s.batch, s.rows, s.heads * s.value_size};
  context.set_output(kY, context.dtype(kQ), y);
  Dim keys = s.past + s.fresh;
  if (kGrouped) {
    // The buffers grow if they have to.
    const auto total = context.integers(kTotal);
    keys = total && total->size() == 1 ? Max(s.past, (*total)[0]) : context.RunDim();
  }
  const auto set = [&](int i, DType dtype, SymDims dims) {
    if (context.has_output(i)) context.set_output(i, dtype, std::move(dims));
  };
  set(kPresentK, context.dtype(kK), {s.batch, s.kv_heads, keys, s.head_size});
  set(kPresentV, context.dtype(kV), {s.batch, s.kv_heads, keys, s.value_size});
  set(kScores, context.dtype(kQ), {s.batch, s.heads, s.rows, keys});
  return absl::OkStatus();
}

using kernels::AttentionStrides;

AttentionStrides StridesOf(bool apart, std::int64_t heads, std::int64_t rows, std::int64_t size) {
  if (apart) return {heads * rows * size, rows * size, size};
  return {rows * heads * size, size, heads * size};
}

AttentionStrides MaskStrides(absl::Span<const std::int64_t> dims) {
  std::int64_t strides[4] = {}, at = 1;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const std::int64_t dim = dims[dims.size() - 1 - i];
    strides[i] = dim == 1 ? 0 : at;
    at *= dim;
  }
  return {strides[3], strides[2], strides[1]};
}

float ScaleOf(const Attributes& attributes, std::int64_t head_size) {
  const float standard =
      head_size == 0 ? 1.0f
                     : static_cast<float>(1 / std::sqrt(static_cast<double>(head_size)));
  return attributes.Float("scale", standard);
}

// The rows of present output `i`, of `size` elements each, of one head of one batch entry: past,
// new, and what else the buffer held or zeros.
void CopyPresent(const RunContext& run, const Sizes<std::int64_t>& s, const Range& r, int i,
                 std::int64_t size, std::int64_t b, std::int64_t h) {
  const int past = i == kPresentK ? kPastK : kPastV, fresh = i == kPresentK ? kK : kV;
  const DType dtype = run.output(i).dtype;
  void* const out = run.output(i).data;
  const std::int64_t keys = run.output_dims(i)[2];
  const std::int64_t head = b * s.kv_heads + h, base = head * keys * size;
  if (run.has_input(past) && run.input(past).data != out) {
    const std::int64_t from = head * s.past * size, kept = std::min(s.past, keys);
    CopyElements(dtype, out, base, run.input(past).data, from, r.past * size);
    const std::int64_t rest = r.past + r.fresh;
    if (kept > rest)
      CopyElements(dtype, out, base + rest * size, run.input(past).data, from + rest * size,
                   (kept - rest) * size);
  }
  const AttentionStrides strides = StridesOf(s.apart, s.kv_heads, s.fresh, size);
  const void* const in = run.input(fresh).data;
  const std::int64_t from = b * strides.batch + h * strides.head;
  const std::int64_t to = base + r.past * size, bytes = DTypeBits(dtype) / 8;
  if (strides.row != size) {
    for (std::int64_t row = 0; row < r.fresh; ++row)
      CopyElements(dtype, out, to + row * size, in, from + row * strides.row, size);
  } else if (static_cast<const char*>(in) + from * bytes != static_cast<char*>(out) + to * bytes) {
    CopyElements(dtype, out, to, in, from, r.fresh * size);
  }
  const std::int64_t used = std::max(r.past + r.fresh, s.past);
  if (keys > used) ZeroElements(dtype, out, base + used * size, (keys - used) * size);
}

void CopyPresents(const RunContext& run, const Sizes<std::int64_t>& s, const Range& r,
                  std::int64_t b, std::int64_t h) {
  if (run.has_output(kPresentK)) CopyPresent(run, s, r, kPresentK, s.head_size, b, h);
  if (run.has_output(kPresentV)) CopyPresent(run, s, r, kPresentV, s.value_size, b, h);
}

// The past and the new keys must fit into what Infer said.
template <typename Context>
absl::Status CheckPresent(const Context& c, const Sizes<std::int64_t>& s, const Range& r) {
  for (int i : {kPresentK, kPresentV, kScores})
    if (c.has_output(i) && c.output_dims(i)[i == kScores ? 3 : 2] < r.past + s.fresh)
      return absl::InvalidArgumentError(
          absl::StrCat("total_sequence_length leaves room for ",
                       c.output_dims(i)[i == kScores ? 3 : 2], " keys, want ", r.past + s.fresh));
  return absl::OkStatus();
}

// One query against all keys it sees.
class ReferenceRow {
 public:
  ReferenceRow(const RunContext& run, const Sizes<std::int64_t>& s)
      : run_(run), s_(s),
        k_(StridesOf(s.apart, s.kv_heads, s.fresh, s.head_size)),
        v_(StridesOf(s.apart, s.kv_heads, s.fresh, s.value_size)),
        q_(StridesOf(s.apart, s.heads, s.rows, s.head_size)),
        y_(StridesOf(s.apart, s.heads, s.rows, s.value_size)),
        scale_(static_cast<double>(ScaleOf(run.attributes(), s.head_size))),
        cap_(static_cast<double>(run.attributes().Float("softcap"))),
        mode_(run.has_output(kScores) ? run.attributes().Int("qk_matmul_output_mode") : -1) {
    if (run.has_input(kMask)) mask_ = MaskStrides(run.dims(kMask));
  }

  void Run(const Range& r, std::int64_t b, std::int64_t h, std::int64_t row) {
    const std::int64_t keys = r.past + r.fresh, kv = h / (s_.heads / s_.kv_heads);
    const std::int64_t last = std::clamp<std::int64_t>(row + r.offset + 1, 0, r.valid);
    const std::int64_t first = std::clamp<std::int64_t>(row + r.offset + 1 - r.window, 0, last);
    scores_.assign(static_cast<std::size_t>(keys), 0);
    const std::int64_t out =
        mode_ < 0 ? 0 : ((b * s_.heads + h) * s_.rows + row) * run_.output_dims(kScores)[3];
    const auto keep = [&](int mode, std::int64_t j) {
      if (mode_ == mode) StoreReal(run_, kScores, out + j, scores_[static_cast<std::size_t>(j)]);
    };
    double max = -std::numeric_limits<double>::infinity(), sum = 0;
    if (run_.has_input(kSinks)) {
      max = RealAt(run_, kSinks, h);
      sum = 1;
    }
    for (std::int64_t j = 0; j < keys; ++j) {
      double& score = scores_[static_cast<std::size_t>(j)];
      const bool seen = j >= first && j < last;
      if (seen || mode_ == 0 || mode_ == 1) score = Product(r, b, h, kv, row, j);
      keep(0, j);
      if (cap_ != 0) score = cap_ * std::tanh(score / cap_);
      keep(1, j);
      score = seen ? Masked(score, b, h, row, j) : -std::numeric_limits<double>::infinity();
      keep(2, j);
      if (!(score <= max)) sum *= std::exp(max - score), max = score;
    }
    const double base = std::isinf(max) && max < 0 ? 0 : max;  // nothing is seen
    for (double& score : scores_) {
      score = std::exp(score - base);
      sum += score;
    }
    for (std::int64_t j = 0; j < keys; ++j) {
      double& score = scores_[static_cast<std::size_t>(j)];
      if (sum != 0) score /= sum;
      keep(3, j);
    }
    for (std::int64_t e = 0; e < s_.value_size; ++e) {
      double y = 0;
      for (std::int64_t j = first; j < last; ++j)
        y += scores_[static_cast<std::size_t>(j)] *
             (j < r.past ? RealAt(run_, kPastV, PastAt(b, kv, j, s_.value_size) + e)
                         : RealAt(run_, kV, At(v_, b, kv, j - r.past) + e));
      StoreReal(run_, kY, At(y_, b, h, row) + e, y);
    }
  }

 private:
  static std::int64_t At(const AttentionStrides& strides, std::int64_t b, std::int64_t h,
                         std::int64_t row) {
    return b * strides.batch + h * strides.head + row * strides.row;
  }
  std::int64_t PastAt(std::int64_t b, std::int64_t h, std::int64_t j, std::int64_t size) const {
    return ((b * s_.kv_heads + h) * s_.past + j) * size;
  }
  double Product(const Range& r, std::int64_t b, std::int64_t h, std::int64_t kv,
                 std::int64_t row, std::int64_t j) const {
    double sum = 0;
    for (std::int64_t e = 0; e < s_.head_size; ++e)
      sum += RealAt(run_, kQ, At(q_, b, h, row) + e) *
             (j < r.past ? RealAt(run_, kPastK, PastAt(b, kv, j, s_.head_size) + e)
                         : RealAt(run_, kK, At(k_, b, kv, j - r.past) + e));
    return sum * scale_;
  }
  double Masked(double score, std::int64_t b, std::int64_t h, std::int64_t row,
                std::int64_t j) const {
    if (!run_.has_input(kMask)) return score;
    if (j >= run_.dims(kMask).back()) return -std::numeric_limits<double>::infinity();
    const double mask = RealAt(run_, kMask, At(mask_, b, h, row) + j);
    if (run_.dtype(kMask) != DType::kBool) return score + mask;
    return mask != 0 ? score : -std::numeric_limits<double>::infinity();
  }

  const RunContext& run_;
  const Sizes<std::int64_t>& s_;
  const AttentionStrides k_, v_, q_, y_;
  AttentionStrides mask_;
  const double scale_, cap_;
  const std::int64_t mode_;
  std::vector<double> scores_;
};

template <bool kGrouped>
absl::Status Reference(const RunContext& run, std::int64_t, void*) {
  NPURT_ASSIGN_OR_RETURN(const auto s, SizesOf(run, kGrouped));
  const Sight sight = SightOf(run.attributes());
  ReferenceRow reference(run, s);
  Poller poller(run);
  for (std::int64_t b = 0; b < s.batch; ++b) {
    NPURT_ASSIGN_OR_RETURN(const Range r, RangeOf(run, s, sight, b));
    NPURT_RETURN_IF_ERROR(CheckPresent(run, s, r));
    for (std::int64_t h = 0; h < s.heads; ++h)
      for (std::int64_t row = 0; row < s.rows; ++row) {
        reference.Run(r, b, h, row);
        NPURT_RETURN_IF_ERROR(
            poller.Count((r.past + r.fresh) * (s.head_size + s.value_size + 1)));
      }
    for (std::int64_t h = 0; h < s.kv_heads; ++h) CopyPresents(run, s, r, b, h);
  }
  return absl::OkStatus();
}

struct PreparedAttention final : Prepared {
  kernels::AttentionKernels kernels;
};

absl::StatusOr<std::unique_ptr<Prepared>> Prepare(PrepareContext& context) {
  for (int i = 0; i < context.input_count(); ++i) {
    if (!context.has_input(i) || i == kLengths || i == kTotal) continue;
    const DType dtype = context.type(i).dtype;
    if (dtype != DType::kF32 && !(i == kMask && dtype == DType::kBool)) return nullptr;
  }
  auto prepared = std::make_unique<PreparedAttention>();
  prepared->kernels = kernels::SelectAttention(KernelIsa(context));
  prepared->kernel = prepared->kernels.attention->name;
  return prepared;
}

struct Bound {
  Sizes<std::int64_t> sizes;
  Sight sight;
  float scale, softcap;
  int scores_mode;
  kernels::AttentionPlan plan;
  std::int64_t parts, parts_per_tile;
};

// The parts of the product, and then one per head of k that copies past and new to present.
template <bool kGrouped>
absl::Status Bind(BindContext& bind) {
  const auto* prepared = bind.prepared<PreparedAttention>();
  NPURT_ASSIGN_OR_RETURN(const auto s, SizesOf(bind, kGrouped));
  auto* bound = bind.New<Bound>();
  bound->sizes = s;
  bound->sight = SightOf(bind.attributes());
  bound->scale = ScaleOf(bind.attributes(), s.head_size);
  bound->softcap = bind.attributes().Float("softcap");
  bound->scores_mode = static_cast<int>(bind.attributes().Int("qk_matmul_output_mode"));
  bound->plan = kernels::PlanAttention(
      prepared->kernels, s.batch, s.kv_heads, s.kv_heads == 0 ? 0 : s.heads / s.kv_heads, s.rows,
      s.past + s.fresh, s.head_size, s.value_size);
  const bool present = bind.has_output(kPresentK) || bind.has_output(kPresentV);
  bound->parts = bound->plan.tiles + (present ? s.batch * s.kv_heads : 0);
  // A tile is worth about a microsecond.
  const double cost = CostOf(bound->plan.tile_flops, bound->plan.tile_bytes);
  bound->parts_per_tile = static_cast<std::int64_t>(std::clamp(1000 / (cost + 1), 1.0, 1000.0));
  bind.SetTiles(CeilDiv(bound->parts, bound->parts_per_tile),
                cost * static_cast<double>(bound->parts_per_tile));
  bind.SetScratch(bound->plan.scratch_bytes);
  for (int i : {kPresentK, kPresentV}) {
    if (!bind.has_output(i)) continue;
    const int past = i == kPresentK ? kPastK : kPastV, fresh = i == kPresentK ? kK : kV;
    const bool one = s.batch * s.kv_heads == 1;
    if (kGrouped) {
      if (bind.has_input(past) && bind.output_count_of(i) == bind.count(past))
        bind.MayOverwrite(i, past);
    } else if (s.past == 0 && (s.apart || one)) {
      bind.MayView(i, fresh, 0);
    } else if (one) {
      bind.MayPlaceInside(past, i, 0);
      bind.MayPlaceInside(fresh, i, static_cast<std::size_t>(bind.count(past)) * sizeof(float));
    }
  }
  return absl::OkStatus();
}

// All that is the same for every batch entry.
kernels::AttentionArgs ArgsOf(const RunContext& run, const Bound& bound) {
  const Sizes<std::int64_t>& s = bound.sizes;
  kernels::AttentionArgs a = {};
  a.q = run.in<float>(kQ);
  a.q_strides = StridesOf(s.apart, s.heads, s.rows, s.head_size);
  a.out = run.out<float>(kY);
  a.out_strides = StridesOf(s.apart, s.heads, s.rows, s.value_size);
  if (run.has_input(kPastK)) {
    a.k[0] = run.in<float>(kPastK);
    a.v[0] = run.in<float>(kPastV);
  }
  a.k_strides[0] = StridesOf(true, s.kv_heads, s.past, s.head_size);
  a.v_strides[0] = StridesOf(true, s.kv_heads, s.past, s.value_size);
  a.k[1] = run.in<float>(kK);
  a.v[1] = run.in<float>(kV);
  a.k_strides[1] = StridesOf(s.apart, s.kv_heads, s.fresh, s.head_size);
  a.v_strides[1] = StridesOf(s.apart, s.kv_heads, s.fresh, s.value_size);
  a.scale = bound.scale;
  a.softcap = bound.softcap;
  if (run.has_input(kMask)) {
    a.mask_kind = run.dtype(kMask) == DType::kBool ? kernels::AttentionMask::kBool
                                                   : kernels::AttentionMask::kAdded;
    a.mask = run.input(kMask).data;
    a.mask_strides = MaskStrides(run.dims(kMask));
    a.mask_keys = run.dims(kMask).back();
  }
  if (run.has_input(kSinks)) a.sinks = run.in<float>(kSinks);
  if (run.has_output(kScores)) {
    a.scores = run.out<float>(kScores);
    a.scores_mode = bound.scores_mode;
  }
  return a;
}

absl::Status Run(const RunContext& run, std::int64_t tile, void* scratch) {
  const auto* prepared = run.prepared<PreparedAttention>();
  const auto* bound = run.bound<Bound>();
  const Sizes<std::int64_t>& s = bound->sizes;
  const kernels::AttentionPlan& plan = bound->plan;
  kernels::AttentionArgs a = ArgsOf(run, *bound);
  const std::int64_t last = std::min(bound->parts, (tile + 1) * bound->parts_per_tile);
  for (std::int64_t i = tile * bound->parts_per_tile; i < last; ++i) {
    const bool copies = i >= plan.tiles;
    kernels::AttentionPart part = {};
    if (copies) {
      part.batch = (i - plan.tiles) / s.kv_heads;
      part.kv_head = (i - plan.tiles) % s.kv_heads;
    } else {
      part = kernels::AttentionPartOf(plan, i);
    }
    NPURT_ASSIGN_OR_RETURN(const Range r, RangeOf(run, s, bound->sight, part.batch));
    NPURT_RETURN_IF_ERROR(CheckPresent(run, s, r));
    if (copies) {
      CopyPresents(run, s, r, part.batch, part.kv_head);
      continue;
    }
    a.keys[0] = r.past;
    a.keys[1] = r.fresh;
    a.valid = r.valid;
    a.offset = r.offset;
    a.window = r.window;
    kernels::RunAttention(prepared->kernels, plan, a, part, scratch);
  }
  return absl::OkStatus();
}

}  // namespace

extern constexpr OpDef kOps[] = {
    {
        .name = "Attention",
        .inputs = {{"q", "T1"},
                   {"k", "T1"},
                   {"v", "T2"},
                   {"?attn_mask", "U"},
                   {"?past_key", "T1"},
                   {"?past_value", "T2"},
                   {"?nonpad_kv_seqlen", "int64"}},
        .outputs = {{"y", "T1"},
                    {"?present_key", "T1"},
                    {"?present_value", "T2"},
                    {"?qk_matmul_output", "T1"}},
        .types = {{"T1", kFloats}, {"T2", kFloats}, {"U", kPlainTypes}},
        .attributes = {{"is_causal", AttrKind::kInt},
                       {"kv_num_heads", AttrKind::kInt},
                       {"q_num_heads", AttrKind::kInt},
                       {"qk_matmul_output_mode", AttrKind::kInt},
                       {"scale", AttrKind::kFloat},
                       {"softcap", AttrKind::kFloat},
                       {"softmax_precision", AttrKind::kInt}},
        .infer = Infer<false>,
        .reference = Reference<false>,
        .prepare = Prepare,
        .bind = Bind<false>,
        .run = Run,
    },
    {
        .name = "GroupQueryAttention",
        .inputs = {{"q", "T"},
                   {"k", "T"},
                   {"v", "T"},
                   {"?attention_bias", "T"},
                   {"?past_key", "T"},
                   {"?past_value", "T"},
                   {"seqlens_k", "int32"},
                   {"total_sequence_length", "int32"},
                   {"?head_sink", "T"}},
        .outputs = {{"y", "T"}, {"?present_key", "T"}, {"?present_value", "T"}},
        .types = {{"T", kFloats}},
        .attributes = {{"kv_num_heads", AttrKind::kInt},
                       {"local_window_size", AttrKind::kInt},
                       {"q_num_heads", AttrKind::kInt},
                       {"scale", AttrKind::kFloat},
                       {"softcap", AttrKind::kFloat}},
        .infer = Infer<true>,
        .reference = Reference<true>,
        .prepare = Prepare,
        .bind = Bind<true>,
        .run = Run,
    },
};
extern constexpr int kOpCount = static_cast<int>(sizeof kOps / sizeof kOps[0]);

}  // namespace npurt::ops::attention
