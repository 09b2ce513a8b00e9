// OpDef: everything the runtime knows of an operator, as one constant in one file.
//
// The order in a file of src/ops is: the formula in the first line; inference over symbolic shapes;
// the reference, plain loops that define the right answer; the fast version (prepare, bind, run)
// where there is one; and the OpDef. The phases:
//
//   infer    when a node is added or shapes become better known; sees types, symbolic shapes and
//            constant inputs; checks all that can be checked; may run many times, also just before
//            a step whose shapes depend on the run.
//   prepare  once per graph: choose the kernel, pack constant weights.
//   bind     for concrete shapes: check sizes, book scratch, say how the work divides into tiles.
//   run      one tile; no allocation, but AllocateOutput where only the run tells the size.
//
// Conventions for operator authors:
//  - Nodes are in the newest ONNX form (axes of Squeeze are an input, min and max of Clip too);
//    formats/onnx rewrites older forms. A default that changed over time has its newest meaning.
//  - infer is called only when the rank of every present input is known (else the outputs get the
//    types that the schema implies and an unknown rank), unless `any_rank` is set.
//  - An operator without a fast version leaves prepare, bind and run empty: its reference runs, as one tile.
//  - An operator with outputs whose size depends on values calls set_output with context.RunDim()
//    dimensions and, in its run / reference, AllocateOutput for *every* such output.
//  - When infer needs the value of an input that is not constant (the shape of a Reshape), it calls
//    set_output_unknown (or uses RunDim if it knows the rank): the runtime infers again when values
//    are there. Small integer inputs are then visible through constant().
//  - The reference handles every dtype in the schema by a template over the C++ type; reductions sum
//    in double (or int64). On the reference device float32 tensors arrive as float64.
#ifndef NPURT_OPS_OP_DEF_H_
#define NPURT_OPS_OP_DEF_H_

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/functional/function_ref.h"
#include "base/attributes.h"
#include "base/cpu_isa.h"
#include "base/run_context.h"
#include "base/shape.h"
#include "base/status.h"
#include "base/tensor.h"

namespace npurt::kernels {
struct ElementwiseInstruction;
}

namespace npurt::ops {

// One input or output of a schema. `type` is the name of a type variable ("T"), or a fixed type
// ("int64", "bool", "float32"), or "sequence", "optional", "map", "resource" or "any" for values of that kind or
// of whatever kind. A name that starts with '?' is optional, with '*' variadic
// (only the last one; "*?" if there may be none).
struct Param {
  const char* name = nullptr;
  const char* type = nullptr;
};

struct TypeVar {
  const char* name = nullptr;
  DTypeSet allowed = 0;
};

enum class AttrKind : std::uint8_t {
  kInt, kFloat, kString, kInts, kFloats, kStrings, kTensor, kTensors, kGraph, kType,
};

struct AttrDef {
  const char* name = nullptr;
  AttrKind kind = AttrKind::kInt;
  bool required = false;
};

// Effects, asked by folding, merging and splitting.
using Traits = std::uint32_t;
inline constexpr Traits kPure = 0;
inline constexpr Traits kReadsState = 1;
inline constexpr Traits kWritesState = 2;
inline constexpr Traits kRandom = 4;

enum class Engine : std::uint8_t {
  kAiCore,  // vector and matrix kernels
  kAiCpu,   // general operators: strings, sorting, data-dependent shapes
};

// What inference sees and says. Indices count the node's operands as in the schema.
class InferContext {
 public:
  virtual int input_count() const = 0;
  virtual int output_count() const = 0;
  virtual bool has_input(int i) const = 0;   // false for an absent optional input
  virtual bool has_output(int i) const = 0;  // false if nobody names this output
  virtual const ValueType& type(int i) const = 0;
  virtual const Attributes& attributes() const = 0;
  // The value of an input that is known now, or null.
  virtual const Tensor* constant(int i) const = 0;
  // The elements of a small (at most 1,024) rank-0 or rank-1 integer input as dimensions, symbolic
  // where they derive from shapes: what Shape, Gather, Concat … of shapes yield. Nothing if unknown.
  virtual std::optional<SymDims> integers(int i) const = 0;

  virtual void set_output(int i, DType dtype, SymDims dims) = 0;
  virtual void set_output_unknown(int i, DType dtype) = 0;  // rank not known
  virtual void set_output_type(int i, ValueType type) = 0;
  // Says that integer output `i` has these elements (see integers()).
  virtual void set_output_integers(int i, SymDims values) = 0;
  // A dimension that only the run can tell.
  virtual Dim RunDim() = 0;

  // Short forms.
  DType dtype(int i) const { return type(i).dtype; }
  const SymDims& shape(int i) const { return type(i).dims; }
  int rank(int i) const { return static_cast<int>(type(i).dims.size()); }

 protected:
  ~InferContext() = default;
};

// What prepare makes; lives as long as the program, shared by all runs.
struct Prepared {
  virtual ~Prepared() = default;
  std::string kernel;            // shown by inspect and traces
  std::size_t packed_bytes = 0;  // memory of packed weights
};

// Packed weights, never written again; freed with the last owner. 64-byte aligned.
struct PackedBuffer {
  std::shared_ptr<void> data;
  template <typename T>
  T* as() const {
    return static_cast<T*>(data.get());
  }
};

class PrepareContext {
 public:
  virtual int input_count() const = 0;
  virtual bool has_input(int i) const = 0;
  virtual const ValueType& type(int i) const = 0;  // symbolic shapes; the rank may be unknown
  virtual const ValueType& output_type(int i) const = 0;
  virtual const Tensor* constant(int i) const = 0;  // weights
  virtual const Attributes& attributes() const = 0;
  virtual IsaSet isa() const = 0;  // what kernels may use here: the CPU's, limited by options
  // reproducibility=isa: only kernels whose bits are the same on every instruction set.
  virtual bool same_bits_on_every_isa() const = 0;
  // Memory for weights in the kernel's order; `fill` writes every byte of it. Programs that pack the same
  // bytes share one buffer.
  virtual absl::StatusOr<PackedBuffer> Pack(std::size_t bytes,
                                            absl::FunctionRef<void(void* data)> fill) = 0;
  // Says that the constant `i` is packed and its original bytes are not read any more in `run`.
  virtual void DropConstant(int i) = 0;

 protected:
  ~PrepareContext() = default;
};

// What bind sees and books. Plain and fast: it runs for every step at each new shape.
class BindContext {
 public:
  int input_count() const { return input_count_; }
  int output_count() const { return output_count_; }
  bool has_input(int i) const {
    return i < input_count_ && inputs_[i]->kind != ValueKind::kNone;
  }
  bool has_output(int i) const {
    return i < output_count_ && outputs_[i]->kind != ValueKind::kNone;
  }
  DType dtype(int i) const { return inputs_[i]->dtype; }
  DType output_dtype(int i) const { return outputs_[i]->dtype; }
  absl::Span<const std::int64_t> dims(int i) const {
    return {inputs_[i]->dims, static_cast<std::size_t>(inputs_[i]->rank)};
  }
  absl::Span<const std::int64_t> output_dims(int i) const {
    return {outputs_[i]->dims, static_cast<std::size_t>(outputs_[i]->rank)};
  }
  std::int64_t count(int i) const { return inputs_[i]->count; }
  std::int64_t output_count_of(int i) const { return outputs_[i]->count; }
  // The value of a constant input (axes, pads …), or null. Weights that were dropped are null too.
  const Tensor* constant(int i) const { return constants_[i]; }
  const Attributes& attributes() const { return *attributes_; }
  template <typename T>
  const T* prepared() const {
    return static_cast<const T*>(prepared_);
  }

  // Parameters for run, zeroed, kept with the plan: RunContext::bound<T>(). At most once per bind.
  template <typename T>
  T* New() {
    static_assert(std::is_trivially_destructible_v<T> && std::is_trivially_copyable_v<T>);
    return static_cast<T*>(NewBytes(sizeof(T), alignof(T)));
  }
  // The same for parameters whose size depends on shapes.
  void* NewBytes(std::size_t bytes, std::size_t alignment) {
    return made_ = new_(storage_, bytes, alignment);
  }

  // How the work divides. Without a call: one tile of cost 0 (never split).
  // `cost_per_tile` in nanoseconds of one core, roughly: flops / 50 or bytes / 10.
  void SetTiles(std::int64_t tiles, double cost_per_tile) {
    tiles_ = tiles;
    cost_per_tile_ = cost_per_tile;
  }
  // Scratch of each participant, in bytes.
  void SetScratch(std::size_t bytes) { scratch_bytes_ = bytes; }

  // Offers to the memory planner, which may decline each: `run` must work in both cases, and sees
  // which by comparing addresses (equal: nothing to do).
  // Output `out` may be the bytes of input `in` from `byte_offset` on (Reshape, Split along axis 0).
  void MayView(int out, int in, std::size_t byte_offset) { AddOffer(kView, out, in, byte_offset); }
  // Input `in` may have been produced right inside output `out` at `byte_offset` (Concat).
  void MayPlaceInside(int in, int out, std::size_t byte_offset) {
    AddOffer(kInside, out, in, byte_offset);
  }
  // Output `out` may overwrite input `in`, of the same number of bytes: each element is read before
  // it is written, by the same tile.
  void MayOverwrite(int out, int in) { AddOffer(kInPlace, out, in, 0); }

  enum OfferKind : std::uint8_t { kView, kInside, kInPlace };
  struct Offer {
    OfferKind kind;
    int out, in;
    std::size_t byte_offset;
  };

  // Filled and read by the binder.
  Slot* const* inputs_ = nullptr;
  Slot* const* outputs_ = nullptr;
  const Tensor* const* constants_ = nullptr;
  std::int32_t input_count_ = 0;
  std::int32_t output_count_ = 0;
  const Attributes* attributes_ = nullptr;
  const void* prepared_ = nullptr;
  void* (*new_)(void* storage, std::size_t bytes, std::size_t alignment) = nullptr;
  void* storage_ = nullptr;
  void* made_ = nullptr;  // what New returned
  std::int64_t tiles_ = 1;
  double cost_per_tile_ = 0;
  std::size_t scratch_bytes_ = 0;
  std::vector<Offer>* offers_ = nullptr;

 private:
  void AddOffer(OfferKind kind, int out, int in, std::size_t byte_offset) {
    if (offers_ != nullptr) offers_->push_back({kind, out, in, byte_offset});
  }
};

// Which epilogues the fast version of an operator (Conv, MatMul, Gemm) takes from the fuse pass.
// The pass sets these attributes on the node, always written into its own copy of the node:
//   "activation" (int, kernels::Activation), "activation_alpha", "activation_beta" (floats): applied last.
// and adds inputs at the end: bias (rank 1, per output channel) at input index
// `bias_input`, residual (same shape as the output, added before the activation) at `residual_input`.
struct EpilogueSupport {
  bool activation = false;
  int bias_input = -1;      // -1: takes none
  int residual_input = -1;
};

struct OpDef {
  const char* name = nullptr;  // the operator type, as NPU graphs call it
  Param inputs[16] = {};       // the first without a name ends the list
  Param outputs[16] = {};
  TypeVar types[6] = {};
  AttrDef attributes[24] = {};
  Traits traits = kPure;
  Engine engine = Engine::kAiCore;
  // infer works with inputs of unknown rank, or of other kinds than tensor. Operators whose output
  // types do not follow from the schema must.
  bool any_rank = false;
  bool shares_variable = false;  // its output may be the bytes of a variable: RunContext::ShareOutput
  bool internal = false;  // only passes and hosts make it: files and texts may not name it

  absl::Status (*infer)(InferContext& context) = nullptr;
  RunFn reference = nullptr;  // one tile, no scratch

  // The fast version, or all null. prepare may return null: the reference runs then.
  absl::StatusOr<std::unique_ptr<Prepared>> (*prepare)(PrepareContext& context) = nullptr;
  absl::Status (*bind)(BindContext& context) = nullptr;
  RunFn run = nullptr;  // null with bind set: the reference runs, with bind's offers

  EpilogueSupport epilogue = {};
  // Elementwise operators: the instruction of the elementwise engine that computes this node; its
  // in[k] is the number of the node's input that operand k reads. False if this node has none (an attribute
  // or type the engine does not know; a parameter that is no constant). The fuse pass makes one chain of
  // nodes in a row. An absent input has a null type; `constants` has null for what is not constant.
  bool (*row)(const Attributes& attributes, absl::Span<const ValueType* const> inputs,
              absl::Span<const Tensor* const> constants,
              kernels::ElementwiseInstruction* out) = nullptr;
};

// Calls Reference<T>(run) with the C++ type of input `kInput` (or output 0 if kInput is -1).
// INTERNAL if the type is not in `Set`, which the schema check has excluded.
template <template <typename> class Function, DTypeSet Set, int kInput = 0>
absl::Status ForEachType(const RunContext& run, std::int64_t, void*) {
  absl::Status status;
  const DType dtype = kInput < 0 ? run.output(0).dtype : run.dtype(kInput < 0 ? 0 : kInput);
  if (!DispatchDType<Set>(dtype, [&](auto type) { status = Function<decltype(type)>::Run(run); }))
    return absl::InternalError("no reference loop for this element type");
  return status;
}

// The operator of this name, or null. Names are unique.
const OpDef* FindOp(absl::string_view name);
// All operators, sorted by name.
absl::Span<const OpDef* const> AllOps();

// Checks a node against the schema: counts of operands, types, attribute names and kinds.
// `types` has an entry per input, null if absent.
absl::Status CheckSchema(const OpDef& op, absl::Span<const ValueType* const> types, int outputs,
                         const Attributes& attributes);
// The element type of output `i` that the schema implies, or kUndefined if only infer knows.
DType SchemaOutputType(const OpDef& op, int i, absl::Span<const ValueType* const> types);

// False while the rank of an input tensor is unknown; operators with any_rank ask.
bool RanksKnown(const InferContext& context);

// Normalises `axis` (may be negative) for `rank`; an error names both.
absl::StatusOr<int> NormalizeAxis(std::int64_t axis, int rank);
// Broadcast of two shapes; an error names both when two numbers do not fit.
absl::StatusOr<SymDims> BroadcastShapes(absl::Span<const Dim> a, absl::Span<const Dim> b);
// The integers of an input: from its constant or integers(). Nothing if unknown (then RunDim /
// set_output_unknown is the answer).
std::optional<std::vector<std::int64_t>> ConstantIntegers(const InferContext& context, int i);

}  // namespace npurt::ops

#endif  // NPURT_OPS_OP_DEF_H_
