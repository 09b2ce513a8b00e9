// generate MODEL [TOKENS [OPTION=VALUE...]]: runs a decoder token by token, its cache growing by a
// row each time, and says what a token costs and how often plans were made.
//
// Inputs whose names start with "past" are fed from the outputs, in order, that start with
// "present"; input_ids is the most likely token of the run before; position_ids counts; a mask is
// all ones.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "npurt/npurt.hpp"

namespace {

npurt::Value Filled(npurt_dtype dtype, const npurt::Dims& dims, std::int64_t value) {
  std::size_t count = 1;
  for (std::int64_t d : dims) count *= static_cast<std::size_t>(d);
  switch (dtype) {
    case NPURT_INT32:
      return npurt::Value::Copy(dims,
                                std::vector<std::int32_t>(count, static_cast<std::int32_t>(value)));
    case NPURT_INT64:
      return npurt::Value::Copy(dims, std::vector<std::int64_t>(count, value));
    case NPURT_FLOAT32:
      return npurt::Value::Copy(dims, std::vector<float>(count, 0.1f));
    default:
      std::fprintf(stderr, "generate: an input is neither int32, int64 nor float32\n");
      std::exit(1);
  }
}

struct Port {
  std::string name;
  npurt_dtype dtype;
  npurt::Dims dims;
};

bool StartsWith(const std::string& text, const char* start) { return text.rfind(start, 0) == 0; }

int Generate(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: generate MODEL [TOKENS [OPTION=VALUE...]]\n");
    return 2;
  }
  const int tokens = argc > 2 ? std::atoi(argv[2]) : 200;
  npurt::Options options = npurt::Options::Create();
  for (int i = 3; i < argc; ++i) {
    const std::string setting = argv[i];
    const std::size_t at = setting.find('=');
    options.Set(setting.substr(0, at), setting.substr(std::min(at + 1, setting.size())));
  }
  npurt::Session session = npurt::Session::Open(argv[1], options);
  std::vector<Port> inputs;
  std::vector<std::size_t> presents;
  for (std::size_t i = 0; i < npurt_session_input_count(session.get(), 0); ++i) {
    npurt_value_info info = npurt_value_info_init();
    npurt_session_input_info(session.get(), 0, i, &info, nullptr);
    Port port{info.name, info.dtype, npurt::Dims(info.dims, info.dims + std::max(info.rank, 0))};
    for (std::int64_t& d : port.dims) d = d < 0 ? 1 : d;
    inputs.push_back(port);
  }
  for (std::size_t i = 0; i < npurt_session_output_count(session.get(), 0); ++i) {
    npurt_value_info info = npurt_value_info_init();
    npurt_session_output_info(session.get(), 0, i, &info, nullptr);
    if (StartsWith(info.name, "present")) presents.push_back(i);
  }

  npurt::Run run = npurt::Run::Create(session);
  std::vector<double> microseconds;
  std::int64_t token = 1;
  for (int t = 0; t < tokens; ++t) {
    std::size_t past = 0;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const Port& port = inputs[i];
      npurt::Value value;
      if (StartsWith(port.name, "past")) {
        value = t == 0 ? Filled(port.dtype, port.dims, 0) : run.Output(presents[past]);
        ++past;
      } else if (port.name == "input_ids") {
        value = Filled(port.dtype, {1, 1}, token);
      } else if (port.name == "position_ids") {
        value = Filled(port.dtype, {1, 1}, t + 1);
      } else {
        value = Filled(port.dtype, {1, t + 2}, 1);
      }
      run.BindInput(i, value);
    }
    const auto start = std::chrono::steady_clock::now();
    run.Execute();
    microseconds.push_back(
        std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start)
            .count());
    const std::vector<float> logits = run.Output(0).Read<float>();
    token = std::max_element(logits.begin(), logits.end()) - logits.begin();
  }
  std::sort(microseconds.begin() + 1, microseconds.end());
  std::printf(
      "{\"tokens\": %d, \"p50_us\": %.2f, \"p99_us\": %.2f, \"first_us\": %.2f,\n \"counters\": "
      "%s}\n",
      tokens, microseconds[microseconds.size() / 2], microseconds[microseconds.size() * 99 / 100],
      microseconds[0], session.Report(NPURT_REPORT_COUNTERS).c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return Generate(argc, argv);
  } catch (const npurt::Error& error) {
    std::fprintf(stderr, "generate: %s\n", error.what());
    return 1;
  }
}
