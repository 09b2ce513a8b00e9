// A few of the graphs that the program `differential` tries for as long as one likes.
#include "fuzz/differential.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "fuzz/noise.h"
#include "ops/numbers.h"
#include "ops/op_test_harness.h"

namespace npurt::fuzz {
namespace {

TEST(DifferentialTest, RandomGraphsGiveTheAnswersOfTheReferenceDevice) {
  std::set<std::string> seen;
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    Choices choices(seed);
    const Case made = MakeCase(choices, 24);
    for (graph::NodeId id = 0; id < made.graph->node_count(); ++id)
      seen.insert(made.graph->node(id).op->name);
    const Finding finding = Compare(made, choices, 2);
    ASSERT_EQ(finding.what, "") << "seed " << seed << ", " << SettingsText(finding.settings)
                                << ": run differential --only --seed " << seed;
  }
  // Else the graphs are not as random as they should be.
  EXPECT_GT(seen.size(), 100u);
  EXPECT_TRUE(seen.count("If") == 1 && seen.count("Loop") == 1 && seen.count("NonZero") == 1);
}

const std::set<std::string>& NeverGenerated() {
  static const auto* const names = new std::set<std::string>{
#include "fuzz/ops_never_generated.inc"
  };
  return *names;
}

TEST(DifferentialTest, EveryOperatorIsGeneratedAndComparedUnlessListedWithItsReason) {
  for (const ops::OpDef* op : ops::AllOps()) {
    bool there = false;
    // Some operators refuse most of what is drawn for them, and what is drawn depends on the compiler.
    for (std::uint64_t seed = 1; seed <= 10 && !there; ++seed) {
      Choices choices(seed);
      const Case made = MakeCaseOf(op->name, choices, 2);
      for (graph::NodeId id = 0; id < made.graph->node_count(); ++id)
        there |= std::string(made.graph->node(id).op->name) == op->name;
      const Finding finding = Compare(made, choices, 1);
      EXPECT_EQ(finding.what, "") << op->name << ", " << SettingsText(finding.settings);
    }
    EXPECT_EQ(there, NeverGenerated().count(op->name) == 0)
        << op->name << ": an operator is in random graphs or in ops_never_generated.inc";
  }
}

// What was found by one try of each kind of mistake must stay found: bounds that grow make the
// comparison blind.
TEST(DifferentialTest, BoundsAreTight) {
  Counts counts;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    Choices choices(seed);
    (void)Compare(MakeCase(choices, 24), choices, 0, {}, &counts);
  }
  const double all = static_cast<double>(counts.exact + counts.tight + counts.loose);
  EXPECT_GT(static_cast<double>(counts.exact), 0.4 * all);
  EXPECT_LT(static_cast<double>(counts.loose), 0.05 * all);
}

TEST(DifferentialTest, AnElementThatIsOffByAFewBoundsIsFound) {
  int tried = 0, large = 0, found = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Choices choices(seed);
    const Case made = MakeCase(choices, 24);
    for (const graph::ValueId id : made.graph->outputs()) {
      const Value right = made.values[id];
      if (!right.is_tensor() || !IsFloat(right.tensor().dtype()) ||
          right.tensor().element_count() == 0)
        continue;
      const double by = 3 * made.noise[id] + 1e-4 * (1 + LargestOf(right));
      std::vector<double> numbers = *Reals(right.tensor());
      const std::size_t at = static_cast<std::size_t>(choices.Below(numbers.size()));
      const double was = numbers[at];
      numbers[at] += by;
      Case wrong = made;
      wrong.values[id] =
          ops::MakeTensorOf(right.tensor().dtype(),
                            {right.tensor().dims().begin(), right.tensor().dims().end()}, numbers);
      if ((*Reals(wrong.values[id].tensor()))[at] == was) continue;  // less than its type can say
      ++tried;
      large += by > 1e-3 * (1 + LargestOf(right));
      const Finding finding = Compare(wrong, choices, 0);
      found += !finding.what.empty();
    }
  }
  EXPECT_GT(tried, 100);
  EXPECT_LT(large, tried / 5);
  EXPECT_EQ(found, tried);
}

TEST(DifferentialTest, TheSameSeedMakesTheSameGraph) {
  Choices one(7), two(7);
  EXPECT_EQ(CaseText(MakeCase(one, 24)), CaseText(MakeCase(two, 24)));
}

TEST(DifferentialTest, ADifferenceIsReducedToTheNodesThatMakeIt) {
  Choices choices(3);
  Case made = MakeCase(choices, 24);
  // An answer that no device gives.
  const graph::ValueId output = made.graph->outputs()[0];
  made.values[output] = Value(Tensor::Int64s({1, 2, 3, 4, 5, 6, 7}));
  const Finding finding = Compare(made, choices, 0);
  ASSERT_NE(finding.what, "");
  const Case small = Reduce(made, finding.settings);
  ASSERT_NE(small.graph, nullptr);
  EXPECT_EQ(small.graph->outputs().size(), 1u);
  EXPECT_LE(small.graph->node_count(), 1);
}

}  // namespace
}  // namespace npurt::fuzz
