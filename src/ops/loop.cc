// Loop: for (i = 0; i < M && condition; ++i) (condition, state..., scans...) = body(i, condition,
// state...); outputs are the last state and each scan's values one after another. Without M or
// condition there is no such bound.
#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/checked_math.h"
#include "ops/control_flow.h"
#include "ops/move.h"

namespace npurt::ops::loop {
namespace {

constexpr int kTripCount = 0, kCondition = 1, kState = 2;  // inputs

absl::Status CheckScalar(const InferContext& context, int i, absl::string_view what, DType dtype) {
  if (!context.has_input(i)) return absl::OkStatus();
  const ValueType& type = context.type(i);
  bool good =
      type.kind == ValueKind::kTensor && (type.dtype == dtype || type.dtype == DType::kUndefined);
  if (good && type.has_rank)
    for (Dim d : type.dims) good &= !d.is_constant() || d.Is(1);
  if (good) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(what, " is ", type.ToString(), ", want one ", DTypeName(dtype)));
}

absl::Status Infer(InferContext& context) {
  const int states = OwnInputs(context) - kState, scans = context.output_count() - states;
  if (states < 0 || scans < 0)
    return absl::InvalidArgumentError(absl::StrCat("got ", OwnInputs(context), " inputs and ",
                                                   context.output_count(), " outputs"));
  NPURT_RETURN_IF_ERROR(CheckScalar(context, kTripCount, "the trip count", DType::kI64));
  NPURT_RETURN_IF_ERROR(CheckScalar(context, kCondition, "the condition", DType::kBool));
  NPURT_ASSIGN_OR_RETURN(const Subgraph* body,
                         CheckedSubgraph(context, "body", states + 2, 1 + states + scans));
  const ValueType& condition = body->output_type(0);
  if (!SameKind(condition, ValueType::OfTensor(DType::kBool)))
    return absl::InvalidArgumentError(
        absl::StrCat("the body's condition is ", condition.ToString(), ", want bool"));
  for (int i = 0; i < states; ++i) {
    if (!context.has_input(kState + i))
      return absl::InvalidArgumentError(absl::StrCat("state ", i, " has no initial value"));
    const ValueType &first = context.type(kState + i), &in = body->input_type(2 + i),
                    &out = body->output_type(1 + i);
    // A body may turn an optional sequence into the sequence itself.
    const bool unwraps = !SameKind(in, out) && Takes(in, out);
    if (!Takes(in, first) || !Takes(in, out))
      return absl::InvalidArgumentError(absl::StrCat("state ", i, " is ", first.ToString(),
                                                     " at first, the body takes ", in.ToString(),
                                                     " and yields ", out.ToString()));
    context.set_output_type(i, unwraps ? out : EitherType(context, first, out));
  }
  for (int i = states; i < context.output_count(); ++i) {
    const ValueType& slice = body->output_type(1 + i);
    if (slice.kind != ValueKind::kTensor)
      return absl::InvalidArgumentError(
          absl::StrCat("output ", i, " of the body is ", slice.ToString(), ", want a tensor"));
    ValueType all = WithNumbersOnly(context, slice);
    if (all.has_rank) all.dims.insert(all.dims.begin(), context.RunDim());
    context.set_output_type(i, std::move(all));
  }
  return absl::OkStatus();
}

// Tensors of one shape, one after another.
class Stack {
 public:
  // `expected` may be 0.
  absl::Status Append(const Slot& slice, std::int64_t expected) {
    const auto dims = absl::MakeConstSpan(slice.dims, static_cast<std::size_t>(slice.rank));
    if (size_ == 0) {
      dims_.assign(dims.begin(), dims.end());
    } else if (absl::MakeConstSpan(dims_) != dims) {
      return absl::InvalidArgumentError(absl::StrCat("a scan output has shape ", ShapeString(dims),
                                                     " in turn ", size_, ", before it was ",
                                                     ShapeString(absl::MakeConstSpan(dims_))));
    }
    if (size_ >= capacity_) NPURT_RETURN_IF_ERROR(Grow(slice.dtype, expected));
    CopyElements(slice.dtype, all_.mutable_data(), size_ * slice.count, slice.data, 0, slice.count);
    ++size_;
    return absl::OkStatus();
  }

  // The type says what an empty stack is.
  absl::Status Store(const RunContext& run, int output, const ValueType& type) {
    if (size_ == 0)
      for (Dim d : type.dims) dims_.push_back(d.is_constant() && d.value() >= 0 ? d.value() : 0);
    dims_.insert(dims_.begin(), size_);
    NPURT_RETURN_IF_ERROR(run.AllocateOutput(output, dims_));
    if (size_ > 0 && all_.dtype() != run.output(output).dtype)
      return absl::InvalidArgumentError("the body yields another type than it declares");
    if (size_ > 0)
      CopyElements(all_.dtype(), run.output(output).data, 0, all_.data(), 0,
                   run.output(output).count);
    return absl::OkStatus();
  }

 private:
  absl::Status Grow(DType dtype, std::int64_t expected) {
    constexpr std::int64_t kMaxGuess = 4096;
    const std::int64_t wanted =
        capacity_ > 0 ? capacity_ * 2 : std::clamp<std::int64_t>(expected, 4, kMaxGuess);
    Dims dims = dims_;
    dims.insert(dims.begin(), wanted);
    NPURT_ASSIGN_OR_RETURN(Tensor larger, Tensor::Create(dtype, dims));
    if (size_ > 0)
      CopyElements(dtype, larger.mutable_data(), 0, all_.data(), 0,
                   size_ * (larger.element_count() / wanted));
    all_ = std::move(larger);
    capacity_ = wanted;
    return absl::OkStatus();
  }

  Tensor all_;
  Dims dims_;
  std::int64_t size_ = 0, capacity_ = 0;
};

absl::StatusOr<std::int64_t> OneElement(const RunContext& run, int i, std::int64_t fallback) {
  if (!run.has_input(i)) return fallback;
  if (run.count(i) != 1)
    return absl::InvalidArgumentError(
        absl::StrCat("input ", i, " has ", run.count(i), " elements, want 1"));
  return IndexAt(run, i, 0);
}

absl::Status Run(const RunContext& run, std::int64_t, void*) {
  const int states = OwnInputs(run) - kState;
  NPURT_ASSIGN_OR_RETURN(const std::int64_t trips, OneElement(run, kTripCount, INT64_MAX));
  NPURT_ASSIGN_OR_RETURN(std::int64_t go_on, OneElement(run, kCondition, 1));
  NPURT_ASSIGN_OR_RETURN(Frame* const frame, run.OpenFrame(0));
  NPURT_RETURN_IF_ERROR(SetCaptures(run, *frame, 2 + states));

  std::int64_t turn = 0;
  bool condition = true;
  const Slot turn_slot{&turn, nullptr, 1, 0, DType::kI64, ValueKind::kTensor, nullptr};
  const Slot condition_slot{&condition, nullptr, 1, 0, DType::kBool, ValueKind::kTensor, nullptr};
  NPURT_RETURN_IF_ERROR(frame->SetInput(0, turn_slot));
  NPURT_RETURN_IF_ERROR(frame->SetInput(1, condition_slot));
  for (int i = 0; i < states; ++i)
    NPURT_RETURN_IF_ERROR(frame->SetInput(2 + i, run.input(kState + i)));
  std::vector<Stack> scans(run.output_count() - states);
  const std::int64_t expected = run.has_input(kTripCount) ? std::max<std::int64_t>(trips, 0) : 0;
  for (; turn < trips && go_on != 0; ++turn) {
    NPURT_RETURN_IF_ERROR(run.Poll());
    NPURT_RETURN_IF_ERROR(frame->Run());
    const Slot& next = frame->output(0);
    if (next.count != 1)
      return absl::InvalidArgumentError(
          absl::StrCat("the body's condition has ", next.count, " elements, want 1"));
    go_on = *static_cast<const bool*>(next.data);
    for (int i = 0; i < states; ++i)
      NPURT_RETURN_IF_ERROR(frame->SetInput(2 + i, frame->output(1 + i)));
    for (std::size_t i = 0; i < scans.size(); ++i)
      if (run.has_output(states + static_cast<int>(i)))
        NPURT_RETURN_IF_ERROR(
            scans[i].Append(frame->output(1 + states + static_cast<int>(i)), expected));
  }
  for (int i = 0; i < states; ++i) {
    if (!run.has_output(i)) continue;
    NPURT_RETURN_IF_ERROR(turn > 0 ? run.MoveOutput(i, *frame, 1 + i)
                                   : CopyToOutput(run, i, run.input(kState + i)));
  }
  const Subgraph& body = *run.attributes().FindGraph("body");
  for (int i = states; i < run.output_count(); ++i)
    if (run.has_output(i))
      NPURT_RETURN_IF_ERROR(scans[i - states].Store(run, i, body.output_type(1 + i)));
  return absl::OkStatus();
}

}  // namespace

extern constexpr OpDef kOp = {
    .name = "Loop",
    .inputs = {{"?M", "int64"}, {"?cond", "bool"}, {"*?v_initial", "any"}},
    .outputs = {{"*v_final_and_scan_outputs", "any"}},
    .attributes = {{"body", AttrKind::kGraph, true}, {"captures", AttrKind::kInt}},
    .engine = Engine::kAiCpu,
    .any_rank = true,
    .infer = Infer,
    .reference = Run,
};

}  // namespace npurt::ops::loop
