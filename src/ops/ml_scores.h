// Scores of classifiers and regressors: the transforms that ai.onnx.ml applies to them at the end.
//
// Thread safety: pure functions.
#ifndef NPURT_OPS_ML_SCORES_H_
#define NPURT_OPS_ML_SCORES_H_

#include "base/attributes.h"
#include "base/status.h"

namespace npurt::ops {

enum class PostTransform { kNone, kSoftmax, kLogistic, kSoftmaxZero, kProbit };

absl::StatusOr<PostTransform> PostTransformOf(absl::string_view name);
// In place, on the scores of one row.
void ApplyPostTransform(PostTransform transform, absl::Span<double> scores);

// The labels of a classifier: strings or numbers.
struct ClassLabels {
  absl::Span<const std::string> strings;
  absl::Span<const std::int64_t> numbers;
  std::int64_t count() const {
    return static_cast<std::int64_t>(strings.empty() ? numbers.size() : strings.size());
  }
};
ClassLabels ClassLabelsOf(const Attributes& attributes, const char* numbers_name,
                          const char* strings_name);

}  // namespace npurt::ops

#endif  // NPURT_OPS_ML_SCORES_H_
