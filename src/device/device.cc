#include "device/device.h"

#include <time.h>

#include "absl/strings/str_cat.h"

namespace npurt::device {
namespace {

constexpr absl::string_view kEngines[] = {"AIcoreEngine", "DNN_VM_AICPU"};
constexpr Capabilities kCpu = {true, true, 0, kEngines};
constexpr Capabilities kReference = {false, false, 1, kEngines};

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

absl::Status BoundaryCopy(const RunContext& run, std::int64_t, void*) {
  if (run.input(0).kind != ValueKind::kTensor) {
    run.set_output_value(0, run.input_value(0));
    return absl::OkStatus();
  }
  const DType from = run.dtype(0), to = run.output(0).dtype;
  if (from == DType::kString) {
    for (std::int64_t i = 0; i < run.count(0); ++i)
      run.Store(0, i, run.Load<std::string>(0, i));
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
