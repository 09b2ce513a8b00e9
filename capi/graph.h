// The builder's handle, which models are made from.
//
// Thread safety: one thread at a time per handle.
#ifndef NPURT_CAPI_GRAPH_H_
#define NPURT_CAPI_GRAPH_H_

#include <deque>
#include <memory>

#include "graph/graph.h"
#include "operator.h"

struct npurt_graph {
  std::atomic<int> refs{1};
  npurt::capi::Ref<npurt_graph> outer;  // of an inner graph, which shares its table of dimensions
  npurt::graph::Graph graph;
  std::shared_ptr<const npurt::ops::HostOperators> host;
  std::deque<npurt::capi::InfoStorage> infos;  // what value_info pointed to since the last change
};

#endif  // NPURT_CAPI_GRAPH_H_
