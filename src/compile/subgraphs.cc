// CompileSubgraph: a branch or a loop's body becomes a program of its own.
//
// The subgraph has a table of dimensions of its own then: whatever dimension of the outer graph a
// captured value has becomes a symbol that the frame's inputs decide, the same one wherever the
// outer graph had the same expression. What the outer graph found to be constant is a constant
// inside.
#include <utility>

#include "absl/strings/str_cat.h"
#include "compile/compile.h"
#include "compile/plan_cache.h"
#include "compile/precision/precision.h"

namespace npurt::compile {
namespace {

using graph::Graph;
using graph::kNone;
using graph::Node;
using graph::ValueId;
using graph::ValueInfo;

class Symbols {
 public:
  explicit Symbols(Graph* graph) : graph_(*graph) {}

  // Symbols and numbers stay; an expression, or what a step decides, becomes a symbol.
  void Simplify(ValueType* type, const std::string& name) {
    for (std::size_t i = 0; i < type->dims.size(); ++i) {
      Dim& dim = type->dims[i];
      if (dim.is_constant()) {
        // Not a number after all (kInvalidDim): any.
        if (dim.value() < 0) dim = Fresh(name, i);
        continue;
      }
      auto [it, added] = symbols_.try_emplace(dim.node());
      if (added)
        it->second = dim.node()->op == DimOp::kInput ? graph_.dims()->Symbol(dim.node()->name)
                                                     : Fresh(name, i);
      dim = it->second;
    }
  }

 private:
  Dim Fresh(const std::string& name, std::size_t i) {
    return graph_.dims()->Symbol(absl::StrCat(name, "_dim_", i, "#", graph_.dims()->size()));
  }

  Graph& graph_;
  HashMap<const DimNode*, Dim> symbols_;
};

absl::Status Specialise(const Graph& outer, const Node& node, Graph* body) {
  const std::size_t captures = body->captures().size();
  if (captures > node.inputs.size())
    return absl::InvalidArgumentError("captures more than the node has inputs");
  if (!body->variables().empty())
    return absl::UnimplementedError(absl::StrCat("variable '", body->variables()[0].name,
                                                 "' is declared in a subgraph; declare it in the "
                                                 "graph around it and capture it"));
  Symbols inner(body), around(body);
  for (ValueId id : body->inputs()) {
    ValueType type = body->value(id).type;
    inner.Simplify(&type, body->value(id).name);
    body->SetGraphInputType(id, std::move(type));
  }
  for (std::size_t i = 0; i < captures; ++i) {
    const ValueId id = body->captures()[i];
    const ValueId operand = node.inputs[node.inputs.size() - captures + i];
    if (operand == kNone) return absl::InvalidArgumentError("captures an absent input");
    const ValueInfo& value = outer.value(operand);
    ValueType type = value.type;
    around.Simplify(&type, body->value(id).name);
    body->SetGraphInputType(id, std::move(type));
    body->mutable_value(id).integers.reset();
    if (!value.is_constant() || body->value(id).uses.empty()) continue;
    NPURT_ASSIGN_OR_RETURN(const ValueId constant, body->AddConstant("", value.constant));
    body->ReplaceUses(id, constant);
  }
  return body->InferAgain();
}

}  // namespace

absl::StatusOr<std::shared_ptr<const exec::Callee>> CompileSubgraph(const Graph& outer,
                                                                    const Node& node,
                                                                    const std::string& attribute,
                                                                    const Graph& source,
                                                                    const CompileOptions& options) {
  auto callee = std::make_shared<exec::Callee>();
  callee->name = attribute;
  const std::unique_ptr<Graph> body = source.Clone();
  CompileOptions inside = options;
  inside.inside = true;
  inside.path = absl::StrCat(options.path, options.path.empty() ? "" : "/",
                             precision::NodeName(outer, node), "/", attribute);
  absl::Status status = Specialise(outer, node, body.get());
  if (status.ok()) {
    auto compiled = Compile(*body, inside);
    if (compiled.ok()) {
      callee->program = std::move(compiled->program);
      callee->planner = std::make_unique<PlanCache>(compiled->binder, options.participants,
                                                    options.plan_cache_bytes);
      return callee;
    }
    status = compiled.status();
  }
  // Shapes that do not fit: only a run that comes here has to say so.
  if (status.code() != absl::StatusCode::kInvalidArgument) return status;
  callee->error = std::move(status);
  return callee;
}

}  // namespace npurt::compile
