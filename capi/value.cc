// Values: making, reading and sharing tensors, sequences, optionals and maps.
#include <algorithm>

#include "base/checked_math.h"
#include "formats/onnx/proto_values.h"
#include "handles.h"

namespace npurt::capi {
namespace {

constexpr std::size_t kMaxRank = 255;  // no format has more, and a rank fits a byte

absl::StatusOr<DType> WantDType(npurt_dtype dtype) {
  if (!IsDType(dtype))
    return absl::InvalidArgumentError(absl::StrCat("dtype ", dtype, " is no element type"));
  return static_cast<DType>(dtype);
}

absl::StatusOr<absl::Span<const std::int64_t>> WantDims(const std::int64_t* dims,
                                                        std::size_t rank) {
  if (rank > 0) NPURT_RETURN_IF_ERROR(WantAll("dims", dims));
  if (rank > kMaxRank)
    return absl::InvalidArgumentError(absl::StrCat("got rank ", rank, ", want at most ", kMaxRank));
  NPURT_RETURN_IF_ERROR(ElementCount({dims, rank}));
  return absl::Span<const std::int64_t>(dims, rank);
}

Dims RowMajorStrides(absl::Span<const std::int64_t> dims) {
  Dims strides(dims.size());
  std::int64_t step = 1;
  for (std::size_t i = dims.size(); i-- > 0;) {
    strides[i] = step;
    step *= std::max<std::int64_t>(dims[i], 1);
  }
  return strides;
}

// Whether strides say no more than row-major order; those of dimensions of 1 do not count.
bool SaysRowMajor(absl::Span<const std::int64_t> dims, absl::Span<const std::int64_t> strides) {
  const Dims plain = RowMajorStrides(dims);
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 0) return true;
    if (dims[i] != 1 && strides[i] != plain[i]) return false;
  }
  return true;
}

// Calls f(row-major index, offset in elements) for the first element of every innermost row.
template <typename F>
void ForEachRow(absl::Span<const std::int64_t> dims, absl::Span<const std::int64_t> strides,
                std::int64_t count, F&& f) {
  if (count == 0) return;
  const std::size_t outer = dims.empty() ? 0 : dims.size() - 1;
  const std::int64_t row = dims.empty() ? 1 : dims.back();
  Dims at(outer, 0);
  std::int64_t offset = 0;
  for (std::int64_t i = 0; i < count; i += row) {
    f(i, offset);
    for (std::size_t d = outer; d-- > 0;) {
      offset += strides[d];
      if (++at[d] < dims[d]) break;
      offset -= strides[d] * dims[d];
      at[d] = 0;
    }
  }
}

// Copies between row-major bytes and strided ones.
template <bool kGather>
void CopyStrided(const Tensor& shape, absl::Span<const std::int64_t> strides, char* plain,
                 char* strided) {
  const std::int64_t size = DTypeBits(shape.dtype()) / 8;
  const std::int64_t row = shape.dims().empty() ? 1 : shape.dims().back();
  const std::int64_t step = shape.dims().empty() ? 1 : strides.back();
  ForEachRow(shape.dims(), strides, shape.element_count(), [&](std::int64_t i, std::int64_t at) {
    for (std::int64_t j = 0; j < row; ++j) {
      char* a = plain + (i + j) * size;
      char* b = strided + (at + j * step) * size;
      std::memcpy(kGather ? a : b, kGather ? b : a, static_cast<std::size_t>(size));
    }
  });
}

// A zeroed tensor in memory of the host, or of the library if it has no allocator.
absl::StatusOr<Tensor> NewTensor(DType dtype, absl::Span<const std::int64_t> dims,
                                 npurt_host* host) {
  if (host == nullptr || host->allocator == nullptr || dtype == DType::kString)
    return Tensor::Create(dtype, dims);
  constexpr std::size_t kAlignment = 64;
  NPURT_ASSIGN_OR_RETURN(const std::int64_t count, ElementCount(dims));
  std::size_t bytes;
  if (!BytesOf(dtype, count, &bytes))
    return absl::ResourceExhaustedError(
        absl::StrCat("a tensor of ", count, " elements is too large"));
  if (bytes == 0) return Tensor::Create(dtype, dims);
  const std::shared_ptr<const npurt_allocator> allocator = host->allocator;
  void* data = allocator->allocate(allocator->user_data, bytes, kAlignment, NPURT_MEMORY_VALUE);
  if (data == nullptr)
    return absl::ResourceExhaustedError(absl::StrCat("the allocator has no ", bytes, " bytes"));
  std::shared_ptr<const void> owner(data, [allocator, bytes](void* memory) {
    allocator->release(allocator->user_data, memory, bytes, kAlignment, NPURT_MEMORY_VALUE);
  });
  std::memset(data, 0, bytes);
  return Tensor::Borrow(dtype, dims, data, std::move(owner));
}

absl::Status WantKind(const npurt_value* value, ValueKind kind, const char* wanted) {
  NPURT_RETURN_IF_ERROR(WantAll("value", value));
  if (value->value.kind() == kind) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("got a ", value->type, ", want ", wanted));
}

absl::Status WantIndex(std::size_t index, std::size_t count) {
  if (index < count) return absl::OkStatus();
  return absl::OutOfRangeError(absl::StrCat("got index ", index, ", want less than ", count));
}

// The type that all items have; `element_type` may be null if there are items.
absl::StatusOr<ValueType> ElementType(const char* element_type, npurt_value* const* items,
                                      std::size_t count) {
  if (element_type == nullptr && count == 0)
    return absl::InvalidArgumentError("element_type must not be NULL when there is no item");
  if (count > 0) NPURT_RETURN_IF_ERROR(WantAll("items", items));
  for (std::size_t i = 0; i < count; ++i)
    if (items[i] == nullptr)
      return absl::InvalidArgumentError(absl::StrCat("item ", i, " must not be NULL"));
  NPURT_ASSIGN_OR_RETURN(const ValueType type,
                         ParseType(element_type != nullptr ? absl::string_view(element_type)
                                                           : absl::string_view(items[0]->type)));
  const std::string wanted = TypeText(type);
  for (std::size_t i = 0; i < count; ++i)
    if (items[i]->type != wanted)
      return absl::InvalidArgumentError(
          absl::StrCat("item ", i, " is a ", items[i]->type, ", want ", wanted));
  return type;
}

// The scalars of a tensor of rank 1.
absl::StatusOr<ValueList> Scalars(const Tensor& tensor) {
  ValueList items;
  const int bits = DTypeBits(tensor.dtype());
  if (bits < 8)
    return absl::UnimplementedError(
        absl::StrCat("values of type ", std::string(DTypeName(tensor.dtype()))));
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) {
    if (tensor.dtype() == DType::kString) {
      NPURT_ASSIGN_OR_RETURN(Tensor item, Tensor::Create(DType::kString, {}));
      item.set<std::string>(0, tensor.at<std::string>(i));
      items.push_back(Value(std::move(item)));
    } else {
      items.push_back(Value(Tensor::Borrow(tensor.dtype(), {},
                                           static_cast<const char*>(tensor.data()) + i * (bits / 8),
                                           std::make_shared<Tensor>(tensor))));
    }
  }
  return items;
}

absl::StatusOr<ValueMap> MakeMap(const Tensor& keys, const ValueList& values) {
  ValueMap map;
  map.string_keys = keys.dtype() == DType::kString;
  if (keys.rank() != 1 || (!map.string_keys && !Contains(kIntegers, keys.dtype())))
    return absl::InvalidArgumentError("keys: want a tensor of rank 1, integers or strings");
  if (keys.element_count() != static_cast<std::int64_t>(values.size()))
    return absl::InvalidArgumentError(absl::StrCat("got ", keys.element_count(), " keys and ",
                                                   values.size(), " values, want as many"));
  std::vector<std::int64_t> numbers;
  if (!map.string_keys) {
    NPURT_ASSIGN_OR_RETURN(numbers, Integers(keys));
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::int64_t at = static_cast<std::int64_t>(i);
    const bool fresh = map.string_keys
                           ? map.by_string.emplace(keys.at<std::string>(at), values[i]).second
                           : map.by_number.emplace(numbers[i], values[i]).second;
    if (!fresh)
      return absl::InvalidArgumentError(absl::StrCat("keys: entry ", i, " is there twice"));
  }
  return map;
}

absl::StatusOr<Value> ReadProto(npurt_kind kind, absl::string_view bytes) {
  switch (kind) {
    case NPURT_KIND_TENSOR: {
      NPURT_ASSIGN_OR_RETURN(Tensor tensor, formats::onnx::ReadTensorProto(bytes));
      return Value(std::move(tensor));
    }
    case NPURT_KIND_SEQUENCE:
      return formats::onnx::ReadSequenceProto(bytes);
    case NPURT_KIND_OPTIONAL:
      return formats::onnx::ReadOptionalProto(bytes);
    case NPURT_KIND_MAP:
      return formats::onnx::ReadMapProto(bytes);
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("got kind ", kind, ", want tensor, sequence, optional or map"));
  }
}

const Value& NthValue(const ValueMap& map, std::size_t index) {
  if (map.string_keys) return std::next(map.by_string.begin(), index)->second;
  return std::next(map.by_number.begin(), index)->second;
}

std::size_t SizeOf(const ValueMap& map) {
  return map.string_keys ? map.by_string.size() : map.by_number.size();
}

}  // namespace

npurt_value* NewValue(Value value, const ValueType& type) {
  auto made = std::make_unique<npurt_value>();
  made->type = TypeText(type);
  made->value = std::move(value);
  if (made->value.is_tensor()) made->strides = RowMajorStrides(made->value.tensor().dims());
  return made.release();
}

npurt_value* NewValue(Value value) {
  const ValueType type = TypeOf(value);
  return NewValue(std::move(value), type);
}

absl::StatusOr<Value> RowMajor(const npurt_value& value) {
  if (value.row_major) return value.value;
  const Tensor& shape = value.value.tensor();
  NPURT_ASSIGN_OR_RETURN(Tensor plain, Tensor::Create(shape.dtype(), shape.dims()));
  CopyStrided<true>(shape, value.strides, static_cast<char*>(plain.mutable_data()),
                    static_cast<char*>(const_cast<void*>(shape.data())));
  return Value(std::move(plain));
}

absl::Status Scatter(const Tensor& from, npurt_value* to) {
  const Tensor& shape = to->value.tensor();
  if (from.dtype() != shape.dtype() || from.dims() != shape.dims())
    return absl::InvalidArgumentError(
        absl::StrCat("got ", std::string(DTypeName(from.dtype())), ShapeString(from.dims()),
                     ", want ", std::string(DTypeName(shape.dtype())), ShapeString(shape.dims())));
  char* data = static_cast<char*>(const_cast<void*>(shape.data()));
  if (shape.dtype() == DType::kString) {
    for (std::int64_t i = 0; i < shape.element_count(); ++i)
      reinterpret_cast<std::string*>(data)[i] = from.at<std::string>(i);
  } else if (to->row_major) {
    if (from.bytes() > 0) std::memcpy(data, from.data(), from.bytes());
  } else {
    CopyStrided<false>(shape, to->strides, static_cast<char*>(const_cast<void*>(from.data())),
                       data);
  }
  return absl::OkStatus();
}

bool ElementsAreApart(const npurt_value& value) {
  if (value.row_major) return true;
  const Dims& dims = value.value.tensor().dims();
  std::vector<std::pair<std::int64_t, std::int64_t>> by_stride;  // {stride, size}
  for (std::size_t i = 0; i < dims.size(); ++i)
    if (dims[i] > 1) by_stride.push_back({value.strides[i], dims[i]});
  std::sort(by_stride.begin(), by_stride.end());
  std::int64_t reach = 1;  // what the faster dimensions cover
  for (const auto& [stride, size] : by_stride) {
    if (stride < reach) return false;
    reach = stride * (size - 1) + reach;
  }
  return true;
}

npurt_tensor ViewOf(npurt_value& value) {
  const Tensor& tensor = value.value.tensor();
  npurt_tensor view = npurt_tensor_init();
  view.flags = (value.read_only ? NPURT_TENSOR_READ_ONLY : 0) |
               (value.row_major ? NPURT_TENSOR_CONTIGUOUS : 0);
  view.dtype = static_cast<npurt_dtype>(tensor.dtype());
  view.rank = tensor.rank();
  view.dims = tensor.dims().data();
  view.strides = value.strides.data();
  const bool visible = tensor.dtype() != DType::kString && tensor.element_count() > 0;
  view.data = visible ? const_cast<void*>(tensor.data()) : nullptr;
  view.bytes = tensor.dtype() == DType::kString ? 0 : tensor.bytes();
  view.count = static_cast<std::size_t>(tensor.element_count());
  return view;
}

}  // namespace npurt::capi

using namespace npurt;        // NOLINT: the C functions below are the outside of this file
using namespace npurt::capi;  // NOLINT

npurt_status npurt_value_create(npurt_dtype dtype, const int64_t* dims, size_t rank,
                                npurt_host* host, npurt_value** out_value, npurt_error** error) {
  return Guard(error, [&]() -> absl::Status {
    NPURT_RETURN_IF_ERROR(WantAll("out_value", out_value));
    NPURT_ASSIGN_OR_RETURN(const DType type, WantDType(dtype));
    NPURT_ASSIGN_OR_RETURN(const auto shape, WantDims(dims, rank));
    NPURT_ASSIGN_OR_RETURN(Tensor tensor, NewTensor(type, shape, host));
    *out_value = NewValue(Value(std::move(tensor)));
    return absl::OkStatus();
  });
}

npurt_status npurt_value_copy(npurt_dtype dtype, const int64_t* dims, size_t rank, const void* data,
                              size_t bytes, npurt_value** out_value, npurt_error** error) {
  return Guard(error, [&]() -> absl::Status {
    NPURT_RETURN_IF_ERROR(WantAll("out_value", out_value));
    NPURT_ASSIGN_OR_RETURN(const DType type, WantDType(dtype));
    if (type == DType::kString)
      return absl::InvalidArgumentError("strings are made with npurt_value_strings");
    NPURT_ASSIGN_OR_RETURN(const auto shape, WantDims(dims, rank));
    if (bytes > 0) NPURT_RETURN_IF_ERROR(WantAll("data", data));
    NPURT_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Create(type, shape));
    if (tensor.bytes() != bytes)
      return absl::InvalidArgumentError(absl::StrCat("got ", bytes, " bytes, want ", tensor.bytes(),
                                                     " for ", std::string(DTypeName(type)),
                                                     ShapeString(shape)));
    if (bytes > 0) std::memcpy(tensor.mutable_data(), data, bytes);
    *out_value = NewValue(Value(std::move(tensor)));
    return absl::OkStatus();
  });
}

npurt_status npurt_value_borrow(const npurt_tensor* tensor, const npurt_deleter* deleter,
                                npurt_value** out_value, npurt_error** error) {
  return Guard(error, [&]() -> absl::Status {
    std::uint32_t size = 0;
    if (tensor != nullptr) std::memcpy(&size, tensor, sizeof size);
    PendingDeleter pending(deleter, size >= sizeof(npurt_tensor) ? tensor->data : nullptr);
    NPURT_RETURN_IF_ERROR(WantAll("out_value", out_value));
    NPURT_ASSIGN_OR_RETURN(const npurt_tensor view, CopyIn(tensor, "tensor"));
    NPURT_RETURN_IF_ERROR(
        WantNoFlags(view, "tensor", NPURT_TENSOR_READ_ONLY | NPURT_TENSOR_CONTIGUOUS));
    NPURT_ASSIGN_OR_RETURN(const DType type, WantDType(view.dtype));
    if (type == DType::kString) return absl::InvalidArgumentError("strings cannot be borrowed");
    if (view.rank < 0) return absl::InvalidArgumentError(absl::StrCat("got rank ", view.rank));
    NPURT_ASSIGN_OR_RETURN(const auto dims, WantDims(view.dims, view.rank));
    NPURT_ASSIGN_OR_RETURN(const std::int64_t count, ElementCount(dims));
    std::size_t bytes;
    if (!BytesOf(type, count, &bytes))
      return absl::InvalidArgumentError(absl::StrCat(count, " elements are too many"));

    auto made = std::make_unique<npurt_value>();
    made->strides = RowMajorStrides(dims);
    if (view.strides != nullptr) {
      const absl::Span<const std::int64_t> strides(view.strides, dims.size());
      made->row_major = SaysRowMajor(dims, strides);
      if (!made->row_major) {
        if (DTypeBits(type) < 8)
          return absl::UnimplementedError("strides of elements smaller than a byte");
        std::int64_t last = 0, reach;  // index of the farthest element
        for (std::size_t i = 0; i < dims.size(); ++i) {
          if (strides[i] < 0)
            return absl::UnimplementedError(
                absl::StrCat("stride ", i, " is ", strides[i], ", want at least 0"));
          if (!CheckedMul(strides[i], dims[i] - 1, &reach) || !CheckedAdd(last, reach, &last))
            return absl::InvalidArgumentError("strides are too large");
        }
        if (!CheckedAdd(last, std::int64_t{1}, &last) || !BytesOf(type, last, &bytes))
          return absl::InvalidArgumentError("strides are too large");
        made->strides.assign(strides.begin(), strides.end());
      }
    }
    if (view.bytes < bytes)
      return absl::InvalidArgumentError(absl::StrCat("got ", view.bytes, " bytes, want ", bytes,
                                                     " for ", std::string(DTypeName(type)),
                                                     ShapeString(dims)));
    if (bytes > 0) NPURT_RETURN_IF_ERROR(WantAll("data", view.data));
    made->read_only = (view.flags & NPURT_TENSOR_READ_ONLY) != 0;
    made->value = Value(Tensor::Borrow(type, dims, view.data, nullptr));
    made->type = TypeText(TypeOf(made->value));
    if (std::shared_ptr<const void> owner = pending.Take())
      made->value = Value(Tensor::Borrow(type, dims, view.data, std::move(owner)));
    *out_value = made.release();
    return absl::OkStatus();
  });
}

npurt_status npurt_value_strings(const int64_t* dims, size_t rank, const npurt_string* items,
                                 size_t count, npurt_value** out_value, npurt_error** error) {
  return Guard(error, [&]() -> absl::Status {
    NPURT_RETURN_IF_ERROR(WantAll("out_value", out_value));
    NPURT_ASSIGN_OR_RETURN(const auto shape, WantDims(dims, rank));
    if (count > 0) NPURT_RETURN_IF_ERROR(WantAll("items", items));
    NPURT_ASSIGN_OR_RETURN(const std::int64_t want, ElementCount(shape));
    if (static_cast<std::int64_t>(count) != want)
      return absl::InvalidArgumentError(
          absl::StrCat("got ", count, " strings, want ", want, " for ", ShapeString(shape)));
    NPURT_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Create(DType::kString, shape));
    for (std::size_t i = 0; i < count; ++i) {
      if (items[i].size > 0) NPURT_RETURN_IF_ERROR(WantAll("items[].data", items[i].data));
      tensor.set<std::string>(i,
                              std::string(items[i].size > 0 ? items[i].data : "", items[i].size));
    }
    *out_value = NewValue(Value(std::move(tensor)));
    return absl::OkStatus();
  });
}

npurt_status npurt_value_sequence(const char* element_type, npurt_value* const* items, size_t count,
                                  npurt_value** out_value, npurt_error** error) {
  return Guard(error, [&]() -> absl::Status {
    NPURT_RETURN_IF_ERROR(WantAll("out_value", out_value));
    NPURT_ASSIGN_OR_RETURN(ValueType type, ElementType(element_type, items, count));
    ValueList list;
    for (std::size_t i = 0; i < count; ++i) {
      NPURT_ASSIGN_OR_RETURN(Value item, RowMajor(*items[i]));
      list.push_back(std::move(item));
    }
    *out_value = NewValue(Value::Sequence(std::move(list)), ValueType::SequenceOf(std::move(type)));
    return absl::OkStatus();
  });
}

npurt_status npurt_value_optional(const char* element_type, npurt_value* item,
                                  npurt_value** out_value, npurt_error** error) {
  return Guard(error, [&]() -> absl::Status {
    NPURT_RETURN_IF_ERROR(WantAll("out_value", out_value));
    NPURT_ASSIGN_OR_RETURN(ValueType type, ElementType(element_type, &item, item ? 1 : 0));
    Value value = Value::Empty();
    if (item != nullptr) {
      NPURT_ASSIGN_OR_RETURN(Value held, RowMajor(*item));
      value = Value::Some(std::move(held));
    }
    *out_value = NewValue(std::move(value), ValueType::OptionalOf(std::move(type)));
    return absl::OkStatus();
  });
}

npurt_status npurt_value_map(npurt_value* keys, npurt_value* values, npurt_value** out_value,
                             npurt_error** error) {
  return Guard(error, [&]() -> absl::Status {
    NPURT_RETURN_IF_ERROR(WantAll("values", values, "out_value", out_value));
    NPURT_RETURN_IF_ERROR(Annotate(WantKind(keys, ValueKind::kTensor, "a tensor"), "keys"));
    NPURT_ASSIGN_OR_RETURN(const Value plain_keys, RowMajor(*keys));
    NPURT_ASSIGN_OR_RETURN(const Value plain_values, RowMajor(*values));
    const DType key_type =
        plain_keys.tensor().dtype() == DType::kString ? DType::kString : DType::kI64;
    ValueList items;
    ValueType type;
    if (plain_values.kind() == ValueKind::kSequence) {
      items = plain_values.items();
      NPURT_ASSIGN_OR_RETURN(const ValueType sequence, ParseType(values->type));
      type = MapOf(key_type, *sequence.element);
    } else if (plain_values.is_tensor() && plain_values.tensor().rank() == 1) {
      NPURT_ASSIGN_OR_RETURN(items, Scalars(plain_values.tensor()));
      type = MapOf(key_type, ValueType::OfTensor(plain_values.tensor().dtype(), {}));
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat("values: got a ", values->type, ", want a sequence or a tensor of rank 1"));
    }
    NPURT_ASSIGN_OR_RETURN(ValueMap map, MakeMap(plain_keys.tensor(), items));
    *out_value = NewValue(Value::Map(std::move(map)), type);
    return absl::OkStatus();
  });
}

npurt_status npurt_value_parse(npurt_kind kind, const void* data, size_t size,
                               npurt_value** out_value, npurt_error** error) {
  return Guard(error, [&]() -> absl::Status {
    NPURT_RETURN_IF_ERROR(WantAll("out_value", out_value));
    if (size > 0) NPURT_RETURN_IF_ERROR(WantAll("data", data));
    NPURT_ASSIGN_OR_RETURN(Value value, ReadProto(kind, {static_cast<const char*>(data), size}));
    *out_value = NewValue(std::move(value));
    return absl::OkStatus();
  });
}

npurt_kind npurt_value_kind(const npurt_value* value) {
  return value == nullptr ? NPURT_KIND_NONE : static_cast<npurt_kind>(value->value.kind());
}

const char* npurt_value_type(const npurt_value* value) {
  return value == nullptr ? "" : value->type.c_str();
}

npurt_status npurt_value_tensor(npurt_value* value, npurt_tensor* out_tensor, npurt_error** error) {
  return Guard(error, [&]() -> absl::Status {
    NPURT_RETURN_IF_ERROR(WantOut(out_tensor, "out_tensor"));
    NPURT_RETURN_IF_ERROR(WantKind(value, ValueKind::kTensor, "a tensor"));
    CopyOut(ViewOf(*value), out_tensor);
    return absl::OkStatus();
  });
}

npurt_status npurt_value_read(npurt_value* value, void* buffer, size_t bytes, npurt_error** error) {
  return Guard(error, [&]() -> absl::Status {
    NPURT_RETURN_IF_ERROR(WantKind(value, ValueKind::kTensor, "a tensor"));
    const Tensor& tensor = value->value.tensor();
    if (tensor.dtype() == DType::kString)
      return absl::InvalidArgumentError("strings are read with npurt_value_string");
    if (bytes != tensor.bytes())
      return absl::InvalidArgumentError(
          absl::StrCat("got a buffer of ", bytes, " bytes, want ", tensor.bytes(), " for ",
                       std::string(DTypeName(tensor.dtype())), ShapeString(tensor.dims())));
    if (bytes == 0) return absl::OkStatus();
    NPURT_RETURN_IF_ERROR(WantAll("buffer", buffer));
    if (value->row_major)
      std::memcpy(buffer, tensor.data(), bytes);
    else
      CopyStrided<true>(tensor, value->strides, static_cast<char*>(buffer),
                        static_cast<char*>(const_cast<void*>(tensor.data())));
    return absl::OkStatus();
  });
}

npurt_status npurt_value_string(npurt_value* value, size_t index, npurt_string* out_string,
                                npurt_error** error) {
  return Guard(error, [&]() -> absl::Status {
    NPURT_RETURN_IF_ERROR(WantAll("out_string", out_string));
    NPURT_RETURN_IF_ERROR(WantKind(value, ValueKind::kTensor, "a tensor of strings"));
    const Tensor& tensor = value->value.tensor();
    if (tensor.dtype() != DType::kString)
      return absl::InvalidArgumentError(
          absl::StrCat("got a ", value->type, ", want a tensor of strings"));
    NPURT_RETURN_IF_ERROR(WantIndex(index, static_cast<std::size_t>(tensor.element_count())));
    const std::string& item = static_cast<const std::string*>(tensor.data())[index];
    *out_string = {item.data(), item.size()};
    return absl::OkStatus();
  });
}

size_t npurt_value_count(const npurt_value* value) {
  if (value == nullptr) return 0;
  switch (value->value.kind()) {
    case ValueKind::kTensor:
      return static_cast<size_t>(value->value.tensor().element_count());
    case ValueKind::kSequence:
    case ValueKind::kOptional:
      return value->value.items().size();
    case ValueKind::kMap:
      return SizeOf(value->value.map());
    case ValueKind::kResource:
    case ValueKind::kNone:
      break;
  }
  return 0;
}

npurt_status npurt_value_item(npurt_value* value, size_t index, npurt_value** out_item,
                              npurt_error** error) {
  return Guard(error, [&]() -> absl::Status {
    NPURT_RETURN_IF_ERROR(WantAll("value", value, "out_item", out_item));
    if (value->value.is_tensor())
      return absl::InvalidArgumentError("got a tensor, want a sequence, an optional or a map");
    NPURT_RETURN_IF_ERROR(WantIndex(index, npurt_value_count(value)));
    NPURT_ASSIGN_OR_RETURN(const ValueType type, ParseType(value->type));
    const Value& item = value->value.kind() == ValueKind::kMap ? NthValue(value->value.map(), index)
                                                               : value->value.items()[index];
    *out_item = NewValue(item, *type.element);
    return absl::OkStatus();
  });
}

npurt_status npurt_value_keys(npurt_value* value, npurt_value** out_keys, npurt_error** error) {
  return Guard(error, [&]() -> absl::Status {
    NPURT_RETURN_IF_ERROR(WantAll("out_keys", out_keys));
    NPURT_RETURN_IF_ERROR(WantKind(value, ValueKind::kMap, "a map"));
    const ValueMap& map = value->value.map();
    const std::int64_t count = static_cast<std::int64_t>(SizeOf(map));
    NPURT_ASSIGN_OR_RETURN(Tensor keys,
                           Tensor::Create(map.string_keys ? DType::kString : DType::kI64, {count}));
    std::int64_t i = 0;
    for (const auto& entry : map.by_string) keys.set<std::string>(i++, entry.first);
    for (const auto& entry : map.by_number) keys.set<std::int64_t>(i++, entry.first);
    *out_keys = NewValue(Value(std::move(keys)));
    return absl::OkStatus();
  });
}

npurt_value* npurt_value_retain(npurt_value* value) { return Retain(value); }
void npurt_value_release(npurt_value* value) { Release(value); }
