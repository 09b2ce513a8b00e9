// Attention operators of other domains, in the terms of Attention, GroupQueryAttention and
// RotaryEmbedding.
#include "absl/strings/str_cat.h"
#include "formats/onnx/adapters.h"

namespace npurt::formats::onnx::adapters {

using graph::kNone;
using graph::ValueId;

namespace {

Attributes Axis(std::int64_t axis) { return MakeAttributes({{"axis", axis}}); }
Attributes Parts(std::int64_t axis, std::int64_t count) {
  return MakeAttributes({{"axis", axis}, {"num_outputs", count}});
}
Attributes To(DType dtype) { return MakeAttributes({{"to", static_cast<std::int64_t>(dtype)}}); }

absl::Status RefuseInput(Lowering& l, std::size_t i, const char* name) {
  return l.has_input(i) ? absl::UnimplementedError(name) : absl::OkStatus();
}

absl::Status RefuseAttribute(Lowering& l, const char* name, std::int64_t plain) {
  if (l.node->attributes.Int(name, plain) == plain) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat("attribute '", name, "'"));
}

bool Wanted(const Lowering& l, std::size_t i) {
  return i < l.node->outputs.size() && !l.node->outputs[i].empty();
}

void SetInputs(Lowering& l, std::vector<ValueId> inputs) {
  while (!inputs.empty() && inputs.back() == kNone) inputs.pop_back();
  l.node->inputs = std::move(inputs);
}

absl::StatusOr<ValueId> Reshaped(Lowering& l, ValueId value, absl::Span<const std::int64_t> dims) {
  NPURT_ASSIGN_OR_RETURN(const ValueId shape, l.Ints("shape", dims));
  return l.Add("Reshape", {value, shape});
}

// [batch, rows, heads, size] → [batch, heads, rows, size], and back.
absl::StatusOr<ValueId> Exchanged(Lowering& l, ValueId value) {
  return l.Add("Transpose", {value},
               MakeAttributes({{"perm", std::vector<std::int64_t>{0, 2, 1, 3}}}));
}

// Three parts of the last dimension: as large as `sizes`, or equal.
absl::StatusOr<std::vector<ValueId>> Thirds(Lowering& l, ValueId value,
                                            absl::Span<const std::int64_t> sizes) {
  if (sizes.empty()) return l.AddMany("Split", {value}, 3, Parts(-1, 3));
  NPURT_ASSIGN_OR_RETURN(const ValueId parts, l.Ints("sizes", sizes));
  return l.AddMany("Split", {value, parts}, 3, Axis(-1));
}

// Parts `axis` of a packed [batch, rows, heads, count, size], each as [batch, rows, heads * size].
absl::Status Unpack(Lowering& l, ValueId packed, absl::Span<ValueId* const> parts) {
  NPURT_ASSIGN_OR_RETURN(
      const std::vector<ValueId> apart,
      l.AddMany("Split", {packed}, static_cast<int>(parts.size()),
                Parts(3, static_cast<std::int64_t>(parts.size()))));
  for (std::size_t i = 0; i < parts.size(); ++i) {
    NPURT_ASSIGN_OR_RETURN(*parts[i], Reshaped(l, apart[i], {0, 0, -1}));
  }
  return absl::OkStatus();
}

// What is added to the scores: input `bias`, and the filter value where input `mask`, integers that let
// a key through unless 0, hides a key. A mask is [batch, keys], [batch, rows, keys] or
// the number of keys, [batch]. `keys` is their number in all, int64[1].
class Mask {
 public:
  Mask(Lowering& l, std::size_t mask, std::size_t bias) : l_(l), mask_(mask), bias_(bias) {}

  bool needs_keys() const { return l_.rank(mask_) == 1; }

  absl::StatusOr<ValueId> Build(DType dtype, ValueId batch_first, ValueId keys) {
    if (!l_.has_input(mask_)) return l_.input(bias_);
    const int rank = l_.rank(mask_);
    ValueId shown;
    if (rank == 1) {
      NPURT_ASSIGN_OR_RETURN(shown, Counted(batch_first, keys));
    } else if (rank == 2 || rank == 3) {
      NPURT_ASSIGN_OR_RETURN(shown, l_.Add("Cast", {l_.input(mask_)}, To(DType::kBool)));
    } else {
      return absl::UnimplementedError("a mask that is not of rank 1, 2 or 3");
    }
    NPURT_ASSIGN_OR_RETURN(const ValueId axes,
                           rank == 3 ? l_.Ints("axes", {1}) : l_.Ints("axes", {1, 2}));
    NPURT_ASSIGN_OR_RETURN(shown, l_.Add("Unsqueeze", {shown, axes}));
    NPURT_ASSIGN_OR_RETURN(const ValueId zero, l_.Scalar("zero", dtype, 0));
    NPURT_ASSIGN_OR_RETURN(
        const ValueId filter,
        l_.Scalar("filter", dtype, l_.node->attributes.Float("mask_filter_value", -10000)));
    NPURT_ASSIGN_OR_RETURN(const ValueId added, l_.Add("Where", {shown, zero, filter}));
    return l_.has_input(bias_) ? l_.Add("Add", {added, l_.input(bias_)}) : added;
  }

 private:
  // [batch, keys]: key < count
  absl::StatusOr<ValueId> Counted(ValueId batch_first, ValueId keys) {
    const ValueType& like = l_.graph->value(batch_first).type;
    const Dim count = l_.type(mask_).dims[0];
    if (!like.has_rank || like.dims.empty() ||
        (count != like.dims[0] && (count.is_constant() || like.dims[0].is_constant())))
      return absl::UnimplementedError("a mask of rank 1 that is no count per batch entry");
    NPURT_ASSIGN_OR_RETURN(const ValueId zero, l_.Int("start", 0));
    NPURT_ASSIGN_OR_RETURN(const ValueId one, l_.Int("step", 1));
    NPURT_ASSIGN_OR_RETURN(const ValueId first, l_.Ints("first", {0}));
    NPURT_ASSIGN_OR_RETURN(const ValueId limit, l_.Add("Squeeze", {keys, first}));
    NPURT_ASSIGN_OR_RETURN(const ValueId places, l_.Add("Range", {zero, limit, one}));
    NPURT_ASSIGN_OR_RETURN(const ValueId counts,
                           l_.Add("Cast", {l_.input(mask_)}, To(DType::kI64)));
    NPURT_ASSIGN_OR_RETURN(const ValueId across, l_.Ints("across", {1}));
    NPURT_ASSIGN_OR_RETURN(const ValueId limits, l_.Add("Unsqueeze", {counts, across}));
    return l_.Add("Less", {places, limits});
  }

  Lowering& l_;
  const std::size_t mask_, bias_;
};

// The length of `value` along `axis`, int64[1].
absl::StatusOr<ValueId> LengthOf(Lowering& l, ValueId value, std::int64_t axis) {
  return l.Add("Shape", {value}, MakeAttributes({{"start", axis}, {"end", axis + 1}}));
}

absl::StatusOr<ValueId> AllKeys(Lowering& l, ValueId k, std::int64_t axis, ValueId past) {
  NPURT_ASSIGN_OR_RETURN(const ValueId fresh, LengthOf(l, k, axis));
  if (past == kNone) return fresh;
  NPURT_ASSIGN_OR_RETURN(const ValueId before, LengthOf(l, past, 2));
  return l.Add("Add", {before, fresh});
}

absl::StatusOr<Attributes> AttentionAttributes(Lowering& l) {
  const Attributes& from = l.node->attributes;
  const std::int64_t heads = from.Int("num_heads");
  if (heads <= 0) return absl::InvalidArgumentError("num_heads is missing or not positive");
  Attributes attributes =
      MakeAttributes({{"q_num_heads", heads}, {"kv_num_heads", from.Int("kv_num_heads", heads)}});
  if (from.Float("scale") != 0) attributes.Set("scale", from.Float("scale"));
  if (from.Int("unidirectional") != 0) attributes.Set("is_causal", std::int64_t{1});
  if (from.Float("softcap") != 0) attributes.Set("softcap", from.Float("softcap"));
  return attributes;
}

}  // namespace

// Inputs: x, weights and bias of the three projections, mask, past [2, …], bias of the scores. Output 1
// is both presents.
absl::Status MicrosoftAttention(Lowering& l) {
  NPURT_RETURN_IF_ERROR(RefuseAttribute(l, "do_rotary", 0));
  NPURT_RETURN_IF_ERROR(RefuseAttribute(l, "past_present_share_buffer", 0));
  NPURT_RETURN_IF_ERROR(RefuseInput(l, 6, "past_sequence_length"));
  if (!l.has_input(0) || !l.has_input(1)) return absl::InvalidArgumentError("want two inputs");
  NPURT_ASSIGN_OR_RETURN(const Attributes attributes, AttentionAttributes(l));
  NPURT_ASSIGN_OR_RETURN(ValueId product, l.Add("MatMul", {l.input(0), l.input(1)}));
  if (l.has_input(2)) {
    NPURT_ASSIGN_OR_RETURN(product, l.Add("Add", {product, l.input(2)}));
  }
  const absl::Span<const std::int64_t> sizes = l.node->attributes.Ints("qkv_hidden_sizes");
  if (!sizes.empty() && sizes.size() != 3)
    return absl::InvalidArgumentError("want three qkv_hidden_sizes");
  NPURT_ASSIGN_OR_RETURN(const std::vector<ValueId> qkv, Thirds(l, product, sizes));
  NPURT_ASSIGN_OR_RETURN(const ValueId first, l.Ints("axes", {0}));
  ValueId past[2] = {kNone, kNone};
  if (l.has_input(4)) {
    NPURT_ASSIGN_OR_RETURN(const std::vector<ValueId> parts,
                           l.AddMany("Split", {l.input(4)}, 2, Parts(0, 2)));
    for (int i = 0; i < 2; ++i) {
      NPURT_ASSIGN_OR_RETURN(past[i], l.Add("Squeeze", {parts[static_cast<std::size_t>(i)], first}));
    }
  }
  Mask mask(l, 3, 5);
  ValueId keys = kNone;
  if (mask.needs_keys()) {
    NPURT_ASSIGN_OR_RETURN(keys, AllKeys(l, qkv[1], 1, past[0]));
  }
  NPURT_ASSIGN_OR_RETURN(const ValueId added, mask.Build(l.type(0).dtype, l.input(0), keys));
  const std::vector<ValueId> inputs = {qkv[0], qkv[1], qkv[2], added, past[0], past[1]};
  if (!Wanted(l, 1)) {
    SetInputs(l, inputs);
    l.node->attributes = attributes;
    return absl::OkStatus();
  }
  NPURT_ASSIGN_OR_RETURN(const std::vector<ValueId> outputs,
                         l.AddMany("Attention", inputs, 3, attributes));
  NPURT_ASSIGN_OR_RETURN(const ValueId present_k, l.Add("Unsqueeze", {outputs[1], first}));
  NPURT_ASSIGN_OR_RETURN(const ValueId present_v, l.Add("Unsqueeze", {outputs[2], first}));
  NPURT_RETURN_IF_ERROR(l.Finish(1, "Concat", {present_k, present_v}, Axis(0)));
  return l.Finish(0, "Identity", {outputs[0]});
}

// Inputs: q, k, v (packed in one or two, or k and v apart by heads as an encoder left them), bias of the
// three, mask, bias of the scores, past k and v.
absl::Status MultiHeadAttention(Lowering& l) {
  NPURT_RETURN_IF_ERROR(RefuseInput(l, 8, "past_sequence_length"));
  NPURT_RETURN_IF_ERROR(RefuseInput(l, 9, "cache_indirection"));
  if (Wanted(l, 3)) return absl::UnimplementedError("the scores as an output");
  if (!l.has_input(0)) return absl::InvalidArgumentError("query is missing");
  NPURT_ASSIGN_OR_RETURN(Attributes attributes, AttentionAttributes(l));
  const std::int64_t heads = attributes.Int("q_num_heads");
  ValueId q = l.input(0), k = l.input(1), v = l.input(2);
  if (l.rank(0) == 5) {
    ValueId* const parts[] = {&q, &k, &v};
    NPURT_RETURN_IF_ERROR(Unpack(l, l.input(0), parts));
  } else if (l.rank(1) == 5) {
    ValueId* const parts[] = {&k, &v};
    NPURT_RETURN_IF_ERROR(Unpack(l, l.input(1), parts));
  }
  if (k == kNone || v == kNone) return absl::UnimplementedError("packed operands of this rank");
  const bool apart = l.rank(1) == 4;
  if (l.has_input(3)) {
    const ValueType& type = l.graph->value(q).type;
    std::vector<std::int64_t> sizes;
    if (type.has_rank && type.dims.size() == 3 && type.dims[2].is_constant() && l.rank(3) == 1 &&
        l.type(3).dims[0].is_constant()) {
      const std::int64_t hidden = type.dims[2].value(), all = l.type(3).dims[0].value();
      if (all < 2 * hidden) return absl::InvalidArgumentError("bias is shorter than q and k");
      sizes = {hidden, hidden, all - 2 * hidden};
    }
    NPURT_ASSIGN_OR_RETURN(const std::vector<ValueId> biases, Thirds(l, l.input(3), sizes));
    NPURT_ASSIGN_OR_RETURN(q, l.Add("Add", {q, biases[0]}));
    if (!apart) {  // else an earlier node has added them
      NPURT_ASSIGN_OR_RETURN(k, l.Add("Add", {k, biases[1]}));
      NPURT_ASSIGN_OR_RETURN(v, l.Add("Add", {v, biases[2]}));
    }
  }
  Mask mask(l, 4, 5);
  ValueId keys = kNone;
  if (mask.needs_keys()) {
    NPURT_ASSIGN_OR_RETURN(keys, AllKeys(l, k, apart ? 2 : 1, l.input(6)));
  }
  NPURT_ASSIGN_OR_RETURN(const ValueId added, mask.Build(l.type(0).dtype, l.input(0), keys));
  if (!apart) {
    SetInputs(l, {q, k, v, added, l.input(6), l.input(7)});
    l.node->attributes = std::move(attributes);
    return absl::OkStatus();
  }
  if (Wanted(l, 1) || Wanted(l, 2)) return absl::UnimplementedError("presents of such keys");
  NPURT_ASSIGN_OR_RETURN(q, Reshaped(l, q, {0, 0, heads, -1}));
  NPURT_ASSIGN_OR_RETURN(q, Exchanged(l, q));
  NPURT_ASSIGN_OR_RETURN(ValueId y, l.Add("Attention", {q, k, v, added}, attributes));
  NPURT_ASSIGN_OR_RETURN(y, Exchanged(l, y));
  NPURT_ASSIGN_OR_RETURN(const ValueId shape, l.Ints("rows", {0, 0, -1}));
  return l.Finish(0, "Reshape", {y, shape});
}

namespace {

// The node itself, as `op`.
absl::Status FinishAll(Lowering& l, const char* op, std::vector<ValueId> inputs,
                       Attributes attributes) {
  graph::NodeSpec spec;
  spec.op = op;
  spec.name = l.node->name;
  spec.inputs = std::move(inputs);
  spec.outputs = l.node->outputs;
  spec.attributes = std::move(attributes);
  NPURT_ASSIGN_OR_RETURN(const graph::NodeId id, l.graph->AddNode(std::move(spec)));
  l.results = l.graph->node(id).outputs;
  return absl::OkStatus();
}

}  // namespace

// The inputs of MultiHeadAttention in another order, for one row of q; the first past_sequence_length
// rows of past, a buffer that present shares, are in use.
absl::Status DecoderMaskedMultiHeadAttention(Lowering& l) {
  NPURT_RETURN_IF_ERROR(RefuseInput(l, 9, "cache_indirection"));
  const ValueId used = l.input(7);
  const bool shared = l.node->attributes.Int("past_present_share_buffer") != 0 && l.has_input(5);
  SetInputs(l, {l.input(0), l.input(1), l.input(2), l.input(10), l.input(3), l.input(4),
                l.input(5), l.input(6)});
  if (!shared) return MultiHeadAttention(l);
  if (used == kNone) return absl::InvalidArgumentError("past_sequence_length is missing");
  if (l.rank(4) == 1) return absl::UnimplementedError("a mask of rank 1 of a shared buffer");
  NPURT_RETURN_IF_ERROR(MultiHeadAttention(l));
  if (!l.results.empty()) return absl::UnimplementedError("a shared buffer of such keys");
  NPURT_ASSIGN_OR_RETURN(const ValueId batch, LengthOf(l, l.input(0), 0));
  NPURT_ASSIGN_OR_RETURN(const ValueId one, l.Ints("one", {1}));
  NPURT_ASSIGN_OR_RETURN(const ValueId flat, l.Add("Reshape", {used, one}));
  NPURT_ASSIGN_OR_RETURN(const ValueId before, l.Add("Cast", {flat}, To(DType::kI32)));
  NPURT_ASSIGN_OR_RETURN(const ValueId lengths, l.Add("Expand", {before, batch}));
  NPURT_ASSIGN_OR_RETURN(const ValueId step, l.Scalar("step", DType::kI32, 1));
  NPURT_ASSIGN_OR_RETURN(const ValueId total, l.Add("Add", {before, step}));
  std::vector<ValueId> inputs = l.node->inputs;
  inputs.resize(6, kNone);
  inputs.push_back(lengths);
  inputs.push_back(total);
  return FinishAll(l, "GroupQueryAttention", std::move(inputs), l.node->attributes);
}

namespace {

// The size of a head of q, k and v in one operand [batch, rows, (heads + 2 * kv_heads) * size].
absl::StatusOr<std::int64_t> PackedHeadSize(Lowering& l, std::int64_t heads,
                                            std::int64_t kv_heads) {
  const auto known = [&](std::size_t i, int rank, std::size_t axis, std::int64_t* value) {
    if (l.rank(i) != rank || !l.type(i).dims[axis].is_constant()) return false;
    *value = l.type(i).dims[axis].value();
    return true;
  };
  std::int64_t n;
  if (known(3, 4, 3, &n)) return n;
  if (known(0, 3, 2, &n) && n % (heads + 2 * kv_heads) == 0) return n / (heads + 2 * kv_heads);
  return absl::UnimplementedError("packed operands whose heads have no known size");
}

// Each head of `value` normalised by itself.
absl::StatusOr<ValueId> HeadNorm(Lowering& l, ValueId value, std::size_t weight,
                                 std::int64_t heads) {
  if (!l.has_input(weight)) return value;
  NPURT_ASSIGN_OR_RETURN(const ValueId apart, Reshaped(l, value, {0, 0, heads, -1}));
  NPURT_ASSIGN_OR_RETURN(
      const ValueId scaled,
      l.Add("RMSNormalization", {apart, l.input(weight)},
            MakeAttributes({{"axis", std::int64_t{-1}},
                            {"epsilon", l.node->attributes.Float("qk_norm_epsilon", 1e-6f)}})));
  return Reshaped(l, scaled, {0, 0, -1});
}

// How many elements of a head the caches rotate; 0: all.
std::int64_t RotatedSize(const Lowering& l) {
  return l.rank(7) == 2 && l.type(7).dims[1].is_constant() ? 2 * l.type(7).dims[1].value() : 0;
}

// The position of the first new row of each batch entry: seqlens_k + 1 - rows, but 0 where padding
// stands at the end of a prompt.
absl::StatusOr<ValueId> FirstPositions(Lowering& l) {
  NPURT_ASSIGN_OR_RETURN(const ValueId rows, LengthOf(l, l.input(0), 1));
  NPURT_ASSIGN_OR_RETURN(const ValueId last, l.Add("Cast", {l.input(5)}, To(DType::kI64)));
  NPURT_ASSIGN_OR_RETURN(const ValueId one, l.Ints("one", {1}));
  NPURT_ASSIGN_OR_RETURN(const ValueId zero, l.Ints("zero", {0}));
  NPURT_ASSIGN_OR_RETURN(const ValueId back, l.Add("Sub", {one, rows}));
  NPURT_ASSIGN_OR_RETURN(const ValueId first, l.Add("Add", {last, back}));
  return l.Add("Max", {first, zero});
}

}  // namespace

// Inputs: q, k, v (or packed in one), past k and v, seqlens_k, total_sequence_length, caches of
// cosines and sines, positions, bias of the scores, sinks, scales of a quantised cache, norms of q and k.
absl::Status GroupQueryAttention(Lowering& l) {
  for (const char* name : {"sliding_window_cache", "qk_output", "kv_cache_bit_width"})
    NPURT_RETURN_IF_ERROR(RefuseAttribute(l, name, 0));
  NPURT_RETURN_IF_ERROR(RefuseAttribute(l, "causal", 1));
  NPURT_RETURN_IF_ERROR(RefuseInput(l, 12, "k_scale"));
  NPURT_RETURN_IF_ERROR(RefuseInput(l, 13, "v_scale"));
  for (std::size_t i : {0, 5, 6})
    if (!l.has_input(i)) return absl::InvalidArgumentError(absl::StrCat("input ", i, " is missing"));
  const Attributes& from = l.node->attributes;
  NPURT_ASSIGN_OR_RETURN(Attributes attributes, AttentionAttributes(l));
  const std::int64_t heads = attributes.Int("q_num_heads"),
                     kv_heads = attributes.Int("kv_num_heads");
  if (kv_heads <= 0 || heads > 1'000'000 || kv_heads > heads)
    return absl::InvalidArgumentError("num_heads and kv_num_heads do not fit");
  if (from.Has("local_window_size"))
    attributes.Set("local_window_size", from.Int("local_window_size"));

  ValueId q = l.input(0), k = l.input(1), v = l.input(2);
  if (k == kNone) {
    NPURT_ASSIGN_OR_RETURN(const std::int64_t size, PackedHeadSize(l, heads, kv_heads));
    if (size < 0 || size > 1'000'000) return absl::InvalidArgumentError("heads are too large");
    NPURT_ASSIGN_OR_RETURN(const std::vector<ValueId> parts,
                           Thirds(l, q, {heads * size, kv_heads * size, kv_heads * size}));
    q = parts[0];
    k = parts[1];
    v = parts[2];
  }
  NPURT_ASSIGN_OR_RETURN(q, HeadNorm(l, q, 14, heads));
  NPURT_ASSIGN_OR_RETURN(k, HeadNorm(l, k, 15, kv_heads));
  if (from.Int("do_rotary") != 0) {
    ValueId positions = l.input(9);
    if (positions == kNone) {
      NPURT_ASSIGN_OR_RETURN(positions, FirstPositions(l));
    }
    const auto rotate = [&](ValueId* value, std::int64_t count) -> absl::Status {
      NPURT_ASSIGN_OR_RETURN(
          *value, l.Add("RotaryEmbedding", {*value, l.input(7), l.input(8), positions},
                        MakeAttributes({{"num_heads", count},
                                        {"interleaved", from.Int("rotary_interleaved")},
                                        {"rotary_embedding_dim", RotatedSize(l)}})));
      return absl::OkStatus();
    };
    NPURT_RETURN_IF_ERROR(rotate(&q, heads));
    NPURT_RETURN_IF_ERROR(rotate(&k, kv_heads));
  }
  ValueId sinks = l.input(11);
  if (sinks == kNone && from.Int("smooth_softmax") == 1) {
    NPURT_ASSIGN_OR_RETURN(Tensor zeros, Tensor::Create(l.type(0).dtype, {heads}));
    NPURT_ASSIGN_OR_RETURN(sinks, l.Constant("sinks", std::move(zeros)));
  }
  SetInputs(l, {q, k, v, l.input(10), l.input(3), l.input(4), l.input(5), l.input(6), sinks});
  l.node->attributes = std::move(attributes);
  return absl::OkStatus();
}

// Inputs: x, positions, caches.
absl::Status MicrosoftRotaryEmbedding(Lowering& l) {
  NPURT_RETURN_IF_ERROR(RefuseAttribute(l, "is_packed_batching", 0));
  Attributes& attributes = l.node->attributes;
  if (attributes.Float("scale", 1) != 1) return absl::UnimplementedError("attribute 'scale'");
  attributes.Remove("is_packed_batching");
  attributes.Remove("scale");
  l.node->inputs = {l.input(0), l.input(2), l.input(3), l.input(1)};
  return absl::OkStatus();
}

}  // namespace npurt::formats::onnx::adapters
