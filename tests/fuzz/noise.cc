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
                                  "Or",
                                  "Pad",
                                  "Range",
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

bool IsExact(const std::string& op) {
  return std::find(std::begin(kExact), std::end(kExact), op) != std::end(kExact);
}

// Each element of a float tensor moved up or down by noise + relative * |element|.
Value Moved(const Value& value, double noise, double relative, std::mt19937& random) {
  if (value.kind() == ValueKind::kSequence) {
    ValueList items;
    for (const Value& item : value.items()) items.push_back(Moved(item, noise, relative, random));
    return Value::Sequence(std::move(items));
  }
  if (!value.is_tensor() || !IsFloat(value.tensor().dtype())) return value;
  const Tensor& tensor = value.tensor();
  const double step = 4 * relative * RoundoffOf(tensor.dtype());
  std::vector<double> numbers = *Reals(tensor);
  for (double& v : numbers) {
    const double by = noise + step * std::fabs(v);
    v += random() % 2 == 0 ? by : -by;
  }
  return ops::MakeTensorOf(tensor.dtype(), {tensor.dims().begin(), tensor.dims().end()}, numbers);
}

// Each element of a float tensor at the nearest multiple of `step`: what is nearly equal is equal,
// and what is nearly nothing is 0.
Value Snapped(const Value& value, double step) {
  if (!value.is_tensor() || !IsFloat(value.tensor().dtype()) || step == 0) return value;
  const Tensor& tensor = value.tensor();
  std::vector<double> numbers = *Reals(tensor);
  for (double& v : numbers) v = std::round(v / step) * step;
  return ops::MakeTensorOf(tensor.dtype(), {tensor.dims().begin(), tensor.dims().end()}, numbers);
}

// The largest move of an element between two values; infinite where they differ in more than that.
double Distance(const Value& a, const Value& b) {
  if (a.kind() == ValueKind::kSequence && b.kind() == ValueKind::kSequence &&
      a.items().size() == b.items().size()) {
    double most = 0;
    for (std::size_t i = 0; i < a.items().size(); ++i)
      most = std::max(most, Distance(a.items()[i], b.items()[i]));
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
  if (value.kind() == ValueKind::kSequence)
    for (const Value& item : value.items()) most = std::max(most, LargestOf(item));
  if (!value.is_tensor() || !IsFloat(value.tensor().dtype())) return most;
  const std::vector<double> numbers = *Reals(value.tensor());
  for (const double v : numbers) most = std::isnan(v) ? HUGE_VAL : std::max(most, std::fabs(v));
  return most;
}

double RoundoffOfValue(const Value& value) {
  if (value.is_tensor()) return RoundoffOf(value.tensor().dtype());
  double most = 0;
  if (value.kind() == ValueKind::kSequence)
    for (const Value& item : value.items()) most = std::max(most, RoundoffOfValue(item));
  return most;
}

}  // namespace

double RoundoffOf(DType dtype) {
  switch (dtype) {
    case DType::kF64:  // fast versions may compute in float32
    case DType::kF32:
      return 0x1p-24;
    case DType::kF16:
      return 0x1p-11;
    case DType::kBF16:
      return 0x1p-8;
    default:
      return 0;
  }
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
                                                          const std::vector<NoisyValue>& inputs,
                                                          double body_noise) {
  constexpr double kFar = 32, kMaxLargest = 1e4, kMaxNoise = 0.03;
  std::vector<Value> operands;
  double noise_in = 0;
  for (const NoisyValue& input : inputs) {
    operands.push_back(input.value);
    noise_in = std::max(noise_in, input.noise);
  }
  NPURT_ASSIGN_OR_RETURN(std::vector<Value> outputs, Evaluate(spec, operands));
  std::vector<NoisyValue> results;
  for (Value& output : outputs) {
    if (!(LargestOf(output) <= kMaxLargest)) return absl::InvalidArgumentError("too large");
    results.push_back({std::move(output), body_noise});
  }
  const bool exact = IsExact(spec.op);
  // A choice between numbers that differ by noise stays the same in half of the trials.
  const int trials = exact ? 12 : 3;
  if (exact && noise_in == 0) return results;
  std::mt19937 random(1);
  for (int trial = 0; trial <= trials + 1; ++trial) {
    const double scale = trial < trials ? 1 : kFar;
    std::vector<Value> moved;
    for (const NoisyValue& input : inputs)
      moved.push_back(trial > trials
                          ? Snapped(input.value, scale * input.noise)
                          : Moved(input.value, scale * input.noise, exact ? 0 : scale, random));
    NPURT_ASSIGN_OR_RETURN(const std::vector<Value> again, Evaluate(spec, moved));
    for (std::size_t i = 0; i < results.size(); ++i) {
      NoisyValue& result = results[i];
      const double distance = Distance(result.value, again[i]);
      if (distance == HUGE_VAL) return absl::InvalidArgumentError("small moves change it");
      // What is far below 1 is often the difference of numbers that are not.
      const double floor =
          RoundoffOfValue(result.value) * std::max(LargestOf(result.value), exact ? 0.0 : 1.0);
      if (trial < trials)
        result.noise = std::max({result.noise, distance, floor});
      else if (distance > 4 * kFar * result.noise)
        return absl::InvalidArgumentError("small moves change it much");
      if (result.noise > kMaxNoise * (1 + LargestOf(result.value)))
        return absl::InvalidArgumentError("nothing but noise");
    }
  }
  return results;
}

}  // namespace npurt::fuzz
