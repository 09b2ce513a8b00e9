// RotaryEmbedding: the first `rotary_embedding_dim` elements of each head are pairs, the halves or neighbours,
// (x1, x2) -> (cos x1 - sin x2, sin x1 + cos x2); cos and sin are rows of caches.
//
// More than ONNX has: position_ids of rank 1 are the position of the first row, of each batch entry or
// of all; and without num_heads the caches tell the size of a head.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ops/around_axis.h"
#include "ops/move.h"

namespace npurt::ops::rotary_embedding {
namespace {

enum Input { kX, kCos, kSin, kPositions };

struct Sizes {
  std::int64_t batch = 0, heads = 0, rows = 0, size = 0;
  std::int64_t batch_stride = 0, head_stride = 0, row_stride = 0;
  std::int64_t rotated = 0;                 // elements of a head
  std::int64_t cache_rows = 0, cache_size = 0;
};

template <typename Context>
absl::StatusOr<Sizes> SizesOf(const Context& c) {
  const auto x = c.dims(kX), cos = c.dims(kCos);
  Sizes s;
  s.batch = x[0];
  s.cache_size = cos.back();
  s.cache_rows = cos[cos.size() - 2];
  s.rotated = c.attributes().Int("rotary_embedding_dim");
  if (x.size() == 4) {
    s.heads = x[1];
    s.rows = x[2];
    s.size = x[3];
    s.batch_stride = s.heads * s.rows * s.size;
    s.head_stride = s.rows * s.size;
    s.row_stride = s.size;
  } else {
    s.rows = x[1];
    s.heads = c.attributes().Int("num_heads");
    if (s.heads == 0) s.heads = s.cache_size == 0 ? 0 : x[2] / (2 * s.cache_size);
    if (s.heads <= 0 || x[2] % s.heads != 0)
      return absl::InvalidArgumentError(absl::StrCat("rows of ", x[2],
                                                     " elements do not divide into ", s.heads,
                                                     " heads"));
    s.size = x[2] / s.heads;
    s.batch_stride = s.rows * x[2];
    s.head_stride = s.size;
    s.row_stride = x[2];
  }
  if (s.rotated == 0) s.rotated = s.size;
  if (s.rotated > s.size || s.rotated % 2 != 0 || s.rotated / 2 > s.cache_size)
    return absl::InvalidArgumentError(
        absl::StrCat("cannot rotate ", s.rotated, " elements of heads of ", s.size,
                     " with caches of ", s.cache_size, " columns"));
  const bool positions = c.has_input(kPositions);
  bool fits = positions ? cos.size() == 2
                        : cos.size() == 3 && cos[0] == s.batch && cos[1] == s.rows;
  if (positions) {
    const auto p = c.dims(kPositions);
    fits &= p.size() == 2 ? p[0] == s.batch && p[1] == s.rows : p[0] == 1 || p[0] == s.batch;
  }
  if (!fits || c.dims(kSin) != cos)
    return absl::InvalidArgumentError(absl::StrCat(
        "caches of shapes ", ShapeString(cos), " and ", ShapeString(c.dims(kSin)),
        positions ? absl::StrCat(" and positions of shape ", ShapeString(c.dims(kPositions))) : "",
        " do not fit to a batch of ", s.batch, " and ", s.rows, " rows"));
  return s;
}

absl::Status Infer(InferContext& context) {
  const auto want = [&](int i, const char* name, int low, int high) {
    if (!context.has_input(i) || (context.rank(i) >= low && context.rank(i) <= high))
      return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(name, " has shape ",
                                                   ShapeString(context.shape(i)),
                                                   ", want a rank of ", low, " or ", high));
  };
  NPURT_RETURN_IF_ERROR(want(kX, "input", 3, 4));
  NPURT_RETURN_IF_ERROR(want(kCos, "cos_cache", 2, 3));
  NPURT_RETURN_IF_ERROR(want(kSin, "sin_cache", 2, 3));
  NPURT_RETURN_IF_ERROR(want(kPositions, "position_ids", 1, 2));
  for (const char* name : {"num_heads", "rotary_embedding_dim"})
    if (context.attributes().Int(name) < 0)
      return absl::InvalidArgumentError(
          absl::StrCat(name, " is ", context.attributes().Int(name), ", want 0 or more"));
  context.set_output(0, context.dtype(kX), context.shape(kX));
  return absl::OkStatus();
}

// The row of the caches for a row of the input.
absl::StatusOr<std::int64_t> CacheRow(const RunContext& run, const Sizes& s, std::int64_t b,
                                      std::int64_t row) {
  if (!run.has_input(kPositions)) return b * s.rows + row;
  const auto dims = run.dims(kPositions);
  const std::int64_t position = dims.size() == 2
                                    ? IndexAt(run, kPositions, b * s.rows + row)
                                    : IndexAt(run, kPositions, dims[0] == 1 ? 0 : b) + row;
  if (position < 0 || position >= s.cache_rows)
    return absl::OutOfRangeError(
        absl::StrCat("position ", position, ", want one from 0 to ", s.cache_rows - 1));
  return position;
}

// One row of all heads; T is the type in memory, N what is computed in.
template <typename T, typename N>
absl::Status Rotate(const RunContext& run, const Sizes& s, bool interleaved, std::int64_t b,
                    std::int64_t row) {
  NPURT_ASSIGN_OR_RETURN(const std::int64_t cache, CacheRow(run, s, b, row));
  const std::int64_t half = s.rotated / 2;
  for (std::int64_t h = 0; h < s.heads; ++h) {
    const std::int64_t at = b * s.batch_stride + h * s.head_stride + row * s.row_stride;
    for (std::int64_t i = 0; i < half; ++i) {
      const N cos = static_cast<N>(run.Load<T>(kCos, cache * s.cache_size + i));
      const N sin = static_cast<N>(run.Load<T>(kSin, cache * s.cache_size + i));
      const std::int64_t first = at + (interleaved ? 2 * i : i);
      const std::int64_t second = interleaved ? first + 1 : first + half;
      const N x1 = static_cast<N>(run.Load<T>(kX, first));
      const N x2 = static_cast<N>(run.Load<T>(kX, second));
      run.Store<T>(0, first, static_cast<T>(cos * x1 - sin * x2));
      run.Store<T>(0, second, static_cast<T>(sin * x1 + cos * x2));
    }
    CopyElements(run.dtype(kX), run.output(0).data, at + s.rotated, run.input(kX).data,
                 at + s.rotated, s.size - s.rotated);
  }
  return absl::OkStatus();
}

absl::Status Reference(const RunContext& run, std::int64_t, void*) {
  NPURT_ASSIGN_OR_RETURN(const Sizes s, SizesOf(run));
  const bool interleaved = run.attributes().Int("interleaved") != 0;
  absl::Status status;
  DispatchDType<kFloats>(run.dtype(kX), [&](auto type) {
    for (std::int64_t b = 0; b < s.batch && status.ok(); ++b)
      for (std::int64_t row = 0; row < s.rows && status.ok(); ++row)
        status = Rotate<decltype(type), double>(run, s, interleaved, b, row);
  });
  return status;
}

absl::StatusOr<std::unique_ptr<Prepared>> Prepare(PrepareContext& context) {
  if (context.type(kX).dtype != DType::kF32) return nullptr;
  auto prepared = std::make_unique<Prepared>();
  prepared->kernel = "rotary_f32";
  return prepared;
}

struct Bound {
  Sizes sizes;
  std::int64_t rows_per_tile;
  bool interleaved;
};

absl::Status Bind(BindContext& bind) {
  NPURT_ASSIGN_OR_RETURN(const Sizes s, SizesOf(bind));
  auto* bound = bind.New<Bound>();
  const std::int64_t row = std::max<std::int64_t>(s.heads * s.size, 1), rows = s.batch * s.rows;
  *bound = {s, std::max<std::int64_t>(16384 / row, 1),
            bind.attributes().Int("interleaved") != 0};
  bind.SetTiles((rows + bound->rows_per_tile - 1) / bound->rows_per_tile,
                static_cast<double>(bound->rows_per_tile * row) * 3 * kNsPerElement);
  bind.MayOverwrite(0, kX);
  return absl::OkStatus();
}

absl::Status Run(const RunContext& run, std::int64_t tile, void*) {
  const auto* bound = run.bound<Bound>();
  const Sizes& s = bound->sizes;
  const std::int64_t first = tile * bound->rows_per_tile;
  const std::int64_t last = std::min(s.batch * s.rows, first + bound->rows_per_tile);
  for (std::int64_t i = first; i < last; ++i)
    NPURT_RETURN_IF_ERROR(
        (Rotate<float, float>(run, s, bound->interleaved, i / s.rows, i % s.rows)));
  return absl::OkStatus();
}

}  // namespace

extern constexpr OpDef kOp = {
    .name = "RotaryEmbedding",
    .inputs = {{"x", "T"}, {"cos_cache", "T"}, {"sin_cache", "T"}, {"?position_ids", "int64"}},
    .outputs = {{"y", "T"}},
    .types = {{"T", kFloats}},
    .attributes = {{"interleaved", AttrKind::kInt},
                   {"num_heads", AttrKind::kInt},
                   {"rotary_embedding_dim", AttrKind::kInt}},
    .infer = Infer,
    .reference = Reference,
    .prepare = Prepare,
    .bind = Bind,
    .run = Run,
};

}  // namespace npurt::ops::rotary_embedding
