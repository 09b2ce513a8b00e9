// DFT: y[k] = sum over j of x[j] e^(-2 pi i jk / n) along one axis; the inverse turns the other way
// and divides by n. STFT: the same of windows of a signal. The last dimension holds 1 (real) or 2
// parts.
#include <algorithm>
#include <mutex>
#include <new>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/checked_math.h"
#include "ops/around_axis.h"
#include "ops/fourier.h"
#include "ops/move.h"
#include "ops/poller.h"

namespace npurt::ops::dft {
namespace {

constexpr DTypeSet kIndexTypes = DTypes(DType::kI32, DType::kI64);

// How the lines of either operator lie in memory; all strides and sizes count numbers, not parts.
struct Lines {
  std::int64_t n;             // length of the transform
  std::int64_t given;         // numbers that a line has, the rest is zero
  std::int64_t bins;          // numbers that are stored
  std::int64_t outer, inner;  // lines; the inner ones lie side by side
  std::int64_t group;         // outer lines in a row that start in_step apart (frames), or 1
  std::int64_t in_outer, in_step, in_stride;
  std::int64_t in_parts, out_parts;
  int window;              // the input with factors, or -1
  bool inverse, mirrored;  // mirrored: what is given is half of a symmetric line

  std::int64_t count() const { return outer * group * inner; }
};

// Of loading or storing a number, for the poller: it may come from far away.
constexpr std::int64_t kOperations = 8;

template <typename T>
void LoadLine(const RunContext& run, const Lines& l, std::int64_t line, Complex* x) {
  const std::int64_t o = line / l.inner,
                     base = o / l.group * l.in_outer + o % l.group * l.in_step + line % l.inner;
  Poller poller(run);
  for (std::int64_t j = 0; j < l.given; ++j) {
    poller.CountOrThrow(kOperations);
    const std::int64_t at = (base + j * l.in_stride) * l.in_parts;
    x[j].re = static_cast<double>(run.Load<T>(0, at));
    x[j].im = l.in_parts == 2 ? static_cast<double>(run.Load<T>(0, at + 1)) : 0;
    if (l.window >= 0) {
      const double factor = static_cast<double>(run.Load<T>(l.window, j));
      x[j] = {x[j].re * factor, x[j].im * factor};
    }
  }
  for (std::int64_t j = l.given; j < l.n; ++j) x[j] = {0, 0};
  if (!l.mirrored) return;
  for (std::int64_t j = l.n / 2 + 1; j < l.n; ++j) x[j] = {x[l.n - j].re, -x[l.n - j].im};
  x[0].im = 0;
  if (l.n % 2 == 0) x[l.n / 2].im = 0;
}

template <typename T>
void StoreLine(const RunContext& run, const Lines& l, std::int64_t line, const Complex* y) {
  const std::int64_t base = line / l.inner * l.bins * l.inner + line % l.inner;
  const double scale = l.inverse ? 1 / static_cast<double>(l.n) : 1;
  Poller poller(run);
  for (std::int64_t k = 0; k < l.bins; ++k) {
    poller.CountOrThrow(kOperations);
    const std::int64_t at = (base + k * l.inner) * l.out_parts;
    run.Store<T>(0, at, static_cast<T>(y[k].re * scale));
    if (l.out_parts == 2) run.Store<T>(0, at + 1, static_cast<T>(y[k].im * scale));
  }
}

// The definition, n^2 products a line.
absl::Status Direct(const RunContext& run, const Lines& l) {
  std::vector<Complex> roots(static_cast<std::size_t>(l.n)), x(roots.size()), y(roots.size());
  for (std::int64_t k = 0; k < l.n; ++k) {
    roots[static_cast<std::size_t>(k)] = UnitRoot(k, l.n);
    if (l.inverse) roots[static_cast<std::size_t>(k)].im *= -1;
  }
  for (std::int64_t line = 0; line < l.count(); ++line) {
    DispatchDType<kFloats>(run.dtype(0),
                           [&](auto type) { LoadLine<decltype(type)>(run, l, line, x.data()); });
    for (std::int64_t k = 0; k < l.bins; ++k) {
      NPURT_RETURN_IF_ERROR(run.Poll());
      Complex sum = {0, 0};
      std::int64_t turn = 0;
      for (const Complex& number : x) {
        sum = sum + number * roots[static_cast<std::size_t>(turn)];
        turn += k;
        if (turn >= l.n) turn -= l.n;
      }
      y[static_cast<std::size_t>(k)] = sum;
    }
    DispatchDType<kFloats>(run.dtype(0),
                           [&](auto type) { StoreLine<decltype(type)>(run, l, line, y.data()); });
  }
  return absl::OkStatus();
}

struct Bound {
  Lines lines;
  std::int64_t lines_per_tile;
  mutable std::once_flag made{};

  // Stands behind. The first run makes it, since that may take long and must be able to stop.
  const FourierPlan& plan(const RunContext& run) const {
    auto* plan = const_cast<Bound*>(this + 1);
    std::call_once(made, [&] { FourierPlan::Make(lines.n, plan, StopCheckOf(run)); });
    return *reinterpret_cast<const FourierPlan*>(plan);
  }
};

void BindLines(BindContext& context, const Lines& lines) {
  constexpr std::int64_t kPointsPerTile = 1024;
  constexpr double kNsPerPoint = 15;
  if (lines.count() == 0) {
    context.SetTiles(0, 0);
    return;
  }
  auto* bound = new (context.NewBytes(sizeof(Bound) + FourierPlan::Bytes(lines.n), alignof(Bound)))
      Bound{lines, std::max<std::int64_t>(1, kPointsPerTile / lines.n)};
  context.SetTiles(CeilDiv(lines.count(), bound->lines_per_tile),
                   static_cast<double>(bound->lines_per_tile * lines.n) * kNsPerPoint);
  context.SetScratch(static_cast<std::size_t>(lines.n) * sizeof(Complex) +
                     FourierPlan::ScratchBytes(lines.n));
}

absl::Status Run(const RunContext& run, std::int64_t tile, void* scratch) {
  const Bound& bound = *run.bound<Bound>();
  const Lines& l = bound.lines;
  const FourierPlan& plan = bound.plan(run);
  auto* x = static_cast<Complex*>(scratch);
  const std::int64_t first = tile * bound.lines_per_tile;
  const std::int64_t last = std::min(l.count(), first + bound.lines_per_tile);
  for (std::int64_t line = first; line < last; ++line) {
    DispatchDType<kFloats>(run.dtype(0),
                           [&](auto type) { LoadLine<decltype(type)>(run, l, line, x); });
    plan.Run(x, l.inverse, x + l.n, StopCheckOf(run));
    DispatchDType<kFloats>(run.dtype(0),
                           [&](auto type) { StoreLine<decltype(type)>(run, l, line, x); });
  }
  return absl::OkStatus();
}

absl::Status CheckLength(std::int64_t n, const char* what) {
  if (n >= 1 && n <= FourierPlan::kMaxLength) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(what, " is ", n, ", want 1 to ", FourierPlan::kMaxLength));
}

struct State final : Prepared {};

std::unique_ptr<Prepared> MakeState() {
  auto state = std::make_unique<State>();
  state->kernel = "fft";
  return state;
}

// --- DFT -----------------------------------------------------------------------------------------

// The axis must not be the last, which holds the parts.
absl::StatusOr<int> DftAxis(std::int64_t axis, int rank) {
  NPURT_ASSIGN_OR_RETURN(const int normal, NormalizeAxis(axis, rank));
  if (normal == rank - 1)
    return absl::InvalidArgumentError(
        absl::StrCat("axis ", axis, " is the last one, which holds real and imaginary parts"));
  return normal;
}

absl::Status CheckParts(Dim parts, bool onesided, bool inverse) {
  if (!parts.is_constant()) return absl::OkStatus();
  if (!parts.Is(1) && !parts.Is(2))
    return absl::InvalidArgumentError(
        absl::StrCat("the last dimension is ", parts.value(), ", want 1 or 2"));
  if (onesided && !inverse && parts.Is(2))
    return absl::InvalidArgumentError("onesided wants real input, the last dimension is 2");
  return absl::OkStatus();
}

absl::Status InferDft(InferContext& context) {
  const SymDims& x = context.shape(0);
  const bool onesided = context.attributes().Int("onesided") != 0;
  const bool inverse = context.attributes().Int("inverse") != 0;
  if (x.size() < 2)
    return absl::InvalidArgumentError(
        absl::StrCat("x has shape ", ShapeString(x), ", want rank 2 or more"));
  NPURT_RETURN_IF_ERROR(CheckParts(x.back(), onesided, inverse));
  for (int i : {1, 2})
    if (context.has_input(i) && context.rank(i) > 1)
      return absl::InvalidArgumentError(
          absl::StrCat(i == 1 ? "dft_length" : "axis", " has rank ", context.rank(i)));
  std::int64_t axis = -2;
  if (context.has_input(2)) {
    const auto given = ConstantIntegers(context, 2);
    if (!given) {
      context.set_output_unknown(0, context.dtype(0));
      return absl::OkStatus();
    }
    if (given->size() != 1)
      return absl::InvalidArgumentError(absl::StrCat("axis has ", given->size(), " elements"));
    axis = (*given)[0];
  }
  NPURT_ASSIGN_OR_RETURN(const int at, DftAxis(axis, context.rank(0)));
  const Dim length = x[static_cast<std::size_t>(at)];
  Dim n = onesided && inverse ? (length - 1) * 2 : length;
  if (context.has_input(1)) {
    const auto given = context.integers(1);
    if (given && given->size() != 1)
      return absl::InvalidArgumentError(
          absl::StrCat("dft_length has ", given->size(), " elements"));
    n = given ? (*given)[0] : context.RunDim();
  }
  if (n.is_constant()) NPURT_RETURN_IF_ERROR(CheckLength(n.value(), "the length"));
  SymDims out = x;
  out[static_cast<std::size_t>(at)] = onesided && !inverse ? FloorDiv(n, 2) + 1 : n;
  out.back() = onesided && inverse ? 1 : 2;
  context.set_output(0, context.dtype(0), std::move(out));
  return absl::OkStatus();
}

absl::StatusOr<Lines> DftLines(const Attributes& attributes, absl::Span<const std::int64_t> x,
                               absl::Span<const std::int64_t> out, std::int64_t axis,
                               std::optional<std::int64_t> length) {
  Lines l = {};
  const bool onesided = attributes.Int("onesided") != 0;
  l.inverse = attributes.Int("inverse") != 0;
  l.mirrored = onesided && l.inverse;
  l.in_parts = x.back();
  l.out_parts = out.back();
  NPURT_RETURN_IF_ERROR(CheckParts(l.in_parts, onesided, l.inverse));
  NPURT_ASSIGN_OR_RETURN(const int at, DftAxis(axis, static_cast<int>(x.size())));
  const AroundAxis a = Around(x.first(x.size() - 1), at);
  l.n = length ? *length : l.mirrored ? 2 * (a.n - 1) : a.n;
  NPURT_RETURN_IF_ERROR(CheckLength(l.n, "the length"));
  l.given = std::min(a.n, l.mirrored ? l.n / 2 + 1 : l.n);
  l.bins = onesided && !l.inverse ? l.n / 2 + 1 : l.n;
  l.outer = a.outer;
  l.inner = a.inner;
  l.group = 1;
  l.in_outer = a.n * a.inner;
  l.in_stride = a.inner;
  l.window = -1;
  return l;
}

absl::Status ReferenceDft(const RunContext& run, std::int64_t, void*) {
  std::optional<std::int64_t> length;
  if (run.has_input(1)) {
    if (run.count(1) != 1) return absl::InvalidArgumentError("dft_length must be one number");
    length = IndexAt(run, 1, 0);
  }
  if (run.has_input(2) && run.count(2) != 1)
    return absl::InvalidArgumentError("axis must be one number");
  const std::int64_t axis = run.has_input(2) ? IndexAt(run, 2, 0) : -2;
  NPURT_ASSIGN_OR_RETURN(const Lines lines,
                         DftLines(run.attributes(), run.dims(0), run.output_dims(0), axis, length));
  return Direct(run, lines);
}

absl::StatusOr<std::unique_ptr<Prepared>> PrepareDft(PrepareContext& context) {
  for (int i : {1, 2})
    if (context.has_input(i) && context.constant(i) == nullptr) return nullptr;
  return MakeState();
}

absl::Status BindDft(BindContext& context) {
  std::optional<std::int64_t> length;
  std::int64_t axis = -2;
  if (context.has_input(1)) {
    NPURT_ASSIGN_OR_RETURN(const auto values, Integers(*context.constant(1)));
    length = values[0];
  }
  if (context.has_input(2)) {
    NPURT_ASSIGN_OR_RETURN(const auto values, Integers(*context.constant(2)));
    axis = values[0];
  }
  NPURT_ASSIGN_OR_RETURN(const Lines lines, DftLines(context.attributes(), context.dims(0),
                                                     context.output_dims(0), axis, length));
  BindLines(context, lines);
  return absl::OkStatus();
}

// --- STFT ----------------------------------------------------------------------------------------

absl::Status InferStft(InferContext& context) {
  NPURT_RETURN_IF_ERROR(WantRank(context, 0, 3));
  NPURT_RETURN_IF_ERROR(WantRank(context, 2, 1));
  const SymDims& x = context.shape(0);
  const bool onesided = context.attributes().Int("onesided", 1) != 0;
  NPURT_RETURN_IF_ERROR(CheckParts(x[2], onesided, false));
  if (!context.has_input(2) && !context.has_input(3))
    return absl::InvalidArgumentError("want a window or a frame_length");
  const auto number = [&](int i) -> absl::StatusOr<Dim> {
    const auto given = context.integers(i);
    if (given && given->size() != 1)
      return absl::InvalidArgumentError(absl::StrCat(i == 1 ? "frame_step" : "frame_length",
                                                     " has ", given->size(), " elements"));
    return given ? (*given)[0] : context.RunDim();
  };
  NPURT_ASSIGN_OR_RETURN(const Dim step, number(1));
  Dim n;
  if (context.has_input(3)) {
    NPURT_ASSIGN_OR_RETURN(n, number(3));
  } else {
    n = context.shape(2)[0];
  }
  if (step.is_constant() && step.value() < 1)
    return absl::InvalidArgumentError(absl::StrCat("frame_step is ", step.value()));
  if (n.is_constant()) NPURT_RETURN_IF_ERROR(CheckLength(n.value(), "frame_length"));
  const bool known = n.is_constant() && x[1].is_constant();
  if (known && n.value() > x[1].value())
    return absl::InvalidArgumentError(
        absl::StrCat("frames of ", n.value(), " do not fit a signal of ", x[1].value()));
  context.set_output(0, context.dtype(0),
                     {x[0], FloorDiv(x[1] - n, step) + 1, onesided ? FloorDiv(n, 2) + 1 : n, 2});
  return absl::OkStatus();
}

absl::StatusOr<Lines> StftLines(const Attributes& attributes, absl::Span<const std::int64_t> x,
                                std::int64_t step, std::optional<std::int64_t> window,
                                std::optional<std::int64_t> length) {
  Lines l = {};
  const bool onesided = attributes.Int("onesided", 1) != 0;
  l.in_parts = x[2];
  l.out_parts = 2;
  NPURT_RETURN_IF_ERROR(CheckParts(l.in_parts, onesided, false));
  l.n = l.given = length ? *length : *window;
  NPURT_RETURN_IF_ERROR(CheckLength(l.n, "frame_length"));
  if (step < 1) return absl::InvalidArgumentError(absl::StrCat("frame_step is ", step));
  if (window && *window != l.n)
    return absl::InvalidArgumentError(
        absl::StrCat("the window has ", *window, " elements, a frame ", l.n));
  if (l.n > x[1])
    return absl::InvalidArgumentError(
        absl::StrCat("frames of ", l.n, " do not fit a signal of ", x[1]));
  l.bins = onesided ? l.n / 2 + 1 : l.n;
  l.outer = x[0];
  l.group = (x[1] - l.n) / step + 1;
  l.inner = 1;
  l.in_outer = x[1];
  l.in_step = step;
  l.in_stride = 1;
  l.window = window ? 2 : -1;
  return l;
}

absl::Status ReferenceStft(const RunContext& run, std::int64_t, void*) {
  if (run.count(1) != 1 || (run.has_input(3) && run.count(3) != 1))
    return absl::InvalidArgumentError("frame_step and frame_length must be one number each");
  std::optional<std::int64_t> window, length;
  if (run.has_input(2)) window = run.count(2);
  if (run.has_input(3)) length = IndexAt(run, 3, 0);
  NPURT_ASSIGN_OR_RETURN(const Lines lines, StftLines(run.attributes(), run.dims(0),
                                                      IndexAt(run, 1, 0), window, length));
  return Direct(run, lines);
}

absl::StatusOr<std::unique_ptr<Prepared>> PrepareStft(PrepareContext& context) {
  if (context.constant(1) == nullptr || (context.has_input(3) && context.constant(3) == nullptr))
    return nullptr;
  return MakeState();
}

absl::Status BindStft(BindContext& context) {
  std::optional<std::int64_t> window, length;
  if (context.has_input(2)) window = context.count(2);
  NPURT_ASSIGN_OR_RETURN(const auto step, Integers(*context.constant(1)));
  if (context.has_input(3)) {
    NPURT_ASSIGN_OR_RETURN(const auto values, Integers(*context.constant(3)));
    length = values[0];
  }
  NPURT_ASSIGN_OR_RETURN(const Lines lines,
                         StftLines(context.attributes(), context.dims(0), step[0], window, length));
  BindLines(context, lines);
  return absl::OkStatus();
}

}  // namespace

extern constexpr OpDef kOps[] = {
    {
        .name = "DFT",
        .inputs = {{"input", "T1"}, {"?dft_length", "T2"}, {"?axis", "int64"}},
        .outputs = {{"output", "T1"}},
        .types = {{"T1", kFloats}, {"T2", kIndexTypes}},
        .attributes = {{"inverse", AttrKind::kInt}, {"onesided", AttrKind::kInt}},
        .infer = InferDft,
        .reference = ReferenceDft,
        .prepare = PrepareDft,
        .bind = BindDft,
        .run = Run,
    },
    {
        .name = "STFT",
        .inputs =
            {{"signal", "T1"}, {"frame_step", "T2"}, {"?window", "T1"}, {"?frame_length", "T2"}},
        .outputs = {{"output", "T1"}},
        .types = {{"T1", kFloats}, {"T2", kIndexTypes}},
        .attributes = {{"onesided", AttrKind::kInt}},
        .infer = InferStft,
        .reference = ReferenceStft,
        .prepare = PrepareStft,
        .bind = BindStft,
        .run = Run,
    },
};
extern constexpr int kOpCount = static_cast<int>(sizeof kOps / sizeof kOps[0]);

}  // namespace npurt::ops::dft
