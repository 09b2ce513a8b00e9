// MatMulInteger: y = (a - a_zero) x (b - b_zero) in int32. QLinearMatMul: the same, times a_scale *
// b_scale / y_scale, rounded, plus y_zero and saturated. Parameters of a may be one per row, those of
// b one per column. The fuse pass may add to QLinearMatMul an int32
// bias per column and a Relu: what is less than y_zero becomes y_zero.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "kernels/intgemm/intgemm.h"
#include "ops/epilogue.h"
#include "ops/move.h"
#include "ops/number_list.h"

namespace npurt::ops::integer_matmul {
namespace {

constexpr DTypeSet kBytes = DTypes(DType::kI8, DType::kU8);

// As in MatMul: a vector is a row (a) or a column (b), batch dimensions broadcast.
absl::StatusOr<SymDims> OutputDims(const SymDims& a, const SymDims& b) {
  const auto mismatch = [&] {
    return absl::InvalidArgumentError(
        absl::StrCat("A has shape ", ShapeString(a), ", B ", ShapeString(b)));
  };
  if (a.empty() || b.empty()) return mismatch();
  const Dim k = a.back(), bk = b.size() == 1 ? b[0] : b[b.size() - 2];
  if (k.is_constant() && bk.is_constant() && k != bk) return mismatch();
  SymDims batch_a, batch_b;
  if (a.size() > 2) batch_a.assign(a.begin(), a.end() - 2);
  if (b.size() > 2) batch_b.assign(b.begin(), b.end() - 2);
  NPURT_ASSIGN_OR_RETURN(SymDims out, BroadcastShapes(batch_a, batch_b));
  if (a.size() > 1) out.push_back(a[a.size() - 2]);
  if (b.size() > 1) out.push_back(b.back());
  return out;
}

struct Sizes {
  std::int64_t m, n, k;
  Dims batch, batch_a, batch_b;  // the last two padded with 1
};

absl::StatusOr<Sizes> SizesOf(absl::Span<const std::int64_t> a, absl::Span<const std::int64_t> b) {
  NPURT_ASSIGN_OR_RETURN(const SymDims out, OutputDims(ToSymDims(a), ToSymDims(b)));
  Sizes s;
  s.k = a.back();
  s.m = a.size() > 1 ? a[a.size() - 2] : 1;
  s.n = b.size() > 1 ? b.back() : 1;
  const std::size_t rank = out.size() - (a.size() > 1) - (b.size() > 1);
  s.batch = ToDims(absl::MakeConstSpan(out).subspan(0, rank));
  s.batch_a.assign(rank, 1);
  s.batch_b.assign(rank, 1);
  if (a.size() > 2) std::copy(a.begin(), a.end() - 2, s.batch_a.end() - (a.end() - a.begin() - 2));
  if (b.size() > 2) std::copy(b.begin(), b.end() - 2, s.batch_b.end() - (b.end() - b.begin() - 2));
  return s;
}

// A parameter that is one number, one per row (or column) of the matrix, or one per row of all.
struct Parameter {
  int input;
  std::int64_t count, each;

  double At(const RunContext& run, std::int64_t batch, std::int64_t i) const {
    if (count <= 1) return count == 0 ? 0 : LoadNumber(run.dtype(input), run.input(input).data, 0);
    return LoadNumber(run.dtype(input), run.input(input).data, count == each ? i : batch * each + i);
  }
};

absl::StatusOr<Parameter> ParameterOf(const RunContext& run, int input, std::int64_t batches,
                                      std::int64_t each) {
  const std::int64_t count = run.has_input(input) ? run.count(input) : 0;
  if (count <= 1 || count == each || count == batches * each) return Parameter{input, count, each};
  return absl::InvalidArgumentError(absl::StrCat("input ", input, " has shape ",
                                                 ShapeString(run.dims(input)), ", want 1 or ",
                                                 each, " elements"));
}

// Calls `row(batch of the output, batch of a, batch of b, m, sums)` with the n sums of each row.
template <typename Row>
absl::Status ForEachRow(const RunContext& run, const Sizes& s, int a_input, const Parameter& a_zero,
                        int b_input, const Parameter& b_zero, Row row) {
  const Dims strides_a = StridesOf(s.batch_a), strides_b = StridesOf(s.batch_b);
  std::vector<std::int32_t> b(static_cast<std::size_t>(s.k * s.n));
  std::vector<std::int32_t> sums(static_cast<std::size_t>(s.n));
  Dims index(s.batch.size());
  std::int64_t batch = 0, b_loaded = -1;
  if (run.output_count_of(0) == 0) return absl::OkStatus();
  do {
    std::int64_t batch_a = 0, batch_b = 0;
    for (std::size_t d = 0; d < index.size(); ++d) {
      if (s.batch_a[d] != 1) batch_a += index[d] * strides_a[d];
      if (s.batch_b[d] != 1) batch_b += index[d] * strides_b[d];
    }
    if (b_loaded != batch_b) {
      for (std::int64_t n = 0; n < s.n; ++n) {
        const auto zero = static_cast<std::int32_t>(b_zero.At(run, batch_b, n));
        for (std::int64_t k = 0; k < s.k; ++k)
          b[static_cast<std::size_t>(k * s.n + n)] =
              static_cast<std::int32_t>(IndexAt(run, b_input, (batch_b * s.k + k) * s.n + n)) - zero;
      }
      b_loaded = batch_b;
    }
    for (std::int64_t m = 0; m < s.m; ++m) {
      if (m % 64 == 0) NPURT_RETURN_IF_ERROR(run.Poll());
      const auto zero = static_cast<std::int32_t>(a_zero.At(run, batch_a, m));
      std::fill(sums.begin(), sums.end(), 0);
      for (std::int64_t k = 0; k < s.k; ++k) {
        const std::int32_t a =
            static_cast<std::int32_t>(IndexAt(run, a_input, (batch_a * s.m + m) * s.k + k)) - zero;
        const std::int32_t* const b_row = b.data() + k * s.n;
        // Unsigned: sums of very long rows wrap, as int32 does in hardware.
        for (std::int64_t n = 0; n < s.n; ++n)
          sums[static_cast<std::size_t>(n)] = static_cast<std::int32_t>(
              static_cast<std::uint32_t>(sums[static_cast<std::size_t>(n)]) +
              static_cast<std::uint32_t>(a * b_row[n]));
      }
      row(batch, batch_a, batch_b, m, sums);
    }
    ++batch;
  } while (NextIndex(s.batch, absl::MakeSpan(index)));
  return absl::OkStatus();
}

absl::Status InferInteger(InferContext& context) {
  NPURT_ASSIGN_OR_RETURN(SymDims out, OutputDims(context.shape(0), context.shape(1)));
  context.set_output(0, DType::kI32, std::move(out));
  return absl::OkStatus();
}

absl::Status ReferenceInteger(const RunContext& run, std::int64_t, void*) {
  NPURT_ASSIGN_OR_RETURN(const Sizes s, SizesOf(run.dims(0), run.dims(1)));
  const std::int64_t batches_a = ProductOf(s.batch_a, 0, static_cast<int>(s.batch_a.size()));
  const std::int64_t batches_b = ProductOf(s.batch_b, 0, static_cast<int>(s.batch_b.size()));
  NPURT_ASSIGN_OR_RETURN(const Parameter a_zero, ParameterOf(run, 2, batches_a, s.m));
  NPURT_ASSIGN_OR_RETURN(const Parameter b_zero, ParameterOf(run, 3, batches_b, s.n));
  return ForEachRow(run, s, 0, a_zero, 1, b_zero,
                    [&](std::int64_t batch, std::int64_t, std::int64_t, std::int64_t m,
                        const std::vector<std::int32_t>& sums) {
                      CopyElements(DType::kI32, run.output(0).data, (batch * s.m + m) * s.n,
                                   sums.data(), 0, s.n);
                    });
}

absl::Status InferQLinear(InferContext& context) {
  NPURT_ASSIGN_OR_RETURN(SymDims out, OutputDims(context.shape(0), context.shape(3)));
  context.set_output(0, context.dtype(7), std::move(out));
  return absl::OkStatus();
}

absl::Status ReferenceQLinear(const RunContext& run, std::int64_t, void*) {
  NPURT_ASSIGN_OR_RETURN(const Sizes s, SizesOf(run.dims(0), run.dims(3)));
  const std::int64_t batches = ProductOf(s.batch, 0, static_cast<int>(s.batch.size()));
  const std::int64_t batches_a = ProductOf(s.batch_a, 0, static_cast<int>(s.batch_a.size()));
  const std::int64_t batches_b = ProductOf(s.batch_b, 0, static_cast<int>(s.batch_b.size()));
  NPURT_ASSIGN_OR_RETURN(const Parameter a_scale, ParameterOf(run, 1, batches_a, s.m));
  NPURT_ASSIGN_OR_RETURN(const Parameter a_zero, ParameterOf(run, 2, batches_a, s.m));
  NPURT_ASSIGN_OR_RETURN(const Parameter b_scale, ParameterOf(run, 4, batches_b, s.n));
  NPURT_ASSIGN_OR_RETURN(const Parameter b_zero, ParameterOf(run, 5, batches_b, s.n));
  NPURT_ASSIGN_OR_RETURN(const Parameter y_scale, ParameterOf(run, 6, batches, s.m));
  NPURT_ASSIGN_OR_RETURN(const Parameter y_zero, ParameterOf(run, 7, batches, s.m));
  if (run.has_input(8) && run.count(8) != s.n)
    return absl::InvalidArgumentError(
        absl::StrCat("bias has ", run.count(8), " elements, want ", s.n));
  const Slot& out = run.output(0);
  return ForEachRow(run, s, 0, a_zero, 3, b_zero,
                    [&](std::int64_t batch, std::int64_t batch_a, std::int64_t batch_b,
                        std::int64_t m, const std::vector<std::int32_t>& sums) {
                      const double row = a_scale.At(run, batch_a, m) / y_scale.At(run, batch, m);
                      const double zero = y_zero.At(run, batch, m);
                      for (std::int64_t n = 0; n < s.n; ++n) {
                        const double bias = run.has_input(8) ? RealAt(run, 8, n) : 0;
                        const double y = (sums[static_cast<std::size_t>(n)] + bias) * row *
                                         b_scale.At(run, batch_b, n);
                        const bool low = HasRelu(run.attributes()) && y < 0;
                        StoreNumber(out.dtype, out.data, (batch * s.m + m) * s.n + n,
                                    (low ? 0 : std::nearbyint(y)) + zero);
                      }
                    });
}

// --- the fast version: one zero point and scale for all of a, and one, or one per column, for b -------

// Where an operator has its inputs; -1: it has none such.
struct Inputs {
  int a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero, bias;
};
constexpr Inputs kInteger = {0, -1, 2, 1, -1, 3, -1, -1, -1};
constexpr Inputs kQLinear = {0, 1, 2, 3, 4, 5, 6, 7, 8};

struct PreparedProduct : Prepared {
  const kernels::IntGemmKernel* gemm = nullptr;
  PackedBuffer b;  // or nothing
  // Per column, if they are constants.
  std::vector<std::int32_t> b_zero;
  std::vector<double> scale, bias;
};

void FillScales(const NumberList& list, std::int64_t n, double* to) {
  for (std::int64_t i = 0; i < n; ++i) to[i] = list.At(i);
}
void FillZeros(const NumberList& list, std::int64_t n, std::int32_t* to) {
  for (std::int64_t i = 0; i < n; ++i) to[i] = list.ZeroPoint(i);
}

template <const Inputs& kIn>
absl::StatusOr<std::unique_ptr<Prepared>> Prepare(PrepareContext& context) {
  // One zero point and scale for all of a, and one for b or one per column of a single matrix.
  for (int i : {kIn.a_scale, kIn.y_scale, kIn.y_zero})
    if (i >= 0 && !IsOneOrEach(context, i, 1)) return nullptr;
  const ValueType& b_type = context.type(kIn.b);
  if (!b_type.has_rank) return nullptr;
  for (int i : {kIn.b_scale, kIn.b_zero, kIn.bias})
    if (i >= 0 && context.has_input(i) && b_type.dims.size() != 2 && !IsOneOrEach(context, i, 1))
      return nullptr;
  auto prepared = std::make_unique<PreparedProduct>();
  // Zero points of rows have to be taken away before: words of bytes cannot hold what is left.
  prepared->gemm = kernels::SelectIntGemmKernel(context.isa(), !IsOneOrEach(context, kIn.a_zero, 1));
  prepared->kernel = prepared->gemm->name;
  const Tensor* b = context.constant(kIn.b);
  if (b == nullptr || b->rank() != 2 || b->element_count() == 0) return prepared;
  const std::int64_t n = b->dims()[1];
  const auto constant = [&](int i) { return !context.has_input(i) || context.constant(i) != nullptr; };
  for (int i : {kIn.b_scale, kIn.b_zero, kIn.bias})
    if (i >= 0 && !IsOneOrEach(context, i, n)) return prepared;  // bind says so
  if (!constant(kIn.b_zero)) return prepared;
  prepared->b_zero.resize(static_cast<std::size_t>(n));
  FillZeros(NumbersOf(context, kIn.b_zero), n, prepared->b_zero.data());
  if (kIn.b_scale >= 0 && constant(kIn.b_scale)) {
    prepared->scale.resize(static_cast<std::size_t>(n));
    FillScales(NumbersOf(context, kIn.b_scale), n, prepared->scale.data());
  }
  if (kIn.bias >= 0 && context.has_input(kIn.bias) && context.constant(kIn.bias) != nullptr) {
    prepared->bias.resize(static_cast<std::size_t>(n));
    FillScales(NumbersOf(context, kIn.bias), n, prepared->bias.data());
  }
  kernels::IntGemmProblem p;
  p.k = b->dims()[0];
  p.n = n;
  p.a_signed = context.type(kIn.a).dtype == DType::kI8;
  p.b_signed = b->dtype() == DType::kI8;
  const std::int64_t bytes = kernels::PackedIntBSize(*prepared->gemm, p.k, p.n);
  if (bytes == 0) return absl::ResourceExhaustedError("b is too large to pack");
  prepared->packed_bytes = static_cast<std::size_t>(bytes);
  NPURT_ASSIGN_OR_RETURN(prepared->b, context.Pack(prepared->packed_bytes, [&](void* data) {
    kernels::PackIntB(*prepared->gemm, p, b->data(), prepared->b_zero.data(), 1, data);
  }));
  context.DropConstant(kIn.b);
  return prepared;
}

struct Bound {
  kernels::IntGemmProblem problem;
  kernels::IntGemmTiling tiling;
  std::int64_t a_matrix, b_matrix;  // elements
  // Scratch of the columns' parameters, in bytes.
  std::int64_t scale_offset, bias_offset, zero_offset;
};

template <const Inputs& kIn>
absl::Status Bind(BindContext& bind) {
  const auto* prepared = bind.prepared<PreparedProduct>();
  NPURT_ASSIGN_OR_RETURN(const Sizes s, SizesOf(bind.dims(kIn.a), bind.dims(kIn.b)));
  for (int i : {kIn.b_scale, kIn.b_zero, kIn.bias})
    if (i >= 0 && bind.has_input(i) && bind.count(i) != s.n &&
        (bind.count(i) != 1 || i == kIn.bias))
      return absl::InvalidArgumentError(absl::StrCat("input ", i, " has ", bind.count(i),
                                                     " elements, want 1 or ", s.n));
  const std::int64_t rows = s.m * ProductOf(s.batch_a, 0, static_cast<int>(s.batch_a.size()));
  if (bind.has_input(kIn.a_zero) && bind.count(kIn.a_zero) != 1 && bind.count(kIn.a_zero) != s.m &&
      bind.count(kIn.a_zero) != rows)
    return absl::InvalidArgumentError(absl::StrCat("input ", kIn.a_zero, " has ",
                                                   bind.count(kIn.a_zero), " elements, want 1 or ",
                                                   s.m));
  auto* bound = bind.New<Bound>();
  kernels::IntGemmProblem& p = bound->problem;
  p = kernels::IntGemmProblem();
  p.m = s.m;
  p.n = s.n;
  p.k = s.k;
  p.a_signed = bind.dtype(kIn.a) == DType::kI8;
  p.b_signed = bind.dtype(kIn.b) == DType::kI8;
  p.packed_b = prepared->b.data != nullptr;
  std::int64_t matrices = ProductOf(s.batch, 0, static_cast<int>(s.batch.size()));
  bound->a_matrix = s.m * s.k;
  bound->b_matrix = s.k * s.n;
  // The rows of all matrices times one b are one product.
  if (s.batch_a == s.batch && ProductOf(s.batch_b, 0, static_cast<int>(s.batch_b.size())) == 1) {
    p.m *= matrices;
    matrices = 1;
  }
  bound->tiling = kernels::PlanIntGemm(p, *prepared->gemm);
  const kernels::IntGemmTiling& t = bound->tiling;
  if (t.tiles < 0) return absl::InvalidArgumentError("sizes overflow");
  bind.SetTiles(t.tiles * matrices, CostOf(t.flops_per_tile, t.bytes_per_tile));
  bound->scale_offset = static_cast<std::int64_t>(t.scratch_bytes);
  bound->bias_offset = bound->scale_offset + (prepared->scale.empty() ? s.n * 8 : 0);
  bound->zero_offset = bound->bias_offset + (prepared->bias.empty() ? s.n * 8 : 0);
  bind.SetScratch(static_cast<std::size_t>(bound->zero_offset +
                                           (prepared->b_zero.empty() ? s.n * 4 : 0)));
  return absl::OkStatus();
}

template <const Inputs& kIn>
absl::Status Run(const RunContext& run, std::int64_t tile, void* scratch) {
  const auto* prepared = run.prepared<PreparedProduct>();
  const auto* bound = run.bound<Bound>();
  const kernels::IntGemmProblem& p = bound->problem;
  char* const memory = static_cast<char*>(scratch);
  const auto in = [&](int i) { return i < 0 ? NumberList() : NumbersOf(run, i); };
  kernels::IntGemmCall call{};
  call.problem = &p;
  call.tiling = &bound->tiling;
  call.b_zero_step = 1;
  call.b_zero = prepared->b_zero.data();
  if (prepared->b_zero.empty()) {
    auto* const zeros = reinterpret_cast<std::int32_t*>(memory + bound->zero_offset);
    FillZeros(in(kIn.b_zero), p.n, zeros);
    call.b_zero = zeros;
  }
  double row_scale = 1;
  if (kIn.y_scale >= 0) {
    kernels::IntEpilogue& e = call.epilogue;
    e.to_bytes = true;
    row_scale = in(kIn.a_scale).At(0) / in(kIn.y_scale).At(0);
    e.row_scale = &row_scale;
    e.one_row_scale = true;
    const bool is_signed = run.output(0).dtype == DType::kI8;
    e.zero = in(kIn.y_zero).ZeroPoint();
    e.low = HasRelu(run.attributes()) ? e.zero : is_signed ? -128 : 0;
    e.high = is_signed ? 127 : 255;
    e.column_scale = prepared->scale.data();
    if (prepared->scale.empty()) {
      auto* const scales = reinterpret_cast<double*>(memory + bound->scale_offset);
      FillScales(in(kIn.b_scale), p.n, scales);
      e.column_scale = scales;
    }
    if (!prepared->bias.empty()) {
      e.column_bias = prepared->bias.data();
    } else if (run.has_input(kIn.bias)) {
      auto* const bias = reinterpret_cast<double*>(memory + bound->bias_offset);
      FillScales(in(kIn.bias), p.n, bias);
      e.column_bias = bias;
    }
  }
  const std::int64_t matrix = tile / bound->tiling.tiles;
  std::int64_t a = 0, b = 0;
  if (matrix > 0) {  // the operands' matrices, dimensions of the batch from the last
    NPURT_ASSIGN_OR_RETURN(const Sizes s, SizesOf(run.dims(kIn.a), run.dims(kIn.b)));
    std::int64_t rest = matrix, a_stride = 1, b_stride = 1;
    for (std::size_t d = s.batch.size(); d-- > 0;) {
      const std::int64_t index = rest % s.batch[d];
      rest /= s.batch[d];
      if (s.batch_a[d] != 1) a += index * a_stride;
      if (s.batch_b[d] != 1) b += index * b_stride;
      a_stride *= s.batch_a[d];
      b_stride *= s.batch_b[d];
    }
  }
  call.a = run.in<char>(kIn.a) + a * bound->a_matrix;
  if (run.has_input(kIn.a_zero)) {
    call.a_zero = run.in<char>(kIn.a_zero);
    call.a_zero_count = run.count(kIn.a_zero);
    call.first_row = a * (bound->a_matrix / std::max<std::int64_t>(p.k, 1));
  }
  call.b = p.packed_b ? prepared->b.data.get()
                      : static_cast<const void*>(run.in<char>(kIn.b) + b * bound->b_matrix);
  call.c = run.out<char>(0) + matrix * p.m * p.n * (kIn.y_scale < 0 ? 4 : 1);
  kernels::RunIntGemmTile(call, tile % bound->tiling.tiles, scratch);
  return absl::OkStatus();
}

}  // namespace

extern constexpr OpDef kOps[] = {
    {
        .name = "MatMulInteger",
        .inputs = {{"a", "T1"}, {"b", "T2"}, {"?a_zero_point", "T1"}, {"?b_zero_point", "T2"}},
        .outputs = {{"y", "int32"}},
        .types = {{"T1", kBytes}, {"T2", kBytes}},
        .infer = InferInteger,
        .reference = ReferenceInteger,
        .prepare = Prepare<kInteger>,
        .bind = Bind<kInteger>,
        .run = Run<kInteger>,
    },
    {
        .name = "QLinearMatMul",
        .inputs = {{"a", "T1"},
                   {"a_scale", "TS"},
                   {"a_zero_point", "T1"},
                   {"b", "T2"},
                   {"b_scale", "TS"},
                   {"b_zero_point", "T2"},
                   {"y_scale", "TS"},
                   {"y_zero_point", "T3"},
                   {"?bias", "int32"}},
        .outputs = {{"y", "T3"}},
        .types = {{"TS", kFloats}, {"T1", kBytes}, {"T2", kBytes}, {"T3", kBytes}},
        .attributes = {{"activation", AttrKind::kInt}},
        .infer = InferQLinear,
        .reference = ReferenceQLinear,
        .prepare = Prepare<kQLinear>,
        .bind = Bind<kQLinear>,
        .run = Run<kQLinear>,
    },
};
extern constexpr int kOpCount = static_cast<int>(sizeof kOps / sizeof kOps[0]);

}  // namespace npurt::ops::integer_matmul
