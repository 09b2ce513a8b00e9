// ScatterElements, ScatterND: a copy of `data` in which the elements (or blocks) at `indices` are
// replaced by those of `updates`, or combined with them: out[i] = reduction(out[i], update).
#include <cmath>

#include "absl/strings/str_cat.h"
#include "ops/move.h"

namespace npurt::ops::scatter {
namespace {

enum class Reduction { kNone, kAdd, kMul, kMax, kMin };

absl::StatusOr<Reduction> ReductionOf(const Attributes& attributes) {
  const std::string name = attributes.String("reduction", "none");
  if (name == "none") return Reduction::kNone;
  if (name == "add") return Reduction::kAdd;
  if (name == "mul") return Reduction::kMul;
  if (name == "max") return Reduction::kMax;
  if (name == "min") return Reduction::kMin;
  return absl::InvalidArgumentError(
      absl::StrCat("reduction is '", name, "', want none, add, mul, max or min"));
}

absl::Status CheckReduction(const InferContext& context) {
  NPURT_ASSIGN_OR_RETURN(const Reduction reduction, ReductionOf(context.attributes()));
  if (reduction != Reduction::kNone && !Contains(kPlainTypes, context.dtype(0)))
    return absl::InvalidArgumentError(
        absl::StrCat("no reduction of ", DTypeName(context.dtype(0))));
  return absl::OkStatus();
}

template <typename T>
T Combine(Reduction reduction, T a, T b) {
  if constexpr (std::is_same_v<T, bool>) {
    return reduction == Reduction::kAdd || reduction == Reduction::kMax ? (a || b) : (a && b);
  } else if constexpr (Contains(kFloats, kDTypeOf<T>)) {
    const double x = static_cast<double>(a), y = static_cast<double>(b);
    switch (reduction) {
      case Reduction::kAdd:
        return static_cast<T>(x + y);
      case Reduction::kMul:
        return static_cast<T>(x * y);
      case Reduction::kMax:  // NaN wins
        return std::isnan(x) || x > y ? a : b;
      default:
        return std::isnan(x) || x < y ? a : b;
    }
  } else {
    using U = std::make_unsigned_t<T>;
    switch (reduction) {
      case Reduction::kAdd:  // wraps
        return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
      case Reduction::kMul:
        return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
      case Reduction::kMax:
        return a > b ? a : b;
      default:
        return a < b ? a : b;
    }
  }
}

// Puts `count` updates from `from` on into the output from `to` on.
void Put(const RunContext& run, Reduction reduction, std::int64_t to, std::int64_t from,
         std::int64_t count) {
  if (reduction == Reduction::kNone) {
    CopyElements(run.dtype(0), run.output(0).data, to, run.input(2).data, from, count);
    return;
  }
  DispatchDType<kPlainTypes>(run.dtype(0), [&](auto type) {
    using T = decltype(type);
    char* out = run.out<char>(0) + to * static_cast<std::int64_t>(sizeof(T));
    for (std::int64_t i = 0; i < count; ++i) {
      T old;
      std::memcpy(&old, out + i * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
      const T value = Combine<T>(reduction, old, run.Load<T>(2, from + i));
      std::memcpy(out + i * static_cast<std::int64_t>(sizeof(T)), &value, sizeof(T));
    }
  });
}

void CopyData(const RunContext& run) {
  CopyElements(run.dtype(0), run.output(0).data, 0, run.input(0).data, 0, run.count(0));
}

absl::Status Mismatch(absl::Span<const std::int64_t> data, absl::Span<const std::int64_t> indices,
                      absl::Span<const std::int64_t> updates) {
  return absl::InvalidArgumentError(
      absl::StrCat("data, indices and updates of shapes ", ShapeString(data), ", ",
                   ShapeString(indices), " and ", ShapeString(updates), " do not fit"));
}

absl::Status InferElements(InferContext& context) {
  NPURT_RETURN_IF_ERROR(CheckReduction(context));
  NPURT_RETURN_IF_ERROR(
      NormalizeAxis(context.attributes().Int("axis", 0), context.rank(0)));
  const SymDims &data = context.shape(0), &indices = context.shape(1), &updates = context.shape(2);
  bool fits = data.size() == indices.size() && data.size() == updates.size();
  for (std::size_t d = 0; fits && d < indices.size(); ++d)
    fits = !indices[d].is_constant() || !updates[d].is_constant() || indices[d] == updates[d];
  if (!fits)
    return absl::InvalidArgumentError(
        absl::StrCat("data, indices and updates of shapes ", ShapeString(data), ", ",
                     ShapeString(indices), " and ", ShapeString(updates), " do not fit"));
  context.set_output(0, context.dtype(0), data);
  return absl::OkStatus();
}

absl::Status ReferenceElements(const RunContext& run, std::int64_t, void*) {
  NPURT_ASSIGN_OR_RETURN(const Reduction reduction, ReductionOf(run.attributes()));
  const auto data = run.dims(0), dims = run.dims(1);
  std::int64_t a = run.attributes().Int("axis", 0);
  if (a < 0) a += run.input(0).rank;
  const std::size_t axis = static_cast<std::size_t>(a);
  bool fits = dims == run.dims(2);
  for (std::size_t d = 0; fits && d < dims.size(); ++d)
    fits = d == axis || dims[d] <= data[d] || run.count(1) == 0;
  if (!fits) return Mismatch(data, dims, run.dims(2));
  CopyData(run);
  if (run.count(1) == 0) return absl::OkStatus();
  const Dims strides = StridesOf(data);
  Dims index(dims.size());
  std::int64_t from = 0;
  do {
    NPURT_RETURN_IF_ERROR(PollAt(run, from));
    std::int64_t at = IndexAt(run, 1, from);
    if (!WrapIndex(&at, data[axis])) return IndexError(at, data[axis]);
    std::int64_t to = at * strides[axis];
    for (std::size_t d = 0; d < dims.size(); ++d)
      if (d != axis) to += index[d] * strides[d];
    Put(run, reduction, to, from++, 1);
  } while (NextIndex(dims, absl::MakeSpan(index)));
  return absl::OkStatus();
}

absl::Status InferNd(InferContext& context) {
  NPURT_RETURN_IF_ERROR(CheckReduction(context));
  const SymDims &data = context.shape(0), &indices = context.shape(1);
  if (data.empty() || indices.empty())
    return absl::InvalidArgumentError("data and indices must not be scalars");
  const Dim depth = indices.back();
  if (depth.is_constant()) {
    if (depth.value() < 0 || depth.value() > context.rank(0))
      return absl::InvalidArgumentError(absl::StrCat("indices of shape ", ShapeString(indices),
                                                     " have ", depth.value(), " places, data ",
                                                     ShapeString(data), " has ",
                                                     context.rank(0)));
    SymDims want(indices.begin(), indices.end() - 1);
    want.insert(want.end(), data.begin() + depth.value(), data.end());
    const SymDims& updates = context.shape(2);
    bool fits = updates.size() == want.size();
    for (std::size_t d = 0; fits && d < want.size(); ++d)
      fits = !updates[d].is_constant() || !want[d].is_constant() || updates[d] == want[d];
    if (!fits)
      return absl::InvalidArgumentError(absl::StrCat(
          "updates have shape ", ShapeString(updates), ", want ", ShapeString(want)));
  }
  context.set_output(0, context.dtype(0), data);
  return absl::OkStatus();
}

absl::Status ReferenceNd(const RunContext& run, std::int64_t, void*) {
  NPURT_ASSIGN_OR_RETURN(const Reduction reduction, ReductionOf(run.attributes()));
  const auto data = run.dims(0), dims = run.dims(1);
  const std::int64_t depth = dims[dims.size() - 1];
  if (depth > run.input(0).rank) return Mismatch(data, dims, run.dims(2));
  const std::int64_t rows = ProductOf(dims, 0, run.input(1).rank - 1);
  const std::int64_t block = ProductOf(data, static_cast<int>(depth), run.input(0).rank);
  if (run.count(2) != rows * block) return Mismatch(data, dims, run.dims(2));
  CopyData(run);
  std::int64_t next = 0;
  for (std::int64_t i = 0; i < rows; ++i) {
    NPURT_RETURN_IF_ERROR(PollAt(run, i));
    std::int64_t to = 0;
    for (std::int64_t d = 0; d < depth; ++d) {
      const std::int64_t limit = data[static_cast<std::size_t>(d)];
      std::int64_t at = IndexAt(run, 1, next++);
      if (!WrapIndex(&at, limit)) return IndexError(at, limit);
      to = to * limit + at;
    }
    Put(run, reduction, to * block, i * block, block);
  }
  return absl::OkStatus();
}

// The copy of `data` is saved where the planner lets the output overwrite it.
absl::Status Bind(BindContext& bind) {
  bind.SetTiles(1, 0);
  if (bind.dtype(0) != DType::kString) bind.MayOverwrite(0, 0);
  return absl::OkStatus();
}

}  // namespace

extern constexpr OpDef kOps[] = {
    {
        .name = "ScatterElements",
        .inputs = {{"data", "T"}, {"indices", "I"}, {"updates", "T"}},
        .outputs = {{"output", "T"}},
        .types = {{"T", kAnyType}, {"I", DTypes(DType::kI32, DType::kI64)}},
        .attributes = {{"axis", AttrKind::kInt}, {"reduction", AttrKind::kString}},
        .infer = InferElements,
        .reference = ReferenceElements,
        .bind = Bind,
    },
    {
        .name = "ScatterND",
        .inputs = {{"data", "T"}, {"indices", "int64"}, {"updates", "T"}},
        .outputs = {{"output", "T"}},
        .types = {{"T", kAnyType}},
        .attributes = {{"reduction", AttrKind::kString}},
        .infer = InferNd,
        .reference = ReferenceNd,
        .bind = Bind,
    },
};
extern constexpr int kOpCount = static_cast<int>(sizeof kOps / sizeof kOps[0]);

}  // namespace npurt::ops::scatter
