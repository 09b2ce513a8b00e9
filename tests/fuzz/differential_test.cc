// A few of the graphs that the program `differential` tries for as long as one likes.
#include "fuzz/differential.h"

#include <gtest/gtest.h>

#include <set>

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
