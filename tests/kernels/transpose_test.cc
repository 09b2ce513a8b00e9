// Transposes: each block kernel on all tails, plans against plain loops.
#include "kernels/transpose/transpose.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <vector>

#include "support/guarded_buffer.h"

namespace npurt::kernels {
namespace {

class TransposeCheck : public ::testing::TestWithParam<TransposeKernel> {};

TEST_P(TransposeCheck, MatchesPlainLoopsOnAllTails) {
  const TransposeKernel& kernel = GetParam();
  NPURT_SKIP_UNLESS_ISA(kernel.needs, kernel.name);
  const std::size_t w = kernel.element_bytes;
  for (std::size_t rows = 1; rows <= 35; ++rows)
    for (std::size_t at = 2; at <= 71; ++at) {
      const bool dense = at % 2 == 1;
      const std::size_t cols = at / 2;
      const std::size_t in_stride = dense ? cols : cols + 3, out_stride = dense ? rows : rows + 2;
      GuardedBuffer<unsigned char> in(((rows - 1) * in_stride + cols) * w);
      GuardedBuffer<unsigned char> out(((cols - 1) * out_stride + rows) * w);
      for (std::size_t i = 0; i < in.size(); ++i)
        in[i] = static_cast<unsigned char>(i * 7 + i / 256);
      std::vector<unsigned char> want(out.begin(), out.end());
      for (std::size_t r = 0; r < rows; ++r)
        for (std::size_t c = 0; c < cols; ++c)
          std::memcpy(want.data() + (c * out_stride + r) * w, in.data() + (r * in_stride + c) * w,
                      w);
      kernel.run(in.data(), in_stride, out.data(), out_stride, rows, cols);
      ASSERT_EQ(std::memcmp(out.data(), want.data(), want.size()), 0)
          << kernel.name << " " << rows << " x " << cols;
    }
}

INSTANTIATE_TEST_SUITE_P(Transpose, TransposeCheck,
                         ::testing::ValuesIn(kTransposeKernels,
                                             kTransposeKernels + kTransposeKernelCount),
                         [](const auto& info) { return std::string(info.param.name); });

void CheckPlan(const std::vector<std::int64_t>& dims, const std::vector<std::int64_t>& perm,
               std::size_t width) {
  const int rank = static_cast<int>(dims.size());
  TransposePlan plan;
  ASSERT_TRUE(PlanTranspose(dims.data(), perm.data(), rank, width, DetectedIsa(), &plan));
  std::int64_t count = 1;
  std::vector<std::int64_t> strides(dims.size());
  for (std::size_t i = dims.size(); i-- > 0;) {
    strides[i] = count;
    count *= dims[i];
  }
  const std::size_t bytes = static_cast<std::size_t>(count) * width;
  GuardedBuffer<unsigned char> in(bytes), out(bytes);
  std::mt19937 random(3);
  for (unsigned char& c : in) c = static_cast<unsigned char>(random());
  for (std::int64_t tile = plan.tiles - 1; tile >= 0; --tile)
    RunTransposeTile(plan, in.data(), out.data(), tile);
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t rest = i, from = 0;
    for (std::size_t a = dims.size(); a-- > 0;) {
      const std::size_t axis = static_cast<std::size_t>(perm[a]);
      from += rest % dims[axis] * strides[axis];
      rest /= dims[axis];
    }
    ASSERT_EQ(std::memcmp(out.data() + static_cast<std::size_t>(i) * width,
                          in.data() + static_cast<std::size_t>(from) * width, width),
              0)
        << "element " << i << " of width " << width;
  }
}

TEST(TransposePlanTest, MatchesPlainLoopsForEveryPermutation) {
  for (std::size_t width : {1u, 2u, 4u, 8u, 16u}) {
    std::vector<std::int64_t> perm = {0, 1, 2, 3};
    do {
      CheckPlan({3, 5, 2, 4}, perm, width);
      CheckPlan({2, 1, 33, 17}, perm, width);
    } while (std::next_permutation(perm.begin(), perm.end()));
    CheckPlan({2, 3, 50, 70}, {0, 2, 3, 1}, width);
    CheckPlan({300, 500}, {1, 0}, width);
    CheckPlan({70, 5000}, {1, 0}, width);  // strips that are cut across
    CheckPlan({40, 30, 20}, {1, 0, 2}, width);
    CheckPlan({}, {}, width);
    CheckPlan({3, 0, 2}, {2, 1, 0}, width);
  }
}

TEST(TransposePlanTest, CopiesWhatKeepsItsOrder) {
  const std::int64_t dims[] = {2, 1, 3}, perm[] = {1, 0, 2};
  TransposePlan plan;
  ASSERT_TRUE(PlanTranspose(dims, perm, 3, 4, DetectedIsa(), &plan));
  EXPECT_EQ(plan.kind, TransposePlan::Kind::kCopy);
}

}  // namespace
}  // namespace npurt::kernels
