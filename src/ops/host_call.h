// HostCall: an operator whose inference and loops are the host's.
//
// The object is a constant of the node, like any attribute. It travels as a tensor that nobody
// reads (passes copy, keep and drop attributes without knowing what they hold) and stays alive as
// long as a graph or program has the node.
//
// Thread safety: both functions are called from any thread, several at once.
#ifndef NPURT_OPS_HOST_CALL_H_
#define NPURT_OPS_HOST_CALL_H_

#include <memory>

#include "ops/op_def.h"

namespace npurt::ops {

class HostCall {
 public:
  virtual ~HostCall() = default;
  // As OpDef::infer; says something of every output that is wanted.
  virtual absl::Status Infer(InferContext& context) const = 0;
  // As a reference: one tile; calls AllocateOutput for every output that is a tensor.
  virtual absl::Status Run(const RunContext& run) const = 0;
};

// The types of nodes that call the host: those without effects may be folded and merged.
inline constexpr char kHostCallPure[] = "HostCall";
inline constexpr char kHostCallReadsState[] = "HostCallReadsState";
inline constexpr char kHostCallWritesState[] = "HostCallWritesState";
inline constexpr int kMaxHostCallOperands = 16;

Attributes HostCallAttributes(std::shared_ptr<const HostCall> call);

// The operators that a host adds, by the names they have in files.
class HostOperators {
 public:
  virtual ~HostOperators() = default;

  virtual bool Has(absl::string_view domain, absl::string_view type) const = 0;

  struct Made {
    const char* type;  // of the node, kHostCall*
    Attributes attributes;
  };
  // What stands for a node of an operator that Has. INVALID_ARGUMENT: wrong counts of operands.
  virtual absl::StatusOr<Made> Make(absl::string_view domain, absl::string_view type,
                                    const std::string& node, const Attributes& attributes,
                                    std::size_t inputs, std::size_t outputs) const = 0;
};

}  // namespace npurt::ops

#endif  // NPURT_OPS_HOST_CALL_H_
