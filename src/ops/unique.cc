// Unique: the different elements (or slices along `axis`), sorted or in order of appearance, with the
// index where each first appears, the place of each input among them, and how often each comes.
#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "ops/move.h"

namespace npurt::ops::unique {
namespace {

absl::Status Infer(InferContext& context) {
  const Dim count = context.RunDim();
  SymDims out = {count};
  if (context.attributes().Has("axis")) {
    NPURT_ASSIGN_OR_RETURN(const int axis,
                           NormalizeAxis(context.attributes().Int("axis"), context.rank(0)));
    out = context.shape(0);
    out[axis] = count;
  }
  context.set_output(0, context.dtype(0), std::move(out));
  context.set_output(1, DType::kI64, {count});
  context.set_output(2, DType::kI64, {context.RunDim()});
  context.set_output(3, DType::kI64, {count});
  return absl::OkStatus();
}

template <typename T>
int Compare(const T& a, const T& b) {
  if constexpr (std::is_same_v<T, std::string>) {
    return a.compare(b);
  } else {
    const bool a_nan = a != a, b_nan = b != b;  // NaN is equal to itself here and comes last
    if (a_nan || b_nan) return static_cast<int>(a_nan) - static_cast<int>(b_nan);
    return static_cast<int>(b < a) - static_cast<int>(a < b);
  }
}

template <typename T>
struct Reference {
  static absl::Status Run(const RunContext& run) {
    const auto in = run.dims(0);
    const bool sorted = run.attributes().Int("sorted", 1) != 0;
    const bool whole = !run.attributes().Has("axis");
    int axis = 0;
    if (!whole) {
      NPURT_ASSIGN_OR_RETURN(axis, NormalizeAxis(run.attributes().Int("axis"), run.input(0).rank));
    }
    const std::int64_t dim = whole ? run.count(0) : in[static_cast<std::size_t>(axis)];
    const std::int64_t outer = whole ? 1 : ProductOf(in, 0, axis);
    const std::int64_t inner = whole ? 1 : ProductOf(in, axis + 1, run.input(0).rank);
    const auto compare = [&](std::int64_t i, std::int64_t j) {
      for (std::int64_t o = 0; o < outer; ++o)
        for (std::int64_t k = 0; k < inner; ++k) {
          const int order = Compare(run.Load<T>(0, (o * dim + i) * inner + k),
                                    run.Load<T>(0, (o * dim + j) * inner + k));
          if (order != 0) return order;
        }
      return 0;
    };
    std::vector<std::int64_t> order(static_cast<std::size_t>(dim));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::int64_t i, std::int64_t j) { return compare(i, j) < 0; });
    // Groups of equal slices in sorted order: the first index of each, and its members.
    std::vector<std::int64_t> first, counts, group(order.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (i == 0 || compare(order[i - 1], order[i]) != 0) {
        first.push_back(order[i]);
        counts.push_back(0);
      }
      ++counts.back();
      group[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(first.size()) - 1;
    }
    const std::int64_t count = static_cast<std::int64_t>(first.size());
    std::vector<std::int64_t> rank(first.size()), by_rank(first.size());
    std::iota(by_rank.begin(), by_rank.end(), 0);
    if (!sorted)
      std::sort(by_rank.begin(), by_rank.end(), [&](std::int64_t i, std::int64_t j) {
        return first[static_cast<std::size_t>(i)] < first[static_cast<std::size_t>(j)];
      });
    for (std::size_t i = 0; i < by_rank.size(); ++i)
      rank[static_cast<std::size_t>(by_rank[i])] = static_cast<std::int64_t>(i);

    Dims dims = {count};
    if (!whole) {
      dims.assign(in.begin(), in.end());
      dims[axis] = count;
    }
    if (run.has_output(0)) {
      NPURT_RETURN_IF_ERROR(run.AllocateOutput(0, dims));
      for (std::int64_t o = 0; o < outer; ++o)
        for (std::int64_t i = 0; i < count; ++i)
          CopyElements(run.dtype(0), run.output(0).data, (o * count + i) * inner,
                       run.input(0).data,
                       (o * dim + first[static_cast<std::size_t>(by_rank[i])]) * inner, inner);
    }
    const auto store = [&](int output, std::int64_t n, auto value) -> absl::Status {
      if (!run.has_output(output)) return absl::OkStatus();
      NPURT_RETURN_IF_ERROR(run.AllocateOutput(output, {n}));
      for (std::int64_t i = 0; i < n; ++i) run.Store<std::int64_t>(output, i, value(i));
      return absl::OkStatus();
    };
    NPURT_RETURN_IF_ERROR(store(1, count, [&](std::int64_t i) { return first[by_rank[i]]; }));
    NPURT_RETURN_IF_ERROR(store(2, dim, [&](std::int64_t i) { return rank[group[i]]; }));
    return store(3, count, [&](std::int64_t i) { return counts[by_rank[i]]; });
  }
};

constexpr DTypeSet kTypes = kPlainTypes | kStrings;

}  // namespace

extern constexpr OpDef kOp = {
    .name = "Unique",
    .inputs = {{"x", "T"}},
    .outputs = {{"y", "T"},
                {"?indices", "int64"},
                {"?inverse_indices", "int64"},
                {"?counts", "int64"}},
    .types = {{"T", kTypes}},
    .attributes = {{"axis", AttrKind::kInt}, {"sorted", AttrKind::kInt}},
    .engine = Engine::kAiCpu,
    .infer = Infer,
    .reference = ForEachType<Reference, kTypes>,
};

}  // namespace npurt::ops::unique
