#include "memory/step_order.h"

#include <gtest/gtest.h>

#include "memory/random_program.h"

namespace npurt::memory {
namespace {

TEST(StepOrderTest, OneStreamIsItsOwnOrder) {
  const StepOrder order = StepOrder::Serial(4);
  EXPECT_TRUE(order.HappensBefore(0, 3));
  EXPECT_FALSE(order.HappensBefore(3, 0));
  EXPECT_FALSE(order.HappensBefore(2, 2));
  EXPECT_TRUE(order.HappensBefore(kBeforeFirstStep, 0));
  EXPECT_TRUE(order.HappensBefore(3, kAfterLastStep));
  EXPECT_FALSE(order.HappensBefore(kAfterLastStep, 3));
  EXPECT_FALSE(order.HappensBefore(0, kBeforeFirstStep));
}

TEST(StepOrderTest, StreamsAreOrderedByEventsOnly) {
  // 0 -> 1 -> 2 on one stream, 3 -> 4 -> 5 on the other; 4 waits for 1.
  const auto order = StepOrder::FromSchedule(
      {.step_count = 6, .streams = {{0, 1, 2}, {3, 4, 5}}, .events = {{1, 4}}});
  ASSERT_TRUE(order.ok()) << order.status();
  EXPECT_TRUE(order->HappensBefore(0, 4));
  EXPECT_TRUE(order->HappensBefore(1, 5));
  EXPECT_FALSE(order->HappensBefore(2, 5));
  EXPECT_FALSE(order->HappensBefore(3, 2));
  EXPECT_FALSE(order->HappensBefore(0, 3));
}

TEST(StepOrderTest, AgreesWithTheClosureOnRandomSchedules) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    const int streams = 1 + static_cast<int>(seed % 5);
    const Schedule schedule = MakeRandomProgram(seed, 40, streams).schedule;
    const auto order = StepOrder::FromSchedule(schedule);
    ASSERT_TRUE(order.ok()) << order.status();
    const auto before = Closure(schedule);
    for (int a = 0; a < 40; ++a) {
      for (int b = 0; b < 40; ++b) {
        ASSERT_EQ(order->HappensBefore(a, b),
                  before[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)])
            << "seed " << seed << ", steps " << a << " and " << b;
      }
    }
  }
}

TEST(StepOrderTest, RefusesWhatIsNoSchedule) {
  const Schedule wrong[] = {
      {.step_count = 2, .streams = {{0, 1}}, .events = {{1, 0}}},
      {.step_count = 4, .streams = {{0, 1}, {2, 3}}, .events = {{1, 2}, {3, 0}}},
      {.step_count = 2, .streams = {{0}, {0}}, .events = {}},
      {.step_count = 2, .streams = {{0}}, .events = {}},
      {.step_count = 2, .streams = {{0, 2}}, .events = {}},
      {.step_count = 2, .streams = {}, .events = {{0, 2}}},
      {.step_count = 2, .streams = {}, .events = {{1, 1}}},
      {.step_count = -1, .streams = {}, .events = {}},
  };
  for (const Schedule& schedule : wrong) {
    EXPECT_EQ(StepOrder::FromSchedule(schedule).status().code(), absl::StatusCode::kInvalidArgument)
        << schedule.step_count;
  }
}

}  // namespace
}  // namespace npurt::memory
