// The messages of a model, as views into the file: what the importer walks.
//
// Only what a runtime needs is kept: documentation, value_info, annotations and training info are
// passed over (but must not be damaged). Field names are ONNX's, in the house's spelling. Tensors
// are ready to use (see proto_values.h).
//
// Lifetime: names are views of the file's bytes. Thread safety: plain data.
#ifndef NPURT_FORMATS_ONNX_PROTO_H_
#define NPURT_FORMATS_ONNX_PROTO_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/attributes.h"
#include "formats/onnx/proto_values.h"

namespace npurt::formats::onnx {

struct DimensionProto {
  std::int64_t value = -1;  // -1: unknown
  absl::string_view param;
};

struct TypeProto {
  ValueKind kind = ValueKind::kNone;  // kNone: the file does not say
  bool unsupported = false;           // a sparse tensor or an opaque type
  std::int64_t elem_type = 0;         // of a tensor; of a map's keys
  bool has_shape = false;
  std::vector<DimensionProto> dims;
  std::unique_ptr<TypeProto> element;  // of sequences, optionals and maps
};

struct ValueInfoProto {
  absl::string_view name;
  TypeProto type;
};

struct GraphProto;

struct AttributeProto {
  absl::string_view name, ref_attr_name;
  bool supported = true;  // false: a list of graphs, types or sparse tensors
  AttributeValue value;   // but for graphs
  std::shared_ptr<const GraphProto> graph;
};

struct NodeProto {
  std::vector<absl::string_view> inputs, outputs;
  absl::string_view name, op_type, domain, overload;
  std::vector<AttributeProto> attributes;
};

struct GraphProto {
  absl::string_view name;
  std::vector<NodeProto> nodes;
  std::vector<NamedTensor> initializers;  // sparse ones too
  std::vector<ValueInfoProto> inputs, outputs;
};

struct OpsetImport {
  absl::string_view domain;
  std::int64_t version = 0;
};

struct FunctionProto {
  absl::string_view domain, name, overload;
  std::vector<absl::string_view> inputs, outputs, attributes;
  std::vector<AttributeProto> attribute_defaults;
  std::vector<NodeProto> nodes;
  std::vector<OpsetImport> opset_imports;
};

struct ModelProto {
  std::int64_t ir_version = 0, model_version = 0;
  absl::string_view producer_name, producer_version, domain, doc;
  std::vector<OpsetImport> opset_imports;
  std::vector<std::pair<absl::string_view, absl::string_view>> metadata;
  bool has_graph = false;
  GraphProto graph;
  std::vector<FunctionProto> functions;
};

// Reads a whole file. DATA_LOSS if it is damaged, with the place; INVALID_ARGUMENT if a tensor
// contradicts itself; PERMISSION_DENIED and the like for external data.
absl::StatusOr<ModelProto> ParseModel(absl::string_view bytes, const TensorSource& source,
                                      const Limits& limits);

}  // namespace npurt::formats::onnx

#endif  // NPURT_FORMATS_ONNX_PROTO_H_
