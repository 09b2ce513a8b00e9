// PlanCache: the plans of one program, by the dimensions of its inputs and by which of them a run may
// overwrite, least recently used first out.
//
// Bounded by bytes. A plan in use stays alive with its users after it has left the cache.
//
// Thread safety: all calls from any thread. Two threads that miss the same shape both plan it; one
// plan is kept.
#ifndef NPURT_COMPILE_PLAN_CACHE_H_
#define NPURT_COMPILE_PLAN_CACHE_H_

#include <cstdint>
#include <list>
#include <memory>
#include <vector>

#include "base/hash_map.h"
#include "absl/types/span.h"
#include "base/mutex.h"
#include "base/status.h"
#include "compile/bind.h"
#include "exec/program.h"

namespace npurt::compile {

class PlanCache final : public exec::Planner {
 public:
  PlanCache(const Binder* binder, int participants, std::size_t max_bytes)
      : binder_(binder), participants_(participants), max_bytes_(max_bytes) {}

  // The plan for inputs of these dimensions, made if need be.
  absl::StatusOr<std::shared_ptr<const exec::Plan>> Find(
      absl::Span<const absl::Span<const std::int64_t>> dims) override {
    return Find(dims, {});
  }
  absl::StatusOr<std::shared_ptr<const exec::Plan>> Find(
      absl::Span<const absl::Span<const std::int64_t>> dims, absl::Span<const int> donated)
      NPURT_EXCLUDES_LOCK(mutex_);

  // A plan whose arena has no byte to spare. The cache does not keep it.
  absl::StatusOr<std::shared_ptr<const exec::Plan>> MakeExact(
      absl::Span<const absl::Span<const std::int64_t>> dims,
      absl::Span<const int> donated = {}) const {
    return binder_->MakePlan(dims, participants_, true, donated);
  }

  // Forgets all plans; returns their bytes.
  std::size_t Trim() NPURT_EXCLUDES_LOCK(mutex_);

  struct Stats {
    std::int64_t made = 0, reused = 0, dropped = 0;
    std::int64_t layouts = 0;  // of those made, how many placed their values anew
    std::size_t bytes = 0, count = 0;
  };
  Stats stats() const NPURT_EXCLUDES_LOCK(mutex_);
  // The plan used last, or null.
  std::shared_ptr<const exec::Plan> last() const NPURT_EXCLUDES_LOCK(mutex_);

 private:
  // Ranks and dimensions in a row, so that [2,3],[4] and [2],[3,4] differ; then the donated inputs.
  using Key = std::vector<std::int64_t>;
  using List = std::list<std::pair<Key, std::shared_ptr<const exec::Plan>>>;

  const Binder* binder_;
  const int participants_;
  const std::size_t max_bytes_;
  mutable Mutex mutex_;
  List used_ NPURT_GUARDED_BY(mutex_);  // the last used first
  HashMap<Key, List::iterator> by_key_ NPURT_GUARDED_BY(mutex_);
  Stats stats_ NPURT_GUARDED_BY(mutex_);
};

}  // namespace npurt::compile

#endif  // NPURT_COMPILE_PLAN_CACHE_H_
