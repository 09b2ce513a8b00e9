#include "base/tensor.h"

#include <cstdint>
#include <cstdlib>
#include <new>

#include "absl/strings/str_cat.h"

namespace npurt {
namespace {

constexpr std::size_t kAlignment = 64;  // a cache line, and the widest vector load

// From here on zeros come from the system, page by page as they are touched: to write them first
// would hold up the run (and a cancel) for as long as a gigabyte takes, on one thread.
constexpr std::size_t kFreshFromBytes = std::size_t{1} << 20;

std::shared_ptr<const void> NewBytes(std::size_t bytes, void** data) {
  if (bytes >= kFreshFromBytes) {
    void* const block = std::calloc(bytes + kAlignment, 1);
    const auto address = reinterpret_cast<std::uintptr_t>(block);
    *data = block == nullptr ? nullptr
                             : static_cast<char*>(block) + (kAlignment - address % kAlignment);
    return block == nullptr ? nullptr : std::shared_ptr<const void>(block, std::free);
  }
  void* memory = ::operator new(bytes == 0 ? 1 : bytes, std::align_val_t{kAlignment}, std::nothrow);
  *data = memory;
  if (memory == nullptr) return nullptr;
  std::memset(memory, 0, bytes);
  return std::shared_ptr<const void>(
      memory, [](void* p) { ::operator delete(p, std::align_val_t{kAlignment}); });
}

}  // namespace

absl::StatusOr<Tensor> Tensor::Create(DType dtype, absl::Span<const std::int64_t> dims) {
  Tensor tensor;
  NPURT_ASSIGN_OR_RETURN(tensor.count_, ElementCount(dims));
  if (!BytesOf(dtype, tensor.count_, &tensor.bytes_))
    return absl::ResourceExhaustedError(
        absl::StrCat("a tensor of ", DTypeName(dtype), ShapeString(dims), " is too large"));
  tensor.dtype_ = dtype;
  tensor.dims_.assign(dims.begin(), dims.end());
  if (dtype == DType::kString) {
    auto strings = std::make_shared<std::vector<std::string>>(tensor.count_);
    tensor.data_ = strings->data();
    tensor.owner_ = std::move(strings);
    return tensor;
  }
  void* data;
  tensor.owner_ = NewBytes(tensor.bytes_, &data);
  tensor.data_ = data;
  if (data == nullptr)
    return absl::ResourceExhaustedError(absl::StrCat("no memory for a tensor of ",
                                                     DTypeName(dtype), ShapeString(dims), " (",
                                                     tensor.bytes_, " bytes)"));
  return tensor;
}

Tensor Tensor::Borrow(DType dtype, absl::Span<const std::int64_t> dims, const void* data,
                      std::shared_ptr<const void> owner) {
  Tensor tensor;
  tensor.dtype_ = dtype;
  tensor.dims_.assign(dims.begin(), dims.end());
  tensor.count_ = 1;
  for (std::int64_t d : dims) tensor.count_ *= d;
  if (!BytesOf(dtype, tensor.count_, &tensor.bytes_)) tensor.bytes_ = 0;
  tensor.data_ = data;
  tensor.owner_ = std::move(owner);
  return tensor;
}

Tensor Tensor::Int64s(absl::Span<const std::int64_t> values) {
  auto owned = std::make_shared<std::vector<std::int64_t>>(values.begin(), values.end());
  const std::int64_t count = static_cast<std::int64_t>(values.size());
  return Borrow(DType::kI64, {count}, owned->data(), owned);
}

Tensor Tensor::Int64Scalar(std::int64_t value) {
  auto owned = std::make_shared<std::int64_t>(value);
  return Borrow(DType::kI64, {}, owned.get(), owned);
}

Tensor Tensor::Reshaped(absl::Span<const std::int64_t> dims) const {
  Tensor other = *this;
  other.dims_.assign(dims.begin(), dims.end());
  return other;
}

absl::StatusOr<std::vector<std::int64_t>> Integers(const Tensor& tensor) {
  std::vector<std::int64_t> values;
  const bool known = DispatchDType<kIntegers | kBools>(tensor.dtype(), [&](auto type) {
    using T = decltype(type);
    values.resize(static_cast<std::size_t>(tensor.element_count()));
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<std::int64_t>(tensor.at<T>(static_cast<std::int64_t>(i)));
  });
  if (!known)
    return absl::InvalidArgumentError(
        absl::StrCat("got a tensor of ", DTypeName(tensor.dtype()), ", want integers"));
  return values;
}

absl::StatusOr<std::vector<double>> Reals(const Tensor& tensor) {
  std::vector<double> values;
  const bool known = DispatchDType<kPlainTypes>(tensor.dtype(), [&](auto type) {
    using T = decltype(type);
    values.resize(static_cast<std::size_t>(tensor.element_count()));
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<double>(tensor.at<T>(static_cast<std::int64_t>(i)));
  });
  if (!known)
    return absl::InvalidArgumentError(
        absl::StrCat("got a tensor of ", DTypeName(tensor.dtype()), ", want numbers"));
  return values;
}

Value::Value(Tensor tensor) {
  auto rep = std::make_shared<Rep>();
  rep->kind = ValueKind::kTensor;
  rep->tensor = std::move(tensor);
  rep_ = std::move(rep);
}

Value Value::Sequence(ValueList items) {
  auto rep = std::make_shared<Rep>();
  rep->kind = ValueKind::kSequence;
  rep->items = std::move(items);
  Value value;
  value.rep_ = std::move(rep);
  return value;
}

Value Value::Some(Value item) {
  auto rep = std::make_shared<Rep>();
  rep->kind = ValueKind::kOptional;
  rep->items.push_back(std::move(item));
  Value value;
  value.rep_ = std::move(rep);
  return value;
}

Value Value::Empty() {
  auto rep = std::make_shared<Rep>();
  rep->kind = ValueKind::kOptional;
  Value value;
  value.rep_ = std::move(rep);
  return value;
}

Value Value::Map(ValueMap map) {
  auto rep = std::make_shared<Rep>();
  rep->kind = ValueKind::kMap;
  rep->map = std::move(map);
  Value value;
  value.rep_ = std::move(rep);
  return value;
}

ValueType ValueType::OfTensor(DType dtype, SymDims dims) {
  ValueType type;
  type.dtype = dtype;
  type.has_rank = true;
  type.dims = std::move(dims);
  return type;
}

ValueType ValueType::OfTensor(DType dtype) {
  ValueType type;
  type.dtype = dtype;
  return type;
}

ValueType ValueType::SequenceOf(ValueType element) {
  ValueType type;
  type.kind = ValueKind::kSequence;
  type.element = std::make_shared<const ValueType>(std::move(element));
  return type;
}

ValueType ValueType::OptionalOf(ValueType element) {
  ValueType type;
  type.kind = ValueKind::kOptional;
  type.element = std::make_shared<const ValueType>(std::move(element));
  return type;
}

ValueType ValueType::ResourceOf(ValueType element) {
  ValueType type;
  type.kind = ValueKind::kResource;
  type.dtype = element.dtype;
  type.element = std::make_shared<const ValueType>(std::move(element));
  return type;
}

std::string ValueType::ToString() const {
  const std::string held = element == nullptr ? "?" : element->ToString();
  switch (kind) {
    case ValueKind::kNone:
      return "none";
    case ValueKind::kTensor:
      return absl::StrCat(DTypeName(dtype), has_rank ? ShapeString(dims) : std::string("[?]"));
    case ValueKind::kSequence:
      return absl::StrCat("sequence(", held, ")");
    case ValueKind::kOptional:
      return absl::StrCat("optional(", held, ")");
    case ValueKind::kMap:
      return absl::StrCat("map(", DTypeName(dtype), ", ", held, ")");
    case ValueKind::kResource:
      return absl::StrCat("resource(", held, ")");
  }
  return "?";
}

}  // namespace npurt
