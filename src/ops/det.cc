// Det: the determinant of square matrices.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "ops/move.h"
#include "ops/poller.h"

namespace npurt::ops::det {
namespace {

absl::Status Infer(InferContext& context) {
  const SymDims& in = context.shape(0);
  const std::size_t rank = in.size();
  if (rank < 2 || (in[rank - 1].is_constant() && in[rank - 2].is_constant() &&
                   in[rank - 1] != in[rank - 2]))
    return absl::InvalidArgumentError(
        absl::StrCat("the input has shape ", ShapeString(in), ", want square matrices"));
  context.set_output(0, context.dtype(0), SymDims(in.begin(), in.end() - 2));
  return absl::OkStatus();
}

// Gaussian elimination with the largest pivot of the column.
double Determinant(std::vector<double>& m, std::size_t n, Poller* poller) {
  double det = 1;
  for (std::size_t k = 0; k < n; ++k) {
    std::size_t pivot = k;
    for (std::size_t i = k + 1; i < n; ++i)
      if (std::fabs(m[i * n + k]) > std::fabs(m[pivot * n + k])) pivot = i;
    if (m[pivot * n + k] == 0) return 0;
    if (pivot != k) {
      det = -det;
      for (std::size_t j = 0; j < n; ++j) std::swap(m[k * n + j], m[pivot * n + j]);
    }
    det *= m[k * n + k];
    for (std::size_t i = k + 1; i < n; ++i) {
      const double factor = m[i * n + k] / m[k * n + k];
      for (std::size_t j = k + 1; j < n; ++j) m[i * n + j] -= factor * m[k * n + j];
      poller->CountOrThrow(static_cast<std::int64_t>(n - k));
    }
  }
  return det;
}

absl::Status Reference(const RunContext& run, std::int64_t, void*) {
  const auto dims = run.dims(0);
  const std::int64_t n = dims[dims.size() - 1];
  if (dims[dims.size() - 2] != n)
    return absl::InvalidArgumentError(
        absl::StrCat("the input has shape ", ShapeString(dims), ", want square matrices"));
  Poller poller(run);
  std::vector<double> matrix(static_cast<std::size_t>(n * n));
  for (std::int64_t b = 0; b < run.output_count_of(0); ++b) {
    for (std::int64_t i = 0; i < n * n; ++i)
      matrix[static_cast<std::size_t>(i)] = RealAt(run, 0, b * n * n + i);
    StoreReal(run, 0, b, Determinant(matrix, static_cast<std::size_t>(n), &poller));
  }
  return absl::OkStatus();
}

}  // namespace

extern constexpr OpDef kOp = {
    .name = "Det",
    .inputs = {{"x", "T"}},
    .outputs = {{"y", "T"}},
    .types = {{"T", kFloats}},
    .infer = Infer,
    .reference = Reference,
};

}  // namespace npurt::ops::det
