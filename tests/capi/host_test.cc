// Operators, memory and threads of the host, in runs.
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <map>
#include <mutex>
#include <thread>

#include "c_api_test.h"

namespace npurt_test {
namespace {

// scale(x) = factor * x, with its own inference.
struct Scale {
  int computed = 0, destroyed = 0;
  npurt_status fail_with = NPURT_OK;
  std::vector<std::thread> later;
  bool defer = false;

  npurt_operator callbacks() {
    npurt_operator op = npurt_operator_init();
    op.type = "Scale";
    op.domain = "test";
    op.flags = NPURT_OPERATOR_SERIAL;
    op.min_inputs = op.max_inputs = 1;
    op.min_outputs = op.max_outputs = 1;
    op.user_data = this;
    op.infer = Infer;
    op.compute = Compute;
    op.destroy = [](void* self) { ++static_cast<Scale*>(self)->destroyed; };
    return op;
  }

  static npurt_status Infer(void*, npurt_op_context* context) {
    npurt_value_info info = npurt_value_info_init();
    const npurt_status status = npurt_op_input_info(context, 0, &info, nullptr);
    if (status != NPURT_OK) return status;
    return npurt_op_set_output_info(context, 0, &info, nullptr);
  }

  static npurt_status Compute(void* user_data, npurt_op_context* context) {
    Scale& self = *static_cast<Scale*>(user_data);
    ++self.computed;
    if (self.fail_with != NPURT_OK) {
      npurt_op_fail(context, "the scale is broken");
      return self.fail_with;
    }
    npurt_attribute factor = {};
    if (npurt_op_attribute(context, "factor", &factor, nullptr) != NPURT_OK) return NPURT_INTERNAL;
    npurt_tensor in = npurt_tensor_init(), out = npurt_tensor_init();
    npurt_status status = npurt_value_tensor(npurt_op_input(context, 0), &in, nullptr);
    if (status == NPURT_OK)
      status = npurt_op_output(context, 0, NPURT_FLOAT32, in.dims, static_cast<size_t>(in.rank),
                               &out, nullptr);
    if (status != NPURT_OK) return status;
    const auto compute = [in, out, by = *static_cast<const float*>(factor.data)] {
      for (size_t i = 0; i < in.count; ++i)
        static_cast<float*>(out.data)[i] = by * static_cast<const float*>(in.data)[i];
    };
    if (!self.defer) {
      compute();
      return NPURT_OK;
    }
    npurt_op_pending* pending = nullptr;
    status = npurt_op_defer(context, &pending, nullptr);
    if (status != NPURT_OK) return status;
    self.later.emplace_back([compute, pending] {
      compute();
      npurt_op_finish(pending, NPURT_OK, nullptr);
    });
    return NPURT_OK;
  }
};

Builder ScaledDoubler(npurt_host* host, const float* factor) {
  Builder graph(host);
  const npurt_value_id x = graph.Input("x", {-1, 3}, {"n", ""});
  const npurt_value_id sum = graph.Node("Add", {x, x}, "sum");
  const npurt_attribute attribute = {"factor", NPURT_ATTRIBUTE_FLOAT, 0, factor, 1};
  const npurt_value_id scaled = graph.Node("Scale", {sum}, "scaled", {attribute}, "test");
  graph.Output(graph.Node("Relu", {scaled}, "y"));
  return graph;
}

TEST(OperatorTest, OfTheHostIsPartOfTheGraph) {
  Scale scale;
  const float factor = 10;
  {
    Host host = Make<Host>(npurt_host_create);
    const npurt_operator op = scale.callbacks();
    ASSERT_OK(npurt_host_add_operator(host.get(), &op, nullptr));
    Builder graph = ScaledDoubler(host.get(), &factor);
    Text text = Make<Text>([&](npurt_text** out, npurt_error** error) {
      return npurt_graph_text(graph.get(), out, error);
    });
    EXPECT_NE(strstr(npurt_text_data(text.get()), "scaled"), nullptr);
    Model model = graph.ToModel();
    npurt_value_info info = npurt_value_info_init();
    ASSERT_OK(npurt_model_output_info(model.get(), 0, &info, nullptr));
    EXPECT_STREQ(info.dim_names[0], "n");  // the dimension keeps its name through infer
    Session session = graph.ToSession("", host.get());
    RunHandle run = NewRun(session);
    Value x = Floats({1, 3}, {1, -2, 3});
    ASSERT_OK(npurt_run_bind_input(run.get(), 0, x.get(), 0, nullptr));
    Failure failure;
    ASSERT_EQ(npurt_run_execute(run.get(), nullptr, failure), NPURT_OK) << failure.text();
    EXPECT_EQ(ReadFloats(OutputOf(run).get()), (std::vector<float>{20, 0, 60}));
    EXPECT_EQ(scale.computed, 1);
    scale.fail_with = NPURT_ABORTED;
    EXPECT_EQ(npurt_run_execute(run.get(), nullptr, failure), NPURT_ABORTED);
    EXPECT_NE(failure.text().find("the scale is broken"), std::string::npos) << failure.text();
    EXPECT_STREQ(npurt_error_node(failure.get()), "scaled");
    EXPECT_EQ(scale.destroyed, 0);
  }
  EXPECT_EQ(scale.destroyed, 1);
}

TEST(OperatorTest, MayFinishLaterOnAnotherThread) {
  Scale scale;
  scale.defer = true;
  const float factor = 2;
  Host host = Make<Host>(npurt_host_create);
  const npurt_operator op = scale.callbacks();
  ASSERT_OK(npurt_host_add_operator(host.get(), &op, nullptr));
  Session session = ScaledDoubler(host.get(), &factor).ToSession("", host.get());
  RunHandle run = NewRun(session);
  Value x = Floats({1, 3}, {1, 2, 3});
  ASSERT_OK(npurt_run_bind_input(run.get(), 0, x.get(), 0, nullptr));
  ASSERT_OK(npurt_run_execute(run.get(), nullptr, nullptr));
  EXPECT_EQ(ReadFloats(OutputOf(run).get()), (std::vector<float>{4, 8, 12}));
  for (std::thread& thread : scale.later) thread.join();
}

TEST(OperatorTest, ThatFinishesLaterHoldsUpNoOtherSubmittedRun) {
  // Each of three runs ends only when all three have started; the session has one thread for them.
  struct Meeting {
    std::mutex mutex;
    std::vector<npurt_op_pending*> here;
  } meeting;
  constexpr size_t kRuns = 3;
  npurt_operator op = npurt_operator_init();
  op.type = "Meet";
  op.domain = "test";
  op.flags = NPURT_OPERATOR_SERIAL;  // says nothing about the time after `compute`
  op.min_inputs = op.max_inputs = op.min_outputs = op.max_outputs = 1;
  op.user_data = &meeting;
  op.compute = [](void* user_data, npurt_op_context* context) -> npurt_status {
    Meeting& self = *static_cast<Meeting*>(user_data);
    npurt_status status = npurt_op_set_output(context, 0, npurt_op_input(context, 0), nullptr);
    npurt_op_pending* pending = nullptr;
    if (status == NPURT_OK) status = npurt_op_defer(context, &pending, nullptr);
    if (status != NPURT_OK) return status;
    const std::lock_guard<std::mutex> lock(self.mutex);
    self.here.push_back(pending);
    if (self.here.size() == kRuns)
      for (npurt_op_pending* one : self.here) npurt_op_finish(one, NPURT_OK, nullptr);
    return NPURT_OK;
  };
  Host host = Make<Host>(npurt_host_create);
  ASSERT_OK(npurt_host_add_operator(host.get(), &op, nullptr));
  Builder graph(host.get());
  graph.Output(graph.Node("Meet", {graph.Input("x", {3})}, "y", {}, "test"));
  Session session = graph.ToSession("threads = 1\n", host.get());
  std::vector<RunHandle> runs;
  std::vector<Future> futures;
  Value x = Floats({3}, {1, 2, 3});
  for (size_t i = 0; i < kRuns; ++i) {
    runs.push_back(NewRun(session));
    ASSERT_OK(npurt_run_bind_input(runs[i].get(), 0, x.get(), 0, nullptr));
    futures.push_back(Make<Future>([&](npurt_future** out, npurt_error** error) {
      return npurt_run_submit(runs[i].get(), nullptr, nullptr, out, error);
    }));
  }
  for (size_t i = 0; i < kRuns; ++i) {
    int32_t ready = 0;
    ASSERT_OK(npurt_future_wait(futures[i].get(), 0, &ready, nullptr));
    EXPECT_OK(npurt_future_result(futures[i].get(), nullptr));
    EXPECT_EQ(ReadFloats(OutputOf(runs[i]).get()), (std::vector<float>{1, 2, 3}));
  }
}

TEST(OperatorTest, WrongCountsAreRefusedWhenTheNodeIsAdded) {
  Scale scale;
  Host host = Make<Host>(npurt_host_create);
  const npurt_operator op = scale.callbacks();
  ASSERT_OK(npurt_host_add_operator(host.get(), &op, nullptr));
  Builder graph(host.get());
  const npurt_value_id x = graph.Input("x", {1});
  npurt_value_id out = -1;
  Failure failure;
  EXPECT_EQ(graph.TryNode("Scale", {x, x}, &out, failure, "s", {}, "test"), NPURT_INVALID_ARGUMENT);
  EXPECT_EQ(graph.TryNode("Nothing", {x}, &out, failure, "s", {}, "test"), NPURT_UNIMPLEMENTED);
  EXPECT_EQ(npurt_host_add_operator(host.get(), &op, nullptr), NPURT_ALREADY_EXISTS);
  EXPECT_EQ(scale.destroyed, 1);
}

// Counts what it gives; everything must come back with the numbers it was given for.
struct Memory {
  std::mutex mutex;
  std::map<void*, std::pair<size_t, npurt_memory>> live;
  int calls = 0, wrong = 0;

  npurt_allocator callbacks() {
    npurt_allocator allocator = npurt_allocator_init();
    allocator.user_data = this;
    allocator.allocate = [](void* user_data, size_t bytes, size_t alignment,
                            npurt_memory kind) -> void* {
      Memory& self = *static_cast<Memory*>(user_data);
      void* data = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
      std::lock_guard<std::mutex> lock(self.mutex);
      self.live[data] = {bytes, kind};
      ++self.calls;
      return data;
    };
    allocator.release = [](void* user_data, void* data, size_t bytes, size_t, npurt_memory kind) {
      Memory& self = *static_cast<Memory*>(user_data);
      std::lock_guard<std::mutex> lock(self.mutex);
      const auto found = self.live.find(data);
      if (found == self.live.end() || found->second != std::make_pair(bytes, kind)) ++self.wrong;
      self.live.erase(data);
      std::free(data);
    };
    return allocator;
  }
};

TEST(AllocatorTest, GetsBackAllItGave) {
  Memory memory;
  Value kept;
  {
    Host host = Make<Host>(npurt_host_create);
    const npurt_allocator allocator = memory.callbacks();
    ASSERT_OK(npurt_host_set_allocator(host.get(), &allocator, nullptr));
    Session session = Doubler().ToSession("fusion = 0", host.get());
    RunHandle run = NewRun(session);
    const int64_t dims[] = {50, 3};
    Value x = Make<Value>([&](npurt_value** out, npurt_error** error) {
      return npurt_value_create(NPURT_FLOAT32, dims, 2, host.get(), out, error);
    });
    ASSERT_OK(npurt_run_bind_input(run.get(), 0, x.get(), 0, nullptr));
    ASSERT_OK(npurt_run_execute(run.get(), nullptr, nullptr));
    kept = OutputOf(run);
  }
  EXPECT_GE(memory.calls, 3);
  EXPECT_EQ(memory.live.size(), 1u);  // the output outlives its session
  kept.reset();
  EXPECT_EQ(memory.live.size(), 0u);
  EXPECT_EQ(memory.wrong, 0);
}

// A pool with two workers.
struct Pool {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::pair<void (*)(void*), void*>> tasks;
  bool stop = false;
  std::atomic<int> ran{0};
  std::vector<std::thread> workers;

  Pool() {
    for (int i = 0; i < 2; ++i) workers.emplace_back([this] { Work(); });
  }
  ~Pool() {
    {
      std::lock_guard<std::mutex> lock(mutex);
      stop = true;
    }
    changed.notify_all();
    for (std::thread& worker : workers) worker.join();
  }
  void Work() {
    std::unique_lock<std::mutex> lock(mutex);
    for (;;) {
      changed.wait(lock, [this] { return stop || !tasks.empty(); });
      if (tasks.empty()) return;
      const auto task = tasks.front();
      tasks.pop_front();
      lock.unlock();
      task.first(task.second);
      ++ran;
      lock.lock();
    }
  }
  npurt_executor callbacks() {
    npurt_executor executor = npurt_executor_init();
    executor.user_data = this;
    executor.concurrency = [](void*) -> uint32_t { return 3; };
    executor.submit = [](void* user_data, void (*task)(void*), void* argument) -> npurt_status {
      Pool& self = *static_cast<Pool*>(user_data);
      {
        std::lock_guard<std::mutex> lock(self.mutex);
        self.tasks.emplace_back(task, argument);
      }
      self.changed.notify_one();
      return NPURT_OK;
    };
    return executor;
  }
};

TEST(ExecutorTest, DrivesSubmittedRuns) {
  Pool pool;
  Host host = Make<Host>(npurt_host_create);
  const npurt_executor executor = pool.callbacks();
  ASSERT_OK(npurt_host_set_executor(host.get(), &executor, nullptr));
  Session session = Doubler().ToSession("", host.get());
  RunHandle run = NewRun(session);
  Value x = Floats({1000, 3}, std::vector<float>(3000, 1));
  ASSERT_OK(npurt_run_bind_input(run.get(), 0, x.get(), 0, nullptr));
  for (int i = 0; i < 10; ++i) {
    Future future = Make<Future>([&](npurt_future** out, npurt_error** error) {
      return npurt_run_submit(run.get(), nullptr, nullptr, out, error);
    });
    int32_t ready = 0;
    ASSERT_OK(npurt_future_wait(future.get(), 0, &ready, nullptr));
    ASSERT_OK(npurt_future_result(future.get(), nullptr));
    EXPECT_EQ(ReadFloats(OutputOf(run).get())[2999], 2);
  }
  EXPECT_GE(pool.ran + 1, 10);
}

}  // namespace
}  // namespace npurt_test
