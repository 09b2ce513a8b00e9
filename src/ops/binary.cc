// c = f(a, b) for each pair of elements; shapes broadcast: the table of operators with two operands.
#include "absl/strings/str_cat.h"
#include "ops/elementwise.h"

namespace npurt::ops::binary {
namespace {

using kernels::ElementwiseOp;
using kernels::ElementwiseProgram;
using Types = absl::Span<const DType>;

// Arithmetic on shapes: keeps what is known symbolically about small integer tensors.
template <Dim (*kApply)(Dim, Dim)>
absl::Status InferShapeArithmetic(InferContext& context) {
  NPURT_RETURN_IF_ERROR(InferElementwise(context));
  const auto a = context.integers(0), b = context.integers(1);
  if (!a || !b || context.rank(0) > 1 || context.rank(1) > 1) return absl::OkStatus();
  if (a->size() != b->size() && a->size() != 1 && b->size() != 1) return absl::OkStatus();
  SymDims out;
  // A stretched empty list stays empty.
  const std::size_t count =
      a->empty() || b->empty() ? 0 : std::max(a->size(), b->size());
  for (std::size_t i = 0; i < count; ++i)
    out.push_back(kApply((*a)[a->size() == 1 ? 0 : i], (*b)[b->size() == 1 ? 0 : i]));
  context.set_output_integers(0, std::move(out));
  return absl::OkStatus();
}

Dim AddDims(Dim a, Dim b) { return a + b; }
Dim SubDims(Dim a, Dim b) { return a - b; }
Dim MulDims(Dim a, Dim b) { return a * b; }

// Integer division truncates and dimensions round down: the same unless an operand is negative, so
// a result is known only where a symbol (a size) meets a positive number.
bool IsPositive(const std::optional<SymDims>& dims) {
  if (!dims) return false;
  for (const Dim& d : *dims)
    if (!d.is_constant() || d.value() <= 0) return false;
  return true;
}
bool IsSize(const std::optional<SymDims>& dims) {
  if (!dims) return false;
  for (const Dim& d : *dims)
    if (d.is_constant() ? d.value() < 0 : d.node()->op != DimOp::kInput && d.node()->op != DimOp::kRun)
      return false;
  return true;
}
Dim DivDims(Dim a, Dim b) { return FloorDiv(a, b); }
Dim ModDims(Dim a, Dim b) { return Mod(a, b); }

template <Dim (*kApply)(Dim, Dim)>
absl::Status InferShapeDivision(InferContext& context) {
  if (IsSize(context.integers(0)) && IsPositive(context.integers(1)))
    return InferShapeArithmetic<kApply>(context);
  return InferElementwise(context);
}

bool Modulo(const Attributes& a, Types types, ElementwiseProgram* program) {
  return SingleProgram(a.Int("fmod") != 0 ? ElementwiseOp::kFMod : ElementwiseOp::kMod, types,
                       program);
}

bool BitShift(const Attributes& a, Types types, ElementwiseProgram* program) {
  return SingleProgram(a.String("direction") == "LEFT" ? ElementwiseOp::kShiftLeft
                                                       : ElementwiseOp::kShiftRight,
                       types, program);
}

absl::Status InferBitShift(InferContext& context) {
  const std::string direction = context.attributes().String("direction");
  if (direction != "LEFT" && direction != "RIGHT")
    return absl::InvalidArgumentError(
        absl::StrCat("direction is '", direction, "', want LEFT or RIGHT"));
  return InferElementwise(context);
}

// a^b has the type of a, whatever b is: both go to a type that holds them.
bool Power(const Attributes&, Types types, ElementwiseProgram* program) {
  if (types.size() != 2) return false;
  if (types[0] == types[1]) return SingleProgram(ElementwiseOp::kPow, types, program);
  DType compute = DType::kI64;
  if (IsFloat(types[0])) compute = types[0] == DType::kF64 ? DType::kF64 : DType::kF32;
  else if (IsFloat(types[1])) compute = DType::kF64;
  program->inputs.assign(types.begin(), types.end());
  std::uint8_t regs[2] = {0, 1};
  for (std::uint8_t k = 0; k < 2; ++k)
    if (types[k] != compute) regs[k] = program->AddCast(types[k], compute, k);
  std::uint8_t result = program->Add(ElementwiseOp::kPow, compute, regs[0], regs[1]);
  if (compute != types[0]) result = program->AddCast(compute, types[0], result);
  program->outputs.push_back(result);
  return true;
}

template <ElementwiseOp kOp>
constexpr OpDef Plain(const char* name, DTypeSet types = kNumbers) {
  return ElementwiseOpDef<PlainProgram<kOp>>(name, 2, types);
}
template <ElementwiseOp kOp>
constexpr OpDef Test(const char* name, DTypeSet types = kNumbers) {
  return ElementwiseOpDef<PlainProgram<kOp>>(name, 2, types, true);
}
constexpr OpDef Inferred(OpDef op, absl::Status (*infer)(InferContext&)) {
  op.infer = infer;
  return op;
}

constexpr OpDef ModDef() {
  OpDef op = ElementwiseOpDef<Modulo>("Mod", 2, kNumbers);
  op.attributes[0] = {"fmod", AttrKind::kInt};
  op.infer = InferShapeDivision<ModDims>;
  return op;
}
constexpr OpDef BitShiftDef() {
  OpDef op = ElementwiseOpDef<BitShift>("BitShift", 2, kIntegers);
  op.attributes[0] = {"direction", AttrKind::kString, true};
  op.infer = InferBitShift;
  return op;
}
constexpr OpDef PowDef() {
  OpDef op = ElementwiseOpDef<Power>("Pow", 2, kNumbers);
  op.inputs[1] = {"b", "T1"};
  op.types[1] = {"T1", kNumbers};
  return op;
}
// The slope stretches to the input and never the other way round.
absl::Status InferPRelu(InferContext& context) {
  NPURT_ASSIGN_OR_RETURN(const SymDims dims,
                         BroadcastShapes(context.shape(0), context.shape(1)));
  if (dims.size() > context.shape(0).size())
    return absl::InvalidArgumentError(absl::StrCat("slope has shape ",
                                                   ShapeString(context.shape(1)), ", the input ",
                                                   ShapeString(context.shape(0))));
  context.set_output(0, context.dtype(0), context.shape(0));
  return absl::OkStatus();
}

// Strings have no rows.
absl::Status ReferenceEqual(const RunContext& run, std::int64_t tile, void* scratch) {
  if (run.dtype(0) != DType::kString)
    return ElementwiseReference<PlainProgram<ElementwiseOp::kEqual>>(run, tile, scratch);
  const absl::Span<const std::int64_t> dims = run.output_dims(0);
  for (std::int64_t i = 0; i < run.output_count_of(0); ++i) {
    std::int64_t index[2] = {0, 0};
    for (int k = 0; k < 2; ++k) {
      const absl::Span<const std::int64_t> in = run.dims(k);
      std::int64_t rest = i, stride = 1;
      for (std::size_t a = 0; a < in.size(); ++a) {
        const std::int64_t extent = in[in.size() - 1 - a];
        if (extent != 1) index[k] += rest % extent * stride;
        rest /= dims[dims.size() - 1 - a];
        stride *= extent;
      }
    }
    run.Store<bool>(0, i, run.in<std::string>(0)[index[0]] == run.in<std::string>(1)[index[1]]);
  }
  return absl::OkStatus();
}
constexpr OpDef EqualDef() {
  OpDef op = Test<ElementwiseOp::kEqual>("Equal", kPlainTypes | kStrings);
  op.reference = ReferenceEqual;
  return op;
}

}  // namespace

extern constexpr OpDef kOps[] = {
    Inferred(Plain<ElementwiseOp::kAdd>("Add"), InferShapeArithmetic<AddDims>),
    Plain<ElementwiseOp::kAnd>("And", kBools),
    Plain<ElementwiseOp::kAtan2>("Atan2", kFloats),
    BitShiftDef(),
    Plain<ElementwiseOp::kBitAnd>("BitwiseAnd", kIntegers),
    Plain<ElementwiseOp::kBitOr>("BitwiseOr", kIntegers),
    Plain<ElementwiseOp::kBitXor>("BitwiseXor", kIntegers),
    Inferred(Plain<ElementwiseOp::kDiv>("Div"), InferShapeDivision<DivDims>),
    EqualDef(),
    Inferred(Plain<ElementwiseOp::kFloorDiv>("FloorDiv"), InferShapeDivision<DivDims>),
    Test<ElementwiseOp::kGreater>("Greater"),
    Test<ElementwiseOp::kGreaterEqual>("GreaterOrEqual"),
    Test<ElementwiseOp::kLess>("Less"),
    Test<ElementwiseOp::kLessEqual>("LessOrEqual"),
    ModDef(),
    Inferred(Plain<ElementwiseOp::kMul>("Mul"), InferShapeArithmetic<MulDims>),
    Test<ElementwiseOp::kNotEqual>("NotEqual", kPlainTypes),
    Plain<ElementwiseOp::kOr>("Or", kBools),
    Inferred(Plain<ElementwiseOp::kPRelu>("PRelu"), InferPRelu),
    PowDef(),
    Plain<ElementwiseOp::kSquaredDifference>("SquaredDifference"),
    Inferred(Plain<ElementwiseOp::kSub>("Sub"), InferShapeArithmetic<SubDims>),
    Plain<ElementwiseOp::kXor>("Xor", kBools),
};
extern constexpr int kOpCount = static_cast<int>(sizeof kOps / sizeof kOps[0]);

}  // namespace npurt::ops::binary
