// Forest: decision trees as flat arrays, from the attributes of the three tree operators.
//
// Thread safety: immutable once made.
#ifndef NPURT_OPS_ML_FOREST_H_
#define NPURT_OPS_ML_FOREST_H_

#include <cstdint>
#include <vector>

#include "base/attributes.h"
#include "ops/ml_scores.h"

namespace npurt::ops {

struct Forest {
  enum class Mode : std::uint8_t { kLessEqual, kLess, kGreaterEqual, kGreater, kEqual, kNotEqual,
                                   kMember, kLeaf };
  struct Node {
    Mode mode = Mode::kLeaf;
    bool missing_is_true = false;
    std::int64_t feature = 0;
    double threshold = 0;
    // A leaf: votes [yes, no). An inner node: the indices of its children.
    std::int64_t yes = 0, no = 0;
    std::int64_t first_member = 0, last_member = 0;  // kMember: a sorted list
  };
  struct Vote {
    std::int64_t target;
    double weight;
  };
  enum class Aggregate { kSum, kAverage, kMin, kMax };

  std::vector<Node> nodes;
  std::vector<std::int64_t> roots;
  std::vector<Vote> votes;
  std::vector<double> members;
  std::vector<double> base;  // added to the scores; empty or one per target
  Aggregate aggregate = Aggregate::kSum;
  PostTransform transform = PostTransform::kNone;
  std::int64_t targets = 0, features = 0;  // features: one more than the highest that is read

  // The leaf that `x` reaches from `root`; x(k) reads feature k.
  template <typename X>
  const Node& LeafOf(std::int64_t root, X x) const {
    const Node* node = &nodes[static_cast<std::size_t>(root)];
    while (node->mode != Mode::kLeaf) {
      const double value = x(node->feature);
      const bool yes = value != value ? node->missing_is_true || node->mode == Mode::kNotEqual
                                      : Holds(*node, value);
      node = &nodes[static_cast<std::size_t>(yes ? node->yes : node->no)];
    }
    return *node;
  }
  bool Holds(const Node& node, double value) const;
};

// Of TreeEnsembleClassifier ("class") and TreeEnsembleRegressor ("target").
absl::StatusOr<Forest> ForestOf(const Attributes& attributes, const std::string& votes_prefix,
                                std::int64_t targets);
// Of TreeEnsemble.
absl::StatusOr<Forest> EnsembleOf(const Attributes& attributes);

}  // namespace npurt::ops

#endif  // NPURT_OPS_ML_FOREST_H_
