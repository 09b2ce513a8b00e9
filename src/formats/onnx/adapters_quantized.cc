// Adapters of quantised operators. Those of com.microsoft become real arithmetic between
// DequantizeLinear and QuantizeLinear, or an integer product with its factors behind it.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "formats/onnx/adapters.h"

namespace npurt::formats::onnx::adapters {

using graph::kNone;
using graph::ValueId;

namespace {

absl::Status CheckInputs(const Lowering& l, std::initializer_list<std::size_t> required) {
  for (std::size_t i : required)
    if (!l.has_input(i))
      return absl::InvalidArgumentError(absl::StrCat("input ", i, " is missing"));
  return absl::OkStatus();
}

// An attribute that nobody reads would change the meaning unnoticed.
absl::Status CheckAttributes(const Lowering& l, std::initializer_list<absl::string_view> known) {
  for (const Attribute& a : l.node->attributes.all())
    if (std::find(known.begin(), known.end(), a.name) == known.end())
      return absl::UnimplementedError(absl::StrCat("attribute '", a.name, "' is not supported"));
  return absl::OkStatus();
}

// Makes a scale of one element and its zero point scalars, whichever of the two the file wrote as a
// list.
absl::Status AlignScale(Lowering& l, std::size_t scale, std::size_t zero) {
  if (!l.has_input(scale) || !l.has_input(zero)) return absl::OkStatus();
  const int ranks[2] = {l.rank(scale), l.rank(zero)};
  if (!(ranks[0] == 1 && ranks[1] == 0) && !(ranks[0] == 0 && ranks[1] == 1))
    return absl::OkStatus();
  const std::size_t list = ranks[0] == 1 ? scale : zero;
  if (!l.type(list).dims[0].Is(1)) return absl::OkStatus();
  const Tensor& constant = l.graph->value(l.input(list)).constant;
  if (constant.defined()) {
    NPURT_ASSIGN_OR_RETURN(l.node->inputs[list], l.Constant(list == scale ? "scale" : "zero_point",
                                                            constant.Reshaped({})));
  } else {
    NPURT_ASSIGN_OR_RETURN(const ValueId axis, l.Ints("axes", {0}));
    NPURT_ASSIGN_OR_RETURN(l.node->inputs[list], l.Add("Squeeze", {l.input(list), axis}));
  }
  return absl::OkStatus();
}

// The real numbers of the quantised input `i`, whose scale and zero point follow it.
absl::StatusOr<ValueId> Real(Lowering& l, std::size_t i) {
  NPURT_RETURN_IF_ERROR(CheckInputs(l, {i, i + 1}));
  NPURT_RETURN_IF_ERROR(AlignScale(l, i + 1, i + 2));
  return l.Add("DequantizeLinear", {l.input(i), l.input(i + 1), l.input(i + 2)});
}

// The last node: `real` with the scale that is input `i` and the zero point that follows it, or
// none of the type of input 0.
absl::Status FinishQuantized(Lowering& l, ValueId real, std::size_t i) {
  NPURT_RETURN_IF_ERROR(CheckInputs(l, {0, i}));
  NPURT_RETURN_IF_ERROR(AlignScale(l, i, i + 1));
  Attributes attributes;
  if (!l.has_input(i + 1))
    attributes.Set("output_dtype", static_cast<std::int64_t>(l.type(0).dtype));
  return l.Finish(0, "QuantizeLinear", {real, l.input(i), l.input(i + 1)}, std::move(attributes));
}

absl::Status Unary(Lowering& l, const char* op, Attributes attributes) {
  NPURT_ASSIGN_OR_RETURN(const ValueId x, Real(l, 0));
  NPURT_ASSIGN_OR_RETURN(const ValueId y, l.Add(op, {x}, std::move(attributes)));
  return FinishQuantized(l, y, 3);
}

absl::Status Binary(Lowering& l, const char* op) {
  NPURT_RETURN_IF_ERROR(CheckAttributes(l, {}));
  NPURT_ASSIGN_OR_RETURN(const ValueId a, Real(l, 0));
  NPURT_ASSIGN_OR_RETURN(const ValueId b, Real(l, 3));
  NPURT_ASSIGN_OR_RETURN(const ValueId c, l.Add(op, {a, b}));
  return FinishQuantized(l, c, 6);
}

absl::Status Pool(Lowering& l, const char* op) {
  const bool channels_last = l.node->attributes.Int("channels_last") != 0;
  l.node->attributes.Remove("channels_last");
  if (!channels_last) return Unary(l, op, l.node->attributes);
  NPURT_ASSIGN_OR_RETURN(ValueId x, Real(l, 0));
  NPURT_ASSIGN_OR_RETURN(x, l.ChannelsFirst(x));
  NPURT_ASSIGN_OR_RETURN(x, l.Add(op, {x}, l.node->attributes));
  NPURT_ASSIGN_OR_RETURN(x, l.ChannelsLast(x));
  return FinishQuantized(l, x, 3);
}

absl::StatusOr<ValueId> CastTo(Lowering& l, ValueId x, DType dtype) {
  return l.Add("Cast", {x}, MakeAttributes({{"to", static_cast<std::int64_t>(dtype)}}));
}

// The numbers of input `scale` times those of `other`. The factor of a product: it must not differ
// along the dimension that is summed.
absl::StatusOr<ValueId> Factor(Lowering& l, ValueId a_scale, ValueId b_scale) {
  const ValueType& type = l.graph->value(a_scale).type;
  if (type.kind == ValueKind::kTensor && type.has_rank && !type.dims.empty() &&
      !(type.dims.size() == 1 && type.dims[0].Is(1)))
    return absl::UnimplementedError(
        absl::StrCat("a scale of A of shape ", ShapeString(type.dims), ", want one number"));
  return l.Add("Mul", {a_scale, b_scale});
}

// An integer product with the scales that belong to it, and a bias (kNone: none).
struct Product {
  ValueId a, b, a_scale, b_scale, a_zero, b_zero, bias;
};
absl::Status FinishProduct(Lowering& l, const Product& p) {
  NPURT_ASSIGN_OR_RETURN(const ValueId factor, Factor(l, p.a_scale, p.b_scale));
  NPURT_ASSIGN_OR_RETURN(const ValueId sums,
                         l.Add("MatMulInteger", {p.a, p.b, p.a_zero, p.b_zero}));
  NPURT_ASSIGN_OR_RETURN(const ValueId real, CastTo(l, sums, l.graph->value(p.b_scale).type.dtype));
  if (p.bias == kNone) return l.Finish(0, "Mul", {real, factor});
  NPURT_ASSIGN_OR_RETURN(const ValueId scaled, l.Add("Mul", {real, factor}));
  return l.Finish(0, "Add", {scaled, p.bias});
}

// The int32 of input `i`, less the zero point that follows it.
absl::StatusOr<ValueId> Centred(Lowering& l, std::size_t i) {
  NPURT_RETURN_IF_ERROR(CheckInputs(l, {i}));
  NPURT_ASSIGN_OR_RETURN(const ValueId x, CastTo(l, l.input(i), DType::kI32));
  if (!l.has_input(i + 1)) return x;
  NPURT_ASSIGN_OR_RETURN(const ValueId zero, CastTo(l, l.input(i + 1), DType::kI32));
  return l.Add("Sub", {x, zero});
}

}  // namespace

absl::Status ScalarScale(Lowering& l) { return AlignScale(l, 1, 2); }

absl::Status QLinearAdd(Lowering& l) { return Binary(l, "Add"); }
absl::Status QLinearMul(Lowering& l) { return Binary(l, "Mul"); }

absl::Status QLinearSigmoid(Lowering& l) {
  NPURT_RETURN_IF_ERROR(CheckAttributes(l, {}));
  return Unary(l, "Sigmoid", {});
}
absl::Status QLinearLeakyRelu(Lowering& l) { return Unary(l, "LeakyRelu", l.node->attributes); }

absl::Status QLinearAveragePool(Lowering& l) { return Pool(l, "AveragePool"); }
absl::Status QLinearGlobalAveragePool(Lowering& l) { return Pool(l, "GlobalAveragePool"); }

// `opset` says which Softmax: before 13 all dimensions from `axis` on were one.
absl::Status QLinearSoftmax(Lowering& l) {
  NPURT_RETURN_IF_ERROR(CheckAttributes(l, {"axis", "opset"}));
  const std::int64_t axis = l.node->attributes.Int("axis", -1);
  const bool along_axis = l.node->attributes.Int("opset", 13) >= 13 || axis == -1;
  if (along_axis) return Unary(l, "Softmax", MakeAttributes({{"axis", axis}}));
  NPURT_ASSIGN_OR_RETURN(const ValueId x, Real(l, 0));
  NPURT_ASSIGN_OR_RETURN(const ValueId flat,
                         l.Add("Flatten", {x}, MakeAttributes({{"axis", axis}})));
  NPURT_ASSIGN_OR_RETURN(const ValueId result, l.Add("Softmax", {flat}));
  NPURT_ASSIGN_OR_RETURN(const ValueId shape, l.Add("Shape", {x}));
  NPURT_ASSIGN_OR_RETURN(const ValueId y, l.Add("Reshape", {result, shape},
                                                MakeAttributes({{"allowzero", std::int64_t{1}}})));
  return FinishQuantized(l, y, 3);
}

// Inputs: the scale and zero point of the result, then three per part.
absl::Status QLinearConcat(Lowering& l) {
  std::vector<ValueId> parts;
  if (l.node->inputs.size() < 5)
    return absl::InvalidArgumentError(absl::StrCat("got ", l.node->inputs.size(), " inputs"));
  NPURT_RETURN_IF_ERROR(CheckInputs(l, {1}));
  for (std::size_t i = 2; i < l.node->inputs.size(); i += 3) {
    NPURT_ASSIGN_OR_RETURN(parts.emplace_back(), Real(l, i));
  }
  NPURT_ASSIGN_OR_RETURN(const ValueId y, l.Add("Concat", std::move(parts), l.node->attributes));
  return FinishQuantized(l, y, 0);
}

// Inputs: the condition, x and y with three each, the scale and zero point of the result.
absl::Status QLinearWhere(Lowering& l) {
  NPURT_RETURN_IF_ERROR(CheckAttributes(l, {}));
  NPURT_RETURN_IF_ERROR(CheckInputs(l, {0, 8}));
  NPURT_ASSIGN_OR_RETURN(const ValueId x, Real(l, 1));
  NPURT_ASSIGN_OR_RETURN(const ValueId y, Real(l, 4));
  NPURT_ASSIGN_OR_RETURN(const ValueId z, l.Add("Where", {l.input(0), x, y}));
  return FinishQuantized(l, z, 7);
}

absl::Status MicrosoftQLinearConv(Lowering& l) {
  const bool channels_last = l.node->attributes.Int("channels_last") != 0;
  l.node->attributes.Remove("channels_last");
  if (!channels_last) return absl::OkStatus();
  NPURT_RETURN_IF_ERROR(CheckInputs(l, {0}));
  std::vector<ValueId> inputs = l.node->inputs;
  NPURT_ASSIGN_OR_RETURN(inputs[0], l.ChannelsFirst(inputs[0]));
  NPURT_ASSIGN_OR_RETURN(const ValueId y,
                         l.Add("QLinearConv", std::move(inputs), l.node->attributes));
  return l.FinishChannelsLast(y);
}

// alpha * (A' * B' + C), where C has the scale of the product; quantised if there is a scale for
// it.
absl::Status QGemm(Lowering& l) {
  NPURT_RETURN_IF_ERROR(CheckAttributes(l, {"alpha", "transA", "transB"}));
  NPURT_RETURN_IF_ERROR(CheckInputs(l, {0, 1, 3, 4}));
  const Attributes& attributes = l.node->attributes;
  const auto transposed = [&](std::size_t i, const char* attribute) -> absl::StatusOr<ValueId> {
    if (attributes.Int(attribute) == 0) return l.input(i);
    return l.Add("Transpose", {l.input(i)},
                 MakeAttributes({{"perm", std::vector<std::int64_t>{1, 0}}}));
  };
  NPURT_ASSIGN_OR_RETURN(const ValueId a, transposed(0, "transA"));
  NPURT_ASSIGN_OR_RETURN(const ValueId b, transposed(3, "transB"));
  NPURT_ASSIGN_OR_RETURN(ValueId sums, l.Add("MatMulInteger", {a, b, l.input(2), l.input(5)}));
  if (l.has_input(6)) {
    NPURT_ASSIGN_OR_RETURN(sums, l.Add("Add", {sums, l.input(6)}));
  }
  const DType dtype = l.type(1).dtype;
  NPURT_ASSIGN_OR_RETURN(ValueId factor, Factor(l, l.input(1), l.input(4)));
  const float alpha = attributes.Float("alpha", 1);
  if (alpha != 1) {
    NPURT_ASSIGN_OR_RETURN(const ValueId constant, l.Scalar("alpha", dtype, alpha));
    NPURT_ASSIGN_OR_RETURN(factor, l.Add("Mul", {factor, constant}));
  }
  NPURT_ASSIGN_OR_RETURN(const ValueId real, CastTo(l, sums, dtype));
  if (!l.has_input(7)) return l.Finish(0, "Mul", {real, factor});
  NPURT_ASSIGN_OR_RETURN(const ValueId y, l.Add("Mul", {real, factor}));
  return FinishQuantized(l, y, 7);
}

absl::Status MatMulIntegerToFloat(Lowering& l) {
  NPURT_RETURN_IF_ERROR(CheckAttributes(l, {}));
  NPURT_RETURN_IF_ERROR(CheckInputs(l, {0, 1, 2, 3}));
  return FinishProduct(
      l, {l.input(0), l.input(1), l.input(2), l.input(3), l.input(4), l.input(5), l.input(6)});
}

absl::Status DynamicQuantizeMatMul(Lowering& l) {
  NPURT_RETURN_IF_ERROR(CheckAttributes(l, {}));
  NPURT_RETURN_IF_ERROR(CheckInputs(l, {0, 1, 2}));
  NPURT_ASSIGN_OR_RETURN(const std::vector<ValueId> a,
                         l.AddMany("DynamicQuantizeLinear", {l.input(0)}, 3));
  return FinishProduct(l, {a[0], l.input(1), a[1], l.input(2), a[2], l.input(3), l.input(4)});
}

absl::Status MatMulInteger16(Lowering& l) {
  NPURT_RETURN_IF_ERROR(CheckAttributes(l, {}));
  NPURT_RETURN_IF_ERROR(CheckInputs(l, {0, 1}));
  NPURT_ASSIGN_OR_RETURN(const ValueId a, CastTo(l, l.input(0), DType::kI32));
  NPURT_ASSIGN_OR_RETURN(const ValueId b, CastTo(l, l.input(1), DType::kI32));
  return l.Finish(0, "MatMul", {a, b});
}

absl::Status MulInteger(Lowering& l) {
  NPURT_RETURN_IF_ERROR(CheckAttributes(l, {}));
  NPURT_ASSIGN_OR_RETURN(const ValueId a, Centred(l, 0));
  NPURT_ASSIGN_OR_RETURN(const ValueId b, Centred(l, 2));
  return l.Finish(0, "Mul", {a, b});
}

namespace {

// Weights [directions, k, gates] with a scale per direction or per gate, as LSTM has them: real,
// [directions, gates, k].
absl::StatusOr<ValueId> LstmWeights(Lowering& l, std::size_t weights, std::size_t scale) {
  NPURT_RETURN_IF_ERROR(CheckInputs(l, {weights, scale}));
  const auto aligned = [&](std::size_t i) -> absl::StatusOr<ValueId> {
    const int rank = l.rank(i);
    if (rank != 1 && rank != 2)
      return absl::UnimplementedError("scales of weights that are not of rank 1 or 2");
    NPURT_ASSIGN_OR_RETURN(const ValueId axes,
                           rank == 1 ? l.Ints("axes", {1, 2}) : l.Ints("axes", {1}));
    return l.Add("Unsqueeze", {l.input(i), axes});
  };
  const DType dtype = l.type(scale).dtype;
  NPURT_ASSIGN_OR_RETURN(const ValueId factor, aligned(scale));
  NPURT_ASSIGN_OR_RETURN(ValueId real, CastTo(l, l.input(weights), dtype));
  if (l.has_input(scale + 1)) {
    NPURT_ASSIGN_OR_RETURN(const ValueId zero, aligned(scale + 1));
    NPURT_ASSIGN_OR_RETURN(const ValueId real_zero, CastTo(l, zero, dtype));
    NPURT_ASSIGN_OR_RETURN(real, l.Add("Sub", {real, real_zero}));
  }
  NPURT_ASSIGN_OR_RETURN(real, l.Add("Mul", {real, factor}));
  return l.Add("Transpose", {real}, MakeAttributes({{"perm", std::vector<std::int64_t>{0, 2, 1}}}));
}

}  // namespace

// The weights are constants and become real ones. X and H are not rounded to bytes before each
// product, which only serves speed elsewhere.
absl::Status DynamicQuantizeLstm(Lowering& l) {
  NPURT_ASSIGN_OR_RETURN(const ValueId w, LstmWeights(l, 1, 8));
  NPURT_ASSIGN_OR_RETURN(const ValueId r, LstmWeights(l, 2, 10));
  l.node->inputs[1] = w;
  l.node->inputs[2] = r;
  l.node->inputs.resize(8);
  return absl::OkStatus();
}

}  // namespace npurt::formats::onnx::adapters
