// DLPack 1.x in and out: tensors of other frameworks without a copy.
//
// The structs are those of dlpack.h 1.x, written down here so that neither header needs the other.
#include "handles.h"

extern "C" {
typedef struct {
  std::uint32_t major, minor;
} DLPackVersion;
typedef struct {
  std::int32_t device_type, device_id;
} DLDevice;
typedef struct {
  std::uint8_t code, bits;
  std::uint16_t lanes;
} DLDataType;
typedef struct {
  void* data;
  DLDevice device;
  std::int32_t ndim;
  DLDataType dtype;
  std::int64_t* shape;
  std::int64_t* strides;
  std::uint64_t byte_offset;
} DLTensor;
// Version, context and deleter keep their places in every major version.
typedef struct DLManagedTensorVersioned {
  DLPackVersion version;
  void* manager_ctx;
  void (*deleter)(struct DLManagedTensorVersioned* self);
  std::uint64_t flags;
  DLTensor dl_tensor;
} DLManagedTensorVersioned;
}

namespace npurt::capi {
namespace {

constexpr std::uint32_t kMajor = 1, kMinor = 1;
constexpr std::int32_t kCpu = 1;
constexpr std::uint64_t kReadOnly = 1, kPaddedSubByte = 4;

// Code and bits of each element type; an empty row has no counterpart.
struct DLTypeRow {
  DType dtype;
  std::uint8_t code, bits;
};
constexpr DLTypeRow kTypes[] = {
    {DType::kI8, 0, 8},      {DType::kI16, 0, 16},        {DType::kI32, 0, 32},
    {DType::kI64, 0, 64},    {DType::kI4, 0, 4},          {DType::kI2, 0, 2},
    {DType::kU8, 1, 8},      {DType::kU16, 1, 16},        {DType::kU32, 1, 32},
    {DType::kU64, 1, 64},    {DType::kU4, 1, 4},          {DType::kU2, 1, 2},
    {DType::kF16, 2, 16},    {DType::kF32, 2, 32},        {DType::kF64, 2, 64},
    {DType::kBF16, 4, 16},   {DType::kC64, 5, 64},        {DType::kC128, 5, 128},
    {DType::kBool, 6, 8},    {DType::kF8E4M3FN, 10, 8},   {DType::kF8E4M3FNUZ, 11, 8},
    {DType::kF8E5M2, 12, 8}, {DType::kF8E5M2FNUZ, 13, 8}, {DType::kF8E8M0, 14, 8},
    {DType::kF4E2M1, 17, 4},
};

absl::StatusOr<DType> FromDLType(DLDataType type) {
  if (type.lanes == 1)
    for (const DLTypeRow& row : kTypes)
      if (row.code == type.code && row.bits == type.bits) return row.dtype;
  return absl::UnimplementedError(absl::StrCat("DLPack type with code ", type.code, ", ", type.bits,
                                               " bits and ", type.lanes, " lanes"));
}

absl::StatusOr<DLDataType> ToDLType(DType dtype) {
  for (const DLTypeRow& row : kTypes)
    if (row.dtype == dtype) return DLDataType{row.code, row.bits, 1};
  return absl::InvalidArgumentError(
      absl::StrCat("DLPack has no elements of type ", std::string(DTypeName(dtype))));
}

// What npurt_value_borrow makes of a DLPack tensor.
absl::StatusOr<npurt_tensor> Describe(const DLManagedTensorVersioned& managed) {
  if (managed.version.major != kMajor)
    return absl::UnimplementedError(
        absl::StrCat("DLPack version ", managed.version.major, ", want ", kMajor));
  const DLTensor& from = managed.dl_tensor;
  if (from.device.device_type != kCpu)
    return absl::UnimplementedError(
        absl::StrCat("DLPack device of type ", from.device.device_type, ", want CPU memory"));
  NPURT_ASSIGN_OR_RETURN(const DType dtype, FromDLType(from.dtype));
  if (DTypeBits(dtype) < 8 && (managed.flags & kPaddedSubByte) != 0)
    return absl::UnimplementedError("DLPack elements smaller than a byte that are padded to one");
  if (from.ndim < 0) return absl::InvalidArgumentError(absl::StrCat("got rank ", from.ndim));
  npurt_tensor to = npurt_tensor_init();
  to.flags = (managed.flags & kReadOnly) != 0 ? NPURT_TENSOR_READ_ONLY : 0;
  to.dtype = static_cast<npurt_dtype>(dtype);
  to.rank = from.ndim;
  to.dims = from.shape;
  to.strides = from.strides;
  to.data = from.data == nullptr ? nullptr : static_cast<char*>(from.data) + from.byte_offset;
  to.bytes = SIZE_MAX;  // DLPack does not say how much there is
  return to;
}

// An exported tensor and what it points to.
struct Exported {
  DLManagedTensorVersioned managed;
  Ref<npurt_value> value;
  Dims dims, strides;
};

}  // namespace
}  // namespace npurt::capi

using namespace npurt;        // NOLINT: the C functions below are the outside of this file
using namespace npurt::capi;  // NOLINT

npurt_status npurt_value_from_dlpack(struct DLManagedTensorVersioned* tensor,
                                     npurt_value** out_value, npurt_error** error) {
  if (tensor == nullptr) return Guard(error, [] { return WantAll("tensor", nullptr); });
  const npurt_deleter deleter = {[](void* self, void*) {
                                   auto* managed = static_cast<DLManagedTensorVersioned*>(self);
                                   if (managed->deleter != nullptr) managed->deleter(managed);
                                 },
                                 tensor};
  npurt_tensor view = npurt_tensor_init();
  const npurt_status status = Guard(error, [&]() -> absl::Status {
    NPURT_ASSIGN_OR_RETURN(view, Describe(*tensor));
    return absl::OkStatus();
  });
  if (status == NPURT_OK) return npurt_value_borrow(&view, &deleter, out_value, error);
  deleter.release(tensor, nullptr);
  return status;
}

npurt_status npurt_value_to_dlpack(npurt_value* value, struct DLManagedTensorVersioned** out_tensor,
                                   npurt_error** error) {
  return Guard(error, [&]() -> absl::Status {
    NPURT_RETURN_IF_ERROR(WantAll("value", value, "out_tensor", out_tensor));
    if (!value->value.is_tensor())
      return absl::InvalidArgumentError(absl::StrCat("got a ", value->type, ", want a tensor"));
    const Tensor& tensor = value->value.tensor();
    NPURT_ASSIGN_OR_RETURN(const DLDataType type, ToDLType(tensor.dtype()));
    auto exported = std::make_unique<Exported>();
    exported->value = Ref<npurt_value>(value);
    exported->dims = tensor.dims();
    exported->strides = value->strides;
    exported->managed.version = {kMajor, kMinor};
    exported->managed.manager_ctx = exported.get();
    exported->managed.deleter = [](DLManagedTensorVersioned* self) {
      delete static_cast<Exported*>(self->manager_ctx);
    };
    exported->managed.flags = value->read_only ? kReadOnly : 0;
    exported->managed.dl_tensor = {
        const_cast<void*>(tensor.data()), {kCpu, 0}, tensor.rank(), type, exported->dims.data(),
        exported->strides.data(),         0};
    *out_tensor = &exported.release()->managed;
    return absl::OkStatus();
  });
}
