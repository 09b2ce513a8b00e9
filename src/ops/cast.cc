// Cast, CastLike: the same values in another type, rounded to nearest even; floats become integers by
// dropping the fraction, larger integers lose their high bits.
#include <charconv>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "kernels/elementwise/narrow.h"
#include "ops/elementwise.h"

namespace npurt::ops::cast {
namespace {

using kernels::ElementwiseOp;
using kernels::ElementwiseProgram;
using kernels::kCastTypes;
using kernels::kNarrowFloats;
using kernels::kNarrowIntegers;

constexpr DTypeSet kCastable = kAnyType & ~kComplexes;

DType TargetOf(const Attributes& attributes, absl::Span<const DType> types) {
  if (types.size() == 2) return types[1];
  const std::int64_t to = attributes.Int("to");
  return to > 0 && to < kDTypeCount ? static_cast<DType>(to) : DType::kUndefined;
}

bool Program(const Attributes& attributes, absl::Span<const DType> types,
             ElementwiseProgram* program) {
  const DType to = TargetOf(attributes, types);
  if (!Contains(kCastTypes, types[0]) || !Contains(kCastTypes, to) || types.size() != 1)
    return false;
  program->inputs.push_back(types[0]);
  program->outputs.push_back(program->AddCast(types[0], to, 0));
  return true;
}

absl::Status Infer(InferContext& context) {
  const bool like = context.input_count() == 2;
  DType to = DType::kUndefined;
  if (like) {
    to = context.dtype(1);
  } else {
    const std::int64_t number = context.attributes().Int("to");
    if (number <= 0 || number >= kDTypeCount || !Contains(kCastable, static_cast<DType>(number)))
      return absl::InvalidArgumentError(
          absl::StrCat("to is ", number, ", which is no type to cast to"));
    to = static_cast<DType>(number);
  }
  // The schema does not imply the type, so it is told even where the shape is not known.
  if (!context.type(0).has_rank) {
    context.set_output_unknown(0, to);
    return absl::OkStatus();
  }
  context.set_output(0, to, context.shape(0));
  // Sizes fit 32 bits or are not worth a guess.
  if ((to == DType::kI64 || to == DType::kI32) && Contains(kIntegers, context.dtype(0))) {
    if (auto values = context.integers(0)) context.set_output_integers(0, *std::move(values));
  }
  return absl::OkStatus();
}

struct Rounding {
  bool saturate = true;
  kernels::PowerRounding power = kernels::PowerRounding::kUp;
};

Rounding RoundingOf(const Attributes& attributes) {
  Rounding rounding;
  rounding.saturate = attributes.Int("saturate", 1) != 0;
  const std::string mode = attributes.String("round_mode", "up");
  if (mode == "down") rounding.power = kernels::PowerRounding::kDown;
  if (mode == "nearest") rounding.power = kernels::PowerRounding::kNearest;
  return rounding;
}

// One element on its way: an exact integer or a double.
struct Number {
  bool is_integer = false;
  bool is_unsigned = false;  // the integer is a uint64
  std::int64_t integer = 0;
  double real = 0;
};

void Row(DType from, DType to, const void* in, void* out) {
  const float no_params[2] = {0, 0};
  kernels::SelectCastRow(from, to, isa::kGeneric)({{in}, out, 1, 0, no_params});
}

absl::StatusOr<Number> Parse(const std::string& text) {
  const absl::string_view trimmed = absl::StripAsciiWhitespace(text);
  Number number;
  if (absl::SimpleAtoi(trimmed, &number.integer)) {
    number.is_integer = true;
    return number;
  }
  if (absl::SimpleAtod(trimmed, &number.real)) return number;
  return absl::InvalidArgumentError(absl::StrCat("'", text, "' is no number"));
}

absl::StatusOr<Number> Load(DType type, const void* data, std::int64_t i) {
  Number number;
  if (type == DType::kString) return Parse(static_cast<const std::string*>(data)[i]);
  if (Contains(kNarrowFloats, type)) {
    number.real = static_cast<double>(kernels::NarrowToFloat(type, kernels::LoadBits(type, data, i)));
    return number;
  }
  if (Contains(kNarrowIntegers, type)) {
    number.is_integer = true;
    number.integer = kernels::NarrowToInteger(type, kernels::LoadBits(type, data, i));
    return number;
  }
  const char* at = static_cast<const char*>(data) + i * (DTypeBits(type) / 8);
  number.is_integer = !IsFloat(type);
  number.is_unsigned = type == DType::kU64;
  if (number.is_integer) Row(type, number.is_unsigned ? DType::kU64 : DType::kI64, at, &number.integer);
  else Row(type, DType::kF64, at, &number.real);
  return number;
}

std::string Text(const Number& number, DType from) {
  if (number.is_integer) {
    if (from == DType::kBool) return number.integer != 0 ? "True" : "False";
    if (number.is_unsigned) return absl::StrCat(static_cast<std::uint64_t>(number.integer));
    return absl::StrCat(number.integer);
  }
  if (std::isnan(number.real)) return "NaN";
  if (std::isinf(number.real)) return number.real > 0 ? "INF" : "-INF";
  // The fewest digits that give the value back.
  char buffer[64];
  const std::to_chars_result end =
      from == DType::kF64
          ? std::to_chars(buffer, buffer + sizeof buffer, number.real)
          : std::to_chars(buffer, buffer + sizeof buffer, static_cast<float>(number.real));
  return std::string(buffer, end.ptr);
}

void Store(const Number& number, DType from, DType to, const Rounding& rounding, void* data,
           std::int64_t i) {
  if (to == DType::kString) {
    static_cast<std::string*>(data)[i] = Text(number, from);
    return;
  }
  const DType carrier =
      !number.is_integer ? DType::kF64 : number.is_unsigned ? DType::kU64 : DType::kI64;
  const void* value = number.is_integer ? static_cast<const void*>(&number.integer) : &number.real;
  if (Contains(kNarrowFloats, to)) {
    double real;
    Row(carrier, DType::kF64, value, &real);
    // To odd first: rounding twice must not differ from rounding once.
    kernels::StoreBits(to, data, i,
                       kernels::FloatToNarrow(to, Half::RoundToOdd(real), rounding.saturate,
                                              rounding.power));
  } else if (Contains(kNarrowIntegers, to)) {
    std::int64_t integer;
    Row(carrier, DType::kI64, value, &integer);
    kernels::StoreBits(to, data, i, static_cast<unsigned>(integer & 0xf));
  } else {
    Row(carrier, to, value, static_cast<char*>(data) + i * (DTypeBits(to) / 8));
  }
}

// Between floats of C++: large constants come this way while a model loads.
template <typename From>
void CastFloats(const RunContext& run) {
  DispatchDType<kFloats>(run.output(0).dtype, [&](auto to) {
    const std::int64_t count = run.count(0);
    for (std::int64_t i = 0; i < count; ++i)
      run.Store(0, i, static_cast<decltype(to)>(static_cast<double>(run.Load<From>(0, i))));
  });
}

absl::Status Reference(const RunContext& run, std::int64_t, void*) {
  const Slot &in = run.input(0), &out = run.output(0);
  const Rounding rounding = RoundingOf(run.attributes());
  // On a device that keeps floats as float64 the value still has to be one of the declared type.
  const DType to = run.declared_dtype(0);
  const bool widened = to != out.dtype;
  if (!widened && IsFloat(in.dtype) && IsFloat(to)) {
    DispatchDType<kFloats>(in.dtype, [&](auto from) { CastFloats<decltype(from)>(run); });
    return absl::OkStatus();
  }
  for (std::int64_t i = 0; i < in.count; ++i) {
    NPURT_ASSIGN_OR_RETURN(const Number number, Load(in.dtype, in.data, i));
    if (!widened) {
      Store(number, in.dtype, to, rounding, out.data, i);
      continue;
    }
    std::uint64_t cell = 0;
    Store(number, in.dtype, to, rounding, &cell, 0);
    NPURT_ASSIGN_OR_RETURN(const Number rounded, Load(to, &cell, 0));
    Store(rounded, to, out.dtype, rounding, out.data, i);
  }
  return absl::OkStatus();
}

}  // namespace

extern constexpr OpDef kOps[] = {
    {
        .name = "Cast",
        .inputs = {{"input", "T1"}},
        .outputs = {{"output", "T2"}},
        .types = {{"T1", kCastable}, {"T2", kCastable}},
        .attributes = {{"to", AttrKind::kInt, true},
                       {"saturate", AttrKind::kInt},
                       {"round_mode", AttrKind::kString}},
        .any_rank = true,
        .infer = Infer,
        .reference = Reference,
        .prepare = ElementwisePrepare<Program>,  // float8 and packed types have none
        .bind = BindElementwise,
        .run = RunElementwise,
        .row = ElementwiseRow<Program>,
    },
    {
        .name = "CastLike",
        .inputs = {{"input", "T1"}, {"target_type", "T2"}},
        .outputs = {{"output", "T2"}},
        .types = {{"T1", kCastable}, {"T2", kCastable}},
        .attributes = {{"saturate", AttrKind::kInt}, {"round_mode", AttrKind::kString}},
        .any_rank = true,
        .infer = Infer,
        .reference = Reference,
    },
};
extern constexpr int kOpCount = static_cast<int>(sizeof kOps / sizeof kOps[0]);

}  // namespace npurt::ops::cast
