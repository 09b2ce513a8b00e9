#include "ops/op_def.h"

#include <algorithm>
#include <type_traits>

#include "absl/strings/str_cat.h"

namespace npurt::ops {
namespace {

bool IsVariadic(const Param& param) { return param.name[0] == '*'; }
bool IsOptional(const Param& param) { return param.name[IsVariadic(param) ? 1 : 0] == '?'; }

absl::string_view NameOf(const Param& param) {
  absl::string_view name = param.name;
  name.remove_prefix((IsVariadic(param) ? 1 : 0) + (IsOptional(param) ? 1 : 0));
  return name;
}

template <std::size_t N>
int CountOf(const Param (&params)[N]) {
  int count = 0;
  while (count < static_cast<int>(N) && params[count].name != nullptr) ++count;
  return count;
}

// The parameter of operand `i`: a variadic last one stands for all that follow.
template <std::size_t N>
const Param* ParamOf(const Param (&params)[N], int i) {
  const int count = CountOf(params);
  if (i < count) return &params[i];
  return count > 0 && IsVariadic(params[count - 1]) ? &params[count - 1] : nullptr;
}

const TypeVar* FindVar(const OpDef& op, absl::string_view name) {
  for (const TypeVar& var : op.types)
    if (var.name != nullptr && name == var.name) return &var;
  return nullptr;
}

std::string SetText(DTypeSet set) {
  std::string text;
  for (int i = 1; i < kDTypeCount; ++i)
    if (Contains(set, static_cast<DType>(i)))
      absl::StrAppend(&text, text.empty() ? "" : "|", DTypeName(static_cast<DType>(i)));
  return text;
}

// The kind of value that a parameter type asks for, or kNone if any will do.
ValueKind KindOf(absl::string_view type) {
  if (type == "any") return ValueKind::kNone;
  if (type == "sequence") return ValueKind::kSequence;
  if (type == "optional") return ValueKind::kOptional;
  if (type == "map") return ValueKind::kMap;
  if (type == "resource") return ValueKind::kResource;
  return ValueKind::kTensor;
}

// Where the fuse pass puts what it adds; -1 if nowhere.
int LastFusedInput(const OpDef& op) {
  return std::max(op.epilogue.bias_input, op.epilogue.residual_input);
}

bool IsFusedAttribute(const OpDef& op, absl::string_view name) {
  return op.epilogue.activation && (name == "activation" || name == "activation_alpha" ||
                                    name == "activation_beta");
}

absl::Status CheckInputs(const OpDef& op, absl::Span<const ValueType* const> types) {
  const int declared = CountOf(op.inputs), given = static_cast<int>(types.size());
  constexpr std::size_t kVars = std::extent_v<decltype(OpDef::types)>;
  DType bound[kVars] = {};
  int bound_by[kVars] = {};
  for (int i = 0; i < std::max(declared, given); ++i) {
    const Param* param = ParamOf(op.inputs, i);
    if (param == nullptr) {
      if (i <= LastFusedInput(op)) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("got ", given, " inputs, want at most ", declared));
    }
    if (i >= given || types[i] == nullptr) {
      if (IsOptional(*param) && (i >= given || !IsVariadic(*param))) continue;
      if (IsVariadic(*param) && i >= given && i >= declared) continue;
      return absl::InvalidArgumentError(absl::StrCat("input '", NameOf(*param), "' is missing"));
    }
    const ValueType& type = *types[i];
    const ValueKind kind = KindOf(param->type);
    if (kind == ValueKind::kNone) continue;
    if (type.kind != kind)
      return absl::InvalidArgumentError(
          absl::StrCat("input '", NameOf(*param), "' is ", type.ToString(), ", want ",
                       kind == ValueKind::kTensor ? "a tensor" : absl::StrCat("a ", param->type)));
    if (kind != ValueKind::kTensor || type.dtype == DType::kUndefined) continue;
    const TypeVar* var = FindVar(op, param->type);
    const DTypeSet allowed = var != nullptr ? var->allowed : Bit(DTypeFromName(param->type));
    if (!Contains(allowed, type.dtype))
      return absl::InvalidArgumentError(absl::StrCat("input '", NameOf(*param), "' is ",
                                                     DTypeName(type.dtype), ", want ",
                                                     SetText(allowed)));
    if (var == nullptr) continue;
    const std::size_t v = static_cast<std::size_t>(var - op.types);
    if (bound[v] != DType::kUndefined && bound[v] != type.dtype)
      return absl::InvalidArgumentError(
          absl::StrCat("input '", NameOf(*param), "' is ", DTypeName(type.dtype), ", input '",
                       NameOf(*ParamOf(op.inputs, bound_by[v])), "' is ", DTypeName(bound[v]),
                       ", want the same type"));
    bound[v] = type.dtype;
    bound_by[v] = i;
  }
  return absl::OkStatus();
}

absl::Status CheckAttributes(const OpDef& op, const Attributes& attributes) {
  static constexpr const char* kKinds[] = {"an integer", "a float",   "a string",
                                           "integers",   "floats",    "strings",
                                           "a tensor",   "tensors",   "a graph",
                                           "a type"};
  // Any node may have it: 1 keeps its element types whatever precision_mode says.
  static constexpr AttrDef kKeepDtype = {"_keep_dtype", AttrKind::kInt};
  for (const Attribute& attribute : attributes.all()) {
    const AttrDef* found = attribute.name == kKeepDtype.name ? &kKeepDtype : nullptr;
    for (const AttrDef& def : op.attributes)
      if (def.name != nullptr && attribute.name == def.name) found = &def;
    if (found == nullptr) {
      if (IsFusedAttribute(op, attribute.name)) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("operator ", op.name, " has no attribute '", attribute.name, "'"));
    }
    // AttributeValue lists its types in the order of AttrKind.
    if (attribute.value.index() != static_cast<std::size_t>(found->kind))
      return absl::InvalidArgumentError(
          absl::StrCat("attribute '", attribute.name, "' is ", kKinds[attribute.value.index()],
                       ", want ", kKinds[static_cast<int>(found->kind)]));
  }
  for (const AttrDef& def : op.attributes)
    if (def.name != nullptr && def.required && !attributes.Has(def.name))
      return absl::InvalidArgumentError(absl::StrCat("attribute '", def.name, "' is missing"));
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckSchema(const OpDef& op, absl::Span<const ValueType* const> types, int outputs,
                         const Attributes& attributes) {
  NPURT_RETURN_IF_ERROR(CheckInputs(op, types));
  if (outputs > 0 && ParamOf(op.outputs, outputs - 1) == nullptr)
    return absl::InvalidArgumentError(
        absl::StrCat("got ", outputs, " outputs, want at most ", CountOf(op.outputs)));
  return CheckAttributes(op, attributes);
}

DType SchemaOutputType(const OpDef& op, int i, absl::Span<const ValueType* const> types) {
  const Param* output = ParamOf(op.outputs, i);
  if (output == nullptr) return DType::kUndefined;
  const TypeVar* var = FindVar(op, output->type);
  if (var == nullptr) return DTypeFromName(output->type);
  for (std::size_t k = 0; k < types.size(); ++k) {
    const Param* input = ParamOf(op.inputs, static_cast<int>(k));
    if (input != nullptr && types[k] != nullptr && types[k]->kind == ValueKind::kTensor &&
        absl::string_view(input->type) == var->name)
      return types[k]->dtype;
  }
  return DType::kUndefined;
}

bool RanksKnown(const InferContext& context) {
  for (int i = 0; i < context.input_count(); ++i)
    if (context.has_input(i) && context.type(i).kind == ValueKind::kTensor &&
        !context.type(i).has_rank)
      return false;
  return true;
}

absl::StatusOr<int> NormalizeAxis(std::int64_t axis, int rank) {
  if (axis < -rank || axis >= rank)
    return absl::InvalidArgumentError(absl::StrCat("axis ", axis, " of a tensor of rank ", rank,
                                                   ", want one from ", -rank, " to ", rank - 1));
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

absl::StatusOr<SymDims> BroadcastShapes(absl::Span<const Dim> a, absl::Span<const Dim> b) {
  const std::size_t rank = std::max(a.size(), b.size());
  SymDims out(rank);
  for (std::size_t i = 0; i < rank; ++i) {  // from the last dimension on
    const Dim x = i < a.size() ? a[a.size() - 1 - i] : Dim(1);
    const Dim y = i < b.size() ? b[b.size() - 1 - i] : Dim(1);
    if (x.is_constant() && y.is_constant() && x != y && !x.Is(1) && !y.Is(1))
      return absl::InvalidArgumentError(
          absl::StrCat("shapes ", ShapeString(a), " and ", ShapeString(b), " do not broadcast: ",
                       x.value(), " against ", y.value()));
    out[rank - 1 - i] = Broadcast(x, y);
  }
  return out;
}

std::optional<std::vector<std::int64_t>> ConstantIntegers(const InferContext& context, int i) {
  if (!context.has_input(i)) return std::nullopt;
  if (const Tensor* tensor = context.constant(i)) {
    auto values = Integers(*tensor);
    if (values.ok()) return *std::move(values);
    return std::nullopt;
  }
  const std::optional<SymDims> dims = context.integers(i);
  if (!dims || !AllConstant(*dims)) return std::nullopt;
  const Dims numbers = ToDims(*dims);
  return std::vector<std::int64_t>(numbers.begin(), numbers.end());
}

}  // namespace npurt::ops
