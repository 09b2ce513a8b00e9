// What tests of the C interface share: owners, and small graphs to run.
#ifndef NPURT_TESTS_CAPI_C_API_TEST_H_
#define NPURT_TESTS_CAPI_C_API_TEST_H_

#include <gtest/gtest.h>
#include <npurt/npurt.h>

#include <memory>
#include <string>
#include <vector>

namespace npurt_test {

#define NPURT_TEST_OWNER(name, type)                                \
  struct name##Deleter {                                            \
    void operator()(type* handle) const { type##_release(handle); } \
  };                                                                \
  using name = std::unique_ptr<type, name##Deleter>
NPURT_TEST_OWNER(Error, npurt_error);
NPURT_TEST_OWNER(Text, npurt_text);
NPURT_TEST_OWNER(Host, npurt_host);
NPURT_TEST_OWNER(Options, npurt_options);
NPURT_TEST_OWNER(Value, npurt_value);
NPURT_TEST_OWNER(Graph, npurt_graph);
NPURT_TEST_OWNER(Model, npurt_model);
NPURT_TEST_OWNER(Session, npurt_session);
NPURT_TEST_OWNER(RunHandle, npurt_run);
NPURT_TEST_OWNER(Future, npurt_future);
NPURT_TEST_OWNER(Cancel, npurt_cancel);
#undef NPURT_TEST_OWNER

// Holds what a call wrote: OutOf(value) is its out-parameter, `error()` its last.
class Failure {
 public:
  ~Failure() { npurt_error_release(error_); }
  operator npurt_error**() {  // NOLINT: stands for the parameter
    npurt_error_release(error_);
    error_ = nullptr;
    return &error_;
  }
  std::string text() const { return npurt_error_message(error_); }
  const npurt_error* get() const { return error_; }

 private:
  npurt_error* error_ = nullptr;
};

#define EXPECT_OK(call) EXPECT_EQ((call), NPURT_OK)
#define ASSERT_OK(call) ASSERT_EQ((call), NPURT_OK)

template <typename Owner, typename Call>
Owner Make(Call&& call) {
  typename Owner::pointer handle = nullptr;
  Failure failure;
  EXPECT_EQ(call(&handle, failure), NPURT_OK) << failure.text();
  return Owner(handle);
}

inline Value Floats(const std::vector<int64_t>& dims, const std::vector<float>& data) {
  return Make<Value>([&](npurt_value** out, npurt_error** error) {
    return npurt_value_copy(NPURT_FLOAT32, dims.data(), dims.size(), data.data(),
                            data.size() * sizeof(float), out, error);
  });
}

inline Value Strings(const std::vector<int64_t>& dims, const std::vector<std::string>& data) {
  std::vector<npurt_string> views;
  for (const std::string& item : data) views.push_back({item.data(), item.size()});
  return Make<Value>([&](npurt_value** out, npurt_error** error) {
    return npurt_value_strings(dims.data(), dims.size(), views.data(), views.size(), out, error);
  });
}

inline std::vector<float> ReadFloats(npurt_value* value) {
  std::vector<float> data(npurt_value_count(value));
  Failure failure;
  EXPECT_EQ(npurt_value_read(value, data.data(), data.size() * sizeof(float), failure), NPURT_OK)
      << failure.text();
  return data;
}

inline std::vector<std::string> ReadStrings(npurt_value* value) {
  std::vector<std::string> data;
  for (size_t i = 0; i < npurt_value_count(value); ++i) {
    npurt_string view = {nullptr, 0};
    EXPECT_EQ(npurt_value_string(value, i, &view, nullptr), NPURT_OK);
    data.emplace_back(view.data, view.size);
  }
  return data;
}

// A builder with one-line calls; a failed one fails the test.
class Builder {
 public:
  explicit Builder(npurt_host* host = nullptr, const char* name = "test")
      : graph_(Make<Graph>([&](npurt_graph** out, npurt_error** error) {
          return npurt_graph_create(name, host, out, error);
        })) {}
  explicit Builder(Graph graph) : graph_(std::move(graph)) {}

  npurt_value_id Input(const char* name, const std::vector<int64_t>& dims,
                       const std::vector<const char*>& dim_names = {},
                       npurt_dtype dtype = NPURT_FLOAT32) {
    npurt_value_info info = npurt_value_info_init();
    info.name = name;
    info.dtype = dtype;
    info.rank = static_cast<int32_t>(dims.size());
    info.dims = dims.data();
    info.dim_names = dim_names.empty() ? nullptr : dim_names.data();
    npurt_value_id id = -1;
    Failure failure;
    EXPECT_EQ(npurt_graph_add_input(get(), &info, &id, failure), NPURT_OK) << failure.text();
    return id;
  }
  npurt_value_id Constant(const char* name, const Value& value) {
    npurt_value_id id = -1;
    Failure failure;
    EXPECT_EQ(npurt_graph_add_constant(get(), name, value.get(), &id, failure), NPURT_OK)
        << failure.text();
    return id;
  }
  npurt_status TryNode(const char* type, const std::vector<npurt_value_id>& inputs,
                       npurt_value_id* out, npurt_error** error, const char* output = nullptr,
                       const std::vector<npurt_attribute>& attributes = {},
                       const char* domain = nullptr) {
    npurt_node node = npurt_node_init();
    node.type = type;
    node.domain = domain;
    node.name = output;
    node.inputs = inputs.data();
    node.input_count = inputs.size();
    node.output_names = output == nullptr ? nullptr : &output;
    node.output_count = 1;
    node.attributes = attributes.data();
    node.attribute_count = attributes.size();
    return npurt_graph_add_node(get(), &node, out, nullptr, error);
  }
  npurt_value_id Node(const char* type, const std::vector<npurt_value_id>& inputs,
                      const char* output = nullptr,
                      const std::vector<npurt_attribute>& attributes = {},
                      const char* domain = nullptr) {
    npurt_value_id id = -1;
    Failure failure;
    EXPECT_EQ(TryNode(type, inputs, &id, failure, output, attributes, domain), NPURT_OK)
        << failure.text();
    return id;
  }
  void Output(npurt_value_id id, const char* name = nullptr) {
    Failure failure;
    EXPECT_EQ(npurt_graph_add_output(get(), id, name, failure), NPURT_OK) << failure.text();
  }
  Model ToModel(const npurt_load_info* info = nullptr) {
    return Make<Model>([&](npurt_model** out, npurt_error** error) {
      return npurt_model_create(get(), info, out, error);
    });
  }
  Session ToSession(const char* options_text = "", npurt_host* host = nullptr) {
    Options options = Make<Options>([&](npurt_options** out, npurt_error** error) {
      return npurt_options_create(nullptr, out, error);
    });
    Failure failure;
    EXPECT_EQ(npurt_options_set_text(options.get(), options_text, std::string(options_text).size(),
                                     failure),
              NPURT_OK)
        << failure.text();
    Session session = Make<Session>([&](npurt_session** out, npurt_error** error) {
      return npurt_session_create(options.get(), host, out, error);
    });
    npurt_load_info info = npurt_load_info_init();
    info.host = host;
    Model model = ToModel(&info);
    EXPECT_EQ(npurt_session_add_model(session.get(), model.get(), nullptr, nullptr, failure),
              NPURT_OK)
        << failure.text();
    return session;
  }
  npurt_graph* get() const { return graph_.get(); }

 private:
  Graph graph_;
};

// y = relu(x + x), x: float32[n, 3].
inline Builder Doubler(npurt_host* host = nullptr) {
  Builder graph(host);
  const npurt_value_id x = graph.Input("x", {-1, 3}, {"n", ""});
  const npurt_value_id sum = graph.Node("Add", {x, x}, "sum");
  graph.Output(graph.Node("Relu", {sum}, "y"));
  return graph;
}

inline RunHandle NewRun(const Session& session, uint32_t graph = 0) {
  return Make<RunHandle>([&](npurt_run** out, npurt_error** error) {
    return npurt_run_create(session.get(), graph, out, error);
  });
}

inline Value OutputOf(const RunHandle& run, size_t index = 0) {
  return Make<Value>([&](npurt_value** out, npurt_error** error) {
    return npurt_run_output(run.get(), index, out, error);
  });
}

}  // namespace npurt_test

#endif  // NPURT_TESTS_CAPI_C_API_TEST_H_
