// Context: the state of one run of a Program: where its values lie, and how far its streams have
// come.
//
// Attach resolves a plan into slots (one a value) and one RunContext a step, once; a run with the
// same plan then only patches the addresses of the caller's inputs and outputs and calls the steps,
// with no look-up, no lock and no allocation. Streams are cursors {stream, next step}: a cursor
// that comes to an event not yet signalled parks there, and whoever signals the event resumes it.
// One thread drives all cursors of a run; a team helps it inside a step.
//
// Lifetime: the program, the plan (shared) and the arena outlive their use here. Thread safety: one
// run at a time per context; different contexts are independent.
#ifndef NPURT_EXEC_CONTEXT_H_
#define NPURT_EXEC_CONTEXT_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "base/philox.h"
#include "base/run_context.h"
#include "exec/program.h"
#include "exec/team.h"
#include "memory/pool.h"

namespace npurt::exec {

// Sees values after the step that made them, those of subgraphs too. One thread at a time.
class Observer {
 public:
  virtual absl::Status Observe(const Program& program, int value, const Slot& slot) = 0;

 protected:
  ~Observer() = default;
};

struct RunControl {
  const std::atomic<bool>* cancel = nullptr;   // triggered by the caller
  const std::atomic<bool>* closing = nullptr;  // the session closes
  std::int64_t deadline_ns = 0;                // CLOCK_MONOTONIC; 0: none
  Observer* observer = nullptr;
};

// OK, CANCELLED or DEADLINE_EXCEEDED.
absl::Status CheckControl(const RunControl& control);

class ContextFrame;

class Context final : public RunServices {
 public:
  explicit Context(std::shared_ptr<const Program> program);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const Program& program() const { return *program_; }
  const std::shared_ptr<const Plan>& plan() const { return plan_; }
  std::byte* arena() const { return arena_; }

  // Uses `plan` with an arena of at least plan->arena_bytes at a multiple of 64, where up to
  // `participants` threads compute (their scratch is part of the arena). Cheap if nothing changed.
  void Attach(std::shared_ptr<const Plan> plan, std::byte* arena, int participants);

  // Before each run, for every input and every output with a place in the plan. Tensor inputs have
  // the dimensions of the plan. `value` is read by steps that take sequences, optionals and maps.
  void SetInput(int input, const void* data);
  void SetInputValue(int input, Value value);
  void SetOutput(int output, void* data);

  // Runs all steps. The first error stops the run; bound bytes are unspecified then. `team` may be
  // null: the caller computes alone.
  absl::Status Run(Team* team, const RunControl& control);

  // After a run: the slot of an output; its tensor if the run allocated it (kPool), ready to be
  // moved to the caller.
  const Slot& output(int i) const { return slots_[program_->outputs[i].value]; }
  // REQUIRES: an output of the program.
  Tensor TakePoolTensor(int value);
  Value TakeValue(int value);

  // --- for StepBinder
  // -----------------------------------------------------------------------------
  Slot& slot(int value) { return slots_[value]; }
  RunContext& run_context(int step) { return runs_[step]; }
  PlannedStep& late_step(int step) { return late_[step]; }
  // Memory that a late step's bind may use until the step has run.
  void* LateStorage(std::size_t bytes, std::size_t alignment);
  void ResetLateStorage() { late_used_ = 0; }
  absl::Status Reserve(int value, absl::Span<const std::int64_t> dims);
  void BookLateScratch(std::size_t bytes) { late_scratch_bytes_ = bytes; }

  // RunServices.
  absl::Status AllocateOutput(Slot* output, absl::Span<const std::int64_t> dims) override;
  absl::Status Poll() override { return CheckControl(*control_); }
  absl::StatusOr<Frame*> OpenFrame(const RunContext& run, int subgraph) override;
  absl::Status MoveOutput(Slot* output, Frame& frame, int i) override;
  absl::StatusOr<bool> ShareOutput(Slot* output, const Tensor& tensor) override;
  std::uint64_t RandomKey() const override {
    return MixBits(program_->random_seed) + run_number_;
  }

 private:
  friend class ContextFrame;
  struct Cursor {
    int stream;
    std::size_t next = 0;  // in stream_steps_[stream]
  };
  struct Event {
    bool signalled = false;
    absl::InlinedVector<int, 2> parked;  // streams that wait here
  };

  absl::Status RunStep(int index, Team* team);
  absl::Status RunTiles(int index, const PlannedStep& planned, Team* team);
  absl::Status RunStreams(Team* team);
  void Forget(int value);
  int ValueOf(const Slot* slot) const;  // kNone: an output that nobody reads
  bool InPool(int value) const;

  std::shared_ptr<const Program> program_;
  std::shared_ptr<const Plan> plan_;
  std::byte* arena_ = nullptr;
  int participants_ = 1;
  std::vector<Slot> slots_;
  std::vector<Slot*> operands_;  // the arrays that runs_ points into
  std::vector<RunContext> runs_;
  std::vector<std::vector<std::pair<int, std::size_t>>> input_slots_,
      output_slots_;           // {value, offset}
  std::vector<Value> values_;  // of slots that are no tensors
  // Of slots at home in the pool: outputs and strings have a tensor, the others a block and dims.
  memory::TensorPool pool_;
  std::vector<Tensor> pool_tensors_;
  std::vector<void*> pool_blocks_;
  std::vector<Dims> pool_dims_;
  std::vector<bool> is_output_;
  std::vector<int> read_variables_;  // values at home in a variable; their tensors are in pool_tensors_
  std::vector<std::vector<std::unique_ptr<ContextFrame>>> frames_;  // by step and subgraph
  std::vector<PlannedStep> late_;
  std::vector<std::unique_ptr<std::byte[]>> late_blocks_;
  std::size_t late_used_ = 0, late_block_bytes_ = 0;
  std::size_t late_scratch_bytes_ = 0, late_scratch_capacity_ = 0;
  std::unique_ptr<std::byte[]> late_scratch_;
  std::vector<std::vector<int>> stream_steps_;
  std::vector<Event> events_;
  const RunControl* control_ = nullptr;
  Team* team_ = nullptr;
  std::uint64_t run_number_ = 0;  // among all runs of the program
};

}  // namespace npurt::exec

#endif  // NPURT_EXEC_CONTEXT_H_
