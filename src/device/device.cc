#include "device/device.h"

#include <time.h>

#include "absl/strings/str_cat.h"

namespace npurt::device {
namespace {

constexpr absl::string_view kEngines[] = {"AIcoreEngine", "DNN_VM_AICPU"};
constexpr Capabilities kCpu = {true, true, false, 0, kEngines};
constexpr Capabilities kReference = {false, false, true, 1, kEngines};

// Both built-in devices live in the host's address space and read the host's clock.
class HostDevice : public Device {
 public:
  constexpr HostDevice() = default;

  void* Allocate(memory::Allocator& allocator, std::size_t bytes, std::size_t alignment,
                 memory::Kind kind) const override {
    return allocator.Allocate(bytes, alignment, kind);
  }
  void Free(memory::Allocator& allocator, void* data, std::size_t bytes, std::size_t alignment,
            memory::Kind kind) const override {
    allocator.Free(data, bytes, alignment, kind);
  }
  std::int64_t NowNs() const override {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
  }
  absl::Status Supports(const ops::OpDef& op, absl::Span<const ValueType* const>) const override {
    if (op.reference == nullptr && op.run == nullptr)
      return absl::UnimplementedError(absl::StrCat("operator ", op.name, " has no kernel"));
    return absl::OkStatus();
  }
};

class CpuDevice final : public HostDevice {
 public:
  absl::string_view name() const override { return "cpu"; }
  const Capabilities& capabilities() const override { return kCpu; }
  DType StorageType(DType declared) const override { return declared; }
  RunFn boundary_copy() const override { return nullptr; }
};

// Element by element through double; types that are stored as declared are copied byte for byte.
template <typename From>
void CopyFrom(const RunContext& run) {
  DispatchDType<kFloats>(run.output(0).dtype, [&](auto to) {
    const std::int64_t count = run.count(0);
    for (std::int64_t i = 0; i < count; ++i)
      run.Store(0, i, static_cast<decltype(to)>(static_cast<double>(run.Load<From>(0, i))));
  });
}

// `value` with its float tensors stored as `type` says.
absl::StatusOr<Value> Converted(const Value& value, const ValueType& type) {
  if (value.is_tensor()) {
    const Tensor& tensor = value.tensor();
    if (type.kind != ValueKind::kTensor || type.dtype == tensor.dtype() || !IsFloat(type.dtype) ||
        !IsFloat(tensor.dtype()))
      return value;
    NPURT_ASSIGN_OR_RETURN(const std::vector<double> reals, Reals(tensor));
    NPURT_ASSIGN_OR_RETURN(Tensor converted, Tensor::Create(type.dtype, tensor.dims()));
    if (!DispatchDType<kFloats>(type.dtype, [&](auto element) {
          for (std::size_t i = 0; i < reals.size(); ++i)
            converted.set(static_cast<std::int64_t>(i), static_cast<decltype(element)>(reals[i]));
        }))
      return absl::UnimplementedError(
          absl::StrCat("sequences of ", DTypeName(type.dtype), " on the reference device"));
    return Value(std::move(converted));
  }
  if (type.element == nullptr || value.kind() == ValueKind::kNone) return value;
  if (value.kind() == ValueKind::kMap) {
    ValueMap map = value.map();
    for (auto& [key, item] : map.by_number) {
      NPURT_ASSIGN_OR_RETURN(item, Converted(item, *type.element));
    }
    for (auto& [key, item] : map.by_string) {
      NPURT_ASSIGN_OR_RETURN(item, Converted(item, *type.element));
    }
    return Value::Map(std::move(map));
  }
  // An optional that turned into what it held.
  const bool unwrapped = value.kind() != type.kind && value.kind() == type.element->kind;
  const ValueType& wanted = unwrapped ? *type.element : type;
  ValueList items;
  for (const Value& item : value.items()) {
    if (wanted.element == nullptr) return value;
    NPURT_ASSIGN_OR_RETURN(items.emplace_back(), Converted(item, *wanted.element));
  }
  if (value.kind() == ValueKind::kSequence) return Value::Sequence(std::move(items));
  return items.empty() ? Value::Empty() : Value::Some(std::move(items[0]));
}

absl::Status BoundaryCopy(const RunContext& run, std::int64_t, void*) {
  if (run.input(0).kind != ValueKind::kTensor) {
    const auto* type =
        std::get_if<std::shared_ptr<const ValueType>>(run.attributes().Find(kBoundaryType));
    NPURT_ASSIGN_OR_RETURN(Value copy, Converted(run.input_value(0), **type));
    run.set_output_value(0, std::move(copy));
    return absl::OkStatus();
  }
  const DType from = run.dtype(0), to = run.output(0).dtype;
  if (from == DType::kString) {
    for (std::int64_t i = 0; i < run.count(0); ++i) run.Store(0, i, run.Load<std::string>(0, i));
  } else if (from == to) {
    std::size_t bytes;
    if (!BytesOf(from, run.count(0), &bytes)) return absl::InternalError("size of a copy");
    if (bytes > 0) std::memcpy(run.out<void>(0), run.in<void>(0), bytes);
  } else if (!DispatchDType<kFloats>(from, [&](auto type) { CopyFrom<decltype(type)>(run); })) {
    return absl::InternalError(
        absl::StrCat("no copy from ", DTypeName(from), " to ", DTypeName(to)));
  }
  return absl::OkStatus();
}

class ReferenceDevice final : public HostDevice {
 public:
  absl::string_view name() const override { return "reference"; }
  const Capabilities& capabilities() const override { return kReference; }
  DType StorageType(DType declared) const override {
    return IsFloat(declared) ? DType::kF64 : declared;
  }
  RunFn boundary_copy() const override { return &BoundaryCopy; }
};

constexpr CpuDevice kCpuDevice;
constexpr ReferenceDevice kReferenceDevice;

}  // namespace

absl::StatusOr<const Device*> FindDevice(absl::string_view name) {
  if (name == "cpu") return &kCpuDevice;
  if (name == "reference") return &kReferenceDevice;
  return absl::NotFoundError(
      absl::StrCat("there is no device '", name, "', want 'cpu' or 'reference'"));
}

absl::string_view EngineName(ops::Engine engine) { return kEngines[static_cast<int>(engine)]; }

}  // namespace npurt::device
