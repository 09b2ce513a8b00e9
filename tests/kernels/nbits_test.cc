// Kernels for weights of few bits against plain loops, on all tails, at the end of readable memory.
#include "kernels/nbits/nbits.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "kernels/gemm/gemm.h"
#include "support/guarded_buffer.h"

namespace npurt::kernels {
namespace {

class NbitsCheck : public ::testing::TestWithParam<NbitsKernel> {};

TEST_P(NbitsCheck, DotAndUnpackMatchPlainLoopsOnAllTails) {
  const NbitsKernel& kernel = GetParam();
  NPURT_SKIP_UNLESS_ISA(kernel.needs, kernel.name);
  std::mt19937 random(5);
  std::uniform_real_distribution<float> uniform(-1, 1);
  const std::int64_t block = 16;
  const auto tile_n = static_cast<std::size_t>(kernel.tile_n);
  for (int bits : {2, 4, 8})
    for (std::int64_t k : {1, 3, 15, 16, 17, 40, 64}) {
      const std::int64_t per_word = 32 / bits;
      const auto words_k = static_cast<std::size_t>((k + per_word - 1) / per_word);
      const auto blocks = static_cast<std::size_t>((k + block - 1) / block);
      GuardedBuffer<std::int32_t> words(words_k * tile_n);
      GuardedBuffer<float> scales(blocks * tile_n), zeros(blocks * tile_n);
      for (std::int32_t& word : words) word = static_cast<std::int32_t>(random());
      for (float& x : scales) x = uniform(random);
      for (float& x : zeros) x = static_cast<float>(random() % 16);
      const NbitsPanel panel = {words.data(), scales.data(), zeros.data(), 0, k, block, bits};
      std::vector<double> want(static_cast<std::size_t>(k) * tile_n);
      for (std::int64_t i = 0; i < k; ++i)
        for (std::size_t n = 0; n < tile_n; ++n) {
          const auto word = static_cast<std::uint32_t>(
              words[static_cast<std::size_t>(i / per_word) * tile_n + n]);
          const auto q = word >> (i % per_word * bits) & ((1u << bits) - 1);
          const std::size_t at = static_cast<std::size_t>(i / block) * tile_n + n;
          want[static_cast<std::size_t>(i) * tile_n + n] =
              (static_cast<double>(q) - static_cast<double>(zeros[at])) *
              static_cast<double>(scales[at]);
        }
      GuardedBuffer<float> unpacked(want.size());
      kernel.unpack(panel, unpacked.data());
      for (std::size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(unpacked[i], want[i], 1e-4);
      for (int rows = 1; rows <= kNbitsRows; ++rows)
        for (int cols = 1; cols <= kernel.tile_n; ++cols) {
          const auto r_count = static_cast<std::size_t>(rows),
                     c_count = static_cast<std::size_t>(cols);
          GuardedBuffer<float> a(r_count * static_cast<std::size_t>(k)), c(r_count * c_count),
              bias(c_count);
          for (float& x : a) x = uniform(random);
          for (float& x : bias) x = uniform(random);
          kernel.dot({panel, a.data(), k, cols % 2 == 0 ? nullptr : bias.data(), c.data(), cols,
                      rows, cols});
          for (std::size_t r = 0; r < r_count; ++r)
            for (std::size_t n = 0; n < c_count; ++n) {
              double sum = cols % 2 == 0 ? 0 : static_cast<double>(bias[n]);
              for (std::int64_t i = 0; i < k; ++i)
                sum += static_cast<double>(
                           a[r * static_cast<std::size_t>(k) + static_cast<std::size_t>(i)]) *
                       want[static_cast<std::size_t>(i) * tile_n + n];
              ASSERT_NEAR(c[r * c_count + n], sum, 2e-3)
                  << kernel.name << " " << bits << " bits, k " << k << ", row " << r << ", column "
                  << n;
            }
        }
    }
}

TEST_P(NbitsCheck, PanelsAreAsWideAsThoseOfGemm) {
  EXPECT_EQ(GetParam().tile_n, SelectGemmKernel(GetParam().needs)->tile_n);
}

INSTANTIATE_TEST_SUITE_P(Nbits, NbitsCheck,
                         ::testing::ValuesIn(kNbitsKernels, kNbitsKernels + kNbitsKernelCount),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace npurt::kernels
