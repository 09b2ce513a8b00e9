// Shape, Size: the dimensions of a tensor and their product, as int64.
#include <algorithm>

#include "ops/move.h"

namespace npurt::ops::shapes {
namespace {

struct Part {
  int first, last;
};

// The axes [start, end), clamped as in a slice.
Part PartOf(const Attributes& attributes, int rank) {
  const auto clamp = [rank](std::int64_t at) {
    if (at < 0) at += rank;
    return static_cast<int>(std::clamp<std::int64_t>(at, 0, rank));
  };
  const int first = clamp(attributes.Int("start", 0));
  return {first, std::max(first, clamp(attributes.Int("end", rank)))};
}

absl::Status InferShape(InferContext& context) {
  const SymDims& in = context.shape(0);
  const Part part = PartOf(context.attributes(), context.rank(0));
  context.set_output(0, DType::kI64, {part.last - part.first});
  context.set_output_integers(0, SymDims(in.begin() + part.first, in.begin() + part.last));
  return absl::OkStatus();
}

absl::Status ReferenceShape(const RunContext& run, std::int64_t, void*) {
  const Part part = PartOf(run.attributes(), run.input(0).rank);
  for (int i = part.first; i < part.last; ++i)
    run.Store<std::int64_t>(0, i - part.first, run.dims(0)[static_cast<std::size_t>(i)]);
  return absl::OkStatus();
}

absl::Status InferSize(InferContext& context) {
  context.set_output(0, DType::kI64, {});
  context.set_output_integers(0, {Product(context.shape(0))});
  return absl::OkStatus();
}

absl::Status ReferenceSize(const RunContext& run, std::int64_t, void*) {
  run.Store<std::int64_t>(0, 0, run.count(0));
  return absl::OkStatus();
}

}  // namespace

extern constexpr OpDef kOps[] = {
    {
        .name = "Shape",
        .inputs = {{"data", "T"}},
        .outputs = {{"shape", "int64"}},
        .types = {{"T", kAnyType}},
        .attributes = {{"start", AttrKind::kInt}, {"end", AttrKind::kInt}},
        .infer = InferShape,
        .reference = ReferenceShape,
    },
    {
        .name = "Size",
        .inputs = {{"data", "T"}},
        .outputs = {{"size", "int64"}},
        .types = {{"T", kAnyType}},
        .infer = InferSize,
        .reference = ReferenceSize,
    },
};
extern constexpr int kOpCount = static_cast<int>(sizeof kOps / sizeof kOps[0]);

}  // namespace npurt::ops::shapes
