// com.microsoft's Attention, taken apart into products and a softmax.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "formats/onnx/adapters.h"

namespace npurt::formats::onnx::adapters {

using graph::kNone;
using graph::ValueId;

namespace {

using Ints = std::vector<std::int64_t>;

// What is masked gets the filter value added, so that softmax makes it 0.
class Attention {
 public:
  explicit Attention(Lowering& l) : l_(l) {}

  absl::Status Build() {
    NPURT_RETURN_IF_ERROR(CheckForm());
    const Attributes& attributes = l_.node->attributes;
    NPURT_ASSIGN_OR_RETURN(ValueId product, l_.Add("MatMul", {l_.input(0), l_.input(1)}));
    if (l_.has_input(2)) {
      NPURT_ASSIGN_OR_RETURN(product, l_.Add("Add", {product, l_.input(2)}));
    }
    NPURT_ASSIGN_OR_RETURN(
        const std::vector<ValueId> parts,
        l_.AddMany("Split", {product}, 3,
                   MakeAttributes({{"axis", std::int64_t{-1}}, {"num_outputs", std::int64_t{3}}})));
    NPURT_ASSIGN_OR_RETURN(const ValueId q, Heads(parts[0]));
    NPURT_ASSIGN_OR_RETURN(ValueId k, Heads(parts[1]));
    NPURT_ASSIGN_OR_RETURN(ValueId v, Heads(parts[2]));
    NPURT_RETURN_IF_ERROR(WithPast(&k, &v));

    NPURT_ASSIGN_OR_RETURN(const ValueId kt, Permuted(k, {0, 1, 3, 2}));
    NPURT_ASSIGN_OR_RETURN(ValueId scores, l_.Add("MatMul", {q, kt}));
    float scale = attributes.Float("scale");
    if (scale == 0) scale = 1 / std::sqrt(static_cast<float>(head_size_));
    NPURT_ASSIGN_OR_RETURN(const ValueId factor, l_.Scalar("scale", dtype_, scale));
    NPURT_ASSIGN_OR_RETURN(scores, l_.Add("Mul", {scores, factor}));
    if (l_.has_input(3)) {
      NPURT_ASSIGN_OR_RETURN(scores, Masked(scores));
    }
    if (attributes.Int("unidirectional") != 0) {
      NPURT_ASSIGN_OR_RETURN(scores, Causal(scores, q, k));
    }
    if (l_.has_input(5)) {
      NPURT_ASSIGN_OR_RETURN(scores, l_.Add("Add", {scores, l_.input(5)}));
    }
    NPURT_ASSIGN_OR_RETURN(const ValueId weights, l_.Add("Softmax", {scores}, Axis(-1)));
    NPURT_ASSIGN_OR_RETURN(const ValueId mixed, l_.Add("MatMul", {weights, v}));
    NPURT_ASSIGN_OR_RETURN(const ValueId rows, Permuted(mixed, {0, 2, 1, 3}));
    NPURT_ASSIGN_OR_RETURN(const ValueId shape, l_.Ints("shape", {0, 0, heads_ * head_size_}));
    return l_.Finish(0, "Reshape", {rows, shape});
  }

 private:
  absl::Status CheckForm() {
    const Attributes& attributes = l_.node->attributes;
    for (const char* name : {"qkv_hidden_sizes", "do_rotary", "past_present_share_buffer"})
      if (attributes.Has(name) && (name[0] == 'q' || attributes.Int(name) != 0))
        return absl::UnimplementedError(absl::StrCat("attribute '", name, "'"));
    if (l_.has_input(6)) return absl::UnimplementedError("past_sequence_length");
    heads_ = attributes.Int("num_heads");
    if (!l_.has_input(0) || l_.rank(1) != 2 || !l_.type(1).dims[1].is_constant() || heads_ <= 0 ||
        l_.type(1).dims[1].value() % 3 != 0 || l_.type(1).dims[1].value() / 3 % heads_ != 0)
      return absl::UnimplementedError("weights whose shape does not divide into num_heads");
    head_size_ = l_.type(1).dims[1].value() / 3 / heads_;
    dtype_ = l_.type(1).dtype;
    filter_ = attributes.Float("mask_filter_value", -10000);
    return absl::OkStatus();
  }

  static Attributes Axis(std::int64_t axis) { return MakeAttributes({{"axis", axis}}); }

  absl::StatusOr<ValueId> Permuted(ValueId value, Ints order) {
    return l_.Add("Transpose", {value}, MakeAttributes({{"perm", std::move(order)}}));
  }

  // [batch, length, heads * size] → [batch, heads, length, size]
  absl::StatusOr<ValueId> Heads(ValueId value) {
    NPURT_ASSIGN_OR_RETURN(const ValueId shape, l_.Ints("heads", {0, 0, heads_, head_size_}));
    NPURT_ASSIGN_OR_RETURN(const ValueId split, l_.Add("Reshape", {value, shape}));
    return Permuted(split, {0, 2, 1, 3});
  }

  // Puts what earlier runs kept before k and v, and makes output 1: both, for the next run.
  absl::Status WithPast(ValueId* k, ValueId* v) {
    NPURT_ASSIGN_OR_RETURN(const ValueId first, l_.Ints("axes", {0}));
    if (l_.has_input(4)) {
      NPURT_ASSIGN_OR_RETURN(const std::vector<ValueId> past,
                             l_.AddMany("Split", {l_.input(4)}, 2,
                                        MakeAttributes({{"axis", std::int64_t{0}},
                                                        {"num_outputs", std::int64_t{2}}})));
      NPURT_ASSIGN_OR_RETURN(const ValueId past_k, l_.Add("Squeeze", {past[0], first}));
      NPURT_ASSIGN_OR_RETURN(const ValueId past_v, l_.Add("Squeeze", {past[1], first}));
      NPURT_ASSIGN_OR_RETURN(*k, l_.Add("Concat", {past_k, *k}, Axis(2)));
      NPURT_ASSIGN_OR_RETURN(*v, l_.Add("Concat", {past_v, *v}, Axis(2)));
    }
    if (l_.node->outputs.size() < 2 || l_.node->outputs[1].empty()) return absl::OkStatus();
    NPURT_ASSIGN_OR_RETURN(const ValueId all_k, l_.Add("Unsqueeze", {*k, first}));
    NPURT_ASSIGN_OR_RETURN(const ValueId all_v, l_.Add("Unsqueeze", {*v, first}));
    return l_.Finish(1, "Concat", {all_k, all_v}, Axis(0));
  }

  // mask_index: 1 lets through, 0 does not; [batch, all] or [batch, length, all].
  absl::StatusOr<ValueId> Masked(ValueId scores) {
    const int rank = l_.rank(3);
    if (rank != 2 && rank != 3)
      return absl::UnimplementedError("mask_index that is not of rank 2 or 3");
    NPURT_ASSIGN_OR_RETURN(const ValueId axes,
                           rank == 2 ? l_.Ints("axes", {1, 2}) : l_.Ints("axes", {1}));
    NPURT_ASSIGN_OR_RETURN(const ValueId wide, l_.Add("Unsqueeze", {l_.input(3), axes}));
    NPURT_ASSIGN_OR_RETURN(
        const ValueId real,
        l_.Add("Cast", {wide}, MakeAttributes({{"to", static_cast<std::int64_t>(dtype_)}})));
    NPURT_ASSIGN_OR_RETURN(const ValueId one, l_.Scalar("one", dtype_, 1));
    NPURT_ASSIGN_OR_RETURN(const ValueId filter, l_.Scalar("filter", dtype_, filter_));
    NPURT_ASSIGN_OR_RETURN(const ValueId hidden, l_.Add("Sub", {one, real}));
    NPURT_ASSIGN_OR_RETURN(const ValueId added, l_.Add("Mul", {hidden, filter}));
    return l_.Add("Add", {scores, added});
  }

  // Row i of q sees what is kept, and the first i + 1 rows of its own.
  absl::StatusOr<ValueId> Causal(ValueId scores, ValueId q, ValueId k) {
    const Attributes third = MakeAttributes({{"start", std::int64_t{2}}, {"end", std::int64_t{3}}});
    NPURT_ASSIGN_OR_RETURN(const ValueId rows, l_.Add("Shape", {q}, third));
    NPURT_ASSIGN_OR_RETURN(const ValueId columns, l_.Add("Shape", {k}, third));
    NPURT_ASSIGN_OR_RETURN(const ValueId shape, l_.Add("Concat", {rows, columns}, Axis(0)));
    NPURT_ASSIGN_OR_RETURN(Tensor value, Tensor::Create(dtype_, {1}));
    if (!DispatchDType<kFloats>(dtype_, [&](auto zero) {
          using T = decltype(zero);
          value.set<T>(0, T(filter_));
        }))
      return absl::UnimplementedError(absl::StrCat("elements of ", DTypeName(dtype_)));
    NPURT_ASSIGN_OR_RETURN(
        const ValueId full,
        l_.Add("ConstantOfShape", {shape}, MakeAttributes({{"value", std::move(value)}})));
    NPURT_ASSIGN_OR_RETURN(const ValueId one, l_.Ints("one", {1}));
    NPURT_ASSIGN_OR_RETURN(const ValueId kept, l_.Add("Sub", {columns, rows}));
    NPURT_ASSIGN_OR_RETURN(const ValueId diagonal, l_.Add("Add", {kept, one}));
    NPURT_ASSIGN_OR_RETURN(const ValueId axis, l_.Ints("axis", {0}));
    NPURT_ASSIGN_OR_RETURN(const ValueId scalar, l_.Add("Squeeze", {diagonal, axis}));
    NPURT_ASSIGN_OR_RETURN(
        const ValueId later,
        l_.Add("Trilu", {full, scalar}, MakeAttributes({{"upper", std::int64_t{1}}})));
    return l_.Add("Add", {scores, later});
  }

  Lowering& l_;
  std::int64_t heads_ = 0, head_size_ = 0;
  DType dtype_ = DType::kUndefined;
  float filter_ = 0;
};

}  // namespace

absl::Status MicrosoftAttention(Lowering& l) { return Attention(l).Build(); }

}  // namespace npurt::formats::onnx::adapters
