// Clip: y = min(max(x, min), max); the limits are scalars that may be absent.
#include "absl/strings/str_cat.h"
#include "ops/elementwise.h"

namespace npurt::ops::clip {
namespace {

using kernels::ElementwiseOp;
using kernels::ElementwiseProgram;

bool Program(const Attributes&, absl::Span<const DType> types, ElementwiseProgram* program) {
  const DType type = types[0];
  const bool narrow = type == DType::kF16 || type == DType::kBF16;
  const DType compute = narrow ? DType::kF32 : type;
  const bool has_min = types.size() > 1 && types[1] != DType::kUndefined;
  const bool has_max = types.size() > 2 && types[2] != DType::kUndefined;
  program->inputs.assign(types.begin(), types.end());
  std::uint8_t regs[3] = {0, 1, 2};
  if (narrow) {
    regs[0] = program->AddCast(type, compute, 0);
    if (has_min) regs[1] = program->AddCast(type, compute, 1);
    if (has_max) regs[2] = program->AddCast(type, compute, 2);
  }
  std::uint8_t result = 0;
  if (has_min && has_max) {
    result = program->Add(ElementwiseOp::kClamp, compute, regs[0], regs[1], regs[2]);
  } else if (has_min) {
    result = program->Add(ElementwiseOp::kMax, compute, regs[0], regs[1]);
  } else if (has_max) {
    result = program->Add(ElementwiseOp::kMin, compute, regs[0], regs[2]);
  } else {
    result = program->Add(ElementwiseOp::kIdentity, compute, regs[0]);
  }
  if (narrow) result = program->AddCast(compute, type, result);
  program->outputs.push_back(result);
  return true;
}

absl::Status Infer(InferContext& context) {
  for (int i = 1; i <= 2; ++i) {
    if (!context.has_input(i)) continue;
    const SymDims& dims = context.shape(i);
    for (const Dim& d : dims)
      if (d.is_constant() && !d.Is(1))
        return absl::InvalidArgumentError(absl::StrCat(i == 1 ? "min" : "max", " has shape ",
                                                       ShapeString(dims), ", want a scalar"));
    if (dims.size() > context.shape(0).size() && !dims.empty())
      return absl::InvalidArgumentError(absl::StrCat(i == 1 ? "min" : "max", " has shape ",
                                                     ShapeString(dims), ", want a scalar"));
  }
  context.set_output(0, context.dtype(0), context.shape(0));
  return absl::OkStatus();
}

}  // namespace

extern constexpr OpDef kOp = {
    .name = "Clip",
    .inputs = {{"input", "T"}, {"?min", "T"}, {"?max", "T"}},
    .outputs = {{"output", "T"}},
    .types = {{"T", kNumbers}},
    .infer = Infer,
    .reference = ElementwiseReference<Program>,
    .prepare = ElementwisePrepare<Program>,
    .bind = BindElementwise,
    .run = RunElementwise,
    .row = ElementwiseRow<Program>,
};

}  // namespace npurt::ops::clip
