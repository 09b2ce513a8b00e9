// Row selection, preparation and planning of chains, and the loop that runs them.
#include "kernels/elementwise/elementwise.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "kernels/elementwise/typed.h"

namespace npurt::kernels {
namespace {

constexpr ElementwiseOpInfo kOps[] = {
#define NPURT_ELEMENTWISE_1(name, types, cost, ...) {#name, 1, types, false, cost},
#define NPURT_ELEMENTWISE_2(name, types, cost, ...) {#name, 2, types, false, cost},
#define NPURT_ELEMENTWISE_3(name, types, cost, ...) {#name, 3, types, false, cost},
#define NPURT_ELEMENTWISE_TEST_1(name, types, cost, ...) {#name, 1, types, true, cost},
#define NPURT_ELEMENTWISE_TEST_2(name, types, cost, ...) {#name, 2, types, true, cost},
#define NPURT_ELEMENTWISE_WHERE(name, types, cost, ...) {#name, 3, types, false, cost},
#include "kernels/elementwise/ops.inc"
#undef NPURT_ELEMENTWISE_1
#undef NPURT_ELEMENTWISE_2
#undef NPURT_ELEMENTWISE_3
#undef NPURT_ELEMENTWISE_TEST_1
#undef NPURT_ELEMENTWISE_TEST_2
#undef NPURT_ELEMENTWISE_WHERE
    {"Cast", 1, kCastTypes, false, 2},
};

constexpr DType ResultOf(ElementwiseOp op) {
  return kOps[static_cast<int>(op)].bool_result ? DType::kBool : DType::kF32;
}

}  // namespace

const ElementwiseOpInfo& InfoOf(ElementwiseOp op) { return kOps[static_cast<int>(op)]; }

// Best first.
const VectorRow kVectorRows[] = {
#if defined(__x86_64__)
#define NPURT_VECTOR_OP(name)                                              \
  {"row_f32_" #name "_avx512", ElementwiseOp::k##name, DType::kF32,        \
   ResultOf(ElementwiseOp::k##name), isa::kAvx512, rows_avx512::name},
#define NPURT_VECTOR_CAST(name, from, to) \
  {"row_" #name "_avx512", ElementwiseOp::kCast, DType::from, DType::to, isa::kAvx512, \
   rows_avx512::name},
#include "kernels/elementwise/vector_ops.inc"
#undef NPURT_VECTOR_OP
#undef NPURT_VECTOR_CAST
#define NPURT_VECTOR_OP(name)                                              \
  {"row_f32_" #name "_avx2", ElementwiseOp::k##name, DType::kF32,          \
   ResultOf(ElementwiseOp::k##name), isa::kAvx2, rows_avx2::name},
#define NPURT_VECTOR_CAST(name, from, to) \
  {"row_" #name "_avx2", ElementwiseOp::kCast, DType::from, DType::to, isa::kAvx2, \
   rows_avx2::name},
#include "kernels/elementwise/vector_ops.inc"
#undef NPURT_VECTOR_OP
#undef NPURT_VECTOR_CAST
#endif
#define NPURT_VECTOR_OP(name)                                              \
  {"row_f32_" #name "_generic", ElementwiseOp::k##name, DType::kF32,       \
   ResultOf(ElementwiseOp::k##name), isa::kGeneric, rows_generic::name},
#define NPURT_VECTOR_CAST(name, from, to) \
  {"row_" #name "_generic", ElementwiseOp::kCast, DType::from, DType::to, isa::kGeneric, \
   rows_generic::name},
#include "kernels/elementwise/vector_ops.inc"
#undef NPURT_VECTOR_OP
#undef NPURT_VECTOR_CAST
};
const std::size_t kVectorRowCount = sizeof(kVectorRows) / sizeof(kVectorRows[0]);

namespace {

const VectorRow* FindVectorRow(ElementwiseOp op, DType from, DType to, IsaSet allowed) {
  for (const VectorRow& row : kVectorRows)
    if (row.op == op && row.from == from && row.to == to && HasAll(allowed, row.needs)) return &row;
  return nullptr;
}

int WidthOf(DType type) { return DTypeBits(type) / 8; }

// Elements of a scratch row: few enough that all rows of a chain share the first cache, many enough
// that the call of a row kernel is cheap.
constexpr std::int64_t kPieceElements = 1024;
constexpr std::int64_t kPieceBudget = 24 << 10;
constexpr std::int64_t kMinPiece = 128;
// Innermost axes shorter than this are not worth a kernel call per row: rows are gathered instead.
constexpr std::int64_t kMinRow = 48;
// Work of one tile, in vector additions of an element (some ten microseconds).
constexpr std::int64_t kTileCost = 1 << 16;

}  // namespace

RowFn SelectRow(ElementwiseOp op, DType type, IsaSet allowed, const char** name) {
  if (type == DType::kF32) {
    const VectorRow* row = FindVectorRow(op, DType::kF32, ResultOf(op), allowed);
    if (row != nullptr) {
      if (name != nullptr) *name = row->name;
      return row->run;
    }
  }
  if (name != nullptr) *name = InfoOf(op).name;
  const RowFn row = TypedFloatRow(op, type);
  return row != nullptr ? row : TypedIntegerRow(op, type);
}

RowFn SelectCastRow(DType from, DType to, IsaSet allowed, const char** name) {
  const VectorRow* row = FindVectorRow(ElementwiseOp::kCast, from, to, allowed);
  if (name != nullptr) *name = row != nullptr ? row->name : "Cast";
  return row != nullptr ? row->run : TypedCastRow(from, to);
}

std::uint8_t ElementwiseProgram::Add(ElementwiseOp op, DType type, std::uint8_t x, std::uint8_t y,
                                     std::uint8_t z, float p0, float p1) {
  ElementwiseInstruction instruction;
  instruction.op = op;
  instruction.type = type;
  instruction.in[0] = x;
  instruction.in[1] = y;
  instruction.in[2] = z;
  instruction.params[0] = p0;
  instruction.params[1] = p1;
  code.push_back(instruction);
  return static_cast<std::uint8_t>(inputs.size() + code.size() - 1);
}

std::uint8_t ElementwiseProgram::AddCast(DType from, DType to, std::uint8_t x) {
  const std::uint8_t reg = Add(ElementwiseOp::kCast, from, x);
  code.back().to = to;
  return reg;
}

DType ElementwiseProgram::TypeOf(std::uint8_t reg) const {
  if (reg < inputs.size()) return inputs[reg];
  const std::size_t index = reg - inputs.size();
  if (index >= code.size()) return DType::kUndefined;
  const ElementwiseInstruction& instruction = code[index];
  if (instruction.op == ElementwiseOp::kCast) return instruction.to;
  return InfoOf(instruction.op).bool_result ? DType::kBool : instruction.type;
}

ElementwiseProgram SingleOp(ElementwiseOp op, DType type, float p0, float p1) {
  const ElementwiseOpInfo& info = InfoOf(op);
  const bool narrow = type == DType::kF16 || type == DType::kBF16;
  const DType compute = narrow ? DType::kF32 : type;
  ElementwiseProgram program;
  std::uint8_t regs[3] = {0, 1, 2};
  for (int i = 0; i < info.operands; ++i)
    program.inputs.push_back(op == ElementwiseOp::kWhere && i == 0 ? DType::kBool : type);
  if (narrow) {
    for (int i = 0; i < info.operands; ++i)
      if (program.inputs[static_cast<std::size_t>(i)] == type)
        regs[i] = program.AddCast(type, compute, regs[i]);
  }
  std::uint8_t result = program.Add(op, compute, regs[0], regs[1], regs[2], p0, p1);
  if (narrow && !info.bool_result) result = program.AddCast(compute, type, result);
  program.outputs.push_back(result);
  return program;
}

absl::StatusOr<ElementwiseChain> PrepareChain(const ElementwiseProgram& program, IsaSet allowed) {
  const std::size_t inputs = program.inputs.size(), steps = program.code.size();
  if (inputs > kMaxElementwiseInputs || steps == 0 || steps > kMaxElementwiseCode ||
      program.outputs.empty() || program.outputs.size() > kMaxElementwiseOutputs)
    return absl::InvalidArgumentError(
        absl::StrCat("elementwise chain of ", inputs, " inputs, ", steps, " operations and ",
                     program.outputs.size(), " outputs is out of limits"));
  ElementwiseChain chain;
  chain.inputs = static_cast<int>(inputs);
  chain.outputs = static_cast<int>(program.outputs.size());
  chain.steps = static_cast<int>(steps);
  for (std::size_t i = 0; i < inputs; ++i)
    chain.input_width[i] = static_cast<std::uint8_t>(WidthOf(program.inputs[i]));

  const std::size_t registers = inputs + steps;
  std::size_t last_use[kMaxElementwiseInputs + kMaxElementwiseCode] = {};
  for (std::size_t i = 0; i < steps; ++i) {
    const ElementwiseInstruction& code = program.code[i];
    for (int k = 0; k < InfoOf(code.op).operands; ++k) {
      const std::uint8_t reg = code.in[k];
      const DType want = code.op == ElementwiseOp::kWhere && k == 0 ? DType::kBool : code.type;
      if (reg >= inputs + i || program.TypeOf(reg) != want)
        return absl::InvalidArgumentError(absl::StrCat(
            "operand ", k, " of ", InfoOf(code.op).name, " is ",
            DTypeName(program.TypeOf(reg)), ", want an earlier ", DTypeName(want)));
      last_use[reg] = i;
    }
  }
  int output_of[kMaxElementwiseInputs + kMaxElementwiseCode];
  std::fill(output_of, output_of + registers, -1);
  for (int i = 0; i < chain.outputs; ++i) {
    const std::uint8_t reg = program.outputs[static_cast<std::size_t>(i)];
    if (reg < inputs || reg >= registers || output_of[reg] >= 0)
      return absl::InvalidArgumentError("an output of an elementwise chain must be one result");
    output_of[reg] = i;
  }

  // Slots by liveness. A result may take the slot of an operand that dies here if it is as wide.
  int slot_of[kMaxElementwiseInputs + kMaxElementwiseCode];
  std::fill(slot_of, slot_of + registers, -1);
  std::uint64_t busy = 0;
  for (std::size_t i = 0; i < steps; ++i) {
    const ElementwiseInstruction& code = program.code[i];
    const ElementwiseOpInfo& info = InfoOf(code.op);
    ElementwiseChain::Step& step = chain.step[i];
    const char* name = info.name;
    step.run = code.op == ElementwiseOp::kCast ? SelectCastRow(code.type, code.to, allowed, &name)
                                               : SelectRow(code.op, code.type, allowed, &name);
    if (step.run == nullptr)
      return absl::UnimplementedError(
          absl::StrCat("no row of ", info.name, " for ", DTypeName(code.type)));
    chain.name = steps == 1 ? name : "chain";
    chain.cost += info.cost;
    std::copy(code.params, code.params + 2, step.params);
    std::copy(code.in, code.in + 3, step.in);
    step.operands = static_cast<std::uint8_t>(info.operands);
    const std::size_t result = inputs + i;
    const int width = WidthOf(program.TypeOf(static_cast<std::uint8_t>(result)));
    step.width = static_cast<std::uint8_t>(width);
    step.output = static_cast<std::int8_t>(output_of[result]);
    step.slot = -1;
    std::uint64_t freed = 0, reusable = 0;
    for (int k = 0; k < info.operands; ++k) {
      const std::uint8_t reg = code.in[k];
      if (slot_of[reg] < 0 || last_use[reg] != i) continue;
      freed |= std::uint64_t{1} << slot_of[reg];
      if (WidthOf(program.TypeOf(reg)) == width) reusable |= std::uint64_t{1} << slot_of[reg];
    }
    if (step.output < 0) {
      const std::uint64_t free = ~busy | reusable;
      const int slot = __builtin_ctzll(free);
      step.slot = static_cast<std::int8_t>(slot);
      slot_of[result] = slot;
      chain.slots = std::max(chain.slots, slot + 1);
      chain.slot_width = std::max(chain.slot_width, width);
      busy = (busy & ~freed) | std::uint64_t{1} << slot;
    } else {
      busy &= ~freed;
    }
  }
  return chain;
}

bool PlanElementwise(const ElementwiseChain& chain, absl::Span<const std::int64_t> dims,
                     absl::Span<const absl::Span<const std::int64_t>> input_dims,
                     ElementwisePlan* plan) {
  const int inputs = chain.inputs;
  plan->count = 1;
  plan->rank = 0;
  std::int64_t run[kMaxElementwiseInputs];  // elements of the input inside the current axis
  for (int k = 0; k < inputs; ++k) {
    run[k] = 1;
    if (input_dims[static_cast<std::size_t>(k)].size() > dims.size()) return false;
  }
  for (std::size_t from_right = 0; from_right < dims.size(); ++from_right) {
    const std::int64_t size = dims[dims.size() - 1 - from_right];
    plan->count *= size;
    std::int64_t strides[kMaxElementwiseInputs];
    const int last = plan->rank - 1;
    bool merges = plan->rank > 0;
    for (int k = 0; k < inputs; ++k) {
      const absl::Span<const std::int64_t> in = input_dims[static_cast<std::size_t>(k)];
      const std::int64_t extent =
          from_right < in.size() ? in[in.size() - 1 - from_right] : std::int64_t{1};
      if (extent != size && extent != 1) return false;
      strides[k] = extent == size ? run[k] : 0;
      run[k] *= extent;
      if (merges && strides[k] != plan->strides[k][last] * plan->dims[last]) merges = false;
    }
    if (size == 1) continue;
    if (merges) {
      plan->dims[last] *= size;
      continue;
    }
    if (plan->rank == kMaxElementwiseRank) return false;
    for (int k = 0; k < inputs; ++k) plan->strides[k][plan->rank] = strides[k];
    plan->dims[plan->rank++] = size;
  }
  plan->scalars = 0;
  plan->by_rows = false;
  plan->direct = false;
  plan->scratch_bytes = 0;
  plan->tiles = 0;
  plan->tile_elements = 0;
  plan->tile_cost = 0;
  if (plan->count == 0) return true;
  if (plan->rank == 0) {
    plan->dims[0] = 1;
    for (int k = 0; k < inputs; ++k) plan->strides[k][0] = 1;
    plan->rank = 1;
  }

  const std::int64_t inner = plan->dims[0];
  bool irregular = false;
  for (int k = 0; k < inputs; ++k) {
    plan->gather_slot[k] = -1;
    plan->gather_once[k] = false;
    if (run[k] == plan->count) {
      plan->access[k] = ElementwiseAccess::kDense;
    } else if (run[k] == 1) {
      plan->access[k] = ElementwiseAccess::kScalar;
      plan->scalars |= std::uint64_t{1} << k;
    } else {
      plan->access[k] = ElementwiseAccess::kRow;
      irregular = true;
    }
  }
  for (int i = 0; i < chain.steps; ++i) {
    const ElementwiseChain::Step& step = chain.step[i];
    bool scalar = step.output < 0;
    for (int k = 0; k < step.operands; ++k) scalar = scalar && (plan->scalars >> step.in[k] & 1);
    if (scalar) plan->scalars |= std::uint64_t{1} << (inputs + i);
  }
  int slots = chain.slots;
  int slot_width = chain.slot_width;
  if (irregular) {
    plan->by_rows = inner >= kMinRow;
    for (int k = 0; k < inputs; ++k) {
      if (plan->access[k] != ElementwiseAccess::kRow || plan->by_rows) continue;
      plan->access[k] = ElementwiseAccess::kGather;
      plan->gather_slot[k] = static_cast<std::int8_t>(slots++);
      slot_width = std::max(slot_width, int{chain.input_width[k]});
    }
  }
  plan->direct = chain.steps == 1 && !irregular;

  std::int64_t piece = kPieceElements;
  if (slots > 0)
    piece = std::clamp(kPieceBudget / (slots * slot_width), kMinPiece, kPieceElements) & ~63;
  else
    piece = plan->count;
  if (irregular && !plan->by_rows) {
    // Whole periods, so that a row that repeats is gathered once.
    if (plan->rank == 2 && slots > 0) piece = std::max(piece / inner, std::int64_t{1}) * inner;
    for (int k = 0; k < inputs; ++k)
      plan->gather_once[k] = plan->rank == 2 && plan->access[k] == ElementwiseAccess::kGather &&
                             plan->strides[k][0] == 1 && plan->strides[k][1] == 0;
  }
  plan->piece = piece;
  plan->slot_bytes =
      (static_cast<std::size_t>(piece) * static_cast<std::size_t>(slot_width) + 63) / 64 * 64;
  plan->scratch_bytes = static_cast<std::size_t>(slots) * plan->slot_bytes;

  const std::int64_t cost = chain.cost + 1 + (slots - chain.slots);
  const std::int64_t target = std::max<std::int64_t>(kTileCost / cost, 256);
  std::int64_t unit = slots > 0 ? piece : 64;
  if (plan->by_rows && inner <= target) unit = inner;
  plan->tile_elements = std::max(target / unit, std::int64_t{1}) * unit;
  plan->tiles = (plan->count + plan->tile_elements - 1) / plan->tile_elements;
  plan->tile_cost = std::min(plan->tile_elements, plan->count) * cost;
  return true;
}

namespace {

// Where each input stands for the outer part of an index, axis 0 aside.
struct Odometer {
  std::int64_t at[kMaxElementwiseRank];
  std::int64_t offset[kMaxElementwiseInputs];

  void Set(const ElementwisePlan& plan, int inputs, std::int64_t outer) {
    for (int k = 0; k < inputs; ++k) offset[k] = 0;
    for (int a = 1; a < plan.rank; ++a) {
      at[a] = outer % plan.dims[a];
      outer /= plan.dims[a];
      for (int k = 0; k < inputs; ++k) offset[k] += at[a] * plan.strides[k][a];
    }
  }
  void Next(const ElementwisePlan& plan, int inputs) {
    for (int a = 1; a < plan.rank; ++a) {
      for (int k = 0; k < inputs; ++k) offset[k] += plan.strides[k][a];
      if (++at[a] < plan.dims[a]) return;
      for (int k = 0; k < inputs; ++k) offset[k] -= plan.dims[a] * plan.strides[k][a];
      at[a] = 0;
    }
  }
};

// Copies elements [first, first + count) of the broadcast input `k` side by side.
template <typename T>
void Gather(const ElementwisePlan& plan, int k, const void* in, std::int64_t first,
            std::int64_t count, void* row) {
  const char* from = static_cast<const char*>(in);
  char* to = static_cast<char*>(row);
  std::int64_t at[kMaxElementwiseRank];
  const std::int64_t inner = plan.dims[0], step = plan.strides[k][0];
  std::int64_t begin = first % inner, outer = first / inner, offset = 0;
  for (int a = 1; a < plan.rank; ++a) {
    at[a] = outer % plan.dims[a];
    outer /= plan.dims[a];
    offset += at[a] * plan.strides[k][a];
  }
  while (count > 0) {
    const std::int64_t n = std::min(count, inner - begin);
    const char* src = from + (offset + begin * step) * static_cast<std::int64_t>(sizeof(T));
    const std::int64_t stride = step * static_cast<std::int64_t>(sizeof(T));
    for (std::int64_t i = 0; i < n; ++i, src += stride, to += sizeof(T))
      std::memcpy(to, src, sizeof(T));
    count -= n;
    begin = 0;
    for (int a = 1; a < plan.rank; ++a) {
      offset += plan.strides[k][a];
      if (++at[a] < plan.dims[a]) break;
      offset -= plan.dims[a] * plan.strides[k][a];
      at[a] = 0;
    }
  }
}

void GatherAny(int width, const ElementwisePlan& plan, int k, const void* in, std::int64_t first,
               std::int64_t count, void* row) {
  switch (width) {
    case 1: return Gather<std::uint8_t>(plan, k, in, first, count, row);
    case 2: return Gather<std::uint16_t>(plan, k, in, first, count, row);
    case 4: return Gather<std::uint32_t>(plan, k, in, first, count, row);
    default: return Gather<std::uint64_t>(plan, k, in, first, count, row);
  }
}

void RunDirect(const ElementwiseChain& chain, const ElementwisePlan& plan, const void* const* in,
               void* const* out, std::int64_t begin, std::int64_t end) {
  const ElementwiseChain::Step& step = chain.step[0];
  RowArgs args;
  args.scalars = 0;
  for (int k = 0; k < step.operands; ++k) {
    const int reg = step.in[k];
    const bool scalar = plan.access[reg] == ElementwiseAccess::kScalar;
    args.scalars |= scalar ? 1u << k : 0u;
    args.in[k] = static_cast<const char*>(in[reg]) + (scalar ? 0 : begin * chain.input_width[reg]);
  }
  args.out = static_cast<char*>(out[0]) + begin * step.width;
  args.count = static_cast<std::size_t>(end - begin);
  args.params = step.params;
  step.run(args);
}

}  // namespace

void RunElementwiseTile(const ElementwiseChain& chain, const ElementwisePlan& plan,
                        const void* const* in, void* const* out, std::int64_t tile, void* scratch) {
  const std::int64_t begin = tile * plan.tile_elements;
  const std::int64_t end = std::min(plan.count, begin + plan.tile_elements);
  if (plan.direct) return RunDirect(chain, plan, in, out, begin, end);

  const std::int64_t inner = plan.dims[0];
  const int inputs = chain.inputs;
  Odometer odometer;
  if (plan.by_rows) odometer.Set(plan, inputs, begin / inner);
  std::int64_t in_row = plan.by_rows ? begin % inner : 0;
  char* slots = static_cast<char*>(scratch);
  const void* registers[kMaxElementwiseInputs + kMaxElementwiseCode];

  for (std::int64_t pos = begin; pos < end;) {
    std::int64_t n = std::min(plan.piece, end - pos);
    if (plan.by_rows) n = std::min(n, inner - in_row);
    std::uint64_t scalars = plan.scalars;
    for (int k = 0; k < inputs; ++k) {
      const char* base = static_cast<const char*>(in[k]);
      const std::int64_t width = chain.input_width[k];
      switch (plan.access[k]) {
        case ElementwiseAccess::kDense:
          registers[k] = base + pos * width;
          break;
        case ElementwiseAccess::kScalar:
          registers[k] = base;
          break;
        case ElementwiseAccess::kRow:
          registers[k] = base + (odometer.offset[k] + in_row * plan.strides[k][0]) * width;
          if (plan.strides[k][0] == 0) scalars |= std::uint64_t{1} << k;
          break;
        case ElementwiseAccess::kGather: {
          char* row = slots + static_cast<std::size_t>(plan.gather_slot[k]) * plan.slot_bytes;
          if (pos == begin || !plan.gather_once[k])
            GatherAny(static_cast<int>(width), plan, k, base, pos, n, row);
          registers[k] = row;
          break;
        }
      }
    }
    for (int i = 0; i < chain.steps; ++i) {
      const ElementwiseChain::Step& step = chain.step[i];
      const int result = inputs + i;
      RowArgs args;
      args.scalars = 0;
      for (int k = 0; k < step.operands; ++k) {
        args.in[k] = registers[step.in[k]];
        args.scalars |= (scalars >> step.in[k] & 1) ? 1u << k : 0u;
      }
      args.out = step.output >= 0
                     ? static_cast<char*>(out[step.output]) + pos * step.width
                     : slots + static_cast<std::size_t>(step.slot) * plan.slot_bytes;
      args.count = plan.scalars >> result & 1 ? 1u : static_cast<std::size_t>(n);
      // The result may lie where a scalar operand does, which every element still reads.
      alignas(8) char held[3][8];
      for (int k = 0; k < step.operands && args.count > 1; ++k) {
        if ((args.scalars >> k & 1) == 0 || args.in[k] != args.out) continue;
        std::memcpy(held[k], args.in[k], sizeof held[k]);
        args.in[k] = held[k];
      }
      args.params = step.params;
      step.run(args);
      registers[result] = args.out;
    }
    pos += n;
    if (plan.by_rows) {
      in_row += n;
      if (in_row == inner) {
        in_row = 0;
        odometer.Next(plan, inputs);
      }
    }
  }
}

}  // namespace npurt::kernels
