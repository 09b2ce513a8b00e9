// Tensor and Value: what models hold as constants, and what goes in and out of a session.
//
// A Tensor is a type, a shape and shared bytes: copying one shares its buffer. A Value is a tensor,
// a sequence, an optional or a map of Values; it is a shared, immutable-by-convention handle, so
// that sequences of large tensors are cheap to pass on. Strings are std::string objects in the
// buffer. Nothing here knows of arenas: the memory of a run is in RunContext's slots.
//
// Thread safety: copies may be used from several threads; writing to a buffer needs the only copy.
#ifndef NPURT_BASE_TENSOR_H_
#define NPURT_BASE_TENSOR_H_

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/shape.h"

namespace npurt {

class Tensor {
 public:
  Tensor() = default;
  // A new, zeroed buffer aligned to 64 bytes. Errors: negative or too large dimensions, no memory.
  static absl::StatusOr<Tensor> Create(DType dtype, absl::Span<const std::int64_t> dims);
  // Refers to `data`, which `owner` keeps alive (null: the caller does). Any alignment.
  // REQUIRES: `data` holds ElementCount(dims) elements.
  static Tensor Borrow(DType dtype, absl::Span<const std::int64_t> dims, const void* data,
                       std::shared_ptr<const void> owner);
  // A rank-0 or rank-1 int64 tensor.
  static Tensor Int64s(absl::Span<const std::int64_t> values);
  static Tensor Int64Scalar(std::int64_t value);
  template <typename T>
  static absl::StatusOr<Tensor> FromSpan(absl::Span<const std::int64_t> dims,
                                         absl::Span<const T> values);

  bool defined() const { return dtype_ != DType::kUndefined; }
  DType dtype() const { return dtype_; }
  const Dims& dims() const { return dims_; }
  int rank() const { return static_cast<int>(dims_.size()); }
  std::int64_t element_count() const { return count_; }
  std::size_t bytes() const { return bytes_; }
  const void* data() const { return data_; }
  void* mutable_data() { return const_cast<void*>(data_); }
  const std::shared_ptr<const void>& owner() const { return owner_; }

  // Element `i` in row-major order; loads and stores work for any alignment.
  // REQUIRES: T is the C++ type of dtype(), or std::string for strings (aligned).
  template <typename T>
  T at(std::int64_t i) const {
    if constexpr (std::is_same_v<T, std::string>) {
      return static_cast<const std::string*>(data_)[i];
    } else {
      T value;
      std::memcpy(&value, static_cast<const char*>(data_) + i * sizeof(T), sizeof(T));
      return value;
    }
  }
  template <typename T>
  void set(std::int64_t i, T value) {
    if constexpr (std::is_same_v<T, std::string>) {
      static_cast<std::string*>(mutable_data())[i] = std::move(value);
    } else {
      std::memcpy(static_cast<char*>(mutable_data()) + i * sizeof(T), &value, sizeof(T));
    }
  }
  // The same buffer under another shape. REQUIRES: the same number of elements.
  Tensor Reshaped(absl::Span<const std::int64_t> dims) const;

 private:
  DType dtype_ = DType::kUndefined;
  Dims dims_;
  std::int64_t count_ = 0;
  std::size_t bytes_ = 0;
  const void* data_ = nullptr;
  std::shared_ptr<const void> owner_;
};

// All elements of an integer or bool tensor as int64. Error for other types.
absl::StatusOr<std::vector<std::int64_t>> Integers(const Tensor& tensor);
// All elements of a float tensor as double.
absl::StatusOr<std::vector<double>> Reals(const Tensor& tensor);

// kResource: a variable of the session, in graphs only.
enum class ValueKind : std::uint8_t { kNone, kTensor, kSequence, kOptional, kMap, kResource };

class Value;
using ValueList = std::vector<Value>;
// Keys are all int64 or all strings.
struct ValueMap {
  bool string_keys = false;
  std::map<std::int64_t, Value> by_number;
  std::map<std::string, Value> by_string;
};

class Value {
 public:
  Value() = default;  // kNone
  Value(Tensor tensor);  // NOLINT: a tensor is a value
  static Value Sequence(ValueList items);
  static Value Some(Value item);  // an optional that holds `item`
  static Value Empty();           // an optional that holds nothing
  static Value Map(ValueMap map);

  ValueKind kind() const { return rep_ == nullptr ? ValueKind::kNone : rep_->kind; }
  bool is_tensor() const { return kind() == ValueKind::kTensor; }
  // REQUIRES for each: the kind says so.
  const Tensor& tensor() const { return rep_->tensor; }
  const ValueList& items() const { return rep_->items; }  // sequence; optional: 0 or 1 item
  const ValueMap& map() const { return rep_->map; }

 private:
  struct Rep {
    ValueKind kind;
    Tensor tensor;
    ValueList items;
    ValueMap map;
  };
  std::shared_ptr<const Rep> rep_;
};

// The type of a value: what inference computes. Tensors have an element type and, if the rank is
// known, dimensions; the others have the type of what they hold in `element`.
struct ValueType {
  ValueKind kind = ValueKind::kTensor;
  DType dtype = DType::kUndefined;  // of the tensor; of a map's keys
  bool has_rank = false;
  SymDims dims;
  std::shared_ptr<const ValueType> element;

  static ValueType OfTensor(DType dtype, SymDims dims);
  static ValueType OfTensor(DType dtype);  // unknown rank
  static ValueType SequenceOf(ValueType element);
  static ValueType OptionalOf(ValueType element);
  static ValueType ResourceOf(ValueType element);
  std::string ToString() const;  // "float32[batch, 3]", "sequence(int64[?])"
};

template <typename T>
absl::StatusOr<Tensor> Tensor::FromSpan(absl::Span<const std::int64_t> dims,
                                        absl::Span<const T> values) {
  NPURT_ASSIGN_OR_RETURN(Tensor tensor, Create(kDTypeOf<T>, dims));
  if (tensor.element_count() != static_cast<std::int64_t>(values.size()))
    return absl::InvalidArgumentError("shape and number of values differ");
  for (std::size_t i = 0; i < values.size(); ++i)
    tensor.set<T>(static_cast<std::int64_t>(i), values[i]);
  return tensor;
}

}  // namespace npurt

#endif  // NPURT_BASE_TENSOR_H_
