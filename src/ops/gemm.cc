// Gemm: Y = alpha * A' * B' + beta * C, where A' [m, k] and B' [k, n] may be transposed and C
// broadcasts to [m, n]. The fuse pass may add an activation.
#include "kernels/gemm/gemm.h"
#include "absl/strings/str_cat.h"
#include "base/checked_math.h"
#include "ops/epilogue.h"
#include "ops/op_def.h"
#include "ops/poller.h"

namespace npurt::ops::gemm {
namespace {

constexpr DTypeSet kTypes = kFloats | DTypes(DType::kI32, DType::kI64, DType::kU32, DType::kU64);

absl::Status Infer(InferContext& context) {
  const SymDims &a = context.shape(0), &b = context.shape(1);
  if (a.size() != 2 || b.size() != 2)
    return absl::InvalidArgumentError(
        absl::StrCat("got shapes ", ShapeString(a), " and ", ShapeString(b), ", want matrices"));
  const bool trans_a = context.attributes().Int("transA") != 0;
  const bool trans_b = context.attributes().Int("transB") != 0;
  const Dim m = a[trans_a ? 1 : 0], k = a[trans_a ? 0 : 1];
  const Dim n = b[trans_b ? 0 : 1], b_rows = b[trans_b ? 1 : 0];
  if (k.is_constant() && b_rows.is_constant() && k != b_rows)
    return absl::InvalidArgumentError(absl::StrCat("A' has ", k.ToString(), " columns, B' has ",
                                                   b_rows.ToString(), " rows (A ", ShapeString(a),
                                                   ", B ", ShapeString(b), ")"));
  if (context.has_input(2) && context.type(2).has_rank) {
    const SymDims& c = context.shape(2);
    bool fits = c.size() <= 2;
    for (std::size_t i = 0; fits && i < c.size(); ++i) {
      const Dim want = i + 1 == c.size() ? n : m;
      fits = !c[i].is_constant() || c[i].Is(1) || !want.is_constant() || c[i] == want;
    }
    if (!fits)
      return absl::InvalidArgumentError(absl::StrCat(
          "C ", ShapeString(c), " does not broadcast to [", m.ToString(), ", ", n.ToString(), "]"));
  }
  context.set_output(0, context.dtype(0), {m, n});
  return absl::OkStatus();
}

enum class Addend { kNone, kScalar, kPerRow, kPerColumn, kFull };

struct Sizes {
  std::int64_t m, n, k;
  std::int64_t a_row, a_k, b_k, b_column;  // strides
  Addend addend = Addend::kNone;
};

// `Context` is a BindContext or a RunContext.
template <typename Context>
absl::StatusOr<Sizes> SizesOf(const Context& context, const Attributes& attributes) {
  const auto a = context.dims(0), b = context.dims(1);
  const bool trans_a = attributes.Int("transA") != 0, trans_b = attributes.Int("transB") != 0;
  Sizes s;
  s.m = a[trans_a ? 1 : 0];
  s.k = a[trans_a ? 0 : 1];
  s.n = b[trans_b ? 0 : 1];
  s.a_row = trans_a ? 1 : s.k;
  s.a_k = trans_a ? s.m : 1;
  s.b_k = trans_b ? 1 : s.n;
  s.b_column = trans_b ? s.k : 1;
  if (b[trans_b ? 1 : 0] != s.k)
    return absl::InvalidArgumentError(absl::StrCat("A' has ", s.k, " columns, B' has ",
                                                   b[trans_b ? 1 : 0], " rows (A ", ShapeString(a),
                                                   ", B ", ShapeString(b), ")"));
  if (!context.has_input(2)) return s;
  const auto c = context.dims(2);
  const std::int64_t rows = c.size() < 2 ? 1 : c[0], columns = c.empty() ? 1 : c.back();
  if (c.size() > 2 || (rows != 1 && rows != s.m) || (columns != 1 && columns != s.n))
    return absl::InvalidArgumentError(
        absl::StrCat("C ", ShapeString(c), " does not broadcast to [", s.m, ", ", s.n, "]"));
  s.addend = rows == s.m && columns == s.n ? Addend::kFull
             : rows == 1 && columns == 1   ? Addend::kScalar
             : rows == 1                   ? Addend::kPerColumn
                                           : Addend::kPerRow;
  return s;
}

template <typename T>
struct Reference {
  static absl::Status Run(const RunContext& run) {
    NPURT_ASSIGN_OR_RETURN(const Sizes s, SizesOf(run, run.attributes()));
    const kernels::Epilogue epilogue = EpilogueOf(run.attributes());
    const float alpha = run.attributes().Float("alpha", 1),
                beta = run.attributes().Float("beta", 1);
    Poller poller(run);
    for (std::int64_t m = 0; m < s.m; ++m)
      for (std::int64_t n = 0; n < s.n; ++n) {
        SumOf<T> sum = 0;
        for (std::int64_t k = 0; k < s.k; ++k)
          sum += static_cast<SumOf<T>>(run.Load<T>(0, m * s.a_row + k * s.a_k)) *
                 static_cast<SumOf<T>>(run.Load<T>(1, k * s.b_k + n * s.b_column));
        sum = Scaled<T>(sum, alpha);
        if (s.addend != Addend::kNone) {
          const std::int64_t at = s.addend == Addend::kFull        ? m * s.n + n
                                  : s.addend == Addend::kPerRow    ? m
                                  : s.addend == Addend::kPerColumn ? n
                                                                   : 0;
          sum += Scaled<T>(static_cast<SumOf<T>>(run.Load<T>(2, at)), beta);
        }
        run.Store<T>(0, m * s.n + n, Finished<T>(epilogue, sum));
        NPURT_RETURN_IF_ERROR(poller.Count(s.k));
      }
    return absl::OkStatus();
  }

 private:
  // Integers by a whole factor stay exact.
  template <typename U>
  static SumOf<U> Scaled(SumOf<U> x, float factor) {
    if constexpr (std::is_integral_v<U>) {
      if (factor == 1) return x;
      const double product = static_cast<double>(static_cast<U>(x)) * static_cast<double>(factor);
      // Beyond int64 there is no right answer; this one is defined.
      if (!(product > -9.2e18 && product < 9.2e18)) return 0;
      return static_cast<SumOf<U>>(static_cast<std::int64_t>(product));
    } else {
      return x * static_cast<double>(factor);
    }
  }
};

struct PreparedGemm : Prepared {
  const kernels::GemmKernel* gemm = nullptr;
  PackedBuffer b;  // a constant B, or nothing
};

absl::StatusOr<std::unique_ptr<Prepared>> Prepare(PrepareContext& context) {
  if (context.type(0).dtype != DType::kF32) return nullptr;
  auto prepared = std::make_unique<PreparedGemm>();
  prepared->gemm = kernels::SelectGemmKernel(MatrixIsa(context));
  prepared->kernel = prepared->gemm->name;
  const Tensor* b = context.constant(1);
  if (b == nullptr || b->rank() != 2 || b->element_count() == 0) return prepared;
  const bool trans_b = context.attributes().Int("transB") != 0;
  const std::int64_t n = b->dims()[trans_b ? 0 : 1], k = b->dims()[trans_b ? 1 : 0];
  // Too few columns would mostly pack zeros; a transposed B would be packed in every run.
  if (n * 2 < prepared->gemm->tile_n && !trans_b) return prepared;
  const std::int64_t floats = kernels::PackedBSize(*prepared->gemm, k, n);
  if (floats == 0) return absl::ResourceExhaustedError("B is too large to pack");
  prepared->packed_bytes = static_cast<std::size_t>(floats) * sizeof(float);
  NPURT_ASSIGN_OR_RETURN(prepared->b, context.Pack(prepared->packed_bytes, [&](void* data) {
    kernels::PackB(*prepared->gemm, k, n, static_cast<const float*>(b->data()), trans_b ? 1 : n,
                   trans_b ? k : 1, 1, static_cast<float*>(data));
  }));
  context.DropConstant(1);
  return prepared;
}

struct Bound {
  kernels::GemmProblem problem;
  kernels::GemmTiling tiling;
  kernels::Epilogue epilogue;
  Addend addend;
  std::size_t spread_offset;  // kScalar: where the scratch holds C once per column
};

absl::Status Bind(BindContext& bind) {
  const auto* prepared = bind.prepared<PreparedGemm>();
  NPURT_ASSIGN_OR_RETURN(const Sizes s, SizesOf(bind, bind.attributes()));
  auto* bound = bind.New<Bound>();
  bound->epilogue = EpilogueOf(bind.attributes());
  bound->epilogue.scale = bind.attributes().Float("alpha", 1);
  bound->epilogue.bias_scale = bound->epilogue.residual_scale = bind.attributes().Float("beta", 1);
  bound->addend = s.addend;
  kernels::GemmProblem& p = bound->problem;
  p = kernels::GemmProblem();
  p.m = s.m;
  p.n = s.n;
  p.k = s.k;
  p.a_row_stride = s.a_row;
  p.a_k_stride = s.a_k;
  p.b_k_stride = s.b_k;
  p.b_column_stride = s.b_column;
  p.packed_b = prepared->b.data != nullptr;
  bound->tiling = kernels::PlanGemm(p, *prepared->gemm);
  std::size_t scratch = AlignUp<std::size_t>(bound->tiling.scratch_bytes, 64);
  bound->spread_offset = scratch;
  if (s.addend == Addend::kScalar) scratch += static_cast<std::size_t>(s.n) * sizeof(float);
  bind.SetTiles(bound->tiling.tiles,
                CostOf(bound->tiling.flops_per_tile, bound->tiling.bytes_per_tile));
  bind.SetScratch(scratch);
  return absl::OkStatus();
}

absl::Status Run(const RunContext& run, std::int64_t tile, void* scratch) {
  const auto* prepared = run.prepared<PreparedGemm>();
  const auto* bound = run.bound<Bound>();
  kernels::GemmCall call{&bound->problem,
                         &bound->tiling,
                         run.in<float>(0),
                         nullptr,
                         run.out<float>(0),
                         bound->epilogue,
                         0};
  call.b = bound->problem.packed_b ? prepared->b.as<float>() : run.in<float>(1);
  switch (bound->addend) {
    case Addend::kNone:
      break;
    case Addend::kScalar: {
      auto* spread = reinterpret_cast<float*>(static_cast<char*>(scratch) + bound->spread_offset);
      const float c = run.Load<float>(2, 0);
      for (std::int64_t i = 0; i < bound->problem.n; ++i) spread[i] = c;
      call.epilogue.column_bias = spread;
      break;
    }
    case Addend::kPerRow:
      call.epilogue.row_bias = run.in<float>(2);
      break;
    case Addend::kPerColumn:
      call.epilogue.column_bias = run.in<float>(2);
      break;
    case Addend::kFull:
      call.epilogue.residual = run.in<float>(2);
      call.epilogue.residual_stride = bound->problem.n;
      break;
  }
  call.stop = StopCheckOf(run);
  kernels::RunGemmTile(call, tile, scratch);
  return absl::OkStatus();
}

}  // namespace

extern constexpr OpDef kOp = {
    .name = "Gemm",
    .inputs = {{"a", "T"}, {"b", "T"}, {"?c", "T"}},
    .outputs = {{"y", "T"}},
    .types = {{"T", kTypes}},
    .attributes = {{"alpha", AttrKind::kFloat},
                   {"beta", AttrKind::kFloat},
                   {"transA", AttrKind::kInt},
                   {"transB", AttrKind::kInt},
                   {"activation", AttrKind::kInt},
                   {"activation_alpha", AttrKind::kFloat},
                   {"activation_beta", AttrKind::kFloat}},
    .infer = Infer,
    .reference = ForEachType<Reference, kTypes>,
    .prepare = Prepare,
    .bind = Bind,
    .run = Run,
    .epilogue = {.activation = true},
};

}  // namespace npurt::ops::gemm
