// Rules between options: for each number of the documents' list a case that obeys and one that
// breaks it, or one where it decides and one where it does not.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "options/options.h"

namespace npurt::options {
namespace {

class RulesTest : public testing::Test {
 protected:
  RulesTest() : folder_(testing::TempDir() + "npurt_rules_" + std::to_string(getpid())) {
    mkdir(folder_.c_str(), 0700);
    Write("mix.json", "{\"black-list\": {\"to-add\": [\"MatMul\"]}}");
    Write("oom.cfg", "op_debug_config= ccec_g,oom\n");
    Write("oom_O0.cfg", "op_debug_config=oom,ccec_O0\n");
    Write("listed.cfg", "op_debug_config=ccec_g\nop_debug_list=Gather2\n");
    Write("types.cfg", "OpType::Relu:InputDtype:float16,OutputDtype:float16\n");
    Write("modes.ini", "[ByOpType]\nPooling=high_precision\n");
    Write("deep.cfg", "{\"feature\": [\"deeper_opat\"]}");
    Write("split.cfg", "{\"feature\": [\"nonhomo_split\"]}");
  }
  ~RulesTest() override {
    for (const std::string& name : files_) std::remove(name.c_str());
    rmdir(folder_.c_str());
  }
  void Write(const std::string& name, const std::string& text) {
    files_.push_back(folder_ + "/" + name);
    std::ofstream(files_.back()) << text;
  }

  // Options as lines with ';;' between them; $D is the folder. All parse.
  Resolution Resolve(const std::string& text, const Environment& environment = {},
                     Profile profile = Profile::kSession) {
    Options options(profile);
    const absl::Status status = options.SetText(
        absl::StrReplaceAll(text, {{";;", "\n"}, {"$D", folder_}, {"INFER", "graph_run_mode=0"}}));
    EXPECT_TRUE(status.ok()) << status;
    return options.Resolve(environment);
  }
  static int CountProblems(const Resolution& result, const std::string& rule) {
    int count = 0;
    for (const Problem& p : result.problems) count += p.rule == rule;
    return count;
  }
  static bool HasNote(const Resolution& result, const std::string& rule) {
    for (const std::string& note : result.options.notes())
      if (note.find("(" + rule + ")") != std::string::npos) return true;
    return false;
  }
  void Obeys(const std::string& rule, const std::string& text, const Environment& e = {},
             Profile profile = Profile::kSession) {
    EXPECT_EQ(CountProblems(Resolve(text, e, profile), rule), 0) << rule << ": " << text;
  }
  void Breaks(const std::string& rule, const std::string& text, const Environment& e = {},
              Profile profile = Profile::kSession) {
    const Resolution result = Resolve(text, e, profile);
    EXPECT_GT(CountProblems(result, rule), 0) << rule << ": " << text;
    for (const Problem& p : result.problems) {
      EXPECT_NE(p.text.find("option "), std::string::npos) << p.text;
      EXPECT_NE(p.text.find("; "), std::string::npos) << "no remedy: " << p.text;
    }
    EXPECT_FALSE(result.status().ok());
  }
  void Notes(const std::string& rule, const std::string& with, const std::string& without) {
    EXPECT_TRUE(HasNote(Resolve(with), rule)) << rule << ": " << with;
    EXPECT_FALSE(HasNote(Resolve(without), rule)) << rule << ": " << without;
  }

  const std::string folder_;
  std::vector<std::string> files_;
};

TEST_F(RulesTest, WhatMustNotStandTogether) {
  Obeys("R1", "precision_mode_v2=origin");
  Breaks("R1", "precision_mode_v2=origin;;precision_mode=must_keep_origin_dtype");
  Obeys("R2", "enable_dump=1;;enable_dump_debug=0");
  Breaks("R2", "enable_dump=1;;enable_dump_debug=1");
  Obeys("R23", "static_memory_policy=3;;graph_max_parallel_model_num=2");
  Breaks("R23", "static_memory_policy=4;;graph_max_parallel_model_num=2");
  Breaks("R23", "static_memory_policy=1;;graph_max_parallel_model_num=2");
  Obeys("R33", "save_checkpoints_steps=10");
  Breaks("R33", "save_checkpoints_steps=10;;save_checkpoints_secs=10");
  Obeys("R36", "INFER;;precision_mode=force_fp16");
  Breaks("R36", "precision_mode=force_fp16");
  Obeys("R37", "dump_debug_mode=all");
  Obeys("R37", "dump_debug_mode=aicore_overflow;;product=training");
  Breaks("R37", "dump_debug_mode=aicore_overflow");
  Breaks("R37", "dump_debug_mode=atomic_overflow;;product=350");
}

TEST_F(RulesTest, DumpsNeedADirectoryThatExists) {
  Obeys("R3", "enable_dump=1;;dump_path=$D");
  Breaks("R3", "enable_dump=1");
  Breaks("R3", "enable_dump_debug=1");
  Breaks("R3", "enable_dump=1;;dump_path=$D/none");
  Breaks("R3", "enable_dump=1;;dump_path=$D/mix.json");
  Obeys("R3", "dump_path=$D/none");
  Obeys("R35", "graph_compiler_cache_dir=$D");
  Breaks("R35", "graph_compiler_cache_dir=$D/none");
}

TEST_F(RulesTest, GearsComeTogetherAndFit) {
  const std::string gears = "INFER;;input_shape=a:1,-1;b:-1;;dynamic_node_type=1;;";
  Obeys("R5", gears + "dynamic_dims=1,2;3,4");
  EXPECT_EQ(CountProblems(Resolve("INFER;;input_shape=a:-1"), "R5"), 2);
  EXPECT_EQ(CountProblems(Resolve("INFER;;dynamic_dims=1;2"), "R5"), 2);
  EXPECT_EQ(CountProblems(Resolve("INFER;;dynamic_node_type=0"), "R5"), 2);
  Breaks("R5", gears + "dynamic_dims=1;3");
  Breaks("R5", "input_shape=a:-1;;dynamic_node_type=1;;dynamic_dims=1;3");
  std::string many = "INFER;;input_shape=a:-1;;dynamic_node_type=1;;dynamic_dims=1";
  for (int i = 2; i <= 100; ++i) absl::StrAppend(&many, ";", i);
  Obeys("R5", many);
  Breaks("R5", many + ";101");
  Obeys("R5", many + ";101;;product=350");
  EXPECT_FALSE(Options().Set("dynamic_node_type", "0,1").ok()) << "R6: one kind only";
  Obeys("R7", gears + "dynamic_dims=1,2;3,4;;compile_hybrid_mode=1");
  Breaks("R7", "INFER;;compile_hybrid_mode=1");
  Breaks("R7",
         "INFER;;input_shape=a:-1;;dynamic_dims=1;2;;dynamic_node_type=0;;"
         "compile_hybrid_mode=1");
  EXPECT_TRUE(Resolve(gears + "dynamic_dims=1,2;3,4;;compile_hybrid_mode=1")
                  .options.Bool(Option::external_weight));
  EXPECT_FALSE(Resolve(gears + "dynamic_dims=1,2;3,4;;compile_hybrid_mode=1;;external_weight=0")
                   .options.Bool(Option::external_weight));
  Obeys("R8", "compile_dynamic_mode=1");
  Breaks("R8", gears + "dynamic_dims=1,2;3,4;;compile_dynamic_mode=1");
  Obeys("R46", gears + "dynamic_dims=1,2;3,4");
  Breaks("R46", gears + "dynamic_dims=1,2;3,4;;mix_compile_mode=1");
}

TEST_F(RulesTest, MixedComputing) {
  Obeys("R11", "mix_compile_mode=1;;iterations_per_loop=1");
  Breaks("R11", "mix_compile_mode=1;;iterations_per_loop=2");
  Obeys("R13", "INFER;;mix_compile_mode=1;;in_out_pair=[[['a'],['b']]]");
  Breaks("R13", "INFER;;in_out_pair=[[['a'],['b']]]");
  Breaks("R13", "INFER;;in_out_pair_flag=0");
  Breaks("R13", "mix_compile_mode=1;;in_out_pair=[[['a'],['b']]]");
  Obeys("R14", "variable_placement=Host;;mix_compile_mode=1");
  Breaks("R14", "variable_placement=Host");
}

TEST_F(RulesTest, LoopsOfIterations) {
  Obeys("R12", "iterations_per_loop=10;;enable_data_pre_proc=1;;save_checkpoints_steps=20");
  Breaks("R12", "iterations_per_loop=10");
  Breaks("R12", "iterations_per_loop=10;;enable_data_pre_proc=1;;save_checkpoints_steps=15");
  Breaks("R12", "iterations_per_loop=10;;enable_data_pre_proc=1;;save_checkpoints_steps=5");
  Obeys("R12", "iterations_per_loop=10", {}, Profile::kRunConfig);
  Notes("R12", "iterations_per_loop=10;;save_summary_steps=5", "save_summary_steps=5");
}

TEST_F(RulesTest, WhatStandsAboveWhat) {
  Notes("R4", "enable_dump=1;;dump_path=$D;;enable_exception_dump=1", "enable_exception_dump=1");
  Notes("R8", "compile_dynamic_mode=1;;shape_generalization_mode=FULL;;jit_compile=true",
        "shape_generalization_mode=FULL;;jit_compile=true");
  Notes("R9", "INFER;;dynamic_dims=1;2;;dynamic_inputs_shape_range=data:[1]",
        "INFER;;dynamic_inputs_shape_range=data:[1]");
  EXPECT_EQ(Resolve("INFER;;dynamic_dims=1;2;;dynamic_inputs_shape_range=data:[1]")
                .options.value(Option::dynamic_inputs_shape_range),
            nullptr);
  Notes("R10", "dynamic_graph_execute_mode=dynamic_execute",
        "dynamic_graph_execute_mode=dynamic_execute;;dynamic_input=1");
  Notes("R15", "op_precision_mode=$D/modes.ini;;op_select_implmode=high_precision",
        "op_select_implmode=high_precision");
  Notes("R17", "customize_dtypes=$D/types.cfg",
        "customize_dtypes=$D/types.cfg;;"
        "precision_mode_v2=fp16");
  Notes("R19", "op_debug_level=3;;op_compiler_cache_mode=enable",
        "op_debug_level=0;;op_compiler_cache_mode=enable");
  Notes("R20", "op_debug_config=$D/oom.cfg;;op_compiler_cache_mode=enable",
        "op_compiler_cache_mode=enable");
  Notes("R20", "op_debug_config=$D/listed.cfg;;op_compiler_cache_mode=force",
        "op_debug_config=$D/listed.cfg");
  Notes("R24", "input_batch_cpy=1", "input_batch_cpy=1;;input_fusion_size=0");
  Notes("R25", "aicore_num=2|4;;jit_compile=false", "aicore_num=2|4");
  Notes("R26", "shape_generalization_mode=FULL",
        "shape_generalization_mode=FULL;;jit_compile=true");
  Notes("R29", "stream_sync_timeout=1000", "stream_sync_timeout=1836001");
  Notes("R30", "is_tailing_optimization=1", "is_tailing_optimization=0");
  Notes("R34", "model_dir=$D", "INFER");
  Notes("R42", "INFER;;quant_dumpable=1", "INFER;;quant_dumpable=1;;enable_dump=1");
  Notes("R43", "frozen_variable=1;;buffer_optimize=off_optimize", "INFER;;frozen_variable=1");
  Notes("R44", "INFER;;dump_step=1|2", "dump_step=1|2");
  Notes("R45", "oo_constant_folding=0", "oo_constant_folding=1");
}

TEST_F(RulesTest, TheOlderDocumentCachesWithDebugLevel3) {
  const auto note = [&](Profile profile) {
    return HasNote(Resolve("op_debug_level=3;;op_compiler_cache_mode=enable", {}, profile), "R19");
  };
  EXPECT_TRUE(note(Profile::kSession));
  EXPECT_FALSE(note(Profile::kRunConfig));
}

TEST_F(RulesTest, ListsAndFilesNeedTheirModes) {
  Obeys("R16", "optypelist_for_implmode=Pooling;;op_select_implmode=high_precision");
  Breaks("R16", "optypelist_for_implmode=Pooling");
  Obeys("R18", "modify_mixlist=$D/mix.json;;precision_mode_v2=mixed_float16");
  Obeys("R18", "modify_mixlist=$D/mix.json;;precision_mode=allow_mix_precision_bf16");
  Breaks("R18", "modify_mixlist=$D/mix.json");
  Obeys("R21", "op_debug_config=$D/oom.cfg");
  Breaks("R21", "op_debug_config=$D/oom_O0.cfg");
  Breaks("R21", "op_debug_config=$D/oom.cfg;;op_debug_level=2");
  Breaks("R21", "op_debug_config=$D/oom.cfg", {{"NPU_COLLECT_PATH", "/c"}});
  Obeys("R31", "aoe_mode=2;;aoe_config_file=$D/deep.cfg");
  Breaks("R31", "aoe_mode=4;;aoe_config_file=$D/deep.cfg");
  Breaks("R31", "aoe_mode=2;;aoe_config_file=$D/split.cfg");
  Breaks("R31", "aoe_mode=1");
  Obeys("R31", "aoe_mode=1;;product=training;;aoe_config_file=$D/split.cfg");
  Obeys("R41", "local_rank_id=0;;local_device_list=0,1");
  Breaks("R41", "local_rank_id=0");
  Breaks("R41", "local_device_list=0,1");
}

TEST_F(RulesTest, Profiling) {
  Obeys("R32", "profiling_options={\"instr_profiling_freq\":\"1000\",\"output\":\"/p\"}");
  Breaks("R32", "profiling_options={\"instr_profiling_freq\":\"1000\",\"l2\":\"on\"}");
  Obeys("R32", "profiling_options={\"task_trace\":\"on\",\"training_trace\":\"on\"}");
  Breaks("R32", "profiling_options={\"task_trace\":\"on\"}");
  Obeys("R32", "INFER;;profiling_options={\"task_trace\":\"on\"}");
  Breaks("R32", "INFER;;profiling_options={\"training_trace\":\"on\"}");
}

TEST_F(RulesTest, TrainingThatChangesItsPrecisionTellsItsProgress) {
  const Environment steps = {{"STEP_NOW", "0"}, {"TOTAL_STEP", "100"}};
  const Environment loss = {{"LOSS_NOW", "9"}, {"TARGET_LOSS", "1"}};
  const std::string step = "experimental_accelerate_train_mode=fast|step|0.9";
  Obeys("R27", step, steps);
  Obeys("R27", step + ";;precision_mode_v2=origin", steps);
  Obeys("R27", step + ";;precision_mode=allow_fp32_to_fp16", steps);
  Obeys("R27", "experimental_accelerate_train_mode=fast1|loss|1.1", loss);
  Breaks("R27", step + ";;precision_mode_v2=fp16", steps);
  Breaks("R27", step + ";;precision_mode=force_fp32", steps);
  Breaks("R27", step, loss);
  Obeys("R28", "auto_multistream_parallel_mode=cv");
  Breaks("R28", "auto_multistream_parallel_mode=cv", {{"ENABLE_DYNAMIC_SHAPE_MULTI_STREAM", "1"}});
}

TEST_F(RulesTest, ForcedAndRoundedValues) {
  const auto value = [](const Resolution& r, Option o) { return std::string(r.options.value(o)); };
  const Resolution collect =
      Resolve("enable_exception_dump=0", {{"NPU_COLLECT_PATH", "/c"}});  // R22
  EXPECT_EQ(value(collect, Option::enable_exception_dump), "1");
  EXPECT_EQ(collect.options.source(Option::enable_exception_dump), Options::Source::kForced);
  EXPECT_EQ(collect.options.why(Option::enable_exception_dump),
            "NPU_COLLECT_PATH is set; 0 was set");
  EXPECT_EQ(value(Resolve("enable_exception_dump=0"), Option::enable_exception_dump), "0");
  EXPECT_EQ(value(Resolve("static_memory_policy=1"), Option::static_memory_policy), "2");  // R23
  EXPECT_EQ(value(Resolve("INFER;;enable_small_channel=0"), Option::enable_small_channel),
            "1");  // R38
  EXPECT_EQ(value(Resolve("enable_small_channel=0"), Option::enable_small_channel), "0");
  const auto hccl = [&](const std::string& text) {
    return value(Resolve("hccl_timeout=" + text), Option::hccl_timeout);
  };
  EXPECT_EQ(hccl("600"), "600");  // R40
  EXPECT_EQ(hccl("600;;product=training"), "544");
  EXPECT_EQ(hccl("5;;product=300i_duo"), "68");
  Breaks("R40", "hccl_timeout=0;;product=training");
  Breaks("R40", "hccl_timeout=17341;;product=training");
  Obeys("R40", "hccl_timeout=0");
}

TEST_F(RulesTest, SizesOfMemoryOfTheOlderDocument) {
  Obeys("R39", "graph_memory_max_size=26G;;variable_memory_max_size=5G", {}, Profile::kRunConfig);
  Breaks("R39", "graph_memory_max_size=27G", {}, Profile::kRunConfig);
  Obeys("R39", "graph_memory_max_size=27G;;variable_memory_max_size=5G");
}

TEST_F(RulesTest, APrecisionThatIsSetReplacesTheDefaultOfTheOtherSpelling) {
  const Options v1 = Resolve("precision_mode=must_keep_origin_dtype").options;
  EXPECT_EQ(v1.value(Option::precision_mode_v2), nullptr);
  EXPECT_EQ(v1.why(Option::precision_mode_v2), "precision_mode is set");
  const Options v2 = Resolve("precision_mode_v2=origin", {}, Profile::kRunConfig).options;
  EXPECT_EQ(v2.value(Option::precision_mode), nullptr);
  const Options old = Resolve("product=training").options;
  EXPECT_EQ(old.value(Option::precision_mode_v2), nullptr);
  EXPECT_STREQ(old.value(Option::precision_mode), "allow_fp32_to_fp16");
}

TEST_F(RulesTest, AllProblemsAreToldAtOnce) {
  const absl::Status status =
      Resolve("enable_dump=1;;enable_dump_debug=1;;variable_placement=Host;;aoe_mode=1").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  for (const char* text :
       {"option enable_dump=true excludes enable_dump_debug=true: one dump at a time; switch one "
        "off (R2)",
        "(R3)", "option variable_placement=Host requires mix_compile_mode=true", "(R31)"})
    EXPECT_NE(status.message().find(text), std::string::npos) << text << "\n" << status.message();
}

TEST_F(RulesTest, TheEnvironmentStandsBelowOptionsAndAboveDefaults) {
  const Environment environment = {{"ASCEND_DEVICE_ID", "3"},     {"ASCEND_CACHE_PATH", "/cache"},
                                   {"ASCEND_WORK_PATH", "/work"}, {"HCCL_EXEC_TIMEOUT", "100"},
                                   {"PROFILING_MODE", "true"},    {"AOE_MODE", "2"}};
  const Options from = Resolve("", environment).options;
  EXPECT_STREQ(from.value(Option::session_device_id), "3");
  EXPECT_EQ(from.source(Option::session_device_id), Options::Source::kEnvironment);
  EXPECT_EQ(from.why(Option::session_device_id), "ASCEND_DEVICE_ID");
  EXPECT_STREQ(from.value(Option::op_compiler_cache_dir), "/cache/kernel_cache");
  EXPECT_STREQ(from.value(Option::debug_dir), "/work");
  EXPECT_STREQ(from.value(Option::hccl_timeout), "100");
  EXPECT_STREQ(from.value(Option::profiling_mode), "true");
  EXPECT_STREQ(from.value(Option::aoe_mode), "2");
  EXPECT_TRUE(Resolve("", environment).status().ok()) << "it is no reason to refuse a session";
  const Options set =
      Resolve("session_device_id=0;;profiling_mode=0;;hccl_timeout=7;;debug_dir=None", environment)
          .options;
  EXPECT_STREQ(set.value(Option::session_device_id), "0");
  EXPECT_STREQ(set.value(Option::profiling_mode), "false");
  EXPECT_STREQ(set.value(Option::hccl_timeout), "7");
  EXPECT_EQ(set.value(Option::debug_dir), nullptr);
  EXPECT_STREQ(Resolve("", {{"HOME", "/root"}}).options.value(Option::op_compiler_cache_dir),
               "/root/atc_data");
  EXPECT_NE(Resolve("", {{"AOE_MODE", "1"}}).status().message().find(
                "option aoe_mode=1 from AOE_MODE excludes product=a2"),
            std::string::npos);
  const Options wrong = Resolve("", {{"ASCEND_DEVICE_ID", "x"}}).options;
  EXPECT_EQ(wrong.value(Option::session_device_id), nullptr);
  ASSERT_EQ(wrong.notes().size(), 1u);
  const Options native = Resolve("", environment, Profile::kNative).options;
  EXPECT_EQ(native.value(Option::session_device_id), nullptr) << "ours does not look at it";
}

TEST_F(RulesTest, FilesThatCannotBeReadOrAreWrongAreProblemsWithTheirPlace) {
  Write("bad.json", "{\n \"grey-list\": {}\n}");
  const Resolution bad = Resolve("modify_mixlist=$D/bad.json;;precision_mode_v2=mixed_float16");
  EXPECT_NE(
      bad.status().message().find(absl::StrCat("option modify_mixlist: ", folder_,
                                               "/bad.json:2:2: got 'grey-list', want black-list")),
      std::string::npos)
      << bad.status();
  EXPECT_NE(Resolve("op_precision_mode=$D/none.ini").status().message().find("none.ini"),
            std::string::npos);
  EXPECT_FALSE(Resolve("op_precision_mode=$D").status().ok());
}

TEST_F(RulesTest, RulesOfFusionThatDoNotExistHereAreANote) {
  Write("switch.cfg",
        "{\"Switch\":{\"GraphFusion\":{\"fuse_epilogues\":\"off\",\"XPass\":\"off\"}}}");
  const Resolution result = Resolve("fusion_switch_file=$D/switch.cfg");
  EXPECT_TRUE(result.status().ok());
  ASSERT_EQ(result.options.notes().size(), 1u);
  EXPECT_EQ(result.options.notes()[0],
            "option fusion_switch_file: there is no rule XPass; those that can be switched are "
            "choose_layouts, fold_channel_scale, fuse_attention, fuse_elementwise_chains, fuse_epilogues, "
            "fuse_gelu, fuse_norms, fuse_quantized");
}

TEST_F(RulesTest, AnOpCacheFileThatIsHalfRightHasNoEffect) {
  Write("op_cache.ini", "[op_compiler_cache]\nmax_op_cache_size=100\n");
  const Resolution result = Resolve("op_compiler_cache_dir=$D");
  ASSERT_FALSE(result.options.notes().empty());
  EXPECT_NE(result.options.notes()[0].find("remain_cache_size_ratio is missing"),
            std::string::npos);
}

}  // namespace
}  // namespace npurt::options
