#include "memory/step_order.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"

namespace npurt::memory {
namespace {

std::size_t U(int i) { return static_cast<std::size_t>(i); }

// Direct edges between steps, both ways, as one list each.
struct Edges {
  std::vector<int> first_out;  // [step + 1] into out
  std::vector<int> out;
};

Edges CollectEdges(const Schedule& schedule) {
  std::vector<std::pair<int, int>> pairs;
  for (const std::vector<int>& stream : schedule.streams) {
    for (std::size_t i = 1; i < stream.size(); ++i) pairs.emplace_back(stream[i - 1], stream[i]);
  }
  for (const EventEdge& event : schedule.events) {
    pairs.emplace_back(event.signal_step, event.wait_step);
  }
  Edges edges;
  edges.first_out.assign(U(schedule.step_count) + 1, 0);
  for (const auto& [from, to] : pairs) ++edges.first_out[U(from) + 1];
  for (std::size_t i = 1; i < edges.first_out.size(); ++i) {
    edges.first_out[i] += edges.first_out[i - 1];
  }
  edges.out.resize(pairs.size());
  std::vector<int> next(edges.first_out.begin(), edges.first_out.end() - 1);
  for (const auto& [from, to] : pairs) edges.out[U(next[U(from)]++)] = to;
  return edges;
}

}  // namespace

StepOrder StepOrder::Serial(int step_count) {
  StepOrder order;
  order.step_count_ = step_count;
  return order;
}

absl::StatusOr<StepOrder> StepOrder::FromSchedule(const Schedule& schedule) {
  const int steps = schedule.step_count;
  if (steps < 0 || steps > kMaxSteps) {
    return absl::InvalidArgumentError(
        absl::StrCat("schedule: got ", steps, " steps, want 0 to ", kMaxSteps));
  }
  for (const EventEdge& event : schedule.events) {
    for (const int step : {event.signal_step, event.wait_step}) {
      if (step < 0 || step >= steps) {
        return absl::InvalidArgumentError(
            absl::StrCat("schedule: an event names step ", step, ", there are ", steps));
      }
    }
  }
  StepOrder order = Serial(steps);
  if (schedule.streams.empty()) {
    for (const EventEdge& event : schedule.events) {
      if (event.signal_step >= event.wait_step) {
        return absl::InvalidArgumentError(absl::StrCat("schedule: step ", event.wait_step,
                                                       " waits for the later step ",
                                                       event.signal_step, " of its own stream"));
      }
    }
    return order;
  }

  order.stream_count_ = static_cast<int>(schedule.streams.size());
  order.stream_.assign(U(steps), -1);
  order.position_.assign(U(steps), 0);
  int placed = 0;
  for (std::size_t s = 0; s < schedule.streams.size(); ++s) {
    const std::vector<int>& stream = schedule.streams[s];
    for (std::size_t i = 0; i < stream.size(); ++i) {
      const int step = stream[i];
      if (step < 0 || step >= steps || order.stream_[U(step)] >= 0) {
        return absl::InvalidArgumentError(
            absl::StrCat("schedule: stream ", s, " runs step ", step,
                         ", which does not exist or runs elsewhere too; there are ", steps));
      }
      order.stream_[U(step)] = static_cast<int>(s);
      order.position_[U(step)] = static_cast<int>(i);
      ++placed;
    }
    order.lengths_.push_back(static_cast<int>(stream.size()));
  }
  if (placed != steps) {
    return absl::InvalidArgumentError(
        absl::StrCat("schedule: the streams run ", placed, " of ", steps, " steps"));
  }

  // A topological order (Kahn); whatever it cannot reach waits for itself.
  const Edges edges = CollectEdges(schedule);
  std::vector<int> waits(U(steps), 0);
  for (const int to : edges.out) ++waits[U(to)];
  std::vector<int> sorted;
  sorted.reserve(U(steps));
  for (int step = 0; step < steps; ++step) {
    if (waits[U(step)] == 0) sorted.push_back(step);
  }
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    for (int e = edges.first_out[U(sorted[i])]; e < edges.first_out[U(sorted[i]) + 1]; ++e) {
      if (--waits[U(edges.out[U(e)])] == 0) sorted.push_back(edges.out[U(e)]);
    }
  }
  if (sorted.size() != U(steps)) {
    const auto stuck = std::find_if(waits.begin(), waits.end(), [](int w) { return w > 0; });
    return absl::InvalidArgumentError(
        absl::StrCat("schedule: step ", stuck - waits.begin(), " waits for itself"));
  }
  if (order.stream_count_ == 1) return order;

  order.end_tick_.assign(U(steps) * U(order.stream_count_), kNever);
  order.steps_until_.assign(U(steps) * U(order.stream_count_), 0);
  for (std::size_t i = sorted.size(); i-- > 0;) {
    const int step = sorted[i];
    for (int e = edges.first_out[U(step)]; e < edges.first_out[U(step) + 1]; ++e) {
      const int next = edges.out[U(e)];
      for (int s = 0; s < order.stream_count_; ++s) {
        // Another step's end lies between steps of other streams; for them it counts from the
        // beginning of the first step that knows of it.
        const int known = s == order.stream_[U(next)] ? order.begin_tick(next)
                                                      : order.end_tick_[order.Index(next, s)];
        int& tick = order.end_tick_[order.Index(step, s)];
        tick = std::min(tick, known);
      }
    }
    order.end_tick_[order.Index(step, order.stream_[U(step)])] = order.begin_tick(step) + 1;
  }
  for (const int step : sorted) {
    order.steps_until_[order.Index(step, order.stream_[U(step)])] = order.position(step) + 1;
    for (int e = edges.first_out[U(step)]; e < edges.first_out[U(step) + 1]; ++e) {
      const int next = edges.out[U(e)];
      for (int s = 0; s < order.stream_count_; ++s) {
        int& until = order.steps_until_[order.Index(next, s)];
        until = std::max(until, order.steps_until_[order.Index(step, s)]);
      }
    }
  }
  return order;
}

}  // namespace npurt::memory
