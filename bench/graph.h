// What the measuring programs share: graphs of one node built through npurt.h.
//
// Thread safety: none needed.
#ifndef NPURT_BENCH_GRAPH_H_
#define NPURT_BENCH_GRAPH_H_

#include <npurt/npurt.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace npurt_bench {

// Ends the program with the library's text.
inline void Check(npurt_status status, npurt_error* error, const char* what) {
  if (status == NPURT_OK) return;
  std::fprintf(stderr, "%s: %s\n", what, npurt_error_message(error));
  std::exit(2);
}
#define NPURT_BENCH_CHECK(call)                      \
  do {                                               \
    npurt_error* npurt_bench_error = nullptr;        \
    npurt_error** const error = &npurt_bench_error;  \
    const npurt_status npurt_bench_status = (call);  \
    npurt_bench::Check(npurt_bench_status, npurt_bench_error, #call); \
  } while (false)

struct Operand {
  npurt_dtype dtype = NPURT_FLOAT32;
  std::vector<int64_t> dims;
  // Integers of a constant; else an input (floats: random numbers, which is what sorts want).
  std::vector<int64_t> integers;
  bool absent = false;
};

struct Attribute {
  std::string name;
  npurt_attribute_kind kind;
  std::vector<int64_t> integers;
  float real = 0;
  std::string text;
};

inline Attribute Int(const char* name, int64_t value) {
  return {name, NPURT_ATTRIBUTE_INT, {value}, 0, {}};
}
inline Attribute Ints(const char* name, std::vector<int64_t> values) {
  return {name, NPURT_ATTRIBUTE_INTS, std::move(values), 0, {}};
}
inline Attribute Text(const char* name, const char* value) {
  return {name, NPURT_ATTRIBUTE_STRING, {}, 0, value};
}

inline npurt_value* Random(const Operand& operand) {
  npurt_value* value = nullptr;
  NPURT_BENCH_CHECK(npurt_value_create(operand.dtype, operand.dims.data(), operand.dims.size(),
                                       nullptr, &value, error));
  npurt_tensor view = npurt_tensor_init();
  NPURT_BENCH_CHECK(npurt_value_tensor(value, &view, error));
  std::uint32_t state = 1;
  const auto next = [&state] { return state = state * 1664525u + 1013904223u; };
  if (operand.dtype == NPURT_FLOAT32) {
    float* data = static_cast<float*>(view.data);
    for (size_t i = 0; i < view.count; ++i)
      data[i] = static_cast<float>(next() >> 8) * (1.0f / 16777216.0f) - 0.5f;
  } else if (operand.dtype == NPURT_UINT8 || operand.dtype == NPURT_INT8) {
    unsigned char* data = static_cast<unsigned char*>(view.data);
    for (size_t i = 0; i < view.count; ++i) data[i] = static_cast<unsigned char>(next() >> 24);
  }
  return value;
}

// A graph of one node whose non-constant operands are its inputs, in order.
inline npurt_model* OneNode(const char* type, const char* domain,
                            const std::vector<Operand>& operands,
                            const std::vector<Attribute>& attributes, size_t outputs = 1) {
  npurt_graph* graph = nullptr;
  NPURT_BENCH_CHECK(npurt_graph_create(type, nullptr, &graph, error));
  std::vector<npurt_value_id> ids;
  for (size_t i = 0; i < operands.size(); ++i) {
    const Operand& operand = operands[i];
    npurt_value_id id = -1;
    const std::string name = "x" + std::to_string(i);
    if (!operand.integers.empty()) {
      npurt_value* value = nullptr;
      const int64_t count = static_cast<int64_t>(operand.integers.size());
      NPURT_BENCH_CHECK(npurt_value_copy(NPURT_INT64, &count, 1, operand.integers.data(),
                                         operand.integers.size() * 8, &value, error));
      NPURT_BENCH_CHECK(npurt_graph_add_constant(graph, name.c_str(), value, &id, error));
      npurt_value_release(value);
    } else if (!operand.absent) {
      npurt_value_info info = npurt_value_info_init();
      info.name = name.c_str();
      info.dtype = operand.dtype;
      info.rank = static_cast<int32_t>(operand.dims.size());
      info.dims = operand.dims.data();
      NPURT_BENCH_CHECK(npurt_graph_add_input(graph, &info, &id, error));
    }
    ids.push_back(id);
  }
  std::vector<npurt_attribute> given;
  std::vector<npurt_string> texts(attributes.size());
  for (size_t i = 0; i < attributes.size(); ++i) {
    const Attribute& a = attributes[i];
    npurt_attribute out = {a.name.c_str(), a.kind, 0, a.integers.data(), a.integers.size()};
    if (a.kind == NPURT_ATTRIBUTE_STRING) {
      texts[i] = {a.text.data(), a.text.size()};
      out.data = &texts[i];
      out.count = 1;
    }
    given.push_back(out);
  }
  npurt_node node = npurt_node_init();
  node.type = type;
  node.domain = domain;
  node.inputs = ids.data();
  node.input_count = ids.size();
  node.output_count = outputs;
  node.attributes = given.data();
  node.attribute_count = given.size();
  std::vector<npurt_value_id> made(outputs);
  NPURT_BENCH_CHECK(npurt_graph_add_node(graph, &node, made.data(), nullptr, error));
  for (npurt_value_id id : made)
    NPURT_BENCH_CHECK(npurt_graph_add_output(graph, id, nullptr, error));
  npurt_model* model = nullptr;
  NPURT_BENCH_CHECK(npurt_model_create(graph, nullptr, &model, error));
  npurt_graph_release(graph);
  return model;
}

inline npurt_session* OpenSession(npurt_model* model, const std::string& settings) {
  npurt_options* options = nullptr;
  npurt_session* session = nullptr;
  NPURT_BENCH_CHECK(npurt_options_create(nullptr, &options, error));
  NPURT_BENCH_CHECK(npurt_options_set_text(options, settings.data(), settings.size(), error));
  NPURT_BENCH_CHECK(npurt_session_create(options, nullptr, &session, error));
  if (model != nullptr)
    NPURT_BENCH_CHECK(npurt_session_add_model(session, model, nullptr, nullptr, error));
  npurt_options_release(options);
  return session;
}

}  // namespace npurt_bench

#endif  // NPURT_BENCH_GRAPH_H_
