// Dropout: in inference y = x and the mask is true; with training_mode elements vanish with probability
// `ratio` and the others grow by 1 / (1 - ratio).
#include <random>

#include "absl/strings/str_cat.h"
#include "ops/move.h"
#include "ops/random_key.h"

namespace npurt::ops::dropout {
namespace {

absl::Status Infer(InferContext& context) {
  context.set_output(0, context.dtype(0), context.shape(0));
  if (context.output_count() > 1) context.set_output(1, DType::kBool, context.shape(0));
  return absl::OkStatus();
}

absl::Status Reference(const RunContext& run, std::int64_t, void*) {
  const bool training = run.has_input(2) && run.Load<std::uint8_t>(2, 0) != 0;
  const double ratio = run.has_input(1) ? RealAt(run, 1, 0) : 0.5;
  if (training && !(ratio >= 0 && ratio < 1))
    return absl::InvalidArgumentError(absl::StrCat("ratio is ", ratio, ", want one in [0, 1)"));
  if (!training || ratio == 0) {
    CopyElements(run.dtype(0), run.output(0).data, 0, run.input(0).data, 0, run.count(0));
    for (std::int64_t i = 0; run.has_output(1) && i < run.count(0); ++i)
      run.Store<bool>(1, i, true);
    return absl::OkStatus();
  }
  // The generator of the operator's definition, Mersenne Twister, whose draws of 53 bits are two
  // words each.
  std::mt19937 random(run.attributes().Has("seed")
                          ? static_cast<std::uint32_t>(run.attributes().Int("seed"))
                          : static_cast<std::uint32_t>(UnseededKey(run)));
  for (std::int64_t i = 0; i < run.count(0); ++i) {
    const double high = static_cast<double>(random() >> 5), low = static_cast<double>(random() >> 6);
    const bool kept = (high * 67108864 + low) * 0x1p-53 >= ratio;
    StoreReal(run, 0, i, kept ? RealAt(run, 0, i) / (1 - ratio) : 0);
    if (run.has_output(1)) run.Store<bool>(1, i, kept);
  }
  return absl::OkStatus();
}

}  // namespace

extern constexpr OpDef kOp = {
    .name = "Dropout",
    .inputs = {{"data", "T"}, {"?ratio", "T1"}, {"?training_mode", "bool"}},
    .outputs = {{"output", "T"}, {"?mask", "bool"}},
    .types = {{"T", kFloats}, {"T1", kFloats}},
    .attributes = {{"seed", AttrKind::kInt}},
    .traits = kRandom,
    .infer = Infer,
    .reference = Reference,
};

}  // namespace npurt::ops::dropout
