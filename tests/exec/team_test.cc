#include "exec/team.h"

#include <dirent.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <memory>
#include <new>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "exec/float_mode.h"

namespace npurt::exec {
namespace {

#if defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#endif

// Long enough for anything that must happen some time; the tests pass as soon as it does.
constexpr auto kPatience = std::chrono::seconds(30);

template <typename Condition>
bool Eventually(const Condition& condition) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return true;
}

[[maybe_unused]] int ThreadsOfProcess() {
  int count = 0;
  DIR* tasks = opendir("/proc/self/task");
  if (tasks == nullptr) return -1;
  while (const dirent* entry = readdir(tasks)) count += entry->d_name[0] != '.';
  closedir(tasks);
  return count;
}

int AllowedCpus() {
  cpu_set_t cpus;
  return sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? CPU_COUNT(&cpus) : 1;
}

// Counts how often each tile was computed and checks what participants promise.
class Tiles {
 public:
  explicit Tiles(std::int64_t count, int spins = 0)
      : counts_(static_cast<std::size_t>(count)), spins_(spins) {}

  static void Run(void* self, std::int64_t tile, int participant) {
    static_cast<Tiles*>(self)->RunOne(tile, participant);
  }

  // All tiles were computed `times` times each.
  bool Done(int times) const {
    for (const auto& count : counts_) {
      if (count.load() != times) return false;
    }
    return true;
  }

  std::int64_t count() const { return static_cast<std::int64_t>(counts_.size()); }
  int max_participant() const { return max_participant_.load(); }
  bool collided() const { return collided_.load(); }

 private:
  void RunOne(std::int64_t tile, int participant) {
    if (busy_[participant].exchange(true)) collided_ = true;
    int seen = max_participant_.load();
    while (seen < participant && !max_participant_.compare_exchange_weak(seen, participant)) {
    }
    for (int i = 0; i < spins_; ++i) sink_.fetch_add(1, std::memory_order_relaxed);
    counts_[static_cast<std::size_t>(tile)].fetch_add(1, std::memory_order_relaxed);
    busy_[participant] = false;
  }

  std::vector<std::atomic<int>> counts_;
  const int spins_;
  std::atomic<bool> busy_[TeamPool::kMaxWidth] = {};
  std::atomic<bool> collided_{false};
  std::atomic<int> max_participant_{0};
  std::atomic<int> sink_{0};
};

class TeamTest : public ::testing::Test {
 protected:
  TeamTest() { TeamPool::Acquire(); }
  ~TeamTest() override { TeamPool::Release(); }

  // Runs steps until a member has taken part.
  static bool RunUntilHelped(Team& team) {
    Tiles tiles(64, 200);
    return Eventually([&] {
      for (int i = 0; i < 20; ++i) team.ParallelFor(tiles.count(), &Tiles::Run, &tiles, 2);
      return tiles.max_participant() == 1;
    });
  }
};

TEST_F(TeamTest, ComputesEveryTileOnce) {
  for (const int width : {1, 2, 3, 8}) {
    Team team({.width = width});
    for (const std::int64_t count : {0, 1, 2, 3, 7, 64, 1000}) {
      Tiles tiles(count);
      for (int i = 1; i <= 20; ++i) {
        team.ParallelFor(count, &Tiles::Run, &tiles, width);
        ASSERT_TRUE(tiles.Done(i)) << "width " << width << ", tiles " << count << ", step " << i;
      }
    }
  }
}

TEST_F(TeamTest, ParticipantsStayBelowTheWidthAndNeverShareANumber) {
  Team team({.width = 4});
  for (const int width : {4, 2, 3}) {
    Tiles tiles(64, 20);
    for (int i = 0; i < 300; ++i) team.ParallelFor(tiles.count(), &Tiles::Run, &tiles, width);
    EXPECT_LT(tiles.max_participant(), width);
    EXPECT_FALSE(tiles.collided());
    EXPECT_TRUE(tiles.Done(300));
  }
}

TEST_F(TeamTest, MembersJoinARunThatKeepsThemBusy) {
  if (AllowedCpus() < 2) GTEST_SKIP() << "only one CPU is allowed here";
  Team team({.width = 2});
  EXPECT_TRUE(RunUntilHelped(team));
}

TEST_F(TeamTest, OneParticipantNeedsNoThread) {
  Team team({.width = 1});
  Tiles tiles(10);
  team.ParallelFor(10, &Tiles::Run, &tiles, 8);
  EXPECT_TRUE(tiles.Done(1));
  EXPECT_EQ(TeamPool::ThreadCount(), 0);
}

TEST_F(TeamTest, ShortStepsStayWithTheCaller) {
  Team team({.width = 4});
  Tiles tiles(8);
  for (int i = 0; i < 1000; ++i) team.ParallelFor(8, &Tiles::Run, &tiles, 4, 100.0);
  EXPECT_TRUE(tiles.Done(1000));
  EXPECT_EQ(tiles.max_participant(), 0);
  EXPECT_EQ(TeamPool::ThreadCount(), 0);
}

TEST_F(TeamTest, ThreadsSleepBetweenRuns) {
  if (AllowedCpus() < 2) GTEST_SKIP() << "only one CPU is allowed here";
  Team team({.width = 2});
  ASSERT_TRUE(RunUntilHelped(team));
  team.Close();
  EXPECT_TRUE(Eventually([] { return TeamPool::SleeperCount() == TeamPool::ThreadCount(); }));
  EXPECT_TRUE(RunUntilHelped(team)) << "and they come back";
}

TEST_F(TeamTest, MembersOfAnIdleOpenTeamSleepToo) {
  if (AllowedCpus() < 2) GTEST_SKIP() << "only one CPU is allowed here";
  Team team({.width = 2});
  ASSERT_TRUE(RunUntilHelped(team));
  EXPECT_TRUE(Eventually([] { return TeamPool::SleeperCount() == TeamPool::ThreadCount(); }));
}

TEST_F(TeamTest, FinishesWhenOnlyOneCpuIsLeft) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  Team team({.width = 4, .spin_us = 5});
  Tiles tiles(32, 50);
  team.ParallelFor(tiles.count(), &Tiles::Run, &tiles, 4);  // members may be there already
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &before)) {
      CPU_SET(cpu, &one);
      break;
    }
  }
  // Every thread of the process, as taskset -a would.
  DIR* tasks = opendir("/proc/self/task");
  ASSERT_NE(tasks, nullptr);
  while (const dirent* entry = readdir(tasks)) {
    if (entry->d_name[0] != '.') sched_setaffinity(std::atoi(entry->d_name), sizeof one, &one);
  }
  closedir(tasks);
  for (int i = 1; i < 500; ++i) team.ParallelFor(tiles.count(), &Tiles::Run, &tiles, 4);
  EXPECT_TRUE(tiles.Done(500));
  EXPECT_FALSE(tiles.collided());
  sched_setaffinity(0, sizeof before, &before);
}

TEST_F(TeamTest, EightCallersShareThePool) {
  std::vector<std::thread> callers;
  std::atomic<int> wrong{0};
  for (int c = 0; c < 8; ++c) {
    callers.emplace_back([c, &wrong] {
      Team team({.width = 2 + c % 3, .spin_us = c});
      for (int run = 0; run < 40; ++run) {
        Tiles tiles(1 + (c * 7 + run) % 40, 10);
        for (int step = 0; step < 25; ++step) {
          team.ParallelFor(tiles.count(), &Tiles::Run, &tiles, 4);
        }
        if (!tiles.Done(25) || tiles.collided()) ++wrong;
        team.Close();
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong.load(), 0);
  EXPECT_LE(TeamPool::ThreadCount(), 3) << "as many as the widest team needs";
}

TEST_F(TeamTest, ExceptionsReachTheCallerAfterAllTilesEnded) {
  struct Job {
    std::atomic<int> begun{0}, ended{0};
    static void Run(void* self, std::int64_t tile, int) {
      auto* job = static_cast<Job*>(self);
      ++job->begun;
      std::this_thread::yield();
      ++job->ended;
      if (tile % 2 == 1) throw std::bad_alloc();
    }
  } job;
  Team team({.width = 2});
  for (int i = 1; i <= 50; ++i) {
    EXPECT_THROW(team.ParallelFor(10, &Job::Run, &job, 2), std::bad_alloc);
    // How many tiles begin depends on who came; none may still run.
    EXPECT_EQ(job.ended.load(), job.begun.load());
  }
  Tiles tiles(10);
  team.ParallelFor(10, &Tiles::Run, &tiles, 2);
  EXPECT_TRUE(tiles.Done(1));
}

TEST(TeamPoolTest, NoThreadIsAliveAfterTheLastRelease) {
  TeamPool::Acquire();
  TeamPool::Acquire();
  {
    Team team({.width = 4});
    Tiles tiles(16, 100);
    for (int i = 0; i < 100; ++i) team.ParallelFor(16, &Tiles::Run, &tiles, 4);
    EXPECT_EQ(TeamPool::ThreadCount() > 0, AllowedCpus() > 1);
  }
  TeamPool::Release();
  EXPECT_EQ(TeamPool::ThreadCount() > 0, AllowedCpus() > 1);
  TeamPool::Release();
  EXPECT_EQ(TeamPool::ThreadCount(), 0);
#if !defined(SANITIZED)  // which have threads of their own
  EXPECT_TRUE(Eventually([] { return ThreadsOfProcess() == 1; })) << ThreadsOfProcess();
#endif
}

TEST(TeamPoolTest, RunsAloneWithoutAPool) {
  Team team({.width = 4});
  Tiles tiles(16);
  for (int i = 0; i < 10; ++i) team.ParallelFor(16, &Tiles::Run, &tiles, 4);
  EXPECT_TRUE(tiles.Done(10));
  EXPECT_EQ(TeamPool::ThreadCount(), 0);
}

TEST_F(TeamTest, AChildOfAForkStartsItsOwnThreads) {
#if defined(SANITIZED)
  GTEST_SKIP() << "the sanitizers do not follow threads through a fork";
#endif
  if (AllowedCpus() < 2) GTEST_SKIP() << "only one CPU is allowed here";
  Team team({.width = 2});
  ASSERT_TRUE(RunUntilHelped(team));
  team.Close();
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const bool none = TeamPool::ThreadCount() == 0;
    const bool helped = RunUntilHelped(team);
    team.Close();
    TeamPool::Release();
    _exit(none && helped && TeamPool::ThreadCount() == 0 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(RunUntilHelped(team)) << "the parent goes on";
}

TEST_F(TeamTest, AThreadThatCannotStartMakesTheTeamNarrower) {
#if defined(SANITIZED)
  GTEST_SKIP() << "the sanitizers need more address space than the limit of this test";
#endif
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    // Stacks bigger than any that is left over from an earlier thread, and no address space for
    // them.
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, std::size_t{1} << 30);
    const rlimit limit = {1, 1};
    if (pthread_setattr_default_np(&attributes) != 0 || setrlimit(RLIMIT_AS, &limit) != 0) _exit(2);
    // On the stack: there is hardly any heap to be had either.
    struct Job {
      std::atomic<int> ended{0};
      static void Run(void* self, std::int64_t, int) { ++static_cast<Job*>(self)->ended; }
    } job;
    Team team({.width = 4});
    for (int i = 0; i < 100; ++i) team.ParallelFor(10, &Job::Run, &job, 4);
    _exit(job.ended.load() == 1000 && TeamPool::ThreadCount() == 0 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(TeamTest, LentThreadsHelpTheirOwner) {
  const int owner = 0;
  std::atomic<bool> stop{false};
  std::thread lent([&] { TeamPool::LendThread(&owner, [&] { return stop.load(); }); });
  // An executor that takes nothing: whoever helps is the lent thread.
  struct None final : Executor {
    int Concurrency() override { return 2; }
    bool Submit(void (*)(void*), void*) override { return false; }
  } none;
  Team team({.width = 2, .executor = &none, .owner = &owner});
  EXPECT_TRUE(RunUntilHelped(team));
  Team other({.width = 2, .executor = &none, .owner = &none});
  Tiles tiles(64, 50);
  for (int i = 0; i < 200; ++i) other.ParallelFor(64, &Tiles::Run, &tiles, 2);
  EXPECT_EQ(tiles.max_participant(), 0) << "but nobody else";
  stop = true;
  lent.join();
}

// The host's pool: one thread and a queue.
class QueueExecutor final : public Executor {
 public:
  QueueExecutor() : thread_([this] { Run(); }) {}
  ~QueueExecutor() override {
    {
      MutexLock lock(mutex_);
      stop_ = true;
    }
    changed_.Signal();
    thread_.join();
  }

  int Concurrency() override { return 2; }
  bool Submit(void (*task)(void*), void* argument) override {
    {
      MutexLock lock(mutex_);
      tasks_.push_back({task, argument});
    }
    changed_.Signal();
    return true;
  }

 private:
  struct Task {
    void (*run)(void*);
    void* argument;
  };

  void Run() {
    for (;;) {
      Task task;
      {
        MutexLock lock(mutex_);
        while (!stop_ && tasks_.empty()) changed_.Wait(mutex_);
        if (tasks_.empty()) return;
        task = tasks_.front();
        tasks_.pop_front();
      }
      task.run(task.argument);
    }
  }

  Mutex mutex_;
  CondVar changed_;
  std::deque<Task> tasks_ NPURT_GUARDED_BY(mutex_);
  bool stop_ NPURT_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

TEST(TeamExecutorTest, AHostPoolReplacesOurThreads) {
  QueueExecutor executor;  // outlives the pool: tasks may come late
  TeamPool::Acquire();
  {
    Team team({.width = 8, .executor = &executor});
    EXPECT_EQ(team.width(), 2);
    Tiles tiles(64, 200);
    EXPECT_TRUE(Eventually([&] {
      for (int i = 0; i < 20; ++i) team.ParallelFor(64, &Tiles::Run, &tiles, 2);
      return tiles.max_participant() == 1;
    }));
    EXPECT_FALSE(tiles.collided());
  }
  EXPECT_EQ(TeamPool::ThreadCount(), 0);
  TeamPool::Release();
}

TEST(TeamExecutorTest, AnExecutorThatRunsTasksAtOnceIsFine) {
  struct Inline final : Executor {
    int Concurrency() override { return 4; }
    bool Submit(void (*task)(void*), void* argument) override {
      task(argument);
      return true;
    }
  } executor;
  TeamPool::Acquire();
  {
    Team team({.width = 4, .spin_us = 0, .executor = &executor});
    Tiles tiles(16);
    for (int i = 1; i <= 20; ++i) {
      team.ParallelFor(16, &Tiles::Run, &tiles, 4);
      ASSERT_TRUE(tiles.Done(i));
    }
  }
  TeamPool::Release();
}

TEST(TeamExecutorTest, TasksThatNeverRunHoldUpNothing) {
  struct Never final : Executor {
    int Concurrency() override { return 4; }
    bool Submit(void (*task)(void*), void* argument) override {
      late = task;
      late_argument = argument;
      return true;
    }
    void (*late)(void*) = nullptr;
    void* late_argument = nullptr;
  } executor;
  TeamPool::Acquire();
  {
    Team team({.width = 4, .executor = &executor});
    Tiles tiles(16);
    team.ParallelFor(16, &Tiles::Run, &tiles, 4);
    EXPECT_TRUE(tiles.Done(1));
  }
  TeamPool::Release();
  ASSERT_NE(executor.late, nullptr);
  executor.late(executor.late_argument);  // after everything is gone
}

#if defined(__x86_64__)
constexpr unsigned kFlags = 0x8040;  // flush to zero, denormals are zero

TEST_F(TeamTest, MembersFlushDenormalsAndTheCallerKeepsItsMode) {
  if (AllowedCpus() < 2) GTEST_SKIP() << "only one CPU is allowed here";
  struct Job {
    std::atomic<int> members{0};
    std::atomic<int> flushing{0};
    static void Run(void* self, std::int64_t, int participant) {
      if (participant == 0) return std::this_thread::yield();
      auto* job = static_cast<Job*>(self);
      ++job->members;
      if ((__builtin_ia32_stmxcsr() & kFlags) == kFlags) ++job->flushing;
    }
  } job;
  const unsigned before = __builtin_ia32_stmxcsr();
  Team team({.width = 2});
  EXPECT_TRUE(Eventually([&] {
    team.ParallelFor(64, &Job::Run, &job, 2);
    return job.members.load() > 0;
  }));
  EXPECT_EQ(job.members.load(), job.flushing.load());
  EXPECT_EQ(__builtin_ia32_stmxcsr(), before);
}

TEST(ScopedFloatModeTest, SetsAndRestoresEvenOddModes) {
  const unsigned before = __builtin_ia32_stmxcsr();
  const unsigned odd = 0x1F80 | 0x6000 | 0x21;  // towards zero, with sticky flags
  __builtin_ia32_ldmxcsr(odd);
  {
    const ScopedFloatMode mode;
    EXPECT_EQ(__builtin_ia32_stmxcsr() & 0xFFC0, 0x9FC0u);
    volatile float tiny = 1e-40f;
    volatile float product = tiny * 0.5f;
    EXPECT_EQ(product, 0.0f);
  }
  EXPECT_EQ(__builtin_ia32_stmxcsr(), odd);
  __builtin_ia32_ldmxcsr(before);
}
#endif

}  // namespace
}  // namespace npurt::exec
