// Types as text: "sequence(tensor(int64))" to ValueType and back, and infos of inputs and outputs.
#include "absl/strings/strip.h"
#include "handles.h"

namespace npurt::capi {
namespace {

constexpr int kMaxNesting = 16;  // deeper types are no model's

struct KindName {
  const char* name;
  ValueKind kind;
};
constexpr KindName kKindNames[] = {{"tensor(", ValueKind::kTensor},
                                   {"sequence(", ValueKind::kSequence},
                                   {"seq(", ValueKind::kSequence},
                                   {"optional(", ValueKind::kOptional},
                                   {"map(", ValueKind::kMap}};

// Reads one type from the front of `text`.
absl::StatusOr<ValueType> Read(absl::string_view* text, int depth) {
  for (const KindName& row : kKindNames) {
    if (!absl::ConsumePrefix(text, row.name)) continue;
    ValueType type;
    type.kind = row.kind;
    if (row.kind == ValueKind::kTensor || row.kind == ValueKind::kMap) {
      const auto end = text->find_first_of(",)");
      type.dtype = DTypeFromName(text->substr(0, end));
      if (type.dtype == DType::kUndefined) return absl::InvalidArgumentError("is no element type");
      text->remove_prefix(end);
      if (row.kind == ValueKind::kMap && type.dtype != DType::kString &&
          !Contains(kIntegers, type.dtype))
        return absl::InvalidArgumentError("keys are integers or strings");
    }
    if (row.kind == ValueKind::kMap && !absl::ConsumePrefix(text, ","))
      return absl::InvalidArgumentError("',' is missing");
    if (row.kind != ValueKind::kTensor) {
      if (depth == 0) return absl::InvalidArgumentError("is nested too deep");
      absl::ConsumePrefix(text, " ");
      NPURT_ASSIGN_OR_RETURN(ValueType element, Read(text, depth - 1));
      type.element = std::make_shared<const ValueType>(std::move(element));
    }
    if (!absl::ConsumePrefix(text, ")")) return absl::InvalidArgumentError("')' is missing");
    return type;
  }
  return absl::InvalidArgumentError("want tensor(, sequence(, optional( or map(");
}

}  // namespace

absl::StatusOr<ValueType> ParseType(absl::string_view text) {
  absl::string_view rest = text;
  absl::StatusOr<ValueType> type = Read(&rest, kMaxNesting);
  if (type.ok() && !rest.empty()) type = absl::InvalidArgumentError("is too much");
  if (type.ok()) return type;
  return absl::InvalidArgumentError(absl::StrCat("type '", text.substr(0, 200), "': at '",
                                                 rest.substr(0, 40),
                                                 "': ", type.status().message()));
}

std::string TypeText(const ValueType& type) {
  const std::string held = type.element == nullptr ? "" : TypeText(*type.element);
  const std::string dtype(DTypeName(type.dtype));
  switch (type.kind) {
    case ValueKind::kTensor:
      return absl::StrCat("tensor(", dtype, ")");
    case ValueKind::kSequence:
      return absl::StrCat("sequence(", held, ")");
    case ValueKind::kOptional:
      return absl::StrCat("optional(", held, ")");
    case ValueKind::kMap:
      return absl::StrCat("map(", dtype, ",", held, ")");
    case ValueKind::kResource:
      return absl::StrCat("resource(", held, ")");
    case ValueKind::kNone:
      break;
  }
  return "none";
}

ValueType TypeOf(const Value& value) {
  // What an empty container would hold is not known here; float32 tensors are the likeliest.
  const auto held = [](const Value* item) {
    return item == nullptr ? ValueType::OfTensor(DType::kF32) : TypeOf(*item);
  };
  const auto first = [](const auto& entries) {
    return entries.empty() ? nullptr : &entries.begin()->second;
  };
  switch (value.kind()) {
    case ValueKind::kTensor:
      return ValueType::OfTensor(value.tensor().dtype(), ToSymDims(value.tensor().dims()));
    case ValueKind::kSequence:
      return ValueType::SequenceOf(held(value.items().empty() ? nullptr : &value.items()[0]));
    case ValueKind::kOptional:
      return ValueType::OptionalOf(held(value.items().empty() ? nullptr : &value.items()[0]));
    case ValueKind::kMap: {
      const ValueMap& map = value.map();
      return MapOf(map.string_keys ? DType::kString : DType::kI64,
                   held(map.string_keys ? first(map.by_string) : first(map.by_number)));
    }
    case ValueKind::kResource:
    case ValueKind::kNone:
      break;
  }
  return ValueType::OfTensor(DType::kUndefined);
}

ValueType MapOf(DType keys, ValueType element) {
  ValueType type = ValueType::SequenceOf(std::move(element));
  type.kind = ValueKind::kMap;
  type.dtype = keys;
  return type;
}

InfoStorage::InfoStorage(std::string name, const ValueType& type, npurt_kind kind)
    : name_(std::move(name)),
      type_(TypeText(type)),
      kind_(kind),
      dtype_(type.kind == ValueKind::kTensor ? static_cast<npurt_dtype>(type.dtype)
                                             : NPURT_DTYPE_NONE),
      rank_(type.kind == ValueKind::kTensor && type.has_rank ? static_cast<int>(type.dims.size())
                                                             : -1) {
  if (rank_ < 0) return;
  for (const Dim& dim : type.dims) {
    dims_.push_back(dim.is_constant() ? dim.value() : -1);
    dim_names_.push_back(dim.is_constant() ? "" : dim.ToString());
  }
  for (const std::string& dim_name : dim_names_) dim_name_pointers_.push_back(dim_name.c_str());
}

npurt_value_info InfoStorage::View() const {
  npurt_value_info info = npurt_value_info_init();
  info.kind = kind_;
  info.dtype = dtype_;
  info.rank = rank_;
  info.name = name_.c_str();
  info.type = type_.c_str();
  info.dims = dims_.data();
  info.dim_names = dim_name_pointers_.data();
  return info;
}

}  // namespace npurt::capi
