// FuseGelu: x / 2 * (1 + erf(x / sqrt 2)), or with tanh(sqrt(2 / pi) * (x + 0.044715 x^3)), written
// out in whatever order, becomes Gelu.
//
// The rule does not compare shapes of trees: it computes what the nodes are as a polynomial in x
// and in e, the erf or tanh of a polynomial in x, and compares coefficients.
#include <array>
#include <cmath>

#include "compile/fuse/pattern.h"

namespace npurt::compile {
namespace {

using graph::kNone;
using graph::Node;
using graph::ValueId;

constexpr int kDegree = 3;
// c[i][j] is the coefficient of x^i e^j.
struct Polynomial {
  std::array<std::array<double, 2>, kDegree + 1> c = {};
};

std::optional<Polynomial> Product(const Polynomial& a, const Polynomial& b) {
  Polynomial product;
  for (std::size_t i = 0; i <= kDegree; ++i)
    for (std::size_t k = 0; k < 2; ++k) {
      if (a.c[i][k] == 0) continue;
      for (std::size_t j = 0; j <= kDegree; ++j)
        for (std::size_t m = 0; m < 2; ++m) {
          if (b.c[j][m] == 0) continue;
          if (i + j > kDegree || k + m > 1) return std::nullopt;
          product.c[i + j][k + m] += a.c[i][k] * b.c[j][m];
        }
    }
  return product;
}

// Within the rounding of constants in float32.
bool Near(double got, double want) {
  return std::abs(got - want) <= 1e-6 * std::max(std::abs(want), 1e-2);
}

enum class Function { kNone, kErf, kTanh };

class Reader {
 public:
  Reader(Pattern& p, ValueId x) : p_(p), x_(x) {}

  // `value` in terms of x and e; its nodes are taken.
  std::optional<Polynomial> Read(ValueId value) {
    Polynomial result;
    if (value == x_) {
      result.c[1][0] = 1;
      return result;
    }
    if (const auto number = p_.Scalar(value)) {
      result.c[0][0] = *number;
      return result;
    }
    if (--budget_ < 0) return std::nullopt;
    if (const Node* mul = p_.Take(value, "Mul")) return Both(*mul, Product);
    if (const Node* add = p_.Take(value, "Add")) return Both(*add, Sum);
    if (const Node* div = p_.Take(value, "Div")) {
      const auto number = p_.Scalar(div->inputs[1]);
      if (!number || *number == 0) return std::nullopt;
      auto a = Read(div->inputs[0]);
      if (a.has_value())
        for (auto& row : a->c)
          for (double& c : row) c /= *number;
      return a;
    }
    if (const Node* pow = p_.Take(value, "Pow")) {
      const auto exponent = p_.Scalar(pow->inputs[1]);
      const auto base = Read(pow->inputs[0]);
      if (!base || !exponent || (*exponent != 2 && *exponent != 3)) return std::nullopt;
      const auto square = Product(*base, *base);
      if (*exponent == 2 || !square) return square;
      return Product(*square, *base);
    }
    if (const Node* erf = p_.Take(value, "Erf")) return Inner(*erf, Function::kErf);
    if (const Node* tanh = p_.Take(value, "Tanh")) return Inner(*tanh, Function::kTanh);
    return std::nullopt;
  }

  Function function() const { return function_; }

 private:
  static std::optional<Polynomial> Sum(const Polynomial& a, const Polynomial& b) {
    Polynomial sum = a;
    for (std::size_t i = 0; i <= kDegree; ++i)
      for (std::size_t j = 0; j < 2; ++j) sum.c[i][j] += b.c[i][j];
    return sum;
  }

  template <typename Combine>
  std::optional<Polynomial> Both(const Node& node, Combine combine) {
    const auto a = Read(node.inputs[0]);
    if (!a) return std::nullopt;
    const auto b = Read(node.inputs[1]);
    return b ? combine(*a, *b) : std::nullopt;
  }

  // e, if the function and its argument are those of Gelu and e is not there yet.
  std::optional<Polynomial> Inner(const Node& node, Function function) {
    if (function_ != Function::kNone) return std::nullopt;
    const auto argument = Read(node.inputs[0]);
    if (!argument || function_ != Function::kNone) return std::nullopt;
    function_ = function;
    const double first = function == Function::kErf ? std::sqrt(0.5) : std::sqrt(2 / M_PI);
    const double third = function == Function::kErf ? 0 : first * 0.044715;
    const auto& c = argument->c;
    if (!Near(c[0][0], 0) || !Near(c[1][0], first) || !Near(c[2][0], 0) || !Near(c[3][0], third))
      return std::nullopt;
    Polynomial e;
    e.c[0][1] = 1;
    return e;
  }

  Pattern& p_;
  const ValueId x_;
  int budget_ = 20;
  Function function_ = Function::kNone;
};

// x / 2 + x / 2 * e
bool IsGelu(const Polynomial& p) {
  for (std::size_t i = 0; i <= kDegree; ++i)
    for (std::size_t j = 0; j < 2; ++j)
      if (!Near(p.c[i][j], i == 1 ? 0.5 : 0)) return false;
  return true;
}

bool FuseWith(Pattern p, ValueId x) {
  const ValueType &in = p.type(x), &out = p.type(p.result());
  if (p.graph().value(x).is_constant() || !IsFloat(in.dtype) || in.dtype != out.dtype ||
      !in.has_rank || !out.has_rank || in.dims != out.dims)
    return false;
  Reader reader(p, x);
  const auto polynomial = reader.Read(p.result());
  if (!polynomial || reader.function() == Function::kNone || !IsGelu(*polynomial) || !p.Closed())
    return false;
  Attributes attributes;
  if (reader.function() == Function::kTanh) attributes.Set("approximate", std::string("tanh"));
  p.Replace("Gelu", {x}, std::move(attributes));
  return true;
}

// x is a factor of the product, or of a factor.
bool Fuse(Pattern& p) {
  std::vector<ValueId> candidates;
  for (ValueId factor : p.last().inputs) {
    candidates.push_back(factor);
    if (const Node* inner = p.Peek(factor, "Mul"))
      candidates.insert(candidates.end(), inner->inputs.begin(), inner->inputs.end());
  }
  return std::any_of(candidates.begin(), candidates.end(),
                     [&p](ValueId x) { return FuseWith(p, x); });
}

}  // namespace

absl::StatusOr<int> FuseGelu(PassContext& context) { return ForEachNode(context, "Mul", Fuse); }

}  // namespace npurt::compile
