// TopK: the k largest (or smallest) elements along `axis` and their indices; of equal ones the lower
// index comes first. NaN counts as larger than every number.
#include <algorithm>
#include <cmath>
#include <memory>

#include "absl/strings/str_cat.h"
#include "ops/move.h"
#include "ops/poller.h"

namespace npurt::ops::top_k {
namespace {

// Operations, roughly, of comparing two elements that lie anywhere.
constexpr std::int64_t kComparison = 64;

absl::Status Infer(InferContext& context) {
  NPURT_RETURN_IF_ERROR(WantRank(context, 1, 1));
  NPURT_ASSIGN_OR_RETURN(const int axis,
                         NormalizeAxis(context.attributes().Int("axis", -1), context.rank(0)));
  SymDims out = context.shape(0);
  const auto k = context.integers(1);
  if (k && k->size() != 1)
    return absl::InvalidArgumentError(absl::StrCat("k has ", k->size(), " elements, want 1"));
  if (k && (*k)[0].is_constant() &&
      ((*k)[0].value() < 0 || (out[axis].is_constant() && (*k)[0].value() > out[axis].value())))
    return absl::InvalidArgumentError(absl::StrCat("k is ", (*k)[0].value(), ", axis ", axis,
                                                   " of shape ", ShapeString(out)));
  out[axis] = k ? (*k)[0] : context.RunDim();
  context.set_output(0, context.dtype(0), out);
  context.set_output(1, DType::kI64, std::move(out));
  return absl::OkStatus();
}

template <typename T>
bool Larger(T a, T b) {
  if constexpr (Contains(kFloats, kDTypeOf<T>)) {
    const double x = static_cast<double>(a), y = static_cast<double>(b);
    return std::isnan(x) ? !std::isnan(y) : x > y;
  } else {
    return a > b;
  }
}

template <typename T>
struct Reference {
  static absl::Status Run(const RunContext& run) {
    const auto in = run.dims(0);
    std::int64_t a = run.attributes().Int("axis", -1);
    if (a < 0) a += run.input(0).rank;
    const int axis = static_cast<int>(a);
    const bool largest = run.attributes().Int("largest", 1) != 0;
    const bool sorted = run.attributes().Int("sorted", 1) != 0;
    const std::int64_t dim = in[static_cast<std::size_t>(axis)];
    if (run.count(1) != 1) return absl::InvalidArgumentError("k must be one number");
    const std::int64_t k = IndexAt(run, 1, 0);
    if (k < 0 || k > dim)
      return absl::InvalidArgumentError(
          absl::StrCat("k is ", k, ", axis ", axis, " has ", dim, " elements"));
    for (int i = 0; i < 2; ++i) {
      if (!run.has_output(i) || run.output(i).data != nullptr) continue;
      Dims dims(in.begin(), in.end());
      dims[axis] = k;
      NPURT_RETURN_IF_ERROR(run.AllocateOutput(i, dims));
    }
    const std::int64_t outer = ProductOf(in, 0, axis);
    const std::int64_t inner = ProductOf(in, axis + 1, run.input(0).rank);
    // Not vectors, which write zeros first, all of a long row at a time.
    const auto row = std::make_unique_for_overwrite<T[]>(static_cast<std::size_t>(dim));
    const auto order = std::make_unique_for_overwrite<std::int64_t[]>(static_cast<std::size_t>(dim));
    std::int64_t *const begin = order.get(), *const middle = begin + k, *const end = begin + dim;
    Poller poller(run);
    const auto before = [&](std::int64_t i, std::int64_t j) {
      poller.CountOrThrow(kComparison);
      const T x = row[static_cast<std::size_t>(i)], y = row[static_cast<std::size_t>(j)];
      if (largest ? Larger(x, y) : Larger(y, x)) return true;
      if (largest ? Larger(y, x) : Larger(x, y)) return false;
      return i < j;
    };
    const auto in_place = [&](std::int64_t i, std::int64_t j) {
      poller.CountOrThrow(Poller::kComparison);
      return i < j;
    };
    for (std::int64_t o = 0; o < outer; ++o) {
      for (std::int64_t i = 0; i < inner; ++i) {
        for (std::int64_t d = 0; d < dim; ++d) {
          row[static_cast<std::size_t>(d)] = run.Load<T>(0, (o * dim + d) * inner + i);
          order[static_cast<std::size_t>(d)] = d;
        }
        if (k < dim) std::nth_element(begin, middle, end, before);
        if (sorted)
          std::sort(begin, middle, before);
        else
          std::sort(begin, middle, in_place);  // any order will do; this one is the same everywhere
        for (std::int64_t d = 0; d < k; ++d) {
          const std::int64_t to = (o * k + d) * inner + i;
          const std::int64_t from = order[static_cast<std::size_t>(d)];
          if (run.has_output(0)) run.Store<T>(0, to, row[static_cast<std::size_t>(from)]);
          if (run.has_output(1)) run.Store<std::int64_t>(1, to, from);
        }
      }
    }
    return absl::OkStatus();
  }
};

}  // namespace

extern constexpr OpDef kOp = {
    .name = "TopK",
    .inputs = {{"x", "T"}, {"k", "int64"}},
    .outputs = {{"values", "T"}, {"indices", "int64"}},
    .types = {{"T", kNumbers}},
    .attributes = {{"axis", AttrKind::kInt},
                   {"largest", AttrKind::kInt},
                   {"sorted", AttrKind::kInt}},
    .engine = Engine::kAiCpu,
    .infer = Infer,
    .reference = ForEachType<Reference, kNumbers>,
};

}  // namespace npurt::ops::top_k
