// Device: a place where tensors live and steps compute: its engines, its memory, its clock.
//
// The compiler asks a device what it supports and how it stores values; the session asks it for
// memory; boundary copies between devices are steps of the program. Two devices are built in: this
// CPU, which shares the host's memory so that boundary copies are elided, and the reference device,
// the oracle, which stores floats as double in memory of its own and runs the plain loops of the
// operators on one thread.
//
// Streams and events of built-in devices are cursors of exec::Context, driven by the calling thread; a
// plug-in brings its own through Submit, Record and Wait.
//
// Thread safety: all const functions may be called from any thread.
#ifndef NPURT_DEVICE_DEVICE_H_
#define NPURT_DEVICE_DEVICE_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/dtype.h"
#include "base/run_context.h"
#include "base/status.h"
#include "memory/allocator.h"
#include "ops/op_def.h"

namespace npurt::device {

struct Capabilities {
  bool shares_host_memory = true;  // boundary copies can be elided
  bool fast_kernels = true;        // prepare / bind / run; else the reference loops
  bool half_arithmetic = true;     // else float16 and bfloat16 are computed in float32
  int max_threads = 0;             // 0: as many as the machine has
  absl::Span<const absl::string_view> engines;
};

inline constexpr char kBoundaryType[] = "type";

class Device {
 public:
  virtual absl::string_view name() const = 0;
  virtual const Capabilities& capabilities() const = 0;
  // OK, or why a node of this operator with these element types cannot run here. `types` holds the
  // types of the inputs, null where absent.
  virtual absl::Status Supports(const ops::OpDef& op,
                                absl::Span<const ValueType* const> types) const = 0;
  // How values of an element type are stored here.
  virtual DType StorageType(DType declared) const = 0;

  // Memory of the device's space, through the host's allocator where the spaces are one. Null when
  // there is none.
  virtual void* Allocate(memory::Allocator& allocator, std::size_t bytes, std::size_t alignment,
                         memory::Kind kind) const = 0;
  virtual void Free(memory::Allocator& allocator, void* data, std::size_t bytes,
                    std::size_t alignment, memory::Kind kind) const = 0;

  // The step that copies a value into or out of this device's memory, converting between declared
  // and stored element type; of a sequence, optional or map, whose type is the step's attribute
  // kBoundaryType, all tensors in it. Null where boundary copies are elided.
  virtual RunFn boundary_copy() const = 0;

  // The clock of deadlines, in nanoseconds.
  virtual std::int64_t NowNs() const = 0;

 protected:
  ~Device() = default;  // devices are static: nobody deletes one
};

// "cpu" or "reference"; NOT_FOUND for other names. Devices are static.
absl::StatusOr<const Device*> FindDevice(absl::string_view name);

// The engine's name as users of NPU graphs know it: "AIcoreEngine" or "DNN_VM_AICPU".
absl::string_view EngineName(ops::Engine engine);

}  // namespace npurt::device

#endif  // NPURT_DEVICE_DEVICE_H_
