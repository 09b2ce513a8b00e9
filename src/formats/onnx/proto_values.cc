#include "formats/onnx/proto_values.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/checked_math.h"

namespace npurt::formats::onnx {
namespace {

using absl::StatusCode;

// The typed fields of TensorProto.
enum DataField {
  kFloatData = 4,
  kInt32Data = 5,
  kStringData = 6,
  kInt64Data = 7,
  kDoubleData = 10,
  kUint64Data = 11
};

constexpr const char* DataFieldName(int field) {
  switch (field) {
    case kFloatData:
      return "float_data";
    case kInt32Data:
      return "int32_data";
    case kStringData:
      return "string_data";
    case kInt64Data:
      return "int64_data";
    case kDoubleData:
      return "double_data";
    default:
      return "uint64_data";
  }
}

// The field that holds elements of `dtype`.
int DataFieldOf(DType dtype) {
  switch (dtype) {
    case DType::kF32:
    case DType::kC64:
      return kFloatData;
    case DType::kF64:
    case DType::kC128:
      return kDoubleData;
    case DType::kI64:
      return kInt64Data;
    case DType::kU32:
    case DType::kU64:
      return kUint64Data;
    case DType::kString:
      return kStringData;
    default:
      return kInt32Data;
  }
}

struct TensorFields {
  absl::string_view name;
  Dims dims;
  std::int64_t dtype = 0;
  bool has_raw = false, external = false;
  absl::string_view raw;
  std::vector<std::pair<std::string, std::string>> external_data;
  int data_field = 0;                     // of `chunks`; 0: none
  std::vector<absl::string_view> chunks;  // encoded numbers, or strings
};

void ParseEntry(Reader& reader, std::pair<std::string, std::string>* entry) {
  while (reader.Next()) {
    if (reader.field() == 1) entry->first = std::string(reader.Name("key"));
    if (reader.field() == 2) entry->second = std::string(reader.Name("value"));
  }
}

void ReadFields(Reader& reader, TensorFields* t) {
  std::int64_t singles = 0;
  while (reader.Next()) {
    switch (reader.field()) {
      case 1:
        ParseDims(reader, &t->dims);
        break;
      case 2:
        t->dtype = reader.Int("data_type");
        break;
      case 3:
        reader.Fail(StatusCode::kUnimplemented, "segment", "tensors in segments are not supported");
        break;
      case kFloatData:
      case kInt32Data:
      case kStringData:
      case kInt64Data:
      case kDoubleData:
      case kUint64Data: {
        const char* const name = DataFieldName(reader.field());
        if (t->data_field != 0 && t->data_field != reader.field())
          return reader.Fail(StatusCode::kInvalidArgument, name, "a second field with elements");
        t->data_field = reader.field();
        bool packed;
        const absl::string_view chunk = reader.Chunk(name, &packed);
        if (t->data_field == kStringData && !packed)
          return reader.Fail(StatusCode::kDataLoss, name, "has the wire type of a number");
        // Sixteen bytes for each element that is not packed.
        if ((!packed || t->data_field == kStringData) &&
            ++singles > reader.wire()->limits().max_messages)
          return reader.Fail(StatusCode::kResourceExhausted, name, "too many elements one by one");
        t->chunks.push_back(chunk);
        break;
      }
      case 8:
        t->name = reader.Name("name");
        break;
      case 9:
        t->has_raw = true;
        t->raw = reader.Bytes("raw_data");
        break;
      case 13:
        reader.Message("external_data", static_cast<std::int64_t>(t->external_data.size()),
                       [t](Reader& entry) { ParseEntry(entry, &t->external_data.emplace_back()); });
        break;
      case 14:
        t->external = reader.Int("data_location") == 1;
        break;
      default:
        break;
    }
  }
}

// Elements as they lie in memory: a view of them, or a copy.
Tensor FromBytes(Reader& reader, DType dtype, const Dims& dims, absl::string_view bytes,
                 const std::shared_ptr<const void>& owner) {
  // A bool of another value than 0 and 1 is undefined behaviour for whoever loads it.
  const bool odd_bools = dtype == DType::kBool && std::any_of(bytes.begin(), bytes.end(),
                                                              [](char c) { return (c & ~1) != 0; });
  if (owner != nullptr && !odd_bools) return Tensor::Borrow(dtype, dims, bytes.data(), owner);
  auto copy = Tensor::Create(dtype, dims);
  if (!copy.ok()) {
    reader.Fail(copy.status().code(), nullptr, copy.status().message());
    return {};
  }
  char* const to = static_cast<char*>(copy->mutable_data());
  if (!bytes.empty()) std::memcpy(to, bytes.data(), bytes.size());
  if (odd_bools)
    for (std::size_t i = 0; i < bytes.size(); ++i) to[i] = to[i] != 0;
  return *std::move(copy);
}

template <typename T>
bool DecodeVarints(const std::vector<absl::string_view>& chunks, Tensor* tensor) {
  std::size_t at = 0;
  const std::size_t end = tensor->bytes() / sizeof(T);
  bool fits = true;
  for (absl::string_view chunk : chunks) {
    const bool whole = ForEachVarint(chunk, [&](std::uint64_t value) {
      if (at < end)
        tensor->set<T>(static_cast<std::int64_t>(at++), static_cast<T>(value));
      else
        fits = false;
    });
    if (!whole || !fits) return false;
  }
  return at == end;
}

bool DecodeBools(const std::vector<absl::string_view>& chunks, Tensor* tensor) {
  if (!DecodeVarints<std::uint8_t>(chunks, tensor)) return false;
  char* const bytes = static_cast<char*>(tensor->mutable_data());
  for (std::size_t i = 0; i < tensor->bytes(); ++i) bytes[i] = bytes[i] != 0;
  return true;
}

// int32_data and its like hold one element of 8 or more bits in a number, or one byte of smaller
// ones.
bool DecodeNumbers(const std::vector<absl::string_view>& chunks, Tensor* tensor) {
  if (tensor->dtype() == DType::kBool) return DecodeBools(chunks, tensor);
  switch (DTypeBits(tensor->dtype())) {
    case 16:
      return DecodeVarints<std::uint16_t>(chunks, tensor);
    case 32:
      return DecodeVarints<std::uint32_t>(chunks, tensor);
    case 64:
      return DecodeVarints<std::uint64_t>(chunks, tensor);
    default:
      return DecodeVarints<std::uint8_t>(chunks, tensor);
  }
}

Tensor FromTypedField(Reader& reader, DType dtype, const TensorFields& t, std::size_t bytes,
                      const TensorSource& source) {
  const char* const name = DataFieldName(DataFieldOf(dtype));
  const auto fail = [&](absl::string_view what) {
    reader.Fail(StatusCode::kInvalidArgument, name,
                absl::StrCat("'", t.name, "': ", what, " ", DTypeName(dtype),
                             ShapeString(absl::MakeConstSpan(t.dims))));
    return Tensor();
  };
  if (t.data_field != 0 && t.data_field != DataFieldOf(dtype))
    return fail(absl::StrCat("has ", DataFieldName(t.data_field), ", which is not for"));
  std::size_t given = 0;
  for (absl::string_view chunk : t.chunks) given += chunk.size();
  if (dtype == DType::kString) {
    if (t.chunks.size() != bytes / sizeof(std::string))
      return fail(absl::StrCat("has ", t.chunks.size(), " strings for"));
  } else if (t.data_field == kFloatData || t.data_field == kDoubleData) {
    if (given != bytes) return fail(absl::StrCat("has ", given, " bytes for"));
    if (t.chunks.size() == 1) return FromBytes(reader, dtype, t.dims, t.chunks[0], source.owner);
  } else if (given < bytes / std::max<std::size_t>(1, DTypeBits(dtype) / 8)) {
    return fail("has too few elements for");  // checked before memory is taken
  }
  auto tensor = Tensor::Create(dtype, t.dims);
  if (!tensor.ok()) return fail(tensor.status().message());
  if (dtype == DType::kString) {
    for (std::size_t i = 0; i < t.chunks.size(); ++i)
      tensor->set<std::string>(static_cast<std::int64_t>(i), std::string(t.chunks[i]));
  } else if (t.data_field == kFloatData || t.data_field == kDoubleData) {
    char* to = static_cast<char*>(tensor->mutable_data());
    for (absl::string_view chunk : t.chunks) {
      if (!chunk.empty()) std::memcpy(to, chunk.data(), chunk.size());
      to += chunk.size();
    }
  } else if (!DecodeNumbers(t.chunks, &*tensor)) {
    return fail("has not the number of elements of");
  }
  return *std::move(tensor);
}

Tensor FromExternal(Reader& reader, DType dtype, const TensorFields& t, std::size_t bytes,
                    const TensorSource& source) {
  const auto fail = [&](StatusCode code, absl::string_view what) {
    reader.Fail(code, "external_data", absl::StrCat("'", t.name, "': ", what));
    return Tensor();
  };
  if (source.external == nullptr)
    return fail(StatusCode::kPermissionDenied, "external data is not read here");
  if (dtype == DType::kString)
    return fail(StatusCode::kInvalidArgument, "strings cannot be external data");
  std::string location;
  std::uint64_t offset = 0, length = bytes;
  for (const auto& [key, value] : t.external_data) {
    if (key == "location") location = value;
    if ((key == "offset" && !absl::SimpleAtoi(value, &offset)) ||
        (key == "length" && !absl::SimpleAtoi(value, &length)))
      return fail(StatusCode::kInvalidArgument,
                  absl::StrCat(key, " is '", value, "', want a number"));
  }
  auto file = source.external->Open(location);
  if (!file.ok()) return fail(file.status().code(), file.status().message());
  if (length != bytes)
    return fail(StatusCode::kInvalidArgument,
                absl::StrCat("length is ", length, ", want ", bytes, " bytes for ",
                             DTypeName(dtype), ShapeString(absl::MakeConstSpan(t.dims))));
  if (offset > file->bytes.size() || length > file->bytes.size() - offset)
    return fail(StatusCode::kDataLoss,
                absl::StrCat("'", location, "' has ", file->bytes.size(), " bytes, want ", length,
                             " at offset ", offset));
  if (bytes == 0) return FromBytes(reader, dtype, t.dims, {}, nullptr);
  return FromBytes(reader, dtype, t.dims, file->bytes.substr(offset, length), file->owner);
}

template <typename F>
auto ReadWhole(absl::string_view bytes, const Limits& limits, F&& parse)
    -> absl::StatusOr<decltype(parse(std::declval<Reader&>()))> {
  Wire wire(bytes, limits);
  Reader reader(bytes, &wire);
  auto value = parse(reader);
  if (!wire.status().ok()) return wire.status();
  return value;
}

}  // namespace

void ParseDims(Reader& reader, Dims* dims) {
  std::vector<std::int64_t> more;
  reader.Ints("dims", &more);
  dims->insert(dims->end(), more.begin(), more.end());
  if (dims->size() > static_cast<std::size_t>(reader.wire()->limits().max_rank))
    reader.Fail(StatusCode::kResourceExhausted, "dims",
                absl::StrCat("more than ", reader.wire()->limits().max_rank, " dimensions"));
}

NamedTensor ParseTensor(Reader& reader, const TensorSource& source) {
  TensorFields t;
  ReadFields(reader, &t);
  NamedTensor result{t.name, {}};
  if (!reader.ok()) return result;
  if (t.dtype > std::numeric_limits<int>::max() || !IsDType(static_cast<int>(t.dtype))) {
    reader.Fail(StatusCode::kInvalidArgument, "data_type",
                absl::StrCat("'", t.name, "': ", t.dtype, " is no element type"));
    return result;
  }
  const DType dtype = static_cast<DType>(t.dtype);
  const auto count = ElementCount(t.dims);
  std::size_t bytes = 0;
  if (!count.ok() || !BytesOf(dtype, *count, &bytes)) {
    reader.Fail(StatusCode::kInvalidArgument, "dims",
                absl::StrCat("'", t.name, "': a tensor of ", DTypeName(dtype),
                             ShapeString(absl::MakeConstSpan(t.dims)), " is not possible"));
    return result;
  }
  if (t.external) {
    result.tensor = FromExternal(reader, dtype, t, bytes, source);
  } else if (t.has_raw && dtype != DType::kString) {
    if (t.raw.size() != bytes)
      reader.Fail(
          StatusCode::kInvalidArgument, "raw_data",
          absl::StrCat("'", t.name, "': has ", t.raw.size(), " bytes, want ", bytes, " for ",
                       DTypeName(dtype), ShapeString(absl::MakeConstSpan(t.dims))));
    else
      result.tensor = FromBytes(reader, dtype, t.dims, t.raw, source.owner);
  } else {
    result.tensor = FromTypedField(reader, dtype, t, bytes, source);
  }
  return result;
}

Value ParseSequence(Reader& reader, const TensorSource& source) {
  ValueList items;
  while (reader.Next()) {
    const auto index = static_cast<std::int64_t>(items.size());
    switch (reader.field()) {
      case 3:
        reader.Message("tensor_values", index,
                       [&](Reader& r) { items.emplace_back(ParseTensor(r, source).tensor); });
        break;
      case 4:
        reader.Message("sparse_tensor_values", index,
                       [&](Reader& r) { items.emplace_back(ParseSparseTensor(r, source).tensor); });
        break;
      case 5:
        reader.Message("sequence_values", index,
                       [&](Reader& r) { items.push_back(ParseSequence(r, source)); });
        break;
      case 6:
        reader.Message("map_values", index,
                       [&](Reader& r) { items.push_back(ParseMap(r, source)); });
        break;
      case 7:
        reader.Message("optional_values", index,
                       [&](Reader& r) { items.push_back(ParseOptional(r, source)); });
        break;
      default:
        break;
    }
  }
  return Value::Sequence(std::move(items));
}

Value ParseOptional(Reader& reader, const TensorSource& source) {
  Value item;
  std::int64_t elem_type = 0;
  while (reader.Next()) {
    switch (reader.field()) {
      case 2:
        elem_type = reader.Int("elem_type");
        break;
      case 3:
        reader.Message("tensor_value", -1,
                       [&](Reader& r) { item = Value(ParseTensor(r, source).tensor); });
        break;
      case 4:
        reader.Message("sparse_tensor_value", -1,
                       [&](Reader& r) { item = Value(ParseSparseTensor(r, source).tensor); });
        break;
      case 5:
        reader.Message("sequence_value", -1, [&](Reader& r) { item = ParseSequence(r, source); });
        break;
      case 6:
        reader.Message("map_value", -1, [&](Reader& r) { item = ParseMap(r, source); });
        break;
      case 7:
        reader.Message("optional_value", -1, [&](Reader& r) { item = ParseOptional(r, source); });
        break;
      default:
        break;
    }
  }
  // An optional of an element type without an element is an empty one too.
  return item.kind() == ValueKind::kNone || elem_type == 0 ? Value::Empty() : Value::Some(item);
}

Value ParseMap(Reader& reader, const TensorSource& source) {
  std::vector<std::int64_t> numbers;
  std::vector<absl::string_view> strings;
  Value values;
  std::int64_t key_type = 0;
  while (reader.Next()) {
    switch (reader.field()) {
      case 2:
        key_type = reader.Int("key_type");
        break;
      case 3:
        reader.Ints("keys", &numbers);
        break;
      case 4:
        strings.push_back(reader.Name("string_keys"));
        break;
      case 5:
        reader.Message("values", -1, [&](Reader& r) { values = ParseSequence(r, source); });
        break;
      default:
        break;
    }
  }
  if (!reader.ok()) return {};
  ValueMap map;
  map.string_keys = key_type == static_cast<int>(DType::kString);
  const std::size_t count = values.kind() == ValueKind::kNone ? 0 : values.items().size();
  const std::size_t keys = map.string_keys ? strings.size() : numbers.size();
  if (keys != count) {
    reader.Fail(StatusCode::kInvalidArgument, "values",
                absl::StrCat("a map of ", keys, " keys and ", count, " values"));
    return {};
  }
  bool unique = true;
  for (std::size_t i = 0; i < count; ++i)
    unique &= map.string_keys
                  ? map.by_string.emplace(std::string(strings[i]), values.items()[i]).second
                  : map.by_number.emplace(numbers[i], values.items()[i]).second;
  if (!unique) {
    reader.Fail(StatusCode::kInvalidArgument, "keys", "a key stands there twice");
    return {};
  }
  return Value::Map(std::move(map));
}

absl::StatusOr<Tensor> ReadTensorProto(absl::string_view bytes, const Limits& limits) {
  return ReadWhole(bytes, limits, [](Reader& r) { return ParseTensor(r, {}).tensor; });
}
absl::StatusOr<Value> ReadSequenceProto(absl::string_view bytes, const Limits& limits) {
  return ReadWhole(bytes, limits, [](Reader& r) { return ParseSequence(r, {}); });
}
absl::StatusOr<Value> ReadOptionalProto(absl::string_view bytes, const Limits& limits) {
  return ReadWhole(bytes, limits, [](Reader& r) { return ParseOptional(r, {}); });
}
absl::StatusOr<Value> ReadMapProto(absl::string_view bytes, const Limits& limits) {
  return ReadWhole(bytes, limits, [](Reader& r) { return ParseMap(r, {}); });
}

}  // namespace npurt::formats::onnx
