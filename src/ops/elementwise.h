// What elementwise operators share: an operator says which chain of the elementwise engine computes
// it; inference, the reference, the fast version and the row for the fuse pass follow from that.
//
// The chain is a function of the attributes and the input types alone. The reference asks for the
// chain of float64 inputs in place of the floats and runs it one element at a time, so that one
// formula defines both and only the engine's loops, vectors and broadcasting are trusted to tests.
//
// Thread safety: pure functions.
#ifndef NPURT_OPS_ELEMENTWISE_H_
#define NPURT_OPS_ELEMENTWISE_H_

#include <memory>

#include "kernels/elementwise/elementwise.h"
#include "ops/op_def.h"

namespace npurt::ops {

// Makes the program of a node: its input i is the node's input i (kUndefined if absent, and then not
// read), its only output is the node's output 0. False if there is none for these types.
using ProgramFn = bool (*)(const Attributes& attributes, absl::Span<const DType> inputs,
                           kernels::ElementwiseProgram* program);

// The program of one operation whose operands are the first inputs, all of type inputs[0] (Where: of
// inputs[1]).
bool SingleProgram(kernels::ElementwiseOp op, absl::Span<const DType> inputs,
                   kernels::ElementwiseProgram* program, float p0 = 0, float p1 = 0);

template <kernels::ElementwiseOp kOp>
bool PlainProgram(const Attributes&, absl::Span<const DType> inputs,
                  kernels::ElementwiseProgram* program) {
  return SingleProgram(kOp, inputs, program);
}

// Output 0 is the broadcast of all inputs, of the type of the operator's output schema.
absl::Status InferBroadcast(InferContext& context, DType dtype);
// The same type as input 0, and bool.
absl::Status InferElementwise(InferContext& context);
absl::Status InferElementwiseTest(InferContext& context);

absl::Status ReferenceProgram(ProgramFn make, const RunContext& run);
absl::StatusOr<std::unique_ptr<Prepared>> PrepareProgram(ProgramFn make, PrepareContext& context);
bool RowOfProgram(ProgramFn make, const Attributes& attributes,
                  absl::Span<const ValueType* const> inputs,
                  kernels::ElementwiseInstruction* out);
// After a PrepareProgram that made a chain.
absl::Status BindElementwise(BindContext& context);
absl::Status RunElementwise(const RunContext& run, std::int64_t tile, void* scratch);

template <ProgramFn kMake>
absl::Status ElementwiseReference(const RunContext& run, std::int64_t, void*) {
  return ReferenceProgram(kMake, run);
}
template <ProgramFn kMake>
absl::StatusOr<std::unique_ptr<Prepared>> ElementwisePrepare(PrepareContext& context) {
  return PrepareProgram(kMake, context);
}
template <ProgramFn kMake>
bool ElementwiseRow(const Attributes& attributes, absl::Span<const ValueType* const> inputs,
                    absl::Span<const Tensor* const>, kernels::ElementwiseInstruction* out) {
  return RowOfProgram(kMake, attributes, inputs, out);
}

// An operator of one, two or three operands of type variable "T", without attributes.
template <ProgramFn kMake>
constexpr OpDef ElementwiseOpDef(const char* name, int operands, DTypeSet types,
                                 bool test = false) {
  OpDef op;
  op.name = name;
  constexpr const char* kNames[] = {"a", "b", "c"};
  for (int i = 0; i < operands; ++i) op.inputs[i] = {operands == 1 ? "x" : kNames[i], "T"};
  op.outputs[0] = {operands == 1 ? "y" : "c", test ? "bool" : "T"};
  op.types[0] = {"T", types};
  op.infer = test ? InferElementwiseTest : InferElementwise;
  op.reference = ElementwiseReference<kMake>;
  op.prepare = ElementwisePrepare<kMake>;
  op.bind = BindElementwise;
  op.run = RunElementwise;
  op.row = ElementwiseRow<kMake>;
  return op;
}

// The same with one or two float attributes.
template <ProgramFn kMake>
constexpr OpDef ElementwiseOpDef(const char* name, DTypeSet types, const char* attribute,
                                 const char* second = nullptr) {
  OpDef op = ElementwiseOpDef<kMake>(name, 1, types);
  op.attributes[0] = {attribute, AttrKind::kFloat};
  if (second != nullptr) op.attributes[1] = {second, AttrKind::kFloat};
  return op;
}

}  // namespace npurt::ops

#endif  // NPURT_OPS_ELEMENTWISE_H_
