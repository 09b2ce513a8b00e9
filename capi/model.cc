// Models: from files, memory and builders.
#include "formats/onnx/reader.h"
#include "graph.h"
#include "session.h"
#include "session/report.h"

namespace npurt::capi {
namespace {

using options::Option;

absl::Status CheckCancel(const npurt_cancel* cancel) {
  return npurt_cancel_triggered(cancel) != 0 ? absl::CancelledError("the load was cancelled")
                                             : absl::OkStatus();
}

absl::StatusOr<npurt_load_info> LoadInfo(const npurt_load_info* user) {
  NPURT_ASSIGN_OR_RETURN(const npurt_load_info info,
                         CopyInOr(user, npurt_load_info_init(), "info"));
  NPURT_RETURN_IF_ERROR(WantNoFlags(info, "info"));
  NPURT_RETURN_IF_ERROR(CheckCancel(info.cancel));
  if (info.host != nullptr) info.host->frozen.store(true, std::memory_order_release);
  return info;
}

formats::onnx::ReadOptions ReadOptionsOf(const npurt_load_info& info) {
  const options::Options defaults;
  const options::Options& o = info.options == nullptr ? defaults : info.options->options;
  formats::onnx::ReadOptions read;
  read.map_weights = o.Bool(Option::map_weights);
  read.external_data = o.Bool(Option::external_data);
  if (info.external_data_dir != nullptr) read.external_data_folder = info.external_data_dir;
  const auto limit = [&o](Option option, auto* out) {
    if (o.value(option) != nullptr)
      *out = static_cast<std::remove_reference_t<decltype(*out)>>(o.Int(option));
  };
  limit(Option::max_model_bytes, &read.limits.max_model_bytes);
  limit(Option::max_expanded_bytes, &read.limits.max_expanded_bytes);
  limit(Option::max_nodes, &read.limits.max_nodes);
  limit(Option::max_depth, &read.limits.max_subgraph_depth);
  limit(Option::max_dims, &read.limits.max_rank);
  read.host = HostOperatorsOf(info.host);
  return read;
}

absl::Status Give(std::shared_ptr<const graph::Graph> graph, const npurt_load_info& info,
                  npurt_model** out_model) {
  NPURT_RETURN_IF_ERROR(CheckCancel(info.cancel));
  auto made = std::make_unique<npurt_model>();
  made->inputs = InputsOf(*graph);
  made->outputs = OutputsOf(*graph);
  made->graph = std::move(graph);
  Log(info.host, NPURT_LOG_DEBUG, "model",
      absl::StrCat("'", made->graph->name, "' with ", made->graph->node_count(), " nodes"));
  *out_model = made.release();
  return absl::OkStatus();
}

absl::Status GiveInfo(const std::vector<InfoStorage>& infos, std::size_t index,
                      npurt_value_info* out_info) {
  NPURT_RETURN_IF_ERROR(WantOut(out_info, "out_info"));
  if (index >= infos.size())
    return absl::OutOfRangeError(
        absl::StrCat("got index ", index, ", want less than ", infos.size()));
  CopyOut(infos[index].View(), out_info);
  return absl::OkStatus();
}

absl::StatusOr<std::string> Report(const graph::Graph& graph, npurt_report kind) {
  switch (kind) {
    case NPURT_REPORT_OPERATORS:
      return session::OperatorsJson(graph);
    case NPURT_REPORT_GRAPH:
      return session::GraphJson(graph);
    case NPURT_REPORT_MEMORY:
      return session::ModelMemoryJson(graph);
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("got report ", kind, ", want OPERATORS, GRAPH or MEMORY"));
  }
}

}  // namespace

std::vector<InfoStorage> InputsOf(const graph::Graph& graph) {
  std::vector<InfoStorage> infos;
  for (graph::ValueId id : graph.inputs()) {
    const graph::ValueInfo& value = graph.value(id);
    infos.emplace_back(value.name, value.type, static_cast<npurt_kind>(value.type.kind));
  }
  return infos;
}

std::vector<InfoStorage> OutputsOf(const graph::Graph& graph) {
  std::vector<InfoStorage> infos;
  for (std::size_t i = 0; i < graph.outputs().size(); ++i) {
    const ValueType& type = graph.value(graph.outputs()[i]).type;
    infos.emplace_back(graph.output_names()[i], type, static_cast<npurt_kind>(type.kind));
  }
  return infos;
}

}  // namespace npurt::capi

using namespace npurt;        // NOLINT: the C functions below are the outside of this file
using namespace npurt::capi;  // NOLINT

npurt_status npurt_model_load_file(const char* path, const npurt_load_info* info,
                                   npurt_model** out_model, npurt_error** error) {
  return Guard(error, [&]() -> absl::Status {
    NPURT_RETURN_IF_ERROR(WantAll("path", path, "out_model", out_model));
    NPURT_ASSIGN_OR_RETURN(const npurt_load_info given, LoadInfo(info));
    NPURT_ASSIGN_OR_RETURN(formats::onnx::Model model,
                           formats::onnx::ReadModel(path, ReadOptionsOf(given)));
    return Give(std::move(model.graph), given, out_model);
  });
}

npurt_status npurt_model_load_memory(const void* data, size_t size, const npurt_deleter* deleter,
                                     const npurt_load_info* info, npurt_model** out_model,
                                     npurt_error** error) {
  return Guard(error, [&]() -> absl::Status {
    PendingDeleter pending(deleter, const_cast<void*>(data));
    NPURT_RETURN_IF_ERROR(WantAll("out_model", out_model));
    if (size > 0) NPURT_RETURN_IF_ERROR(WantAll("data", data));
    NPURT_ASSIGN_OR_RETURN(const npurt_load_info given, LoadInfo(info));
    const formats::onnx::ReadOptions options = ReadOptionsOf(given);
    NPURT_ASSIGN_OR_RETURN(
        formats::onnx::Model model,
        formats::onnx::ReadModelFromMemory({static_cast<const char*>(data), size},
                                           options.external_data_folder, pending.Take(), options));
    return Give(std::move(model.graph), given, out_model);
  });
}

npurt_status npurt_model_create(npurt_graph* graph, const npurt_load_info* info,
                                npurt_model** out_model, npurt_error** error) {
  return Guard(error, [&]() -> absl::Status {
    NPURT_RETURN_IF_ERROR(WantAll("graph", graph, "out_model", out_model));
    NPURT_ASSIGN_OR_RETURN(const npurt_load_info given, LoadInfo(info));
    if (graph->outer)
      return absl::InvalidArgumentError("an inner graph is part of its outer graph's model");
    if (graph->graph.outputs().empty())
      return absl::FailedPreconditionError("the graph has no output");
    return Give(graph->graph.Clone(), given, out_model);
  });
}

size_t npurt_model_input_count(const npurt_model* model) {
  return model == nullptr ? 0 : model->inputs.size();
}
size_t npurt_model_output_count(const npurt_model* model) {
  return model == nullptr ? 0 : model->outputs.size();
}

npurt_status npurt_model_input_info(const npurt_model* model, size_t index,
                                    npurt_value_info* out_info, npurt_error** error) {
  return Guard(error, [&]() -> absl::Status {
    NPURT_RETURN_IF_ERROR(WantAll("model", model));
    return GiveInfo(model->inputs, index, out_info);
  });
}

npurt_status npurt_model_output_info(const npurt_model* model, size_t index,
                                     npurt_value_info* out_info, npurt_error** error) {
  return Guard(error, [&]() -> absl::Status {
    NPURT_RETURN_IF_ERROR(WantAll("model", model));
    return GiveInfo(model->outputs, index, out_info);
  });
}

npurt_status npurt_model_report(const npurt_model* model, npurt_report kind, npurt_text** out_text,
                                npurt_error** error) {
  return Guard(error, [&]() -> absl::Status {
    NPURT_RETURN_IF_ERROR(WantAll("model", model));
    NPURT_ASSIGN_OR_RETURN(std::string text, Report(*model->graph, kind));
    return GiveText(std::move(text), out_text);
  });
}

npurt_model* npurt_model_retain(npurt_model* model) { return Retain(model); }
void npurt_model_release(npurt_model* model) { Release(model); }
