#include "base/shape.h"

#include <gtest/gtest.h>

namespace npurt {
namespace {

std::vector<std::int64_t> Evaluated(const DimTable& table,
                                    const std::vector<std::pair<Dim, std::int64_t>>& given) {
  std::vector<std::int64_t> values(table.size(), kInvalidDim);
  for (const auto& [symbol, value] : given) values[symbol.node()->index] = value;
  table.Evaluate(absl::MakeSpan(values));
  return values;
}

TEST(DimTest, FoldsConstants) {
  EXPECT_EQ(Dim(3) + 4, Dim(7));
  EXPECT_EQ(Dim(3) - 4, Dim(-1));
  EXPECT_EQ(Dim(3) * 4, Dim(12));
  EXPECT_EQ(FloorDiv(-7, 2), Dim(-4));
  EXPECT_EQ(CeilDiv(7, 2), Dim(4));
  EXPECT_EQ(Mod(-7, 3), Dim(2));
  EXPECT_EQ(Min(3, 4), Dim(3));
  EXPECT_EQ(Max(3, 4), Dim(4));
}

TEST(DimTest, CancelsWhatIsPlainlyEqual) {
  DimTable table;
  const Dim n = table.Symbol("n"), c = table.Symbol("c");
  EXPECT_TRUE((n - n).Is(0));
  EXPECT_EQ((n + 2) + 3, n + 5);
  EXPECT_EQ((n + 5) - 5, n);
  EXPECT_EQ(n * c, c * n);
  EXPECT_EQ(FloorDiv(n * c * 6, c * 3), n * 2);
  EXPECT_EQ(ProductQuotient({n, c, Dim(8)}, {c, Dim(2)}), n * 4);
  EXPECT_EQ(FloorDiv(n, n), Dim(1));
}

TEST(DimTest, TheSameNameIsTheSameSymbol) {
  DimTable table;
  EXPECT_EQ(table.Symbol("batch"), table.Symbol("batch"));
  EXPECT_NE(table.RunSymbol("count"), table.RunSymbol("count"));
}

TEST(DimTest, EvaluatesExpressions) {
  DimTable table;
  const Dim h = table.Symbol("h");
  const Dim out = FloorDiv(h + 2 - 3, 2) + 1;
  const auto values = Evaluated(table, {{h, 224}});
  EXPECT_EQ(ValueOf(out, values), 112);
}

TEST(DimTest, BroadcastOfTwoSymbolsIsDecidedWhenBound) {
  DimTable table;
  const Dim a = table.Symbol("a"), b = table.Symbol("b");
  const Dim both = Broadcast(a, b);
  EXPECT_EQ(ValueOf(both, Evaluated(table, {{a, 1}, {b, 5}})), 5);
  EXPECT_EQ(ValueOf(both, Evaluated(table, {{a, 5}, {b, 5}})), 5);
  EXPECT_EQ(ValueOf(both, Evaluated(table, {{a, 4}, {b, 5}})), kInvalidDim);
}

TEST(DimTest, OverflowAndDivisionByZeroAreInvalidNotUndefined) {
  DimTable table;
  const Dim n = table.Symbol("n");
  const Dim square = n * n, quotient = FloorDiv(Dim(10), n);
  EXPECT_EQ(ValueOf(square, Evaluated(table, {{n, std::int64_t{1} << 40}})), kInvalidDim);
  EXPECT_EQ(ValueOf(quotient, Evaluated(table, {{n, 0}})), kInvalidDim);
  std::int64_t out;
  EXPECT_FALSE(ApplyDimOp(DimOp::kFloorDiv, INT64_MIN, -1, &out));
}

TEST(DimTest, WhatDependsOnTheRunSaysSo) {
  DimTable table;
  const Dim count = table.RunSymbol("count");
  EXPECT_TRUE((count * 4 + 1).depends_on_run());
  EXPECT_FALSE((table.Symbol("n") * 4).depends_on_run());
}

TEST(DimTest, ACloneHasTheSameExpressions) {
  DimTable table;
  const Dim n = table.Symbol("n");
  const Dim twice = n * 2 + 1;
  const auto clone = table.Clone();
  const Dim there = clone->Translate(twice);
  EXPECT_EQ(there, clone->Symbol("n") * 2 + 1);
  EXPECT_EQ(there.ToString(), twice.ToString());
  EXPECT_NE(there.node(), twice.node());
}

TEST(ShapeTest, ElementCountRefusesNegativeAndHugeShapes) {
  EXPECT_EQ(*ElementCount({2, 3, 4}), 24);
  EXPECT_EQ(*ElementCount({std::int64_t{1} << 61, std::int64_t{1} << 61, 0}), 0);
  EXPECT_FALSE(ElementCount({2, -1}).ok());
  EXPECT_FALSE(ElementCount({std::int64_t{1} << 40, std::int64_t{1} << 40}).ok());
}

TEST(DimTest, SquaringAgainAndAgainStaysSmall) {
  DimTable table;
  Dim product = table.Symbol("n"), sum = product;
  for (int i = 0; i < 200; ++i) {
    product = product * product;
    sum = Max(sum, sum + sum * Dim(std::int64_t{2}));
  }
  EXPECT_LT(table.size(), 50'000);
  EXPECT_LT(product.ToString().size(), 10'000u);
  EXPECT_LT(sum.ToString().size(), 10'000u);
  EXPECT_LT(FloorDiv(product, product * product).ToString().size(), 10'000u);
  std::vector<std::int64_t> values(table.size(), kInvalidDim);
  values[0] = 1;
  table.Evaluate(absl::MakeSpan(values));
  EXPECT_EQ(ValueOf(product, values), 1);
}

}  // namespace
}  // namespace npurt
