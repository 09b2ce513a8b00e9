#include "memory/verifier.h"

#include <gtest/gtest.h>

#include <string>

#include "memory/random_program.h"

namespace npurt::memory {
namespace {

const Schedule kThreeSteps = {.step_count = 3, .streams = {}, .events = {}};

std::string Complaint(const std::vector<BufferRequest>& buffers, const Schedule& schedule,
                      const MemoryPlan& plan) {
  const absl::Status status = VerifyPlan(buffers, schedule, 64, plan);
  if (status.ok()) return "";
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  return std::string(status.message());
}

MemoryPlan At(std::vector<std::size_t> offsets, std::size_t arena_bytes) {
  return {.offsets = std::move(offsets), .arena_bytes = arena_bytes};
}

TEST(VerifyPlanTest, NamesBothBuffersOfAnOverlap) {
  const std::vector<BufferRequest> buffers = {
      {.bytes = 100, .defined_by = 0, .used_by = {1}, .name = "conv"},
      {.bytes = 100, .defined_by = 1, .used_by = {2}, .name = "relu"}};
  const std::string text = Complaint(buffers, kThreeSteps, At({0, 64}, 256));
  EXPECT_NE(text.find("'conv'"), std::string::npos) << text;
  EXPECT_NE(text.find("'relu'"), std::string::npos) << text;
  EXPECT_EQ(Complaint(buffers, kThreeSteps, At({0, 128}, 256)), "");
}

TEST(VerifyPlanTest, InPlaceIsOnlyForTheLastReader) {
  std::vector<BufferRequest> buffers = {
      {.bytes = 64, .defined_by = 0, .used_by = {1}},
      {.bytes = 64, .defined_by = 1, .used_by = {2}, .in_place_of = 0}};
  EXPECT_EQ(Complaint(buffers, kThreeSteps, At({0, 0}, 64)), "");
  buffers[0].used_by.push_back(2);
  EXPECT_NE(Complaint(buffers, kThreeSteps, At({0, 0}, 64)), "") << "read later";
  buffers[0].used_by.pop_back();
  buffers[1].in_place_of = -1;
  EXPECT_NE(Complaint(buffers, kThreeSteps, At({0, 0}, 64)), "") << "never asked for";
}

TEST(VerifyPlanTest, InPlaceStartsWhereTheOtherStarts) {
  const std::vector<BufferRequest> buffers = {
      {.bytes = 256, .defined_by = 0, .used_by = {1}},
      {.bytes = 64, .defined_by = 1, .used_by = {2}, .in_place_of = 0}};
  EXPECT_EQ(Complaint(buffers, kThreeSteps, At({0, 0}, 256)), "");
  EXPECT_NE(Complaint(buffers, kThreeSteps, At({0, 64}, 256)), "");
}

TEST(VerifyPlanTest, ChecksBoundsAlignmentAndViews) {
  const std::vector<BufferRequest> one = {{.bytes = 64, .defined_by = 0, .used_by = {}}};
  EXPECT_NE(Complaint(one, kThreeSteps, At({0}, 63)), "");
  EXPECT_NE(Complaint(one, kThreeSteps, At({~std::size_t{0} - 63}, 64)), "");
  EXPECT_NE(Complaint(one, kThreeSteps, At({32}, 128)), "");
  EXPECT_NE(Complaint(one, kThreeSteps, At({}, 128)), "");
  const std::vector<BufferRequest> view = {
      {.bytes = 64, .defined_by = 0, .used_by = {}},
      {.bytes = 8, .defined_by = 1, .used_by = {}, .alias_of = 0, .alias_offset = 8}};
  EXPECT_EQ(Complaint(view, kThreeSteps, At({64, 72}, 128)), "");
  EXPECT_NE(Complaint(view, kThreeSteps, At({64, 64}, 128)), "");
}

TEST(VerifyPlanTest, FindsUsesThatDoNotWaitForTheirValue) {
  const std::vector<BufferRequest> buffers = {{.bytes = 64, .defined_by = 0, .used_by = {1}}};
  Schedule schedule = {.step_count = 2, .streams = {{0}, {1}}, .events = {}};
  EXPECT_NE(Complaint(buffers, schedule, At({0}, 64)), "");
  schedule.events = {{0, 1}};
  EXPECT_EQ(Complaint(buffers, schedule, At({0}, 64)), "");
}

TEST(VerifyPlanTest, FindsSchedulesThatNeverEnd) {
  for (const Schedule& schedule :
       {Schedule{.step_count = 2, .streams = {{0}, {1}}, .events = {{0, 1}, {1, 0}}},
        Schedule{.step_count = 2, .streams = {}, .events = {{1, 0}}},
        Schedule{.step_count = 2, .streams = {{0}, {0}}, .events = {}},
        Schedule{.step_count = 2, .streams = {{0}}, .events = {}}}) {
    EXPECT_NE(Complaint({}, schedule, {}), "");
  }
}

TEST(VerifyPlanTest, PinnedBuffersAreAliveBeforeTheirStep) {
  const std::vector<BufferRequest> buffers = {
      {.bytes = 64, .defined_by = 0, .used_by = {0}},
      {.bytes = 64, .defined_by = 2, .used_by = {}},
      {.bytes = 64, .defined_by = 2, .used_by = {}, .alias_of = 1, .pinned = true}};
  EXPECT_NE(Complaint(buffers, kThreeSteps, At({0, 0, 0}, 64)), "");
}

// The definition of a conflict, pair by pair.
bool MayOverlapInTime(const RandomProgram& program, const std::vector<std::vector<bool>>& before,
                      std::size_t a, std::size_t b) {
  const auto root = [&](std::size_t i) {
    while (program.buffers[i].alias_of >= 0) {
      i = static_cast<std::size_t>(program.buffers[i].alias_of);
    }
    return i;
  };
  const auto dead_before = [&](std::size_t owner, std::size_t heir) {
    const int definer = program.buffers[heir].defined_by;
    if (definer < 0) return false;
    for (std::size_t i = 0; i < program.buffers.size(); ++i) {
      if (root(i) == heir && program.buffers[i].pinned) return false;
    }
    for (std::size_t i = 0; i < program.buffers.size(); ++i) {
      if (root(i) != owner) continue;
      if (program.buffers[i].pinned) return false;
      std::vector<int> steps = program.buffers[i].used_by;
      steps.push_back(program.buffers[i].defined_by);
      for (const int step : steps) {
        if (step == kAfterLastStep) return false;
        if (step >= 0 &&
            !before[static_cast<std::size_t>(step)][static_cast<std::size_t>(definer)]) {
          return false;
        }
      }
    }
    return true;
  };
  return !dead_before(a, b) && !dead_before(b, a);
}

TEST(VerifyPlanTest, FindsEveryPlantedOverlap) {
  int planted = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    RandomProgram program =
        MakeRandomProgram(seed, 5 + static_cast<int>(seed % 20), 1 + static_cast<int>(seed % 4));
    for (BufferRequest& buffer : program.buffers) buffer.in_place_of = -1;
    const auto order = StepOrder::FromSchedule(program.schedule);
    ASSERT_TRUE(order.ok());
    auto plan = PlanMemory(program.buffers, *order, 64);
    ASSERT_TRUE(plan.ok());
    // Move a buffer that no view follows onto another one; the verdict must be the definition's.
    const auto before = Closure(program.schedule);
    std::mt19937 random(seed);
    for (int attempt = 0; attempt < 20; ++attempt) {
      const std::size_t a = random() % program.buffers.size();
      const std::size_t b = random() % program.buffers.size();
      bool has_view = false;
      for (const BufferRequest& other : program.buffers) {
        has_view |= other.alias_of == static_cast<int>(a) || other.alias_of == static_cast<int>(b);
      }
      if (a == b || has_view || program.buffers[a].alias_of >= 0 ||
          program.buffers[b].alias_of >= 0 || program.buffers[a].bytes == 0 ||
          program.buffers[b].bytes == 0) {
        continue;
      }
      MemoryPlan moved = *plan;
      moved.offsets[a] = moved.offsets[b];
      moved.arena_bytes += program.buffers[a].bytes;
      bool conflict = false;
      for (std::size_t i = 0; i < program.buffers.size(); ++i) {
        const BufferRequest& other = program.buffers[i];
        if (i == a || other.alias_of >= 0 || other.bytes == 0) continue;
        const bool overlap = moved.offsets[i] < moved.offsets[a] + program.buffers[a].bytes &&
                             moved.offsets[a] < moved.offsets[i] + other.bytes;
        conflict |= overlap && MayOverlapInTime(program, before, a, i);
      }
      planted += conflict;
      EXPECT_EQ(VerifyPlan(program.buffers, program.schedule, 64, moved).ok(), !conflict)
          << "seed " << seed << ": #" << a << " onto #" << b;
    }
  }
  EXPECT_GT(planted, 100);
}

}  // namespace
}  // namespace npurt::memory
