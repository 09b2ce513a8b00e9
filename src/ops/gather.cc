// Gather: out[outer, indices, inner] = data[outer, indices[...], inner] along `axis`.
#include "absl/strings/str_cat.h"
#include "ops/move.h"

namespace npurt::ops::gather {
namespace {

struct Sizes {
  std::int64_t outer, limit, inner, indices;
};

Sizes SizesOf(const RunContext& run) {
  const auto dims = run.dims(0);
  const int rank = static_cast<int>(dims.size());
  std::int64_t axis = run.attributes().Int("axis", 0);
  if (axis < 0) axis += rank;
  const int a = static_cast<int>(axis);
  return {ProductOf(dims, 0, a), dims[static_cast<std::size_t>(a)], ProductOf(dims, a + 1, rank),
          run.count(1)};
}

absl::Status Infer(InferContext& context) {
  const SymDims &data = context.shape(0), &indices = context.shape(1);
  NPURT_ASSIGN_OR_RETURN(const int axis,
                         NormalizeAxis(context.attributes().Int("axis", 0), context.rank(0)));
  SymDims out(data.begin(), data.begin() + axis);
  out.insert(out.end(), indices.begin(), indices.end());
  out.insert(out.end(), data.begin() + axis + 1, data.end());
  const bool small = out.size() <= 1;
  context.set_output(0, context.dtype(0), std::move(out));
  if (!small || data.size() != 1) return absl::OkStatus();
  const auto values = context.integers(0);
  const auto at = ConstantIntegers(context, 1);
  if (!values || !at) return absl::OkStatus();
  SymDims picked;
  for (std::int64_t index : *at) {
    if (!WrapIndex(&index, static_cast<std::int64_t>(values->size())))
      return IndexError(index, static_cast<std::int64_t>(values->size()));
    picked.push_back((*values)[static_cast<std::size_t>(index)]);
  }
  context.set_output_integers(0, std::move(picked));
  return absl::OkStatus();
}

absl::Status Reference(const RunContext& run, std::int64_t, void*) {
  const Sizes s = SizesOf(run);
  for (std::int64_t o = 0; o < s.outer; ++o)
    for (std::int64_t j = 0; j < s.indices; ++j) {
      std::int64_t index = IndexAt(run, 1, j);
      if (!WrapIndex(&index, s.limit)) return IndexError(index, s.limit);
      for (std::int64_t i = 0; i < s.inner; ++i)
        CopyElements(run.dtype(0), run.output(0).data, (o * s.indices + j) * s.inner + i,
                     run.input(0).data, (o * s.limit + index) * s.inner + i, 1);
    }
  return absl::OkStatus();
}

absl::Status Bind(BindContext& bind) {
  SetCopyTiles(bind, bind.dtype(0), bind.output_count_of(0));
  return absl::OkStatus();
}

absl::Status Run(const RunContext& run, std::int64_t tile, void*) {
  const Sizes s = SizesOf(run);
  const DType dtype = run.dtype(0);
  const TileRange range = TileOf(tile, CopyTiles(dtype, run.output_count_of(0)),
                                 run.output_count_of(0));
  // A tile may begin and end inside a run of `inner` elements.
  for (std::int64_t at = range.first; at < range.last;) {
    const std::int64_t row = at / s.inner, inside = at % s.inner;
    const std::int64_t count = std::min(range.last - at, s.inner - inside);
    std::int64_t index = IndexAt(run, 1, row % s.indices);
    if (!WrapIndex(&index, s.limit)) return IndexError(index, s.limit);
    CopyElements(dtype, run.output(0).data, at, run.input(0).data,
                 (row / s.indices * s.limit + index) * s.inner + inside, count);
    at += count;
  }
  return absl::OkStatus();
}

}  // namespace

extern constexpr OpDef kOp = {
    .name = "Gather",
    .inputs = {{"data", "T"}, {"indices", "I"}},
    .outputs = {{"output", "T"}},
    .types = {{"T", kAnyType}, {"I", DTypes(DType::kI32, DType::kI64)}},
    .attributes = {{"axis", AttrKind::kInt}},
    .infer = Infer,
    .reference = Reference,
    .bind = Bind,
    .run = Run,
};

}  // namespace npurt::ops::gather
