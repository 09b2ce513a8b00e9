// cancel_bench: how long a cancel takes to come back out of one long operator.
//
//   cancel_bench [filter]     rows whose name contains the filter
//
// Each row is one node that computes for a second or so. The run is cancelled from another thread at
// several moments; then it must go through once more with the same session (cut short by a deadline,
// which is measured too). The table has the worst time from the trigger to the return. Ends with 1 if
// any row took longer than 10 ms in its better half: on a busy machine a thread may lose its CPU.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "graph.h"

namespace npurt_bench {
namespace {

constexpr double kLimitMs = 10;

struct Row {
  const char* type;
  std::vector<Operand> operands;
  std::vector<Attribute> attributes;
  const char* settings = "";
  size_t outputs = 1;
  const char* domain = nullptr;
};

Operand In(std::vector<int64_t> dims, npurt_dtype dtype = NPURT_FLOAT32) {
  return {dtype, std::move(dims), {}, false};
}
Operand Const(std::vector<int64_t> values) { return {NPURT_INT64, {}, std::move(values), false}; }
Operand None() { return {NPURT_FLOAT32, {}, {}, true}; }

const char kReference[] = "device = reference\n";
const char kGeneric[] = "max_isa = generic\n";

std::vector<Row> Rows() {
  return {
      {"Conv", {In({1, 256, 192, 192}), In({512, 256, 3, 3})}, {}},
      {"Conv", {In({1, 8192, 24, 24}), In({256, 8192, 3, 3})}, {}},
      {"Conv", {In({1, 512, 384, 384}), In({512, 1, 7, 7})}, {Int("group", 512)}},
      {"Conv", {In({1, 64, 64, 64}), In({64, 64, 3, 3})}, {}, kReference},
      {"Conv", {In({1, 128, 96, 96}), In({256, 128, 3, 3})}, {}, kGeneric},
      {"ConvTranspose", {In({1, 256, 96, 96}), In({256, 256, 4, 4})}, {Ints("strides", {2, 2})}},
      {"ConvTranspose", {In({1, 32, 64, 64}), In({32, 32, 4, 4})}, {}, kReference},
      {"MatMul", {In({2048, 4096}), In({4096, 4096})}, {}},
      {"MatMul", {In({8, 8000000}), In({8000000, 8})}, {}},
      {"MatMul", {In({1024, 1024}), In({1024, 1024})}, {}, kReference},
      {"MatMul", {In({1024, 2048}), In({2048, 2048})}, {}, kGeneric},
      {"Gemm", {In({4096, 2048}), In({4096, 4096})}, {Int("transA", 1), Int("transB", 1)}},
      {"Gemm", {In({1024, 1024}), In({1024, 1024})}, {}, kReference},
      {"Einsum", {In({64, 128, 128}), In({64, 128, 128})}, {Text("equation", "bij,bjk->bik")}},
      {"Resize",
       {In({1, 64, 512, 512}), None(), None(), Const({1, 64, 1500, 1500})},
       {Text("mode", "cubic")}},
      {"Resize",
       {In({1, 16, 256, 256}), None(), None(), Const({1, 16, 700, 700})},
       {Text("mode", "linear")},
       kReference},
      {"NonMaxSuppression", {In({1, 30000, 4}), In({1, 8, 30000}), Const({30000})}, {}},
      {"TopK", {In({1, 8000000}), Const({8000000})}, {}, "", 2},
      {"Unique", {In({2000000})}, {}},
      {"Det", {In({1600, 1600})}, {}},
      {"Attention", {In({1, 32, 4096, 64}), In({1, 32, 4096, 64}), In({1, 32, 4096, 64})}, {}},
      {"Attention",
       {In({1, 4, 1024, 64}), In({1, 4, 1024, 64}), In({1, 4, 1024, 64})},
       {},
       kReference},
      {"LSTM",
       {In({512, 64, 512}), In({1, 2048, 512}), In({1, 2048, 512})},
       {Int("hidden_size", 512)}},
      {"LSTM",
       {In({64, 8, 256}), In({1, 1024, 256}), In({1, 1024, 256})},
       {Int("hidden_size", 256)},
       kReference},
      {"GRU",
       {In({512, 64, 512}), In({1, 1536, 512}), In({1, 1536, 512})},
       {Int("hidden_size", 512)}},
      {"Erf", {In({300000000})}, {}},
      {"Pow", {In({100000000}), In({100000000})}, {}},
      {"Sin", {In({40000000})}, {}, kReference},
      {"Softmax", {In({1, 200000000})}, {}},
      {"Softmax", {In({40000, 5000})}, {}},
      {"Softmax", {In({1, 30000000})}, {}, kReference},
      {"LayerNormalization", {In({1, 100000000}), In({100000000})}, {}},
      {"LayerNormalization", {In({1, 20000000}), In({20000000})}, {}, kReference},
      {"ReduceSum", {In({300000000})}, {}},
      {"ReduceLogSumExp", {In({200000000})}, {}},
      {"ReduceSum", {In({60000000})}, {}, kReference},
      {"ArgMax", {In({300000000})}, {Int("axis", 0)}},
      {"CumSum", {In({100000000}), Const({0})}, {}},
      {"GlobalAveragePool", {In({1, 1, 16384, 16384})}, {}},
      {"MaxPool", {In({1, 64, 512, 512})}, {Ints("kernel_shape", {31, 31})}},
      {"AveragePool", {In({1, 8, 256, 256})}, {Ints("kernel_shape", {31, 31})}, kReference},
      {"Transpose", {In({16384, 16384})}, {Ints("perm", {1, 0})}},
      {"Transpose", {In({8192, 8192})}, {Ints("perm", {1, 0})}, kReference},
      {"DFT", {In({1, 1048573, 2})}, {}},
      {"DFT", {In({1, 20011, 2}), None(), None()}, {}, kReference},
      {"MatMulInteger", {In({2048, 2048}, NPURT_UINT8), In({2048, 2048}, NPURT_INT8)}, {}},
      {"QuantizeLinear", {In({300000000}), In({})}, {}},
      {"Col2Im",
       {In({1, 6400, 62001}), Const({256, 256}), Const({8, 8})},
       {}},
      {"GridSample", {In({1, 32, 512, 512}), In({1, 1024, 1024, 2})}, {}},
      {"LRN", {In({1, 512, 512, 512})}, {Int("size", 65)}},
      {"RandomUniformLike", {In({300000000})}, {}},
      {"NonZero", {In({60000000})}, {}},
      {"Expand", {In({1, 1}), Const({20000, 20000})}, {}},
      {"Tile", {In({1000, 1}), Const({1, 300000})}, {}},
  };
}

double Ms(std::chrono::steady_clock::duration d) {
  return std::chrono::duration<double, std::milli>(d).count();
}

struct Result {
  int stopped = 0;  // runs that were still going when they were to stop
  std::vector<double> ms;
  bool usable = true;
};

Result Measure(const Row& row) {
  using Clock = std::chrono::steady_clock;
  npurt_model* model = OneNode(row.type, row.domain, row.operands, row.attributes, row.outputs);
  npurt_session* session = OpenSession(model, row.settings);
  npurt_run* run = nullptr;
  NPURT_BENCH_CHECK(npurt_run_create(session, 0, &run, error));
  size_t input = 0;
  for (const Operand& operand : row.operands) {
    if (operand.absent || !operand.integers.empty()) continue;
    npurt_value* value = Random(operand);
    NPURT_BENCH_CHECK(npurt_run_bind_input(run, input++, value, 0, error));
    npurt_value_release(value);
  }
  Result result;
  for (int wait_ms : {20, 60, 110, 170, 240, 33}) {
    npurt_cancel* cancel = nullptr;
    NPURT_BENCH_CHECK(npurt_cancel_create(&cancel, error));
    npurt_run_params params = npurt_run_params_init();
    params.cancel = cancel;
    Clock::time_point triggered;
    std::thread other([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(wait_ms));
      triggered = Clock::now();
      npurt_cancel_trigger(cancel);
    });
    const npurt_status status = npurt_run_execute(run, &params, nullptr);
    const Clock::time_point returned = Clock::now();
    other.join();
    npurt_cancel_release(cancel);
    if (status == NPURT_CANCELLED) {
      ++result.stopped;
      result.ms.push_back(Ms(returned - triggered));
    } else if (status != NPURT_OK) {
      result.usable = false;
    }
  }
  for (int wait_ms : {25, 75}) {
    npurt_run_params params = npurt_run_params_init();
    params.deadline_ns = npurt_now_ns() + wait_ms * 1000000LL;
    const npurt_status status = npurt_run_execute(run, &params, nullptr);
    if (status == NPURT_DEADLINE_EXCEEDED) {
      ++result.stopped;
      result.ms.push_back(static_cast<double>(npurt_now_ns() - params.deadline_ns) / 1e6);
    } else if (status != NPURT_OK) {
      result.usable = false;
    }
  }
  npurt_run_release(run);
  npurt_session_release(session);
  npurt_model_release(model);
  std::sort(result.ms.begin(), result.ms.end());
  return result;
}

int Main(const char* filter) {
  bool good = true;
  for (const Row& row : Rows()) {
    std::string name = row.type;
    for (const Operand& operand : row.operands) {
      if (operand.absent || !operand.integers.empty()) continue;
      name += " [";
      for (int64_t dim : operand.dims) name += (name.back() == '[' ? "" : ",") + std::to_string(dim);
      name += "]";
    }
    if (row.settings[0] != '\0') name += std::string(" ") + row.settings;
    if (name.back() == '\n') name.pop_back();
    if (std::strstr(name.c_str(), filter) == nullptr) continue;
    const Result result = Measure(row);
    const double median = result.ms.empty() ? 0 : result.ms[result.ms.size() / 2];
    const bool fine = result.usable && median <= kLimitMs;
    good = good && fine;
    std::printf("%-4s %6.2f ms median %6.2f ms worst, %d of 8 stopped  %s\n", fine ? "ok" : "SLOW",
                median, result.ms.empty() ? 0 : result.ms.back(), result.stopped, name.c_str());
    if (!fine || (!result.ms.empty() && result.ms.back() > kLimitMs)) {
      for (double ms : result.ms) std::printf(" %.2f", ms);
      std::printf("\n");
    }
    std::fflush(stdout);
  }
  return good ? 0 : 1;
}

}  // namespace
}  // namespace npurt_bench

int main(int argc, char** argv) { return npurt_bench::Main(argc > 1 ? argv[1] : ""); }
