#include "ops/elementwise.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace npurt::ops {

using kernels::ElementwiseChain;
using kernels::ElementwiseInstruction;
using kernels::ElementwiseOp;
using kernels::ElementwisePlan;
using kernels::ElementwiseProgram;
using kernels::kMaxElementwiseCode;
using kernels::kMaxElementwiseInputs;

namespace {

// One unit of cost is a vector addition of one element: about a twentieth of a nanosecond.
constexpr double kNsPerUnit = 0.05;

struct State final : Prepared {
  ElementwiseChain chain;
};

bool IsNarrow(DType dtype) { return dtype == DType::kF16 || dtype == DType::kBF16; }

}  // namespace

bool SingleProgram(ElementwiseOp op, absl::Span<const DType> inputs, ElementwiseProgram* program,
                   float p0, float p1) {
  const kernels::ElementwiseOpInfo& info = kernels::InfoOf(op);
  if (inputs.size() != static_cast<std::size_t>(info.operands)) return false;
  const DType type = inputs[op == ElementwiseOp::kWhere ? 1 : 0];
  const DType compute = IsNarrow(type) ? DType::kF32 : type;
  if (!Contains(info.types, compute)) return false;
  *program = kernels::SingleOp(op, type, p0, p1);
  return true;
}

absl::Status InferBroadcast(InferContext& context, DType dtype) {
  SymDims dims;
  for (int i = 0; i < context.input_count(); ++i) {
    if (!context.has_input(i)) continue;
    NPURT_ASSIGN_OR_RETURN(dims, BroadcastShapes(dims, context.shape(i)));
  }
  context.set_output(0, dtype, std::move(dims));
  return absl::OkStatus();
}

absl::Status InferElementwise(InferContext& context) {
  return InferBroadcast(context, context.dtype(0));
}

absl::Status InferElementwiseTest(InferContext& context) {
  return InferBroadcast(context, DType::kBool);
}

absl::Status ReferenceProgram(ProgramFn make, const RunContext& run) {
  const int inputs = run.input_count();
  DType types[kMaxElementwiseInputs];
  if (inputs > kMaxElementwiseInputs) return absl::InternalError("too many elementwise operands");
  for (int k = 0; k < inputs; ++k) {
    const DType dtype = run.has_input(k) ? run.dtype(k) : DType::kUndefined;
    types[k] = IsFloat(dtype) ? DType::kF64 : dtype;
  }
  ElementwiseProgram program;
  if (!make(run.attributes(), {types, static_cast<std::size_t>(inputs)}, &program))
    return absl::InternalError("no formula for these element types");
  kernels::RowFn rows[kMaxElementwiseCode], load[kMaxElementwiseInputs] = {};
  for (std::size_t i = 0; i < program.code.size(); ++i) {
    const ElementwiseInstruction& code = program.code[i];
    rows[i] = code.op == ElementwiseOp::kCast
                  ? kernels::SelectCastRow(code.type, code.to, isa::kGeneric)
                  : kernels::SelectRow(code.op, code.type, isa::kGeneric);
    if (rows[i] == nullptr) return absl::InternalError("no formula for this element type");
  }
  const std::uint8_t result = program.outputs[0];
  const DType made = program.TypeOf(result);
  const kernels::RowFn store =
      kernels::SelectCastRow(made, run.output(0).dtype, isa::kGeneric);
  if (store == nullptr) return absl::InternalError("no formula for this element type");

  // Where element 0 of the output is in each input, and how far it moves along each axis.
  const absl::Span<const std::int64_t> dims = run.output_dims(0);
  const std::size_t rank = dims.size();
  absl::InlinedVector<std::int64_t, 32> strides(rank * static_cast<std::size_t>(inputs));
  for (int k = 0; k < inputs; ++k) {
    if (types[k] == DType::kUndefined) continue;
    load[k] = kernels::SelectCastRow(run.dtype(k), types[k], isa::kGeneric);
    const absl::Span<const std::int64_t> in = run.dims(k);
    std::int64_t stride = 1;
    for (std::size_t a = 0; a < in.size(); ++a) {
      const std::int64_t extent = in[in.size() - 1 - a];
      if (a >= rank || (extent != 1 && extent != dims[rank - 1 - a]))
        return absl::InvalidArgumentError(absl::StrCat(
            "shape ", ShapeString(in), " does not broadcast to ", ShapeString(dims)));
      strides[static_cast<std::size_t>(k) * rank + rank - 1 - a] = extent == 1 ? 0 : stride;
      stride *= extent;
    }
  }

  absl::InlinedVector<std::int64_t, 8> at(rank, 0);
  absl::InlinedVector<std::int64_t, 8> offset(static_cast<std::size_t>(inputs), 0);
  alignas(8) char cells[kMaxElementwiseInputs + kMaxElementwiseCode][8];
  const float no_params[2] = {0, 0};
  for (std::int64_t i = 0; i < run.output_count_of(0); ++i) {
    for (int k = 0; k < inputs; ++k) {
      if (load[k] == nullptr) continue;
      const std::int64_t width = DTypeBits(run.dtype(k)) / 8;
      load[k]({{run.in<char>(k) + offset[static_cast<std::size_t>(k)] * width}, cells[k], 1, 0,
               no_params});
    }
    for (std::size_t s = 0; s < program.code.size(); ++s) {
      const ElementwiseInstruction& code = program.code[s];
      rows[s]({{cells[code.in[0]], cells[code.in[1]], cells[code.in[2]]},
               cells[static_cast<std::size_t>(inputs) + s],
               1,
               0,
               code.params});
    }
    store({{cells[result]},
           run.out<char>(0) + i * (DTypeBits(run.output(0).dtype) / 8),
           1,
           0,
           no_params});
    for (std::size_t a = rank; a-- > 0;) {
      for (int k = 0; k < inputs; ++k)
        offset[static_cast<std::size_t>(k)] += strides[static_cast<std::size_t>(k) * rank + a];
      if (++at[a] < dims[a]) break;
      for (int k = 0; k < inputs; ++k)
        offset[static_cast<std::size_t>(k)] -=
            dims[a] * strides[static_cast<std::size_t>(k) * rank + a];
      at[a] = 0;
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Prepared>> PrepareProgram(ProgramFn make, PrepareContext& context) {
  DType types[kMaxElementwiseInputs];
  const int inputs = context.input_count();
  if (inputs > kMaxElementwiseInputs) return nullptr;
  for (int k = 0; k < inputs; ++k)
    types[k] = context.has_input(k) ? context.type(k).dtype : DType::kUndefined;
  ElementwiseProgram program;
  auto state = std::make_unique<State>();
  const IsaSet allowed = context.same_bits_on_every_isa() ? isa::kGeneric : context.isa();
  const auto chain = make(context.attributes(), {types, static_cast<std::size_t>(inputs)}, &program)
                         ? kernels::PrepareChain(program, allowed)
                         : absl::UnimplementedError("no chain");
  if (!chain.ok()) return nullptr;  // the reference has its own way
  state->chain = *chain;
  state->kernel = chain->name;
  return state;
}

bool RowOfProgram(ProgramFn make, const Attributes& attributes,
                  absl::Span<const ValueType* const> inputs, ElementwiseInstruction* out) {
  DType types[kMaxElementwiseInputs];
  if (inputs.size() > kMaxElementwiseInputs) return false;
  for (std::size_t k = 0; k < inputs.size(); ++k)
    types[k] = inputs[k] == nullptr ? DType::kUndefined : inputs[k]->dtype;
  ElementwiseProgram program;
  if (!make(attributes, {types, inputs.size()}, &program) || program.code.size() != 1) return false;
  *out = program.code[0];
  return true;
}

absl::Status BindElementwise(BindContext& context) {
  const State* state = context.prepared<State>();
  if (state == nullptr) return absl::OkStatus();
  const int inputs = context.input_count();
  absl::Span<const std::int64_t> dims[kMaxElementwiseInputs];
  for (int k = 0; k < inputs; ++k)
    if (context.has_input(k)) dims[k] = context.dims(k);
  ElementwisePlan* plan = context.New<ElementwisePlan>();
  const absl::Span<const std::int64_t> out = context.output_dims(0);
  if (!kernels::PlanElementwise(state->chain, out, {dims, static_cast<std::size_t>(inputs)},
                                plan)) {
    std::string shapes;
    for (int k = 0; k < inputs; ++k)
      absl::StrAppend(&shapes, k == 0 ? "" : ", ", ShapeString(dims[k]));
    return absl::InvalidArgumentError(
        absl::StrCat("shapes ", shapes, " do not broadcast to ", ShapeString(out)));
  }
  context.SetTiles(plan->tiles, static_cast<double>(plan->tile_cost) * kNsPerUnit);
  context.SetScratch(plan->scratch_bytes);
  for (int k = 0; k < inputs; ++k)
    if (context.has_input(k) && dims[k] == out &&
        DTypeBits(context.dtype(k)) == DTypeBits(context.output_dtype(0)))
      context.MayOverwrite(0, k);
  return absl::OkStatus();
}

absl::Status RunElementwise(const RunContext& run, std::int64_t tile, void* scratch) {
  const void* in[kMaxElementwiseInputs];
  for (int k = 0; k < run.input_count(); ++k) in[k] = run.in<void>(k);
  void* out[1] = {run.out<void>(0)};
  kernels::RunElementwiseTile(run.prepared<State>()->chain, *run.bound<ElementwisePlan>(), in, out,
                              tile, scratch);
  return absl::OkStatus();
}

}  // namespace npurt::ops
