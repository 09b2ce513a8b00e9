// Pad: more elements (or fewer, for negative pads) at the start and end of each axis: a constant, the
// nearest element (edge), the mirror image without its edge (reflect), or the other end (wrap).
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ops/move.h"

namespace npurt::ops::pad {
namespace {

enum class Mode { kConstant, kEdge, kReflect, kWrap };

absl::StatusOr<Mode> ModeOf(const Attributes& attributes) {
  const std::string mode = attributes.String("mode", "constant");
  if (mode == "constant") return Mode::kConstant;
  if (mode == "edge") return Mode::kEdge;
  if (mode == "reflect") return Mode::kReflect;
  if (mode == "wrap") return Mode::kWrap;
  return absl::InvalidArgumentError(
      absl::StrCat("mode is '", mode, "', want constant, edge, reflect or wrap"));
}

absl::Status Infer(InferContext& context) {
  NPURT_RETURN_IF_ERROR(WantRank(context, 1, 1));
  NPURT_RETURN_IF_ERROR(WantRank(context, 3, 1));
  NPURT_ASSIGN_OR_RETURN(const Mode mode, ModeOf(context.attributes()));
  const SymDims& in = context.shape(0);
  const int rank = context.rank(0);
  SymDims out = in;
  const auto pads = context.integers(1);
  std::optional<std::vector<std::int64_t>> axes;
  if (context.has_input(3)) {
    axes = ConstantIntegers(context, 3);
  } else {
    axes.emplace();
    for (int i = 0; i < rank; ++i) axes->push_back(i);
  }
  if (!pads || !axes) {
    for (Dim& d : out) d = context.RunDim();
    context.set_output(0, context.dtype(0), std::move(out));
    return absl::OkStatus();
  }
  const std::size_t n = axes->size();
  if (pads->size() != 2 * n)
    return absl::InvalidArgumentError(
        absl::StrCat("got ", pads->size(), " pads for ", n, " axes, want ", 2 * n));
  for (std::size_t i = 0; i < n; ++i) {
    NPURT_ASSIGN_OR_RETURN(const int axis, NormalizeAxis((*axes)[i], rank));
    out[axis] = in[axis] + (*pads)[i] + (*pads)[n + i];
    if (out[axis].is_constant() && out[axis].value() < 0)
      return absl::InvalidArgumentError(absl::StrCat("axis ", axis, " of shape ", ShapeString(in),
                                                     " becomes ", out[axis].value(), " long"));
    if (mode != Mode::kConstant && in[axis].Is(0) && !out[axis].Is(0))
      return absl::InvalidArgumentError(
          absl::StrCat("axis ", axis, " is empty: there is nothing to repeat"));
  }
  context.set_output(0, context.dtype(0), std::move(out));
  return absl::OkStatus();
}

// The place in the input of output index `i`, or -1 for the constant.
std::int64_t Source(Mode mode, std::int64_t i, std::int64_t begin, std::int64_t dim) {
  std::int64_t at = i - begin;
  if (at >= 0 && at < dim) return at;
  switch (mode) {
    case Mode::kConstant:
      return -1;
    case Mode::kEdge:
      return at < 0 ? 0 : dim - 1;
    case Mode::kWrap:
      at %= dim;
      return at < 0 ? at + dim : at;
    case Mode::kReflect: {
      if (dim == 1) return 0;
      const std::int64_t period = 2 * (dim - 1);
      at %= period;
      if (at < 0) at += period;
      return at < dim ? at : period - at;
    }
  }
  return -1;
}

constexpr int kMaxAxes = 64;

struct Plan {
  Mode mode;
  int rank;
  std::int64_t begin[kMaxAxes];
};

absl::StatusOr<Plan> PlanOf(const RunContext& run) {
  Plan plan;
  NPURT_ASSIGN_OR_RETURN(plan.mode, ModeOf(run.attributes()));
  const auto in = run.dims(0), out = run.output_dims(0);
  plan.rank = static_cast<int>(in.size());
  if (plan.rank > kMaxAxes) return absl::UnimplementedError("a pad of more than 64 dimensions");
  std::int64_t end[kMaxAxes] = {};
  std::fill_n(plan.begin, plan.rank, 0);
  const std::int64_t n = run.has_input(3) ? run.count(3) : plan.rank;
  if (run.count(1) != 2 * n)
    return absl::InvalidArgumentError(
        absl::StrCat("got ", run.count(1), " pads for ", n, " axes, want ", 2 * n));
  for (std::int64_t i = 0; i < n; ++i) {
    NPURT_ASSIGN_OR_RETURN(const int axis,
                           NormalizeAxis(run.has_input(3) ? IndexAt(run, 3, i) : i, plan.rank));
    plan.begin[axis] = IndexAt(run, 1, i);
    end[axis] = IndexAt(run, 1, n + i);
  }
  for (int d = 0; d < plan.rank; ++d) {
    const std::size_t k = static_cast<std::size_t>(d);
    if (in[k] + plan.begin[d] + end[d] != out[k])
      return absl::InvalidArgumentError(absl::StrCat("axis ", d, " of ", in[k], " padded by ",
                                                     plan.begin[d], " and ", end[d],
                                                     ", the output has ", out[k]));
    if (plan.mode != Mode::kConstant && in[k] == 0 && out[k] != 0)
      return absl::InvalidArgumentError(
          absl::StrCat("axis ", d, " is empty: there is nothing to repeat"));
  }
  if (run.has_input(2) && run.count(2) != 1)
    return absl::InvalidArgumentError(
        absl::StrCat("the constant has ", run.count(2), " elements, want 1"));
  return plan;
}

void FillConstant(const RunContext& run, std::int64_t to, std::int64_t count) {
  if (run.has_input(2))
    FillElements(run.dtype(0), run.output(0).data, to, run.input(2).data, 0, count);
  else
    ZeroElements(run.dtype(0), run.output(0).data, to, count);
}

absl::Status Reference(const RunContext& run, std::int64_t, void*) {
  NPURT_ASSIGN_OR_RETURN(const Plan plan, PlanOf(run));
  if (run.output_count_of(0) == 0) return absl::OkStatus();
  const auto in = run.dims(0);
  const Dims strides = StridesOf(in);
  Dims index(in.size());
  std::int64_t to = 0;
  do {
    std::int64_t from = 0;
    for (std::size_t d = 0; d < in.size() && from >= 0; ++d) {
      const std::int64_t at = Source(plan.mode, index[d], plan.begin[d], in[d]);
      from = at < 0 ? -1 : from + at * strides[d];
    }
    if (from < 0)
      FillConstant(run, to, 1);
    else
      CopyElements(run.dtype(0), run.output(0).data, to, run.input(0).data, from, 1);
    ++to;
  } while (NextIndex(run.output_dims(0), absl::MakeSpan(index)));
  return absl::OkStatus();
}

absl::Status Bind(BindContext& bind) {
  // Rows are dealt out below; those of packed types would share bytes.
  if (DTypeBits(bind.dtype(0)) >= 8)
    SetCopyTiles(bind, bind.dtype(0), bind.output_count_of(0));
  return absl::OkStatus();
}

// A tile is some rows of the last axis: fill, copy the middle, fill.
absl::Status Run(const RunContext& run, std::int64_t tile, void*) {
  NPURT_ASSIGN_OR_RETURN(const Plan plan, PlanOf(run));
  const DType dtype = run.dtype(0);
  const std::int64_t count = run.output_count_of(0);
  if (count == 0) return absl::OkStatus();
  const auto in = run.dims(0), out = run.output_dims(0);
  const int last = plan.rank - 1;
  const std::int64_t width = last < 0 ? 1 : out[static_cast<std::size_t>(last)];
  const std::int64_t in_width = last < 0 ? 1 : in[static_cast<std::size_t>(last)];
  const std::int64_t begin = last < 0 ? 0 : plan.begin[last];
  const std::int64_t rows = count / width;
  const std::int64_t tiles = DTypeBits(dtype) < 8 ? 1 : CopyTiles(dtype, count);
  const std::int64_t first_row = rows * tile / tiles, last_row = rows * (tile + 1) / tiles;
  // What of the output row lies inside the input row.
  const std::int64_t left = std::clamp<std::int64_t>(begin, 0, width);
  const std::int64_t right = std::clamp<std::int64_t>(begin + in_width, left, width);
  void* const data = run.output(0).data;
  for (std::int64_t row = first_row; row < last_row; ++row) {
    std::int64_t rest = row, stride = in_width, from = 0;
    for (int d = last - 1; d >= 0 && from >= 0; --d) {
      const std::size_t k = static_cast<std::size_t>(d);
      const std::int64_t at = Source(plan.mode, rest % out[k], plan.begin[d], in[k]);
      from = at < 0 ? -1 : from + at * stride;
      rest /= out[k];
      stride *= in[k];
    }
    const std::int64_t to = row * width;
    if (from < 0) {
      FillConstant(run, to, width);
      continue;
    }
    CopyElements(dtype, data, to + left, run.input(0).data, from + left - begin, right - left);
    if (plan.mode == Mode::kConstant) {
      FillConstant(run, to, left);
      FillConstant(run, to + right, width - right);
      continue;
    }
    const auto copy = [&](std::int64_t i, std::int64_t end) {
      for (; i < end; ++i)
        CopyElements(dtype, data, to + i, run.input(0).data,
                     from + Source(plan.mode, i, begin, in_width), 1);
    };
    copy(0, left);
    copy(right, width);
  }
  return absl::OkStatus();
}

}  // namespace

extern constexpr OpDef kOp = {
    .name = "Pad",
    .inputs = {{"data", "T"}, {"pads", "int64"}, {"?constant_value", "T"}, {"?axes", "I"}},
    .outputs = {{"output", "T"}},
    .types = {{"T", kAnyType}, {"I", DTypes(DType::kI32, DType::kI64)}},
    .attributes = {{"mode", AttrKind::kString}},
    .infer = Infer,
    .reference = Reference,
    .bind = Bind,
    .run = Run,
};

}  // namespace npurt::ops::pad
