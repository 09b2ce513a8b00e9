// npurt test: runs ONNX test folders, says what failed and why, and closes with the counts.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>

#include "cli/isolate.h"
#include "cli/json.h"
#include "cli/test_case.h"
#include "cli/text.h"
#include "cli/verbs.h"

namespace npurt::cli {
namespace {

constexpr const char* kStateNames[] = {"passed", "failed", "skipped", "known"};

// An outcome on its way out of a child process.
std::string Pack(const TestOutcome& outcome) {
  return DumpJson(Json::array({static_cast<int>(outcome.state), outcome.category, outcome.message,
                               outcome.digest}),
                  -1);
}

TestOutcome Unpack(const IsolatedResult& result) {
  if (!result.problem.empty())
    return {TestState::kFailed, Split(result.problem, ' ')[0], result.problem, 0};
  const Json json = ParseJson(result.answer);
  if (!json.is_array() || json.size() != 4 || !json[0].is_number_integer())
    return {TestState::kFailed, "no answer", "gave no answer", 0};
  return {static_cast<TestState>(json[0].get<int>()), json[1].get<std::string>(),
          json[2].get<std::string>(), json[3].get<std::uint64_t>()};
}

class Progress {
 public:
  explicit Progress(std::size_t total) : total_(total) {}
  void Clear() const {
    if (terminal_) std::fprintf(stderr, "\r\x1b[K");
  }
  void Show(std::size_t done, const std::string& name) const {
    if (terminal_)
      std::fprintf(
          stderr, "\r\x1b[K%s",
          Shorten(std::to_string(done) + "/" + std::to_string(total_) + " " + name, kColumns - 1)
              .c_str());
  }

 private:
  const bool terminal_ = isatty(STDERR_FILENO) == 1;
  const std::size_t total_;
};

struct TestFlags {
  std::vector<std::string> dirs;
  std::string known, filter, digests;
  SessionFlags session;
  Tolerance tolerance;
  std::int64_t jobs = 1;
  double timeout_seconds = 120;
  bool in_process = false, summary = false, as_json = false;

  Status Parse(const Arguments& arguments, bool* help) {
    Args args("test",
              "Runs ONNX tests. DIR has model.onnx and test_data_set_*/input_<i>.pb and "
              "output_<i>.pb, or is a folder of such folders at any depth. A test passes when "
              "every data set gives the same types, shapes and values: |got - want| <= ATOL + RTOL "
              "* |want|, NaN equals NaN, strings are equal.");
    args.Positionals("DIR", &dirs, 1);
    args.Text("--filter", "TEXT", &filter, "Only tests whose path has this text in it.");
    args.Text("--known", "FILE", &known,
              "Tests that cannot pass, with name, reason and the property that is checked instead, "
              "separated by tabs: runs, shapes (types and shapes are right), refused (an error), "
              "tolerance RTOL ATOL. They are listed apart; a test whose property holds has passed, "
              "another has failed.");
    args.Real("--rtol", 0, 1e9, &tolerance.relative, "Relative tolerance; 1e-3 if not given.");
    args.Real("--atol", 0, 1e9, &tolerance.absolute, "Absolute tolerance; 1e-7 if not given.");
    session.Declare(args);
    args.Integer("--jobs", 1, 1024, &jobs, "How many tests to run at the same time.");
    args.Real("--timeout", 0.1, 86400, &timeout_seconds,
              "Seconds a test may take; 120 if not given.");
    args.Switch("--in-process", &in_process,
                "Runs the tests in this process, for debuggers; a crash ends it. By default each "
                "test has a process of its own.");
    args.Switch("--summary", &summary, "Counts the failures by reason at the end.");
    args.Text("--digests", "FILE", &digests,
              "Writes a line per test: its path and a number made of every bit of its outputs, for "
              "comparing two ways of running.");
    args.Switch("--json", &as_json, "One JSON object on the last line.");
    args.Note("The last line is: N passed, N failed, N skipped (with --json, that before it).");
    NPURT_CLI_TRY(args.Parse(arguments, help));
    if (*help) std::fputs(args.Help().c_str(), stdout);
    return Status();
  }
};

Status FindAll(const TestFlags& flags, std::vector<TestCase>* out) {
  std::vector<TestCase> tests;
  for (const std::string& dir : flags.dirs) {
    const std::size_t before = tests.size();
    FindTests(dir, &tests);
    if (tests.size() == before)
      return Refused(dir + ": has no test in it", "A test is a folder with a model.onnx.");
  }
  for (const TestCase& test : tests)
    if (test.path.find(flags.filter) != std::string::npos) out->push_back(test);
  if (out->empty()) return Refused("--filter " + flags.filter + ": fits no test");
  return flags.known.empty() ? Status() : MarkKnown(flags.known, out);
}

std::vector<TestOutcome> RunAll(const TestFlags& flags, const std::vector<TestCase>& tests) {
  std::vector<TestOutcome> outcomes(tests.size());
  const Progress progress(tests.size());
  std::size_t finished = 0;
  const auto done = [&](std::size_t i, TestOutcome outcome) {
    progress.Clear();
    if (outcome.state == TestState::kFailed)
      std::printf("FAILED %s: %s\n", tests[i].name.c_str(), outcome.message.c_str());
    if (outcome.state == TestState::kSkipped)
      std::printf("SKIPPED %s: %s\n", tests[i].name.c_str(), outcome.message.c_str());
    std::fflush(stdout);
    progress.Show(++finished, tests[i].name);
    outcomes[i] = std::move(outcome);
  };
  if (flags.in_process) {
    for (std::size_t i = 0; i < tests.size(); ++i)
      done(i, RunTest(tests[i], flags.session, flags.tolerance));
  } else {
    std::fflush(stdout);  // or each child would have it too
    RunIsolated(
        tests.size(), static_cast<std::size_t>(flags.jobs), flags.timeout_seconds,
        [&](std::size_t i) { return Pack(RunTest(tests[i], flags.session, flags.tolerance)); },
        [&](std::size_t i, const IsolatedResult& result) { done(i, Unpack(result)); });
  }
  progress.Clear();
  return outcomes;
}

void PrintKnown(const std::vector<TestCase>& tests, const std::vector<TestOutcome>& outcomes) {
  for (std::size_t i = 0; i < tests.size(); ++i) {
    if (outcomes[i].state == TestState::kKnown)
      std::printf("KNOWN %s: %s\n", tests[i].name.c_str(), outcomes[i].message.c_str());
    if (outcomes[i].state == TestState::kPassed && !tests[i].property.empty())
      std::printf("KNOWN %s: passes now, take it off the list\n", tests[i].name.c_str());
  }
}

void PrintSummary(const std::vector<TestOutcome>& outcomes) {
  std::map<std::string, int> counts;
  for (const TestOutcome& outcome : outcomes)
    if (outcome.state == TestState::kFailed) ++counts[outcome.category];
  std::vector<std::pair<std::string, int>> rows(counts.begin(), counts.end());
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  Table table({"FAILED", "REASON"});
  for (const auto& [category, count] : rows) table.Add({std::to_string(count), category});
  if (!rows.empty()) std::fputs(table.Format().c_str(), stdout);
}

Status WriteDigests(const std::string& path, const std::vector<TestCase>& tests,
                    const std::vector<TestOutcome>& outcomes) {
  std::ofstream file(path);
  for (std::size_t i = 0; i < tests.size(); ++i)
    file << tests[i].path << '\t' << outcomes[i].digest << '\n';
  file.close();
  return file ? Status()
              : Refused(path + ": cannot be written", "Check the name and the permissions.");
}

}  // namespace

Status TestVerb(const Arguments& arguments) {
  TestFlags flags;
  bool help = false;
  NPURT_CLI_TRY(flags.Parse(arguments, &help));
  if (help) return Status();
  OwnedOptions options;
  NPURT_CLI_TRY(flags.session.MakeOptions(&options));  // refuse wrong ones once, not per test
  std::vector<TestCase> tests;
  NPURT_CLI_TRY(FindAll(flags, &tests));
  const std::vector<TestOutcome> outcomes = RunAll(flags, tests);
  if (!flags.digests.empty()) NPURT_CLI_TRY(WriteDigests(flags.digests, tests, outcomes));

  std::size_t counts[4] = {};
  for (const TestOutcome& outcome : outcomes) ++counts[static_cast<int>(outcome.state)];
  PrintKnown(tests, outcomes);
  if (flags.summary) PrintSummary(outcomes);
  if (counts[3] > 0) std::printf("%zu known differences, whose property holds\n", counts[3]);
  std::printf("%zu passed, %zu failed, %zu skipped\n", counts[0] + counts[3], counts[1],
              counts[2]);
  if (flags.as_json) {
    Json json, cases = Json::array();
    for (std::size_t i = 0; i < tests.size(); ++i)
      cases.push_back({{"name", tests[i].name},
                       {"path", tests[i].path},
                       {"state", kStateNames[static_cast<int>(outcomes[i].state)]},
                       {"category", outcomes[i].category},
                       {"message", outcomes[i].message}});
    for (int state = 0; state < 4; ++state) json[kStateNames[state]] = counts[state];
    json["cases"] = std::move(cases);
    std::printf("%s\n", DumpJson(json, -1).c_str());
  }
  return counts[1] == 0 ? Status() : Status(kExitFailed, "");
}

}  // namespace npurt::cli
