#include "ops/ml_scores.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"

namespace npurt::ops {
namespace {

double Logistic(double x) { return 1 / (1 + std::exp(-x)); }

// The inverse of the normal distribution's cumulative function: Newton's method on it, from the
// estimate of Winitzki (2008).
double Probit(double p) {
  if (!(p > 0)) return p == 0 ? -INFINITY : NAN;
  if (!(p < 1)) return p == 1 ? INFINITY : NAN;
  constexpr double kA = 0.147, kPi = 3.14159265358979323846;
  const double y = 2 * p - 1, log = std::log(1 - y * y), half = 2 / (kPi * kA) + log / 2;
  double x = std::copysign(std::sqrt(std::sqrt(half * half - log / kA) - half), y) * std::sqrt(2.0);
  for (int i = 0; i < 3; ++i) {
    const double error = 0.5 * std::erfc(-x / std::sqrt(2.0)) - p;
    const double slope = std::exp(-x * x / 2) / std::sqrt(2 * kPi);
    if (slope > 0) x -= error / slope;
  }
  return x;
}

void Softmax(absl::Span<double> scores, bool keep_zeros) {
  if (scores.empty()) return;
  const double most = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (double& s : scores) {
    const bool skip = keep_zeros && std::fabs(s) <= 1e-7;
    s = skip ? 0 : std::exp(s - most);
    sum += s;
  }
  if (sum == 0) return;
  for (double& s : scores) s /= sum;
}

}  // namespace

absl::StatusOr<PostTransform> PostTransformOf(absl::string_view name) {
  if (name == "NONE") return PostTransform::kNone;
  if (name == "SOFTMAX") return PostTransform::kSoftmax;
  if (name == "LOGISTIC") return PostTransform::kLogistic;
  if (name == "SOFTMAX_ZERO") return PostTransform::kSoftmaxZero;
  if (name == "PROBIT") return PostTransform::kProbit;
  return absl::InvalidArgumentError(absl::StrCat(
      "post_transform is '", name, "', want NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO or PROBIT"));
}

void ApplyPostTransform(PostTransform transform, absl::Span<double> scores) {
  switch (transform) {
    case PostTransform::kNone:
      break;
    case PostTransform::kSoftmax:
    case PostTransform::kSoftmaxZero:
      Softmax(scores, transform == PostTransform::kSoftmaxZero);
      break;
    case PostTransform::kLogistic:
      for (double& s : scores) s = Logistic(s);
      break;
    case PostTransform::kProbit:
      for (double& s : scores) s = Probit(s);
      break;
  }
}

ClassLabels ClassLabelsOf(const Attributes& attributes, const char* numbers_name,
                          const char* strings_name) {
  return {attributes.Strings(strings_name), attributes.Ints(numbers_name)};
}

}  // namespace npurt::ops
