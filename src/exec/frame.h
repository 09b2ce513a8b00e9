// ContextFrame: one activation of a program inside a step of another.
//
// A frame is a Context of its own with its arena and two sets of output buffers. A loop's state
// goes round without copies: the outputs of one turn are the inputs of the next, which writes into
// the other set. Plan and memory stay from run to run; a new plan is asked for when the shapes
// change.
//
// Lifetime: owned by the context around it. Thread safety: that of the run.
#ifndef NPURT_EXEC_FRAME_H_
#define NPURT_EXEC_FRAME_H_

#include <memory>
#include <vector>

#include "base/run_context.h"
#include "exec/context.h"
#include "exec/program.h"
#include "memory/allocator.h"

namespace npurt::exec {

class ContextFrame final : public Frame {
 public:
  // REQUIRES: callee->program is not null.
  ContextFrame(std::shared_ptr<const Callee> callee, Context* around);

  absl::Status SetInput(int i, const Slot& slot) override;
  absl::Status Run() override;
  const Slot& output(int i) const override { return sets_[turn_].results[i]; }
  Value Take(int i) override;

 private:
  // The outputs of one turn.
  struct OutputSet {
    std::shared_ptr<const Plan> plan;  // whose dims the results show
    std::vector<Tensor> buffers;       // of outputs with a place in the plan; kept, and grown
    std::vector<Value> values;         // of the others
    std::vector<Slot> results;
  };

  absl::Status Prepare();
  absl::Status ProvideOutputs(OutputSet* set);
  void Collect(OutputSet* set);

  const std::shared_ptr<const Callee> callee_;
  Context* const around_;
  Context context_;
  std::shared_ptr<const Plan> plan_;
  memory::Buffer arena_;
  std::vector<Slot> inputs_;
  std::vector<absl::Span<const std::int64_t>> input_dims_;
  OutputSet sets_[2];
  int turn_ = 0;
};

}  // namespace npurt::exec

#endif  // NPURT_EXEC_FRAME_H_
