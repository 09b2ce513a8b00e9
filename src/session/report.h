// Reports: what a session has made of a graph, as JSON documents. Members are only added.
//
// Thread safety: any thread.
#ifndef NPURT_SESSION_REPORT_H_
#define NPURT_SESSION_REPORT_H_

#include <string>

#include "base/status.h"
#include "session/session.h"

namespace npurt::session {

// {"nodes": n, "operators": {type: count}} of a graph, by the framework's operator names.
std::string OperatorsJson(const graph::Graph& graph);
// Inputs, outputs and nodes of a graph with the types that are known.
std::string GraphJson(const graph::Graph& graph);
// Bytes of the constants of a graph.
std::string ModelMemoryJson(const graph::Graph& graph);
// Each pass: what it changed, milliseconds.
std::string CompileJson(const SessionGraph& graph);
// Streams, events and steps; with sizes and offsets of the plan used last, or of the graph's own shapes
// if all are known.
// "precision" is {"option", "mode", "warnings", "nodes": [{"graph", "name", "op", "type", "list", "engine",
// "rule", "producer", "warning"?, "origins", "inputs", "outputs": [{"name", "original", "chosen",
// "why"}]}], "casts": [{"graph", "value", "from", "to", "producer", "consumers", "constant"}]}.
std::string PlanJson(const SessionGraph& graph, const compile::precision::Settings& settings);
// Bytes by owner.
std::string MemoryJson(Session& session, const SessionGraph& graph);
std::string CountersJson(const Session& session, const SessionGraph& graph);

}  // namespace npurt::session

#endif  // NPURT_SESSION_REPORT_H_
