// The quantising kernels against plain formulas, on all tails, at the end of readable memory.
#include "kernels/quantize/quantize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "support/guarded_buffer.h"

namespace npurt::kernels {
namespace {

class QuantizeCheck : public ::testing::TestWithParam<QuantizeKernel> {};

template <typename T>
T Want(float x, float scale, std::int32_t zero, double low, double high) {
  const double y = std::nearbyint(static_cast<double>(x / scale)) + zero;
  return std::isnan(y) ? T{0} : static_cast<T>(std::fmin(std::fmax(y, low), high));
}

template <typename T>
void CheckType(const QuantizeKernel& kernel, NarrowInteger type) {
  constexpr double kLow = std::numeric_limits<T>::min(), kHigh = std::numeric_limits<T>::max();
  std::mt19937 random(7);
  std::uniform_real_distribution<float> uniform(-300, 300);
  const float special[] = {NAN, INFINITY, -INFINITY, 0.0f, -0.0f, 0.25f, -0.25f, 0.75f, 1e30f, -1e30f, 63.75f};
  for (std::size_t count = 0; count <= 40; ++count)
    for (const float scale : {0.5f, 0.0173f, 0.0f}) {
      const std::int32_t zero = std::numeric_limits<T>::min() + static_cast<std::int32_t>(random() % 200);
      GuardedBuffer<float> x(count), back(count);
      GuardedBuffer<T> y(count);
      for (std::size_t i = 0; i < count; ++i)
        x[i] = random() % 4 == 0 ? special[random() % std::size(special)] : uniform(random);
      kernel.quantize(type, {x.data(), y.data(), count, scale, zero});
      for (std::size_t i = 0; i < count; ++i)
        ASSERT_EQ(y[i], Want<T>(x[i], scale, zero, kLow, kHigh)) << kernel.name << " " << x[i] << " / " << scale;
      for (T& byte : y) byte = static_cast<T>(random());
      kernel.dequantize(type, {y.data(), back.data(), count, scale, zero});
      for (std::size_t i = 0; i < count; ++i)
        ASSERT_EQ(back[i], static_cast<float>(static_cast<std::int32_t>(y[i]) - zero) * scale);
    }
}

TEST_P(QuantizeCheck, MatchesPlainFormulas) {
  NPURT_SKIP_UNLESS_ISA(GetParam().needs, GetParam().name);
  CheckType<std::int8_t>(GetParam(), NarrowInteger::kI8);
  CheckType<std::uint8_t>(GetParam(), NarrowInteger::kU8);
  CheckType<std::int16_t>(GetParam(), NarrowInteger::kI16);
  CheckType<std::uint16_t>(GetParam(), NarrowInteger::kU16);
}

TEST_P(QuantizeCheck, SumsOfBytesAreThoseOfFloat32) {
  const QuantizeKernel& kernel = GetParam();
  NPURT_SKIP_UNLESS_ISA(kernel.needs, kernel.name);
  std::mt19937 random(3);
  for (std::size_t count = 0; count <= 40; ++count)
    for (int signs = 0; signs < 8; ++signs) {
      GuardedBuffer<std::uint8_t> a(count), b(count), y(count);
      for (std::uint8_t& byte : a) byte = static_cast<std::uint8_t>(random());
      for (std::uint8_t& byte : b) byte = static_cast<std::uint8_t>(random());
      const bool a_signed = signs & 1, b_signed = signs & 2, y_signed = signs & 4;
      const auto value = [](bool is_signed, std::uint8_t byte) {
        return is_signed ? static_cast<std::int8_t>(byte) : std::int32_t{byte};
      };
      const auto zero = [&](bool is_signed) {
        return value(is_signed, static_cast<std::uint8_t>(random()));
      };
      const std::int32_t y_zero = zero(y_signed);
      const std::int32_t low = count % 2 == 0 ? y_zero : y_signed ? -128 : 0;
      const std::int32_t high = y_signed ? 127 : 255;
      const ByteSumArgs args = {a.data(), b.data(), y.data(), count, 0.5f, 0.25f, 1.0f, zero(a_signed),
                                zero(b_signed), y_zero, low, high, a_signed, b_signed};
      kernel.byte_sum(args);
      for (std::size_t i = 0; i < count; ++i) {
        const float sum = static_cast<float>(value(a_signed, a[i]) - args.a_zero) * args.a_scale +
                          static_cast<float>(value(b_signed, b[i]) - args.b_zero) * args.b_scale;
        ASSERT_EQ(value(y_signed, y[i]), Want<std::int32_t>(sum, args.scale, y_zero, low, high))
            << kernel.name << " signs " << signs << " element " << i << " of " << count;
      }
    }
}

INSTANTIATE_TEST_SUITE_P(Quantize, QuantizeCheck,
                         ::testing::ValuesIn(kQuantizeKernels, kQuantizeKernels + kQuantizeKernelCount),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace npurt::kernels
