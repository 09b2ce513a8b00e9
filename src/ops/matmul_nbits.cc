// MatMulNBits (com.microsoft): y[.., n] = sum over k of a[.., k] * (q[n, k] - zero) * scale +
// bias[n], with q of `bits` bits, packed low bits first, and a scale and a zero point per
// `block_size` numbers k of each n. The zero points are packed like q, or numbers; without them
// zero is half of the range.
#include "absl/strings/str_cat.h"
#include "base/checked_math.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/gemm/gemm.h"
#include "kernels/nbits/nbits.h"
#include "ops/epilogue.h"
#include "ops/move.h"
#include "ops/numbers.h"

namespace npurt::ops::matmul_nbits {
namespace {

constexpr int kA = 0, kB = 1, kScales = 2, kZeros = 3, kGroups = 4, kBias = 5;

struct Options {
  std::int64_t n, k, block;
  int bits;
  std::int64_t blocks, blob;  // per column; bytes in one
  std::int64_t zero_bytes;    // of a column, packed
};

absl::StatusOr<Options> OptionsOf(const Attributes& attributes) {
  Options o;
  o.n = attributes.Int("N");
  o.k = attributes.Int("K");
  o.block = attributes.Int("block_size");
  const std::int64_t bits = attributes.Int("bits", 4);
  if (o.n < 0 || o.k < 0)
    return absl::InvalidArgumentError(absl::StrCat("N is ", o.n, ", K is ", o.k));
  if (bits != 2 && bits != 4 && bits != 8)
    return absl::UnimplementedError(absl::StrCat("bits is ", bits, ", want 2, 4 or 8"));
  if (o.block < 16 || o.block > (std::int64_t{1} << 30) ||
      !IsPowerOfTwo(static_cast<std::size_t>(o.block)))
    return absl::InvalidArgumentError(
        absl::StrCat("block_size is ", o.block, ", want a power of two from 16 on"));
  if (attributes.Int("weight_prepacked") != 0)
    return absl::UnimplementedError("weights that another runtime has packed");
  o.bits = static_cast<int>(bits);
  o.blocks = CeilDiv(o.k, o.block);
  o.blob = o.block * bits / 8;
  o.zero_bytes = CeilDiv(o.blocks * bits, std::int64_t{8});
  return o;
}

// The elements that input `i` must have; -1 if that does not fit.
std::int64_t WantedCount(const Options& o, int i, DType zeros) {
  std::int64_t count = o.n;
  bool fits = true;
  if (i == kB) fits = CheckedMul(o.n, o.blocks, &count) && CheckedMul(count, o.blob, &count);
  if (i == kScales) fits = CheckedMul(o.n, o.blocks, &count);
  if (i == kZeros) fits = CheckedMul(o.n, zeros == DType::kU8 ? o.zero_bytes : o.blocks, &count);
  if (i == kGroups) count = o.k;
  return fits ? count : -1;
}

absl::Status CountError(int i, const std::string& shape, std::int64_t want) {
  constexpr const char* kNames[] = {"A", "B", "scales", "zero_points", "g_idx", "bias"};
  return absl::InvalidArgumentError(
      absl::StrCat(kNames[i], " has shape ", shape, ", want ", want, " elements"));
}

absl::Status Infer(InferContext& context) {
  NPURT_ASSIGN_OR_RETURN(const Options o, OptionsOf(context.attributes()));
  const SymDims& a = context.shape(kA);
  if (a.empty() || (a.back().is_constant() && !a.back().Is(o.k)))
    return absl::InvalidArgumentError(
        absl::StrCat("A has shape ", ShapeString(a), ", want K = ", o.k, " columns"));
  for (int i = kB; i < context.input_count(); ++i) {
    if (!context.has_input(i) || !AllConstant(context.shape(i))) continue;
    const std::int64_t want = WantedCount(o, i, i == kZeros ? context.dtype(i) : DType::kUndefined);
    const auto count = ElementCount(ToDims(context.shape(i)));
    if (!count.ok() || *count != want) return CountError(i, ShapeString(context.shape(i)), want);
  }
  SymDims out = a;
  out.back() = o.n;
  context.set_output(0, context.dtype(kA), std::move(out));
  return absl::OkStatus();
}

template <typename Context>
absl::Status CheckCounts(const Context& context, const Options& o) {
  if (context.dims(kA).empty() || context.dims(kA).back() != o.k)
    return absl::InvalidArgumentError(absl::StrCat("A has shape ", ShapeString(context.dims(kA)),
                                                   ", want K = ", o.k, " columns"));
  for (int i = kB; i <= kBias; ++i) {
    if (!context.has_input(i)) continue;
    const std::int64_t want = WantedCount(o, i, context.dtype(i));
    if (context.count(i) != want) return CountError(i, ShapeString(context.dims(i)), want);
  }
  return absl::OkStatus();
}

unsigned PackedAt(const std::uint8_t* bytes, std::int64_t i, int bits) {
  return bytes[i * bits / 8] >> (i * bits % 8) & ((1u << bits) - 1);
}

absl::Status Reference(const RunContext& run, std::int64_t, void*) {
  NPURT_ASSIGN_OR_RETURN(const Options o, OptionsOf(run.attributes()));
  NPURT_RETURN_IF_ERROR(CheckCounts(run, o));
  if (run.output_count_of(0) == 0) return absl::OkStatus();
  const std::int64_t rows = run.output_count_of(0) / o.n;
  const auto* const b = run.in<std::uint8_t>(kB);
  std::vector<double> weights(static_cast<std::size_t>(o.k));
  Poller poller(run);
  for (std::int64_t n = 0; n < o.n; ++n) {
    for (std::int64_t k = 0; k < o.k; ++k) {
      std::int64_t group = k / o.block;
      if (run.has_input(kGroups)) {
        group = run.Load<std::int32_t>(kGroups, k);
        if (group < 0 || group >= o.blocks) return IndexError(group, o.blocks);
      }
      double zero = 1 << (o.bits - 1);
      if (run.has_input(kZeros))
        zero = run.dtype(kZeros) == DType::kU8
                   ? PackedAt(run.in<std::uint8_t>(kZeros) + n * o.zero_bytes, group, o.bits)
                   : RealAt(run, kZeros, n * o.blocks + group);
      // Blocks begin at whole bytes.
      const double q = PackedAt(b + n * o.blocks * o.blob, k, o.bits);
      weights[static_cast<std::size_t>(k)] =
          (q - zero) * RealAt(run, kScales, n * o.blocks + group);
    }
    const double bias = run.has_input(kBias) ? RealAt(run, kBias, n) : 0;
    for (std::int64_t m = 0; m < rows; ++m) {
      double sum = bias;
      for (std::int64_t k = 0; k < o.k; ++k)
        sum += RealAt(run, kA, m * o.k + k) * weights[static_cast<std::size_t>(k)];
      StoreReal(run, 0, m * o.n + n, sum);
      NPURT_RETURN_IF_ERROR(poller.Count(o.k));
    }
  }
  return absl::OkStatus();
}

struct State final : Prepared {
  const kernels::NbitsKernel* nbits = nullptr;
  const kernels::GemmKernel* gemm = nullptr;
  kernels::NbitsProblem problem = {};  // m is not known yet
  kernels::NbitsLayout layout = {};
  PackedBuffer packed;
  kernels::RowFn load = nullptr, store = nullptr;  // of 16-bit elements
};

// Elements of scales and zero points are those of a constant, of whatever type.
float FloatAt(const Tensor& tensor, std::int64_t i) {
  return static_cast<float>(LoadNumber(tensor.dtype(), tensor.data(), i));
}

// Column `n` of the weights into its panel.
void PackColumn(const Options& o, const State& state, std::int64_t n, const std::uint8_t* q,
                const Tensor& scales, const Tensor* zeros, char* packed) {
  const int tile_n = state.nbits->tile_n, per_word = 32 / o.bits;
  const std::int64_t panel = n / tile_n, column = n % tile_n;
  auto* const words = reinterpret_cast<std::uint32_t*>(packed) + panel * state.layout.panel_words;
  for (std::int64_t k = 0; k < o.k; ++k)
    words[k / per_word * tile_n + column] |= PackedAt(q + n * o.blocks * o.blob, k, o.bits)
                                             << (k % per_word * o.bits);
  auto* const to_scales = reinterpret_cast<float*>(packed + state.layout.scales_offset) +
                          panel * state.layout.panel_scales;
  auto* const to_zeros = reinterpret_cast<float*>(packed + state.layout.zeros_offset) +
                         panel * state.layout.panel_scales;
  for (std::int64_t b = 0; b < o.blocks; ++b) {
    to_scales[b * tile_n + column] = FloatAt(scales, n * o.blocks + b);
    float zero = static_cast<float>(1 << (o.bits - 1));
    if (zeros != nullptr)
      zero =
          zeros->dtype() == DType::kU8
              ? static_cast<float>(PackedAt(
                    static_cast<const std::uint8_t*>(zeros->data()) + n * o.zero_bytes, b, o.bits))
              : FloatAt(*zeros, n * o.blocks + b);
    to_zeros[b * tile_n + column] = zero;
  }
}

absl::StatusOr<std::unique_ptr<Prepared>> Prepare(PrepareContext& context) {
  NPURT_ASSIGN_OR_RETURN(const Options o, OptionsOf(context.attributes()));
  const Tensor *b = context.constant(kB), *scales = context.constant(kScales);
  const bool has_zeros = context.has_input(kZeros);
  const Tensor* const zeros = has_zeros ? context.constant(kZeros) : nullptr;
  const DType dtype = context.type(kA).dtype;
  const bool half = dtype == DType::kF16 || dtype == DType::kBF16;
  if ((dtype != DType::kF32 && !half) || b == nullptr || scales == nullptr || o.n == 0 ||
      o.k == 0 || context.has_input(kGroups) || (has_zeros && zeros == nullptr))
    return nullptr;
  auto state = std::make_unique<State>();
  state->nbits = &kernels::SelectNbits(MatrixIsa(context));
  state->gemm = kernels::SelectGemmKernel(MatrixIsa(context));
  state->kernel = state->nbits->name;
  state->problem = {0, o.n, o.k, o.block, o.bits, half};
  if (half) {
    state->load = kernels::SelectCastRow(dtype, DType::kF32, MatrixIsa(context));
    state->store = kernels::SelectCastRow(DType::kF32, dtype, MatrixIsa(context));
  }
  if (!kernels::LayOutNbits(*state->nbits, state->problem, &state->layout))
    return absl::ResourceExhaustedError("the weights are too large to pack");
  state->packed_bytes = static_cast<std::size_t>(state->layout.bytes);
  NPURT_ASSIGN_OR_RETURN(state->packed, context.Pack(state->packed_bytes, [&](void* data) {
    std::memset(data, 0, state->packed_bytes);
    for (std::int64_t n = 0; n < o.n; ++n)
      PackColumn(o, *state, n, static_cast<const std::uint8_t*>(b->data()), *scales, zeros,
                 static_cast<char*>(data));
  }));
  context.DropConstant(kB);
  context.DropConstant(kScales);
  if (has_zeros) context.DropConstant(kZeros);
  return state;
}

struct Bound {
  kernels::NbitsProblem problem;
  kernels::NbitsTiling tiling;
};

absl::Status Bind(BindContext& bind) {
  NPURT_ASSIGN_OR_RETURN(const Options o, OptionsOf(bind.attributes()));
  NPURT_RETURN_IF_ERROR(CheckCounts(bind, o));
  const auto* state = bind.prepared<State>();
  auto* bound = bind.New<Bound>();
  bound->problem = state->problem;
  bound->problem.m = bind.output_count_of(0) / o.n;
  bound->tiling = kernels::PlanNbits(*state->nbits, *state->gemm, bound->problem);
  bind.SetTiles(bound->tiling.tiles,
                CostOf(bound->tiling.flops_per_tile, bound->tiling.bytes_per_tile));
  bind.SetScratch(bound->tiling.scratch_bytes);
  return absl::OkStatus();
}

absl::Status Run(const RunContext& run, std::int64_t tile, void* scratch) {
  const auto* state = run.prepared<State>();
  const auto* bound = run.bound<Bound>();
  kernels::RunNbitsTile(
      {state->nbits, state->gemm, &bound->problem, &state->layout, &bound->tiling, run.in<char>(kA),
       state->packed.as<char>(), run.has_input(kBias) ? run.in<char>(kBias) : nullptr,
       run.out<char>(0), state->load, state->store},
      tile, scratch);
  return absl::OkStatus();
}

}  // namespace

extern constexpr OpDef kOp = {
    .name = "MatMulNBits",
    .inputs = {{"a", "T"},
               {"b", "uint8"},
               {"scales", "T"},
               {"?zero_points", "Z"},
               {"?g_idx", "int32"},
               {"?bias", "T"}},
    .outputs = {{"y", "T"}},
    .types = {{"T", kFloats}, {"Z", kFloats | Bit(DType::kU8)}},
    .attributes = {{"K", AttrKind::kInt, true},
                   {"N", AttrKind::kInt, true},
                   {"accuracy_level", AttrKind::kInt},
                   {"bits", AttrKind::kInt},
                   {"block_size", AttrKind::kInt, true},
                   {"weight_prepacked", AttrKind::kInt}},
    .infer = Infer,
    .reference = Reference,
    .prepare = Prepare,
    .bind = Bind,
    .run = Run,
};

}  // namespace npurt::ops::matmul_nbits
