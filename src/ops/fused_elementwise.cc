// FusedElementwise: y = f(x0, x1, …), f a chain of elementwise operations: what the fuse pass makes
// of elementwise nodes in a row. The chain is written in the attributes (see fused_elementwise.h).
#include "ops/fused_elementwise.h"

#include "kernels/elementwise/elementwise.h"
#include "ops/op_def.h"

namespace npurt::ops {
namespace {

using kernels::ElementwiseInstruction;
using kernels::ElementwiseProgram;

constexpr int kFields = 6;  // op, type, to, in[0], in[1], in[2]

}  // namespace

void EncodeChain(const ElementwiseProgram& program, Attributes* attributes) {
  std::vector<std::int64_t> code, inputs;
  std::vector<float> params;
  for (const ElementwiseInstruction& i : program.code) {
    code.insert(code.end(), {static_cast<std::int64_t>(i.op), static_cast<std::int64_t>(i.type),
                             static_cast<std::int64_t>(i.to), i.in[0], i.in[1], i.in[2]});
    params.insert(params.end(), {i.params[0], i.params[1]});
  }
  for (DType dtype : program.inputs) inputs.push_back(static_cast<std::int64_t>(dtype));
  attributes->Set("code", std::move(code));
  attributes->Set("params", std::move(params));
  attributes->Set("input_types", std::move(inputs));
}

absl::StatusOr<ElementwiseProgram> DecodeChain(const Attributes& attributes) {
  const auto code = attributes.Ints("code");
  const auto params = attributes.Floats("params");
  const std::size_t count = code.size() / kFields;
  if (code.empty() || code.size() % kFields != 0 || params.size() != 2 * count ||
      count > static_cast<std::size_t>(kernels::kMaxElementwiseCode))
    return absl::InvalidArgumentError("the chain is damaged");
  ElementwiseProgram program;
  for (std::int64_t type : attributes.Ints("input_types")) {
    if (!IsDType(static_cast<int>(type)))
      return absl::InvalidArgumentError("the chain has an unknown type");
    program.inputs.push_back(static_cast<DType>(type));
  }
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t* field = code.data() + i * kFields;
    for (int f = 0; f < kFields; ++f)
      if (field[f] < 0 || field[f] > 255)
        return absl::InvalidArgumentError("the chain has a field out of range");
    if (field[0] >= kernels::kElementwiseOpCount || field[1] >= kDTypeCount ||
        field[2] >= kDTypeCount)
      return absl::InvalidArgumentError("the chain has an unknown operation");
    ElementwiseInstruction instruction;
    instruction.op = static_cast<kernels::ElementwiseOp>(field[0]);
    instruction.type = static_cast<DType>(field[1]);
    instruction.to = static_cast<DType>(field[2]);
    for (int k = 0; k < 3; ++k) instruction.in[k] = static_cast<std::uint8_t>(field[3 + k]);
    instruction.params[0] = params[2 * i];
    instruction.params[1] = params[2 * i + 1];
    program.code.push_back(instruction);
  }
  program.outputs.push_back(static_cast<std::uint8_t>(program.inputs.size() + count - 1));
  return program;
}

namespace fused_elementwise {
namespace {

struct State final : Prepared {
  kernels::ElementwiseChain chain;
};

struct Bound {
  kernels::ElementwisePlan plan;
};

// One unit of cost is a vector addition of one element: about a twentieth of a nanosecond.
constexpr double kNsPerUnit = 0.05;

absl::Status Infer(InferContext& context) {
  NPURT_ASSIGN_OR_RETURN(const ElementwiseProgram program, DecodeChain(context.attributes()));
  if (program.inputs.size() != static_cast<std::size_t>(context.input_count()))
    return absl::InvalidArgumentError("the chain reads another number of inputs");
  if (!RanksKnown(context)) {
    context.set_output_unknown(0, program.TypeOf(program.outputs[0]));
    return absl::OkStatus();
  }
  SymDims dims;
  for (int i = 0; i < context.input_count(); ++i) {
    NPURT_ASSIGN_OR_RETURN(dims, BroadcastShapes(dims, context.shape(i)));
  }
  NPURT_RETURN_IF_ERROR(kernels::PrepareChain(program, isa::kGeneric).status());
  context.set_output(0, program.TypeOf(program.outputs[0]), dims);
  return absl::OkStatus();
}

absl::StatusOr<kernels::ElementwisePlan> PlanFor(const kernels::ElementwiseChain& chain,
                                                 absl::Span<const std::int64_t> out, int inputs,
                                                 const BindContext* bind, const RunContext* run) {
  absl::InlinedVector<absl::Span<const std::int64_t>, 4> dims;
  for (int i = 0; i < inputs; ++i) dims.push_back(bind != nullptr ? bind->dims(i) : run->dims(i));
  kernels::ElementwisePlan plan;
  if (!kernels::PlanElementwise(chain, out, dims, &plan))
    return absl::InvalidArgumentError("shapes of the operands do not broadcast");
  return plan;
}

void RunTile(const kernels::ElementwiseChain& chain, const kernels::ElementwisePlan& plan,
             const RunContext& run, std::int64_t tile, void* scratch) {
  const void* in[kernels::kMaxElementwiseInputs];
  for (int i = 0; i < run.input_count(); ++i) in[i] = run.in<void>(i);
  void* out[1] = {run.out<void>(0)};
  kernels::RunElementwiseTile(chain, plan, in, out, tile, scratch);
}

// The same chain on the generic rows.
absl::Status Reference(const RunContext& run, std::int64_t, void*) {
  NPURT_ASSIGN_OR_RETURN(const ElementwiseProgram program, DecodeChain(run.attributes()));
  NPURT_ASSIGN_OR_RETURN(const auto chain, kernels::PrepareChain(program, isa::kGeneric));
  NPURT_ASSIGN_OR_RETURN(
      const auto plan, PlanFor(chain, run.output_dims(0), run.input_count(), nullptr, &run));
  std::vector<std::byte> scratch(plan.scratch_bytes + 64);
  std::byte* aligned =
      scratch.data() + (64 - reinterpret_cast<std::uintptr_t>(scratch.data()) % 64) % 64;
  for (std::int64_t tile = 0; tile < plan.tiles; ++tile) RunTile(chain, plan, run, tile, aligned);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Prepared>> Prepare(PrepareContext& context) {
  NPURT_ASSIGN_OR_RETURN(const ElementwiseProgram program, DecodeChain(context.attributes()));
  auto state = std::make_unique<State>();
  const IsaSet allowed = context.same_bits_on_every_isa() ? isa::kGeneric : context.isa();
  NPURT_ASSIGN_OR_RETURN(state->chain, kernels::PrepareChain(program, allowed));
  state->kernel = state->chain.name;
  return state;
}

absl::Status Bind(BindContext& context) {
  const auto& chain = context.prepared<State>()->chain;
  auto* bound = context.New<Bound>();
  NPURT_ASSIGN_OR_RETURN(bound->plan, PlanFor(chain, context.output_dims(0), context.input_count(),
                                              &context, nullptr));
  context.SetTiles(bound->plan.tiles, static_cast<double>(bound->plan.tile_cost) * kNsPerUnit);
  context.SetScratch(bound->plan.scratch_bytes);
  for (int i = 0; i < context.input_count(); ++i)
    if (context.dims(i) == context.output_dims(0) &&
        DTypeBits(context.dtype(i)) == DTypeBits(context.output_dtype(0)))
      context.MayOverwrite(0, i);
  return absl::OkStatus();
}

absl::Status Run(const RunContext& run, std::int64_t tile, void* scratch) {
  RunTile(run.prepared<State>()->chain, run.bound<Bound>()->plan, run, tile, scratch);
  return absl::OkStatus();
}

}  // namespace

extern constexpr OpDef kOp = {
    .name = "FusedElementwise",
    .inputs = {{"*inputs", "any"}},
    .outputs = {{"y", "any"}},
    .attributes = {{"code", AttrKind::kInts, true},
                   {"params", AttrKind::kFloats, true},
                   {"input_types", AttrKind::kInts, true}},
    .any_rank = true,
    .internal = true,
    .infer = Infer,
    .reference = Reference,
    .prepare = Prepare,
    .bind = Bind,
    .run = Run,
};

}  // namespace fused_elementwise
}  // namespace npurt::ops
