// The search for a black list: what repairs a model that overflows in float16, and what cannot be
// repaired.
#include "cli/mix_list.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

#include "cli/values.h"
#include "support/onnx_builder.h"

namespace npurt::cli {
namespace {

using namespace npurt::tests::onnx;  // NOLINT: the vocabulary of the models below
using Strings = std::set<std::string>;

class MixSearchTest : public ::testing::Test {
 protected:
  // x -> Conv, which float16 does well -> MatMul, whose sums pass 65504 -> Mul by 1/1024 -> y. Both
  // are white, so that mixed precision lowers all of it.
  static std::string Overflows() {
    return Model(
        Graph()
            .Input("x", kFloat, {1, 1, 4, 4})
            .Initializer(FloatTensor("w", {1, 1, 1, 1}, {0.75f}))
            .Initializer(FloatTensor("m", {4, 4}, std::vector<float>(16, 30000)))
            .Initializer(FloatTensor("s", {1}, {1.0f / 1024}))
            .Node("Conv", {"x", "w"}, {"c"}, {.name = "conv"})
            .Node("MatMul", {"c", "m"}, {"p"}, {.name = "product"})
            .Node("Mul", {"p", "s"}, {"y"}, {.name = "scale"})
            .Output("y", kFloat));
  }

  void SetUp() override {
    const std::string bytes = Overflows();
    OwnedError error;
    ASSERT_EQ(npurt_model_load_memory(bytes.data(), bytes.size(), nullptr, nullptr, model_.out(),
                                      error.out()),
              NPURT_OK)
        << ErrorText(error.get());
    for (const double first : {1.0, 3.0}) {
      Array x;
      x.dtype = NPURT_FLOAT32;
      x.dims = {1, 1, 4, 4};
      x.bytes.resize(64);
      for (std::size_t i = 0; i < 16; ++i)
        StoreElement(x.dtype, x.bytes.data(), i, first + double(i) / 16);
      inputs_.emplace_back(1);
      ASSERT_TRUE(ToValue(x, &inputs_.back()[0]).ok());
    }
  }

  // Writes `text`, which is gone after the test.
  std::string File(const std::string& name, const std::string& text) {
    files_.push_back(::testing::TempDir() + "npurt_mix_list_test_" + name);
    std::ofstream(files_.back()) << text;
    return files_.back();
  }
  ~MixSearchTest() override {
    for (const std::string& file : files_) std::remove(file.c_str());
  }

  SessionFlags Flags(std::vector<std::string> options) {
    SessionFlags flags;
    flags.options = std::move(options);
    return flags;
  }

  OwnedModel model_;
  std::vector<std::vector<OwnedValue>> inputs_;
  std::vector<std::string> files_, told_;
  const std::function<void(const std::string&)> tell_ = [this](const std::string& line) {
    told_.push_back(line);
  };
};

TEST_F(MixSearchTest, RepairsAModelThatOverflowsInFloat16) {
  MixSearch search(model_.get(), Flags({"precision_mode_v2=mixed_float16"}), inputs_);
  Status status = search.Start(nullptr);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_GT(search.before().excess, 1);
  EXPECT_EQ(search.before().outputs[0].not_finite, 32u) << "all of both sets of inputs";
  bool found = false;
  status = search.Find(tell_, &found);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(found);
  EXPECT_EQ(search.list().black, Strings{"MatMul"});
  EXPECT_EQ(search.after().outputs[0].not_finite, 0u);
  EXPECT_LE(search.after().excess, 1);
  EXPECT_EQ(search.after().lowered.count("Conv"), 1u) << "what does no harm stays lowered";
  EXPECT_GT(search.alone().at("MatMul"), 1);
  EXPECT_LE(search.alone().at("Conv"), 1);
  EXPECT_FALSE(told_.empty());

  MixTrial again;
  ASSERT_TRUE(search.TryFile(File("list.json", search.list().Json()), &again).ok());
  EXPECT_LE(again.excess, 1);
}

TEST_F(MixSearchTest, SaysNothingWhereNothingIsWrong) {
  MixSearch search(model_.get(), Flags({"precision_mode=allow_mix_precision_bf16"}), inputs_);
  ASSERT_TRUE(search.Start(nullptr).ok());
  bool found = false;
  ASSERT_TRUE(search.Find(tell_, &found).ok());
  EXPECT_TRUE(found);
  EXPECT_TRUE(search.list().black.empty()) << "bfloat16 has the range of float32";
  EXPECT_TRUE(told_.empty()) << "not even tried";
}

// What customize_dtypes wants stands above lists.
TEST_F(MixSearchTest, SaysWhereTheErrorIsThatNoListMends) {
  const std::string types =
      File("types.cfg", "product::InputDtype:float16,float16,OutputDtype:float16\n");
  MixSearch search(model_.get(),
                   Flags({"precision_mode_v2=mixed_float16", "customize_dtypes=" + types}),
                   inputs_);
  ASSERT_TRUE(search.Start(nullptr).ok());
  bool found = true;
  ASSERT_TRUE(search.Find(tell_, &found).ok());
  EXPECT_FALSE(found);
  Comparison comparison;
  ASSERT_TRUE(search.CompareValues(&comparison).ok());
  ASSERT_FALSE(comparison.within());
  EXPECT_EQ(comparison.Worst(1)[0]->distance.not_finite, 16u);
}

TEST_F(MixSearchTest, TheListIsWhatTheOptionReads) {
  MixList list;
  EXPECT_EQ(list.Json(), "{}\n");
  list.black = {"MatMul", "Exp"};
  list.white = {"Add"};
  EXPECT_EQ(list.Json(),
            "{\n  \"black-list\": {\n    \"to-add\": [\n      \"Exp\",\n      \"MatMul\"\n    ]\n  "
            "},\n  \"white-list\": {\n    \"to-add\": [\n      \"Add\"\n    ]\n  }\n}\n");
}

}  // namespace
}  // namespace npurt::cli
