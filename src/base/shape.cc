#include "base/shape.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/checked_math.h"

namespace npurt {
namespace {

// Constants too large for int64 stay expressions, so that binding reports the overflow.
Dim Apply(DimOp op, Dim a, Dim b) {
  std::int64_t folded;
  if (a.is_constant() && b.is_constant()) {
    if (ApplyDimOp(op, a.value(), b.value(), &folded)) return folded;
    return -1;  // no valid dimension: every check of sizes refuses it
  }
  DimTable* table = a.is_constant() ? b.node()->table : a.node()->table;
  return table->Intern(op, a, b);
}

bool IsSum(Dim d, const Dim** a, const Dim** b) {
  if (d.is_constant() || d.node()->op != DimOp::kAdd) return false;
  *a = &d.node()->a;
  *b = &d.node()->b;
  return true;
}

// Expressions share their parts, so that a walk over one may be exponentially longer than it was to make
// (n*n, squared again and again): every walk has a budget.
constexpr int kMaxFactors = 64;     // visited; products beyond it stay whole
constexpr int kMaxPrintedNodes = 200;

// Splits a product into its factors, constants multiplied into one.
void CollectFactors(Dim d, int* budget, std::int64_t* constant, std::vector<Dim>* factors) {
  if (d.is_constant()) {
    if (!CheckedMul(*constant, d.value(), constant)) *constant = -1;
  } else if (d.node()->op == DimOp::kMul && --*budget >= 0) {
    CollectFactors(d.node()->a, budget, constant, factors);
    CollectFactors(d.node()->b, budget, constant, factors);
  } else {
    factors->push_back(d);
  }
}

void AppendText(Dim dim, int* budget, std::string* out) {
  if (dim.is_constant()) {
    absl::StrAppend(out, dim.value());
    return;
  }
  const DimNode& node = *dim.node();
  if (node.op == DimOp::kInput || node.op == DimOp::kRun) {
    absl::StrAppend(out, node.name);
    return;
  }
  if (--*budget < 0) {
    absl::StrAppend(out, "...");
    return;
  }
  struct Form {
    const char *before, *between, *after;
  };
  const Form form = [&]() -> Form {
    switch (node.op) {
      case DimOp::kAdd:
        return {"(", "+", ")"};
      case DimOp::kSub:
        return {"(", "-", ")"};
      case DimOp::kMul:
        return {"", "*", ""};
      case DimOp::kFloorDiv:
        return {"floor(", "/", ")"};
      case DimOp::kCeilDiv:
        return {"ceil(", "/", ")"};
      case DimOp::kMod:
        return {"mod(", ",", ")"};
      case DimOp::kMin:
        return {"min(", ",", ")"};
      case DimOp::kMax:
        return {"max(", ",", ")"};
      case DimOp::kBroadcast:
        return {"broadcast(", ",", ")"};
      case DimOp::kInput:
      case DimOp::kRun:
        break;
    }
    return {"", "", ""};
  }();
  absl::StrAppend(out, form.before);
  AppendText(node.a, budget, out);
  absl::StrAppend(out, form.between);
  AppendText(node.b, budget, out);
  absl::StrAppend(out, form.after);
}

Dim MultiplyAll(std::int64_t constant, const std::vector<Dim>& factors) {
  Dim product = 1;
  for (Dim f : factors) product = product.Is(1) ? f : Apply(DimOp::kMul, product, f);
  if (constant == 1) return product;
  if (product.is_constant()) return product.value() * constant;
  return Apply(DimOp::kMul, constant, product);
}

}  // namespace

bool ApplyDimOp(DimOp op, std::int64_t a, std::int64_t b, std::int64_t* out) {
  switch (op) {
    case DimOp::kInput:
    case DimOp::kRun:
      return false;
    case DimOp::kAdd:
      return CheckedAdd(a, b, out);
    case DimOp::kSub:
      return CheckedSub(a, b, out);
    case DimOp::kMul:
      return CheckedMul(a, b, out);
    case DimOp::kFloorDiv:
    case DimOp::kCeilDiv:
    case DimOp::kMod: {
      if (b == 0 || (b == -1 && a == INT64_MIN)) return false;
      std::int64_t quotient = a / b;
      const std::int64_t rest = a % b;
      const bool inexact = rest != 0;
      const bool negative = (rest < 0) != (b < 0);
      if (op == DimOp::kMod) {
        *out = inexact && negative ? rest + b : rest;
        return true;
      }
      if (op == DimOp::kFloorDiv && inexact && negative) --quotient;
      if (op == DimOp::kCeilDiv && inexact && !negative) ++quotient;
      *out = quotient;
      return true;
    }
    case DimOp::kMin:
      *out = std::min(a, b);
      return true;
    case DimOp::kMax:
      *out = std::max(a, b);
      return true;
    case DimOp::kBroadcast:
      if (a != b && a != 1 && b != 1) return false;
      *out = a == 1 ? b : a;
      return true;
  }
  return false;
}

bool Dim::depends_on_run() const { return node_ != nullptr && node_->depends_on_run; }

std::string Dim::ToString() const {
  std::string text;
  int budget = kMaxPrintedNodes;
  AppendText(*this, &budget, &text);
  return text;
}

Dim operator+(Dim a, Dim b) {
  if (a.is_constant() && !b.is_constant()) std::swap(a, b);
  if (b.Is(0)) return a;
  const Dim *x, *y;
  // (x + 2) + 3 is x + 5, so that equal windows give equal expressions.
  if (b.is_constant() && IsSum(a, &x, &y) && y->is_constant()) return *x + (*y + b);
  if (!a.is_constant() && a.node()->op == DimOp::kSub && a.node()->b == b) return a.node()->a;
  return Apply(DimOp::kAdd, a, b);
}

Dim operator-(Dim a, Dim b) {
  if (a == b) return 0;
  std::int64_t negative;
  if (b.is_constant() && CheckedSub(std::int64_t{0}, b.value(), &negative)) return a + negative;
  const Dim *x, *y;
  if (IsSum(a, &x, &y)) {
    if (*x == b) return *y;
    if (*y == b) return *x;
  }
  return Apply(DimOp::kSub, a, b);
}

Dim operator*(Dim a, Dim b) {
  if (a.Is(0) || b.Is(0)) return 0;
  std::int64_t constant = 1;
  std::vector<Dim> factors;
  for (Dim d : {a, b}) {
    int budget = kMaxFactors;
    CollectFactors(d, &budget, &constant, &factors);
  }
  std::sort(factors.begin(), factors.end(),
            [](Dim x, Dim y) { return x.node()->index < y.node()->index; });
  return MultiplyAll(constant, factors);
}

Dim FloorDiv(Dim a, Dim b) {
  if (b.Is(1)) return a;
  if (a == b && !a.is_constant()) return 1;
  return ProductQuotient({&a, 1}, {&b, 1});
}

Dim CeilDiv(Dim a, Dim b) {
  if (b.Is(1)) return a;
  return Apply(DimOp::kCeilDiv, a, b);
}
Dim Mod(Dim a, Dim b) { return Apply(DimOp::kMod, a, b); }
Dim Min(Dim a, Dim b) { return a == b ? a : Apply(DimOp::kMin, a, b); }
Dim Max(Dim a, Dim b) { return a == b ? a : Apply(DimOp::kMax, a, b); }

Dim Broadcast(Dim a, Dim b) {
  if (a == b || b.Is(1)) return a;
  if (a.Is(1)) return b;
  // A number other than 1 decides: the symbol must be equal to it or 1. Binding of the operator
  // that reads both checks it.
  if (a.is_constant()) return a;
  if (b.is_constant()) return b;
  return Apply(DimOp::kBroadcast, a, b);
}

Dim Product(absl::Span<const Dim> dims) {
  Dim product = 1;
  for (Dim d : dims) product = product * d;
  return product;
}

Dim ProductQuotient(absl::Span<const Dim> all, absl::Span<const Dim> part) {
  std::int64_t above = 1, below = 1;
  std::vector<Dim> over, under;
  int budget = kMaxFactors;
  for (Dim d : all) CollectFactors(d, &budget, &above, &over);
  budget = kMaxFactors;
  for (Dim d : part) CollectFactors(d, &budget, &below, &under);
  for (auto it = under.begin(); it != under.end();) {
    auto found = std::find(over.begin(), over.end(), *it);
    if (found == over.end()) {
      ++it;
    } else {
      over.erase(found);
      it = under.erase(it);
    }
  }
  if (below != 0 && above % below == 0 && below != -1) {
    above /= below;
    below = 1;
  }
  const auto by_index = [](Dim x, Dim y) { return x.node()->index < y.node()->index; };
  std::sort(over.begin(), over.end(), by_index);
  std::sort(under.begin(), under.end(), by_index);
  const Dim numerator = MultiplyAll(above, over), denominator = MultiplyAll(below, under);
  if (denominator.Is(1)) return numerator;
  return Apply(DimOp::kFloorDiv, numerator, denominator);
}

bool AllConstant(absl::Span<const Dim> dims) {
  return std::all_of(dims.begin(), dims.end(), [](Dim d) { return d.is_constant(); });
}

Dims ToDims(absl::Span<const Dim> dims) {
  Dims numbers(dims.size());
  for (std::size_t i = 0; i < dims.size(); ++i) numbers[i] = dims[i].value();
  return numbers;
}

SymDims ToSymDims(absl::Span<const std::int64_t> dims) {
  return SymDims(dims.begin(), dims.end());
}

std::string ShapeString(absl::Span<const Dim> dims) {
  return absl::StrCat("[",
                      absl::StrJoin(dims, ", ",
                                    [](std::string* out, Dim d) {
                                      absl::StrAppend(out, d.ToString());
                                    }),
                      "]");
}

std::string ShapeString(absl::Span<const std::int64_t> dims) {
  return absl::StrCat("[", absl::StrJoin(dims, ", "), "]");
}

absl::StatusOr<std::int64_t> ElementCount(absl::Span<const std::int64_t> dims) {
  constexpr std::int64_t kMax = std::int64_t{1} << 62;
  std::int64_t count = 1;
  bool empty = false;
  for (std::int64_t d : dims) {
    if (d < 0)
      return absl::InvalidArgumentError(
          absl::StrCat("shape ", ShapeString(dims), " has a negative dimension"));
    empty |= d == 0;
  }
  if (empty) return 0;
  for (std::int64_t d : dims)
    if (!CheckedMul(count, d, &count) || count > kMax)
      return absl::InvalidArgumentError(
          absl::StrCat("shape ", ShapeString(dims), " has more than 2^62 elements"));
  return count;
}

Dim DimTable::Symbol(const std::string& name) {
  auto [it, added] = symbols_.try_emplace(name);
  if (added) {
    nodes_.push_back({DimOp::kInput, false, size(), this, {}, {}, name});
    it->second = Dim(&nodes_.back());
  }
  return it->second;
}

Dim DimTable::RunSymbol(const std::string& name) {
  nodes_.push_back({DimOp::kRun, true, size(), this, {}, {}, name});
  return Dim(&nodes_.back());
}

Dim DimTable::Intern(DimOp op, Dim a, Dim b) {
  auto [it, added] = interned_.try_emplace(Key{op, a, b});
  if (added) {
    nodes_.push_back({op, a.depends_on_run() || b.depends_on_run(), size(), this, a, b, {}});
    it->second = Dim(&nodes_.back());
  }
  return it->second;
}

std::shared_ptr<DimTable> DimTable::Clone() const {
  auto copy = std::make_shared<DimTable>();
  for (const DimNode& node : nodes_)
    copy->nodes_.push_back({node.op, node.depends_on_run, node.index, copy.get(),
                            copy->Translate(node.a), copy->Translate(node.b), node.name});
  for (const auto& [name, dim] : symbols_) copy->symbols_[name] = copy->Translate(dim);
  for (const auto& [key, dim] : interned_)
    copy->interned_[{key.op, copy->Translate(key.a), copy->Translate(key.b)}] =
        copy->Translate(dim);
  return copy;
}

void DimTable::Evaluate(absl::Span<std::int64_t> values) const {
  for (const DimNode& node : nodes_) {
    if (node.op == DimOp::kInput || node.op == DimOp::kRun) continue;
    const std::int64_t a = ValueOf(node.a, values), b = ValueOf(node.b, values);
    if (a == kInvalidDim || b == kInvalidDim || !ApplyDimOp(node.op, a, b, &values[node.index]))
      values[node.index] = kInvalidDim;
  }
}

}  // namespace npurt
