// HannWindow, HammingWindow, BlackmanWindow: y[j] = a0 - a1 cos(2 pi j / n) + a2 cos(4 pi j / n),
// where n is the size, or one less (symmetric). MelWeightMatrix: triangles, evenly spaced by ear,
// over spectrum bins.
#include <cmath>
#include <numbers>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ops/move.h"

namespace npurt::ops::windows {
namespace {

constexpr DTypeSet kSizeTypes = DTypes(DType::kI32, DType::kI64);

absl::StatusOr<DType> OutputType(const Attributes& attributes) {
  const std::int64_t number = attributes.Int("output_datatype", 1);
  if (number > 0 && number < kDTypeCount && Contains(kNumbers, static_cast<DType>(number)))
    return static_cast<DType>(number);
  return absl::InvalidArgumentError(
      absl::StrCat("output_datatype is ", number, ", which is no type of numbers"));
}

absl::Status WantScalars(const InferContext& context, int count) {
  for (int i = 0; i < count; ++i)
    if (context.rank(i) > 1 ||
        (context.rank(i) == 1 && context.shape(i)[0].is_constant() && !context.shape(i)[0].Is(1)))
      return absl::InvalidArgumentError(absl::StrCat(
          "input ", i, " has shape ", ShapeString(context.shape(i)), ", want one number"));
  return absl::OkStatus();
}

// The dimension that integer input `i` names; an error if it is known and below `least`.
absl::StatusOr<Dim> SizeOf(InferContext& context, int i, std::int64_t least) {
  const auto given = context.integers(i);
  if (!given || given->size() != 1) return context.RunDim();
  const Dim size = (*given)[0];
  if (size.is_constant() && size.value() < least)
    return absl::InvalidArgumentError(
        absl::StrCat("input ", i, " is ", size.value(), ", want ", least, " or more"));
  return size;
}

absl::Status InferWindow(InferContext& context) {
  NPURT_ASSIGN_OR_RETURN(const DType dtype, OutputType(context.attributes()));
  if (!RanksKnown(context)) {
    context.set_output_unknown(0, dtype);
    return absl::OkStatus();
  }
  NPURT_RETURN_IF_ERROR(WantScalars(context, 1));
  NPURT_ASSIGN_OR_RETURN(const Dim size, SizeOf(context, 0, 0));
  context.set_output(0, dtype, {size});
  return absl::OkStatus();
}

struct Cosines {
  double a0, a1, a2;
};
constexpr Cosines kHann = {0.5, 0.5, 0};
constexpr Cosines kHamming = {25.0 / 46, 21.0 / 46, 0};
constexpr Cosines kBlackman = {0.42, 0.5, 0.08};

template <const Cosines& kWindow>
absl::Status ReferenceWindow(const RunContext& run, std::int64_t, void*) {
  const std::int64_t size = run.output_count_of(0);
  const std::int64_t n = run.attributes().Int("periodic", 1) != 0 ? size : size - 1;
  for (std::int64_t j = 0; j < size; ++j) {
    NPURT_RETURN_IF_ERROR(PollAt(run, j));
    const double angle = 2 * std::numbers::pi * static_cast<double>(j) / static_cast<double>(n);
    // A symmetric window of one element has no period; it is its middle.
    const double y =
        n == 0 ? kWindow.a0 + kWindow.a1 + kWindow.a2
               : kWindow.a0 - kWindow.a1 * std::cos(angle) + kWindow.a2 * std::cos(2 * angle);
    StoreReal(run, 0, j, y);
  }
  return absl::OkStatus();
}

absl::Status InferMel(InferContext& context) {
  NPURT_ASSIGN_OR_RETURN(const DType dtype, OutputType(context.attributes()));
  if (!RanksKnown(context)) {
    context.set_output_unknown(0, dtype);
    return absl::OkStatus();
  }
  NPURT_RETURN_IF_ERROR(WantScalars(context, 5));
  NPURT_ASSIGN_OR_RETURN(const Dim mels, SizeOf(context, 0, 0));
  NPURT_ASSIGN_OR_RETURN(const Dim length, SizeOf(context, 1, 0));
  NPURT_RETURN_IF_ERROR(SizeOf(context, 2, 1).status());
  context.set_output(0, dtype, {FloorDiv(length, 2) + 1, mels});
  return absl::OkStatus();
}

double MelOf(double hertz) { return 2595 * std::log10(1 + hertz / 700); }
double HertzOf(double mel) { return 700 * (std::pow(10, mel / 2595) - 1); }

absl::Status ReferenceMel(const RunContext& run, std::int64_t, void*) {
  const std::int64_t bins = run.output_dims(0)[0], mels = run.output_dims(0)[1];
  const double length = static_cast<double>(IndexAt(run, 1, 0));
  const double rate = static_cast<double>(IndexAt(run, 2, 0));
  const double low = RealAt(run, 3, 0), high = RealAt(run, 4, 0);
  if (!(rate >= 1 && low >= 0 && low <= high && std::isfinite(high)))
    return absl::InvalidArgumentError(
        absl::StrCat("sample_rate ", rate, ", edges from ", low, " to ", high, " hertz"));
  // The bins of the corners of the triangles; the definition counts one step more than there are.
  std::vector<std::int64_t> corner(static_cast<std::size_t>(mels) + 2);
  const double step = (MelOf(high) - MelOf(low)) / static_cast<double>(mels + 2);
  for (std::size_t i = 0; i < corner.size(); ++i) {
    const double hertz = HertzOf(MelOf(low) + static_cast<double>(i) * step);
    const double bin = std::floor((length + 1) * hertz / rate);
    if (!(bin >= 0 && bin < static_cast<double>(bins)))
      return absl::InvalidArgumentError(
          absl::StrCat(hertz, " hertz lie in bin ", bin, " of a spectrum of ", bins, " bins"));
    corner[i] = static_cast<std::int64_t>(bin);
  }
  ZeroElements(run.output(0).dtype, run.output(0).data, 0, run.output_count_of(0));
  for (std::int64_t m = 0; m < mels; ++m) {
    const std::int64_t* at = &corner[static_cast<std::size_t>(m)];
    const double rise = static_cast<double>(at[1] - at[0]);
    const double fall = static_cast<double>(at[2] - at[1]);
    if (rise == 0) StoreReal(run, 0, at[1] * mels + m, 1);
    for (std::int64_t j = at[0]; rise > 0 && j <= at[1]; ++j)
      StoreReal(run, 0, j * mels + m, static_cast<double>(j - at[0]) / rise);
    for (std::int64_t j = at[1]; j < at[2]; ++j)
      StoreReal(run, 0, j * mels + m, static_cast<double>(at[2] - j) / fall);
  }
  return absl::OkStatus();
}

template <const Cosines& kWindow>
constexpr OpDef Window(const char* name) {
  OpDef op;
  op.name = name;
  op.inputs[0] = {"size", "T1"};
  op.outputs[0] = {"output", "T2"};
  op.types[0] = {"T1", kSizeTypes};
  op.types[1] = {"T2", kNumbers};
  op.attributes[0] = {"output_datatype", AttrKind::kInt};
  op.attributes[1] = {"periodic", AttrKind::kInt};
  op.any_rank = true;
  op.infer = InferWindow;
  op.reference = ReferenceWindow<kWindow>;
  return op;
}

}  // namespace

extern constexpr OpDef kOps[] = {
    Window<kBlackman>("BlackmanWindow"),
    Window<kHamming>("HammingWindow"),
    Window<kHann>("HannWindow"),
    {
        .name = "MelWeightMatrix",
        .inputs = {{"num_mel_bins", "T1"},
                   {"dft_length", "T1"},
                   {"sample_rate", "T1"},
                   {"lower_edge_hertz", "T2"},
                   {"upper_edge_hertz", "T2"}},
        .outputs = {{"output", "T3"}},
        .types = {{"T1", kSizeTypes}, {"T2", kFloats}, {"T3", kNumbers}},
        .attributes = {{"output_datatype", AttrKind::kInt}},
        .any_rank = true,
        .infer = InferMel,
        .reference = ReferenceMel,
    },
};
extern constexpr int kOpCount = static_cast<int>(sizeof kOps / sizeof kOps[0]);

}  // namespace npurt::ops::windows
