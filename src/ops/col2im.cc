// Col2Im: adds up columns of blocks where the blocks lie in the image: the reverse of im2col.
#include "absl/strings/str_cat.h"
#include "ops/move.h"

namespace npurt::ops::col2im {
namespace {

std::int64_t At(const Attributes& attributes, const char* name, std::size_t i,
                std::int64_t fallback) {
  const auto values = attributes.Ints(name);
  return i < values.size() ? values[i] : fallback;
}

absl::Status CheckAttribute(const Attributes& attributes, const char* name, std::size_t count,
                            std::int64_t least) {
  const auto values = attributes.Ints(name);
  if (!values.empty() && values.size() != count)
    return absl::InvalidArgumentError(
        absl::StrCat(name, " has ", values.size(), " numbers, want ", count));
  for (std::int64_t v : values)
    if (v < least || v > (std::int64_t{1} << 40))
      return absl::InvalidArgumentError(absl::StrCat(name, " has ", v));
  return absl::OkStatus();
}

absl::Status Infer(InferContext& context) {
  for (int i = 0; i < 3; ++i) NPURT_RETURN_IF_ERROR(WantRank(context, i, i == 0 ? 3 : 1));
  const SymDims& x = context.shape(0);
  const Dim length = context.shape(1)[0];
  if (length.is_constant()) {
    const std::size_t spatial = static_cast<std::size_t>(length.value());
    NPURT_RETURN_IF_ERROR(CheckAttribute(context.attributes(), "strides", spatial, 1));
    NPURT_RETURN_IF_ERROR(CheckAttribute(context.attributes(), "dilations", spatial, 1));
    NPURT_RETURN_IF_ERROR(CheckAttribute(context.attributes(), "pads", 2 * spatial, 0));
  }
  const auto image = context.integers(1), block = context.integers(2);
  if (!image || !block) {
    if (!length.is_constant()) {
      context.set_output_unknown(0, context.dtype(0));
      return absl::OkStatus();
    }
    SymDims out = {x[0]};
    for (std::int64_t i = 0; i <= length.value(); ++i) out.push_back(context.RunDim());
    context.set_output(0, context.dtype(0), std::move(out));
    return absl::OkStatus();
  }
  if (image->size() != block->size())
    return absl::InvalidArgumentError(absl::StrCat("image_shape has ", image->size(),
                                                   " numbers, block_shape ", block->size()));
  for (const auto* list : {&*image, &*block})
    for (Dim d : *list)
      if (d.is_constant() && (d.value() < 0 || d.value() > (std::int64_t{1} << 40)))
        return absl::InvalidArgumentError(absl::StrCat("a size of ", d.value()));
  const Dim taps = Product(*block);
  if (taps.Is(0)) return absl::InvalidArgumentError("the block is empty");
  SymDims out = {x[0], FloorDiv(x[1], taps)};
  out.insert(out.end(), image->begin(), image->end());
  context.set_output(0, context.dtype(0), std::move(out));
  return absl::OkStatus();
}

template <typename T>
struct Reference {
  static absl::Status Run(const RunContext& run) {
    const Attributes& a = run.attributes();
    const auto out = run.output_dims(0), x = run.dims(0);
    const std::size_t spatial = out.size() - 2;
    if (run.count(2) != static_cast<std::int64_t>(spatial))
      return absl::InvalidArgumentError("image_shape and block_shape differ in length");
    Dims block(spatial), steps(spatial);
    std::int64_t positions = 1;
    for (std::size_t d = 0; d < spatial; ++d) {
      block[d] = IndexAt(run, 2, static_cast<std::int64_t>(d));
      const std::int64_t reach = (block[d] - 1) * At(a, "dilations", d, 1) + 1;
      const std::int64_t room =
          out[d + 2] + At(a, "pads", d, 0) + At(a, "pads", d + spatial, 0) - reach;
      steps[d] = room < 0 ? 0 : room / At(a, "strides", d, 1) + 1;
      positions *= steps[d];
    }
    const std::int64_t taps = ProductOf(block, 0, static_cast<int>(spatial));
    const std::int64_t channels = out[1];
    if (positions != x[2] || channels * taps != x[1])
      return absl::InvalidArgumentError(
          absl::StrCat("x has shape ", ShapeString(x), ", blocks of ", taps, " at ", positions,
                       " places want [n, c * ", taps, ", ", positions, "]"));
    const std::int64_t plane = ProductOf(out, 2, static_cast<int>(out.size()));
    std::vector<double> sums(static_cast<std::size_t>(plane));
    for (std::int64_t nc = 0; nc < out[0] * channels; ++nc) {
      NPURT_RETURN_IF_ERROR(run.Poll());
      std::fill(sums.begin(), sums.end(), 0.0);
      Dims tap(spatial);
      for (std::int64_t t = 0; t < taps; ++t, NextIndex(block, absl::MakeSpan(tap))) {
        Dims step(spatial);
        for (std::int64_t p = 0; p < positions; ++p, NextIndex(steps, absl::MakeSpan(step))) {
          std::int64_t to = 0;
          bool inside = true;
          for (std::size_t d = 0; d < spatial && inside; ++d) {
            const std::int64_t at = step[d] * At(a, "strides", d, 1) - At(a, "pads", d, 0) +
                                    tap[d] * At(a, "dilations", d, 1);
            inside = at >= 0 && at < out[d + 2];
            to = to * out[d + 2] + at;
          }
          if (inside)
            sums[static_cast<std::size_t>(to)] +=
                static_cast<double>(run.Load<T>(0, (nc * taps + t) * positions + p));
        }
      }
      for (std::int64_t i = 0; i < plane; ++i)
        run.Store<T>(0, nc * plane + i, static_cast<T>(sums[static_cast<std::size_t>(i)]));
    }
    return absl::OkStatus();
  }
};

}  // namespace

extern constexpr OpDef kOp = {
    .name = "Col2Im",
    .inputs = {{"input", "T"}, {"image_shape", "int64"}, {"block_shape", "int64"}},
    .outputs = {{"output", "T"}},
    .types = {{"T", kNumbers}},
    .attributes = {{"dilations", AttrKind::kInts},
                   {"pads", AttrKind::kInts},
                   {"strides", AttrKind::kInts}},
    .infer = Infer,
    .reference = ForEachType<Reference, kNumbers>,
};

}  // namespace npurt::ops::col2im
