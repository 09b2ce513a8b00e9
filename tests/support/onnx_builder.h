// OnnxBuilder: writes small ONNX files in memory, for tests and fuzzers.
//
//   std::string file = Model(Graph()
//       .Input("x", kFloat, {2, 3}).Node("Relu", {"x"}, {"y"}).Output("y", kFloat));
//
// Every piece is the serialised message of that name; pieces are put into others as bytes. Nothing
// is checked: wrong files are what many tests want.
//
// Thread safety: values.
#ifndef NPURT_TESTS_SUPPORT_ONNX_BUILDER_H_
#define NPURT_TESTS_SUPPORT_ONNX_BUILDER_H_

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <protozero/pbf_writer.hpp>
#include <string>
#include <utility>
#include <vector>

namespace npurt::tests::onnx {

inline constexpr int kFloat = 1, kInt32 = 6, kInt64 = 7, kString = 8, kBool = 9;

// Calls write(writer) and returns what was written.
template <typename F>
std::string Message(F&& write) {
  std::string bytes;
  protozero::pbf_writer writer(bytes);
  write(writer);
  return bytes;
}

// --- Tensors and types --------------------------------------------------------------------------

template <typename T>
std::string RawTensor(const std::string& name, int dtype, const std::vector<std::int64_t>& dims,
                      const std::vector<T>& values) {
  return Message([&](protozero::pbf_writer& w) {
    w.add_packed_int64(1, dims.begin(), dims.end());
    w.add_int32(2, dtype);
    w.add_string(8, name);
    w.add_bytes(9, reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  });
}

inline std::string FloatTensor(const std::string& name, const std::vector<std::int64_t>& dims,
                               const std::vector<float>& values) {
  return RawTensor(name, kFloat, dims, values);
}

inline std::string Int64Tensor(const std::string& name, const std::vector<std::int64_t>& dims,
                               const std::vector<std::int64_t>& values) {
  return RawTensor(name, kInt64, dims, values);
}

inline std::string Entry(const std::string& key, const std::string& value) {
  return Message([&](protozero::pbf_writer& w) {
    w.add_string(1, key);
    w.add_string(2, value);
  });
}

inline std::string ExternalTensor(const std::string& name, int dtype,
                                  const std::vector<std::int64_t>& dims,
                                  const std::vector<std::pair<std::string, std::string>>& entries) {
  return Message([&](protozero::pbf_writer& w) {
    w.add_packed_int64(1, dims.begin(), dims.end());
    w.add_int32(2, dtype);
    w.add_string(8, name);
    for (const auto& [key, value] : entries) w.add_message(13, Entry(key, value));
    w.add_enum(14, 1);
  });
}

// A dimension is a number, or a name; "?" has neither.
struct Dimension {
  Dimension(int value) : value(value) {}       // NOLINT: numbers and names are dimensions
  Dimension(const char* name) : name(name) {}  // NOLINT
  int value = 0;
  std::string name;
};

inline std::string TensorType(int dtype, const std::vector<Dimension>* dims) {
  return Message([&](protozero::pbf_writer& type) {
    protozero::pbf_writer tensor(type, 1);
    tensor.add_int32(1, dtype);
    if (dims == nullptr) return;
    protozero::pbf_writer shape(tensor, 2);
    for (const Dimension& dim : *dims) {
      protozero::pbf_writer d(shape, 1);
      if (dim.name.empty())
        d.add_int64(1, dim.value);
      else if (dim.name != "?")
        d.add_string(2, dim.name);
      else
        d.add_string(3, "anything");  // the writer takes back messages without fields
    }
  });
}

inline std::string ValueInfo(const std::string& name, const std::string& type) {
  return Message([&](protozero::pbf_writer& w) {
    w.add_string(1, name);
    if (!type.empty()) w.add_message(2, type);
  });
}

// --- Attributes ---------------------------------------------------------------------------------

inline std::string IntAttribute(const std::string& name, std::int64_t value) {
  return Message([&](protozero::pbf_writer& w) {
    w.add_string(1, name);
    w.add_int64(3, value);
    w.add_enum(20, 2);
  });
}
inline std::string FloatAttribute(const std::string& name, float value) {
  return Message([&](protozero::pbf_writer& w) {
    w.add_string(1, name);
    w.add_float(2, value);
    w.add_enum(20, 1);
  });
}
inline std::string StringAttribute(const std::string& name, const std::string& value) {
  return Message([&](protozero::pbf_writer& w) {
    w.add_string(1, name);
    w.add_bytes(4, value);
    w.add_enum(20, 3);
  });
}
inline std::string IntsAttribute(const std::string& name, const std::vector<std::int64_t>& values) {
  return Message([&](protozero::pbf_writer& w) {
    w.add_string(1, name);
    for (std::int64_t value : values) w.add_int64(8, value);
    w.add_enum(20, 7);
  });
}
inline std::string FloatsAttribute(const std::string& name, const std::vector<float>& values) {
  return Message([&](protozero::pbf_writer& w) {
    w.add_string(1, name);
    for (float value : values) w.add_float(7, value);
    w.add_enum(20, 6);
  });
}
inline std::string TensorAttribute(const std::string& name, const std::string& tensor) {
  return Message([&](protozero::pbf_writer& w) {
    w.add_string(1, name);
    w.add_message(5, tensor);
    w.add_enum(20, 4);
  });
}
inline std::string GraphAttribute(const std::string& name, const std::string& graph) {
  return Message([&](protozero::pbf_writer& w) {
    w.add_string(1, name);
    w.add_message(6, graph);
    w.add_enum(20, 5);
  });
}
// A reference to the attribute `of` of the function around the node.
inline std::string ReferenceAttribute(const std::string& name, const std::string& of, int type) {
  return Message([&](protozero::pbf_writer& w) {
    w.add_string(1, name);
    w.add_enum(20, type);
    w.add_string(21, of);
  });
}

// --- Nodes, graphs, functions, models -----------------------------------------------------------

struct NodeOptions {
  std::string name = {}, domain = {};
  std::vector<std::string> attributes = {};
};

inline std::string Node(const std::string& op, const std::vector<std::string>& inputs,
                        const std::vector<std::string>& outputs, const NodeOptions& options = {}) {
  return Message([&](protozero::pbf_writer& w) {
    for (const std::string& input : inputs) w.add_string(1, input);
    for (const std::string& output : outputs) w.add_string(2, output);
    if (!options.name.empty()) w.add_string(3, options.name);
    w.add_string(4, op);
    for (const std::string& attribute : options.attributes) w.add_message(5, attribute);
    if (!options.domain.empty()) w.add_string(7, options.domain);
  });
}

class Graph {
 public:
  explicit Graph(const std::string& name = "graph") { Add(2, name); }
  Graph& Input(const std::string& name, int dtype, const std::vector<Dimension>& dims) {
    return Add(11, ValueInfo(name, TensorType(dtype, &dims)));
  }
  Graph& InputOfType(const std::string& name, const std::string& type) {
    return Add(11, ValueInfo(name, type));
  }
  Graph& Output(const std::string& name, int dtype = 0) {
    return Add(12, ValueInfo(name, dtype == 0 ? "" : TensorType(dtype, nullptr)));
  }
  Graph& Initializer(const std::string& tensor) { return Add(5, tensor); }
  Graph& SparseInitializer(const std::string& tensor) { return Add(15, tensor); }
  Graph& Node(const std::string& op, const std::vector<std::string>& inputs,
              const std::vector<std::string>& outputs, const NodeOptions& options = {}) {
    return Add(1, onnx::Node(op, inputs, outputs, options));
  }
  const std::string& bytes() const { return bytes_; }

 private:
  Graph& Add(int field, const std::string& message) {
    protozero::pbf_writer(bytes_).add_message(static_cast<protozero::pbf_tag_type>(field), message);
    return *this;
  }
  std::string bytes_;
};

inline std::string OpsetImport(const std::string& domain, int version) {
  return Message([&](protozero::pbf_writer& w) {
    w.add_string(1, domain);
    w.add_int64(2, version);
  });
}

struct FunctionOptions {
  std::vector<std::string> attributes = {};          // names
  std::vector<std::string> attribute_defaults = {};  // messages
  int opset = 21;
};

inline std::string Function(const std::string& domain, const std::string& name,
                            const std::vector<std::string>& inputs,
                            const std::vector<std::string>& outputs,
                            const std::vector<std::string>& nodes,
                            const FunctionOptions& options = {}) {
  return Message([&](protozero::pbf_writer& w) {
    w.add_string(1, name);
    for (const std::string& input : inputs) w.add_string(4, input);
    for (const std::string& output : outputs) w.add_string(5, output);
    for (const std::string& attribute : options.attributes) w.add_string(6, attribute);
    for (const std::string& node : nodes) w.add_message(7, node);
    w.add_message(9, OpsetImport("", options.opset));
    w.add_message(9, OpsetImport(domain, 1));
    w.add_string(10, domain);
    for (const std::string& attribute : options.attribute_defaults) w.add_message(11, attribute);
  });
}

struct ModelOptions {
  int ir_version = 10;
  int opset = 21;  // 0: none is stamped
  std::vector<std::string> functions = {};
  std::vector<std::pair<std::string, int>> more_opsets = {};
};

inline std::string Model(const Graph& graph, const ModelOptions& options = {}) {
  return Message([&](protozero::pbf_writer& w) {
    w.add_int64(1, options.ir_version);
    w.add_string(2, "npurt tests");
    w.add_message(7, graph.bytes());
    if (options.opset != 0) w.add_message(8, OpsetImport("", options.opset));
    for (const auto& [domain, version] : options.more_opsets)
      w.add_message(8, OpsetImport(domain, version));
    for (const std::string& function : options.functions) w.add_message(25, function);
  });
}

}  // namespace npurt::tests::onnx

#endif  // NPURT_TESTS_SUPPORT_ONNX_BUILDER_H_
