// Binder: turns a Program and concrete input shapes into a Plan, and binds late steps while running.
//
// MakePlan evaluates the table of dimensions once, asks each operator to bind (tiles, scratch,
// parameters), gathers their offers (views, in place, inside) and grants what is safe, then plans
// memory and has the plan verified. It knows operators and addresses; the program and exec know
// neither.
//
// Thread safety: const functions may be called from any thread.
#ifndef NPURT_COMPILE_BIND_H_
#define NPURT_COMPILE_BIND_H_

#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "base/status.h"
#include "compile/place.h"
#include "exec/context.h"
#include "exec/program.h"
#include "ops/op_def.h"

namespace npurt::compile {

// What the binder keeps of a step beside exec::Step.
struct BindStep {
  const ops::OpDef* op = nullptr;  // null: a boundary copy
  absl::Status (*bind)(ops::BindContext& context) = nullptr;
  std::vector<const Tensor*> constants;  // per input; null: not constant, or dropped
};

class Binder final : public exec::StepBinder {
 public:
  // `program` owns the binder.
  Binder(const exec::Program* program, std::vector<BindStep> steps);

  // `dims[i]` are the dimensions of input i. Errors: a rank or dimension that the program does not
  // allow, with the input's name and both shapes; sizes that overflow; what operators' bind says.
  // `participants` threads will run it at most. `exact`: its arena has not a byte to spare; else it may
  // use the layout of a plan for larger shapes. `donated` inputs may be overwritten, see Placement.
  absl::StatusOr<std::shared_ptr<const exec::Plan>> MakePlan(
      absl::Span<const absl::Span<const std::int64_t>> dims, int participants, bool exact,
      absl::Span<const int> donated = {}) const;

  // How often values had to be placed anew.
  std::int64_t layouts_made() const { return layouts_.added(); }

  absl::Status BindLate(int step, exec::Context& context) const override;

 private:
  const exec::Program* program_;
  std::vector<BindStep> steps_;
  mutable LayoutCache layouts_;
};

}  // namespace npurt::compile

#endif  // NPURT_COMPILE_BIND_H_
