// Describe: a plan by names, for reports.
#include "absl/strings/str_cat.h"
#include "compile/precision/precision.h"
#include "device/device.h"

namespace npurt::compile::precision {
namespace {

std::vector<Report::Operand> Operands(const graph::Graph& graph,
                                      const std::vector<OperandPlan>& operands) {
  std::vector<Report::Operand> rows;
  for (const OperandPlan& operand : operands)
    rows.push_back({operand.value == graph::kNone ? "" : graph.value(operand.value).name,
                    operand.original, operand.chosen, operand.why});
  return rows;
}

void DescribeInside(const graph::Graph& graph, const std::string& path,
                    std::vector<Report>* reports) {
  const auto plan = Decide(graph, Settings());
  if (!plan.ok()) return;  // a cycle: compiling has said so
  reports->push_back(Describe(graph, *plan));
  reports->back().path = path;
  for (graph::NodeId id = 0; id < graph.node_count(); ++id) {
    if (graph.node(id).removed) continue;
    for (const Attribute& attribute : graph.node(id).attributes.all())
      if (const auto* sub = std::get_if<std::shared_ptr<const Subgraph>>(&attribute.value))
        DescribeInside(static_cast<const graph::Graph&>(**sub),
                       absl::StrCat(path, path.empty() ? "" : "/", NodeName(graph, graph.node(id)),
                                    "/", attribute.name),
                       reports);
  }
}

}  // namespace

std::vector<Report> DescribeOrigin(const graph::Graph& graph) {
  std::vector<Report> reports;
  DescribeInside(graph, "", &reports);
  return reports;
}

Report Describe(const graph::Graph& graph, const Plan& plan) {
  static constexpr const char* kLists[] = {"gray", "white", "black"};
  Report report;
  for (const NodePlan& from : plan.nodes) {
    const graph::Node& node = graph.node(from.node);
    Report::Node row;
    row.name = NodeName(graph, node);
    row.op = node.original_op;
    row.type = node.op->name;
    row.origins = node.origins;
    row.list = kLists[static_cast<int>(from.list)];
    row.engine = std::string(device::EngineName(from.engine));
    row.rule = from.rule;
    row.producer = from.producer;
    row.warning = from.warning;
    row.inputs = Operands(graph, from.inputs);
    row.outputs = Operands(graph, from.outputs);
    report.nodes.push_back(std::move(row));
  }
  return report;
}

}  // namespace npurt::compile::precision
