// Sessions: handles, and the host's hooks in the shape that lower layers want.
#include "session.h"

#include "session/report.h"

namespace npurt::capi {
namespace {

class HostExecutor final : public exec::Executor {
 public:
  explicit HostExecutor(std::shared_ptr<const npurt_executor> host) : host_(std::move(host)) {}
  int Concurrency() override {
    const std::uint32_t threads = host_->concurrency(host_->user_data);
    return static_cast<int>(std::min<std::uint32_t>(threads, exec::TeamPool::kMaxWidth));
  }
  bool Submit(void (*task)(void* argument), void* argument) override {
    return host_->submit(host_->user_data, task, argument) == NPURT_OK;
  }

 private:
  std::shared_ptr<const npurt_executor> host_;
};

session::Hooks HooksOf(const npurt_host* host) {
  session::Hooks hooks;
  if (host == nullptr) return hooks;
  hooks.allocator = host->memory;
  if (host->executor != nullptr) hooks.executor = std::make_shared<HostExecutor>(host->executor);
  return hooks;
}

absl::StatusOr<Ref<npurt_session>> NewSession(const npurt_options* options, npurt_host* host) {
  const options::Options defaults;
  const options::Options& used = options == nullptr ? defaults : options->options;
  auto made = std::make_unique<npurt_session>();
  if (host != nullptr) host->frozen.store(true, std::memory_order_release);
  made->host = Ref<npurt_host>(host);
  NPURT_ASSIGN_OR_RETURN(made->session, session::Session::Create(used, HooksOf(host)));
  made->submitter = std::make_shared<Submitter>(host == nullptr ? nullptr : host->executor,
                                                made->session->threads());
  for (const std::string& note : made->session->options().notes()) Log(host, NPURT_LOG_WARNING, "options", note);
  npurt_session* handle = made.release();
  Ref<npurt_session> session(handle);
  Release(handle);
  return session;
}

// The ports of a graph that is being added: there before the graph is, gone if it does not come.
class PortsOfNext {
 public:
  PortsOfNext(npurt_session* session, const graph::Graph& graph) : session_(session) {
    npurt_session::Ports ports = {InputsOf(graph), OutputsOf(graph)};
    MutexLock lock(session_->mutex);
    session_->ports.push_back(std::move(ports));
  }
  ~PortsOfNext() {
    if (session_ == nullptr) return;
    MutexLock lock(session_->mutex);
    session_->ports.pop_back();
  }
  PortsOfNext(const PortsOfNext&) = delete;
  PortsOfNext& operator=(const PortsOfNext&) = delete;
  void Keep() { session_ = nullptr; }

 private:
  npurt_session* session_;
};

absl::StatusOr<std::uint32_t> AddModel(npurt_session* session, npurt_model* model,
                                       const npurt_compile_info& info) {
  if (info.keep_count > 0) NPURT_RETURN_IF_ERROR(WantAll("info.keep", info.keep));
  HashSet<std::string> keep;
  for (std::size_t i = 0; i < info.keep_count; ++i) {
    NPURT_RETURN_IF_ERROR(WantAll("info.keep[]", info.keep[i]));
    keep.insert(info.keep[i]);
  }
  MutexLock adding(session->adding);  // keeps the order of ports that of graphs; runs go on
  PortsOfNext ports(session, *model->graph);
  NPURT_ASSIGN_OR_RETURN(const int index,
                         session->session->AddGraph(
                             model->graph, info.name == nullptr ? "" : info.name, std::move(keep),
                             info.cancel == nullptr ? nullptr : &info.cancel->triggered));
  ports.Keep();
  NPURT_ASSIGN_OR_RETURN(const session::SessionGraph* graph, session->session->GraphAt(index));
  const compile::CompileReport& report = graph->compiled.report;
  Log(session->host.get(), NPURT_LOG_INFO, "compile",
      absl::StrCat("graph '", graph->name, "': ", report.nodes_before, " nodes became ",
                   report.steps_after, " steps"));
  return static_cast<std::uint32_t>(index);
}

const npurt_session::Ports* PortsOf(const npurt_session* session, std::uint32_t graph) {
  if (session == nullptr) return nullptr;
  MutexLock lock(session->mutex);
  return graph < session->ports.size() ? &session->ports[graph] : nullptr;
}

absl::Status GiveInfo(const npurt_session* session, std::uint32_t graph,
                      std::vector<InfoStorage> npurt_session::Ports::*side, std::size_t index,
                      npurt_value_info* out_info) {
  NPURT_RETURN_IF_ERROR(WantAll("session", session));
  NPURT_RETURN_IF_ERROR(WantOut(out_info, "out_info"));
  const npurt_session::Ports* ports = PortsOf(session, graph);
  if (ports == nullptr)
    return absl::OutOfRangeError(absl::StrCat("the session has no graph ", graph));
  if (index >= (ports->*side).size())
    return absl::OutOfRangeError(
        absl::StrCat("got index ", index, ", want less than ", (ports->*side).size()));
  CopyOut((ports->*side)[index].View(), out_info);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<absl::Span<const std::int64_t>>> Shapes(const npurt_shape* inputs,
                                                                   std::size_t count) {
  if (count > 0) NPURT_RETURN_IF_ERROR(WantAll("inputs", inputs));
  std::vector<absl::Span<const std::int64_t>> shapes;
  for (std::size_t i = 0; i < count; ++i) {
    if (inputs[i].rank > 0) NPURT_RETURN_IF_ERROR(WantAll("inputs[].dims", inputs[i].dims));
    shapes.push_back({inputs[i].dims, inputs[i].rank});
    const auto elements = ElementCount(shapes.back());
    if (!elements.ok()) return Annotate(elements.status(), absl::StrCat("input ", i));
  }
  return shapes;
}

absl::StatusOr<std::string> Report(session::Session& session, std::uint32_t graph,
                                   npurt_report kind) {
  if (kind == NPURT_REPORT_OPTIONS) return session.options().ToJson();
  NPURT_ASSIGN_OR_RETURN(const session::SessionGraph* entry,
                         session.GraphAt(static_cast<int>(graph)));
  switch (kind) {
    case NPURT_REPORT_OPERATORS:
      return session::OperatorsJson(*entry->source);
    case NPURT_REPORT_GRAPH:
      return session::GraphJson(*entry->source);
    case NPURT_REPORT_COMPILE:
      return session::CompileJson(*entry);
    case NPURT_REPORT_PLAN:
      return session::PlanJson(*entry, session.precision());
    case NPURT_REPORT_MEMORY:
      return session::MemoryJson(session, *entry);
    case NPURT_REPORT_COUNTERS:
      return session::CountersJson(session, *entry);
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("got report ", kind,
                       ", want OPERATORS, OPTIONS, GRAPH, COMPILE, PLAN, MEMORY or COUNTERS"));
  }
}

}  // namespace

absl::Status WantSession(const npurt_session* session) {
  NPURT_RETURN_IF_ERROR(WantAll("session", session));
  if (!session->session->InForkedChild()) return absl::OkStatus();
  return absl::FailedPreconditionError("the session belongs to the parent of this process");
}

void Log(const npurt_host* host, npurt_log_level level, const char* where,
         const std::string& text) {
  if (host == nullptr || host->log == nullptr || level < host->log->min_level) return;
  host->log->write(host->log->user_data, level, where, text.c_str());
}

}  // namespace npurt::capi

using namespace npurt;        // NOLINT: the C functions below are the outside of this file
using namespace npurt::capi;  // NOLINT

npurt_status npurt_session_create(const npurt_options* options, npurt_host* host,
                                  npurt_session** out_session, npurt_error** error) {
  return Guard(error, [&]() -> absl::Status {
    NPURT_RETURN_IF_ERROR(WantAll("out_session", out_session));
    NPURT_ASSIGN_OR_RETURN(const Ref<npurt_session> session, NewSession(options, host));
    *out_session = Retain(session.get());
    return absl::OkStatus();
  });
}

npurt_status npurt_session_open(const char* path, const npurt_options* options,
                                npurt_session** out_session, npurt_error** error) {
  return Guard(error, [&]() -> absl::Status {
    NPURT_RETURN_IF_ERROR(WantAll("path", path, "out_session", out_session));
    NPURT_ASSIGN_OR_RETURN(const Ref<npurt_session> session, NewSession(options, nullptr));
    npurt_load_info info = npurt_load_info_init();
    info.options = options;
    npurt_model* model = nullptr;
    // The details are in the error object already, if the caller wants one.
    npurt_error* details = nullptr;
    const npurt_status loaded = npurt_model_load_file(path, &info, &model, &details);
    if (loaded != NPURT_OK) {
      const absl::Status status = FromC(loaded, npurt_error_message(details));
      npurt_error_release(details);
      return status;
    }
    const Ref<npurt_model> held(model);
    Release(model);
    NPURT_RETURN_IF_ERROR(AddModel(session.get(), model, npurt_compile_info_init()));
    *out_session = Retain(session.get());
    return absl::OkStatus();
  });
}

npurt_status npurt_session_add_model(npurt_session* session, npurt_model* model,
                                     const npurt_compile_info* info, uint32_t* out_graph,
                                     npurt_error** error) {
  return Guard(error, [&]() -> absl::Status {
    NPURT_RETURN_IF_ERROR(WantAll("model", model));
    NPURT_RETURN_IF_ERROR(WantSession(session));
    NPURT_ASSIGN_OR_RETURN(const npurt_compile_info given,
                           CopyInOr(info, npurt_compile_info_init(), "info"));
    NPURT_RETURN_IF_ERROR(WantNoFlags(given, "info"));
    NPURT_ASSIGN_OR_RETURN(const std::uint32_t graph, AddModel(session, model, given));
    if (out_graph != nullptr) *out_graph = graph;
    return absl::OkStatus();
  });
}

uint32_t npurt_session_graph_count(const npurt_session* session) {
  return session == nullptr ? 0 : static_cast<uint32_t>(session->session->graph_count());
}

npurt_status npurt_session_find_graph(const npurt_session* session, const char* name,
                                      uint32_t* out_graph, npurt_error** error) {
  return Guard(error, [&]() -> absl::Status {
    NPURT_RETURN_IF_ERROR(WantAll("session", session, "name", name, "out_graph", out_graph));
    NPURT_ASSIGN_OR_RETURN(const int graph, session->session->FindGraph(name));
    *out_graph = static_cast<uint32_t>(graph);
    return absl::OkStatus();
  });
}

size_t npurt_session_input_count(const npurt_session* session, uint32_t graph) {
  const npurt_session::Ports* ports = PortsOf(session, graph);
  return ports == nullptr ? 0 : ports->inputs.size();
}

size_t npurt_session_output_count(const npurt_session* session, uint32_t graph) {
  const npurt_session::Ports* ports = PortsOf(session, graph);
  return ports == nullptr ? 0 : ports->outputs.size();
}

npurt_status npurt_session_input_info(const npurt_session* session, uint32_t graph, size_t index,
                                      npurt_value_info* out_info, npurt_error** error) {
  return Guard(error, [&] {
    return GiveInfo(session, graph, &npurt_session::Ports::inputs, index, out_info);
  });
}

npurt_status npurt_session_output_info(const npurt_session* session, uint32_t graph, size_t index,
                                       npurt_value_info* out_info, npurt_error** error) {
  return Guard(error, [&] {
    return GiveInfo(session, graph, &npurt_session::Ports::outputs, index, out_info);
  });
}

npurt_status npurt_session_report(npurt_session* session, uint32_t graph, npurt_report kind,
                                  npurt_text** out_text, npurt_error** error) {
  return Guard(error, [&]() -> absl::Status {
    NPURT_RETURN_IF_ERROR(WantAll("session", session));
    NPURT_ASSIGN_OR_RETURN(std::string text, Report(*session->session, graph, kind));
    return GiveText(std::move(text), out_text);
  });
}

npurt_status npurt_session_memory(npurt_session* session, uint32_t graph, const npurt_shape* inputs,
                                  size_t input_count, npurt_memory_info* out_info,
                                  npurt_error** error) {
  return Guard(error, [&]() -> absl::Status {
    NPURT_RETURN_IF_ERROR(WantAll("session", session));
    NPURT_RETURN_IF_ERROR(WantOut(out_info, "out_info"));
    NPURT_ASSIGN_OR_RETURN(const auto shapes, Shapes(inputs, input_count));
    NPURT_ASSIGN_OR_RETURN(const session::MemoryNeeds needs,
                           session->session->Memory(static_cast<int>(graph), shapes));
    npurt_memory_info info = npurt_memory_info_init();
    info.exact = needs.exact ? 1 : 0;
    info.arena_bytes = needs.arena_bytes;
    info.arena_alignment = memory::kAlignment;
    info.output_bytes = needs.output_bytes;
    info.weight_bytes = needs.weight_bytes;
    info.packed_bytes = needs.packed_bytes;
    info.variable_bytes = session->session->variable_bytes();
    CopyOut(info, out_info);
    return absl::OkStatus();
  });
}

npurt_status npurt_session_get_variable(npurt_session* session, const char* name,
                                        npurt_value** out_value, npurt_error** error) {
  return Guard(error, [&]() -> absl::Status {
    NPURT_RETURN_IF_ERROR(WantAll("session", session, "name", name, "out_value", out_value));
    NPURT_ASSIGN_OR_RETURN(const auto variable, session->session->FindVariable(name));
    NPURT_ASSIGN_OR_RETURN(Tensor copy, variable->Get());
    *out_value = NewValue(Value(std::move(copy)));
    return absl::OkStatus();
  });
}

npurt_status npurt_session_set_variable(npurt_session* session, const char* name,
                                        npurt_value* value, npurt_error** error) {
  return Guard(error, [&]() -> absl::Status {
    NPURT_RETURN_IF_ERROR(WantAll("session", session, "name", name, "value", value));
    NPURT_ASSIGN_OR_RETURN(const auto variable, session->session->FindVariable(name));
    if (!value->value.is_tensor())
      return absl::InvalidArgumentError(
          absl::StrCat("variable '", name, "': got a ", value->type, ", want a tensor"));
    NPURT_ASSIGN_OR_RETURN(const Value plain, RowMajor(*value));
    return variable->Set(plain.tensor());
  });
}

npurt_status npurt_session_warm_up(npurt_session* session, uint32_t graph,
                                   const npurt_shape* inputs, size_t input_count,
                                   npurt_error** error) {
  return Guard(error, [&]() -> absl::Status {
    NPURT_RETURN_IF_ERROR(WantSession(session));
    NPURT_ASSIGN_OR_RETURN(const auto shapes, Shapes(inputs, input_count));
    return session->session->WarmUp(static_cast<int>(graph), shapes);
  });
}

npurt_status npurt_session_trim(npurt_session* session, uint64_t* out_bytes, npurt_error** error) {
  return Guard(error, [&]() -> absl::Status {
    NPURT_RETURN_IF_ERROR(WantAll("session", session));
    const std::size_t bytes = session->session->Trim();
    if (out_bytes != nullptr) *out_bytes = bytes;
    return absl::OkStatus();
  });
}

npurt_status npurt_session_lend_thread(npurt_session* session, int64_t deadline_ns,
                                       npurt_cancel* stop, npurt_error** error) {
  return Guard(error, [&]() -> absl::Status {
    NPURT_RETURN_IF_ERROR(WantSession(session));
    if (deadline_ns == 0 && stop == nullptr)
      return absl::InvalidArgumentError("a deadline or a stop must be given");
    const Ref<npurt_session> held(session);
    return session->session->LendThread([&] {
      return npurt_cancel_triggered(stop) != 0 ||
             (deadline_ns != 0 && npurt_now_ns() >= deadline_ns);
    });
  });
}

npurt_status npurt_session_close(npurt_session* session, int64_t deadline_ns, npurt_error** error) {
  return Guard(error, [&]() -> absl::Status {
    NPURT_RETURN_IF_ERROR(WantSession(session));
    return session->session->Close(deadline_ns);
  });
}

npurt_session* npurt_session_retain(npurt_session* session) { return Retain(session); }
void npurt_session_release(npurt_session* session) { Release(session); }
