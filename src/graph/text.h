// Text: a graph as text that people can read and the parser reads back, for dumps, tests and
// fuzzers.
//
//   graph "tiny" {
//     input %x : float32[batch, 4]
//     const %w = float32[4, 2] {1, 0, 0, 1, 0.5, 0, 0, 0.5}
//     const %table = float32[512, 64] #8c2f7a6b5d4e3f21
//     %h = MatMul(%x, %w) name "dense" origins ["dense", "cast_1"]      # float32[batch, 2]
//     @1 %y, _ = TopK(%h, %k) [axis = -1, largest = 1] after @0         # float32[batch, 1]
//     output %y "y"
//   }
//   blob #8c2f7a6b5d4e3f21 00000000…
//
// One statement a line; '#' after a blank starts a comment (types of node outputs are comments: the
// parser infers them). Names that are no plain words are quoted; `_` is an operand that is absent.
// Floats always have a point or an exponent, so 1 and 1.0 are different attributes. `?1` is a
// dimension that only a run tells. Large constants stand at the end as hexadecimal, or, in dumps,
// not at all: then only their hash is there, and the text cannot be read back. Printing what was
// parsed gives the same text.
//
// Thread safety: pure functions.
#ifndef NPURT_GRAPH_TEXT_H_
#define NPURT_GRAPH_TEXT_H_

#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "graph/graph.h"

namespace npurt::graph {

struct TextOptions {
  bool blobs = true;                  // false: a dump
  std::int64_t inline_elements = 16;  // of the constants that stand where they are used
};

std::string ToText(const Graph& graph, const TextOptions& options = {});

// What hostile text may ask for.
struct TextLimits {
  std::size_t max_bytes = std::size_t{1} << 31;
  int max_nodes = 1'000'000;
  int max_depth = 24;  // of graphs in graphs, types in types, expressions in expressions
};

// INVALID_ARGUMENT with line and column, RESOURCE_EXHAUSTED with the limit.
absl::StatusOr<std::unique_ptr<Graph>> FromText(absl::string_view text,
                                                const TextLimits& limits = {});

}  // namespace npurt::graph

#endif  // NPURT_GRAPH_TEXT_H_
