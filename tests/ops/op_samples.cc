// One long list, compiled without optimisation: optimising it takes a compiler most of a minute.
#include "ops/op_samples.h"

#include "ops/op_test_harness.h"

namespace npurt::ops {
namespace {

// The words of op_samples.inc.
using D = std::vector<std::int64_t>;
using V = std::vector<double>;
int seed = 1;
[[maybe_unused]] Value F(const D& dims) { return RandomTensor(DType::kF32, dims, seed++, -2, 2); }
[[maybe_unused]] Value F(const D& dims, const V& v) { return MakeTensorOf(DType::kF32, dims, v); }
// Positive, for logarithms, roots and variances.
[[maybe_unused]] Value P(const D& dims) { return RandomTensor(DType::kF32, dims, seed++, 0.1, 2); }
// Small, where steps feed on each other: with large weights a rounding error would grow.
[[maybe_unused]] Value N(const D& dims) {
  return RandomTensor(DType::kF32, dims, seed++, -0.3, 0.3);
}
[[maybe_unused]] Value I(const D& dims, const V& v) { return MakeTensorOf(DType::kI64, dims, v); }
[[maybe_unused]] Value I32(const D& dims, const V& v) { return MakeTensorOf(DType::kI32, dims, v); }
[[maybe_unused]] Value U8(const D& dims) { return RandomTensor(DType::kU8, dims, seed++, 0, 255); }
[[maybe_unused]] Value U8(const D& dims, const V& v) { return MakeTensorOf(DType::kU8, dims, v); }
[[maybe_unused]] Value I8(const D& dims) { return RandomTensor(DType::kI8, dims, seed++, -128, 127); }
[[maybe_unused]] Value I8(const D& dims, const V& v) { return MakeTensorOf(DType::kI8, dims, v); }
[[maybe_unused]] Value B(const D& dims) { return RandomTensor(DType::kBool, dims, seed++, 0, 1); }
[[maybe_unused]] Value S(const D& dims, const std::vector<std::string>& v) {
  return MakeTensor<std::string>(dims, v);
}
[[maybe_unused]] Value None() { return Value(); }
[[maybe_unused]] Value Seq(ValueList items) { return Value::Sequence(std::move(items)); }
[[maybe_unused]] Attribute A(const char* name, int v) { return {name, std::int64_t{v}}; }
[[maybe_unused]] Attribute A(const char* name, double v) { return {name, static_cast<float>(v)}; }
[[maybe_unused]] Attribute A(const char* name, const char* v) { return {name, std::string(v)}; }
[[maybe_unused]] Attribute Is(const char* name, const D& v) { return {name, v}; }
[[maybe_unused]] Attribute Fs(const char* name, const std::vector<float>& v) { return {name, v}; }
[[maybe_unused]] Attribute Ss(const char* name, const std::vector<std::string>& v) {
  return {name, v};
}
[[maybe_unused]] Attribute T(const char* name, const Value& v) { return {name, v.tensor()}; }

}  // namespace

std::vector<Sample> MakeSamples() {
  std::vector<Sample> samples;
  seed = 1;
  const auto add = [&](const char* op, std::vector<Value> inputs, std::vector<Attribute> attributes,
                       int outputs = 1) {
    samples.push_back({op, std::move(inputs), Attrs(std::move(attributes)), outputs});
  };
#include "ops/op_samples.inc"
  return samples;
}

}  // namespace npurt::ops
