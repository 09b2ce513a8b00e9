// ReadVariable: y = variable. Assign, AssignAdd, AssignSub: variable = x, variable + x, variable -
// x. The steps of a graph that touch the same variable run in the order in which its nodes were
// added.
#include "absl/strings/str_cat.h"
#include "ops/control_flow.h"
#include "ops/move.h"
#include "ops/numbers.h"
#include "ops/values.h"

namespace npurt::ops::variables {
namespace {

absl::Status InferRead(InferContext& context) {
  const ValueType& variable = context.type(0);
  if (variable.element == nullptr) return absl::InvalidArgumentError("the variable has no type");
  // Names of dimensions in a variable's type stand for what was assigned, not for dimensions of inputs.
  context.set_output_type(0, WithNumbersOnly(context, *variable.element));
  return absl::OkStatus();
}

absl::Status Read(const RunContext& run, std::int64_t, void*) {
  NPURT_ASSIGN_OR_RETURN(const Tensor value, run.resource(0).Read());
  NPURT_ASSIGN_OR_RETURN(const bool shared, run.ShareOutput(0, value));
  return shared ? absl::OkStatus() : StoreValue(run, 0, Value(value));
}

absl::Status InferAssign(InferContext& context) {
  const ValueType& variable = context.type(0);
  if (variable.element == nullptr) return absl::InvalidArgumentError("the variable has no type");
  const ValueType &want = *variable.element, &got = context.type(1);
  bool fits = got.dtype == DType::kUndefined || got.dtype == want.dtype;
  if (want.has_rank && got.has_rank) {
    fits &= want.dims.size() == got.dims.size();
    for (std::size_t i = 0; fits && i < want.dims.size(); ++i)
      fits =
          !want.dims[i].is_constant() || !got.dims[i].is_constant() || want.dims[i] == got.dims[i];
  }
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("assigns ", got.ToString(), " to a variable of type ", want.ToString()));
}

enum class How { kSet, kAdd, kSub };

template <How kHow>
absl::Status Assign(const RunContext& run, std::int64_t, void*) {
  return run.resource(0).Update(run.dims(1), [&](const Tensor& old, Tensor* out) -> absl::Status {
    Slot slot;
    slot.data = out->mutable_data();
    slot.dtype = out->dtype();
    if (kHow == How::kSet) return StoreElements(slot, 0, run.InputTensor(1));
    if (!old.defined() || old.dims() != out->dims())
      return absl::FailedPreconditionError("the variable has no value of this shape yet");
    bool known = DispatchDType<kPlainTypes>(out->dtype(), [&](auto type) {
      using T = decltype(type);
      using Sum = std::conditional_t<std::is_integral_v<T>, std::uint64_t, double>;
      for (std::int64_t i = 0; i < out->element_count(); ++i) {
        Sum x;
        if constexpr (std::is_integral_v<T>)
          x = static_cast<Sum>(run.Load<T>(1, i));
        else
          x = RealAt(run, 1, i);  // float64 on the reference device
        const Sum before = static_cast<Sum>(old.at<T>(i));
        out->set<T>(i, static_cast<T>(kHow == How::kAdd ? before + x : before - x));
      }
    });
    return known ? absl::OkStatus()
                 : absl::UnimplementedError(absl::StrCat("sums of ", DTypeName(out->dtype())));
  });
}

constexpr OpDef Writer(const char* name, RunFn run, DTypeSet types) {
  OpDef op;
  op.name = name;
  op.inputs[0] = {"resource", "resource"};
  op.inputs[1] = {"value", "T"};
  op.types[0] = {"T", types};
  op.traits = kReadsState | kWritesState;
  op.engine = Engine::kAiCpu;
  op.any_rank = true;
  op.infer = InferAssign;
  op.reference = run;
  return op;
}

}  // namespace

extern constexpr OpDef kOps[] = {
    {
        .name = "ReadVariable",
        .inputs = {{"resource", "resource"}},
        .outputs = {{"value", "any"}},
        .traits = kReadsState,
        .engine = Engine::kAiCpu,
        .any_rank = true,
        .shares_variable = true,
        .infer = InferRead,
        .reference = Read,
    },
    Writer("Assign", Assign<How::kSet>, kAnyType),
    Writer("AssignAdd", Assign<How::kAdd>, kNumbers),
    Writer("AssignSub", Assign<How::kSub>, kNumbers),
};
extern constexpr int kOpCount = static_cast<int>(sizeof kOps / sizeof kOps[0]);

}  // namespace npurt::ops::variables
