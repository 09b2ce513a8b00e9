// Dim: one dimension of a shape, a number or an expression over symbols ("batch", "2*seq + 1").
//
// Shapes are inferred once, with symbols where the caller may choose; binding concrete sizes then
// evaluates a table of expressions in one pass. Expressions are interned in a DimTable, so equal
// expressions are the same pointer and equality is cheap; constants need no table. Arithmetic folds
// constants and cancels what is plainly equal (x - x, (a*b)/a), no more: two Dims that compare
// unequal may still turn out equal when bound.
//
// Lifetime: a Dim must not outlive its DimTable. Thread safety: a DimTable is used by one thread
// while it grows; reading is free afterwards.
#ifndef NPURT_BASE_SHAPE_H_
#define NPURT_BASE_SHAPE_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "base/status.h"

namespace npurt {

using Dims = absl::InlinedVector<std::int64_t, 6>;

class DimTable;
struct DimNode;

inline constexpr std::int64_t kInvalidDim = INT64_MIN;

class Dim {
 public:
  constexpr Dim() = default;
  constexpr Dim(std::int64_t value) : value_(value) {}  // NOLINT: numbers are dimensions
  constexpr Dim(int value) : value_(value) {}  // NOLINT: and a literal 0 is no null pointer
  explicit Dim(const DimNode* node) : node_(node) {}

  bool is_constant() const { return node_ == nullptr; }
  bool Is(std::int64_t value) const { return node_ == nullptr && value_ == value; }
  std::int64_t value() const { return value_; }  // REQUIRES: is_constant()
  const DimNode* node() const { return node_; }
  // True if the value is known only after some step has run (the count of a NonZero …).
  bool depends_on_run() const;
  std::string ToString() const;

  friend bool operator==(const Dim& a, const Dim& b) {
    return a.node_ == b.node_ && a.value_ == b.value_;
  }
  friend bool operator!=(const Dim& a, const Dim& b) { return !(a == b); }

 private:
  std::int64_t value_ = 0;
  const DimNode* node_ = nullptr;
};

Dim operator+(Dim a, Dim b);
Dim operator-(Dim a, Dim b);
Dim operator*(Dim a, Dim b);
Dim FloorDiv(Dim a, Dim b);  // rounds down; binding fails when b is 0
Dim CeilDiv(Dim a, Dim b);
Dim Mod(Dim a, Dim b);  // sign of b
Dim Min(Dim a, Dim b);
Dim Max(Dim a, Dim b);
// The broadcast of two dimensions: equal, or one of them 1. Binding fails otherwise.
Dim Broadcast(Dim a, Dim b);

using SymDims = absl::InlinedVector<Dim, 6>;

Dim Product(absl::Span<const Dim> dims);
// all / part of two lists of factors: equal factors cancel first, so that (n*c*h*w) / (n*c) is h*w.
Dim ProductQuotient(absl::Span<const Dim> all, absl::Span<const Dim> part);
bool AllConstant(absl::Span<const Dim> dims);
// REQUIRES: AllConstant(dims).
Dims ToDims(absl::Span<const Dim> dims);
SymDims ToSymDims(absl::Span<const std::int64_t> dims);
// "[batch, 3, 2*h]", and the same for numbers.
std::string ShapeString(absl::Span<const Dim> dims);
std::string ShapeString(absl::Span<const std::int64_t> dims);
// The number of elements; an error if a dimension is negative or the product exceeds 2^62.
absl::StatusOr<std::int64_t> ElementCount(absl::Span<const std::int64_t> dims);

enum class DimOp : std::uint8_t {
  kInput,  // a symbol that the caller's shapes decide
  kRun,    // a symbol that a step decides while running
  kAdd, kSub, kMul, kFloorDiv, kCeilDiv, kMod, kMin, kMax, kBroadcast,
};

struct DimNode {
  DimOp op;
  bool depends_on_run;
  int index;  // position in the table: operands stand before their users
  DimTable* table;
  Dim a, b;
  std::string name;  // symbols only
};

class DimTable {
 public:
  DimTable() = default;
  DimTable(const DimTable&) = delete;
  DimTable& operator=(const DimTable&) = delete;

  // The symbol of this name; the same name gives the same symbol.
  Dim Symbol(const std::string& name);
  // A fresh symbol of a step's result.
  Dim RunSymbol(const std::string& name);
  int size() const { return static_cast<int>(nodes_.size()); }
  const DimNode& node(int index) const { return nodes_[index]; }
  // A table with the same expressions at the same indices.
  std::shared_ptr<DimTable> Clone() const;
  // `dim` of another table that this one is a clone of.
  Dim Translate(Dim dim) const {
    return dim.is_constant() ? dim : Dim(&nodes_[dim.node()->index]);
  }
  // Used by the operators above.
  Dim Intern(DimOp op, Dim a, Dim b);

  // Evaluates all expressions. `values` has one entry a node; the entries of symbols are given,
  // the others are written; a symbol without a value yet is kInvalidDim. What cannot be computed
  // (division by zero, broadcast of 3 and 4, overflow, an operand without a value) becomes
  // kInvalidDim, which is an error only for the value whose shape it is.
  void Evaluate(absl::Span<std::int64_t> values) const;

 private:
  struct Key {
    DimOp op;
    Dim a, b;
    friend bool operator==(const Key& x, const Key& y) {
      return x.op == y.op && x.a == y.a && x.b == y.b;
    }
    template <typename H>
    friend H AbslHashValue(H h, const Key& k) {
      return H::combine(std::move(h), k.op, k.a.value(), k.a.node(), k.b.value(), k.b.node());
    }
  };
  std::deque<DimNode> nodes_;  // addresses stay
  HashMap<std::string, Dim> symbols_;
  HashMap<Key, Dim> interned_;
};

// The value of `dim` given the evaluated table.
inline std::int64_t ValueOf(Dim dim, absl::Span<const std::int64_t> values) {
  return dim.is_constant() ? dim.value() : values[dim.node()->index];
}

// One operation on numbers, as Evaluate does it. False on overflow, division by zero or dimensions
// that do not broadcast.
[[nodiscard]] bool ApplyDimOp(DimOp op, std::int64_t a, std::int64_t b, std::int64_t* out);

}  // namespace npurt

#endif  // NPURT_BASE_SHAPE_H_
