// Many threads on one session, and many sessions on one pool. Right answers or the status that the
// situation explains, and nothing for the thread sanitizer to find.
#include <sched.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "c_api_test.h"

namespace npurt_test {
namespace {

// y = relu(x + x) on rows that are worth sharing among threads, and a product.
Builder Work() {
  Builder graph;
  const npurt_value_id x = graph.Input("x", {-1, 64}, {"n", ""});
  std::vector<float> eye(64 * 64);
  for (size_t i = 0; i < 64; ++i) eye[i * 65] = 1;
  const npurt_value_id product = graph.Node("MatMul", {x, graph.Constant("i", Floats({64, 64}, eye))});
  const npurt_value_id sum = graph.Node("Add", {product, x}, "sum");
  graph.Output(graph.Node("Relu", {sum}, "y"));
  graph.Output(graph.Node("NonZero", {x}, "where"));
  return graph;
}

Value RowsOf(int64_t rows) {
  std::vector<float> data(static_cast<size_t>(rows) * 64);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>(i % 7);
  return Floats({rows, 64}, data);
}

struct Actor {
  const Session& session;
  std::atomic<int>& good;
  std::atomic<int>& bad;
  bool may_be_closed = false;

  void Count(npurt_status status, std::initializer_list<npurt_status> allowed) {
    for (npurt_status one : allowed)
      if (status == one) {
        if (status == NPURT_OK) ++good;
        return;
      }
    if (may_be_closed && (status == NPURT_CANCELLED || status == NPURT_FAILED_PRECONDITION)) return;
    ++bad;
  }
  void CheckResult(const RunHandle& run, int64_t rows) {
    npurt_value* y = nullptr;
    if (npurt_run_output(run.get(), 0, &y, nullptr) != NPURT_OK) {
      ++bad;
      return;
    }
    Value owner(y);
    npurt_tensor view = npurt_tensor_init();
    if (npurt_value_tensor(y, &view, nullptr) != NPURT_OK || view.dims[0] != rows) ++bad;
    const float* data = static_cast<const float*>(view.data);
    for (size_t i = 0; i < view.count; i += 97)
      if (data[i] != 2 * static_cast<float>(i % 7)) {
        ++bad;
        return;
      }
  }

  // What thread `t` does in its turn `i`.
  void Turn(const RunHandle& run, int t, int i) {
    const int64_t rows = 1 + (t * 13 + i * 5) % 300;
    Value x = RowsOf(rows);
    if (npurt_run_bind_input(run.get(), 0, x.get(), 0, nullptr) != NPURT_OK) ++bad;
    npurt_run_params params = npurt_run_params_init();
    switch ((t + i) % 7) {
      case 0:
      case 1: {
        const npurt_status status = npurt_run_execute(run.get(), nullptr, nullptr);
        Count(status, {NPURT_OK});
        if (status == NPURT_OK) CheckResult(run, rows);
        break;
      }
      case 2: {  // cancelled by another thread, perhaps in time
        Cancel cancel = Make<Cancel>(npurt_cancel_create);
        params.cancel = cancel.get();
        std::thread other([&] { npurt_cancel_trigger(cancel.get()); });
        Count(npurt_run_execute(run.get(), &params, nullptr), {NPURT_OK, NPURT_CANCELLED});
        other.join();
        break;
      }
      case 3: {  // submitted, waited for
        npurt_future* future = nullptr;
        const npurt_status status =
            npurt_run_submit(run.get(), nullptr, nullptr, &future, nullptr);
        Count(status, {NPURT_OK});
        if (status != NPURT_OK) break;
        int32_t ready = 0;
        Count(npurt_future_wait(future, 0, &ready, nullptr), {NPURT_OK});
        const npurt_status result = npurt_future_result(future, nullptr);
        Count(result, {NPURT_OK});
        npurt_future_release(future);
        if (result == NPURT_OK) CheckResult(run, rows);
        break;
      }
      case 4: {  // a run of its own, with a deadline that may pass
        params.deadline_ns = npurt_now_ns() + i % 3 * 50000;
        npurt_value *in = x.get(), *out = nullptr;
        const char *name = "x", *y = "y";
        Count(npurt_session_run(session.get(), 0, &name, &in, 1, &y, &out, 1, &params, nullptr),
              {NPURT_OK, NPURT_DEADLINE_EXCEEDED});
        npurt_value_release(out);
        break;
      }
      case 5: {
        const int64_t dims[] = {rows, 64};
        const npurt_shape shape = {dims, 2};
        Count(npurt_session_warm_up(session.get(), 0, &shape, 1, nullptr), {NPURT_OK});
        break;
      }
      default: {
        uint64_t bytes = 0;
        Count(npurt_session_trim(session.get(), &bytes, nullptr), {NPURT_OK});
        npurt_text* text = nullptr;
        Count(npurt_session_report(session.get(), 0, NPURT_REPORT_COUNTERS, &text, nullptr),
              {NPURT_OK});
        npurt_text_release(text);
      }
    }
  }
};

constexpr int kThreads = 8;

TEST(StressTest, EightThreadsOnOneSession) {
  Session session = Work().ToSession("threads = 3\n");
  std::atomic<int> good{0}, bad{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      Actor actor{session, good, bad};
      RunHandle run = NewRun(session);
      for (int i = 0; i < 150; ++i) actor.Turn(run, t, i);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(bad, 0);
  EXPECT_GT(good, kThreads * 150 / 2);
}

TEST(StressTest, SessionsThatCloseUnderTheirRunsShareOnePool) {
  std::atomic<int> good{0}, bad{0};
  for (int round = 0; round < 16; ++round) {
    Session sessions[2] = {Work().ToSession("threads = 2\n"), Work().ToSession("threads = 3\n")};
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t)
      threads.emplace_back([&, t] {
        const Session& session = sessions[t % 2];
        Actor actor{session, good, bad, true};
        RunHandle run;
        {
          npurt_run* made = nullptr;
          if (npurt_run_create(session.get(), 0, &made, nullptr) != NPURT_OK) return;
          run.reset(made);
        }
        for (int i = 0; i < 12; ++i) {
          if (t == round % kThreads && i == 6) {
            if (npurt_session_close(session.get(), 0, nullptr) != NPURT_OK) ++bad;
          } else {
            actor.Turn(run, t, i);
          }
        }
      });
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_EQ(bad, 0);
  EXPECT_GT(good, 0);
}

TEST(StressTest, OneCpuIsEnoughForManyThreads) {
#if defined(__linux__)
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu)
    if (CPU_ISSET(cpu, &before)) CPU_SET(cpu, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  std::atomic<int> good{0}, bad{0};
  {
    Session session = Work().ToSession("threads = 4\n");
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {  // inherits the one CPU
        Actor actor{session, good, bad};
        RunHandle run = NewRun(session);
        for (int i = 0; i < 20; ++i) actor.Turn(run, t, i);
      });
    for (std::thread& thread : threads) thread.join();
  }
  sched_setaffinity(0, sizeof before, &before);
  EXPECT_EQ(bad, 0);
  EXPECT_GT(good, 20);
#else
  GTEST_SKIP() << "no way to forbid CPUs here";
#endif
}

}  // namespace
}  // namespace npurt_test
