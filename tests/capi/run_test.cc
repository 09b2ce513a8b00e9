// Runs: models, sessions, bindings, memory, cancelling, futures.
#include <atomic>
#include <thread>

#include "c_api_test.h"

namespace npurt_test {
namespace {

TEST(ModelTest, TellsInputsAndOutputsWithNamedDimensions) {
  Model model = Doubler().ToModel();
  ASSERT_EQ(npurt_model_input_count(model.get()), 1u);
  ASSERT_EQ(npurt_model_output_count(model.get()), 1u);
  npurt_value_info info = npurt_value_info_init();
  ASSERT_OK(npurt_model_input_info(model.get(), 0, &info, nullptr));
  EXPECT_STREQ(info.name, "x");
  EXPECT_STREQ(info.type, "tensor(float32)");
  EXPECT_EQ(info.kind, NPURT_KIND_TENSOR);
  EXPECT_EQ(info.dtype, NPURT_FLOAT32);
  ASSERT_EQ(info.rank, 2);
  EXPECT_EQ(info.dims[0], -1);
  EXPECT_EQ(info.dims[1], 3);
  EXPECT_STREQ(info.dim_names[0], "n");
  EXPECT_STREQ(info.dim_names[1], "");
  ASSERT_OK(npurt_model_output_info(model.get(), 0, &info, nullptr));
  EXPECT_STREQ(info.name, "y");
  EXPECT_STREQ(info.dim_names[0], "n");
  EXPECT_EQ(npurt_model_output_info(model.get(), 1, &info, nullptr), NPURT_OUT_OF_RANGE);
}

TEST(ModelTest, FilesThatAreNotThereOrNotModelsAreToldApart) {
  npurt_model* model = nullptr;
  EXPECT_EQ(npurt_model_load_file("/nowhere/model.onnx", nullptr, &model, nullptr),
            NPURT_NOT_FOUND);
  EXPECT_NE(npurt_model_load_memory("rubbish", 7, nullptr, nullptr, &model, nullptr), NPURT_OK);
  npurt_session* session = nullptr;
  EXPECT_EQ(npurt_session_open("/nowhere/model.onnx", nullptr, &session, nullptr), NPURT_NOT_FOUND);
  EXPECT_EQ(model, nullptr);
}

TEST(ModelTest, AFailedLoadFromMemoryGivesTheBytesBackOnce) {
  int calls = 0;
  const npurt_deleter deleter = {[](void* n, void*) { ++*static_cast<int*>(n); }, &calls};
  npurt_model* model = nullptr;
  EXPECT_NE(npurt_model_load_memory("rubbish", 7, &deleter, nullptr, &model, nullptr), NPURT_OK);
  EXPECT_EQ(calls, 1);
}

TEST(SessionTest, RunsInOneCallByPositionOrName) {
  Session session = Doubler().ToSession();
  Value x = Floats({2, 3}, {1, -2, 3, -4, 5, -6});
  npurt_value* input = x.get();
  npurt_value* output = nullptr;
  Failure failure;
  ASSERT_EQ(npurt_session_run(session.get(), 0, nullptr, &input, 1, nullptr, &output, 1, nullptr,
                              failure),
            NPURT_OK)
      << failure.text();
  Value y(output);
  EXPECT_EQ(ReadFloats(y.get()), (std::vector<float>{2, 0, 6, 0, 10, 0}));
  const char *in = "x", *out = "y", *wrong = "z";
  output = nullptr;
  ASSERT_OK(
      npurt_session_run(session.get(), 0, &in, &input, 1, &out, &output, 1, nullptr, failure));
  npurt_value_release(output);
  output = nullptr;
  EXPECT_EQ(
      npurt_session_run(session.get(), 0, &wrong, &input, 1, &out, &output, 1, nullptr, failure),
      NPURT_NOT_FOUND);
  EXPECT_EQ(failure.text(), "the graph has no input 'z'");
  EXPECT_EQ(output, nullptr);
}

TEST(SessionTest, HoldsSeveralGraphsAndSharesModels) {
  Model model = Doubler().ToModel();
  Session one = Make<Session>([](npurt_session** out, npurt_error** error) {
    return npurt_session_create(nullptr, nullptr, out, error);
  });
  Session two = Make<Session>([](npurt_session** out, npurt_error** error) {
    return npurt_session_create(nullptr, nullptr, out, error);
  });
  npurt_compile_info info = npurt_compile_info_init();
  info.name = "second";
  uint32_t graph = 9;
  ASSERT_OK(npurt_session_add_model(one.get(), model.get(), nullptr, &graph, nullptr));
  EXPECT_EQ(graph, 0u);
  ASSERT_OK(npurt_session_add_model(one.get(), model.get(), &info, &graph, nullptr));
  EXPECT_EQ(graph, 1u);
  EXPECT_EQ(npurt_session_add_model(one.get(), model.get(), &info, &graph, nullptr),
            NPURT_ALREADY_EXISTS);
  ASSERT_OK(npurt_session_add_model(two.get(), model.get(), nullptr, nullptr, nullptr));
  model.reset();
  EXPECT_EQ(npurt_session_graph_count(one.get()), 2u);
  ASSERT_OK(npurt_session_find_graph(one.get(), "second", &graph, nullptr));
  EXPECT_EQ(graph, 1u);
  EXPECT_EQ(npurt_session_find_graph(one.get(), "third", &graph, nullptr), NPURT_NOT_FOUND);
  EXPECT_EQ(npurt_session_input_count(one.get(), 1), 1u);
  EXPECT_EQ(npurt_session_input_count(one.get(), 2), 0u);
  for (const Session* session : {&one, &two}) {
    RunHandle run = NewRun(*session);
    ASSERT_OK(npurt_run_bind_input(run.get(), 0, Floats({1, 3}, {1, 2, 3}).get(), 0, nullptr));
    ASSERT_OK(npurt_run_execute(run.get(), nullptr, nullptr));
    EXPECT_EQ(ReadFloats(OutputOf(run).get()), (std::vector<float>{2, 4, 6}));
  }
}

TEST(SessionTest, ReportsAreThere) {
  Session session = Doubler().ToSession();
  for (npurt_report kind = NPURT_REPORT_OPERATORS; kind <= NPURT_REPORT_COUNTERS; ++kind) {
    Text text = Make<Text>([&](npurt_text** out, npurt_error** error) {
      return npurt_session_report(session.get(), 0, kind, out, error);
    });
    EXPECT_EQ(npurt_text_data(text.get())[0], '{') << kind;
  }
  npurt_text* text = nullptr;
  EXPECT_EQ(npurt_session_report(session.get(), 0, NPURT_REPORT_CPU, &text, nullptr),
            NPURT_INVALID_ARGUMENT);
  EXPECT_EQ(npurt_session_report(session.get(), 5, NPURT_REPORT_PLAN, &text, nullptr),
            NPURT_OUT_OF_RANGE);
}

TEST(RunTest, ReadsItsInputsAtEachExecution) {
  Session session = Doubler().ToSession();
  RunHandle run = NewRun(session);
  Failure failure;
  EXPECT_EQ(npurt_run_execute(run.get(), nullptr, failure), NPURT_FAILED_PRECONDITION);
  EXPECT_STREQ(npurt_error_tensor(failure.get()), "x");
  float data[] = {1, 2, 3}, result[3] = {};
  const int64_t dims[] = {1, 3};
  npurt_tensor view = npurt_tensor_init();
  view.dtype = NPURT_FLOAT32;
  view.rank = 2;
  view.dims = dims;
  view.data = data;
  view.bytes = sizeof data;
  Value x = Make<Value>([&](npurt_value** out, npurt_error** error) {
    return npurt_value_borrow(&view, nullptr, out, error);
  });
  view.data = result;
  Value y = Make<Value>([&](npurt_value** out, npurt_error** error) {
    return npurt_value_borrow(&view, nullptr, out, error);
  });
  ASSERT_OK(npurt_run_bind_input(run.get(), 0, x.get(), 0, nullptr));
  ASSERT_OK(npurt_run_bind_output(run.get(), 0, y.get(), nullptr));
  ASSERT_OK(npurt_run_execute(run.get(), nullptr, nullptr));
  EXPECT_EQ(result[2], 6);
  data[2] = 10;
  ASSERT_OK(npurt_run_execute(run.get(), nullptr, nullptr));
  EXPECT_EQ(result[2], 20);
  EXPECT_EQ(OutputOf(run).get(), y.get());  // the bound value itself
}

TEST(RunTest, DonatedInputsAreOverwrittenUnlessTheyAreReadOnly) {
  Builder graph;
  npurt_value_id value = graph.Input("x", {1, 16});
  for (const char* name : {"a", "b", "y"}) value = graph.Node("Softmax", {value}, name);
  graph.Output(value);
  Session session = graph.ToSession();
  RunHandle run = NewRun(session);
  alignas(64) float data[16] = {5};
  const int64_t dims[] = {1, 16};
  npurt_tensor view = npurt_tensor_init();
  view.dtype = NPURT_FLOAT32;
  view.rank = 2;
  view.dims = dims;
  view.data = data;
  view.bytes = sizeof data;
  std::vector<float> want;
  for (const bool read_only : {true, false}) {  // in this order: the first run leaves the data
    view.flags = read_only ? NPURT_TENSOR_READ_ONLY : 0;
    Value x = Make<Value>([&](npurt_value** out, npurt_error** error) {
      return npurt_value_borrow(&view, nullptr, out, error);
    });
    ASSERT_OK(npurt_run_bind_input(run.get(), 0, x.get(), NPURT_BIND_DONATE, nullptr));
    ASSERT_OK(npurt_run_execute(run.get(), nullptr, nullptr));
    if (read_only) want = ReadFloats(OutputOf(run).get());
    EXPECT_EQ(ReadFloats(OutputOf(run).get()), want);
    EXPECT_EQ(data[0] == 5, read_only);
  }
}

TEST(RunTest, StridedInputsAndOutputsAreConverted) {
  Session session = Doubler().ToSession();
  RunHandle run = NewRun(session);
  float in[] = {1, 2, 3, 4, 5, 6}, out[12] = {};
  const int64_t dims[] = {2, 3}, in_strides[] = {1, 2}, out_strides[] = {6, 2};
  npurt_tensor view = npurt_tensor_init();
  view.dtype = NPURT_FLOAT32;
  view.rank = 2;
  view.dims = dims;
  view.strides = in_strides;
  view.data = in;
  view.bytes = sizeof in;
  Value x = Make<Value>([&](npurt_value** value, npurt_error** error) {
    return npurt_value_borrow(&view, nullptr, value, error);
  });
  view.strides = out_strides;
  view.data = out;
  view.bytes = sizeof out;
  Value y = Make<Value>([&](npurt_value** value, npurt_error** error) {
    return npurt_value_borrow(&view, nullptr, value, error);
  });
  ASSERT_OK(npurt_run_bind_input(run.get(), 0, x.get(), 0, nullptr));
  ASSERT_OK(npurt_run_bind_output(run.get(), 0, y.get(), nullptr));
  ASSERT_OK(npurt_run_execute(run.get(), nullptr, nullptr));
  EXPECT_EQ((std::vector<float>(out, out + 12)),
            (std::vector<float>{2, 0, 6, 0, 10, 0, 4, 0, 8, 0, 12, 0}));
  in[0] = 100;
  ASSERT_OK(npurt_run_execute(run.get(), nullptr, nullptr));
  EXPECT_EQ(out[0], 200);
  const int64_t overlapping[] = {1, 1};
  view.strides = overlapping;
  Value wrong = Make<Value>([&](npurt_value** value, npurt_error** error) {
    return npurt_value_borrow(&view, nullptr, value, error);
  });
  EXPECT_EQ(npurt_run_bind_output(run.get(), 0, wrong.get(), nullptr), NPURT_INVALID_ARGUMENT);
}

TEST(RunTest, WrongBindingsAreRefusedAndTheRunStaysUsable) {
  Session session = Doubler().ToSession();
  RunHandle run = NewRun(session);
  Failure failure;
  Value two = Floats({2, 2}, {1, 2, 3, 4}), strings = Strings({1, 3}, {"a", "b", "c"});
  EXPECT_EQ(npurt_run_bind_input(run.get(), 0, two.get(), 0, failure), NPURT_INVALID_ARGUMENT);
  EXPECT_STREQ(npurt_error_tensor(failure.get()), "x");
  EXPECT_EQ(npurt_run_bind_input(run.get(), 0, strings.get(), 0, failure), NPURT_INVALID_ARGUMENT);
  EXPECT_EQ(npurt_run_bind_input(run.get(), 1, two.get(), 0, failure), NPURT_OUT_OF_RANGE);
  EXPECT_EQ(npurt_run_bind_input(run.get(), 0, two.get(), 128, failure), NPURT_INVALID_ARGUMENT);
  EXPECT_EQ(npurt_run_bind_output(run.get(), 0, strings.get(), failure), NPURT_INVALID_ARGUMENT);
  EXPECT_EQ(failure.text(), "output 'y': got a tensor(string), want a tensor(float32)");
  Value x = Floats({1, 3}, {1, 2, 3});
  ASSERT_OK(npurt_run_bind_input(run.get(), 0, x.get(), 0, failure));
  ASSERT_OK(npurt_run_bind_output(run.get(), 0, x.get(), failure));
  EXPECT_EQ(npurt_run_execute(run.get(), nullptr, failure), NPURT_INVALID_ARGUMENT);  // overlap
  ASSERT_OK(npurt_run_bind_output(run.get(), 0, nullptr, failure));
  ASSERT_OK(npurt_run_execute(run.get(), nullptr, failure));
}

TEST(RunTest, SaysExactBytesAndTakesAnArena) {
  Session session = Doubler().ToSession("fusion = 0");
  const int64_t dims[] = {100, 3};
  const npurt_shape shape = {dims, 2};
  npurt_memory_info memory = npurt_memory_info_init();
  ASSERT_OK(npurt_session_memory(session.get(), 0, &shape, 1, &memory, nullptr));
  EXPECT_EQ(memory.exact, 1u);
  EXPECT_GE(memory.arena_bytes, 1200u);
  EXPECT_EQ(memory.output_bytes, 1200u);
  std::vector<char> arena(memory.arena_bytes + memory.arena_alignment);
  RunHandle run = NewRun(session);
  Value x = Floats({100, 3}, std::vector<float>(300, 1.0f));
  ASSERT_OK(npurt_run_bind_input(run.get(), 0, x.get(), 0, nullptr));
  ASSERT_OK(npurt_run_set_arena(run.get(), arena.data(), arena.size(), nullptr));
  Failure failure;
  ASSERT_EQ(npurt_run_execute(run.get(), nullptr, failure), NPURT_OK) << failure.text();
  EXPECT_EQ(ReadFloats(OutputOf(run).get())[299], 2.0f);
  ASSERT_OK(npurt_run_set_arena(run.get(), arena.data(), 64, nullptr));
  EXPECT_EQ(npurt_run_execute(run.get(), nullptr, failure), NPURT_RESOURCE_EXHAUSTED);
}

TEST(RunTest, OutputsGoWhereTheAllocatorSays) {
  struct State {
    std::vector<float> memory = std::vector<float>(64);
    int allocated = 0, freed = 0, destroyed = 0;
  } state;
  Session session = Doubler().ToSession();
  {
    RunHandle run = NewRun(session);
    npurt_output_allocator allocator = npurt_output_allocator_init();
    allocator.user_data = &state;
    allocator.allocate = [](void* user_data, size_t output, npurt_dtype dtype, const int64_t* dims,
                            size_t rank, size_t bytes, void** out_data,
                            npurt_deleter* out_deleter) -> npurt_status {
      State& s = *static_cast<State*>(user_data);
      if (output != 0 || dtype != NPURT_FLOAT32 || rank != 2 || dims[0] != 2 || bytes != 24)
        return NPURT_INTERNAL;
      ++s.allocated;
      *out_data = s.memory.data();
      *out_deleter = {[](void* u, void*) { ++static_cast<State*>(u)->freed; }, &s};
      return NPURT_OK;
    };
    allocator.destroy = [](void* user_data) { ++static_cast<State*>(user_data)->destroyed; };
    ASSERT_OK(npurt_run_set_output_allocator(run.get(), 0, &allocator, nullptr));
    Value x = Floats({2, 3}, {1, 2, 3, 4, 5, 6});
    ASSERT_OK(npurt_run_bind_input(run.get(), 0, x.get(), 0, nullptr));
    ASSERT_OK(npurt_run_execute(run.get(), nullptr, nullptr));
    Value y = OutputOf(run);
    npurt_tensor view = npurt_tensor_init();
    ASSERT_OK(npurt_value_tensor(y.get(), &view, nullptr));
    EXPECT_EQ(view.data, state.memory.data());
    EXPECT_EQ(state.memory[5], 12);
    allocator.allocate = nullptr;
    EXPECT_EQ(npurt_run_set_output_allocator(run.get(), 0, &allocator, nullptr),
              NPURT_INVALID_ARGUMENT);
    EXPECT_EQ(state.destroyed, 1);
    EXPECT_EQ(state.freed, 0);
  }
  EXPECT_EQ(state.allocated, 1);
  EXPECT_EQ(state.freed, 1);
  EXPECT_EQ(state.destroyed, 2);
}

TEST(RunTest, TheObserverSeesValuesByTheirNames) {
  struct Seen {
    std::vector<std::pair<std::string, float>> values;
    npurt_status answer = NPURT_OK;
  } seen;
  Session session = Doubler().ToSession("fusion = 0");
  RunHandle run = NewRun(session);
  const char* names[] = {"sum", "nowhere"};
  npurt_observer observer = npurt_observer_init();
  observer.names = names;
  observer.name_count = 2;
  observer.user_data = &seen;
  observer.observe = [](void* user_data, const char* name, npurt_value* value) -> npurt_status {
    Seen& s = *static_cast<Seen*>(user_data);
    s.values.emplace_back(name, value == nullptr ? -1 : ReadFloats(value)[0]);
    return s.answer;
  };
  ASSERT_OK(npurt_run_set_observer(run.get(), &observer, nullptr));
  Value x = Floats({1, 3}, {-1, 2, 3});
  ASSERT_OK(npurt_run_bind_input(run.get(), 0, x.get(), 0, nullptr));
  ASSERT_OK(npurt_run_execute(run.get(), nullptr, nullptr));
  ASSERT_EQ(seen.values.size(), 2u);
  EXPECT_EQ(seen.values[0], (std::pair<std::string, float>("sum", -2)));
  EXPECT_EQ(seen.values[1], (std::pair<std::string, float>("nowhere", -1)));
  seen.answer = NPURT_ABORTED;
  EXPECT_EQ(npurt_run_execute(run.get(), nullptr, nullptr), NPURT_ABORTED);
  ASSERT_OK(npurt_run_set_observer(run.get(), nullptr, nullptr));
  ASSERT_OK(npurt_run_execute(run.get(), nullptr, nullptr));
}

TEST(RunTest, StopsForTokensAndDeadlines) {
  Session session = Doubler().ToSession();
  RunHandle run = NewRun(session);
  Value x = Floats({1, 3}, {1, 2, 3});
  ASSERT_OK(npurt_run_bind_input(run.get(), 0, x.get(), 0, nullptr));
  Cancel cancel = Make<Cancel>(npurt_cancel_create);
  npurt_run_params params = npurt_run_params_init();
  params.cancel = cancel.get();
  ASSERT_OK(npurt_run_execute(run.get(), &params, nullptr));
  npurt_cancel_trigger(cancel.get());
  EXPECT_EQ(npurt_cancel_triggered(cancel.get()), 1);
  EXPECT_EQ(npurt_run_execute(run.get(), &params, nullptr), NPURT_CANCELLED);
  params.cancel = nullptr;
  params.deadline_ns = npurt_now_ns() - 1;
  EXPECT_EQ(npurt_run_execute(run.get(), &params, nullptr), NPURT_DEADLINE_EXCEEDED);
  params.deadline_ns = npurt_now_ns() + int64_t{3600} * 1000000000;
  ASSERT_OK(npurt_run_execute(run.get(), &params, nullptr));
  params.flags = 4;
  EXPECT_EQ(npurt_run_execute(run.get(), &params, nullptr), NPURT_INVALID_ARGUMENT);
}

TEST(RunTest, OptionsOfOneRunAreOnlyThoseThatMayDiffer) {
  Session session = Doubler().ToSession();
  RunHandle run = NewRun(session);
  Value x = Floats({1, 3}, {1, 2, 3}), y = Floats({1, 3}, {0, 0, 0});
  ASSERT_OK(npurt_run_bind_input(run.get(), 0, x.get(), 0, nullptr));
  ASSERT_OK(npurt_run_bind_output(run.get(), 0, y.get(), nullptr));
  npurt_run_params params = npurt_run_params_init();
  params.options = "atomic_outputs = 1";
  ASSERT_OK(npurt_run_execute(run.get(), &params, nullptr));
  EXPECT_EQ(ReadFloats(y.get())[2], 6);
  params.options = "threads = 1";
  EXPECT_EQ(npurt_run_execute(run.get(), &params, nullptr), NPURT_INVALID_ARGUMENT);
}

TEST(RunTest, SeveralRunsOfOneSessionGoOnAtTheSameTime) {
  Session session = Doubler().ToSession();
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      RunHandle run = NewRun(session);
      for (int i = 0; i < 200; ++i) {
        const float v = static_cast<float>(t * 1000 + i);
        const int64_t n = 1 + i % 3;
        Value x = Floats({n, 3}, std::vector<float>(static_cast<size_t>(3 * n), v));
        if (npurt_run_bind_input(run.get(), 0, x.get(), 0, nullptr) != NPURT_OK ||
            npurt_run_execute(run.get(), nullptr, nullptr) != NPURT_OK ||
            ReadFloats(OutputOf(run).get()) !=
                std::vector<float>(static_cast<size_t>(3 * n), 2 * v))
          ++wrong;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

struct Ended {
  std::atomic<int> done{0}, destroyed{0};
  std::atomic<npurt_status> status{-1};
  npurt_completion completion() {
    npurt_completion c = npurt_completion_init();
    c.user_data = this;
    c.done = [](void* user_data, npurt_status status, const npurt_error*) {
      static_cast<Ended*>(user_data)->status = status;
      ++static_cast<Ended*>(user_data)->done;
    };
    c.destroy = [](void* user_data) { ++static_cast<Ended*>(user_data)->destroyed; };
    return c;
  }
};

TEST(FutureTest, ASubmittedRunEndsOnceAndTellsIt) {
  Session session = Doubler().ToSession();
  RunHandle run = NewRun(session);
  Value x = Floats({1, 3}, {1, 2, 3});
  ASSERT_OK(npurt_run_bind_input(run.get(), 0, x.get(), 0, nullptr));
  for (int i = 0; i < 20; ++i) {
    Ended ended;
    const npurt_completion completion = ended.completion();
    Future future = Make<Future>([&](npurt_future** out, npurt_error** error) {
      return npurt_run_submit(run.get(), nullptr, &completion, out, error);
    });
    int32_t ready = 0;
    ASSERT_OK(npurt_future_wait(future.get(), 0, &ready, nullptr));
    EXPECT_EQ(ready, 1);
    EXPECT_OK(npurt_future_result(future.get(), nullptr));
    EXPECT_EQ(ReadFloats(OutputOf(run).get())[1], 4);
    while (ended.destroyed == 0) std::this_thread::yield();
    EXPECT_EQ(ended.done, 1);
    EXPECT_EQ(ended.status, NPURT_OK);
  }
}

TEST(FutureTest, AFailedRunIsToldByTheFuture) {
  Session session = Doubler().ToSession();
  RunHandle run = NewRun(session);
  Ended ended;
  const npurt_completion completion = ended.completion();
  Future future = Make<Future>([&](npurt_future** out, npurt_error** error) {
    return npurt_run_submit(run.get(), nullptr, &completion, out, error);
  });
  int32_t ready = 0;
  ASSERT_OK(npurt_future_wait(future.get(), 0, &ready, nullptr));
  Failure failure;
  EXPECT_EQ(npurt_future_result(future.get(), failure), NPURT_FAILED_PRECONDITION);
  EXPECT_STREQ(npurt_error_tensor(failure.get()), "x");
  while (ended.destroyed == 0) std::this_thread::yield();
  EXPECT_EQ(ended.status, NPURT_FAILED_PRECONDITION);
}

TEST(FutureTest, EverythingMayBeReleasedWhileTheRunGoesOn) {
  Ended ended;
  {
    Session session = Doubler().ToSession();
    RunHandle run = NewRun(session);
    Value x = Floats({1, 3}, {1, 2, 3});
    ASSERT_OK(npurt_run_bind_input(run.get(), 0, x.get(), 0, nullptr));
    const npurt_completion completion = ended.completion();
    Future future = Make<Future>([&](npurt_future** out, npurt_error** error) {
      return npurt_run_submit(run.get(), nullptr, &completion, out, error);
    });
  }
  while (ended.destroyed == 0) std::this_thread::yield();
  EXPECT_EQ(ended.done, 1);
  EXPECT_EQ(ended.status, NPURT_OK);
}

TEST(FutureTest, ARefusedSubmitDestroysTheCompletionOnceWithoutCallingIt) {
  Ended ended;
  const npurt_completion completion = ended.completion();
  npurt_future* future = nullptr;
  EXPECT_EQ(npurt_run_submit(nullptr, nullptr, &completion, &future, nullptr),
            NPURT_INVALID_ARGUMENT);
  EXPECT_EQ(ended.done, 0);
  EXPECT_EQ(ended.destroyed, 1);
}

TEST(SessionTest, CloseRefusesNewRunsAndReleaseStaysSafe) {
  Session session = Doubler().ToSession();
  RunHandle run = NewRun(session);
  Value x = Floats({1, 3}, {1, 2, 3});
  ASSERT_OK(npurt_run_bind_input(run.get(), 0, x.get(), 0, nullptr));
  ASSERT_OK(npurt_run_execute(run.get(), nullptr, nullptr));
  ASSERT_OK(npurt_session_close(session.get(), 0, nullptr));
  EXPECT_EQ(npurt_run_execute(run.get(), nullptr, nullptr), NPURT_FAILED_PRECONDITION);
  session.reset();
}

TEST(SessionTest, WarmsUpTrimsAndBorrowsAThread) {
  Session session = Doubler().ToSession();
  const int64_t dims[] = {4, 3};
  const npurt_shape shape = {dims, 2};
  Failure failure;
  EXPECT_EQ(npurt_session_warm_up(session.get(), 0, nullptr, 0, failure), NPURT_INVALID_ARGUMENT);
  ASSERT_EQ(npurt_session_warm_up(session.get(), 0, &shape, 1, failure), NPURT_OK)
      << failure.text();
  uint64_t bytes = 0;
  ASSERT_OK(npurt_session_trim(session.get(), &bytes, nullptr));
  EXPECT_GT(bytes, 0u);
  EXPECT_EQ(npurt_session_lend_thread(session.get(), 0, nullptr, nullptr), NPURT_INVALID_ARGUMENT);
  ASSERT_OK(npurt_session_lend_thread(session.get(), npurt_now_ns() + 2000000, nullptr, nullptr));
  Cancel stop = Make<Cancel>(npurt_cancel_create);
  npurt_cancel_trigger(stop.get());
  ASSERT_OK(npurt_session_lend_thread(session.get(), 0, stop.get(), nullptr));
}

}  // namespace
}  // namespace npurt_test
