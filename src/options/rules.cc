// The rules between options that are rows: who excludes, requires, overrules and forces whom.
// Numbers R1 to R46 are those of the documents' check list; rules of our own have none.
#include "absl/strings/str_cat.h"
#include "options/resolver.h"

namespace npurt::options {
namespace {

using enum Option;

constexpr Condition Always() { return {}; }
constexpr Condition Set(Option o) { return {Condition::kSet, o, nullptr}; }
constexpr Condition SetElse(Option o, const char* values) {
  return {Condition::kSetElse, o, values};
}
constexpr Condition On(Option o) { return {Condition::kOn, o, nullptr}; }
constexpr Condition Is(Option o, const char* values) { return {Condition::kIs, o, values}; }
constexpr Condition IsNot(Option o, const char* values) { return {Condition::kIsNot, o, values}; }
constexpr Condition Unset(Option o) { return {Condition::kUnset, o, nullptr}; }
constexpr Condition Env(const char* name) { return {Condition::kEnv, kCount, name}; }
constexpr Condition In(const char* profiles) { return {Condition::kProfile, kCount, profiles}; }
constexpr Condition Training() { return Is(graph_run_mode, "1"); }
constexpr Condition Inference() { return Is(graph_run_mode, "0"); }

// Both at once is an error, or the first without the second.
struct Pair {
  enum Kind { kExcludes, kRequires } kind;
  const char* rule;
  Condition a, b;
  const char* reason;
  const char* remedy;
};
constexpr auto kExcludes = Pair::kExcludes;
constexpr auto kRequires = Pair::kRequires;

constexpr const char* kTrio = "gears need shapes, values and the kind of input";
constexpr const char* kGearsInference = "gears are for online inference";
constexpr const char* kFixedPrecision =
    "training that changes its precision starts from the original one";
constexpr const char* kRegion = "a region is a part of mixed computing";

constexpr Pair kPairs[] = {
    {kExcludes, "", Is(device, "reference"), On(disable_isa),
     "the reference device has no kernels to choose from", ""},
    {kExcludes, "", Is(deterministic, "1"), Is(reproducibility, "fast"),
     "one promises the same bits and the other does not", "leave one out"},
    {kExcludes, "R1", Set(precision_mode), Set(precision_mode_v2),
     "they are two spellings of one choice", "keep precision_mode_v2"},
    {kExcludes, "R2", On(enable_dump), On(enable_dump_debug), "one dump at a time",
     "switch one off"},
    {kRequires, "R3", On(enable_dump), Set(dump_path), "dumps need a directory", "set dump_path"},
    {kRequires, "R3", On(enable_dump_debug), Set(dump_path), "dumps need a directory",
     "set dump_path"},
    {kRequires, "R5", Set(input_shape), Set(dynamic_dims), kTrio, "set all three or none"},
    {kRequires, "R5", Set(input_shape), Set(dynamic_node_type), kTrio, "set all three or none"},
    {kRequires, "R5", Set(dynamic_dims), Set(input_shape), kTrio, "set all three or none"},
    {kRequires, "R5", Set(dynamic_dims), Set(dynamic_node_type), kTrio, "set all three or none"},
    {kRequires, "R5", Set(dynamic_node_type), Set(input_shape), kTrio, "set all three or none"},
    {kRequires, "R5", Set(dynamic_node_type), Set(dynamic_dims), kTrio, "set all three or none"},
    {kRequires, "R5", Set(input_shape), Inference(), kGearsInference, "set graph_run_mode=0"},
    {kRequires, "R5", Set(dynamic_dims), Inference(), kGearsInference, "set graph_run_mode=0"},
    {kRequires, "R7", Is(compile_hybrid_mode, "1"), Set(input_shape),
     "the hybrid chooses between gears and a dynamic graph", "set the gears or leave it out"},
    {kRequires, "R7", Is(compile_hybrid_mode, "1"), Is(dynamic_node_type, "1"),
     "the hybrid takes placeholders only", "set dynamic_node_type=1"},
    {kExcludes, "R8", On(compile_dynamic_mode), Set(input_shape),
     "one makes all dimensions unknown, the other lists them", "leave one out"},
    {kExcludes, "R8", On(compile_dynamic_mode), Set(dynamic_dims),
     "one makes all dimensions unknown, the other lists them", "leave one out"},
    {kExcludes, "R8", On(compile_dynamic_mode), Set(dynamic_node_type),
     "one makes all dimensions unknown, the other lists them", "leave one out"},
    {kRequires, "R11", On(mix_compile_mode), Is(iterations_per_loop, "1"),
     "parts that stay with the framework run once per iteration", "set iterations_per_loop=1"},
    {kRequires, "R12", SetElse(iterations_per_loop, "1"), Is(enable_data_pre_proc, "true"),
     "a loop on the device needs its data there", "set enable_data_pre_proc=true"},
    {kRequires, "R13", Set(in_out_pair), Is(mix_compile_mode, "true"), kRegion,
     "set mix_compile_mode=true"},
    {kRequires, "R13", Set(in_out_pair_flag), Is(mix_compile_mode, "true"), kRegion,
     "set mix_compile_mode=true"},
    {kRequires, "R13", Set(in_out_pair), Inference(), "regions are for online inference",
     "set graph_run_mode=0"},
    {kRequires, "R14", Is(variable_placement, "Host"), Is(mix_compile_mode, "true"),
     "variables on the host are a part of mixed computing", "set mix_compile_mode=true"},
    {kExcludes, "R16", Set(optypelist_for_implmode), Unset(op_select_implmode),
     "the list says what the mode is for", "set op_select_implmode"},
    {kExcludes, "R23", Is(static_memory_policy, "2|4"), SetElse(graph_max_parallel_model_num, "1"),
     "graphs that share their memory cannot run at once", "choose policy 0 or 3"},
    {kExcludes, "R27", Set(experimental_accelerate_train_mode),
     SetElse(precision_mode, "allow_fp32_to_fp16|must_keep_origin_dtype"), kFixedPrecision,
     "leave precision_mode out"},
    {kExcludes, "R27", Set(experimental_accelerate_train_mode),
     SetElse(precision_mode_v2, "origin"), kFixedPrecision, "leave precision_mode_v2 out"},
    {kExcludes, "R28", Set(auto_multistream_parallel_mode),
     Env("ENABLE_DYNAMIC_SHAPE_MULTI_STREAM"), "one way to several streams at a time",
     "unset the variable or leave the option out"},
    {kExcludes, "R31", Is(aoe_mode, "1"), Is(product, "a2|a3"),
     "subgraphs are not tuned on this product", "choose mode 2 or 4"},
    {kExcludes, "R33", Set(save_checkpoints_steps), Set(save_checkpoints_secs),
     "checkpoints go by steps or by seconds", "leave one out"},
    {kExcludes, "R36", Is(precision_mode, "force_fp16"), Training(),
     "it is for online inference only", "choose allow_fp32_to_fp16"},
    {kExcludes, "R37", Is(dump_debug_mode, "aicore_overflow|atomic_overflow"),
     Is(product, "a2|a3|350"), "this product collects both kinds only", "set dump_debug_mode=all"},
    {kRequires, "R41", Set(local_device_list), Set(local_rank_id), "the list is a rank's",
     "set local_rank_id"},
    {kRequires, "R41", Set(local_rank_id), Set(local_device_list), "a rank sends to a list",
     "set local_device_list"},
    {kExcludes, "R46", Set(dynamic_dims), On(mix_compile_mode),
     "gears are made for a graph in one piece", "leave one out"},
};

// What was set has no effect while the condition holds.
struct Ignored {
  const char* rule;
  Option option;
  Condition when;
  const char* reason;
};
constexpr Ignored kIgnored[] = {
    {"", spin_us, Is(threads, "1"), "one thread waits for nobody"},
    {"", disable_isa, Is(max_isa, "generic"), "generic kernels use no instruction set"},
    {"", threads, Is(device, "reference"), "the reference device runs one thread"},
    {"R8", shape_generalization_mode, On(compile_dynamic_mode),
     "all dimensions are unknown anyway"},
    {"R9", dynamic_inputs_shape_range, Set(dynamic_dims), "gears stand above ranges"},
    {"R10", dynamic_graph_execute_mode, IsNot(dynamic_input, "true"),
     "it is a mode of dynamic inputs"},
    {"R15", op_select_implmode, Set(op_precision_mode), "the file stands above it"},
    {"R15", optypelist_for_implmode, Set(op_precision_mode), "the file stands above it"},
    {"R17", customize_dtypes, Is(precision_mode_v2, "origin"), "every type is kept"},
    {"R17", customize_dtypes, Is(precision_mode, "must_keep_origin_dtype"), "every type is kept"},
    {"R26", shape_generalization_mode, IsNot(jit_compile, "true"),
     "it is a mode of compiling for the graph"},
    {"R42", quant_dumpable, IsNot(enable_dump, "true"), "there is no dump to see it in"},
};

// A value that follows from others: where nothing was set, or whatever was.
struct Follows {
  enum Kind { kDefault, kForced } kind;
  const char* rule;
  Option option;
  const char* value;  // null: unset
  Condition when[3];
  const char* reason;
};
constexpr auto kDefault = Follows::kDefault;
constexpr auto kForced = Follows::kForced;

constexpr Follows kFollows[] = {
    {kDefault, "R1", precision_mode_v2, nullptr, {Set(precision_mode)}, "precision_mode is set"},
    {kDefault, "R1", precision_mode, nullptr, {Set(precision_mode_v2)}, "precision_mode_v2 is set"},
    {kDefault,
     "",
     precision_mode_v2,
     nullptr,
     {In("session"), Is(product, "training"), Training()},
     "this product has no such default"},
    {kDefault,
     "",
     precision_mode,
     "allow_fp32_to_fp16",
     {In("session"), Is(product, "training"), Training()},
     "this product's default in training"},
    {kDefault,
     "R7",
     external_weight,
     "true",
     {Is(compile_hybrid_mode, "1")},
     "both graphs share the weights"},
    {kDefault,
     "R33",
     save_checkpoints_steps,
     "100",
     {In("run_config"), Unset(save_checkpoints_secs)},
     "neither steps nor seconds are set"},
    {kForced,
     "R22",
     enable_exception_dump,
     "1",
     {Env("NPU_COLLECT_PATH")},
     "NPU_COLLECT_PATH is set"},
    {kForced, "R23", static_memory_policy, "2", {Is(static_memory_policy, "1")}, "1 means 2"},
    {kForced,
     "R38",
     enable_small_channel,
     "1",
     {Inference()},
     "it is always on in online inference"},
};

// True, and good to know.
struct Advice {
  const char* rule;
  Condition a, b;
  const char* text;
};
constexpr Advice kAdvice[] = {
    {"R4", Is(enable_exception_dump, "1"), On(enable_dump),
     "with both enable_dump and enable_exception_dump=1, graphs with dynamic shapes get the "
     "exception "
     "dump only"},
    {"R4", Is(enable_exception_dump, "1"), On(enable_dump_debug),
     "with both enable_dump_debug and enable_exception_dump=1, graphs with dynamic shapes get the "
     "exception dump only"},
    {"R12", SetElse(iterations_per_loop, "1"), Set(save_summary_steps),
     "save_summary_steps may not be kept with iterations_per_loop above 1"},
    {"R12", SetElse(iterations_per_loop, "1"), Set(log_step_count_steps),
     "log_step_count_steps may not be kept with iterations_per_loop above 1"},
    {"R24", On(input_batch_cpy), IsNot(input_fusion_size, "0"),
     "input_fusion_size takes its inputs first, and input_batch_cpy needs two or more of the "
     "others"},
    {"R25", Set(aicore_num), Is(jit_compile, "false"),
     "aicore_num has no effect on operators that were compiled before"},
    {"R27", SetElse(iterations_per_loop, "1"), Set(experimental_accelerate_train_mode),
     "the parts of experimental_accelerate_train_mode may be inexact with iterations_per_loop above "
     "1"},
    {"R30", On(is_tailing_optimization), Always(),
     "is_tailing_optimization must be the same for NPUOptimizer"},
    {"R34", Set(model_dir), Always(), "model_dir must be the same for the Estimator"},
    {"R45", Is(oo_constant_folding, "false"), Always(),
     "some operators must be folded; mark single nodes instead"},
};

}  // namespace

bool Resolver::Holds(const Condition& c) const {
  if (c.kind == Condition::kAlways) return true;
  if (c.kind == Condition::kEnv) return Variable(c.text) != nullptr;
  if (c.kind == Condition::kProfile) return OneOfThese(c.text, ProfileName(options_.profile()));
  const char* now = options_.value(c.option);
  switch (c.kind) {
    case Condition::kSet:
      return IsSet(c.option);
    case Condition::kSetElse:
      return IsSet(c.option) && !OneOfThese(c.text, now);
    case Condition::kOn:
      return IsSet(c.option) && !OneOfThese("false|0", now);
    case Condition::kIs:
      return now != nullptr && OneOfThese(c.text, now);
    case Condition::kIsNot:
      return now == nullptr || !OneOfThese(c.text, now);
    default:
      return now == nullptr;
  }
}

void Resolver::ApplyDefaultsAndForce() {
  for (const Follows& f : kFollows) {
    if (!Holds(f.when[0]) || !Holds(f.when[1]) || !Holds(f.when[2])) continue;
    if (f.kind == kDefault) {
      Default(f.option, f.value, f.reason);
    } else {
      Force(f.option, f.value, f.reason);
    }
  }
}

namespace {

// "name=value", "name unset", "the environment variable X".
std::string ShowCondition(const Resolver& resolver, const Condition& c) {
  if (c.kind == Condition::kEnv) return absl::StrCat("the environment variable ", c.text);
  return resolver.Show(c.option);
}

// What would make it hold.
std::string Wanted(const Condition& c) {
  const char* name = RowOf(c.option).name;
  return c.kind == Condition::kIs ? absl::StrCat(name, "=", c.text) : std::string(name);
}

}  // namespace

void Resolver::CheckPairs() {
  for (const Pair& p : kPairs) {
    if (!Holds(p.a) || Holds(p.b) != (p.kind == kExcludes)) continue;
    const std::string what = p.kind == kExcludes
                                 ? absl::StrCat(" excludes ", ShowCondition(*this, p.b))
                                 : absl::StrCat(" requires ", Wanted(p.b));
    Fail(p.rule, absl::StrCat("option ", Show(p.a.option), what, ": ", p.reason,
                              *p.remedy == '\0' ? "" : "; ", p.remedy));
  }
}

void Resolver::IgnoreAndAdvise() {
  for (const Ignored& i : kIgnored)
    if (IsSet(i.option) && Holds(i.when))
      Ignore(i.rule, i.option,
             absl::StrCat("has no effect with ", ShowCondition(*this, i.when), ", ", i.reason));
  for (const Advice& a : kAdvice)
    if (Holds(a.a) && Holds(a.b)) Note(a.rule, a.text);
}

}  // namespace npurt::options
