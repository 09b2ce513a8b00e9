// shapes_bench: does a session that runs a thousand different shapes again and again keep its size?
//
//   shapes_bench [runs] [shapes]      100000 1000
//
// The graph has weights, a value whose size only the run tells, and plans that do not all fit into
// the cache. Half of the runs bind a prepared run anew, half go through npurt_session_run. Prints
// resident memory on the way, and ends with 1 if it grew after the first 5 % of the runs.
#include <malloc.h>
#include <unistd.h>

#include <algorithm>

#include "graph.h"

namespace npurt_bench {
namespace {

// y = nonzero(x), z = softmax(relu(x)), x: float32[n, m].
npurt_model* Build() {
  npurt_graph* graph = nullptr;
  NPURT_BENCH_CHECK(npurt_graph_create("shapes", nullptr, &graph, error));
  const int64_t dims[] = {-1, -1};
  const char* names[] = {"n", "m"};
  npurt_value_info info = npurt_value_info_init();
  info.name = "x";
  info.dtype = NPURT_FLOAT32;
  info.rank = 2;
  info.dims = dims;
  info.dim_names = names;
  npurt_value_id x = -1;
  NPURT_BENCH_CHECK(npurt_graph_add_input(graph, &info, &x, error));
  npurt_value_id last = x;
  for (const char* type : {"Relu", "Softmax", "NonZero"}) {
    npurt_node node = npurt_node_init();
    node.type = type;
    node.inputs = type[0] == 'N' ? &x : &last;
    node.input_count = node.output_count = 1;
    npurt_value_id made = -1;
    NPURT_BENCH_CHECK(npurt_graph_add_node(graph, &node, &made, nullptr, error));
    last = made;
    if (type[0] != 'R') NPURT_BENCH_CHECK(npurt_graph_add_output(graph, made, nullptr, error));
  }
  npurt_model* model = nullptr;
  NPURT_BENCH_CHECK(npurt_model_create(graph, nullptr, &model, error));
  npurt_graph_release(graph);
  return model;
}

struct Sizes {
  double resident_kb, heap_kb;
};

Sizes Now() {
  long pages = 0, resident = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%ld %ld", &pages, &resident) != 2) resident = 0;
    std::fclose(file);
  }
  const struct mallinfo2 heap = mallinfo2();
  return {static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1024,
          static_cast<double>(heap.uordblks + heap.hblkhd) / 1024};
}

int Main(long runs, long shapes) {
  npurt_model* model = Build();
  npurt_session* session = OpenSession(model, "plan_cache_bytes = 200000\n");
  npurt_run* run = nullptr;
  NPURT_BENCH_CHECK(npurt_run_create(session, 0, &run, error));
  const long settled = runs / 20;
  Sizes first = {0, 0}, now = {0, 0};
  for (long i = 0; i < runs; ++i) {
    const int64_t shape = (i * 7919) % shapes;
    Operand operand;
    operand.dims = {1 + shape % 40, 1 + shape / 40};
    npurt_value* x = Random(operand);
    if (i % 2 == 0) {
      NPURT_BENCH_CHECK(npurt_run_bind_input(run, 0, x, 0, error));
      NPURT_BENCH_CHECK(npurt_run_execute(run, nullptr, error));
    } else {
      npurt_value* out[2] = {nullptr, nullptr};
      NPURT_BENCH_CHECK(
          npurt_session_run(session, 0, nullptr, &x, 1, nullptr, out, 2, nullptr, error));
      npurt_value_release(out[0]);
      npurt_value_release(out[1]);
    }
    npurt_value_release(x);
    const bool mark = i + 1 == settled;
    if (!mark && (i + 1) % (runs / 10) != 0) continue;
    now = Now();
    if (mark) first = now;
    std::printf("%7ld runs  %8.0f KB resident  %8.1f KB in use of the heap%s\n", i + 1,
                now.resident_kb, now.heap_kb, mark ? "  <- from here on flat" : "");
  }
  npurt_run_release(run);
  npurt_session_release(session);
  npurt_model_release(model);
  // A page or two of slack for the heap's own bookkeeping, and the state of the cache at the mark.
  const bool flat = now.resident_kb <= first.resident_kb * 1.01 + 256 &&
                    now.heap_kb <= first.heap_kb * 1.01 + 64;
  std::printf("%s: resident %+.0f KB, heap %+.1f KB after the first 5 %%\n", flat ? "flat" : "GROWS",
              now.resident_kb - first.resident_kb, now.heap_kb - first.heap_kb);
  return flat ? 0 : 1;
}

}  // namespace
}  // namespace npurt_bench

int main(int argc, char** argv) {
  const long runs = argc > 1 ? std::atol(argv[1]) : 100000;
  const long shapes = argc > 2 ? std::atol(argv[2]) : 1000;
  return npurt_bench::Main(std::max(runs, 20L), std::max(shapes, 1L));
}
