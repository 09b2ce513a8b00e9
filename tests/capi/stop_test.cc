// Runs that are told to stop inside one long operator. Each of these would compute for minutes, so a
// loop that does not ask makes the test time out. How fast they stop is measured by bench/cancel_bench.
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "c_api_test.h"

namespace npurt_test {
namespace {

struct Long {
  const char* name;
  const char* type;
  std::vector<std::vector<int64_t>> inputs;
  std::vector<std::pair<const char*, std::string>> attributes;  // of text
  const char* settings;
  std::vector<int64_t> constant = {};  // the last input
};

std::ostream& operator<<(std::ostream& out, const Long& row) { return out << row.name; }

class StopTest : public ::testing::TestWithParam<Long> {};

Session Open(const Long& row) {
  Builder graph;
  std::vector<npurt_value_id> ids;
  for (size_t i = 0; i < row.inputs.size(); ++i)
    ids.push_back(graph.Input(("x" + std::to_string(i)).c_str(), row.inputs[i]));
  if (!row.constant.empty()) {
    const int64_t count = static_cast<int64_t>(row.constant.size());
    ids.push_back(graph.Constant("c", Make<Value>([&](npurt_value** out, npurt_error** error) {
      return npurt_value_copy(NPURT_INT64, &count, 1, row.constant.data(), row.constant.size() * 8,
                              out, error);
    })));
  }
  std::vector<npurt_string> texts;
  for (const auto& [name, text] : row.attributes) texts.push_back({text.data(), text.size()});
  std::vector<npurt_attribute> attributes;
  for (size_t i = 0; i < texts.size(); ++i)
    attributes.push_back({row.attributes[i].first, NPURT_ATTRIBUTE_STRING, 0, &texts[i], 1});
  graph.Output(graph.Node(row.type, ids, "y", attributes));
  return graph.ToSession(row.settings);
}

void Bind(const RunHandle& run, const Long& row) {
  for (size_t i = 0; i < row.inputs.size(); ++i) {
    const auto& dims = row.inputs[i];
    Value value = Make<Value>([&](npurt_value** out, npurt_error** error) {
      return npurt_value_create(NPURT_FLOAT32, dims.data(), dims.size(), nullptr, out, error);
    });
    npurt_tensor view = npurt_tensor_init();
    ASSERT_OK(npurt_value_tensor(value.get(), &view, nullptr));
    std::uint32_t state = 7;
    for (size_t k = 0; k < view.count; ++k)
      static_cast<float*>(view.data)[k] =
          static_cast<float>((state = state * 1664525u + 1013904223u) >> 8) * 1e-7f;
    ASSERT_OK(npurt_run_bind_input(run.get(), i, value.get(), 0, nullptr));
  }
}

TEST_P(StopTest, ComesBackFromInsideAnOperatorAndLeavesTheSessionUsable) {
  Session session = Open(GetParam());
  RunHandle run = NewRun(session);
  ASSERT_NO_FATAL_FAILURE(Bind(run, GetParam()));
  npurt_run_params params = npurt_run_params_init();
  for (int round = 0; round < 2; ++round) {
    Cancel cancel = Make<Cancel>(npurt_cancel_create);
    params.cancel = cancel.get();
    params.deadline_ns = 0;
    std::thread other([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      npurt_cancel_trigger(cancel.get());
    });
    EXPECT_EQ(npurt_run_execute(run.get(), &params, nullptr), NPURT_CANCELLED);
    other.join();
    params.cancel = nullptr;
    params.deadline_ns = npurt_now_ns() + 5'000'000;
    EXPECT_EQ(npurt_run_execute(run.get(), &params, nullptr), NPURT_DEADLINE_EXCEEDED);
  }
  std::thread closer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_OK(npurt_session_close(session.get(), 0, nullptr));
  });
  // On a busy machine the session may be closed before the run begins.
  const npurt_status status = npurt_run_execute(run.get(), nullptr, nullptr);
  EXPECT_TRUE(status == NPURT_CANCELLED || status == NPURT_FAILED_PRECONDITION) << status;
  closer.join();
}

INSTANTIATE_TEST_SUITE_P(
    Operators, StopTest,
    ::testing::Values(
        Long{"MatMulOnOneThread", "MatMul", {{4000, 4000}, {4000, 4000}}, {}, "threads = 1\n"},
        Long{"MatMulOnTwoThreads", "MatMul", {{4000, 4000}, {4000, 4000}}, {}, "threads = 2\n"},
        Long{"MatMulInPlainLoops", "MatMul", {{2000, 2000}, {2000, 2000}}, {}, "device = reference\n"},
        Long{"Conv", "Conv", {{1, 256, 200, 200}, {512, 256, 5, 5}}, {}, ""},
        Long{"Einsum", "Einsum", {{2000, 2000}, {2000, 2000}}, {{"equation", "ij,jk->ik"}}, ""},
        Long{"Determinant", "Det", {{3000, 3000}}, {}, ""},
        Long{"Suppression", "NonMaxSuppression", {{1, 4000, 4}, {1, 4000, 4000}}, {}, "", {4000}},
        Long{"Sort", "Unique", {{4000000}}, {}, ""},
        Long{"Attention",
             "Attention",
             {{1, 8, 4000, 64}, {1, 8, 4000, 64}, {1, 8, 4000, 64}},
             {},
             "device = reference\n"}),
    [](const auto& info) { return info.param.name; });

TEST(StopElementsTest, ACancelledLoopOfElementsIsACancelledRun) {
  // Reductions, rows and sorts read elements in loops of their own: what stops them is the access.
  for (const char* type : {"ReduceSum", "Sin", "CumSum", "Softmax"}) {
    Builder graph;
    std::vector<npurt_value_id> ids = {graph.Input("x", {8000000})};
    const int64_t zero = 0, one = 1;
    if (!strcmp(type, "CumSum"))
      ids.push_back(graph.Constant("axis", Make<Value>([&](npurt_value** out, npurt_error** error) {
        return npurt_value_copy(NPURT_INT64, &one, 1, &zero, 8, out, error);
      })));
    graph.Output(graph.Node(type, ids, "y"));
    Session session = graph.ToSession("device = reference\n");
    RunHandle run = NewRun(session);
    Long row{"", type, {{8000000}}, {}, ""};
    ASSERT_NO_FATAL_FAILURE(Bind(run, row));
    npurt_run_params params = npurt_run_params_init();
    params.deadline_ns = npurt_now_ns() + 2'000'000;
    Failure failure;
    EXPECT_EQ(npurt_run_execute(run.get(), &params, failure), NPURT_DEADLINE_EXCEEDED) << type;
    EXPECT_OK(npurt_run_execute(run.get(), nullptr, nullptr)) << type;
  }
}

}  // namespace
}  // namespace npurt_test
