// RunContext: what one step sees while it runs: its operands in memory and nothing of the rest.
//
// A Slot is one value of a program as it lies in memory during a run. Slots and contexts are plain
// data filled in advance by the binder (static shapes) or just before the step (shapes known only
// now), so that a steady run resolves nothing. `RunServices` is the way back to the runtime for the
// few things a step may ask: memory for an output of unknown size, a poll for cancellation.
//
// Thread safety: several participants may run tiles of one step at the same time; they share the
// context, read-only but for the bytes of their own tile.
#ifndef NPURT_BASE_RUN_CONTEXT_H_
#define NPURT_BASE_RUN_CONTEXT_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "absl/functional/function_ref.h"
#include "base/attributes.h"
#include "base/tensor.h"

namespace npurt {

struct Slot {
  void* data = nullptr;
  const std::int64_t* dims = nullptr;
  std::int64_t count = 0;  // elements
  std::int32_t rank = 0;
  DType dtype = DType::kUndefined;
  ValueKind kind = ValueKind::kNone;  // kNone: an optional operand that is absent
  Value* value = nullptr;             // sequences, optionals, maps; owned by the frame
  mutable std::uint32_t accesses = 0;  // by Load and Store, see there
};

// What Load and Store throw when the run is to stop. The runtime catches it around each tile.
struct RunStopped {
  absl::Status status;
};

// One activation of a subgraph of the step that runs (a branch, a loop's body). The runtime keeps it
// from run to run with its plan and memory, so that running it again allocates nothing.
class Frame {
 public:
  // Input `i` of the subgraph, its captures after its inputs, reads the bytes of `slot`, which must stay
  // until Run returns.
  virtual absl::Status SetInput(int i, const Slot& slot) = 0;
  virtual absl::Status Run() = 0;
  // An output of the last Run. Two sets of buffers take turns: it stays valid while the next Run
  // reads it as an input, and not longer.
  virtual const Slot& output(int i) const = 0;
  // Moves an output of the last Run out of the frame.
  virtual Value Take(int i) = 0;

 protected:
  ~Frame() = default;
};

// A variable of the session. Values are handles to buffers that nobody writes while they are shared: a
// reader keeps what it read, whatever is assigned meanwhile.
//
// Thread safety: any thread; updates of one variable come one after another.
class Resource {
 public:
  // FAILED_PRECONDITION: nothing was assigned yet.
  virtual absl::StatusOr<Tensor> Read() const = 0;
  // What writes the new value: `old` is undefined if there is none; `out` has the shape asked for.
  using Writer = absl::FunctionRef<absl::Status(const Tensor& old, Tensor* out)>;
  // Replaces the value by one of this shape. INVALID_ARGUMENT: not a shape of the variable's type.
  virtual absl::Status Update(absl::Span<const std::int64_t> dims, Writer writer) = 0;

 protected:
  ~Resource() = default;
};

class RunContext;

class RunServices {
 public:
  // Memory for output `index` of the step (counted among the step's outputs), whose shape only this
  // run tells. Strings come constructed. Once per output and run.
  virtual absl::Status AllocateOutput(Slot* output, absl::Span<const std::int64_t> dims) = 0;
  // OK, or CANCELLED / DEADLINE_EXCEEDED. Cheap; call it about every million element operations.
  virtual absl::Status Poll() = 0;
  // The frame of the step's subgraph number `subgraph`, counted in the order of attribute names.
  // Only for steps of one tile. The frame stays the runtime's.
  virtual absl::StatusOr<Frame*> OpenFrame(const RunContext& run, int subgraph);
  // Makes output `i` of the frame's last Run an output of the step: moved if AllocateOutput would
  // have to allocate it, else copied.
  virtual absl::Status MoveOutput(Slot* output, Frame& frame, int i);
  // Makes `tensor` the bytes of an output that is at home in a variable, until the run is over. False:
  // the output has bytes of its own, to which the caller copies.
  virtual absl::StatusOr<bool> ShareOutput(Slot* output, const Tensor& tensor);
  // What random operators draw from when their node names no seed: differs from run to run, and is
  // the same for the same seed of the session and number of the run.
  virtual std::uint64_t RandomKey() const { return 0; }

 protected:
  ~RunServices() = default;
};

class RunContext {
 public:
  int input_count() const { return input_count_; }
  int output_count() const { return output_count_; }
  // Optional operands that the node leaves out are absent.
  bool has_input(int i) const {
    return i < input_count_ && inputs_[i]->kind != ValueKind::kNone;
  }
  bool has_output(int i) const {
    return i < output_count_ && outputs_[i]->kind != ValueKind::kNone;
  }
  const Slot& input(int i) const { return *inputs_[i]; }
  const Slot& output(int i) const { return *outputs_[i]; }
  DType dtype(int i) const { return inputs_[i]->dtype; }
  absl::Span<const std::int64_t> dims(int i) const {
    return {inputs_[i]->dims, static_cast<std::size_t>(inputs_[i]->rank)};
  }
  absl::Span<const std::int64_t> output_dims(int i) const {
    return {outputs_[i]->dims, static_cast<std::size_t>(outputs_[i]->rank)};
  }
  std::int64_t count(int i) const { return inputs_[i]->count; }
  std::int64_t output_count_of(int i) const { return outputs_[i]->count; }

  // The address of an operand. Inputs of the caller may have any alignment: vector code uses
  // unaligned loads, scalar code Load and Store. Reinterpreting is fine on x86 and arm for
  // vector intrinsics only.
  template <typename T>
  const T* in(int i) const {
    return static_cast<const T*>(inputs_[i]->data);
  }
  template <typename T>
  T* out(int i) const {
    return static_cast<T*>(outputs_[i]->data);
  }
  // Element `index` of an operand in row-major order, any alignment. T may be std::string. In steps of
  // one tile both poll now and then, so that no element loop, however long, keeps a run from being
  // cancelled: they throw RunStopped, which passes through operators as bad_alloc does.
  template <typename T>
  T Load(int i, std::int64_t index) const {
    CountAccess(*inputs_[i]);
    if constexpr (std::is_same_v<T, std::string>) {
      return in<std::string>(i)[index];
    } else {
      T value;
      std::memcpy(&value, in<char>(i) + index * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
      return value;
    }
  }
  template <typename T>
  void Store(int i, std::int64_t index, T value) const {
    CountAccess(*outputs_[i]);
    if constexpr (std::is_same_v<T, std::string>) {
      out<std::string>(i)[index] = std::move(value);
    } else {
      std::memcpy(out<char>(i) + index * static_cast<std::int64_t>(sizeof(T)), &value, sizeof(T));
    }
  }
  // A whole integer or bool input as int64 (axes, shapes, indices).
  std::vector<std::int64_t> Integers(int i) const;
  // An input tensor as a view that must not outlive the run.
  Tensor InputTensor(int i) const;

  // Non-tensor operands.
  const Value& input_value(int i) const { return *inputs_[i]->value; }
  void set_output_value(int i, Value value) const { *outputs_[i]->value = std::move(value); }

  const Attributes& attributes() const { return *attributes_; }
  // What the operator's prepare and bind made, or null.
  template <typename T>
  const T* prepared() const {
    return static_cast<const T*>(prepared_);
  }
  template <typename T>
  const T* bound() const {
    return static_cast<const T*>(bound_);
  }
  absl::Status AllocateOutput(int i, absl::Span<const std::int64_t> dims) const {
    return services_->AllocateOutput(outputs_[i], dims);
  }
  absl::Status Poll() const { return services_->Poll(); }
  absl::StatusOr<Frame*> OpenFrame(int subgraph) const {
    return services_->OpenFrame(*this, subgraph);
  }
  absl::Status MoveOutput(int output, Frame& frame, int i) const {
    return services_->MoveOutput(outputs_[output], frame, i);
  }
  absl::StatusOr<bool> ShareOutput(int output, const Tensor& tensor) const {
    return services_->ShareOutput(outputs_[output], tensor);
  }
  // REQUIRES: input `i` is a resource.
  Resource& resource(int i) const { return *static_cast<Resource*>(inputs_[i]->data); }
  // On the reference device a float output is stored as float64; this is the type that the model
  // declared, to which Cast and Quantize round. Elsewhere the type of the output itself.
  DType declared_dtype(int i) const {
    return declared_ == nullptr ? outputs_[i]->dtype : declared_[i];
  }
  // The same for an input.
  DType declared_input_dtype(int i) const {
    return declared_inputs_ == nullptr ? inputs_[i]->dtype : declared_inputs_[i];
  }
  // The key of the run, see RunServices; and the number of this step's node in its graph, which tells
  // random operators of one run apart.
  std::uint64_t random_key() const { return services_->RandomKey(); }
  std::int32_t node() const { return node_; }

  // Filled by the binder; steps only read.
  Slot* const* inputs_ = nullptr;
  Slot* const* outputs_ = nullptr;
  std::int32_t input_count_ = 0;
  std::int32_t output_count_ = 0;
  const Attributes* attributes_ = nullptr;
  const void* prepared_ = nullptr;
  const void* bound_ = nullptr;
  const DType* declared_ = nullptr;
  const DType* declared_inputs_ = nullptr;
  std::int32_t node_ = 0;
  // The step is one tile of one thread. Only then accesses are counted: steps of many tiles are polled
  // between them, and their participants would take the counters from each other's caches.
  bool counts_accesses_ = false;
  RunServices* services_ = nullptr;

 private:
  static constexpr std::uint32_t kAccessesPerPoll = 1 << 15;

  // A counter for each operand, because counting makes an access wait for the one before.
  void CountAccess(const Slot& slot) const {
    if (counts_accesses_ && __builtin_expect(++slot.accesses % kAccessesPerPoll == 0, 0))
      PollOrThrow();
  }
  void PollOrThrow() const;
};

// Computes tile `tile` of a step, with `scratch` of the size that bind booked (64-byte aligned;
// each participant has its own). Must not depend on who runs it, nor on the other tiles.
using RunFn = absl::Status (*)(const RunContext& run, std::int64_t tile, void* scratch);

}  // namespace npurt

#endif  // NPURT_BASE_RUN_CONTEXT_H_
