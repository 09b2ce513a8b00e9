#include "session/session.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compile/precision/precision.h"
#include "options/files.h"
#include "session/run.h"

namespace npurt::session {
namespace {

using options::Option;

// CPUs this process may use, at least one.
int AllowedCpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

memory::Allocator& Inner(const Hooks& hooks) {
  return hooks.allocator != nullptr ? *hooks.allocator : memory::DefaultAllocator();
}

std::vector<PortInfo> Ports(const graph::Graph& graph, const std::vector<graph::ValueId>& values,
                            const std::vector<std::string>* names) {
  std::vector<PortInfo> ports;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const graph::ValueInfo& value = graph.value(values[i]);
    ports.push_back({names != nullptr ? (*names)[i] : value.name, value.type});
  }
  return ports;
}

}  // namespace

Session::Session(const options::Options& options, Hooks hooks)
    : options_(options),
      hooks_(std::move(hooks)),
      allocator_(Inner(hooks_)),
      arenas_(allocator_, static_cast<std::size_t>(options.Int(Option::arena_keep_bytes))),
      process_(getpid()) {
  exec::TeamPool::Acquire();
}

Session::~Session() {
  {
    // Programs hold memory of allocator_.
    MutexLock lock(mutex_);
    graphs_.clear();
  }
  exec::TeamPool::Release();
}

absl::StatusOr<std::shared_ptr<Session>> Session::Create(const options::Options& options,
                                                         Hooks hooks) {
  const options::Resolution resolved = options.Resolve(options::ReadEnvironment());
  NPURT_RETURN_IF_ERROR(resolved.status());
  std::shared_ptr<Session> session(new Session(resolved.options, std::move(hooks)));
  NPURT_RETURN_IF_ERROR(session->Configure());
  return session;
}

absl::Status Session::Configure() {
  NPURT_ASSIGN_OR_RETURN(device_, device::FindDevice(options_.Text(Option::device)));
  const auto allowed = IsaUpTo(options_.Text(Option::max_isa));
  if (!allowed.has_value()) return absl::InternalError("option max_isa: unknown tier");
  isa_ = DetectedIsa() & *allowed;
  for (absl::string_view name : options_.List(Option::disable_isa)) {
    const auto removed = IsaNamed(name);
    if (removed.has_value()) isa_ = WithoutIsa(isa_, *removed);
  }
  threads_ = static_cast<int>(options_.Int(Option::threads));
  if (threads_ == 0)
    threads_ = hooks_.executor != nullptr ? hooks_.executor->Concurrency() : AllowedCpus();
  if (device_->capabilities().max_threads > 0)
    threads_ = std::min(threads_, device_->capabilities().max_threads);
  threads_ = std::clamp(threads_, 1, exec::TeamPool::kMaxWidth);
  compile_options_.device = device_;
  compile_options_.participants = threads_;
  compile_options_.plan_cache_bytes =
      static_cast<std::size_t>(options_.Int(Option::plan_cache_bytes));
  compile_options_.allocator = &allocator_;
  compile_options_.packed_allocator = hooks_.allocator;
  compile_options_.isa = isa_;
  compile_options_.same_bits_on_every_isa = options_.Text(Option::reproducibility) == "isa";
  compile_options_.fusion = options_.Bool(Option::fusion);
  NPURT_RETURN_IF_ERROR(ReadFusionSwitch());
  NPURT_ASSIGN_OR_RETURN(compile::precision::Settings precision,
                         compile::precision::ReadSettings(options_));
  compile_options_.precision =
      std::make_shared<const compile::precision::Settings>(std::move(precision));
  compile_options_.constant_folding = options_.Bool(Option::constant_folding);
  compile_options_.streams_per_engine = static_cast<int>(options_.Int(Option::inter_op_streams));
  compile_options_.random_seed = static_cast<std::uint64_t>(options_.Int(Option::random_seed));
  return absl::OkStatus();
}

absl::Status Session::ReadFusionSwitch() {
  const std::string path(options_.Text(Option::fusion_switch_file));
  if (path.empty()) return absl::OkStatus();
  NPURT_ASSIGN_OR_RETURN(const std::string text, options::ReadTextFile(path));
  NPURT_ASSIGN_OR_RETURN(const options::FusionSwitch file, options::ParseFusionSwitch(text, path));
  for (const char* rule : {
#define NPURT_FUSION_RULE(name) #name,
#include "options/fusion_rules.inc"
#undef NPURT_FUSION_RULE
       })
    if (!file.IsOn(rule)) compile_options_.passes_off.insert(rule);
  return absl::OkStatus();
}

absl::Status Session::AddVariables(const graph::Graph& graph,
                                   compile::CompileOptions* compile_options) {
  MutexLock lock(mutex_);
  for (const graph::Variable& declared : graph.variables()) {
    auto made = std::make_shared<Variable>(declared.name, declared.type);
    const std::shared_ptr<Variable>& variable =
        variables_.try_emplace(declared.name, made).first->second;
    if (variable->type_text() != made->type_text())
      return absl::InvalidArgumentError(absl::StrCat("variable '", declared.name, "' is ",
                                                     made->type_text(), " here and ",
                                                     variable->type_text(), " in another graph"));
    if (declared.initial.defined() && !variable->has_value())
      NPURT_RETURN_IF_ERROR(variable->Set(declared.initial));
    compile_options->variables[declared.name] = variable;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<Variable>> Session::FindVariable(const std::string& name) const {
  MutexLock lock(mutex_);
  const auto found = variables_.find(name);
  if (found == variables_.end())
    return absl::NotFoundError(absl::StrCat("the session has no variable '", name, "'"));
  return found->second;
}

std::size_t Session::variable_bytes() const {
  MutexLock lock(mutex_);
  std::size_t bytes = 0;
  for (const auto& [name, variable] : variables_) bytes += variable->bytes();
  return bytes;
}

absl::StatusOr<int> Session::AddGraph(std::shared_ptr<const graph::Graph> source,
                                      const std::string& name, HashSet<std::string> keep,
                                      const std::atomic<bool>* cancel) {
  if (closing_.load(std::memory_order_acquire))
    return absl::FailedPreconditionError("the session is closed");
  for (const std::string& kept : keep)
    if (source->Find(kept) == graph::kNone)
      return absl::NotFoundError(absl::StrCat("keep: the graph has no value '", kept, "'"));
  auto entry = std::make_unique<SessionGraph>();
  compile::CompileOptions compile_options = compile_options_;
  compile_options.keep = std::move(keep);
  compile_options.cancel = cancel;
  NPURT_RETURN_IF_ERROR(AddVariables(*source, &compile_options));
  NPURT_ASSIGN_OR_RETURN(entry->compiled, compile::Compile(*source, compile_options));
  entry->inputs = Ports(*source, source->inputs(), nullptr);
  entry->outputs = Ports(*source, source->outputs(), &source->output_names());
  entry->plans = std::make_unique<compile::PlanCache>(
      entry->compiled.binder, threads_,
      static_cast<std::size_t>(options_.Int(Option::plan_cache_bytes)));
  entry->name = name.empty() ? source->name : name;
  entry->source = std::move(source);

  MutexLock lock(mutex_);
  const auto taken = [&](const std::string& wanted) NPURT_NO_THREAD_SAFETY_ANALYSIS {
    return std::any_of(graphs_.begin(), graphs_.end(),
                       [&](const auto& graph) { return graph->name == wanted; });
  };
  if (!name.empty() && taken(name))
    return absl::AlreadyExistsError(absl::StrCat("the session has a graph '", name, "'"));
  const std::string base = entry->name;
  for (int i = 2; taken(entry->name); ++i) entry->name = absl::StrCat(base, "_", i);
  allocator_.Count(memory::Kind::kPacked, entry->compiled.program->packed_bytes);
  graphs_.push_back(std::move(entry));
  return static_cast<int>(graphs_.size()) - 1;
}

int Session::graph_count() const {
  MutexLock lock(mutex_);
  return static_cast<int>(graphs_.size());
}

absl::StatusOr<int> Session::FindGraph(absl::string_view name) const {
  MutexLock lock(mutex_);
  for (std::size_t i = 0; i < graphs_.size(); ++i)
    if (graphs_[i]->name == name) return static_cast<int>(i);
  return absl::NotFoundError(absl::StrCat("the session has no graph '", name, "'"));
}

absl::StatusOr<const SessionGraph*> Session::GraphAt(int index) const {
  MutexLock lock(mutex_);
  if (index < 0 || index >= static_cast<int>(graphs_.size()))
    return absl::OutOfRangeError(
        absl::StrCat("graph ", index, ": the session has ", graphs_.size(), " graphs"));
  return graphs_[index].get();
}

absl::StatusOr<std::unique_ptr<Run>> Session::NewRun(int graph) {
  NPURT_ASSIGN_OR_RETURN(const SessionGraph* entry, GraphAt(graph));
  return std::unique_ptr<Run>(new Run(shared_from_this(), entry));
}

absl::StatusOr<MemoryNeeds> Session::Memory(
    int graph, absl::Span<const absl::Span<const std::int64_t>> shapes) {
  NPURT_ASSIGN_OR_RETURN(const SessionGraph* entry, GraphAt(graph));
  const exec::Program& program = *entry->compiled.program;
  if (shapes.size() != program.inputs.size())
    return absl::InvalidArgumentError(
        absl::StrCat("got ", shapes.size(), " input shapes, want ", program.inputs.size()));
  NPURT_ASSIGN_OR_RETURN(const auto plan, entry->plans->MakeExact(shapes));
  MemoryNeeds needs;
  needs.exact = plan->exact;
  needs.arena_bytes = plan->arena_bytes;
  needs.arena_lower_bound_bytes = plan->lower_bound_bytes;
  for (const exec::ProgramPort& output : program.outputs)
    needs.output_bytes += plan->values[output.value].bytes;
  needs.weight_bytes = program.weight_bytes;
  needs.packed_bytes = program.packed_bytes;
  return needs;
}

absl::Status Session::WarmUp(int graph, absl::Span<const absl::Span<const std::int64_t>> shapes) {
  NPURT_ASSIGN_OR_RETURN(const SessionGraph* entry, GraphAt(graph));
  NPURT_ASSIGN_OR_RETURN(std::unique_ptr<Run> run, NewRun(graph));
  if (!shapes.empty() && shapes.size() != entry->inputs.size())
    return absl::InvalidArgumentError(
        absl::StrCat("got ", shapes.size(), " input shapes, want ", entry->inputs.size()));
  for (std::size_t i = 0; i < entry->inputs.size(); ++i) {
    const PortInfo& input = entry->inputs[i];
    if (input.type.kind != ValueKind::kTensor)
      return absl::UnimplementedError(
          absl::StrCat("input '", input.name, "' is no tensor: zeros of it are not defined"));
    Dims dims;
    if (!shapes.empty()) {
      dims.assign(shapes[i].begin(), shapes[i].end());
    } else if (input.type.has_rank && AllConstant(input.type.dims)) {
      dims = ToDims(input.type.dims);
    } else {
      return absl::InvalidArgumentError(absl::StrCat("input '", input.name, "' has shape ",
                                                     input.type.ToString(),
                                                     ": say which dimensions to warm up"));
    }
    NPURT_ASSIGN_OR_RETURN(Tensor zeros, Tensor::Create(input.type.dtype, dims));
    NPURT_RETURN_IF_ERROR(run->BindInput(i, Value(std::move(zeros))));
  }
  for (const exec::Step& step : entry->compiled.program->steps)
    if (step.writes_state) return absl::OkStatus();
  return run->Execute({});
}

std::size_t Session::Trim() {
  std::size_t bytes = arenas_.Trim();
  MutexLock lock(mutex_);
  for (const auto& graph : graphs_) bytes += graph->plans->Trim();
  return bytes;
}

absl::Status Session::Enter() {
  // Counted first, so that Close sees every run that got past the check. Both sides write one and
  // then read the other, which only a total order keeps from missing each other.
  running_.fetch_add(1, std::memory_order_seq_cst);
  if (closing_.load(std::memory_order_seq_cst)) {
    Leave();
    return absl::FailedPreconditionError("the session is closed");
  }
  return absl::OkStatus();
}

void Session::Leave() {
  if (running_.fetch_sub(1, std::memory_order_acq_rel) == 1 &&
      closing_.load(std::memory_order_acquire)) {
    MutexLock lock(mutex_);
    all_left_.SignalAll();
  }
}

absl::Status Session::Close(std::int64_t deadline_ns) {
  closing_.store(true, std::memory_order_seq_cst);
  const auto deadline =
      std::chrono::steady_clock::time_point(std::chrono::nanoseconds(deadline_ns));
  MutexLock lock(mutex_);
  while (running_.load(std::memory_order_seq_cst) > 0) {
    // A run that leaves between the check and the wait finds closing_ set and signals under the
    // lock.
    if (deadline_ns == 0)
      all_left_.Wait(mutex_);
    else if (!all_left_.WaitUntil(mutex_, deadline))
      return absl::DeadlineExceededError(
          absl::StrCat("the session is closed, but ", running_.load(), " runs are still going"));
  }
  return absl::OkStatus();
}

absl::Status Session::LendThread(absl::FunctionRef<bool()> until) {
  if (closing_.load(std::memory_order_acquire))
    return absl::FailedPreconditionError("the session is closed");
  exec::TeamPool::LendThread(this,
                             [&] { return closing_.load(std::memory_order_relaxed) || until(); });
  return absl::OkStatus();
}

bool Session::InForkedChild() const { return getpid() != process_; }

}  // namespace npurt::session
