/* dlopen, one run, dlclose; again and again: memory and threads must be as after the first rounds.
 *
 *   dlopen_test LIBRARY [rounds] */
#define _GNU_SOURCE /* mallinfo2 */
#include <dirent.h>
#include <dlfcn.h>
#include <malloc.h>
#include <npurt/npurt.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                        \
  do {                                                                          \
    if (!(condition)) {                                                         \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);   \
      exit(1);                                                                  \
    }                                                                           \
  } while (0)

static void* Find(void* library, const char* name) {
  void* symbol = dlsym(library, name);
  if (symbol == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    exit(1);
  }
  return symbol;
}
/* The function of this name in the library at hand. */
#define F(name) ((__typeof__(&name))Find(library, #name))

/* y = relu(x + x) on enough numbers to wake a second thread. */
static void OneRound(const char* path) {
  enum { kCount = 300000 };
  static float data[kCount];
  const int64_t dims[1] = {kCount};
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  npurt_graph* graph = NULL;
  npurt_model* model = NULL;
  npurt_options* options = NULL;
  npurt_session* session = NULL;
  npurt_value *x = NULL, *y = NULL;
  npurt_value_id in[2], sum = -1, out = -1;
  npurt_value_info info = npurt_value_info_init();
  npurt_node node = npurt_node_init();
  npurt_tensor view = npurt_tensor_init();
  if (library == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    exit(1);
  }
  info.name = "x";
  info.dtype = NPURT_FLOAT32;
  info.rank = 1;
  info.dims = dims;
  CHECK(F(npurt_graph_create)("g", NULL, &graph, NULL) == NPURT_OK);
  CHECK(F(npurt_graph_add_input)(graph, &info, &in[0], NULL) == NPURT_OK);
  in[1] = in[0];
  node.type = "Add";
  node.inputs = in;
  node.input_count = 2;
  node.output_count = 1;
  CHECK(F(npurt_graph_add_node)(graph, &node, &sum, NULL, NULL) == NPURT_OK);
  node.type = "Relu";
  node.inputs = &sum;
  node.input_count = 1;
  CHECK(F(npurt_graph_add_node)(graph, &node, &out, NULL, NULL) == NPURT_OK);
  CHECK(F(npurt_graph_add_output)(graph, out, "y", NULL) == NPURT_OK);
  CHECK(F(npurt_model_create)(graph, NULL, &model, NULL) == NPURT_OK);
  CHECK(F(npurt_options_create)(NULL, &options, NULL) == NPURT_OK);
  CHECK(F(npurt_options_set)(options, "threads", "2", NULL) == NPURT_OK);
  CHECK(F(npurt_session_create)(options, NULL, &session, NULL) == NPURT_OK);
  CHECK(F(npurt_session_add_model)(session, model, NULL, NULL, NULL) == NPURT_OK);
  data[1] = 3;
  view.dtype = NPURT_FLOAT32;
  view.rank = 1;
  view.dims = dims;
  view.data = data;
  view.bytes = sizeof data;
  CHECK(F(npurt_value_borrow)(&view, NULL, &x, NULL) == NPURT_OK);
  CHECK(F(npurt_session_run)(session, 0, NULL, &x, 1, NULL, &y, 1, NULL, NULL) == NPURT_OK);
  CHECK(F(npurt_value_tensor)(y, &view, NULL) == NPURT_OK);
  CHECK(((const float*)view.data)[1] == 6);
  F(npurt_value_release)(x);
  F(npurt_value_release)(y);
  F(npurt_session_release)(session);
  F(npurt_options_release)(options);
  F(npurt_model_release)(model);
  F(npurt_graph_release)(graph);
  CHECK(dlclose(library) == 0);
}

static long HeapBytes(void) {
#if defined(__GLIBC__)
  const struct mallinfo2 heap = mallinfo2();
  return (long)(heap.uordblks + heap.hblkhd);
#else
  return 0;
#endif
}

/* Entries of a folder of this process: its threads, its open files. */
static int Count(const char* path) {
  int count = 0;
  DIR* folder = opendir(path);
  if (folder == NULL) return -1;
  while (readdir(folder) != NULL) ++count;
  closedir(folder);
  return count;
}

int main(int argc, char** argv) {
  const int rounds = argc > 2 ? atoi(argv[2]) : 1000;
  long bytes = 0;
  int threads = 0, files = 0, i;
  CHECK(argc > 1);
  for (i = 0; i < rounds; ++i) {
    OneRound(argv[1]);
    if (i != rounds / 20) continue;
    bytes = HeapBytes();
    threads = Count("/proc/self/task");
    files = Count("/proc/self/fd");
  }
  printf("%d rounds: %ld bytes of heap, %+ld since round %d; %d threads\n", rounds, HeapBytes(),
         HeapBytes() - bytes, rounds / 20, Count("/proc/self/task") - 2);
  CHECK(Count("/proc/self/task") == threads && threads == 3);
  CHECK(Count("/proc/self/fd") == files);
  CHECK(HeapBytes() <= bytes + 16384);
  return 0;
}
