// IsNaN, IsInf: which elements are not a number, which are infinite.
#include <cmath>

#include "ops/move.h"

namespace npurt::ops::float_tests {
namespace {

absl::Status Infer(InferContext& context) {
  context.set_output(0, DType::kBool, context.shape(0));
  return absl::OkStatus();
}

absl::Status ReferenceNaN(const RunContext& run, std::int64_t, void*) {
  for (std::int64_t i = 0; i < run.count(0); ++i) {
    NPURT_RETURN_IF_ERROR(PollAt(run, i));
    run.Store<bool>(0, i, std::isnan(RealAt(run, 0, i)));
  }
  return absl::OkStatus();
}

absl::Status ReferenceInf(const RunContext& run, std::int64_t, void*) {
  const bool positive = run.attributes().Int("detect_positive", 1) != 0;
  const bool negative = run.attributes().Int("detect_negative", 1) != 0;
  for (std::int64_t i = 0; i < run.count(0); ++i) {
    NPURT_RETURN_IF_ERROR(PollAt(run, i));
    const double x = RealAt(run, 0, i);
    run.Store<bool>(0, i, std::isinf(x) && (x > 0 ? positive : negative));
  }
  return absl::OkStatus();
}

}  // namespace

extern constexpr OpDef kOps[] = {
    {
        .name = "IsNaN",
        .inputs = {{"x", "T"}},
        .outputs = {{"y", "bool"}},
        .types = {{"T", kFloats}},
        .infer = Infer,
        .reference = ReferenceNaN,
    },
    {
        .name = "IsInf",
        .inputs = {{"x", "T"}},
        .outputs = {{"y", "bool"}},
        .types = {{"T", kFloats}},
        .attributes = {{"detect_positive", AttrKind::kInt}, {"detect_negative", AttrKind::kInt}},
        .infer = Infer,
        .reference = ReferenceInf,
    },
};
extern constexpr int kOpCount = static_cast<int>(sizeof kOps / sizeof kOps[0]);

}  // namespace npurt::ops::float_tests
