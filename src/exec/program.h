// Program: steps, what each waits for, and the values they pass on. Plan: where the values lie for one
// set of concrete shapes.
//
// A Program is immutable and shared by all runs. Its steps are plain data: a function, the state
// that was prepared for it, and operands as indices of values; a Plan turns a value into {base,
// offset}. Values whose size only the run tells have no place in the plan: they live in the
// context's pool. This layer has never heard of neural networks: what a step computes is the
// business of its function, and shapes of late steps are the business of the StepBinder.
//
// Thread safety: both are read-only once made.
#ifndef NPURT_EXEC_PROGRAM_H_
#define NPURT_EXEC_PROGRAM_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "base/run_context.h"
#include "base/shape.h"
#include "base/status.h"
#include "base/tensor.h"
#include "memory/allocator.h"

namespace npurt::exec {

inline constexpr int kNone = -1;

// Which memory a value lies in.
enum class Base : std::uint8_t {
  kNone,      // absent operands
  kArena,     // the context's arena
  kConstant,  // Program::constants
  kInput,     // the caller's input `index`
  kOutput,    // the caller's output `index`
  kPlan,      // bytes computed when the plan was made (shapes as tensors)
  kVariable,  // what a step read of a variable; as a resource: the variable `index` itself
  kPool,      // allocated while running
};

struct ProgramValue {
  std::string name;  // in the caller's graph
  std::vector<std::string> origins;
  ValueKind kind = ValueKind::kTensor;
  DType dtype = DType::kUndefined;     // as stored
  DType declared = DType::kUndefined;  // as the model says; differs on the reference device
  bool has_rank = false;
  SymDims dims;
  std::shared_ptr<const ValueType> element;  // of sequences, optionals, maps
  Base home = Base::kArena;  // kArena, kConstant, kInput, kOutput, kPlan, kVariable or kPool
  int index = kNone;         // of the constant, input, output or variable
  SymDims integers;          // kPlan: the elements
};

struct Plan;
struct Program;

// Plans for one program: by a cache.
class Planner {
 public:
  virtual ~Planner() = default;
  // The plan for inputs of these dimensions. Thread safe.
  virtual absl::StatusOr<std::shared_ptr<const Plan>> Find(
      absl::Span<const absl::Span<const std::int64_t>> dims) = 0;
};

// A program that a step may run (a branch, a loop's body). Its inputs are those of the subgraph, then
// its captures.
struct Callee {
  std::string name;  // of the attribute
  std::shared_ptr<const Program> program;  // null: `error` says why it cannot run
  std::unique_ptr<Planner> planner;
  absl::Status error;
};

struct Step {
  RunFn run = nullptr;
  const void* prepared = nullptr;  // owned by Program::owners
  const Attributes* attributes = nullptr;
  std::vector<int> inputs, outputs;  // values; kNone: absent
  std::vector<DType> declared_outputs, declared_inputs;  // empty: types are stored as declared
  bool late = false;       // shapes known only when the step comes up: bound by StepBinder then
  bool writes_state = false;
  std::vector<int> release;  // pool values that nobody needs after this step
  int stream = 0;
  std::vector<int> wait;   // events
  int signal = kNone;      // event
  int node = kNone;        // for the binder
  std::vector<std::shared_ptr<const Callee>> callees;
  // For people: plans, traces and errors.
  std::string where;       // "Conv node 'conv1'"
  std::string op, kernel, engine, why;
  std::vector<std::string> origins;
};

struct ProgramPort {
  std::string name;
  int value = kNone;
};

class Context;

// Binds a step whose shapes only the run tells: infers the shapes of its outputs from the slots of
// its inputs, allocates them, and says how the work divides.
class StepBinder {
 public:
  virtual ~StepBinder() = default;
  virtual absl::Status BindLate(int step, Context& context) const = 0;
};

struct Program {
  std::string name;
  std::shared_ptr<const DimTable> dims;
  std::vector<ProgramValue> values;
  std::vector<Step> steps;  // an order that respects streams and events
  std::vector<ProgramPort> inputs, outputs;
  std::vector<Tensor> constants;
  int stream_count = 1;
  int event_count = 0;
  std::vector<std::string> stream_names;
  std::size_t weight_bytes = 0;
  std::size_t packed_bytes = 0;
  memory::Allocator* allocator = nullptr;  // for what runs allocate; outlives the program
  std::uint64_t random_seed = 0;
  mutable std::atomic<std::uint64_t> runs_started{0};  // by all contexts; random operators ask
  std::vector<std::shared_ptr<Resource>> resources;
  std::unique_ptr<StepBinder> binder;
  std::vector<std::shared_ptr<const void>> owners;  // prepared states, attributes
};

struct PlannedValue {
  Base base = Base::kNone;
  std::int32_t index = kNone;
  std::size_t offset = 0;
  const std::int64_t* dims = nullptr;  // in Plan::dims
  std::int32_t rank = 0;
  std::int64_t count = 0;
  std::size_t bytes = 0;
};

struct PlannedStep {
  const void* bound = nullptr;  // in Plan::storage
  std::int64_t tiles = 1;
  double cost_per_tile = 0;  // nanoseconds, roughly
  bool skip = false;         // a view: nothing to do
};

struct Plan {
  std::vector<std::int64_t> input_dims;  // the key: dimensions of all inputs in a row ...
  std::vector<int> donated;              // ... and the inputs that a run may overwrite, ascending
  std::vector<std::int64_t> dims;
  std::vector<PlannedValue> values;
  std::vector<PlannedStep> steps;
  std::vector<std::unique_ptr<std::byte[]>> storage;
  std::size_t arena_bytes = 0;        // values, then scratch
  std::size_t values_bytes = 0;       // of it, for values
  std::size_t scratch_bytes = 0;      // per participant, a multiple of 64
  std::size_t donated_bytes = 0;      // of values that lie in the memory of donated inputs instead
  std::size_t lower_bound_bytes = 0;  // values alive together: no plan of this layout needs less
  std::size_t own_bytes = 0;          // what this object takes, for the cache's bound
  bool exact = true;                  // no value lives in the pool
};

}  // namespace npurt::exec

#endif  // NPURT_EXEC_PROGRAM_H_
