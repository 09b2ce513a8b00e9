// BitCast: the same bits as another type with as many of them.
#include <cstring>

#include "absl/strings/str_cat.h"
#include "ops/move.h"
#include "ops/numbers.h"

namespace npurt::ops::bit_cast {
namespace {

constexpr DTypeSet kBitTypes = kAnyType & ~kStrings;

absl::Status Infer(InferContext& context) {
  const std::int64_t number = context.attributes().Int("to");
  const DType from = context.dtype(0);
  if (number <= 0 || number >= kDTypeCount || !Contains(kBitTypes, static_cast<DType>(number)) ||
      DTypeBits(static_cast<DType>(number)) != DTypeBits(from))
    return absl::InvalidArgumentError(absl::StrCat("to is ", number, ", which is no type with the ",
                                                   DTypeBits(from), " bits of ", DTypeName(from)));
  if (!RanksKnown(context)) {
    context.set_output_unknown(0, static_cast<DType>(number));
    return absl::OkStatus();
  }
  context.set_output(0, static_cast<DType>(number), context.shape(0));
  return absl::OkStatus();
}

// A bool has two values; what reads other bytes as one does what it likes.
absl::Status CheckBools(const Slot& out) {
  const auto* bytes = static_cast<const unsigned char*>(out.data);
  for (std::int64_t i = 0; i < out.count; ++i)
    if (bytes[i] > 1)
      return absl::InvalidArgumentError(
          absl::StrCat("element ", i, " has the bits ", bytes[i], ", which are no bool"));
  return absl::OkStatus();
}

absl::Status Reference(const RunContext& run, std::int64_t, void*) {
  const Slot &in = run.input(0), &out = run.output(0);
  const DType from = run.declared_input_dtype(0), to = run.declared_dtype(0);
  if (from == in.dtype && to == out.dtype) {
    CopyElements(in.dtype, out.data, 0, in.data, 0, in.count);
    return to == DType::kBool ? CheckBools(out) : absl::OkStatus();
  }
  // A device that keeps floats as float64: back to the declared type, whose bits are meant. Types
  // of floats have whole bytes, and so have those of as many bits.
  for (std::int64_t i = 0; i < in.count; ++i) {
    NPURT_RETURN_IF_ERROR(PollAt(run, i));
    std::uint64_t cell = 0;
    if (from == in.dtype)
      CopyElements(in.dtype, &cell, 0, in.data, i, 1);
    else
      StoreNumber(from, &cell, 0, LoadNumber(in.dtype, in.data, i));
    if (to == out.dtype)
      CopyElements(out.dtype, out.data, i, &cell, 0, 1);
    else
      StoreNumber(out.dtype, out.data, i, LoadNumber(to, &cell, 0));
  }
  return absl::OkStatus();
}

absl::Status Bind(BindContext& context) {
  if (context.output_dtype(0) != DType::kBool || context.dtype(0) == DType::kBool)
    return BindCopy(context);
  return absl::OkStatus();
}

absl::Status Run(const RunContext& run, std::int64_t tile, void* scratch) {
  if (run.output(0).dtype != DType::kBool || run.dtype(0) == DType::kBool)
    return RunCopy(run, tile, scratch);
  return Reference(run, tile, scratch);
}

}  // namespace

extern constexpr OpDef kOp = {
    .name = "BitCast",
    .inputs = {{"input", "T1"}},
    .outputs = {{"output", "T2"}},
    .types = {{"T1", kBitTypes}, {"T2", kBitTypes}},
    .attributes = {{"to", AttrKind::kInt, true}},
    .any_rank = true,
    .infer = Infer,
    .reference = Reference,
    .bind = Bind,
    .run = Run,
};

}  // namespace npurt::ops::bit_cast
