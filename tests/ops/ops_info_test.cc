// Operator information: the lists of mixed precision name operators, and the JSON says what they
// take.
#include "ops/ops_info.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "ops/op_def.h"

namespace npurt::ops {
namespace {

TEST(OpsInfoTest, ListsNameOperatorsAndEachOnce) {
  std::set<std::string> names;
  for (const char* name : {
#define NPURT_WHITE(name) #name,
#define NPURT_BLACK(name) #name,
#include "ops/precision_reduce.inc"
#undef NPURT_WHITE
#undef NPURT_BLACK
       }) {
    EXPECT_NE(FindOp(name), nullptr) << name;
    EXPECT_TRUE(names.insert(name).second) << name << " stands in the lists twice";
  }
  EXPECT_EQ(PrecisionReduceOf("MatMul"), PrecisionReduce::kWhite);
  EXPECT_EQ(PrecisionReduceOf("Exp"), PrecisionReduce::kBlack);
  EXPECT_EQ(PrecisionReduceOf("Relu"), PrecisionReduce::kGray);
  EXPECT_EQ(PrecisionReduceOf("NoSuchOperator"), PrecisionReduce::kGray);
}

TEST(OpsInfoTest, TheJsonHasEveryOperatorThatModelsMayName) {
  const auto json = nlohmann::json::parse(OpsInfoJson(), nullptr, false);
  ASSERT_TRUE(json.is_object());
  std::size_t count = 0;
  for (const OpDef* op : AllOps()) {
    count += !op->internal;
    EXPECT_EQ(json.contains(op->name), !op->internal) << op->name;
  }
  EXPECT_EQ(json.size(), count);
  const auto& product = json["MatMul"];
  EXPECT_EQ(product["engine"], "AiCore");
  EXPECT_EQ(product["precision_reduce"]["flag"], "true");
  EXPECT_EQ(json["Exp"]["precision_reduce"]["flag"], "false");
  EXPECT_FALSE(json["Relu"].contains("precision_reduce"));
  EXPECT_EQ(product["input0"]["type"], product["output0"]["type"]);
  const std::string types = product["input0"]["dtype"];
  EXPECT_NE(types.find("float32"), std::string::npos);
  EXPECT_NE(types.find("bfloat16"), std::string::npos);
  EXPECT_EQ(json["Concat"]["input0"]["paramType"], "dynamic");
  EXPECT_EQ(json["Clip"]["input1"]["paramType"], "optional");
}

}  // namespace
}  // namespace npurt::ops
