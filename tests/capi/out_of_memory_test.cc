// Every allocation fails once: each time RESOURCE_EXHAUSTED, nothing lost, nothing broken.
//
// operator new of the whole program is replaced here, which the shared library finds too. The
// errors' own memory comes from malloc and is not made to fail.
#include <atomic>
#include <cstdlib>
#include <new>

#include "c_api_test.h"

namespace {

std::atomic<long> live{0};        // blocks that were not freed yet
std::atomic<long> countdown{-1};  // allocations until one fails; -1: none fails
thread_local bool counted = false;

void* Allocate(std::size_t bytes, std::size_t alignment) {
  if (counted && countdown >= 0 && countdown-- == 0) return nullptr;
  const std::size_t rounded = (bytes + alignment) / alignment * alignment;
  void* data = std::aligned_alloc(alignment, rounded);
  if (counted && data != nullptr) ++live;
  return data;
}

void Free(void* data) {
  if (counted && data != nullptr) --live;
  std::free(data);
}

void* AllocateOrThrow(std::size_t bytes, std::size_t alignment) {
  void* data = Allocate(bytes, alignment);
  if (data == nullptr) throw std::bad_alloc();
  return data;
}

constexpr std::size_t kDefault = __STDCPP_DEFAULT_NEW_ALIGNMENT__;

}  // namespace

void* operator new(std::size_t bytes) { return AllocateOrThrow(bytes, kDefault); }
void* operator new[](std::size_t bytes) { return AllocateOrThrow(bytes, kDefault); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return AllocateOrThrow(bytes, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return Allocate(bytes, kDefault);
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return Allocate(bytes, kDefault);
}
void* operator new(std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return Allocate(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* data) noexcept { Free(data); }
void operator delete[](void* data) noexcept { Free(data); }
void operator delete(void* data, std::size_t) noexcept { Free(data); }
void operator delete[](void* data, std::size_t) noexcept { Free(data); }
void operator delete(void* data, std::align_val_t) noexcept { Free(data); }
void operator delete(void* data, std::size_t, std::align_val_t) noexcept { Free(data); }
void operator delete(void* data, const std::nothrow_t&) noexcept { Free(data); }

namespace npurt_test {
namespace {

// Runs `body` until it gets through, failing one allocation more each time.
template <typename Body>
int EveryAllocationFails(Body&& body) {
  counted = true;
  body();  // what is made once and kept (tables) is made now
  int points = 0;
  for (;; ++points) {
    const long before = live;
    countdown = points;
    const npurt_status status = body();
    const bool injected = countdown < 0;
    countdown = -1;
    const long leaked = live - before;
    counted = false;
    EXPECT_EQ(status, injected ? NPURT_RESOURCE_EXHAUSTED : NPURT_OK) << "allocation " << points;
    EXPECT_EQ(leaked, 0) << "allocation " << points;
    if (!injected || ::testing::Test::HasFailure()) return points;
    counted = true;
  }
}

TEST(OutOfMemoryTest, Options) {
  EXPECT_GE(EveryAllocationFails([] {
              npurt_options* options = nullptr;
              const char text[] = "threads = 3\nmax_isa = avx2\n";
              npurt_status status = npurt_options_create("session", &options, nullptr);
              if (status == NPURT_OK)
                status = npurt_options_set_text(options, text, sizeof text - 1, nullptr);
              npurt_options_release(options);
              return status;
            }),
            2);
}

TEST(OutOfMemoryTest, Values) {
  EXPECT_GE(EveryAllocationFails([] {
              const int64_t dims[] = {2};
              const npurt_string texts[] = {{"a string that is long enough to be allocated", 44},
                                            {"b", 1}};
              const float data[] = {1, 2};
              npurt_value *keys = nullptr, *values = nullptr, *map = nullptr, *optional = nullptr;
              npurt_status status = npurt_value_strings(dims, 1, texts, 2, &keys, nullptr);
              if (status == NPURT_OK)
                status = npurt_value_copy(NPURT_FLOAT32, dims, 1, data, 8, &values, nullptr);
              if (status == NPURT_OK) status = npurt_value_map(keys, values, &map, nullptr);
              if (status == NPURT_OK)
                status = npurt_value_optional(nullptr, map, &optional, nullptr);
              for (npurt_value* value : {keys, values, map, optional}) npurt_value_release(value);
              return status;
            }),
            10);
}

TEST(OutOfMemoryTest, BorrowedMemoryIsGivenBackOnce) {
  int calls = 0, runs = 0;
  EveryAllocationFails([&] {
    ++runs;
    const int64_t dims[] = {2};
    float data[] = {1, 2};
    const npurt_deleter deleter = {[](void* n, void*) { ++*static_cast<int*>(n); }, &calls};
    npurt_tensor view = npurt_tensor_init();
    view.dtype = NPURT_FLOAT32;
    view.rank = 1;
    view.dims = dims;
    view.data = data;
    view.bytes = sizeof data;
    npurt_value* value = nullptr;
    const npurt_status status = npurt_value_borrow(&view, &deleter, &value, nullptr);
    npurt_value_release(value);
    return status;
  });
  EXPECT_EQ(calls, runs);
}

TEST(OutOfMemoryTest, GraphsModelsSessionsAndRuns) {
  EXPECT_GE(EveryAllocationFails([] {
              const int64_t dims[] = {2};
              const float data[] = {1, 2};
              npurt_value_info info = npurt_value_info_init();
              info.name = "x";
              info.dtype = NPURT_FLOAT32;
              info.rank = 1;
              info.dims = dims;
              npurt_graph* graph = nullptr;
              npurt_model* model = nullptr;
              npurt_options* options = nullptr;
              npurt_session* session = nullptr;
              npurt_run* run = nullptr;
              npurt_value* value = nullptr;
              npurt_value_id x = -1, y = -1;
              npurt_node node = npurt_node_init();
              node.type = "Relu";
              node.inputs = &x;
              node.input_count = node.output_count = 1;
              npurt_status status = npurt_graph_create("g", nullptr, &graph, nullptr);
              if (status == NPURT_OK) status = npurt_graph_add_input(graph, &info, &x, nullptr);
              if (status == NPURT_OK)
                status = npurt_graph_add_node(graph, &node, &y, nullptr, nullptr);
              if (status == NPURT_OK) status = npurt_graph_add_output(graph, y, "y", nullptr);
              if (status == NPURT_OK) status = npurt_model_create(graph, nullptr, &model, nullptr);
              if (status == NPURT_OK) status = npurt_options_create(nullptr, &options, nullptr);
              if (status == NPURT_OK) status = npurt_options_set(options, "threads", "1", nullptr);
              if (status == NPURT_OK)
                status = npurt_session_create(options, nullptr, &session, nullptr);
              if (status == NPURT_OK)
                status = npurt_session_add_model(session, model, nullptr, nullptr, nullptr);
              if (status == NPURT_OK) status = npurt_run_create(session, 0, &run, nullptr);
              if (status == NPURT_OK)
                status = npurt_value_copy(NPURT_FLOAT32, dims, 1, data, 8, &value, nullptr);
              if (status == NPURT_OK) status = npurt_run_bind_input(run, 0, value, 0, nullptr);
              if (status == NPURT_OK) status = npurt_run_execute(run, nullptr, nullptr);
              npurt_value_release(value);
              npurt_run_release(run);
              npurt_session_release(session);
              npurt_options_release(options);
              npurt_model_release(model);
              npurt_graph_release(graph);
              return status;
            }),
            50);
}

}  // namespace
}  // namespace npurt_test
