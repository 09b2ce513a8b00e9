// Poller: asks for cancellation every million operations of a long loop.
//
// Loops that go through RunContext::Load and Store are asked there; this is for work on copies.
//
// Thread safety: one per participant.
#ifndef NPURT_OPS_POLLER_H_
#define NPURT_OPS_POLLER_H_

#include <cstdint>
#include <utility>

#include "base/run_context.h"
#include "kernels/stop_check.h"

namespace npurt::ops {

// For the loops around kernels.
inline kernels::StopCheck StopCheckOf(const RunContext& run) {
  const auto poll = [](const void* of) {
    absl::Status status = static_cast<const RunContext*>(of)->Poll();
    if (__builtin_expect(!status.ok(), 0)) throw RunStopped{std::move(status)};
  };
  return {poll, &run};
}

class Poller {
 public:
  static constexpr std::int64_t kComparison = 8;  // operations, roughly, of one step of a sort

  explicit Poller(const RunContext& run) : run_(run) {}
  absl::Status Count(std::int64_t operations) {
    left_ -= operations;
    if (left_ > 0) return absl::OkStatus();
    left_ = kOperations;
    return run_.Poll();
  }
  // For comparisons of a sort and the like, which cannot return a status.
  void CountOrThrow(std::int64_t operations) {
    absl::Status status = Count(operations);
    if (__builtin_expect(!status.ok(), 0)) throw RunStopped{std::move(status)};
  }

 private:
  static constexpr std::int64_t kOperations = 1000000;
  const RunContext& run_;
  std::int64_t left_ = kOperations;
};

}  // namespace npurt::ops

#endif  // NPURT_OPS_POLLER_H_
