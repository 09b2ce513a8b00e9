// What sharing a step costs: an open team of two against the caller alone, for steps of several
// lengths.
//
// "alone" is the work itself; "shared" the same tiles through ParallelFor. Half of "alone" plus the
// hand-over is the best that "shared" can show. Cores that are busy with something else show up as
// "shared" close to "alone", never as much more.
#include <benchmark/benchmark.h>

#include <atomic>

#include "exec/team.h"

namespace npurt::exec {
namespace {

// About `argument` times a few nanoseconds that no compiler removes.
void Work(void* argument, std::int64_t, int) {
  for (std::int64_t i = *static_cast<std::int64_t*>(argument); i > 0; --i) {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    benchmark::DoNotOptimize(i);
  }
}

void BM_StepAlone(benchmark::State& state) {
  std::int64_t work = state.range(0);
  for (auto _ : state) {
    Work(&work, 0, 0);
    Work(&work, 1, 0);
  }
}

void BM_StepShared(benchmark::State& state) {
  std::int64_t work = state.range(0);
  TeamPool::Acquire();
  {
    Team team({.width = 2});
    for (auto _ : state) team.ParallelFor(2, &Work, &work, 2);
  }
  TeamPool::Release();
}

// A whole run of ten steps, team opened and closed.
void BM_RunOfTenSteps(benchmark::State& state) {
  std::int64_t work = state.range(0);
  TeamPool::Acquire();
  {
    Team team({.width = 2});
    for (auto _ : state) {
      for (int step = 0; step < 10; ++step) team.ParallelFor(2, &Work, &work, 2);
      team.Close();
    }
  }
  TeamPool::Release();
}

BENCHMARK(BM_StepAlone)->Arg(0)->Arg(1000)->Arg(10000)->UseRealTime();
BENCHMARK(BM_StepShared)->Arg(0)->Arg(1000)->Arg(10000)->UseRealTime();
BENCHMARK(BM_RunOfTenSteps)->Arg(1000)->Arg(10000)->UseRealTime();

}  // namespace
}  // namespace npurt::exec
