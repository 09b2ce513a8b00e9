// Adapters of other domains: ai.onnx.ml, and com.microsoft's fusions, which are taken apart again:
// our own fuse rules find what fits here.
#include "absl/strings/str_cat.h"
#include "formats/onnx/adapters.h"

namespace npurt::formats::onnx::adapters {

using graph::kNone;
using graph::ValueId;

// Version 1 numbered a list of strings; which way round, the type of the input says.
absl::Status LabelEncoder1(Lowering& l) {
  Attributes& attributes = l.node->attributes;
  const absl::Span<const std::string> list = attributes.Strings("classes_strings");
  const std::vector<std::string> classes(list.begin(), list.end());
  if (classes.empty() || !l.has_input(0)) return absl::OkStatus();
  std::vector<std::int64_t> numbers(classes.size());
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<std::int64_t>(i);
  const bool from_strings = l.type(0).dtype == DType::kString;
  attributes.Remove("classes_strings");
  attributes.Remove(from_strings ? "default_string" : "default_int64");
  attributes.Set(from_strings ? "keys_strings" : "values_strings", classes);
  attributes.Set(from_strings ? "values_int64s" : "keys_int64s", std::move(numbers));
  return absl::OkStatus();
}

// x * sigmoid(alpha * x)
absl::Status QuickGelu(Lowering& l) {
  if (!l.node->attributes.Has("alpha")) l.node->attributes.Set("alpha", 1.702f);
  return absl::OkStatus();
}

namespace {

// gelu(x + bias)
absl::Status GeluOfSum(Lowering& l, const char* approximate) {
  ValueId x = l.input(0);
  if (l.has_input(1)) {
    NPURT_ASSIGN_OR_RETURN(x, l.Add("Add", {x, l.input(1)}));
  }
  return l.Finish(0, "Gelu", {x}, MakeAttributes({{"approximate", std::string(approximate)}}));
}

}  // namespace

absl::Status BiasGelu(Lowering& l) { return GeluOfSum(l, "none"); }
absl::Status FastGelu(Lowering& l) { return GeluOfSum(l, "tanh"); }

// softmax(x + bias)
absl::Status BiasSoftmax(Lowering& l) {
  if (!l.has_input(0) || !l.has_input(1)) return absl::InvalidArgumentError("want two inputs");
  NPURT_ASSIGN_OR_RETURN(const ValueId sum, l.Add("Add", {l.input(0), l.input(1)}));
  l.node->inputs = {sum};
  l.node->type = "Softmax";
  l.node->attributes.Remove("is_inner_broadcast");  // the shapes say it
  return FlattenFromAxis(l);
}

// left * gelu(right), the halves of x + bias
absl::Status BiasSplitGelu(Lowering& l) {
  if (!l.has_input(0) || !l.has_input(1)) return absl::InvalidArgumentError("want two inputs");
  NPURT_ASSIGN_OR_RETURN(const ValueId sum, l.Add("Add", {l.input(0), l.input(1)}));
  NPURT_ASSIGN_OR_RETURN(
      const std::vector<ValueId> halves,
      l.AddMany("Split", {sum}, 2,
                MakeAttributes({{"axis", std::int64_t{-1}}, {"num_outputs", std::int64_t{2}}})));
  NPURT_ASSIGN_OR_RETURN(const ValueId gate, l.Add("Gelu", {halves[1]}));
  return l.Finish(0, "Mul", {halves[0], gate});
}

namespace {

// Output 0: the first of `inputs` normalised over its last dimension.
absl::Status FinishLayerNorm(Lowering& l, const char* op, std::vector<ValueId> inputs) {
  return l.Finish(0, op, std::move(inputs),
                  MakeAttributes({{"axis", std::int64_t{-1}},
                                  {"epsilon", l.node->attributes.Float("epsilon", 1e-12f)}}));
}

}  // namespace

// norm(x + skip + bias). Outputs: that; two that only training uses; the sum.
absl::Status SkipLayerNormalization(Lowering& l) {
  const bool simplified = l.node->type == "SkipSimplifiedLayerNormalization";
  const ValueId beta = l.input(3);  // not of the simplified form
  const ValueId bias = l.input(simplified ? 3 : 4);
  ValueId x = l.input(0), skip = l.input(1);
  if (bias != kNone) {
    NPURT_ASSIGN_OR_RETURN(x, l.Add("Add", {x, bias}));
  }
  ValueId sum;
  if (l.node->outputs.size() > 3 && !l.node->outputs[3].empty()) {
    NPURT_RETURN_IF_ERROR(l.Finish(3, "Add", {x, skip}));
    sum = l.results[3];
  } else {
    NPURT_ASSIGN_OR_RETURN(sum, l.Add("Add", {x, skip}));
  }
  if (simplified) return FinishLayerNorm(l, "RMSNormalization", {sum, l.input(2)});
  return FinishLayerNorm(l, "LayerNormalization", {sum, l.input(2), beta});
}

// norm(words[ids] + positions + segments[segment_ids]). Outputs: that; the number of words that the
// mask lets through; the sum.
absl::Status EmbedLayerNormalization(Lowering& l) {
  if (l.node->inputs.size() < 7) return absl::InvalidArgumentError("want at least seven inputs");
  NPURT_ASSIGN_OR_RETURN(ValueId sum, l.Add("Gather", {l.input(2), l.input(0)}));
  ValueId positions;
  if (l.has_input(8)) {
    NPURT_ASSIGN_OR_RETURN(positions, l.Add("Gather", {l.input(3), l.input(8)}));
  } else {
    NPURT_ASSIGN_OR_RETURN(
        const ValueId length,
        l.Add("Shape", {l.input(0)},
              MakeAttributes({{"start", std::int64_t{1}}, {"end", std::int64_t{2}}})));
    NPURT_ASSIGN_OR_RETURN(const ValueId zero, l.Ints("zero", {0}));
    NPURT_ASSIGN_OR_RETURN(positions, l.Add("Slice", {l.input(3), zero, length, zero}));
  }
  NPURT_ASSIGN_OR_RETURN(sum, l.Add("Add", {sum, positions}));
  if (l.has_input(1) && l.has_input(4)) {
    NPURT_ASSIGN_OR_RETURN(const ValueId segments, l.Add("Gather", {l.input(4), l.input(1)}));
    NPURT_ASSIGN_OR_RETURN(sum, l.Add("Add", {sum, segments}));
  }
  const auto wanted = [&](std::size_t i) {
    return i < l.node->outputs.size() && !l.node->outputs[i].empty();
  };
  if (wanted(1) && l.has_input(7)) {
    NPURT_ASSIGN_OR_RETURN(const ValueId one, l.Ints("one", {1}));
    NPURT_RETURN_IF_ERROR(l.Finish(1, "ReduceSum", {l.input(7), one},
                                   MakeAttributes({{"keepdims", std::int64_t{0}}})));
  }
  if (wanted(1) && !l.has_input(7)) {  // nobody counted
    NPURT_ASSIGN_OR_RETURN(
        const ValueId batch,
        l.Add("Shape", {l.input(0)},
              MakeAttributes({{"start", std::int64_t{0}}, {"end", std::int64_t{1}}})));
    NPURT_ASSIGN_OR_RETURN(Tensor zero, Tensor::Create(DType::kI32, {1}));
    NPURT_RETURN_IF_ERROR(l.Finish(1, "ConstantOfShape", {batch},
                                   MakeAttributes({{"value", std::move(zero)}})));
  }
  if (wanted(2)) NPURT_RETURN_IF_ERROR(l.Finish(2, "Identity", {sum}));
  return FinishLayerNorm(l, "LayerNormalization", {sum, l.input(5), l.input(6)});
}

}  // namespace npurt::formats::onnx::adapters
