#include "compile/evaluate.h"

#include <utility>

#include "graph/graph.h"

namespace npurt::compile {
namespace {

void Describe(const Tensor& tensor, Slot* slot) {
  slot->data = const_cast<void*>(tensor.data());
  slot->dims = tensor.dims().data();
  slot->rank = tensor.rank();
  slot->count = tensor.element_count();
  slot->dtype = tensor.dtype();
  slot->kind = ValueKind::kTensor;
}

class Services final : public RunServices {
 public:
  explicit Services(std::vector<Tensor>* tensors, std::vector<Slot>* slots)
      : tensors_(tensors), slots_(slots) {}

  absl::Status AllocateOutput(Slot* output, absl::Span<const std::int64_t> dims) override {
    Tensor& tensor = (*tensors_)[output - slots_->data()];
    if (tensor.defined()) return absl::OkStatus();  // inferred before
    NPURT_ASSIGN_OR_RETURN(tensor, Tensor::Create(output->dtype, dims));
    Describe(tensor, output);
    return absl::OkStatus();
  }
  absl::Status Poll() override { return absl::OkStatus(); }

 private:
  std::vector<Tensor>* tensors_;
  std::vector<Slot>* slots_;
};

}  // namespace

absl::StatusOr<std::vector<Tensor>> Evaluate(const ops::OpDef& op, const Attributes& attributes,
                                             absl::Span<const Tensor> inputs,
                                             absl::Span<const bool> wanted) {
  std::vector<ValueType> types(inputs.size());
  std::vector<graph::InferInput> infer_inputs(inputs.size());
  std::vector<Slot> in(inputs.size()), out(wanted.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].defined()) continue;
    types[i] = ValueType::OfTensor(inputs[i].dtype(), ToSymDims(inputs[i].dims()));
    infer_inputs[i] = {&types[i], &inputs[i], nullptr};
    Describe(inputs[i], &in[i]);
  }
  NPURT_ASSIGN_OR_RETURN(
      const graph::InferResult inferred,
      graph::InferNode(op, attributes, infer_inputs, wanted, nullptr, std::string()));
  std::vector<Tensor> tensors(wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (!wanted[i]) continue;
    const ValueType& type = inferred.outputs[i].type;
    if (type.kind != ValueKind::kTensor)
      return absl::UnimplementedError("the result is no tensor");
    out[i].kind = ValueKind::kTensor;
    out[i].dtype = type.dtype;
    if (!type.has_rank) continue;
    const Dims dims = ToDims(type.dims);
    bool known = AllConstant(type.dims);
    for (std::int64_t d : dims) known &= d >= 0;
    if (!known) continue;
    NPURT_ASSIGN_OR_RETURN(tensors[i], Tensor::Create(type.dtype, dims));
    Describe(tensors[i], &out[i]);
  }
  std::vector<Slot*> in_pointers, out_pointers;
  for (Slot& slot : in) in_pointers.push_back(&slot);
  for (Slot& slot : out) out_pointers.push_back(&slot);
  Services services(&tensors, &out);
  RunContext run;
  run.inputs_ = in_pointers.data();
  run.outputs_ = out_pointers.data();
  run.input_count_ = static_cast<std::int32_t>(in.size());
  run.output_count_ = static_cast<std::int32_t>(out.size());
  run.attributes_ = &attributes;
  run.services_ = &services;
  NPURT_RETURN_IF_ERROR(op.reference(run, 0, nullptr));
  for (std::size_t i = 0; i < wanted.size(); ++i)
    if (wanted[i] && !tensors[i].defined())
      return absl::InternalError("an output was not allocated");
  return tensors;
}

}  // namespace npurt::compile
