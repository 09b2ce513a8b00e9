// Run: one prepared execution of a session's graph: its bindings, its context, its outputs.
//
// Executing again with the same bindings looks nothing up and allocates nothing: the plan is the
// one of last time, the arena comes back from the session's pool, addresses are patched. Outputs that
// are not bound are new tensors each time.
//
// Lifetime: holds its session. Thread safety: one thread at a time.
#ifndef NPURT_SESSION_RUN_H_
#define NPURT_SESSION_RUN_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/tensor.h"
#include "exec/context.h"
#include "exec/team.h"
#include "memory/arena.h"
#include "session/session.h"

namespace npurt::session {

// Memory for an output whose size only the run tells, and the owner that frees it.
using OutputAllocator = std::function<absl::StatusOr<std::pair<void*, std::shared_ptr<const void>>>(
    std::size_t output, DType dtype, absl::Span<const std::int64_t> dims, std::size_t bytes)>;

// Sees an intermediate value under its name in the caller's graph; kNone: it was fused away.
using Observer = std::function<absl::Status(const std::string& name, const Value& value)>;

struct RunParams {
  const std::atomic<bool>* cancel = nullptr;
  std::int64_t deadline_ns = 0;  // CLOCK_MONOTONIC; 0: none
};

class Run {
 public:
  ~Run();

  int input_count() const;
  int output_count() const;
  const SessionGraph& graph() const { return *graph_; }

  // The value is read at each execution. kNone unbinds. INVALID_ARGUMENT: kind, type or shape.
  // `donate`: an execution may leave anything in the tensor's memory. It is not used for that if it
  // holds strings, does not start at a multiple of 64 or overlaps another input.
  absl::Status BindInput(std::size_t index, Value value, bool donate = false);
  // The tensor that receives an output; its memory is written at each execution. Undefined unbinds.
  // INVALID_ARGUMENT: type, shape, or an overlap with another binding (checked when executing).
  absl::Status BindOutput(std::size_t index, Tensor tensor);
  absl::Status SetOutputAllocator(std::size_t index, OutputAllocator allocator);
  // Empty names: every value. A null observer: none.
  void SetObserver(Observer observer, std::vector<std::string> names);
  // Memory for intermediate values; null: the session's own.
  void SetArena(void* data, std::size_t bytes);

  // FAILED_PRECONDITION: an input is missing, the session is closed. RESOURCE_EXHAUSTED: memory, an
  // arena that is too small. CANCELLED, DEADLINE_EXCEEDED, and what operators say.
  absl::Status Execute(const RunParams& params);

  // Output `index` of the last execution that succeeded. FAILED_PRECONDITION: there was none.
  absl::StatusOr<Value> Output(std::size_t index) const;

 private:
  friend class Session;
  class ObserverAdapter;
  Run(std::shared_ptr<Session> session, const SessionGraph* graph);

  absl::Status Prepare();
  absl::Status CheckOverlaps() const;
  void FindUsableDonations();
  absl::Status ProvideOutputs();
  absl::StatusOr<Tensor> NewTensor(std::size_t output, DType dtype,
                                   absl::Span<const std::int64_t> dims, std::size_t bytes);
  absl::StatusOr<std::byte*> Arena();
  absl::Status CollectOutputs();
  absl::Status ExecutePrepared(const RunParams& params);

  std::shared_ptr<Session> session_;
  const SessionGraph* graph_;
  exec::Context context_;
  exec::Team team_;
  std::vector<Value> inputs_;
  std::vector<bool> donated_;          // as bound ...
  std::vector<int> usable_donations_;  // ... and those that a plan can use; keeps its room
  std::vector<absl::Span<const std::int64_t>> input_dims_;
  std::vector<Tensor> bound_outputs_;  // undefined: not bound
  std::vector<OutputAllocator> output_allocators_;
  std::vector<Tensor> fresh_outputs_;  // of this execution, where not bound
  std::vector<Value> outputs_;
  bool has_outputs_ = false;
  bool bindings_changed_ = true;
  std::shared_ptr<const exec::Plan> plan_;
  memory::ArenaLease lease_;
  std::byte* own_arena_ = nullptr;
  std::size_t own_arena_bytes_ = 0;
  Observer observer_;
  std::vector<std::string> observed_;
};

}  // namespace npurt::session

#endif  // NPURT_SESSION_RUN_H_
