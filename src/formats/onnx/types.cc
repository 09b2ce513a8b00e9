#include "formats/onnx/types.h"

#include "absl/strings/str_cat.h"

namespace npurt::formats::onnx {
namespace {

absl::StatusOr<DType> ElementType(std::int64_t number) {
  if (number > 0 && number < kDTypeCount) return static_cast<DType>(number);
  return absl::InvalidArgumentError(absl::StrCat(number, " is no element type"));
}

// Everything but the dimensions of a tensor that is not inside another value.
absl::StatusOr<ValueType> TypeOf(const TypeProto& proto, const std::string& name,
                                 graph::Graph& graph, bool named_dims) {
  if (proto.unsupported)
    return absl::UnimplementedError("sparse tensors and opaque types are not supported");
  ValueType type;
  type.kind = proto.kind;
  if (proto.kind == ValueKind::kTensor || proto.kind == ValueKind::kMap) {
    NPURT_ASSIGN_OR_RETURN(type.dtype, ElementType(proto.elem_type));
  }
  if (proto.kind != ValueKind::kTensor) {
    if (proto.element == nullptr) return absl::InvalidArgumentError("its type says not of what");
    // The items of a sequence need not have the same shape: no symbols for them.
    NPURT_ASSIGN_OR_RETURN(ValueType element, TypeOf(*proto.element, name, graph, false));
    type.element = std::make_shared<const ValueType>(std::move(element));
    return type;
  }
  if (!proto.has_shape || (!named_dims && !proto.dims.empty())) return type;
  type.has_rank = true;
  for (std::size_t i = 0; i < proto.dims.size(); ++i) {
    const DimensionProto& dim = proto.dims[i];
    type.dims.push_back(
        dim.value > 0 ? Dim(dim.value)
                      : graph.NamedDim(std::string(dim.param), absl::StrCat(name, "_dim_", i)));
  }
  return type;
}

void DropDim(ValueType* type, std::int64_t axis) {
  if (!type->has_rank) return;
  const auto rank = static_cast<std::int64_t>(type->dims.size());
  if (axis < 0) axis += rank;
  if (axis >= 0 && axis < rank)
    type->dims.erase(type->dims.begin() + axis);
  else
    *type = ValueType::OfTensor(type->dtype);
}

// [batch, heads, rows of q, rows of k], in the type of the softmax.
ValueType ScoresOf(const OnnxNode& node, const ValueType& q, const ValueType& k) {
  const bool narrow = q.dtype == DType::kF16 || q.dtype == DType::kBF16;
  const std::int64_t precision = node.attributes.Int(
      "softmax_precision", static_cast<std::int64_t>(narrow ? DType::kF32 : q.dtype));
  const DType dtype = IsDType(static_cast<int>(precision)) ? static_cast<DType>(precision) : q.dtype;
  if (!q.has_rank || !k.has_rank || q.dims.size() != 4 || k.dims.size() != 4)
    return ValueType::OfTensor(dtype);
  return ValueType::OfTensor(dtype, {q.dims[0], q.dims[1], q.dims[2], k.dims[2]});
}

BodyInput Scalar(DType dtype) { return {ValueType::OfTensor(dtype, {}), false}; }

}  // namespace

absl::StatusOr<ValueType> GraphInputType(const TypeProto& proto, const std::string& name,
                                         graph::Graph& graph) {
  if (proto.kind == ValueKind::kNone && !proto.unsupported)
    return absl::InvalidArgumentError("has no type");
  return TypeOf(proto, name, graph, true);
}

absl::StatusOr<ValueType> BodyInputType(const TypeProto& proto, const BodyInput* given,
                                        const std::string& name, graph::Graph& graph) {
  ValueType declared;
  const bool says_nothing =
      proto.kind == ValueKind::kNone ||
      (proto.kind == ValueKind::kTensor && proto.elem_type == 0 && given != nullptr);
  if (says_nothing && given == nullptr) return absl::InvalidArgumentError("has no type");
  if (!says_nothing) {
    NPURT_ASSIGN_OR_RETURN(declared, TypeOf(proto, name, graph, true));
  }
  if (given == nullptr) return declared;
  ValueType type = given->type;
  if (!says_nothing) {
    NPURT_RETURN_IF_ERROR(CheckDeclared(proto, type));
    if (type.kind != ValueKind::kTensor) return type;
    type.dtype = declared.dtype;
  }
  if (type.kind != ValueKind::kTensor) return type;
  const bool declared_rank = !says_nothing && declared.has_rank;
  if (given->varies && !declared_rank) return ValueType::OfTensor(type.dtype);
  if (declared_rank && (!type.has_rank || type.dims.size() != declared.dims.size())) {
    type.has_rank = true;
    type.dims.assign(declared.dims.size(), Dim(kInvalidDim));
  }
  for (std::size_t i = 0; i < type.dims.size(); ++i) {
    const bool stays = type.dims[i].is_constant() && type.dims[i].value() >= 0 &&
                       (!given->varies || type.dims[i] == declared.dims[i]);
    if (!stays) type.dims[i] = graph.NamedDim("", absl::StrCat(name, "_dim_", i));
  }
  return type;
}

std::vector<BodyInput> BodyInputsOf(const OnnxNode& node, const graph::Graph& graph) {
  std::vector<BodyInput> inputs;
  const auto outer = [&](std::size_t i) {
    return node.inputs[i] >= 0 ? graph.value(node.inputs[i]).type
                               : ValueType::OfTensor(DType::kUndefined);
  };
  if (node.domain == "ai.onnx.preview" && node.type == "FlexAttention" && node.inputs.size() >= 2)
    return {{ScoresOf(node, outer(0), outer(1)), false}};
  if (!node.domain.empty()) return inputs;
  if (node.type == "Loop") {
    inputs = {Scalar(DType::kI64), Scalar(DType::kBool)};
    for (std::size_t i = 2; i < node.inputs.size(); ++i) inputs.push_back({outer(i), true});
  } else if (node.type == "Scan") {
    // Version 8 has sequence lengths before, and a batch in all dimensions 0.
    const std::size_t first = node.version == 8 ? 1 : 0;
    const auto scans =
        static_cast<std::size_t>(std::max<std::int64_t>(node.attributes.Int("num_scan_inputs"), 0));
    const absl::Span<const std::int64_t> axes = node.attributes.Ints("scan_input_axes");
    for (std::size_t i = first; i < node.inputs.size(); ++i) {
      ValueType type = outer(i);
      if (first == 1) DropDim(&type, 0);
      if (i + scans >= node.inputs.size()) {
        const std::size_t k = i + scans - node.inputs.size();
        DropDim(&type, k < axes.size() ? axes[k] : 0);
      }
      inputs.push_back({std::move(type), false});
    }
  } else if (node.type == "SequenceMap") {
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueType type = outer(i);
      inputs.push_back(
          {type.kind == ValueKind::kSequence && type.element != nullptr ? *type.element : type,
           false});
    }
  }
  return inputs;
}

absl::Status CheckDeclared(const TypeProto& declared, const ValueType& found) {
  if (declared.kind == ValueKind::kNone || found.kind == ValueKind::kNone) return absl::OkStatus();
  const bool tensor_of_unknown =
      found.kind == ValueKind::kTensor && found.dtype == DType::kUndefined;
  if (tensor_of_unknown) return absl::OkStatus();
  const bool same_dtype = found.kind != ValueKind::kTensor || declared.elem_type == 0 ||
                          declared.elem_type == static_cast<std::int64_t>(found.dtype);
  if (declared.kind == found.kind && same_dtype) {
    if (declared.element != nullptr && found.element != nullptr)
      return CheckDeclared(*declared.element, *found.element);
    return absl::OkStatus();
  }
  std::string want = "another kind of value";
  if (declared.kind == ValueKind::kTensor && declared.elem_type > 0 &&
      declared.elem_type < kDTypeCount)
    want = std::string(DTypeName(static_cast<DType>(declared.elem_type)));
  return absl::InvalidArgumentError(
      absl::StrCat("is ", found.ToString(), ", the file declares ", want));
}

absl::StatusOr<Tensor> ConstantValue(const AttributeValue& value) {
  if (const auto* tensor = std::get_if<Tensor>(&value)) return *tensor;
  if (const auto* number = std::get_if<std::int64_t>(&value)) return Tensor::Int64Scalar(*number);
  if (const auto* ints = std::get_if<std::vector<std::int64_t>>(&value))
    return Tensor::Int64s(*ints);
  if (const auto* number = std::get_if<float>(&value))
    return Tensor::FromSpan<float>({}, absl::MakeConstSpan(number, 1));
  if (const auto* text = std::get_if<std::string>(&value))
    return Tensor::FromSpan<std::string>({}, absl::MakeConstSpan(text, 1));
  if (const auto* floats = std::get_if<std::vector<float>>(&value))
    return Tensor::FromSpan<float>({static_cast<std::int64_t>(floats->size())}, *floats);
  if (const auto* texts = std::get_if<std::vector<std::string>>(&value))
    return Tensor::FromSpan<std::string>({static_cast<std::int64_t>(texts->size())}, *texts);
  return absl::InvalidArgumentError("its attribute is no value");
}

}  // namespace npurt::formats::onnx
