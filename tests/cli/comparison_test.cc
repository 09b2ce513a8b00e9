// A model in two configurations: which values are compared, in what order, and what is found.
#include "cli/comparison.h"

#include <gtest/gtest.h>

#include <memory>

#include "cli/compare_html.h"
#include "cli/session.h"
#include "cli/values.h"
#include "support/onnx_builder.h"

namespace npurt::cli {
namespace {

using namespace npurt::tests::onnx;  // NOLINT: the vocabulary of the models below

class ComparisonTest : public ::testing::Test {
 protected:
  // x -> Neg -> n -> Add noise -> s -> Mul 2 -> y, and ArgMax of s. The noise is another one for
  // another seed, so that everything after it differs.
  static std::string Noisy() {
    return Model(Graph()
                     .Input("x", kFloat, {4})
                     .Initializer(FloatTensor("two", {}, {2}))
                     .Node("Neg", {"x"}, {"n"}, {.name = "negate"})
                     .Node("RandomUniformLike", {"n"}, {"noise"}, {.name = "random"})
                     .Node("Add", {"n", "noise"}, {"s"}, {.name = "sum"})
                     .Node("Mul", {"s", "two"}, {"y"}, {.name = "double"})
                     .Output("y", kFloat)
                     .Output("n", kFloat));
  }

  void Load(const std::string& bytes) {
    OwnedError error;
    ASSERT_EQ(npurt_model_load_memory(bytes.data(), bytes.size(), nullptr, nullptr, model_.out(),
                                      error.out()),
              NPURT_OK)
        << ErrorText(error.get());
  }

  Comparison Run(std::vector<std::string> a, std::vector<std::string> b,
                 const ComparisonSettings& settings = {}) {
    SessionFlags flags_a, flags_b;
    flags_a.options = std::move(a);
    flags_b.options = std::move(b);
    OwnedSession session_a, session_b;
    Array x;
    x.dtype = NPURT_FLOAT32;
    x.dims = {4};
    x.bytes.resize(16);
    for (std::size_t i = 0; i < 4; ++i) StoreElement(x.dtype, x.bytes.data(), i, double(i));
    std::vector<OwnedValue> inputs(1);
    Comparison comparison;
    const auto want = [](const Status& status) { EXPECT_TRUE(status.ok()) << status.message(); };
    want(Compile(model_.get(), flags_a, "A", &session_a));
    want(Compile(model_.get(), flags_b, "B", &session_b));
    want(ToValue(x, &inputs[0]));
    want(Compare(model_.get(), session_a.get(), session_b.get(), inputs, settings, &comparison));
    return comparison;
  }

  static std::vector<std::string> NamesOf(const Comparison& comparison) {
    std::vector<std::string> names;
    for (const ComparedValue& value : comparison.values) names.push_back(value.name);
    return names;
  }

  OwnedModel model_;
};

using Strings = std::vector<std::string>;

TEST_F(ComparisonTest, FindsTheFirstValueThatDiffers) {
  Load(Noisy());
  const Comparison c = Run({"fusion=false", "random_seed=1"}, {"fusion=false", "random_seed=2"});
  EXPECT_EQ(NamesOf(c), (Strings{"n", "noise", "s", "y"}));
  EXPECT_EQ(c.graph_values, 4u);
  EXPECT_EQ(c.hidden_a, 0u);
  ASSERT_NE(c.first_beyond(), nullptr);
  EXPECT_EQ(c.first_beyond()->name, "noise");
  EXPECT_EQ(c.first_beyond()->node, "random");
  EXPECT_EQ(c.first_beyond()->op, "RandomUniformLike");
  EXPECT_EQ(c.first_beyond()->type_b, "float32 [4]");
  EXPECT_EQ(c.values[0].distance.max_abs, 0);
  EXPECT_TRUE(c.values[0].is_output);
  EXPECT_TRUE(c.values[3].is_output);
  EXPECT_FALSE(c.values[1].is_output);
  EXPECT_FALSE(c.within());
  for (const ComparedValue* value : c.Worst(10)) EXPECT_NE(value->name, "n");
  EXPECT_EQ(c.Worst(1).size(), 1u);
}

TEST_F(ComparisonTest, MemoryIsBoundedByRunningAgain) {
  Load(Noisy());
  ComparisonSettings settings;
  settings.keep_bytes = 1;
  const Comparison c = Run({"fusion=false"}, {"fusion=false", "max_isa=generic"}, settings);
  EXPECT_EQ(NamesOf(c), (Strings{"n", "noise", "s", "y"}));
  EXPECT_EQ(c.runs, 4u) << "a value each";
  EXPECT_TRUE(c.within()) << "the n-th runs of both draw the same numbers";
  settings.keep_bytes = 32;
  EXPECT_EQ(Run({"fusion=false"}, {"fusion=false"}, settings).runs, 2u);
}

TEST_F(ComparisonTest, WhatFusionHidesIsNotCompared) {
  Load(Noisy());
  const Comparison c = Run({}, {"fusion=false"});
  EXPECT_EQ(NamesOf(c), (Strings{"n", "noise", "y"}));
  EXPECT_EQ(c.hidden_a, 1u);
  EXPECT_EQ(c.hidden_b, 0u);
  EXPECT_TRUE(c.within());
}

TEST_F(ComparisonTest, OutputsOnly) {
  Load(Noisy());
  ComparisonSettings settings;
  settings.outputs_only = true;
  EXPECT_EQ(NamesOf(Run({"fusion=false"}, {"fusion=false"}, settings)), (Strings{"n", "y"}));
}

TEST_F(ComparisonTest, TheGivenToleranceReplacesThatOfTheTypes) {
  Load(Noisy());
  Limits wide;
  ASSERT_TRUE(ParseLimits("abs=10", &wide).ok());
  ComparisonSettings settings;
  settings.limits = &wide;
  EXPECT_TRUE(Run({"random_seed=1"}, {"random_seed=2"}, settings).within());
}

// Half of the way is float16: what follows it may be as far apart as float16 is, also in float32.
TEST_F(ComparisonTest, TheCoarsestTypeOnTheWayDecidesWhatIsAllowed) {
  Load(Model(Graph()
                 .Input("x", kFloat, {4})
                 .Node("Neg", {"x"}, {"fine"})
                 .Node("Cast", {"fine"}, {"half"}, {.attributes = {IntAttribute("to", 10)}})
                 .Node("Cast", {"half"}, {"y"}, {.attributes = {IntAttribute("to", 1)}})
                 .Node("Abs", {"fine"}, {"z"})
                 .Output("y", kFloat)
                 .Output("z", kFloat)));
  const Comparison c = Run({"fusion=false"}, {"fusion=false", "device=reference"});
  for (const ComparedValue& value : c.values) {
    const bool coarse = value.name == "y" || value.name == "half";
    EXPECT_EQ(value.coarseness, Coarseness(coarse ? NPURT_FLOAT16 : NPURT_FLOAT32)) << value.name;
  }
}

TEST_F(ComparisonTest, OutputsThatNoStepMakesAreComparedToo) {
  Load(Model(Graph()
                 .Input("x", kFloat, {4})
                 .Initializer(FloatTensor("c", {1}, {2}))
                 .Node("Neg", {"c"}, {"folded"})
                 .Node("Neg", {"x"}, {"y"})
                 .Output("y", kFloat)
                 .Output("folded", kFloat)
                 .Output("x", kFloat)));
  EXPECT_EQ(NamesOf(Run({}, {})), (Strings{"folded", "y", "x"}));
}

TEST_F(ComparisonTest, ThePageShowsEveryValueAndNamesAreEscaped) {
  Load(Model(Graph()
                 .Input("x", kFloat, {4})
                 .Node("RandomUniformLike", {"x"}, {"a<b>&\"c\""})
                 .Output("a<b>&\"c\"", kFloat)));
  const Comparison c = Run({"random_seed=1"}, {"random_seed=2"});
  const std::string page = ComparisonPage({"model", "A", "B"}, c);
  EXPECT_NE(page.find("<circle class='beyond'"), std::string::npos);
  EXPECT_NE(page.find("a&lt;b&gt;&amp;&quot;c&quot;"), std::string::npos);
  EXPECT_EQ(page.find("a<b>"), std::string::npos);
  EXPECT_NE(page.find("first beyond"), std::string::npos);
}

}  // namespace
}  // namespace npurt::cli
