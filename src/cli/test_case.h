// One ONNX test: a folder with model.onnx and test_data_set_*/{input,output}_<i>.pb.
#ifndef NPURT_CLI_TEST_CASE_H_
#define NPURT_CLI_TEST_CASE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "cli/session.h"
#include "cli/values.h"

namespace npurt::cli {

struct TestCase {
  std::string name;  // of the folder
  std::string path;
  // Not empty: what is checked if the test does not pass: "runs", "shapes" (types and shapes are
  // right), "refused" (an error, at any stage), "tolerance RTOL ATOL".
  std::string property;
  std::string known_reason;
};

enum class TestState { kPassed, kFailed, kSkipped, kKnown };

struct TestOutcome {
  TestState state = TestState::kPassed;
  std::string category;  // the same for failures of one kind: "compile UNIMPLEMENTED Conv"
  std::string message;
  std::uint64_t digest = 0;  // of all outputs of all data sets that ran
};

// Adds the tests in `dir`: itself, or those of its folders and their folders, in order of name.
void FindTests(const std::string& dir, std::vector<TestCase>* out);

// Lines `name, reason, property`, separated by tabs; '#' starts a comment line. Marks the tests
// that are named, by the name of their folder.
Status MarkKnown(const std::string& path, std::vector<TestCase>* tests);

// Runs every data set of a test; on the calling thread.
TestOutcome RunTest(const TestCase& test, const SessionFlags& flags, const Tolerance& tolerance);

}  // namespace npurt::cli

#endif  // NPURT_CLI_TEST_CASE_H_
