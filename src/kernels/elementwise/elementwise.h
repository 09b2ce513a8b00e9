// The elementwise engine: a chain of operations over tensors that broadcast together, run in rows
// that stay in the first cache.
//
// A Program says what to compute: instruction i reads inputs or earlier results and makes one
// result. PrepareChain resolves it to row kernels, once per graph; PlanElementwise collapses the
// shapes, once per shape; RunElementwiseTile computes one tile. Results that only later
// instructions read live in scratch rows; inputs are read where they lie and outputs are written
// where they belong, so a chain of one copies nothing. Everything that depends on shapes is in the
// plan, which owns no memory.
//
// Intermediate results have the type the program gives them: 16-bit floats have no arithmetic rows,
// programs cast them to float32 first and back at the end.
//
// Thread safety: Chain and plan are read-only when running; tiles may run in any order.
#ifndef NPURT_KERNELS_ELEMENTWISE_ELEMENTWISE_H_
#define NPURT_KERNELS_ELEMENTWISE_ELEMENTWISE_H_

#include <cstddef>
#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "base/cpu_isa.h"
#include "base/dtype.h"
#include "base/status.h"
#include "kernels/elementwise/row.h"

namespace npurt::kernels {

// What a typed row may exist for; see ops.inc.
inline constexpr DTypeSet kFloatRows = DTypes(DType::kF32, DType::kF64);
inline constexpr DTypeSet kNumberRows = kFloatRows | kIntegers;
inline constexpr DTypeSet kPlainRows = kNumberRows | kBools;

enum class ElementwiseOp : std::uint8_t {
#define NPURT_ELEMENTWISE_1(name, types, cost, ...) k##name,
#define NPURT_ELEMENTWISE_2 NPURT_ELEMENTWISE_1
#define NPURT_ELEMENTWISE_3 NPURT_ELEMENTWISE_1
#define NPURT_ELEMENTWISE_TEST_1 NPURT_ELEMENTWISE_1
#define NPURT_ELEMENTWISE_TEST_2 NPURT_ELEMENTWISE_1
#define NPURT_ELEMENTWISE_WHERE NPURT_ELEMENTWISE_1
#include "kernels/elementwise/ops.inc"
#undef NPURT_ELEMENTWISE_1
#undef NPURT_ELEMENTWISE_2
#undef NPURT_ELEMENTWISE_3
#undef NPURT_ELEMENTWISE_TEST_1
#undef NPURT_ELEMENTWISE_TEST_2
#undef NPURT_ELEMENTWISE_WHERE
  kCast,  // between any two of kCastTypes
};
inline constexpr int kElementwiseOpCount = static_cast<int>(ElementwiseOp::kCast) + 1;

// What Cast rows exist for.
inline constexpr DTypeSet kCastTypes = kPlainTypes;

struct ElementwiseOpInfo {
  const char* name;
  int operands;
  DTypeSet types;
  bool bool_result;
  int cost;  // of one element, in vector additions
};
const ElementwiseOpInfo& InfoOf(ElementwiseOp op);

// The row for an operation on `type` (Where: the type of its branches), the best that `allowed`
// offers; null if there is none. `name` (may be null) gets its name.
RowFn SelectRow(ElementwiseOp op, DType type, IsaSet allowed, const char** name = nullptr);
// The row that converts `from` to `to`. Integers wrap; floats to integers drop the fraction,
// saturate, and turn NaN into 0; anything but zero is true.
RowFn SelectCastRow(DType from, DType to, IsaSet allowed, const char** name = nullptr);

// A row that exists as vector code, for checks and benchmarks.
struct VectorRow {
  const char* name;
  ElementwiseOp op;
  DType from, to;  // kF32 but for casts and tests
  IsaSet needs;
  RowFn run;
};
extern const VectorRow kVectorRows[];
extern const std::size_t kVectorRowCount;

inline constexpr int kMaxElementwiseInputs = 16;
inline constexpr int kMaxElementwiseCode = 32;
inline constexpr int kMaxElementwiseOutputs = 8;
inline constexpr int kMaxElementwiseRank = 8;  // after merging axes that broadcast alike

// Registers: the inputs are 0 … inputs-1, the result of instruction i is inputs + i.
struct ElementwiseInstruction {
  ElementwiseOp op;
  DType type;              // of the operands (Where: of the branches)
  DType to = DType::kUndefined;  // kCast: of the result
  std::uint8_t in[3] = {};
  float params[2] = {};
};

struct ElementwiseProgram {
  absl::InlinedVector<DType, 4> inputs;
  absl::InlinedVector<ElementwiseInstruction, 4> code;
  absl::InlinedVector<std::uint8_t, 2> outputs;  // registers that instructions made, each once

  // Appends an instruction and returns its register.
  std::uint8_t Add(ElementwiseOp op, DType type, std::uint8_t x, std::uint8_t y = 0,
                   std::uint8_t z = 0, float p0 = 0, float p1 = 0);
  std::uint8_t AddCast(DType from, DType to, std::uint8_t x);
  DType TypeOf(std::uint8_t reg) const;
};

// One operation on operands of `type`, with the casts that 16-bit floats need: what an operator
// that is not part of a chain runs. Null rows surface in PrepareChain.
ElementwiseProgram SingleOp(ElementwiseOp op, DType type, float p0 = 0, float p1 = 0);

// A program with its rows. Owns nothing but itself.
struct ElementwiseChain {
  struct Step {
    RowFn run;
    float params[2];
    std::uint8_t in[3];
    std::uint8_t operands;
    std::int8_t slot;    // scratch row of the result, or -1
    std::int8_t output;  // output that the result is, or -1
    std::uint8_t width;  // bytes of one element of the result
  };
  int inputs = 0;
  int outputs = 0;
  int steps = 0;
  int slots = 0;
  int cost = 0;
  int slot_width = 1;  // widest element in a slot
  std::uint8_t input_width[kMaxElementwiseInputs] = {};
  Step step[kMaxElementwiseCode] = {};
  const char* name = "";  // of the row if there is one, else "chain"
};

// Errors: a program too large, registers that do not exist, types that do not match, no row.
absl::StatusOr<ElementwiseChain> PrepareChain(const ElementwiseProgram& program, IsaSet allowed);

// How an input is read.
enum class ElementwiseAccess : std::uint8_t {
  kDense,   // element i of the output needs element i
  kScalar,  // one value
  kRow,     // along the innermost axis dense or constant: a pointer per row
  kGather,  // copied to a scratch row first
};

struct ElementwisePlan {
  std::int64_t count = 0;  // elements of the output
  std::int64_t tiles = 0;
  std::int64_t tile_elements = 0;
  std::int64_t tile_cost = 0;  // in vector additions of one element
  std::size_t scratch_bytes = 0;
  // Internal. The collapsed shape, innermost axis first; of the arrays only what the shape needs is
  // written.
  int rank = 0;
  std::int64_t dims[kMaxElementwiseRank];
  std::int64_t strides[kMaxElementwiseInputs][kMaxElementwiseRank];  // elements
  ElementwiseAccess access[kMaxElementwiseInputs];
  std::int8_t gather_slot[kMaxElementwiseInputs];
  bool gather_once[kMaxElementwiseInputs];  // every piece needs the same row
  std::int64_t piece = 0;  // elements of one scratch row
  std::size_t slot_bytes = 0;
  bool by_rows = false;  // pieces must not cross the innermost axis
  bool direct = false;   // one step, no gathers: the row kernel takes the whole tile
  std::uint64_t scalars = 0;  // registers that are one value
};

// Plans `chain` for an output of `dims` and inputs that broadcast to it (dims aligned at the right,
// each equal or 1). False if an input does not broadcast or more than kMaxElementwiseRank axes
// remain after merging.
bool PlanElementwise(const ElementwiseChain& chain, absl::Span<const std::int64_t> dims,
                     absl::Span<const absl::Span<const std::int64_t>> input_dims,
                     ElementwisePlan* plan);

// Computes tile `tile`. `scratch` has plan.scratch_bytes, aligned to 64. An output may be the
// buffer of a dense input of the same element width if it is the only output.
void RunElementwiseTile(const ElementwiseChain& chain, const ElementwisePlan& plan,
                        const void* const* in, void* const* out, std::int64_t tile, void* scratch);

}  // namespace npurt::kernels

#endif  // NPURT_KERNELS_ELEMENTWISE_ELEMENTWISE_H_
