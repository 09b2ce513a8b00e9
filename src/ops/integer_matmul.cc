// MatMulInteger: y = (a - a_zero) x (b - b_zero) in int32. QLinearMatMul: the same, times a_scale *
// b_scale / y_scale, rounded, plus y_zero and saturated. Parameters of a may be one per row, those of
// b one per column.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "ops/move.h"
#include "ops/numbers.h"

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
  const Slot& out = run.output(0);
  return ForEachRow(run, s, 0, a_zero, 3, b_zero,
                    [&](std::int64_t batch, std::int64_t batch_a, std::int64_t batch_b,
                        std::int64_t m, const std::vector<std::int32_t>& sums) {
                      const double row = a_scale.At(run, batch_a, m) / y_scale.At(run, batch, m);
                      const double zero = y_zero.At(run, batch, m);
                      for (std::int64_t n = 0; n < s.n; ++n) {
                        const double y = sums[static_cast<std::size_t>(n)] * row *
                                         b_scale.At(run, batch_b, n);
                        StoreNumber(out.dtype, out.data, (batch * s.m + m) * s.n + n,
                                    std::nearbyint(y) + zero);
                      }
                    });
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
                   {"y_zero_point", "T3"}},
        .outputs = {{"y", "T3"}},
        .types = {{"TS", kFloats}, {"T1", kBytes}, {"T2", kBytes}, {"T3", kBytes}},
        .infer = InferQLinear,
        .reference = ReferenceQLinear,
    },
};
extern constexpr int kOpCount = static_cast<int>(sizeof kOps / sizeof kOps[0]);

}  // namespace npurt::ops::integer_matmul
