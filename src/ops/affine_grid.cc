// AffineGrid: grid[n, p...] = theta[n] * (x, y..., 1) for the points p of a plane or a volume,
// whose places run from -1 to 1; what GridSample takes.
#include "absl/strings/str_cat.h"
#include "ops/move.h"

namespace npurt::ops::affine_grid {
namespace {

// theta is [n, 2, 3] with sizes [n, c, h, w], or [n, 3, 4] with [n, c, d, h, w].
bool Fits(std::int64_t rows, std::int64_t columns, std::size_t sizes) {
  return (rows == 2 || rows == 3) && columns == rows + 1 &&
         sizes == static_cast<std::size_t>(rows) + 2;
}

absl::Status Infer(InferContext& context) {
  NPURT_RETURN_IF_ERROR(WantRank(context, 0, 3));
  NPURT_RETURN_IF_ERROR(WantRank(context, 1, 1));
  const SymDims& theta = context.shape(0);
  const auto size = context.integers(1);
  if (!size) {
    context.set_output_unknown(0, context.dtype(0));
    return absl::OkStatus();
  }
  const std::int64_t rows = static_cast<std::int64_t>(size->size()) - 2;
  const auto differ = [](Dim a, Dim b) { return a.is_constant() && b.is_constant() && a != b; };
  if (!Fits(rows, rows + 1, size->size()) || differ(theta[1], rows) || differ(theta[2], rows + 1) ||
      differ(theta[0], (*size)[0]))
    return absl::InvalidArgumentError(
        absl::StrCat("theta has shape ", ShapeString(theta), ", size is ", ShapeString(*size)));
  SymDims out = {(*size)[0]};
  out.insert(out.end(), size->begin() + 2, size->end());
  for (Dim d : out)
    if (d.is_constant() && d.value() < 0)
      return absl::InvalidArgumentError(absl::StrCat("size is ", ShapeString(*size)));
  out.push_back(rows);
  context.set_output(0, context.dtype(0), std::move(out));
  return absl::OkStatus();
}

// The place of point `i` of `n`: the ends are -1 and 1, or the middles of the outer points are
// half a point inside.
double Place(std::int64_t i, std::int64_t n, bool align_corners) {
  const double at = static_cast<double>(i), size = static_cast<double>(n);
  if (!align_corners) return (2 * at + 1) / size - 1;
  return n == 1 ? 0 : 2 * at / (size - 1) - 1;
}

absl::Status Reference(const RunContext& run, std::int64_t, void*) {
  const auto theta = run.dims(0), out = run.output_dims(0);
  const std::int64_t axes = theta[1];
  if (!Fits(axes, theta[2], static_cast<std::size_t>(run.count(1))) || theta[0] != out[0])
    return absl::InvalidArgumentError(
        absl::StrCat("theta has shape ", ShapeString(theta), ", the grid ", ShapeString(out)));
  const bool align_corners = run.attributes().Int("align_corners") != 0;
  const auto spatial = out.subspan(1, static_cast<std::size_t>(axes));
  if (run.output_count_of(0) == 0) return absl::OkStatus();
  std::int64_t to = 0;
  for (std::int64_t n = 0; n < theta[0]; ++n) {
    Dims point(spatial.size(), 0);
    do {
      NPURT_RETURN_IF_ERROR(PollAt(run, to));
      for (std::int64_t row = 0; row < axes; ++row) {
        const std::int64_t base = (n * axes + row) * (axes + 1);
        double sum = RealAt(run, 0, base + axes);
        // x, the first coordinate, runs along the last dimension.
        for (std::int64_t k = 0; k < axes; ++k) {
          const std::size_t d = static_cast<std::size_t>(axes - 1 - k);
          sum += RealAt(run, 0, base + k) * Place(point[d], spatial[d], align_corners);
        }
        StoreReal(run, 0, to++, sum);
      }
    } while (NextIndex(spatial, absl::MakeSpan(point)));
  }
  return absl::OkStatus();
}

}  // namespace

extern constexpr OpDef kOp = {
    .name = "AffineGrid",
    .inputs = {{"theta", "T1"}, {"size", "int64"}},
    .outputs = {{"grid", "T1"}},
    .types = {{"T1", kFloats}},
    .attributes = {{"align_corners", AttrKind::kInt}},
    .infer = Infer,
    .reference = Reference,
};

}  // namespace npurt::ops::affine_grid
