// ChoosePrecision: decides what each node computes in, and makes the graph do so.
#include "compile/compile.h"
#include "compile/precision/precision.h"

namespace npurt::compile {

bool PassContext::Named(const graph::Node& node) const {
  return options.precision != nullptr && options.precision->Names(node);
}

bool PassContext::Precise(const graph::Node& node) const {
  return options.precision != nullptr && options.precision->IsPrecise(node);
}

absl::StatusOr<int> ChoosePrecision(PassContext& context) {
  const precision::Settings& settings = *context.options.precision;
  NPURT_ASSIGN_OR_RETURN(const precision::Plan plan, precision::Decide(context.graph, settings));
  precision::Report report = precision::Describe(context.graph, plan);
  report.path = context.options.path;
  report.casts = precision::Apply(plan, settings, &context.graph);
  int changes = 0;
  for (const precision::NodePlan& node : plan.nodes) changes += node.changes();
  context.options.precision_reports->push_back(std::move(report));
  return changes;
}

}  // namespace npurt::compile
