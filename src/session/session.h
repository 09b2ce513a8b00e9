// Session: compiled graphs, their plans, arenas and threads, and the runs that use them.
//
// A session owns everything in an order that makes destruction safe: the pool of threads, the
// allocator, the arenas, then graphs (program, plan cache). A Run is one prepared execution: it keeps
// its bindings and its context, so that executing again looks nothing up; it holds the session alive.
//
// Thread safety: Session: any thread, any time. Run: one thread at a time; different runs of one
// session at the same time.
#ifndef NPURT_SESSION_SESSION_H_
#define NPURT_SESSION_SESSION_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/hash_map.h"
#include "base/mutex.h"
#include "base/status.h"
#include "base/tensor.h"
#include "compile/compile.h"
#include "compile/plan_cache.h"
#include "exec/executor.h"
#include "absl/functional/function_ref.h"
#include "exec/team.h"
#include "graph/graph.h"
#include "memory/allocator.h"
#include "memory/arena.h"
#include "options/options.h"
#include "session/variable.h"

namespace npurt::session {

// What the host provides; null members: the library's own.
struct Hooks {
  std::shared_ptr<memory::Allocator> allocator;
  std::shared_ptr<exec::Executor> executor;
};

struct PortInfo {
  std::string name;
  ValueType type;
};

struct MemoryNeeds {
  bool exact = true;
  std::size_t arena_bytes = 0, arena_lower_bound_bytes = 0;
  std::size_t output_bytes = 0;
  std::size_t weight_bytes = 0, packed_bytes = 0;
};

struct Counters {
  std::atomic<std::int64_t> runs{0}, failed_runs{0};  // ended well, and not
};

// One graph of a session, compiled.
struct SessionGraph {
  std::string name;
  std::shared_ptr<const graph::Graph> source;
  compile::Compiled compiled;
  std::vector<PortInfo> inputs, outputs;  // as the caller's graph declares them
  std::unique_ptr<compile::PlanCache> plans;
};

class Run;

class Session : public std::enable_shared_from_this<Session> {
 public:
  // Errors: options that exclude each other; a device that does not exist.
  static absl::StatusOr<std::shared_ptr<Session>> Create(const options::Options& options,
                                                         Hooks hooks);
  ~Session();

  // Compiles `source` into the session. ALREADY_EXISTS: the name (empty: the graph's own, made unique).
  absl::StatusOr<int> AddGraph(std::shared_ptr<const graph::Graph> source, const std::string& name,
                               HashSet<std::string> keep,
                               const std::atomic<bool>* cancel = nullptr);
  int graph_count() const;
  // NOT_FOUND.
  absl::StatusOr<int> FindGraph(absl::string_view name) const;
  // The variable of this name. NOT_FOUND.
  absl::StatusOr<std::shared_ptr<Variable>> FindVariable(const std::string& name) const;
  std::size_t variable_bytes() const;
  // OUT_OF_RANGE. Lives as long as the session.
  absl::StatusOr<const SessionGraph*> GraphAt(int index) const;

  absl::StatusOr<std::unique_ptr<Run>> NewRun(int graph);

  // What a run with inputs of these shapes takes.
  absl::StatusOr<MemoryNeeds> Memory(int graph,
                                     absl::Span<const absl::Span<const std::int64_t>> shapes);
  // Plans, allocates and runs once on zeros (unless the graph writes state). No shapes: all
  // dimensions must be known.
  absl::Status WarmUp(int graph, absl::Span<const absl::Span<const std::int64_t>> shapes);
  // Frees idle arenas and plans; returns the bytes.
  std::size_t Trim();
  // Refuses new runs, cancels those going on and waits for them until `deadline_ns` (0: without
  // end). DEADLINE_EXCEEDED: closed, but runs are still going.
  absl::Status Close(std::int64_t deadline_ns);
  // The calling thread helps runs of this session until `until()` or the session closes.
  absl::Status LendThread(absl::FunctionRef<bool()> until);

  const options::Options& options() const { return options_; }
  const Counters& counters() const { return counters_; }
  memory::CountingAllocator& allocator() { return allocator_; }
  const device::Device& device() const { return *device_; }
  int threads() const { return threads_; }
  IsaSet isa() const { return isa_; }
  const compile::precision::Settings& precision() const { return *compile_options_.precision; }
  // True in a child of the process that made the session: its threads are not there.
  bool InForkedChild() const;

 private:
  friend class Run;
  Session(const options::Options& options, Hooks hooks);
  absl::Status Configure();
  // Which passes fusion_switch_file leaves out.
  absl::Status ReadFusionSwitch();
  // The variables that `graph` declares: those of this name that there are, or new ones.
  absl::Status AddVariables(const graph::Graph& graph, compile::CompileOptions* compile_options);
  // Counts a run that begins; FAILED_PRECONDITION once the session is closed.
  absl::Status Enter();
  void Leave();

  const options::Options options_;
  const Hooks hooks_;
  memory::CountingAllocator allocator_;
  memory::ArenaPool arenas_;
  const device::Device* device_ = nullptr;
  IsaSet isa_ = 0;
  int threads_ = 1;
  int process_ = 0;
  compile::CompileOptions compile_options_;
  Counters counters_;

  std::atomic<bool> closing_{false};
  mutable Mutex mutex_;
  CondVar all_left_;
  std::atomic<int> running_{0};
  std::vector<std::unique_ptr<SessionGraph>> graphs_ NPURT_GUARDED_BY(mutex_);
  HashMap<std::string, std::shared_ptr<Variable>> variables_ NPURT_GUARDED_BY(mutex_);
};

}  // namespace npurt::session

#endif  // NPURT_SESSION_SESSION_H_
