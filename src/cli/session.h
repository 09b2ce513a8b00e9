// Opening a model: the flags that `run`, `bench`, `inspect` and `test` share, and what they make.
#ifndef NPURT_CLI_SESSION_H_
#define NPURT_CLI_SESSION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "cli/args.h"
#include "cli/handles.h"

namespace npurt::cli {

struct SessionFlags {
  std::vector<std::string> options;  // KEY=VALUE
  std::string device;                // "": the option's default
  std::string profile;               // "": native

  void Declare(Args& args);
  // Options as the flags say, each value checked alone; all that are wrong in one Status.
  Status SetOptions(OwnedOptions* out) const;
  // The same, and checked together.
  Status MakeOptions(OwnedOptions* out) const;
};

// A model compiled into a session of its own; the graph has index 0.
struct OpenSession {
  OwnedModel model;
  OwnedSession session;
  double load_ms = 0;  // from the path to a session that can run
};

// Reads a model without compiling it.
Status Load(const std::string& path, const SessionFlags& flags, OwnedModel* out);

Status Open(const std::string& path, const SessionFlags& flags, OpenSession* out);

// A session of its own for a model that was read; `what` heads its errors.
Status Compile(npurt_model* model, const SessionFlags& flags, const std::string& what,
               OwnedSession* out);

// An input or output of a graph, copied out of the library.
struct ValueInfo {
  std::string name, type;
  npurt_kind kind = NPURT_KIND_NONE;
  npurt_dtype dtype = NPURT_DTYPE_NONE;
  bool has_rank = false;
  std::vector<std::int64_t> dims;      // -1: unknown
  std::vector<std::string> dim_names;  // "" where there is none

  // "tensor(float32) [batch, 3, ?, ?]".
  std::string Describe() const;
};

Status InputsOf(const npurt_session* session, std::vector<ValueInfo>* out);
Status OutputsOf(const npurt_session* session, std::vector<ValueInfo>* out);
Status InputsOf(const npurt_model* model, std::vector<ValueInfo>* out);
Status OutputsOf(const npurt_model* model, std::vector<ValueInfo>* out);

// A report of the library about graph 0 of a session; "" if it has none of this kind.
std::string SessionReport(npurt_session* session, npurt_report kind);
std::string ModelReport(const npurt_model* model, npurt_report kind);
std::string LibraryReport(npurt_report kind);

}  // namespace npurt::cli

#endif  // NPURT_CLI_SESSION_H_
