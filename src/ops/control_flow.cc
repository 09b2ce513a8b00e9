#include "ops/control_flow.h"

#include "absl/strings/str_cat.h"
#include "ops/move.h"
#include "ops/values.h"

namespace npurt::ops {

namespace {

int CaptureCount(const Attributes& attributes, int inputs) {
  const std::int64_t captures = attributes.Int("captures");
  return captures < 0 || captures > inputs ? 0 : static_cast<int>(captures);
}

}  // namespace

int OwnInputs(const InferContext& context) {
  return context.input_count() - CaptureCount(context.attributes(), context.input_count());
}

int OwnInputs(const RunContext& run) {
  return run.input_count() - CaptureCount(run.attributes(), run.input_count());
}

bool SameKind(const ValueType& a, const ValueType& b) {
  if (a.kind != b.kind) return false;
  const bool unknown = a.dtype == DType::kUndefined || b.dtype == DType::kUndefined;
  if (!unknown && a.dtype != b.dtype) return false;
  return a.element == nullptr || b.element == nullptr || SameKind(*a.element, *b.element);
}

bool Takes(const ValueType& wanted, const ValueType& given) {
  return SameKind(wanted, given) ||
         (wanted.kind == ValueKind::kOptional && wanted.element != nullptr &&
          wanted.element->kind == ValueKind::kSequence && SameKind(*wanted.element, given));
}

absl::StatusOr<const Subgraph*> CheckedSubgraph(const InferContext& context, const char* name,
                                                int inputs, int outputs) {
  const Subgraph* graph = context.attributes().FindGraph(name);
  if (graph == nullptr)
    return absl::InvalidArgumentError(absl::StrCat("attribute '", name, "' is missing"));
  const auto check = [name](absl::string_view what, std::size_t got,
                            std::size_t want) -> absl::Status {
    if (got == want) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("'", name, "' has ", got, " ", what, ", want ", want));
  };
  const std::int64_t captures = context.attributes().Int("captures");
  if (captures < 0 || captures > context.input_count())
    return absl::InvalidArgumentError(absl::StrCat("captures is ", captures, ", the node has ",
                                                   context.input_count(), " inputs"));
  NPURT_RETURN_IF_ERROR(check("captures", graph->capture_count(), captures));
  if (inputs >= 0) NPURT_RETURN_IF_ERROR(check("inputs", graph->input_count(), inputs));
  if (outputs >= 0) NPURT_RETURN_IF_ERROR(check("outputs", graph->output_count(), outputs));
  for (std::size_t i = 0; i < graph->capture_count(); ++i) {
    const int operand = OwnInputs(context) + static_cast<int>(i);
    if (!context.has_input(operand))
      return absl::InvalidArgumentError(absl::StrCat("'", name, "' captures an absent value"));
    if (!Takes(graph->capture_type(i), context.type(operand)))
      return absl::InvalidArgumentError(absl::StrCat("'", name, "' captures ",
                                                     context.type(operand).ToString(), " as ",
                                                     graph->capture_type(i).ToString()));
  }
  return graph;
}

ValueType WithNumbersOnly(InferContext& context, const ValueType& type) {
  ValueType numbers = type;
  for (Dim& dim : numbers.dims)
    if (!dim.is_constant() || dim.value() < 0) dim = context.RunDim();
  return numbers;
}

ValueType EitherType(InferContext& context, const ValueType& a, const ValueType& b) {
  ValueType either = a;
  if (a.dtype == DType::kUndefined) either.dtype = b.dtype;
  if (a.element == nullptr) either.element = b.element;
  if (a.kind != ValueKind::kTensor) return either;
  if (!a.has_rank || !b.has_rank || a.dims.size() != b.dims.size())
    return ValueType::OfTensor(either.dtype);
  for (std::size_t i = 0; i < a.dims.size(); ++i)
    if (!a.dims[i].is_constant() || a.dims[i] != b.dims[i] || a.dims[i].value() < 0)
      either.dims[i] = context.RunDim();
  return either;
}

absl::Status SetCaptures(const RunContext& run, Frame& frame, int inputs) {
  const int own = OwnInputs(run);
  for (int i = own; i < run.input_count(); ++i)
    NPURT_RETURN_IF_ERROR(frame.SetInput(inputs + i - own, run.input(i)));
  return absl::OkStatus();
}

absl::Status CopyToOutput(const RunContext& run, int i, const Slot& slot) {
  if (slot.kind != ValueKind::kTensor) {
    run.set_output_value(i, *slot.value);
    return absl::OkStatus();
  }
  const auto dims = absl::MakeConstSpan(slot.dims, static_cast<std::size_t>(slot.rank));
  NPURT_RETURN_IF_ERROR(run.AllocateOutput(i, dims));
  if (run.output(i).dtype != slot.dtype)
    return absl::InvalidArgumentError(absl::StrCat("output ", i, " is ", DTypeName(slot.dtype),
                                                   ", want ", DTypeName(run.output(i).dtype)));
  CopyElements(slot.dtype, run.output(i).data, 0, slot.data, 0, slot.count);
  return absl::OkStatus();
}

Slot SlotOf(const Tensor& tensor) {
  Slot slot;
  slot.data = const_cast<void*>(tensor.data());
  slot.dims = tensor.dims().data();
  slot.rank = tensor.rank();
  slot.count = tensor.element_count();
  slot.dtype = tensor.dtype();
  slot.kind = ValueKind::kTensor;
  return slot;
}

SliceLayout LayoutAround(absl::Span<const std::int64_t> dims, int axis) {
  const int rank = static_cast<int>(dims.size());
  return {ProductOf(dims, 0, axis), dims[axis], ProductOf(dims, axis + 1, rank)};
}

void ReadSlice(DType dtype, const SliceLayout& layout, const void* whole, std::int64_t index,
               void* part) {
  for (std::int64_t o = 0; o < layout.outer; ++o)
    CopyElements(dtype, part, o * layout.inner, whole, (o * layout.length + index) * layout.inner,
                 layout.inner);
}

void WriteSlice(DType dtype, const SliceLayout& layout, void* whole, std::int64_t index,
                const void* part) {
  for (std::int64_t o = 0; o < layout.outer; ++o)
    CopyElements(dtype, whole, (o * layout.length + index) * layout.inner, part, o * layout.inner,
                 layout.inner);
}

}  // namespace npurt::ops
