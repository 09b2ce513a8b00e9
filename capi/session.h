// Handles of models, sessions, runs and futures.
//
// A run keeps its session alive, a submitted run is kept alive by what executes it.
//
// Thread safety: as npurt.h says for each type.
#ifndef NPURT_CAPI_SESSION_H_
#define NPURT_CAPI_SESSION_H_

#include <atomic>
#include <deque>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "graph/graph.h"
#include "handles.h"
#include "session/run.h"
#include "session/session.h"
#include "submitter.h"

struct npurt_model {
  std::atomic<int> refs{1};
  std::shared_ptr<const npurt::graph::Graph> graph;
  std::vector<npurt::capi::InfoStorage> inputs, outputs;
};

struct npurt_session {
  // What C may ask of a graph, made when it is added.
  struct Ports {
    std::vector<npurt::capi::InfoStorage> inputs, outputs;
  };

  std::atomic<int> refs{1};
  npurt::capi::Ref<npurt_host> host;
  std::shared_ptr<npurt::session::Session> session;
  std::shared_ptr<npurt::capi::Submitter> submitter;
  npurt::Mutex adding;  // held while a graph is compiled; taken before `mutex`
  mutable npurt::Mutex mutex;
  // Elements stay where they are; one per graph of the session.
  std::deque<Ports> ports NPURT_GUARDED_BY(mutex);
};

namespace npurt::capi {

std::vector<InfoStorage> InputsOf(const graph::Graph& graph);
std::vector<InfoStorage> OutputsOf(const graph::Graph& graph);

// Null is INVALID_ARGUMENT; in a child of the process that made the session FAILED_PRECONDITION.
absl::Status WantSession(const npurt_session* session);

// A line for the host's log, if it wants lines of this level.
void Log(const npurt_host* host, npurt_log_level level, const char* where, const std::string& text);

}  // namespace npurt::capi

#endif  // NPURT_CAPI_SESSION_H_
