// NonZero: the indices of the elements that are not zero, one column each, in row-major order.
#include "ops/move.h"

namespace npurt::ops::non_zero {
namespace {

absl::Status Infer(InferContext& context) {
  context.set_output(0, DType::kI64, {Dim(std::int64_t{context.rank(0)}), context.RunDim()});
  return absl::OkStatus();
}

template <typename T>
bool IsZero(const T& value) {
  if constexpr (std::is_same_v<T, std::string>) return value.empty();
  else return value == T(0);
}

template <typename T>
struct Reference {
  static absl::Status Run(const RunContext& run) {
    const auto dims = run.dims(0);
    std::int64_t count = 0;
    for (std::int64_t i = 0; i < run.count(0); ++i) count += !IsZero(run.Load<T>(0, i));
    NPURT_RETURN_IF_ERROR(run.AllocateOutput(0, {std::int64_t{run.input(0).rank}, count}));
    const Dims strides = StridesOf(dims);
    std::int64_t column = 0;
    for (std::int64_t i = 0; i < run.count(0); ++i) {
      if (IsZero(run.Load<T>(0, i))) continue;
      for (std::size_t d = 0; d < dims.size(); ++d)
        run.Store<std::int64_t>(0, static_cast<std::int64_t>(d) * count + column,
                                i / strides[d] % dims[d]);
      ++column;
    }
    return absl::OkStatus();
  }
};

constexpr DTypeSet kTypes = kPlainTypes | kStrings;

}  // namespace

extern constexpr OpDef kOp = {
    .name = "NonZero",
    .inputs = {{"x", "T"}},
    .outputs = {{"y", "int64"}},
    .types = {{"T", kTypes}},
    .engine = Engine::kAiCpu,
    .infer = Infer,
    .reference = ForEachType<Reference, kTypes>,
};

}  // namespace npurt::ops::non_zero
