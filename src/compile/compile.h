// Compile: turns a graph into a Program: infer and fold, rewrite, place, fuse, choose kernels, pack
// weights, assign streams.
//
// The passes are a table (passes.cc): name, function, the option that switches it. Each takes the
// graph and changes it; none knows of the others. What they did is in the report, with times.
//
// Thread safety: a pure function of its arguments; the graph is cloned first.
#ifndef NPURT_COMPILE_COMPILE_H_
#define NPURT_COMPILE_COMPILE_H_

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "base/hash_map.h"
#include "base/cpu_isa.h"
#include "base/status.h"
#include "compile/bind.h"
#include "device/device.h"
#include "exec/program.h"
#include "graph/graph.h"
#include "memory/allocator.h"

namespace npurt::compile {

namespace precision {
struct Report;
struct Settings;
}  // namespace precision

struct CompileOptions {
  const device::Device* device = nullptr;
  memory::Allocator* allocator = nullptr;  // for what runs allocate; outlives the program
  // For packed weights, which programs of several sessions share; null: the default.
  std::shared_ptr<memory::Allocator> packed_allocator;
  IsaSet isa = 0;
  bool same_bits_on_every_isa = false;
  bool fusion = true;
  HashSet<std::string> passes_off;  // names of options/fusion_rules.inc
  bool constant_folding = true;
  int streams_per_engine = 0;  // 0: one stream for everything
  std::uint64_t random_seed = 0;
  HashSet<std::string> keep;  // values that must stay observable
  const std::atomic<bool>* cancel = nullptr;  // asked between passes
  // What the nodes compute in; null: as the graph says, and no report.
  std::shared_ptr<const precision::Settings> precision;
  // Of a subgraph: where it is, and the report of the graph around it.
  std::string path;
  std::vector<precision::Report>* precision_reports = nullptr;
  // For the plans of subgraphs.
  int participants = 1;
  std::size_t plan_cache_bytes = 0;
  // The session's variables, by name; every variable of the graph is there.
  HashMap<std::string, std::shared_ptr<Resource>> variables;
  // A subgraph: its inputs and outputs are values of the device.
  bool inside = false;
};

struct PassReport {
  std::string name;
  int changes = 0;  // nodes folded, removed or merged
  double ms = 0;
};

struct CompileReport {
  std::vector<PassReport> passes;
  // Of the graph and its subgraphs; empty in a subgraph.
  std::shared_ptr<const std::vector<precision::Report>> precision;
  int nodes_before = 0, steps_after = 0;
};

struct Compiled {
  std::shared_ptr<const exec::Program> program;
  const Binder* binder = nullptr;  // owned by the program
  CompileReport report;
};

absl::StatusOr<Compiled> Compile(const graph::Graph& graph, const CompileOptions& options);

// --- the passes; each returns how much it changed --------------------------------------------------

struct PassContext {
  graph::Graph& graph;
  const CompileOptions& options;
  // Options speak of this node's types: it is not taken into another one before they are chosen.
  bool Named(const graph::Node& node) const;
  // It computes in double precision, alone.
  bool Precise(const graph::Node& node) const;
  bool MayVanish(graph::ValueId value) const {
    return !graph.IsOutput(value) && (options.keep.empty() ||
                                      !options.keep.contains(graph.value(value).name));
  }
};
using PassFn = absl::StatusOr<int> (*)(PassContext& context);

absl::StatusOr<int> FoldConstants(PassContext& context);
absl::StatusOr<int> RemoveNoOps(PassContext& context);
absl::StatusOr<int> RemoveUnused(PassContext& context);
absl::StatusOr<int> MergeEqualNodes(PassContext& context);
absl::StatusOr<int> MergeTransposes(PassContext& context);
absl::StatusOr<int> WidenHalf(PassContext& context);
absl::StatusOr<int> RoundHalf(PassContext& context);
absl::StatusOr<int> ChoosePrecision(PassContext& context);
absl::StatusOr<int> FoldChannelScale(PassContext& context);  // BatchNormalization into Conv
absl::StatusOr<int> FuseAttention(PassContext& context);
absl::StatusOr<int> FuseNorms(PassContext& context);
absl::StatusOr<int> FuseGelu(PassContext& context);
absl::StatusOr<int> FuseQuantized(PassContext& context);  // before constants are folded
absl::StatusOr<int> FuseEpilogues(PassContext& context);
absl::StatusOr<int> ChooseLayouts(PassContext& context);  // channels last
absl::StatusOr<int> FuseElementwiseChains(PassContext& context);

// Compiles a subgraph of `node` with what `outer` knows of the values that it captures. If it cannot be
// right for these types (a branch that is not taken) the result has an error instead of a program.
absl::StatusOr<std::shared_ptr<const exec::Callee>> CompileSubgraph(
    const graph::Graph& outer, const graph::Node& node, const std::string& attribute,
    const graph::Graph& body, const CompileOptions& options);

// The last pass: graph to program. Takes the bytes of constants that have been packed out of the graph.
absl::StatusOr<Compiled> Lower(graph::Graph& graph, const CompileOptions& options);

}  // namespace npurt::compile

#endif  // NPURT_COMPILE_COMPILE_H_
