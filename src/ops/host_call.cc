// HostCall*: outputs = a function of the host (inputs).
#include "ops/host_call.h"

namespace npurt::ops {

Attributes HostCallAttributes(std::shared_ptr<const HostCall> call) {
  Attributes attributes;
  const HostCall* object = call.get();
  // Without an element type: no file can make such a tensor.
  attributes.Set("host", Tensor::Borrow(DType::kUndefined, {}, object, std::move(call)));
  return attributes;
}

namespace host_call {
namespace {

const HostCall& CallOf(const Attributes& attributes) {
  return *static_cast<const HostCall*>(attributes.FindTensor("host")->data());
}

absl::Status Infer(InferContext& context) {
  const Tensor* host = context.attributes().FindTensor("host");
  if (host == nullptr || host->defined() || host->data() == nullptr)
    return absl::InvalidArgumentError("the host gave no function for this node");
  return CallOf(context.attributes()).Infer(context);
}

absl::Status Run(const RunContext& run, std::int64_t, void*) {
  return CallOf(run.attributes()).Run(run);
}

constexpr OpDef Define(const char* name, Traits traits) {
  OpDef op = {};
  op.name = name;
  for (Param& input : op.inputs) input = {"?input", "any"};
  for (Param& output : op.outputs) output = {"?output", "any"};
  op.attributes[0] = {"host", AttrKind::kTensor, true};
  op.traits = traits;
  op.engine = Engine::kAiCpu;
  op.any_rank = true;
  op.internal = true;
  op.infer = Infer;
  op.reference = Run;
  return op;
}

}  // namespace

extern constexpr OpDef kOps[] = {
    Define(kHostCallPure, kPure),
    Define(kHostCallReadsState, kReadsState),
    Define(kHostCallWritesState, kReadsState | kWritesState),
};
extern constexpr int kOpCount = 3;

}  // namespace host_call
}  // namespace npurt::ops
