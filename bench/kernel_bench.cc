// The main program of kernel_bench; what it measures is in the other files.
#include <benchmark/benchmark.h>

BENCHMARK_MAIN();
