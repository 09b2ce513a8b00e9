// sharing_bench: what a second session of the same model costs.
//
//   sharing_bench [megabytes]      200
//
// A chain of MatMul, Gemm and Conv with so many bytes of weights. Prints resident memory and time of
// each step; ends with 1 if the second session took more than 5 % of the weights.
#include <unistd.h>

#include <chrono>

#include "graph.h"

namespace npurt_bench {
namespace {

double ResidentMb() {
  long pages = 0, resident = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%ld %ld", &pages, &resident) != 2) resident = 0;
    std::fclose(file);
  }
  return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1 << 20);
}

constexpr int64_t kWidth = 1024;  // a square of float32 is 4 MB

npurt_model* Build(int megabytes) {
  npurt_graph* graph = nullptr;
  NPURT_BENCH_CHECK(npurt_graph_create("sharing", nullptr, &graph, error));
  const int64_t dims[] = {1, kWidth};
  npurt_value_info info = npurt_value_info_init();
  info.name = "x";
  info.dtype = NPURT_FLOAT32;
  info.rank = 2;
  info.dims = dims;
  npurt_value_id last = -1;
  NPURT_BENCH_CHECK(npurt_graph_add_input(graph, &info, &last, error));
  for (int i = 0; i < megabytes / 4; ++i) {
    Operand operand;
    operand.dims = {kWidth, kWidth};
    npurt_value* weights = Random(operand);
    npurt_tensor view = npurt_tensor_init();
    NPURT_BENCH_CHECK(npurt_value_tensor(weights, &view, error));
    static_cast<float*>(view.data)[0] = static_cast<float>(i);  // no two alike
    npurt_value_id ids[2] = {last, -1};
    const std::string name = "w" + std::to_string(i);
    NPURT_BENCH_CHECK(npurt_graph_add_constant(graph, name.c_str(), weights, &ids[1], error));
    npurt_value_release(weights);
    npurt_node node = npurt_node_init();
    node.type = i % 2 == 0 ? "MatMul" : "Gemm";
    node.inputs = ids;
    node.input_count = 2;
    node.output_count = 1;
    NPURT_BENCH_CHECK(npurt_graph_add_node(graph, &node, &last, nullptr, error));
  }
  NPURT_BENCH_CHECK(npurt_graph_add_output(graph, last, "y", error));
  npurt_model* model = nullptr;
  NPURT_BENCH_CHECK(npurt_model_create(graph, nullptr, &model, error));
  npurt_graph_release(graph);
  return model;
}

int Main(int megabytes) {
  double before = ResidentMb();
  const auto step = [&before](const char* what, auto&& body) {
    const auto start = std::chrono::steady_clock::now();
    body();
    const double ms =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    const double now = ResidentMb(), grown = now - before;
    std::printf("%-20s %+8.1f MB %8.0f ms\n", what, grown, ms);
    before = now;
    return grown;
  };
  npurt_model* model = nullptr;
  npurt_session *first = nullptr, *second = nullptr;
  step("model", [&] { model = Build(megabytes); });
  step("first session", [&] { first = OpenSession(model, ""); });
  const double cost = step("second session", [&] { second = OpenSession(model, ""); });
  const auto run_once = [](npurt_session* session) {
    NPURT_BENCH_CHECK(npurt_session_warm_up(session, 0, nullptr, 0, error));
  };
  step("run of the first", [&] { run_once(first); });
  step("run of the second", [&] { run_once(second); });
  npurt_session_release(first);
  step("run without the first", [&] { run_once(second); });
  npurt_session_release(second);
  npurt_model_release(model);
  const bool good = cost < 0.05 * megabytes;
  std::printf("%s: the second session took %.1f %% of the weights\n", good ? "ok" : "TOO MUCH",
              100 * cost / megabytes);
  return good ? 0 : 1;
}

}  // namespace
}  // namespace npurt_bench

int main(int argc, char** argv) { return npurt_bench::Main(argc > 1 ? std::atoi(argv[1]) : 200); }
