// What the rules for attention, normalisations and Gelu recognise, and what they leave alone.
#include <gtest/gtest.h>

#include <cmath>

#include "compile/compile.h"
#include "support/graphs.h"

namespace npurt::compile {
namespace {

using graph::ValueId;
using npurt::testing::GraphBuilder;

int Fused(GraphBuilder& b, PassFn pass, HashSet<std::string> keep = {}) {
  CompileOptions options;
  options.keep = std::move(keep);
  PassContext context{b.graph(), options};
  const auto changes = pass(context);
  EXPECT_TRUE(changes.ok()) << changes.status();
  return changes.value_or(-1);
}

const graph::Node& Producer(GraphBuilder& b, const std::string& name) {
  return b.graph().node(b.graph().value(b.graph().Find(name)).producer);
}

Attributes With(const char* name, AttributeValue value) {
  Attributes attributes;
  attributes.Set(name, std::move(value));
  return attributes;
}
Attributes Perm(std::vector<std::int64_t> perm) { return With("perm", std::move(perm)); }

// --- Attention
// ------------------------------------------------------------------------------------

// q, k and v of the given shapes, k as [batch, rows, heads, size]; the scores divided by 4.
struct Written {
  std::vector<std::int64_t> q = {2, 3, 5, 16}, k = {2, 7, 3, 16}, v = {2, 3, 7, 8},
                            mask = {2, 1, 1, 7};
  std::int64_t axis = -1;
};
void WriteAttention(GraphBuilder& b, const Written& w) {
  const auto k = b.Node("Transpose", {b.Input("k", DType::kF32, w.k)}, "kt", Perm({0, 2, 3, 1}));
  auto s = b.Node("MatMul", {b.Input("q", DType::kF32, w.q), k}, "product");
  s = b.Node("Div", {s, b.Floats("four", {}, {4})}, "scaled");
  s = b.Node("Add", {s, b.Input("mask", DType::kF32, w.mask)}, "masked");
  s = b.Node("Softmax", {s}, "shares", With("axis", w.axis));
  b.Output(b.Node("MatMul", {s, b.Input("v", DType::kF32, w.v)}, "y"));
}

TEST(PatternsTest, AttentionOfFourDimensions) {
  GraphBuilder b;
  WriteAttention(b, {});
  EXPECT_EQ(Fused(b, FuseAttention), 1);
  const graph::Node& node = Producer(b, "y");
  EXPECT_STREQ(node.op->name, "Attention");
  EXPECT_EQ(node.attributes.Float("scale"), 0.25f);
  EXPECT_EQ(node.inputs.size(), 4u);
  EXPECT_EQ(b.graph().value(node.inputs[3]).name, "mask");
  const graph::Node& k = b.graph().node(b.graph().value(node.inputs[1]).producer);
  const auto perm = k.attributes.Ints("perm");
  EXPECT_EQ(std::vector<std::int64_t>(perm.begin(), perm.end()),
            (std::vector<std::int64_t>{0, 2, 1, 3}));
  EXPECT_EQ(node.origins.size(), 6u);
}

TEST(PatternsTest, AttentionOfThreeDimensionsWithScalesOfQAndK) {
  GraphBuilder b;
  const auto q =
      b.Node("Mul", {b.Input("q", DType::kF32, {6, -1, 16}), b.Floats("a", {}, {0.5})}, "q2");
  const auto k =
      b.Node("Transpose", {b.Input("k", DType::kF32, {6, -2, 16})}, "kt", Perm({0, 2, 1}));
  const auto scaled = b.Node("Mul", {b.Floats("b", {1}, {0.5}), k}, "k2");
  const auto s = b.Node("Softmax", {b.Node("MatMul", {q, scaled}, "s")}, "p");
  b.Output(b.Node("MatMul", {s, b.Input("v", DType::kF32, {6, -2, 4})}, "y"));
  EXPECT_EQ(Fused(b, FuseAttention), 1);
  const graph::Node& node = Producer(b, "y");
  EXPECT_EQ(node.attributes.Float("scale"), 0.25f);
  EXPECT_EQ(node.attributes.Int("q_num_heads"), 1);
  EXPECT_EQ(b.graph().value(node.inputs[1]).name, "k");
}

TEST(PatternsTest, NoAttentionWhereAttentionMeansAnotherThing) {
  const Written cases[] = {
      {.axis = 1},
      {.mask = {2, 3, 5, 1}},                   // hides all keys but the first
      {.k = {1, 7, 3, 16}},                     // broadcast
      {.k = {2, 7, 1, 16}, .v = {2, 1, 7, 8}},  // shared heads
  };
  for (const Written& w : cases) {
    GraphBuilder b;
    WriteAttention(b, w);
    EXPECT_EQ(Fused(b, FuseAttention), 0) << &w - cases;
  }
  GraphBuilder kept;
  WriteAttention(kept, {});
  EXPECT_EQ(Fused(kept, FuseAttention, {"shares"}), 0);
}

// --- Normalisations
// -------------------------------------------------------------------------------

ValueId Mean(GraphBuilder& b, ValueId x, const std::string& name, std::int64_t axis = -1) {
  return b.Node("ReduceMean", {x, b.Constant(name + "/axes", Tensor::Int64s({axis}))}, name);
}
ValueId Deviation(GraphBuilder& b, ValueId squares, std::int64_t axis = -1) {
  const auto sum =
      b.Node("Add", {Mean(b, squares, "variance", axis), b.Floats("eps", {}, {1e-5f})}, "sum");
  return b.Node("Sqrt", {sum}, "s");
}

TEST(PatternsTest, LayerNormalizationWithScaleAndBias) {
  GraphBuilder b;
  const auto x = b.Input("x", DType::kF32, {-1, 4});
  const auto d = b.Node("Sub", {x, Mean(b, x, "mean")}, "d");
  const auto s = Deviation(b, b.Node("Pow", {d, b.Floats("two", {}, {2})}, "squares"));
  const auto n = b.Node("Div", {d, s}, "n");
  const auto m = b.Node("Mul", {n, b.Floats("scale", {4}, {1, 2, 3, 4})}, "m");
  b.Output(b.Node("Add", {b.Floats("bias", {1, 4}, {4, 3, 2, 1}), m}, "y"));
  EXPECT_EQ(Fused(b, FuseNorms), 1);
  const graph::Node& node = Producer(b, "y");
  EXPECT_STREQ(node.op->name, "LayerNormalization");
  EXPECT_EQ(node.attributes.Float("epsilon"), 1e-5f);
  EXPECT_EQ(b.graph().value(node.inputs[1]).constant.at<float>(3), 4);
  EXPECT_EQ(b.graph().value(node.inputs[2]).constant.at<float>(0), 4);
}

TEST(PatternsTest, LayerNormalizationWithItsBiasShifted) {
  GraphBuilder b;
  const auto x = b.Input("x", DType::kF32, {-1, 2});
  const auto mean = Mean(b, x, "mean");
  const auto d = b.Node("Sub", {x, mean}, "d");
  const auto r = b.Node("Reciprocal", {Deviation(b, b.Node("Mul", {d, d}, "squares"))}, "r");
  const auto g = b.Node("Mul", {r, b.Floats("scale", {2}, {1, 2})}, "g");
  const auto shift =
      b.Node("Sub", {b.Floats("bias", {2}, {3, 4}), b.Node("Mul", {g, mean}, "mg")}, "shift");
  b.Output(b.Node("Add", {b.Node("Mul", {x, g}, "xg"), shift}, "y"));
  EXPECT_EQ(Fused(b, FuseNorms), 1);
  const graph::Node& node = Producer(b, "y");
  EXPECT_STREQ(node.op->name, "LayerNormalization");
  EXPECT_EQ(b.graph().value(node.inputs[1]).constant.at<float>(1), 2);
  EXPECT_EQ(b.graph().value(node.inputs[2]).constant.at<float>(1), 4);
}

TEST(PatternsTest, RmsNormalizationWithAReciprocal) {
  GraphBuilder b;
  const auto x = b.Input("x", DType::kF32, {-1, 2});
  const auto s = Deviation(b, b.Node("Pow", {x, b.Floats("two", {}, {2})}, "squares"));
  const auto r = b.Node("Div", {b.Floats("one", {}, {1}), s}, "r");
  const auto n = b.Node("Mul", {x, r}, "n");
  b.Output(b.Node("Mul", {b.Floats("scale", {2}, {1, 2}), n}, "y"));
  EXPECT_EQ(Fused(b, FuseNorms), 1);
  EXPECT_STREQ(Producer(b, "y").op->name, "RMSNormalization");
}

TEST(PatternsTest, NoNormalizationOverAnotherAxisOrOfAnotherValue) {
  GraphBuilder b;
  const auto x = b.Input("x", DType::kF32, {3, 3});
  b.Output(b.Node("Div", {x, Deviation(b, b.Node("Mul", {x, x}, "squares"), 0)}, "y"));
  EXPECT_EQ(Fused(b, FuseNorms), 0);
  GraphBuilder c;
  const auto u = c.Input("u", DType::kF32, {3, 3});
  c.Output(c.Node(
      "Div", {c.Input("w", DType::kF32, {3, 3}), Deviation(c, c.Node("Mul", {u, u}, "squares"))},
      "y"));
  EXPECT_EQ(Fused(c, FuseNorms), 0);
}

// --- Gelu
// -----------------------------------------------------------------------------------------

ValueId Number(GraphBuilder& b, double value) {
  return b.Floats("number" + std::to_string(b.graph().value_count()), {},
                  {static_cast<float>(value)});
}

ValueId OnePlusErf(GraphBuilder& b, ValueId x) {
  const auto erf = b.Node("Erf", {b.Node("Div", {x, Number(b, std::sqrt(2.0))}, "arg")}, "erf");
  return b.Node("Add", {erf, Number(b, 1)}, "sum");
}

TEST(PatternsTest, GeluInAnyOrderOfFactors) {
  for (int order = 0; order < 3; ++order) {
    GraphBuilder b;
    const auto x = b.Input("x", DType::kF32, {-1, 8}), half = Number(b, 0.5);
    const auto e = OnePlusErf(b, x);
    const ValueId inner[3][2] = {{x, e}, {x, half}, {half, e}};
    const ValueId last[3] = {half, e, x};
    b.Output(
        b.Node("Mul", {b.Node("Mul", {inner[order][0], inner[order][1]}, "m"), last[order]}, "y"));
    EXPECT_EQ(Fused(b, FuseGelu), 1) << order;
    const graph::Node& node = Producer(b, "y");
    EXPECT_STREQ(node.op->name, "Gelu");
    EXPECT_EQ(node.inputs, std::vector<ValueId>{x});
    EXPECT_FALSE(node.attributes.Has("approximate"));
  }
}

TEST(PatternsTest, GeluOfASumIsOfTheSum) {
  GraphBuilder b;
  const auto x =
      b.Node("Add", {b.Input("a", DType::kF32, {8}), b.Input("b", DType::kF32, {8})}, "x");
  b.Output(b.Node("Mul", {b.Node("Mul", {x, OnePlusErf(b, x)}, "m"), Number(b, 0.5)}, "y"));
  EXPECT_EQ(Fused(b, FuseGelu), 1);
  EXPECT_EQ(Producer(b, "y").inputs, std::vector<ValueId>{x});
}

TEST(PatternsTest, GeluWithTanh) {
  for (bool powers : {true, false}) {
    GraphBuilder b;
    const auto x = b.Input("x", DType::kF32, {8});
    const double first = std::sqrt(2 / M_PI);
    ValueId argument;
    if (powers) {
      const auto cube = b.Node("Pow", {x, Number(b, 3)}, "cube");
      const auto sum = b.Node("Add", {x, b.Node("Mul", {cube, Number(b, 0.044715)}, "c1")}, "c2");
      argument = b.Node("Mul", {sum, Number(b, first)}, "argument");
    } else {
      const auto square = b.Node("Mul", {b.Node("Mul", {x, x}, "xx"), Number(b, 0.044715)}, "c1");
      const auto sum = b.Node("Add", {square, Number(b, 1)}, "c2");
      argument = b.Node("Mul", {b.Node("Mul", {x, Number(b, first)}, "c3"), sum}, "argument");
    }
    const auto e = b.Node("Add", {b.Node("Tanh", {argument}, "tanh"), Number(b, 1)}, "e");
    b.Output(b.Node("Mul", {b.Node("Mul", {x, Number(b, 0.5)}, "half"), e}, "y"));
    EXPECT_EQ(Fused(b, FuseGelu), 1) << powers;
    EXPECT_EQ(Producer(b, "y").attributes.String("approximate"), "tanh");
  }
}

TEST(PatternsTest, NoGeluWithOtherNumbersOrReadersInside) {
  GraphBuilder b;
  const auto x = b.Input("x", DType::kF32, {8});
  b.Output(b.Node("Mul", {b.Node("Mul", {x, OnePlusErf(b, x)}, "m"), Number(b, 0.25)}, "y"));
  EXPECT_EQ(Fused(b, FuseGelu), 0);
  GraphBuilder c;
  const auto u = c.Input("u", DType::kF32, {8});
  c.Output(c.Node("Mul", {c.Node("Mul", {u, OnePlusErf(c, u)}, "m"), Number(c, 0.5)}, "y"));
  c.Output(c.graph().Find("erf"));
  EXPECT_EQ(Fused(c, FuseGelu), 0);
}

}  // namespace
}  // namespace npurt::compile
