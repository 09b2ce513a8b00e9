// Comparison: one model in two configurations, value by value.
//
// What is compared are the values of the model's own graph that exist in both configurations (what
// fusion swallowed exists in neither step) and the graph's outputs; values inside branches and loop
// bodies are not seen. Of a value that exists in several types (casts keep its name) the one counts
// that the node was to make. Both configurations run on the same inputs. Values of A are kept while
// B runs; what does not fit into `keep_bytes` is compared in further pairs of runs, so that memory
// stays bounded. A is what is right, B is measured.
#ifndef NPURT_CLI_COMPARISON_H_
#define NPURT_CLI_COMPARISON_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "cli/distance.h"
#include "cli/handles.h"

namespace npurt::cli {

struct ComparedValue {
  std::size_t index = 0;  // in topological order, of all values of the graph
  std::string name;
  std::string node, op;        // what made it; "" for an input that is an output
  std::string type_a, type_b;  // "float16 [1, 64]"
  bool is_output = false;
  int coarseness = -1;  // of the coarsest floating type it was computed with
  Distance distance;
  Limits limits;
  double excess = 0;
};

struct Comparison {
  std::vector<ComparedValue> values;       // in topological order
  std::size_t graph_values = 0;            // that the graph has
  std::size_t hidden_a = 0, hidden_b = 0;  // of these: that A or B does not have
  std::size_t runs = 0;                    // of each configuration

  bool within() const;
  const ComparedValue* first_beyond() const;  // null if all are within
  // The values with the greatest excess, worst first; none that are equal.
  std::vector<const ComparedValue*> Worst(std::size_t count) const;
};

struct ComparisonSettings {
  const Limits* limits = nullptr;  // null: those of the types, see DefaultLimits
  std::size_t keep_bytes = std::size_t{1} << 30;
  bool outputs_only = false;
};

// How far two values lie apart that may be sequences or maps; `rounded_to` as for arrays.
Status MeasureValues(npurt_value* a, npurt_value* b, npurt_dtype rounded_to, Distance* out);

// REQUIRES: both sessions have this model as graph 0; `inputs` are all of its inputs.
Status Compare(const npurt_model* model, npurt_session* a, npurt_session* b,
               const std::vector<OwnedValue>& inputs, const ComparisonSettings& settings,
               Comparison* out);

}  // namespace npurt::cli

#endif  // NPURT_CLI_COMPARISON_H_
