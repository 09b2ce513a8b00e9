#include "ops/ml_forest.h"

#include <algorithm>
#include <cmath>

#include "base/hash_map.h"
#include "absl/strings/str_cat.h"

namespace npurt::ops {
namespace {

using Mode = Forest::Mode;

absl::Status WantCount(const char* name, std::size_t got, std::size_t want) {
  if (got == want) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(name, " has ", got, " entries, want ", want));
}

// Numbers given as floats or, for float64, as a tensor.
absl::StatusOr<std::vector<double>> NumbersOf(const Attributes& attributes,
                                              const std::string& name) {
  if (const Tensor* tensor = attributes.FindTensor(name + "_as_tensor")) return Reals(*tensor);
  const auto floats = attributes.Floats(name);
  return std::vector<double>(floats.begin(), floats.end());
}

absl::StatusOr<Mode> ModeOf(const std::string& name) {
  static constexpr const char* kNames[] = {"BRANCH_LEQ", "BRANCH_LT",  "BRANCH_GTE",    "BRANCH_GT",
                                           "BRANCH_EQ",  "BRANCH_NEQ", "BRANCH_MEMBER", "LEAF"};
  for (std::size_t i = 0; i < std::size(kNames); ++i)
    if (name == kNames[i]) return static_cast<Mode>(i);
  return absl::InvalidArgumentError(absl::StrCat("a node has mode '", name, "'"));
}

absl::StatusOr<Forest::Aggregate> AggregateOf(const std::string& name) {
  if (name == "SUM") return Forest::Aggregate::kSum;
  if (name == "AVERAGE") return Forest::Aggregate::kAverage;
  if (name == "MIN") return Forest::Aggregate::kMin;
  if (name == "MAX") return Forest::Aggregate::kMax;
  return absl::InvalidArgumentError(
      absl::StrCat("aggregate_function is '", name, "', want SUM, AVERAGE, MIN or MAX"));
}

// Every inner node has children that exist, and every path ends: children are reached once.
absl::Status CheckTrees(Forest* forest) {
  const auto count = static_cast<std::int64_t>(forest->nodes.size());
  std::vector<bool> seen(forest->nodes.size());
  std::vector<std::int64_t> stack;
  for (std::int64_t root : forest->roots) {
    if (root < 0 || root >= count)
      return absl::InvalidArgumentError(absl::StrCat("there is no node ", root));
    stack.push_back(root);
    while (!stack.empty()) {
      const std::int64_t at = stack.back();
      stack.pop_back();
      const std::size_t i = static_cast<std::size_t>(at);
      const Forest::Node& node = forest->nodes[i];
      // Leaves may be shared: they have no children.
      if (node.mode == Mode::kLeaf) continue;
      if (seen[i])
        return absl::InvalidArgumentError(absl::StrCat("node ", at, " is in a circle or two trees"));
      seen[i] = true;
      if (node.feature < 0)
        return absl::InvalidArgumentError(absl::StrCat("node ", at, " reads feature ", node.feature));
      forest->features = std::max(forest->features, node.feature + 1);
      for (std::int64_t child : {node.yes, node.no}) {
        if (child < 0 || child >= count)
          return absl::InvalidArgumentError(absl::StrCat("node ", at, " has no child ", child));
        stack.push_back(child);
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

bool Forest::Holds(const Node& node, double value) const {
  switch (node.mode) {
    case Mode::kLessEqual:
      return value <= node.threshold;
    case Mode::kLess:
      return value < node.threshold;
    case Mode::kGreaterEqual:
      return value >= node.threshold;
    case Mode::kGreater:
      return value > node.threshold;
    case Mode::kEqual:
      return value == node.threshold;
    case Mode::kNotEqual:
      return value != node.threshold;
    case Mode::kMember:
      return std::binary_search(members.begin() + node.first_member,
                                members.begin() + node.last_member, value);
    case Mode::kLeaf:
      break;
  }
  return false;
}

absl::StatusOr<Forest> ForestOf(const Attributes& a, const std::string& prefix,
                                std::int64_t targets) {
  Forest forest;
  forest.targets = targets;
  NPURT_ASSIGN_OR_RETURN(forest.transform, PostTransformOf(a.String("post_transform", "NONE")));
  NPURT_ASSIGN_OR_RETURN(forest.aggregate, AggregateOf(a.String("aggregate_function", "SUM")));
  NPURT_ASSIGN_OR_RETURN(forest.base, NumbersOf(a, "base_values"));
  NPURT_ASSIGN_OR_RETURN(const std::vector<double> thresholds, NumbersOf(a, "nodes_values"));
  const auto trees = a.Ints("nodes_treeids"), ids = a.Ints("nodes_nodeids"),
             features = a.Ints("nodes_featureids"), yes = a.Ints("nodes_truenodeids"),
             no = a.Ints("nodes_falsenodeids"), missing = a.Ints("nodes_missing_value_tracks_true");
  const auto modes = a.Strings("nodes_modes");
  const std::size_t count = trees.size();
  NPURT_RETURN_IF_ERROR(WantCount("nodes_nodeids", ids.size(), count));
  NPURT_RETURN_IF_ERROR(WantCount("nodes_featureids", features.size(), count));
  NPURT_RETURN_IF_ERROR(WantCount("nodes_truenodeids", yes.size(), count));
  NPURT_RETURN_IF_ERROR(WantCount("nodes_falsenodeids", no.size(), count));
  NPURT_RETURN_IF_ERROR(WantCount("nodes_modes", modes.size(), count));
  NPURT_RETURN_IF_ERROR(WantCount("nodes_values", thresholds.size(), count));
  if (!missing.empty())
    NPURT_RETURN_IF_ERROR(
        WantCount("nodes_missing_value_tracks_true", missing.size(), count));

  using Id = std::pair<std::int64_t, std::int64_t>;  // tree, node
  HashMap<Id, std::int64_t> index;
  HashMap<std::int64_t, bool> rooted;
  for (std::size_t i = 0; i < count; ++i) {
    if (!index.try_emplace(Id(trees[i], ids[i]), static_cast<std::int64_t>(i)).second)
      return absl::InvalidArgumentError(
          absl::StrCat("tree ", trees[i], " has two nodes ", ids[i]));
    // The first node of a tree is its root.
    if (rooted.try_emplace(trees[i], true).second)
      forest.roots.push_back(static_cast<std::int64_t>(i));
  }
  const auto find = [&](std::int64_t tree, std::int64_t node) {
    const auto it = index.find(Id(tree, node));
    return it == index.end() ? std::int64_t{-1} : it->second;
  };

  // Votes in the order of their leaves.
  const auto vote_trees = a.Ints(prefix + "_treeids"), vote_nodes = a.Ints(prefix + "_nodeids"),
             vote_targets = a.Ints(prefix + "_ids");
  NPURT_ASSIGN_OR_RETURN(const std::vector<double> weights, NumbersOf(a, prefix + "_weights"));
  NPURT_RETURN_IF_ERROR(WantCount("the node ids of votes", vote_nodes.size(), vote_trees.size()));
  NPURT_RETURN_IF_ERROR(WantCount("the ids of votes", vote_targets.size(), vote_trees.size()));
  NPURT_RETURN_IF_ERROR(WantCount("the weights of votes", weights.size(), vote_trees.size()));
  std::vector<std::vector<Forest::Vote>> by_node(count);
  for (std::size_t i = 0; i < vote_trees.size(); ++i) {
    const std::int64_t node = find(vote_trees[i], vote_nodes[i]);
    if (node < 0)
      return absl::InvalidArgumentError(absl::StrCat("a vote of node ", vote_nodes[i], " in tree ",
                                                     vote_trees[i], ", which does not exist"));
    if (vote_targets[i] < 0 || vote_targets[i] >= targets)
      return absl::InvalidArgumentError(
          absl::StrCat("a vote for ", vote_targets[i], ", want one from 0 to ", targets - 1));
    by_node[static_cast<std::size_t>(node)].push_back({vote_targets[i], weights[i]});
  }
  for (std::size_t i = 0; i < count; ++i) {
    Forest::Node node;
    NPURT_ASSIGN_OR_RETURN(node.mode, ModeOf(modes[i]));
    if (node.mode == Mode::kMember) return absl::InvalidArgumentError("a node has mode 'BRANCH_MEMBER'");
    if (node.mode == Mode::kLeaf) {
      node.yes = static_cast<std::int64_t>(forest.votes.size());
      forest.votes.insert(forest.votes.end(), by_node[i].begin(), by_node[i].end());
      node.no = static_cast<std::int64_t>(forest.votes.size());
    } else {
      node.feature = features[i];
      node.threshold = thresholds[i];
      node.missing_is_true = !missing.empty() && missing[i] != 0;
      node.yes = find(trees[i], yes[i]);
      node.no = find(trees[i], no[i]);
    }
    forest.nodes.push_back(node);
  }
  NPURT_RETURN_IF_ERROR(CheckTrees(&forest));
  if (forest.base.size() > 1)  // a single one goes to the first target
    NPURT_RETURN_IF_ERROR(
        WantCount("base_values", forest.base.size(), static_cast<std::size_t>(targets)));
  return forest;
}

absl::StatusOr<Forest> EnsembleOf(const Attributes& a) {
  Forest forest;
  forest.targets = a.Int("n_targets", 1);
  const std::int64_t aggregate = a.Int("aggregate_function", 1), post = a.Int("post_transform", 0);
  static constexpr const char* kAggregates[] = {"AVERAGE", "SUM", "MIN", "MAX"};
  if (aggregate < 0 || aggregate > 3 || post < 0 || post > 4 || forest.targets < 1)
    return absl::InvalidArgumentError(absl::StrCat("aggregate_function ", aggregate,
                                                   ", post_transform ", post, ", n_targets ",
                                                   forest.targets));
  NPURT_ASSIGN_OR_RETURN(forest.aggregate, AggregateOf(kAggregates[aggregate]));
  forest.transform = static_cast<PostTransform>(post);
  const auto numbers = [&](const char* name) -> absl::StatusOr<std::vector<double>> {
    const Tensor* tensor = a.FindTensor(name);
    if (tensor == nullptr) return std::vector<double>();
    return Reals(*tensor);
  };
  NPURT_ASSIGN_OR_RETURN(const std::vector<double> modes, numbers("nodes_modes"));
  NPURT_ASSIGN_OR_RETURN(const std::vector<double> splits, numbers("nodes_splits"));
  NPURT_ASSIGN_OR_RETURN(const std::vector<double> weights, numbers("leaf_weights"));
  NPURT_ASSIGN_OR_RETURN(const std::vector<double> members, numbers("membership_values"));
  const auto features = a.Ints("nodes_featureids"), yes = a.Ints("nodes_truenodeids"),
             no = a.Ints("nodes_falsenodeids"), yes_leaf = a.Ints("nodes_trueleafs"),
             no_leaf = a.Ints("nodes_falseleafs"), missing = a.Ints("nodes_missing_value_tracks_true"),
             targets = a.Ints("leaf_targetids"), roots = a.Ints("tree_roots");
  const std::size_t count = modes.size();
  NPURT_RETURN_IF_ERROR(WantCount("nodes_splits", splits.size(), count));
  NPURT_RETURN_IF_ERROR(WantCount("nodes_featureids", features.size(), count));
  NPURT_RETURN_IF_ERROR(WantCount("nodes_truenodeids", yes.size(), count));
  NPURT_RETURN_IF_ERROR(WantCount("nodes_falsenodeids", no.size(), count));
  NPURT_RETURN_IF_ERROR(WantCount("nodes_trueleafs", yes_leaf.size(), count));
  NPURT_RETURN_IF_ERROR(WantCount("nodes_falseleafs", no_leaf.size(), count));
  NPURT_RETURN_IF_ERROR(WantCount("leaf_weights", weights.size(), targets.size()));
  if (!missing.empty())
    NPURT_RETURN_IF_ERROR(WantCount("nodes_missing_value_tracks_true", missing.size(), count));
  // Leaves lie behind the inner nodes.
  const auto place = [&](std::int64_t child, std::int64_t is_leaf) {
    if (is_leaf == 0) return child < static_cast<std::int64_t>(count) ? child : std::int64_t{-1};
    return child < 0 ? child : child + static_cast<std::int64_t>(count);
  };
  std::size_t next_member = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (!(modes[i] >= 0 && modes[i] <= 6))
      return absl::InvalidArgumentError(absl::StrCat("a node has mode ", modes[i]));
    Forest::Node node;
    node.mode = static_cast<Mode>(static_cast<int>(modes[i]));
    node.feature = features[i];
    node.threshold = splits[i];
    node.missing_is_true = !missing.empty() && missing[i] != 0;
    node.yes = place(yes[i], yes_leaf[i]);
    node.no = place(no[i], no_leaf[i]);
    if (node.mode == Mode::kMember) {  // the next list, which ends with NaN
      node.first_member = static_cast<std::int64_t>(forest.members.size());
      for (; next_member < members.size() && !std::isnan(members[next_member]); ++next_member)
        forest.members.push_back(members[next_member]);
      ++next_member;
      node.last_member = static_cast<std::int64_t>(forest.members.size());
      std::sort(forest.members.begin() + node.first_member, forest.members.end());
    }
    forest.nodes.push_back(node);
  }
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (targets[i] < 0 || targets[i] >= forest.targets)
      return absl::InvalidArgumentError(absl::StrCat("a leaf votes for ", targets[i]));
    Forest::Node leaf;
    leaf.yes = static_cast<std::int64_t>(i);
    leaf.no = leaf.yes + 1;
    forest.nodes.push_back(leaf);
    forest.votes.push_back({targets[i], weights[i]});
  }
  forest.roots.assign(roots.begin(), roots.end());
  NPURT_RETURN_IF_ERROR(CheckTrees(&forest));
  return forest;
}

}  // namespace npurt::ops
