// Values as ONNX writes them: TensorProto, SequenceProto, OptionalProto and MapProto.
//
// A tensor is not copied where its bytes lie in the file as they lie in memory (raw_data, external
// data, packed floats): it refers to the file and keeps it alive. Everything else (varints,
// strings, sparse tensors) is decoded into memory of its own.
//
// Thread safety: as for Wire.
#ifndef NPURT_FORMATS_ONNX_PROTO_VALUES_H_
#define NPURT_FORMATS_ONNX_PROTO_VALUES_H_

#include <memory>

#include "absl/strings/string_view.h"
#include "base/tensor.h"
#include "formats/onnx/files.h"
#include "formats/onnx/wire.h"

namespace npurt::formats::onnx {

// Where tensors come from. `owner` null: the bytes do not stay, and every tensor is copied.
struct TensorSource {
  std::shared_ptr<const void> owner;
  ExternalFiles* external = nullptr;  // null: external data is refused
};

struct NamedTensor {
  absl::string_view name;
  Tensor tensor;
};

// Appends dimensions, at most max_rank of them.
void ParseDims(Reader& reader, Dims* dims);
// Read one message; the tensor is undefined if the wire has failed.
NamedTensor ParseTensor(Reader& reader, const TensorSource& source);
NamedTensor ParseSparseTensor(Reader& reader, const TensorSource& source);  // made dense
Value ParseSequence(Reader& reader, const TensorSource& source);
Value ParseOptional(Reader& reader, const TensorSource& source);
Value ParseMap(Reader& reader, const TensorSource& source);

// A whole serialised message, copied.
absl::StatusOr<Tensor> ReadTensorProto(absl::string_view bytes, const Limits& limits = {});
absl::StatusOr<Value> ReadSequenceProto(absl::string_view bytes, const Limits& limits = {});
absl::StatusOr<Value> ReadOptionalProto(absl::string_view bytes, const Limits& limits = {});
absl::StatusOr<Value> ReadMapProto(absl::string_view bytes, const Limits& limits = {});

}  // namespace npurt::formats::onnx

#endif  // NPURT_FORMATS_ONNX_PROTO_VALUES_H_
