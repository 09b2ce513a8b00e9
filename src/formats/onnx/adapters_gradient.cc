// Gradient of ai.onnx.preview.training: the derivatives of `y` by the tensors `xs`, as nodes that
// walk the graph backwards from y. An operator without a rule below is refused.
#include <algorithm>
#include <cstring>
#include <map>

#include "absl/strings/str_cat.h"
#include "formats/onnx/adapters.h"

namespace npurt::formats::onnx::adapters {

using graph::kNone;
using graph::NodeId;
using graph::ValueId;

namespace {

// A node of the graph, copied: adding nodes moves the graph's own.
struct Step {
  const char* op;
  std::vector<ValueId> in, out;
};

using Result = absl::StatusOr<ValueId>;

Result Times(Lowering& l, ValueId a, ValueId b) { return l.Add("Mul", {a, b}); }
Result Over(Lowering& l, ValueId a, ValueId b) { return l.Add("Div", {a, b}); }
Result Negative(Lowering& l, ValueId a) { return l.Add("Neg", {a}); }
Result Function(Lowering& l, const char* op, ValueId x, ValueId g) {
  NPURT_ASSIGN_OR_RETURN(const ValueId factor, l.Add(op, {x}));
  return Times(l, g, factor);
}

// Each gives the share of input `i` from the share `g` of the output.
Result Same(Lowering&, const Step&, int, ValueId g) { return g; }
Result OfNeg(Lowering& l, const Step&, int, ValueId g) { return Negative(l, g); }
Result OfSub(Lowering& l, const Step&, int i, ValueId g) { return i == 0 ? g : Negative(l, g); }
Result OfMul(Lowering& l, const Step& s, int i, ValueId g) {
  return Times(l, g, s.in[static_cast<std::size_t>(1 - i)]);
}
Result OfDiv(Lowering& l, const Step& s, int i, ValueId g) {
  NPURT_ASSIGN_OR_RETURN(const ValueId share, Over(l, g, s.in[1]));
  if (i == 0) return share;
  NPURT_ASSIGN_OR_RETURN(const ValueId product, Times(l, share, s.out[0]));
  return Negative(l, product);
}
Result OfExp(Lowering& l, const Step& s, int, ValueId g) { return Times(l, g, s.out[0]); }
Result OfLog(Lowering& l, const Step& s, int, ValueId g) { return Over(l, g, s.in[0]); }
Result OfSqrt(Lowering& l, const Step& s, int, ValueId g) {
  NPURT_ASSIGN_OR_RETURN(const ValueId twice, l.Add("Add", {s.out[0], s.out[0]}));
  return Over(l, g, twice);
}
Result OfSin(Lowering& l, const Step& s, int, ValueId g) { return Function(l, "Cos", s.in[0], g); }
Result OfCos(Lowering& l, const Step& s, int, ValueId g) {
  NPURT_ASSIGN_OR_RETURN(const ValueId product, Function(l, "Sin", s.in[0], g));
  return Negative(l, product);
}
// g - g y^2, and g y - g y^2.
Result OfTanh(Lowering& l, const Step& s, int, ValueId g) {
  NPURT_ASSIGN_OR_RETURN(const ValueId once, Times(l, g, s.out[0]));
  NPURT_ASSIGN_OR_RETURN(const ValueId twice, Times(l, once, s.out[0]));
  return l.Add("Sub", {g, twice});
}
Result OfSigmoid(Lowering& l, const Step& s, int, ValueId g) {
  NPURT_ASSIGN_OR_RETURN(const ValueId once, Times(l, g, s.out[0]));
  NPURT_ASSIGN_OR_RETURN(const ValueId twice, Times(l, once, s.out[0]));
  return l.Add("Sub", {once, twice});
}
Result OfRelu(Lowering& l, const Step& s, int, ValueId g) {
  return Function(l, "Sign", s.out[0], g);
}
Result OfMatMul(Lowering& l, const Step& s, int i, ValueId g) {
  for (ValueId in : s.in) {
    const ValueType& type = l.graph->value(in).type;
    if (!type.has_rank || type.dims.size() != 2)
      return absl::UnimplementedError("the gradient of a MatMul that is not of two matrices");
  }
  NPURT_ASSIGN_OR_RETURN(const ValueId other,
                         l.Add("Transpose", {s.in[static_cast<std::size_t>(1 - i)]}));
  return i == 0 ? l.Add("MatMul", {g, other}) : l.Add("MatMul", {other, g});
}

struct Rule {
  const char* op;
  Result (*share)(Lowering& l, const Step& step, int input, ValueId g);
};
constexpr Rule kRules[] = {
    {"Add", Same},      {"Cos", OfCos},   {"Div", OfDiv},         {"Exp", OfExp},
    {"Identity", Same}, {"Log", OfLog},   {"MatMul", OfMatMul},   {"Mul", OfMul},
    {"Neg", OfNeg},     {"Relu", OfRelu}, {"Sigmoid", OfSigmoid}, {"Sin", OfSin},
    {"Sqrt", OfSqrt},   {"Sub", OfSub},   {"Sum", Same},          {"Tanh", OfTanh},
};

// `g` summed over the axes along which `x` was broadcast.
Result Unbroadcast(Lowering& l, ValueId g, ValueId x) {
  const ValueType from = l.graph->value(g).type, to = l.graph->value(x).type;
  if (!from.has_rank || !to.has_rank || from.dims.size() < to.dims.size())
    return absl::UnimplementedError("a gradient of unknown rank");
  const std::size_t more = from.dims.size() - to.dims.size();
  std::vector<std::int64_t> leading, inner;
  for (std::size_t i = 0; i < from.dims.size(); ++i) {
    if (i < more) {
      leading.push_back(static_cast<std::int64_t>(i));
    } else if (from.dims[i] != to.dims[i - more]) {
      if (!to.dims[i - more].Is(1))
        return absl::UnimplementedError(absl::StrCat("a gradient of shape ", ShapeString(from.dims),
                                                     " for a tensor of ", ShapeString(to.dims)));
      inner.push_back(static_cast<std::int64_t>(i));
    }
  }
  const auto sum = [&](const std::vector<std::int64_t>& axes, std::int64_t keep) -> Result {
    if (axes.empty()) return g;
    NPURT_ASSIGN_OR_RETURN(const ValueId list, l.Ints("axes", axes));
    return l.Add("ReduceSum", {g, list}, MakeAttributes({{"keepdims", keep}}));
  };
  NPURT_ASSIGN_OR_RETURN(g, sum(inner, 1));
  return sum(leading, 0);
}

// A tensor like `x`, filled with `value`.
Result Filled(Lowering& l, ValueId x, double value) {
  NPURT_ASSIGN_OR_RETURN(const ValueId scalar,
                         l.Scalar("fill", l.graph->value(x).type.dtype, value));
  NPURT_ASSIGN_OR_RETURN(const ValueId shape, l.Add("Shape", {x}));
  return l.Add("Expand", {scalar, shape});
}

// The values of `xs` and then `zs`, which must be the node's first inputs: other inputs would ask
// for a second copy of the graph between them and y.
absl::StatusOr<std::vector<ValueId>> Variables(Lowering& l) {
  std::vector<ValueId> values;
  for (const char* list : {"xs", "zs"})
    for (const std::string& name : l.node->attributes.Strings(list)) {
      const ValueId value = l.graph->Find(name);
      if (value == kNone)
        return absl::InvalidArgumentError(
            absl::StrCat(list, " names '", name, "', which is unknown"));
      if (value != l.input(values.size()))
        return absl::UnimplementedError(
            absl::StrCat("a gradient at another place than '", name, "'"));
      values.push_back(value);
    }
  return values;
}

}  // namespace

absl::Status Gradient(Lowering& l) {
  NPURT_ASSIGN_OR_RETURN(const std::vector<ValueId> variables, Variables(l));
  const std::vector<ValueId> xs(
      variables.begin(),
      variables.begin() + static_cast<std::ptrdiff_t>(l.node->attributes.Strings("xs").size()));
  const std::string name = l.node->attributes.String("y");
  const ValueId y = l.graph->Find(name);
  if (y == kNone)
    return absl::InvalidArgumentError(absl::StrCat("y names '", name, "', which is unknown"));
  if (l.node->outputs.size() > xs.size())
    return absl::InvalidArgumentError(
        absl::StrCat(l.node->outputs.size(), " outputs for ", xs.size(), " names in xs"));

  // Producers stand before their users, so one walk each way is enough. What is named in xs or zs
  // is a variable, whatever made it.
  const auto named = [&](ValueId v) {
    return std::find(variables.begin(), variables.end(), v) != variables.end();
  };
  const NodeId count = l.graph->node_count();
  std::vector<bool> varies(static_cast<std::size_t>(l.graph->value_count()));
  for (ValueId x : xs) varies[static_cast<std::size_t>(x)] = true;
  for (NodeId id = 0; id < count; ++id) {
    const graph::Node& node = l.graph->node(id);
    bool any = false;
    for (ValueId in : node.inputs) any |= in != kNone && varies[static_cast<std::size_t>(in)];
    for (ValueId out : node.outputs)
      if (any && out != kNone && !named(out)) varies[static_cast<std::size_t>(out)] = true;
  }
  std::map<ValueId, ValueId> shares;  // of y's sum
  NPURT_ASSIGN_OR_RETURN(shares[y], Filled(l, y, 1));
  for (NodeId id = count; id-- > 0;) {
    const Step step = {l.graph->node(id).op->name, l.graph->node(id).inputs,
                       l.graph->node(id).outputs};
    const auto shared = std::find_if(step.out.begin(), step.out.end(),
                                     [&](ValueId v) { return shares.count(v) != 0; });
    if (shared == step.out.end() || named(*shared)) continue;
    const ValueId g = shares[*shared];
    for (std::size_t i = 0; i < step.in.size(); ++i) {
      const ValueId in = step.in[i];
      if (in == kNone || !varies[static_cast<std::size_t>(in)]) continue;
      const Rule* rule = std::find_if(std::begin(kRules), std::end(kRules), [&](const Rule& r) {
        return std::strcmp(r.op, step.op) == 0;
      });
      if (rule == std::end(kRules))
        return absl::UnimplementedError(absl::StrCat("the gradient of ", step.op));
      NPURT_ASSIGN_OR_RETURN(ValueId share, rule->share(l, step, static_cast<int>(i), g));
      NPURT_ASSIGN_OR_RETURN(share, Unbroadcast(l, share, in));
      if (shares.count(in) != 0) {
        NPURT_ASSIGN_OR_RETURN(share, l.Add("Add", {shares[in], share}));
      }
      shares[in] = share;
    }
  }
  for (std::size_t i = 0; i < l.node->outputs.size(); ++i) {
    if (l.node->outputs[i].empty()) continue;
    if (shares.count(xs[i]) == 0) {
      NPURT_ASSIGN_OR_RETURN(shares[xs[i]], Filled(l, xs[i], 0));
    }
    NPURT_RETURN_IF_ERROR(l.Finish(i, "Identity", {shares[xs[i]]}));
  }
  return absl::OkStatus();
}

}  // namespace npurt::formats::onnx::adapters
