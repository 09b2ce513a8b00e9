// Adapters of com.microsoft's matrix products and convolutions that have swallowed their
// neighbours: they give them back, and our own fuse rules take what fits here.
#include <algorithm>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "formats/onnx/adapters.h"

namespace npurt::formats::onnx::adapters {

using graph::kNone;
using graph::ValueId;

namespace {

// What may be fused, and the names of the parameters that it takes.
struct FusedActivation {
  const char* name;
  const char* parameters[2];
};
constexpr FusedActivation kFusedActivations[] = {
    {"Clip", {"min", "max"}},           {"Elu", {"alpha", nullptr}},
    {"HardSigmoid", {"alpha", "beta"}}, {"HardSwish", {nullptr, nullptr}},
    {"LeakyRelu", {"alpha", nullptr}},  {"Relu", {nullptr, nullptr}},
    {"Selu", {"alpha", "gamma"}},       {"Sigmoid", {nullptr, nullptr}},
    {"Softplus", {nullptr, nullptr}},   {"Softsign", {nullptr, nullptr}},
    {"Tanh", {nullptr, nullptr}},       {"ThresholdedRelu", {"alpha", nullptr}},
};

// The node's attribute `activation` applied to `x`; none: x itself. `value` says what parameter
// number i of this name is, or null.
absl::Status FinishActivation(
    Lowering& l, ValueId x,
    absl::FunctionRef<const AttributeValue*(std::size_t i, absl::string_view name)> value) {
  const std::string activation = l.node->attributes.String("activation");
  if (activation.empty()) return l.Finish(0, "Identity", {x});
  for (const FusedActivation& row : kFusedActivations) {
    if (activation != row.name) continue;
    const bool clip = activation == "Clip";
    std::vector<ValueId> inputs = {x};
    Attributes attributes;
    for (std::size_t i = 0; i < 2 && row.parameters[i] != nullptr; ++i) {
      const AttributeValue* given = value(i, row.parameters[i]);
      const float* const number = given == nullptr ? nullptr : std::get_if<float>(given);
      if (clip) {
        inputs.push_back(kNone);
        if (number == nullptr) continue;
        NPURT_ASSIGN_OR_RETURN(inputs.back(), l.Scalar(row.parameters[i], l.type(0).dtype,
                                                       static_cast<double>(*number)));
      } else if (number != nullptr) {
        attributes.Set(row.parameters[i], *number);
      }
    }
    return l.Finish(0, row.name, std::move(inputs), std::move(attributes));
  }
  return absl::UnimplementedError(absl::StrCat("activation '", activation, "'"));
}

// Parameters that are attributes "activation_alpha" and so on.
absl::Status FinishNamedActivation(Lowering& l, ValueId x) {
  return FinishActivation(l, x, [&](std::size_t, absl::string_view name) {
    return l.node->attributes.Find(absl::StrCat("activation_", name));
  });
}

// Parameters that stand one after the other in "activation_params".
absl::Status FinishListedActivation(Lowering& l, ValueId x) {
  const absl::Span<const float> params = l.node->attributes.Floats("activation_params");
  AttributeValue number;
  return FinishActivation(l, x, [&](std::size_t i, absl::string_view) -> const AttributeValue* {
    if (i >= params.size()) return nullptr;
    number = params[i];
    return &number;
  });
}

// The attributes that do not begin with "activation", which the node inside knows.
Attributes WithoutActivation(const Attributes& attributes) {
  Attributes rest;
  for (const Attribute& a : attributes.all())
    if (a.name.rfind("activation", 0) != 0) rest.Set(a.name, a.value);
  return rest;
}

// Operand `input` of a product, transposed as the attributes ask. `batch`: its first dimension
// belongs behind those of the batch.
absl::StatusOr<ValueId> Operand(Lowering& l, std::size_t input, bool transposed, bool batch) {
  if (!transposed && !batch) return l.input(input);
  const int rank = l.rank(input);
  if (rank < 2) return absl::UnimplementedError("a transposed operand of unknown rank");
  std::vector<std::int64_t> order(static_cast<std::size_t>(rank));
  for (int i = 0; i < rank; ++i) order[static_cast<std::size_t>(i)] = i;
  if (batch) std::rotate(order.begin(), order.begin() + 1, order.end() - 1);
  if (transposed) std::swap(order[order.size() - 1], order[order.size() - 2]);
  return l.Add("Transpose", {l.input(input)}, MakeAttributes({{"perm", std::move(order)}}));
}

// The convolution, the addend Z if there is one, and the activation.
absl::Status FinishConv(Lowering& l, bool channels_last) {
  if (!l.has_input(0) || !l.has_input(1)) return absl::InvalidArgumentError("want two inputs");
  ValueId x = l.input(0), w = l.input(1), z = l.input(3);
  if (channels_last) {
    NPURT_ASSIGN_OR_RETURN(x, l.ChannelsFirst(x));
    NPURT_ASSIGN_OR_RETURN(w, l.ChannelsFirst(w));
    if (z != kNone) {
      NPURT_ASSIGN_OR_RETURN(z, l.ChannelsFirst(z));
    }
  }
  NPURT_ASSIGN_OR_RETURN(ValueId y,
                         l.Add("Conv", {x, w, l.input(2)}, WithoutActivation(l.node->attributes)));
  if (z != kNone) {
    NPURT_ASSIGN_OR_RETURN(y, l.Add("Add", {y, z}));
  }
  if (channels_last) {
    NPURT_ASSIGN_OR_RETURN(y, l.ChannelsLast(y));
  }
  return FinishListedActivation(l, y);
}

}  // namespace

// activation(conv(X, W, B) + Z)
absl::Status FusedConv(Lowering& l) { return FinishConv(l, false); }
// The same; X, Z and each filter of W have their channels last.
absl::Status NhwcConv(Lowering& l) { return FinishConv(l, true); }

// activation(alpha * A' * B' + beta * C)
absl::Status FusedGemm(Lowering& l) {
  if (!l.has_input(0) || !l.has_input(1)) return absl::InvalidArgumentError("want two inputs");
  NPURT_ASSIGN_OR_RETURN(const ValueId y, l.Add("Gemm", {l.input(0), l.input(1), l.input(2)},
                                                WithoutActivation(l.node->attributes)));
  return FinishNamedActivation(l, y);
}

// activation(alpha * A' * B')
absl::Status FusedMatMul(Lowering& l) {
  const Attributes& attributes = l.node->attributes;
  if (!l.has_input(0) || !l.has_input(1)) return absl::InvalidArgumentError("want two inputs");
  NPURT_ASSIGN_OR_RETURN(const ValueId a, Operand(l, 0, attributes.Int("transA") != 0,
                                                  attributes.Int("transBatchA") != 0));
  NPURT_ASSIGN_OR_RETURN(const ValueId b, Operand(l, 1, attributes.Int("transB") != 0,
                                                  attributes.Int("transBatchB") != 0));
  const float alpha = attributes.Float("alpha", 1);
  const bool activated = attributes.Has("activation");
  if (alpha == 1 && !activated) return l.Finish(0, "MatMul", {a, b});
  NPURT_ASSIGN_OR_RETURN(ValueId y, l.Add("MatMul", {a, b}));
  if (alpha != 1) {
    NPURT_ASSIGN_OR_RETURN(const ValueId factor, l.Scalar("alpha", l.type(0).dtype, alpha));
    if (!activated) return l.Finish(0, "Mul", {y, factor});
    NPURT_ASSIGN_OR_RETURN(y, l.Add("Mul", {y, factor}));
  }
  return FinishNamedActivation(l, y);
}

// Channels last in and out.
absl::Status NhwcMaxPool(Lowering& l) {
  if (!l.has_input(0)) return absl::InvalidArgumentError("input 0 is missing");
  NPURT_ASSIGN_OR_RETURN(const ValueId x, l.ChannelsFirst(l.input(0)));
  NPURT_ASSIGN_OR_RETURN(const ValueId y, l.Add("MaxPool", {x}, l.node->attributes));
  return l.FinishChannelsLast(y);
}

}  // namespace npurt::formats::onnx::adapters
