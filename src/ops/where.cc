// Where: output = condition ? x : y for each element; shapes broadcast.
#include "ops/elementwise.h"
#include "ops/move.h"

namespace npurt::ops::where {
namespace {

using kernels::ElementwiseOp;
using kernels::ElementwiseProgram;

// Elements are moved and not looked at: a row for integers of the same size serves every type.
DType CarrierOf(DType type) {
  if (Contains(kernels::kPlainRows, type)) return type;
  if (type == DType::kString) return DType::kUndefined;
  switch (DTypeBits(type)) {
    case 8: return DType::kU8;
    case 16: return DType::kU16;
    case 64: return DType::kU64;
    default: return DType::kUndefined;
  }
}

bool Program(const Attributes&, absl::Span<const DType> types, ElementwiseProgram* program) {
  if (types.size() != 3) return false;
  const DType type = CarrierOf(types[1]);
  if (type == DType::kUndefined) return false;
  const DType carried[3] = {DType::kBool, type, type};
  return SingleProgram(ElementwiseOp::kWhere, carried, program);
}

// The fuse pass joins rows by type, so only what a row names itself is offered.
bool Row(const Attributes& attributes, absl::Span<const ValueType* const> inputs,
         absl::Span<const Tensor* const>, kernels::ElementwiseInstruction* out) {
  return inputs.size() == 3 && inputs[1] != nullptr &&
         Contains(kernels::kPlainRows, inputs[1]->dtype) &&
         RowOfProgram(Program, attributes, inputs, out);
}

absl::Status Infer(InferContext& context) {
  NPURT_RETURN_IF_ERROR(InferBroadcast(context, context.dtype(1)));
  // A choice that is known among lists that are known: how exporters write the shape of an Expand.
  const Tensor* condition = context.constant(0);
  const auto x = context.integers(1), y = context.integers(2);
  if (condition == nullptr || !x || !y || condition->rank() > 1 || context.rank(1) > 1 ||
      context.rank(2) > 1)
    return absl::OkStatus();
  const std::size_t n = static_cast<std::size_t>(condition->element_count());
  const std::size_t count = std::max({n, x->size(), y->size()});
  if (n == 0 || x->empty() || y->empty()) return absl::OkStatus();
  SymDims out;
  for (std::size_t i = 0; i < count; ++i) {
    const bool yes = condition->at<bool>(static_cast<std::int64_t>(n == 1 ? 0 : i));
    const SymDims& from = yes ? *x : *y;
    out.push_back(from[from.size() == 1 ? 0 : i]);
  }
  context.set_output_integers(0, std::move(out));
  return absl::OkStatus();
}

absl::Status Reference(const RunContext& run, std::int64_t, void*) {
  const absl::Span<const std::int64_t> dims = run.output_dims(0);
  for (std::int64_t i = 0; i < run.output_count_of(0); ++i) {
    std::int64_t index[3] = {0, 0, 0};
    for (int k = 0; k < 3; ++k) {
      const absl::Span<const std::int64_t> in = run.dims(k);
      std::int64_t rest = i, stride = 1;
      if (in.size() > dims.size())
        return absl::InvalidArgumentError("shapes of the operands do not broadcast");
      for (std::size_t a = 0; a < in.size(); ++a) {
        const std::int64_t extent = in[in.size() - 1 - a];
        const std::int64_t size = dims[dims.size() - 1 - a];
        if (extent != 1 && extent != size)
          return absl::InvalidArgumentError("shapes of the operands do not broadcast");
        if (extent != 1) index[k] += rest % extent * stride;
        rest /= size;
        stride *= extent;
      }
    }
    const int chosen = run.Load<std::uint8_t>(0, index[0]) != 0 ? 1 : 2;
    CopyElements(run.dtype(1), run.output(0).data, i, run.input(chosen).data, index[chosen], 1);
  }
  return absl::OkStatus();
}

}  // namespace

extern constexpr OpDef kOp = {
    .name = "Where",
    .inputs = {{"condition", "bool"}, {"x", "T"}, {"y", "T"}},
    .outputs = {{"output", "T"}},
    .types = {{"T", kAnyType}},
    .infer = Infer,
    .reference = Reference,
    .prepare = ElementwisePrepare<Program>,
    .bind = BindElementwise,
    .run = RunElementwise,
    .row = Row,
};

}  // namespace npurt::ops::where
