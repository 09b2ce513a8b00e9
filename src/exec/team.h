// Team: the threads that compute one run together; TeamPool: the threads that teams are made of.
//
// The calling thread is participant 0 and can always finish alone. Others join when they arrive and
// leave when there is nothing to do; nobody waits for a thread that does not come. A step is a
// number of tiles; participants claim them one by one from an atomic word {width, tiles left}, so
// that a thread which was taken off its CPU holds up at most the tile it has begun.
//
// Members spin for `spin_us` after their last tile, then sleep; so a run that keeps them busy pays
// some hundred nanoseconds a step, and no thread spins between runs. Members that sleep are woken
// only once the steps they missed have cost more than the waking. A step that is too short to share
// runs in the caller without a single atomic operation.
//
// The pool is one for the process. Each session holds it (Acquire, Release); threads start when a
// run first wants them, as many as the widest team asks for, and are joined with the last Release.
// If a thread cannot be started, teams are narrower, that is all. If others use all threads, a team
// is the caller alone. If a member that has begun a tile loses its CPU, the caller has to wait for
// it; for some time after that it works alone, so that a busy machine costs a fraction and not a
// multiple.
//
// Fork: a child has none of the parent's threads. The pool forgets them there and starts new ones
// for the next run; a run that was going on in the forking thread must not be continued in the
// child.
#ifndef NPURT_EXEC_TEAM_H_
#define NPURT_EXEC_TEAM_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "exec/executor.h"

namespace npurt::exec {

// Computes tile `tile`. `participant` < width tells participants apart, for scratch. If it throws
// (only out of memory), ParallelFor passes the first exception on once all tiles have ended.
using TileFn = void (*)(void* argument, std::int64_t tile, int participant);

struct TeamOptions {
  int width = 1;  // participants at most, the caller included
  int spin_us = 20;
  Executor* executor = nullptr;  // its threads instead of the pool's; outlives the team
  const void* owner = nullptr;   // threads lent to this owner join; see LendThread
};

class TeamPool {
 public:
  TeamPool() = delete;

  static constexpr int kMaxWidth = 256;

  // Balanced calls. The last Release joins all threads and waits for lent ones to leave; not from a
  // tile. No team is open then.
  static void Acquire();
  static void Release();

  // Lends the calling thread to the open teams of `owner` (not null) until `until()` is true, which
  // is asked before each step it joins and every few milliseconds while idle, or the pool is
  // released.
  static void LendThread(const void* owner, absl::FunctionRef<bool()> until);

  // For tests and reports.
  static int ThreadCount();   // of the pool's own threads
  static int SleeperCount();  // of them, those that sleep
};

// Thread safety: one thread at a time. REQUIRES: the pool is acquired while a team is in use.
class Team {
 public:
  static constexpr double kCostUnknown = -1;

  explicit Team(const TeamOptions& options);
  ~Team() { Close(); }
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int width() const { return width_; }

  // Computes tiles 0 ... tiles - 1 and returns when all are done. Participants have numbers below
  // min(width(), max_width). `cost_ns` is what all tiles together take one thread, roughly. Not
  // from a tile. The pool's threads compute in ScopedFloatMode; the caller's mode is the caller's
  // business.
  void ParallelFor(std::int64_t tiles, TileFn fn, void* argument, int max_width,
                   double cost_ns = kCostUnknown);

  // The end of the run: members go back to the pool. The next ParallelFor opens the team again.
  void Close();

 private:
  struct Crew;
  struct Pool;
  friend class TeamPool;

  void RunAlone(std::int64_t tiles, TileFn fn, void* argument);
  void RunShared(std::int64_t tiles, TileFn fn, void* argument, int width, bool wake);
  bool Open();

  const TeamOptions options_;
  int width_;
  double missed_ns_ =
      0;  // shareable work that the caller has done alone since it last woke someone
  std::int64_t alone_until_ns_ = 0;  // after a member was taken off its CPU; 0: not now
  Crew* crew_ = nullptr;             // while open
};

}  // namespace npurt::exec

#endif  // NPURT_EXEC_TEAM_H_
