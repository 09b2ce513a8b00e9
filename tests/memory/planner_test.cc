#include "memory/planner.h"

#include <gtest/gtest.h>

#include <limits>

#include "memory/random_program.h"
#include "memory/verifier.h"

namespace npurt::memory {
namespace {

MemoryPlan PlanSerial(const std::vector<BufferRequest>& buffers, int steps) {
  const auto plan = PlanMemory(buffers, StepOrder::Serial(steps), 64);
  EXPECT_TRUE(plan.ok()) << plan.status();
  if (!plan.ok()) return {};
  EXPECT_TRUE(VerifyPlan(buffers, {.step_count = steps}, 64, *plan).ok());
  return *plan;
}

TEST(PlanMemoryTest, ReusesMemoryOfDeadBuffers) {
  const MemoryPlan plan = PlanSerial({{.bytes = 100, .defined_by = 0, .used_by = {1}},
                                      {.bytes = 100, .defined_by = 1, .used_by = {2}},
                                      {.bytes = 100, .defined_by = 2, .used_by = {3}}},
                                     4);
  EXPECT_EQ(plan.offsets[0], plan.offsets[2]);
  EXPECT_NE(plan.offsets[0], plan.offsets[1]);
  EXPECT_EQ(plan.arena_bytes, 256u);
  EXPECT_EQ(plan.lower_bound_bytes, 256u);
}

TEST(PlanMemoryTest, ReachesTheBoundOnEveryChain) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    std::vector<BufferRequest> chain;
    for (int i = 0; i < 300; ++i) {
      chain.push_back({.bytes = 1 + random() % 100000, .defined_by = i, .used_by = {i + 1}});
    }
    const MemoryPlan plan = PlanSerial(chain, 301);
    EXPECT_EQ(plan.arena_bytes, plan.lower_bound_bytes) << "seed " << seed;
  }
}

TEST(PlanMemoryTest, InputsAndResultsOfAStepAreKeptApart) {
  const MemoryPlan plan = PlanSerial({{.bytes = 64, .defined_by = 0, .used_by = {1}},
                                      {.bytes = 64, .defined_by = 1, .used_by = {}}},
                                     2);
  EXPECT_NE(plan.offsets[0], plan.offsets[1]);
}

TEST(PlanMemoryTest, StepsMayWriteOverWhatDiesThere) {
  const MemoryPlan plan =
      PlanSerial({{.bytes = 640, .defined_by = 0, .used_by = {1}},
                  {.bytes = 640, .defined_by = 1, .used_by = {2}, .in_place_of = 0},
                  {.bytes = 640, .defined_by = 2, .used_by = {3}, .in_place_of = 1}},
                 4);
  EXPECT_EQ(plan.arena_bytes, 640u);
}

TEST(PlanMemoryTest, StepsDoNotWriteOverWhatIsStillNeeded) {
  const BufferRequest heir = {.bytes = 640, .defined_by = 1, .used_by = {2}, .in_place_of = 0};
  // Used later; used later through a view; pinned; defined by the same step.
  EXPECT_EQ(PlanSerial({{.bytes = 640, .defined_by = 0, .used_by = {1, 2}}, heir}, 3).arena_bytes,
            1280u);
  EXPECT_EQ(PlanSerial(
                {{.bytes = 640, .defined_by = 0, .used_by = {1}},
                 heir,
                 {.bytes = 64, .defined_by = 0, .used_by = {2}, .alias_of = 0, .alias_offset = 10}},
                3)
                .arena_bytes,
            1280u);
  EXPECT_EQ(PlanSerial({{.bytes = 640, .used_by = {1}, .pinned = true}, heir}, 3).arena_bytes,
            1280u);
  EXPECT_EQ(PlanSerial({{.bytes = 640, .defined_by = 1, .used_by = {}}, heir}, 3).arena_bytes,
            1280u);
  // Two heirs of the same bytes at one step: one gets them.
  EXPECT_EQ(
      PlanSerial({{.bytes = 640, .defined_by = 0, .used_by = {1}}, heir, heir}, 3).arena_bytes,
      1280u);
  BufferRequest unused = heir;
  unused.used_by.clear();
  EXPECT_EQ(
      PlanSerial({{.bytes = 640, .defined_by = 0, .used_by = {1}}, unused, unused}, 3).arena_bytes,
      1280u);
}

TEST(PlanMemoryTest, ASmallHeirDoesNotKeepABigBlock) {
  const MemoryPlan plan =
      PlanSerial({{.bytes = 64000, .defined_by = 0, .used_by = {1}},
                  {.bytes = 64, .defined_by = 1, .used_by = {9}, .in_place_of = 0},
                  {.bytes = 64000, .defined_by = 2, .used_by = {3}}},
                 10);
  EXPECT_EQ(plan.arena_bytes, 64064u);
}

TEST(PlanMemoryTest, ViewsLieInTheirParentAndKeepItAlive) {
  const MemoryPlan plan = PlanSerial(
      {{.bytes = 1000, .defined_by = 0, .used_by = {1}},
       {.bytes = 100, .defined_by = 1, .used_by = {3}, .alias_of = 0, .alias_offset = 10},
       {.bytes = 50, .defined_by = 1, .used_by = {}, .alias_of = 1, .alias_offset = 3},
       {.bytes = 1000, .defined_by = 2, .used_by = {}}},
      4);
  EXPECT_EQ(plan.offsets[1], plan.offsets[0] + 10);
  EXPECT_EQ(plan.offsets[2], plan.offsets[0] + 13);
  EXPECT_EQ(plan.arena_bytes, 2048u);
}

TEST(PlanMemoryTest, PinnedBuffersShareWithNobody) {
  const MemoryPlan plan = PlanSerial({{.bytes = 64, .defined_by = 2, .used_by = {}, .pinned = true},
                                      {.bytes = 64, .defined_by = 0, .used_by = {}}},
                                     3);
  EXPECT_EQ(plan.arena_bytes, 128u);
  EXPECT_EQ(plan.lower_bound_bytes, 128u);
}

TEST(PlanMemoryTest, EmptyBuffersTakeNothing) {
  EXPECT_EQ(PlanSerial({}, 0).arena_bytes, 0u);
  EXPECT_EQ(PlanSerial({{.bytes = 0, .defined_by = 0, .used_by = {1}}}, 2).arena_bytes, 0u);
}

TEST(PlanMemoryTest, BuffersOfUnorderedStreamsShareNothing) {
  const std::vector<BufferRequest> buffers = {{.bytes = 64, .defined_by = 0, .used_by = {1}},
                                              {.bytes = 64, .defined_by = 2, .used_by = {3}}};
  Schedule schedule = {.step_count = 4, .streams = {{0, 1}, {2, 3}}};
  const auto apart = PlanMemory(buffers, *StepOrder::FromSchedule(schedule), 64);
  ASSERT_TRUE(apart.ok());
  EXPECT_EQ(apart->arena_bytes, 128u);
  EXPECT_EQ(apart->lower_bound_bytes, 64u) << "no step needs both";
  schedule.events = {{1, 2}};
  const auto ordered = PlanMemory(buffers, *StepOrder::FromSchedule(schedule), 64);
  ASSERT_TRUE(ordered.ok());
  EXPECT_EQ(ordered->arena_bytes, 64u);
}

TEST(PlanMemoryTest, InPlaceWaitsForUsesOnOtherStreams) {
  // Step 2 on the other stream reads buffer 0 too, and step 1 does not wait for it.
  const std::vector<BufferRequest> buffers = {
      {.bytes = 64, .defined_by = 0, .used_by = {1, 2}},
      {.bytes = 64, .defined_by = 1, .used_by = {3}, .in_place_of = 0}};
  Schedule schedule = {.step_count = 4, .streams = {{0, 1, 3}, {2}}, .events = {{0, 2}, {2, 3}}};
  const auto beside = PlanMemory(buffers, *StepOrder::FromSchedule(schedule), 64);
  ASSERT_TRUE(beside.ok());
  EXPECT_NE(beside->offsets[0], beside->offsets[1]);
  schedule.events = {{0, 2}, {2, 1}};
  const auto after = PlanMemory(buffers, *StepOrder::FromSchedule(schedule), 64);
  ASSERT_TRUE(after.ok());
  EXPECT_EQ(after->offsets[0], after->offsets[1]);
}

TEST(PlanMemoryTest, NeverOverlapsOnRandomGraphs) {
  double arena = 0, bound = 0;
  for (unsigned seed = 0; seed < 600; ++seed) {
    const int steps = static_cast<int>(seed % 41);
    const RandomProgram program = MakeRandomProgram(seed, steps, 1 + static_cast<int>(seed % 4));
    const auto order = StepOrder::FromSchedule(program.schedule);
    ASSERT_TRUE(order.ok()) << order.status();
    const auto plan = PlanMemory(program.buffers, *order, 64);
    ASSERT_TRUE(plan.ok()) << "seed " << seed << ": " << plan.status();
    const absl::Status verified = VerifyPlan(program.buffers, program.schedule, 64, *plan);
    ASSERT_TRUE(verified.ok()) << "seed " << seed << ": " << verified;
    EXPECT_GE(plan->arena_bytes, plan->lower_bound_bytes) << "seed " << seed;
    const auto again = PlanMemory(program.buffers, *order, 64);
    EXPECT_EQ(plan->offsets, again->offsets) << "seed " << seed;
    if (program.schedule.streams.empty()) {
      arena += static_cast<double>(plan->arena_bytes);
      bound += static_cast<double>(plan->lower_bound_bytes);
    }
  }
  EXPECT_LT(arena, 1.02 * bound) << "these plans were within 1 % when this was written";
}

TEST(PlanMemoryTest, ManyBuffersAliveTogetherStillFindTheirPlace) {
  std::vector<BufferRequest> buffers;
  for (int i = 0; i < 1500; ++i) {
    buffers.push_back({.bytes = static_cast<std::size_t>(64 * (1 + i * 37 % 50)),
                       .defined_by = i,
                       .used_by = {i % 3 == 0 ? 1499 : std::min(1499, i + 200)}});
  }
  const MemoryPlan plan = PlanSerial(buffers, 1500);
  EXPECT_LT(static_cast<double>(plan.arena_bytes),
            1.1 * static_cast<double>(plan.lower_bound_bytes));
}

TEST(PlanMemoryTest, RefusesSizesBeyondTheAddressSpace) {
  const std::size_t half = std::numeric_limits<std::size_t>::max() / 2;
  for (const std::vector<BufferRequest>& buffers :
       {std::vector<BufferRequest>{{.bytes = std::numeric_limits<std::size_t>::max()}},
        std::vector<BufferRequest>{{.bytes = half - 200}, {.bytes = 1000}}}) {
    EXPECT_EQ(PlanMemory(buffers, StepOrder::Serial(1), 64).status().code(),
              absl::StatusCode::kResourceExhausted);
  }
}

TEST(PlanMemoryTest, RefusesRequestsThatMakeNoSense) {
  const std::vector<BufferRequest> wrong[] = {
      {{.bytes = 1, .defined_by = 3}},
      {{.bytes = 1, .defined_by = -2}},
      {{.bytes = 1, .defined_by = 0, .used_by = {3}}},
      {{.bytes = 1, .defined_by = 0, .used_by = {-1}}},
      {{.bytes = 1, .alias_of = 0}},
      {{.bytes = 1, .alias_of = 1}, {.bytes = 1}},
      {{.bytes = 10}, {.bytes = 5, .alias_of = 0, .alias_offset = 6}},
      {{.bytes = 10}, {.bytes = 5, .alias_of = 0, .alias_offset = ~std::size_t{0}}},
      {{.bytes = 1, .in_place_of = 1}},
  };
  for (const std::vector<BufferRequest>& buffers : wrong) {
    EXPECT_EQ(PlanMemory(buffers, StepOrder::Serial(3), 64).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
  EXPECT_FALSE(PlanMemory({}, StepOrder::Serial(3), 48).ok());
}

}  // namespace
}  // namespace npurt::memory
