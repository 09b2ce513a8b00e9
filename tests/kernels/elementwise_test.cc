// The elementwise engine: each vector row against the typed row, chains against plain loops, and what
// integers and casts promise.
#include "kernels/elementwise/elementwise.h"

#include <gtest/gtest.h>

#include <cfloat>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "kernels/elementwise/narrow.h"
#include "kernels/elementwise/typed.h"
#include "support/guarded_buffer.h"

namespace npurt::kernels {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kOdd[] = {0.0f, -0.0f, kNan, kInf, -kInf, FLT_MAX, -FLT_MAX, FLT_MIN, -FLT_MIN,
                          1.0f, -1.0f, 0.5f, 1.5f, 2.5f, -2.5f, 88.0f, -88.0f, 1e-20f, -1e-4f};

bool Close(float got, float want) {
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) && std::isnan(got);
  if (std::isinf(want) || std::isinf(got)) return got == want;
  return std::fabs(got - want) <= 1e-6f + 5e-6f * std::fabs(want);
}

class VectorRowCheck : public ::testing::TestWithParam<VectorRow> {
 protected:
  // Runs `row` and the typed row on the same operands; `make` gives element i of operand k.
  template <typename F>
  void Check(std::size_t count, std::uint32_t scalars, F make) {
    const VectorRow& row = GetParam();
    const int operands = InfoOf(row.op).operands;
    const bool where = row.op == ElementwiseOp::kWhere;
    const std::size_t in_width = static_cast<std::size_t>(DTypeBits(row.from) / 8);
    const std::size_t out_width = static_cast<std::size_t>(DTypeBits(row.to) / 8);
    std::vector<GuardedBuffer<char>*> owned;
    RowArgs args = {};
    for (int k = 0; k < operands; ++k) {
      const std::size_t n = scalars >> k & 1 ? 1 : count;
      const std::size_t width = where && k == 0 ? 1 : in_width;
      auto* buffer = new GuardedBuffer<char>(n * width);
      owned.push_back(buffer);
      for (std::size_t i = 0; i < n; ++i) {
        const float value = make(k, i);
        if (width == 1) {
          (*buffer)[i] = value > 0 ? 1 : 0;
        } else if (width == 4) {
          std::memcpy(buffer->data() + i * 4, &value, 4);
        } else {
          const std::uint16_t bits = row.from == DType::kF16 ? Half(value).bits()
                                                             : BFloat16(value).bits();
          std::memcpy(buffer->data() + i * 2, &bits, 2);
        }
      }
      args.in[k] = buffer->data();
    }
    const float params[2] = {0.5f, 1.5f};
    GuardedBuffer<char> got(count * out_width), want(count * out_width);
    args.count = count;
    args.scalars = scalars;
    args.params = params;
    args.out = got.data();
    row.run(args);
    args.out = want.data();
    const RowFn oracle = row.op == ElementwiseOp::kCast ? TypedCastRow(row.from, row.to)
                                                        : TypedFloatRow(row.op, DType::kF32);
    ASSERT_NE(oracle, nullptr) << row.name;
    oracle(args);
    for (std::size_t i = 0; i < count; ++i) {
      if (out_width == 1) {
        ASSERT_EQ(got[i], want[i]) << row.name << " n=" << count << " at " << i;
        continue;
      }
      float g, w;
      if (out_width == 4) {
        std::memcpy(&g, got.data() + i * 4, 4);
        std::memcpy(&w, want.data() + i * 4, 4);
      } else {
        std::uint16_t gb, wb;
        std::memcpy(&gb, got.data() + i * 2, 2);
        std::memcpy(&wb, want.data() + i * 2, 2);
        // Rounding to 16 bits is exact on every set; only the payload of a NaN is free.
        g = row.to == DType::kF16 ? HalfBitsToFloat(gb) : static_cast<float>(gb);
        w = row.to == DType::kF16 ? HalfBitsToFloat(wb) : static_cast<float>(wb);
        if (std::isnan(make(0, scalars & 1 ? 0 : i))) continue;
        ASSERT_EQ(gb, wb) << row.name << " n=" << count << " at " << i;
      }
      ASSERT_TRUE(Close(g, w)) << row.name << " n=" << count << " scalars=" << scalars << " at "
                               << i << ": got " << g << ", want " << w << " from " << make(0, i);
    }
    for (auto* buffer : owned) delete buffer;
  }
};

TEST_P(VectorRowCheck, MatchesTheTypedRowOnAllTails) {
  NPURT_SKIP_UNLESS_ISA(GetParam().needs, GetParam().name);
  std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(-4, 4);
  std::vector<float> values(3 * 200);
  for (float& v : values) v = uniform(random);
  const std::uint32_t masks = 1u << InfoOf(GetParam().op).operands;
  for (std::uint32_t scalars = 0; scalars < masks; ++scalars)
    for (std::size_t count = 0; count < 70; ++count)
      Check(count, scalars, [&](int k, std::size_t i) {
        return values[static_cast<std::size_t>(k) * 200 + i];
      });
}

TEST_P(VectorRowCheck, MatchesTheTypedRowOnOddValues) {
  NPURT_SKIP_UNLESS_ISA(GetParam().needs, GetParam().name);
  constexpr std::size_t kCount = std::size(kOdd);
  // Every value against every other one, by turning the second operand.
  for (std::size_t turn = 0; turn < kCount; ++turn)
    Check(kCount, 0, [&](int k, std::size_t i) {
      return kOdd[(i + static_cast<std::size_t>(k) * turn) % kCount];
    });
}

INSTANTIATE_TEST_SUITE_P(Rows, VectorRowCheck,
                         ::testing::ValuesIn(kVectorRows, kVectorRows + kVectorRowCount),
                         [](const auto& info) { return std::string(info.param.name); });

using Shape = std::vector<std::int64_t>;

std::int64_t Count(const Shape& shape) {
  std::int64_t n = 1;
  for (std::int64_t d : shape) n *= d;
  return n;
}

// Element of a broadcast operand that output element `i` reads.
std::int64_t IndexOf(const Shape& out, const Shape& in, std::int64_t i) {
  std::int64_t at = 0, stride = 1;
  for (std::size_t a = 0; a < in.size(); ++a) {
    const std::int64_t extent = in[in.size() - 1 - a];
    if (extent != 1) at += i % out[out.size() - 1 - a] * stride;
    i /= out[out.size() - 1 - a];
    stride *= extent;
  }
  return at;
}

// (a + b) * sigmoid(a * c) and the sum before it, as two outputs.
ElementwiseProgram TwoOutputs() {
  ElementwiseProgram program;
  program.inputs = {DType::kF32, DType::kF32, DType::kF32};
  const std::uint8_t sum = program.Add(ElementwiseOp::kAdd, DType::kF32, 0, 1);
  const std::uint8_t product = program.Add(ElementwiseOp::kMul, DType::kF32, 0, 2);
  const std::uint8_t gate = program.Add(ElementwiseOp::kSigmoid, DType::kF32, product);
  const std::uint8_t result = program.Add(ElementwiseOp::kMul, DType::kF32, sum, gate);
  program.outputs = {result, sum};
  return program;
}

void CheckBroadcast(const Shape& out, const Shape& a, const Shape& b, const Shape& c) {
  const auto chain = PrepareChain(TwoOutputs(), DetectedIsa());
  ASSERT_TRUE(chain.ok()) << chain.status();
  ElementwisePlan plan;
  const absl::Span<const std::int64_t> dims[] = {a, b, c};
  ASSERT_TRUE(PlanElementwise(*chain, out, dims, &plan));
  const std::int64_t n = Count(out);
  GuardedBuffer<float> x(static_cast<std::size_t>(Count(a))), y(static_cast<std::size_t>(Count(b)));
  GuardedBuffer<float> z(static_cast<std::size_t>(Count(c)));
  std::mt19937 random(7);
  std::uniform_real_distribution<float> uniform(-3, 3);
  for (GuardedBuffer<float>* buffer : {&x, &y, &z})
    for (float& v : *buffer) v = uniform(random);
  GuardedBuffer<float> result(static_cast<std::size_t>(n)), sum(static_cast<std::size_t>(n));
  GuardedBuffer<char> scratch(plan.scratch_bytes);
  const void* in[] = {x.data(), y.data(), z.data()};
  void* outs[] = {result.data(), sum.data()};
  for (std::int64_t tile = plan.tiles - 1; tile >= 0; --tile)
    RunElementwiseTile(*chain, plan, in, outs, tile, scratch.data());
  for (std::int64_t i = 0; i < n; ++i) {
    const std::size_t at = static_cast<std::size_t>(i);
    const float av = x[static_cast<std::size_t>(IndexOf(out, a, i))];
    const float bv = y[static_cast<std::size_t>(IndexOf(out, b, i))];
    const float cv = z[static_cast<std::size_t>(IndexOf(out, c, i))];
    ASSERT_EQ(sum[at], av + bv) << i;
    ASSERT_NEAR(result[at], (av + bv) / (1 + std::exp(-av * cv)), 1e-5) << i;
  }
}

TEST(ElementwiseChainTest, BroadcastsInEveryWay) {
  CheckBroadcast({7}, {7}, {7}, {7});
  CheckBroadcast({}, {}, {}, {});
  CheckBroadcast({100000}, {100000}, {1}, {});
  CheckBroadcast({90, 700}, {90, 700}, {700}, {90, 1});          // rows
  CheckBroadcast({9000, 3}, {9000, 3}, {3}, {9000, 1});          // gathers, short rows
  CheckBroadcast({40, 50, 3}, {40, 1, 3}, {50, 1}, {40, 50, 3});
  CheckBroadcast({5, 6, 7, 64}, {5, 1, 7, 1}, {6, 1, 64}, {64});
  CheckBroadcast({2, 3, 4, 5}, {2, 3, 4, 5}, {3, 1, 1}, {1, 1, 4, 1});
  CheckBroadcast({0, 5}, {0, 5}, {5}, {1});
}

TEST(ElementwiseChainTest, RefusesShapesThatDoNotBroadcast) {
  const auto chain = PrepareChain(SingleOp(ElementwiseOp::kAdd, DType::kF32), DetectedIsa());
  ASSERT_TRUE(chain.ok());
  ElementwisePlan plan;
  const Shape a = {3}, b = {4};
  const absl::Span<const std::int64_t> dims[] = {a, b};
  EXPECT_FALSE(PlanElementwise(*chain, a, dims, &plan));
}

TEST(ElementwiseChainTest, RefusesOperandsOfTheWrongType) {
  ElementwiseProgram program;
  program.inputs = {DType::kF32, DType::kI32};
  program.outputs = {program.Add(ElementwiseOp::kAdd, DType::kF32, 0, 1)};
  EXPECT_EQ(PrepareChain(program, DetectedIsa()).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(ElementwiseChainTest, RoundsHalfsOnceAtTheEnd) {
  const auto chain = PrepareChain(SingleOp(ElementwiseOp::kMul, DType::kF16), DetectedIsa());
  ASSERT_TRUE(chain.ok());
  std::vector<Half> x(500), y(500), z(500);
  for (int i = 0; i < 500; ++i) {
    x[static_cast<std::size_t>(i)] = Half(0.1 * i);
    y[static_cast<std::size_t>(i)] = Half(0.37 * i - 50);
  }
  ElementwisePlan plan;
  const Shape shape = {500};
  const absl::Span<const std::int64_t> dims[] = {shape, shape};
  ASSERT_TRUE(PlanElementwise(*chain, shape, dims, &plan));
  std::vector<char> scratch(plan.scratch_bytes);
  const void* in[] = {x.data(), y.data()};
  void* out[] = {z.data()};
  for (std::int64_t t = 0; t < plan.tiles; ++t)
    RunElementwiseTile(*chain, plan, in, out, t, scratch.data());
  for (std::size_t i = 0; i < 500; ++i)
    EXPECT_EQ(z[i].bits(), Half(static_cast<float>(x[i]) * static_cast<float>(y[i])).bits()) << i;
}

template <typename T>
T Apply(ElementwiseOp op, T x, T y) {
  const float params[2] = {};
  T out;
  SelectRow(op, kDTypeOf<T>, isa::kGeneric)({{&x, &y}, &out, 1, 0, params});
  return out;
}

TEST(IntegerRowTest, NothingTraps) {
  constexpr std::int32_t kMin = std::numeric_limits<std::int32_t>::min();
  EXPECT_EQ(Apply<std::int32_t>(ElementwiseOp::kDiv, 7, 0), 0);
  EXPECT_EQ(Apply<std::int32_t>(ElementwiseOp::kDiv, kMin, -1), kMin);
  EXPECT_EQ(Apply<std::int32_t>(ElementwiseOp::kMod, kMin, -1), 0);
  EXPECT_EQ(Apply<std::int32_t>(ElementwiseOp::kMod, -7, 3), 2);
  EXPECT_EQ(Apply<std::int32_t>(ElementwiseOp::kFMod, -7, 3), -1);
  EXPECT_EQ(Apply<std::int32_t>(ElementwiseOp::kFloorDiv, -7, 2), -4);
  EXPECT_EQ(Apply<std::int32_t>(ElementwiseOp::kAdd, kMin, -1), -(kMin + 1));
  EXPECT_EQ(Apply<std::uint16_t>(ElementwiseOp::kMul, 65535, 65535), 1);
  EXPECT_EQ(Apply<std::int64_t>(ElementwiseOp::kPow, 3, 5), 243);
  EXPECT_EQ(Apply<std::int64_t>(ElementwiseOp::kPow, 3, -1), 0);
  EXPECT_EQ(Apply<std::uint8_t>(ElementwiseOp::kShiftLeft, 1, 8), 0);
  EXPECT_EQ(Apply<std::int32_t>(ElementwiseOp::kShiftRight, -8, 100), -1);
}

template <typename From, typename To>
To CastOne(From x) {
  const float params[2] = {};
  To out;
  SelectCastRow(kDTypeOf<From>, kDTypeOf<To>, isa::kGeneric)({{&x}, &out, 1, 0, params});
  return out;
}

TEST(CastRowTest, FloatsToIntegersSaturateAndDropTheFraction) {
  EXPECT_EQ((CastOne<float, std::int32_t>(-2.9f)), -2);
  EXPECT_EQ((CastOne<float, std::int32_t>(1e20f)), std::numeric_limits<std::int32_t>::max());
  EXPECT_EQ((CastOne<float, std::uint8_t>(-1.0f)), 0);
  EXPECT_EQ((CastOne<float, std::int64_t>(kNan)), 0);
  EXPECT_EQ((CastOne<double, std::uint64_t>(1e30)), std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ((CastOne<std::int32_t, std::int8_t>(300)), 44);
  EXPECT_TRUE((CastOne<float, bool>(kNan)));
  EXPECT_EQ((CastOne<double, Half>(1.0 + 0x1p-11 + 0x1p-40).bits()), Half(1.0f + 0x1p-10f).bits());
}

TEST(NarrowFloatTest, EveryValueRoundTrips) {
  for (DType type : {DType::kF8E4M3FN, DType::kF8E4M3FNUZ, DType::kF8E5M2, DType::kF8E5M2FNUZ,
                     DType::kF4E2M1, DType::kF8E8M0})
    for (unsigned code = 0; code < 1u << DTypeBits(type); ++code) {
      const float value = NarrowToFloat(type, code);
      if (std::isnan(value) || std::isinf(value)) continue;
      EXPECT_EQ(FloatToNarrow(type, value, true), code) << DTypeName(type) << " " << value;
    }
}

TEST(NarrowFloatTest, RoundsToEvenAndSaturates) {
  EXPECT_EQ(FloatToNarrow(DType::kF8E4M3FN, 1e6f, true), 0x7eu);
  EXPECT_EQ(FloatToNarrow(DType::kF8E4M3FN, 1e6f, false), 0x7fu);
  EXPECT_EQ(FloatToNarrow(DType::kF8E5M2, -kInf, false), 0xfcu);
  EXPECT_EQ(FloatToNarrow(DType::kF8E4M3FNUZ, -1e-9f, true), 0u);
  EXPECT_EQ(FloatToNarrow(DType::kF4E2M1, 0.25f, true), 0u);
  EXPECT_EQ(FloatToNarrow(DType::kF4E2M1, -3.5f, true), 0xeu);
  EXPECT_EQ(FloatToNarrow(DType::kF8E8M0, 1.1f, true), 128u);
  EXPECT_EQ(FloatToNarrow(DType::kF8E8M0, 1.1f, true, PowerRounding::kDown), 127u);
}

}  // namespace
}  // namespace npurt::kernels
