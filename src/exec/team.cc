#include "exec/team.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>
#if defined(__linux__)
#include <sched.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <atomic>
#include <bitset>
#include <chrono>
#include <exception>
#include <new>
#include <thread>
#include <utility>

#include "base/mutex.h"
#include "exec/float_mode.h"

namespace npurt::exec {
namespace {

// Handing a step over and hearing that it is done costs about 300 ns between two cores that are
// awake; a step must be some times that before half of it is worth giving away.
constexpr double kShareNs = 2000;
// Waking a sleeper costs the caller a system call and takes some 20 us until it arrives.
constexpr double kWakeNs = 20000;
// After waiting t for a member that lost its CPU, the caller works alone for 8 t: sharing on a busy
// machine then costs an eighth at most.
constexpr std::int64_t kAloneFactor = 8;
constexpr std::int64_t kMaxAloneNs = 50'000'000;
constexpr std::chrono::milliseconds kLentPoll(5);

// Guards who is a member of what: the pool and the cold half of every crew. Taken when a team
// opens, closes or wakes someone and when a member comes or goes, never by a step.
constinit Mutex g_mutex;

// Threads that spin without a crew. Tells a team that opening it costs little and brings someone.
constinit std::atomic<int> g_lingerers{0};

std::int64_t NowNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

inline void CpuRelax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// The word of a crew: {closed, width of the step, tiles not yet claimed}. Whoever changes it by
// compare-and-swap has claimed a tile of the step that is published now, and that step cannot end
// before the tile is done; so its other data may be read after the claim, never before.
constexpr std::uint64_t kClosed = std::uint64_t{1} << 63;
constexpr int kWidthShift = 48;
constexpr std::uint64_t kLeftMask = (std::uint64_t{1} << kWidthShift) - 1;
constexpr std::int64_t kMaxTiles = static_cast<std::int64_t>(kLeftMask);

constexpr std::uint64_t MakeWord(int width, std::int64_t left) {
  return static_cast<std::uint64_t>(width) << kWidthShift | static_cast<std::uint64_t>(left);
}
constexpr int WidthOf(std::uint64_t word) {
  return static_cast<int>((word & ~kClosed) >> kWidthShift);
}
constexpr std::int64_t LeftOf(std::uint64_t word) {
  return static_cast<std::int64_t>(word & kLeftMask);
}

#if defined(__linux__)
// The CPUs that pool threads may use: those of the calling thread and of the main thread. A host
// that pins the thread which happens to run first does not mean all others to share its CPU.
bool AllowedCpus(cpu_set_t* cpus) {
  cpu_set_t main_thread;
  if (sched_getaffinity(0, sizeof *cpus, cpus) != 0) return false;
  if (sched_getaffinity(getpid(), sizeof main_thread, &main_thread) == 0) {
    CPU_OR(cpus, cpus, &main_thread);
  }
  return true;
}
#endif

int AllowedCpuCount() {
#if defined(__linux__)
  cpu_set_t cpus;
  if (AllowedCpus(&cpus)) return CPU_COUNT(&cpus);
#endif
  return TeamPool::kMaxWidth;
}

}  // namespace

// What the members of one open team share. Owned by the pool and used again, because a member may
// look at it for a moment after the team has closed.
struct Team::Crew {
  // The step. One cache line, so that the look at the word brings the rest along.
  alignas(64) std::atomic<std::uint64_t> word{kClosed};
  TileFn fn = nullptr;
  void* argument = nullptr;
  std::int64_t tiles = 0;

  alignas(64) std::atomic<std::int64_t> done{0};  // tiles that members have finished
  std::atomic<bool> caller_sleeps{false};

  alignas(64) std::atomic<int> attached{0};  // members now; changes under g_mutex
  std::int64_t spin_ns = 0;
  Executor* executor = nullptr;
  const void* owner = nullptr;
  int width NPURT_GUARDED_BY(g_mutex) = 1;
  std::bitset<TeamPool::kMaxWidth> seats NPURT_GUARDED_BY(g_mutex);
  bool open NPURT_GUARDED_BY(g_mutex) = false;
  int submitted NPURT_GUARDED_BY(g_mutex) = 0;  // tasks given to the executor that have not arrived
  Crew* next NPURT_GUARDED_BY(g_mutex) = nullptr;

  Mutex mutex;  // never held together with g_mutex
  CondVar all_done;
  std::exception_ptr error NPURT_GUARDED_BY(mutex);
  std::atomic<bool> failed{false};  // there is an error

  bool HasVacancy() const NPURT_REQUIRES(g_mutex) { return attached.load(kRelaxed) < width - 1; }

  void RunTile(std::int64_t tile, int participant) {
    try {
      fn(argument, tile, participant);
    } catch (...) {
      MutexLock lock(mutex);
      if (error == nullptr) error = std::current_exception();
      failed.store(true, kRelaxed);
    }
  }

  void Rethrow() {
    std::exception_ptr first;
    {
      MutexLock lock(mutex);
      first = std::exchange(error, nullptr);
      failed.store(false, kRelaxed);
    }
    std::rethrow_exception(first);
  }

  // Claims and computes tiles until none is left; returns how many it were.
  std::int64_t RunTiles(std::uint64_t seen, int participant) {
    std::int64_t count = 0;
    while (LeftOf(seen) > 0 && participant < WidthOf(seen)) {
      if (!word.compare_exchange_weak(seen, seen - 1, std::memory_order_acq_rel,
                                      std::memory_order_acquire)) {
        continue;
      }
      RunTile(tiles - LeftOf(seen), participant);
      ++count;
      seen = word.load(std::memory_order_acquire);
    }
    return count;
  }

  // For the caller, when it has found no more tiles. Returns how long it slept; mostly it spins
  // only.
  std::int64_t WaitForMembers(std::int64_t claimed) {
    if (done.load(std::memory_order_acquire) == claimed) return 0;
    const std::int64_t start = NowNs();
    do {
      for (int i = 0; i < 32; ++i) {
        CpuRelax();
        if (done.load(std::memory_order_acquire) == claimed) return 0;
      }
    } while (NowNs() - start < spin_ns);
    // Sequentially consistent on both sides: either the member sees that we sleep, or we see its
    // tile.
    caller_sleeps.store(true);
    {
      MutexLock lock(mutex);
      while (done.load() != claimed) all_done.Wait(mutex);
    }
    caller_sleeps.store(false);
    return NowNs() - start;
  }

  // For a member: helps with every step until the team closes, or nothing happened for spin_ns
  // since
  // `*idle_since`, or `until`.
  void Serve(int participant, std::int64_t* idle_since, const absl::FunctionRef<bool()>* until) {
    ScopedFloatMode float_mode;
    for (int polls = 1;; ++polls) {
      const std::uint64_t seen = word.load(std::memory_order_acquire);
      if ((seen & kClosed) != 0) return;
      const std::int64_t count = RunTiles(seen, participant);
      if (count > 0) {
        done.fetch_add(count);
        if (caller_sleeps.load()) {
          MutexLock lock(mutex);
          all_done.Signal();
        }
        *idle_since = NowNs();
        if (until != nullptr && (*until)()) return;
        continue;
      }
      CpuRelax();
      if (polls % 32 != 0) continue;
      if (NowNs() - *idle_since >= spin_ns || (until != nullptr && (*until)())) return;
    }
  }

  static constexpr std::memory_order kRelaxed = std::memory_order_relaxed;
};

struct Team::Pool {
  struct Worker {
    std::thread thread;
    Worker* next;
  };

  Worker* workers NPURT_GUARDED_BY(g_mutex) = nullptr;
  int thread_count NPURT_GUARDED_BY(g_mutex) = 0;
  int thread_limit NPURT_GUARDED_BY(g_mutex) = TeamPool::kMaxWidth;  // lower once a start failed
  int sleepers NPURT_GUARDED_BY(g_mutex) = 0;
  int wakes NPURT_GUARDED_BY(g_mutex) = 0;   // sleepers that were told to get up and did not yet
  int guests NPURT_GUARDED_BY(g_mutex) = 0;  // threads inside that are not the pool's own
  Crew* open_crews NPURT_GUARDED_BY(g_mutex) = nullptr;
  Crew* free_crews NPURT_GUARDED_BY(g_mutex) = nullptr;
  Pool* next_abandoned NPURT_GUARDED_BY(g_mutex) = nullptr;
  CondVar wake;
  CondVar guests_wake;
  CondVar guests_gone;
  // Written under g_mutex, read by lingering threads without it.
  std::atomic<int> vacancies{0};  // in open crews that the pool's own threads may join
  std::atomic<bool> closing{false};

  static Pool* current NPURT_GUARDED_BY(g_mutex);
  static Pool* abandoned NPURT_GUARDED_BY(g_mutex);  // by forks; reachable, so no leak
  static int users NPURT_GUARDED_BY(g_mutex);

  // The pool, made if there is none yet (at first, and in the child of a fork). May be null.
  static Pool* Get() NPURT_REQUIRES(g_mutex) {
    if (current == nullptr && users > 0) current = new (std::nothrow) Pool;
    return current;
  }

  // The pool must not be in the middle of something when it is copied.
  static void BeforeFork() NPURT_NO_THREAD_SAFETY_ANALYSIS { g_mutex.Lock(); }
  static void AfterForkInParent() NPURT_NO_THREAD_SAFETY_ANALYSIS { g_mutex.Unlock(); }
  static void AfterForkInChild() NPURT_NO_THREAD_SAFETY_ANALYSIS {
    if (current != nullptr) {
      current->next_abandoned = abandoned;
      abandoned = std::exchange(current, nullptr);
    }
    g_lingerers.store(0, std::memory_order_relaxed);
    g_mutex.Unlock();
  }

  ~Pool() NPURT_NO_THREAD_SAFETY_ANALYSIS {
    while (workers != nullptr) delete std::exchange(workers, workers->next);
    while (free_crews != nullptr) delete std::exchange(free_crews, free_crews->next);
  }

  // --- Crews
  // --------------------------------------------------------------------------------------

  Crew* OpenCrew(const TeamOptions& options, int width) NPURT_REQUIRES(g_mutex) {
    Crew* crew = free_crews;
    if (crew != nullptr) {
      free_crews = crew->next;
    } else {
      crew = new (std::nothrow) Crew;
      if (crew == nullptr) return nullptr;
    }
    crew->spin_ns = std::int64_t{options.spin_us} * 1000;
    crew->executor = options.executor;
    crew->owner = options.owner;
    crew->width = width;
    crew->seats.reset();
    crew->seats.set(0);
    crew->open = true;
    crew->submitted = 0;
    crew->word.store(MakeWord(1, 0), std::memory_order_release);
    crew->next = open_crews;
    open_crews = crew;
    AddVacancies(*crew, width - 1);
    return crew;
  }

  void CloseCrew(Crew* crew) NPURT_REQUIRES(g_mutex) {
    crew->word.store(kClosed, std::memory_order_release);
    crew->open = false;
    Crew** link = &open_crews;
    while (*link != nullptr && *link != crew) link = &(*link)->next;
    if (*link == nullptr) return;  // of a pool that a fork left behind
    *link = crew->next;
    const int attached = crew->attached.load(std::memory_order_relaxed);
    AddVacancies(*crew, attached - (crew->width - 1));
    if (attached == 0) FreeCrew(crew);
  }

  void FreeCrew(Crew* crew) NPURT_REQUIRES(g_mutex) {
    crew->next = free_crews;
    free_crews = crew;
  }

  void AddVacancies(const Crew& crew, int count) NPURT_REQUIRES(g_mutex) {
    if (crew.executor == nullptr) vacancies.fetch_add(count, std::memory_order_relaxed);
  }

  template <typename Accept>
  Crew* FindCrew(const Accept& accept) NPURT_REQUIRES(g_mutex) {
    for (Crew* crew = open_crews; crew != nullptr; crew = crew->next) {
      if (accept(*crew) && crew->HasVacancy()) return crew;
    }
    return nullptr;
  }

  // Joins, serves, leaves.
  void Help(Crew& crew, std::int64_t* idle_since, const absl::FunctionRef<bool()>* until)
      NPURT_REQUIRES(g_mutex) {
    // The lowest seat: narrow steps take the participants with low numbers.
    int seat = 1;
    while (crew.seats.test(static_cast<std::size_t>(seat))) ++seat;
    crew.seats.set(static_cast<std::size_t>(seat));
    crew.attached.fetch_add(1, std::memory_order_relaxed);
    AddVacancies(crew, -1);
    g_mutex.Unlock();
    crew.Serve(seat, idle_since, until);
    g_mutex.Lock();
    crew.seats.reset(static_cast<std::size_t>(seat));
    const bool last = crew.attached.fetch_sub(1, std::memory_order_relaxed) == 1;
    if (crew.open) {
      AddVacancies(crew, 1);
    } else if (last) {
      FreeCrew(&crew);
    }
  }

  // --- Threads
  // ------------------------------------------------------------------------------------

  void RunWorker() {
    MutexLock lock(g_mutex);
    std::int64_t spin_ns = 0;  // of the last crew
    std::int64_t idle_since = NowNs();
    bool fresh = true;  // started or woken for someone: join even without spinning time left
    while (!closing.load(std::memory_order_relaxed)) {
      Crew* crew = FindCrew([](const Crew& c) { return c.executor == nullptr; });
      const std::int64_t idle_ns = NowNs() - idle_since;
      if (crew != nullptr && (fresh || idle_ns < crew->spin_ns)) {
        spin_ns = crew->spin_ns;
        fresh = false;
        Help(*crew, &idle_since, nullptr);
      } else if (crew == nullptr && idle_ns < spin_ns) {
        Linger(idle_since + spin_ns);
      } else {
        ++sleepers;
        while (wakes == 0 && !closing.load(std::memory_order_relaxed)) wake.Wait(g_mutex);
        --sleepers;
        if (wakes > 0) --wakes;
        fresh = true;
        idle_since = NowNs();
      }
    }
  }

  // The next run often follows at once.
  void Linger(std::int64_t until_ns) NPURT_REQUIRES(g_mutex) {
    g_lingerers.fetch_add(1, std::memory_order_relaxed);
    g_mutex.Unlock();
    do {
      for (int i = 0; i < 32 && vacancies.load(std::memory_order_relaxed) <= 0; ++i) CpuRelax();
    } while (vacancies.load(std::memory_order_relaxed) <= 0 &&
             !closing.load(std::memory_order_relaxed) && NowNs() < until_ns);
    g_mutex.Lock();
    g_lingerers.fetch_sub(1, std::memory_order_relaxed);
  }

  bool StartThread() NPURT_REQUIRES(g_mutex) {
    // The host's signal handlers expect the host's threads.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    Worker* worker = new (std::nothrow) Worker;
    bool started = false;
    if (worker != nullptr) {
      try {
        worker->thread = std::thread([this] { RunWorker(); });
        started = true;
      } catch (const std::exception&) {  // no thread or no memory
        delete worker;
      }
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (!started) {
      thread_limit = thread_count;
      return false;
    }
#if defined(__linux__)
    pthread_setname_np(worker->thread.native_handle(), "npurt");
    cpu_set_t cpus;
    if (AllowedCpus(&cpus)) {
      pthread_setaffinity_np(worker->thread.native_handle(), sizeof cpus, &cpus);
    }
#endif
    worker->next = workers;
    workers = worker;
    ++thread_count;
    return true;
  }

  // Gets more members for `crew`, up to `width` participants, as far as there are CPUs for them.
  void Wake(Crew& crew, int width) NPURT_EXCLUDES_LOCK(g_mutex) {
    const int cpus = crew.executor == nullptr ? AllowedCpuCount() : TeamPool::kMaxWidth;
    int to_signal = 0;
    int to_submit = 0;
    {
      MutexLock lock(g_mutex);
      int wanted = std::min(width, cpus) - 1 - crew.attached.load(std::memory_order_relaxed);
      if (wanted <= 0) return;
      if (crew.executor != nullptr) {
        to_submit = std::max(wanted - crew.submitted, 0);
        crew.submitted += to_submit;
      } else {
        to_signal = std::min(wanted, sleepers - wakes);
        wakes += to_signal;
        wanted -= to_signal;
        while (wanted > 0 && thread_count < std::min(thread_limit, width - 1) && StartThread()) {
          --wanted;
        }
      }
      if (guests > 0) guests_wake.SignalAll();
    }
    for (int i = 0; i < to_signal; ++i) wake.Signal();
    for (int i = 0; i < to_submit; ++i) {
      if (!crew.executor->Submit(&Pool::RunTask, crew.executor)) break;
    }
  }

  // A task in a host's executor. It may come late, after the team, the pool or the executor have
  // gone: `executor` is compared, never used.
  static void RunTask(void* executor) {
    MutexLock lock(g_mutex);
    Pool* pool = current;
    if (pool == nullptr) return;
    Crew* crew = pool->FindCrew([executor](const Crew& c) { return c.executor == executor; });
    if (crew == nullptr) return;
    if (crew->submitted > 0) --crew->submitted;
    ++pool->guests;
    std::int64_t idle_since = NowNs();
    pool->Help(*crew, &idle_since, nullptr);
    if (--pool->guests == 0) pool->guests_gone.SignalAll();
  }

  void Lend(const void* owner, absl::FunctionRef<bool()> until) NPURT_REQUIRES(g_mutex) {
    ++guests;
    for (;;) {
      g_mutex.Unlock();
      const bool enough = until();
      g_mutex.Lock();
      if (enough || closing.load(std::memory_order_relaxed)) break;
      Crew* crew = FindCrew([owner](const Crew& c) { return c.owner == owner; });
      if (crew != nullptr) {
        std::int64_t idle_since = NowNs();
        const std::int64_t before = idle_since;
        Help(*crew, &idle_since, &until);
        if (idle_since != before) continue;  // there was work
      }
      guests_wake.WaitUntil(g_mutex, std::chrono::steady_clock::now() + kLentPoll);
    }
    if (--guests == 0) guests_gone.SignalAll();
  }
};

constinit Team::Pool* Team::Pool::current = nullptr;
constinit Team::Pool* Team::Pool::abandoned = nullptr;
constinit int Team::Pool::users = 0;

void TeamPool::Acquire() {
  MutexLock lock(g_mutex);
  static constinit bool handles_forks = false;
  if (!handles_forks) {
    handles_forks = pthread_atfork(&Team::Pool::BeforeFork, &Team::Pool::AfterForkInParent,
                                   &Team::Pool::AfterForkInChild) == 0;
  }
  ++Team::Pool::users;
}

void TeamPool::Release() {
  Team::Pool* pool = nullptr;
  {
    MutexLock lock(g_mutex);
    if (--Team::Pool::users > 0) return;
    pool = std::exchange(Team::Pool::current, nullptr);
    if (pool == nullptr) return;
    pool->closing.store(true, std::memory_order_relaxed);
    pool->wake.SignalAll();
    pool->guests_wake.SignalAll();
    while (pool->guests > 0) pool->guests_gone.Wait(g_mutex);
  }
  // No one else can reach the pool now; its threads still take the lock on their way out.
  [pool]() NPURT_NO_THREAD_SAFETY_ANALYSIS {
    for (Team::Pool::Worker* w = pool->workers; w != nullptr; w = w->next) w->thread.join();
  }();
  delete pool;
}

void TeamPool::LendThread(const void* owner, absl::FunctionRef<bool()> until) {
  MutexLock lock(g_mutex);
  Team::Pool* pool = Team::Pool::Get();
  if (pool != nullptr) pool->Lend(owner, until);
}

int TeamPool::ThreadCount() {
  MutexLock lock(g_mutex);
  return Team::Pool::current == nullptr ? 0 : Team::Pool::current->thread_count;
}

int TeamPool::SleeperCount() {
  MutexLock lock(g_mutex);
  return Team::Pool::current == nullptr ? 0 : Team::Pool::current->sleepers;
}

Team::Team(const TeamOptions& options)
    : options_(options), width_(std::clamp(options.width, 1, TeamPool::kMaxWidth)) {
  if (options.executor != nullptr) width_ = std::clamp(options.executor->Concurrency(), 1, width_);
}

void Team::ParallelFor(std::int64_t tiles, TileFn fn, void* argument, int max_width,
                       double cost_ns) {
  const int width = static_cast<int>(std::min<std::int64_t>(std::min(width_, max_width), tiles));
  const bool cost_known = cost_ns >= 0;
  if (width <= 1 || (cost_known && cost_ns < kShareNs) || tiles > kMaxTiles) {
    return RunAlone(tiles, fn, argument);
  }
  if (__builtin_expect(alone_until_ns_ != 0, 0)) {
    if (NowNs() < alone_until_ns_) return RunAlone(tiles, fn, argument);
    alone_until_ns_ = 0;
  }
  bool wake = false;
  if (crew_ == nullptr || crew_->attached.load(std::memory_order_relaxed) < width - 1) {
    missed_ns_ += cost_known ? cost_ns : kWakeNs;
    wake = missed_ns_ >= kWakeNs;
    if (wake) missed_ns_ = 0;
  }
  if (crew_ == nullptr) {
    const bool cheap = g_lingerers.load(std::memory_order_relaxed) > 0;
    if ((!wake && !cheap) || !Open()) return RunAlone(tiles, fn, argument);
  }
  RunShared(tiles, fn, argument, width, wake);
}

void Team::RunAlone(std::int64_t tiles, TileFn fn, void* argument) {
  for (std::int64_t tile = 0; tile < tiles; ++tile) fn(argument, tile, 0);
}

void Team::RunShared(std::int64_t tiles, TileFn fn, void* argument, int width, bool wake) {
  Crew& crew = *crew_;
  crew.fn = fn;
  crew.argument = argument;
  crew.tiles = tiles;
  crew.done.store(0, std::memory_order_relaxed);
  // The first tile is the caller's without a claim.
  crew.word.store(MakeWord(width, tiles - 1), std::memory_order_release);
  if (wake) {
    // The pool is the one that made the crew: it stays while the team is in use.
    Pool* pool = nullptr;
    {
      MutexLock lock(g_mutex);
      pool = Pool::current;
    }
    if (pool != nullptr) pool->Wake(crew, width);
  }
  const std::int64_t start = NowNs();
  crew.RunTile(0, 0);
  const std::int64_t own = 1 + crew.RunTiles(crew.word.load(std::memory_order_acquire), 0);
  const std::int64_t slept_ns = crew.WaitForMembers(tiles - own);
  if (__builtin_expect(slept_ns > 0, 0)) {
    // Longer than our own tiles took on average: the member was not computing.
    const std::int64_t end = NowNs();
    const std::int64_t tile_ns = (end - slept_ns - start) / own;
    if (slept_ns > 2 * tile_ns) {
      alone_until_ns_ = end + std::min(kAloneFactor * slept_ns, kMaxAloneNs);
    }
  }
  if (__builtin_expect(crew.failed.load(std::memory_order_relaxed), 0)) crew.Rethrow();
}

bool Team::Open() {
  MutexLock lock(g_mutex);
  Pool* pool = Pool::Get();
  if (pool != nullptr) crew_ = pool->OpenCrew(options_, width_);
  return crew_ != nullptr;
}

void Team::Close() {
  missed_ns_ = 0;
  if (crew_ == nullptr) return;
  Crew* crew = std::exchange(crew_, nullptr);
  MutexLock lock(g_mutex);
  if (Pool::current != nullptr) Pool::current->CloseCrew(crew);
}

}  // namespace npurt::exec
