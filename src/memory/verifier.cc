#include "memory/verifier.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace npurt::memory {
namespace {

std::size_t U(int i) { return static_cast<std::size_t>(i); }

// Forward vector clocks: clock[step][s] is how many steps of stream s have ended when `step`
// begins.
class Clocks {
 public:
  absl::Status Derive(const Schedule& schedule) {
    steps_ = schedule.step_count;
    if (steps_ < 0) return absl::InternalError("verify: negative step count");
    for (const EventEdge& e : schedule.events) {
      if (!IsStep(e.signal_step) || !IsStep(e.wait_step)) {
        return absl::InternalError("verify: an event names a step that does not exist");
      }
    }
    if (schedule.streams.empty()) return DeriveSerial(schedule);
    streams_ = static_cast<int>(schedule.streams.size());
    std::vector<std::vector<int>> waits_for(U(steps_));
    for (const EventEdge& e : schedule.events) waits_for[U(e.wait_step)].push_back(e.signal_step);
    stream_.assign(U(steps_), -1);
    position_.assign(U(steps_), 0);
    clock_.assign(U(steps_) * U(streams_), 0);
    // Runs the streams round-robin, each as far as its events allow, like the program itself would.
    std::vector<std::size_t> cursor(U(streams_), 0);
    for (bool moved = true; moved;) {
      moved = false;
      for (int s = 0; s < streams_; ++s) {
        const std::vector<int>& stream = schedule.streams[U(s)];
        for (; cursor[U(s)] < stream.size(); ++cursor[U(s)]) {
          const int step = stream[cursor[U(s)]];
          if (!IsStep(step) || stream_[U(step)] >= 0) {
            return absl::InternalError(
                absl::StrCat("verify: step ", step, " runs twice or nowhere"));
          }
          const bool ready = std::all_of(waits_for[U(step)].begin(), waits_for[U(step)].end(),
                                         [this](int w) { return stream_[U(w)] >= 0; });
          if (!ready) break;
          if (cursor[U(s)] > 0) Join(step, stream[cursor[U(s)] - 1]);
          for (const int w : waits_for[U(step)]) Join(step, w);
          stream_[U(step)] = s;
          position_[U(step)] = static_cast<int>(cursor[U(s)]);
          sorted_.push_back(step);
          moved = true;
        }
      }
    }
    if (sorted_.size() != U(steps_)) {
      return absl::InternalError(
          absl::StrCat("verify: only ", sorted_.size(), " of ", steps_, " steps can ever run"));
    }
    return absl::OkStatus();
  }

  int steps() const { return steps_; }
  int streams() const { return streams_; }
  bool IsStep(int step) const { return step >= 0 && step < steps_; }
  int stream(int step) const { return serial() ? 0 : stream_[U(step)]; }
  int position(int step) const { return serial() ? step : position_[U(step)]; }
  int clock(int step, int s) const {
    return serial() ? step : clock_[U(step) * U(streams_) + U(s)];
  }
  bool Before(int a, int b) const { return position(a) < clock(b, stream(a)); }
  // The steps in an order in which they could run.
  int sorted(int i) const { return serial() ? i : sorted_[U(i)]; }

 private:
  bool serial() const { return stream_.empty(); }

  absl::Status DeriveSerial(const Schedule& schedule) {
    for (const EventEdge& e : schedule.events) {
      if (e.signal_step >= e.wait_step) {
        return absl::InternalError(absl::StrCat("verify: step ", e.wait_step, " can never run"));
      }
    }
    return absl::OkStatus();
  }

  void Join(int step, int earlier) {
    for (int s = 0; s < streams_; ++s) {
      int& clock = clock_[U(step) * U(streams_) + U(s)];
      clock = std::max(clock, clock_[U(earlier) * U(streams_) + U(s)]);
    }
    int& own = clock_[U(step) * U(streams_) + U(stream_[U(earlier)])];
    own = std::max(own, position_[U(earlier)] + 1);
  }

  int steps_ = 0;
  int streams_ = 1;
  std::vector<int> stream_, position_, clock_, sorted_;
};

// Bytes [begin, end) were last given to `owner`. The list is sorted, without gaps or overlaps in it
// mattering: bytes never given are in no segment.
struct Segment {
  std::size_t begin;
  std::size_t end;
  int owner;
};

class Verifier {
 public:
  Verifier(absl::Span<const BufferRequest> buffers, std::size_t alignment, const MemoryPlan& plan)
      : buffers_(buffers), alignment_(alignment), plan_(plan) {}

  absl::Status Run(const Schedule& schedule) {
    NPURT_RETURN_IF_ERROR(clocks_.Derive(schedule));
    if (plan_.offsets.size() != buffers_.size()) {
      return absl::InternalError(absl::StrCat("verify: ", plan_.offsets.size(), " offsets for ",
                                              buffers_.size(), " buffers"));
    }
    root_.resize(buffers_.size());
    pinned_.assign(buffers_.size(), false);
    last_use_.assign(buffers_.size() * U(clocks_.streams()), kNoUse);
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      NPURT_RETURN_IF_ERROR(CheckAlone(static_cast<int>(i)));
    }
    SortByBirth();
    for (const int buffer : born_) NPURT_RETURN_IF_ERROR(Claim(buffer));
    return absl::OkStatus();
  }

 private:
  static constexpr int kNoUse = -1;
  static constexpr int kForever = kAfterLastStep;

  std::string Name(int i) const { return BufferName(buffers_, i); }

  // Place, alignment, view and uses of one buffer; collects the uses into its root.
  absl::Status CheckAlone(int i) {
    const BufferRequest& b = buffers_[U(i)];
    const std::size_t offset = plan_.offsets[U(i)];
    if (b.alias_of >= i || b.in_place_of >= static_cast<int>(buffers_.size())) {
      return absl::InternalError(absl::StrCat("verify: ", Name(i), " refers to no earlier buffer"));
    }
    if (b.defined_by != kBeforeFirstStep && !clocks_.IsStep(b.defined_by)) {
      return absl::InternalError(absl::StrCat("verify: ", Name(i), " is defined by no step"));
    }
    root_[U(i)] = b.alias_of < 0 ? i : root_[U(b.alias_of)];
    if (b.bytes != 0) {
      if (offset > plan_.arena_bytes || b.bytes > plan_.arena_bytes - offset) {
        return absl::InternalError(absl::StrCat("verify: ", Name(i), " at ", offset, " + ", b.bytes,
                                                " leaves the arena of ", plan_.arena_bytes));
      }
      if (b.alias_of < 0 && offset % alignment_ != 0) {
        return absl::InternalError(
            absl::StrCat("verify: ", Name(i), " at ", offset, " is not aligned to ", alignment_));
      }
      if (b.alias_of >= 0 && (offset != plan_.offsets[U(b.alias_of)] + b.alias_offset ||
                              b.alias_offset + b.bytes > buffers_[U(b.alias_of)].bytes)) {
        return absl::InternalError(
            absl::StrCat("verify: view ", Name(i), " is not inside ", Name(b.alias_of)));
      }
    }
    const int root = root_[U(i)];
    if (b.pinned) {
      pinned_[U(root)] = true;
      KeepForever(root);
    }
    NPURT_RETURN_IF_ERROR(Use(root, i, b.defined_by));
    for (const int step : b.used_by) NPURT_RETURN_IF_ERROR(Use(root, i, step));
    return absl::OkStatus();
  }

  absl::Status Use(int root, int user, int step) {
    if (step == kBeforeFirstStep) return absl::OkStatus();
    if (step == kAfterLastStep) {
      KeepForever(root);
      return absl::OkStatus();
    }
    if (!clocks_.IsStep(step)) {
      return absl::InternalError(absl::StrCat("verify: ", Name(user), " is used by no step"));
    }
    for (const int owner : {root, user}) {
      const int definer = buffers_[U(owner)].defined_by;
      if (definer != kBeforeFirstStep && definer != step && !clocks_.Before(definer, step)) {
        return absl::InternalError(absl::StrCat("verify: step ", step, " uses ", Name(user),
                                                " but is not ordered after step ", definer,
                                                ", which defines ", Name(owner)));
      }
    }
    int& last = last_use_[U(root) * U(clocks_.streams()) + U(clocks_.stream(step))];
    last = std::max(last, clocks_.position(step));
    return absl::OkStatus();
  }

  void KeepForever(int root) { last_use_[U(root) * U(clocks_.streams())] = kForever; }

  // Roots with bytes, pinned ones and those born before the first step in front.
  void SortByBirth() {
    std::vector<int> first(U(clocks_.steps()) + 2,
                           0);  // [rank + 1]; rank 0 is before the first step
    std::vector<int> rank(U(clocks_.steps()));
    for (int i = 0; i < clocks_.steps(); ++i) rank[U(clocks_.sorted(i))] = i + 1;
    const auto rank_of = [&](int i) {
      const int definer = buffers_[U(i)].defined_by;
      return pinned_[U(i)] || definer < 0 ? 0 : rank[U(definer)];
    };
    const int count = static_cast<int>(buffers_.size());
    const auto counts = [&](int i) { return root_[U(i)] == i && buffers_[U(i)].bytes != 0; };
    for (int i = 0; i < count; ++i) {
      if (counts(i)) ++first[U(rank_of(i)) + 1];
    }
    for (std::size_t r = 1; r < first.size(); ++r) first[r] += first[r - 1];
    born_.resize(U(first.back()));
    for (int i = 0; i < count; ++i) {
      if (counts(i)) born_[U(first[U(rank_of(i))]++)] = i;
    }
  }

  // True if no step needs `owner` once `heir` is written; steps of the heir's own definer count as
  // over if it may work in place.
  bool DeadBefore(int owner, int heir) const {
    const int definer = buffers_[U(heir)].defined_by;
    if (definer < 0 || pinned_[U(heir)]) return false;
    const BufferRequest& h = buffers_[U(heir)];
    const bool in_place = h.in_place_of >= 0 && root_[U(h.in_place_of)] == owner &&
                          buffers_[U(owner)].defined_by != definer && Inside(heir, h.in_place_of);
    for (int s = 0; s < clocks_.streams(); ++s) {
      const int last = last_use_[U(owner) * U(clocks_.streams()) + U(s)];
      if (last < clocks_.clock(definer, s)) continue;
      const bool own_step = s == clocks_.stream(definer) && last == clocks_.position(definer);
      if (!in_place || !own_step) return false;
    }
    return true;
  }

  // In place means: from the first byte of the other, and within it.
  bool Inside(int heir, int other) const {
    return plan_.offsets[U(heir)] == plan_.offsets[U(other)] &&
           buffers_[U(heir)].bytes <= buffers_[U(other)].bytes;
  }

  // Gives the bytes of `buffer` to it, if all their owners so far are dead.
  absl::Status Claim(int buffer) {
    const std::size_t begin = plan_.offsets[U(buffer)];
    const std::size_t end = begin + buffers_[U(buffer)].bytes;
    const auto first =
        std::partition_point(segments_.begin(), segments_.end(),
                             [begin](const Segment& segment) { return segment.end <= begin; });
    auto last = first;
    for (; last != segments_.end() && last->begin < end; ++last) {
      if (!DeadBefore(last->owner, buffer)) {
        return absl::InternalError(
            absl::StrCat("verify: ", Name(buffer), " at [", begin, ", ", end, ") overlaps ",
                         Name(last->owner), " at [", plan_.offsets[U(last->owner)], ", ",
                         plan_.offsets[U(last->owner)] + buffers_[U(last->owner)].bytes,
                         "), which may still be needed"));
      }
    }
    // What is left of the outermost owners stays theirs.
    Segment pieces[3];
    std::size_t count = 0;
    if (first != last && first->begin < begin)
      pieces[count++] = {first->begin, begin, first->owner};
    pieces[count++] = {begin, end, buffer};
    if (first != last && (last - 1)->end > end) {
      pieces[count++] = {end, (last - 1)->end, (last - 1)->owner};
    }
    const std::size_t replaced = std::min(count, static_cast<std::size_t>(last - first));
    const auto copied = std::copy(pieces, pieces + replaced, first);
    if (replaced < count) {
      segments_.insert(copied, pieces + replaced, pieces + count);
    } else {
      segments_.erase(copied, last);
    }
    return absl::OkStatus();
  }

  const absl::Span<const BufferRequest> buffers_;
  const std::size_t alignment_;
  const MemoryPlan& plan_;
  Clocks clocks_;
  std::vector<int> root_;
  std::vector<bool> pinned_;   // roots
  std::vector<int> last_use_;  // [root][stream]: position
  std::vector<int> born_;
  std::vector<Segment> segments_;
};

}  // namespace

absl::Status VerifyPlan(absl::Span<const BufferRequest> buffers, const Schedule& schedule,
                        std::size_t alignment, const MemoryPlan& plan) {
  if (alignment == 0) return absl::InternalError("verify: alignment is 0");
  return Verifier(buffers, alignment, plan).Run(schedule);
}

}  // namespace npurt::memory
