// Rules between options: for each number of the documents' list a case that obeys and one that
// breaks it, or one where it decides and one where it does not.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
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
  static std::string NotesOf(const Resolution& result, const std::string& rule) {
    std::string notes;
    for (const std::string& note : result.options.notes())
      if (note.find("(" + rule + ")") != std::string::npos) notes += note + "\n";
    return notes;
  }

  const std::string folder_;
  std::vector<std::string> files_;
};

enum Kind {
  kError,   // `breaks` is refused; `shows` is in the error
  kNote,    // `breaks` is told in a note with `shows`; `because` is why it is no error
  kForces,  // `breaks` makes `shows` ("name=value") the value in force, `obeys` does not
  kForm,    // `breaks` ("name=value") is no value of the option; `shows` is in the error
};

struct RuleCase {
  const char* rule;
  Kind kind;
  const char* obeys;
  const char* breaks;
  const char* shows;
  const char* because = "";
  Profile profile = Profile::kSession;
};

constexpr Profile kOlder = Profile::kRunConfig;
constexpr const char* kPrecedence = "the documents say which one counts";
constexpr const char* kElsewhere = "the other value is set outside of the library";
constexpr const char* kAdvised = "the documents only advise";

#define STEP "experimental_accelerate_train_mode=fast|step|0.9"
#define GEARS "INFER;;input_shape=a:1,-1;b:-1;;dynamic_node_type=1;;"

const RuleCase kRules[] = {
#include "rule_cases.inc"
};

class RuleTest : public RulesTest {
 protected:
  // Parts that begin with ENV are variables of the environment.
  Resolution ResolveCase(const RuleCase& c, const char* text) {
    Environment environment;
    std::string options;
    for (absl::string_view part : absl::StrSplit(text, ";;", absl::SkipEmpty())) {
      if (absl::ConsumePrefix(&part, "ENV ")) {
        const std::pair<std::string, std::string> pair = absl::StrSplit(part, '=');
        environment.push_back(pair);
      } else {
        absl::StrAppend(&options, options.empty() ? "" : ";;", part);
      }
    }
    return Resolve(options, environment, c.profile);
  }
  static std::string InForce(const Resolution& result, const char* pair) {
    const std::string name(pair, absl::string_view(pair).find('='));
    const char* value = result.options.value(*FindOption(name));
    return absl::StrCat(name, "=", value == nullptr ? "" : value);
  }
  static absl::Status SetPair(const char* pair) {
    const std::vector<std::string> parts = absl::StrSplit(pair, absl::MaxSplits('=', 1));
    return Options(Profile::kSession).Set(parts[0], parts[1]);
  }
};

TEST_F(RuleTest, EachHasACaseThatObeysAndOneThatBreaksIt) {
  for (const RuleCase& c : kRules) {
    SCOPED_TRACE(absl::StrCat(c.rule, ": ", c.breaks));
    if (c.kind == kForm) {
      EXPECT_TRUE(SetPair(c.obeys).ok());
      EXPECT_NE(SetPair(c.breaks).message().find(c.shows), std::string::npos)
          << SetPair(c.breaks).message();
      continue;
    }
    const Resolution obeys = ResolveCase(c, c.obeys), breaks = ResolveCase(c, c.breaks);
    EXPECT_EQ(CountProblems(obeys, c.rule), 0);
    if (c.kind == kError) {
      EXPECT_FALSE(breaks.status().ok());
      std::string told;
      for (const Problem& p : breaks.problems) {
        EXPECT_EQ(p.text.rfind("option ", 0), 0u) << "no option: " << p.text;
        EXPECT_NE(p.text.find("; "), std::string::npos) << "no remedy: " << p.text;
        if (p.rule == c.rule) told += p.text + "\n";
      }
      EXPECT_NE(told.find(c.shows), std::string::npos) << told;
    } else if (c.kind == kNote) {
      EXPECT_STRNE(c.because, "") << "why is this no error?";
      EXPECT_EQ(CountProblems(breaks, c.rule), 0);
      EXPECT_EQ(NotesOf(obeys, c.rule), "");
      EXPECT_NE(NotesOf(breaks, c.rule).find(c.shows), std::string::npos)
          << NotesOf(breaks, c.rule);
    } else {
      EXPECT_NE(InForce(obeys, c.shows), c.shows);
      EXPECT_EQ(InForce(breaks, c.shows), c.shows);
    }
  }
}

TEST_F(RuleTest, NoneOfTheListIsMissing) {
  for (int i = 1; i <= 46; ++i) {
    const std::string rule = absl::StrCat("R", i);
    EXPECT_TRUE(std::any_of(std::begin(kRules), std::end(kRules), [&](const RuleCase& c) {
      return c.rule == rule;
    })) << rule;
  }
}

TEST_F(RulesTest, GearsAreManyButNotTooMany) {
  std::string many = "INFER;;input_shape=a:-1;;dynamic_node_type=1;;dynamic_dims=1";
  for (int i = 2; i <= 100; ++i) absl::StrAppend(&many, ";", i);
  EXPECT_EQ(CountProblems(Resolve(many), "R5"), 0);
  EXPECT_EQ(CountProblems(Resolve(many + ";101"), "R5"), 1);
  EXPECT_EQ(CountProblems(Resolve(many + ";101;;product=350"), "R5"), 0);
}

TEST_F(RulesTest, WhatIsIgnoredHasItsDefault) {
  EXPECT_EQ(Resolve("INFER;;dynamic_dims=1;2;;dynamic_inputs_shape_range=data:[1]")
                .options.value(Option::dynamic_inputs_shape_range),
            nullptr);
}

TEST_F(RulesTest, AForcedValueSaysWhatWasSet) {
  const Resolution collect = Resolve("enable_exception_dump=0", {{"NPU_COLLECT_PATH", "/c"}});
  EXPECT_EQ(collect.options.source(Option::enable_exception_dump), Options::Source::kForced);
  EXPECT_EQ(collect.options.why(Option::enable_exception_dump),
            "NPU_COLLECT_PATH is set; 0 was set");
}

TEST_F(RulesTest, TheNewerDocumentGivesMemorySizesNoEffect) {
  EXPECT_EQ(CountProblems(Resolve("graph_memory_max_size=27G;;variable_memory_max_size=5G"), "R39"),
            0);
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
  EXPECT_NE(Resolve("", {{"AOE_MODE", "1"}})
                .status()
                .message()
                .find("option aoe_mode=1 from AOE_MODE excludes product=a2"),
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
            "choose_layouts, fold_channel_scale, fuse_attention, fuse_elementwise_chains, "
            "fuse_epilogues, "
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
