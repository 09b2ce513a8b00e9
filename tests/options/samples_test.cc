// The samples of the NPU documents: every value they set, and every file they show, with what the
// documents say it means. Comments inside samples are ours.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "options/files.h"
#include "options/forms.h"
#include "options/options.h"

namespace npurt::options {
namespace {

using Strings = std::vector<std::string>;

// As the session's options set them; what a text form keeps is the same, but for spellings.
struct Sample {
  const char* name;
  const char* value;
  const char* kept = nullptr;  // null: as it stands
};
const Sample kSessionSamples[] = {
    {"graph_run_mode", "1"},
    {"session_device_id", "0"},
    {"session_device_id", "1"},
    {"session_device_id", "7"},
    {"deterministic", "1"},
    {"atomic_clean_policy", "1"},
    {"static_memory_policy", "0"},
    {"variable_use_1g_huge_page", "2"},
    {"external_weight", "True", "true"},
    {"input_fusion_size", "25600"},
    {"input_batch_cpy", "True", "true"},
    {"input_shape", "data:1,1,40,-1;label:1,-1;mask:-1,-1"},
    {"dynamic_dims", "20,20,1,1;40,40,2,2;80,60,4,4"},
    {"dynamic_node_type", "0"},
    {"compile_hybrid_mode", "1"},
    {"ac_parallel_enable", "1"},
    {"compile_dynamic_mode", "True", "true"},
    {"all_tensor_not_empty", "True", "true"},
    {"mix_compile_mode", "True", "true"},
    {"in_out_pair_flag", "False", "false"},
    {"in_out_pair",
     "[[['import/conv2d_1/convolution'], ['import/conv2d_59/BiasAdd', 'import/conv2d_67/BiasAdd', "
     "'import/conv2d_75/BiasAdd']]]"},
    {"enable_exception_dump", "1"},
    {"op_debug_config", "/root/test0.cfg"},
    {"debug_dir", "/home/test"},
    {"export_compile_stat", "1"},
    {"precision_mode_v2", "origin"},
    {"precision_mode_v2", "mixed_float16"},
    {"precision_mode", "allow_mix_precision"},
    {"modify_mixlist", "/home/test/ops_info.json"},
    {"customize_dtypes", "/home/test/customize_dtypes.cfg"},
    {"enable_dump", "True", "true"},
    {"dump_mode", "all"},
    {"enable_dump_debug", "True", "true"},
    {"dump_debug_mode", "all"},
    {"dump_path", "/home/test/output"},
    {"dump_step", "0|5|10"},
    {"dump_step", "0|3-5|10"},
    {"dump_data", "stats"},
    {"dump_layer", "nodename1 nodename2 nodename3"},
    {"quant_dumpable", "1"},
    {"fusion_switch_file", "/home/test/fusion_switch.cfg"},
    {"buffer_optimize", "l2_optimize"},
    {"use_off_line", "True", "true"},
    {"iterations_per_loop", "10"},
    {"hcom_parallel", "True", "true"},
    {"enable_small_channel", "1"},
    {"op_precision_mode", "/home/test/op_precision.ini"},
    {"enable_scope_fusion_passes", "ScopeLayerNormPass,ScopeClipBoxesPass"},
    {"stream_max_parallel_num", "DNN_VM_AICPU:10,AIcoreEngine:1"},
    {"is_tailing_optimization", "True", "true"},
    {"variable_placement", "Device"},
    {"frozen_variable", "True", "true"},
    {"graph_max_parallel_model_num", "4"},
    {"profiling_mode", "True", "true"},
    {"profiling_options",
     "{\"output\":\"/tmp/profiling\",\"training_trace\":\"on\",\"fp_point\":\"\",\"bp_point\":"
     "\"\"}"},
    {"aoe_mode", "2"},
    {"work_path", "/home/test/output"},
    {"aoe_config_file", "/home/test/cfg/tuning_config.cfg"},
    {"op_compiler_cache_mode", "enable"},
    {"op_compiler_cache_dir", "/home/test/kernel_cache"},
    {"aicore_num", "2|4"},
    {"oo_constant_folding", "True", "true"},
    {"local_rank_id", "0"},
    {"local_device_list", "0,1"},
    {"hccl_timeout", "1800"},
    {"op_wait_timeout", "120"},
    {"op_execute_timeout", "90"},
    {"stream_sync_timeout", "60000"},
    {"event_sync_timeout", "60000"},
    {"graph_compiler_cache_dir", "/root/build_cache_dir"},
    {"jit_compile", "auto"},
    {"shape_generalization_mode", "FULL"},
    {"experimental_accelerate_train_mode", "fast|step|0.9"},
    {"experimental_accelerate_train_mode", "fast|loss|1.05"},
    {"auto_multistream_parallel_mode", "cv"},
    {"op_debug_level", "0"},
    {"enable_data_pre_proc", "True", "true"},
    {"variable_format_optimize", "True", "true"},
    {"op_select_implmode", "high_precision"},
    {"optypelist_for_implmode", "Pooling,SoftmaxV2"},
    {"dynamic_input", "True", "true"},
    {"dynamic_graph_execute_mode", "dynamic_execute"},
    {"dynamic_inputs_shape_range",
     "getnext:[128 ,3~5, 2~128, -1],[64 ,3~5, 2~128, -1];data:[128 ,3~5, 2~128, -1]"},
    {"dynamic_inputs_shape_range", "getnext:[3,3,4,10],[-1,3,2~1000,-1],[-1,-1,-1,-1]"},
    {"dynamic_inputs_shape_range", "getnext:[3~5],[3~6]"},
    {"dynamic_inputs_shape_range", "data:[3~5],[3~6]"},
    {"dynamic_inputs_shape_range", "data:[3~6],[3~5]"},
};
// As arguments of NPURunConfig, where they differ from those above.
const Sample kRunConfigSamples[] = {
    {"save_checkpoints_steps", "50"},
    {"save_checkpoints_steps", "0"},
    {"keep_checkpoint_max", "1"},
    {"iterations_per_loop", "1000"},
    {"graph_memory_max_size", "27917287424"},
    {"variable_memory_max_size", "5368709120"},
    {"auto_tune_mode", "RL,GA"},
    {"stream_max_parallel_num", "DNN_VM_TF:10,DNN_V100:1"},
    {"op_debug_level", "1"},
    {"hccl_timeout", "600"},
};

void ExpectTaken(const Sample& sample, Profile profile) {
  Options options(profile);
  const absl::Status status = options.Set(sample.name, sample.value);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_STREQ(options.value(*FindOption(sample.name)),
               sample.kept == nullptr ? sample.value : sample.kept)
      << sample.name;
}

TEST(SamplesTest, EveryValueOfTheDocumentsIsTaken) {
  for (const Sample& sample : kSessionSamples) ExpectTaken(sample, Profile::kSession);
  for (const Sample& sample : kRunConfigSamples) ExpectTaken(sample, Profile::kRunConfig);
}

TEST(SamplesTest, ThreeGearsOfThreeInputs) {
  const auto gears =
      ExpandGears("data:1,1,40,-1;label:1,-1;mask:-1,-1", "20,20,1,1;40,40,2,2;80,60,4,4");
  const auto dims = [&](std::size_t gear, std::size_t input) { return gears[gear][input].dims; };
  using Dims = std::vector<std::int64_t>;
  ASSERT_EQ(gears.size(), 3u);
  ASSERT_EQ(gears[0].size(), 3u);
  EXPECT_EQ(gears[0][0].name, "data");
  EXPECT_EQ(gears[2][2].name, "mask");
  EXPECT_EQ(dims(0, 0), (Dims{1, 1, 40, 20}));
  EXPECT_EQ(dims(0, 1), (Dims{1, 20}));
  EXPECT_EQ(dims(0, 2), (Dims{1, 1}));
  EXPECT_EQ(dims(1, 0), (Dims{1, 1, 40, 40}));
  EXPECT_EQ(dims(1, 1), (Dims{1, 40}));
  EXPECT_EQ(dims(1, 2), (Dims{2, 2}));
  EXPECT_EQ(dims(2, 0), (Dims{1, 1, 40, 80}));
  EXPECT_EQ(dims(2, 1), (Dims{1, 60}));
  EXPECT_EQ(dims(2, 2), (Dims{4, 4}));
  EXPECT_TRUE(ExpandGears("scalar:0;x:-1", "1;2")[1][0].dims.empty()) << "0 alone is a scalar";
}

// They are told: nobody has to count commas.
TEST(SamplesTest, TheReportSpellsTheGearsOut) {
  Options options(Profile::kSession);
  ASSERT_TRUE(options
                  .SetText("graph_run_mode = 0\ndynamic_node_type = 1\n"
                           "input_shape = data:1,1,40,-1;label:1,-1;mask:-1,-1\n"
                           "dynamic_dims = 20,20,1,1;40,40,2,2;80,60,4,4")
                  .ok());
  const Resolution result = options.Resolve({});
  ASSERT_FALSE(result.options.notes().empty());
  EXPECT_EQ(result.options.notes()[0],
            "the gears are data[1,1,40,20] label[1,20] mask[1,1]; data[1,1,40,40] label[1,40] "
            "mask[2,2]; data[1,1,40,80] label[1,60] mask[4,4] (R5)");
}

// Of five inputs four are merged, and one is no batch. Inputs are not copied here at all; the notes
// say both.
TEST(SamplesTest, FiveInputsAreNoBatchWhenFourAreMerged) {
  Options options(Profile::kSession);
  ASSERT_TRUE(options.SetText("input_batch_cpy = True\ninput_fusion_size = 100K").ok());
  EXPECT_STREQ(options.value(Option::input_fusion_size), "102400");
  const std::vector<std::string> notes = options.Resolve({}).options.notes();
  ASSERT_EQ(notes.size(), 3u);
  EXPECT_EQ(
      notes[0],
      "input_fusion_size takes its inputs first, and input_batch_cpy needs two or more of the "
      "others (R24)");
  EXPECT_EQ(notes[1],
            "option input_fusion_size: has no effect here, inputs are used where they lie, nothing "
            "is copied to a device");
  EXPECT_EQ(
      notes[2],
      "option input_batch_cpy: has no effect here, inputs are used where they lie, nothing is "
      "copied to a device");
}

TEST(SamplesTest, SixHundredSecondsAreEightTimes68) {
  for (const char* product : {"training", "300i_duo"}) {
    Options options(Profile::kSession);
    ASSERT_TRUE(options.Set("hccl_timeout", "600").ok());
    ASSERT_TRUE(options.Set("product", product).ok());
    EXPECT_STREQ(options.Resolve({}).options.value(Option::hccl_timeout), "544");
  }
}

// In three documents, with comments, and once with Matmul for MatMul.
TEST(SamplesTest, MixListWithAllFourArrays) {
  for (const char* removed : {"Xlog1py", "Yolo"})
    for (const char* product : {"Matmul", "MatMul"}) {
      const auto lists = ParseMixList(
          "{\n"
          "  \"black-list\": {                  // never lowered\n"
          "     \"to-remove\": [                // black to gray\n"
          "     \"" +
              std::string(removed) +
              "\"\n"
              "     ],\n"
              "     \"to-add\": [                   // to black\n"
              "     \"" +
              product +
              "\",\n"
              "     \"Cast\"\n"
              "     ]\n"
              "  },\n"
              "  \"white-list\": {                  // lowered\n"
              "     \"to-remove\": [                // white to gray \n"
              "     \"Conv2D\"\n"
              "     ],\n"
              "     \"to-add\": [                   // to white\n"
              "     \"Bias\"\n"
              "     ]\n"
              "  }\n"
              "}\n",
          "ops_info.json");
      ASSERT_TRUE(lists.ok()) << lists.status();
      EXPECT_EQ(lists->black.to_remove, Strings{removed});
      EXPECT_EQ(lists->black.to_add, (Strings{product, "Cast"}));
      EXPECT_EQ(lists->white.to_remove, Strings{"Conv2D"});
      EXPECT_EQ(lists->white.to_add, Strings{"Bias"});
      EXPECT_TRUE(lists->gray.to_add.empty());
    }
}

// Two ways to make a white operator black, and one that the documents call wrong, as it makes it
// gray. All are legal; where A ends up is a test of the precision settings.
TEST(SamplesTest, MixListsThatMoveOneOperator) {
  const auto added = ParseMixList("{ \"black-list\": { \n \"to-add\": [\"A\"]\n  }\n}", "f");
  ASSERT_TRUE(added.ok());
  EXPECT_EQ(added->black.to_add, Strings{"A"});
  const auto both = ParseMixList(
      "{ \"black-list\": { \"to-add\": [\"A\"] }, \"white-list\": { \"to-remove\": [\"A\"] } }",
      "f");
  ASSERT_TRUE(both.ok());
  EXPECT_EQ(both->black.to_add, Strings{"A"});
  EXPECT_EQ(both->white.to_remove, Strings{"A"});
  const auto removed = ParseMixList("{ \"white-list\": { \"to-remove\": [\"A\"] } }", "f");
  ASSERT_TRUE(removed.ok());
  EXPECT_TRUE(removed->black.to_add.empty());
  EXPECT_EQ(removed->white.to_remove, Strings{"A"});
}

TEST(SamplesTest, TypesOfOneOperatorByNameAndByType) {
  const auto file = ParseCustomDtypes(
      "# by name\n"
      "resnet_v1_50/block1/unit_3/bottleneck_v1/"
      "Relu::InputDtype:float16,int8,OutputDtype:float16,int8\n"
      "# by type\n"
      "OpType::Relu:InputDtype:float16,int8,OutputDtype:float16,int8\n",
      "customize_dtypes.cfg");
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_EQ(file->entries.size(), 2u);
  EXPECT_EQ(file->entries[0].name, "resnet_v1_50/block1/unit_3/bottleneck_v1/Relu");
  EXPECT_FALSE(file->entries[0].by_type);
  EXPECT_EQ(file->entries[1].name, "Relu");
  EXPECT_TRUE(file->entries[1].by_type);
  for (const CustomDtypes::Entry& entry : file->entries) {
    EXPECT_EQ(entry.inputs, (std::vector<DType>{DType::kF16, DType::kI8}));
    EXPECT_EQ(entry.outputs, (std::vector<DType>{DType::kF16, DType::kI8}));
  }
}

// The template that goes before it has no comma.
TEST(SamplesTest, TypesWithoutTheCommaOfTheTemplate) {
  const auto file =
      ParseCustomDtypes("Opname1::InputDtype:float16,float16OutputDtype:float32\n", "f");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->entries[0].inputs.size(), 2u);
  EXPECT_EQ(file->entries[0].outputs, std::vector<DType>{DType::kF32});
}

TEST(SamplesTest, ModesOfOperatorsInSections) {
  const auto file = ParseOpPrecision(
      "[ByOpType]\noptype1=high_precision\noptype2=high_performance\n"
      "optype3=enable_hi_float_32_execution\noptype4=support_out_of_bound_index\n"
      "[ByNodeName]\nnodename1=high_precision\nnodename2=high_performance\n"
      "nodename3=enable_hi_float_32_execution\nnodename4=support_out_of_bound_index\n",
      "op_precision.ini");
  ASSERT_TRUE(file.ok()) << file.status();
  for (const auto* modes : {&file->by_type, &file->by_name}) {
    const std::string prefix = modes == &file->by_type ? "optype" : "nodename";
    ASSERT_EQ(modes->size(), 4u);
    EXPECT_EQ(modes->at(prefix + "1"), "high_precision");
    EXPECT_EQ(modes->at(prefix + "2"), "high_performance");
    EXPECT_EQ(modes->at(prefix + "3"), "enable_hi_float_32_execution");
    EXPECT_EQ(modes->at(prefix + "4"), "support_out_of_bound_index");
  }
}

TEST(SamplesTest, ModesOfOperatorsInTheOlderFlatForm) {
  const auto file =
      ParseOpPrecision("AvgPoolV2=high_precision\nReduceMeanD=high_performance\n", "f");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE(file->by_name.empty());
  EXPECT_EQ(file->by_type.at("AvgPoolV2"), "high_precision");
  EXPECT_EQ(file->by_type.at("ReduceMeanD"), "high_performance");
}

TEST(SamplesTest, FusionRulesOneByOne) {
  const auto file = ParseFusionSwitch(
      "{\n    \"Switch\":{\n        \"GraphFusion\":{\n"
      "            \"RequantFusionPass\":\"on\",\n"
      "            \"ConvToFullyConnectionFusionPass\":\"off\",\n"
      "            \"SoftmaxFusionPass\":\"on\",\n"
      "            \"NotRequantFusionPass\":\"on\",\n"
      "            \"SplitConvConcatFusionPass\":\"on\",\n"
      "            \"ConvConcatFusionPass\":\"on\",\n"
      "            \"MatMulBiasAddFusionPass\":\"on\",\n"
      "            \"PoolingFusionPass\":\"on\",\n"
      "            \"ZConcatv2dFusionPass\":\"on\",\n"
      "            \"ZConcatExt2FusionPass\":\"on\",\n"
      "            \"TfMergeSubFusionPass\":\"on\"\n"
      "        },\n        \"UBFusion\":{\n"
      "            \"TbePool2dQuantFusionPass\":\"on\"\n        }\n    }\n}\n",
      "fusion_switch.cfg");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->graph.size(), 11u);
  EXPECT_EQ(file->ub.size(), 1u);
  for (const auto& [name, on] : file->graph)
    EXPECT_EQ(on, name != "ConvToFullyConnectionFusionPass") << name;
  EXPECT_FALSE(file->IsOn("ConvToFullyConnectionFusionPass"));
  EXPECT_TRUE(file->IsOn("TbePool2dQuantFusionPass"));
  EXPECT_TRUE(file->IsOn("SomeOtherPass")) << "rules are on unless they are switched off";
}

TEST(SamplesTest, FusionRulesAllAtOnceAndAllButOne) {
  const auto all = ParseFusionSwitch(
      "{ \"Switch\":{ \"GraphFusion\":{ \"ALL\":\"off\" }, \"UBFusion\":{ \"ALL\":\"off\" } } }",
      "f");
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_FALSE(all->IsOn("SoftmaxFusionPass"));
  const auto one = ParseFusionSwitch(
      "{ \"Switch\":{ \"GraphFusion\":{ \"ALL\":\"off\", \"SoftmaxFusionPass\":\"on\" }, "
      "\"UBFusion\":{ \"ALL\":\"off\", \"TbePool2dQuantFusionPass\":\"on\" } } }",
      "f");
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_TRUE(one->IsOn("SoftmaxFusionPass"));
  EXPECT_TRUE(one->IsOn("TbePool2dQuantFusionPass"));
  EXPECT_FALSE(one->IsOn("PoolingFusionPass"));
}

TEST(SamplesTest, DebugOptionsForAllOperatorsAndForSome) {
  const auto all = ParseOpDebug("op_debug_config=ccec_g,oom\n", "test0.cfg");
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(all->words, (Strings{"ccec_g", "oom"}));
  EXPECT_FALSE(all->lists_operators());
  const auto some = ParseOpDebug(
      "op_debug_config= ccec_g,oom\nop_debug_list=GatherV2,opType::ReduceSum\n", "test0.cfg");
  ASSERT_TRUE(some.ok()) << some.status();
  EXPECT_EQ(some->words, (Strings{"ccec_g", "oom"}));
  EXPECT_EQ(some->names, Strings{"GatherV2"});
  EXPECT_EQ(some->types, Strings{"ReduceSum"});
}

TEST(SamplesTest, SizesOfTheCacheOfOperators) {
  const auto file = ParseOpCache(
      "# this line is needed\n[op_compiler_cache]\n# megabytes\nmax_op_cache_size=500\n"
      "# percent\nremain_cache_size_ratio=80\n",
      "op_cache.ini");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->max_megabytes, 500);
  EXPECT_EQ(file->percent_kept, 80);
}

// The document's own sample lost a comma and two quotes, so that two names became one; that is
// legal and means what it says.
TEST(SamplesTest, OperatorsToTune) {
  const auto file = ParseAoeConfig(
      "{\n\"tune_ops_name\":[\"bert/embeddings/addbert/embeddings/add_1\",\"loss/MatMul\"],\n"
      "\"tune_ops_type\":[\"Add\", \"Mul\"],\n\"tune_optimization_level\":\"O1\",\n"
      "\"feature\":[\"deeper_opat\"]\n}\n",
      "tuning_config.cfg");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->names, (Strings{"bert/embeddings/addbert/embeddings/add_1", "loss/MatMul"}));
  EXPECT_EQ(file->types, (Strings{"Add", "Mul"}));
  EXPECT_EQ(file->level, "O1");
  EXPECT_EQ(file->features, Strings{"deeper_opat"});
}

TEST(SamplesTest, WhatIsProfiled) {
  const auto options = ParseProfilingOptions(
      "{\"output\":\"/tmp/"
      "profiling\",\"training_trace\":\"on\",\"fp_point\":\"\",\"bp_point\":\"\"}",
      "");
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->at("output"), "/tmp/profiling");
  EXPECT_EQ(options->at("training_trace"), "on");
  EXPECT_EQ(options->at("fp_point"), "") << "empty: found by itself";
  EXPECT_TRUE(ParseProfilingOptions("{\"host_sys\": \"cpu,mem\"}", "").ok());
}

}  // namespace
}  // namespace npurt::options
