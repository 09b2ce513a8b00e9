// npurt bench: how long a model takes to load and to run, with what memory and which kernels.
//
// Inputs and outputs are bound before the loop and latencies go into histograms, so that the loop
// measures the library and allocates nothing of its own.
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <fstream>
#include <map>
#include <thread>

#include "cli/histogram.h"
#include "cli/inputs.h"
#include "cli/json.h"
#include "cli/session.h"
#include "cli/text.h"
#include "cli/values.h"
#include "cli/verbs.h"

namespace npurt::cli {
namespace {

constexpr std::uint64_t kMinRuns = 10;  // per thread, for quantiles of slow models

double CpuSeconds() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

// A line of /proc/self/status in bytes; 0 if it is not there.
std::uint64_t ProcessBytes(const std::string& key) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);)
    if (line.compare(0, key.size(), key) == 0)
      return std::strtoull(line.c_str() + key.size(), nullptr, 10) * 1024;
  return 0;
}

struct Bench {
  std::string model;
  SessionFlags session_flags;
  InputFlags input_flags;
  double seconds = 2;
  std::int64_t threads = 0, concurrency = 1;

  OpenSession open;
  std::vector<OwnedValue> inputs;
  std::vector<std::vector<OwnedValue>> outputs;  // per thread; null where it could not be bound
  std::vector<OwnedRun> runs;
  bool outputs_bound = true;

  std::uint64_t rss_after_load = 0;
  double first_run_ms = 0, wall_seconds = 0, cpu_seconds = 0;
  Histogram latencies;

  Status Prepare();
  Status FirstRun();
  Status BindOutputs();
  Status Measure();
  Status Loop(npurt_run* run, std::int64_t end_ns, const std::atomic<bool>& stop,
              Histogram* histogram) const;
  Status Execute(npurt_run* run) const;
  Json Report() const;
};

Status Bench::Prepare() {
  if (threads > 0) session_flags.options.push_back("threads=" + std::to_string(threads));
  NPURT_CLI_TRY(Open(model, session_flags, &open));
  rss_after_load = ProcessBytes("VmRSS:");
  std::vector<ValueInfo> infos;
  NPURT_CLI_TRY(InputsOf(open.session.get(), &infos));
  NPURT_CLI_TRY(MakeInputs(input_flags, infos, &inputs));
  for (std::int64_t t = 0; t < concurrency; ++t) {
    OwnedError error;
    OwnedRun run;
    NPURT_CLI_TRY(FromLibrary(npurt_run_create(open.session.get(), 0, run.out(), error.out()),
                              error, kExitRun, "preparing a run"));
    for (std::size_t i = 0; i < inputs.size(); ++i)
      NPURT_CLI_TRY(FromLibrary(npurt_run_bind_input(run.get(), i, inputs[i].get(), 0, error.out()),
                                error, kExitRun, "input '" + infos[i].name + "'",
                                "npurt inspect MODEL shows what it takes."));
    runs.push_back(std::move(run));
  }
  return Status();
}

Status Bench::Execute(npurt_run* run) const {
  OwnedError error;
  return FromLibrary(npurt_run_execute(run, nullptr, error.out()), error, kExitRun, model);
}

Status Bench::FirstRun() {
  const std::int64_t start = npurt_now_ns();
  NPURT_CLI_TRY(Execute(runs[0].get()));
  first_run_ms = static_cast<double>(npurt_now_ns() - start) / 1e6;
  return Status();
}

// Outputs get memory of the size that the first run had. What cannot be bound (sequences, sizes
// that depend on the data) is made anew by each run, which the report says.
Status Bench::BindOutputs() {
  const std::size_t count = npurt_session_output_count(open.session.get(), 0);
  outputs.resize(runs.size());
  for (std::size_t i = 0; i < count; ++i) {
    OwnedError error;
    OwnedValue sample;
    NPURT_CLI_TRY(FromLibrary(npurt_run_output(runs[0].get(), i, sample.out(), error.out()), error,
                              kExitRun, "output " + std::to_string(i)));
    npurt_tensor view = npurt_tensor_init();
    if (npurt_value_tensor(sample.get(), &view, nullptr) != NPURT_OK ||
        view.dtype == NPURT_STRING) {
      outputs_bound = false;
      continue;
    }
    for (std::size_t t = 0; t < runs.size(); ++t) {
      OwnedValue value;
      NPURT_CLI_TRY(
          FromLibrary(npurt_value_create(view.dtype, view.dims, static_cast<std::size_t>(view.rank),
                                         nullptr, value.out(), error.out()),
                      error, kExitRun, "output " + std::to_string(i)));
      if (npurt_run_bind_output(runs[t].get(), i, value.get(), nullptr) != NPURT_OK) {
        outputs_bound = false;
        continue;
      }
      outputs[t].push_back(std::move(value));
    }
  }
  for (const OwnedRun& run : runs) NPURT_CLI_TRY(Execute(run.get()));  // also warms up
  return Status();
}

Status Bench::Loop(npurt_run* run, std::int64_t end_ns, const std::atomic<bool>& stop,
                   Histogram* histogram) const {
  std::int64_t now = npurt_now_ns();
  while ((now < end_ns || histogram->count() < kMinRuns) && !stop.load(std::memory_order_relaxed)) {
    const npurt_status status = npurt_run_execute(run, nullptr, nullptr);
    if (status != NPURT_OK) return Execute(run);  // once more, for the words
    const std::int64_t done = npurt_now_ns();
    histogram->Add(done - now);
    now = done;
  }
  return Status();
}

Status Bench::Measure() {
  std::vector<Histogram> histograms(runs.size());
  std::vector<Status> results(runs.size());
  std::atomic<bool> stop{false};
  const bool terminal = isatty(STDERR_FILENO) == 1;
  if (terminal) std::fprintf(stderr, "running for %s s ...", FormatReal(seconds).c_str());
  const double cpu_start = CpuSeconds();
  const std::int64_t start = npurt_now_ns();
  const std::int64_t end = start + static_cast<std::int64_t>(seconds * 1e9);
  const auto loop = [&](std::size_t t) {
    results[t] = Loop(runs[t].get(), end, stop, &histograms[t]);
    if (!results[t].ok()) stop.store(true);
  };
  std::vector<std::thread> others;
  for (std::size_t t = 1; t < runs.size(); ++t) others.emplace_back(loop, t);
  loop(0);
  for (std::thread& other : others) other.join();
  wall_seconds = static_cast<double>(npurt_now_ns() - start) / 1e9;
  cpu_seconds = CpuSeconds() - cpu_start;
  if (terminal) std::fprintf(stderr, "\r\x1b[K");
  for (const Status& status : results)
    if (!status.ok()) return status;
  for (const Histogram& histogram : histograms) latencies.Merge(histogram);
  return Status();
}

// The value of an option in force; "" if it is unset or there is no such option.
std::string OptionInForce(const SessionFlags& flags, const char* name) {
  OwnedOptions options;
  const char* value = nullptr;
  if (!flags.MakeOptions(&options).ok()) return "";
  if (npurt_options_get(options.get(), name, &value, nullptr) != NPURT_OK) return "";
  return value == nullptr ? "" : value;
}

std::int64_t AllowedCpus() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

Json Bench::Report() const {
  const auto ms = [](double ns) { return ns / 1e6; };
  Json json;
  json["model"] = model;
  json["version"] = npurt_version();
  json["load_ms"] = open.load_ms;
  json["first_run_ms"] = first_run_ms;
  json["p50_ms"] = ms(latencies.Quantile(.5));
  json["p90_ms"] = ms(latencies.Quantile(.9));
  json["p99_ms"] = ms(latencies.Quantile(.99));
  json["min_ms"] = ms(static_cast<double>(latencies.min()));
  json["max_ms"] = ms(static_cast<double>(latencies.max()));
  json["mean_ms"] = ms(latencies.mean());
  json["runs"] = latencies.count();
  json["runs_per_second"] = static_cast<double>(latencies.count()) / wall_seconds;
  json["seconds"] = wall_seconds;
  json["cpu_over_wall"] = cpu_seconds / wall_seconds;
  json["concurrency"] = concurrency;
  const std::string width = OptionInForce(session_flags, "threads");
  json["threads"] = width.empty() || width == "0" ? AllowedCpus() : std::stoll(width);
  json["device"] = OptionInForce(session_flags, "device");
  const std::string precision = OptionInForce(session_flags, "precision_mode");
  json["precision"] = precision.empty() ? "origin" : precision;
  json["outputs_bound"] = outputs_bound;
  json["rss_after_load_bytes"] = rss_after_load;
  json["peak_rss_bytes"] = ProcessBytes("VmHWM:");

  std::vector<std::vector<std::int64_t>> dims(inputs.size());
  std::vector<npurt_shape> shapes;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    npurt_tensor view = npurt_tensor_init();
    if (npurt_value_tensor(inputs[i].get(), &view, nullptr) == NPURT_OK)
      dims[i].assign(view.dims, view.dims + view.rank);
    shapes.push_back({dims[i].data(), dims[i].size()});
  }
  npurt_memory_info memory = npurt_memory_info_init();
  const bool known = npurt_session_memory(open.session.get(), 0, shapes.data(), shapes.size(),
                                          &memory, nullptr) == NPURT_OK;
  json["arena_bytes"] = known ? Json(memory.arena_bytes) : Json();
  json["arena_exact"] = known ? Json(memory.exact == 1) : Json();
  json["arena_lower_bound_bytes"] = nullptr;
  json["weight_bytes"] = known ? Json(memory.weight_bytes) : Json();
  json["packed_bytes"] = known ? Json(memory.packed_bytes) : Json();
  const Json report = ParseJson(SessionReport(open.session.get(), NPURT_REPORT_MEMORY));
  if (report.contains("arena_lower_bound_bytes"))
    json["arena_lower_bound_bytes"] = report["arena_lower_bound_bytes"];
  std::map<std::string, int> kernels;
  const Json plan = ParseJson(SessionReport(open.session.get(), NPURT_REPORT_PLAN));
  if (plan.contains("steps"))
    for (const Json& step : plan["steps"])
      if (step.contains("kernel") && step["kernel"].is_string() && step["kernel"] != "")
        ++kernels[step["kernel"].get<std::string>()];
  json["kernels"] = kernels;
  return json;
}

void PrintText(const Json& json) {
  Table table;
  for (const auto& [key, value] : json.items()) {
    if (key == "kernels") continue;
    const bool bytes = key.size() > 6 && key.compare(key.size() - 6, 6, "_bytes") == 0;
    table.Add({key, bytes && value.is_number() ? FormatBytes(value.get<std::uint64_t>())
                    : value.is_number_float()  ? FormatReal(value.get<double>())
                                               : ReadableJson(value)});
  }
  for (const auto& [name, count] : json["kernels"].items())
    table.Add({"kernel", ReadableJson(count) + " x " + name});
  std::fputs(table.Format().c_str(), stdout);
}

}  // namespace

Status BenchVerb(const Arguments& arguments) {
  Bench bench;
  bool as_json = false;
  Args args("bench",
            "Loads a model, runs it again and again on the same inputs with bound outputs, and "
            "prints times, memory and kernels.");
  args.Positional("MODEL", &bench.model, true);
  bench.input_flags.Declare(args);
  bench.session_flags.Declare(args);
  args.Real("--seconds", 0.001, 86400, &bench.seconds,
            "How long to run; 2 if it is not given. At least 10 runs are made.");
  args.Integer("--threads", 1, 1024, &bench.threads, "The same as --option threads=N.");
  args.Integer("--concurrency", 1, 1024, &bench.concurrency,
               "How many runs to keep going at the same time, each from a thread of its own.");
  args.Switch("--json", &as_json, "One JSON object on the last line.");
  bool help = false;
  NPURT_CLI_TRY(args.Parse(arguments, &help));
  if (help) {
    std::fputs(args.Help().c_str(), stdout);
    return Status();
  }
  NPURT_CLI_TRY(bench.Prepare());
  NPURT_CLI_TRY(bench.FirstRun());
  NPURT_CLI_TRY(bench.BindOutputs());
  NPURT_CLI_TRY(bench.Measure());
  const Json json = bench.Report();
  if (as_json)
    std::printf("%s\n", DumpJson(json, -1).c_str());
  else
    PrintText(json);
  return Status();
}

}  // namespace npurt::cli
