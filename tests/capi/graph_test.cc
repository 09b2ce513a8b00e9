// The builder: names, types, branches, order.
#include "c_api_test.h"

namespace npurt_test {
namespace {

TEST(GraphTest, NamesAreTakenOnceAndMadeUpWhereMissing) {
  Builder graph;
  const npurt_value_id x = graph.Input("x", {2});
  npurt_value_info info = npurt_value_info_init();
  info.name = "x";
  info.dtype = NPURT_FLOAT32;
  info.rank = -1;
  npurt_value_id id = -1;
  EXPECT_EQ(npurt_graph_add_input(graph.get(), &info, &id, nullptr), NPURT_ALREADY_EXISTS);
  const npurt_value_id a = graph.Node("Relu", {x}), b = graph.Node("Relu", {a});
  EXPECT_NE(a, b);
  npurt_value_info out = npurt_value_info_init();
  ASSERT_OK(npurt_graph_value_info(graph.get(), b, &out, nullptr));
  EXPECT_NE(out.name[0], '\0');
  EXPECT_EQ(out.dims[0], 2);
  EXPECT_EQ(npurt_graph_value_info(graph.get(), 99, &out, nullptr), NPURT_OUT_OF_RANGE);
  graph.Output(a, "first");
  EXPECT_EQ(npurt_graph_add_output(graph.get(), b, "first", nullptr), NPURT_ALREADY_EXISTS);
}

TEST(GraphTest, ARefusedNodeLeavesTheGraphUsable) {
  Builder graph;
  const npurt_value_id x = graph.Input("x", {2, 3}), y = graph.Input("y", {4, 5});
  npurt_value_id out = -1;
  Failure failure;
  EXPECT_EQ(graph.TryNode("Add", {x, y}, &out, failure, "bad"), NPURT_INVALID_ARGUMENT);
  EXPECT_EQ(graph.TryNode("Add", {x, 1234}, &out, failure, "bad"), NPURT_OUT_OF_RANGE);
  EXPECT_EQ(graph.TryNode("NoSuch", {x}, &out, failure, "bad"), NPURT_UNIMPLEMENTED);
  const int64_t axis = 1;
  EXPECT_NE(graph.TryNode("Relu", {x}, &out, failure, "bad",
                          {{"axis", NPURT_ATTRIBUTE_INT, 0, &axis, 1}}),
            NPURT_OK);
  graph.Output(graph.Node("Add", {x, x}, "bad"));
  EXPECT_NE(graph.ToModel(), nullptr);
}

TEST(GraphTest, ANodeMayKeepItsTypes) {
  Builder graph;
  const int64_t yes = 1;
  Failure failure;
  npurt_value_id kept = -1;
  ASSERT_EQ(graph.TryNode("Exp", {graph.Input("x", {2})}, &kept, failure, "kept",
                          {{"_keep_dtype", NPURT_ATTRIBUTE_INT, 0, &yes, 1}}),
            NPURT_OK);
  graph.Output(graph.Node("Relu", {kept}));
  const Session session = graph.ToSession("precision_mode_v2 = fp16");
  const auto report = Make<Text>([&](npurt_text** out, npurt_error** error) {
    return npurt_session_report(session.get(), 0, NPURT_REPORT_PLAN, out, error);
  });
  const std::string json = npurt_text_data(report.get());
  for (const char* part : {"\"precision\":", "\"rule\":\"keep_dtype: its own type first\"",
                           "\"rule\":\"forced to float16\""})
    EXPECT_NE(json.find(part), std::string::npos) << part << " in " << json;
}

TEST(GraphTest, AModelNeedsAnOutput) {
  Builder graph;
  graph.Input("x", {2});
  npurt_model* model = nullptr;
  EXPECT_EQ(npurt_model_create(graph.get(), nullptr, &model, nullptr), NPURT_FAILED_PRECONDITION);
}

TEST(GraphTest, ControlEdgesMustNotCloseACircle) {
  Builder graph;
  const npurt_value_id x = graph.Input("x", {2});
  npurt_node node = npurt_node_init();
  node.type = "Relu";
  node.inputs = &x;
  node.input_count = 1;
  node.output_count = 1;
  npurt_node_id first = -1, second = -1;
  npurt_value_id a = -1;
  ASSERT_OK(npurt_graph_add_node(graph.get(), &node, &a, &first, nullptr));
  ASSERT_OK(npurt_graph_add_node(graph.get(), &node, nullptr, &second, nullptr));
  EXPECT_OK(npurt_graph_add_control_edge(graph.get(), first, second, nullptr));
  EXPECT_EQ(npurt_graph_add_control_edge(graph.get(), second, first, nullptr),
            NPURT_INVALID_ARGUMENT);
  EXPECT_EQ(npurt_graph_add_control_edge(graph.get(), first, 9, nullptr), NPURT_OUT_OF_RANGE);
  graph.Output(a);
  EXPECT_NE(graph.ToModel(), nullptr);
}

TEST(GraphTest, BranchesCaptureValuesOfTheOuterGraph) {
  Builder graph;
  const npurt_value_id condition = graph.Input("condition", {}, {}, NPURT_BOOL);
  graph.Input("a", {2});
  graph.Input("b", {2});
  const auto branch = [&](const char* name, std::vector<const char*> captures, const char* type) {
    Builder inner(Make<Graph>([&](npurt_graph** out, npurt_error** error) {
      return npurt_graph_create_inner(graph.get(), name, out, error);
    }));
    std::vector<npurt_value_id> ids;
    for (const char* capture : captures) {
      npurt_value_id id = -1;
      EXPECT_OK(npurt_graph_add_capture(inner.get(), capture, &id, nullptr));
      ids.push_back(id);
    }
    npurt_value_id id = -1;
    EXPECT_EQ(npurt_graph_add_capture(inner.get(), "nowhere", &id, nullptr), NPURT_NOT_FOUND);
    inner.Output(inner.Node(type, ids, "result"));
    return inner;
  };
  Builder yes = branch("yes", {"b", "a"}, "Sub"), no = branch("no", {"a"}, "Neg");
  npurt_graph *then_graph = yes.get(), *else_graph = no.get();
  npurt_value_id y = -1;
  Failure failure;
  const npurt_status added =
      graph.TryNode("If", {condition}, &y, failure, "y",
                    {{"then_branch", NPURT_ATTRIBUTE_GRAPH, 0, &then_graph, 1},
                     {"else_branch", NPURT_ATTRIBUTE_GRAPH, 0, &else_graph, 1}});
  if (added == NPURT_UNIMPLEMENTED) GTEST_SKIP() << failure.text();
  ASSERT_OK(added);
  graph.Output(y);
  Session session = graph.ToSession();
  for (const bool choice : {true, false}) {
    const unsigned char flag = choice;
    Value c = Make<Value>([&](npurt_value** out, npurt_error** error) {
      return npurt_value_copy(NPURT_BOOL, nullptr, 0, &flag, 1, out, error);
    });
    Value a = Floats({2}, {1, 2}), b = Floats({2}, {10, 20});
    npurt_value* inputs[] = {c.get(), a.get(), b.get()};
    npurt_value* output = nullptr;
    ASSERT_EQ(npurt_session_run(session.get(), 0, nullptr, inputs, 3, nullptr, &output, 1, nullptr,
                                failure),
              NPURT_OK)
        << failure.text();
    Value result(output);
    EXPECT_EQ(ReadFloats(result.get()),
              choice ? (std::vector<float>{9, 18}) : (std::vector<float>{-1, -2}));
  }
}

}  // namespace
}  // namespace npurt_test
