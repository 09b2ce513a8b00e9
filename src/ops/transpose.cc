// Transpose: output axis i is input axis perm[i]; without `perm` the axes are reversed.
#include "kernels/transpose/transpose.h"

#include "absl/strings/str_cat.h"
#include "ops/around_axis.h"
#include "ops/move.h"

namespace npurt::ops::transpose {
namespace {

absl::StatusOr<Dims> Permutation(const Attributes& attributes, int rank) {
  const absl::Span<const std::int64_t> given = attributes.Ints("perm");
  Dims perm(given.begin(), given.end());
  if (!attributes.Has("perm"))
    for (int i = rank - 1; i >= 0; --i) perm.push_back(i);
  if (static_cast<int>(perm.size()) != rank)
    return absl::InvalidArgumentError(
        absl::StrCat("perm has ", perm.size(), " axes, the input has ", rank));
  std::vector<bool> seen(perm.size());
  for (std::int64_t& p : perm) {
    NPURT_ASSIGN_OR_RETURN(p, NormalizeAxis(p, rank));
    if (seen[static_cast<std::size_t>(p)])
      return absl::InvalidArgumentError(absl::StrCat("perm names axis ", p, " twice"));
    seen[static_cast<std::size_t>(p)] = true;
  }
  return perm;
}

absl::Status Infer(InferContext& context) {
  NPURT_ASSIGN_OR_RETURN(const Dims perm, Permutation(context.attributes(), context.rank(0)));
  SymDims out;
  for (std::int64_t p : perm) out.push_back(context.shape(0)[static_cast<std::size_t>(p)]);
  context.set_output(0, context.dtype(0), std::move(out));
  return absl::OkStatus();
}

absl::Status Reference(const RunContext& run, std::int64_t, void*) {
  NPURT_ASSIGN_OR_RETURN(const Dims perm, Permutation(run.attributes(), run.input(0).rank));
  const Dims strides = StridesOf(run.dims(0));
  Dims at(perm.size(), 0);
  for (std::int64_t i = 0; i < run.count(0); ++i) {
    NPURT_RETURN_IF_ERROR(PollAt(run, i));
    std::int64_t from = 0;
    for (std::size_t a = 0; a < perm.size(); ++a)
      from += at[a] * strides[static_cast<std::size_t>(perm[a])];
    CopyElements(run.dtype(0), run.output(0).data, i, run.input(0).data, from, 1);
    NextIndex(run.output_dims(0), absl::MakeSpan(at));
  }
  return absl::OkStatus();
}

struct State final : Prepared {
  IsaSet isa = isa::kGeneric;
};

absl::StatusOr<std::unique_ptr<Prepared>> Prepare(PrepareContext& context) {
  const DType dtype = context.type(0).dtype;
  // Strings are objects and packed elements no bytes.
  if (dtype == DType::kString || DTypeBits(dtype) < 8) return nullptr;
  if (context.type(0).has_rank && context.type(0).dims.size() > kernels::kTransposeMaxRank)
    return nullptr;
  auto state = std::make_unique<State>();
  state->isa = context.isa();  // moving bits is the same on every set
  state->kernel = "transpose";
  return state;
}

absl::Status Bind(BindContext& context) {
  const absl::Span<const std::int64_t> dims = context.dims(0);
  NPURT_ASSIGN_OR_RETURN(const Dims perm,
                         Permutation(context.attributes(), static_cast<int>(dims.size())));
  auto* plan = context.New<kernels::TransposePlan>();
  if (!kernels::PlanTranspose(dims.data(), perm.data(), static_cast<int>(dims.size()),
                              static_cast<std::size_t>(DTypeBits(context.dtype(0)) / 8),
                              context.prepared<State>()->isa, plan))
    return absl::UnimplementedError(absl::StrCat("a transpose of rank ", dims.size()));
  context.SetTiles(plan->tiles, static_cast<double>(plan->tile_bytes) / 10);
  if (plan->kind == kernels::TransposePlan::Kind::kCopy) context.MayView(0, 0, 0);
  return absl::OkStatus();
}

absl::Status Run(const RunContext& run, std::int64_t tile, void*) {
  if (run.input(0).data == run.output(0).data) return absl::OkStatus();
  kernels::RunTransposeTile(*run.bound<kernels::TransposePlan>(), run.in<void>(0),
                            run.out<void>(0), tile);
  return absl::OkStatus();
}

}  // namespace

extern constexpr OpDef kOp = {
    .name = "Transpose",
    .inputs = {{"data", "T"}},
    .outputs = {{"transposed", "T"}},
    .types = {{"T", kAnyType}},
    .attributes = {{"perm", AttrKind::kInts}},
    .infer = Infer,
    .reference = Reference,
    .prepare = Prepare,
    .bind = Bind,
    .run = Run,
};

}  // namespace npurt::ops::transpose
