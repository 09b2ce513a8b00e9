#include "cli/distance.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "cli/args.h"
#include "cli/text.h"
#include "cli/values.h"

namespace npurt::cli {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Floating types from fine to coarse. What is allowed by default is some hundred units of the last
// place, as errors of many layers add up.
struct FloatType {
  npurt_dtype dtype;
  int coarseness;
  double largest;
};
constexpr FloatType kFloatTypes[] = {
    {NPURT_FLOAT64, 0, std::numeric_limits<double>::max()},
    {NPURT_FLOAT32, 1, std::numeric_limits<float>::max()},
    {NPURT_FLOAT16, 2, 65504},
    {NPURT_BFLOAT16, 3, 0x1.FEp127},
    {NPURT_FLOAT8E4M3FN, 4, 448},
    {NPURT_FLOAT8E4M3FNUZ, 4, 240},
    {NPURT_FLOAT8E5M2, 5, 57344},
    {NPURT_FLOAT8E5M2FNUZ, 5, 57344},
    {NPURT_FLOAT4E2M1, 6, 6},
    {NPURT_FLOAT8E8M0, 6, 0x1p127},
};
constexpr Limits kDefaults[] = {
    {true, 1e-12, 1e-9, 0.9999999}, {true, 1e-6, 1e-3, 0.9999}, {true, 1e-6, 5e-2, 0.999},
    {true, 1e-6, 0.2, 0.99},        {true, 1e-6, 0.3, 0.95},    {true, 1e-6, 0.5, 0.9},
    {true, 1e-6, 0.7, 0.8},
};

const FloatType* FindFloatType(npurt_dtype dtype) {
  for (const FloatType& type : kFloatTypes)
    if (type.dtype == dtype) return &type;
  return nullptr;
}

template <typename Bits, typename Float>
Bits BitsOf(Float value) {
  static_assert(sizeof(Bits) == sizeof(Float));
  Bits bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

// Which number of `dtype` the magnitude of `value` rounds to, counted from zero.
std::uint64_t Step(npurt_dtype dtype, double value) {
  const double size = std::fabs(value);
  const auto narrow = BitsOf<std::uint32_t>(static_cast<float>(size));
  std::uint8_t bytes[8] = {};
  switch (dtype) {
    case NPURT_FLOAT64:
      return BitsOf<std::uint64_t>(size);
    case NPURT_FLOAT32:
      return narrow;
    case NPURT_BFLOAT16:
      return (narrow + 0x7FFFu + ((narrow >> 16) & 1)) >> 16;
    case NPURT_FLOAT16:
      if (size < 0x1p-14) return static_cast<std::uint64_t>(std::nearbyint(size * 0x1p24));
      return std::min(((narrow + 0xFFFu + ((narrow >> 13) & 1)) >> 13) - (112u << 10), 0x7C00u);
    default:
      StoreElement(dtype, bytes, 0, size);
      return bytes[0];
  }
}

double StepsBetween(npurt_dtype dtype, double a, double b) {
  const std::uint64_t x = Step(dtype, a), y = Step(dtype, b);
  if (std::signbit(a) != std::signbit(b)) return static_cast<double>(x) + static_cast<double>(y);
  return static_cast<double>(x > y ? x - y : y - x);
}

void MeasureFloats(const Array& a, const Array& b, npurt_dtype rounded_to, Distance* distance) {
  const FloatType& type_a = *FindFloatType(PartOf(a.dtype));
  const FloatType& type_b = *FindFloatType(PartOf(b.dtype));
  npurt_dtype coarsest = type_a.dtype;
  for (const npurt_dtype dtype : {type_b.dtype, PartOf(rounded_to)})
    if (Coarseness(dtype) > Coarseness(coarsest)) coarsest = dtype;
  long double product = 0, square_a = 0, square_b = 0;
  constexpr std::size_t kBlock = 1024;
  double xs[kBlock], ys[kBlock];
  const auto look = [](double x, double other, double largest, Distance::Side* side) {
    side->nan += std::isnan(x);
    side->inf += std::isinf(x);
    side->overflow += std::fabs(x) >= largest && x != other && std::isfinite(other);
  };
  for (std::size_t begin = 0; begin < distance->count; begin += kBlock) {
    const std::size_t n = std::min(kBlock, distance->count - begin);
    LoadElements(type_a.dtype, a.bytes.data(), begin, n, xs);
    LoadElements(type_b.dtype, b.bytes.data(), begin, n, ys);
    for (std::size_t i = 0; i < n; ++i) {
      const double x = xs[i], y = ys[i];
      look(x, y, type_a.largest, &distance->a);
      look(y, x, type_b.largest, &distance->b);
      if (std::isfinite(x)) distance->range = std::max(distance->range, std::fabs(x));
      const bool finite = std::isfinite(x) && std::isfinite(y);
      if (finite) {
        product += static_cast<long double>(x) * y;
        square_a += static_cast<long double>(x) * x;
        square_b += static_cast<long double>(y) * y;
      }
      if (x == y || (std::isnan(x) && std::isnan(y))) continue;
      ++distance->differing;
      if (!finite) {
        ++distance->not_finite;
        continue;
      }
      const double apart = std::fabs(x - y);
      distance->max_abs = std::max(distance->max_abs, apart);
      distance->max_rel = std::max(distance->max_rel, apart / std::max(std::fabs(x), std::fabs(y)));
      distance->ulp = std::max(distance->ulp, StepsBetween(coarsest, x, y));
    }
  }
  if (square_a > 0 && square_b > 0) {
    // Rounding may carry it past 1.
    distance->cosine = static_cast<double>(
        std::clamp<long double>(product / (std::sqrt(square_a) * std::sqrt(square_b)), -1, 1));
  } else if (square_a > 0 || square_b > 0) {
    distance->cosine = 0;
  }
}

void MeasureExactly(const Array& a, const Array& b, Distance* distance) {
  if (a.dtype == NPURT_STRING) {
    for (std::size_t i = 0; i < distance->count; ++i)
      distance->differing += a.strings[i] != b.strings[i];
    return;
  }
  for (std::size_t i = 0; i < distance->count; ++i) {
    const long double x = LoadElement(a.dtype, a.bytes.data(), i);
    const long double y = LoadElement(b.dtype, b.bytes.data(), i);
    distance->range = std::max(distance->range, static_cast<double>(std::fabs(x)));
    if (x == y) continue;
    ++distance->differing;
    const long double apart = std::fabs(x - y);
    distance->max_abs = std::max(distance->max_abs, static_cast<double>(apart));
    distance->max_rel = std::max(distance->max_rel,
                                 static_cast<double>(apart / std::max(std::fabs(x), std::fabs(y))));
  }
}

bool ParsePart(const std::string& text, double min, double max, double* out) {
  return ParseReal(text, out) && *out >= min && *out <= max;
}

}  // namespace

double Distance::part_of_range() const {
  return max_abs == 0 ? 0 : range == 0 ? kInfinity : max_abs / range;
}

int Coarseness(npurt_dtype dtype) {
  const FloatType* type = FindFloatType(PartOf(dtype));
  return type == nullptr ? -1 : type->coarseness;
}

Distance Measure(const Array& a, const Array& b, npurt_dtype rounded_to) {
  Distance distance;
  distance.exact = !IsFloating(a.dtype);
  const bool like = distance.exact ? a.dtype == b.dtype
                                   : IsFloating(b.dtype) && (PartOf(a.dtype) == a.dtype) ==
                                                                (PartOf(b.dtype) == b.dtype);
  if (!like || a.dims != b.dims || !CountOf(a.dims, &distance.count)) {
    distance.problem = "A has " + Describe(a) + ", B has " + Describe(b);
    return distance;
  }
  if (PartOf(a.dtype) != a.dtype) distance.count *= 2;
  if (distance.exact)
    MeasureExactly(a, b, &distance);
  else
    MeasureFloats(a, b, rounded_to, &distance);
  return distance;
}

void Merge(const Distance& part, Distance* whole) {
  if (whole->problem.empty()) whole->problem = part.problem;
  whole->exact = whole->exact && part.exact;
  whole->count += part.count;
  whole->differing += part.differing;
  whole->not_finite += part.not_finite;
  whole->range = std::max(whole->range, part.range);
  whole->max_abs = std::max(whole->max_abs, part.max_abs);
  whole->max_rel = std::max(whole->max_rel, part.max_rel);
  whole->cosine = std::min(whole->cosine, part.cosine);
  whole->ulp = std::max(whole->ulp, part.ulp);
  for (const auto side : {&Distance::a, &Distance::b}) {
    (whole->*side).nan += (part.*side).nan;
    (whole->*side).inf += (part.*side).inf;
    (whole->*side).overflow += (part.*side).overflow;
  }
}

Limits DefaultLimits(int coarseness) {
  const int last = static_cast<int>(std::size(kDefaults)) - 1;
  return kDefaults[std::clamp(coarseness, 0, last)];
}

Status ParseLimits(const std::string& text, Limits* out) {
  Limits limits;
  limits.numbers = false;
  for (const std::string& part : Split(text, ',')) {
    std::string name, value;
    const bool pair = SplitPair(part, '=', false, &name, &value);
    bool good = false;
    if (pair && name == "abs") {
      good = ParsePart(value, 0, kInfinity, &limits.absolute);
      limits.numbers = true;
    } else if (pair && name == "rel") {
      good = ParsePart(value, 0, kInfinity, &limits.relative);
      limits.numbers = true;
    } else if (pair && name == "cosine") {
      good = ParsePart(value, -1, 1, &limits.cosine);
    }
    if (!good)
      return Usage("--tolerance: got '" + part + "', want abs=X, rel=X or cosine=X",
                   "Several go with commas: --tolerance abs=1e-6,rel=1e-3,cosine=0.999");
  }
  *out = limits;
  return Status();
}

std::string Describe(const Limits& limits) {
  std::string text;
  if (limits.numbers)
    text = "abs " + FormatReal(limits.absolute) + " + rel " + FormatReal(limits.relative) +
           " of the largest number";
  if (limits.cosine > -1)
    text += std::string(text.empty() ? "" : ", ") + "cosine " + FormatReal(limits.cosine);
  return text.empty() ? "none" : text;
}

double Excess(const Distance& distance, const Limits& limits) {
  if (!distance.problem.empty() || distance.not_finite > 0) return kInfinity;
  if (distance.exact) return distance.differing > 0 ? kInfinity : 0;
  const double allowed = limits.absolute + limits.relative * distance.range;
  double excess = 0;
  if (limits.numbers && distance.max_abs > 0)
    excess = allowed == 0 ? kInfinity : distance.max_abs / allowed;
  // Directions of what is zero but for rounding mean nothing.
  if (limits.cosine > -1 && distance.max_abs > limits.absolute) {
    const double turned = 1 - distance.cosine, may = 1 - limits.cosine;
    if (turned > 0) excess = std::max(excess, may == 0 ? kInfinity : turned / may);
  }
  return excess;
}

}  // namespace npurt::cli
