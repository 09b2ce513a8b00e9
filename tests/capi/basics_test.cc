// The library itself, errors, structs, options and the host: everything before the first model.
#include "c_api_test.h"

extern "C" int npurt_header_in_c(void);

namespace npurt_test {
namespace {

TEST(HeaderTest, WorksFromC) { EXPECT_EQ(npurt_header_in_c(), 0); }

TEST(LibraryTest, NamesItsConstants) {
  EXPECT_EQ(npurt_abi(), static_cast<uint32_t>(NPURT_ABI_MAJOR));
  EXPECT_STREQ(npurt_version(), "0.1.0");
  EXPECT_STREQ(npurt_status_name(NPURT_OK), "OK");
  EXPECT_STREQ(npurt_status_name(NPURT_DATA_LOSS), "DATA_LOSS");
  EXPECT_STREQ(npurt_status_name(-5), "UNKNOWN");
  EXPECT_STREQ(npurt_dtype_name(NPURT_BFLOAT16), "bfloat16");
  EXPECT_EQ(npurt_dtype_name(1000), nullptr);
  EXPECT_EQ(npurt_dtype_find("float"), NPURT_FLOAT32);
  EXPECT_EQ(npurt_dtype_find("nothing"), NPURT_DTYPE_NONE);
  EXPECT_EQ(npurt_dtype_find(nullptr), NPURT_DTYPE_NONE);
  EXPECT_EQ(npurt_dtype_bits(NPURT_INT4), 4u);
  EXPECT_EQ(npurt_dtype_bits(NPURT_STRING), 0u);
  for (npurt_dtype dtype = 1; dtype <= NPURT_INT2; ++dtype)
    EXPECT_EQ(npurt_dtype_find(npurt_dtype_name(dtype)), dtype);
}

TEST(LibraryTest, ReportsBuildCpuOperatorsAndOptions) {
  for (npurt_report kind :
       {NPURT_REPORT_BUILD, NPURT_REPORT_CPU, NPURT_REPORT_OPERATORS, NPURT_REPORT_OPTIONS}) {
    Text text = Make<Text>([&](npurt_text** out, npurt_error** error) {
      return npurt_library_report(kind, out, error);
    });
    EXPECT_GT(npurt_text_size(text.get()), 2u);
    EXPECT_EQ(strlen(npurt_text_data(text.get())), npurt_text_size(text.get()));
  }
  npurt_text* text = nullptr;
  EXPECT_EQ(npurt_library_report(NPURT_REPORT_PLAN, &text, nullptr), NPURT_INVALID_ARGUMENT);
  EXPECT_EQ(npurt_library_report(NPURT_REPORT_BUILD, nullptr, nullptr), NPURT_INVALID_ARGUMENT);
}

TEST(ErrorTest, TellsWhatWhereAndCanBeShared) {
  Builder graph;
  const npurt_value_id a = graph.Input("a", {2, 64}), b = graph.Input("b", {32, 5});
  npurt_error* error = nullptr;
  npurt_value_id out = 77;
  EXPECT_EQ(graph.TryNode("MatMul", {a, b}, &out, &error, "logits"), NPURT_INVALID_ARGUMENT);
  EXPECT_EQ(out, 77);
  ASSERT_NE(error, nullptr);
  npurt_error* same = npurt_error_retain(error);
  npurt_error_release(error);
  EXPECT_EQ(npurt_error_code(same), NPURT_INVALID_ARGUMENT);
  EXPECT_STREQ(npurt_error_node(same), "logits");
  EXPECT_STREQ(npurt_error_operator(same), "MatMul");
  const std::string message = npurt_error_message(same);
  EXPECT_NE(message.find("64"), std::string::npos) << message;
  EXPECT_NE(message.find("32"), std::string::npos) << message;
  npurt_error_release(same);
}

TEST(ErrorTest, NullIsNoError) {
  EXPECT_EQ(npurt_error_code(nullptr), NPURT_OK);
  EXPECT_STREQ(npurt_error_message(nullptr), "");
  EXPECT_EQ(npurt_error_cause(nullptr), nullptr);
  EXPECT_EQ(npurt_error_retain(nullptr), nullptr);
  npurt_error_release(nullptr);
}

TEST(StructTest, ALongerStructIsAcceptedWhileItsTailIsZero) {
  struct Newer {
    npurt_value_info info;
    uint64_t added;
  } newer = {npurt_value_info_init(), 0};
  newer.info.struct_size = sizeof newer;
  newer.info.name = "x";
  newer.info.dtype = NPURT_FLOAT32;
  newer.info.rank = -1;
  Builder graph;
  npurt_value_id id = -1;
  EXPECT_OK(npurt_graph_add_input(graph.get(), &newer.info, &id, nullptr));
  newer.added = 1;
  newer.info.name = "y";
  Failure failure;
  EXPECT_EQ(npurt_graph_add_input(graph.get(), &newer.info, &id, failure), NPURT_INVALID_ARGUMENT);
  EXPECT_EQ(failure.text(), "info: fields after byte 48 are not known to this version");
  newer.info.struct_size = 8;
  EXPECT_EQ(npurt_graph_add_input(graph.get(), &newer.info, &id, failure), NPURT_INVALID_ARGUMENT);
}

TEST(StructTest, FillingKeepsTheSizeAndTheTailOfANewerCaller) {
  struct Newer {
    npurt_option_info info;
    uint64_t added;
  } newer = {npurt_option_info_init(), 42};
  newer.info.struct_size = sizeof newer;
  ASSERT_OK(npurt_options_describe(0, nullptr, &newer.info, nullptr));
  EXPECT_EQ(newer.info.struct_size, sizeof newer);
  EXPECT_EQ(newer.added, 42u);
  newer.info.struct_size = 8;
  EXPECT_EQ(npurt_options_describe(0, nullptr, &newer.info, nullptr), NPURT_INVALID_ARGUMENT);
}

TEST(OptionsTest, EveryOptionCanBeSetToItsDefault) {
  Options options = Make<Options>([](npurt_options** out, npurt_error** error) {
    return npurt_options_create("session", out, error);
  });
  ASSERT_GT(npurt_options_count(), 10u);
  for (size_t i = 0; i < npurt_options_count(); ++i) {
    npurt_option_info info = npurt_option_info_init();
    ASSERT_OK(npurt_options_describe(i, "session", &info, nullptr));
    EXPECT_OK(npurt_options_set(options.get(), info.name, info.default_value, nullptr))
        << info.name;
    EXPECT_NE(info.help[0], '\0');
  }
  npurt_option_info info = npurt_option_info_init();
  EXPECT_EQ(npurt_options_describe(npurt_options_count(), nullptr, &info, nullptr),
            NPURT_OUT_OF_RANGE);
  EXPECT_EQ(npurt_options_describe(0, "wrong", &info, nullptr), NPURT_NOT_FOUND);
}

TEST(OptionsTest, TextRoundTripsAndClonesAreIndependent) {
  Options options = Make<Options>([](npurt_options** out, npurt_error** error) {
    return npurt_options_create(nullptr, out, error);
  });
  const std::string text = "threads = 3\nfusion = off\n";
  ASSERT_OK(npurt_options_set_text(options.get(), text.data(), text.size(), nullptr));
  Options clone = Make<Options>([&](npurt_options** out, npurt_error** error) {
    return npurt_options_clone(options.get(), out, error);
  });
  ASSERT_OK(npurt_options_set(options.get(), "threads", nullptr, nullptr));
  const char* value = "x";
  ASSERT_OK(npurt_options_get(options.get(), "threads", &value, nullptr));
  EXPECT_EQ(value, nullptr);
  ASSERT_OK(npurt_options_get(clone.get(), "threads", &value, nullptr));
  EXPECT_STREQ(value, "3");
  Text written = Make<Text>([&](npurt_text** out, npurt_error** error) {
    return npurt_options_text(clone.get(), out, error);
  });
  EXPECT_STREQ(npurt_text_data(written.get()), "# profile native\nthreads = 3\nfusion = false\n");
}

TEST(OptionsTest, ErrorsNameTheNearestOptionAndTheRules) {
  Options options = Make<Options>([](npurt_options** out, npurt_error** error) {
    return npurt_options_create(nullptr, out, error);
  });
  Failure failure;
  EXPECT_EQ(npurt_options_set(options.get(), "threds", "1", failure), NPURT_NOT_FOUND);
  EXPECT_EQ(failure.text(), "option threds: there is no such option, did you mean threads?");
  ASSERT_OK(npurt_options_set(options.get(), "device", "reference", failure));
  ASSERT_OK(npurt_options_set(options.get(), "disable_isa", "amx", failure));
  EXPECT_EQ(npurt_options_check(options.get(), failure), NPURT_INVALID_ARGUMENT);
  npurt_session* session = nullptr;
  EXPECT_EQ(npurt_session_create(options.get(), nullptr, &session, failure),
            NPURT_INVALID_ARGUMENT);
}

struct Destroyed {
  int calls = 0;
  static void Destroy(void* user_data) { ++static_cast<Destroyed*>(user_data)->calls; }
};

TEST(HostTest, DestructorsRunOnceOnEveryPath) {
  Destroyed good, second, wrong, unknown;
  npurt_allocator allocator = npurt_allocator_init();
  allocator.user_data = &good;
  allocator.allocate = [](void*, size_t, size_t, npurt_memory) -> void* { return nullptr; };
  allocator.release = [](void*, void*, size_t, size_t, npurt_memory) {};
  allocator.destroy = Destroyed::Destroy;
  {
    Host host = Make<Host>(npurt_host_create);
    ASSERT_OK(npurt_host_set_allocator(host.get(), &allocator, nullptr));
    allocator.user_data = &second;
    EXPECT_EQ(npurt_host_set_allocator(host.get(), &allocator, nullptr), NPURT_ALREADY_EXISTS);
    EXPECT_EQ(second.calls, 1);
    allocator.user_data = &wrong;
    allocator.allocate = nullptr;
    EXPECT_EQ(npurt_host_set_allocator(host.get(), &allocator, nullptr), NPURT_INVALID_ARGUMENT);
    EXPECT_EQ(wrong.calls, 1);
    allocator.user_data = &unknown;
    allocator.flags = 8;
    EXPECT_EQ(npurt_host_set_allocator(nullptr, &allocator, nullptr), NPURT_INVALID_ARGUMENT);
    EXPECT_EQ(unknown.calls, 1);
    EXPECT_EQ(good.calls, 0);
  }
  EXPECT_EQ(good.calls, 1);
}

TEST(HostTest, IsFrozenOnceASessionUsesIt) {
  Host host = Make<Host>(npurt_host_create);
  Session session = Make<Session>([&](npurt_session** out, npurt_error** error) {
    return npurt_session_create(nullptr, host.get(), out, error);
  });
  npurt_log_sink sink = npurt_log_sink_init();
  Destroyed destroyed;
  sink.user_data = &destroyed;
  sink.destroy = Destroyed::Destroy;
  sink.write = [](void*, npurt_log_level, const char*, const char*) {};
  EXPECT_EQ(npurt_host_set_log(host.get(), &sink, nullptr), NPURT_FAILED_PRECONDITION);
  EXPECT_EQ(destroyed.calls, 1);
}

TEST(HostTest, TheLogGetsWhatItAskedFor) {
  std::vector<std::string> lines;
  Host host = Make<Host>(npurt_host_create);
  npurt_log_sink sink = npurt_log_sink_init();
  sink.user_data = &lines;
  sink.min_level = NPURT_LOG_WARNING;
  sink.write = [](void* user_data, npurt_log_level, const char* where, const char* message) {
    static_cast<std::vector<std::string>*>(user_data)->push_back(std::string(where) + ": " +
                                                                 message);
  };
  ASSERT_OK(npurt_host_set_log(host.get(), &sink, nullptr));
  Session session = Doubler().ToSession("threads = 1\nspin_us = 9", host.get());
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0],
            "options: option spin_us: has no effect with threads=1, one thread waits for nobody");
}

TEST(OptionsTest, TheReportTellsValuesTheirSourcesAndProblems) {
  Options options = Make<Options>([](npurt_options** out, npurt_error** error) {
    return npurt_options_create("session", out, error);
  });
  const std::string text = "enable_dump = True\njit_compile = true\n";
  ASSERT_OK(npurt_options_set_text(options.get(), text.data(), text.size(), nullptr));
  const auto report = Make<Text>([&](npurt_text** out, npurt_error** error) {
    return npurt_options_report(options.get(), out, error);
  });
  const std::string json = npurt_text_data(report.get());
  for (const char* part : {"\"source\": \"set\"", "\"why\": \"not active yet\"", "\"rule\": \"R3\"",
                           "option jit_compile: has no effect here"})
    EXPECT_NE(json.find(part), std::string::npos) << part;
  Failure failure;
  EXPECT_EQ(npurt_options_check(options.get(), failure), NPURT_INVALID_ARGUMENT);
  ASSERT_OK(npurt_options_set(options.get(), "dump_path", "/tmp", nullptr));
  EXPECT_EQ(npurt_options_check(options.get(), failure), NPURT_UNIMPLEMENTED);
  EXPECT_EQ(npurt_options_report(nullptr, nullptr, failure), NPURT_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace npurt_test
