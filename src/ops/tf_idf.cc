// TfIdfVectorizer: y[column of an n-gram] = how often the row has the n-gram (TF), its weight if it
// has it at all (IDF), or their product (TFIDF). The items of an n-gram may stand up to
// max_skip_count apart.
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/hash_map.h"
#include "ops/move.h"

namespace npurt::ops::tf_idf {
namespace {

constexpr std::int32_t kNone = -1;

enum class Mode { kTf, kIdf, kTfIdf };

// The n-grams as a tree: from the root along the items of one n-gram to its node.
struct Tree final : Prepared {
  struct Leaf {
    std::int32_t gram = kNone;
    std::int64_t column = 0;
    float weight = 1;
  };
  HashMap<std::string, std::int64_t> words;  // to items; integers are items themselves
  HashMap<std::pair<std::int32_t, std::int64_t>, std::int32_t> children;  // {node, item}
  std::vector<Leaf> leaves = std::vector<Leaf>(1);                        // a leaf for each node
  std::int64_t min_length = 1, max_length = 1, max_skip = 0;
  std::int32_t grams = 0;
  Mode mode = Mode::kTf;
};

absl::StatusOr<Mode> ModeOf(const Attributes& attributes) {
  const std::string mode = attributes.String("mode");
  if (mode == "TF") return Mode::kTf;
  if (mode == "IDF") return Mode::kIdf;
  if (mode == "TFIDF") return Mode::kTfIdf;
  return absl::InvalidArgumentError(absl::StrCat("mode is '", mode, "', want TF, IDF or TFIDF"));
}

absl::StatusOr<Tree> TreeOf(const Attributes& a) {
  Tree tree;
  NPURT_ASSIGN_OR_RETURN(tree.mode, ModeOf(a));
  tree.min_length = a.Int("min_gram_length");
  tree.max_length = a.Int("max_gram_length");
  tree.max_skip = a.Int("max_skip_count");
  if (tree.min_length < 1 || tree.max_length < tree.min_length || tree.max_skip < 0)
    return absl::InvalidArgumentError(absl::StrCat("n-grams of ", tree.min_length, " to ",
                                                   tree.max_length, " items up to ", tree.max_skip,
                                                   " apart"));
  const auto numbers = a.Ints("pool_int64s"), counts = a.Ints("ngram_counts"),
             columns = a.Ints("ngram_indexes");
  const auto strings = a.Strings("pool_strings");
  const auto weights = a.Floats("weights");
  if (!numbers.empty() && !strings.empty())
    return absl::InvalidArgumentError("want pool_int64s or pool_strings, not both");
  if (!weights.empty() && weights.size() != columns.size())
    return absl::InvalidArgumentError(
        absl::StrCat(weights.size(), " weights for ", columns.size(), " n-grams"));
  const std::int64_t pool = static_cast<std::int64_t>(std::max(numbers.size(), strings.size()));
  std::size_t gram = 0;
  for (std::size_t n = 0; n < counts.size(); ++n) {
    const std::int64_t length = static_cast<std::int64_t>(n) + 1;
    const std::int64_t first = counts[n], last = n + 1 < counts.size() ? counts[n + 1] : pool;
    if (first < 0 || first > last || last > pool || (last - first) % length != 0)
      return absl::InvalidArgumentError(absl::StrCat("ngram_counts puts n-grams of ", length,
                                                     " items at ", first, " to ", last,
                                                     " of a pool of ", pool));
    for (std::int64_t at = first; at < last; at += length, ++gram) {
      if (gram >= columns.size() || columns[gram] < 0)
        return absl::InvalidArgumentError(
            absl::StrCat("ngram_indexes has no column for n-gram ", gram));
      if (length < tree.min_length || length > tree.max_length) continue;
      std::int32_t node = 0;
      for (std::int64_t i = at; i < at + length; ++i) {
        const std::size_t k = static_cast<std::size_t>(i);
        std::int64_t item;
        if (strings.empty()) {
          item = numbers[k];
        } else {
          item = static_cast<std::int64_t>(tree.words.size());
          item = tree.words.emplace(strings[k], item).first->second;
        }
        const auto next = static_cast<std::int32_t>(tree.leaves.size());
        const auto [child, is_new] = tree.children.emplace(std::pair(node, item), next);
        if (is_new) tree.leaves.emplace_back();
        node = child->second;
      }
      Tree::Leaf& leaf = tree.leaves[static_cast<std::size_t>(node)];
      if (leaf.gram != kNone)
        return absl::InvalidArgumentError(absl::StrCat("n-gram ", gram, " is in the pool twice"));
      leaf = {tree.grams++, columns[gram], weights.empty() ? 1.0f : weights[gram]};
    }
  }
  if (gram != columns.size())
    return absl::InvalidArgumentError(
        absl::StrCat("ngram_indexes has ", columns.size(), " columns for ", gram, " n-grams"));
  return tree;
}

absl::Status Infer(InferContext& context) {
  NPURT_RETURN_IF_ERROR(TreeOf(context.attributes()).status());
  if (context.rank(0) != 1 && context.rank(0) != 2)
    return absl::InvalidArgumentError(
        absl::StrCat("x has shape ", ShapeString(context.shape(0)), ", want rank 1 or 2"));
  const bool strings = !context.attributes().Strings("pool_strings").empty();
  const bool numbers = !context.attributes().Ints("pool_int64s").empty();
  if (context.dtype(0) == DType::kString ? numbers : strings)
    return absl::InvalidArgumentError(
        absl::StrCat("x is of ", DTypeName(context.dtype(0)), ", the pool is not"));
  std::int64_t width = 0;
  for (std::int64_t column : context.attributes().Ints("ngram_indexes"))
    width = std::max(width, column < INT64_MAX ? column + 1 : column);
  SymDims out = context.shape(0);
  out.back() = width;
  context.set_output(0, DType::kF32, std::move(out));
  return absl::OkStatus();
}

std::int64_t ItemAt(const RunContext& run, const Tree& tree, std::int64_t i) {
  if (run.dtype(0) != DType::kString) return IndexAt(run, 0, i);
  const auto word = tree.words.find(run.in<std::string>(0)[i]);
  return word == tree.words.end() ? kNone : word->second;
}

// Row `row`; `seen` has room for a mark per n-gram.
void Count(const RunContext& run, const Tree& tree, std::int64_t row, unsigned char* seen) {
  const std::int64_t length = run.dims(0).back(), width = run.output_dims(0).back();
  const std::int64_t base = row * length;
  std::fill(seen, seen + tree.grams, static_cast<unsigned char>(0));
  ZeroElements(run.output(0).dtype, run.output(0).data, row * width, width);
  const auto add = [&](const Tree::Leaf& leaf) {
    if (tree.mode == Mode::kIdf && seen[leaf.gram] != 0) return;
    seen[leaf.gram] = 1;
    const std::int64_t to = row * width + leaf.column;
    const double amount = tree.mode == Mode::kTf ? 1 : static_cast<double>(leaf.weight);
    const double before = run.output(0).dtype == DType::kF64
                              ? run.out<double>(0)[to]
                              : static_cast<double>(run.out<float>(0)[to]);
    StoreReal(run, 0, to, before + amount);
  };
  // One item has no distance to skip: single items count in the first round only.
  std::int64_t least = tree.min_length;
  for (std::int64_t step = 1;
       step - 1 <= tree.max_skip && step <= std::max<std::int64_t>(length, 1); ++step) {
    for (std::int64_t start = 0; start < length; ++start) {
      std::int32_t node = 0;
      std::int64_t at = start;
      for (std::int64_t n = 1; n <= tree.max_length && at < length; ++n, at += step) {
        const std::int64_t item = ItemAt(run, tree, base + at);
        const auto child = tree.children.find({node, item});
        if (child == tree.children.end()) break;
        node = child->second;
        const Tree::Leaf& leaf = tree.leaves[static_cast<std::size_t>(node)];
        if (leaf.gram != kNone && n >= least) add(leaf);
      }
    }
    if (least == 1 && ++least > tree.max_length) break;
  }
}

std::int64_t Rows(absl::Span<const std::int64_t> dims) { return dims.size() == 1 ? 1 : dims[0]; }

absl::Status Reference(const RunContext& run, std::int64_t, void*) {
  NPURT_ASSIGN_OR_RETURN(const Tree tree, TreeOf(run.attributes()));
  std::vector<unsigned char> seen(static_cast<std::size_t>(tree.grams) + 1);
  for (std::int64_t row = 0; row < Rows(run.dims(0)); ++row) {
    NPURT_RETURN_IF_ERROR(run.Poll());
    Count(run, tree, row, seen.data());
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Prepared>> Prepare(PrepareContext& context) {
  NPURT_ASSIGN_OR_RETURN(Tree tree, TreeOf(context.attributes()));
  auto state = std::make_unique<Tree>(std::move(tree));
  state->kernel = "tree";
  return state;
}

absl::Status Bind(BindContext& context) {
  constexpr double kNsPerItem = 50;
  const double items = static_cast<double>(context.dims(0).back());
  context.SetTiles(Rows(context.dims(0)), kNsPerItem * items);
  context.SetScratch(static_cast<std::size_t>(context.prepared<Tree>()->grams) + 1);
  return absl::OkStatus();
}

absl::Status Run(const RunContext& run, std::int64_t tile, void* scratch) {
  Count(run, *run.prepared<Tree>(), tile, static_cast<unsigned char*>(scratch));
  return absl::OkStatus();
}

}  // namespace

extern constexpr OpDef kOp = {
    .name = "TfIdfVectorizer",
    .inputs = {{"x", "T"}},
    .outputs = {{"y", "float32"}},
    .types = {{"T", kStrings | DTypes(DType::kI32, DType::kI64)}},
    .attributes = {{"max_gram_length", AttrKind::kInt, true},
                   {"max_skip_count", AttrKind::kInt, true},
                   {"min_gram_length", AttrKind::kInt, true},
                   {"mode", AttrKind::kString, true},
                   {"ngram_counts", AttrKind::kInts, true},
                   {"ngram_indexes", AttrKind::kInts, true},
                   {"pool_int64s", AttrKind::kInts},
                   {"pool_strings", AttrKind::kStrings},
                   {"weights", AttrKind::kFloats}},
    .engine = Engine::kAiCpu,
    .infer = Infer,
    .reference = Reference,
    .prepare = Prepare,
    .bind = Bind,
    .run = Run,
};

}  // namespace npurt::ops::tf_idf
