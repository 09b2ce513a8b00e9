// y = f(x) for each element: the table of operators with one operand.
#include "ops/elementwise.h"

namespace npurt::ops::unary {
namespace {

using kernels::ElementwiseOp;
using kernels::ElementwiseProgram;
using Types = absl::Span<const DType>;

// One operation with up to two float attributes.
template <ElementwiseOp kOp>
struct With {
  const char* name0;
  float default0;
  const char* name1 = nullptr;
  float default1 = 0;

  bool Make(const Attributes& a, Types types, ElementwiseProgram* program) const {
    return SingleProgram(kOp, types, program, a.Float(name0, default0),
                         name1 == nullptr ? 0 : a.Float(name1, default1));
  }
};

bool LeakyRelu(const Attributes& a, Types types, ElementwiseProgram* program) {
  return With<ElementwiseOp::kLeakyRelu>{"alpha", 0.01f}.Make(a, types, program);
}
bool Elu(const Attributes& a, Types types, ElementwiseProgram* program) {
  return With<ElementwiseOp::kElu>{"alpha", 1}.Make(a, types, program);
}
bool Celu(const Attributes& a, Types types, ElementwiseProgram* program) {
  return With<ElementwiseOp::kCelu>{"alpha", 1}.Make(a, types, program);
}
bool Selu(const Attributes& a, Types types, ElementwiseProgram* program) {
  return With<ElementwiseOp::kSelu>{"alpha", 1.67326319217681884765625f, "gamma",
                                    1.05070102214813232421875f}
      .Make(a, types, program);
}
bool HardSigmoid(const Attributes& a, Types types, ElementwiseProgram* program) {
  return With<ElementwiseOp::kHardSigmoid>{"alpha", 0.2f, "beta", 0.5f}.Make(a, types, program);
}
bool ThresholdedRelu(const Attributes& a, Types types, ElementwiseProgram* program) {
  return With<ElementwiseOp::kThresholdedRelu>{"alpha", 1}.Make(a, types, program);
}
bool Shrink(const Attributes& a, Types types, ElementwiseProgram* program) {
  return With<ElementwiseOp::kShrink>{"bias", 0, "lambd", 0.5f}.Make(a, types, program);
}
bool Swish(const Attributes& a, Types types, ElementwiseProgram* program) {
  return With<ElementwiseOp::kSwish>{"alpha", 1}.Make(a, types, program);
}
bool Gelu(const Attributes& a, Types types, ElementwiseProgram* program) {
  const bool tanh = a.String("approximate", "none") == "tanh";
  return SingleProgram(tanh ? ElementwiseOp::kGeluTanh : ElementwiseOp::kGelu, types, program);
}

template <ElementwiseOp kOp>
constexpr OpDef Plain(const char* name, DTypeSet types = kFloats) {
  return ElementwiseOpDef<PlainProgram<kOp>>(name, 1, types);
}

constexpr OpDef GeluDef() {
  OpDef op = ElementwiseOpDef<Gelu>("Gelu", 1, kFloats);
  op.attributes[0] = {"approximate", AttrKind::kString};
  return op;
}

constexpr DTypeSet kSigned = kFloats | kSignedIntegers;

// A negated shape is still known.
absl::Status InferNeg(InferContext& context) {
  NPURT_RETURN_IF_ERROR(InferElementwise(context));
  if (auto values = context.integers(0)) {
    for (Dim& value : *values) value = Dim(std::int64_t{0}) - value;
    context.set_output_integers(0, *std::move(values));
  }
  return absl::OkStatus();
}

constexpr OpDef NegDef() {
  OpDef op = Plain<ElementwiseOp::kNeg>("Neg", kSigned);
  op.infer = InferNeg;
  return op;
}

}  // namespace

extern constexpr OpDef kOps[] = {
    Plain<ElementwiseOp::kAbs>("Abs", kNumbers),
    Plain<ElementwiseOp::kAcos>("Acos"),
    Plain<ElementwiseOp::kAcosh>("Acosh"),
    Plain<ElementwiseOp::kAsin>("Asin"),
    Plain<ElementwiseOp::kAsinh>("Asinh"),
    Plain<ElementwiseOp::kAtan>("Atan"),
    Plain<ElementwiseOp::kAtanh>("Atanh"),
    Plain<ElementwiseOp::kBitNot>("BitwiseNot", kIntegers),
    Plain<ElementwiseOp::kCeil>("Ceil"),
    ElementwiseOpDef<Celu>("Celu", kFloats, "alpha"),
    Plain<ElementwiseOp::kCos>("Cos"),
    Plain<ElementwiseOp::kCosh>("Cosh"),
    ElementwiseOpDef<Elu>("Elu", kFloats, "alpha"),
    Plain<ElementwiseOp::kErf>("Erf"),
    Plain<ElementwiseOp::kErfc>("Erfc"),
    Plain<ElementwiseOp::kExp>("Exp"),
    Plain<ElementwiseOp::kExpm1>("Expm1"),
    Plain<ElementwiseOp::kFloor>("Floor"),
    GeluDef(),
    ElementwiseOpDef<HardSigmoid>("HardSigmoid", kFloats, "alpha", "beta"),
    Plain<ElementwiseOp::kHardSwish>("HardSwish"),
    ElementwiseOpDef<LeakyRelu>("LeakyRelu", kFloats, "alpha"),
    Plain<ElementwiseOp::kLog>("Log"),
    Plain<ElementwiseOp::kLog1p>("Log1p"),
    Plain<ElementwiseOp::kMish>("Mish"),
    NegDef(),
    Plain<ElementwiseOp::kNot>("Not", kBools),
    Plain<ElementwiseOp::kReciprocal>("Reciprocal"),
    Plain<ElementwiseOp::kRelu>("Relu", kSigned),
    Plain<ElementwiseOp::kRound>("Round"),
    Plain<ElementwiseOp::kRsqrt>("Rsqrt"),
    ElementwiseOpDef<Selu>("Selu", kFloats, "alpha", "gamma"),
    ElementwiseOpDef<Shrink>("Shrink", kNumbers, "bias", "lambd"),
    Plain<ElementwiseOp::kSigmoid>("Sigmoid"),
    Plain<ElementwiseOp::kSign>("Sign", kNumbers),
    Plain<ElementwiseOp::kSin>("Sin"),
    Plain<ElementwiseOp::kSinh>("Sinh"),
    Plain<ElementwiseOp::kSoftplus>("Softplus"),
    Plain<ElementwiseOp::kSoftsign>("Softsign"),
    Plain<ElementwiseOp::kSqrt>("Sqrt"),
    Plain<ElementwiseOp::kSquare>("Square", kNumbers),
    ElementwiseOpDef<Swish>("Swish", kFloats, "alpha"),
    Plain<ElementwiseOp::kTan>("Tan"),
    Plain<ElementwiseOp::kTanh>("Tanh"),
    ElementwiseOpDef<ThresholdedRelu>("ThresholdedRelu", kFloats, "alpha"),
    Plain<ElementwiseOp::kTrunc>("Trunc"),
};
extern constexpr int kOpCount = static_cast<int>(sizeof kOps / sizeof kOps[0]);

}  // namespace npurt::ops::unary
