#include "cli/test_case.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

namespace npurt::cli {
namespace {

namespace fs = std::filesystem;

// What a test wants of its outputs.
enum class Rule { kValues, kShapes, kNothing };

TestOutcome Failed(std::string category, std::string message) {
  return {TestState::kFailed, std::move(category), std::move(message), 0};
}

TestOutcome Failed(const std::string& stage, npurt_status status, const OwnedError& error) {
  std::string category = stage + " " + npurt_status_name(status);
  const std::string op = npurt_error_operator(error.get());
  if (!op.empty()) category += " " + op;
  return Failed(category,
                stage + ": " + ErrorText(error.get()) + " (" + npurt_status_name(status) + ")");
}

bool IsFailure(const TestOutcome& outcome) { return outcome.state == TestState::kFailed; }

std::vector<fs::path> SortedFolders(const fs::path& dir) {
  std::vector<fs::path> folders;
  std::error_code ignored;
  for (fs::directory_iterator it(dir, ignored), end; it != end; it.increment(ignored))
    if (it->is_directory(ignored)) folders.push_back(it->path());
  std::sort(folders.begin(), folders.end());
  return folders;
}

std::vector<fs::path> DataSets(const std::string& dir) {
  std::vector<fs::path> sets;
  for (const fs::path& folder : SortedFolders(dir))
    if (folder.filename().string().compare(0, 14, "test_data_set_") == 0) sets.push_back(folder);
  return sets;
}

// The values of prefix_0.pb, prefix_1.pb ... in `dir`, as many as there are files.
TestOutcome ReadValues(const fs::path& dir, const std::string& prefix,
                       const std::vector<ValueInfo>& infos, std::vector<OwnedValue>* out) {
  for (std::size_t i = 0;; ++i) {
    const fs::path path = dir / (prefix + std::to_string(i) + ".pb");
    std::ifstream file(path, std::ios::binary);
    if (!file) return {};
    if (i >= infos.size())
      return Failed("data", path.string() + ": the model has only " + std::to_string(infos.size()) +
                                " of these");
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    OwnedError error;
    OwnedValue value;
    const npurt_status status =
        npurt_value_parse(infos[i].kind, bytes.data(), bytes.size(), value.out(), error.out());
    if (status != NPURT_OK) return Failed("data " + prefix, status, error);
    out->push_back(std::move(value));
  }
}

TestOutcome RunDataSet(npurt_session* session, const fs::path& dir,
                       const std::vector<ValueInfo>& input_infos,
                       const std::vector<ValueInfo>& output_infos, Rule rule,
                       const Tolerance& tolerance, std::uint64_t* digest) {
  std::vector<OwnedValue> inputs, wants;
  TestOutcome outcome = ReadValues(dir, "input_", input_infos, &inputs);
  if (!IsFailure(outcome)) outcome = ReadValues(dir, "output_", output_infos, &wants);
  if (IsFailure(outcome)) return outcome;

  std::vector<const char*> names;
  std::vector<npurt_value*> in, out(output_infos.size(), nullptr);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    names.push_back(input_infos[i].name.c_str());
    in.push_back(inputs[i].get());
  }
  OwnedError error;
  const npurt_status status =
      npurt_session_run(session, 0, names.data(), in.data(), in.size(), nullptr, out.data(),
                        out.size(), nullptr, error.out());
  if (status != NPURT_OK) return Failed("run", status, error);
  std::vector<OwnedValue> results(out.size());
  for (std::size_t i = 0; i < out.size(); ++i) *results[i].out() = out[i];
  for (const OwnedValue& result : results) *digest = Digest(result.get(), *digest);
  if (rule == Rule::kNothing) return {};
  for (std::size_t i = 0; i < wants.size(); ++i) {
    const std::string difference =
        Difference(results[i].get(), wants[i].get(), tolerance, rule == Rule::kValues);
    if (difference.empty()) continue;
    const bool values = difference.find("at [") != std::string::npos;
    return Failed(
        values ? "wrong values" : "wrong type or shape",
        dir.filename().string() + " output '" + output_infos[i].name + "': " + difference);
  }
  return {};
}

TestOutcome RunWith(const TestCase& test, const SessionFlags& flags, Rule rule,
                    const Tolerance& tolerance) {
  const std::vector<fs::path> sets = DataSets(test.path);
  if (sets.empty()) return {TestState::kSkipped, "no data", "has no test_data_set_* folder", 0};
  OwnedOptions options;
  const Status made = flags.MakeOptions(&options);
  if (!made.ok()) return Failed("options", made.message());
  OwnedError error;
  OwnedModel model;
  OwnedSession session;
  npurt_load_info info = npurt_load_info_init();
  info.options = options.get();
  npurt_status status =
      npurt_model_load_file((test.path + "/model.onnx").c_str(), &info, model.out(), error.out());
  if (status != NPURT_OK) return Failed("load", status, error);
  status = npurt_session_create(options.get(), nullptr, session.out(), error.out());
  if (status == NPURT_OK)
    status = npurt_session_add_model(session.get(), model.get(), nullptr, nullptr, error.out());
  if (status != NPURT_OK) return Failed("compile", status, error);
  std::vector<ValueInfo> inputs, outputs;
  for (const Status& got : {InputsOf(session.get(), &inputs), OutputsOf(session.get(), &outputs)})
    if (!got.ok()) return Failed("compile", got.message());
  TestOutcome outcome;
  std::uint64_t digest = 0;
  for (std::size_t i = 0; i < sets.size() && !IsFailure(outcome); ++i)
    outcome = RunDataSet(session.get(), sets[i], inputs, outputs, rule, tolerance, &digest);
  outcome.digest = digest;
  return outcome;
}

// Whether the property that stands for a known difference holds.
bool Holds(const TestCase& test, const TestOutcome& outcome, const SessionFlags& flags) {
  const std::vector<std::string> words = Split(test.property, ' ');
  if (words[0] == "refused")
    return outcome.category != "wrong values" && outcome.category != "wrong type or shape";
  Tolerance tolerance;
  if (words.size() == 3) {
    ParseReal(words[1], &tolerance.relative);
    ParseReal(words[2], &tolerance.absolute);
  }
  const Rule rule = words[0] == "runs"     ? Rule::kNothing
                    : words[0] == "shapes" ? Rule::kShapes
                                           : Rule::kValues;
  return !IsFailure(RunWith(test, flags, rule, tolerance));
}

bool IsProperty(const std::string& text) {
  const std::vector<std::string> words = Split(text, ' ');
  double number = 0;
  if (words[0] == "tolerance")
    return words.size() == 3 && ParseReal(words[1], &number) && ParseReal(words[2], &number);
  return text == "runs" || text == "shapes" || text == "refused";
}

}  // namespace

void FindTests(const std::string& dir, std::vector<TestCase>* out) {
  std::error_code ignored;
  if (fs::exists(fs::path(dir) / "model.onnx", ignored)) {
    const fs::path path = fs::path(dir) / "";  // "a/b/" and "a/b" have one name
    out->push_back({path.parent_path().filename().string(), dir, "", ""});
    return;
  }
  for (const fs::path& folder : SortedFolders(dir)) FindTests(folder.string(), out);
}

Status MarkKnown(const std::string& path, std::vector<TestCase>* tests) {
  std::ifstream file(path);
  if (!file) return Refused(path + ": cannot be read", "Check the name and the permissions.");
  std::map<std::string, std::vector<std::string>> known;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    if (line.empty() || line[0] == '#') continue;
    const std::vector<std::string> column = Split(line, '\t');
    if (column.size() != 3 || !IsProperty(column[2]))
      return Refused(path + ":" + std::to_string(number) +
                         ": want name, reason and property, separated by tabs",
                     "Properties: runs, shapes, refused, tolerance RTOL ATOL.");
    known[column[0]] = column;
  }
  for (TestCase& test : *tests) {
    const auto it = known.find(test.name);
    if (it == known.end()) continue;
    test.known_reason = it->second[1];
    test.property = it->second[2];
  }
  return Status();
}

TestOutcome RunTest(const TestCase& test, const SessionFlags& flags, const Tolerance& tolerance) {
  const TestOutcome outcome = RunWith(test, flags, Rule::kValues, tolerance);
  if (!IsFailure(outcome) || test.property.empty()) return outcome;
  if (Holds(test, outcome, flags))
    return {TestState::kKnown, "known", test.known_reason + " (checked: " + test.property + ")",
            outcome.digest};
  return Failed("known, but not " + test.property,
                "'" + test.property + "' does not hold, and " + outcome.message);
}

}  // namespace npurt::cli
