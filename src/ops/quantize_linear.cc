// QuantizeLinear: y = saturate(round(x / scale) + zero_point). DequantizeLinear: (x - zero_point) *
// scale. DynamicQuantizeLinear: the same as the first, with the scale that fits x into uint8.
// Scales are one number, one per index of an axis, or one per block of an axis.
#include <algorithm>
#include <cmath>
#include <optional>

#include "absl/strings/str_cat.h"
#include "kernels/quantize/quantize.h"
#include "ops/move.h"
#include "ops/numbers.h"

namespace npurt::ops::quantize_linear {
namespace {

constexpr DTypeSet kQuantized = (kNarrowFloats & ~Bit(DType::kF8E8M0)) | kNarrowIntegers |
                                DTypes(DType::kI8, DType::kU8, DType::kI16, DType::kU16);

// Which scale belongs to an element: an index into the scale tensor.
struct Granularity {
  std::int64_t dim = 1, inner = 1, block = 1, blocks = 1;
  bool per_tensor = true, blocked = false;

  std::int64_t ScaleOf(std::int64_t i) const {
    if (per_tensor) return 0;
    const std::int64_t at = i / inner % dim;
    if (!blocked) return at;
    return (i / inner / dim * blocks + at / block) * inner + i % inner;
  }
};

absl::StatusOr<Granularity> GranularityOf(absl::Span<const std::int64_t> x,
                                          absl::Span<const std::int64_t> scale,
                                          const Attributes& attributes) {
  Granularity g;
  const std::int64_t block = attributes.Int("block_size", 0);
  const int rank = static_cast<int>(x.size());
  if (block < 0) return absl::InvalidArgumentError(absl::StrCat("block_size is ", block));
  if (block == 0 && (scale.empty() || (scale.size() == 1 && scale[0] == 1))) return g;
  NPURT_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(attributes.Int("axis", 1), rank));
  g.per_tensor = false;
  g.dim = x[static_cast<std::size_t>(axis)];
  g.inner = ProductOf(x, axis + 1, rank);
  bool fits;
  if (block == 0) {
    fits = scale.size() == 1 && scale[0] == g.dim;
  } else {
    g.blocked = true;
    g.block = block;
    g.blocks = g.dim / block + (g.dim % block != 0);
    fits = scale.size() == x.size();
    for (std::size_t d = 0; fits && d < x.size(); ++d)
      fits = scale[d] == (static_cast<int>(d) == axis ? g.blocks : x[d]);
  }
  if (fits) return g;
  return absl::InvalidArgumentError(absl::StrCat("x has shape ", ShapeString(x), ", the scale ",
                                                 ShapeString(scale), ", axis ", axis,
                                                 ", block_size ", block));
}

// Checks what symbols allow to check.
absl::Status CheckShapes(const InferContext& context) {
  const SymDims &x = context.shape(0), &scale = context.shape(1);
  if (AllConstant(x) && AllConstant(scale))
    NPURT_RETURN_IF_ERROR(GranularityOf(ToDims(x), ToDims(scale), context.attributes()));
  if (context.has_input(2) && context.rank(2) != context.rank(1))
    return absl::InvalidArgumentError(absl::StrCat("the scale has shape ", ShapeString(scale),
                                                   ", the zero point ",
                                                   ShapeString(context.shape(2))));
  return absl::OkStatus();
}

absl::Status CheckZeroPoint(const RunContext& run) {
  if (!run.has_input(2) || run.count(2) == run.count(1)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the scale has shape ", ShapeString(run.dims(1)),
                                                 ", the zero point ", ShapeString(run.dims(2))));
}

double ZeroPointAt(const RunContext& run, std::int64_t i) {
  return run.has_input(2) ? LoadNumber(run.dtype(2), run.input(2).data, i) : 0;
}

absl::Status InferQuantize(InferContext& context) {
  const std::int64_t number = context.attributes().Int("output_dtype", 0);
  DType dtype = context.has_input(2) ? context.dtype(2) : DType::kU8;
  if (number != 0) {
    const DType named =
        IsDType(static_cast<int>(number)) ? static_cast<DType>(number) : DType::kUndefined;
    if (!Contains(kQuantized, named) || (context.has_input(2) && named != dtype))
      return absl::InvalidArgumentError(
          absl::StrCat("output_dtype is ", number, ", the zero point ", DTypeName(dtype)));
    dtype = named;
  }
  if (!RanksKnown(context)) {
    context.set_output_unknown(0, dtype);
    return absl::OkStatus();
  }
  NPURT_RETURN_IF_ERROR(CheckShapes(context));
  context.set_output(0, dtype, context.shape(0));
  return absl::OkStatus();
}

// The quotient as its own type has it, so that ties round as they do there.
double Quotient(double x, double scale, bool in_double) {
  if (in_double) return x / scale;
  return static_cast<double>(static_cast<float>(x) / static_cast<float>(scale));
}

absl::Status ReferenceQuantize(const RunContext& run, std::int64_t, void*) {
  NPURT_ASSIGN_OR_RETURN(const Granularity g,
                         GranularityOf(run.dims(0), run.dims(1), run.attributes()));
  NPURT_RETURN_IF_ERROR(CheckZeroPoint(run));
  const Slot& out = run.output(0);
  const bool narrow_float = Contains(kNarrowFloats, out.dtype);
  const bool saturate = run.attributes().Int("saturate", 1) != 0;
  const bool in_double = run.dtype(0) == DType::kF64;
  for (std::int64_t i = 0; i < run.count(0); ++i) {
    NPURT_RETURN_IF_ERROR(PollAt(run, i));
    const std::int64_t s = g.ScaleOf(i);
    const double q = Quotient(RealAt(run, 0, i), RealAt(run, 1, s), in_double);
    const double zero = ZeroPointAt(run, s);
    StoreNumber(out.dtype, out.data, i, (narrow_float ? q : std::nearbyint(q)) + zero, saturate);
  }
  return absl::OkStatus();
}

// The fast versions: float32, and scales that are the same for runs of elements.
bool IsPlain(DType dtype) {
  return Contains(DTypes(DType::kI8, DType::kU8, DType::kI16, DType::kU16, DType::kI32), dtype);
}

// Calls f(first, count, scale index) for the runs of equal scale in [first, last).
template <typename F>
void ForEachRun(const Granularity& g, std::int64_t first, std::int64_t last, F f) {
  for (std::int64_t i = first; i < last;) {
    const std::int64_t end = g.per_tensor ? last : std::min(last, (i / g.inner + 1) * g.inner);
    f(i, end - i, g.ScaleOf(i));
    i = end;
  }
}

bool IsFast(DType real, DType scale, DType quantized, const Granularity& g) {
  return real == DType::kF32 && scale == DType::kF32 && IsPlain(quantized) && !g.blocked;
}

absl::Status BindElements(BindContext& bind, DType real, DType quantized) {
  NPURT_ASSIGN_OR_RETURN(const Granularity g,
                         GranularityOf(bind.dims(0), bind.dims(1), bind.attributes()));
  if (IsFast(real, bind.dtype(1), quantized, g)) SetCopyTiles(bind, DType::kF32, bind.count(0));
  return absl::OkStatus();
}

typedef float Four __attribute__((vector_size(16)));

Four LoadFour(const char* p) {
  Four x;
  std::memcpy(&x, p, sizeof x);
  return x;
}

using kernels::NarrowInteger;
std::optional<NarrowInteger> NarrowOf(DType dtype) {
  switch (dtype) {
    case DType::kI8:
      return NarrowInteger::kI8;
    case DType::kU8:
      return NarrowInteger::kU8;
    case DType::kI16:
      return NarrowInteger::kI16;
    case DType::kU16:
      return NarrowInteger::kU16;
    default:
      return std::nullopt;
  }
}

struct PreparedQuantize : Prepared {
  const kernels::QuantizeKernel* rows = nullptr;
};
absl::StatusOr<std::unique_ptr<Prepared>> Prepare(PrepareContext& context) {
  auto prepared = std::make_unique<PreparedQuantize>();
  prepared->rows = kernels::SelectQuantize(context.isa());
  prepared->kernel = prepared->rows->name;
  return prepared;
}

// The arguments for the elements from `first` on that have scale `s`; sizes are those of an element.
kernels::QuantizeArgs ArgsOf(const RunContext& run, std::int64_t first, std::int64_t count,
                             std::int64_t s, std::int64_t in_size, std::int64_t out_size) {
  return {run.in<char>(0) + first * in_size, run.out<char>(0) + first * out_size,
          static_cast<std::size_t>(count), run.Load<float>(1, s),
          static_cast<std::int32_t>(ZeroPointAt(run, s))};
}
std::int64_t SizeOf(NarrowInteger type) {
  return type == NarrowInteger::kI8 || type == NarrowInteger::kU8 ? 1 : 2;
}

absl::Status BindQuantize(BindContext& bind) {
  return BindElements(bind, bind.dtype(0), bind.output_dtype(0));
}

absl::Status RunQuantize(const RunContext& run, std::int64_t tile, void* scratch) {
  NPURT_ASSIGN_OR_RETURN(const Granularity g,
                         GranularityOf(run.dims(0), run.dims(1), run.attributes()));
  const DType dtype = run.output(0).dtype;
  if (!IsFast(run.dtype(0), run.dtype(1), dtype, g)) return ReferenceQuantize(run, tile, scratch);
  NPURT_RETURN_IF_ERROR(CheckZeroPoint(run));
  const TileRange range = TileOf(tile, CopyTiles(DType::kF32, run.count(0)), run.count(0));
  const auto* const rows = run.prepared<PreparedQuantize>()->rows;
  const NarrowInteger type = *NarrowOf(dtype);
  ForEachRun(g, range.first, range.last,
             [&](std::int64_t first, std::int64_t count, std::int64_t s) {
               rows->quantize(type, ArgsOf(run, first, count, s, 4, SizeOf(type)));
             });
  return absl::OkStatus();
}

absl::Status InferDequantize(InferContext& context) {
  const std::int64_t number = context.attributes().Int("output_dtype", 0);
  if (number != 0 && !(IsDType(static_cast<int>(number)) && IsFloat(static_cast<DType>(number))))
    return absl::InvalidArgumentError(absl::StrCat("output_dtype is ", number, ", want a float"));
  const DType scale = context.dtype(1);
  const DType dtype = number != 0               ? static_cast<DType>(number)
                      : scale == DType::kF8E8M0 ? DType::kF32
                                                : scale;
  if (!RanksKnown(context)) {
    context.set_output_unknown(0, dtype);
    return absl::OkStatus();
  }
  NPURT_RETURN_IF_ERROR(CheckShapes(context));
  context.set_output(0, dtype, context.shape(0));
  return absl::OkStatus();
}

absl::Status ReferenceDequantize(const RunContext& run, std::int64_t, void*) {
  NPURT_ASSIGN_OR_RETURN(const Granularity g,
                         GranularityOf(run.dims(0), run.dims(1), run.attributes()));
  NPURT_RETURN_IF_ERROR(CheckZeroPoint(run));
  for (std::int64_t i = 0; i < run.count(0); ++i) {
    NPURT_RETURN_IF_ERROR(PollAt(run, i));
    const std::int64_t s = g.ScaleOf(i);
    const double x = LoadNumber(run.dtype(0), run.input(0).data, i);
    const double scale = LoadNumber(run.dtype(1), run.input(1).data, s);
    StoreReal(run, 0, i, (x - ZeroPointAt(run, s)) * scale);
  }
  return absl::OkStatus();
}

absl::Status BindDequantize(BindContext& bind) {
  return BindElements(bind, bind.output_dtype(0), bind.dtype(0));
}

absl::Status RunDequantize(const RunContext& run, std::int64_t tile, void* scratch) {
  NPURT_ASSIGN_OR_RETURN(const Granularity g,
                         GranularityOf(run.dims(0), run.dims(1), run.attributes()));
  if (!IsFast(run.output(0).dtype, run.dtype(1), run.dtype(0), g))
    return ReferenceDequantize(run, tile, scratch);
  NPURT_RETURN_IF_ERROR(CheckZeroPoint(run));
  const TileRange range = TileOf(tile, CopyTiles(DType::kF32, run.count(0)), run.count(0));
  if (const auto narrow = NarrowOf(run.dtype(0))) {
    const auto* const rows = run.prepared<PreparedQuantize>()->rows;
    ForEachRun(g, range.first, range.last,
               [&](std::int64_t first, std::int64_t count, std::int64_t s) {
                 rows->dequantize(*narrow, ArgsOf(run, first, count, s, SizeOf(*narrow), 4));
               });
    return absl::OkStatus();
  }
  // int32 minus its zero point may need 33 bits.
  ForEachRun(
      g, range.first, range.last, [&](std::int64_t first, std::int64_t count, std::int64_t s) {
        const double zero = ZeroPointAt(run, s);
        const double scale = static_cast<double>(run.Load<float>(1, s));
        for (std::int64_t i = first; i < first + count; ++i)
          run.Store<float>(0, i, static_cast<float>((run.Load<std::int32_t>(0, i) - zero) * scale));
      });
  return absl::OkStatus();
}

absl::Status InferDynamic(InferContext& context) {
  context.set_output(0, DType::kU8, context.shape(0));
  context.set_output(1, context.dtype(0), {});
  context.set_output(2, DType::kU8, {});
  return absl::OkStatus();
}

template <typename T>
struct ReferenceDynamic {
  // The formula is one of float32 arithmetic, whatever the device stores: a tie decides a whole
  // step.
  static absl::Status Run(const RunContext& run) {
    float low = 0, high = 0;  // zero is always exact
    for (std::int64_t i = 0; i < run.count(0); ++i) {
      const float x = static_cast<float>(run.Load<T>(0, i));
      low = std::min(low, x);
      high = std::max(high, x);
    }
    float scale = (high - low) / 255.0f;
    if (scale == 0) scale = 1;
    const float zero = std::nearbyint(std::clamp(-low / scale, 0.0f, 255.0f));
    if (run.has_output(0))
      for (std::int64_t i = 0; i < run.count(0); ++i)
        StoreNumber(DType::kU8, run.output(0).data, i,
                    static_cast<double>(
                        std::nearbyint(static_cast<float>(run.Load<T>(0, i)) / scale) + zero));
    if (run.has_output(1)) run.Store<T>(1, 0, static_cast<T>(scale));
    if (run.has_output(2)) run.Store<std::uint8_t>(2, 0, static_cast<std::uint8_t>(zero));
    return absl::OkStatus();
  }
};

absl::Status BindDynamic(BindContext& bind) {
  bind.SetTiles(1, static_cast<double>(bind.count(0)));
  return absl::OkStatus();
}

absl::Status RunDynamic(const RunContext& run, std::int64_t tile, void* scratch) {
  if (run.dtype(0) != DType::kF32)
    return ForEachType<ReferenceDynamic, DTypes(DType::kF32, DType::kF64)>(run, tile, scratch);
  constexpr std::int64_t kPiece = 1 << 20;
  const char* const in = run.in<char>(0);
  const std::int64_t count = run.count(0);
  float low = 0, high = 0;
  for (std::int64_t first = 0; first < count; first += kPiece) {
    NPURT_RETURN_IF_ERROR(run.Poll());
    const std::int64_t end = std::min(count, first + kPiece);
    Four lows[4] = {}, highs[4] = {};  // a NaN is neither
    std::int64_t i = first;
    for (; i + 16 <= end; i += 16)
      for (int k = 0; k < 4; ++k) {
        const Four x = LoadFour(in + (i + 4 * k) * 4);
        lows[k] = x < lows[k] ? x : lows[k];
        highs[k] = x > highs[k] ? x : highs[k];
      }
    for (int k = 0; k < 16; ++k) {
      low = std::min(low, lows[k / 4][k % 4]);
      high = std::max(high, highs[k / 4][k % 4]);
    }
    for (; i < end; ++i) {
      const float x = run.Load<float>(0, i);
      low = std::min(low, x);
      high = std::max(high, x);
    }
  }
  float scale = (high - low) / 255.0f;
  if (scale == 0) scale = 1;
  const float zero = std::nearbyint(std::clamp(-low / scale, 0.0f, 255.0f));
  for (std::int64_t first = 0; run.has_output(0) && first < count; first += kPiece) {
    NPURT_RETURN_IF_ERROR(run.Poll());
    run.prepared<PreparedQuantize>()->rows->quantize(
        NarrowInteger::kU8,
        {in + first * 4, run.out<char>(0) + first,
         static_cast<std::size_t>(std::min(kPiece, count - first)), scale,
         static_cast<std::int32_t>(zero)});
  }
  if (run.has_output(1)) run.Store<float>(1, 0, scale);
  if (run.has_output(2)) run.Store<std::uint8_t>(2, 0, static_cast<std::uint8_t>(zero));
  return absl::OkStatus();
}

}  // namespace

extern constexpr OpDef kOps[] = {
    {
        .name = "QuantizeLinear",
        .inputs = {{"x", "T1"}, {"y_scale", "T2"}, {"?y_zero_point", "T3"}},
        .outputs = {{"y", "T3"}},
        .types = {{"T1", kFloats | Bit(DType::kI32)},
                  {"T2", kFloats | DTypes(DType::kI32, DType::kF8E8M0)},
                  {"T3", kQuantized}},
        .attributes = {{"axis", AttrKind::kInt},
                       {"block_size", AttrKind::kInt},
                       {"output_dtype", AttrKind::kInt},
                       {"precision", AttrKind::kInt},
                       {"saturate", AttrKind::kInt}},
        .any_rank = true,
        .infer = InferQuantize,
        .reference = ReferenceQuantize,
        .prepare = Prepare,
        .bind = BindQuantize,
        .run = RunQuantize,
    },
    {
        .name = "DequantizeLinear",
        .inputs = {{"x", "T1"}, {"x_scale", "T2"}, {"?x_zero_point", "T1"}},
        .outputs = {{"y", "T3"}},
        .types = {{"T1", kQuantized | Bit(DType::kI32)},
                  {"T2", kFloats | Bit(DType::kF8E8M0)},
                  {"T3", kFloats}},
        .attributes = {{"axis", AttrKind::kInt},
                       {"block_size", AttrKind::kInt},
                       {"output_dtype", AttrKind::kInt}},
        .any_rank = true,
        .infer = InferDequantize,
        .reference = ReferenceDequantize,
        .prepare = Prepare,
        .bind = BindDequantize,
        .run = RunDequantize,
    },
    {
        .name = "DynamicQuantizeLinear",
        .inputs = {{"x", "F"}},
        .outputs = {{"y", "uint8"}, {"y_scale", "F"}, {"y_zero_point", "uint8"}},
        .types = {{"F", DTypes(DType::kF32, DType::kF64)}},  // float32 in ONNX
        .infer = InferDynamic,
        .reference = ForEachType<ReferenceDynamic, DTypes(DType::kF32, DType::kF64)>,
        .prepare = Prepare,
        .bind = BindDynamic,
        .run = RunDynamic,
    },
};
extern constexpr int kOpCount = static_cast<int>(sizeof kOps / sizeof kOps[0]);

}  // namespace npurt::ops::quantize_linear
