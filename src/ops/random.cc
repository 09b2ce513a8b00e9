// RandomNormal, RandomUniform, RandomNormalLike, RandomUniformLike, Bernoulli, Multinomial: element
// i is a function of i and a key, which comes from the node's seed, or else from the session's
// seed, the node and the number of the run.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/checked_math.h"
#include "ops/move.h"
#include "ops/random_key.h"

namespace npurt::ops::random {
namespace {

enum class Law { kUniform, kNormal, kBernoulli };

std::uint64_t KeyOf(const RunContext& run) {
  if (!run.attributes().Has("seed")) return UnseededKey(run);
  const float seed = run.attributes().Float("seed");
  std::uint32_t bits;
  std::memcpy(&bits, &seed, sizeof bits);
  return MixBits(bits);
}

// Numbers 2k and 2k + 1 of the sequence, in [0, 1).
struct Pair {
  double first, second;
};
Pair UniformPair(std::uint64_t key, std::int64_t k) {
  const PhiloxWords words =
      Philox({static_cast<std::uint32_t>(k), static_cast<std::uint32_t>(k >> 32), 0, 0}, key);
  return {UnitDouble(words[0], words[1]), UnitDouble(words[2], words[3])};
}

// Box and Muller's two normal numbers from two uniform ones.
Pair NormalPair(std::uint64_t key, std::int64_t k) {
  const Pair u = UniformPair(key, k);
  const double radius = std::sqrt(-2 * std::log(1 - u.first)),
               angle = 2 * std::numbers::pi * u.second;
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

template <Law kLaw>
absl::Status Fill(const RunContext& run, std::int64_t begin, std::int64_t end) {
  const Attributes& a = run.attributes();
  const std::uint64_t key = KeyOf(run);
  // y = offset + factor * number.
  const double offset =
      static_cast<double>(kLaw == Law::kNormal ? a.Float("mean", 0) : a.Float("low", 0));
  const double factor = kLaw == Law::kNormal ? static_cast<double>(a.Float("scale", 1))
                                             : static_cast<double>(a.Float("high", 1)) - offset;
  for (std::int64_t i = begin; i < end; i += 2) {  // begin is even
    NPURT_RETURN_IF_ERROR(PollAt(run, i));
    const Pair pair = kLaw == Law::kNormal ? NormalPair(key, i / 2) : UniformPair(key, i / 2);
    const double both[2] = {pair.first, pair.second};
    for (std::int64_t k = i; k < std::min(i + 2, end); ++k) {
      double y = both[k - i];
      if constexpr (kLaw == Law::kBernoulli) {
        const double p = RealAt(run, 0, k);
        if (!(p >= 0 && p <= 1))
          return absl::InvalidArgumentError(
              absl::StrCat("element ", k, " is ", p, ", which is no probability"));
        y = y < p ? 1 : 0;
      } else {
        y = offset + factor * y;
      }
      StoreReal(run, 0, k, y);
    }
  }
  return absl::OkStatus();
}

template <Law kLaw>
absl::Status Reference(const RunContext& run, std::int64_t, void*) {
  return Fill<kLaw>(run, 0, run.output_count_of(0));
}

constexpr std::int64_t kTile = 4096;

template <Law kLaw>
absl::Status Bind(BindContext& context) {
  constexpr double kNsPerNumber = kLaw == Law::kNormal ? 25 : 8;
  context.SetTiles(CeilDiv(context.output_count_of(0), kTile),
                   kNsPerNumber * static_cast<double>(kTile));
  return absl::OkStatus();
}

template <Law kLaw>
absl::Status Run(const RunContext& run, std::int64_t tile, void*) {
  return Fill<kLaw>(run, tile * kTile, std::min(run.output_count_of(0), (tile + 1) * kTile));
}

// The attribute `dtype`, or `fallback`; an error if it is not in `allowed`.
absl::StatusOr<DType> TypeOf(const Attributes& attributes, DType fallback, DTypeSet allowed) {
  const std::int64_t number = attributes.Int("dtype", static_cast<std::int64_t>(fallback));
  if (number > 0 && number < kDTypeCount && Contains(allowed, static_cast<DType>(number)))
    return static_cast<DType>(number);
  return absl::InvalidArgumentError(
      absl::StrCat("the output type is ",
                   number > 0 && number < kDTypeCount ? DTypeName(static_cast<DType>(number))
                                                      : absl::string_view("unknown"),
                   attributes.Has("dtype") ? "" : ", as the input; set dtype"));
}

absl::Status InferShape(InferContext& context) {
  NPURT_ASSIGN_OR_RETURN(const DType dtype, TypeOf(context.attributes(), DType::kF32, kFloats));
  const auto shape = context.attributes().Ints("shape");
  for (std::int64_t d : shape)
    if (d < 0) return absl::InvalidArgumentError(absl::StrCat("shape is ", ShapeString(shape)));
  context.set_output(0, dtype, ToSymDims(shape));
  return absl::OkStatus();
}

template <DTypeSet kAllowed>
absl::Status InferLike(InferContext& context) {
  NPURT_ASSIGN_OR_RETURN(const DType dtype,
                         TypeOf(context.attributes(), context.dtype(0), kAllowed));
  if (!RanksKnown(context)) {
    context.set_output_unknown(0, dtype);
    return absl::OkStatus();
  }
  context.set_output(0, dtype, context.shape(0));
  return absl::OkStatus();
}

absl::Status InferMultinomial(InferContext& context) {
  NPURT_ASSIGN_OR_RETURN(const DType dtype, TypeOf(context.attributes(), DType::kI32,
                                                   DTypes(DType::kI32, DType::kI64)));
  if (!RanksKnown(context)) {
    context.set_output_unknown(0, dtype);
    return absl::OkStatus();
  }
  NPURT_RETURN_IF_ERROR(WantRank(context, 0, 2));
  const std::int64_t samples = context.attributes().Int("sample_size", 1);
  if (samples < 0) return absl::InvalidArgumentError(absl::StrCat("sample_size is ", samples));
  context.set_output(0, dtype, {context.shape(0)[0], samples});
  return absl::OkStatus();
}

absl::Status ReferenceMultinomial(const RunContext& run, std::int64_t, void*) {
  const std::int64_t batch = run.dims(0)[0], classes = run.dims(0)[1],
                     samples = run.output_dims(0)[1];
  const std::uint64_t key = KeyOf(run);
  std::vector<double> sums(static_cast<std::size_t>(classes));
  for (std::int64_t b = 0; b < batch && samples > 0; ++b) {
    // Inputs are logarithms; only what is left after the largest is taken out matters.
    double max = -INFINITY, sum = 0;
    for (std::int64_t c = 0; c < classes; ++c)
      max = std::fmax(max, RealAt(run, 0, b * classes + c));
    for (std::int64_t c = 0; c < classes; ++c)
      sums[static_cast<std::size_t>(c)] = sum += std::exp(RealAt(run, 0, b * classes + c) - max);
    if (!(sum >= 1 && std::isfinite(sum)))
      return absl::InvalidArgumentError(
          absl::StrCat("row ", b, " has no class that could be drawn"));
    for (std::int64_t i = b * samples; i < (b + 1) * samples; ++i) {
      NPURT_RETURN_IF_ERROR(PollAt(run, i));
      const Pair pair = UniformPair(key, i / 2);
      const double u = (i % 2 == 0 ? pair.first : pair.second) * sum;
      const auto drawn = std::upper_bound(sums.begin(), sums.end() - 1, u) - sums.begin();
      StoreReal(run, 0, i, static_cast<double>(drawn));
    }
  }
  return absl::OkStatus();
}

}  // namespace

extern constexpr OpDef kOps[] = {
    {
        .name = "Bernoulli",
        .inputs = {{"input", "T1"}},
        .outputs = {{"output", "T2"}},
        .types = {{"T1", kFloats}, {"T2", kPlainTypes}},
        .attributes = {{"dtype", AttrKind::kInt}, {"seed", AttrKind::kFloat}},
        .traits = kRandom,
        .any_rank = true,
        .infer = InferLike<kPlainTypes>,
        .reference = Reference<Law::kBernoulli>,
        .bind = Bind<Law::kBernoulli>,
        .run = Run<Law::kBernoulli>,
    },
    {
        .name = "Multinomial",
        .inputs = {{"input", "T1"}},
        .outputs = {{"output", "T2"}},
        .types = {{"T1", kFloats}, {"T2", DTypes(DType::kI32, DType::kI64)}},
        .attributes = {{"dtype", AttrKind::kInt},
                       {"sample_size", AttrKind::kInt},
                       {"seed", AttrKind::kFloat}},
        .traits = kRandom,
        .any_rank = true,
        .infer = InferMultinomial,
        .reference = ReferenceMultinomial,
    },
    {
        .name = "RandomNormal",
        .outputs = {{"output", "T"}},
        .types = {{"T", kFloats}},
        .attributes = {{"dtype", AttrKind::kInt},
                       {"mean", AttrKind::kFloat},
                       {"scale", AttrKind::kFloat},
                       {"seed", AttrKind::kFloat},
                       {"shape", AttrKind::kInts, true}},
        .traits = kRandom,
        .infer = InferShape,
        .reference = Reference<Law::kNormal>,
        .bind = Bind<Law::kNormal>,
        .run = Run<Law::kNormal>,
    },
    {
        .name = "RandomNormalLike",
        .inputs = {{"input", "T1"}},
        .outputs = {{"output", "T2"}},
        .types = {{"T1", kAnyType}, {"T2", kFloats}},
        .attributes = {{"dtype", AttrKind::kInt},
                       {"mean", AttrKind::kFloat},
                       {"scale", AttrKind::kFloat},
                       {"seed", AttrKind::kFloat}},
        .traits = kRandom,
        .any_rank = true,
        .infer = InferLike<kFloats>,
        .reference = Reference<Law::kNormal>,
        .bind = Bind<Law::kNormal>,
        .run = Run<Law::kNormal>,
    },
    {
        .name = "RandomUniform",
        .outputs = {{"output", "T"}},
        .types = {{"T", kFloats}},
        .attributes = {{"dtype", AttrKind::kInt},
                       {"high", AttrKind::kFloat},
                       {"low", AttrKind::kFloat},
                       {"seed", AttrKind::kFloat},
                       {"shape", AttrKind::kInts, true}},
        .traits = kRandom,
        .infer = InferShape,
        .reference = Reference<Law::kUniform>,
        .bind = Bind<Law::kUniform>,
        .run = Run<Law::kUniform>,
    },
    {
        .name = "RandomUniformLike",
        .inputs = {{"input", "T1"}},
        .outputs = {{"output", "T2"}},
        .types = {{"T1", kAnyType}, {"T2", kFloats}},
        .attributes = {{"dtype", AttrKind::kInt},
                       {"high", AttrKind::kFloat},
                       {"low", AttrKind::kFloat},
                       {"seed", AttrKind::kFloat}},
        .traits = kRandom,
        .any_rank = true,
        .infer = InferLike<kFloats>,
        .reference = Reference<Law::kUniform>,
        .bind = Bind<Law::kUniform>,
        .run = Run<Law::kUniform>,
    },
};
extern constexpr int kOpCount = static_cast<int>(sizeof kOps / sizeof kOps[0]);

}  // namespace npurt::ops::random
