#include "compile/plan_cache.h"

#include <utility>

namespace npurt::compile {

absl::StatusOr<std::shared_ptr<const exec::Plan>> PlanCache::Find(
    absl::Span<const absl::Span<const std::int64_t>> dims, absl::Span<const int> donated) {
  Key key;
  for (const auto& shape : dims) {
    key.push_back(static_cast<std::int64_t>(shape.size()));
    key.insert(key.end(), shape.begin(), shape.end());
  }
  key.insert(key.end(), donated.begin(), donated.end());
  {
    MutexLock lock(mutex_);
    auto found = by_key_.find(key);
    if (found != by_key_.end()) {
      used_.splice(used_.begin(), used_, found->second);
      ++stats_.reused;
      return found->second->second;
    }
  }
  NPURT_ASSIGN_OR_RETURN(std::shared_ptr<const exec::Plan> plan,
                         binder_->MakePlan(dims, participants_, false, donated));
  MutexLock lock(mutex_);
  ++stats_.made;
  if (by_key_.contains(key)) return plan;
  used_.emplace_front(key, plan);
  by_key_[std::move(key)] = used_.begin();
  stats_.bytes += plan->own_bytes;
  // The plan just made always stays: the next run is likely to want it.
  while (stats_.bytes > max_bytes_ && used_.size() > 1) {
    stats_.bytes -= used_.back().second->own_bytes;
    by_key_.erase(used_.back().first);
    used_.pop_back();
    ++stats_.dropped;
  }
  return plan;
}

std::size_t PlanCache::Trim() {
  MutexLock lock(mutex_);
  const std::size_t bytes = stats_.bytes;
  stats_.dropped += static_cast<std::int64_t>(used_.size());
  stats_.bytes = 0;
  by_key_.clear();
  used_.clear();
  return bytes;
}

PlanCache::Stats PlanCache::stats() const {
  MutexLock lock(mutex_);
  Stats stats = stats_;
  stats.count = used_.size();
  stats.layouts = binder_->layouts_made();
  return stats;
}

std::shared_ptr<const exec::Plan> PlanCache::last() const {
  MutexLock lock(mutex_);
  return used_.empty() ? nullptr : used_.front().second;
}

}  // namespace npurt::compile
