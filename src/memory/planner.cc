#include "memory/planner.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/checked_math.h"

namespace npurt::memory {
namespace {

std::size_t U(int i) { return static_cast<std::size_t>(i); }

constexpr std::size_t kMaxBytes = std::numeric_limits<std::ptrdiff_t>::max();

// Where a request's bytes lie: in the block of another request (or its own), `delta` from its
// start.
struct Place {
  int block;
  std::size_t delta;
};

// One block of arena bytes: a request with all its views and all that write over it in place.
struct Block {
  int request;
  std::size_t bytes;
  std::size_t offset;
  int stream;      // where it is born,
  int begin_tick;  // and when
  int leaf;        // its rank by birth on that stream
};

// The blocks placed so far that were born on one stream, seen from one stream (often the same):
// which of them, by rank of birth, are not yet dead there at some tick? Most lives are short, so
// the last few births before a block are looked at one by one; the k that have lived longer are
// found in a tournament tree of dead ticks in O(k log n). Visitors return false to stop.
class LiveBlocks {
 public:
  // The tick at which each block is dead, by rank of birth.
  explicit LiveBlocks(std::vector<int> dead_ticks) : dead_(std::move(dead_ticks)), latest_(dead_) {
    for (std::size_t i = 1; i < latest_.size(); ++i) {
      latest_[i] = std::max(latest_[i], latest_[i - 1]);
    }
    while (width_ < dead_.size()) width_ *= 2;
    Clear();
  }

  void Clear() { tree_.assign(2 * width_, kEmpty); }

  void Insert(int leaf) {
    const int dead = dead_[U(leaf)];
    for (std::size_t node = width_ + U(leaf); node > 0 && tree_[node] < dead; node /= 2) {
      tree_[node] = dead;
    }
  }

  // Those placed, with ranks below `end` and dead only after `tick`.
  template <typename Visit>
  bool ForEach(int end, int tick, const Visit& visit) const {
    int leaf = end - 1;
    for (const int near = std::max(end - kNear, 0); leaf >= near; --leaf) {
      if (latest_[U(leaf)] <= tick) return true;  // nor is any older one alive
      if (tree_[width_ + U(leaf)] > tick && !visit(leaf)) return false;
    }
    if (leaf < 0 || latest_[U(leaf)] <= tick) return true;
    return Walk(1, 0, width_, U(leaf) + 1, tick, visit);
  }

 private:
  static constexpr int kEmpty = -2;  // not placed: dead before every tick
  static constexpr int kNear = 16;   // a walk down the tree costs about as much

  template <typename Visit>
  bool Walk(std::size_t node, std::size_t first, std::size_t span, std::size_t end, int tick,
            const Visit& visit) const {
    if (first >= end || tree_[node] <= tick) return true;
    if (span == 1) return visit(static_cast<int>(first));
    return Walk(2 * node, first, span / 2, end, tick, visit) &&
           Walk(2 * node + 1, first + span / 2, span / 2, end, tick, visit);
  }

  std::vector<int> dead_;
  std::vector<int> latest_;  // the latest of dead_ up to here
  std::size_t width_ = 1;
  std::vector<int> tree_;  // of those placed; the leaves are its second half
};

class Planner {
 public:
  Planner(absl::Span<const BufferRequest> buffers, const StepOrder& order, std::size_t alignment)
      : buffers_(buffers), order_(order), alignment_(alignment), streams_(order.stream_count()) {}

  absl::StatusOr<MemoryPlan> Plan() {
    NPURT_RETURN_IF_ERROR(CheckRequests());
    ResolveViews();
    CollectUses();
    GrantInPlace();
    CollectBlocks();
    FindLowerBound();
    PlaceBlocks();
    MemoryPlan plan;
    plan.offsets.assign(buffers_.size(), 0);
    plan.lower_bound_bytes = lower_bound_;
    plan.arena_bytes = best_bytes_;
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      if (buffers_[i].bytes == 0) continue;
      const Place place = FindBlock(static_cast<int>(i));
      plan.offsets[i] = block_offset_[U(place.block)] + place.delta;
    }
    return plan;
  }

 private:
  bool IsStep(int step) const { return step >= 0 && step < order_.step_count(); }

  absl::Status CheckRequests() const {
    if (!IsPowerOfTwo(alignment_)) {
      return absl::InvalidArgumentError(
          absl::StrCat("plan: alignment is ", alignment_, ", want a power of two"));
    }
    if (buffers_.size() > U(kMaxSteps))
      return absl::ResourceExhaustedError("plan: too many buffers");
    std::size_t total = 0;
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      const BufferRequest& b = buffers_[i];
      std::size_t aligned = 0;
      // The sum of all sizes is checked once, so that no sum of some of them can overflow later.
      if (!CheckedAlignUp(b.bytes, alignment_, &aligned) || !CheckedAdd(total, aligned, &total) ||
          total > kMaxBytes) {
        return absl::ResourceExhaustedError(
            absl::StrCat("plan: with buffer ", BufferName(buffers_, static_cast<int>(i)), " of ",
                         b.bytes, " bytes the sizes exceed the address space"));
      }
      if (b.defined_by != kBeforeFirstStep && !IsStep(b.defined_by)) {
        return BadStep(static_cast<int>(i), b.defined_by);
      }
      for (const int step : b.used_by) {
        if (step != kAfterLastStep && !IsStep(step)) return BadStep(static_cast<int>(i), step);
      }
      if (b.in_place_of < -1 || b.in_place_of >= static_cast<int>(buffers_.size()) ||
          b.alias_of < -1 || b.alias_of >= static_cast<int>(i)) {
        return absl::InvalidArgumentError(
            absl::StrCat("plan: buffer ", BufferName(buffers_, static_cast<int>(i)),
                         " is a view of #", b.alias_of, " in place of #", b.in_place_of,
                         ", want an earlier buffer and an existing one"));
      }
      if (b.alias_of < 0) continue;
      std::size_t end = 0;
      if (!CheckedAdd(b.alias_offset, b.bytes, &end) || end > buffers_[U(b.alias_of)].bytes) {
        return absl::InvalidArgumentError(
            absl::StrCat("plan: view ", BufferName(buffers_, static_cast<int>(i)), " of ", b.bytes,
                         " bytes at ", b.alias_offset, " leaves ", BufferName(buffers_, b.alias_of),
                         " of ", buffers_[U(b.alias_of)].bytes, " bytes"));
      }
    }
    return absl::OkStatus();
  }

  absl::Status BadStep(int index, int step) const {
    return absl::InvalidArgumentError(absl::StrCat("plan: buffer ", BufferName(buffers_, index),
                                                   " names step ", step, ", there are ",
                                                   order_.step_count()));
  }

  // Parents come first in the list, so one pass does.
  void ResolveViews() {
    places_.resize(buffers_.size());
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      const BufferRequest& b = buffers_[i];
      if (b.alias_of < 0) {
        places_[i] = {static_cast<int>(i), 0};
      } else {
        const Place& parent = places_[U(b.alias_of)];
        places_[i] = {parent.block, parent.delta + b.alias_offset};
      }
    }
  }

  void CollectUses() {
    const std::size_t n = buffers_.size();
    pinned_.assign(n, false);
    last_writer_.resize(n);
    dead_tick_.assign(n * U(streams_), 0);
    steps_until_.assign(streams_ == 1 ? 0 : n * U(streams_), 0);
    for (std::size_t i = 0; i < n; ++i) {
      const BufferRequest& b = buffers_[i];
      const int block = places_[i].block;
      last_writer_[i] = b.defined_by;
      if (b.pinned) pinned_[U(block)] = true;
      AddUse(block, b.defined_by);
      for (const int step : b.used_by) AddUse(block, step);
    }
  }

  void AddUse(int block, int step) {
    for (int s = 0; s < streams_; ++s) {
      int& tick = dead_tick_[Index(block, s)];
      tick = std::max(tick, order_.end_tick(step, s));
      if (streams_ == 1) continue;
      int& until = steps_until_[Index(block, s)];
      until = std::max(until, order_.steps_until(step, s));
    }
  }

  // A granted request joins the block of the other one. That block must be dead at the end of the
  // defining step at the latest, and no one else may have been granted its bytes at the same step.
  void GrantInPlace() {
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      const BufferRequest& b = buffers_[i];
      if (b.in_place_of < 0 || b.alias_of >= 0 || b.bytes == 0 || b.defined_by < 0) continue;
      const int self = static_cast<int>(i);
      const Place target = FindBlock(b.in_place_of);
      if (target.block == self || pinned_[i] || pinned_[U(target.block)]) continue;
      if (target.delta % alignment_ != 0 || b.bytes > buffers_[U(b.in_place_of)].bytes) continue;
      // A small heir would keep all of a big block alive, which costs more than it saves.
      if (b.bytes < buffers_[U(target.block)].bytes / 2) continue;
      const int own_stream = order_.stream(b.defined_by);
      if (dead_tick_[Index(target.block, own_stream)] > order_.begin_tick(b.defined_by) + 1)
        continue;
      if (last_writer_[U(target.block)] == b.defined_by) continue;
      places_[i] = target;
      last_writer_[U(target.block)] = b.defined_by;
      for (int s = 0; s < streams_; ++s) {
        int& tick = dead_tick_[Index(target.block, s)];
        tick = std::max(tick, dead_tick_[Index(self, s)]);
        if (streams_ == 1) continue;
        int& until = steps_until_[Index(target.block, s)];
        until = std::max(until, steps_until_[Index(self, s)]);
      }
    }
  }

  // Follows grants: a view's block may have joined another one since.
  Place FindBlock(int request) const {
    Place place = places_[U(request)];
    while (places_[U(place.block)].block != place.block) {
      const Place& next = places_[U(place.block)];
      place = {next.block, place.delta + next.delta};
    }
    return place;
  }

  // Pinned blocks conflict with all others: they lie below, side by side.
  void CollectBlocks() {
    block_offset_.assign(buffers_.size(), 0);
    births_.resize(U(streams_));
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      const BufferRequest& b = buffers_[i];
      if (b.bytes == 0 || places_[i].block != static_cast<int>(i)) continue;
      const std::size_t bytes = AlignUp(b.bytes, alignment_);
      if (pinned_[i]) {
        block_offset_[i] = pinned_bytes_;
        pinned_bytes_ += bytes;
        continue;
      }
      blocks_.push_back({.request = static_cast<int>(i),
                         .bytes = bytes,
                         .offset = 0,
                         .stream = order_.stream(b.defined_by),
                         .begin_tick = order_.begin_tick(b.defined_by),
                         .leaf = 0});
    }
    const auto born_first = [](const Block& a, const Block& b) {
      return a.begin_tick < b.begin_tick;
    };
    // Programs list their buffers in step order, mostly.
    if (!std::is_sorted(blocks_.begin(), blocks_.end(), born_first)) {
      std::stable_sort(blocks_.begin(), blocks_.end(), born_first);
    }
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      std::vector<int>& births = births_[U(blocks_[i].stream)];
      blocks_[i].leaf = static_cast<int>(births.size());
      births.push_back(static_cast<int>(i));
    }
    // How many blocks of stream s are born before block i is dead there.
    leaf_end_.resize(blocks_.size() * U(streams_));
    for (int s = 0; s < streams_; ++s) {
      const std::vector<int>& births = births_[U(s)];
      std::vector<int> born_until(U(order_.stream_length(s)) + 1, 0);  // [p]: at positions below p
      for (const int b : births) {
        const int tick = blocks_[U(b)].begin_tick;
        ++born_until[tick < 0 ? 0 : U(tick / 2) + 1];
      }
      for (std::size_t p = 1; p < born_until.size(); ++p) born_until[p] += born_until[p - 1];
      for (std::size_t i = 0; i < blocks_.size(); ++i) {
        const std::size_t p = U(dead_tick_[Index(blocks_[i].request, s)] / 2 +
                                dead_tick_[Index(blocks_[i].request, s)] % 2);
        leaf_end_[Index(static_cast<int>(i), s)] = born_until[std::min(p, born_until.size() - 1)];
      }
    }
  }

  // A step needs all blocks that were born before it (or by it) and have a use after it (or in it).
  void FindLowerBound() {
    for (int s = 0; s < streams_; ++s) {
      std::vector<std::size_t> change(U(order_.stream_length(s)) + 1, 0);  // wraps, sums do not
      for (const Block& block : blocks_) {
        const int definer = buffers_[U(block.request)].defined_by;
        const int last = order_.stream_length(s);
        const int first =
            std::min(definer >= 0 && block.stream == s ? order_.position(definer)
                                                       : CeilDiv(order_.end_tick(definer, s), 2),
                     last);
        const int until = streams_ == 1
                              ? std::min(CeilDiv(dead_tick_[Index(block.request, s)], 2), last)
                              : steps_until_[Index(block.request, s)];
        if (first >= until) continue;
        change[U(first)] += block.bytes;
        change[U(until)] -= block.bytes;
      }
      std::size_t live = 0;
      for (const std::size_t c : change) {
        live += c;
        lower_bound_ = std::max(lower_bound_, live);
      }
    }
    // With no steps at all, or blocks no step sees, each still needs its own size.
    for (const Block& block : blocks_) lower_bound_ = std::max(lower_bound_, block.bytes);
    lower_bound_ += pinned_bytes_;
  }

  void PlaceBlocks() {
    best_bytes_ = pinned_bytes_;
    if (blocks_.empty()) return;
    for (int birth = 0; birth < streams_; ++birth) {
      for (int seen = 0; seen < streams_; ++seen) {
        std::vector<int> dead;
        dead.reserve(births_[U(birth)].size());
        for (const int i : births_[U(birth)]) {
          dead.push_back(dead_tick_[Index(blocks_[U(i)].request, seen)]);
        }
        live_.emplace_back(std::move(dead));
      }
    }
    best_bytes_ = std::numeric_limits<std::size_t>::max();
    Try(Ends::kLow, [](const Block& b) { return static_cast<double>(b.bytes); });
    // A chain, in its order, at the two ends in turn, always fits the bound.
    if (Worthwhile()) Try(Ends::kBoth, [](const Block&) { return 0.0; });
    if (Worthwhile()) Try(Ends::kLow, [this](const Block& b) { return Life(b); });
    if (Worthwhile()) {
      Try(Ends::kLow, [this](const Block& b) { return static_cast<double>(b.bytes) * Life(b); });
    }
  }

  // Counts work, not time, so that the same request always gets the same plan.
  bool Worthwhile() const {
    return best_bytes_ > lower_bound_ && work_ < kMinWork + kWorkPerBlock * blocks_.size();
  }

  double Life(const Block& block) const {
    return 1.0 * dead_tick_[Index(block.request, block.stream)] - block.begin_tick;
  }

  enum class Ends { kLow, kBoth };

  // Places all blocks, those of the highest rank first; ties go to the older.
  template <typename Rank>
  void Try(Ends ends, const Rank& rank) {
    sequence_.clear();
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      sequence_.push_back({rank(blocks_[i]), static_cast<int>(i)});
    }
    std::sort(sequence_.begin(), sequence_.end(), [](const Turn& a, const Turn& b) {
      return a.rank != b.rank ? a.rank > b.rank : a.block < b.block;
    });
    for (LiveBlocks& live : live_) live.Clear();
    by_offset_.clear();
    unsorted_.clear();
    std::size_t arena_bytes = pinned_bytes_;
    bool high = false;
    for (const auto& [turn_rank, i] : sequence_) {
      Block& block = blocks_[U(i)];
      const bool few = CollectTaken(i);
      block.offset = few && high ? HighestFreeOffset(block.bytes) : kNone;
      if (block.offset == kNone) {
        block.offset = few ? LowestFreeOffset(block.bytes) : LowestFreeOffsetAmongMany(i);
      }
      if (ends == Ends::kBoth) high = !high;
      arena_bytes = std::max(arena_bytes, block.offset + block.bytes);
      if (arena_bytes >= best_bytes_) return;
      unsorted_.push_back({block.offset, block.offset + block.bytes, i});
      for (int seen = 0; seen < streams_; ++seen) {
        live_[Index(block.stream, seen)].Insert(block.leaf);
      }
    }
    best_bytes_ = arena_bytes;
    for (const Block& block : blocks_) block_offset_[U(block.request)] = block.offset;
  }

  // The ranges that a block must avoid. False if there are too many to sort each time.
  bool CollectTaken(int index) {
    const Block& block = blocks_[U(index)];
    taken_.clear();
    for (int birth = 0; birth < streams_; ++birth) {
      const std::vector<int>& births = births_[U(birth)];
      const bool all = live_[Index(birth, block.stream)].ForEach(
          leaf_end_[Index(index, birth)], block.begin_tick, [&](int leaf) {
            const int i = births[U(leaf)];
            taken_.push_back({blocks_[U(i)].offset, blocks_[U(i)].offset + blocks_[U(i)].bytes, i});
            return taken_.size() < kMany;
          });
      if (!all) return false;
    }
    work_ += taken_.size();
    return true;
  }

  std::size_t LowestFreeOffset(std::size_t bytes) {
    std::sort(taken_.begin(), taken_.end(), LowerFirst);
    std::size_t offset = pinned_bytes_;
    for (const Range& range : taken_) {
      if (range.begin >= offset + bytes) break;
      offset = std::max(offset, range.end);
    }
    return offset;
  }

  // The highest one below the lower bound, kNone if there is none.
  std::size_t HighestFreeOffset(std::size_t bytes) {
    std::sort(taken_.begin(), taken_.end(),
              [](const Range& a, const Range& b) { return a.end > b.end; });
    std::size_t top = lower_bound_;
    for (const Range& range : taken_) {
      if (range.end + bytes <= top) break;
      top = std::min(top, range.begin);
    }
    return top >= pinned_bytes_ + bytes ? top - bytes : kNone;
  }

  // Walks all blocks placed so far, which are kept sorted for this.
  std::size_t LowestFreeOffsetAmongMany(int index) {
    const Block& block = blocks_[U(index)];
    std::sort(unsorted_.begin(), unsorted_.end(), LowerFirst);
    const std::size_t sorted = by_offset_.size();
    by_offset_.insert(by_offset_.end(), unsorted_.begin(), unsorted_.end());
    std::inplace_merge(by_offset_.begin(), by_offset_.begin() + static_cast<std::ptrdiff_t>(sorted),
                       by_offset_.end(), LowerFirst);
    unsorted_.clear();
    work_ += by_offset_.size();
    std::size_t offset = pinned_bytes_;
    for (const Range& range : by_offset_) {
      if (range.begin >= offset + block.bytes) break;
      if (range.end > offset && Conflict(block, blocks_[U(range.block)])) offset = range.end;
    }
    return offset;
  }

  bool Conflict(const Block& a, const Block& b) const {
    return a.begin_tick < dead_tick_[Index(b.request, a.stream)] &&
           b.begin_tick < dead_tick_[Index(a.request, b.stream)];
  }

  std::size_t Index(int i, int stream) const { return U(i) * U(streams_) + U(stream); }

  struct Range {
    std::size_t begin;
    std::size_t end;
    int block;
  };

  struct Turn {
    double rank;
    int block;
  };

  static bool LowerFirst(const Range& a, const Range& b) { return a.begin < b.begin; }

  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
  // Sorting this many ranges costs what walking some thousand sorted ones does.
  static constexpr std::size_t kMany = 128;
  // Conflicts visited: a try of a chain visits one a block, of a web of skips some twenty. Above
  // this further tries would cost more than a bind may; small programs get them all.
  static constexpr std::size_t kMinWork = 20000;
  static constexpr std::size_t kWorkPerBlock = 8;

  const absl::Span<const BufferRequest> buffers_;
  const StepOrder& order_;
  const std::size_t alignment_;
  const int streams_;

  // Per request; those of blocks count.
  std::vector<Place> places_;
  std::vector<bool> pinned_;
  std::vector<int> last_writer_;
  std::vector<int> dead_tick_;    // [request][stream]
  std::vector<int> steps_until_;  // [request][stream]: alive for sure below that position
  std::vector<std::size_t> block_offset_;

  std::vector<Block> blocks_;             // all but pinned and empty ones, oldest first
  std::vector<std::vector<int>> births_;  // per stream, the blocks born there, oldest first
  std::vector<int> leaf_end_;             // [block][stream] into births_
  std::vector<LiveBlocks> live_;          // [stream of birth][stream that looks]
  std::vector<Turn> sequence_;
  std::vector<Range> taken_;
  std::vector<Range> by_offset_;
  std::vector<Range> unsorted_;
  std::size_t work_ = 0;
  std::size_t pinned_bytes_ = 0;
  std::size_t lower_bound_ = 0;
  std::size_t best_bytes_ = 0;
};

}  // namespace

absl::StatusOr<MemoryPlan> PlanMemory(absl::Span<const BufferRequest> buffers,
                                      const StepOrder& order, std::size_t alignment) {
  return Planner(buffers, order, alignment).Plan();
}

std::string BufferName(absl::Span<const BufferRequest> buffers, int index) {
  const absl::string_view name = buffers[U(index)].name;
  return name.empty() ? absl::StrCat("#", index) : absl::StrCat("'", name, "'");
}

}  // namespace npurt::memory
