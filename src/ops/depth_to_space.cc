// DepthToSpace, SpaceToDepth: moves blocks of b * b pixels between the channels and the plane:
// space[n, c, h * b + i, w * b + j] = depth[n, (i * b + j) * C + c, h, w] (DCR, as in SpaceToDepth),
// or depth[n, (c * b + i) * b + j, h, w] (CRD).
#include "absl/strings/str_cat.h"
#include "ops/move.h"

namespace npurt::ops::depth_to_space {
namespace {

absl::StatusOr<std::int64_t> BlockOf(const InferContext& context) {
  if (context.rank(0) != 4)
    return absl::InvalidArgumentError(
        absl::StrCat("the input has rank ", context.rank(0), ", want 4"));
  const std::int64_t block = context.attributes().Int("blocksize");
  if (block < 1 || block > (1 << 15))
    return absl::InvalidArgumentError(absl::StrCat("blocksize is ", block));
  return block;
}

absl::Status Indivisible(const SymDims& dims, std::size_t axis, std::int64_t by) {
  if (!dims[axis].is_constant() || dims[axis].value() % by == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("axis ", axis, " of shape ", ShapeString(dims),
                                                 " is no multiple of ", by));
}

absl::Status InferDepthToSpace(InferContext& context) {
  NPURT_ASSIGN_OR_RETURN(const std::int64_t b, BlockOf(context));
  const std::string mode = context.attributes().String("mode", "DCR");
  if (mode != "DCR" && mode != "CRD")
    return absl::InvalidArgumentError(absl::StrCat("mode is '", mode, "', want DCR or CRD"));
  const SymDims& in = context.shape(0);
  NPURT_RETURN_IF_ERROR(Indivisible(in, 1, b * b));
  context.set_output(0, context.dtype(0), {in[0], FloorDiv(in[1], b * b), in[2] * b, in[3] * b});
  return absl::OkStatus();
}

absl::Status InferSpaceToDepth(InferContext& context) {
  NPURT_ASSIGN_OR_RETURN(const std::int64_t b, BlockOf(context));
  const SymDims& in = context.shape(0);
  NPURT_RETURN_IF_ERROR(Indivisible(in, 2, b));
  NPURT_RETURN_IF_ERROR(Indivisible(in, 3, b));
  context.set_output(0, context.dtype(0),
                     {in[0], in[1] * (b * b), FloorDiv(in[2], b), FloorDiv(in[3], b)});
  return absl::OkStatus();
}

// Places in both layouts: channel c of C, row h * b + i, column w * b + j of the plane.
struct Layout {
  std::int64_t n, c, h, w, b;
  bool crd;

  std::int64_t Channel(std::int64_t ch, std::int64_t i, std::int64_t j) const {
    return crd ? (ch * b + i) * b + j : (i * b + j) * c + ch;
  }
};

// `space` are the dimensions of the side with the large plane.
Layout LayoutOf(absl::Span<const std::int64_t> space, const Attributes& attributes) {
  const std::int64_t b = attributes.Int("blocksize");
  return {space[0], space[1], space[2] / b, space[3] / b, b,
          attributes.String("mode", "DCR") == "CRD"};
}

absl::Status CheckCounts(const RunContext& run) {
  if (run.count(0) == run.output_count_of(0)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("shape ", ShapeString(run.dims(0)),
                                                 " is no multiple of the block"));
}

template <bool kToSpace>
absl::Status Reference(const RunContext& run, std::int64_t, void*) {
  NPURT_RETURN_IF_ERROR(CheckCounts(run));
  const Layout l =
      LayoutOf(kToSpace ? run.output_dims(0) : run.dims(0), run.attributes());
  std::int64_t space = 0;
  for (std::int64_t n = 0; n < l.n; ++n)
    for (std::int64_t c = 0; c < l.c; ++c)
      for (std::int64_t y = 0; y < l.h * l.b; ++y)
        for (std::int64_t x = 0; x < l.w * l.b; ++x, ++space) {
          NPURT_RETURN_IF_ERROR(PollAt(run, space));
          const std::int64_t channel = l.Channel(c, y % l.b, x % l.b);
          const std::int64_t depth =
              ((n * l.c * l.b * l.b + channel) * l.h + y / l.b) * l.w + x / l.b;
          CopyElements(run.dtype(0), run.output(0).data, kToSpace ? space : depth,
                       run.input(0).data, kToSpace ? depth : space, 1);
        }
  return absl::OkStatus();
}

absl::Status Bind(BindContext& bind) {
  SetCopyTiles(bind, bind.dtype(0), bind.output_count_of(0));
  return absl::OkStatus();
}

template <bool kToSpace>
absl::Status Run(const RunContext& run, std::int64_t tile, void*) {
  NPURT_RETURN_IF_ERROR(CheckCounts(run));
  const Layout l =
      LayoutOf(kToSpace ? run.output_dims(0) : run.dims(0), run.attributes());
  const DType dtype = run.dtype(0);
  const std::int64_t plane = l.h * l.w, width = l.w * l.b;
  // In the order of the output: size, stride in the depth layout, stride in the space layout.
  struct Axis {
    std::int64_t dim, depth, space;
  };
  const Axis n = {l.n, l.c * l.b * l.b * plane, l.c * l.b * l.b * plane};
  const Axis c = {l.c, l.Channel(1, 0, 0) * plane, l.b * l.b * plane};
  const Axis i = {l.b, l.Channel(0, 1, 0) * plane, width};
  const Axis j = {l.b, l.Channel(0, 0, 1) * plane, 1};
  const Axis h = {l.h, l.w, width * l.b};
  const Axis w = {l.w, 1, l.b};
  const Axis to_space[] = {n, c, h, i, w, j}, to_depth[] = {n, i, j, c, h, w};
  StridedCopy copy;
  for (const Axis& a : kToSpace ? to_space : to_depth)
    copy.Add(a.dim, kToSpace ? a.depth : a.space, kToSpace ? a.space : a.depth);
  const TileRange range = TileOf(tile, CopyTiles(dtype, copy.count), copy.count);
  return copy.Run(dtype, run.output(0).data, run.input(0).data, range.first, range.last);
}

}  // namespace

extern constexpr OpDef kOps[] = {
    {
        .name = "DepthToSpace",
        .inputs = {{"input", "T"}},
        .outputs = {{"output", "T"}},
        .types = {{"T", kAnyType}},
        .attributes = {{"blocksize", AttrKind::kInt, true}, {"mode", AttrKind::kString}},
        .infer = InferDepthToSpace,
        .reference = Reference<true>,
        .bind = Bind,
        .run = Run<true>,
    },
    {
        .name = "SpaceToDepth",
        .inputs = {{"input", "T"}},
        .outputs = {{"output", "T"}},
        .types = {{"T", kAnyType}},
        .attributes = {{"blocksize", AttrKind::kInt, true}},
        .infer = InferSpaceToDepth,
        .reference = Reference<false>,
        .bind = Bind,
        .run = Run<false>,
    },
};
extern constexpr int kOpCount = static_cast<int>(sizeof kOps / sizeof kOps[0]);

}  // namespace npurt::ops::depth_to_space
