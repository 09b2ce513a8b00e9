#include "formats/onnx/reader.h"

#include "absl/strings/str_cat.h"
#include "formats/onnx/files.h"
#include "formats/onnx/import.h"
#include "formats/onnx/lower.h"

namespace npurt::formats::onnx {
namespace {

std::string FolderOf(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

absl::StatusOr<Model> Read(const FileBytes& file, const std::string& folder,
                           const ReadOptions& options) {
  ExternalFiles external(
      options.external_data_folder.empty() ? folder : options.external_data_folder,
      options.map_weights);
  NPURT_ASSIGN_OR_RETURN(
      const ModelProto proto,
      ParseModel(file.bytes, TensorSource{file.owner, options.external_data ? &external : nullptr},
                 options.limits));
  if (!proto.has_graph)
    return absl::InvalidArgumentError("the file has no graph: it is no ONNX model");
  Model model;
  model.ir_version = proto.ir_version;
  model.model_version = proto.model_version;
  model.producer = std::string(proto.producer_name);
  model.producer_version = std::string(proto.producer_version);
  model.domain = std::string(proto.domain);
  model.doc = std::string(proto.doc);
  for (const auto& [key, value] : proto.metadata)
    model.metadata.emplace_back(std::string(key), std::string(value));
  NPURT_ASSIGN_OR_RETURN(model.graph, ImportModel(proto, options.limits, options.host.get()));
  for (const OpsetImport& import : proto.opset_imports)
    model.opsets.emplace_back(std::string(CanonicalDomain(import.domain)),
                              static_cast<int>(import.version));
  return model;
}

}  // namespace

absl::StatusOr<Model> ReadModel(const std::string& path, const ReadOptions& options) {
  NPURT_ASSIGN_OR_RETURN(const FileBytes file,
                         OpenFile(path, options.map_weights, options.limits.max_model_bytes));
  auto model = Read(file, FolderOf(path), options);
  if (!model.ok()) return Annotate(model.status(), absl::StrCat("'", path, "'"));
  return model;
}

absl::StatusOr<Model> ReadModelFromMemory(absl::string_view bytes, const std::string& folder,
                                          std::shared_ptr<const void> owner,
                                          const ReadOptions& options) {
  if (bytes.size() > options.limits.max_model_bytes)
    return absl::ResourceExhaustedError(absl::StrCat(
        "the model has ", bytes.size(), " bytes, the limit is ", options.limits.max_model_bytes));
  FileBytes file{bytes, std::move(owner)};
  if (file.owner == nullptr) {
    auto copy = std::make_shared<std::string>(bytes);
    file.bytes = *copy;
    file.owner = std::move(copy);
  }
  return Read(file, folder, options);
}

}  // namespace npurt::formats::onnx
