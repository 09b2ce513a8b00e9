// TensorScatter: the cache with `update` written over it along an axis, from write_indices[b] on in
// each sample b of the batch; "circular" goes on at the start of the axis when it reaches the end.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ops/around_axis.h"
#include "ops/move.h"

namespace npurt::ops::tensor_scatter {
namespace {

absl::StatusOr<bool> IsCircular(const Attributes& attributes) {
  const std::string mode = attributes.String("mode", "linear");
  if (mode != "linear" && mode != "circular")
    return absl::InvalidArgumentError(
        absl::StrCat("mode is '", mode, "', want 'linear' or 'circular'"));
  return mode == "circular";
}

// The axis, after a check of the shapes as far as they are known. `indices` may be null.
absl::StatusOr<int> CheckShapes(const SymDims& cache, const SymDims& update, const SymDims* indices,
                                const Attributes& attributes) {
  NPURT_ASSIGN_OR_RETURN(const int axis,
                         NormalizeAxis(attributes.Int("axis", -2), static_cast<int>(cache.size())));
  if (axis == 0) return absl::InvalidArgumentError("the axis is that of the batch");
  bool fits = update.size() == cache.size();
  for (std::size_t i = 0; fits && i < cache.size(); ++i) {
    if (!cache[i].is_constant() || !update[i].is_constant()) continue;
    fits =
        static_cast<int>(i) == axis ? update[i].value() <= cache[i].value() : update[i] == cache[i];
  }
  if (!fits)
    return absl::InvalidArgumentError(absl::StrCat("the update ", ShapeString(update),
                                                   " does not fit into the cache ",
                                                   ShapeString(cache), " along axis ", axis));
  if (indices != nullptr &&
      (indices->size() != 1 ||
       ((*indices)[0].is_constant() && cache[0].is_constant() && (*indices)[0] != cache[0])))
    return absl::InvalidArgumentError(absl::StrCat(
        "write_indices has shape ", ShapeString(*indices), ", want [", cache[0].ToString(), "]"));
  return axis;
}

absl::Status Infer(InferContext& context) {
  NPURT_RETURN_IF_ERROR(IsCircular(context.attributes()));
  NPURT_RETURN_IF_ERROR(CheckShapes(context.shape(0), context.shape(1),
                                    context.has_input(2) ? &context.shape(2) : nullptr,
                                    context.attributes()));
  context.set_output(0, context.dtype(0), context.shape(0));
  return absl::OkStatus();
}

// Samples `first` to `last` - 1 of the batch.
absl::Status Write(const RunContext& run, std::int64_t first, std::int64_t last) {
  NPURT_ASSIGN_OR_RETURN(const bool circular, IsCircular(run.attributes()));
  const SymDims indices = run.has_input(2) ? ToSymDims(run.dims(2)) : SymDims{};
  NPURT_ASSIGN_OR_RETURN(const int axis,
                         CheckShapes(ToSymDims(run.dims(0)), ToSymDims(run.dims(1)),
                                     run.has_input(2) ? &indices : nullptr, run.attributes()));
  const AroundAxis cache = Around(run.dims(0), axis);
  const std::int64_t length = run.dims(1)[static_cast<std::size_t>(axis)];
  if (run.count(0) == 0) return absl::OkStatus();
  const std::int64_t rows = cache.outer / run.dims(0)[0];  // of a sample
  const DType dtype = run.dtype(0);
  void* const out = run.output(0).data;
  const std::int64_t sample = rows * cache.n * cache.inner;
  if (out != run.input(0).data)
    CopyElements(dtype, out, first * sample, run.input(0).data, first * sample,
                 (last - first) * sample);
  for (std::int64_t b = first; b < last; ++b) {
    std::int64_t begin = run.has_input(2) ? run.Load<std::int64_t>(2, b) : 0;
    if (circular) {
      begin %= cache.n;
      if (begin < 0) begin += cache.n;
    } else if (begin < 0 || begin > cache.n - length) {
      return absl::OutOfRangeError(
          absl::StrCat("write_indices[", b, "] is ", begin, ", want 0 to ", cache.n - length));
    }
    const std::int64_t before_end = std::min(length, cache.n - begin);
    for (std::int64_t r = b * rows; r < (b + 1) * rows; ++r) {
      const std::int64_t to = r * cache.n, from = r * length;
      CopyElements(dtype, out, (to + begin) * cache.inner, run.input(1).data, from * cache.inner,
                   before_end * cache.inner);
      CopyElements(dtype, out, to * cache.inner, run.input(1).data,
                   (from + before_end) * cache.inner, (length - before_end) * cache.inner);
    }
  }
  return absl::OkStatus();
}

absl::Status Reference(const RunContext& run, std::int64_t, void*) {
  return Write(run, 0, run.dims(0)[0]);
}

// A tile per sample; packed elements of two samples may share a byte.
bool IsWhole(DType dtype) { return DTypeBits(dtype) >= 8; }

absl::Status Bind(BindContext& bind) {
  const std::int64_t samples = IsWhole(bind.dtype(0)) ? bind.dims(0)[0] : 1;
  const double bytes = static_cast<double>(bind.count(0)) * DTypeBits(bind.dtype(0)) / 8;
  bind.SetTiles(samples, bytes / 10 / static_cast<double>(std::max<std::int64_t>(samples, 1)));
  if (bind.dtype(0) != DType::kString) bind.MayOverwrite(0, 0);
  return absl::OkStatus();
}

absl::Status Run(const RunContext& run, std::int64_t tile, void* scratch) {
  return IsWhole(run.dtype(0)) ? Write(run, tile, tile + 1) : Reference(run, tile, scratch);
}

}  // namespace

extern constexpr OpDef kOp = {
    .name = "TensorScatter",
    .inputs = {{"past_cache", "T"}, {"update", "T"}, {"?write_indices", "int64"}},
    .outputs = {{"present_cache", "T"}},
    .types = {{"T", kAnyType}},
    .attributes = {{"axis", AttrKind::kInt}, {"mode", AttrKind::kString}},
    .infer = Infer,
    .reference = Reference,
    .bind = Bind,
    .run = Run,
};

}  // namespace npurt::ops::tensor_scatter
