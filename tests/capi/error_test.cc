// Errors as objects: what they name, and what led to them.
#include "c_api_test.h"
#include "support/onnx_builder.h"

namespace npurt_test {
namespace {

namespace onnx = npurt::tests::onnx;

TEST(ErrorTest, TheCauseIsWhatTheOperatorSaid) {
  Builder graph;
  const npurt_value_id x = graph.Input("x", {2, 3}), y = graph.Input("y", {4, 5});
  npurt_value_id out = -1;
  Failure failure;
  ASSERT_EQ(graph.TryNode("MatMul", {x, y}, &out, failure, "product"), NPURT_INVALID_ARGUMENT);
  EXPECT_STREQ(npurt_error_node(failure.get()), "product");
  const npurt_error* cause = npurt_error_cause(failure.get());
  ASSERT_NE(cause, nullptr);
  EXPECT_EQ(npurt_error_code(cause), NPURT_INVALID_ARGUMENT);
  EXPECT_STREQ(npurt_error_message(cause), "A [2, 3] has 3 columns, B [4, 5] has 4 rows");
  EXPECT_STREQ(npurt_error_node(cause), "");
  EXPECT_EQ(npurt_error_cause(cause), nullptr);
}

TEST(ErrorTest, AnErrorInsideASubgraphLeadsToOneOfTheNodeAround) {
  const std::string branch =
      onnx::Graph("branch")
          .Node("Gather", {"x", "i"}, {"taken"}, {"inner", "", {}})
          .Output("taken", onnx::kFloat)
          .bytes();
  const std::string file = onnx::Model(onnx::Graph()
                                           .Input("c", onnx::kBool, {})
                                           .Input("x", onnx::kFloat, {3})
                                           .Input("i", onnx::kInt64, {1})
                                           .Node("If", {"c"}, {"y"},
                                                 {"outer", "",
                                                  {onnx::GraphAttribute("then_branch", branch),
                                                   onnx::GraphAttribute("else_branch", branch)}})
                                           .Output("y", onnx::kFloat));
  Model model = Make<Model>([&](npurt_model** out, npurt_error** error) {
    return npurt_model_load_memory(file.data(), file.size(), nullptr, nullptr, out, error);
  });
  Session session = Make<Session>([](npurt_session** out, npurt_error** error) {
    return npurt_session_create(nullptr, nullptr, out, error);
  });
  ASSERT_OK(npurt_session_add_model(session.get(), model.get(), nullptr, nullptr, nullptr));
  RunHandle run = NewRun(session);
  const int64_t nine = 9, one = 1;
  const bool yes = true;
  Value index = Make<Value>([&](npurt_value** out, npurt_error** error) {
    return npurt_value_copy(NPURT_INT64, &one, 1, &nine, 8, out, error);
  });
  Value condition = Make<Value>([&](npurt_value** out, npurt_error** error) {
    return npurt_value_copy(NPURT_BOOL, nullptr, 0, &yes, 1, out, error);
  });
  ASSERT_OK(npurt_run_bind_input(run.get(), 0, condition.get(), 0, nullptr));
  ASSERT_OK(npurt_run_bind_input(run.get(), 1, Floats({3}, {1, 2, 3}).get(), 0, nullptr));
  ASSERT_OK(npurt_run_bind_input(run.get(), 2, index.get(), 0, nullptr));
  Failure failure;
  ASSERT_EQ(npurt_run_execute(run.get(), nullptr, failure), NPURT_OUT_OF_RANGE);
  EXPECT_STREQ(npurt_error_node(failure.get()), "outer") << failure.text();
  const npurt_error* inner = npurt_error_cause(failure.get());
  ASSERT_NE(inner, nullptr);
  EXPECT_STREQ(npurt_error_node(inner), "inner");
  ASSERT_NE(npurt_error_cause(inner), nullptr);
  EXPECT_STREQ(npurt_error_node(npurt_error_cause(inner)), "");
}

TEST(ErrorTest, ErrorsThatNameNoNodeHaveNoCause) {
  npurt_value* value = nullptr;
  Failure failure;
  EXPECT_NE(npurt_value_create(NPURT_FLOAT32, nullptr, 1, nullptr, &value, failure), NPURT_OK);
  EXPECT_EQ(npurt_error_cause(failure.get()), nullptr);
  EXPECT_EQ(npurt_error_cause(nullptr), nullptr);
}

}  // namespace
}  // namespace npurt_test
