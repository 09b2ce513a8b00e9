// The names of the NPU documents: all there, each with its default, its legal values and the text
// for illegal ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "options/options.h"

namespace npurt::options {
namespace {

// A name, what it takes and refuses ("a;;b"), and the default of a session in training and
// inference.
struct Case {
  const char* name;
  const char* good;
  const char* bad;
  const char* training;
  const char* inference;
};
constexpr const char* kUnset = "-";

const Case kCases[] = {
    {"graph_run_mode", "0;;1", "2;;-1", "1", "1"},
    {"session_device_id", "0;;7;;2147483647", "-1;;2147483648;;x", "-", "-"},
    {"deterministic", "0;;1;;True", "2", "0", "0"},
    {"atomic_clean_policy", "0;;1", "2", "0", "0"},
    {"static_memory_policy", "0;;1;;2;;3;;4", "5", "0", "0"},
    {"variable_use_1g_huge_page", "0;;1;;2", "3", "0", "0"},
    {"external_weight", "True;;False;;1;;0", "2", "false", "false"},
    {"input_fusion_size", "0;;33554432;;128K", "33554433;;-1", "131072", "131072"},
    {"input_batch_cpy", "True;;false", "yes please", "false", "false"},
    {"input_shape", "x:2,-1;;a:0;b:-1;;a:1,-1;b:-1,-1", "x;;x:;;x:1,2;;b:-1;a:-1;;a:-1;a:-1;;x:-2",
     "-", "-"},
    {"dynamic_dims", "1;2;;1,2;3,4", "1;;1;1;;1,2;3;;1,;2,;;-1;2", "-", "-"},
    {"dynamic_node_type", "0;;1", "2;;0,1", "-", "-"},
    {"compile_hybrid_mode", "0;;1", "2", "0", "0"},
    {"ac_parallel_enable", "0;;1;;True", "2", "0", "0"},
    {"compile_dynamic_mode", "True;;False", "-1", "false", "false"},
    {"all_tensor_not_empty", "True;;False", "-1", "false", "false"},
    {"mix_compile_mode", "True;;False", "-1", "false", "false"},
    {"in_out_pair_flag", "True;;False", "-1", "true", "true"},
    {"in_out_pair", "[[['a'], ['b', 'c']]];;[[[\"a\"],[\"b\"]]]",
     "a;;[['a'],['b']];;[[['a'],['b']],[['c'],['d']]];;[[[''],['b']]];;[[['a'],['b']]]x", "-", "-"},
    {"enable_exception_dump", "0;;1;;2", "3", "2", "2"},
    {"op_debug_config", "/d/debug.cfg", "", "-", "-"},
    {"debug_dir", "/d", "", "-", "-"},
    {"export_compile_stat", "0;;1;;2", "3", "1", "1"},
    {"precision_mode_v2",
     "fp16;;origin;;cube_fp16in_fp32out;;mixed_float16;;mixed_bfloat16;;mixed_hif8;;cube_hif8",
     "force_fp16", "origin", "fp16"},
    {"precision_mode",
     "allow_fp32_to_fp16;;force_fp16;;force_fp32;;cube_fp16in_fp32out;;must_keep_origin_dtype;;"
     "allow_mix_precision;;allow_mix_precision_fp16;;allow_mix_precision_bf16;;allow_fp32_to_bf16",
     "origin", "-", "-"},
    {"modify_mixlist", "/d/ops_info.json", "", "-", "-"},
    {"customize_dtypes", "/d/types.cfg", "", "-", "-"},
    {"enable_dump", "True;;False", "2", "false", "false"},
    {"dump_mode", "input;;output;;all", "both", "output", "output"},
    {"enable_dump_debug", "True;;False", "2", "false", "false"},
    {"dump_debug_mode", "aicore_overflow;;atomic_overflow;;all", "none", "all", "all"},
    {"dump_path", "/d", "", "-", "-"},
    {"dump_step", "0;;0|5|10;;0|3-5|10", "a;;5-3;;3-3;;0||1;;-1", "-", "-"},
    {"dump_data", "tensor;;stats", "csv", "tensor", "tensor"},
    {"dump_layer", "a b c", "", "-", "-"},
    {"quant_dumpable", "0;;1", "2", "0", "0"},
    {"fusion_switch_file", "/d/fusion_switch.cfg", "/d/a b.cfg;;x*", "-", "-"},
    {"buffer_optimize", "l2_optimize;;off_optimize", "l1", "l2_optimize", "l2_optimize"},
    {"use_off_line", "True;;False", "2", "true", "true"},
    {"iterations_per_loop", "1;;100;;2147483647", "0;;-1;;2147483648", "1", "1"},
    {"hcom_parallel", "True;;False", "2", "true", "true"},
    {"enable_small_channel", "0;;1", "2", "0", "1"},
    {"op_precision_mode", "/d/op_precision.ini", "", "-", "-"},
    {"enable_scope_fusion_passes", "A;;A,B", "A,,B", "-", "-"},
    {"stream_max_parallel_num", "DNN_VM_AICPU:10,AIcoreEngine:1;;DNN_VM_TF:13",
     "DNN_VM_AICPU;;AIcoreEngine:0;;X:1;;DNN_V100:14;;AIcoreEngine:1,AIcoreEngine:2", "-", "-"},
    {"is_tailing_optimization", "True;;False", "2", "false", "false"},
    {"variable_placement", "Device;;Host", "GPU", "Device", "Device"},
    {"frozen_variable", "True;;False", "2", "false", "false"},
    {"graph_max_parallel_model_num", "1;;2147483647", "0;;2147483648", "1", "1"},
    {"profiling_mode", "True;;False", "2", "false", "false"},
    {"profiling_options", "{\"output\":\"/d\"};;{}", "[];;{;;{\"a\":1,\"a\":2};;on", "-", "-"},
    {"aoe_mode", "1;;2;;4", "3", "-", "-"},
    {"work_path", "/d", "", "-", "-"},
    {"aoe_config_file", "/d/tune.cfg", "", "-", "-"},
    {"op_compiler_cache_mode", "enable;;disable;;force", "on", "enable", "enable"},
    {"op_compiler_cache_dir", "/d/cache", "/d/a?b", "$HOME/atc_data", "$HOME/atc_data"},
    {"aicore_num", "2|4", "2;;0|4;;2|4|6;;a|b", "-", "-"},
    {"oo_constant_folding", "True;;False", "2", "true", "true"},
    {"local_rank_id", "0;;7", "-1;;8", "-", "-"},
    {"local_device_list", "0,1;;3", "0,;;a;;0, 1", "-", "-"},
    {"hccl_timeout", "0;;2147483647", "-1;;2147483648", "1836", "1836"},
    {"op_wait_timeout", "0;;120;;2147483647", "-1;;2147483648", "120", "120"},
    {"op_execute_timeout", "0;;90;;2147483647", "-1;;2147483648", "-", "-"},
    {"stream_sync_timeout", "-1;;60000;;2147483647", "-2;;2147483648", "-1", "-1"},
    {"event_sync_timeout", "-1;;60000;;2147483647", "-2;;2147483648", "-1", "-1"},
    {"graph_compiler_cache_dir", "/d", "", "-", "-"},
    {"jit_compile", "auto;;true;;false;;True", "1", "auto", "auto"},
    {"shape_generalization_mode", "STRICT;;FULL;;ADAPTIVE", "HALF", "STRICT", "STRICT"},
    {"experimental_accelerate_train_mode", "fast|step|0.9;;fast1|loss|1.05;;fast|step",
     "fast;;slow|step|0.9;;fast|step|0.1;;fast|loss|2;;fast|epoch|0.9;;fast|step|x", "-", "-"},
    {"auto_multistream_parallel_mode", "cv", "vc", "-", "-"},
    {"op_debug_level", "0;;1;;2;;3;;4", "5", "-", "-"},
    {"enable_data_pre_proc", "True;;False", "2", "false", "false"},
    {"variable_format_optimize", "True;;False", "2", "-", "-"},
    {"op_select_implmode",
     "high_precision;;high_performance;;high_precision_for_all;;high_performance_for_all", "fast",
     "-", "-"},
    {"optypelist_for_implmode", "Pooling;;Pooling,SoftmaxV2,LRN,ROIAlign", "Relu", "-", "-"},
    {"dynamic_input", "True;;False", "2", "false", "false"},
    {"dynamic_graph_execute_mode", "dynamic_execute;;lazy_recompile", "static", "-", "-"},
    {"dynamic_inputs_shape_range", "getnext:[128 ,3~5, 2~128, -1],[];;data:[1];getnext:[-1]",
     "x:[1];;data:1;;data:[5~3];;data:[1];data:[1];;data:[a];;data:[1][2]", "-", "-"},
    {"graph_memory_max_size", "0;;26G;;274877906944", "274877906945;;-1", "-", "-"},
    {"variable_memory_max_size", "0;;5G;;274877906944", "274877906945;;-1", "-", "-"},
    {"model_dir", "/d", "", "-", "-"},
    {"tf_random_seed", "0;;42", "-1", "-", "-"},
    {"save_summary_steps", "0;;100", "-1", "-", "-"},
    {"save_checkpoints_steps", "0;;100", "-1", "-", "-"},
    {"save_checkpoints_secs", "0;;100", "-1", "-", "-"},
    {"session_config", "x", "", "-", "-"},
    {"keep_checkpoint_max", "0;;5;;2147483647", "-1;;2147483648", "-", "-"},
    {"keep_checkpoint_every_n_hours", "10000;;0.5", "0;;x", "-", "-"},
    {"log_step_count_steps", "0;;100", "-1", "-", "-"},
    {"train_distribute", "x", "", "-", "-"},
    {"device_fn", "x", "", "-", "-"},
    {"protocol", "grpc", "", "-", "-"},
    {"eval_distribute", "x", "", "-", "-"},
    {"experimental_distribute", "x", "", "-", "-"},
    {"profiling_config", "x", "", "-", "-"},
    {"dump_config", "x", "", "-", "-"},
    {"enable_reduce_precision", "x", "", "-", "-"},
    {"auto_tune_mode", "GA;;RL;;RL,GA", "XX", "-", "-"},
    {"horovod_mode", "x", "", "-", "-"},
    {"distribute", "x", "", "-", "-"},
    {"dynamic_input_config", "x", "", "-", "-"},
    {"distribute_config", "x", "", "-", "-"},
    {"enable_compress_weight", "x", "", "-", "-"},
    {"compress_weight_conf", "x", "", "-", "-"},
    {"device_type", "x", "", "-", "-"},
};

std::vector<std::string> Values(const char* list) {
  if (*list == '\0') return {};
  return absl::StrSplit(list, ";;");
}

TEST(DocumentedOptionsTest, AllNamesAreThereAndNoOthers) {
  std::size_t documented = 0;
  for (const Row& row : Rows()) documented += row.standing.life != Life::kOurs;
  EXPECT_EQ(documented, 105u);
  EXPECT_EQ(std::size(kCases), 105u);
  for (const Case& c : kCases) {
    const auto option = FindOption(c.name);
    ASSERT_TRUE(option.ok()) << c.name;
    EXPECT_NE(RowOf(*option).standing.life, Life::kOurs) << c.name;
  }
}

// Where values can be counted, the table above has them all: of choices all, of ranges both ends.
TEST(DocumentedOptionsTest, TheTableHasEveryLegalValue) {
  for (const Case& c : kCases) {
    const Row& row = RowOf(*FindOption(c.name));
    const std::vector<std::string> good = Values(c.good), bad = Values(c.bad);
    const auto has = [](const std::vector<std::string>& values, absl::string_view value) {
      return std::find(values.begin(), values.end(), value) != values.end();
    };
    if (row.type == Type::kChoice && row.allowed.choices != nullptr) {
      for (absl::string_view choice : absl::StrSplit(row.allowed.choices, '|'))
        EXPECT_TRUE(has(good, choice)) << c.name << "=" << choice;
    }
    if (row.allowed.range) {
      EXPECT_TRUE(has(bad, absl::StrCat(row.allowed.min - 1))) << c.name;
      EXPECT_TRUE(has(good, absl::StrCat(row.allowed.min))) << c.name;
      const bool unbounded = row.allowed.max == INT64_MAX;
      EXPECT_TRUE(unbounded || has(good, absl::StrCat(row.allowed.max))) << c.name;
      EXPECT_TRUE(unbounded || has(bad, absl::StrCat(row.allowed.max + 1))) << c.name;
    }
    EXPECT_FALSE(good.empty()) << c.name;
    const bool anything = (row.type == Type::kText || row.type == Type::kPath ||
                           row.type == Type::kObject || row.type == Type::kList) &&
                          row.allowed.form == nullptr && row.allowed.choices == nullptr;
    EXPECT_EQ(bad.empty(), anything) << c.name << ": every value is legal only where any text is";
  }
}

TEST(DocumentedOptionsTest, EveryLegalValueIsTakenAndStaysAsItIs) {
  for (const Case& c : kCases)
    for (const std::string& value : Values(c.good)) {
      Options options(Profile::kSession);
      ASSERT_TRUE(options.Set(c.name, value).ok())
          << options.Set(c.name, value) << " " << c.name << "=" << value;
      const std::string kept = options.value(*FindOption(c.name));
      ASSERT_TRUE(options.Set(c.name, kept).ok()) << c.name << "=" << kept;
      EXPECT_EQ(options.value(*FindOption(c.name)), kept);
    }
}

TEST(DocumentedOptionsTest, EveryIllegalValueIsRefusedWithOptionValueAndWhatIsWanted) {
  for (const Case& c : kCases)
    for (const std::string& value : Values(c.bad)) {
      Options options(Profile::kSession);
      const absl::Status status = options.Set(c.name, value);
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << c.name << "=" << value;
      EXPECT_EQ(std::string(status.message())
                    .rfind(absl::StrCat("option ", c.name, ": got '", value, "', want "), 0),
                0u)
          << status.message();
    }
}

TEST(DocumentedOptionsTest, DefaultsOfASessionAreThoseOfTheNewestDocument) {
  for (const Case& c : kCases) {
    Options options(Profile::kSession);
    const Option option = *FindOption(c.name);
    const auto shown = [&] {
      return std::string(options.value(option) ? options.value(option) : kUnset);
    };
    EXPECT_EQ(shown(), c.training) << c.name;
    if (option == Option::graph_run_mode) continue;
    ASSERT_TRUE(options.Set("graph_run_mode", "0").ok());
    EXPECT_EQ(shown(), c.inference) << c.name;
  }
}

// The defaults of the two other profiles where they are not those of a session in training
// (run_config) and in inference (native); all others are the same.
struct OtherDefault {
  const char* name;
  const char* value;
};
const OtherDefault kOlderDefaults[] = {
    {"enable_data_pre_proc", "true"},
    {"enable_exception_dump", "0"},
    {"graph_memory_max_size", "27917287424"},
    {"hcom_parallel", "false"},
    {"keep_checkpoint_every_n_hours", "10000"},
    {"keep_checkpoint_max", "5"},
    {"log_step_count_steps", "100"},
    {"op_compiler_cache_mode", "disable"},
    {"op_debug_level", "0"},
    {"op_select_implmode", "high_performance"},
    {"op_wait_timeout", "-"},
    {"precision_mode", "allow_fp32_to_fp16"},
    {"precision_mode_v2", "-"},
    {"save_checkpoints_steps", "100"},
    {"save_summary_steps", "0"},
    {"variable_format_optimize", "true"},
    {"variable_memory_max_size", "5368709120"},
};
const OtherDefault kOwnDefaults[] = {
    {"enable_exception_dump", "0"}, {"export_compile_stat", "0"},
    {"graph_run_mode", "0"},        {"hcom_parallel", "false"},
    {"op_compiler_cache_dir", "-"}, {"op_compiler_cache_mode", "disable"},
    {"op_wait_timeout", "-"},       {"precision_mode_v2", "origin"},
};

template <std::size_t kCount>
void ExpectDefaults(Profile profile, const OtherDefault (&others)[kCount],
                    const char* Case::*otherwise) {
  const Options options = Options(profile).Resolve({}).options;
  std::size_t used = 0;
  for (const Case& c : kCases) {
    const char* want = c.*otherwise;
    for (const OtherDefault& other : others)
      if (std::string(other.name) == c.name) want = other.value, ++used;
    const char* value = options.value(*FindOption(c.name));
    EXPECT_STREQ(value == nullptr ? kUnset : value, want) << c.name;
  }
  EXPECT_EQ(used, kCount) << "a name in the table that is no option";
}

TEST(DocumentedOptionsTest, DefaultsOfRunConfigAreThoseOfTheOlderDocument) {
  ExpectDefaults(Profile::kRunConfig, kOlderDefaults, &Case::training);
}

TEST(DocumentedOptionsTest, OurOwnDefaultsAreThoseOfInferenceWithoutFiles) {
  ExpectDefaults(Profile::kNative, kOwnDefaults, &Case::inference);
}

TEST(DocumentedOptionsTest, OurOwnDefaultsComputeInTheOriginalPrecisionAndWriteNoFiles) {
  const Resolution native = Options().Resolve({});
  EXPECT_TRUE(native.status().ok());
  EXPECT_TRUE(native.options.notes().empty());
  EXPECT_STREQ(native.options.value(Option::graph_run_mode), "0");
  EXPECT_STREQ(native.options.value(Option::precision_mode_v2), "origin");
  for (int i = 0; i < kOptionCount; ++i)
    EXPECT_EQ(native.options.why(static_cast<Option>(i)).find("not active yet"), std::string::npos)
        << RowOf(static_cast<Option>(i)).name;
}

TEST(DocumentedOptionsTest, ADefaultThatNeedsWhatIsMissingSaysSoAndASetValueIsRefused) {
  Options options(Profile::kSession);
  EXPECT_TRUE(options.Resolve({}).status().ok());
  EXPECT_EQ(options.Resolve({}).options.why(Option::enable_exception_dump), "not active yet");
  ASSERT_TRUE(options.Set("enable_exception_dump", "2").ok());
  const absl::Status status = options.Check();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(status.message(),
            "option enable_exception_dump=2: not active yet, it needs exception dumps; leave it at "
            "0");
  ASSERT_TRUE(options.Set("enable_exception_dump", "0").ok());
  EXPECT_TRUE(options.Check().ok());
}

TEST(DocumentedOptionsTest, WhatTheDocumentsDoNotSupportIsRefusedInTheirWords) {
  Options options(Profile::kRunConfig);
  ASSERT_TRUE(options.Set("horovod_mode", "1").ok());
  EXPECT_EQ(
      options.Check().message(),
      "option horovod_mode=1: the documents say: not supported in this version; leave it out");
  Options hif8(Profile::kSession);
  ASSERT_TRUE(hif8.Set("precision_mode_v2", "cube_hif8").ok());
  EXPECT_EQ(hif8.Check().code(), absl::StatusCode::kUnimplemented);
  EXPECT_NE(hif8.Check().message().find("the documents say: not supported"), std::string::npos);
}

TEST(DocumentedOptionsTest, WhatIsLegalAndWithoutEffectIsANote) {
  Options options(Profile::kSession);
  ASSERT_TRUE(options.Set("jit_compile", "false").ok());
  const Resolution result = options.Resolve({});
  EXPECT_TRUE(result.status().ok());
  ASSERT_EQ(result.options.notes().size(), 1u);
  EXPECT_EQ(result.options.notes()[0],
            "option jit_compile: has no effect here, kernels are built in, no operator is compiled "
            "at load");
}

TEST(DocumentedOptionsTest, NoneMeansUnset) {
  Options options(Profile::kSession);
  ASSERT_TRUE(options.Set("op_debug_level", "None").ok());
  EXPECT_EQ(options.value(Option::op_debug_level), nullptr);
  EXPECT_EQ(options.source(Option::op_debug_level), Options::Source::kUnset);
}

TEST(DocumentedOptionsTest, TheDocumentsNamesOfOurOptionsStandForThem) {
  Options options;
  ASSERT_TRUE(options.SetText("oo_constant_folding = False\ntf_random_seed = 7").ok());
  const Options used = options.Resolve({}).options;
  EXPECT_FALSE(used.Bool(Option::constant_folding));
  EXPECT_EQ(used.Int(Option::random_seed), 7);
  EXPECT_EQ(used.source(Option::random_seed), Options::Source::kForced);
  ASSERT_TRUE(options.Set("random_seed", "8").ok());
  EXPECT_EQ(
      options.Check().message(),
      "option tf_random_seed=7 excludes random_seed=8: they are two names of one thing; leave "
      "one out");
}

}  // namespace
}  // namespace npurt::options
