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
  // Column by column; the last two sum 16 bits in float32.
  EXPECT_EQ(product["input0"]["dtype"],
            "float32,int32,int64,float16,float64,uint32,uint64,bfloat16,float16,bfloat16");
  EXPECT_EQ(product["output0"]["dtype"],
            "float32,int32,int64,float16,float64,uint32,uint64,bfloat16,float32,float32");
  EXPECT_EQ(json["Shape"]["output0"]["dtype"].get<std::string>().substr(0, 12), "int64,int64,");
  EXPECT_EQ(json["TopK"]["engine"], "AiCpu");
  EXPECT_FALSE(json["TopK"].contains("input0"));
  EXPECT_TRUE(json["TopK"]["AiCpu"].contains("input0"));
  EXPECT_EQ(json["Concat"]["input0"]["paramType"], "dynamic");
  EXPECT_EQ(json["Clip"]["input1"]["paramType"], "optional");
}

}  // namespace
}  // namespace npurt::ops
