// StepOrder: which steps of a program happen before which others.
//
// A program is a set of steps on streams. A stream runs its steps one after the other; an event
// makes a step of one stream wait for a step of another. Everything else may happen side by side,
// so "before" is a partial order. For each step and stream the order keeps two clocks: the first
// step there that comes after, and the last one that comes before. One stream needs neither: its
// clock is the position.
//
// Time on a stream is counted in ticks: the step at position p begins at tick 2p and ends at tick
// 2p + 1. Thus "used by this very step" and "used by something that ends before the next step"
// differ.
//
// Thread safety: immutable after construction. Cost: O((steps + events) * streams) to build, O(1)
// to ask; Serial is O(1).
#ifndef NPURT_MEMORY_STEP_ORDER_H_
#define NPURT_MEMORY_STEP_ORDER_H_

#include <cstddef>
#include <limits>
#include <vector>

#include "base/status.h"

namespace npurt::memory {

// In place of a step index: before the program starts (its inputs), after it ends (its outputs).
inline constexpr int kBeforeFirstStep = -1;
inline constexpr int kAfterLastStep = std::numeric_limits<int>::max();

// Steps are doubled into ticks, which must fit an int.
inline constexpr int kMaxSteps = 1 << 29;

// `wait_step` begins only after `signal_step` has ended.
struct EventEdge {
  int signal_step;
  int wait_step;
};

// What runs where, as the compiler decided it.
struct Schedule {
  int step_count = 0;
  // The steps of each stream in their order, each step on exactly one stream. Empty: one stream
  // that runs 0, 1, ... step_count - 1.
  std::vector<std::vector<int>> streams = {};
  std::vector<EventEdge> events = {};
};

class StepOrder {
 public:
  static constexpr int kNever = std::numeric_limits<int>::max();

  // One stream that runs the steps 0 ... step_count - 1. REQUIRES: 0 <= step_count <= kMaxSteps.
  static StepOrder Serial(int step_count);

  // InvalidArgument if a step is missing, runs twice or waits for itself.
  static absl::StatusOr<StepOrder> FromSchedule(const Schedule& schedule);

  int step_count() const { return step_count_; }
  int stream_count() const { return stream_count_; }
  int stream_length(int stream) const {
    return lengths_.empty() ? step_count_ : lengths_[static_cast<std::size_t>(stream)];
  }

  int stream(int step) const {
    return stream_count_ == 1 || step < 0 ? 0 : stream_[static_cast<std::size_t>(step)];
  }
  int position(int step) const {
    return position_.empty() || step < 0 ? step : position_[static_cast<std::size_t>(step)];
  }

  // When `step` begins on its own stream. -1 for kBeforeFirstStep.
  int begin_tick(int step) const { return step < 0 ? -1 : 2 * position(step); }

  // The tick on `stream` from which on `step` has surely ended, kNever if no step there knows.
  int end_tick(int step, int stream) const {
    if (step < 0) return 0;
    if (step == kAfterLastStep) return kNever;
    if (stream_count_ == 1) return 2 * position(step) + 1;
    return end_tick_[Index(step, stream)];
  }

  // How many steps of `stream` come before `step` or are `step`.
  int steps_until(int step, int stream) const {
    if (step < 0) return 0;
    if (step == kAfterLastStep) return stream_length(stream);
    if (stream_count_ == 1) return position(step) + 1;
    return steps_until_[Index(step, stream)];
  }

  // True if `a` has ended before `b` begins, whatever the streams do.
  bool HappensBefore(int a, int b) const {
    if (b == kAfterLastStep) return a != kAfterLastStep;
    if (b < 0) return false;
    return end_tick(a, stream(b)) <= begin_tick(b);
  }

 private:
  StepOrder() = default;

  std::size_t Index(int step, int stream) const {
    return static_cast<std::size_t>(step) * static_cast<std::size_t>(stream_count_) +
           static_cast<std::size_t>(stream);
  }

  int step_count_ = 0;
  int stream_count_ = 1;
  std::vector<int> lengths_;      // of each stream; empty for Serial
  std::vector<int> position_;     // of each step on its stream; empty for Serial
  std::vector<int> stream_;       // of each step; this and the rest only with two or more streams
  std::vector<int> end_tick_;     // [step][stream]
  std::vector<int> steps_until_;  // [step][stream]
};

}  // namespace npurt::memory

#endif  // NPURT_MEMORY_STEP_ORDER_H_
