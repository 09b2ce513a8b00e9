#include "fuzz/noise.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <random>
#include <string>

#include "fuzz/random_graph.h"
#include "ops/numbers.h"
#include "ops/op_test_harness.h"

namespace npurt::fuzz {
namespace {

// Operators that compare, choose and move: exact inputs give exact outputs, also where the answer
// jumps.
constexpr const char* kExact[] = {"Abs",
                                  "And",
                                  "ArgMax",
                                  "ArgMin",
                                  "ArrayFeatureExtractor",
                                  "Binarizer",
                                  "BitCast",
                                  "BitShift",
                                  "BitwiseAnd",
                                  "BitwiseNot",
                                  "BitwiseOr",
                                  "BitwiseXor",
                                  "Cast",
                                  "CastLike",
                                  "Ceil",
                                  "CenterCropPad",
                                  "Clip",
                                  "Compress",
                                  "Concat",
                                  "ConcatFromSequence",
                                  "ConstantOfShape",
                                  "DepthToSpace",
                                  "Equal",
                                  "Expand",
                                  "EyeLike",
                                  "Flatten",
                                  "Floor",
                                  "Gather",
                                  "GatherElements",
                                  "GatherND",
                                  "GlobalMaxPool",
                                  "Greater",
                                  "GreaterOrEqual",
                                  "Hardmax",
                                  "Identity",
                                  "IsInf",
                                  "IsNaN",
                                  "Less",
                                  "LessOrEqual",
                                  "Max",
                                  "MaxPool",
                                  "MaxUnpool",
                                  "Min",
                                  "Neg",
                                  "NonZero",
                                  "Not",
                                  "NotEqual",
                                  "OneHot",
                                  "Optional",
                                  "OptionalGetElement",
                                  "OptionalHasElement",
                                  "Or",
                                  "Pad",
                                  "ReduceMax",
                                  "ReduceMin",
                                  "Relu",
                                  "Reshape",
                                  "ReverseSequence",
                                  "Round",
                                  "ScatterElements",
                                  "ScatterND",
                                  "SequenceAt",
                                  "SequenceConstruct",
                                  "SequenceErase",
                                  "SequenceInsert",
                                  "Shape",
                                  "Sign",
                                  "Size",
                                  "Slice",
                                  "SpaceToDepth",
                                  "Split",
                                  "SplitToSequence",
                                  "Squeeze",
                                  "TensorScatter",
                                  "Tile",
                                  "TopK",
                                  "Transpose",
                                  "Trilu",
                                  "Trunc",
                                  "Unique",
                                  "Unsqueeze",
                                  "Where",
                                  "Xor"};

bool IsExact(const graph::NodeSpec& spec) {
  const bool adds =
      spec.attributes.Has("reduction") && spec.attributes.String("reduction") != "none";
  return !adds && std::find(std::begin(kExact), std::end(kExact), spec.op) != std::end(kExact);
}

// How the elements of a node's operands are moved: each by `by` of its own, in a direction that
// depends on the operand and the element.
struct Move {
  enum Directions {
    kUp,
    kDown,
    kUpAndDown,  // the first operand up, the second down ...
    kDownAndUp,
    kZigzag,  // neighbours against each other
    kRandom
  } directions;
  double scale;
};

// An element is off by so much: what it came with, and the rounding inside the node that reads it.
struct Reach {
  double noise, relative;
  double operator()(double v) const { return noise + relative * std::fabs(v); }
};

bool HasItems(const Value& value) {
  return (value.kind() == ValueKind::kSequence || value.kind() == ValueKind::kOptional) &&
         !value.items().empty();
}
// What a sequence, an optional or a map holds.
std::vector<Value> PartsOf(const Value& value) {
  std::vector<Value> parts;
  if (HasItems(value)) parts.assign(value.items().begin(), value.items().end());
  if (value.kind() != ValueKind::kMap) return parts;
  for (const auto& [key, part] : value.map().by_number) parts.push_back(part);
  for (const auto& [key, part] : value.map().by_string) parts.push_back(part);
  return parts;
}

Value OfNumbers(const Tensor& like, const std::vector<double>& numbers) {
  return ops::MakeTensorOf(like.dtype(), {like.dims().begin(), like.dims().end()}, numbers);
}

Value Moved(const Value& value, const Reach& reach, const Move& move, std::size_t operand,
            std::mt19937& random) {
  if (HasItems(value)) {
    ValueList items;
    for (const Value& item : value.items())
      items.push_back(Moved(item, reach, move, operand, random));
    return value.kind() == ValueKind::kSequence ? Value::Sequence(std::move(items))
                                                : Value::Some(std::move(items[0]));
  }
  if (!value.is_tensor() || !IsFloat(value.tensor().dtype())) return value;
  std::vector<double> numbers = *Reals(value.tensor());
  const bool even = operand % 2 == 0;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const bool up = move.directions == Move::kUp || (move.directions == Move::kUpAndDown && even) ||
                    (move.directions == Move::kDownAndUp && !even) ||
                    (move.directions == Move::kZigzag && i % 2 == 0) ||
                    (move.directions == Move::kRandom && random() % 2 == 0);
    numbers[i] += (up ? 1 : -1) * move.scale * reach(numbers[i]);
  }
  return OfNumbers(value.tensor(), numbers);
}

// How elements that noise may have exchanged are made equal, or ordered by their place. Of two
// that lie less than half a step apart, one of the two grids has both in one cell.
struct Grid {
  double offset;  // of the cells, in steps
  int order;      // within a cell: 0 equal, 1 ascending with the place, -1 descending
};
constexpr Grid kGrids[] = {{0, 0}, {0.5, 0}, {0, 1}, {0, -1}, {0.5, 1}, {0.5, -1}};

Value Snapped(const Value& value, double step, const Grid& grid) {
  if (!value.is_tensor() || !IsFloat(value.tensor().dtype()) || step == 0) return value;
  std::vector<double> numbers = *Reals(value.tensor());
  const double place = 0.25 * step * grid.order / static_cast<double>(numbers.size() + 1);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = (std::round(numbers[i] / step - grid.offset) + grid.offset) * step +
                 place * static_cast<double>(i);
  return OfNumbers(value.tensor(), numbers);
}

absl::StatusOr<std::vector<Value>> ComputeByReference(const graph::NodeSpec& spec,
                                                      const std::vector<Value>& inputs) {
  ops::OpOptions options;
  options.reference = true;
  return ops::RunOp(spec.op, inputs, spec.attributes, static_cast<int>(spec.outputs.size()),
                    options);
}

double RoundingOfValue(const Value& value) {
  if (value.is_tensor()) return RoundingOf(value.tensor().dtype());
  double most = 0;
  for (const Value& part : PartsOf(value)) most = std::max(most, RoundingOfValue(part));
  return most;
}

}  // namespace

double RoundingOf(DType dtype) {
  switch (dtype) {
    case DType::kF64:  // fast versions may compute in float32
    case DType::kF32:
      return 32 * 0x1p-24;
    case DType::kF16:  // computed in float32, so only steps round: one of the two in each device
      return 4 * 0x1p-11;
    case DType::kBF16:
      return 4 * 0x1p-8;
    default:
      return 0;
  }
}

double Distance(const Value& a, const Value& b) {
  const std::vector<Value> parts = PartsOf(a), others = PartsOf(b);
  if (!parts.empty() && a.kind() == b.kind() && parts.size() == others.size() &&
      ops::Difference(a, b, 0, HUGE_VAL).empty()) {  // the same keys
    double most = 0;
    for (std::size_t i = 0; i < parts.size(); ++i)
      most = std::max(most, Distance(parts[i], others[i]));
    return most;
  }
  const bool floats = a.is_tensor() && b.is_tensor() && IsFloat(a.tensor().dtype()) &&
                      a.tensor().dims() == b.tensor().dims();
  if (!floats) return ops::Difference(a, b).empty() ? 0 : HUGE_VAL;
  const std::vector<double> x = *Reals(a.tensor()), y = *Reals(b.tensor());
  double most = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (x[i] == y[i] || (std::isnan(x[i]) && std::isnan(y[i]))) continue;
    const double moved = std::fabs(x[i] - y[i]);
    most = std::isnan(moved) ? HUGE_VAL : std::max(most, moved);
  }
  return most;
}

double LargestOf(const Value& value) {
  double most = 0;
  for (const Value& part : PartsOf(value)) most = std::max(most, LargestOf(part));
  if (!value.is_tensor() || !IsFloat(value.tensor().dtype())) return most;
  const std::vector<double> numbers = *Reals(value.tensor());
  for (const double v : numbers) most = std::isnan(v) ? HUGE_VAL : std::max(most, std::fabs(v));
  return most;
}

std::pair<double, double> Range(const Tensor& tensor) {
  std::vector<double> numbers;
  if (IsFloat(tensor.dtype())) {
    numbers = *Reals(tensor);
  } else if (const auto integers = Integers(tensor); integers.ok()) {
    numbers.assign(integers->begin(), integers->end());
  }
  if (numbers.empty()) return {0, 0};
  const auto [low, high] = std::minmax_element(numbers.begin(), numbers.end());
  return {*low, *high};
}

absl::StatusOr<std::vector<NoisyValue>> EvaluateWithNoise(const graph::NodeSpec& spec,
                                                          const std::vector<NoisyValue>& inputs) {
  // Shares of an element's reach. What the larger moves change by much more than the smaller ones
  // is a jump or steep, and no bound follows from a few tries.
  constexpr double kNear = 0.125, kSteep = 4;
  constexpr Move kMoves[] = {
      {Move::kUp, kNear}, {Move::kUpAndDown, kNear}, {Move::kZigzag, kNear}, {Move::kRandom, kNear},
      {Move::kUp, 1},     {Move::kDown, 1},          {Move::kUpAndDown, 1},  {Move::kDownAndUp, 1},
      {Move::kZigzag, 1}, {Move::kRandom, 1},        {Move::kRandom, 1},     {Move::kRandom, 1},
      {Move::kRandom, 1}, {Move::kRandom, 1},        {Move::kRandom, 1},
  };
  constexpr double kMaxLargest = 1e4, kMaxNoise = 0.1;
  std::vector<Value> operands;
  double noise_in = 0;
  for (const NoisyValue& input : inputs) {
    operands.push_back(input.value);
    noise_in = std::max(noise_in, input.noise);
  }
  NPURT_ASSIGN_OR_RETURN(std::vector<Value> outputs, ComputeByReference(spec, operands));
  std::vector<NoisyValue> results;
  for (Value& output : outputs) {
    if (!(LargestOf(output) <= kMaxLargest)) return absl::InvalidArgumentError("too large");
    results.push_back({std::move(output), 0});
  }
  const bool exact = IsExact(spec);
  if (exact && noise_in == 0) return results;
  std::vector<Reach> reach;
  for (const NoisyValue& input : inputs)
    reach.push_back({input.noise, exact ? 0 : RoundingOfValue(input.value)});
  // What is far below 1 is often the difference of numbers that are not.
  std::vector<double> floors, near(results.size(), 0);
  for (const NoisyValue& result : results)
    floors.push_back(RoundingOfValue(result.value) *
                     std::max(LargestOf(result.value), exact ? 0.0 : 1.0));
  std::mt19937 random(1);
  const auto moved = [&](auto&& move) -> absl::StatusOr<std::vector<double>> {
    std::vector<Value> others;
    for (std::size_t i = 0; i < inputs.size(); ++i) others.push_back(move(i));
    NPURT_ASSIGN_OR_RETURN(const std::vector<Value> again, ComputeByReference(spec, others));
    std::vector<double> distances;
    for (std::size_t i = 0; i < results.size(); ++i) {
      distances.push_back(Distance(results[i].value, again[i]));
      if (distances[i] == HUGE_VAL) return absl::InvalidArgumentError("small moves change it");
    }
    return distances;
  };
  for (const Move& move : kMoves) {
    NPURT_ASSIGN_OR_RETURN(const std::vector<double> distances, moved([&](std::size_t i) {
                             return Moved(inputs[i].value, reach[i], move, i, random);
                           }));
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (move.scale < 1)
        near[i] = std::max(near[i], distances[i] / move.scale);
      else
        results[i].noise = std::max(results[i].noise, distances[i]);
    }
  }
  for (std::size_t i = 0; i < results.size(); ++i) {
    NoisyValue& result = results[i];
    const bool jumps = near[i] * kNear > result.noise / 2 && result.noise > kSteep * floors[i];
    if (jumps || result.noise > kSteep * (near[i] + floors[i]))
      return absl::InvalidArgumentError("small moves change it much");
    result.noise = exact ? std::max(result.noise, floors[i]) : result.noise + floors[i];
    if (result.noise > kMaxNoise * (1 + LargestOf(result.value)))
      return absl::InvalidArgumentError("nothing but noise");
  }
  if (noise_in == 0) return results;
  for (const Grid& grid : kGrids) {
    NPURT_ASSIGN_OR_RETURN(const std::vector<double> distances, moved([&](std::size_t i) {
                             return Snapped(inputs[i].value, 4 * inputs[i].noise, grid);
                           }));
    for (std::size_t i = 0; i < results.size(); ++i)
      if (distances[i] > 2 * kSteep * results[i].noise)
        return absl::InvalidArgumentError("the order of nearly equal numbers changes it");
  }
  return results;
}

}  // namespace npurt::fuzz
