// Handles: what stands behind the opaque types of npurt.h that several files share.
//
// Each owns a C++ object of the layer below and a count of references; logic lives below. Those of
// sessions and runs are in session.h.
//
// Thread safety: as npurt.h says for each type.
#ifndef NPURT_CAPI_HANDLES_H_
#define NPURT_CAPI_HANDLES_H_

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "base/shape.h"
#include "base/tensor.h"
#include "guard.h"
#include "memory/allocator.h"
#include "options/options.h"

struct npurt_text {
  std::string text;
};

struct npurt_cancel {
  std::atomic<int> refs{1};
  std::atomic<bool> triggered{false};
};

struct npurt_options {
  npurt::options::Options options;
};

struct npurt_host {
  // An operator with copies of its strings.
  struct Operator {
    std::string type, domain;
    std::shared_ptr<const npurt_operator> callbacks;
  };

  std::atomic<int> refs{1};
  std::atomic<bool> frozen{false};
  std::shared_ptr<const npurt_allocator> allocator;
  std::shared_ptr<npurt::memory::Allocator> memory;  // calls it; one, so that sessions share weights
  std::shared_ptr<const npurt_executor> executor;
  std::shared_ptr<const npurt_log_sink> log;
  std::vector<Operator> operators;
};

struct npurt_value {
  std::atomic<int> refs{1};
  std::string type;  // "tensor(float32)"
  // A tensor with gaps has `value` over its first element with the right dims, and these strides
  // say where the others are; all others are row-major.
  npurt::Value value;
  npurt::Dims strides;
  bool row_major = true;
  bool read_only = false;
};

namespace npurt::capi {

// Writes a new npurt_text.
absl::Status GiveText(std::string text, npurt_text** out_text);

// The type of a value as C spells it: "sequence(tensor(int64))", dimensions left out.
std::string TypeText(const ValueType& type);
// The inverse; also ONNX's spellings, "seq(tensor(float))".
absl::StatusOr<ValueType> ParseType(absl::string_view text);
// What can be seen of the type of a value; unknown where a sequence or optional is empty.
ValueType TypeOf(const Value& value);

ValueType MapOf(DType keys, ValueType element);

// A handle for a value of the library. `type` says what an empty sequence or optional would hold.
npurt_value* NewValue(Value value, const ValueType& type);
npurt_value* NewValue(Value value);

// The value in row-major form: the same bytes if it is so already, else a copy.
absl::StatusOr<Value> RowMajor(const npurt_value& value);
// Writes a row-major tensor of the same type and shape into the value's memory.
absl::Status Scatter(const Tensor& from, npurt_value* to);
// Whether no two elements share bytes, as an output needs.
bool ElementsAreApart(const npurt_value& value);

// A view of the value's dimensions and memory; REQUIRES: a tensor.
npurt_tensor ViewOf(npurt_value& value);

// What npurt_value_info points to, kept by the owner of the info.
class InfoStorage {
 public:
  InfoStorage(std::string name, const ValueType& type, npurt_kind kind);
  InfoStorage(InfoStorage&&) = default;  // a copy would point into the original
  npurt_value_info View() const;

 private:
  std::string name_, type_;
  npurt_kind kind_;
  npurt_dtype dtype_;
  std::int32_t rank_;
  std::vector<std::int64_t> dims_;
  std::vector<std::string> dim_names_;
  std::vector<const char*> dim_name_pointers_;
};

template <typename Symbol>
absl::StatusOr<SymDims> DimsFromInfo(const npurt_value_info& info, Symbol&& symbol) {
  SymDims dims;
  if (info.rank > 0 && info.dims == nullptr)
    return absl::InvalidArgumentError("dims must not be NULL when the rank is above 0");
  for (int i = 0; i < info.rank; ++i) {
    const char* name = info.dim_names == nullptr ? nullptr : info.dim_names[i];
    if (info.dims[i] < -1)
      return absl::InvalidArgumentError(absl::StrCat("dimension ", i, " is ", info.dims[i]));
    dims.push_back(info.dims[i] >= 0 ? Dim(info.dims[i]) : symbol(name == nullptr ? "" : name, i));
  }
  return dims;
}

// A ValueType from a user's info; `symbol(name, i)` makes dimension i where it
// says -1.
template <typename Symbol>
absl::StatusOr<ValueType> TypeFromInfo(const npurt_value_info& info, Symbol&& symbol) {
  if (info.type != nullptr) {
    NPURT_ASSIGN_OR_RETURN(ValueType type, ParseType(info.type));
    if (type.kind != ValueKind::kTensor) return type;
    if (info.dtype != NPURT_DTYPE_NONE && static_cast<int>(type.dtype) != info.dtype)
      return absl::InvalidArgumentError("type and dtype contradict each other");
    NPURT_ASSIGN_OR_RETURN(type.dims, DimsFromInfo(info, symbol));
    type.has_rank = info.rank >= 0;
    return type;
  }
  if (!IsDType(info.dtype))
    return absl::InvalidArgumentError(absl::StrCat("dtype ", info.dtype, " is no element type"));
  const DType dtype = static_cast<DType>(info.dtype);
  if (info.rank < 0) return ValueType::OfTensor(dtype);
  NPURT_ASSIGN_OR_RETURN(SymDims dims, DimsFromInfo(info, symbol));
  return ValueType::OfTensor(dtype, std::move(dims));
}

}  // namespace npurt::capi

#endif  // NPURT_CAPI_HANDLES_H_
