// RunOp: runs one operator on concrete values without a graph, a planner or threads.
//
// It goes the way of the runtime: schema check, inference, then either the reference or prepare, bind
// and all tiles; the tests of operators compare the two. What the runtime may do and operators must
// bear can be switched on: inputs at odd addresses, tiles in reverse order, accepted memory offers.
// Outputs and scratch start poisoned.
//
// Thread safety: free functions without state.
#ifndef NPURT_TESTS_OPS_OP_TEST_HARNESS_H_
#define NPURT_TESTS_OPS_OP_TEST_HARNESS_H_

#include <optional>
#include <string>
#include <vector>

#include "base/cpu_isa.h"
#include "ops/op_def.h"

namespace npurt::ops {

struct OpOptions {
  bool reference = false;         // else the fast version, where there is one
  std::vector<bool> constant;     // which inputs prepare sees as constants; missing entries: no
  std::vector<bool> absent_outputs;  // which outputs the node does not name
  IsaSet isa = DetectedIsa();
  bool same_bits_on_every_isa = false;
  bool reverse_tiles = false;
  bool misalign_inputs = false;   // inputs start one byte after an aligned address
  bool accept_offers = false;     // overwrite, view and place inside wherever bind offers it
  // Called just before and after the tiles run, to count allocations.
  void (*before_run)() = nullptr;
  void (*after_run)() = nullptr;
};

// What one run did, for tests that ask.
struct OpReport {
  bool ran_fast = false;
  std::string kernel;
  std::int64_t tiles = 0;
  int offers_accepted = 0;
  bool allocated_outputs = false;  // by AllocateOutput: the size depended on the run
};

// The outputs of operator `name`; an absent input is Value(). An error of any phase is returned.
absl::StatusOr<std::vector<Value>> RunOp(absl::string_view name, const std::vector<Value>& inputs,
                                         const Attributes& attributes = {}, int outputs = 1,
                                         const OpOptions& options = {}, OpReport* report = nullptr);

// What inference says. `types` null pointers are absent inputs; `constants` and `integers` may be
// shorter than types. `table` makes the run dimensions and must outlive the result.
struct InferredOutput {
  bool set = false;
  ValueType type;
  std::optional<SymDims> integers;
};
struct InferInput {
  std::optional<ValueType> type;     // absent if empty
  std::optional<Tensor> constant;
  std::optional<SymDims> integers;
};
absl::StatusOr<std::vector<InferredOutput>> InferOp(absl::string_view name,
                                                    const std::vector<InferInput>& inputs,
                                                    const Attributes& attributes, int outputs,
                                                    DimTable* table);

// A tensor of these elements. Aborts the test on a wrong number of elements.
template <typename T>
Tensor MakeTensor(const std::vector<std::int64_t>& dims, const std::vector<T>& values) {
  absl::StatusOr<Tensor> tensor = Tensor::Create(kDTypeOf<T>, dims);
  if (!tensor.ok() || tensor->element_count() != static_cast<std::int64_t>(values.size()))
    return Tensor();  // undefined: every check of the result fails
  for (std::size_t i = 0; i < values.size(); ++i)
    tensor->set<T>(static_cast<std::int64_t>(i), values[i]);
  return *std::move(tensor);
}
// Numbers as a tensor of any type of numbers: rounded, and saturated where the type is too small.
Tensor MakeTensorOf(DType dtype, const std::vector<std::int64_t>& dims,
                    const std::vector<double>& values);
// Reproducible numbers in [low, high], whole ones for integer types.
Tensor RandomTensor(DType dtype, const std::vector<std::int64_t>& dims, int seed, double low = -1,
                    double high = 1);

// An attribute list: Attrs({{"axis", std::int64_t{1}}}).
Attributes Attrs(std::vector<Attribute> list);

// Empty if the values are equal: kinds, types, shapes, strings and integers exactly, floats within
// |a - b| <= absolute + relative * |b| (NaN equals NaN, infinities must be the same). Else what
// differs first.
std::string Difference(const Value& got, const Value& want, double relative = 0,
                       double absolute = 0);

}  // namespace npurt::ops

#endif  // NPURT_TESTS_OPS_OP_TEST_HARNESS_H_
