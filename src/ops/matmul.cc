// MatMul: C[..., m, n] = sum over k of A[..., m, k] * B[..., k, n]; batch dimensions broadcast. A
// vector A is a row, a vector B a column, and that dimension leaves the result. The fuse pass may
// add a bias per column, a residual of C's shape and an activation, in this order.
#include "absl/strings/str_cat.h"
#include "base/checked_math.h"
#include "kernels/gemm/gemm.h"
#include "ops/epilogue.h"
#include "ops/op_def.h"
#include "ops/poller.h"

namespace npurt::ops::matmul {
namespace {

constexpr int kBias = 2, kResidual = 3;
constexpr DTypeSet kTypes = kFloats | DTypes(DType::kI32, DType::kI64, DType::kU32, DType::kU64);

// Dimensions of one operand with rank 1 made a matrix. Works for Dim and int64.
template <typename D>
struct Operand {
  absl::Span<const D> batch;
  D rows, columns;
};
template <typename D>
Operand<D> OperandOf(absl::Span<const D> dims, bool left) {
  if (dims.size() == 1) return left ? Operand<D>{{}, D(1), dims[0]} : Operand<D>{{}, dims[0], D(1)};
  return {dims.subspan(0, dims.size() - 2), dims[dims.size() - 2], dims[dims.size() - 1]};
}

absl::Status Infer(InferContext& context) {
  const SymDims &a_dims = context.shape(0), &b_dims = context.shape(1);
  if (a_dims.empty() || b_dims.empty())
    return absl::InvalidArgumentError(absl::StrCat("got shapes ", ShapeString(a_dims), " and ",
                                                   ShapeString(b_dims), ", want no scalars"));
  const auto a = OperandOf<Dim>(a_dims, true), b = OperandOf<Dim>(b_dims, false);
  if (a.columns.is_constant() && b.rows.is_constant() && a.columns != b.rows)
    return absl::InvalidArgumentError(
        absl::StrCat("A ", ShapeString(a_dims), " has ", a.columns.ToString(), " columns, B ",
                     ShapeString(b_dims), " has ", b.rows.ToString(), " rows"));
  NPURT_ASSIGN_OR_RETURN(SymDims out, BroadcastShapes(a.batch, b.batch));
  if (a_dims.size() > 1) out.push_back(a.rows);
  if (b_dims.size() > 1) out.push_back(b.columns);
  context.set_output(0, context.dtype(0), std::move(out));
  return absl::OkStatus();
}

// Everything about concrete sizes. One dimension of the batch, both operands' strides in matrices.
struct BatchDim {
  std::int64_t size, a_stride, b_stride;
};
struct Sizes {
  std::int64_t m, n, k;
  absl::InlinedVector<BatchDim, 6> batch;  // outermost first; none of size 1; mergeable ones merged
  std::int64_t batch_count = 1;
  // A bias runs along the last dimension of the result: rows, if B is a vector.
  bool bias_per_row = false;
};

absl::StatusOr<Sizes> SizesOf(absl::Span<const std::int64_t> a_dims,
                              absl::Span<const std::int64_t> b_dims) {
  const auto a = OperandOf<std::int64_t>(a_dims, true), b = OperandOf<std::int64_t>(b_dims, false);
  if (a.columns != b.rows)
    return absl::InvalidArgumentError(absl::StrCat("A ", ShapeString(a_dims), " has ", a.columns,
                                                   " columns, B ", ShapeString(b_dims), " has ",
                                                   b.rows, " rows"));
  Sizes s{a.rows, b.columns, a.columns, {}, 1, b_dims.size() == 1};
  const std::size_t rank = std::max(a.batch.size(), b.batch.size());
  std::int64_t a_count = 1, b_count = 1;
  absl::InlinedVector<BatchDim, 6> innermost_first;
  for (std::size_t i = 1; i <= rank; ++i) {
    const std::int64_t x = i <= a.batch.size() ? a.batch[a.batch.size() - i] : 1;
    const std::int64_t y = i <= b.batch.size() ? b.batch[b.batch.size() - i] : 1;
    if (x != y && x != 1 && y != 1)
      return absl::InvalidArgumentError(
          absl::StrCat("A ", ShapeString(a_dims), " and B ", ShapeString(b_dims),
                       " have batch dimensions that do not broadcast"));
    const BatchDim dim{x == 1 ? y : x, x == 1 ? 0 : a_count, y == 1 ? 0 : b_count};
    a_count *= x;
    b_count *= y;
    s.batch_count *= dim.size;
    if (dim.size == 1) continue;
    if (!innermost_first.empty()) {
      BatchDim& last = innermost_first.back();
      if (dim.a_stride == last.size * last.a_stride && dim.b_stride == last.size * last.b_stride) {
        last.size *= dim.size;
        continue;
      }
    }
    innermost_first.push_back(dim);
  }
  s.batch.assign(innermost_first.rbegin(), innermost_first.rend());
  return s;
}

absl::Status CheckEpilogueInputs(const Sizes& s, std::int64_t bias, std::int64_t residual) {
  const std::int64_t want_bias = s.bias_per_row ? s.m : s.n;
  if (bias != want_bias && bias != -1)
    return absl::InvalidArgumentError(
        absl::StrCat("bias has ", bias, " elements, want ", want_bias));
  if (residual != s.batch_count * s.m * s.n && residual != -1)
    return absl::InvalidArgumentError(
        absl::StrCat("residual has ", residual, " elements, want ", s.batch_count * s.m * s.n));
  return absl::OkStatus();
}

template <typename T>
struct Reference {
  static absl::Status Run(const RunContext& run) {
    NPURT_ASSIGN_OR_RETURN(const Sizes s, SizesOf(run.dims(0), run.dims(1)));
    const bool bias = run.has_input(kBias), residual = run.has_input(kResidual);
    NPURT_RETURN_IF_ERROR(
        CheckEpilogueInputs(s, bias ? run.count(kBias) : -1, residual ? run.count(kResidual) : -1));
    const kernels::Epilogue epilogue = EpilogueOf(run.attributes());
    Poller poller(run);
    for (std::int64_t matrix = 0; matrix < s.batch_count; ++matrix) {
      std::int64_t a = 0, b = 0, rest = matrix;
      for (auto dim = s.batch.rbegin(); dim != s.batch.rend(); ++dim) {
        a += rest % dim->size * dim->a_stride;
        b += rest % dim->size * dim->b_stride;
        rest /= dim->size;
      }
      for (std::int64_t m = 0; m < s.m; ++m)
        for (std::int64_t n = 0; n < s.n; ++n) {
          SumOf<T> sum = 0;
          for (std::int64_t k = 0; k < s.k; ++k)
            sum += static_cast<SumOf<T>>(run.Load<T>(0, (a * s.m + m) * s.k + k)) *
                   static_cast<SumOf<T>>(run.Load<T>(1, (b * s.k + k) * s.n + n));
          const std::int64_t out = (matrix * s.m + m) * s.n + n;
          if (bias) sum += static_cast<SumOf<T>>(run.Load<T>(kBias, s.bias_per_row ? m : n));
          if (residual) sum += static_cast<SumOf<T>>(run.Load<T>(kResidual, out));
          run.Store<T>(0, out, Finished<T>(epilogue, sum));
          NPURT_RETURN_IF_ERROR(poller.Count(s.k));
        }
    }
    return absl::OkStatus();
  }
};

struct PreparedMatMul : Prepared {
  const kernels::GemmKernel* gemm = nullptr;
  PackedBuffer b;                  // packed matrices of a constant B, or nothing
  std::int64_t packed_floats = 0;  // of one matrix
};

absl::StatusOr<std::unique_ptr<Prepared>> Prepare(PrepareContext& context) {
  if (context.type(0).dtype != DType::kF32) return nullptr;
  auto prepared = std::make_unique<PreparedMatMul>();
  prepared->gemm = kernels::SelectGemmKernel(MatrixIsa(context));
  prepared->kernel = prepared->gemm->name;
  const Tensor* b = context.constant(1);
  // Too few columns would mostly pack zeros.
  if (b == nullptr || b->rank() < 2 || b->element_count() == 0 ||
      b->dims().back() * 2 < prepared->gemm->tile_n)
    return prepared;
  const std::int64_t n = b->dims()[b->rank() - 1], k = b->dims()[b->rank() - 2];
  const std::int64_t matrices = b->element_count() / (n * k);
  prepared->packed_floats = kernels::PackedBSize(*prepared->gemm, k, n);
  std::int64_t floats;
  if (prepared->packed_floats == 0 || !CheckedMul(prepared->packed_floats, matrices, &floats) ||
      floats > (std::int64_t{1} << 60))
    return absl::ResourceExhaustedError("B is too large to pack");
  prepared->packed_bytes = static_cast<std::size_t>(floats) * sizeof(float);
  NPURT_ASSIGN_OR_RETURN(prepared->b, context.Pack(prepared->packed_bytes, [&](void* data) {
    for (std::int64_t i = 0; i < matrices; ++i)
      kernels::PackB(*prepared->gemm, k, n, static_cast<const float*>(b->data()) + i * n * k, n, 1,
                     1, static_cast<float*>(data) + i * prepared->packed_floats);
  }));
  context.DropConstant(1);
  return prepared;
}

struct Bound {
  kernels::GemmProblem problem;
  kernels::GemmTiling tiling;
  kernels::Epilogue epilogue;
  bool bias_per_row;
};

absl::Status Bind(BindContext& bind) {
  const auto* prepared = bind.prepared<PreparedMatMul>();
  NPURT_ASSIGN_OR_RETURN(const Sizes s, SizesOf(bind.dims(0), bind.dims(1)));
  NPURT_RETURN_IF_ERROR(
      CheckEpilogueInputs(s, bind.has_input(kBias) ? bind.count(kBias) : -1,
                          bind.has_input(kResidual) ? bind.count(kResidual) : -1));
  auto* bound = bind.New<Bound>();
  bound->epilogue = EpilogueOf(bind.attributes());
  kernels::GemmProblem& p = bound->problem;
  p = kernels::GemmProblem();
  p.m = s.m;
  p.n = s.n;
  p.k = s.k;
  p.a_row_stride = s.k;
  p.b_k_stride = s.n;
  p.packed_b = prepared->packed_floats > 0;
  const std::int64_t b_matrix = p.packed_b ? prepared->packed_floats : s.k * s.n;
  // The rows of all matrices times one B are one product, unless rows have a bias of their own.
  std::size_t dims = s.batch.size();
  bound->bias_per_row = s.bias_per_row;
  const bool may_merge = !s.bias_per_row || !bind.has_input(kBias);
  if (may_merge && dims > 0 && s.batch[dims - 1].b_stride == 0 && s.batch[dims - 1].a_stride == 1)
    p.m *= s.batch[--dims].size;
  if (dims > static_cast<std::size_t>(kernels::kGemmMaxBatchRank))
    return absl::UnimplementedError(
        absl::StrCat("more than ", kernels::kGemmMaxBatchRank, " batch dimensions"));
  p.batch_rank = static_cast<int>(dims);
  for (std::size_t i = 0; i < dims; ++i) {
    p.batch_dims[i] = s.batch[i].size;
    p.a_batch_strides[i] = s.batch[i].a_stride * s.m * s.k;
    p.b_batch_strides[i] = s.batch[i].b_stride * b_matrix;
  }
  bound->tiling = kernels::PlanGemm(p, *prepared->gemm);
  bind.SetTiles(bound->tiling.tiles,
                CostOf(bound->tiling.flops_per_tile, bound->tiling.bytes_per_tile));
  bind.SetScratch(bound->tiling.scratch_bytes);
  return absl::OkStatus();
}

absl::Status Run(const RunContext& run, std::int64_t tile, void* scratch) {
  const auto* prepared = run.prepared<PreparedMatMul>();
  const auto* bound = run.bound<Bound>();
  kernels::GemmCall call{&bound->problem,
                         &bound->tiling,
                         run.in<float>(0),
                         nullptr,
                         run.out<float>(0),
                         bound->epilogue,
                         0};
  call.b = bound->problem.packed_b ? prepared->b.as<float>() : run.in<float>(1);
  if (run.has_input(kBias))
    (bound->bias_per_row ? call.epilogue.row_bias : call.epilogue.column_bias) =
        run.in<float>(kBias);
  if (run.has_input(kResidual)) {
    call.epilogue.residual = run.in<float>(kResidual);
    call.epilogue.residual_stride = bound->problem.n;
    call.residual_batch_stride = bound->problem.m * bound->problem.n;
  }
  call.stop = StopCheckOf(run);
  kernels::RunGemmTile(call, tile, scratch);
  return absl::OkStatus();
}

}  // namespace

extern constexpr OpDef kOp = {
    .name = "MatMul",
    .inputs = {{"a", "T"}, {"b", "T"}, {"?bias", "T"}, {"?residual", "T"}},
    .outputs = {{"c", "T"}},
    .types = {{"T", kTypes}},
    .attributes = {{"activation", AttrKind::kInt},
                   {"activation_alpha", AttrKind::kFloat},
                   {"activation_beta", AttrKind::kFloat}},
    .infer = Infer,
    .reference = ForEachType<Reference, kTypes>,
    .prepare = Prepare,
    .bind = Bind,
    .run = Run,
    .epilogue = {.activation = true, .bias_input = kBias, .residual_input = kResidual},
};

}  // namespace npurt::ops::matmul
