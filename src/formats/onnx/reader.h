// ReadModel: reads an ONNX file into a Graph.
//
//   file → mapping → messages as views (proto.h) → nodes in their newest form (import.h, lower.h)
//
// Nothing is copied that can be used where it lies: weights are the mapped pages of the file, which
// live as long as a tensor refers to them. Files of any size, IR version and opset up to lower.h's
// newest are read; what a file says about itself (value_info, declared shapes of outputs) is not
// trusted.
//
// Thread safety: pure functions.
#ifndef NPURT_FORMATS_ONNX_READER_H_
#define NPURT_FORMATS_ONNX_READER_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "formats/onnx/limits.h"
#include "graph/graph.h"
#include "ops/host_call.h"

namespace npurt::formats::onnx {

struct ReadOptions {
  // False: files are copied into memory, for files that others may shorten while they are used.
  bool map_weights = true;
  // False: models must hold all their weights themselves.
  bool external_data = true;
  // Where external data lies, instead of the model's folder.
  std::string external_data_folder = {};
  Limits limits = {};
  // Operators that the host adds; may be null.
  std::shared_ptr<const ops::HostOperators> host = nullptr;
};

struct Model {
  std::unique_ptr<graph::Graph> graph;
  std::int64_t ir_version = 0, model_version = 0;
  std::string producer, producer_version, domain, doc;
  std::vector<std::pair<std::string, int>> opsets;  // domain ("" is ONNX's own), version
  std::vector<std::pair<std::string, std::string>> metadata;
};

// NOT_FOUND, PERMISSION_DENIED: the file, or external data outside its folder. DATA_LOSS: damaged,
// with the place. INVALID_ARGUMENT: contradicts itself. UNIMPLEMENTED: lists what is not supported.
// RESOURCE_EXHAUSTED: a limit.
absl::StatusOr<Model> ReadModel(const std::string& path, const ReadOptions& options = {});

// From memory that `owner` keeps; null: the bytes are copied first. `folder` is where external data
// lies; empty: there must be none.
absl::StatusOr<Model> ReadModelFromMemory(absl::string_view bytes, const std::string& folder,
                                          std::shared_ptr<const void> owner,
                                          const ReadOptions& options = {});

}  // namespace npurt::formats::onnx

#endif  // NPURT_FORMATS_ONNX_READER_H_
