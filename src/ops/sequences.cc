// SequenceConstruct, -Empty, -Insert, -Erase, -At, -Length, SplitToSequence, ConcatFromSequence: lists of
// tensors. Sequences are shared handles: inserting copies the list, not its tensors.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ops/move.h"
#include "ops/values.h"

namespace npurt::ops::sequences {
namespace {

// The type of the items, of unknown rank if it is not known at all.
ValueType ItemType(const ValueType& sequence) {
  if (sequence.element != nullptr) return *sequence.element;
  return ValueType::OfTensor(DType::kUndefined);
}

// Items of one sequence may differ in shape: only the element type is kept.
ValueType WithoutShape(const ValueType& type) {
  return type.kind == ValueKind::kTensor ? ValueType::OfTensor(type.dtype) : type;
}

absl::Status InferConstruct(InferContext& context) {
  if (context.input_count() == 0) return absl::InvalidArgumentError("got no inputs");
  context.set_output_type(0, ValueType::SequenceOf(WithoutShape(context.type(0))));
  return absl::OkStatus();
}

absl::Status ReferenceConstruct(const RunContext& run, std::int64_t, void*) {
  ValueList items;
  for (int i = 0; i < run.input_count(); ++i) {
    NPURT_ASSIGN_OR_RETURN(Value item, CopyOfInput(run, i));
    items.push_back(std::move(item));
  }
  run.set_output_value(0, Value::Sequence(std::move(items)));
  return absl::OkStatus();
}

absl::Status InferEmpty(InferContext& context) {
  const std::int64_t number = context.attributes().Int("dtype", 1);
  if (number <= 0 || number >= kDTypeCount)
    return absl::InvalidArgumentError(absl::StrCat("dtype is ", number));
  context.set_output_type(
      0, ValueType::SequenceOf(ValueType::OfTensor(static_cast<DType>(number))));
  return absl::OkStatus();
}

absl::Status ReferenceEmpty(const RunContext& run, std::int64_t, void*) {
  run.set_output_value(0, Value::Sequence({}));
  return absl::OkStatus();
}

// The position input, which may count from the end, in [0, limit); `fallback` without one.
absl::StatusOr<std::int64_t> PositionOf(const RunContext& run, int input, std::int64_t size,
                                        std::int64_t limit, std::int64_t fallback) {
  if (!run.has_input(input)) {
    if (fallback < 0 || fallback >= limit) return IndexError(fallback, limit);
    return fallback;
  }
  if (run.count(input) != 1)
    return absl::InvalidArgumentError(
        absl::StrCat("the position has ", run.count(input), " elements, want 1"));
  const std::int64_t position = IndexAt(run, input, 0);
  const std::int64_t at = position < 0 ? position + size : position;
  if (at < 0 || at >= limit)
    return absl::OutOfRangeError(
        absl::StrCat("position ", position, " in a sequence of ", size, " items"));
  return at;
}

absl::Status InferInsert(InferContext& context) {
  ValueType item = ItemType(context.type(0));
  const DType given = context.dtype(1);
  if (item.kind != ValueKind::kTensor || (item.dtype != DType::kUndefined &&
                                          given != DType::kUndefined && item.dtype != given))
    return absl::InvalidArgumentError(absl::StrCat("a tensor of ", DTypeName(given), " for a ",
                                                   context.type(0).ToString()));
  if (item.dtype == DType::kUndefined) item = WithoutShape(context.type(1));
  context.set_output_type(0, ValueType::SequenceOf(std::move(item)));
  return absl::OkStatus();
}

absl::Status InferErase(InferContext& context) {
  context.set_output_type(0, ValueType::SequenceOf(ItemType(context.type(0))));
  return absl::OkStatus();
}

absl::Status ReferenceInsert(const RunContext& run, std::int64_t, void*) {
  ValueList items = run.input_value(0).items();
  const std::int64_t size = static_cast<std::int64_t>(items.size());
  NPURT_ASSIGN_OR_RETURN(const std::int64_t at, PositionOf(run, 2, size, size + 1, size));
  NPURT_ASSIGN_OR_RETURN(Value item, CopyOfInput(run, 1));
  if (!items.empty() && items[0].is_tensor() && item.is_tensor() &&
      items[0].tensor().dtype() != item.tensor().dtype())
    return absl::InvalidArgumentError(absl::StrCat(
        "a tensor of ", DTypeName(item.tensor().dtype()), " for a sequence of ",
        DTypeName(items[0].tensor().dtype())));
  items.insert(items.begin() + at, std::move(item));
  run.set_output_value(0, Value::Sequence(std::move(items)));
  return absl::OkStatus();
}

absl::Status ReferenceErase(const RunContext& run, std::int64_t, void*) {
  ValueList items = run.input_value(0).items();
  const std::int64_t size = static_cast<std::int64_t>(items.size());
  NPURT_ASSIGN_OR_RETURN(const std::int64_t at, PositionOf(run, 1, size, size, size - 1));
  items.erase(items.begin() + at);
  run.set_output_value(0, Value::Sequence(std::move(items)));
  return absl::OkStatus();
}

absl::Status InferAt(InferContext& context) {
  context.set_output_type(0, WithoutShape(ItemType(context.type(0))));
  return absl::OkStatus();
}

absl::Status ReferenceAt(const RunContext& run, std::int64_t, void*) {
  const ValueList& items = run.input_value(0).items();
  const std::int64_t size = static_cast<std::int64_t>(items.size());
  NPURT_ASSIGN_OR_RETURN(const std::int64_t at, PositionOf(run, 1, size, size, 0));
  return StoreValue(run, 0, items[static_cast<std::size_t>(at)]);
}

absl::Status InferLength(InferContext& context) {
  context.set_output(0, DType::kI64, {});
  return absl::OkStatus();
}

absl::Status ReferenceLength(const RunContext& run, std::int64_t, void*) {
  run.Store<std::int64_t>(0, 0, static_cast<std::int64_t>(run.input_value(0).items().size()));
  return absl::OkStatus();
}

absl::Status InferSplit(InferContext& context) {
  if (context.type(0).has_rank)
    NPURT_RETURN_IF_ERROR(
        NormalizeAxis(context.attributes().Int("axis", 0), context.rank(0)));
  context.set_output_type(0, ValueType::SequenceOf(ValueType::OfTensor(context.dtype(0))));
  return absl::OkStatus();
}

absl::Status ReferenceSplit(const RunContext& run, std::int64_t, void*) {
  const auto dims = run.dims(0);
  NPURT_ASSIGN_OR_RETURN(const int axis,
                         NormalizeAxis(run.attributes().Int("axis", 0), run.input(0).rank));
  const std::int64_t dim = dims[static_cast<std::size_t>(axis)];
  const bool given = run.has_input(1);
  const bool keep = given || run.attributes().Int("keepdims", 1) != 0;
  std::vector<std::int64_t> sizes;
  if (given && run.input(1).rank > 0) {
    sizes = run.Integers(1);
  } else {
    const std::int64_t each = given ? IndexAt(run, 1, 0) : 1;
    if (each <= 0) return absl::InvalidArgumentError(absl::StrCat("parts of ", each));
    for (std::int64_t at = 0; at < dim; at += std::min(each, dim - at))
      sizes.push_back(std::min(each, dim - at));
  }
  const std::int64_t outer = ProductOf(dims, 0, axis);
  const std::int64_t inner = ProductOf(dims, axis + 1, run.input(0).rank);
  ValueList items;
  std::int64_t start = 0;
  for (std::int64_t size : sizes) {
    if (size < 0 || size > dim - start)
      return absl::InvalidArgumentError(
          absl::StrCat("a part of ", size, " from ", start, " on, axis ", axis, " has ", dim));
    Dims part(dims.begin(), dims.end());
    if (keep) part[axis] = size;
    else part.erase(part.begin() + axis);
    NPURT_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Create(run.dtype(0), part));
    for (std::int64_t o = 0; o < outer; ++o)
      CopyElements(run.dtype(0), tensor.mutable_data(), o * size * inner, run.input(0).data,
                   (o * dim + start) * inner, size * inner);
    items.emplace_back(std::move(tensor));
    start += size;
  }
  if (start != dim)
    return absl::InvalidArgumentError(
        absl::StrCat("the parts add up to ", start, ", axis ", axis, " has ", dim));
  run.set_output_value(0, Value::Sequence(std::move(items)));
  return absl::OkStatus();
}

absl::Status InferConcat(InferContext& context) {
  context.set_output_unknown(0, ItemType(context.type(0)).dtype);
  return absl::OkStatus();
}

absl::Status ReferenceConcat(const RunContext& run, std::int64_t, void*) {
  const ValueList& items = run.input_value(0).items();
  const bool new_axis = run.attributes().Int("new_axis", 0) != 0;
  if (items.empty()) return absl::InvalidArgumentError("the sequence is empty");
  for (const Value& item : items)
    if (!item.is_tensor()) return absl::InvalidArgumentError("an item is not a tensor");
  const Dims& first = items[0].tensor().dims();
  const int rank = static_cast<int>(first.size());
  NPURT_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(run.attributes().Int("axis", 0),
                                                       rank + (new_axis ? 1 : 0)));
  std::int64_t length = 0;
  for (const Value& item : items) {
    const Dims& dims = item.tensor().dims();
    bool fits = dims.size() == first.size() &&
                item.tensor().dtype() == items[0].tensor().dtype();
    for (int d = 0; fits && d < rank; ++d)
      fits = dims[d] == first[d] || (!new_axis && d == axis);
    if (!fits)
      return absl::InvalidArgumentError(
          absl::StrCat("items of shapes ", ShapeString(absl::MakeConstSpan(first)), " and ",
                       ShapeString(absl::MakeConstSpan(dims))));
    length += new_axis ? 1 : dims[axis];
  }
  Dims out = first;
  if (new_axis) out.insert(out.begin() + axis, length);
  else out[axis] = length;
  NPURT_RETURN_IF_ERROR(run.AllocateOutput(0, out));
  const Slot& target = run.output(0);
  const std::int64_t outer = ProductOf(out, 0, axis);
  const std::int64_t inner = ProductOf(out, axis + 1, static_cast<int>(out.size()));
  std::int64_t start = 0;
  for (const Value& item : items) {
    const Tensor& tensor = item.tensor();
    if (tensor.dtype() != target.dtype)
      return absl::InvalidArgumentError(absl::StrCat("an item of ", DTypeName(tensor.dtype()),
                                                     ", want ", DTypeName(target.dtype)));
    const std::int64_t size = new_axis ? 1 : tensor.dims()[axis];
    for (std::int64_t o = 0; o < outer; ++o)
      CopyElements(target.dtype, target.data, (o * length + start) * inner, tensor.data(),
                   o * size * inner, size * inner);
    start += size;
  }
  return absl::OkStatus();
}

constexpr DTypeSet kPosition = DTypes(DType::kI32, DType::kI64);

}  // namespace

extern constexpr OpDef kOps[] = {
    {
        .name = "SequenceConstruct",
        .inputs = {{"*inputs", "T"}},
        .outputs = {{"output_sequence", "sequence"}},
        .types = {{"T", kAnyType}},
        .engine = Engine::kAiCpu,
        .any_rank = true,
        .infer = InferConstruct,
        .reference = ReferenceConstruct,
    },
    {
        .name = "SequenceEmpty",
        .outputs = {{"output", "sequence"}},
        .attributes = {{"dtype", AttrKind::kInt}},
        .engine = Engine::kAiCpu,
        .any_rank = true,
        .infer = InferEmpty,
        .reference = ReferenceEmpty,
    },
    {
        .name = "SequenceInsert",
        .inputs = {{"input_sequence", "sequence"}, {"tensor", "T"}, {"?position", "I"}},
        .outputs = {{"output_sequence", "sequence"}},
        .types = {{"T", kAnyType}, {"I", kPosition}},
        .engine = Engine::kAiCpu,
        .any_rank = true,
        .infer = InferInsert,
        .reference = ReferenceInsert,
    },
    {
        .name = "SequenceErase",
        .inputs = {{"input_sequence", "sequence"}, {"?position", "I"}},
        .outputs = {{"output_sequence", "sequence"}},
        .types = {{"I", kPosition}},
        .engine = Engine::kAiCpu,
        .any_rank = true,
        .infer = InferErase,
        .reference = ReferenceErase,
    },
    {
        .name = "SequenceAt",
        .inputs = {{"input_sequence", "sequence"}, {"position", "I"}},
        .outputs = {{"tensor", "any"}},
        .types = {{"I", kPosition}},
        .engine = Engine::kAiCpu,
        .any_rank = true,
        .infer = InferAt,
        .reference = ReferenceAt,
    },
    {
        .name = "SequenceLength",
        .inputs = {{"input_sequence", "sequence"}},
        .outputs = {{"length", "int64"}},
        .engine = Engine::kAiCpu,
        .any_rank = true,
        .infer = InferLength,
        .reference = ReferenceLength,
    },
    {
        .name = "SplitToSequence",
        .inputs = {{"input", "T"}, {"?split", "I"}},
        .outputs = {{"output_sequence", "sequence"}},
        .types = {{"T", kAnyType}, {"I", kPosition}},
        .attributes = {{"axis", AttrKind::kInt}, {"keepdims", AttrKind::kInt}},
        .engine = Engine::kAiCpu,
        .any_rank = true,
        .infer = InferSplit,
        .reference = ReferenceSplit,
    },
    {
        .name = "ConcatFromSequence",
        .inputs = {{"input_sequence", "sequence"}},
        .outputs = {{"concat_result", "T"}},
        .types = {{"T", kAnyType}},
        .attributes = {{"axis", AttrKind::kInt, true}, {"new_axis", AttrKind::kInt}},
        .engine = Engine::kAiCpu,
        .any_rank = true,
        .infer = InferConcat,
        .reference = ReferenceConcat,
    },
};
extern constexpr int kOpCount = static_cast<int>(sizeof kOps / sizeof kOps[0]);

}  // namespace npurt::ops::sequences
