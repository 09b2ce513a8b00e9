#include "ops/attention_sizes.h"

#include <array>
#include <initializer_list>

#include "absl/strings/str_cat.h"
#include "ops/move.h"

namespace npurt::ops::attention {
namespace {

std::int64_t FloorDiv(std::int64_t a, std::int64_t b) { return a / b; }
bool Differ(std::int64_t a, std::int64_t b) { return a != b; }
bool Differ(const Dim& a, const Dim& b) {
  return a.is_constant() && b.is_constant() && a != b;
}
bool Known(std::int64_t) { return true; }
bool Known(const Dim& dim) { return dim.is_constant(); }
std::int64_t NumberOf(std::int64_t n) { return n; }
std::int64_t NumberOf(const Dim& dim) { return dim.value(); }

absl::Span<const Dim> ShapeOf(const InferContext& c, int i) { return c.shape(i); }
absl::Span<const std::int64_t> ShapeOf(const BindContext& c, int i) { return c.dims(i); }
absl::Span<const std::int64_t> ShapeOf(const RunContext& c, int i) { return c.dims(i); }

template <typename D>
absl::Status WrongShape(const char* name, absl::Span<const D> got, std::initializer_list<D> want) {
  return absl::InvalidArgumentError(absl::StrCat(
      name, " has shape ", ShapeString(got), ", want ",
      ShapeString(absl::Span<const D>(want.begin(), want.size()))));
}

// The dimensions of an operand as [batch, heads, rows, size].
template <typename D>
absl::StatusOr<std::array<D, 4>> Heads(const char* name, absl::Span<const D> dims,
                                       std::size_t rank, std::int64_t heads,
                                       const char* attribute) {
  if (dims.size() != rank || rank < 3 || rank > 4)
    return absl::InvalidArgumentError(absl::StrCat(
        name, " has shape ", ShapeString(dims), ", want q, k and v of rank 3, or all of rank 4"));
  if (rank == 4) return std::array<D, 4>{dims[0], dims[1], dims[2], dims[3]};
  if (heads <= 0 || (Known(dims[2]) && NumberOf(dims[2]) % heads != 0))
    return absl::InvalidArgumentError(absl::StrCat(name, " has shape ", ShapeString(dims),
                                                   ", which does not divide into ", heads,
                                                   " heads (", attribute, ")"));
  return std::array<D, 4>{dims[0], D(heads), dims[1], FloorDiv(dims[2], D(heads))};
}

template <typename D>
absl::Status CheckMask(absl::Span<const D> mask, const Sizes<D>& s, bool grouped) {
  if (mask.empty() || mask.size() > 4)
    return absl::InvalidArgumentError(
        absl::StrCat("attn_mask has shape ", ShapeString(mask), ", want a rank of 1 to 4"));
  const D keys = s.past + s.fresh;
  const D want[4] = {s.batch, s.heads, s.rows, keys};
  for (std::size_t i = 0; i < mask.size(); ++i) {
    const D& got = mask[mask.size() - 1 - i];
    const bool fits = i == 0 ? grouped || !Known(got) || !Known(keys) ||
                                   NumberOf(got) <= NumberOf(keys)
                             : !Differ(got, want[3 - i]) || !Differ(got, D(1));
    if (!fits) return WrongShape("attn_mask", mask, {s.batch, s.heads, s.rows, keys});
  }
  return absl::OkStatus();
}

template <typename D, typename Context>
absl::StatusOr<Sizes<D>> AllSizes(const Context& c, bool grouped) {
  const Attributes& attributes = c.attributes();
  const std::size_t rank = ShapeOf(c, kQ).size();
  const std::int64_t kv_heads = attributes.Int("kv_num_heads");
  NPURT_ASSIGN_OR_RETURN(
      const auto q, Heads<D>("q", ShapeOf(c, kQ), rank, attributes.Int("q_num_heads"),
                             "q_num_heads"));
  NPURT_ASSIGN_OR_RETURN(const auto k,
                         Heads<D>("k", ShapeOf(c, kK), rank, kv_heads, "kv_num_heads"));
  NPURT_ASSIGN_OR_RETURN(const auto v,
                         Heads<D>("v", ShapeOf(c, kV), rank, kv_heads, "kv_num_heads"));
  Sizes<D> s;
  s.apart = rank == 4;
  s.grouped = grouped;
  s.batch = q[0];
  s.heads = q[1];
  s.rows = q[2];
  s.head_size = q[3];
  s.kv_heads = k[1];
  s.fresh = k[2];
  s.value_size = v[3];
  if (Differ(k[0], s.batch) || Differ(k[3], s.head_size))
    return WrongShape<D>("k", k, {s.batch, s.kv_heads, s.fresh, s.head_size});
  if (Differ(v[0], s.batch) || Differ(v[1], s.kv_heads) || Differ(v[2], s.fresh))
    return WrongShape<D>("v", v, {s.batch, s.kv_heads, s.fresh, s.value_size});
  if (Known(s.heads) && Known(s.kv_heads) &&
      (NumberOf(s.kv_heads) == 0 ? NumberOf(s.heads) != 0
                                 : NumberOf(s.heads) % NumberOf(s.kv_heads) != 0))
    return absl::InvalidArgumentError(
        absl::StrCat(NumberOf(s.heads), " heads of q do not share ", NumberOf(s.kv_heads),
                     " heads of k evenly"));
  if (c.has_input(kPastK) != c.has_input(kPastV))
    return absl::InvalidArgumentError("want past_key and past_value, or neither");
  if (c.has_input(kPastK)) {
    const auto past_k = ShapeOf(c, kPastK), past_v = ShapeOf(c, kPastV);
    if (past_k.size() == 4) s.past = past_k[2];
    if (past_k.size() != 4 || Differ(past_k[0], s.batch) || Differ(past_k[1], s.kv_heads) ||
        Differ(past_k[3], s.head_size))
      return WrongShape<D>("past_key", past_k, {s.batch, s.kv_heads, s.past, s.head_size});
    if (past_v.size() != 4 || Differ(past_v[0], s.batch) || Differ(past_v[1], s.kv_heads) ||
        Differ(past_v[2], s.past) || Differ(past_v[3], s.value_size))
      return WrongShape<D>("past_value", past_v, {s.batch, s.kv_heads, s.past, s.value_size});
    if (!grouped && c.has_input(kLengths))
      return absl::InvalidArgumentError("nonpad_kv_seqlen excludes past_key and past_value");
  }
  if (c.has_input(kLengths)) {
    const auto lengths = ShapeOf(c, kLengths);
    D count = 1;
    for (const D& d : lengths) count = count * d;
    if (Differ(count, s.batch) || (!grouped && lengths.size() != 1))
      return WrongShape<D>(grouped ? "seqlens_k" : "nonpad_kv_seqlen", lengths, {s.batch});
  }
  if (grouped) {
    const auto total = ShapeOf(c, kTotal);
    if (total.size() > 1 || (total.size() == 1 && Differ(total[0], D(1))))
      return WrongShape<D>("total_sequence_length", total, {});
  }
  if (c.has_input(kMask))
    NPURT_RETURN_IF_ERROR(CheckMask<D>(ShapeOf(c, kMask), s, grouped));
  if (c.has_input(kSinks)) {
    const auto sinks = ShapeOf(c, kSinks);
    if (sinks.size() != 1 || Differ(sinks[0], s.heads))
      return WrongShape<D>("head_sink", sinks, {s.heads});
  }
  return s;
}

}  // namespace

absl::StatusOr<Sizes<Dim>> SizesOf(const InferContext& context, bool grouped) {
  return AllSizes<Dim>(context, grouped);
}
absl::StatusOr<Sizes<std::int64_t>> SizesOf(const BindContext& context, bool grouped) {
  return AllSizes<std::int64_t>(context, grouped);
}
absl::StatusOr<Sizes<std::int64_t>> SizesOf(const RunContext& context, bool grouped) {
  return AllSizes<std::int64_t>(context, grouped);
}

Sight SightOf(const Attributes& attributes) {
  Sight sight;
  sight.causal = attributes.Int("is_causal") != 0;
  const std::int64_t window = attributes.Int("local_window_size", -1);
  if (window > 0) sight.window = window;
  return sight;
}

absl::StatusOr<Range> RangeOf(const RunContext& run, const Sizes<std::int64_t>& s,
                              const Sight& sight, std::int64_t b) {
  Range r;
  r.fresh = s.fresh;
  r.window = sight.window;
  const std::int64_t length = run.has_input(kLengths) ? IndexAt(run, kLengths, b) : 0;
  if (s.grouped) {
    // The first keys of all: entries of the batch that are shorter have padding at their end.
    const bool first = IndexAt(run, kTotal, 0) == s.fresh;
    r.past = first ? 0 : length + 1 - s.fresh;
    r.valid = length + 1;
    r.offset = r.past + r.fresh - s.rows;
    if (r.past < 0 || r.past > s.past || r.valid < 0 || r.valid > r.past + s.fresh)
      return absl::OutOfRangeError(absl::StrCat("seqlens_k of batch entry ", b, " is ", length,
                                                ", want ", first ? -1 : s.fresh - 1, " to ",
                                                (first ? 0 : s.past) + s.fresh - 1));
    return r;
  }
  r.past = s.past;
  r.valid = s.past + s.fresh;
  r.offset = !sight.causal ? kFar : run.has_input(kLengths) ? length - s.rows : s.past;
  if (!run.has_input(kLengths)) return r;
  if (length < 0 || length > r.valid)
    return absl::OutOfRangeError(absl::StrCat("nonpad_kv_seqlen of batch entry ", b, " is ",
                                              length, ", want 0 to ", r.valid));
  r.valid = length;
  return r;
}

}  // namespace npurt::ops::attention
