// Every allocation fails once: each time RESOURCE_EXHAUSTED, nothing lost, nothing broken.
//
// operator new of the whole program is replaced here, which the shared library finds too. The
// errors' own memory comes from malloc and is not made to fail.
#include <atomic>
#include <cstdlib>
#include <new>

#include "c_api_test.h"
#include "support/onnx_builder.h"

namespace {

std::atomic<long> live{0};        // blocks that were not freed yet
std::atomic<long> countdown{-1};  // allocations until one fails; -1: none fails
thread_local bool counted = false;
bool asked_only = false;  // the failed one was std::nothrow: who asks so may do without

[[gnu::noinline]] void* Allocate(std::size_t bytes, std::size_t alignment) {
  if (counted && countdown >= 0 && countdown-- == 0) return nullptr;
  const std::size_t rounded = (bytes + alignment) / alignment * alignment;
  void* data = std::aligned_alloc(alignment, rounded);
  if (counted && data != nullptr) ++live;
  return data;
}

[[gnu::noinline]] void Free(void* data) {
  if (counted && data != nullptr) --live;
  std::free(data);
}

void* AllocateOrNull(std::size_t bytes, std::size_t alignment) {
  void* data = Allocate(bytes, alignment);
  if (data == nullptr) asked_only = true;
  return data;
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
  return AllocateOrNull(bytes, kDefault);
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return AllocateOrNull(bytes, kDefault);
}
void* operator new(std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return AllocateOrNull(bytes, static_cast<std::size_t>(alignment));
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
    asked_only = false;
    const npurt_status status = body();
    const bool injected = countdown < 0;
    countdown = -1;
    const long leaked = live - before;
    counted = false;
    const bool done_without = injected && asked_only && status == NPURT_OK;
    EXPECT_TRUE(done_without || status == (injected ? NPURT_RESOURCE_EXHAUSTED : NPURT_OK))
        << "allocation " << points << ": " << npurt_status_name(status);
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

// --- Files with all that makes memory at other places --------------------------------------------

namespace onnx = npurt::tests::onnx;

struct File {
  const char* name;
  std::string bytes;
  npurt_dtype dtype = NPURT_FLOAT32;  // of the only input, x[4] (text: the same word four times)
};
std::ostream& operator<<(std::ostream& out, const File& file) { return out << file.name; }

std::string Branch(const char* op) {
  return onnx::Graph("branch")
      .Node(op, {"x", "w"}, {"b"})
      .Node("Softmax", {"b"}, {"r"})
      .Output("r", onnx::kFloat)
      .bytes();
}

std::vector<File> Files() {
  std::vector<File> files;
  const auto floats = [](const char* name, std::vector<std::int64_t> dims) {
    std::int64_t count = 1;
    for (std::int64_t dim : dims) count *= dim;
    return onnx::FloatTensor(name, dims, std::vector<float>(static_cast<size_t>(count), 0.5f));
  };
  files.push_back({"Convolution",
                   onnx::Model(onnx::Graph()
                                   .Input("x", onnx::kFloat, {4})
                                   .Initializer(floats("w", {32, 1, 3, 3}))
                                   .Initializer(onnx::Int64Tensor("s", {4}, {1, 1, 2, 2}))
                                   .Node("Reshape", {"x", "s"}, {"image"})
                                   .Node("Conv", {"image", "w"}, {"c"},
                                         {"", "", {onnx::IntsAttribute("pads", {1, 1, 1, 1})}})
                                   .Node("Relu", {"c"}, {"y"})
                                   .Output("y", onnx::kFloat))});
  files.push_back(
      {"Condition",
       onnx::Model(onnx::Graph()
                       .Input("x", onnx::kFloat, {4})
                       .Initializer(floats("w", {4}))
                       .Initializer(floats("z", {1}))
                       .Node("ReduceSum", {"x"}, {"sum"}, {"", "", {onnx::IntAttribute("keepdims", 0)}})
                       .Node("Greater", {"sum", "z"}, {"many"})
                       .Node("If", {"many"}, {"y"},
                             {"", "",
                              {onnx::GraphAttribute("then_branch", Branch("Add")),
                               onnx::GraphAttribute("else_branch", Branch("Mul"))}})
                       .Output("y", onnx::kFloat))});
  const std::string body = onnx::Graph("body")
                               .Input("i", onnx::kInt64, {})
                               .Input("go", onnx::kBool, {})
                               .Input("state", onnx::kFloat, {4})
                               .Node("Identity", {"go"}, {"again"})
                               .Node("Add", {"state", "x"}, {"next"})
                               .Node("Tanh", {"next"}, {"scanned"})
                               .Output("again", onnx::kBool)
                               .Output("next", onnx::kFloat)
                               .Output("scanned", onnx::kFloat)
                               .bytes();
  files.push_back({"Loop", onnx::Model(onnx::Graph()
                                           .Input("x", onnx::kFloat, {4})
                                           .Initializer(onnx::Int64Tensor("n", {}, {3}))
                                           .Node("Loop", {"n", "", "x"}, {"last", "y"},
                                                 {"", "", {onnx::GraphAttribute("body", body)}})
                                           .Output("last", onnx::kFloat)
                                           .Output("y", onnx::kFloat))});
  const std::string step = onnx::Graph("step")
                               .Input("state", onnx::kFloat, {})
                               .Input("item", onnx::kFloat, {})
                               .Node("Add", {"state", "item"}, {"sum"})
                               .Node("Identity", {"sum"}, {"seen"})
                               .Output("sum", onnx::kFloat)
                               .Output("seen", onnx::kFloat)
                               .bytes();
  files.push_back({"Scan", onnx::Model(onnx::Graph()
                                           .Input("x", onnx::kFloat, {4})
                                           .Initializer(onnx::FloatTensor("zero", {}, {0}))
                                           .Node("Scan", {"zero", "x"}, {"sum", "y"},
                                                 {"", "",
                                                  {onnx::GraphAttribute("body", step),
                                                   onnx::IntAttribute("num_scan_inputs", 1)}})
                                           .Output("sum", onnx::kFloat)
                                           .Output("y", onnx::kFloat))});
  files.push_back({"Sequence", onnx::Model(onnx::Graph()
                                               .Input("x", onnx::kFloat, {4})
                                               .Initializer(onnx::Int64Tensor("one", {}, {1}))
                                               .Node("SequenceConstruct", {"x", "x"}, {"s"})
                                               .Node("SequenceInsert", {"s", "x", "one"}, {"t"})
                                               .Node("ConcatFromSequence", {"t"}, {"y"},
                                                     {"", "", {onnx::IntAttribute("axis", 0)}})
                                               .Output("y", onnx::kFloat))});
  files.push_back({"LateShapes", onnx::Model(onnx::Graph()
                                                 .Input("x", onnx::kFloat, {"n"})
                                                 .Node("NonZero", {"x"}, {"where"})
                                                 .Node("Unique", {"x"}, {"u", "i", "j", "k"})
                                                 .Node("Gather", {"u", "where"}, {"taken"})
                                                 .Node("Softmax", {"u"}, {"y"})
                                                 .Output("where", onnx::kInt64)
                                                 .Output("y", onnx::kFloat))});
  files.push_back({"Strings",
                   onnx::Model(onnx::Graph()
                                   .Input("x", onnx::kString, {"n"})
                                   .Node("StringConcat", {"x", "x"}, {"twice"})
                                   .Node("StringSplit", {"twice"}, {"parts", "count"})
                                   .Node("Unique", {"parts"}, {"u"})
                                   .Output("u", onnx::kString)
                                   .Output("count", onnx::kInt64)),
                   NPURT_STRING});
  return files;
}

class OutOfMemoryFileTest : public ::testing::TestWithParam<File> {};

TEST_P(OutOfMemoryFileTest, LoadCompileBindAndRun) {
  const File& file = GetParam();
  const int points = EveryAllocationFails([&file] {
    const int64_t dims[] = {4};
    const float data[] = {1, 2, 2, 0};
    const npurt_string word = {"a text that is long enough to be allocated", 42};
    const npurt_string words[] = {word, word, word, word};
    npurt_model* model = nullptr;
    npurt_options* options = nullptr;
    npurt_session* session = nullptr;
    npurt_run* run = nullptr;
    npurt_value *x = nullptr, *y = nullptr;
    npurt_status status = npurt_model_load_memory(file.bytes.data(), file.bytes.size(), nullptr,
                                                  nullptr, &model, nullptr);
    if (status == NPURT_OK) status = npurt_options_create(nullptr, &options, nullptr);
    if (status == NPURT_OK) status = npurt_options_set(options, "threads", "1", nullptr);
    if (status == NPURT_OK) status = npurt_session_create(options, nullptr, &session, nullptr);
    if (status == NPURT_OK)
      status = npurt_session_add_model(session, model, nullptr, nullptr, nullptr);
    if (status == NPURT_OK) status = npurt_run_create(session, 0, &run, nullptr);
    if (status == NPURT_OK)
      status = file.dtype == NPURT_STRING
                   ? npurt_value_strings(dims, 1, words, 4, &x, nullptr)
                   : npurt_value_copy(NPURT_FLOAT32, dims, 1, data, sizeof data, &x, nullptr);
    if (status == NPURT_OK) status = npurt_run_bind_input(run, 0, x, 0, nullptr);
    for (int i = 0; i < 2 && status == NPURT_OK; ++i)
      status = npurt_run_execute(run, nullptr, nullptr);
    if (status == NPURT_OK) status = npurt_run_output(run, 0, &y, nullptr);
    npurt_value_release(y);
    npurt_value_release(x);
    npurt_run_release(run);
    npurt_session_release(session);
    npurt_options_release(options);
    npurt_model_release(model);
    return status;
  });
  EXPECT_GT(points, 100);
}

INSTANTIATE_TEST_SUITE_P(Files, OutOfMemoryFileTest, ::testing::ValuesIn(Files()),
                         [](const auto& info) { return info.param.name; });

TEST(OutOfMemoryTest, VariablesKeepWhatTheyHad) {
  Builder graph;
  npurt_value_info info = npurt_value_info_init();
  const int64_t dims[] = {2};
  info.name = "counter";
  info.kind = NPURT_KIND_RESOURCE;
  info.dtype = NPURT_FLOAT32;
  info.rank = 1;
  info.dims = dims;
  npurt_value_id counter = -1;
  ASSERT_OK(npurt_graph_add_variable(graph.get(), &info, Floats({2}, {1, 10}).get(), &counter,
                                     nullptr));
  graph.Output(graph.Node("ReadVariable", {counter}, "y"));
  Model model = graph.ToModel();
  Value value = Floats({2}, {3, 4});
  EXPECT_GE(EveryAllocationFails([&] {
              npurt_session* session = nullptr;
              npurt_value *y = nullptr, *read = nullptr;
              npurt_status status = npurt_session_create(nullptr, nullptr, &session, nullptr);
              if (status == NPURT_OK)
                status = npurt_session_add_model(session, model.get(), nullptr, nullptr, nullptr);
              if (status == NPURT_OK)
                status = npurt_session_set_variable(session, "counter", value.get(), nullptr);
              if (status == NPURT_OK)
                status = npurt_session_run(session, 0, nullptr, nullptr, 0, nullptr, &y, 1, nullptr,
                                           nullptr);
              if (status == NPURT_OK)
                status = npurt_session_get_variable(session, "counter", &read, nullptr);
              npurt_value_release(y);
              npurt_value_release(read);
              npurt_session_release(session);
              return status;
            }),
            30);
}

}  // namespace
}  // namespace npurt_test
