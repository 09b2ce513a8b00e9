// Which nodes become one.
#include <gtest/gtest.h>

#include "compile/compile.h"
#include "support/graphs.h"

namespace npurt::compile {
namespace {

using npurt::testing::GraphBuilder;

int Merged(GraphBuilder& b, HashSet<std::string> keep = {}) {
  CompileOptions options;
  options.keep = std::move(keep);
  PassContext context{b.graph(), options};
  const auto changes = MergeEqualNodes(context);
  EXPECT_TRUE(changes.ok()) << changes.status();
  return changes.value_or(-1);
}

Attributes Axis(std::int64_t axis) {
  Attributes attributes;
  attributes.Set("axis", axis);
  return attributes;
}

TEST(MergeEqualTest, ChainsOfEqualNodesAreOne) {
  GraphBuilder b;
  const auto x = b.Input("x", DType::kF32, {2, 3});
  const auto a = b.Node("Mul", {b.Node("Exp", {x}, "a1"), b.Floats("two", {}, {2})}, "a2");
  const auto c = b.Node("Mul", {b.Node("Exp", {x}, "c1"), b.Floats("zwei", {}, {2})}, "c2");
  b.Output(b.Node("Sub", {a, c}, "y"));
  EXPECT_EQ(Merged(b), 2);
  const graph::Node& last = b.graph().node(b.graph().value(b.graph().Find("y")).producer);
  EXPECT_EQ(last.inputs[0], last.inputs[1]);
  EXPECT_EQ(b.graph().node(b.graph().value(a).producer).origins.size(), 2u);
}

TEST(MergeEqualTest, DifferentAttributesInputsAndConstantsStayApart) {
  GraphBuilder b;
  const auto x = b.Input("x", DType::kF32, {2, 2}), z = b.Input("z", DType::kF32, {2, 2});
  b.Output(b.Node(
      "Add", {b.Node("Softmax", {x}, "p", Axis(0)), b.Node("Softmax", {x}, "q", Axis(1))}, "u"));
  b.Output(b.Node("Add", {b.Node("Exp", {x}, "r"), b.Node("Exp", {z}, "s")}, "v"));
  b.Output(b.Node("Add",
                  {b.Node("Mul", {x, b.Floats("c", {1}, {2})}, "i"),
                   b.Node("Mul", {x, b.Floats("d", {}, {2})}, "j")},
                  "w"));
  EXPECT_EQ(Merged(b), 0);
}

TEST(MergeEqualTest, RandomNodesAndWhatMustBeSeenStay) {
  GraphBuilder b;
  const auto x = b.Input("x", DType::kF32, {2});
  b.Output(b.Node(
      "Add", {b.Node("RandomNormalLike", {x}, "r"), b.Node("RandomNormalLike", {x}, "s")}, "u"));
  b.Output(b.Node("Exp", {x}, "e"));
  b.Output(b.Node("Exp", {x}, "f"));
  b.Output(b.Node("Add", {b.Node("Log", {x}, "g"), b.Node("Log", {x}, "kept")}, "v"));
  EXPECT_EQ(Merged(b, {"kept"}), 0);
}

}  // namespace
}  // namespace npurt::compile
