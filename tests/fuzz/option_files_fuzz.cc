// Any text as each of the files that options name, and as options: parsed or refused. What options
// accept they print, and that text is a fixed point; no file is opened.
#include <cstdlib>

#include "fuzz/seeds.h"
#include "options/files.h"
#include "options/json_text.h"
#include "options/options.h"

namespace {

const std::vector<std::string>& Seeds() {
  static const auto* const seeds = new std::vector<std::string>{
      "{\"black-list\": {\"to-remove\": [\"A\"], \"to-add\": [\"B\"]}, // c\n \"white-list\": {}}",
      "# "
      "c\na/b::InputDtype:float16,int8,OutputDtype:float16\nOpType::A:InputDtype:int8OutputDtype:,",
      "[ByOpType]\nA=high_precision\n[ByNodeName]\nb=keep_fp16 # c\n",
      "{\"Switch\":{\"GraphFusion\":{\"ALL\":\"off\",\"A\":\"on\"},\"UBFusion\":{}}}",
      "A:on\nB:off\n",
      "op_debug_config= ccec_g,oom\nop_debug_list=a,OpType::B\n",
      "[op_compiler_cache]\nmax_op_cache_size=-1\nremain_cache_size_ratio=80\n",
      "{\"tune_ops_name\":[\"a\"],\"tune_optimization_level\":\"O1\",\"feature\":[\"deeper_opat\"]"
      "}",
      "{\"output\":\"/"
      "p\",\"storage_limit\":\"200MB\",\"aic_metrics\":\"Custom:0x1,2\",\"x\":-1.5e3}",
      "input_shape = a:1,-1;b:0\ndynamic_dims = 1;2\ndynamic_node_type = 1\ngraph_run_mode = 0\n",
      "in_out_pair = [[['a'],['b','c']]]\ndump_step = 0|3-5\naicore_num = 2|4\n",
      "dynamic_inputs_shape_range = getnext:[1 ,2~3,-1],[];data:[4]\nprofiling_options = {}\n",
      "experimental_accelerate_train_mode = fast|step|0.9\nstream_max_parallel_num = DNN_VM_TF:1\n",
  };
  return *seeds;
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max_size, unsigned random) {
  return npurt::fuzz::SeededMutator(Seeds(), data, size, max_size, random);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace npurt::options;  // NOLINT: a fuzzer's one function
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  (void)ParseMixList(text, "f");
  (void)ParseOpsInfo(text, "f");
  (void)ParseCustomDtypes(text, "f");
  (void)ParseOpPrecision(text, "f");
  (void)ParseFusionSwitch(text, "f");
  (void)ParseOpDebug(text, "f");
  (void)ParseOpCache(text, "f");
  (void)ParseAoeConfig(text, "f");
  (void)ParseProfilingOptions(text, "f");
  (void)ParseJson(text, "f", true);
  if (text.find('=') == absl::string_view::npos) return 0;  // no line sets an option
  Options options(Profile::kSession), again(Profile::kSession);
  if (!options.SetText(text).ok()) return 0;
  const std::string once = options.ToText();
  if (!again.SetText(once).ok() || again.ToText() != once) std::abort();
  for (const Row& row : Rows())
    if (row.type == Type::kPath && !options.Unset(row.name).ok()) std::abort();
  if (options.Resolve({}).options.ToJson().empty()) std::abort();
  return 0;
}
