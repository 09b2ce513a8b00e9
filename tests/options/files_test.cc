// The files that options name: what they mean, and errors with line and column.
#include "options/files.h"

#include <gtest/gtest.h>

#include "options/json_text.h"

namespace npurt::options {
namespace {

using Strings = std::vector<std::string>;

template <typename T>
std::string Error(const absl::StatusOr<T>& result) {
  return result.ok() ? "none" : std::string(result.status().message());
}

TEST(JsonTextTest, TellsWhereItIsWrong) {
  const auto error = [](const char* text) { return Error(ParseJson(text, "f")); };
  EXPECT_EQ(error("{\"a\": [1, 2,]}"), "f:1:13: got ']', want a value");
  EXPECT_EQ(error("{\n  \"a\" 1}"), "f:2:7: got '1', want ':'");
  EXPECT_EQ(error("{\"a\": 1"), "f:1:8: got the end, want ',' or '}'");
  EXPECT_EQ(error("{\"a\": 1, \"a\": 2}"), "f:1:10: 'a' was given before");
  EXPECT_EQ(error("\"\\ud800\""), "f:1:8: half a pair of surrogates");
  EXPECT_EQ(error("// x\n{}"), "f:1:1: comments are not allowed here");
  EXPECT_EQ(error("{} x"), "f:1:4: got more text after the end of the document");
  EXPECT_EQ(error("01"), "f:1:3: a number begins with 0");
  EXPECT_EQ(error(std::string(1000, '[').c_str()), "f:1:33: more than 32 levels deep");
  EXPECT_EQ(Error(ParseJson("{/* x", "f", true)), "f:1:2: this comment has no end");
  EXPECT_EQ(ParseJson("\"\\u00e9\\ud83d\\ude00\\n\"", "f")->text, "\xC3\xA9\xF0\x9F\x98\x80\n");
}

TEST(MixListTest, ReadsListsWithComments) {
  const auto lists = ParseMixList(
      "{ // which operators move\n"
      "  \"black-list\": { \"to-add\": [\"Softmax\", \"Exp\"] }, /* never lowered */\n"
      "  \"white-list\": { \"to-remove\": [\"Conv\"], \"to-add\": [] },\n"
      "  \"gray-list\": { \"to-add\": [\"Add\"] }\n"
      "}\n",
      "ops.json");
  ASSERT_TRUE(lists.ok()) << lists.status();
  EXPECT_EQ(lists->black.to_add, (Strings{"Softmax", "Exp"}));
  EXPECT_EQ(lists->white.to_remove, Strings{"Conv"});
  EXPECT_EQ(lists->gray.to_add, Strings{"Add"});
}

TEST(MixListTest, AnOperatorMovesFromWhiteToBlackInOneStepOrTwo) {
  EXPECT_TRUE(ParseMixList("{\"white-list\":{\"to-remove\":[\"A\"]},"
                           "\"black-list\":{\"to-add\":[\"A\"]}}",
                           "f")
                  .ok());
  EXPECT_TRUE(ParseMixList("{\"black-list\":{\"to-add\":[\"A\"]}}", "f").ok());
  EXPECT_EQ(Error(ParseMixList("{\"white-list\":{\"to-add\":[\"A\"]},\n"
                               "\"black-list\":{\"to-add\":[\"A\"]}}",
                               "f")),
            "f:2:14: 'A' is added to white-list and to black-list");
  EXPECT_EQ(Error(ParseMixList("{\"white-list\":{\"to-add\":[\"A\"],\"to-remove\":[\"A\"]}}", "f")),
            "f:1:15: 'A' is both added to this list and removed from it");
}

TEST(MixListTest, OtherNamesAndTypesAreErrors) {
  EXPECT_EQ(Error(ParseMixList("{\"black-list\": {\"to_add\": []}}", "f")),
            "f:1:17: got 'to_add', want to-add or to-remove");
  EXPECT_EQ(Error(ParseMixList("{\"black-list\": {\"to-add\": [1]}}", "f")),
            "f:1:28: got a number, want a string");
  EXPECT_EQ(Error(ParseMixList("[]", "f")), "f:1:1: got an array, want an object");
}

TEST(OpsInfoFileTest, ColumnsAreReadAcrossOperands) {
  const auto info = ParseOpsInfo(
      R"({"Add": {"engine": "AiCore", "precision_reduce": {"flag": "true"},
  "input0": {"name": "a", "dtype": "float16,float"}, "input1": {"dtype": "float16, float32"},
  "output0": {"dtype": "float16,any"}, "AiCpu": {"input0": {"dtype": "double"}}}, "Sub": {}})",
      "f");
  ASSERT_TRUE(info.ok()) << info.status();
  const OpsInfo::Row* add = info->Find("Add");
  ASSERT_NE(add, nullptr);
  EXPECT_EQ(add->lowered, true);
  ASSERT_EQ(add->ai_core->size(), 2u);
  EXPECT_EQ((*add->ai_core)[1].inputs, (std::vector<DType>{DType::kF32, DType::kF32}));
  EXPECT_EQ((*add->ai_core)[1].outputs, std::vector<DType>{DType::kUndefined});
  EXPECT_EQ((*add->ai_cpu)[0].inputs, std::vector<DType>{DType::kF64});
  // What a row does not say stays as it is built in.
  EXPECT_FALSE(info->Find("Sub")->ai_core.has_value());
  EXPECT_EQ(info->Find("Mul"), nullptr);
}

TEST(OpsInfoFileTest, TellsWhatIsWrong) {
  const auto error = [](const char* text) {
    return std::string(ParseOpsInfo(text, "f").status().message());
  };
  EXPECT_EQ(error(R"({"A": {"input0": {}}})"), "f:1:18: dtype is missing");
  EXPECT_EQ(error(R"({"A": {"input0": {"dtype": "half"}}})"), "f:1:28: 'half' is no type");
  EXPECT_EQ(error(R"({"A": {"input1": {"dtype": "float16"}}})"),
            "f:1:18: operands must be counted from 0 and stand in order");
  EXPECT_EQ(error(R"({"A": {"input0": {"dtype": "float16"}, "output0": {"dtype": "int8,int8"}}})"),
            "f:1:61: got 2 types, want 1 as for the operand before: the n-th of each belong "
            "together");
  EXPECT_EQ(error(R"({"A": {"precision_reduce": {"flag": "yes"}}})"),
            R"(f:1:28: want {"flag": "true"} or {"flag": "false"})");
  EXPECT_EQ(error(R"({"A": {"AiCpu": {"x": {}}}})"), "f:1:18: got 'x', want input0, output0 ...");
}

TEST(CustomDtypesTest, ReadsNamesAndTypesWithAndWithoutTheComma) {
  const auto file = ParseCustomDtypes(
      "# one operator\n"
      "net/block:0/relu::InputDtype:float16,int8,OutputDtype:float16\n"
      "OpType::Relu:InputDtype:float32OutputDtype:,bfloat16\n",
      "types.cfg");
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_EQ(file->entries.size(), 2u);
  EXPECT_EQ(file->entries[0].name, "net/block:0/relu");
  EXPECT_FALSE(file->entries[0].by_type);
  EXPECT_EQ(file->entries[0].inputs, (std::vector<DType>{DType::kF16, DType::kI8}));
  EXPECT_EQ(file->entries[0].outputs, std::vector<DType>{DType::kF16});
  EXPECT_TRUE(file->entries[1].by_type);
  EXPECT_EQ(file->entries[1].name, "Relu");
  EXPECT_EQ(file->entries[1].inputs, std::vector<DType>{DType::kF32});
  EXPECT_EQ(file->entries[1].outputs, (std::vector<DType>{DType::kUndefined, DType::kBF16}));
}

TEST(CustomDtypesTest, TellsWhatIsWrong) {
  EXPECT_EQ(Error(ParseCustomDtypes("\na::InputDtype:float16,half,OutputDtype:int8", "f")),
            "f:2:23: got 'half', want an element type such as float16");
  EXPECT_EQ(Error(ParseCustomDtypes("a::InputDtype:int8", "f")),
            "f:1:1: OutputDtype: is missing after InputDtype:");
  EXPECT_NE(Error(ParseCustomDtypes("a:InputDtype:int8,OutputDtype:int8", "f")).find("want name::"),
            std::string::npos);
  EXPECT_NE(Error(ParseCustomDtypes("::InputDtype:int8,OutputDtype:int8", "f")).find("want name::"),
            std::string::npos);
  EXPECT_EQ(Error(ParseCustomDtypes("a::InputDtype:int8,OutputDtype:int8\n"
                                    "a::InputDtype:int8,OutputDtype:int8",
                                    "f")),
            "f:2:1: 'a' was given before");
}

TEST(OpPrecisionTest, ReadsSectionsAndTheFlatForm) {
  const auto file = ParseOpPrecision(
      "[ByOpType]\nGelu=high_precision\nGather = support_out_of_bound_index # checked\n"
      "[ByNodeName]\nhead/gelu=super_performance\n",
      "f");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->by_type.at("Gather"), "support_out_of_bound_index");
  EXPECT_EQ(file->by_name.at("head/gelu"), "super_performance");
  EXPECT_EQ(ParseOpPrecision("Gelu=high_performance", "f")->by_type.at("Gelu"), "high_performance");
  EXPECT_EQ(Error(ParseOpPrecision("[ByType]", "f")),
            "f:1:1: got '[ByType]', want [ByOpType] or [ByNodeName]");
  EXPECT_EQ(Error(ParseOpPrecision("A=high_precision\n  A=keep_fp16", "f")),
            "f:2:3: 'A' was given before");
  EXPECT_NE(Error(ParseOpPrecision("A = fast", "f")).find("f:1:5: got 'fast', want high_precision"),
            std::string::npos);
}

TEST(FusionSwitchTest, ARuleThatIsNamedWinsOverAll) {
  const auto file = ParseFusionSwitch(
      "{\"Switch\": {\"GraphFusion\": {\"ALL\": \"off\", \"fuse_epilogues\": \"on\"},"
      " \"UBFusion\": {\"XPass\": \"off\"}}}",
      "f");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE(file->IsOn("fuse_epilogues"));
  EXPECT_FALSE(file->IsOn("fold_channel_scale"));
  EXPECT_FALSE(file->IsOn("XPass"));
  EXPECT_TRUE(FusionSwitch().IsOn("XPass"));
  const auto lines = ParseFusionSwitch("XPass:off\nYPass : on\n", "f");
  ASSERT_TRUE(lines.ok()) << lines.status();
  EXPECT_FALSE(lines->IsOn("XPass"));
  EXPECT_EQ(Error(ParseFusionSwitch("{\"Switch\":{\"GraphFusion\":{\"X\":\"no\"}}}", "f")),
            "f:1:31: got 'no', want on or off");
  EXPECT_EQ(Error(ParseFusionSwitch("X:no", "f")), "f:1:3: got 'no', want on or off");
}

TEST(OpDebugTest, ReadsWordsNamesAndTypes) {
  const auto file = ParseOpDebug(
      "op_debug_config= dump_cce,oom\nop_debug_list=head/gelu,opType::Gelu,OpType::Add\n", "f");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE(file->Has("oom"));
  EXPECT_FALSE(file->Has("ccec_g"));
  EXPECT_EQ(file->names, Strings{"head/gelu"});
  EXPECT_EQ(file->types, (Strings{"Gelu", "Add"}));
  EXPECT_NE(Error(ParseOpDebug("op_debug_config=oom, dump", "f")).find("f:1:22: got 'dump'"),
            std::string::npos);
  EXPECT_EQ(Error(ParseOpDebug("op_debug_list=a", "f")),
            "f:1:1: the line op_debug_config=... is missing");
  EXPECT_EQ(Error(ParseOpDebug("debug=oom", "f")),
            "f:1:1: got 'debug', want op_debug_config or op_debug_list");
}

TEST(OpCacheTest, BothValuesOrNone) {
  const auto file =
      ParseOpCache("[op_compiler_cache]\nmax_op_cache_size=-1\nremain_cache_size_ratio=70\n", "f");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->max_megabytes, -1);
  EXPECT_EQ(file->percent_kept, 70);
  EXPECT_EQ(Error(ParseOpCache("[op_compiler_cache]\nremain_cache_size_ratio=0", "f")),
            "f:2:25: got '0', want percent from 1 to 100");
  EXPECT_EQ(Error(ParseOpCache("max_op_cache_size=1", "f")),
            "f:1:1: got 'max_op_cache_size=1', want [op_compiler_cache]");
  EXPECT_EQ(Error(ParseOpCache("", "f")), "f:1:1: the line [op_compiler_cache] is missing");
  EXPECT_FALSE(ParseOpCache("[op_compiler_cache]\nmax_op_cache_size=9", "f").ok());
}

TEST(AoeConfigTest, ReadsNamesTypesAndFeatures) {
  const auto file = ParseAoeConfig(
      "{\"tune_ops_name\":[\"head/add\",\"head/mul\"],\"tune_ops_type\":[\"MatMul\"],"
      "\"tune_optimization_level\":\"O1\",\"feature\":[\"deeper_opat\"]}",
      "f");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->names, (Strings{"head/add", "head/mul"}));
  EXPECT_EQ(file->types, Strings{"MatMul"});
  EXPECT_EQ(file->level, "O1");
  EXPECT_EQ(ParseAoeConfig("{}", "f")->level, "O2");
  EXPECT_EQ(Error(ParseAoeConfig("{\"tune_ops_name\":[\"a\" \"b\"]}", "f")),
            "f:1:23: got '\"', want ',' or ']'");
  EXPECT_EQ(Error(ParseAoeConfig("{\"feature\":[\"fast\"]}", "f")),
            "f:1:13: got 'fast', want deeper_opat or nonhomo_split");
}

TEST(ProfilingOptionsTest, ChecksEveryKey) {
  const auto good = [](const std::string& text) { return Error(ParseProfilingOptions(text, "")); };
  EXPECT_EQ(
      good("{\"output\":\"/p\",\"training_trace\":\"on\",\"fp_point\":\"\",\"bp_point\":\"\"}"),
      "none");
  EXPECT_EQ(good("{\"storage_limit\":\"200MB\",\"aic_metrics\":\"Custom:0x1,110,0x6e\"}"), "none");
  EXPECT_EQ(good("{\"host_sys\":\"cpu,mem\",\"dvpp_freq\":\"100\",\"task_time\":\"l1\"}"), "none");
  EXPECT_EQ(good("{\"storage_limit\":\"100MB\"}"),
            "line 1, column 18: storage_limit: got '100MB', want 200MB to 4294967295MB");
  EXPECT_EQ(good("{\"dvpp_freq\":\"101\"}"),
            "line 1, column 14: dvpp_freq: got '101', want a number from 1 to 100");
  EXPECT_EQ(good("{\"l2\":\"yes\"}"), "line 1, column 7: l2: got 'yes', want one of on, off");
  EXPECT_EQ(good("{\"trace\":\"on\"}"),
            "line 1, column 2: got 'trace', want a key of profiling_options");
  EXPECT_NE(good("{\"aic_metrics\":\"Custom:0x6F\"}").find("registers"), std::string::npos);
  EXPECT_NE(good("{\"aic_metrics\":\"Custom:1,2,3,4,5,6,7,8,9\"}").find("8"), std::string::npos);
  EXPECT_NE(good("{\"output\":\"/p\\n\"}").find("control"), std::string::npos);
  EXPECT_NE(good("{\"l2\":true}").find("want a string"), std::string::npos);
}

TEST(ReadTextFileTest, RefusesWhatIsNoFile) {
  EXPECT_EQ(ReadTextFile("/nowhere/at/all").status().code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(ReadTextFile("/").ok());
  EXPECT_FALSE(ReadTextFile("/dev/zero").ok());
}

}  // namespace
}  // namespace npurt::options
